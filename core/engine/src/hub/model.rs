//! The hub against a naive model: random histories, with a runtime that delivers only when it was woken.

use super::tests::{Woken, id};
use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const COALESCE: Millis = 50;
/// Canonical URIs, each with another spelling. The last lies under the one before.
const URIS: [[&str; 2]; 4] = [
    ["note://a", "NOTE://a"],
    ["note://b", "note://\"b\""],
    ["note://c/", "note://c/%2E"],
    ["note://c/1", "note://c/%31"],
];
const IDS: [&str; 3] = ["1", r#""1""#, r#""a""#];
const PRINCIPALS: [&str; 2] = ["ada", "eve"];
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

fn may_see(principal: &Arc<Principal>, uri: &str) -> bool {
    principal.id() == PRINCIPALS[0] || uri != "note://b"
}

#[derive(Clone, Debug)]
enum Op {
    Ready(usize),
    Subscribe(usize, usize, usize),
    Unsubscribe(usize, usize),
    Listen { on: usize, id: usize, lists: u8, uris: Vec<(usize, usize)>, principal: usize },
    Cancel(usize, usize),
    Updated(usize),
    UpdatedFor(usize, usize),
    ListChangedFor(usize, u8),
    ListChanged(u8),
    Advance(Millis),
    Deliver(usize),
    Disconnect(usize),
    Revoke(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let on = 0..3usize;
    let id = 0..IDS.len();
    let uri = 0..URIS.len();
    let spelling = 0..2usize;
    let principal = 0..2usize;
    let uris = proptest::collection::vec((uri.clone(), spelling.clone()), 0..5);
    let room = proptest::sample::select(vec![0usize, 1, 200, 100_000]);
    prop_oneof![
        2 => on.clone().prop_map(Op::Ready),
        4 => (on.clone(), uri.clone(), spelling).prop_map(|(on, uri, spelling)| Op::Subscribe(on, uri, spelling)),
        2 => (on.clone(), uri.clone()).prop_map(|(on, uri)| Op::Unsubscribe(on, uri)),
        4 => (on.clone(), id.clone(), 0..8u8, uris, principal.clone())
            .prop_map(|(on, id, lists, uris, principal)| Op::Listen { on, id, lists, uris, principal }),
        2 => (on.clone(), id).prop_map(|(on, id)| Op::Cancel(on, id)),
        8 => uri.clone().prop_map(Op::Updated),
        6 => (principal.clone(), uri.clone()).prop_map(|(principal, uri)| Op::UpdatedFor(principal, uri)),
        2 => (principal.clone(), 1..8u8).prop_map(|(principal, lists)| Op::ListChangedFor(principal, lists)),
        4 => (1..8u8).prop_map(Op::ListChanged),
        4 => (0..80u64).prop_map(Op::Advance),
        8 => room.prop_map(Op::Deliver),
        1 => on.prop_map(Op::Disconnect),
        1 => principal.prop_map(Op::Revoke),
    ]
}

/// An interest of a subscriber, and its pending notifications.
#[derive(Debug)]
struct Interest {
    spelling: String,
    /// Whether it changed since the last notification.
    owed: bool,
    /// The number of notifications that may still follow: one for each change.
    credit: usize,
}

#[derive(Debug, Default)]
struct Subscriber {
    principal: usize,
    held: bool,
    /// By canonical URI, or by the method of a list.
    interests: BTreeMap<String, Interest>,
}

/// A connection's number, and the id of the listen.
type Key = (usize, Option<usize>);

struct World {
    hub: Hub,
    woken: Woken,
    now: Millis,
    ids: [ConnectionId; 3],
    awake: BTreeSet<ConnectionId>,
    subscribers: BTreeMap<Key, Subscriber>,
    /// Listens that are to be answered.
    ending: BTreeSet<Key>,
    changed: BTreeMap<String, Millis>,
}

impl World {
    fn new() -> Self {
        let hub = Hub::new(&Limits { coalesce: COALESCE, ..Limits::default() });
        let ids = [hub.connect(), hub.connect(), hub.connect()];
        let mut world = Self {
            hub,
            woken: Woken::default(),
            now: 1_000,
            ids,
            awake: BTreeSet::new(),
            subscribers: BTreeMap::new(),
            ending: BTreeSet::new(),
            changed: BTreeMap::new(),
        };
        (0..3).for_each(|on| world.initialize(on));
        world
    }

    /// Connection 0 is legacy, 1 modern, 2 both.
    fn initialize(&mut self, on: usize) {
        let (principal, lists) = if on == 0 { (0, ListKinds::RESOURCES) } else { (1, ListKinds::NONE) };
        if on != 1 {
            let waker = self.woken.waker(self.ids[on]);
            self.hub.legacy(self.ids[on], Principal::new(PRINCIPALS[principal]), lists, &waker);
            let mut subscriber = Subscriber { principal, held: true, ..Subscriber::default() };
            for kind in ListKinds::EACH.into_iter().filter(|kind| lists.contains(*kind)) {
                subscriber.interests.insert(kind.method().into(), self.interest(kind.method(), ""));
            }
            self.subscribers.insert((on, None), subscriber);
        }
    }

    /// A new subscriber may still be notified of a change just before it came.
    fn interest(&self, what: &str, spelling: &str) -> Interest {
        let recent = self.changed.get(what).is_some_and(|changed| self.now < changed + COALESCE);
        Interest { spelling: spelling.into(), owed: false, credit: usize::from(recent) }
    }

    fn watched(&self) -> BTreeSet<String> {
        let interests = self.subscribers.values().flat_map(|subscriber| subscriber.interests.keys());
        interests.filter(|what| what.contains("://")).cloned().collect()
    }

    /// Runs an operation, and checks the reported first and last watchers.
    fn apply(&mut self, op: Op) {
        let before = self.watched();
        let (came, left) = self.run(op);
        self.awake.extend(self.woken.take());
        let after = self.watched();
        let set = |uris: Vec<Arc<str>>| uris.iter().map(|uri| uri.to_string()).collect::<BTreeSet<_>>();
        assert_eq!(set(came), after.difference(&before).cloned().collect());
        assert_eq!(set(left), before.difference(&after).cloned().collect());
        assert_eq!(self.hub.counts().uris, after.len());
    }

    fn run(&mut self, op: Op) -> (Vec<Arc<str>>, Vec<Arc<str>>) {
        let mut came = Vec::new();
        let mut left = Vec::new();
        match op {
            Op::Subscribe(on, uri, spelling) => {
                let [canonical, _] = URIS[uri];
                came.extend(self.hub.subscribe(self.ids[on], canonical, URIS[uri][spelling]).unwrap());
                let interest = self.interest(canonical, URIS[uri][spelling]);
                if let Some(legacy) = self.subscribers.get_mut(&(on, None)) {
                    legacy.interests.entry(canonical.into()).or_insert(interest);
                }
            }
            Op::Unsubscribe(on, uri) => {
                left.extend(self.hub.unsubscribe(self.ids[on], URIS[uri][0]));
                let legacy = self.subscribers.get_mut(&(on, None));
                legacy.and_then(|legacy| legacy.interests.remove(URIS[uri][0]));
            }
            Op::Listen { on, id, lists, uris, principal } => {
                came = self.listen((on, Some(id)), ListKinds(lists), &uris, principal);
            }
            Op::Cancel(on, request) => {
                let key = (on, Some(request));
                let cancelled = self.hub.cancel(self.ids[on], id(IDS[request]).as_id());
                let known = self.subscribers.remove(&key).is_some() | self.ending.remove(&key);
                assert_eq!(cancelled.is_some(), known);
                left = cancelled.unwrap_or_default();
            }
            Op::Disconnect(on) => {
                left = self.hub.disconnect(self.ids[on]);
                self.subscribers.retain(|(connection, _), _| *connection != on);
                self.ending.retain(|(connection, _)| *connection != on);
                self.ids[on] = self.hub.connect();
                self.initialize(on);
            }
            Op::Revoke(principal) => {
                left = self.hub.revoke(PRINCIPALS[principal]);
                // Its sessions reconnect at once.
                self.ids.into_iter().for_each(|on| self.hub.readmit(on));
                let is_theirs = |(key, subscriber): &(&Key, &Subscriber)| {
                    key.1.is_some() && subscriber.principal == principal
                };
                let theirs: Vec<Key> =
                    self.subscribers.iter().filter(is_theirs).map(|(key, _)| *key).collect();
                self.subscribers.retain(|key, _| !theirs.contains(key));
                self.ending.extend(theirs);
            }
            op => self.change(op),
        }
        (came, left)
    }

    /// Operations that do not change the set of watches.
    fn change(&mut self, op: Op) {
        match op {
            Op::Ready(on) => {
                self.hub.ready(self.ids[on]);
                self.subscribers.get_mut(&(on, None)).into_iter().for_each(|legacy| legacy.held = false);
            }
            Op::Updated(uri) => {
                let under: &[&str] = if uri == 3 { &[URIS[2][0]] } else { &[] };
                self.hub.updated(URIS[uri][0], under, self.now);
                [URIS[uri][0]].iter().chain(under).for_each(|uri| self.changed(uri));
            }
            Op::UpdatedFor(principal, uri) => {
                let under: &[&str] = if uri == 3 { &[URIS[2][0]] } else { &[] };
                self.hub.updated_for(PRINCIPALS[principal], URIS[uri][0], under, self.now);
                [URIS[uri][0]].iter().chain(under).for_each(|uri| self.changed_for(principal, uri));
            }
            Op::ListChangedFor(principal, kinds) => {
                let kinds = ListKinds(kinds);
                self.hub.list_changed_for(PRINCIPALS[principal], kinds, self.now);
                let kinds = ListKinds::EACH.into_iter().filter(|kind| kinds.contains(*kind));
                kinds.for_each(|kind| self.changed_for(principal, kind.method()));
            }
            Op::ListChanged(kinds) => {
                self.hub.list_changed(ListKinds(kinds), self.now);
                let kinds = ListKinds::EACH.into_iter().filter(|kind| ListKinds(kinds).contains(*kind));
                kinds.for_each(|kind| self.changed(kind.method()));
            }
            Op::Advance(by) => {
                self.now += by;
                if self.hub.deadline().is_some_and(|deadline| deadline <= self.now) {
                    self.hub.tick(self.now);
                }
            }
            Op::Deliver(room) => self.deliver(room),
            _ => unreachable!("{op:?}"),
        }
    }

    fn listen(
        &mut self,
        key: Key,
        lists: ListKinds,
        uris: &[(usize, usize)],
        principal: usize,
    ) -> Vec<Arc<str>> {
        let pairs: Vec<_> =
            uris.iter().map(|(uri, spelling)| (URIS[*uri][0], URIS[*uri][*spelling])).collect();
        let on = self.ids[key.0];
        let request = id(IDS[key.1.unwrap_or_default()]);
        let filter = Filter { lists, uris: &pairs };
        let principal_of = Principal::new(PRINCIPALS[principal]);
        let waker = self.woken.waker(on);
        let result = self.hub.listen(on, request.as_id(), principal_of, filter, &waker);
        if self.subscribers.contains_key(&key) || self.ending.contains(&key) {
            assert_eq!(result, Err(ListenError::IdInUse));
            return Vec::new();
        }
        let mut subscriber = Subscriber { principal, ..Subscriber::default() };
        for (canonical, spelling) in pairs {
            let interest = self.interest(canonical, spelling);
            subscriber.interests.entry(canonical.into()).or_insert(interest);
        }
        for kind in ListKinds::EACH.into_iter().filter(|kind| lists.contains(*kind)) {
            subscriber.interests.insert(kind.method().into(), self.interest(kind.method(), ""));
        }
        self.subscribers.insert(key, subscriber);
        result.unwrap()
    }

    fn changed(&mut self, what: &str) {
        self.changed.insert(what.into(), self.now);
        for subscriber in self.subscribers.values_mut() {
            if let Some(interest) = subscriber.interests.get_mut(what) {
                interest.owed = true;
                interest.credit += 1;
            }
        }
    }

    fn changed_for(&mut self, principal: usize, what: &str) {
        for subscriber in self.subscribers.values_mut().filter(|one| one.principal == principal) {
            if let Some(interest) = subscriber.interests.get_mut(what) {
                interest.owed = true;
                interest.credit += 1;
            }
        }
    }

    /// Delivers once to each connection that was woken since it was last idle.
    fn deliver(&mut self, room: usize) {
        for (on, connection) in self.ids.into_iter().enumerate() {
            if !self.awake.contains(&connection) {
                continue;
            }
            let delivery =
                HubDelivery { room, server_info: Some("{}"), ending: ListenEnding::ResultThenCancelled };
            let mut out = Vec::new();
            let left = self.hub.deliver(connection, delivery, &mut out, &mut may_see);
            let text = String::from_utf8(out).unwrap();
            let messages: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            self.notified(on, &messages);
            if left == Delivered::More {
                assert!(room == 0 || !messages.is_empty(), "more, but nothing appended");
            } else {
                self.awake.remove(&connection);
            }
            assert!(room > 1 || messages.len() <= 2 * room, "one message oversteps at most, an end is two");
        }
    }

    // R-090: each message was subscribed to, uses the subscriber's spelling or id, and corresponds to a change.
    fn notified(&mut self, on: usize, messages: &[Value]) {
        let mut ended = None;
        for message in messages {
            if let Some(result) = message.get("result") {
                let answered = message["id"].to_string();
                let request = IDS.iter().position(|id| *id == answered);
                assert_eq!(result["_meta"][SUBSCRIPTION_ID], message["id"]);
                assert!(self.ending.remove(&(on, request)), "{message}");
                ended = Some(message["id"].clone());
                continue;
            }
            if let Some(ended) = ended.take() {
                assert_eq!(message["params"]["requestId"], ended, "R-097");
                continue;
            }
            let tag = message["params"]["_meta"].get(SUBSCRIPTION_ID).map(Value::to_string);
            let request = tag.map(|tag| IDS.iter().position(|id| *id == tag).unwrap());
            let subscriber = self.subscribers.get_mut(&(on, request)).expect("it asked");
            assert!(!subscriber.held, "R-038");
            let principal = Principal::new(PRINCIPALS[subscriber.principal]);
            let method = message["method"].as_str().unwrap();
            let interest = if method == "notifications/resources/updated" {
                let is_told = |(uri, interest): &(&String, &mut Interest)| {
                    json!(interest.spelling) == message["params"]["uri"] && may_see(&principal, uri)
                };
                subscriber.interests.iter_mut().find(is_told).expect("it asked, and may see").1
            } else {
                subscriber.interests.get_mut(method).expect("it asked")
            };
            assert!(interest.credit > 0, "told once too often: {message}");
            interest.credit -= 1;
            interest.owed = false;
        }
        assert_eq!(ended, None, "R-097");
    }

    fn drain(&mut self) {
        while !self.awake.is_empty() {
            let ids = self.ids;
            self.awake.retain(|id| ids.contains(id));
            self.apply(Op::Deliver(300));
        }
    }

    /// Every subscriber that may be notified has got a notification after its last change.
    fn assert_settled(&self) {
        assert!(self.ending.is_empty());
        for ((on, request), subscriber) in &self.subscribers {
            let principal = Principal::new(PRINCIPALS[subscriber.principal]);
            assert_eq!(
                request.is_some_and(|request| self.hub.listening(self.ids[*on], id(IDS[request]).as_id())),
                request.is_some()
            );
            for (what, interest) in &subscriber.interests {
                let is_due = interest.owed && !subscriber.held && may_see(&principal, what);
                assert!(!is_due, "{on} {request:?} was not told of {what}");
            }
        }
    }
}

proptest! {
    // R-038, R-081 to R-084, R-090 to R-097, DEC-15 to DEC-17: no notification without a subscription, at least one
    // after the last change, none after the end, and no table entry that outlives its users.
    #[test]
    fn agrees_with_the_model(ops in proptest::collection::vec(op(), 1..150)) {
        let mut world = World::new();
        ops.into_iter().for_each(|op| world.apply(op));
        world.apply(Op::Advance(COALESCE));
        world.drain();
        world.assert_settled();

        world.ids.into_iter().for_each(|on| world.hub.shutdown(on));
        world.awake.extend(world.woken.take());
        let open: Vec<Key> = world.subscribers.keys().filter(|(_, request)| request.is_some()).copied().collect();
        world.ending.extend(open);
        world.drain();
        prop_assert!(world.ending.is_empty());
        for connection in world.ids {
            world.hub.disconnect(connection);
        }
        prop_assert_eq!(world.hub.counts(), Counts::default());
    }
}
