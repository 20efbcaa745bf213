//! Measures servers side by side over stdio and HTTP: starts each on this process's one core, keeps requests outstanding,
//! checks the content of every answer, and writes every round as JSON. `../../report` makes the tables of it.
//!
//! Law: knows the fixture (`../README.md`) and the wire, never a server's insides. Bounded in requests and in time.

mod client;
mod database;
mod docs;
mod figures;
mod files;
mod gateway;
mod history;
mod http;
mod measure;
mod options;
mod process;
mod progress;
mod reader;
mod records;
mod repository;
mod scale;
mod servers;
mod settings;
mod start;
mod tools;
mod updates;
mod walk;
mod workload;

use figures::Figures;
use gateway::GatewayWork;
use measure::Setting;
use options::{Options, Task};
use progress::Progress;
use records::{Records, Row};
use servers::{Contestant, Launcher};
use std::error::Error;
use std::process::ExitCode;
use tools::ToolWork;
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
    if !options.make.is_empty() {
        return options.make.iter().try_for_each(|workload| make(*workload, options.quick));
    }
    let plan: Vec<(Task, Vec<Row>)> =
        options.tasks.iter().map(|task| (*task, rows(*task, &options))).collect();
    let measured = plan.iter().flat_map(|(_, rows)| rows).filter(|row| row.missing.is_none()).count();
    let mut progress = Progress::new(measured * options.rounds);
    let mut records = Records::new(&options)?;
    let mut launcher = Launcher::new(&options);
    process::pin_to_one_core()?;
    for (task, mut rows) in plan {
        for round in 1..=options.rounds {
            for row in &mut rows {
                if row.missing.is_some() {
                    continue;
                }
                progress.step(&format!(
                    "{} {}, round {round} of {}",
                    task.name(),
                    row.contestant,
                    options.rounds
                ));
                match one(task, &row.contestant, &mut launcher, &options) {
                    Ok(figures) => row.rounds.push(figures),
                    Err(error) => {
                        progress.note(&format!("{} {}: {error}", task.name(), row.contestant));
                        row.missing = Some(error.to_string());
                        progress.skip(options.rounds - round);
                    }
                }
            }
        }
        records.add(task, rows)?;
    }
    progress.finish();
    Ok(())
}

/// Makes what a workload serves.
fn make(workload: Workload, is_quick: bool) -> Result<(), Box<dyn Error>> {
    match workload {
        Workload::Docs => docs::make(),
        Workload::History(_) => history::make(is_quick),
        _ => Err(format!("{} has no folder that can be made by itself; W11 and W23-… have", workload.name())
            .into()),
    }
}

/// Who takes part in a workload, and who cannot, with the reason.
fn rows(task: Task, options: &Options) -> Vec<Row> {
    let taking_part = servers::contestants(task.workload, task.modern);
    let chosen = taking_part
        .into_iter()
        .filter(|one| options.servers.is_empty() || options.servers.iter().any(|name| *name == one.name));
    chosen.map(|one| Row::new(one, task)).collect()
}

fn one(
    task: Task,
    contestant: &Contestant,
    launcher: &mut Launcher,
    options: &Options,
) -> Result<Figures, Box<dyn Error>> {
    let Task { workload, modern } = task;
    let launch = launcher.launch(contestant, workload)?;
    let setting = Setting {
        read: workload.read_by(contestant),
        modern,
        in_flight: workload.in_flight(),
        in_bursts: workload != Workload::Each,
        warm: workload.warm(contestant.warm(), options.quick),
        requests: options.requests.unwrap_or_else(|| workload.requests(options.quick)),
        time: workload.time(options.time),
        is_quick: options.quick,
    };
    match workload {
        Workload::List(listed) => walk::measure(&launch, listed, &setting),
        Workload::Updates => updates::measure(&launch, &setting),
        Workload::Subscribers | Workload::Listeners => http::measure_listeners(&launch, &setting),
        Workload::Http(_) => http::measure_load(&launch, &setting),
        Workload::Open(rate) => http::measure_open(&launch, rate, &setting),
        Workload::Start => start::measure(&launch, contestant, &setting),
        Workload::Client(_) => reader::measure(&launch, &setting),
        Workload::Files(work) => files::measure(&launch, work, &setting),
        Workload::Database(part) => database::measure(&launch, part, &setting),
        Workload::Docs => docs::measure(&launch, &setting),
        Workload::Git(query) => repository::measure(&launch, query, &setting),
        Workload::History(query) => history::measure(&launch, query, &setting),
        Workload::Scale(work) => scale::measure(&launch, work, &setting),
        Workload::Settings => settings::measure(&launch, &setting),
        Workload::Tools(ToolWork::List) => tools::measure_list(&launch, &setting),
        Workload::Tools(ToolWork::Import) => tools::measure_import(&launch, contestant, &setting),
        Workload::Tools(ToolWork::Http(_)) | Workload::Gateway(GatewayWork::Http) => {
            http::measure_load(&launch, &setting)
        }
        Workload::Gateway(GatewayWork::List) => gateway::measure_list(&launch, &setting),
        Workload::Gateway(GatewayWork::Listeners) => http::measure_listeners(&launch, &setting),
        _ => measure::measure(&launch, &setting),
    }
}
