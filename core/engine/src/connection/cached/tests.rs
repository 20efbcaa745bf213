//! The read cache over several connections, in both eras, with cancellations, time-outs and purges.

use super::*;
use crate::catalog::{Edit, ItemSource};
use crate::connection::{Arrival, ConnectionKind, Contents, ReadResult};
use crate::engine::{EngineOptions, ServerInfo};
use crate::limits::Limits;
use crate::principal::Principal;
use crate::resource::{CacheHint, CacheScope, Resource, Template};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
const TTL: u64 = 60_000;

/// Several clients of one engine. A handler call returns its own sequence number, so a test can see which call a result
/// is from.
struct TestRuntime {
    engine: Arc<Engine>,
    clients: Vec<Client>,
    now: Now,
}

struct Client {
    connection: Connection,
    principal: Arc<Principal>,
    woken: Arc<Flag>,
    out: Vec<u8>,
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        assert!(!self.0.swap(true, Ordering::SeqCst), "it is awake already");
    }
}

impl TestRuntime {
    fn new(principals: &[&str]) -> Self {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let options = EngineOptions { cache: true, limits: Limits::default(), ..EngineOptions::default() };
        let engine = Engine::new(info, options).unwrap();
        let handler = engine.new_handler();
        let resource = |uri: &str, ttl_ms, scope| {
            let mut resource = Resource::new(uri);
            resource.details.cache = CacheHint { ttl_ms, scope };
            Edit::AddResource { resource, source: ItemSource::Handler(handler) }
        };
        let edits = vec![
            resource("test://kept", TTL, CacheScope::Private),
            resource("test://shared", TTL, CacheScope::Public),
            resource("test://fresh", 0, CacheScope::Private),
        ];
        engine.publish(edits, Now::default()).unwrap();
        let client = |id: &&str| {
            let mut connection = engine.connect(ConnectionKind::Stdio);
            let woken = Arc::new(Flag::default());
            connection.wake_with(Waker::from(woken.clone()));
            Client { connection, principal: Principal::new(*id), woken, out: Vec::new() }
        };
        let clients = principals.iter().map(client).collect();
        Self { engine, clients, now: Now::default() }
    }

    /// Sends a message; returns the tokens of the handler calls that it causes.
    fn send(&mut self, client: usize, message: &str) -> Vec<RequestToken> {
        let Client { connection, principal, out, .. } = &mut self.clients[client];
        let arrival = Arrival { message: message.as_bytes(), principal, header_check: None };
        let outcome = connection.message(arrival, self.now, out);
        let token = |event| match event {
            Event::Read(read) => Some(read.token),
            _ => None,
        };
        outcome.events.into_iter().filter_map(token).collect()
    }

    fn read(&mut self, client: usize, id: u32, uri: &str) -> Option<RequestToken> {
        let more = format!(r#""uri":"{uri}""#);
        self.send(client, &request(id, &more)).pop()
    }

    /// Answers a handler call; returns the clients that are woken.
    fn answer(&mut self, client: usize, token: RequestToken, answer: Answer<'_>) -> Vec<usize> {
        let Client { connection, out, .. } = &mut self.clients[client];
        connection.respond(token, answer, self.now, out);
        self.take_woken()
    }

    /// The clients that were woken since the last call.
    fn take_woken(&self) -> Vec<usize> {
        let was_woken = |client: &Client| client.woken.0.swap(false, Ordering::SeqCst);
        (0..self.clients.len()).filter(|client| was_woken(&self.clients[*client])).collect()
    }

    fn deliver(&mut self, client: usize) {
        let Client { connection, out, .. } = &mut self.clients[client];
        connection.deliver(usize::MAX, out);
    }

    fn cancel(&mut self, client: usize, id: u32) {
        let message = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        self.send(client, &message);
    }

    fn sent(&mut self, client: usize) -> Vec<Value> {
        let out = std::mem::take(&mut self.clients[client].out);
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// The texts of the results that were sent, by id.
    fn texts(&mut self, client: usize) -> Vec<(u64, String)> {
        let text = |sent: &Value| {
            let text = sent["result"]["contents"][0]["text"].as_str().unwrap_or("error");
            (sent["id"].as_u64().unwrap(), text.to_owned())
        };
        self.sent(client).iter().map(text).collect()
    }

    fn updated(&self, uri: &str) {
        self.engine.updated(uri, self.now).unwrap();
    }
}

fn request(id: u32, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{{members},{META}}}}}"#)
}

fn text(text: &str) -> Answer<'_> {
    Answer::Contents(Contents::text(text).into())
}

fn pairs_of(pairs: &[(u64, &str)]) -> Vec<(u64, String)> {
    pairs.iter().map(|(id, text)| (*id, (*text).to_owned())).collect()
}

