//! Every round of every server, as JSON: what the tables and plots are made of.

use crate::figures::Figures;
use crate::options::{Options, Task};
use crate::servers::{self, Contestant};
use serde::{Serialize, Serializer};
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// One server's rounds of one workload.
#[derive(Serialize)]
pub(crate) struct Row {
    #[serde(rename = "server", serialize_with = "displayed")]
    pub(crate) contestant: Contestant,
    pub(crate) rounds: Vec<Figures>,
    /// Why there are no figures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) missing: Option<String>,
}

impl Row {
    /// A row without figures yet; a server that cannot do it says why.
    pub(crate) fn new(contestant: Contestant, task: Task) -> Self {
        let missing = servers::lacks(&contestant, task.workload, task.modern).map(String::from);
        Self { contestant, rounds: Vec::new(), missing }
    }
}

#[derive(Serialize)]
struct Table<'a> {
    workload: String,
    modern: bool,
    /// Seconds since 1970 when it was complete.
    time: u64,
    machine: &'a str,
    quick: bool,
    rows: Vec<Row>,
}

/// The file in the making: one line for each workload, so that a run that is cut short keeps what it has.
pub(crate) struct Records {
    file: Box<dyn Write>,
    machine: String,
    quick: bool,
}

impl Records {
    pub(crate) fn new(options: &Options) -> std::io::Result<Self> {
        let file: Box<dyn Write> = match &options.output {
            Some(path) => Box::new(std::fs::File::create(PathBuf::from(path))?),
            None => Box::new(std::io::stdout()),
        };
        Ok(Self { file, machine: machine(), quick: options.quick })
    }

    pub(crate) fn add(&mut self, task: Task, rows: Vec<Row>) -> std::io::Result<()> {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let Task { workload, modern } = task;
        let table = Table {
            workload: workload.name(),
            modern,
            time,
            machine: &self.machine,
            quick: self.quick,
            rows,
        };
        serde_json::to_writer(&mut self.file, &table)?;
        self.file.write_all(b"\n")?;
        self.file.flush()
    }
}

fn displayed<S: Serializer>(contestant: &Contestant, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(contestant)
}

fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let model = model.map_or("unknown processor", |(_, name)| name.trim());
    let release = kernel.trim().split('-').next().unwrap_or_default();
    format!("{model}, {cores} cores, Linux {release}")
}
