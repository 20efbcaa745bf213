//! Counters of the server, and their text for Prometheus.
//!
//! Law: every label has one of a few values fixed in this library; never a URI, an identity, or a name chosen by a
//! client.

use super::audit_queue::AuditCounts;
use super::{BusCounts, CacheCounts, Engine};
use crate::connection::ConnectionKind;
use crate::guard::Verdict;
use crate::hub::Counts;
use crate::now::Millis;
use crate::version::ProtocolMethod;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The known methods, and one entry for all others.
const METHODS: usize = ProtocolMethod::ALL.len() + 1;
const VERDICTS: usize = Verdict::ALL.len();
const ERAS: [&str; 2] = ["legacy", "modern"];
const KINDS: [&str; 7] = ["stdio", "session", "request", "stateless", "bare", "embedded", "beside"];
/// The upper limits of the buckets, in ms: those recommended by OpenTelemetry, and two below.
const BOUNDS: [Millis; 14] = [1, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000];

/// The counters. Updated with relaxed atomics; no lock.
#[derive(Debug)]
pub(super) struct EngineMetrics {
    requests: [[AtomicU64; ERAS.len()]; METHODS],
    durations: [Durations; METHODS],
    verdicts: [AtomicU64; VERDICTS],
    bytes: AtomicU64,
    connections: [AtomicU64; KINDS.len()],
    lapses: [AtomicU64; Lapse::ALL.len()],
}

/// Why the server ended a listen, or a stream of notifications, before its client did.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lapse {
    /// The token that opened it has expired.
    Expired,
    /// Its principal was revoked.
    Revoked,
}

impl Lapse {
    const ALL: [Self; 2] = [Self::Expired, Self::Revoked];

