//! The tables: one for each workload, a line for each server.

use crate::measure::Figures;
use crate::options::{Options, Task};
use crate::stats::summary;
use crate::workload::Workload;
use std::fmt::Write;

/// The official SDKs, that the others are compared with.
const PEERS: [&str; 2] = ["python-sdk", "ts-sdk"];

/// One server's rounds of one workload.
pub(crate) struct Row {
    pub(crate) server: String,
    pub(crate) figures: Vec<Figures>,
    /// Why there are no figures.
    pub(crate) missing: Option<String>,
}

impl Row {
    /// A row without figures yet.
    pub(crate) fn new(server: &str) -> Self {
        Self { server: server.into(), figures: Vec::new(), missing: None }
    }

    /// The ratio of processor time to another server's, round by round; its median.
    fn cpu_ratio(&self, to: &Row) -> Option<f64> {
        let pairs = self.figures.iter().zip(&to.figures);
        summary(pairs.map(|(mine, other)| mine.cpu_us / other.cpu_us)).map(|ratio| ratio.median)
    }
}

/// A Markdown document in the making.
pub(crate) struct Report(String);

impl Report {
    /// The heading: what machine, what terms.
    pub(crate) fn new(options: &Options) -> Self {
        let mut text = String::from("# Side by side\n\n");
        let _ = writeln!(
            text,
            "Written by `tests/bench/run`. {}. Client and server on the same core; median (least–most) of {} interleaved rounds; ratios round by round. \
             CPU is the server's user and system time by the kernel's account.",
            machine(),
            options.rounds,
        );
        Self(text)
    }

    /// Adds the table of one workload.
    pub(crate) fn table(&mut self, task: Task, rows: &[Row]) {
        let revision = if task.modern { "2026-07-28" } else { "2025-06-18" };
        let columns = columns(task.workload);
        let titles: Vec<&str> = columns.iter().map(|column| column.title).collect();
        let find = |name: &str| rows.iter().find(|row| row.server == name && row.missing.is_none());
        let floor = find(if task.workload.is_http() { "floor-http" } else { "floor" });
        let peers: Vec<&Row> = PEERS.iter().filter_map(|name| find(name)).collect();
        let ratios: String = peers.iter().map(|peer| format!(" CPU, {} ÷ it |", peer.server)).collect();
        let _ = write!(
            self.0,
            "\n## {}: {} ({revision})\n\n| server | {} | CPU, × floor |{ratios}\n|{}\n",
            task.workload.name(),
            task.workload.title(),
            titles.join(" | "),
            " --- |".repeat(columns.len() + 2 + peers.len()),
        );
        for row in rows {
            self.line(columns, row, floor, &peers);
        }
    }

    fn line(&mut self, columns: &[Column], row: &Row, floor: Option<&Row>, peers: &[&Row]) {
        if let Some(reason) = &row.missing {
            let rest = " |".repeat(columns.len() + peers.len());
            let _ = writeln!(self.0, "| {} | {reason} |{rest}", row.server);
            return;
        }
        let _ = write!(self.0, "| {} |", row.server);
        for column in columns {
            let _ = write!(self.0, " {} |", spread(row.figures.iter().map(column.value), column.digits));
        }
        let over = floor.and_then(|floor| row.cpu_ratio(floor));
        let _ = write!(self.0, " {} |", times(over));
        for peer in peers {
            let _ = write!(self.0, " {} |", times(peer.cpu_ratio(row)));
        }
        let _ = writeln!(self.0);
    }

    /// The document.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// One column of a table.
struct Column {
    title: &'static str,
    value: fn(&Figures) -> f64,
    digits: usize,
}

const P50: Column = Column { title: "p50 µs", value: |figures| figures.p50_us, digits: 1 };
const P99: Column = Column { title: "p99 µs", value: |figures| figures.p99_us, digits: 0 };
const CPU: Column = Column { title: "CPU µs/request", value: |figures| figures.cpu_us, digits: 2 };
const RATE: Column = Column { title: "requests/s", value: |figures| figures.rate, digits: 0 };
const TOLD: Column = Column { title: "CPU µs/listener told", value: |figures| figures.cpu_us, digits: 2 };
const MEMORY: Column = Column { title: "KiB/listener", value: |figures| figures.listener_kib, digits: 1 };
const FAN_OUT: Column = Column { title: "fan-out ms", value: |figures| figures.fan_out_ms, digits: 0 };

/// What is said of a workload.
fn columns(workload: Workload) -> &'static [Column] {
    match workload {
        Workload::Subscribers | Workload::Listeners => &[MEMORY, FAN_OUT, TOLD],
        Workload::Updates => &[P50, P99, CPU, RATE],
        _ if workload.is_http() => &[P99, CPU, RATE],
        _ if workload.in_flight() == 1 => &[P50, CPU, RATE],
        _ => &[CPU, RATE],
    }
}

fn spread(values: impl Iterator<Item = f64>, digits: usize) -> String {
    summary(values).map_or_else(String::new, |found| {
        format!("{:.digits$} ({:.digits$}–{:.digits$})", found.median, found.least, found.most)
    })
}

fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => String::new(),
        Some(ratio) if ratio < 10.0 => format!("{ratio:.2}"),
        Some(ratio) => format!("{ratio:.0}"),
    }
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    format!("{model}, {cores} cores, Linux {}", kernel.trim())
}
