//! The command line.

use crate::workload::Workload;
use lexopt::prelude::*;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "usage: bench-driver [--serve COMMAND] [--servers A,B] [--workloads W1,W2] [--rounds N]
    [--requests N] [--seconds S] [--quick] [--output FILE]
COMMAND starts a server; NAME in it stands for the server's name, TRANSPORT for --stdio or --http PORT.
A workload is read in a legacy session; with /modern after its name, under 2026-07-28.";

/// What to measure.
pub(crate) struct Options {
    /// The command that starts a server; `NAME` and `TRANSPORT` in it are replaced.
    pub(crate) serve: String,
    /// The servers, in the order of the table's rows.
    pub(crate) servers: Vec<String>,
    /// The tables to make.
    pub(crate) tasks: Vec<Task>,
    /// Rounds; at least five for figures to quote.
    pub(crate) rounds: usize,
    /// Requests of one measurement, instead of the workload's own number.
    pub(crate) requests: Option<u64>,
    /// The time after which a measurement sends nothing new.
    pub(crate) time: Duration,
    /// Fewer requests and less warming up.
    pub(crate) quick: bool,
    /// Where the tables go, besides standard output.
    pub(crate) output: Option<PathBuf>,
}

/// One table: a workload under one envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) workload: Workload,
    /// Under 2026-07-28, without a handshake.
    pub(crate) modern: bool,
}

impl Task {
    fn legacy(workload: Workload) -> Self {
        Self { workload, modern: false }
    }

    fn parse(name: &str) -> Result<Self, String> {
        let (name, modern) = name.strip_suffix("/modern").map_or((name, false), |name| (name, true));
        Ok(Self { workload: Workload::parse(name)?, modern })
    }
}

impl Options {
    /// Reads the command line of this process.
    pub(crate) fn from_args() -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            serve: "tests/bench/serve NAME TRANSPORT".into(),
            servers: ["floor", "ours-rust", "ours-python", "ours-node", "python-sdk", "ts-sdk"]
                .map(String::from)
                .to_vec(),
            tasks: [Workload::Static, Workload::Item, Workload::AsyncItem].map(Task::legacy).to_vec(),
            rounds: 5,
            requests: None,
            time: Duration::from_secs(4),
            quick: false,
            output: None,
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("serve") => options.serve = parser.value()?.string()?,
                Long("servers") => options.servers = words(&parser.value()?.string()?),
                Long("workloads") => {
                    let names = words(&parser.value()?.string()?);
                    options.tasks = names.iter().map(|name| Task::parse(name)).collect::<Result<_, _>>()?;
                }
                Long("rounds") => options.rounds = parser.value()?.parse()?,
                Long("requests") => options.requests = Some(parser.value()?.parse()?),
                Long("seconds") => options.time = Duration::from_secs_f64(parser.value()?.parse()?),
                Long("quick") => options.quick = true,
                Long("output") => options.output = Some(parser.value()?.into()),
                Long("help") => return Err(USAGE.into()),
                other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
            }
        }
        Ok(options)
    }
}

fn words(list: &str) -> Vec<String> {
    list.split(',').filter(|word| !word.is_empty()).map(String::from).collect()
}