    fn as_str(self) -> &'static str {
        match self {
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

#[derive(Debug, Default)]
struct Durations {
    /// The count of each bucket; the last one is above all limits.
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

/// Counts an open connection until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    engine: Arc<Engine>,
    kind: ConnectionKind,
}

impl Default for EngineMetrics {
    fn default() -> Self {
        Self {
            requests: Default::default(),
            durations: Default::default(),
            verdicts: [const { AtomicU64::new(0) }; VERDICTS],
            bytes: AtomicU64::new(0),
            connections: Default::default(),
            lapses: Default::default(),
        }
    }
}

impl EngineMetrics {
    pub(super) fn count(
        &self,
        method: Option<ProtocolMethod>,
        is_modern: bool,
        verdict: Verdict,
        bytes: u64,
        duration: Millis,
    ) {
        let method = method.map_or(METHODS - 1, ProtocolMethod::index);
        add(&self.requests[method][usize::from(is_modern)], 1);
        let durations = &self.durations[method];
        add(&durations.buckets[BOUNDS.partition_point(|bound| *bound < duration)], 1);
        add(&durations.sum, duration);
        add(&self.verdicts[verdict.index()], 1);
        add(&self.bytes, bytes);
    }

    pub(super) fn lapsed(&self, why: Lapse) {
        add(&self.lapses[why as usize], 1);
    }

    pub(super) fn text(
        &self,
        watched: Counts,
        records: Option<AuditCounts>,
        cache: Option<CacheCounts>,
        bus: Option<BusCounts>,
    ) -> String {
        let mut text = MetricsText(String::with_capacity(4_096));
        text.family(
            "mcp_resources_requests_total",
            "counter",
            "Requests that have ended, by method and era.",
        );
        for (method, eras) in self.requests.iter().enumerate() {
            for (era, count) in ERAS.iter().zip(eras) {
                let labels = [("method", name(method)), ("era", era)];
                text.counted("mcp_resources_requests_total", &labels, load(count));
            }
        }
        text.family(
            "mcp_resources_errors_total",
            "counter",
            "Requests that were not answered with a result.",
        );
        for (verdict, count) in Verdict::ALL.iter().zip(&self.verdicts) {
            if !matches!(verdict, Verdict::Ok | Verdict::InputRequired) {
                text.sample("mcp_resources_errors_total", &[("kind", verdict.as_str())], load(count));
            }
        }
        self.durations(&mut text);
        text.single("mcp_resources_answered_bytes_total", "counter", "Bytes of answers.", load(&self.bytes));
        text.family("mcp_resources_connections", "gauge", "Open connections of the protocol.");
        for (kind, count) in KINDS.iter().zip(&self.connections) {
            text.sample("mcp_resources_connections", &[("kind", kind)], load(count));
        }
        watched_by(&mut text, watched);
        const ENDED: &str = "mcp_resources_streams_ended_total";
        text.family(ENDED, "counter", "Listens and streams of notifications that ended with their token.");
        for (why, count) in Lapse::ALL.iter().zip(&self.lapses) {
            text.sample(ENDED, &[("reason", why.as_str())], load(count));
        }
        if let Some(cache) = cache {
            cached(&mut text, cache);
        }
        if let Some(records) = records {
            recorded(&mut text, records);
        }
        if let Some(bus) = bus {
            exchanged(&mut text, bus);
        }
        text.0
    }

    /// Named as Prometheus names the OpenTelemetry metric `mcp.server.operation.duration`.
    fn durations(&self, text: &mut MetricsText) {
        const NAME: &str = "mcp_server_operation_duration_seconds";
        text.family(NAME, "histogram", "How long requests took.");
        for (method, durations) in self.durations.iter().enumerate() {
            let counts = durations.buckets.each_ref().map(load);
            let total: u64 = counts.iter().sum();
            if total == 0 {
                continue;
            }
            let method = ("mcp_method_name", name(method));
            let mut below = 0;
            for (bound, count) in BOUNDS.iter().zip(counts) {
                below += count;
                let bound = seconds(*bound);
                text.sample(&format!("{NAME}_bucket"), &[method, ("le", &bound)], below);
            }
            text.sample(&format!("{NAME}_bucket"), &[method, ("le", "+Inf")], total);
            text.sample(&format!("{NAME}_sum"), &[method], seconds(load(&durations.sum)));
            text.sample(&format!("{NAME}_count"), &[method], total);
        }
    }
}

impl OpenConnection {
    /// Counts a connection; `None` while metrics are off.
    pub(crate) fn if_enabled(engine: &Arc<Engine>, kind: ConnectionKind) -> Option<Self> {
        add(&engine.metrics()?.connections[index(kind)], 1);
        Some(Self { engine: Arc::clone(engine), kind })
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        if let Some(metrics) = self.engine.metrics() {
            metrics.connections[index(self.kind)].fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn watched_by(text: &mut MetricsText, watched: Counts) {
    let help = "Subscriptions of sessions, and listens.";
    text.single("mcp_resources_subscriptions", "gauge", help, watched.subscriptions as u64);
    text.single("mcp_resources_watched_uris", "gauge", "URIs that somebody watches.", watched.uris as u64);
}

fn recorded(text: &mut MetricsText, records: AuditCounts) {
    let help = "Records that wait to be taken.";
    text.single("mcp_resources_audit_waiting", "gauge", help, records.waiting as u64);
    text.single(
        "mcp_resources_audit_dropped_total",
        "counter",
        "Records that were dropped.",
        records.dropped,
    );
}

fn cached(text: &mut MetricsText, cache: CacheCounts) {
    text.single("mcp_resources_cache_entries", "gauge", "Reads that are kept.", cache.entries as u64);
    text.single("mcp_resources_cache_bytes", "gauge", "Bytes that they take.", cache.bytes as u64);
    text.family("mcp_resources_cache_reads_total", "counter", "Reads, by what the cache did for them.");
    for (word, count) in [("hit", cache.hits), ("miss", cache.misses), ("shared", cache.shared)] {
        text.sample("mcp_resources_cache_reads_total", &[("result", word)], count);
    }
}

fn exchanged(text: &mut MetricsText, bus: BusCounts) {
    let connected = u64::from(bus.is_connected);
    text.single("mcp_resources_bus_connected", "gauge", "Whether the bus can be reached.", connected);
    let help = "Age of the last message of another process at its arrival.";
    text.single("mcp_resources_bus_lag_seconds", "gauge", help, seconds(bus.lag));
    for (name, help, count) in [
        ("mcp_resources_bus_sent_total", "Changes that were sent to other processes.", bus.sent),
        ("mcp_resources_bus_received_total", "Changes of other processes.", bus.received),
        (
            "mcp_resources_bus_lost_total",
            "Times that everything was announced, because changes may have been lost.",
            bus.lost,
        ),
        ("mcp_resources_bus_ignored_total", "Entries of the bus that were ignored.", bus.ignored),
    ] {
        text.single(name, "counter", help, count);
    }
}

/// The text being written.
struct MetricsText(String);

impl MetricsText {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a `String` does not fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    /// A sample, unless it is 0.
    fn counted(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        if value > 0 {
            self.sample(name, labels, value);
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, word)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{word}\"", if index == 0 { '{' } else { ',' });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }
}

fn name(method: usize) -> &'static str {
    ProtocolMethod::ALL.get(method).map_or("other", |method| method.as_str())
}

fn index(kind: ConnectionKind) -> usize {
    match kind {
        ConnectionKind::Stdio => 0,
        ConnectionKind::Session => 1,
        ConnectionKind::Request => 2,
        ConnectionKind::Stateless => 3,
        ConnectionKind::Bare => 4,
        ConnectionKind::Embedded => 5,
        ConnectionKind::Beside => 6,
    }
}

/// Milliseconds as seconds, exactly.
fn seconds(time: Millis) -> String {
    format!("{}.{:03}", time / 1_000, time % 1_000)
}

fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
