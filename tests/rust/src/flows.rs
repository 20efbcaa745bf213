//! Conversations that fixtures cannot express: two engines, other peers, threads, many listeners, mistakes in handlers.

use crate::talk::{Talk, engine, info, parse};
use crate::vectors;
use mcp_resources_engine::catalog::{Edit, ItemSource};
use mcp_resources_engine::connection::{
    Answer, AskError, Completion, ConnectionKind, Contents, Event, InputRequired, ListPage, LogLevel,
};
use mcp_resources_engine::engine::{Engine, EngineOptions, Extension};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::resource::{CacheScope, ListSource, RegistrationError, Resource, Template};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Flow 10: a process that shares the key opens what another sealed, one that does not
/// refuses it.
#[test]
fn a_second_process_opens_cursors_and_states() {
    let [mut one, mut same, mut other] = ["the first secret", "the first secret", "another secret!!"]
        .map(|key| Talk::new(&engine(key, 4), ConnectionKind::Request));
    let cursor = one.modern(1, "resources/list", json!({})).sent[0]["result"]["nextCursor"].clone();
    let page = |talk: &mut Talk| talk.modern(2, "resources/list", json!({ "cursor": cursor })).sent.remove(0);
    assert_eq!(page(&mut same), page(&mut one));
    assert_eq!(page(&mut other)["error"]["code"], -32602);

    let token = one.modern(3, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    let ask = InputRequired { requests: Vec::new(), state: Some(b"mine".as_slice().into()) };
    let state = one.respond(token, Answer::InputRequired(ask))["result"]["requestState"].clone();
    let retry = json!({ "uri": "live://status", "requestState": state });
    assert_eq!(same.modern(4, "resources/read", retry.clone()).states, [Some(b"mine".to_vec())]);
    assert_eq!(other.modern(4, "resources/read", retry).sent[0]["error"]["code"], -32602);
}

/// what is sealed tells nothing of what is in it.
#[test]
fn a_state_is_not_readable() {
    let mut talk = Talk::new(&engine("a secret of ours", 0), ConnectionKind::Request);
    let token = talk.modern(1, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    let ask = InputRequired { requests: Vec::new(), state: Some(b"hidden".as_slice().into()) };
    let answer = talk.respond(token, Answer::InputRequired(ask));
    let state = answer["result"]["requestState"].as_str().unwrap();
    assert!(state.bytes().all(|byte| byte.is_ascii_graphic()), "{state}");
    assert!(!state.contains("hidden") && !state.contains("aGlkZGVu"), "{state}");
}

/// Flow 11: inside another server every method gives the value of `result` or `error` alone.
#[test]
fn bare_results_have_no_envelope() {
    let engine = engine("a secret of ours", 1);
    let mut talk = Talk::new(&engine, ConnectionKind::Bare);
    talk.shake_hands(&json!({}));
    let mut ask = |id: u32, method: &str, params: Value| {
        let legacy = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        (talk.send(&legacy), talk.modern(id + 1, method, params))
    };
    let found = json!({ "uri": "c://0000" });
    let completion = json!({ "ref": { "type": "ref/resource", "uri": "note://{id}" }, "argument": { "name": "id", "value": "" } });
    for (method, params, member) in [
        ("resources/list", json!({}), "resources"),
        ("resources/templates/list", json!({}), "resourceTemplates"),
        ("resources/read", found, "contents"),
        ("resources/read", json!({ "uri": "c://none" }), "code"),
        ("completion/complete", completion, "code"),
        ("no/such", json!({}), "code"),
    ] {
        let (legacy, modern) = ask(10, method, params);
        for heard in [legacy, modern] {
            assert_eq!(heard.sent.len(), 1, "{method}");
            assert!(heard.sent[0].get(member).is_some(), "{method}: {}", heard.sent[0]);
            assert!(
                heard.sent[0].get("jsonrpc").is_none() && heard.sent[0].get("id").is_none(),
                "{}",
                heard.sent[0]
            );
        }
    }
    let token = talk.modern(20, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    let answer = talk.respond(token, Answer::Contents(Contents::text("up").into()));
    assert_eq!(answer["contents"][0]["text"], "up");
    assert_eq!(answer["resultType"], "complete");
    let discovered = talk.modern(21, "server/discover", json!({})).sent.remove(0);
    assert!(discovered["supportedVersions"].is_array(), "{discovered}");
}

/// the server's own requests have ids of their own, and run out of time.
#[test]
fn a_legacy_client_can_be_asked() {
    let mut talk = Talk::new(&engine("a secret of ours", 0), ConnectionKind::Stdio);
    talk.shake_hands(&json!({ "roots": {} }));
    let mut ids = Vec::new();
    for method in ["ping", "ping", "roots/list"] {
        let mut out = Vec::new();
        talk.connection.ask(method, "{}", talk.now, &mut out).unwrap();
        let sent = parse(&out).remove(0);
        assert_eq!(sent["method"], *method);
        ids.push(sent["id"].clone());
    }
    assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2], "{ids:?}");
    let heard = talk.send(&json!({ "jsonrpc": "2.0", "id": ids[0], "result": {} }));
    assert!(heard.sent.is_empty());
    let mut out = Vec::new();
    assert_eq!(
        talk.connection.ask("elicitation/create", "{}", talk.now, &mut out),
        Err(AskError::NotSupported)
    );
    assert_eq!(talk.connection.ask("ping", "[]", talk.now, &mut out), Err(AskError::InvalidParams));
    assert!(out.is_empty());
    let late = talk.connection.deadline().unwrap();
    talk.now = Now { tick: late, unix: late };
    let unanswered = talk.connection.tick(talk.now, &mut out).events;
    assert_eq!(
        unanswered.iter().filter(|event| matches!(event, Event::Replied { answer: None, .. })).count(),
        2
    );
    assert!(out.is_empty(), "the server cancels nothing of its own");
}

/// a modern client is asked in no other way than by a result.
#[test]
fn a_modern_client_cannot_be_asked() {
    let mut talk = Talk::new(&engine("a secret of ours", 0), ConnectionKind::Request);
    talk.modern(1, "resources/list", json!({}));
    let mut out = Vec::new();
    assert_eq!(talk.connection.ask("ping", "{}", talk.now, &mut out), Err(AskError::UseInputRequired));
    assert!(out.is_empty());
}

/// what the server declares of its own has a prefix, and settings that are an object.
#[test]
fn wrong_declarations_are_refused() {
    let build = |id: &str, settings: &str| {
        let mut options = EngineOptions::default();
        options.extension_capabilities = vec![(id.into(), settings.into())];
        Engine::new(info(), options).err()
    };
    assert_eq!(build("com.example/x", "{}"), None);
    for (id, settings) in [
        ("x", "{}"),
        ("io.modelcontextprotocol/x", "{}"),
        ("com.example/x", "[]"),
        ("com.example/x", "{"),
        ("-a/x", "{}"),
    ] {
        assert!(
            matches!(build(id, settings), Some(RegistrationError::InvalidField { .. })),
            "{id} {settings}"
        );
    }
    let door = |method: &str| {
        let mut options = EngineOptions::default();
        options.extensions = vec![Extension { method: method.into(), ..Extension::default() }];
        Engine::new(info(), options).err()
    };
    assert_eq!(door("com.example/list"), None);
    for (method, part) in [("tools/list", "tool"), ("tools/call", "tool"), ("prompts/get", "prompt")] {
        let refused = door(method).unwrap().to_string();
        assert!(refused.contains(&format!("register a {part} instead")), "{refused}");
    }
    for own in ["resources/read", "initialize", "server/discover", "ping", ""] {
        assert!(door(own).is_some(), "{own}");
    }
}

/// a URI that clients would fetch themselves is logged.
#[test]
fn a_web_uri_is_warned_of() {
    let engine = engine("a secret of ours", 0);
    let add = |uri: &str| {
        let edit = Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Text("".into()) };
        engine.publish(vec![edit], Now::default()).unwrap()
    };
    assert_eq!(add("https://example.com/a").len(), 1);
    assert_eq!(add("http://example.com/a").len(), 1);
    assert_eq!(add("api://example.com/a"), Vec::<String>::new());
}

