//! Servers that are slow, old, unreachable, or ask questions.

use super::{ERAS, World};
use crate::client::machine::{Lost, Machine, MachineOptions};
use crate::client::{Access, AllowList, CallOptions, ClientCall, Effect, Failure, NotCarried, Outgoing};
use crate::now::Now;
use crate::version::Revision;

/// A machine without a server; the test plays the server.
struct Alone {
    machine: Machine,
    now: Now,
    effects: Vec<Effect>,
}

impl Alone {
    fn new() -> Self {
        let mut options = MachineOptions::new("old", Access::new(&AllowList::Everything).unwrap());
        options.answers = vec!["elicitation/create".into()];
        Self { machine: Machine::new(options), now: Now::default(), effects: Vec::new() }
    }

    /// A machine that reads `x://a` over an open transport.
    fn reading() -> Self {
        let mut alone = Self::new();
        let call = ClientCall::Read { uri: "x://a".into() };
        alone.machine.call(1, call, CallOptions::default(), alone.now, &mut alone.effects);
        assert!(matches!(alone.effects.remove(0), Effect::Connect));
        alone.machine.opened(alone.now, &mut alone.effects);
        alone
    }

    /// The next message that the machine sends.
    fn sent(&mut self) -> Outgoing {
        let at = self.effects.iter().position(|effect| matches!(effect, Effect::Send(_)));
        match self.effects.remove(at.expect("nothing was sent")) {
            Effect::Send(message) => message,
            other => panic!("{other:?}"),
        }
    }

    fn receive(&mut self, message: &str) {
        self.machine.received(message.as_bytes(), self.now, &mut self.effects);
    }

    fn answer(&mut self, to: &Outgoing, body: &str) {
        let id = to.id.unwrap();
        self.receive(&format!(r#"{{"jsonrpc":"2.0","id":{id},{body}}}"#));
    }

    fn pass(&mut self, milliseconds: u64) {
        self.now.tick += milliseconds;
        self.machine.tick(self.now, &mut self.effects);
    }

    /// The outcome of the call `1`.
    fn finished(&mut self) -> String {
        let finished = self.effects.iter().find_map(|effect| match effect {
            Effect::Finished { call: 1, outcome } => Some(super::described(outcome)),
            _ => None,
        });
        finished.unwrap_or_else(|| panic!("not finished: {:?}", self.effects))
    }

    /// Completes the older handshake.
    fn shake_hands(&mut self) {
        let initialize = self.sent();
        assert_eq!(initialize.method, "initialize");
        let result = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"old","version":"1"}}"#;
        self.answer(&initialize, result);
        assert_eq!(self.sent().method, "notifications/initialized");
    }
}

const REFUSED: &str = r#""error":{"code":-32601,"message":"Method not found"}"#;
const FOUND: &str = r#""result":{"contents":[{"uri":"x://a","text":"here"}]}"#;

// R-026, R-045, R-224: the older handshake is used with a server that refuses `server/discover`.
#[test]
fn an_old_server_refuses_discover() {
    let mut alone = Alone::reading();
    let discover = alone.sent();
    assert_eq!((discover.method.as_str(), discover.is_modern), ("server/discover", true));
    alone.answer(&discover, REFUSED);
    alone.shake_hands();
    let read = alone.sent();
    assert_eq!((read.revision, read.name.as_deref()), (Some("2025-11-25"), Some("x://a")));
    alone.answer(&read, FOUND);
    assert_eq!(alone.finished(), "here");
}

const MODERN: &str = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{}}"#;
const MODERN_FOR_GOOD: &str = r#""error":{"code":-32022,"message":"modern for good"}"#;

// R-026, R-045: a silent server gets both handshakes. On a connection with one era its last answer decides: some
// servers use the older era from its handshake on, even if they have answered `server/discover`.
#[test]
fn a_silent_server_gets_both_handshakes() {
    for (discover_first, is_accepted) in [(true, false), (true, true), (false, false), (false, true)] {
        let mut alone = Alone::reading();
        let discover = alone.sent();
        alone.pass(5_000);
        if discover_first {
            alone.answer(&discover, MODERN);
            assert!(alone.machine.about().is_none(), "the handshake may still change it");
        }
        if is_accepted {
            alone.shake_hands();
        } else {
            let initialize = alone.sent();
            alone.answer(&initialize, MODERN_FOR_GOOD);
        }
        if !discover_first {
            alone.answer(&discover, if is_accepted { REFUSED } else { MODERN });
        }
        let read = alone.sent();
        assert_eq!(read.is_modern, !is_accepted);
        alone.answer(&read, FOUND);
        assert_eq!(alone.finished(), "here");
    }
}