// R-220: a result is fresh while now < received + ttlMs, and the answer gives the remaining time.
#[test]
fn a_second_read_is_answered_from_the_cache_r_220() {
    let mut runtime = TestRuntime::new(&["ada"]);
    let token = runtime.read(0, 1, "test://kept").unwrap();
    runtime.answer(0, token, text("one"));
    runtime.now.tick = TTL - 1;
    assert_eq!(runtime.read(0, 2, "TEST://kept"), None);
    let sent = runtime.sent(0);
    assert_eq!(sent[0]["result"]["ttlMs"], TTL);
    assert_eq!(sent[1]["result"]["ttlMs"], 1);
    assert_eq!(sent[1]["result"]["cacheScope"], "private");
    assert_eq!(
        sent[1]["result"]["contents"][0],
        json!({"uri": "TEST://kept", "mimeType": "text/plain", "text": "one"})
    );
    runtime.now.tick = TTL;
    assert!(runtime.read(0, 3, "test://kept").is_some());
    assert_eq!(runtime.engine.cache_counts().unwrap().hits, 1);
}

// R-219: no other principal gets a private result; every principal gets a public one. A result without a time is not
// cached.
#[test]
fn what_is_private_stays_so_r_219() {
    let mut runtime = TestRuntime::new(&["ada", "bob"]);
    for (uri, is_shared) in [("test://kept", false), ("test://shared", true), ("test://fresh", false)] {
        let token = runtime.read(0, 1, uri).unwrap();
        runtime.answer(0, token, text("ada's"));
        assert_eq!(runtime.read(1, 1, uri).is_none(), is_shared, "{uri}");
        runtime.cancel(1, 1);
    }
    assert!(runtime.read(0, 2, "test://fresh").is_some());
}

/// Concurrent reads cause one handler call; each answer has its own spelling of the URI and its own id, and the waiting
/// connections are woken.
#[test]
fn concurrent_reads_make_one_call() {
    let mut runtime = TestRuntime::new(&["ada", "ada", "bob"]);
    let token = runtime.read(0, 1, "test://kept").unwrap();
    assert_eq!(runtime.read(0, 2, "test://kept"), None);
    assert_eq!(runtime.read(1, 7, "TEST://kept"), None);
    let other = runtime.read(2, 8, "test://kept");
    assert!(other.is_some(), "another principal makes its own call");
    assert_eq!(runtime.clients[1].connection.in_flight(), 1);
    assert_eq!(runtime.answer(0, token, text("one")), [0, 1]);
    runtime.deliver(0);
    runtime.deliver(1);
    assert_eq!(runtime.texts(0), pairs_of(&[(1, "one"), (2, "one")]));
    let sent = runtime.sent(1);
    assert_eq!(sent[0]["result"]["contents"][0]["uri"], "TEST://kept");
    assert_eq!(runtime.clients[1].connection.in_flight(), 0);
    assert!(runtime.sent(2).is_empty());
    let fresh = ["test://fresh"; 2].map(|uri| runtime.read(0, 3 + u32::from(uri.is_empty()), uri).is_some());
    assert_eq!(fresh, [true, false], "the second has the id of the first");
}

// A failure is sent to all requests that waited for it, and is not cached (R-219).
#[test]
fn a_failure_is_shared_and_not_kept() {
    let mut runtime = TestRuntime::new(&["ada", "ada"]);
    let token = runtime.read(0, 1, "test://kept").unwrap();
    runtime.read(1, 1, "test://kept");
    assert_eq!(runtime.answer(0, token, Answer::Failed(ReadError::NotFound)), [1]);
    runtime.deliver(1);
    assert_eq!(runtime.sent(1)[0]["error"]["data"]["kind"], "not_found");
    assert!(runtime.read(1, 2, "test://kept").is_some());
}

// R-117: a read after an update never gets contents from before it, even if a read from before is still running.
#[test]
fn an_update_parts_before_from_after_r_117() {
    let mut runtime = TestRuntime::new(&["ada", "ada"]);
    let before = runtime.read(0, 1, "test://kept").unwrap();
    runtime.read(1, 1, "test://kept");
    runtime.updated("TEST://kept");
    let after = runtime.read(0, 2, "test://kept").unwrap();
    assert_eq!(runtime.answer(0, before, text("before")), [1]);
    runtime.deliver(1);
    assert_eq!(runtime.texts(1), pairs_of(&[(1, "before")]));
    assert_eq!(runtime.read(1, 2, "test://kept"), None, "it waits for the later call");
    runtime.answer(0, after, text("after"));
    runtime.deliver(1);
    assert_eq!(runtime.texts(1), pairs_of(&[(2, "after")]));
    assert_eq!(runtime.read(1, 3, "test://kept"), None);
    assert_eq!(runtime.texts(1), pairs_of(&[(3, "after")]));
    runtime.updated("test://kept");
    assert!(runtime.read(1, 4, "test://kept").is_some());
}