/// whatever the size of a page, a walk meets every item once, in order.
#[test]
fn walks_meet_every_item_once() {
    for page in [1, 2, 7, 50, 249, 250, 251] {
        let mut options = EngineOptions::default();
        options.limits.page = page;
        let engine = Engine::new(info(), options).unwrap();
        let template = |n| Edit::AddTemplate {
            template: Box::new(Template::new(format!("t{n}://{{x}}"))),
            handler: 0,
            mount: None,
        };
        let resource = |n| Edit::AddResource {
            resource: Resource::new(format!("r://{n:03}")),
            source: ItemSource::Text("".into()),
        };
        let edits = (0..250).rev().flat_map(|n| [template(n), resource(n)]).collect();
        engine.publish(edits, Now::default()).unwrap();
        for (method, list, key) in [
            ("resources/list", "resources", "uri"),
            ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ] {
            let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
            let mut met = Vec::new();
            let mut params = json!({});
            loop {
                let result = talk.modern(1, method, params.clone()).sent[0]["result"].clone();
                let items = result[list].as_array().unwrap();
                assert!(items.len() <= page && !items.is_empty());
                met.extend(items.iter().map(|item| item[key].as_str().unwrap().to_owned()));
                match result.get("nextCursor") {
                    Some(cursor) => params = json!({ "cursor": cursor }),
                    None => break,
                }
            }
            assert_eq!(met.len(), 250, "{method}, pages of {page}");
            assert!(met.is_sorted(), "{method}, pages of {page}");
        }
    }
}

