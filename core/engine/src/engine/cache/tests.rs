//! The cache against a naive model over random histories, and its limits.

use super::*;
use crate::connection::{Contents, ReadResult};
use proptest::prelude::*;
use std::task::Wake;

#[derive(Clone, Debug)]
enum Step {
    Read {
        uri: usize,
        who: usize,
    },
    /// One of the flights ends.
    Land {
        which: usize,
        ttl: Millis,
        public: bool,
        fails: bool,
    },
    Purge {
        uri: usize,
    },
    PurgeAll,
    Pass {
        time: Millis,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..3_usize, 0..3_usize).prop_map(|(uri, who)| Step::Read { uri, who }),
        5 => (any::<usize>(), 0..60_u64, any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(which, ttl, public, fails)| Step::Land { which, ttl, public, fails }),
        1 => (0..3_usize).prop_map(|uri| Step::Purge { uri }),
        1 => Just(Step::PurgeAll),
        2 => (0..30_u64).prop_map(|time| Step::Pass { time }),
    ]
}

fn connection() -> ConnectionId {
    crate::hub::Hub::new(&Limits::default()).connect()
}

/// Routes a read and joins or starts its flight in one step.
fn begin(cache: &Arc<ReadCache>, uri: &str, authority: &str) -> Result<ReadLeader, Arc<ReadFlight>> {
    cache.begin(uri, authority, true, connection(), Waker::noop(), cache.epoch())
}

fn name(what: &str, number: usize) -> String {
    format!("{what}:{number}")
}

fn kept(ttl_ms: Millis, public: bool) -> Arc<EncodedContents> {
    let scope = if public { CacheScope::Public } else { CacheScope::Private };
    Arc::new(EncodedContents::from_result(
        &ReadResult::from(Contents::text("body")),
        None,
        CacheHint { ttl_ms, scope },
    ))
}

/// A flight, and how often its URI had been purged when it began.
struct Flying {
    lead: ReadLeader,
    uri: usize,
    who: usize,
    purges: usize,
}

#[derive(Default)]
struct Model {
    now: Millis,
    kept: HashMap<(usize, Option<usize>), (Arc<EncodedContents>, Millis)>,
    flying: Vec<Flying>,
    purges: [usize; 3],
}

impl Model {
    fn found(&self, uri: usize, who: usize) -> Option<&(Arc<EncodedContents>, Millis)> {
        let own = [Some(who), None].map(|authority| self.kept.get(&(uri, authority)));
        own.into_iter().flatten().find(|(_, until)| self.now < *until)
    }

    fn open(&self, uri: usize, who: usize) -> Option<&Flying> {
        let same =
            |flying: &&Flying| flying.uri == uri && flying.who == who && flying.purges == self.purges[uri];
        self.flying.iter().find(same)
    }

    fn play(&mut self, cache: &Arc<ReadCache>, step: &Step) -> Result<(), TestCaseError> {
        let now = Now { tick: self.now, unix: 0 };
        match *step {
            Step::Read { uri, who } => {
                let uri_name = name("uri", uri);
                let authority = name("who", who);
                let found = cache.get(&uri_name, &authority, now);
                if let Some((expected, until)) = self.found(uri, who) {
                    let (kept, hint) =
                        found.ok_or_else(|| TestCaseError::fail("what is kept is not found"))?;
                    prop_assert!(Arc::ptr_eq(&kept, expected));
                    prop_assert_eq!(hint.ttl_ms, until - self.now);
                    return Ok(());
                }
                prop_assert!(found.is_none());
                match (begin(cache, &uri_name, &authority), self.open(uri, who)) {
                    (Ok(lead), None) => {
                        let purges = self.purges[uri];
                        self.flying.push(Flying { lead, uri, who, purges });
                    }
                    (Err(flight), Some(open)) => prop_assert!(Arc::ptr_eq(&flight, open.lead.flight())),
                    (Ok(_), Some(_)) => prop_assert!(false, "a second call of the same"),
                    (Err(_), None) => prop_assert!(false, "nothing to wait for"),
                }
            }
            Step::Land { which, ttl, public, fails } if !self.flying.is_empty() => {
                let Flying { lead, uri, who, purges } = self.flying.remove(which % self.flying.len());
                let flight = lead.flight().clone();
                if fails {
                    drop(lead);
                } else {
                    let kept = kept(ttl, public);
                    if ttl > 0 && purges == self.purges[uri] {
                        let authority = (!public).then_some(who);
                        self.kept.insert((uri, authority), (kept.clone(), self.now + ttl));
                    }
                    lead.finish(FlightOutcome::Contents(kept), now);
                }
                prop_assert!(flight.finished().is_some());
            }
            Step::Land { .. } => {}
            Step::Purge { uri } => {
                cache.purge(&name("uri", uri));
                self.kept.retain(|(other, _), _| *other != uri);
                self.purges[uri] += 1;
            }
            Step::PurgeAll => {
                cache.purge_all();
                self.kept.clear();
                self.purges.iter_mut().for_each(|purges| *purges += 1);
            }
            Step::Pass { time } => self.now += time,
        }
        Ok(())
    }
}

