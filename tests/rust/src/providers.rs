//! What providers need of lists, reads, subscriptions and completions, on the wire.

use crate::talk::{info, parse};
use mcp_resources_engine::catalog::{Edit, HandlerId, ItemSource, ListKind, MountId};
use mcp_resources_engine::connection::{
    Answer, Arrival, Completion, Connection, ConnectionKind, Contents, Event, Events, Item, ListPage,
    ReadResult, RequestOutcome, RequestToken,
};
use mcp_resources_engine::engine::{Engine, EngineOptions};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{CacheHint, CacheScope, ListSource, Resource, Template};
use serde_json::{Value, json};
use std::sync::Arc;

/// A call of a function.
struct Asked {
    handler: HandlerId,
    /// The URI of a read, the cursor of a list, the reference of a completion.
    text: Option<String>,
}

type Answers = Box<dyn FnMut(Asked) -> Answer<'static>>;

/// One connection to an engine whose functions are `answers`.
struct Side {
    engine: Arc<Engine>,
    connection: Connection,
    answers: Answers,
    /// The numbers of the functions that were asked.
    asked: Vec<HandlerId>,
    /// The log messages.
    misuses: Vec<String>,
}

impl Side {
    fn new(options: EngineOptions, answers: impl FnMut(Asked) -> Answer<'static> + 'static) -> Self {
        let engine = Engine::new(info(), options).unwrap();
        let connection = engine.connect(ConnectionKind::Stdio);
        Self { engine, connection, answers: Box::new(answers), asked: Vec::new(), misuses: Vec::new() }
    }

    fn publish(&self, edits: impl IntoIterator<Item = Edit>) {
        let edits = edits.into_iter().collect();
        self.engine.publish(edits, Now::default()).unwrap();
    }

    /// The response to a request of 2026-07-28.
    fn ask(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {} });
        let out = self.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        parse(&out).remove(0)
    }

    fn send(&mut self, message: &Value) -> Vec<u8> {
        let text = message.to_string();
        let principal = Principal::local();
        let mut out = Vec::new();
        let arrival = Arrival { message: text.as_bytes(), principal: &principal, header_check: None };
        let RequestOutcome { events, .. } = self.connection.message(arrival, Now::default(), &mut out);
        let mut open = self.answers(&events);
        while let Some((token, answer)) = open.pop() {
            let RequestOutcome { events, misuse, .. } =
                self.connection.respond(token, answer, Now::default(), &mut out);
            self.misuses.extend(misuse);
            open.extend(self.answers(&events));
        }
        out
    }

    fn answers(&mut self, events: &Events<'_>) -> Vec<(RequestToken, Answer<'static>)> {
        let mut open = Vec::new();
        for event in events {
            let (token, handler, text) = match event {
                Event::Read(read) => (read.token, read.handler, Some(read.uri.to_string())),
                Event::List(list) => (list.token, list.handler, list.cursor.clone()),
                Event::Complete(complete) => {
                    (complete.token, complete.handler, Some(complete.reference.to_string()))
                }
                _ => continue,
            };
            self.asked.push(handler);
            open.push((token, (self.answers)(Asked { handler, text })));
        }
        open
    }

    /// The URIs of a walk over all pages of `resources/list`.
    fn walk(&mut self) -> Vec<String> {
        let mut met = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.ask("resources/list", params);
            let items = page["result"]["resources"].as_array().unwrap_or_else(|| panic!("{page}"));
            met.extend(items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()));
            match page["result"]["nextCursor"].take() {
                Value::Null => return met,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
    }
}

fn page_of(page: usize) -> EngineOptions {
    let mut options = EngineOptions::default();
    options.limits.page = page;
    options
}

fn guarded(policy: &str) -> EngineOptions {
    let mut options = EngineOptions::default();
    options.guard = Policy::from_json(policy).unwrap();
    options
}

fn source(key: &str, handler: HandlerId, mount: MountId, pages: bool) -> Edit {
    Edit::AddSource { list: ListKind::Resources, key: key.into(), handler, mount, pages }
}

fn template(template: Template, handler: HandlerId, mount: MountId) -> Edit {
    Edit::AddTemplate { template: Box::new(template), handler, mount: Some(mount) }
}

fn fallback(handler: HandlerId) -> Edit {
    Edit::SetFallback { handler: Some(handler) }
}

