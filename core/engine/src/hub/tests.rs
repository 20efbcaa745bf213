//! One behaviour in each test, with the exact text of the messages.

use super::*;
use crate::jsonrpc::{Json, OwnedId};
use std::task::Wake;

const UPDATED: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/updated","params":"#;
const LIST: &str = r#"{"jsonrpc":"2.0","method":"notifications/resources/list_changed""#;

mod ends;

pub(super) fn id(raw: &str) -> OwnedId {
    Json::parse(raw.as_bytes(), 1).and_then(Id::from_json).map(OwnedId::from).unwrap()
}

/// A hub and its runtime, at a given time.
struct World {
    hub: Hub,
    now: Millis,
    woken: Woken,
}

/// The connections that were woken, in order.
#[derive(Clone, Default)]
pub(super) struct Woken(Arc<Mutex<Vec<ConnectionId>>>);

struct TestWaker(ConnectionId, Woken);

impl Woken {
    /// The waker of a connection.
    pub(super) fn waker(&self, id: ConnectionId) -> Waker {
        Waker::from(Arc::new(TestWaker(id, self.clone())))
    }

    pub(super) fn all(&self) -> Vec<ConnectionId> {
        self.0.lock().unwrap().clone()
    }

    pub(super) fn take(&self) -> Vec<ConnectionId> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Wake for TestWaker {
    fn wake(self: Arc<Self>) {
        self.1.0.lock().unwrap().push(self.0);
    }
}

impl World {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self { hub: Hub::new(&limits), now: 0, woken: Woken::default() }
    }

    /// A legacy connection after `notifications/initialized`.
    fn legacy(&mut self) -> ConnectionId {
        let connection = self.hub.connect();
        self.hub.legacy(connection, Principal::local(), ListKinds::RESOURCES, &self.woken.waker(connection));
        self.hub.ready(connection);
        connection
    }

    fn listen(&self, on: ConnectionId, request: &str, filter: Filter<'_>) -> Vec<Arc<str>> {
        self.hub.listen(on, id(request).as_id(), Principal::local(), filter, &self.woken.waker(on)).unwrap()
    }

    /// A modern connection with one listen.
    fn listener(&self, request: &str, lists: ListKinds, uris: &[(&str, &str)]) -> ConnectionId {
        let connection = self.hub.connect();
        self.listen(connection, request, Filter { lists, uris });
        connection
    }

    fn updated(&mut self, uri: &str) {
        self.hub.updated(uri, &[], self.now);
    }

    fn list_changed(&mut self) {
        self.hub.list_changed(ListKinds::RESOURCES, self.now);
    }

    fn pass(&mut self, by: Millis) {
        self.now += by;
        self.hub.tick(self.now);
    }

    fn deliver_within(
        &self,
        to: ConnectionId,
        room: usize,
        ending: ListenEnding,
    ) -> (Vec<String>, Delivered) {
        let mut out = Vec::new();
        let delivery = HubDelivery { room, server_info: Some(r#"{"name":"s","version":"1"}"#), ending };
        let left = self.hub.deliver(to, delivery, &mut out, &mut |_, _| true);
        (String::from_utf8(out).unwrap().lines().map(String::from).collect(), left)
    }

    fn deliver(&self, to: ConnectionId) -> Vec<String> {
        let (lines, left) = self.deliver_within(to, usize::MAX, ListenEnding::ResultOnly);
        assert_eq!(left, Delivered::Idle);
        lines
    }
}

fn legacy_update(uri: &str) -> String {
    format!(r#"{UPDATED}{{"uri":"{uri}"}}}}"#)
}

fn tagged_update(request: &str, uri: &str) -> String {
    format!(r#"{UPDATED}{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{request}}},"uri":"{uri}"}}}}"#)
}

fn tagged_list(request: &str) -> String {
    format!(r#"{LIST},"params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{request}}}}}}}"#)
}

fn end(request: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{request},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{request},"io.modelcontextprotocol/serverInfo":{{"name":"s","version":"1"}}}}}}}}"#
    )
}

fn cancelled(request: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{request}}}}}"#)
}

