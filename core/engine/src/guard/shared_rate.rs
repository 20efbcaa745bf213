//! Rates that all processes of a server share.
//!
//! ```text
//!   Limiter::take ──▶ the bucket of this process decides ──▶ RateSink: it was used so often ──▶ a store of all processes
//!                     the bucket of this process  ◀── UsedRate::settle: how much of it all have used ◀──┘
//! ```
//!
//! Law: a request is decided by the bucket of its own process, so no request waits for another process. What all have used is
//! known a little later, and what a principal got too much delays its next requests. The local process and principals without a
//! bucket of their own are counted in each process.

use super::rate::{RateBucket, RateClass, RateGate, nanos};
use crate::now::Now;
use crate::principal::Principal;
use crate::seal::SealKey;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use std::fmt::{self, Write as _};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// Receives what is used of shared rates: see [`Engine::share_rates`](crate::engine::Engine::share_rates).
pub trait RateSink: Send + Sync {
    /// Takes the use of a bucket. Called where a request is counted, so it must not block. There is at most one for each
    /// bucket whose amount was not taken.
    fn used(&self, used: UsedRate);
}

/// The sink of an engine.
#[derive(Default)]
pub(crate) struct SharedRates(OnceLock<Arc<dyn RateSink>>);

/// The use of a principal's bucket that the other processes do not know yet.
pub struct UsedRate {
    bucket: Arc<RateBucket>,
    class: RateClass,
    gate: RateGate,
    subject: RateSubject,
    is_taken: bool,
}

/// A principal whose requests are counted by all processes together.
#[derive(Debug)]
enum RateSubject {
    Named(Box<str>),
    Network(u64),
}

/// Names buckets so that only processes with the same key know their principals.
#[derive(Clone)]
pub struct RateNames(Hmac<Sha256>);

/// Maximum number of full buckets that a principal may owe: those of this many processes. A store cannot make it wait longer.
const DEBT: u64 = 64;

/// The length of a name in bytes, before it is written in digits.
const NAME: usize = 16;

impl SharedRates {
    /// `false` if there was a sink.
    pub(crate) fn set(&self, sink: Arc<dyn RateSink>) -> bool {
        self.0.set(sink).is_ok()
    }

    /// Counts a request that was accepted.
    pub(super) fn count(
        &self,
        principal: &Principal,
        class: RateClass,
        gate: RateGate,
        bucket: Arc<RateBucket>,
    ) {
        let Some(sink) = self.0.get() else { return };
        if bucket.unshared[class as usize].fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let subject = match principal.network() {
            Some(network) => RateSubject::Network(network.bits()),
            None => RateSubject::Named(principal.id().into()),
        };
        sink.used(UsedRate { bucket, class, gate, subject, is_taken: false });
    }
}

impl UsedRate {
    /// The number of requests that were accepted since the last use of this bucket was taken. Further ones belong to the
    /// next use.
    pub fn take_amount(&mut self) -> u32 {
        self.is_taken = true;
        self.bucket.unshared[self.class as usize].swap(0, Ordering::AcqRel)
    }

    /// The name of the bucket in a store of all processes.
    pub fn name(&self, names: &RateNames) -> String {
        let mut mac = names.0.clone();
        mac.update(self.class.name().as_bytes());
        match &self.subject {
            RateSubject::Named(id) => {
                mac.update(&[0]);
                mac.update(id.as_bytes());
            }
            RateSubject::Network(bits) => {
                mac.update(&[1]);
                mac.update(&bits.to_be_bytes());
            }
        }
        hexadecimal(mac.finalize().into_bytes().into_iter().take(NAME))
    }

    /// The time that refills one request, in nanoseconds.
    pub fn interval(&self) -> u64 {
        self.gate.interval
    }

    /// The longest time to a full bucket that a store may keep, in nanoseconds.
    pub fn longest(&self) -> u64 {
        self.gate.tolerance.saturating_add(self.gate.interval).saturating_mul(DEBT).min(u64::MAX / 4)
    }

    /// Takes over what all processes have used together: with the amount of this use, the bucket is full again in `missing`
    /// nanoseconds.
    pub fn settle(&self, missing: u64, now: Now) {
        let since = u64::from(self.bucket.unshared[self.class as usize].load(Ordering::Acquire));
        let own = since.saturating_mul(self.gate.interval);
        let full = nanos(now).saturating_add(missing.min(self.longest())).saturating_add(own);
        self.bucket.full[self.class as usize].fetch_max(full, Ordering::AcqRel);
    }
}