fn listed<'a>(uris: impl IntoIterator<Item = &'a str>) -> Answer<'static> {
    Answer::Listed(ListPage::new(uris.into_iter().map(Resource::new)))
}

fn foreign(uri: &str) -> Item {
    Item::Foreign { uri: uri.into(), json: json!({ "uri": uri, "name": "n" }).to_string() }
}

/// R-101, R-103: one walk over the catalogue, a template's own list and two sources, one of which pages, with any size of
/// page. A source lists what its mount serves, by whichever template.
#[test]
fn sources_follow_the_templates_on_every_page_size() {
    for page in 1..9 {
        let mut side = Side::new(page_of(page), |Asked { handler, text }| match (handler, text.as_deref()) {
            (10, None) => listed(["t://1", "t://2", "u://9", "v://1"]),
            (11, None) => Answer::Listed(ListPage::new([foreign("u://1")]).with_next("second")),
            (11, Some("second")) => Answer::Listed(ListPage::new([Resource::new("u://2")])),
            (12, None) => listed(["v://2", "t://3", "v://3", "v://2"]),
            other => panic!("{other:?}"),
        });
        let one = side.engine.new_mount();
        let two = side.engine.new_mount();
        let lists = Template::new("t://{x}").list(ListSource::default());
        let constant = |uri: &str| Edit::AddResource {
            resource: Resource::new(uri),
            source: ItemSource::Text("".into()),
        };
        side.publish([
            constant("c://1"),
            constant("c://2"),
            template(lists, 10, one),
            template(Template::new("u://{x}"), 1, one),
            template(Template::new("v://{x}"), 2, two),
            source("b", 12, two, false),
            source("a", 11, one, true),
        ]);
        let expected = ["c://1", "c://2", "t://1", "t://2", "u://9", "u://1", "u://2", "v://2", "v://3"];
        assert_eq!(side.walk(), expected, "pages of {page}");
    }
}

