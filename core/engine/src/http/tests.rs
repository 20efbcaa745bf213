//! Behaviour that fixtures cannot show: threads, wakers, limits, and random histories against a naive model. The
//! conversations themselves are in `tests/fixtures/http`.

use super::*;
use crate::catalog::{Edit, ItemSource};
use crate::connection::{Answer, Contents, Event};
use crate::engine::{EngineOptions, ServerInfo};
use crate::hub::Counts;
use crate::limits::Limits;
use crate::resource::{Resource, Template};
use std::sync::atomic::AtomicUsize;
use std::task::{Wake, Waker};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

pub(super) fn endpoint(limits: Limits, rules: Rules) -> Arc<Endpoint> {
    let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
    let engine = Engine::new(info, EngineOptions { limits, ..EngineOptions::default() }).unwrap();
    let handler = engine.new_handler();
    let edits = vec![
        Edit::AddResource { resource: Resource::new("test://one"), source: ItemSource::Text("one".into()) },
        Edit::AddTemplate { template: Box::new(Template::new("test://item/{id}")), handler, mount: None },
    ];
    engine.publish(edits, Now::default()).unwrap();
    let next = AtomicU64::new(0);
    let ids = move || {
        let mut id = [0; SESSION_ID_BYTES];
        id[..8].copy_from_slice(&next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        Some(id)
    };
    Endpoint::new(engine, rules, Box::new(ids)).unwrap()
}

/// The part of a response that was written.
pub(super) struct Got {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Vec<u8>,
    pub(super) tokens: Vec<crate::connection::RequestToken>,
    pub(super) exchange: Option<Exchange>,
}

impl Got {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

pub(super) fn send(
    endpoint: &Arc<Endpoint>,
    verb: &str,
    headers: &[(&str, &str)],
    body: &str,
    now: Now,
) -> Got {
    send_as(Verified::anyone(), endpoint, verb, headers, body, now)
}

fn send_as(
    who: Verified,
    endpoint: &Arc<Endpoint>,
    verb: &str,
    headers: &[(&str, &str)],
    body: &str,
    now: Now,
) -> Got {
    let mut all: Vec<(&str, &[u8])> = vec![("host", b"localhost"), ("content-type", b"application/json")];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
    let admitted =
        endpoint.admit(&RequestHead { verb, target: "/mcp", headers: &all, ..RequestHead::default() }, now);
    match admitted.and_then(|admitted| admitted.identify(Ok(who), now)) {
        Ok(request) => open(endpoint, &request, body, now),
        Err(Response { head, body, .. }) => {
            let (status, headers) = written_head(head);
            Got { status, headers, body, tokens: Vec::new(), exchange: None }
        }
    }
}

fn open(endpoint: &Arc<Endpoint>, request: &Identified, body: &str, now: Now) -> Got {
    let mut out = Vec::new();
    let OpenedRequest { turn, exchange } = endpoint.open(request, body.as_bytes(), now, &mut out);
    let (status, headers) = turn.head.map(written_head).unwrap_or_default();
    let tokens = turn.events.iter().filter_map(Event::asks).collect();
    Got { status, headers, body: out, tokens, exchange }
}

fn written_head(head: ResponseHead) -> (u16, Vec<(&'static str, String)>) {
    (head.status, head.headers.into_iter().map(|(name, value)| (name, value.into_owned())).collect())
}

pub(super) fn initialize(endpoint: &Arc<Endpoint>, date: &str, now: Now) -> Got {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{date}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    );
    send(endpoint, "POST", &[], &body, now)
}

#[test]
fn both_eras_answer_in_json() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let now = Now::default();
    let read = |meta: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"test://item/7"{meta}}}}}"#
        )
    };
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "resources/read"),
        ("mcp-name", "test://item/7"),
    ];
    let hello = initialize(&endpoint, "2025-11-25", now);
    assert_eq!(hello.status, 200, "{}", hello.text());
    let session = hello.header("mcp-session-id").unwrap();
    for (headers, body) in
        [(&modern[..], read(&format!(",{META}"))), (&[("mcp-session-id", session)], read(""))]
    {
        let got = send(&endpoint, "POST", headers, &body, now);
        let exchange = got.exchange.unwrap();
        assert_eq!((got.status, got.tokens.len(), got.body.len()), (0, 1, 0));
        let turn = exchange.respond(got.tokens[0], Answer::Contents(Contents::text("seven").into()), now);
        assert!(turn.events.is_empty());
        let mut out = Vec::new();
        let turn = exchange.deliver(1000, now, &mut out);
        assert!(turn.end);
        assert_eq!(turn.head.unwrap().status, 200);
        let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["result"]["contents"][0]["text"], "seven");
    }
    assert_eq!(endpoint.sessions_open(), 1);
}