/// A change for one principal is notified to it alone, and does not affect the times of others' notifications.
#[test]
fn a_change_for_one_principal_is_notified_to_it_alone() {
    let mut world = World::with(Limits { coalesce: 50, ..Limits::default() });
    let uris = [("note://a", "note://a")];
    let filter = Filter { lists: ListKinds::RESOURCES, uris: &uris };
    let [ada, eve] = ["ada", "eve"].map(|name| {
        let connection = world.hub.connect();
        let waker = world.woken.waker(connection);
        world.hub.listen(connection, id("1").as_id(), Principal::new(name), filter, &waker).unwrap();
        connection
    });
    let sent = [tagged_list("1"), tagged_update("1", "note://a")];
    for _ in 0..2 {
        world.hub.list_changed_for("ada", ListKinds::RESOURCES, world.now);
        world.hub.updated_for("ada", "note://a", &[], world.now);
        assert_eq!(world.woken.take(), [ada]);
        assert_eq!(world.deliver(ada), sent);
        assert_eq!(world.deliver(eve), [""; 0]);
        // Within the interval: notified at its end.
        world.hub.updated_for("ada", "note://a", &[], world.now);
        assert_eq!(world.hub.deadline(), Some(world.now + 50));
        // Another principal is notified of its own change at once.
        world.hub.updated_for("eve", "note://a", &[], world.now);
        assert_eq!(world.deliver(eve), sent[1..]);
        assert_eq!(world.woken.take(), [eve]);
        world.pass(50);
        assert_eq!(world.woken.take(), [ada]);
        assert_eq!(world.deliver(ada), sent[1..]);
        world.pass(50);
    }
    world.hub.updated_for("nobody", "note://a", &["note://b"], world.now);
    assert_eq!((world.hub.deadline(), world.woken.take()), (None, vec![]));
    world.hub.updated_for("ada", "note://a", &[], world.now);
    world.hub.updated_for("ada", "note://a", &[], world.now);
    world.hub.disconnect(ada);
    world.hub.disconnect(eve);
    assert_eq!((world.hub.deadline(), world.hub.counts()), (None, Counts::default()));
}

// R-081, DEC-15: two spellings are one subscription, whose notifications use the first.
#[test]
fn subscribing_twice_is_one_subscription() {
    let mut world = World::new();
    let connection = world.legacy();
    let first = world.hub.subscribe(connection, "note://a", "NOTE://a").unwrap();
    assert_eq!(first.as_deref(), Some("note://a"));
    assert_eq!(world.hub.subscribe(connection, "note://a", "note://a"), Ok(None));
    assert_eq!(world.hub.counts().subscriptions, 1);
    world.updated("note://a");
    assert_eq!(world.deliver(connection), [legacy_update("NOTE://a")]);
}

// R-082: pending notifications are dropped too.
#[test]
fn nothing_after_unsubscribe() {
    let mut world = World::new();
    let connection = world.legacy();
    for uri in ["note://a", "note://b"] {
        world.hub.subscribe(connection, uri, uri).unwrap();
        world.updated(uri);
    }
    assert_eq!(world.hub.unsubscribe(connection, "note://a").as_deref(), Some("note://a"));
    assert_eq!(world.hub.unsubscribe(connection, "note://a"), None);
    world.updated("note://a");
    assert_eq!(world.deliver(connection), [legacy_update("note://b")]);
    world.updated("note://b");
    world.hub.unsubscribe(connection, "note://b");
    assert_eq!(world.hub.deadline(), None);
    world.pass(50);
    assert!(world.deliver(connection).is_empty());
    // It was woken for a topic that it no longer watches; the next change is notified all the same.
    world.hub.subscribe(connection, "note://c", "note://c").unwrap();
    world.updated("note://c");
    world.hub.unsubscribe(connection, "note://c");
    assert!(world.deliver(connection).is_empty());
    world.list_changed();
    assert_eq!(world.deliver(connection), [format!("{LIST}}}")]);
}

// R-083, R-090
#[test]
fn only_watchers_are_woken() {
    let mut world = World::new();
    let asked = world.legacy();
    let other = world.listener("1", ListKinds::NONE, &[("note://b", "note://b")]);
    world.hub.subscribe(asked, "note://a", "note://a").unwrap();
    world.updated("note://a");
    world.updated("note://c");
    assert_eq!(world.woken.all(), [asked]);
    world.list_changed();
    assert!(world.deliver(other).is_empty());
}

