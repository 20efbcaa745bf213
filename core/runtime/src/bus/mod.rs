//! The bus between the processes of a server: changes that one announces reach the listeners of all.
//!
//! ```text
//!   engine ── ChangeSink ──▶ BusQueue ──▶ writer ──▶ Bus: a log with positions ──▶ reader ──▶ Engine::apply_change
//!             never waits    equal changes             Redis, NATS, a socket          own messages are skipped;
//!                            are joined                                               after a loss: Engine::mark_every
//! ```
//!
//! Law: what stands on the bus is untrusted until it opens with the server's keys; it is never logged. Serving never waits
//! for the bus. Each table and queue has a limit; what exceeds it is announced as "something was lost".

mod client;
mod log;
mod memory;
mod message;
mod origins;
mod queue;
mod rates;
mod task;
#[cfg(test)]
mod tests;
mod thread;

pub use client::{BusClient, HeardEvents, ServerEvent, ServerEventKind};
pub use memory::{MemoryBus, MemoryFaults};
pub use rates::{RateCounter, RateStore, RateUse};
pub use thread::BusThread;

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

/// The longest time for which [`BusReader::next`] may wait without an entry. A reader that takes three times as long is
/// considered dead.
pub const IDLE: Duration = Duration::from_secs(5);
/// Maximum size of a message in bytes.
pub const MESSAGE_BYTES: usize = 64 * 1024;

/// The future that a function of a bus returns.
pub type BusFuture<'b, T> = Pin<Box<dyn Future<Output = Result<T, BusError>> + Send + 'b>>;

/// A log that all processes of a server append to and follow. Its functions are called on a thread of the server, inside a
/// tokio runtime.
pub trait Bus: Send + Sync + 'static {
    /// Its address for messages, without credentials.
    fn name(&self) -> String;

    /// Connects for appending to the log of `topic`, the name of a server.
    fn open<'b>(&'b self, topic: &'b str) -> BusFuture<'b, Box<dyn BusWriter>>;

    /// Connects for reading the log of `topic`, behind the entry at `from`; `None`: from its end on.
    fn follow<'b>(&'b self, topic: &'b str, from: Option<&'b str>) -> BusFuture<'b, Box<dyn BusReader>>;

    /// The store in which all processes count requests together; `None`, the default, if this bus has none.
    fn rates(&self) -> Option<&dyn RateStore> {
        None
    }
}

/// A connection that appends.
pub trait BusWriter: Send {
    /// Appends messages, in order. Returns when the bus has them. After an error some of them may be there; they are
    /// appended again on a new connection.
    fn append<'b>(&'b mut self, messages: &'b [String]) -> BusFuture<'b, ()>;
}

/// A connection that reads.
pub trait BusReader: Send {
    /// Whether entries behind the position that [`Bus::follow`] was asked for are gone, or it cannot tell.
    fn has_gap(&self) -> bool;

    /// The position after the last entry that was read: for [`Bus::follow`] on the next connection.
    fn position(&self) -> String;

    /// Waits for entries, for at most [`IDLE`], and returns them in order. Each entry is the bytes of a message.
    fn next(&mut self) -> BusFuture<'_, BusEntries>;
}

/// Entries of a log.
#[derive(Debug, Default)]
pub struct BusEntries {
    /// The messages, as they were found.
    pub messages: Vec<Vec<u8>>,
    /// Whether entries before or between them are gone.
    pub has_gap: bool,
}

/// The reason why a bus cannot be used now, in a short phrase without credentials.
#[derive(Debug)]
pub struct BusError(String);

impl BusError {
    /// The phrase, after "because".
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for BusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BusError {}