const MODERN: [(&str, &str); 2] = [("mcp-protocol-version", "2026-07-28"), ("mcp-name", "test://item/7")];

fn read(endpoint: &Arc<Endpoint>, accept: &str) -> Got {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{{"uri":"test://item/7",{}}}}}"#,
        META.replace(r#""_meta":{"#, r#""_meta":{"progressToken":1,"#)
    );
    let [version, name] = MODERN;
    let headers = [version, name, ("mcp-method", "resources/read"), ("accept", accept)];
    send(endpoint, "POST", &headers, &body, Now::default())
}

fn listen(endpoint: &Arc<Endpoint>) -> Got {
    send(endpoint, "POST", &LISTEN, &listen_body(), Now::default())
}

fn session(endpoint: &Arc<Endpoint>) -> String {
    initialize(endpoint, "2025-06-18", Now::default()).header("mcp-session-id").unwrap().to_owned()
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn public_types_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Endpoint>();
    sync::<Endpoint>();
    send::<Exchange>();
    sync::<Exchange>();
    send::<Admitted>();
    send::<Identified>();
    sync::<Identified>();
    send::<Turn<'static>>();
}

/// An answer from another thread wakes the writer once.
#[test]
#[expect(clippy::disallowed_methods, reason = "handlers have threads of their own")]
fn an_answer_from_another_thread_wakes_the_writer() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let got = read(&endpoint, "application/json");
    let count = Arc::new(Count::default());
    let exchange = got.exchange.unwrap();
    exchange.register(&Waker::from(Arc::clone(&count)));
    let handler = exchange.clone();
    std::thread::spawn(move || {
        let reply = handler.detach(got.tokens[0]).unwrap();
        let encoded = reply.encode(Answer::Contents(Contents::text("x").into()), Now::default());
        assert!(handler.finish(encoded, Now::default()).events.is_empty());
        handler.report(got.tokens[0], b"{}\n");
    })
    .join()
    .unwrap();
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let mut out = Vec::new();
    assert!(exchange.deliver(1, Now::default(), &mut out).end);
    assert!(exchange.deliver(1, Now::default(), &mut Vec::new()).end);
}

/// The limit `output`: a handler that reports in a loop to a client that does not read cannot fill the memory.
#[test]
fn reports_to_a_slow_client_are_dropped() {
    let endpoint = endpoint(Limits { output: 100, ..Limits::default() }, Rules::default());
    let got = read(&endpoint, "application/json, text/event-stream");
    let exchange = got.exchange.unwrap();
    for _ in 0..1000 {
        exchange.report(got.tokens[0], b"{\"a report\":\"of some length\"}\n");
    }
    let mut out = Vec::new();
    let turn = exchange.deliver(usize::MAX, Now::default(), &mut out);
    assert!(turn.head.unwrap().status == 200 && !turn.end);
    assert_eq!(out.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"data")).count(), 4);
    exchange.abandon(got.tokens[0], Now::default());
    assert!(exchange.deliver(usize::MAX, Now::default(), &mut Vec::new()).end);
}

