//! `dev`: runs a server that is being written, and starts it again when its sources change.
//!
//! ```text
//!   client ──stdio | HTTP──▶ relay: one for each client ──pipes──▶ process of the current version
//!   sources ──changed──▶ lists of the new version, from a process of its own ──it works──▶ all relays start the new version
//! ```
//!
//! Law: a version that does not start replaces nothing: its error is printed, and the version before goes on.

mod child;
mod http;
mod lists;
mod messages;
mod relay;
mod report;
mod sources;

use crate::Outcome;
use crate::args::{Dev, HttpAddress};
use crate::error::Failed;
use lists::ServerLists;
use mcp_resources_engine::jsonrpc::{Line, Lines};
use relay::{DevState, RelayHandle};
use sources::DevSources;
use std::ffi::OsStr;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

/// The longest message of a client, in bytes.
const MOST_MESSAGE: usize = 64 << 20;
/// The size of one read in bytes.
const CHUNK: usize = 64 << 10;
/// Most lines that wait for the client.
const MOST_LINES: usize = 64;
/// The time that processes have to end, each after its input is closed, and again after SIGTERM.
const LAST: Duration = Duration::from_secs(6);

/// The server that runs, and the files that restart it.
struct DevPlan {
    command: Arc<[String]>,
    sources: DevSources,
}

/// Runs until the client closes stdin, or a signal ends it. `program` is the name of this command.
pub(crate) fn run(args: &Dev, program: &OsStr) -> Outcome {
    let plan = DevPlan::new(args, program)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(develop(plan, args.http.as_ref()));
    // A thread that waits for stdin must not keep the program alive.
    runtime.shutdown_background();
    ended
}

impl DevPlan {
    fn new(args: &Dev, program: &OsStr) -> Result<Self, Failed> {
        let here = Path::new(".");
        let (command, sources) = match (&args.file, args.command.as_slice()) {
            (None, []) => {
                return Err(Failed::usage(
                    "nothing to run; write mcp-resources dev server.py, dev resources.yaml, or dev -- CMD",
                ));
            }
            (None, command) => (command.to_vec(), DevSources::of_folder(here).map_err(Failed::usage)?),
            (Some(file), _) => {
                if !file.is_file() {
                    return Err(Failed::usage(format!(
                        "{}: it does not exist, or is no file",
                        file.display()
                    )));
                }
                let name = file.display().to_string();
                let kind = file.extension().and_then(OsStr::to_str).unwrap_or_default();
                let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(here);
                let of_folder = || DevSources::of_folder(folder).map_err(Failed::usage);
                match kind {
                    "yaml" | "yml" | "json" => {
                        let mut command = own_command(program);
                        command.extend(["serve".into(), "--config".into(), name]);
                        (command, DevSources::File(PathBuf::from(file)))
                    }
                    "py" => (vec!["python3".into(), name], of_folder()?),
                    "js" | "mjs" | "cjs" | "ts" | "mts" => (vec!["node".into(), name], of_folder()?),
                    _ => {
                        return Err(Failed::usage(format!(
                            "{name}: it is neither a configuration in YAML or JSON, nor a program in Python or JavaScript; write \
                             mcp-resources dev -- CMD"
                        )));
                    }
                }
            }
        };
        Ok(Self { command: command.into(), sources })
    }
}

/// The words that start this command: before `dev` may be an interpreter and its script.
fn own_command(program: &OsStr) -> Vec<String> {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    match words.iter().skip(1).position(|word| word == "dev") {
        Some(at) => words.into_iter().take(at + 1).collect(),
        None => vec![program.to_string_lossy().into_owned()],
    }
}

async fn develop(plan: DevPlan, address: Option<&HttpAddress>) -> Outcome {
    let failed = |error: io::Error| Failed::new(error.to_string());
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let states = watch::Sender::new(DevState::default());
    let front: Pin<Box<dyn Future<Output = Result<(), Failed>>>> = match address {
        Some(address) => {
            Box::pin(http::serve(http::open(address).await?, plan.command.clone(), states.clone()))
        }
        None => Box::pin(over_stdio(plan.command.clone(), states.subscribe())),
    };
    let ended = tokio::select! {
        ended = front => ended.map(|()| 0),
        () = follow(&plan, &states) => Ok(0),
        _ = terminated.recv() => Ok(0),
        _ = interrupted.recv() => Ok(0),
    };
    states.send_modify(|state| state.is_over = true);
    // Relays end their processes, which may have something to finish.
    let _ = timeout(LAST, states.closed()).await;
    ended
}

/// Takes a new version whenever the sources change. Never ends.
async fn follow(plan: &DevPlan, states: &watch::Sender<DevState>) {
    let mut seen = plan.sources.facts();
    let mut before: Option<ServerLists> = None;
    let mut cause: Option<String> = None;
    loop {
        match ServerLists::from_command(&plan.command).await {
            Ok(now) => {
                let change = before.as_ref().map(|before| before.change_to(&now)).unwrap_or_default();
                match &cause {
                    Some(cause) => report::say(&format!("{cause} changed: {}", now.counted())),
                    None => report::say(&format!("started: {}", now.counted())),
                }
                change.print();
                let change = Arc::new(change);
                states.send_modify(|state| {
                    state.version += 1;
                    state.change = change;
                    state.reason = None;
                });
                before = Some(now);
            }
            Err(why) => {
                let goes_on = if before.is_some() { "the version before goes on" } else { "requests wait" };
                report::say(&format!("the server does not start: {why}; {goes_on} until a source changes"));
                states.send_modify(|state| state.reason = Some(why));
            }
        }
        cause = Some(plan.sources.changed(&mut seen).await);
    }
}

/// Serves the client at stdin and stdout, until it closes its end.
async fn over_stdio(command: Arc<[String]>, state: watch::Receiver<DevState>) -> Result<(), Failed> {
    let (relay, task) = relay::start(command, state);
    let (sink, mut lines) = mpsc::channel::<Vec<u8>>(MOST_LINES);
    relay.listen(sink.clone()).await;
    let writes = async {
        let mut out = tokio::io::stdout();
        while let Some(line) = lines.recv().await {
            if out.write_all(&line).await.is_err() || out.flush().await.is_err() {
                return;
            }
        }
    };
    let reads = async move {
        read_client(&relay, &sink).await;
        drop((relay, sink));
        // What the server still answers is written.
        let _ = task.await;
    };
    tokio::join!(reads, writes);
    Ok(())
}

async fn read_client(relay: &RelayHandle, sink: &relay::LineSink) {
    let mut input = tokio::io::stdin();
    let mut lines = Lines::new(MOST_MESSAGE);
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = input.read(&mut chunk).await.unwrap_or_default();
        match count {
            0 => lines.finish(),
            count => lines.push(chunk.get(..count).unwrap_or_default()),
        }
        while let Some(line) = lines.next() {
            match line {
                Line::Message(line) => relay.send(child::ended(line), sink.clone()).await,
                Line::TooLong(_) => {
                    report::say("a message of the client is larger than 64 MiB, and was dropped")
                }
            }
        }
        if count == 0 {
            return;
        }
    }
}