/// R-103: a walk goes on behind a source that was removed, and a cursor opens in another process.
#[test]
fn a_walk_survives_a_source_and_a_restart() {
    let lists = |Asked { handler, .. }: Asked| {
        listed(match handler {
            1 => ["a://1", "a://2", "a://3"],
            _ => ["b://1", "b://2", "b://3"],
        })
    };
    let side = || {
        let mut options = page_of(2);
        options.keys = vec![mcp_resources_engine::seal::SealKey::from_secret(b"a secret of ours").unwrap()];
        let side = Side::new(options, lists);
        let mount = side.engine.new_mount();
        side.publish([source("a", 1, mount, false), source("b", 2, mount, false), fallback(9)]);
        (side, mount)
    };
    let (mut first, mount) = side();
    let page = first.ask("resources/list", json!({}));
    let cursor = json!({ "cursor": page["result"]["nextCursor"] });
    let uris = |page: &Value| -> Vec<String> {
        let items = page["result"]["resources"].as_array().unwrap();
        items.iter().map(|item| item["uri"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(uris(&page), ["a://1", "a://2"]);
    assert_eq!(uris(&side().0.ask("resources/list", cursor.clone())), ["a://3", "b://1"]);
    first.publish([Edit::RemoveSource { mount, key: "a".into() }]);
    assert_eq!(uris(&first.ask("resources/list", cursor)), ["b://1", "b://2"]);
}

/// A kept answer serves every page of a walk, and is gone with its source.
#[test]
fn answers_of_sources_are_kept() {
    let mut options = page_of(1);
    options.limits.list_ttl = 60_000;
    let mut side = Side::new(options, |_| listed(["a://1", "a://2", "a://3"]));
    let mount = side.engine.new_mount();
    side.publish([source("a", 1, mount, false), fallback(9)]);
    assert_eq!((side.walk().len(), side.asked.len()), (3, 1));
    side.publish([Edit::RemoveSource { mount, key: "a".into() }, source("a", 2, mount, false)]);
    assert_eq!((side.walk().len(), &side.asked[..]), (3, &[1, 2][..]));
}

/// A description of another server passes as it is, also in an old revision; what no list could hold is left out and named.
#[test]
fn foreign_items_pass_verbatim_and_unsound_ones_are_left_out() {
    let json = r#"{"uri":"a:1","name":"n","icons":[{"src":"ftp://odd"}],"later":{"x":1.50},"_meta":{"mcp.dev/y":0}}"#;
    let item = |uri: &str, json: &str| Item::Foreign { uri: uri.into(), json: json.into() };
    let mut options = EngineOptions::default();
    options.limits.nesting = 8;
    options.limits.list_item = 1_000;
    let mut side = Side::new(options, move |_| {
        let deep = format!(r#"{{"uri":"a:2","name":"n","x":{}{}}}"#, "[".repeat(9), "]".repeat(9));
        let long = format!(r#"{{"uri":"a:2","name":"{}"}}"#, "n".repeat(1_000));
        let sound = [item("a:1", json), item("a:6", "{\r\n \"uri\": \"a:6\",\n \"name\": \"n n\" }")];
        let unsound = [
            ("a:2", "[]"),
            ("a:2", "{"),
            ("a:2", r#"{"name":"n"}"#),
            ("a:2", r#"{"uri":"a:1","name":"n"}"#),
            ("a:2", r#"{"uri":"a:2","uri":"b:2","name":"n"}"#),
            ("a:2", r#"{"uri":"a:2"}"#),
            ("no uri", r#"{"uri":"no uri","name":"n"}"#),
            ("a:2", &deep),
            ("a:2", &long),
        ];
        Answer::Listed(ListPage::new(unsound.map(|(uri, json)| item(uri, json)).into_iter().chain(sound)))
    });
    let mount = side.engine.new_mount();
    side.publish([source("peer", 1, mount, false), fallback(9)]);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } });
    side.send(&hello);
    side.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let sent = side.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/list" }));
    let text = String::from_utf8(sent).unwrap();
    assert!(text.contains(&format!("[{json},")), "{text}");
    assert_eq!(text.lines().count(), 1, "R-145: {text}");
    assert_eq!(parse(text.as_bytes())[0]["result"]["resources"][1]["name"], "n n");
    let told = &side.misuses[0];
    assert!(told.contains("leaves out 9 of 11 items") && told.contains("\"peer\""), "{told}");
}

/// 100 odd items of 10,000 cost nothing but themselves.
#[test]
fn one_odd_item_never_refuses_the_rest() {
    let mut side = Side::new(page_of(20_000), |_| {
        let item = |number: usize| match number % 100 {
            7 => Item::Foreign { uri: format!("a://{number}"), json: "{}".into() },
            _ => foreign(&format!("a://{number}")),
        };
        Answer::Listed(ListPage::new((0..10_000).map(item)))
    });
    let mount = side.engine.new_mount();
    side.publish([source("peer", 1, mount, false), fallback(9)]);
    assert_eq!(side.walk().len(), 9_900);
    assert!(side.misuses[0].contains("leaves out 100 of 10000 items: item 7: "), "{:?}", side.misuses);
}

/// R-021: what is missing is named under a key of our own, in any revision, and the rest is sent. A client should ask
/// again soon.
#[test]
fn missing_parts_are_named() {
    let mut options = page_of(4);
    options.list_cache = CacheHint { ttl_ms: 60_000, scope: CacheScope::Public };
    options.limits.list_ttl = 60_000;
    let mut side = Side::new(options, |Asked { handler, .. }| {
        let names = (0..200).map(|number| format!("{number}{}", "é".repeat(200)));
        Answer::Listed(match handler {
            1 => ListPage::new([foreign("a://1")]).without("docs").without("docs").without("a \"b\"\n"),
            _ => names.fold(ListPage::new([foreign("b://1")]), ListPage::without),
        })
    });
    let mount = side.engine.new_mount();
    side.publish([source("a", 1, mount, false), fallback(9)]);
    let page = side.ask("resources/list", json!({}));
    let meta = |page: &Value| page["result"]["_meta"]["io.github.mcp-resources/missing"].clone();
    assert_eq!(meta(&page), json!(["docs", "a \"b\"\n"]));
    assert_eq!(
        (&page["result"]["ttlMs"], page["result"]["resources"].as_array().unwrap().len()),
        (&json!(0), 1)
    );
    assert!(page["result"]["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
    side.ask("resources/list", json!({}));
    assert_eq!(side.asked.len(), 2, "an incomplete list is not kept");
    side.publish([source("b", 2, mount, false)]);
    let page = side.ask("resources/list", json!({}));
    let names = meta(&page);
    assert_eq!((names.as_array().unwrap().len(), &names[0]), (100, &json!("docs")));
    assert!(names.as_array().unwrap().iter().all(|name| name.as_str().unwrap().len() <= 256));
    let mut whole = Side::new(EngineOptions::default(), |_| listed(["a://1"]));
    let mount = whole.engine.new_mount();
    whole.publish([source("a", 1, mount, false), fallback(9)]);
    assert_eq!(meta(&whole.ask("resources/list", json!({}))), Value::Null);
}

/// What nothing else serves is read, subscribed to, listened to and completed by the fallback; its contents say what they
/// are.
#[test]
fn the_fallback_serves_what_nothing_else_does() {
    let mut side =
        Side::new(EngineOptions::default(), |Asked { handler, text }| match (handler, text.as_deref()) {
            (9, Some("x://{a")) => {
                Answer::Completion(Completion { values: vec!["v".into()], ..Completion::default() })
            }
            (9, Some(uri)) => {
                let cache = Some(CacheHint { ttl_ms: 5, scope: CacheScope::Public });
                Answer::Contents(ReadResult { contents: vec![Contents::text(uri.to_owned())], cache })
            }
            _ => Answer::Contents(Contents::text("template").into()),
        });
    let mount = side.engine.new_mount();
    side.publish([template(Template::new("t://{x}"), 1, mount)]);
    let missing = side.ask("resources/read", json!({ "uri": "other://1" }));
    assert_eq!(missing["error"]["data"]["kind"], "not_found");
    side.publish([fallback(9)]);
    let read = side.ask("resources/read", json!({ "uri": "other://1" }));
    assert_eq!(
        read["result"]["contents"],
        json!([{ "uri": "other://1", "mimeType": "text/plain", "text": "other://1" }])
    );
    assert_eq!((&read["result"]["ttlMs"], &read["result"]["cacheScope"]), (&json!(5), &json!("public")));
    let own = side.ask("resources/read", json!({ "uri": "t://1" }));
    assert_eq!(own["result"]["contents"][0]["text"], "template");
    let refused = side.ask("resources/read", json!({ "uri": "t://a%2Fb" }));
    assert_eq!(refused["error"]["data"]["kind"], "not_found", "a value that the template's policy refuses");
    let complete = |reference: &str| json!({ "ref": { "type": "ref/resource", "uri": reference }, "argument": { "name": "a", "value": "" } });
    let completed = side.ask("completion/complete", complete("x://{a"));
    assert_eq!(completed["result"]["completion"]["values"], json!(["v"]), "{completed}");
    assert_eq!(side.walk(), [""; 0]);
    let listen = json!({ "notifications": { "resourceSubscriptions": ["other://2"] } });
    let acknowledged = side.ask("subscriptions/listen", listen);
    assert_eq!(acknowledged["params"]["notifications"]["resourceSubscriptions"], json!(["other://2"]));
}

/// R-081: a legacy client subscribes to what the fallback serves.
#[test]
fn the_fallback_is_subscribed_to() {
    let mut side = Side::new(EngineOptions::default(), |_| listed([]));
    side.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } }));
    side.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let subscribe =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": { "uri": "o://1" } });
    assert!(parse(&side.send(&subscribe))[0]["error"].is_object());
    side.publish([fallback(9)]);
    assert!(parse(&side.send(&subscribe))[0]["result"].is_object());
}

/// The guard is asked before the fallback, a source's items and a foreign template: what is hidden is as if it did not exist.
#[test]
fn the_guard_comes_first() {
    let options = || guarded(r#"{"deny": ["x://secret/**"]}"#);
    let mut side = Side::new(options(), |_| listed(["x://secret/1", "x://open/1"]));
    let mut bare = Side::new(options(), |_| listed([]));
    let mount = side.engine.new_mount();
    let foreign = |text: &str| Edit::AddForeignTemplate {
        mount,
        uri_template: text.into(),
        json: json!({ "uriTemplate": text, "name": "n" }).to_string(),
    };
    side.publish([
        source("a", 1, mount, false),
        fallback(9),
        foreign("x://secret/{a}"),
        foreign("x://open/{a}"),
        foreign("x://{odd"),
    ]);
    let hidden = json!({ "uri": "x://secret/1" });
    assert_eq!(side.ask("resources/read", hidden.clone()), bare.ask("resources/read", hidden));
    assert_eq!(side.walk(), ["x://open/1"]);
    let templates = side.ask("resources/templates/list", json!({}));
    assert_eq!(
        templates["result"]["resourceTemplates"],
        json!([{ "uriTemplate": "x://open/{a}", "name": "n" }])
    );
    side.asked.clear();
    for reference in ["x://secret/{a}", "x://secret/1", "x://{odd"] {
        let params = json!({ "ref": { "type": "ref/resource", "uri": reference }, "argument": { "name": "a", "value": "" } });
        let answer = side.ask("completion/complete", params);
        assert_eq!(answer["error"]["message"], "Invalid params: unknown ref", "{reference}");
    }
    assert_eq!(side.asked, [0; 0]);
}

/// R-199: a source lists what other templates of its mount serve; what needs scopes is listed only to those who have them.
#[test]
fn scopes_of_other_templates_are_asked_for() {
    let mut side = Side::new(EngineOptions::default(), |Asked { handler, .. }| match handler {
        1 => listed(["t://1", "u://1"]),
        _ => listed(["t://2", "u://2"]),
    });
    let mount = side.engine.new_mount();
    side.publish([
        template(Template::new("t://{x}").list(ListSource::default()), 1, mount),
        template(Template::new("u://{x}").scopes(["admin"]), 2, mount),
        source("a", 3, mount, false),
    ]);
    assert_eq!(side.walk(), ["t://1", "t://2"]);
}

/// The limit `list_source` holds for sources as for templates.
#[test]
fn a_source_that_gives_too_much_fails_the_list() {
    let mut options = EngineOptions::default();
    options.limits.list_source = 2;
    let mut side = Side::new(options, |_| {
        Answer::Listed(ListPage::new([1, 2, 3].map(|n| foreign(&format!("a://{n}")))))
    });
    let mount = side.engine.new_mount();
    side.publish([source("a", 1, mount, false), fallback(9)]);
    let data = side.ask("resources/list", json!({}))["error"]["data"].take();
    assert_eq!(
        (&data["kind"], &data["limit"], &data["size"]),
        (&json!("size_exceeded"), &json!(2), &json!(3))
    );
}

/// Values that a fallback completes are filtered as those of a template are (R-112).
#[test]
fn completions_of_the_fallback_are_filtered() {
    let options = guarded(r#"{"deny": ["x://secret"]}"#);
    let mut side = Side::new(options, |_| {
        let values = vec!["secret".into(), "open".into()];
        Answer::Completion(Completion { values, total: Some(2), has_more: None })
    });
    side.publish([fallback(9)]);
    let params = json!({ "ref": { "type": "ref/resource", "uri": "x://{a}" }, "argument": { "name": "a", "value": "" } });
    let answer = side.ask("completion/complete", params);
    assert_eq!(answer["result"]["completion"], json!({ "values": ["open"], "total": 1, "hasMore": false }));
}

/// R-076: one change of the list for many edits, some of them refused; an update in place leaves what is kept.
#[test]
fn edits_that_are_judged_one_by_one_are_announced_once() {
    let mut options = EngineOptions::default();
    options.cache = true;
    options.limits.coalesce = 0;
    let mut side = Side::new(options, |_| {
        let cache = Some(CacheHint { ttl_ms: 60_000, scope: CacheScope::Private });
        Answer::Contents(ReadResult { contents: vec![Contents::text("one")], cache })
    });
    let kept = Resource::new("a://1").cache(CacheHint { ttl_ms: 60_000, scope: CacheScope::Private });
    side.publish([Edit::AddResource { resource: kept, source: ItemSource::Handler(1) }]);
    side.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } } }));
    side.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let read = |side: &mut Side| {
        side.send(
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": { "uri": "a://1" } }),
        )
    };
    read(&mut side);
    let at = |uri: &str| Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Handler(2) };
    let update = Edit::UpdateResource {
        uri: "a://1".into(),
        size: Some(3),
        last_modified: None,
        description: Some("new".into()),
    };
    let (reports, applied) =
        side.engine.apply_each(vec![at("a://1"), at("bad"), at("a://2"), update], Now::default());
    assert_eq!(reports.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, false, true, true]);
    assert!(applied.resources_changed && applied.removed.is_empty());
    let mut out = Vec::new();
    side.connection.deliver(usize::MAX, &mut out);
    let methods: Vec<_> = parse(&out).into_iter().map(|mut sent| sent["method"].take()).collect();
    assert_eq!(methods, ["notifications/resources/list_changed"]);
    assert_eq!(side.walk(), ["a://1", "a://2"]);
    read(&mut side);
    assert_eq!(side.asked, [1], "the second read is answered from the cache");
}

