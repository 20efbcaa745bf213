//! Measures servers side by side over stdio and HTTP: spawns each on this process's one core, keeps requests outstanding,
//! checks the content of every answer, and writes a table of medians, spreads and ratios.
//!
//! Law: knows the fixture (`../README.md`) and the wire, never a server's insides. Bounded in requests and in time.

mod client;
mod http;
mod measure;
mod options;
mod process;
mod report;
mod servers;
mod stats;
mod updates;
mod workload;

use measure::{Figures, Setting};
use options::{Options, Task};
use report::Row;
use servers::Contestant;
use std::error::Error;
use std::process::ExitCode;
use workload::Workload;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-driver: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let options = Options::from_args()?;
    let mut report = report::Report::new(&options);
    process::pin_to_one_core()?;
    for task in &options.tasks {
        report.table(*task, &rounds(*task, &options));
    }
    let text = report.finish();
    print!("{text}");
    if let Some(path) = &options.output {
        std::fs::write(path, &text)?;
    }
    Ok(())
}

/// All rounds of one workload, interleaved: each server once, then each again.
fn rounds(task: Task, options: &Options) -> Vec<Row> {
    let name = task.workload.name();
    let contestants = options.servers.iter().filter(|name| servers::takes_part(name, task.workload));
    let mut rows: Vec<Row> = contestants.map(|name| Row::new(name)).collect();
    for round in 1..=options.rounds {
        eprintln!("{name}: round {round} of {}", options.rounds);
        for row in rows.iter_mut().filter(|row| row.missing.is_none()) {
            match one(task, &Contestant::named(&row.server), options) {
                Ok(figures) => row.figures.push(figures),
                Err(error) => {
                    eprintln!("{name}: {}: {error}", row.server);
                    row.missing = Some(error.to_string());
                }
            }
        }
    }
    rows
}

fn one(task: Task, contestant: &Contestant, options: &Options) -> Result<Figures, Box<dyn Error>> {
    let command = options.serve.replace("NAME", &contestant.name);
    let Task { workload, modern } = task;
    let setting = Setting {
        workload,
        modern,
        constant: contestant.constant,
        warm: workload.warm(contestant.warm, options.quick),
        requests: options.requests.unwrap_or_else(|| workload.requests(options.quick)),
        time: options.time,
    };
    match workload {
        Workload::Updates => updates::measure(&command.replace("TRANSPORT", "--stdio"), &setting),
        Workload::Subscribers | Workload::Listeners => http::measure_listeners(&command, &setting),
        _ if workload.is_http() => http::measure_load(&command, &setting),
        _ => measure::measure(&command.replace("TRANSPORT", "--stdio"), &setting),
    }
}