#[test]
fn removals_and_changed_lists_purge() {
    let mut runtime = TestRuntime::new(&["ada"]);
    let kept = |runtime: &mut TestRuntime, id| {
        let token = runtime.read(0, id, "test://kept");
        let called = token.is_some();
        token.map(|token| runtime.answer(0, token, text("one")));
        called
    };
    assert!(kept(&mut runtime, 1));
    assert!(!kept(&mut runtime, 2));
    runtime.engine.list_changed(crate::hub::ListKinds::RESOURCES, runtime.now);
    assert!(kept(&mut runtime, 3));
    let publish = |runtime: &TestRuntime, edit| runtime.engine.publish(vec![edit], runtime.now).unwrap();
    publish(&runtime, Edit::RemoveResource { uri: "test://shared".into() });
    assert!(!kept(&mut runtime, 4), "it is another one that was removed");
    publish(
        &runtime,
        Edit::AddTemplate { template: Box::new(Template::new("test://{x}")), handler: 0, mount: None },
    );
    assert!(kept(&mut runtime, 5));
    publish(&runtime, Edit::RemoveResource { uri: "test://kept".into() });
    assert!(kept(&mut runtime, 6), "now the template serves it");
}

// R-128: a cancelled call continues if other requests wait for it, and ends if none does.
#[test]
fn a_call_goes_on_for_others_r_128() {
    let mut runtime = TestRuntime::new(&["ada", "ada"]);
    let token = runtime.read(0, 1, "test://kept").unwrap();
    runtime.read(1, 1, "test://kept");
    runtime.cancel(0, 1);
    assert!(runtime.clients[0].connection.cancel_all(Now::default()).is_empty());
    assert_eq!(runtime.answer(0, token, text("one")), [1]);
    runtime.deliver(1);
    assert_eq!(runtime.texts(1), pairs_of(&[(1, "one")]));

    runtime.updated("test://kept");
    let token = runtime.read(0, 2, "test://kept").unwrap();
    runtime.cancel(0, 2);
    let own = runtime.read(1, 2, "test://kept");
    assert!(own.is_some(), "nobody waits for a call that was cancelled");
    runtime.answer(0, token, text("late"));
    assert!(runtime.texts(1).is_empty());
}

/// A waiting request may be cancelled or time out; its slot is freed when the call has ended.
#[test]
fn waiting_requests_may_be_cancelled() {
    let mut runtime = TestRuntime::new(&["ada", "ada"]);
    let token = runtime.read(0, 1, "test://kept").unwrap();
    runtime.read(1, 1, "test://kept");
    runtime.cancel(1, 1);
    assert_eq!(runtime.clients[1].connection.in_flight(), 1);
    runtime.answer(0, token, text("one"));
    runtime.deliver(1);
    assert!(runtime.sent(1).is_empty());
    assert_eq!(runtime.clients[1].connection.in_flight(), 0);
}

// R-214: a call that times out does so for all requests that wait for it.
#[test]
fn a_time_out_is_for_all_r_214() {
    let mut runtime = TestRuntime::new(&["ada", "ada"]);
    runtime.read(0, 1, "test://kept").unwrap();
    runtime.now.tick = 10;
    runtime.read(1, 1, "test://kept");
    runtime.now.tick = 30_000;
    let Client { connection, out, .. } = &mut runtime.clients[0];
    let outcome = connection.tick(runtime.now, out);
    assert!(matches!(&outcome.events[..], [Event::Cancelled(_)]));
    assert_eq!(runtime.take_woken(), [1]);
    runtime.deliver(1);
    let expected = json!({"uri": "test://kept", "kind": "timeout", "timeoutMs": 30_000});
    assert_eq!(runtime.sent(0)[0]["error"]["data"], expected);
    assert_eq!(runtime.sent(1)[0]["error"]["data"], expected);
    assert!(runtime.read(1, 2, "test://kept").is_some());
}

// R-118, R-219: a read with a round of input is neither answered from the cache nor cached.
#[test]
fn rounds_of_input_pass_by_r_219() {
    let mut runtime = TestRuntime::new(&["ada"]);
    let round = r#""uri":"test://kept","inputResponses":{}"#;
    let token = runtime.send(0, &request(1, round)).pop().unwrap();
    runtime.answer(0, token, text("round"));
    let token = runtime.read(0, 2, "test://kept").unwrap();
    assert_eq!(runtime.send(0, &request(3, round)).len(), 1, "it does not wait either");
    runtime.answer(0, token, text("kept"));
    assert_eq!(runtime.send(0, &request(4, round)).len(), 1);
    assert_eq!(runtime.read(0, 5, "test://kept"), None);
    assert_eq!(runtime.texts(0), pairs_of(&[(1, "round"), (2, "kept"), (5, "kept")]));
}

/// A result may carry its own caching time where the resource has none.
#[test]
fn a_result_may_have_a_time_of_its_own() {
    let mut runtime = TestRuntime::new(&["ada"]);
    let token = runtime.read(0, 1, "test://fresh").unwrap();
    let hint = CacheHint { ttl_ms: 5, scope: CacheScope::Public };
    let result = ReadResult { cache: Some(hint), ..Contents::text("one").into() };
    runtime.answer(0, token, Answer::Contents(result));
    assert_eq!(runtime.read(0, 2, "test://fresh"), None);
    assert_eq!(runtime.sent(0)[1]["result"]["cacheScope"], "private");
}