/// A server that never answers the older handshake is modern: after a delay, and at once over HTTP.
#[test]
fn an_unanswered_handshake_delays_no_call() {
    for has_exchanges in [false, true] {
        let mut alone = Alone::reading();
        alone.machine.has_exchanges = has_exchanges;
        let discover = alone.sent();
        alone.pass(5_000);
        assert_eq!(alone.sent().method, "initialize");
        alone.answer(&discover, MODERN);
        if !has_exchanges {
            alone.pass(5_000);
        }
        assert!(alone.sent().is_modern);
    }
}

/// A server that refuses both handshakes, in either order, or refuses one and stays silent on the other, causes an
/// error with its message.
#[test]
fn a_server_may_refuse_both_eras() {
    for last in ["initialize", "discover", "silence"] {
        let mut alone = Alone::reading();
        let discover = alone.sent();
        alone.pass(5_000);
        let initialize = alone.sent();
        let no = r#""error":{"code":-32603,"message":"not today"}"#;
        if last == "initialize" {
            alone.answer(&discover, REFUSED);
        }
        alone.answer(&initialize, no);
        match last {
            "discover" => alone.answer(&discover, REFUSED),
            "silence" => alone.pass(25_000),
            _ => {}
        }
        let finished = alone.finished();
        assert!(finished.contains("not today") || last == "silence", "{last}: {finished}");
    }
}

/// The handshake continues after the time-out of the call that started it, so that a program has time to start.
#[test]
fn a_short_time_out_does_not_end_the_handshake() {
    for revision in [None, Some(Revision::V2026_07_28), Some(Revision::V2025_11_25)] {
        let mut alone = Alone::new();
        alone.machine.pinned = revision;
        alone.machine.reader.limits.timeout = 100;
        let call = ClientCall::Read { uri: "x://a".into() };
        alone.machine.call(1, call, CallOptions::default(), alone.now, &mut alone.effects);
        alone.machine.opened(alone.now, &mut alone.effects);
        alone.pass(2_000);
        assert!(alone.finished().ends_with("no answer within 100 ms"));
        let disconnected = alone.effects.iter().any(|effect| matches!(effect, Effect::Disconnect { .. }));
        assert!(!disconnected, "{:?}", alone.effects);
    }
}

// R-127: closing the client cancels its requests in flight, because some servers exit only with their handlers.
#[test]
fn a_client_that_is_closed_takes_its_requests_back() {
    for (has_exchanges, expected) in [(false, 2), (true, 0)] {
        let mut alone = Alone::reading();
        alone.machine.has_exchanges = has_exchanges;
        alone.machine.watch(2, "x://b", alone.now, &mut alone.effects);
        let discover = alone.sent();
        let about = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#;
        alone.answer(&discover, about);
        let ids: Vec<_> = [alone.sent(), alone.sent()].iter().map(|message| message.id.unwrap()).collect();
        alone.effects.clear();
        alone.machine.close(&mut alone.effects);
        let sent: Vec<_> = alone
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Send(message) => Some(String::from_utf8(message.body.clone()).unwrap()),
                _ => None,
            })
            .collect();
        assert_eq!(sent.len(), expected, "{sent:?}");
        for (message, id) in sent.iter().zip(ids) {
            assert!(
                message.contains("notifications/cancelled")
                    && message.contains(&format!(r#""requestId":{id}"#))
            );
        }
        assert!(matches!(alone.effects.last(), Some(Effect::Disconnect { .. })));
    }
}

/// A server that closes the connection at `server/discover` gets the older handshake on the next one; if it closes that
/// too, it is an error.
#[test]
fn a_server_that_breaks_at_discover_is_greeted_otherwise() {
    for comes_back in [true, false] {
        let mut alone = Alone::reading();
        alone.machine.watch(2, "x://a", alone.now, &mut alone.effects);
        assert_eq!(alone.sent().method, "server/discover");
        alone.machine.lost(&Lost::Broken("exit status 3".into()), alone.now, &mut alone.effects);
        assert!(matches!(alone.effects.remove(0), Effect::Connect));
        alone.machine.opened(alone.now, &mut alone.effects);
        if comes_back {
            alone.shake_hands();
            assert_eq!(alone.sent().method, "resources/read");
        } else {
            assert_eq!(alone.sent().method, "initialize");
            alone.machine.lost(&Lost::Broken("exit status 3".into()), alone.now, &mut alone.effects);
            let unreachable = "Failed to read resource: the server cannot be reached: exit status 3";
            assert_eq!(alone.finished(), unreachable);
            let watch = alone.effects.iter().find_map(|effect| match effect {
                Effect::Changed { watch: 2, change: Err(error) } => Some(error.to_string()),
                _ => None,
            });
            assert_eq!(watch.as_deref(), Some(unreachable));
            assert_eq!(alone.machine.deadline(), None, "it is not tried again");
        }
    }
}

