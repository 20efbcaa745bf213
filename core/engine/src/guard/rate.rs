//! Limits the request rate and the concurrency of each principal, with one bucket for each principal and
//! class of methods.
//!
//! Law: time is passed in. The tables are limited in size, and only full buckets are evicted, which are equivalent to
//! new ones, so a principal cannot gain by filling the tables. HTTP clients without a token are counted by their
//! network in a separate table, where they take no room from verified principals.

use super::shared_rate::SharedRates;
use crate::error::ReadError;
use crate::now::{Millis, Now};
use crate::principal::{Network, Principal};
use serde::Deserialize;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The classes of methods with their own rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateClass {
    /// `resources/read`.
    Read,
    /// `completion/complete`.
    Completion,
    /// The two lists.
    List,
    /// `resources/subscribe` and `subscriptions/listen`.
    Subscribe,
    /// Custom methods.
    Call,
}

const CLASSES: usize = 5;

impl RateClass {
    /// Its key in [`Rates`].
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Completion => "completion",
            Self::List => "list",
            Self::Subscribe => "subscribe",
            Self::Call => "call",
        }
    }
}

/// A request rate of one principal: `burst` requests at once, `per_second` on average.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with per_second and burst")]
pub struct Rate {
    /// Requests per second; more than 0.
    pub per_second: f64,
    /// Requests that may arrive at once; at least 1. Default: the requests of one second. Never less than those of one
    /// millisecond, the resolution of the clock.
    #[serde(default)]
    pub burst: Option<u32>,
}

impl Rate {
    /// The default rate of completions: 200 per second, 400 at once.
    pub const COMPLETION: Self = Self { per_second: 200.0, burst: Some(400) };

    fn is_sound(&self) -> bool {
        self.per_second.is_finite() && self.per_second > 0.0 && self.burst != Some(0)
    }
}

/// The rates of one principal, by class. Unset rates are unlimited, except for completions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    expecting = "an object with read, completion, list, subscribe, call or shared"
)]
pub struct Rates {
    /// Of `resources/read`. Default: none.
    pub read: Option<Rate>,
    /// Of `completion/complete`. Default: [`Rate::COMPLETION`].
    pub completion: Option<Rate>,
    /// Of the two lists. Default: none.
    pub list: Option<Rate>,
    /// Of `resources/subscribe` and `subscriptions/listen`. Default: none.
    pub subscribe: Option<Rate>,
    /// Of custom methods. Default: none.
    pub call: Option<Rate>,
    /// Whether the processes of a server count together; otherwise each counts for itself. Needs a bus on Redis. Default
    /// `false`.
    pub shared: bool,
}

impl Rates {
    fn in_order(&self) -> [(&'static str, Option<Rate>); CLASSES] {
        [
            ("rate.read", self.read),
            ("rate.completion", Some(self.completion.unwrap_or(Rate::COMPLETION))),
            ("rate.list", self.list),
            ("rate.subscribe", self.subscribe),
            ("rate.call", self.call),
        ]
    }

    /// The first field whose value is not a valid rate.
    pub(super) fn unsound(&self) -> Option<&'static str> {
        let wrong = |rate: &Option<Rate>| rate.is_some_and(|rate| !rate.is_sound());
        self.in_order().into_iter().find(|(_, rate)| wrong(rate)).map(|(field, _)| field)
    }
}

/// The rate limiter. `Send + Sync`; a class without a rate costs no lookup.
pub struct Limiter {
    gates: [Option<RateGate>; CLASSES],
    concurrency: Option<u32>,
    named: Buckets<Arc<str>>,
    anonymous: Buckets<Network>,
    /// The bus on which other processes hear of accepted requests.
    shared: Option<Arc<SharedRates>>,
}

/// The buckets of one kind of principal.
struct Buckets<K> {
    table: Mutex<RateTable<K>>,
    /// Maximum number of principals in the table.
    max: usize,
    /// Shared by principals for which the table had no room, and by clients without an address.
    overflow: Arc<RateBucket>,
}

/// Counts a pending request of a principal until it is dropped.
pub struct Permit(Arc<RateBucket>);

/// The generic cell rate algorithm: the state of a bucket is the time at which it will be full again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateGate {
    /// The time that refills one request, in nanoseconds.
    pub(super) interval: u64,
    /// The longest time to a full bucket at which a request is still accepted, in nanoseconds.
    pub(super) tolerance: u64,
}

