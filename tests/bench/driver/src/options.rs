//! The command line.

use crate::workload::Workload;
use lexopt::prelude::*;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

const USAGE: &str = "usage: bench-driver [--serve PROGRAM] [--servers A,B] [--workloads W1,W2] [--rounds N]
    [--requests N] [--seconds S] [--quick] [--output FILE] [--log FILE]
    bench-driver --make W11,W23-log [--quick]
PROGRAM NAME --print TRANSPORT prints the command that starts a server. A workload is read in a legacy session; with
/modern after its name, under 2026-07-28; W19 names all whose name begins with W19-. The rounds go to FILE as JSON, one workload on each line.
--make makes only the folders that the workloads serve, for another program that measures.";

/// The workloads of a whole run, in the order of the tables.
const USUAL: &str = "W1,W1/modern,W2,W2/modern,W2-each,W2-provider/modern,W3-text,W3-blob,W4-1000,W4-100000,W5-1,W5-100,W5-1000,W5-10000,\
W6-one,W6-one/modern,W6-many,W6-many/modern,W7-8,W7-8/modern,W7-64,W7-64/modern,W7-open-250/modern,W7-open-5000/modern,\
W8,W9,W9/modern,W10-list,W10-list/modern,W10-read/modern,W10-change,W11/modern,W12-blob/modern,W12-log/modern,W12-status/modern,W12-complete/modern,W15,W16-1,W16-1/modern,W16-64,W16-64/modern,W17-pages/modern,W17-change/modern,W18/modern,W23-log/modern,W23-graph/modern,W23-tags/modern,W24-10000/modern,W24-20000/modern,W24-40000/modern,\
W25-directories/modern,W25-files/modern,W26-4000,W26-16000,W13-read,W13-read/modern,W13-tool,W13-tool/modern,W14-read,W14-read/modern,W14-http,W14-tool/modern,W14-list/modern,W14-listeners/modern,W19-1,W19-64,W19-http-1/modern,W19-http-64/modern,W19-list,W19-import";

/// What to measure.
pub(crate) struct Options {
    /// The program that knows how each server is started.
    pub(crate) serve: String,
    /// The servers; all if empty.
    pub(crate) servers: Vec<String>,
    /// The tables to make.
    pub(crate) tasks: Vec<Task>,
    /// Rounds; at least five for figures to quote.
    pub(crate) rounds: usize,
    /// Workloads whose folders are made; nothing is measured then.
    pub(crate) make: Vec<Workload>,
    /// Requests of one measurement, instead of the workload's own number.
    pub(crate) requests: Option<u64>,
    /// The time after which a measurement sends nothing new.
    pub(crate) time: Duration,
    /// Fewer requests and less warming up.
    pub(crate) quick: bool,
    /// Where the rounds go; standard output if nowhere.
    pub(crate) output: Option<PathBuf>,
    /// Where the servers' standard error goes; this one's if nowhere.
    pub(crate) log: Option<String>,
}

/// One table: a workload under one envelope.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    pub(crate) workload: Workload,
    /// Under 2026-07-28, without a handshake.
    pub(crate) modern: bool,
}

impl Task {
    fn parse(name: &str) -> Result<Self, String> {
        let (name, modern) = name.strip_suffix("/modern").map_or((name, false), |name| (name, true));
        Ok(Self { workload: Workload::parse(name)?, modern })
    }

    pub(crate) fn name(self) -> String {
        self.workload.name() + if self.modern { "/modern" } else { "" }
    }
}

impl Options {
    /// Reads the command line of this process.
    pub(crate) fn from_args() -> Result<Self, Box<dyn Error>> {
        let mut options = Self {
            serve: "tests/bench/serve".into(),
            servers: Vec::new(),
            tasks: tasks(USUAL)?,
            rounds: 5,
            make: Vec::new(),
            requests: None,
            time: Duration::from_secs(1),
            quick: false,
            output: None,
            log: None,
        };
        let mut parser = lexopt::Parser::from_env();
        while let Some(argument) = parser.next()? {
            match argument {
                Long("serve") => options.serve = parser.value()?.string()?,
                Long("servers") => options.servers = words(&parser.value()?.string()?),
                Long("workloads") => options.tasks = tasks(&parser.value()?.string()?)?,
                Long("make") => {
                    let named = tasks(&parser.value()?.string()?)?;
                    options.make = named.into_iter().map(|task| task.workload).collect();
                }
                Long("rounds") => options.rounds = parser.value()?.parse()?,
                Long("requests") => options.requests = Some(parser.value()?.parse()?),
                Long("seconds") => options.time = Duration::from_secs_f64(parser.value()?.parse()?),
                Long("quick") => options.quick = true,
                Long("output") => options.output = Some(parser.value()?.into()),
                Long("log") => options.log = Some(parser.value()?.string()?),
                Long("help") => return Err(USAGE.into()),
                other => return Err(format!("{}\n{USAGE}", other.unexpected()).into()),
            }
        }
        Ok(options)
    }
}

/// The tasks of a list of names. `W19` stands for all usual tasks whose name begins with `W19-`.
fn tasks(list: &str) -> Result<Vec<Task>, String> {
    let mut tasks = Vec::new();
    for name in words(list) {
        let usual = words(USUAL);
        let group: Vec<&String> = usual.iter().filter(|one| is_part_of(one, &name)).collect();
        match Task::parse(&name) {
            Err(_) if !group.is_empty() => {
                for one in group {
                    tasks.push(Task::parse(one)?);
                }
            }
            task => tasks.push(task?),
        }
    }
    Ok(tasks)
}

fn is_part_of(task: &str, group: &str) -> bool {
    task.strip_prefix(group).is_some_and(|rest| rest.starts_with('-'))
}

fn words(list: &str) -> Vec<String> {
    list.split(',').filter(|word| !word.is_empty()).map(String::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_all_its_workloads() {
        let names: Vec<String> = tasks("W18,W26").unwrap().into_iter().map(Task::name).collect();
        assert_eq!(names, ["W18", "W26-4000", "W26-16000"]);
        assert!(tasks("W2").unwrap().len() == 1 && tasks("W99").is_err());
    }

    #[test]
    fn a_whole_run_names_every_workload() {
        let named = tasks(USUAL).unwrap();
        for workload in Workload::all() {
            assert!(named.iter().any(|task| task.workload == workload), "{workload:?}");
        }
    }
}