// R-084, R-094: nothing stays in the hub, even if the runtime forgets to close.
#[test]
fn a_client_that_leaves_leaves_nothing_behind() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let counts = || endpoint.engine().subscriptions();
    let closed = listen(&endpoint).exchange.unwrap();
    let forgotten = listen(&endpoint).exchange.unwrap();
    let id = session(&endpoint);
    assert_eq!((counts().connections, counts().uris), (3, 1));
    assert!(closed.closed(Now::default()).events.is_empty());
    assert!(closed.closed(Now::default()).end);
    drop(forgotten);
    assert_eq!((counts().connections, counts().uris), (1, 0));
    assert_eq!(send(&endpoint, "DELETE", &[("mcp-session-id", &id)], "", Now::default()).status, 204);
    assert_eq!(counts().connections, 0);
    let started = endpoint.channels().len();
    endpoint.note(Some(0));
    assert!(endpoint.tick(Now::default()).is_empty());
    assert!(endpoint.channels().len() < started && endpoint.channels().is_empty());
}

/// The limit `streams` on finished responses that are kept for resuming.
#[test]
fn finished_streams_are_dropped() {
    let rules = Rules { answers: Answers::Events, ..Rules::default() };
    let endpoint = endpoint(Limits { streams: 2, ..Limits::default() }, rules);
    let id = session(&endpoint);
    let ping = |number| {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{number},"method":"ping"}}"#);
        let got = send(&endpoint, "POST", &[("mcp-session-id", &id)], &body, Now::default());
        got.text().split_once('\n').unwrap().0.strip_prefix("id: ").unwrap().to_owned()
    };
    let ids: Vec<_> = (0..4).map(ping).collect();
    let again = |last: &str| {
        let headers = [("mcp-session-id", id.as_str()), ("last-event-id", last)];
        send(&endpoint, "GET", &headers, "", Now::default()).exchange.is_none()
    };
    // A kept stream ends at once; without one a new stream begins.
    assert!(again(&ids[3]) && again(&ids[2]));
    assert!(!again(&ids[0]));
}

/// A token of `eve` that expires at this time.
fn until(unix: Millis) -> Verified {
    let principal = crate::principal::Principal::new("eve").with_expiry(Some(unix));
    Verified { principal, ..Verified::anyone() }
}

fn at(tick: Millis) -> Now {
    Now { tick, unix: 1_000_000 + tick }
}

const LISTEN: [(&str, &str); 2] = [MODERN[0], ("mcp-method", "subscriptions/listen")];

fn listen_body() -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{{"notifications":{{"resourceSubscriptions":["test://one"]}},{META}}}}}"#
    )
}

/// A balancer finds the process of a session by the beginning of its id.
#[test]
fn session_ids_begin_with_the_instance() {
    let rules = |instance: &str| Rules { instance: Some(instance.into()), ..Rules::default() };
    let endpoint = endpoint(Limits::default(), rules("eu-1_a"));
    let id = session(&endpoint);
    assert!(id.starts_with("eu-1_a.") && id.len() > 30, "{id}");
    assert_eq!(send(&endpoint, "DELETE", &[("mcp-session-id", &id)], "", Now::default()).status, 204);
    for wrong in ["", "a.b", "a b", "\u{e4}", &"x".repeat(33)] {
        let error = rules(wrong).check().unwrap_err().to_string();
        assert!(error.starts_with(&format!("instance is {wrong:?}, expected 1 to 32 letters")), "{error}");
    }
}

/// A session of `eve`, with a notification stream that ends when its token expires.
fn session_until(endpoint: &Arc<Endpoint>, unix: Millis) -> (String, Exchange) {
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let got = send_as(until(unix), endpoint, "POST", &[], hello, at(0));
    let id = got.header("mcp-session-id").unwrap().to_owned();
    let got = send_as(until(unix), endpoint, "GET", &[("mcp-session-id", &id)], "", at(0));
    (id, got.exchange.unwrap())
}

