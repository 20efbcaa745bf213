//! `serve … -- CMD`: our sources beside any server that a command starts, over stdio.
//!
//! Law: the other server gets every message that is not ours, and its messages pass as they came. It never outlives this
//! program, and its end is the end of this program, with its status.

use crate::Outcome;
use crate::error::Failed;
use crate::output;
use mcp_resources_runtime::server::{JunctionEnd, ResourceServer, StreamPair};
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// The time that the other server has to end by itself after its input is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves until the client closes stdin, a signal comes, or the other server ends.
pub(super) async fn serve(server: ResourceServer, command: &[String]) -> Outcome {
    let failed = |error: io::Error| Failed::new(error.to_string());
    let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut child = start(command)?;
    let (Some(input), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(Failed::new("the pipes of the other server are missing"));
    };
    let junction = server.beside(true).map_err(|error| Failed::usage(error.to_string()))?;
    let client = StreamPair { from: standard_input(), to: standard_output() };
    let served = tokio::select! {
        served = junction.serve(client, StreamPair { from: answers, to: input }) => served,
        _ = terminated.recv() => Ok(JunctionEnd::Client),
        _ = interrupted.recv() => Ok(JunctionEnd::Client),
    };
    let ended = end(&mut child).await;
    server.flush_audit();
    match (served, ended) {
        (Err(error), _) => Err(Failed::new(error.to_string())),
        (Ok(JunctionEnd::Server), Some(status)) if !status.success() => {
            output::say("error", &format!("{}: it ended with {status}", command.join(" ")));
            Ok(status_of(status))
        }
        _ => Ok(0),
    }
}

fn start(command: &[String]) -> Result<Child, Failed> {
    let Some((program, words)) = command.split_first() else {
        return Err(Failed::usage("no command stands behind --"));
    };
    // Its stderr is ours.
    let started = Command::new(program)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    started.map_err(|error| Failed::usage(format!("{program}: it cannot be started: {error}")))
}

/// Waits for the end of the other server, whose input is closed: then asks for it, then forces it.
async fn end(child: &mut Child) -> Option<ExitStatus> {
    if let Ok(ended) = timeout(PATIENCE, child.wait()).await {
        return ended.ok();
    }
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    // It may have ended meanwhile.
    let _ = id.map(|id| kill_process(id, Signal::TERM));
    if let Ok(ended) = timeout(PATIENCE, child.wait()).await {
        return ended.ok();
    }
    let _ = child.start_kill();
    child.wait().await.ok()
}

/// The exit status that a shell would report.
fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(1)
}

/// Standard input: as a pipe if it is one, which needs no thread.
fn standard_input() -> Box<dyn AsyncRead + Unpin> {
    match duplicate(rustix::stdio::stdin()).and_then(pipe::Receiver::from_owned_fd) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdin()),
    }
}

/// Standard output, likewise.
fn standard_output() -> Box<dyn AsyncWrite + Unpin> {
    match duplicate(rustix::stdio::stdout()).and_then(pipe::Sender::from_owned_fd) {
        Ok(pipe) => Box::new(pipe),
        Err(_) => Box::new(tokio::io::stdout()),
    }
}

fn duplicate(descriptor: impl AsFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, 3)?)
}
