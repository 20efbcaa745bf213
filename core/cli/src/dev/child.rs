//! The process of the server under development.
//!
//! Law: it leads a process group, which ends with it: first its input is closed, then it is asked to end, then it is killed.

use mcp_resources_engine::jsonrpc::{Line, Lines};
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// The longest line of the server, in bytes.
const MOST_LINE: usize = 64 << 20;
/// The size of one read in bytes.
const CHUNK: usize = 64 << 10;
/// Most lines that wait for a reader.
const MOST_LINES: usize = 64;
/// Maximum time for the process to exit after its input is closed, and again after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running server. Dropping it kills its group.
pub(super) struct DevChild {
    child: Child,
    group: RunningGroup,
    pub(super) began: Instant,
    /// Lines for it. Dropping the sender closes its input.
    pub(super) input: mpsc::Sender<Vec<u8>>,
    /// Its lines, with their ends.
    pub(super) output: mpsc::Receiver<Vec<u8>>,
}

/// The process group of a server; `None` once its leader is reaped: then another may have its number.
struct RunningGroup(Option<Pid>);

impl RunningGroup {
    fn signal(&self, signal: Signal) {
        // It may have ended meanwhile.
        let _ = self.0.map(|group| kill_process_group(group, signal));
    }
}

impl Drop for RunningGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

impl DevChild {
    /// Starts the command. Its stderr is ours.
    pub(super) fn start(command: &[String]) -> io::Result<Self> {
        let (program, words) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let leader = child.id().and_then(|id| i32::try_from(id).ok());
        let group = RunningGroup(leader.and_then(Pid::from_raw));
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (input, lines) = mpsc::channel(MOST_LINES);
        tokio::spawn(write(stdin, lines));
        let (sender, output) = mpsc::channel(MOST_LINES);
        tokio::spawn(read(stdout, sender));
        Ok(Self { child, group, began: Instant::now(), input, output })
    }

    /// Ends it, and returns how it has ended.
    pub(super) async fn end(self) -> Option<ExitStatus> {
        let Self { mut child, mut group, input, output, .. } = self;
        drop((input, output));
        for signal in [Signal::TERM, Signal::KILL] {
            if let Ok(ended) = timeout(PATIENCE, child.wait()).await {
                group.0 = None;
                return ended.ok();
            }
            group.signal(signal);
        }
        let ended = child.wait().await.ok();
        group.0 = None;
        ended
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        if stdin.write_all(&line).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
    }
}

async fn read(mut stdout: ChildStdout, sender: mpsc::Sender<Vec<u8>>) {
    let mut lines = Lines::new(MOST_LINE);
    let mut chunk = vec![0; CHUNK];
    while let Ok(count @ 1..) = stdout.read(&mut chunk).await {
        lines.push(chunk.get(..count).unwrap_or_default());
        while let Some(line) = lines.next() {
            // A longer line has no reader.
            let Line::Message(line) = line else { continue };
            if sender.send(ended(line)).await.is_err() {
                return;
            }
        }
    }
}

/// A line with its end.
pub(super) fn ended(line: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(line.len() + 1);
    whole.extend_from_slice(line);
    whole.push(b'\n');
    whole
}
