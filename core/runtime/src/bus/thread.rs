//! The thread of the bus: it has a tokio runtime of its own, so servers of every language have it, and handlers never delay it.

use super::Bus;
use super::log::{BusLog, RateLog, WriteLine};
use super::message::MessageSeal;
use super::queue::BusQueue;
use super::rates::{RateQueue, RateTask};
use super::task::{BusCounters, BusTask, ChangeReceiver};
use crate::sync::Mutex;
use crate::transport::EngineClock;
use arc_swap::ArcSwap;
use mcp_resources_engine::engine::{BusCounts, ChangeSink, Engine, SharedChange};
use mcp_resources_engine::guard::{RateNames, RateSink, UsedRate};
use mcp_resources_engine::seal::SealKey;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;

/// The longest time for which [`BusThread::flush`] waits.
const FLUSH: Duration = Duration::from_secs(1);

/// Connects an engine with a bus until it is dropped.
pub struct BusThread {
    parts: BusParts,
    running: Mutex<Option<RunningBus>>,
}

/// The parts of a thread, in this process and in one that is forked from it.
struct BusParts {
    bus: Arc<dyn Bus>,
    receiver: Weak<dyn ChangeReceiver>,
    group: BusGroup,
    clock: Arc<EngineClock>,
    sink: Arc<BusSink>,
    log: Arc<BusLog>,
    rate_log: Arc<RateLog>,
}

/// The name and the keys that the processes of a server share.
pub(super) struct BusGroup {
    /// The name of the server.
    pub(super) server: String,
    pub(super) keys: Vec<SealKey>,
}

struct RunningBus {
    thread: JoinHandle<()>,
    stop: Arc<Notify>,
    /// The process that has the thread.
    process: u32,
}

/// Puts the engine's changes, and the use of shared rates, into the queues of this process.
struct BusSink {
    /// Replaced in a forked process: a thread of its parent may have held a lock of the queue.
    queue: ArcSwap<BusQueue>,
    /// Replaced as well.
    rates: ArcSwap<RateQueue>,
    counters: Arc<BusCounters>,
    log: Arc<BusLog>,
}

impl ChangeSink for BusSink {
    fn changed(&self, change: SharedChange) {
        self.queue.load().push(change);
    }

    fn counts(&self) -> BusCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BusCounts {
            sent: count(&self.counters.sent),
            received: count(&self.counters.received),
            lost: count(&self.counters.lost),
            ignored: count(&self.counters.ignored),
            lag: count(&self.counters.lag),
            is_connected: self.log.is_connected(),
        }
    }
}

impl RateSink for BusSink {
    fn used(&self, used: UsedRate) {
        self.rates.load().push(used);
    }
}

impl BusThread {
    /// Connects `engine` with `bus` from now on: its own changes are sent, those of other processes are applied. `write`
    /// gets a line when the bus is lost, and one when it is back. Never waits for the bus.
    ///
    /// # Errors
    /// Of the system, if it gives no thread or no randomness; if the engine has no keys, because the messages are sealed with
    /// them; if it has a bus already.
    pub fn start(
        bus: Arc<dyn Bus>,
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        write: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let has_rates = bus.rates().is_some();
        let receiver: Weak<Engine> = Arc::downgrade(engine);
        let group = BusGroup { server: engine.first_name().to_owned(), keys: engine.options().keys.clone() };
        let thread = Self::begin(bus, receiver, group, clock, write)?;
        if !engine.share_changes(thread.parts.sink.clone()) {
            return Err(io::Error::other("the server has a bus already"));
        }
        if has_rates {
            engine.share_rates(thread.parts.sink.clone());
        }
        Ok(thread)
    }