#[derive(Default)]
pub(super) struct RateBucket {
    /// For each class: the time at which it is full again, in nanoseconds of [`Now::tick`].
    pub(super) full: [AtomicU64; CLASSES],
    /// For each class: accepted requests that no [`UsedRate`](super::UsedRate) has taken.
    pub(super) unshared: [AtomicU32; CLASSES],
    running: AtomicU32,
}

struct RateTable<K> {
    by_id: HashMap<K, usize>,
    slots: Vec<(K, Arc<RateBucket>)>,
    /// The position at which the search for a full bucket continues.
    hand: usize,
}

/// Maximum number of buckets examined to make room for a principal.
const LOOKED_AT: usize = 16;

/// The `retry_after` of a principal with too many concurrent requests: when a handler will return is unknown.
const SOON: Millis = 1_000;

impl Limiter {
    /// A limiter with `rates`, and up to `concurrency` pending requests, for each of `max` principals and each of `max`
    /// networks of anonymous clients.
    pub fn new(rates: &Rates, concurrency: Option<u32>, max: usize) -> Self {
        Self {
            gates: rates.in_order().map(|(_, rate)| rate.map(RateGate::new)),
            concurrency,
            named: Buckets::new(max),
            anonymous: Buckets::new(max),
            shared: None,
        }
    }

    /// The same limiter; what it accepts is counted by all processes together.
    #[must_use]
    pub(super) fn shared_by(self, rates: Arc<SharedRates>) -> Self {
        Self { shared: Some(rates), ..self }
    }

    /// Counts one request. O(1) for every principal.
    ///
    /// # Errors
    /// [`ReadError::RateLimited`], with the time until it would be accepted.
    pub fn take(&self, class: RateClass, principal: &Principal, now: Now) -> Result<(), ReadError> {
        let Some(gate) = self.gates[class as usize] else { return Ok(()) };
        let bucket = self.bucket(principal, now);
        gate.take(&bucket.full[class as usize], nanos(now))
            .map_err(|wait| ReadError::RateLimited { retry_after: wait.div_ceil(NANOS).max(1) })?;
        if let Some(shared) = &self.shared
            && self.is_shared(principal, &bucket)
        {
            shared.count(principal, class, gate, bucket);
        }
        Ok(())
    }

    /// Counts a pending request until the permit is dropped. `None` without a limit.
    ///
    /// # Errors
    /// [`ReadError::RateLimited`].
    pub fn enter(&self, principal: &Principal, now: Now) -> Result<Option<Permit>, ReadError> {
        let Some(max) = self.concurrency else { return Ok(None) };
        let bucket = self.bucket(principal, now);
        let one_more = |running: u32| running.checked_add(1).filter(|running| *running <= max);
        match bucket.running.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more) {
            Ok(_) => Ok(Some(Permit(bucket))),
            Err(_) => Err(ReadError::RateLimited { retry_after: SOON }),
        }
    }

    /// Whether it limits nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.concurrency.is_none() && self.gates.iter().all(Option::is_none)
    }

    /// The number of known principals and networks: for metrics and leak tests.
    pub fn principals(&self) -> usize {
        self.named.lock().slots.len() + self.anonymous.lock().slots.len()
    }

    /// Whether a bucket belongs to one principal, which other processes know too.
    fn is_shared(&self, principal: &Principal, bucket: &Arc<RateBucket>) -> bool {
        let overflows = [&self.named.overflow, &self.anonymous.overflow];
        !principal.is_local() && overflows.into_iter().all(|overflow| !Arc::ptr_eq(bucket, overflow))
    }

    fn bucket(&self, principal: &Principal, now: Now) -> Arc<RateBucket> {
        match principal.network() {
            Some(network) => self.anonymous.bucket(&network, || network, now),
            None if principal.is_anonymous() => self.anonymous.overflow.clone(),
            None => self.named.bucket(principal.id(), || principal.id().into(), now),
        }
    }
}

impl<K: Eq + Hash + Clone> Buckets<K> {
    fn new(max: usize) -> Self {
        let table = RateTable { by_id: HashMap::new(), slots: Vec::new(), hand: 0 };
        Self { table: Mutex::new(table), max: max.max(1), overflow: Arc::default() }
    }

