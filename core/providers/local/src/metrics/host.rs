//! Measures this machine on a thread of its own: CPU, memory, disks and network.
//!
//! ```text
//!   no thread ──request or interest──▶ measures each interval ──no interest, and no request for a while, or unmounted──▶ no thread
//! ```
//!
//! Law: series are sums over all processors, disks and interfaces, so no name and no path of the machine is served. The lock is
//! a leaf.

use super::series::{Sample, Series, SeriesTable, now};
use mcp_resources_engine::option::OptionError;
use mcp_resources_runtime::provider::Feed;
use mcp_resources_runtime::sync::{Condvar, Mutex};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sysinfo::{DiskRefreshKind, Disks, MINIMUM_CPU_UPDATE_INTERVAL, Networks, System};

/// Time for which the thread continues after the last request, so that a client that asks now and then sees no gaps.
const LINGER: Duration = Duration::from_secs(300);
/// Interval at which the thread checks whether it is still needed.
const NOTICE: Duration = Duration::from_millis(500);
/// Maximum time that a request waits for the first measurement.
const PATIENCE: Duration = Duration::from_secs(2);
/// Interfaces of the machine with itself.
const LOOPBACK: [&str; 2] = ["lo", "lo0"];

/// The thread that measures.
#[derive(Debug)]
pub(super) struct Collector {
    gauges: Arc<Gauges>,
    interval: Duration,
    state: Mutex<HostState>,
    changed: Condvar,
}

/// A thread of a process: after a fork the child starts its own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct CollectorThread {
    process: u32,
    number: u64,
}

#[derive(Debug, Default)]
struct HostState {
    /// The thread, if one runs.
    thread: Option<CollectorThread>,
    /// The number of threads started so far.
    begun: u64,
    /// The number of measurements made so far.
    rounds: u64,
    /// The number of current interests.
    interests: usize,
    /// When the last request was.
    requested: Option<Instant>,
}

macro_rules! gauges {
    ($($field:ident: $name:literal, $about:literal;)+) => {
        /// The series of the machine.
        #[derive(Debug)]
        struct Gauges {
            $($field: Arc<Series>,)+
        }

        impl Gauges {
            const COUNT: usize = [$($name),+].len();

            fn new(table: &SeriesTable) -> Result<Self, OptionError> {
                let begin = |name, about| {
                    table.begin(name, Some(about)).map_err(|_| {
                        let reason = format!(
                            "metrics: `host` needs {} series and the memory for them; raise `series` or lower `samples`",
                            Self::COUNT
                        );
                        OptionError::sentence(reason)
                    })
                };
                Ok(Self { $($field: begin($name, $about)?,)+ })
            }
        }
    };
}
gauges! {
    cpu: "cpu_usage_percent", "How busy all processors are, in percent.";
    memory_used: "memory_used_bytes", "Memory in use, in bytes.";
    memory_available: "memory_available_bytes", "Memory that programs can still have, in bytes.";
    memory_total: "memory_total_bytes", "Memory of the machine, in bytes.";
    swap_used: "memory_swap_used_bytes", "Swap space in use, in bytes.";
    disk_used: "disk_used_bytes", "Space in use on all disks, in bytes.";
    disk_total: "disk_total_bytes", "Space of all disks, in bytes.";
    disk_read: "disk_read_bytes_per_second", "Bytes read from all disks in a second.";
    disk_written: "disk_written_bytes_per_second", "Bytes written to all disks in a second.";
    network_received: "network_received_bytes_per_second", "Bytes received from the network in a second.";
    network_sent: "network_sent_bytes_per_second", "Bytes sent to the network in a second.";
}

impl Collector {
    /// A measurement that has not started yet. Adds its series to `table`.
    ///
    /// # Errors
    /// There is no room for them.
    pub(super) fn new(table: &SeriesTable, interval: Duration) -> Result<Self, OptionError> {
        let gauges = Arc::new(Gauges::new(table)?);
        Ok(Self { gauges, interval, state: Mutex::default(), changed: Condvar::new() })
    }

    /// Prepares for a new mount: a thread of an earlier one ends by itself.
    pub(super) fn begin_anew(&self) {
        let mut state = self.state.lock();
        state.thread = None;
        state.interests = 0;
        self.changed.notify_all();
    }

    /// Records that an interest has come or gone.
    pub(super) fn interest(self: &Arc<Self>, on: bool, feed: Option<&Feed>) {
        let mut state = self.state.lock();
        if on {
            state.interests += 1;
            self.start(&mut state, feed);
        } else {
            state.interests = state.interests.saturating_sub(1);
        }
    }

    /// Records a request.
    pub(super) fn request(self: &Arc<Self>, feed: Option<&Feed>) {
        let mut state = self.state.lock();
        state.requested = Some(Instant::now());
        self.start(&mut state, feed);
    }