/// The member that carries a body, and the contents.
type Form = (&'static str, fn() -> Contents<'static>);

/// R-063, R-064: whatever form a body is held in, the same bytes are sent, and kept.
#[test]
fn every_form_of_a_body_is_sent_alike() {
    let forms: [Form; 5] = [
        ("text", || Contents::text("a \"b\"")),
        ("text", || Contents::shared_text("a \"b\"")),
        ("blob", || Contents::blob(vec![1, 2, 3, 4])),
        ("blob", || Contents::shared_blob([1, 2, 3, 4])),
        ("blob", || Contents::base64("AQIDBA==")),
    ];
    for cache in [false, true] {
        let mut options = EngineOptions::default();
        options.cache = cache;
        let mut side = Side::new(options, move |Asked { text, .. }| {
            let at = text.and_then(|uri| uri.strip_prefix("x://")?.parse::<usize>().ok()).unwrap();
            let hint = CacheHint { ttl_ms: 60_000, scope: CacheScope::Private };
            Answer::Contents(ReadResult { contents: vec![forms[at].1()], cache: Some(hint) })
        });
        side.publish([fallback(9)]);
        for (at, (member, _)) in forms.iter().enumerate() {
            let expected = if *member == "text" { "a \"b\"" } else { "AQIDBA==" };
            for _ in 0..2 {
                let read = side.ask("resources/read", json!({ "uri": format!("x://{at}") }));
                assert_eq!(read["result"]["contents"][0][*member], expected, "{at}: {read}");
            }
        }
        assert_eq!(side.asked.len(), if cache { 5 } else { 10 });
        assert_eq!(side.misuses, [""; 0]);
    }
}