    fn bucket<Q>(&self, id: &Q, own: impl FnOnce() -> K, now: Now) -> Arc<RateBucket>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let found = self.lock().bucket(id, own, self.max, nanos(now));
        found.unwrap_or_else(|| self.overflow.clone())
    }

    fn lock(&self) -> MutexGuard<'_, RateTable<K>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash + Clone> RateTable<K> {
    /// The bucket of a principal; `None` if it is new and the table has no room.
    fn bucket<Q>(&mut self, id: &Q, own: impl FnOnce() -> K, max: usize, now: u64) -> Option<Arc<RateBucket>>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        if let Some(index) = self.by_id.get(id) {
            return self.slots.get(*index).map(|(_, bucket)| bucket.clone());
        }
        let index = if self.slots.len() < max { self.slots.len() } else { self.room(now)? };
        let id = own();
        let bucket = Arc::<RateBucket>::default();
        let slot = (id.clone(), bucket.clone());
        match self.slots.get_mut(index) {
            Some(place) => {
                let (before, _) = std::mem::replace(place, slot);
                self.by_id.remove(before.borrow());
            }
            None => self.slots.push(slot),
        }
        self.by_id.insert(id, index);
        Some(bucket)
    }

    /// Finds a slot with a full bucket, which can be reused.
    fn room(&mut self, now: u64) -> Option<usize> {
        for _ in 0..LOOKED_AT.min(self.slots.len()) {
            let index = self.hand;
            self.hand = (index + 1) % self.slots.len();
            if self.slots[index].1.is_new(now) && Arc::strong_count(&self.slots[index].1) == 1 {
                return Some(index);
            }
        }
        None
    }
}

impl RateBucket {
    fn is_new(&self, now: u64) -> bool {
        self.running.load(Ordering::Acquire) == 0
            && self.full.iter().all(|full| full.load(Ordering::Acquire) <= now)
    }
}

const NANOS: u64 = 1_000_000;

pub(super) fn nanos(now: Now) -> u64 {
    now.tick.saturating_mul(NANOS)
}

