//! R-075: to a principal, hidden resources look like resources that do not exist, in every answer.
//!
//! Two servers under one policy have the same conversation. One has what the policy hides, the other does not. What they
//! send has to be the same, byte for byte.

use mcp_resources_engine::catalog::{Edit, ItemSource};
use mcp_resources_engine::connection::{
    Answer, Arrival, Completion, Connection, ConnectionKind, Contents, Event, Events, ListPage, ReadResult,
    RequestToken,
};
use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::now::Now;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{CacheHint, ListSource, Parameter, ParameterKind, Resource, Template};
use mcp_resources_engine::seal::SealKey;
use serde_json::{Value, json};
use std::sync::Arc;

/// A server and its handlers.
struct Side {
    engine: Arc<Engine>,
    connection: Connection,
    has_hidden: bool,
    sent: Vec<u8>,
    calls: usize,
}

const SECRETS: [&str; 4] = ["x://a/secret", "x://b/secret", "x://c/1/secret", "x://zz/secret"];

fn policy() -> Policy {
    let text =
        r#"{"deny": ["**/secret", "**/secret/**", "hidden://**"], "scopes": {"**/scoped/**": "never"}}"#;
    Policy::from_json(text).unwrap()
}

fn constant(uri: &str) -> Edit {
    Edit::AddResource { resource: Resource::new(uri), source: ItemSource::Text(uri.into()) }
}

fn edits(engine: &Engine, has_hidden: bool) -> Vec<Edit> {
    let handler = || engine.new_handler();
    let kept = CacheHint { ttl_ms: 60_000, ..CacheHint::default() };
    let mut edits: Vec<Edit> = ["x://a/1", "x://b/1", "x://b/2", "x://y/1"].map(constant).into();
    let live = Resource::new("x://live/1").cache(kept);
    edits.push(Edit::AddResource { resource: live, source: ItemSource::Handler(handler()) });
    let open = Template::new("x://c/{n}/{part}").completes("part").list(ListSource::default());
    edits.push(Edit::AddTemplate { template: Box::new(open), handler: handler(), mount: None });
    if has_hidden {
        edits.extend(SECRETS.map(constant));
        edits.push(constant("x://q/scoped/1"));
        edits.push(Edit::AddResource {
            resource: Resource::new("x://r/1").scopes(["never"]),
            source: ItemSource::Handler(handler()),
        });
        let typed = Parameter::new("n").kind(ParameterKind::Integer);
        let hidden =
            Template::new("hidden://{n}").parameter(typed).completes("n").list(ListSource::default());
        edits.push(Edit::AddTemplate { template: Box::new(hidden), handler: handler(), mount: None });
        let scoped = Template::new("w://{n}").scopes(["never"]).completes("n").list(ListSource::default());
        edits.push(Edit::AddTemplate { template: Box::new(scoped), handler: handler(), mount: None });
    }
    edits
}

impl Side {
    fn new(has_hidden: bool, peer: ConnectionKind) -> Self {
        let mut options = EngineOptions::default();
        options.limits.page = 2;
        options.guard = policy();
        options.cache = true;
        options.keys = vec![SealKey::from_secret(b"a secret of the test").unwrap()];
        let info = ServerInfo { name: "hidden".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, options).unwrap();
        engine.publish(edits(&engine, has_hidden), Now::default()).unwrap();
        let connection = engine.connect(peer);
        Self { engine, connection, has_hidden, sent: Vec::new(), calls: 0 }
    }

    /// Sends a message, answers its events, and delivers notifications. Returns all output.
    fn say(&mut self, message: &Value) -> Vec<u8> {
        let text = message.to_string();
        let principal = Principal::local();
        let arrival = Arrival { message: text.as_bytes(), principal: &principal, header_check: None };
        let mut out = Vec::new();
        let outcome = self.connection.message(arrival, Now::default(), &mut out);
        let mut open: Vec<(RequestToken, Answer<'static>)> = self.answers(&outcome.events);
        while let Some((token, answer)) = open.pop() {
            let outcome = self.connection.respond(token, answer, Now::default(), &mut out);
            open.extend(self.answers(&outcome.events));
        }
        self.connection.deliver(usize::MAX, &mut out);
        self.sent.extend_from_slice(&out);
        out
    }

    /// The answer of a handler, with the hidden entries if this server has them.
    fn answers(&mut self, events: &Events<'_>) -> Vec<(RequestToken, Answer<'static>)> {
        let answer = |event: &Event<'_>| {
            Some(match event {
                Event::Read(read) => (read.token, Answer::Contents(self.contents())),
                Event::Complete(complete) => (complete.token, Answer::Completion(self.completion())),
                Event::List(list) => (list.token, Answer::Listed(self.listed())),
                _ => return None,
            })
        };
        let answers: Vec<_> = events.iter().filter_map(answer).collect();
        self.calls += answers.len();
        answers
    }

