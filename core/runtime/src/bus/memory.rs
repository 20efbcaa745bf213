//! A bus inside one process, for tests of servers that share one.

use super::{
    Bus, BusEntries, BusError, BusFuture, BusReader, BusWriter, IDLE, RateCounter, RateStore, RateUse,
};
use crate::sync::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::MutexGuard;
use std::time::Instant;
use tokio::sync::Notify;

/// Maximum number of entries that are kept.
const ENTRIES: usize = 10_000;

/// A log in memory. Its clones are the same log.
#[derive(Clone, Debug, Default)]
pub struct MemoryBus(Arc<SharedLog>);

#[derive(Debug, Default)]
struct SharedLog {
    log: Mutex<MemoryLog>,
    appended: Notify,
}

#[derive(Debug, Default)]
struct MemoryLog {
    entries: VecDeque<Vec<u8>>,
    /// The number of entries that were removed from the front.
    removed: u64,
    faults: MemoryFaults,
    /// Changes with every cut: connections from before fail.
    cuts: u64,
    /// When each bucket of shared rates is full again, in nanoseconds since the first use.
    rates: HashMap<String, u64>,
    first_use: Option<Instant>,
}

/// The faults that a test makes in a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryFaults {
    /// Whether it cannot be reached.
    pub is_cut: bool,
    /// The number of next entries that are confirmed, and lost.
    pub drops: usize,
    /// Whether the next messages are appended, and their writer gets an error.
    pub doubts: bool,
}

impl MemoryBus {
    /// Sets what goes wrong from now on. A cut ends all connections.
    pub fn set_faults(&self, faults: MemoryFaults) {
        let mut log = self.log();
        log.cuts += u64::from(faults.is_cut);
        log.faults = faults;
        drop(log);
        self.0.appended.notify_waiters();
    }

    /// Removes all entries but the last `kept`.
    pub fn trim(&self, kept: usize) {
        self.log().trim(kept);
    }

    /// Appends an entry as a stranger would.
    pub fn put(&self, entry: impl Into<Vec<u8>>) {
        self.log().entries.push_back(entry.into());
        self.0.appended.notify_waiters();
    }

    /// The entries that are kept.
    pub fn entries(&self) -> Vec<Vec<u8>> {
        self.log().entries.iter().cloned().collect()
    }

    fn log(&self) -> MutexGuard<'_, MemoryLog> {
        self.0.log.lock()
    }
}

impl MemoryLog {
    fn trim(&mut self, kept: usize) {
        let gone = self.entries.len().saturating_sub(kept);
        self.entries.drain(..gone);
        self.removed += gone as u64;
    }

    fn end(&self) -> u64 {
        self.removed + self.entries.len() as u64
    }

    /// Whether a connection from this many cuts ago still works.
    fn check(&self, cuts: u64) -> Result<(), BusError> {
        match self.faults.is_cut || self.cuts != cuts {
            true => Err(BusError::new("the test has cut it")),
            false => Ok(()),
        }
    }
}

impl RateStore for MemoryBus {
    fn open_rates<'b>(&'b self, _topic: &'b str) -> BusFuture<'b, Box<dyn RateCounter>> {
        Box::pin(async {
            let log = self.log();
            log.check(log.cuts)?;
            Ok(Box::new(MemoryCounter { bus: self.clone(), cuts: log.cuts }) as Box<dyn RateCounter>)
        })
    }
}

struct MemoryCounter {
    bus: MemoryBus,
    cuts: u64,
}

impl RateCounter for MemoryCounter {
    fn add<'b>(&'b mut self, uses: &'b [RateUse]) -> BusFuture<'b, Vec<u64>> {
        Box::pin(async move {
            let mut log = self.bus.log();
            log.check(self.cuts)?;
            let start = *log.first_use.get_or_insert_with(Instant::now);
            let now = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
            // Full buckets are like new ones.
            log.rates.retain(|_, full| *full > now);
            let missing = uses.iter().map(|rate| {
                let full = log.rates.entry(rate.name.clone()).or_insert(now);
                *full = full.saturating_add(rate.used).min(now.saturating_add(rate.longest));
                *full - now
            });
            Ok(missing.collect())
        })
    }
}

impl Bus for MemoryBus {
    fn rates(&self) -> Option<&dyn RateStore> {
        Some(self)
    }

    fn name(&self) -> String {
        "memory:".into()
    }

    fn open<'b>(&'b self, _topic: &'b str) -> BusFuture<'b, Box<dyn BusWriter>> {
        Box::pin(async {
            let log = self.log();
            log.check(log.cuts)?;
            Ok(Box::new(MemoryWriter { bus: self.clone(), cuts: log.cuts }) as Box<dyn BusWriter>)
        })
    }

    fn follow<'b>(&'b self, _topic: &'b str, from: Option<&'b str>) -> BusFuture<'b, Box<dyn BusReader>> {
        Box::pin(async move {
            let log = self.log();
            log.check(log.cuts)?;
            let from = from.and_then(|from| from.parse::<u64>().ok());
            let next = from.unwrap_or(log.end()).max(log.removed);
            let has_gap = from.is_some_and(|from| from < log.removed);
            Ok(Box::new(MemoryReader { bus: self.clone(), cuts: log.cuts, next, has_gap })
                as Box<dyn BusReader>)
        })
    }
}

struct MemoryWriter {
    bus: MemoryBus,
    cuts: u64,
}

impl BusWriter for MemoryWriter {
    fn append<'b>(&'b mut self, messages: &'b [String]) -> BusFuture<'b, ()> {
        Box::pin(async move {
            let mut log = self.bus.log();
            log.check(self.cuts)?;
            for message in messages {
                match log.faults.drops {
                    0 => log.entries.push_back(message.clone().into_bytes()),
                    _ => log.faults.drops -= 1,
                }
            }
            log.trim(ENTRIES);
            let is_doubted = std::mem::take(&mut log.faults.doubts);
            drop(log);
            self.bus.0.appended.notify_waiters();
            if is_doubted { Err(BusError::new("the answer of the test is lost")) } else { Ok(()) }
        })
    }
}

struct MemoryReader {
    bus: MemoryBus,
    cuts: u64,
    next: u64,
    has_gap: bool,
}

impl BusReader for MemoryReader {
    fn has_gap(&self) -> bool {
        self.has_gap
    }

    fn position(&self) -> String {
        self.next.to_string()
    }

    fn next(&mut self) -> BusFuture<'_, BusEntries> {
        Box::pin(async {
            let appended = self.bus.0.appended.notified();
            tokio::pin!(appended);
            // Registered before the log is looked at, so that no entry in between is missed.
            appended.as_mut().enable();
            {
                let log = self.bus.log();
                log.check(self.cuts)?;
                if self.next < log.end() {
                    let has_gap = self.next < log.removed;
                    let skipped =
                        usize::try_from(self.next.saturating_sub(log.removed)).unwrap_or(usize::MAX);
                    self.next = log.end();
                    return Ok(BusEntries {
                        messages: log.entries.iter().skip(skipped).cloned().collect(),
                        has_gap,
                    });
                }
            }
            // An end without an entry is an answer too.
            let _ = tokio::time::timeout(IDLE, appended).await;
            self.bus.log().check(self.cuts)?;
            Ok(BusEntries::default())
        })
    }
}
