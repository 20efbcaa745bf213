//! Messages as lines, over the pipes of a child or another stream.
//!
//! Law: one task reads and writes, and only this task reports that the transport is lost, as its last event.

use super::Inbound;
use super::child::{self, Child, Exited};
use crate::target::BoxedStream;
use mcp_resources_engine::jsonrpc::{Line, Lines};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The size of one read in bytes.
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
    waiting: Arc<AtomicUsize>,
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

/// Returns how many written bytes the other end has not read.
type Unread<W> = fn(&W) -> u64;

/// Writes lines.
struct PipeWriter<W> {
    /// `None` once it is closed.
    output: Option<W>,
    unread: Option<Unread<W>>,
    queued: UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    written: u64,
}

/// The task's side of the pipe.
struct ClientPump {
    inbound: Sender<Inbound>,
    longest: usize,
    phase: watch::Receiver<PipePhase>,
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
        Self::open(stdout, stdin, Some(child::unread), Some(child), inbound, longest)
    }

    /// Starts reading and writing a stream.
    pub(super) fn from_stream(stream: BoxedStream, inbound: Sender<Inbound>, longest: usize) -> Self {
        let (input, output) = tokio::io::split(stream);
        Self::open(input, output, None, None, inbound, longest)
    }

    /// Starts reading `input` and writing `output`. `unread` returns how many bytes the other side has not read, if
    /// that can be determined.
    fn open<W: AsyncWrite + Send + Unpin + 'static>(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: W,
        unread: Option<Unread<W>>,
        child: Option<Child>,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Self {
        let (queue, queued) = unbounded_channel();
        let (phase, seen) = watch::channel(PipePhase::Open);
        let waiting = Arc::new(AtomicUsize::new(0));
        let exited = child.as_ref().map(Child::exited);
        let pump = ClientPump { inbound, longest, phase: seen, exited };
        let waits = waiting.clone();
        let writer = PipeWriter { output: Some(output), unread, queued, waiting: waits, written: 0 };
        let task = PipeTask(tokio::spawn(pump.run(input, writer)));
        Self { queue, waiting, phase, task, child }
    }

    /// Queues a line.
    pub(super) fn send(&self, mut body: Vec<u8>) {
        body.push(b'\n');
        if self.waiting.fetch_add(body.len(), Ordering::Relaxed) + body.len() > WAITING {
            self.phase.send_if_modified(|phase| {
                let is_new = *phase == PipePhase::Open;
                if is_new {
                    *phase = PipePhase::Full;
                }
                is_new
            });
        } else {
            // Fails if the task has ended, which has then reported the reason.
            let _ = self.queue.send(body);
        }
    }

    /// Writes the queue, closes the pipe, and waits for the other end to finish.
    pub(super) async fn close(self) {
        self.phase.send_replace(PipePhase::Closing);
        drop(self.queue);
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
    async fn run<W: AsyncWrite + Unpin>(mut self, input: impl AsyncRead + Unpin, mut writer: PipeWriter<W>) {
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
    async fn pump(
        &mut self,
        input: impl AsyncRead + Unpin,
        write: impl Future<Output = std::io::Result<()>>,
    ) -> String {
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
    async fn read(&mut self, mut input: impl AsyncRead + Unpin) -> Option<String> {
        let mut lines = Lines::new(self.longest);
        let mut chunk = vec![0; CHUNK];
        loop {
            let count = match input.read(&mut chunk).await {
                Ok(count) => count,
                Err(error) => return Some(format!("the connection to the server broke: {error}")),
            };
            match count {
                0 => lines.finish(),
                _ => lines.push(chunk.get(..count).unwrap_or_default()),
            }
            // A line that is too long may contain the answer to a request, which would then wait for ever.
            let too_long = || Some(format!("a line of the server's is longer than {} bytes", self.longest));
            while let Some(line) = lines.next() {
                let Line::Message(message) = line else { return too_long() };
                // The receiver is dropped if the client is closed.
                if let Err(TrySendError::Full(message)) =
                    self.inbound.try_send(Inbound::Message(message.to_vec()))
                {
                    tokio::select! {
                        _ = self.phase.wait_for(|phase| *phase == PipePhase::Closing) => {}
                        _ = self.inbound.send(message) => {}
                    }
                }
            }
            if lines.is_overlong() {
                return too_long();
            }
            if count == 0 {
                return None;
            }
        }
    }
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
            self.written += lines.len() as u64;
            self.waiting.fetch_sub(lines.len(), Ordering::Relaxed);
        }
        let closed = output.shutdown().await;
        self.output = None;
        closed
    }

    /// Whether the other end has read anything; `true` if that is unknown.
    fn was_read(&self) -> bool {
        self.output.as_ref().zip(self.unread).is_none_or(|(output, unread)| self.written > unread(output))
    }
}