    /// Joins the processes of a server.
    pub(super) fn begin(
        bus: Arc<dyn Bus>,
        receiver: Weak<impl ChangeReceiver + 'static>,
        group: BusGroup,
        clock: Arc<EngineClock>,
        write: impl Fn(String) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let write: WriteLine = Arc::new(write);
        let rate_log = Arc::new(RateLog::new(bus.name(), write.clone()));
        let log = Arc::new(BusLog::new(bus.name(), write));
        let sink = Arc::new(BusSink {
            queue: ArcSwap::default(),
            rates: ArcSwap::default(),
            counters: Arc::default(),
            log: log.clone(),
        });
        let parts = BusParts { bus, receiver, group, clock, sink, log, rate_log };
        let running = parts.begin()?;
        Ok(Self { parts, running: Mutex::new(Some(running)) })
    }

    /// Sends a change to the other processes.
    pub(super) fn announce(&self, change: SharedChange) {
        self.parts.sink.changed(change);
    }

    /// Call this in a forked process whose parent may have the thread: it gets a thread of its own, and what its parent has
    /// not sent yet stays with the parent.
    pub fn forked(&self) {
        // If the lock is held, its owner is a thread of the parent.
        let Some(mut running) = self.running.try_lock() else { return };
        if running.as_ref().is_some_and(|own| own.process == std::process::id()) {
            return;
        }
        // The thread belongs to the parent: it cannot be joined, and its handle must not be dropped.
        std::mem::forget(running.take());
        // Dropping the parent's queue touches none of its locks, but its waiters may be in use: it is left where it is.
        std::mem::forget(self.parts.sink.queue.swap(Arc::default()));
        let rates = self.parts.sink.rates.swap(Arc::default());
        rates.abandon();
        std::mem::forget(rates);
        self.parts.log.forked();
        *running = self.parts.begin().ok();
    }

    /// Waits until all changes so far are sent, but at most one second. Does not wait for a bus that cannot be used.
    pub fn flush(&self) {
        if self.parts.log.is_connected() {
            self.parts.sink.queue.load().flush(FLUSH);
        }
    }
}

impl BusParts {
    fn begin(&self) -> io::Result<RunningBus> {
        let no_keys = || io::Error::other("a bus needs keys, which all processes of the server share");
        let seal = MessageSeal::new(&self.group.keys, &self.group.server).ok_or_else(no_keys)?;
        let first = self.group.keys.first().ok_or_else(no_keys)?;
        let mut random = [0; 24];
        getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let (name, seed) = random.split_at(16);
        let seed = seed.iter().fold(0, |seed, byte| seed << 8 | u64::from(*byte));
        let rates = RateTask {
            bus: self.bus.clone(),
            clock: self.clock.clone(),
            topic: self.group.server.clone(),
            names: RateNames::new(first, &self.group.server),
            queue: self.sink.rates.load_full(),
            log: self.rate_log.clone(),
            seed: seed.rotate_left(32),
        };
        let task = BusTask {
            bus: self.bus.clone(),
            receiver: self.receiver.clone(),
            clock: self.clock.clone(),
            seal,
            topic: self.group.server.clone(),
            queue: self.sink.queue.load_full(),
            counters: self.sink.counters.clone(),
            log: self.log.clone(),
            origin: name.iter().map(|byte| format!("{byte:02x}")).collect(),
            seed,
        };
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = stopped.notified() => {}
                    () = async { tokio::join!(task.run(), rates.run()); } => {}
                }
            });
            // A name that is being resolved must not keep the program alive.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("mcp-resources-bus".into()).spawn(run)?;
        Ok(RunningBus { thread, stop, process: std::process::id() })
    }
}

impl RunningBus {
    fn end(self) {
        if self.process != std::process::id() {
            std::mem::forget(self.thread);
            return;
        }
        self.stop.notify_one();
        // The thread does not wait for the bus any more, and it does not panic.
        if self.thread.thread().id() != std::thread::current().id() {
            let _ = self.thread.join();
        }
    }
}

impl Drop for BusThread {
    fn drop(&mut self) {
        let running = self.running.lock().take();
        if let Some(running) = running {
            if running.process == std::process::id() {
                self.flush();
            }
            running.end();
        }
    }
}

impl fmt::Debug for BusThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusThread").field("bus", &self.parts.bus.name()).finish_non_exhaustive()
    }
}
