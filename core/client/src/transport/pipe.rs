//! Messages as lines, over the pipes of a child or another stream.
//!
//! Law: one task reads, unless the output of a child is lent, and it writes what could not be written at once. Only this
//! task reports that the transport is lost, as its last event.

use super::Inbound;
use super::child::{self, Child, Exited};
use super::loan::{LentOutput, LoanParts, PipeLines};
use crate::target::BoxedStream;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum number of bytes that are written at once.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes queued for a server that does not read.
const WAITING: usize = 64 << 20;
/// Maximum time to wait for the last lines of a server that has exited, or for the exit of one that has closed its
/// output.
const LAST_LINES: Duration = Duration::from_secs(1);
/// Maximum time for the other end of a stream to finish.
const PATIENCE: Duration = Duration::from_secs(2);

/// An open pair of pipes, or another stream.
#[derive(Debug)]
pub(super) struct ClientPipe {
    queue: UnboundedSender<Vec<u8>>,
    /// Lines that are sent with the next flush.
    unsent: Vec<u8>,
    /// The input of a child, which never blocks.
    stdin: Option<OwnedFd>,
    counts: Arc<PipeCounts>,
    /// Asks for the output of a child.
    lend: Arc<Notify>,
    phase: watch::Sender<PipePhase>,
    task: PipeTask,
    /// The process at the other end, if this client has started it.
    pub(super) child: Option<Child>,
}