/// The number of listens and streams that ended because a token expired, and of those that ended because a principal
/// was revoked.
fn lapses(endpoint: &Endpoint) -> (u64, u64) {
    let text = endpoint.engine().metrics_text().unwrap();
    let count = |reason: &str| {
        let name = format!("mcp_resources_streams_ended_total{{reason=\"{reason}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&name)).unwrap().parse().unwrap()
    };
    (count("expired"), count("revoked"))
}

/// The data written at this time, and whether the response has ended.
fn written(exchange: &Exchange, now: Now) -> (String, bool, usize) {
    let mut out = Vec::new();
    let turn = exchange.deliver(usize::MAX, now, &mut out);
    (String::from_utf8(out).unwrap(), turn.end, turn.events.len())
}

// R-096, R-202: a listen is answered when its token expires, and sends nothing after that.
#[test]
fn a_listen_ends_with_its_token() {
    let endpoint = endpoint(Limits { keep_alive: 60_000, ..Limits::default() }, Rules::default());
    endpoint.engine().measure();
    let got = send_as(until(1_000_500), &endpoint, "POST", &LISTEN, &listen_body(), at(0));
    let exchange = got.exchange.unwrap();
    assert_eq!(exchange.deadline(), Some(500));
    assert_eq!(written(&exchange, at(499)), (String::new(), false, 0));
    endpoint.engine().updated("test://one", at(500)).unwrap();
    let (text, is_over, _) = written(&exchange, at(500));
    assert!(text.contains(r#""resultType":"complete""#) && !text.contains("updated"), "{text}");
    assert!(is_over);
    assert_eq!(endpoint.engine().subscriptions().uris, 0);
    assert_eq!(lapses(&endpoint), (1, 0));
}

// R-173, R-202: the stream of a session ends too; the session continues with another token.
#[test]
fn a_stream_of_a_session_ends_with_its_token() {
    let endpoint = endpoint(Limits { keep_alive: 60_000, ..Limits::default() }, Rules::default());
    endpoint.engine().measure();
    let (id, stream) = session_until(&endpoint, 1_000_500);
    assert_eq!(stream.deadline(), Some(500));
    assert!(!written(&stream, at(499)).1);
    assert!(written(&stream, at(500)).1);
    assert_eq!(lapses(&endpoint), (1, 0));
    let again = send_as(until(1_009_000), &endpoint, "GET", &[("mcp-session-id", &id)], "", at(600))
        .exchange
        .unwrap();
    assert!(!written(&again, at(600)).1);
}

// R-096, R-202: a revoked principal gets no further notifications; others do.
#[test]
fn revocation_ends_what_is_open() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    endpoint.engine().measure();
    let theirs =
        send_as(until(u64::MAX), &endpoint, "POST", &LISTEN, &listen_body(), at(0)).exchange.unwrap();
    let other = listen(&endpoint).exchange.unwrap();
    let (id, stream) = session_until(&endpoint, u64::MAX);
    let count = Arc::new(Count::default());
    [&theirs, &stream].into_iter().for_each(|open| open.register(&Waker::from(Arc::clone(&count))));
    endpoint.engine().revoke("eve");
    assert_eq!(endpoint.engine().subscriptions().uris, 1, "another one watches it");
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
    let (text, is_over, _) = written(&theirs, at(1));
    assert!(is_over && text.contains(r#""resultType":"complete""#), "{text}");
    assert!(written(&stream, at(1)).1 && !written(&other, at(1)).1);
    assert_eq!(lapses(&endpoint), (0, 2));
    let again = send_as(until(u64::MAX), &endpoint, "GET", &[("mcp-session-id", &id)], "", at(2));
    assert!(!written(&again.exchange.unwrap(), at(2)).1, "the verifier has let it in again");
}

/// A request of `eve` with a verified token that is not opened yet.
fn verified(endpoint: &Arc<Endpoint>, verb: &str, headers: &[(&str, &str)]) -> Identified {
    let mut all: Vec<(&str, &[u8])> = vec![("host", b"localhost"), ("content-type", b"application/json")];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_bytes())));
    let head = RequestHead { verb, target: "/mcp", headers: &all, ..RequestHead::default() };
    endpoint.admit(&head, at(0)).unwrap().identify(Ok(until(u64::MAX)), at(0)).unwrap()
}

// R-096, R-202: a listen that is opened after the revocation of its verified token ends at once.
#[test]
fn a_listen_that_is_opened_after_a_revocation_ends_at_once() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    endpoint.engine().measure();
    let theirs = verified(&endpoint, "POST", &LISTEN);
    endpoint.engine().revoke("adam");
    let going_on = open(&endpoint, &theirs, &listen_body(), at(1)).exchange.unwrap();
    assert!(!written(&going_on, at(1)).1, "another one's tokens were revoked");
    let late = verified(&endpoint, "POST", &LISTEN);
    endpoint.engine().revoke("eve");
    assert!(written(&going_on, at(1)).1);
    let _ = going_on.closed(at(1));
    let got = open(&endpoint, &late, &listen_body(), at(2));
    assert!(got.exchange.is_none() && got.text().contains(r#""resultType":"complete""#), "{}", got.text());
    assert_eq!(endpoint.engine().subscriptions(), Counts::default());
    assert_eq!(lapses(&endpoint), (0, 2));
    let again = open(&endpoint, &verified(&endpoint, "POST", &LISTEN), &listen_body(), at(3));
    assert!(!written(&again.exchange.unwrap(), at(3)).1, "the verifier has let it in again");
}

// R-173, R-202: the stream of a session ends at once too, and does not keep revoked streams open.
#[test]
fn a_stream_that_is_opened_after_a_revocation_ends_at_once() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    endpoint.engine().measure();
    let (id, stream) = session_until(&endpoint, u64::MAX);
    let late = verified(&endpoint, "GET", &[("mcp-session-id", &id)]);
    endpoint.engine().revoke("eve");
    assert!(open(&endpoint, &late, "", at(1)).exchange.is_none());
    assert!(written(&stream, at(1)).1);
    assert_eq!(lapses(&endpoint), (0, 2));
    let again = send_as(until(u64::MAX), &endpoint, "GET", &[("mcp-session-id", &id)], "", at(2));
    assert!(!written(&again.exchange.unwrap(), at(2)).1, "the verifier has let it in again");
}

// R-202: if more principals are revoked than the table remembers, a concurrent listen ends; its client opens another
// one.
#[test]
fn after_very_many_revocations_a_late_listen_ends() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    for (revoked, ends) in [(10, false), (10_000, true)] {
        let late = verified(&endpoint, "POST", &LISTEN);
        for number in 0..revoked {
            endpoint.engine().revoke(&format!("adam-{number}"));
        }
        assert_eq!(open(&endpoint, &late, &listen_body(), at(1)).exchange.is_none(), ends, "{revoked}");
    }
}

