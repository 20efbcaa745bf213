//! The two loops of a process: one appends what waits, one applies what the other processes have appended.
//!
//! Law: a message keeps its number until the bus has it, so the others recognize one that was appended twice. Everything is
//! announced once after a connection that cannot say what it has missed.

use super::log::{BusLog, BusSide};
use super::message::MessageSeal;
use super::origins::{MessageArrival, MessageOrigins};
use super::queue::BusQueue;
use super::{Bus, BusEntries, BusError, BusFuture, BusWriter, IDLE};
use crate::transport::EngineClock;
use mcp_resources_engine::client::Backoff;
use mcp_resources_engine::engine::{Engine, SharedChange};
use mcp_resources_engine::now::{Millis, Now};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The longest time for a connection to be made, and for messages to be appended.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two attempts to connect, in ms.
pub(super) const LONGEST_PAUSE: Millis = 2_000;

/// The counters of a bus for metrics.
#[derive(Debug, Default)]
pub(super) struct BusCounters {
    pub(super) sent: AtomicU64,
    pub(super) received: AtomicU64,
    pub(super) lost: AtomicU64,
    pub(super) ignored: AtomicU64,
    /// In ms.
    pub(super) lag: AtomicU64,
}

/// Hears of the changes of other processes.
pub(super) trait ChangeReceiver: Send + Sync {
    /// Takes a change of another process.
    fn apply(&self, change: &SharedChange, now: Now);

    /// Anything may have changed, because changes may have been lost.
    fn apply_all(&self, now: Now);
}

impl ChangeReceiver for Engine {
    fn apply(&self, change: &SharedChange, now: Now) {
        // A change that means nothing here: another version of the server has a resource that this one has not.
        let _ = self.apply_change(change, now);
    }

    fn apply_all(&self, now: Now) {
        self.mark_every(now);
    }
}

/// The state that both loops use.
pub(super) struct BusTask {
    pub(super) bus: Arc<dyn Bus>,
    pub(super) receiver: Weak<dyn ChangeReceiver>,
    pub(super) clock: Arc<EngineClock>,
    pub(super) seal: MessageSeal,
    /// The name of the server.
    pub(super) topic: String,
    pub(super) queue: Arc<BusQueue>,
    pub(super) counters: Arc<BusCounters>,
    pub(super) log: Arc<BusLog>,
    /// The random name of this process.
    pub(super) origin: String,
    /// Makes the pauses of this process differ from others.
    pub(super) seed: u64,
}

/// Messages that the bus may not have yet.
#[derive(Default)]
struct Unsent {
    messages: Vec<String>,
    /// The changes in them.
    changes: u64,
    /// The number of the last message.
    sequence: u64,
}

impl BusTask {
    /// Runs both loops until it is dropped.
    pub(super) async fn run(&self) {
        tokio::join!(self.write(), self.read());
    }

    async fn write(&self) {
        let mut pauses = Backoff::new(LONGEST_PAUSE, self.seed);
        let mut unsent = Unsent::default();
        loop {
            let reason = match within(PATIENCE, self.bus.open(&self.topic)).await {
                Ok(mut writer) => self.append(&mut *writer, &mut unsent, &mut pauses).await,
                Err(reason) => reason,
            };
            self.log.failed(BusSide::Writer, &reason);
            tokio::time::sleep(Duration::from_millis(pauses.next(false))).await;
        }
    }

    /// Appends what waits, until the connection fails.
    async fn append(
        &self,
        writer: &mut dyn BusWriter,
        unsent: &mut Unsent,
        pauses: &mut Backoff,
    ) -> BusError {
        if unsent.messages.is_empty() {
            self.log.works(BusSide::Writer);
        }
        loop {
            if unsent.messages.is_empty() {
                let Some(waiting) = self.queue.take() else {
                    self.queue.filled.notified().await;
                    continue;
                };
                let unix = self.clock.now().unix;
                unsent.messages = self.seal.seal(&self.origin, unsent.sequence + 1, unix, &waiting);
                unsent.sequence += unsent.messages.len() as u64;
                unsent.changes = waiting.changes.len() as u64;
            }
            if let Err(reason) = within(PATIENCE, writer.append(&unsent.messages)).await {
                return reason;
            }
            unsent.messages.clear();
            self.counters.sent.fetch_add(unsent.changes, Ordering::Relaxed);
            self.queue.sent();
            self.log.works(BusSide::Writer);
            pauses.reset();
        }
    }

    async fn read(&self) {
        let mut pauses = Backoff::new(LONGEST_PAUSE, !self.seed);
        let mut origins = MessageOrigins::default();
        let mut position: Option<String> = None;
        // Whether the last connection could follow, but not read.
        let mut is_doubted = false;
        loop {
            let reason = match within(PATIENCE, self.bus.follow(&self.topic, position.as_deref())).await {
                Ok(mut reader) => {
                    if reader.has_gap() || position.is_none() {
                        // At the start, clients may have begun to watch before this process followed.
                        self.announce_everything(position.is_some());
                    }
                    if !is_doubted {
                        self.log.works(BusSide::Reader);
                    }
                    is_doubted = true;
                    loop {
                        position = Some(reader.position());
                        match within(3 * IDLE, reader.next()).await {
                            Ok(entries) => self.receive(entries, &mut origins),
                            Err(reason) => break reason,
                        }
                        self.log.works(BusSide::Reader);
                        is_doubted = false;
                        pauses.reset();
                    }
                }
                Err(reason) => reason,
            };
            self.log.failed(BusSide::Reader, &reason);
            tokio::time::sleep(Duration::from_millis(pauses.next(false))).await;
        }
    }

    fn receive(&self, entries: BusEntries, origins: &mut MessageOrigins) {
        let Some(receiver) = self.receiver.upgrade() else { return };
        let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
        let mut has_lost = entries.has_gap;
        for message in entries.messages {
            let Some(opened) = self.seal.open(&message) else {
                count(&self.counters.ignored);
                continue;
            };
            if *opened.origin == *self.origin {
                continue;
            }
            match origins.arrived(&opened.origin, opened.sequence) {
                MessageArrival::Next => {}
                MessageArrival::AfterGap => has_lost = true,
                MessageArrival::Repeated => {
                    count(&self.counters.ignored);
                    continue;
                }
            }
            has_lost |= opened.has_lost;
            let now = self.clock.now();
            self.counters.lag.store(now.unix.saturating_sub(opened.unix), Ordering::Relaxed);
            for change in &opened.changes {
                receiver.apply(change, now);
                count(&self.counters.received);
            }
        }
        if has_lost {
            self.announce_everything(true);
        }
    }

    /// Announces everything as changed. `is_loss`: because changes may have been lost.
    fn announce_everything(&self, is_loss: bool) {
        if is_loss {
            self.counters.lost.fetch_add(1, Ordering::Relaxed);
        }
        if let Some(receiver) = self.receiver.upgrade() {
            receiver.apply_all(self.clock.now());
        }
    }
}

/// The result of `work`, if it ends within `time`.
pub(super) async fn within<T>(time: Duration, work: BusFuture<'_, T>) -> Result<T, BusError> {
    let late = |_| BusError::new(format!("it has not answered for {} s", time.as_secs()));
    tokio::time::timeout(time, work).await.map_err(late)?
}