// R-038, DEC-08: held back until the client is ready, then notified once.
#[test]
fn held_until_ready() {
    let mut world = World::new();
    let connection = world.hub.connect();
    world.hub.legacy(connection, Principal::local(), ListKinds::RESOURCES, &world.woken.waker(connection));
    world.hub.subscribe(connection, "note://a", "note://a").unwrap();
    world.updated("note://a");
    world.list_changed();
    assert!(world.woken.all().is_empty());
    assert!(world.deliver(connection).is_empty());
    world.hub.ready(connection);
    world.hub.ready(connection);
    assert_eq!(world.woken.all(), [connection]);
    assert_eq!(world.deliver(connection), [legacy_update("note://a"), format!("{LIST}}}")]);
}

// R-042: changes of a list whose `listChanged` was not declared are not notified.
#[test]
fn undeclared_lists_are_silent() {
    let mut world = World::new();
    let connection = world.hub.connect();
    world.hub.legacy(connection, Principal::local(), ListKinds::NONE, &world.woken.waker(connection));
    world.hub.ready(connection);
    world.list_changed();
    assert!(world.woken.all().is_empty() && world.deliver(connection).is_empty());
}

// R-076, R-077, X-10: one notification for a burst; to modern clients only on request, with the id of the listen.
#[test]
fn a_burst_of_list_changes_is_one_notification() {
    let mut world = World::new();
    let legacy = world.legacy();
    let asked = world.listener("\"l\"", ListKinds::RESOURCES, &[]);
    let not_asked = world.listener("2", ListKinds::NONE, &[("note://a", "note://a")]);
    (0..1_000).for_each(|_| world.list_changed());
    assert_eq!(world.woken.all(), [legacy, asked]);
    assert_eq!(world.deliver(legacy), [format!("{LIST}}}")]);
    assert_eq!(world.deliver(asked), [tagged_list("\"l\"")]);
    assert!(world.deliver(not_asked).is_empty());
    // The last change came before any notification of the first. A later one is notified at the end of its interval.
    world.pass(50);
    let sent = [(); 3].map(|()| (world.deliver(asked).len(), world.list_changed()).0);
    world.pass(50);
    assert_eq!((sent, world.deliver(asked).len()), ([0, 1, 0], 1));
}

/// The lists of custom methods.
#[test]
fn custom_lists_are_notified_by_name() {
    let world = World::new();
    let connection = world.listener("1", ListKinds::TOOLS | ListKinds::PROMPTS, &[]);
    world.hub.list_changed(ListKinds::RESOURCES | ListKinds::PROMPTS, 0);
    world.hub.list_changed(ListKinds::TOOLS, 0);
    let lines = world.deliver(connection);
    assert_eq!(lines.len(), 2);
    assert!(lines[0].contains("\"notifications/prompts/list_changed\""));
    assert!(lines[1].contains("\"notifications/tools/list_changed\""));
}

// R-091, R-092, R-093: each listen gets its own copy, with its id byte for byte.
#[test]
fn each_listen_has_its_own_tagged_copy() {
    let mut world = World::new();
    let connection = world.hub.connect();
    for request in ["1", "\"1\"", "\"\\u0061\""] {
        world.listen(connection, request, Filter { uris: &[("note://a", "note://a")], ..Filter::default() });
    }
    world.updated("note://a");
    assert_eq!(world.woken.all(), [connection]);
    let expected = ["1", "\"1\"", "\"\\u0061\""].map(|request| tagged_update(request, "note://a"));
    assert_eq!(world.deliver(connection), expected);
}

// R-095; ids are compared by value.
#[test]
fn nothing_after_cancel() {
    let mut world = World::new();
    let connection = world.listener("\"\\u0061\"", ListKinds::RESOURCES, &[("note://a", "note://a")]);
    assert!(world.hub.listening(connection, id("\"a\"").as_id()));
    world.updated("note://a");
    assert_eq!(world.hub.cancel(connection, id("\"b\"").as_id()), None);
    let left = world.hub.cancel(connection, id("\"a\"").as_id()).unwrap();
    assert_eq!(left, ["note://a".into()]);
    assert!(!world.hub.listening(connection, id("\"a\"").as_id()));
    world.updated("note://a");
    world.list_changed();
    world.hub.shutdown(connection);
    let (lines, left) = world.deliver_within(connection, usize::MAX, ListenEnding::ResultThenCancelled);
    assert_eq!((lines, left), (vec![], Delivered::Ended));
}

