//! One thread that sleeps until a descriptor is ready, a time has come, or another thread has a word for it.
//!
//! Law: a word costs a system call only while the thread sleeps.

use mcp_resources_engine::now::Millis;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

/// What other threads hold: words are bits, and one that was said twice before it was heard is one word.
#[derive(Debug)]
pub struct Wake {
    writer: OwnedFd,
    asleep: AtomicBool,
    words: AtomicU32,
    /// When the thread wakes by itself.
    armed: AtomicU64,
}

/// What the sleeping thread holds.
#[derive(Debug)]
pub struct Waiter {
    reader: OwnedFd,
    wake: Arc<Wake>,
}

/// What a thread waits for, besides words.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interest<'a> {
    /// Something to read, or the end.
    pub input: Option<BorrowedFd<'a>>,
    /// Room to write, or that the other side is gone.
    pub output: Option<BorrowedFd<'a>>,
    /// At most so long; `None` is without end.
    pub timeout: Option<Duration>,
}

/// What has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// A read would not block.
    pub input: bool,
    /// A write would not block, or would fail.
    pub output: bool,
}

impl Wake {
    /// WordWaker the words in `bits`; wakes the thread if it sleeps.
    pub fn say(&self, bits: u32) {
        self.words.fetch_or(bits, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // Fails only if a byte is there already, or the sleeper is gone.
            let _ = rustix::io::write(&self.writer, &[0]);
        }
    }

    /// What says the words in `bits` when the engine calls it.
    pub fn waker(self: &Arc<Self>, bits: u32) -> Waker {
        Waker::from(Arc::new(WordWaker { wake: self.clone(), bits }))
    }

    /// Takes the words that were said since the last time.
    pub fn hear(&self) -> u32 {
        self.words.swap(0, Ordering::SeqCst)
    }

    /// The thread wakes by itself at this time. It says [`Millis::MAX`] before it looks for the time to say here, so that
    /// nobody relies on a time that is about to change.
    pub fn arm(&self, at: Millis) {
        self.armed.store(at, Ordering::SeqCst);
    }

    /// When the thread wakes by itself, on a clock that the two sides agree on.
    pub fn armed(&self) -> Millis {
        self.armed.load(Ordering::SeqCst)
    }

    /// Something is due at `at`: says `bits` unless the thread wakes by then anyway.
    pub fn due(&self, at: Millis, bits: u32) {
        if self.armed() > at {
            self.say(bits);
        }
    }

    /// A descriptor that wakes the thread when a byte is written to it: for a signal handler.
    ///
    /// # Errors
    /// What the system says, if there are too many descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.writer.try_clone()
    }
}

struct WordWaker {
    wake: Arc<Wake>,
    bits: u32,
}

impl std::task::Wake for WordWaker {
    fn wake(self: Arc<Self>) {
        self.wake.say(self.bits);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake.say(self.bits);
    }
}

impl Waiter {
    /// A waiter for the thread that will wait.
    ///
    /// # Errors
    /// What the system says, if there are too many descriptors.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let wake = Wake {
            writer: writer.into(),
            asleep: AtomicBool::new(false),
            words: AtomicU32::new(0),
            armed: AtomicU64::new(Millis::MAX),
        };
        Ok(Self { reader: reader.into(), wake: Arc::new(wake) })
    }

    /// What to give to other threads.
    pub fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Sleeps until something has come; not at all if a word has.
    ///
    /// # Errors
    /// What `poll(2)` says.
    pub fn wait(&self, interest: Interest<'_>) -> io::Result<Ready> {
        self.wake.asleep.store(true, Ordering::SeqCst);
        let waiting = self.wake.words.load(Ordering::SeqCst) != 0;
        let ready = self.poll(interest, waiting);
        self.wake.asleep.store(false, Ordering::SeqCst);
        ready
    }

    fn poll(&self, interest: Interest<'_>, at_once: bool) -> io::Result<Ready> {
        let timeout = if at_once { Some(Duration::ZERO) } else { interest.timeout };
        let timeout = timeout.and_then(|span| Timespec::try_from(span).ok());
        let reader = self.reader.as_fd();
        let input = interest.input.map_or(PollFd::new(&reader, PollFlags::empty()), |fd| {
            PollFd::from_borrowed_fd(fd, PollFlags::IN)
        });
        let output = interest.output.map_or(PollFd::new(&reader, PollFlags::empty()), |fd| {
            PollFd::from_borrowed_fd(fd, PollFlags::OUT)
        });
        let mut fds = [PollFd::new(&reader, PollFlags::IN), input, output];
        let count = 1 + if interest.output.is_some() { 2 } else { usize::from(interest.input.is_some()) };
        match poll(&mut fds[..count], timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Ready::default()),
            Err(error) => return Err(error.into()),
        }
        let [word, input, output] = fds.map(|fd| !fd.revents().is_empty());
        if word {
            // Never blocks: `poll` saw a byte, and only this thread takes one.
            let _ = rustix::io::read(&self.reader, &mut [0; 16]);
        }
        Ok(Ready { input: interest.input.is_some() && input, output: interest.output.is_some() && output })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_wakes_a_sleeper_and_is_heard_once() {
        let waiter = Waiter::new().unwrap();
        let wake = waiter.wake().clone();
        let other = std::thread::spawn(move || wake.say(2));
        while waiter.wake().hear() == 0 {
            waiter.wait(Interest::default()).unwrap();
        }
        other.join().unwrap();
        assert_eq!(waiter.wake().hear(), 0);
    }

    #[test]
    fn a_word_said_before_is_not_slept_through() {
        let waiter = Waiter::new().unwrap();
        waiter.wake().say(1);
        waiter.wait(Interest::default()).unwrap();
        assert_eq!(waiter.wake().hear(), 1);
    }

    #[test]
    fn a_descriptor_that_is_ready_is_told_apart() {
        let waiter = Waiter::new().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let timeout = Some(Duration::ZERO);
        let both = Interest { input: Some(reader.as_fd()), output: Some(writer.as_fd()), timeout };
        assert_eq!(waiter.wait(both).unwrap(), Ready { input: false, output: true });
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(waiter.wait(both).unwrap(), Ready { input: true, output: true });
        let input = Interest { output: None, ..both };
        assert_eq!(waiter.wait(input).unwrap(), Ready { input: true, output: false });
    }
}