/// the first resource with scopes does not end a walk that is under way, nor change what its pages say.
#[test]
fn a_walk_goes_on_when_the_first_scoped_resource_comes() {
    let mut options = EngineOptions::default();
    options.limits.page = 2;
    options.list_cache.scope = CacheScope::Public;
    let engine = Engine::new(info(), options).unwrap();
    let constant = |n| Edit::AddResource {
        resource: Resource::new(format!("c://{n:04}")),
        source: ItemSource::Text("".into()),
    };
    engine.publish((0..5).map(constant).collect(), Now::default()).unwrap();
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    let mut page = |params: Value| talk.modern(1, "resources/list", params).sent.remove(0)["result"].take();
    let mut met = Vec::new();
    let mut scopes = Vec::new();
    let mut params = json!({});
    loop {
        let mut result = page(params);
        let items = result["resources"].as_array().unwrap();
        met.extend(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
        scopes.push(result["cacheScope"].clone());
        if met.len() == 2 {
            let mut resource = Resource::new("c://0002a");
            resource.details.scopes = vec!["admin".into()];
            let edit = Edit::AddResource { resource, source: ItemSource::Text("".into()) };
            engine.publish(vec![edit], Now::default()).unwrap();
        }
        match result["nextCursor"].take() {
            Value::Null => break,
            cursor => params = json!({ "cursor": cursor }),
        }
    }
    assert_eq!(met, ["c://0000", "c://0001", "c://0002", "c://0003", "c://0004"]);
    assert_eq!(scopes, ["public"; 3]);
    assert_eq!(page(json!({}))["cacheScope"], "private", "a walk that begins now");
}

/// an item that a callback gives twice, or that is registered between two pages, is listed once.
#[test]
fn no_item_of_a_callback_is_listed_twice() {
    let mut options = EngineOptions::default();
    options.limits.page = 2;
    options.limits.list_ttl = 60_000;
    let engine = Engine::new(info(), options).unwrap();
    let template = Template::new("n://{id}").list(ListSource { pages: false });
    engine
        .publish(
            vec![Edit::AddTemplate { template: Box::new(template), handler: 0, mount: None }],
            Now::default(),
        )
        .unwrap();
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    let mut walk = |register: Option<&str>| {
        let mut met = Vec::new();
        let mut params = json!({});
        let mut register = register;
        loop {
            let heard = talk.modern(1, "resources/list", params);
            let mut answer = match heard.tokens.first() {
                None => heard.sent.into_iter().next().unwrap(),
                Some(token) => {
                    let items = ["n://1", "n://2", "n://2", "n://3", "n://4"].map(Resource::new);
                    talk.respond(*token, Answer::Listed(ListPage::new(items)))
                }
            };
            let items = answer["result"]["resources"].as_array().unwrap();
            met.extend(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
            if let Some(uri) = register.take() {
                let edit =
                    Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Text("".into()) };
                engine.publish(vec![edit], Now::default()).unwrap();
            }
            match answer["result"]["nextCursor"].take() {
                Value::Null => break met,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
    };
    assert_eq!(walk(None), ["n://1", "n://2", "n://3", "n://4"]);
    assert_eq!(walk(Some("n://2")), ["n://1", "n://2", "n://3", "n://4"], "listed before it was registered");
    assert_eq!(walk(Some("n://4")), ["n://2", "n://1", "n://3"], "n://4 is in the part that is over");
    assert_eq!(walk(None), ["n://2", "n://4", "n://1", "n://3"]);
}

/// a client that never comes back with what it was asked for leaves nothing in the server.
#[test]
fn abandoned_rounds_leave_nothing() {
    let engine = engine("a secret of ours", 0);
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    let before = engine.subscriptions();
    for id in 0..1_000 {
        let token = talk.modern(id, "resources/read", json!({ "uri": "live://status" })).tokens[0];
        let ask = InputRequired { requests: Vec::new(), state: Some(vec![7; 1_000].into()) };
        let answer = talk.respond(token, Answer::InputRequired(ask));
        assert!(answer["result"]["requestState"].is_string(), "{answer}");
        assert_eq!((talk.connection.in_flight(), talk.connection.deadline()), (0, None));
    }
    assert_eq!(engine.subscriptions(), before);
}

/// Flow 4, DEC-17: a burst notifies every listener once, and nothing is left afterwards.
#[test]
fn a_thousand_listeners_hear_once_each() {
    let engine = engine("a secret of ours", 0);
    let mut talks: Vec<_> = (0..1_000).map(|_| Talk::new(&engine, ConnectionKind::Request)).collect();
    let filter = json!({ "notifications": { "resourceSubscriptions": ["live://status"], "resourcesListChanged": true } });
    for talk in &mut talks {
        assert_eq!(talk.modern(1, "subscriptions/listen", filter.clone()).sent.len(), 1);
    }
    for _ in 0..100 {
        engine.updated("live://status", Now::default()).unwrap();
    }
    for talk in &mut talks {
        assert_eq!(talk.take_woken(), 1);
        assert_eq!(talk.deliver().len(), 1);
        assert_eq!(talk.deliver().len(), 0);
    }
    assert_eq!(engine.subscriptions().connections, 1_000);
    talks.iter_mut().for_each(|talk| drop(talk.connection.close(Now::default())));
    assert_eq!(engine.subscriptions(), mcp_resources_engine::hub::Counts::default());
}

/// whatever changes meanwhile, the acknowledgement comes first.
#[test]
fn the_acknowledgement_comes_first() {
    let engine = engine("a secret of ours", 0);
    let stop = Arc::new(AtomicBool::new(false));
    let changing = std::thread::spawn({
        let engine = engine.clone();
        let stop = stop.clone();
        move || {
            while !stop.load(Ordering::Relaxed) {
                engine.updated("live://status", Now::default()).unwrap();
            }
        }
    });
    for _ in 0..1_000 {
        let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
        let filter = json!({ "notifications": { "resourceSubscriptions": ["live://status"] } });
        let mut sent = talk.modern(1, "subscriptions/listen", filter).sent;
        sent.extend(talk.deliver());
        assert_eq!(sent[0]["method"], "notifications/subscriptions/acknowledged");
        assert!(sent[1..].iter().all(|message| message["method"] == "notifications/resources/updated"));
        talk.connection.close(talk.now);
    }
    stop.store(true, Ordering::Relaxed);
    changing.join().unwrap();
}

/// blobs of every length decode to what they were made from.
#[test]
fn blobs_decode_to_their_bytes() {
    use base64::Engine as _;
    let mut talk = Talk::new(&engine("a secret of ours", 0), ConnectionKind::Stdio);
    for size in (0..200).chain([1_000, 4_095, 4_096, 4_097, 100_000]) {
        let bytes: Vec<u8> = (0..size).map(|at: usize| (at * 167 + size) as u8).collect();
        let token = talk.modern(1, "resources/read", json!({ "uri": "live://status" })).tokens[0];
        let answer = talk.respond(token, Answer::Contents(Contents::blob(&bytes).into()));
        let blob = answer["result"]["contents"][0]["blob"].as_str().unwrap();
        assert_eq!(base64::engine::general_purpose::STANDARD.decode(blob).unwrap(), bytes);
    }
}

/// an answer of the wrong sort is an internal error to the client, and named to the host.
#[test]
fn an_answer_of_the_wrong_sort_is_named() {
    let mut talk = Talk::new(&engine("a secret of ours", 0), ConnectionKind::Stdio);
    let token = talk.modern(1, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    let mut out = Vec::new();
    let answer = Answer::Completion(Completion::default());
    let outcome = talk.connection.respond(token, answer, talk.now, &mut out);
    assert!(outcome.misuse.is_some());
    assert_eq!(parse(&out)[0]["error"]["code"], -32603);
}

/// of a thousand values a hundred are sent, and how many there are.
#[test]
fn a_completion_has_at_most_a_hundred_values() {
    let engine = engine("a secret of ours", 0);
    let handler = engine.new_handler();
    let add = Edit::AddTemplate {
        template: Box::new(Template::new("many://{x}").completes("x")),
        handler,
        mount: None,
    };
    engine.publish(vec![add], Now::default()).unwrap();
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    let params = json!({ "ref": { "type": "ref/resource", "uri": "many://{x}" }, "argument": { "name": "x", "value": "" } });
    let token = talk.modern(1, "completion/complete", params).tokens[0];
    let values = (0..1_000).map(|n| n.to_string().into()).collect();
    let answer = Answer::Completion(Completion { values, ..Completion::default() });
    let completion = talk.respond(token, answer)["result"]["completion"].clone();
    assert_eq!(completion["values"].as_array().unwrap().len(), 100);
    assert_eq!((&completion["total"], &completion["hasMore"]), (&json!(1_000), &json!(true)));
}

/// a credential that a handler logs is not sent.
#[test]
fn credentials_are_not_logged() {
    let mut options = EngineOptions::default();
    options.logging = true;
    let engine = Engine::new(info(), options).unwrap();
    let handler = engine.new_handler();
    let edit =
        Edit::AddResource { resource: Resource::new("live://status"), source: ItemSource::Handler(handler) };
    engine.publish(vec![edit], Now::default()).unwrap();
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    talk.shake_hands(&json!({}));
    talk.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": { "level": "debug" } }),
    );
    let read = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": "live://status" } });
    let token = talk.send(&read).tokens[0];
    let reply = talk.connection.reply(token).unwrap();
    let data = json!({ "request": "GET / Authorization: Bearer s3cr3t-t0ken-4711", "password": "s3cr3t", "kept": "harmless" });
    let line = String::from_utf8(reply.log(LogLevel::Info, None, &data.to_string()).unwrap()).unwrap();
    assert!(line.contains("harmless") && !line.contains("s3cr3t"), "{line}");
}

/// Flow 9: a thousand resources come and go while reads are open, and a watched one is removed.
#[test]
fn the_catalogue_changes_under_open_reads() {
    let engine = engine("a secret of ours", 1);
    let mut talk = Talk::new(&engine, ConnectionKind::Stdio);
    talk.modern(
        1,
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": ["c://0000"] } }),
    );
    let token = talk.modern(2, "resources/read", json!({ "uri": "live://status" })).tokens[0];
    for n in 0..1_000 {
        let add = Edit::AddResource {
            resource: Resource::new(format!("n://{n}")),
            source: ItemSource::Text("".into()),
        };
        engine.publish(vec![add], talk.now).unwrap();
    }
    let gone = ["c://0000", "live://status"].map(|uri| Edit::RemoveResource { uri: uri.into() });
    engine.publish(gone.to_vec(), talk.now).unwrap();
    assert_eq!(talk.take_woken(), 1);
    assert_eq!(talk.deliver()[0]["params"]["uri"], "c://0000");
    let answer = talk.respond(token, Answer::Contents(Contents::text("still").into()));
    assert_eq!(answer["result"]["contents"][0]["text"], "still");
    let missing = talk.modern(3, "resources/read", json!({ "uri": "live://status" })).sent.remove(0);
    assert_eq!(missing["error"]["data"]["kind"], ReadError::NotFound.kind().unwrap());
}

/// The requests among the official examples are understood: none is malformed to us.
#[test]
fn official_examples_are_understood() {
    let Some(folder) = vectors::directory("spec/examples") else {
        vectors::left_out("no official examples: see tests/make_vectors.py");
        return;
    };
    let engine = engine("a secret of ours", 1);
    let mut understood = 0;
    for kind in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        for example in std::fs::read_dir(kind.path()).into_iter().flatten().map(Result::unwrap) {
            let text = std::fs::read(example.path()).unwrap();
            let Ok(message) = serde_json::from_slice::<Value>(&text) else { continue };
            if message.get("method").is_none() || message.get("jsonrpc").is_none() {
                continue;
            }
            let sent = Talk::new(&engine, ConnectionKind::Stdio).send(&message).sent;
            let malformed =
                sent.iter().any(|sent| sent["error"]["code"] == -32600 || sent["error"]["code"] == -32700);
            assert!(!malformed, "{}: {sent:?}", example.path().display());
            understood += 1;
        }
    }
    assert!(understood > 5, "{understood}");
}