    fn contents(&self) -> ReadResult<'static> {
        let mut contents = vec![Contents::text("one"), Contents::text("two").with_uri("x://y/1")];
        if self.has_hidden {
            contents.insert(1, Contents::text("secret").with_uri("x://a/secret"));
            contents.push(Contents::text("secret").with_uri("X://a/%73ecret"));
            contents.push(Contents::text("secret").with_uri("no uri"));
        }
        ReadResult { contents, cache: None }
    }

    fn completion(&self) -> Completion<'static> {
        let hidden = if self.has_hidden { vec!["secret"] } else { Vec::new() };
        let values = hidden.into_iter().chain(["one", "two"]).map(Into::into).collect();
        Completion {
            values,
            total: self.has_hidden.then_some(1_000),
            has_more: self.has_hidden.then_some(true),
        }
    }

    fn listed(&self) -> ListPage {
        let hidden = if self.has_hidden { vec!["x://c/1/secret", "x://c/2/secret"] } else { Vec::new() };
        let uris = hidden.into_iter().chain(["x://c/1/1", "x://c/2/1", "x://c/3/1"]);
        ListPage::new(uris.map(Resource::new))
    }
}

/// The two servers, each told the same.
struct Pair([Side; 2]);

impl Pair {
    fn new(peer: ConnectionKind) -> Self {
        Self([true, false].map(|has_hidden| Side::new(has_hidden, peer)))
    }

    /// The answers of both servers.
    fn say(&mut self, message: &Value) -> Value {
        let [with, without] = &mut self.0;
        let one = with.say(message);
        let other = without.say(message);
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(shown(&one), shown(&other), "{message}");
        let first = one.split(|byte| *byte == b'\n').next().unwrap_or_default();
        serde_json::from_slice(first).unwrap_or_default()
    }

    fn updated(&mut self, uri: &str) {
        for side in &mut self.0 {
            // Another spelling of a typed value is the URI of nothing, and refused.
            let _ = side.engine.updated(uri, Now::default());
        }
    }

    /// All pages of a list.
    fn walk(&mut self, ask: &dyn Fn(Value) -> Value) -> usize {
        let mut params = json!({});
        let mut pages = 0;
        loop {
            pages += 1;
            match self.say(&ask(params))["result"]["nextCursor"].as_str() {
                Some(cursor) => params = json!({ "cursor": cursor }),
                None => return pages,
            }
        }
    }
}

const URIS: [&str; 12] = [
    "x://a/secret",
    "X://a/%73ecret",
    "x://b/secret",
    "x://c/1/secret",
    "x://c/7/secret",
    "x://q/scoped/1",
    "x://r/1",
    "hidden://1",
    "hidden://not-a-number",
    "w://1",
    "x://a/1/../secret",
    "x://none",
];

/// Everything that may be asked, by method and params; `$` members that an era does not have are harmless.
fn questions() -> Vec<(&'static str, Value)> {
    let mut questions = Vec::new();
    for uri in URIS {
        questions.push(("resources/read", json!({ "uri": uri })));
        questions.push(("resources/subscribe", json!({ "uri": uri })));
        questions.push(("resources/unsubscribe", json!({ "uri": uri })));
        questions.push((
            "completion/complete",
            json!({ "ref": { "type": "ref/resource", "uri": uri },
            "argument": { "name": "n", "value": "" } }),
        ));
    }
    for uri in ["x://a/1", "x://live/1", "x://live/1", "x://c/1/1", "x://c/1/1"] {
        questions.push(("resources/read", json!({ "uri": uri })));
    }
    for (template, name) in
        [("hidden://{n}", "n"), ("w://{n}", "n"), ("x://c/{n}/{part}", "part"), ("x://c/{n}/{part}", "n")]
    {
        for arguments in [json!({}), json!({ "n": "1" })] {
            questions.push((
                "completion/complete",
                json!({ "ref": { "type": "ref/resource", "uri": template },
                "argument": { "name": name, "value": "" }, "context": { "arguments": arguments } }),
            ));
        }
    }
    questions
}