/// A task that is aborted when this is dropped.
#[derive(Debug)]
struct PipeTask(JoinHandle<()>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PipePhase {
    Open,
    /// The queue exceeds its limit.
    Full,
    /// Remaining input is read and dropped, so that a server that is still writing can exit.
    Closing,
}

/// Bytes of the output.
#[derive(Debug, Default)]
struct PipeCounts {
    /// Those that are queued. While there are some, the task writes, so that their order stays.
    waiting: AtomicUsize,
    written: AtomicU64,
}

/// The side that lines come from.
enum PipeInput {
    Child(ChildStdout),
    Stream(ReadHalf<BoxedStream>),
}

/// Returns how many written bytes the other end has not read.
type Unread<W> = fn(&W) -> u64;

/// Writes lines.
struct PipeWriter<W> {
    /// `None` once it is closed.
    output: Option<W>,
    unread: Option<Unread<W>>,
    queued: UnboundedReceiver<Vec<u8>>,
    counts: Arc<PipeCounts>,
}

/// The task's side of the pipe.
struct ClientPump {
    inbound: Sender<Inbound>,
    longest: usize,
    phase: watch::Receiver<PipePhase>,
    lend: Arc<Notify>,
    exited: Option<Exited>,
}

impl ClientPipe {
    /// Starts reading the output of a child and writing its input.
    pub(super) fn from_child(
        child: Child,
        stdin: ChildStdin,
        stdout: ChildStdout,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Self {
        // Without it, the task writes everything.
        let here = stdin.as_fd().try_clone_to_owned().ok();
        let input = PipeInput::Child(stdout);
        Self { stdin: here, ..Self::open(input, stdin, Some(child::unread), Some(child), inbound, longest) }
    }

    /// Starts reading and writing a stream.
    pub(super) fn from_stream(stream: BoxedStream, inbound: Sender<Inbound>, longest: usize) -> Self {
        let (input, output) = tokio::io::split(stream);
        Self::open(PipeInput::Stream(input), output, None, None, inbound, longest)
    }

    /// Starts reading `input` and writing `output`. `unread` returns how many bytes the other side has not read, if
    /// that can be determined.
    fn open<W: AsyncWrite + Send + Unpin + 'static>(
        input: PipeInput,
        output: W,
        unread: Option<Unread<W>>,
        child: Option<Child>,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Self {
        let (queue, queued) = unbounded_channel();
        let (phase, seen) = watch::channel(PipePhase::Open);
        let counts = Arc::new(PipeCounts::default());
        let lend = Arc::new(Notify::new());
        let exited = child.as_ref().map(Child::exited);
        let pump = ClientPump { inbound, longest, phase: seen, lend: lend.clone(), exited };
        let writer = PipeWriter { output: Some(output), unread, queued, counts: counts.clone() };
        let task = PipeTask(tokio::spawn(pump.run(input, writer)));
        Self { queue, unsent: Vec::new(), stdin: None, counts, lend, phase, task, child }
    }

    /// Sends a line with the next flush.
    pub(super) fn send(&mut self, body: Vec<u8>) {
        if self.unsent.is_empty() {
            self.unsent = body;
        } else {
            self.unsent.extend_from_slice(&body);
        }
        self.unsent.push(b'\n');
    }

    /// Writes what was sent, at once if the other end takes it, and queues the rest.
    pub(super) fn flush(&mut self) {
        if self.unsent.is_empty() {
            return;
        }
        let mut lines = std::mem::take(&mut self.unsent);
        if self.writes_here()
            && let Some(stdin) = &self.stdin
        {
            // After an error the task writes, and reports it.
            let written = rustix::io::write(stdin, &lines).unwrap_or_default();
            self.counts.written.fetch_add(written as u64, Ordering::Relaxed);
            if written == lines.len() {
                return;
            }
            lines.drain(..written);
        }
        if self.counts.waiting.fetch_add(lines.len(), Ordering::Relaxed) + lines.len() > WAITING {
            self.phase.send_if_modified(|phase| {
                let is_new = *phase == PipePhase::Open;
                if is_new {
                    *phase = PipePhase::Full;
                }
                is_new
            });
        } else {
            // Fails if the task has ended, which has then reported the reason.
            let _ = self.queue.send(lines);
        }
    }

    /// Whether a flush writes on its own thread.
    pub(super) fn writes_here(&self) -> bool {
        self.stdin.is_some() && self.counts.waiting.load(Ordering::Acquire) == 0
    }

    /// Asks for the output: see [`Inbound::Lent`].
    pub(super) fn lend(&self) {
        self.lend.notify_one();
    }

    /// Writes the queue, closes the pipe, and waits for the other end to finish.
    pub(super) async fn close(mut self) {
        self.flush();
        self.phase.send_replace(PipePhase::Closing);
        drop((self.queue, self.stdin));
        match self.child {
            Some(child) => child.end().await,
            None => drop(timeout(PATIENCE, self.task.ended()).await),
        }
    }
}

impl PipeTask {
    async fn ended(mut self) {
        // Cannot fail: the task is not aborted during this wait.
        let _ = (&mut self.0).await;
    }
}

impl Drop for PipeTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ClientPump {
    async fn run<W: AsyncWrite + Unpin>(mut self, input: PipeInput, mut writer: PipeWriter<W>) {
        let mut phase = self.phase.clone();
        let reason = tokio::select! {
            reason = self.pump(input, writer.run()) => reason,
            Ok(_) = phase.wait_for(|phase| *phase == PipePhase::Full) => {
                format!("the server does not read: more than {WAITING} bytes wait to be written")
            }
        };
        let is_closing = *phase.borrow() == PipePhase::Closing;
        if !is_closing {
            // Fails if the client no longer exists.
            let lost = if writer.was_read() { Inbound::Lost } else { Inbound::NotHeard };
            let _ = self.inbound.send(lost(reason)).await;
        }
    }

    /// Reads and writes until the other end is gone; returns the reason.
    async fn pump(&mut self, input: PipeInput, write: impl Future<Output = std::io::Result<()>>) -> String {
        let mut exited = self.exited.clone();
        let mut read = pin!(self.read(input));
        tokio::select! {
            reason = &mut read => match exited {
                Some(mut exited) if reason.is_none() => timeout(LAST_LINES, exited.wait()).await.ok(),
                _ => reason,
            },
            Err(error) = write => {
                let last = timeout(LAST_LINES, read).await.ok().flatten();
                let exited = async { Some(exited.as_mut()?.wait().await) };
                let ended = timeout(LAST_LINES, exited).await.ok().flatten();
                last.or(ended).or_else(|| Some(format!("the server does not read any more: {error}")))
            }
            Some(reason) = async { Some(exited.as_mut()?.wait().await) } => {
                timeout(LAST_LINES, read).await.ok().flatten().or(Some(reason))
            }
        }
        .unwrap_or_else(|| "the server has closed the connection".into())
    }

    /// Reads to the end; returns an error, if there was one.
    async fn read(&mut self, mut input: PipeInput) -> Option<String> {
        let mut lines = PipeLines::new(self.longest);
        loop {
            let lend = self.lend.clone();
            let read = tokio::select! {
                count = input.read(&mut lines.chunk) => Some(count),
                () = lend.notified() => None,
            };
            let count = match read {
                Some(Ok(count)) => count,
                Some(Err(error)) => return Some(broken(&error)),
                None => match self.lent(input, lines).await {
                    Ok(back) => {
                        (input, lines) = back;
                        match lines.fault() {
                            None => continue,
                            fault => return fault,
                        }
                    }
                    Err(error) => return Some(broken(&error)),
                },
            };
            lines.push(count);
            while let Some(line) = lines.next() {
                // The receiver is dropped if the client is closed.
                if let Err(TrySendError::Full(message)) =
                    self.inbound.try_send(Inbound::Message(line.to_vec()))
                {
                    tokio::select! {
                        _ = self.phase.wait_for(|phase| *phase == PipePhase::Closing) => {}
                        _ = self.inbound.send(message) => {}
                    }
                }
            }
            if let Some(fault) = lines.fault() {
                return Some(fault);
            }
            if count == 0 {
                return None;
            }
        }
    }

    /// Lends the output of a child until it comes back.
    async fn lent(&self, input: PipeInput, lines: PipeLines) -> io::Result<(PipeInput, PipeLines)> {
        let PipeInput::Child(output) = input else { return Ok((input, lines)) };
        let (lent, returned) = LentOutput::new(LoanParts { output: output.into_owned_fd()?, lines });
        // If the client no longer exists, it comes back at once.
        let _ = self.inbound.send(Inbound::Lent(lent)).await;
        let LoanParts { output, lines } = returned.await.map_err(io::Error::other)?;
        let output = ChildStdout::from_std(std::process::ChildStdout::from(output))?;
        Ok((PipeInput::Child(output), lines))
    }
}

impl PipeInput {
    /// Reads once. Nothing is lost if this is dropped before its end.
    async fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Child(output) => output.read(chunk).await,
            Self::Stream(stream) => stream.read(chunk).await,
        }
    }
}

fn broken(error: &io::Error) -> String {
    format!("the connection to the server broke: {error}")
}

impl<W: AsyncWrite + Unpin> PipeWriter<W> {
    /// Writes queued lines until the queue is closed, then closes the output. Lines that are queued together are
    /// written at once.
    async fn run(&mut self) -> std::io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        while let Some(mut lines) = self.queued.recv().await {
            while lines.len() < CHUNK
                && let Ok(line) = self.queued.try_recv()
            {
                lines.extend_from_slice(&line);
            }
            output.write_all(&lines).await?;
            output.flush().await?;
            self.counts.written.fetch_add(lines.len() as u64, Ordering::Relaxed);
            self.counts.waiting.fetch_sub(lines.len(), Ordering::Release);
        }
        let closed = output.shutdown().await;
        self.output = None;
        closed
    }

    /// Whether the other end has read anything; `true` if that is unknown.
    fn was_read(&self) -> bool {
        let written = self.counts.written.load(Ordering::Relaxed);
        self.output.as_ref().zip(self.unread).is_none_or(|(output, unread)| written > unread(output))
    }
}