// R-084, R-094, R-099: nothing outlives the connection.
#[test]
fn disconnecting_frees_everything() {
    let mut world = World::new();
    let first = world.legacy();
    let second = world.legacy();
    for connection in [first, second] {
        world.hub.subscribe(connection, "note://a", "note://a").unwrap();
    }
    world.hub.subscribe(first, "note://b", "note://b").unwrap();
    world.listen(
        first,
        "1",
        Filter { lists: ListKinds::TOOLS, uris: &[("note://b", "note://b"), ("note://c", "x")] },
    );
    world.updated("note://a");
    world.updated("note://a");
    assert_eq!(world.hub.counts(), Counts { connections: 2, subscriptions: 4, uris: 3, bytes: 24 + 3 });
    assert_eq!(world.hub.disconnect(first), ["note://b".into(), "note://c".into()]);
    assert_eq!(world.hub.disconnect(first), []);
    assert!(world.hub.watched("note://a") && !world.hub.watched("note://b"));
    assert_eq!(world.hub.disconnect(second), ["note://a".into()]);
    assert_eq!(world.hub.counts(), Counts::default());
    assert_eq!(world.hub.deadline(), None);
}

// DEC-18: at the limit nothing is registered; existing subscriptions may be repeated.
#[test]
fn subscriptions_are_bounded() {
    let mut world =
        World::with(Limits { subscriptions: 2, filter_uris: 2, watched_uris: 3, ..Limits::default() });
    let connection = world.legacy();
    world.hub.subscribe(connection, "note://a", "note://a").unwrap();
    world.listen(connection, "1", Filter::default());
    assert_eq!(world.hub.subscribe(connection, "note://b", "note://b"), Err(LimitReached));
    assert_eq!(world.hub.subscribe(connection, "note://a", "note://a"), Ok(None));
    let listen = |on, request, uris: &[(&str, &str)]| {
        let filter = Filter { lists: ListKinds::NONE, uris };
        world.hub.listen(on, id(request).as_id(), Principal::local(), filter, &world.woken.waker(on))
    };
    assert_eq!(listen(connection, "2", &[]), Err(ListenError::LimitReached));
    assert_eq!(listen(connection, "1", &[]), Err(ListenError::IdInUse));
    let other = world.hub.connect();
    let three = [("note://a", "note://a"), ("note://b", "note://b"), ("note://c", "note://c")];
    assert_eq!(listen(other, "1", &three), Err(ListenError::LimitReached));
    assert_eq!(world.hub.counts(), Counts { connections: 1, subscriptions: 2, uris: 1, bytes: 8 });
    let two_spellings = [("note://a", "note://a"), ("note://a", "NOTE://a"), ("note://b", "note://b")];
    assert_eq!(listen(other, "1", &two_spellings), Ok(vec!["note://b".into()]));
    assert_eq!(listen(other, "2", &two_spellings), Err(ListenError::LimitReached));
}

// DEC-18: few long URIs reach the limit too; URIs that are no longer watched make room.
#[test]
fn the_bytes_of_watched_uris_are_bounded() {
    let world = World::with(Limits { watched_bytes: 24, watched_total: 40, ..Limits::default() });
    let listen = |on, request, uris: &[(&str, &str)]| {
        world.hub.listen(
            on,
            id(request).as_id(),
            Principal::local(),
            Filter { lists: ListKinds::NONE, uris },
            &world.woken.waker(on),
        )
    };
    let [a, b, c] = ["note://a", "note://b", "note://c"].map(|uri| (uri, uri));
    let first = world.hub.connect();
    world.hub.legacy(first, Principal::local(), ListKinds::RESOURCES, &world.woken.waker(first));
    assert!(world.hub.subscribe(first, "note://a", "note://a").is_ok());
    assert_eq!(
        world.hub.subscribe(first, "note://b", "note://bcdefg"),
        Err(LimitReached),
        "8 + 8 + 15 of 24"
    );
    assert!(listen(first, "1", &[a, b]).is_ok());
    assert_eq!(world.hub.subscribe(first, "note://c", "note://c"), Err(LimitReached), "24 of 24");
    assert_eq!(listen(first, "2", &[c]), Err(ListenError::LimitReached));
    assert_eq!(world.hub.counts().bytes, 16, "a URI that is watched twice is there once");
    world.hub.unsubscribe(first, "note://a");
    assert!(listen(first, "2", &[c]).is_ok());
    world.hub.cancel(first, id("2").as_id());
    world.hub.end_listens(first);
    assert_eq!(world.hub.counts().bytes, 0);
    assert!(listen(first, "3", &[a, b, c]).is_ok());
    let second = world.hub.connect();
    assert_eq!(listen(second, "1", &[a, b, c]), Err(ListenError::LimitReached), "24 + 24 of 40");
    assert!(listen(second, "1", &[a, b]).is_ok());
    world.hub.disconnect(first);
    assert_eq!(world.hub.counts().bytes, 16);
    world.hub.disconnect(second);
    assert_eq!(world.hub.counts(), Counts::default());
}