    /// Records a request for measured values: if nothing was measured for a while, it waits for a measurement.
    pub(super) fn request_now(self: &Arc<Self>, feed: Option<&Feed>) {
        let mut state = self.state.lock();
        state.requested = Some(Instant::now());
        let rounds = state.rounds;
        if self.start(&mut state, feed) || rounds == 0 {
            let is_old = |state: &mut HostState| state.rounds == rounds;
            drop(self.changed.wait_while_for(state, PATIENCE, is_old));
        }
    }

    /// Starts the thread unless it runs in this process. Whether it did.
    fn start(self: &Arc<Self>, state: &mut HostState, feed: Option<&Feed>) -> bool {
        let process = std::process::id();
        let Some(feed) = feed.filter(|_| state.thread.is_none_or(|thread| thread.process != process)) else {
            return false;
        };
        state.begun += 1;
        let own = CollectorThread { process, number: state.begun };
        let collector = self.clone();
        let feed = feed.clone();
        let thread = std::thread::Builder::new().name("mcp-host".into());
        let begun = thread.spawn(move || collector.work(own, &feed)).is_ok();
        state.thread = begun.then_some(own);
        begun
    }

    fn work(&self, own: CollectorThread, feed: &Feed) {
        let mut probe = HostProbe::new();
        std::thread::sleep(MINIMUM_CPU_UPDATE_INTERVAL);
        loop {
            probe.measure(&self.gauges);
            let due = Instant::now() + self.interval;
            let mut state = self.state.lock();
            state.rounds += 1;
            self.changed.notify_all();
            loop {
                if !state.is_wanted(own, self.interval) || !feed.is_alive() {
                    // Under the same lock: a later request starts another thread.
                    state.thread = state.thread.filter(|other| *other != own);
                    return;
                }
                let left = due.saturating_duration_since(Instant::now()).min(NOTICE);
                if left.is_zero() {
                    break;
                }
                state = self.changed.wait_for(state, left).0;
            }
        }
    }
}

impl HostState {
    fn is_wanted(&self, own: CollectorThread, interval: Duration) -> bool {
        let linger = LINGER.max(interval.saturating_mul(3));
        let is_recent = self.requested.is_some_and(|requested| requested.elapsed() < linger);
        self.thread == Some(own) && (self.interests > 0 || is_recent)
    }
}

/// Queries the system. Values that the system does not report are left out.
struct HostProbe {
    system: Option<System>,
    disks: Option<Disks>,
    networks: Option<Networks>,
    /// When traffic was counted last.
    counted: Instant,
}

impl HostProbe {
    fn new() -> Self {
        let mut system = System::new().ok();
        if let Some(system) = &mut system {
            system.refresh_cpu_usage();
        }
        Self {
            system,
            disks: Disks::new_with_refreshed_list_specifics(kinds()).ok(),
            networks: Networks::new_with_refreshed_list().ok(),
            counted: Instant::now(),
        }
    }

    fn measure(&mut self, gauges: &Gauges) {
        let at = now();
        let put = |series: &Series, value: f64| series.push(Sample { at, value });
        if let Some(system) = &mut self.system {
            system.refresh_cpu_usage();
            system.refresh_memory();
            put(&gauges.cpu, f64::from(system.global_cpu_usage()));
            put(&gauges.memory_used, number(system.used_memory()));
            put(&gauges.memory_available, number(system.available_memory()));
            put(&gauges.memory_total, number(system.total_memory()));
            put(&gauges.swap_used, number(system.used_swap()));
        }
        let elapsed = self.counted.elapsed().as_secs_f64().max(0.001);
        self.counted = Instant::now();
        if let Some(disks) = &mut self.disks {
            disks.refresh_specifics(true, kinds());
            let mut used = 0_u64;
            let mut total = 0_u64;
            let mut read = 0_u64;
            let mut written = 0_u64;
            let mut seen = HashSet::new();
            // A disk that is mounted at several places counts once.
            for disk in &*disks {
                if !seen.insert(disk.name()) {
                    continue;
                }
                let usage = disk.usage();
                total = total.saturating_add(disk.total_space());
                used = used.saturating_add(disk.total_space().saturating_sub(disk.available_space()));
                read = read.saturating_add(usage.read_bytes);
                written = written.saturating_add(usage.written_bytes);
            }
            put(&gauges.disk_used, number(used));
            put(&gauges.disk_total, number(total));
            put(&gauges.disk_read, number(read) / elapsed);
            put(&gauges.disk_written, number(written) / elapsed);
        }
        if let Some(networks) = &mut self.networks {
            networks.refresh(true);
            let outside = networks.iter().filter(|(name, _)| !LOOPBACK.iter().any(|own| *name == *own));
            let (received, sent) = outside.fold((0_u64, 0_u64), |(received, sent), (_, data)| {
                (received.saturating_add(data.received()), sent.saturating_add(data.transmitted()))
            });
            put(&gauges.network_received, number(received) / elapsed);
            put(&gauges.network_sent, number(sent) / elapsed);
        }
    }
}

fn kinds() -> DiskRefreshKind {
    DiskRefreshKind::nothing().with_storage().with_io_usage()
}

#[expect(clippy::cast_precision_loss, reason = "sizes that are off by a billionth are good enough")]
fn number(count: u64) -> f64 {
    count as f64
}