fn request(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    request(method, &params)
}

/// R-075, R-112, S-12, DEC-19, DEC-20.
#[test]
fn what_is_hidden_is_told_like_what_is_not_there() {
    let mut pair = Pair::new(ConnectionKind::Stdio);
    pair.say(&modern("server/discover", json!({})));
    assert_eq!(pair.walk(&|params| modern("resources/list", params)), 4);
    assert_eq!(pair.walk(&|params| modern("resources/templates/list", params)), 1);
    for (method, params) in questions() {
        pair.say(&modern(method, params));
    }
    let mut everything: Vec<&str> = URIS.to_vec();
    everything.push("x://live/1");
    let filter =
        json!({ "notifications": { "resourceSubscriptions": everything, "resourcesListChanged": true } });
    pair.say(&modern("subscriptions/listen", filter));
    for uri in everything {
        pair.updated(uri);
        pair.say(&json!({ "jsonrpc": "2.0", "method": "notifications/nothing" }));
    }
    let [with, without] = &pair.0;
    assert_eq!(with.calls, without.calls);
    assert!(String::from_utf8_lossy(&with.sent).contains("notifications/resources/updated"));
    assert!(!String::from_utf8_lossy(&with.sent).contains(r#""text":"secret""#));
}

/// The same under a legacy revision.
#[test]
fn what_is_hidden_is_told_like_what_is_not_there_in_a_session() {
    let mut pair = Pair::new(ConnectionKind::Stdio);
    pair.say(&request(
        "initialize",
        &json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "c", "version": "1" } }),
    ));
    pair.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(pair.walk(&|params| request("resources/list", &params)), 4);
    pair.walk(&|params| request("resources/templates/list", &params));
    for (method, params) in questions() {
        pair.say(&request(method, &params));
    }
    pair.say(&request("resources/subscribe", &json!({ "uri": "x://live/1" })));
    for uri in URIS.into_iter().chain(["x://live/1"]) {
        pair.updated(uri);
        pair.say(&json!({ "jsonrpc": "2.0", "method": "notifications/nothing" }));
    }
    assert_eq!(pair.0[0].calls, pair.0[1].calls);
}

/// A server under an explicit policy says so: the two do differ then, and the comparison sees it.
#[test]
fn the_comparison_can_fail() {
    let [mut with, mut without] = Pair::new(ConnectionKind::Stdio).0;
    let list = modern("resources/read", json!({ "uri": "x://a/1" }));
    assert_eq!(with.say(&list), without.say(&list));
    without.engine.publish(vec![Edit::RemoveResource { uri: "x://a/1".into() }], Now::default()).unwrap();
    assert_ne!(with.say(&list), without.say(&list));
}

/// R-209, R-213: lists that differ are private, and the cursor of one principal is worth nothing to another.
#[test]
fn lists_that_differ_are_private_and_their_cursors_bound() {
    let side = Side::new(true, ConnectionKind::Stdio);
    let ask = |who: &Arc<Principal>, params: Value| -> Value {
        let text = modern("resources/list", params).to_string();
        let mut out = Vec::new();
        let arrival = Arrival { message: text.as_bytes(), principal: who, header_check: None };
        side.engine.connect(ConnectionKind::Request).message(arrival, Now::default(), &mut out);
        serde_json::from_slice(&out).unwrap()
    };
    let alice = Principal::new("alice").with_scopes(["never"]);
    let bob = Principal::new("bob");
    let page = ask(&alice, json!({}));
    assert_eq!(page["result"]["cacheScope"], "private");
    let cursor = json!({ "cursor": page["result"]["nextCursor"] });
    assert!(ask(&alice, cursor.clone())["result"]["resources"].is_array());
    assert_eq!(ask(&bob, cursor)["error"]["code"], -32602);
}
