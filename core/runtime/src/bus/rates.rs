//! Rates that all processes of a server share: each reports what it has accepted, and hears how much all have.
//!
//! ```text
//!   Limiter ── UsedRate ──▶ RateQueue ──▶ RateCounter: a bucket for each principal ──▶ UsedRate::settle
//!              never waits                at most every 5 ms, all buckets at once
//! ```
//!
//! Law: no request waits for the store. While it cannot be used, nothing is reported and each process counts for itself.

use super::log::RateLog;
use super::task::{LONGEST_PAUSE, PATIENCE, within};
use super::{Bus, BusError, BusFuture};
use crate::sync::Mutex;
use crate::transport::EngineClock;
use mcp_resources_engine::client::Backoff;
use mcp_resources_engine::guard::{RateNames, UsedRate};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// For this time uses are gathered, so that a busy process asks at most 200 times a second.
const GATHERED: Duration = Duration::from_millis(5);
/// Maximum number of uses that are reported at once.
const BATCH: usize = 256;

/// A store of rates for all processes of a server. Its functions are called on a thread of the server, inside a tokio
/// runtime.
pub trait RateStore: Send + Sync {
    /// Connects to the rates of `topic`, the name of a server.
    fn open_rates<'b>(&'b self, topic: &'b str) -> BusFuture<'b, Box<dyn RateCounter>>;
}

/// A connection to a store of rates.
pub trait RateCounter: Send {
    /// Adds uses to their buckets, and returns for each the time until its bucket is full again, in nanoseconds.
    fn add<'b>(&'b mut self, uses: &'b [RateUse]) -> BusFuture<'b, Vec<u64>>;
}

/// The use of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateUse {
    /// The name of the bucket: hexadecimal digits.
    pub name: String,
    /// The time that refills what was used, in nanoseconds.
    pub used: u64,
    /// The longest time to a full bucket that is kept, in nanoseconds.
    pub longest: u64,
}

/// Uses that are not reported yet: at most one for each bucket of the process.
#[derive(Debug, Default)]
pub(super) struct RateQueue {
    waiting: Mutex<Vec<UsedRate>>,
    /// Whether the store cannot be used, so that nothing waits.
    is_closed: AtomicBool,
    filled: Notify,
}

/// The parts that the loop of the rates uses.
pub(super) struct RateTask {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) clock: Arc<EngineClock>,
    pub(super) topic: String,
    pub(super) names: RateNames,
    pub(super) queue: Arc<RateQueue>,
    pub(super) log: Arc<RateLog>,
    /// Makes the pauses of this process differ from others.
    pub(super) seed: u64,
}

impl RateQueue {
    pub(super) fn push(&self, used: UsedRate) {
        if self.is_closed.load(Ordering::Acquire) {
            return;
        }
        let is_first = {
            let mut waiting = self.waiting.lock();
            waiting.push(used);
            waiting.len() == 1
        };
        if is_first {
            self.filled.notify_one();
        }
    }

    fn take(&self) -> Vec<UsedRate> {
        let mut waiting = self.waiting.lock();
        let kept = waiting.len().saturating_sub(BATCH);
        waiting.split_off(kept)
    }

    /// From now on nothing waits: each process counts for itself.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let dropped = std::mem::take(&mut *self.waiting.lock());
        drop(dropped);
    }

    /// Gives up what a parent process has left here, unless a thread of the parent holds it.
    pub(super) fn abandon(&self) {
        if let Some(mut waiting) = self.waiting.try_lock() {
            waiting.clear();
        }
    }

    fn open(&self) {
        self.is_closed.store(false, Ordering::Release);
    }
}

impl RateTask {
    /// Runs until it is dropped; returns if the bus has no store of rates.
    pub(super) async fn run(&self) {
        let Some(store) = self.bus.rates() else { return };
        let mut pauses = Backoff::new(LONGEST_PAUSE, self.seed);
        // Without shared rates there is no connection.
        self.queue.filled.notified().await;
        loop {
            let reason = match within(PATIENCE, store.open_rates(&self.topic)).await {
                Ok(mut counter) => {
                    self.queue.open();
                    self.count(&mut *counter, &mut pauses).await
                }
                Err(reason) => reason,
            };
            self.queue.close();
            self.log.failed(&reason);
            tokio::time::sleep(Duration::from_millis(pauses.next(false))).await;
        }
    }

    /// Reports what was used, until the connection fails.
    async fn count(&self, counter: &mut dyn RateCounter, pauses: &mut Backoff) -> BusError {
        loop {
            let mut taken = self.queue.take();
            if taken.is_empty() {
                self.queue.filled.notified().await;
                tokio::time::sleep(GATHERED).await;
                continue;
            }
            let uses: Vec<RateUse> = taken.iter_mut().map(|used| self.read(used)).collect();
            match within(PATIENCE, counter.add(&uses)).await {
                Ok(missing) => {
                    let now = self.clock.now();
                    taken.iter().zip(missing).for_each(|(used, missing)| used.settle(missing, now));
                }
                Err(reason) => return reason,
            }
            self.log.works();
            pauses.reset();
        }
    }

    fn read(&self, used: &mut UsedRate) -> RateUse {
        let amount = u64::from(used.take_amount());
        RateUse {
            name: used.name(&self.names),
            used: amount.saturating_mul(used.interval()).min(used.longest()),
            longest: used.longest(),
        }
    }
}
