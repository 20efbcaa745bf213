//! The output of a child, lent to an event loop that reads it itself, so that no other thread wakes for an answer.
//!
//! ```text
//!   ClientPump ── LentOutput ──▶ the task of the server: its lines are read under its lock
//!              ◀── dropped ───┘
//! ```
//!
//! Law: one holder reads at a time. A loan that is dropped, for whatever reason, goes back to the pump with its unfinished
//! line.

use mcp_resources_engine::jsonrpc::{Line, Lines};
use rustix::io::{Errno, read};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes of an unfinished line that a loop reads: a longer one would take it long to decode.
const UNFINISHED: usize = 256 * 1024;

/// The descriptors that an event loop waits for, as one: itself readable while one of them is.
#[derive(Debug)]
pub struct LoopPipes(OwnedFd);

/// The bytes of a stream as lines.
#[derive(Debug)]
pub(super) struct PipeLines {
    lines: Lines,
    longest: usize,
    /// The buffer of a read.
    pub(super) chunk: Vec<u8>,
    is_too_long: bool,
}

/// The parts of a loan.
#[derive(Debug)]
pub(super) struct LoanParts {
    pub(super) output: OwnedFd,
    pub(super) lines: PipeLines,
}

/// The output of a child, while its pump does not read it.
#[derive(Debug)]
pub(crate) struct LentOutput {
    /// `None` once it went back.
    parts: Option<LoanParts>,
    back: Option<oneshot::Sender<LoanParts>>,
    /// The descriptors among which it is watched.
    pipes: Option<Arc<LoopPipes>>,
    /// The number of bytes that were read since the last whole line.
    unfinished: usize,
}

#[cfg(target_os = "linux")]
impl LoopPipes {
    /// `None` where the system has nothing of this kind.
    pub(crate) fn new() -> Option<Self> {
        use rustix::event::epoll;
        epoll::create(epoll::CreateFlags::CLOEXEC).ok().map(Self)
    }

    /// Watches a descriptor. Reads of it no longer wait.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn add(&self, fd: impl AsFd) -> io::Result<()> {
        use rustix::event::epoll;
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(epoll::add(&self.0, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?)
    }

    fn remove(&self, fd: impl AsFd) {
        // Fails only for one that is not there.
        let _ = rustix::event::epoll::delete(&self.0, fd);
    }
}

#[cfg(not(target_os = "linux"))]
impl LoopPipes {
    pub(crate) fn new() -> Option<Self> {
        None
    }

    pub(crate) fn add(&self, _: impl AsFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove(&self, _: impl AsFd) {}
}

impl AsFd for LoopPipes {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl PipeLines {
    /// `longest` is the maximum length of a line in bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self { lines: Lines::new(longest), longest, chunk: vec![0; CHUNK], is_too_long: false }
    }

    /// Takes the first bytes of the chunk; none end the stream.
    pub(super) fn push(&mut self, count: usize) {
        match count {
            0 => self.lines.finish(),
            _ => self.lines.push(self.chunk.get(..count).unwrap_or_default()),
        }
    }

    /// The next whole line.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        match self.lines.next()? {
            Line::Message(line) => Some(line),
            Line::TooLong(_) => {
                self.is_too_long = true;
                None
            }
        }
    }

    /// The reason to read no further: a line that is too long may contain the answer to a request, which would then wait
    /// for ever.
    pub(super) fn fault(&self) -> Option<String> {
        let is_too_long = self.is_too_long || self.lines.is_overlong();
        is_too_long.then(|| format!("a line of the server's is longer than {} bytes", self.longest))
    }
}

impl LentOutput {
    /// Lends what was taken from the pump, which gets it back through the receiver.
    pub(super) fn new(parts: LoanParts) -> (Self, oneshot::Receiver<LoanParts>) {
        let (back, returned) = oneshot::channel();
        (Self { parts: Some(parts), back: Some(back), pipes: None, unfinished: 0 }, returned)
    }

    /// Lets an event loop wait for it.
    ///
    /// # Errors
    /// The system's; nothing is then waited for.
    pub(crate) fn watched_by(&mut self, pipes: &Arc<LoopPipes>) -> io::Result<()> {
        if let Some(LoanParts { output, .. }) = &self.parts {
            pipes.add(output)?;
            self.pipes = Some(pipes.clone());
        }
        Ok(())
    }

    /// Reads once, without waiting, and calls `each` with every whole line. Returns how many bytes were read; `None` if the
    /// pump must go on: the stream has ended, cannot be used further, or brings a long line.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&[u8])) -> Option<usize> {
        let LoanParts { output, lines } = self.parts.as_mut()?;
        let count = match read(output, lines.chunk.as_mut_slice()) {
            // The pump finds the end, or the error, again.
            Ok(0) => return None,
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Some(0),
            Err(_) => return None,
        };
        lines.push(count);
        self.unfinished += count;
        while let Some(line) = lines.next() {
            self.unfinished = 0;
            each(line);
        }
        (lines.fault().is_none() && self.unfinished <= UNFINISHED).then_some(count)
    }
}

/// It goes back.
impl Drop for LentOutput {
    fn drop(&mut self) {
        let Some(parts) = self.parts.take() else { return };
        if let Some(pipes) = self.pipes.take() {
            pipes.remove(&parts.output);
        }
        if let Some(back) = self.back.take() {
            // Fails if the pump has ended.
            let _ = back.send(parts);
        }
    }
}
