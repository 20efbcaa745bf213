//! The output of a child, lent to an event loop that reads it itself, so that no other thread wakes for an answer.
//!
//! ```text
//!   ClientPump ── LentOutput ──▶ the task of the server: its lines are taken under its lock
//!              ◀── dropped ───┘
//! ```
//!
//! Law: one holder reads at a time. A loan that is dropped, for whatever reason, goes back to the pump with its unfinished
//! line. A loop that reads a descriptor of its own is asked to return the loan; until it does, nothing else reads.

use mcp_resources_engine::jsonrpc::{Line, Lines};
use rustix::io::{Errno, read};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::oneshot;

/// The size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// Maximum number of bytes of an unfinished line that a loop reads: a longer one would take it long to decode.
const UNFINISHED: usize = 256 * 1024;

/// The descriptors that an event loop waits for, as one: itself readable while one of them is.
#[derive(Debug)]
pub struct LoopPipes(OwnedFd);

/// The way in which an event loop gets the bytes of what it is lent.
#[derive(Clone)]
pub(crate) enum LoopReader {
    /// The loop waits for these descriptors, and this crate reads.
    Waits(Arc<LoopPipes>),
    /// The loop reads, from a descriptor of its own. The function is called for each loan, with its number.
    Reads(Arc<dyn Fn(u64, LoanEvent) + Send + Sync>),
}

/// An event of a loan, for a loop that reads.
#[derive(Debug)]
pub(crate) enum LoanEvent {
    /// It begins with this descriptor.
    Begun(OwnedFd),
    /// It is to be returned.
    Recalled,
}

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
    /// The loop that has it, once it has it.
    reader: Option<LoopReader>,
    /// The number of the loan, which no other has.
    number: u64,
    is_recalled: bool,
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
        static LOANS: AtomicU64 = AtomicU64::new(1);
        let (back, returned) = oneshot::channel();
        let number = LOANS.fetch_add(1, Ordering::Relaxed);
        let (parts, back) = (Some(parts), Some(back));
        (Self { parts, back, reader: None, number, is_recalled: false, unfinished: 0 }, returned)
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Whether the loop reads, and nothing else may.
    pub(crate) fn is_read_elsewhere(&self) -> bool {
        matches!(self.reader, Some(LoopReader::Reads(_)))
    }

    /// Gives it to an event loop.
    ///
    /// # Errors
    /// The system's; the loop then has nothing.
    pub(crate) fn give(&mut self, reader: &LoopReader) -> io::Result<()> {
        let Some(LoanParts { output, .. }) = &self.parts else { return Ok(()) };
        match reader {
            LoopReader::Waits(pipes) => pipes.add(output)?,
            LoopReader::Reads(tell) => tell(self.number, LoanEvent::Begun(output.try_clone()?)),
        }
        self.reader = Some(reader.clone());
        Ok(())
    }

    /// Asks the loop for it, once.
    pub(crate) fn recall(&mut self) {
        if let Some(LoopReader::Reads(tell)) = &self.reader
            && !std::mem::replace(&mut self.is_recalled, true)
        {
            tell(self.number, LoanEvent::Recalled);
        }
    }

    /// Reads once, without waiting, and calls `each` with every whole line. Returns how many bytes were read; `None` if the
    /// pump must go on: the stream has ended, cannot be used further, or brings a long line.
    pub(crate) fn read(&mut self, each: impl FnMut(&[u8])) -> Option<usize> {
        let LoanParts { output, lines } = self.parts.as_mut()?;
        let count = match read(output, lines.chunk.as_mut_slice()) {
            // The pump finds the end, or the error, again.
            Ok(0) => return None,
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Some(0),
            Err(_) => return None,
        };
        lines.push(count);
        self.lines(count, each).then_some(count)
    }

    /// The loop has returned it.
    pub(crate) fn returned(mut self) {
        self.is_recalled = true;
    }

    /// Takes bytes that the loop has read, and calls `each` with every whole line.
    pub(crate) fn take(&mut self, bytes: &[u8], each: impl FnMut(&[u8])) {
        let Some(LoanParts { lines, .. }) = &mut self.parts else { return };
        lines.lines.push(bytes);
        if !self.lines(bytes.len(), each) {
            self.recall();
        }
    }

    /// Calls `each` with every whole line, after `count` bytes more. Returns whether the loop may go on.
    fn lines(&mut self, count: usize, mut each: impl FnMut(&[u8])) -> bool {
        let Some(LoanParts { lines, .. }) = &mut self.parts else { return false };
        self.unfinished += count;
        while let Some(line) = lines.next() {
            self.unfinished = 0;
            each(line);
        }
        lines.fault().is_none() && self.unfinished <= UNFINISHED
    }
}

/// It goes back.
impl Drop for LentOutput {
    fn drop(&mut self) {
        self.recall();
        let Some(parts) = self.parts.take() else { return };
        if let Some(LoopReader::Waits(pipes)) = &self.reader {
            pipes.remove(&parts.output);
        }
        if let Some(back) = self.back.take() {
            // Fails if the pump has ended.
            let _ = back.send(parts);
        }
    }
}

impl fmt::Debug for LoopReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waits(_) => "Waits",
            Self::Reads(_) => "Reads",
        })
    }
}
