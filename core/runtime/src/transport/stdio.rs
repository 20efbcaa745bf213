//! The standard input and output of a server process, reserved for the protocol.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, open};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use std::io;
use std::os::fd::AsRawFd;

/// The descriptors of the connection to the client. Processes that a handler starts do not inherit them.
#[derive(Debug)]
pub struct Stdio {
    input: OwnedFd,
    output: OwnedFd,
    /// The original flags of open files that other processes may share, to be restored.
    before: Vec<(OwnedFd, OFlags)>,
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// This many bytes.
    Bytes(usize),
    /// Nothing yet.
    Nothing,
    /// The client has closed its end, or has disconnected.
    End,
}

impl Stdio {
    /// Moves descriptors 0 and 1 away: 0 becomes `/dev/null`, and 1 a copy of 2. So a stray print, or a process that a
    /// handler starts, can neither consume a request nor write into an answer.
    ///
    /// # Errors
    /// The system's error, if a descriptor is closed or there are too many.
    pub fn take() -> io::Result<Self> {
        let mut before = Vec::new();
        Self::take_from(private(rustix::stdio::stdin(), OFlags::RDONLY, &mut before)?, before)
    }

    /// Like [`Stdio::take`], but reads block: for a thread that only reads. If the other side has made the input
    /// non-blocking, a read may still return [`Received::Nothing`].
    ///
    /// # Errors
    /// As [`Stdio::take`].
    pub fn take_blocking() -> io::Result<Self> {
        Self::take_from(fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?, Vec::new())
    }

    fn take_from(input: OwnedFd, mut before: Vec<(OwnedFd, OFlags)>) -> io::Result<Self> {
        let output = private(rustix::stdio::stdout(), OFlags::WRONLY, &mut before)?;
        let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        rustix::stdio::dup2_stdin(&null)?;
        match rustix::stdio::dup2_stdout(rustix::stdio::stderr()) {
            // Without a standard error, stray output is dropped.
            Err(Errno::BADF) => rustix::stdio::dup2_stdout(&null)?,
            other => other?,
        }
        Ok(Self { input, output, before })
    }

    /// Uses another pair of descriptors: pipes, or a socket twice.
    ///
    /// # Errors
    /// The system's error for the descriptors.
    pub fn new(input: OwnedFd, output: OwnedFd) -> io::Result<Self> {
        for fd in [&input, &output] {
            fcntl_setfl(fd, fcntl_getfl(fd)? | OFlags::NONBLOCK)?;
        }
        Ok(Self { input, output, before: Vec::new() })
    }

    /// The descriptor to read from.
    pub fn input_fd(&self) -> BorrowedFd<'_> {
        self.input.as_fd()
    }

    /// The descriptor to write to.
    pub fn output_fd(&self) -> BorrowedFd<'_> {
        self.output.as_fd()
    }

    /// Shuts a socket down, even if this process still holds it elsewhere. A pipe ends when it is dropped.
    pub fn hang_up(&self) {
        // Fails on other descriptors than sockets, and if the other side is gone.
        let _ = rustix::net::shutdown(&self.output, rustix::net::Shutdown::Both);
    }

    /// The number of the descriptor to read from, for an event loop.
    pub fn input(&self) -> i32 {
        self.input.as_raw_fd()
    }

    /// The number of the descriptor to write to, for an event loop.
    pub fn output(&self) -> i32 {
        self.output.as_raw_fd()
    }

    /// Reads the available data.
    pub fn read(&self, buffer: &mut [u8]) -> Received {
        loop {
            return match rustix::io::read(&self.input, &mut *buffer) {
                Ok(0) => Received::End,
                Ok(count) => Received::Bytes(count),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Received::Nothing,
                Err(_) => Received::End,
            };
        }
    }

    /// Writes as much as the other side can accept now; returns 0 if that is nothing.
    ///
    /// # Errors
    /// The other side is gone.
    pub fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            return match rustix::io::write(&self.output, bytes) {
                Ok(count) => Ok(count),
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => Ok(0),
                Err(error) => Err(error.into()),
            };
        }
    }
}

/// Restores the flags, for example for the shell that shares its terminal.
impl Drop for Stdio {
    fn drop(&mut self) {
        for (fd, flags) in &self.before {
            // Fails only if the file is no longer open anywhere.
            let _ = fcntl_setfl(fd, *flags);
        }
    }
}

/// Enlarges a pipe so that it can take an answer of one mebibyte at once, if the system permits it.
#[cfg(target_os = "linux")]
fn enlarge(pipe: &OwnedFd) {
    let _refused = rustix::pipe::fcntl_setpipe_size(pipe, 1 << 20);
}

#[cfg(not(target_os = "linux"))]
fn enlarge(_: &OwnedFd) {}

/// Returns a private descriptor that never blocks. The flag belongs to the *open file*, which other processes may share
/// (a terminal, a pipe that standard error writes to). Where the system can reopen the file, theirs stays unchanged;
/// otherwise its original flags are added to `before`.
fn private(fd: BorrowedFd<'_>, access: OFlags, before: &mut Vec<(OwnedFd, OFlags)>) -> io::Result<OwnedFd> {
    let kind = FileType::from_raw_mode(fstat(fd)?.st_mode);
    if kind == FileType::RegularFile {
        return Ok(fcntl_dupfd_cloexec(fd, 3)?);
    }
    if matches!(kind, FileType::Fifo | FileType::CharacterDevice) {
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let flags = access | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        if let Ok(own) = open(path, flags, Mode::empty()) {
            enlarge(&own);
            return Ok(own);
        }
    }
    let own = fcntl_dupfd_cloexec(fd, 3)?;
    let flags = fcntl_getfl(&own)?;
    if !flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(own.as_fd(), flags | OFlags::NONBLOCK)?;
        before.push((fcntl_dupfd_cloexec(&own, 3)?, flags));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    /// Sockets, and terminals on macOS, cannot be reopened: their flags are restored.
    #[test]
    fn what_is_shared_is_left_as_it_was() {
        let kind = SocketType::STREAM;
        let none = SocketFlags::empty();
        let (shared, _other) = socketpair(AddressFamily::UNIX, kind, none, None).unwrap();
        let blocks = || !fcntl_getfl(&shared).unwrap().contains(OFlags::NONBLOCK);
        let mut before = Vec::new();
        let input = private(shared.as_fd(), OFlags::RDONLY, &mut before).unwrap();
        let output = private(shared.as_fd(), OFlags::WRONLY, &mut before).unwrap();
        assert!(!blocks());
        drop(Stdio { input, output, before });
        assert!(blocks());
    }
}