/// Base64 that is none fails the read, and its text reaches neither the client nor the log.
#[test]
fn base64_is_checked_before_it_is_sent() {
    for (odd, cache) in ["AQID BA==", "AQIDBA", "AQIDBB==", "A\"", "_-8=", "AQID\n"]
        .into_iter()
        .zip([false, true].iter().cycle())
    {
        let mut options = EngineOptions::default();
        options.cache = *cache;
        let mut side = Side::new(options, move |_| {
            Answer::Contents(ReadResult {
                contents: vec![Contents::text("one"), Contents::base64(odd)],
                cache: None,
            })
        });
        side.publish([fallback(9)]);
        let read = side.ask("resources/read", json!({ "uri": "x://1" }));
        assert_eq!(read["error"]["data"]["kind"], "read_error", "{odd:?}: {read}");
        let told = &side.misuses[0];
        assert!(told.contains("\"x://1\"") && told.contains("not base64") && !told.contains(odd), "{told}");
    }
}

/// The limit `contents` counts decoded bytes.
#[test]
fn sizes_of_blobs_are_decoded() {
    let mut options = EngineOptions::default();
    options.limits.contents = 4;
    let mut side = Side::new(options, |Asked { text, .. }| {
        let contents = match text.as_deref() {
            Some("x://fits") => Contents::base64("AQIDBA=="),
            _ => Contents::base64("AQIDBAU="),
        };
        Answer::Contents(contents.into())
    });
    side.publish([fallback(9)]);
    assert!(side.ask("resources/read", json!({ "uri": "x://fits" }))["result"].is_object());
    let data = side.ask("resources/read", json!({ "uri": "x://large" }))["error"]["data"].take();
    assert_eq!(
        (&data["kind"], &data["limit"], &data["size"]),
        (&json!("size_exceeded"), &json!(4), &json!(5))
    );
}

/// S-19: a shared text is looked at like any other.
#[test]
fn shared_texts_are_redacted() {
    let key = "sk_live_aaaaaaaaaaaaaaaa";
    let mut side = Side::new(guarded(r#"{"redact": ["stripe-key"]}"#), move |_| {
        Answer::Contents(ReadResult {
            contents: vec![Contents::shared_text(key), Contents::shared_text("b")],
            cache: None,
        })
    });
    side.publish([fallback(9)]);
    let read = side.ask("resources/read", json!({ "uri": "x://1" }));
    let texts = [0, 1].map(|at| read["result"]["contents"][at]["text"].clone());
    assert_eq!(texts, ["[redacted:stripe-key]", "b"]);
}
