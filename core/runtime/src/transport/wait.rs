//! A thread that sleeps until a descriptor is ready, a deadline is reached, or another thread signals it.
//!
//! Law: a signal costs a system call only while the thread sleeps.

use mcp_resources_engine::now::Millis;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

/// The handle for other threads. Signals are bits: a signal that is set twice before it is read counts once.
#[derive(Debug)]
pub struct Wake {
    writer: OwnedFd,
    asleep: AtomicBool,
    signals: AtomicU32,
    /// The time at which the thread wakes by itself.
    armed: AtomicU64,
}

/// The handle of the sleeping thread.
#[derive(Debug)]
pub struct DescriptorWaiter {
    reader: OwnedFd,
    wake: Arc<Wake>,
}

/// The events to wait for, besides signals.
#[derive(Clone, Copy, Debug, Default)]
pub struct PollInterest<'a> {
    /// Data to read, or the end of input.
    pub input: Option<BorrowedFd<'a>>,
    /// Room to write, or the end of the other side.
    pub output: Option<BorrowedFd<'a>>,
    /// Maximum time to wait; `None` is without limit.
    pub timeout: Option<Duration>,
}

/// The events that occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadyDescriptors {
    /// A read would not block.
    pub input: bool,
    /// A write would not block, or would fail.
    pub output: bool,
}

impl Wake {
    /// Sets the signals in `bits`; wakes the thread if it sleeps.
    pub fn set(&self, bits: u32) {
        self.signals.fetch_or(bits, Ordering::SeqCst);
        if self.asleep.swap(false, Ordering::SeqCst) {
            // Fails only if a byte is already there, or the sleeping thread has ended.
            let _ = rustix::io::write(&self.writer, &[0]);
        }
    }

    /// A waker that sets the signals in `bits`.
    pub fn waker(self: &Arc<Self>, bits: u32) -> Waker {
        Waker::from(Arc::new(FlagWaker { wake: self.clone(), bits }))
    }

    /// Takes the signals set since the last call.
    pub fn take(&self) -> u32 {
        self.signals.swap(0, Ordering::SeqCst)
    }

    /// Sets the time at which the thread wakes by itself. Set [`Millis::MAX`] before determining that time, so that
    /// other threads do not rely on one that is about to change.
    pub fn arm(&self, at: Millis) {
        self.armed.store(at, Ordering::SeqCst);
    }

    /// The time at which the thread wakes by itself, on a clock that both sides agree on.
    pub fn armed(&self) -> Millis {
        self.armed.load(Ordering::SeqCst)
    }

    /// Sets `bits` for something due at `at`, unless the thread wakes by then anyway.
    pub fn due(&self, at: Millis, bits: u32) {
        if self.armed() > at {
            self.set(bits);
        }
    }

    /// A descriptor that wakes the thread when a byte is written to it: for signal handlers.
    ///
    /// # Errors
    /// The system's error, if there are too many descriptors.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        self.writer.try_clone()
    }
}

struct FlagWaker {
    wake: Arc<Wake>,
    bits: u32,
}

impl std::task::Wake for FlagWaker {
    fn wake(self: Arc<Self>) {
        self.wake.set(self.bits);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake.set(self.bits);
    }
}

impl DescriptorWaiter {
    /// Makes a waiter for the thread that will sleep.
    ///
    /// # Errors
    /// The system's error, if there are too many descriptors.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let wake = Wake {
            writer: writer.into(),
            asleep: AtomicBool::new(false),
            signals: AtomicU32::new(0),
            armed: AtomicU64::new(Millis::MAX),
        };
        Ok(Self { reader: reader.into(), wake: Arc::new(wake) })
    }

    /// The handle for other threads.
    pub fn wake(&self) -> &Arc<Wake> {
        &self.wake
    }

    /// Sleeps until an event occurs; returns at once if a signal is set.
    ///
    /// # Errors
    /// The system's error of `poll(2)`.
    pub fn wait(&self, interest: PollInterest<'_>) -> io::Result<ReadyDescriptors> {
        self.wake.asleep.store(true, Ordering::SeqCst);
        let waiting = self.wake.signals.load(Ordering::SeqCst) != 0;
        let ready = self.poll(interest, waiting);
        self.wake.asleep.store(false, Ordering::SeqCst);
        ready
    }

    fn poll(&self, interest: PollInterest<'_>, at_once: bool) -> io::Result<ReadyDescriptors> {
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
            Err(Errno::INTR) => return Ok(ReadyDescriptors::default()),
            Err(error) => return Err(error.into()),
        }
        let [word, input, output] = fds.map(|fd| !fd.revents().is_empty());
        if word {
            // Does not block: `poll` saw a byte, and only this thread reads them.
            let _ = rustix::io::read(&self.reader, &mut [0; 16]);
        }
        Ok(ReadyDescriptors {
            input: interest.input.is_some() && input,
            output: interest.output.is_some() && output,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wakes_the_thread_and_is_taken_once() {
        let waiter = DescriptorWaiter::new().unwrap();
        let wake = waiter.wake().clone();
        let other = std::thread::spawn(move || wake.set(2));
        while waiter.wake().take() == 0 {
            waiter.wait(PollInterest::default()).unwrap();
        }
        other.join().unwrap();
        assert_eq!(waiter.wake().take(), 0);
    }

    #[test]
    fn a_word_said_before_is_not_slept_through() {
        let waiter = DescriptorWaiter::new().unwrap();
        waiter.wake().set(1);
        waiter.wait(PollInterest::default()).unwrap();
        assert_eq!(waiter.wake().take(), 1);
    }

    #[test]
    fn ready_descriptors_are_distinguished() {
        let waiter = DescriptorWaiter::new().unwrap();
        let (reader, writer) = io::pipe().unwrap();
        let timeout = Some(Duration::ZERO);
        let both = PollInterest { input: Some(reader.as_fd()), output: Some(writer.as_fd()), timeout };
        assert_eq!(waiter.wait(both).unwrap(), ReadyDescriptors { input: false, output: true });
        rustix::io::write(&writer, b"x").unwrap();
        assert_eq!(waiter.wait(both).unwrap(), ReadyDescriptors { input: true, output: true });
        let input = PollInterest { output: None, ..both };
        assert_eq!(waiter.wait(input).unwrap(), ReadyDescriptors { input: true, output: false });
    }
}