proptest! {
    // every lookup agrees with a naive cache; nothing read before a purge is cached; only its own
    // principal gets a private result; concurrent reads of the same resource make one call.
    #[test]
    fn agrees_with_a_naive_model_r_219_r_220(steps in prop::collection::vec(step(), 1..120)) {
        let cache = ReadCache::new(&Limits::default());
        let mut model = Model::default();
        for step in &steps {
            model.play(&cache, step)?;
            prop_assert_eq!(cache.counts().entries, model.kept.len());
            prop_assert_eq!(cache.counts().bytes == 0, model.kept.is_empty());
        }
        model.flying.clear();
        cache.purge_all();
        prop_assert_eq!((cache.counts().entries, cache.counts().bytes), (0, 0));
        prop_assert!(cache.table().shelves.is_empty());
    }
}

fn put(cache: &Arc<ReadCache>, uri: &str) {
    let lead = begin(cache, uri, "").unwrap();
    lead.finish(FlightOutcome::Contents(kept(1_000, false)), Now::default());
}

#[test]
fn the_bounds_hold_and_what_is_used_stays() {
    let cache = ReadCache::new(&Limits { cache_entries: 3, ..Limits::default() });
    let has = |uri: &str| cache.get(uri, "", Now::default()).is_some();
    ["a", "b", "c"].iter().for_each(|uri| put(&cache, uri));
    assert!(has("a"));
    put(&cache, "d");
    assert!(has("a") && !has("b") && has("c") && has("d"));
    (0..1_000).for_each(|n| put(&cache, &format!("{n}")));
    assert_eq!(cache.counts().entries, 3);
    assert!(cache.table().queue.len() <= 3 * 2 + 65);

    let one = kept(1, false).size() + 2 * 2;
    let cache = ReadCache::new(&Limits { cache_bytes: one * 2, ..Limits::default() });
    (0..9).for_each(|n| put(&cache, &format!("{n}")));
    assert_eq!(cache.counts().entries, 2);
    let cache = ReadCache::new(&Limits { cache_bytes: one / 2, ..Limits::default() });
    put(&cache, "0");
    assert_eq!((cache.counts().entries, cache.counts().bytes), (0, 0));
}

/// Counts how often a connection is woken.
#[derive(Default)]
struct Count(AtomicU64);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A waiting connection is woken once, even if several of its reads wait, and with the waker it has when the flight
/// ends.
#[test]
fn waiting_connections_are_woken_once() {
    let cache = ReadCache::new(&Limits::default());
    let hub = crate::hub::Hub::new(&Limits::default());
    let counts: [Arc<Count>; 3] = Default::default();
    let wakers = counts.each_ref().map(|count| Waker::from(count.clone()));
    let woken = || counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
    let one = hub.connect();
    let other = hub.connect();
    let lead = begin(&cache, "a", "").unwrap();
    let join = |(id, waker)| cache.begin("a", "", true, id, waker, cache.epoch()).err().unwrap();
    let [flight, ..] = [(one, &wakers[0]), (one, &wakers[0]), (other, &wakers[1])].map(join);
    flight.wake_with(other, &wakers[2]);
    assert_eq!(woken(), [0; 3]);
    assert!(cache.has_waiters(&flight, Some(one)));
    lead.finish(FlightOutcome::Failed(ReadError::NotFound), Now::default());
    assert_eq!(woken(), [1, 0, 1]);
    flight.wake_with(other, &wakers[1]);
    assert_eq!(woken(), [1, 1, 1], "one that gives its waker late is woken at once");
    assert!(!cache.has_waiters(&flight, None));
    assert!(begin(&cache, "a", "").is_ok());
}

// a read routed before a purge that begins after it is neither cached nor shared.
#[test]
fn a_purge_between_routing_and_joining_is_not_missed() {
    let cache = ReadCache::new(&Limits::default());
    let epoch = cache.epoch();
    cache.purge("a");
    let old = cache.begin("a", "", true, connection(), Waker::noop(), epoch).unwrap();
    let new = begin(&cache, "a", "").unwrap();
    old.finish(FlightOutcome::Contents(kept(1_000, false)), Now::default());
    assert!(cache.get("a", "", Now::default()).is_none());
    let fresh = kept(1_000, false);
    new.finish(FlightOutcome::Contents(fresh.clone()), Now::default());
    assert!(Arc::ptr_eq(&cache.get("a", "", Now::default()).unwrap().0, &fresh));
}

// a request that joins a flight counts at once, so that cancelling the leader does not end the call.
#[test]
fn a_leader_that_leaves_after_it_was_found_goes_on() {
    let cache = ReadCache::new(&Limits::default());
    let hub = crate::hub::Hub::new(&Limits::default());
    let leader = hub.connect();
    let reader = hub.connect();
    let lead = cache.begin("a", "", true, leader, Waker::noop(), cache.epoch()).unwrap();
    let flight = cache.begin("a", "", true, reader, Waker::noop(), cache.epoch()).err().unwrap();
    assert!(cache.has_waiters(lead.flight(), Some(leader)));
    lead.finish(FlightOutcome::Contents(kept(1_000, false)), Now::default());
    assert!(matches!(flight.finished().unwrap().outcome, FlightOutcome::Contents(_)));
}

/// Unshared reads cost as little as others, however many of one URI are running.
#[test]
fn unshared_calls_of_one_uri_are_independent() {
    let cache = ReadCache::new(&Limits::default());
    let leads: Vec<ReadLeader> = (0..1_000)
        .map(|_| cache.begin("a", "", false, connection(), Waker::noop(), cache.epoch()).unwrap())
        .collect();
    assert_eq!(cache.table().shelves["a"].flights.len(), 1_000);
    assert!(cache.table().shelves["a"].open.is_empty());
    drop(leads);
    assert!(cache.table().shelves.is_empty());
}