/// Notified at once, again after the interval, and not without a change.
#[test]
fn updates_are_coalesced() {
    let mut world = World::new();
    let connection = world.listener("1", ListKinds::NONE, &[("note://a", "note://a")]);
    let sent = [tagged_update("1", "note://a")];
    world.updated("note://a");
    assert_eq!(world.deliver(connection), sent);
    assert_eq!(world.hub.deadline(), None);
    for _ in 0..10 {
        world.now += 4;
        world.updated("note://a");
    }
    assert_eq!(world.hub.deadline(), Some(50));
    assert!(world.deliver(connection).is_empty());
    world.pass(10);
    assert_eq!(world.deliver(connection), sent);
    assert_eq!(world.hub.deadline(), None);
    // A late timer of the runtime, and a change before it fires.
    world.now += 1;
    world.updated("note://a");
    world.now += 200;
    world.updated("note://a");
    assert_eq!((world.deliver(connection), world.hub.deadline()), (sent.to_vec(), None));
}

// DEC-15: subscribers of a resource with `children=True` are notified of changes under it, under its own URI, once
// for each change.
#[test]
fn watchers_of_a_parent_are_notified_of_its_children() {
    let mut world = World::new();
    let connection = world.legacy();
    world.hub.subscribe(connection, "file:///d", "file:///d").unwrap();
    world.hub.updated("file:///d/x", &["file:///d", "file:///d"], 0);
    assert_eq!((world.woken.all().len(), world.hub.deadline()), (1, None));
    assert_eq!(world.deliver(connection), [legacy_update("file:///d")]);
}

// DEC-17: a slow consumer holds one bit for each URI, and is served in turn, within its room.
#[test]
fn a_slow_consumer_is_served_in_turn() {
    let mut world = World::with(Limits { coalesce: 0, ..Limits::default() });
    let connection = world.legacy();
    let uris: Vec<String> = (0..600).map(|number| format!("note://{number:03}")).collect();
    for uri in &uris {
        world.hub.subscribe(connection, uri, uri).unwrap();
    }
    world.listen(connection, "1", Filter { uris: &[("note://599", "note://599")], ..Filter::default() });
    for _ in 0..3 {
        uris.iter().for_each(|uri| world.updated(uri));
    }
    assert_eq!(world.woken.all(), [connection]);
    let (first, left) = world.deliver_within(connection, 300, ListenEnding::ResultOnly);
    assert_eq!(left, Delivered::More);
    let expected =
        [legacy_update("note://000"), tagged_update("1", "note://599"), legacy_update("note://001")];
    assert_eq!(first, expected);
    // Changes in the meantime go to the end of the queue.
    world.updated("note://000");
    assert_eq!(world.deliver_within(connection, 0, ListenEnding::ResultOnly), (vec![], Delivered::More));
    let rest = world.deliver(connection);
    assert_eq!(rest.len(), 599);
    assert_eq!(rest.last(), Some(&legacy_update("note://000")));
    assert!(world.deliver(connection).is_empty());
}