impl RateGate {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float is cut to what an integer holds, and a sound rate is above 0"
    )]
    fn new(rate: Rate) -> Self {
        let interval = ((1e9 / rate.per_second) as u64).clamp(1, u64::MAX / 4);
        let in_a_second = rate.per_second.ceil() as u32;
        let in_a_tick = (rate.per_second / 1_000.0).ceil() as u32;
        let burst = rate.burst.unwrap_or(in_a_second).max(in_a_tick).max(1);
        Self { interval, tolerance: interval.saturating_mul(u64::from(burst - 1)).min(u64::MAX / 4) }
    }

    /// Takes one request from the bucket. `Err` with the time in nanoseconds until that is possible.
    fn take(self, full: &AtomicU64, now: u64) -> Result<(), u64> {
        let mut seen = full.load(Ordering::Acquire);
        loop {
            let missing = seen.saturating_sub(now);
            if missing > self.tolerance {
                return Err(missing - self.tolerance);
            }
            let then = now.saturating_add(missing).saturating_add(self.interval);
            match full.compare_exchange_weak(seen, then, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(()),
                Err(other) => seen = other,
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("gates", &self.gates).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn at(tick: Millis) -> Now {
        Now { tick, unix: 0 }
    }

    fn reads(per_second: f64, burst: u32) -> Rates {
        Rates { read: Some(Rate { per_second, burst: Some(burst) }), ..Rates::default() }
    }

    fn wait(taken: Result<(), ReadError>) -> Option<Millis> {
        match taken {
            Err(ReadError::RateLimited { retry_after }) => Some(retry_after),
            _ => None,
        }
    }

    // a burst first, then the rate; after the reported wait the next request is accepted.
    #[test]
    fn a_burst_then_the_rate_r_211() {
        let limiter = Limiter::new(&reads(2.0, 3), None, 10);
        let one = Principal::new("one");
        let take = |tick| limiter.take(RateClass::Read, &one, at(tick));
        assert!((0..3).all(|_| take(1_000).is_ok()));
        assert_eq!(wait(take(1_000)), Some(500));
        assert_eq!(wait(take(1_499)), Some(1));
        assert!(take(1_500).is_ok());
        assert_eq!(wait(take(1_500)), Some(500));
        assert!((0..3).all(|_| take(60_000).is_ok()));
        assert!(take(60_000).is_err());
    }

    // other principals and other classes are not affected.
    #[test]
    fn buckets_are_apart_r_211() {
        let limiter = Limiter::new(&reads(1.0, 1), None, 10);
        let one = Principal::new("one");
        let two = Principal::new("two");
        assert!(limiter.take(RateClass::Read, &one, at(0)).is_ok());
        assert!(limiter.take(RateClass::Read, &one, at(0)).is_err());
        assert!(limiter.take(RateClass::Read, &two, at(0)).is_ok());
        assert!((0..1_000).all(|_| limiter.take(RateClass::List, &one, at(0)).is_ok()));
    }

    // anonymous clients are counted by their network, and take no bucket from a verified principal.
    #[test]
    fn anonymous_clients_are_apart_by_their_network_r_211() {
        let limiter = Limiter::new(&reads(0.001, 1), None, 4);
        let client = |number: u8| Principal::anonymous(Some(IpAddr::from([192, 0, 2, number])));
        let take = |who: &Principal| limiter.take(RateClass::Read, who, at(5)).is_ok();
        assert!(take(&client(1)) && !take(&client(1)) && take(&client(2)));
        // The local process is not anonymous.
        assert!(take(&Principal::local()));
        // Further networks share one bucket with clients whose runtime gives no address.
        assert!(take(&client(3)) && take(&client(4)) && take(&client(5)) && !take(&client(6)));
        assert!(!take(&Principal::anonymous(None)));
        assert!(take(&Principal::new("ada")) && take(&Principal::new("bob")));
    }

    // a burst of 1,000 completions is limited even without configuration.
    #[test]
    fn completions_have_a_rate_of_their_own_r_112() {
        let limiter = Limiter::new(&Rates::default(), None, 10);
        let one = Principal::local();
        let taken = (0..1_000).filter(|_| limiter.take(RateClass::Completion, &one, at(5)).is_ok());
        assert_eq!(taken.count(), 400);
    }

    /// A principal with an emptied bucket keeps it, however many others arrive; those share one bucket in the end.
    #[test]
    fn a_principal_gains_nothing_by_eviction() {
        let limiter = Limiter::new(&reads(1.0, 2), None, 4);
        let greedy = Principal::new("greedy");
        assert!((0..2).all(|_| limiter.take(RateClass::Read, &greedy, at(0)).is_ok()));
        let strangers: Vec<_> = (0..100)
            .filter(|n| limiter.take(RateClass::Read, &Principal::new(format!("{n}")), at(0)).is_ok())
            .collect();
        assert_eq!(strangers.len(), 3 + 2);
        assert!(limiter.take(RateClass::Read, &greedy, at(0)).is_err());
        assert_eq!(limiter.principals(), 4);
        assert!(limiter.take(RateClass::Read, &Principal::new("late"), at(10_000)).is_ok());
        assert_eq!(limiter.principals(), 4);
    }

    #[test]
    fn what_waits_counts_until_it_is_dropped() {
        let limiter = Limiter::new(&Rates::default(), Some(2), 1);
        let one = Principal::new("one");
        let first = limiter.enter(&one, at(0)).unwrap();
        let _second = limiter.enter(&one, at(0)).unwrap();
        assert_eq!(limiter.enter(&one, at(0)).err(), Some(ReadError::RateLimited { retry_after: SOON }));
        // The table has no room for another principal while this one has a pending request: the other gets the common
        // bucket.
        assert!(limiter.enter(&Principal::new("two"), at(0)).is_ok());
        assert!(limiter.enter(&one, at(0)).is_err());
        drop(first);
        assert!(limiter.enter(&one, at(0)).is_ok());
    }

    #[test]
    fn rates_that_are_none_are_named() {
        assert_eq!(reads(0.0, 1).unsound(), Some("rate.read"));
        assert_eq!(reads(f64::NAN, 1).unsound(), Some("rate.read"));
        assert_eq!(reads(1.0, 0).unsound(), Some("rate.read"));
        assert_eq!(reads(1e12, 1).unsound(), None);
    }

    proptest! {
        /// Compared with a bucket counted in fractions: it never accepts more, and at most one request less.
        #[test]
        fn agrees_with_a_bucket_of_drops(
            rate in 1_u32..2_000, burst in 1_u32..50, steps in prop::collection::vec(0_u64..40, 1..200)
        ) {
            let burst = burst.max(rate.div_ceil(1_000));
            let limiter = Limiter::new(&reads(f64::from(rate), burst), None, 1);
            let one = Principal::local();
            let mut tick = 0;
            let mut drops = f64::from(burst);
            for step in steps {
                tick += step;
                drops = (drops + step as f64 * f64::from(rate) / 1_000.0).min(f64::from(burst));
                let taken = limiter.take(RateClass::Read, &one, at(tick)).is_ok();
                if drops >= 1.001 { prop_assert!(taken) }
                if drops < 0.999 { prop_assert!(!taken) }
                if taken { drops -= 1.0 }
            }
        }
    }
}