impl Drop for UsedRate {
    fn drop(&mut self) {
        if !self.is_taken {
            // It is not reported, so the next request begins anew.
            self.take_amount();
        }
    }
}

impl RateNames {
    /// Names for the processes of `server` that have `key` as their first one.
    pub fn new(key: &SealKey, server: &str) -> Self {
        let mut mac = key.mac("rates");
        mac.update(&(server.len() as u64).to_be_bytes());
        mac.update(server.as_bytes());
        Self(mac)
    }
}

fn hexadecimal(bytes: impl Iterator<Item = u8>) -> String {
    let mut text = String::with_capacity(2 * NAME);
    for byte in bytes {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

impl fmt::Debug for SharedRates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedRates").field(&self.0.get().is_some()).finish()
    }
}

impl fmt::Debug for RateNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateNames(..)")
    }
}

impl fmt::Debug for UsedRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UsedRate").field("class", &self.class).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rate::{Limiter, Rate, Rates};
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;
    use std::net::IpAddr;
    use std::sync::Mutex;

    /// A process of a server: its limiter, and what it has not reported.
    struct Process {
        limiter: Limiter,
        uses: Arc<TakenUses>,
    }

    #[derive(Default)]
    struct TakenUses(Mutex<Vec<UsedRate>>);

    impl RateSink for TakenUses {
        fn used(&self, used: UsedRate) {
            self.0.lock().unwrap().push(used);
        }
    }

    /// The use of all processes, by bucket.
    #[derive(Default)]
    struct Store(HashMap<String, u64>);

    fn names(secret: &str, server: &str) -> RateNames {
        RateNames::new(&SealKey::from_secret(secret.as_bytes()).unwrap(), server)
    }

    fn ours() -> RateNames {
        names("a secret of sixteen", "notes")
    }

    fn at(tick: u64) -> Now {
        Now { tick, unix: 0 }
    }

    impl Process {
        fn new(per_second: f64, burst: u32, max: usize) -> Self {
            let rate = Some(Rate { per_second, burst: Some(burst) });
            let rates = Rates { read: rate, list: rate, shared: true, ..Rates::default() };
            let shared = Arc::<SharedRates>::default();
            let uses = Arc::<TakenUses>::default();
            assert!(shared.set(uses.clone()));
            Self { limiter: Limiter::new(&rates, None, max).shared_by(shared), uses }
        }

        fn take(&self, principal: &Principal, tick: u64) -> bool {
            self.limiter.take(RateClass::Read, principal, at(tick)).is_ok()
        }

        fn uses(&self) -> Vec<UsedRate> {
            std::mem::take(&mut *self.uses.0.lock().unwrap())
        }

        fn report(&self, store: &mut Store, tick: u64) {
            for mut used in self.uses() {
                let amount = u64::from(used.take_amount()) * used.interval();
                let full = store.0.entry(used.name(&ours())).or_default();
                *full = (*full).max(nanos(at(tick))) + amount;
                used.settle(*full - nanos(at(tick)), at(tick));
            }
        }
    }

    #[test]
    fn processes_that_report_share_one_bucket() {
        let (first, second) = (Process::new(1.0, 4, 10), Process::new(1.0, 4, 10));
        let mut store = Store::default();
        let ada = Principal::new("ada");
        let accepted = (0..20).filter(|number| {
            let process = if number % 2 == 0 { &first } else { &second };
            let is_accepted = process.take(&ada, 1_000);
            process.report(&mut store, 1_000);
            is_accepted
        });
        assert_eq!(
            accepted.count(),
            5,
            "one more, because the second process hears of the first with its own first report"
        );
        assert!(first.take(&Principal::new("bob"), 1_000));
        // What was too much is paid back: the next request waits for it.
        assert!(!first.take(&ada, 2_000) && first.take(&ada, 3_000));
    }

    #[test]
    fn without_a_store_each_process_counts_for_itself() {
        let process = Process::new(1.0, 2, 10);
        let ada = Principal::new("ada");
        assert!(process.take(&ada, 0) && process.take(&ada, 0) && !process.take(&ada, 0));
        assert_eq!(process.uses().len(), 1, "one for both requests");
        // Its drop ends it: the next request is a new one.
        assert!(process.take(&ada, 1_000));
        assert_eq!(process.uses().remove(0).take_amount(), 1);
    }

    /// A store that lies, or whose clock jumps, delays a principal by a limited time.
    #[test]
    fn a_wait_has_a_limit() {
        let process = Process::new(10.0, 5, 10);
        let ada = Principal::new("ada");
        assert!(process.take(&ada, 0));
        let mut used = process.uses().remove(0);
        assert_eq!(used.take_amount(), 1);
        used.settle(u64::MAX, at(0));
        // 64 times five tenths of a second, without the last bucket.
        assert!(!process.take(&ada, 31_000) && process.take(&ada, 32_000));
        used.settle(0, at(32_000));
        assert!(process.take(&ada, 40_000));
    }

    /// The local process is another one in each process, and a common bucket has no principal.
    #[test]
    fn only_principals_with_a_bucket_of_their_own_are_shared() {
        let process = Process::new(1.0, 9, 1);
        assert!(process.take(&Principal::local(), 0) && process.take(&Principal::anonymous(None), 0));
        assert!(process.uses().is_empty());
        let process = Process::new(1.0, 9, 1);
        assert!(process.take(&Principal::new("ada"), 0) && process.take(&Principal::new("bob"), 0));
        assert!(process.take(&Principal::anonymous(Some(IpAddr::from([192, 0, 2, 1]))), 0));
        assert!(process.take(&Principal::anonymous(Some(IpAddr::from([192, 0, 2, 2]))), 0));
        assert_eq!(process.uses().len(), 2);
    }

    #[test]
    fn names_tell_nothing_and_differ() {
        let process = Process::new(1.0, 9, 10);
        let address = IpAddr::from([0, 0, 0, 1]);
        for principal in [Principal::new("ada"), Principal::new("bob"), Principal::anonymous(Some(address))] {
            assert!(process.take(&principal, 0));
        }
        process.limiter.take(RateClass::List, &Principal::new("ada"), at(0)).unwrap();
        let uses = process.uses();
        let mut found: Vec<String> = uses.iter().map(|used| used.name(&ours())).collect();
        found.push(uses[0].name(&names("a secret of sixteen", "shop")));
        found.push(uses[0].name(&names("another secret of ours", "notes")));
        assert!(found.iter().all(|name| name.len() == 32 && !name.contains("ada")));
        assert_eq!(uses[0].name(&ours()), found[0]);
        let distinct: std::collections::HashSet<_> = found.iter().collect();
        assert_eq!(distinct.len(), found.len());
    }

    proptest! {
        /// Reports some milliseconds later: all processes together accept at most a bucket each, and then what the rate
        /// allows.
        #[test]
        fn what_was_too_much_is_paid_back(
            rate in 1_u32..200, burst in 1_u32..20, steps in prop::collection::vec((0_u64..4, 0_usize..3), 1..1_000)
        ) {
            let processes: Vec<_> = (0..3).map(|_| Process::new(f64::from(rate), burst, 10)).collect();
            let mut store = Store::default();
            let ada = Principal::new("ada");
            let (mut tick, mut reported, mut accepted) = (0, 0, 0.0);
            for (step, process) in steps {
                tick += step;
                if tick >= reported + 5 {
                    reported = tick;
                    processes.iter().for_each(|process| process.report(&mut store, tick));
                }
                if processes[process].take(&ada, tick) {
                    accepted += 1.0;
                }
                let most = 3.0 * f64::from(burst) + tick as f64 * f64::from(rate) / 1_000.0;
                prop_assert!(accepted <= most + 6.0, "{accepted} of {most}");
            }
        }

        /// Reports after each request: together they accept at most one more for each process than one bucket does.
        #[test]
        fn together_they_are_one_bucket(
            rate in 1_u32..200, burst in 1_u32..20, steps in prop::collection::vec((0_u64..50, 0_usize..3), 1..400)
        ) {
            let processes: Vec<_> = (0..3).map(|_| Process::new(f64::from(rate), burst, 10)).collect();
            let mut store = Store::default();
            let ada = Principal::new("ada");
            let (mut tick, mut accepted) = (0, 0.0);
            for (step, process) in steps {
                tick += step;
                if processes[process].take(&ada, tick) {
                    accepted += 1.0;
                }
                processes[process].report(&mut store, tick);
                let most = f64::from(burst) + tick as f64 * f64::from(rate) / 1_000.0;
                prop_assert!(accepted <= most + 3.0, "{accepted} of {most}");
            }
        }
    }
}