/// A server that refuses a listen with a reason.
#[test]
fn a_listen_that_is_refused_says_why() {
    let mut alone = Alone::new();
    alone.machine.watch(1, "x://a", alone.now, &mut alone.effects);
    alone.machine.opened(alone.now, &mut alone.effects);
    let discover = alone.sent();
    let about =
        r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#;
    alone.answer(&discover, about);
    for _ in 0..3 {
        alone.pass(1_000);
        let listen = alone.sent();
        assert_eq!(listen.method, "subscriptions/listen");
        alone.answer(&listen, r#""error":{"code":-32603,"message":"Subscription limit reached"}"#);
    }
    let ended = alone.effects.iter().any(|effect| {
        matches!(effect, Effect::Changed { watch: 1, change: Err(error) } if error.to_string().contains("limit"))
    });
    assert!(ended, "{:?}", alone.effects);
}

/// Over HTTP, a status alone can show that a server is old; a status that asks for credentials does not.
#[test]
fn a_status_says_that_a_server_is_old() {
    for (status, is_old) in [(400, true), (404, true), (405, true), (401, false), (403, false), (500, false)]
    {
        let mut alone = Alone::reading();
        let discover = alone.sent();
        let failure = Failure::BadAnswer { reason: format!("status {status}") };
        let why = NotCarried { status: Some(status), failure };
        alone.machine.not_carried(discover.id.unwrap(), why, alone.now, &mut alone.effects);
        if is_old {
            assert_eq!(alone.sent().method, "initialize", "{status}");
        } else {
            assert!(alone.finished().contains(&status.to_string()));
        }
    }
}

/// No common revision, an invalid answer, and an unreachable server each cause an error with the reason.
#[test]
fn failed_handshakes_are_errors_with_the_reason() {
    let mut alone = Alone::reading();
    let discover = alone.sent();
    alone.answer(&discover, REFUSED);
    let initialize = alone.sent();
    alone.answer(&initialize, r#""result":{"protocolVersion":"2031-01-01","capabilities":{}}"#);
    assert!(alone.finished().contains("2031-01-01"), "{}", alone.finished());
    let mut alone = Alone::new();
    let call = ClientCall::List { cursor: None };
    alone.machine.call(1, call, CallOptions::default(), alone.now, &mut alone.effects);
    alone.machine.lost(&Lost::NotOpened("no such file".into()), alone.now, &mut alone.effects);
    assert_eq!(alone.finished(), "Failed to read resource: the server cannot be reached: no such file");
    assert_eq!(alone.machine.deadline(), None, "nothing waits, so nothing is tried again");
    let mut alone = Alone::reading();
    alone.pass(200_000);
    assert!(alone.finished().contains("no answer within 30000 ms"));
}

// R-124: progress extends the time-out, up to a limit. R-127: a request that times out is cancelled.
#[test]
fn progress_prolongs_the_time() {
    let mut alone = Alone::reading();
    let discover = alone.sent();
    alone.answer(&discover, REFUSED);
    alone.shake_hands();
    let read = alone.sent();
    let id = read.id.unwrap();
    let told = |at: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{at}}}}}"#
        )
    };
    for at in 0..9 {
        alone.pass(29_000);
        alone.receive(&told(at));
    }
    assert!(!alone.effects.iter().any(|effect| matches!(effect, Effect::Finished { .. })));
    alone.pass(40_000);
    alone.receive(&told(100));
    alone.pass(1);
    assert!(alone.finished().ends_with("no answer within 30000 ms"));
    let cancelled = alone.sent();
    assert_eq!(cancelled.method, "notifications/cancelled");
    assert!(String::from_utf8(cancelled.body).unwrap().contains(&format!(r#""requestId":{id}"#)));
}

// R-133 … R-138, R-219, R-223: a read that needs input asks the runtime and is repeated with the answers and the state;
// it fails if the runtime answers no questions. R-004: a legacy server asks with a request of its own.
#[test]
fn questions_are_answered() {
    let mut alone = Alone::reading();
    let discover = alone.sent();
    let about = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{}}}"#;
    alone.answer(&discover, about);
    let read = alone.sent();
    let required = r#""result":{"resultType":"input_required","requestState":"sealed","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"?"}}}}"#;
    alone.answer(&read, required);
    let asked = |effects: &mut Vec<Effect>| {
        let at = effects.iter().position(|effect| matches!(effect, Effect::Asked(_))).expect("no question");
        match effects.remove(at) {
            Effect::Asked(question) => question,
            other => panic!("{other:?}"),
        }
    };
    let question = asked(&mut alone.effects);
    assert_eq!(question.params, r#"{"message":"?"}"#);
    alone.machine.answer(
        question.id,
        Ok(r#"{"action":"accept","content":{}}"#),
        alone.now,
        &mut alone.effects,
    );
    let again = String::from_utf8(alone.sent().body).unwrap();
    assert!(
        again.contains(r#""inputResponses":{"k":{"action":"accept","content":{}}},"requestState":"sealed""#),
        "{again}"
    );
    let kept = r#""result":{"resultType":"complete","contents":[{"uri":"x://a","text":"mine"}],"ttlMs":60000,"cacheScope":"private"}"#;
    let id = again.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    alone.receive(&format!(r#"{{"jsonrpc":"2.0","id":{id},{kept}}}"#));
    assert_eq!(alone.finished(), "mine");
    let call = ClientCall::Read { uri: "x://a".into() };
    alone.machine.call(2, call, CallOptions::default(), alone.now, &mut alone.effects);
    assert_eq!(alone.sent().method, "resources/read", "what was answered with input is not kept");

    let mut alone = Alone::reading();
    let discover = alone.sent();
    alone.answer(&discover, about);
    let read = alone.sent();
    alone.answer(&read, &required.replace("elicitation/create", "sampling/createMessage"));
    assert!(alone.finished().contains("sampling/createMessage"));

    let mut alone = Alone::reading();
    let discover = alone.sent();
    alone.answer(&discover, REFUSED);
    alone.shake_hands();
    drop(alone.sent());
    alone.receive(r#"{"jsonrpc":"2.0","id":"s-1","method":"elicitation/create","params":{"message":"?"}}"#);
    let question = asked(&mut alone.effects);
    alone.machine.answer(question.id, Ok(r#"{"action":"decline"}"#), alone.now, &mut alone.effects);
    assert_eq!(alone.sent().body, br#"{"jsonrpc":"2.0","id":"s-1","result":{"action":"decline"}}"#);
    alone.receive(r#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{}}"#);
    assert!(String::from_utf8(alone.sent().body).unwrap().contains("-32601"));
    alone.receive(r#"{"jsonrpc":"2.0","id":6,"method":"ping"}"#);
    assert_eq!(alone.sent().body, br#"{"jsonrpc":"2.0","id":6,"result":{}}"#);
    alone.receive(r#"{"jsonrpc":"2.0","id":"s-2","method":"elicitation/create","params":{}}"#);
    let question = asked(&mut alone.effects).id;
    alone.receive(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"s-2"}}"#);
    let is_withdrawn = |effect: &Effect| matches!(effect, Effect::Withdrawn(id) if *id == question);
    assert!(alone.effects.iter().any(is_withdrawn), "the server has taken it back");
}

/// A read whose connection is lost is repeated once, and not twice; a custom method is not repeated.
#[test]
fn what_only_reads_is_made_again() {
    for era in ERAS {
        let mut world = World::open(era);
        world.set("n://a", Some(1));
        world.read(1, "n://a");
        world.is_deaf = true;
        world.read(2, "n://a");
        let call = ClientCall::Custom { method: "x/do".into(), params: "{}".into() };
        world.act(|machine, now, out| machine.call(3, call, CallOptions::default(), now, out));
        world.is_deaf = false;
        world.kill();
        world.pass(2_000);
        let lost = "Failed to read resource: the server cannot be reached: killed";
        assert_eq!(world.logged(), ["1: 1".to_owned(), format!("3: {lost}"), "2: 1".to_owned()]);
        world.is_deaf = true;
        world.read(4, "n://a");
        world.kill();
        world.pass(100);
        world.kill();
        world.pass(2_000);
        assert_eq!(world.logged(), [format!("4: {lost}")]);
    }
}

// R-099: a URI is subscribed to once, and its last watch ends the subscription.
#[test]
fn subscriptions_follow_the_watches() {
    for era in ERAS {
        let mut world = World::open(era);
        world.set("n://a", Some(1));
        world.watch(1, "n://a");
        world.watch(2, "n://a");
        world.pass(100);
        let methods = |world: &mut World| {
            let sent = std::mem::take(&mut world.sent);
            sent.into_iter()
                .map(|message| message.method)
                .filter(|method| method != "resources/read")
                .collect::<Vec<_>>()
        };
        let begun = methods(&mut world);
        let listens = begun
            .iter()
            .filter(|method| matches!(&***method, "resources/subscribe" | "subscriptions/listen"));
        assert_eq!(listens.count(), 1, "{begun:?}");
        world.act(|machine, now, out| machine.unwatch(1, now, out));
        assert!(methods(&mut world).is_empty());
        world.act(|machine, now, out| machine.unwatch(2, now, out));
        let ended = if era.is_modern() { "notifications/cancelled" } else { "resources/unsubscribe" };
        assert_eq!(methods(&mut world), [ended]);
        world.set("n://a", Some(2));
        world.pass(1_000);
        assert_eq!(world.logged(), ["#1 n://a = 1", "#2 n://a = 1"]);
    }
}

/// Watching a server without subscriptions fails at once.
#[test]
fn what_cannot_be_watched_is_an_error() {
    let mut alone = Alone::new();
    alone.machine.watch(1, "x://a", alone.now, &mut alone.effects);
    alone.machine.opened(alone.now, &mut alone.effects);
    let discover = alone.sent();
    alone.answer(
        &discover,
        r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{}}}"#,
    );
    let error = alone.effects.iter().find_map(|effect| match effect {
        Effect::Changed { watch: 1, change: Err(error) } => Some(error.to_string()),
        _ => None,
    });
    assert_eq!(error.as_deref(), Some("Failed to read resource: the server has no subscriptions"));
}

/// An expired HTTP session is replaced at once, and all watched URIs are read again.
#[test]
fn an_ended_session_is_begun_anew() {
    let mut world = World::open(Revision::V2025_11_25);
    world.set("n://a", Some(1));
    world.watch(1, "n://a");
    world.values.insert("n://a".into(), Some(2));
    world.act(|machine, now, out| machine.lost(&Lost::Session, now, out));
    assert_eq!(world.logged(), ["#1 n://a = 1", "#1 n://a = 2"]);
    world.values.insert("n://a".into(), Some(3));
    world.act(Machine::stream_opened);
    world.pass(100);
    assert_eq!(world.logged(), ["#1 n://a = 3"]);
}

// R-073, R-087: changes of the lists are reported in either era, also after a lost connection.
#[test]
fn changes_of_lists_are_reported() {
    for era in ERAS {
        let mut world = World::open(era);
        world.act(Machine::watch_lists);
        world.pass(100);
        world.list_changes();
        world.pass(100);
        world.kill();
        world.pass(2_000);
        world.list_changes();
        world.pass(100);
        assert_eq!(world.logged(), ["list changed", "list changed"], "{era}");
    }
}

// S-13: a watch that starts while its HTTP server is unreachable waits until the server is back, however long that
// takes. If the server answers the first read with errors only, the watch ends.
#[test]
fn a_first_read_waits_for_the_server_to_come_back() {
    for is_away in [true, false] {
        let mut alone = Alone::new();
        alone.machine.watch(1, "x://a", alone.now, &mut alone.effects);
        alone.machine.opened(alone.now, &mut alone.effects);
        let discover = alone.sent();
        let about = r#""result":{"supportedVersions":["2026-07-28"],"capabilities":{"resources":{"subscribe":true}}}"#;
        alone.answer(&discover, about);
        let listen = alone.sent().id.unwrap();
        alone.receive(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{listen}}},"notifications":{{"resourceSubscriptions":["x://a"]}}}}}}"#
        ));
        let ended = |effects: &[Effect]| {
            effects.iter().any(|effect| matches!(effect, Effect::Changed { change: Err(_), .. }))
        };
        for _ in 0..200 {
            alone.pass(1_000);
            let sent: Vec<_> =
                alone.effects.extract_if(.., |effect| matches!(effect, Effect::Send(_))).collect();
            for message in sent {
                let Effect::Send(read @ Outgoing { id: Some(id), .. }) = message else { continue };
                if is_away {
                    let failure = Failure::Unreachable { reason: "refused".into() };
                    let why = NotCarried { status: None, failure };
                    alone.machine.not_carried(id, why, alone.now, &mut alone.effects);
                } else {
                    alone.answer(&read, r#""error":{"code":-32603,"message":"no"}"#);
                }
            }
        }
        assert_eq!(ended(&alone.effects), !is_away, "{:?}", alone.effects);
    }
}