/// The guard is asked without the lock, once for each principal and URI; refused notifications are dropped silently.
#[test]
fn the_guard_is_asked_once() {
    let mut world = World::new();
    let alice = Principal::new("alice");
    let eve = Principal::new("eve");
    let connection = world.hub.connect();
    let filter = Filter { lists: ListKinds::NONE, uris: &[("note://a", "note://a"), ("note://b", "x")] };
    for (request, principal) in [("1", &alice), ("2", &eve), ("3", &alice)] {
        world
            .hub
            .listen(
                connection,
                id(request).as_id(),
                Arc::clone(principal),
                filter,
                &world.woken.waker(connection),
            )
            .unwrap();
    }
    world.updated("note://a");
    world.updated("note://b");
    let mut asked = Vec::new();
    let mut may_see = |principal: &Arc<Principal>, uri: &str| {
        assert!(world.hub.watched(uri), "the lock is free");
        asked.push((principal.id().to_owned(), uri.to_owned()));
        **principal == *alice
    };
    let delivery = HubDelivery { room: usize::MAX, server_info: None, ending: ListenEnding::ResultOnly };
    let mut out = Vec::new();
    assert_eq!(world.hub.deliver(connection, delivery, &mut out, &mut may_see), Delivered::Idle);
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 4);
    let expected = [("alice", "note://a"), ("eve", "note://a"), ("alice", "note://b"), ("eve", "note://b")];
    assert_eq!(asked, expected.map(|(who, uri)| (who.to_owned(), uri.to_owned())));
}

/// The lock is free while the guard is asked: a change then wakes the connection again and is not lost.
#[test]
fn a_change_during_a_delivery_wakes_again() {
    let mut world = World::with(Limits { coalesce: 0, ..Limits::default() });
    let connection = world.legacy();
    world.hub.subscribe(connection, "note://a", "note://a").unwrap();
    world.updated("note://a");
    world.woken.take();
    let mut may_see = |_: &Arc<Principal>, uri: &str| {
        world.hub.updated(uri, &[], 0);
        true
    };
    let delivery = HubDelivery { room: usize::MAX, server_info: None, ending: ListenEnding::ResultOnly };
    assert_eq!(world.hub.deliver(connection, delivery, &mut Vec::new(), &mut may_see), Delivered::Idle);
    assert_eq!(world.woken.all(), [connection]);
    assert_eq!(world.deliver(connection), [legacy_update("note://a")]);
}

/// A delivery continues after refused notifications, so `More` always means that something was appended.
#[test]
fn refusals_take_no_room() {
    let mut world = World::new();
    let connection = world.legacy();
    for number in 0..1_000 {
        let uri = format!("note://{number}");
        world.hub.subscribe(connection, &uri, &uri).unwrap();
        world.updated(&uri);
    }
    let delivery = HubDelivery { room: 100, server_info: None, ending: ListenEnding::ResultOnly };
    let mut out = Vec::new();
    let left = world.hub.deliver(connection, delivery, &mut out, &mut |_, uri| uri == "note://999");
    assert_eq!(String::from_utf8(out).unwrap(), legacy_update("note://999") + "\n");
    assert_eq!(left, Delivered::Idle);
}

/// A stream resumed from before its replay log: every subscription is notified again.
#[test]
fn mark_all_repeats_everything() {
    let mut world = World::new();
    let connection = world.legacy();
    world.hub.subscribe(connection, "note://a", "note://a").unwrap();
    world.hub.mark_all(connection);
    world.hub.mark_all(connection);
    assert_eq!(world.woken.all(), [connection]);
    assert_eq!(world.deliver(connection), [format!("{LIST}}}"), legacy_update("note://a")]);
}

// R-145: a spelling is escaped, whatever it contains.
#[test]
fn spellings_are_escaped() {
    let mut world = World::new();
    let connection = world.legacy();
    world.hub.subscribe(connection, "note://a", "note://\"\n").unwrap();
    world.updated("note://a");
    assert_eq!(world.deliver(connection), [legacy_update(r#"note://\"\n"#)]);
}

// R-048: `serverInfo` may be switched off. DEC-10: the same answer if nothing was registered.
#[test]
fn the_end_of_a_listen_in_words() {
    let mut out = Vec::new();
    write_end(id("1").as_id(), None, ListenEnding::ResultOnly, &mut out);
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#;
    assert_eq!(String::from_utf8(out).unwrap(), expected.to_owned() + "\n");
}