// R-096: an endpoint that stops ends its own listens and streams, including late ones; other endpoints continue.
#[test]
fn the_end_of_an_endpoint_affects_no_other() {
    let one = endpoint(Limits::default(), Rules::default());
    one.engine().measure();
    let other = Endpoint::new(Arc::clone(one.engine()), Rules::default(), Box::new(|| None)).unwrap();
    let ended = listen(&one).exchange.unwrap();
    let going_on = listen(&other).exchange.unwrap();
    let (_, stream) = session_until(&one, u64::MAX);
    one.shutdown();
    for open in [&ended, &stream] {
        assert!(written(open, at(1)).1);
    }
    let late = listen(&one).exchange.unwrap();
    assert!(written(&late, at(1)).1);
    assert_eq!(lapses(&one), (0, 0));
    assert!(!written(&going_on, at(1)).1);
    one.engine().updated("test://one", at(2)).unwrap();
    assert!(written(&going_on, at(2)).0.contains("resources/updated"));
    assert!(!written(&listen(&other).exchange.unwrap(), at(2)).1);
}

/// The engine wakes the writer of a listen, once until it has delivered.
#[test]
fn a_change_wakes_the_writer_of_a_listen() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let exchange = listen(&endpoint).exchange.unwrap();
    let count = Arc::new(Count::default());
    exchange.register(&Waker::from(Arc::clone(&count)));
    for uri in ["test://two", "test://one", "test://one"] {
        endpoint.engine().updated(uri, Now::default()).unwrap();
    }
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
}

