//! Lines of the server's log about the bus and its rates: one line when they are lost, and one when they are back.

use super::BusError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Writes a line to the log of a server.
pub(super) type WriteLine = Arc<dyn Fn(String) + Send + Sync>;

/// The two connections to a bus.
#[derive(Clone, Copy, Debug)]
pub(super) enum BusSide {
    /// The one that appends.
    Writer = 1,
    /// The one that follows.
    Reader = 2,
}

/// Both sides work.
const CONNECTED: u8 = BusSide::Writer as u8 | BusSide::Reader as u8;
/// The log has the line that the bus is lost.
const REPORTED: u8 = 4;

/// The state of both connections, as far as the log knows it. Without a lock, which a process could inherit by a fork.
pub(super) struct BusLog {
    /// The address of the bus, without credentials.
    name: String,
    write: WriteLine,
    state: AtomicU8,
}

impl BusLog {
    pub(super) fn new(name: String, write: WriteLine) -> Self {
        Self { name, write, state: AtomicU8::new(0) }
    }

    pub(super) fn is_connected(&self) -> bool {
        self.state.load(Ordering::Relaxed) & CONNECTED == CONNECTED
    }

    /// Nothing is connected in a process that was just forked.
    pub(super) fn forked(&self) {
        self.state.store(0, Ordering::Relaxed);
    }

    pub(super) fn works(&self, side: BusSide) {
        self.state.fetch_or(side as u8, Ordering::Relaxed);
        if self.is_connected() && self.state.fetch_and(!REPORTED, Ordering::Relaxed) & REPORTED != 0 {
            (self.write)(format!("the bus {} is back", self.name));
        }
    }

    pub(super) fn failed(&self, side: BusSide, reason: &BusError) {
        self.state.fetch_and(!(side as u8), Ordering::Relaxed);
        if self.state.fetch_or(REPORTED, Ordering::Relaxed) & REPORTED == 0 {
            (self.write)(format!(
                "the bus {} cannot be used, because {reason}; until it can, this process serves on, and changes in one \
                 process do not reach the others",
                self.name
            ));
        }
    }
}

/// The log's lines about the store of shared rates: one line when it is lost, and one when it is back.
pub(super) struct RateLog {
    /// The address of the bus, without credentials.
    name: String,
    write: WriteLine,
    is_reported: AtomicBool,
}

impl RateLog {
    pub(super) fn new(name: String, write: WriteLine) -> Self {
        Self { name, write, is_reported: AtomicBool::new(false) }
    }

    pub(super) fn works(&self) {
        if self.is_reported.swap(false, Ordering::Relaxed) {
            (self.write)(format!("the shared rates at {} are back", self.name));
        }
    }

    pub(super) fn failed(&self, reason: &BusError) {
        if !self.is_reported.swap(true, Ordering::Relaxed) {
            (self.write)(format!(
                "the shared rates at {} cannot be used, because {reason}; until they can, each process counts for itself",
                self.name
            ));
        }
    }
}