/// Invalid rules are reported when the endpoint is made.
#[test]
fn rules_are_checked() {
    let engine = Arc::clone(endpoint(Limits::default(), Rules::default()).engine());
    let make =
        |rules| Endpoint::new(Arc::clone(&engine), rules, Box::new(|| Some([0; SESSION_ID_BYTES]))).err();
    for path in ["", "mcp", "/mcp?x", "/#"] {
        assert!(make(Rules { path: path.into(), ..Rules::default() }).is_some(), "{path}");
    }
    let auth = Rules { auth: Some(Auth::new("nowhere", [])), ..Rules::default() };
    assert!(make(auth).unwrap().to_string().starts_with("auth.resource is \"nowhere\", "));
    let health = Rules { health: Some("up".into()), ..Rules::default() };
    assert!(make(health).unwrap().to_string().starts_with("health is \"up\", expected a text that begins"));
}

// R-169: one client cannot take the sessions of all others, and may replace sessions that it ends.
#[test]
fn sessions_are_counted_by_client() {
    let limits = Limits { sessions_per_client: 2, ..Limits::default() };
    let endpoint = endpoint(limits, Rules::default());
    let from = |address: &str| {
        let headers: [(&str, &[u8]); 2] = [("host", b"localhost"), ("content-type", b"application/json")];
        let client = address.parse().ok();
        let head = RequestHead { verb: "POST", target: "/mcp", headers: &headers, client, mount: "" };
        let body = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
        let now = Now::default();
        let admitted = endpoint.admit(&head, now).unwrap().identify(Ok(Verified::anyone()), now).unwrap();
        let opened = endpoint.open(&admitted, body, now, &mut Vec::new());
        opened.turn.head.unwrap().status
    };
    let statuses =
        ["192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "unknown", "unknown", "unknown"].map(from);
    assert_eq!(statuses, [200, 200, 429, 200, 200, 200, 200]);
    let _ = endpoint.close(Now::default());
    assert_eq!(from("192.0.2.1"), 200);
}

/// A session without `notifications/initialized` expires early; one that is used does not.
#[test]
fn a_handshake_that_is_not_finished_ends() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let at = |tick| Now { tick, unix: 0 };
    let [_, ready] = [(); 2].map(|()| initialize(&endpoint, "2025-11-25", at(0)));
    let session = [("mcp-session-id", ready.header("mcp-session-id").unwrap())];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(send(&endpoint, "POST", &session, initialized, at(1)).status, 202);
    let _ = endpoint.tick(at(59_999));
    assert_eq!(endpoint.sessions_open(), 2);
    let _ = endpoint.tick(at(60_000));
    assert_eq!(endpoint.sessions_open(), 1);
}

// R-171: a session expires on time, even if its runtime has not called `tick` yet.
#[test]
fn a_session_that_has_run_out_of_time_is_unknown_before_it_is_ended() {
    let endpoint = endpoint(Limits { session_idle: 1_000, ..Limits::default() }, Rules::default());
    let id = session(&endpoint);
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let ask = |verb, tick| send(&endpoint, verb, &[("mcp-session-id", &id)], ping, at(tick)).status;
    assert_eq!(ask("POST", 999), 200);
    assert_eq!(ask("POST", 1_998), 200);
    assert_eq!([("POST", 2_998), ("DELETE", 2_999)].map(|(verb, tick)| ask(verb, tick)), [404; 2]);
    assert_eq!(endpoint.sessions_open(), 1);
    assert!(endpoint.tick(at(3_000)).is_empty());
    assert_eq!(endpoint.sessions_open(), 0);
}

/// All bodies being received share a limit, and release what they took.
#[test]
fn bodies_have_a_bound_together() {
    let limits = Limits { bodies_total: 10, message: 8, ..Limits::default() };
    let endpoint = endpoint(limits, Rules::default());
    let headers: [(&str, &[u8]); 2] = [("host", b"localhost"), ("content-type", b"application/json")];
    let head = RequestHead { verb: "POST", target: "/mcp", headers: &headers, ..RequestHead::default() };
    let now = Now::default();
    let receiving =
        || endpoint.admit(&head, now).unwrap().identify(Ok(Verified::anyone()), now).unwrap().receiving();
    let status = |taken: Result<(), Response>| taken.map_err(|response| response.head.status).err();
    let mut one = receiving();
    let mut two = receiving();
    assert_eq!(status(one.take(8)), None);
    assert_eq!(status(one.take(1)), Some(413));
    assert_eq!(status(two.take(2)), None);
    assert_eq!(status(two.take(1)), Some(503));
    drop(one);
    assert_eq!(status(two.take(5)), None);
    drop(two);
    assert_eq!(status(receiving().take(8)), None);
}

// R-198: a mounted endpoint serves the mount itself, and the paths below it.
#[test]
fn an_endpoint_is_found_below_its_mount() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let headers: [(&str, &[u8]); 2] = [("host", b"localhost"), ("content-type", b"application/json")];
    let status = |mount: &str, target: &str| {
        let head = RequestHead { verb: "POST", target, headers: &headers, client: None, mount };
        endpoint
            .admit(&head, Now::default())
            .map_err(|response| String::from_utf8(response.body).unwrap())
            .err()
    };
    for (mount, target) in [("", "/mcp"), ("/api", "/mcp"), ("/mcp", ""), ("/mcp", "/"), ("/mcp", "/?x=1")] {
        assert_eq!(status(mount, target), None, "{mount}{target}");
    }
    assert!(status("", "/").is_some());
    assert!(status("/api", "/x").unwrap().contains("/api/mcp"));
}

// R-016, R-127: a batch that cancels one of its own requests is answered after the others, and one that cancels all of
// them ends at once.
#[test]
fn a_batch_that_cancels_its_own_request() {
    let endpoint = endpoint(Limits::default(), Rules::default());
    let now = Now::default();
    let begun = initialize(&endpoint, "2025-03-26", now);
    let headers = [
        ("mcp-session-id", begun.header("mcp-session-id").unwrap()),
        ("accept", "application/json, text/event-stream"),
    ];
    let read = |id| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"test://item/{id}"}}}}"#
        )
    };
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let got = send(&endpoint, "POST", &headers, &format!("[{},{cancel},{}]", read(1), read(2)), now);
    let exchange = got.exchange.unwrap();
    let tokens = got.tokens;
    let answer = |text| Answer::Contents(Contents::text(text).into());
    let mut out = Vec::new();
    assert_eq!(tokens.len(), 1);
    assert_eq!(exchange.respond(tokens[0], answer("two"), now).misuse, None);
    assert!(exchange.deliver(1000, now, &mut out).end);
    let body = String::from_utf8(out).unwrap();
    assert!(body.contains(r#""text":"two""#), "{body}");
    let got = send(&endpoint, "POST", &headers, &format!("[{},{cancel}]", read(1)), now);
    assert!(got.status == 202 && got.exchange.is_none(), "{} {}", got.status, got.text());
    assert!(got.tokens.is_empty());
}
