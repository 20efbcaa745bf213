//! A transport between HTTP and a connection: it ends a cancelled request, and joins folded header lines.
//!
//! ```text
//!   socket ─ TLS ──▶ WatchedTransport: waits in short steps ─ Unfolding ──▶ HTTP
//! ```
//!
//! Law: RFC 9112 (5.2) has a client replace folds of a header by spaces. Only heads are changed, never a body.

use crate::wanted::{STEP, is_wanted};
use std::io;
use std::time::Instant;
use ureq::Error;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport, time,
};

/// Sizes of the buffers for input and output, in bytes.
const BUFFERS: (usize, usize) = (128 << 10, 16 << 10);

/// A request was given up.
#[derive(Debug)]
pub struct NobodyWaits;

impl std::fmt::Display for NobodyWaits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nobody waits for the answer")
    }
}

impl std::error::Error for NobodyWaits {}

/// Connector whose transports watch for cancelled requests.
#[derive(Debug)]
pub struct Watching;

impl<In: Transport> Connector<In> for Watching {
    type Out = WatchedTransport<In>;

    fn connect(&self, _: &ConnectionDetails<'_>, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        let buffers = LazyBuffers::new(BUFFERS.0, BUFFERS.1);
        let unfolding = Unfolding::default();
        Ok(chained.map(|inner| WatchedTransport { inner, buffers, unfolding, looked: Instant::now() }))
    }
}

/// A connection of [`Watching`].
#[derive(Debug)]
pub struct WatchedTransport<T> {
    inner: T,
    buffers: LazyBuffers,
    unfolding: Unfolding,
    /// The time of the last check whether the request is still wanted.
    looked: Instant,
}

impl<T: Transport> Transport for WatchedTransport<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        // An answer comes after the whole request: what is sent begins one, and its answer has a head.
        self.unfolding = Unfolding::default();
        let mut rest = self.buffers.output().get(..amount).unwrap_or_default();
        while !rest.is_empty() {
            let room = self.inner.buffers().output();
            let size = rest.len().min(room.len());
            let (now, later) = rest.split_at(size);
            room.get_mut(..size).unwrap_or_default().copy_from_slice(now);
            self.inner.transmit_output(size, timeout)?;
            rest = later;
        }
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        let mut left = timeout;
        loop {
            if self.take()? > 0 {
                return Ok(true);
            }
            // Also while single bytes come.
            if self.looked.elapsed() >= STEP {
                self.looked = Instant::now();
                if !is_wanted() {
                    return Err(Error::Io(io::Error::other(NobodyWaits)));
                }
            }
            let step = NextTimeout { after: left.after.min(STEP.into()), ..left };
            let is_last = left.after <= STEP.into();
            match self.inner.await_input(step) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) if is_last || !is_timeout(&error) => return Err(error),
                Err(_) => {
                    if let time::Duration::Exact(after) = left.after {
                        left.after = time::Duration::Exact(after.saturating_sub(STEP));
                    }
                }
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.inner.is_open()
    }

    fn is_tls(&self) -> bool {
        self.inner.is_tls()
    }
}

impl<T: Transport> WatchedTransport<T> {
    /// Moves the received bytes into the buffer; returns the number of readable bytes.
    fn take(&mut self) -> Result<usize, Error> {
        let room = self.buffers.input_append_buf();
        // What is held back may come with the next byte.
        let input = self.inner.buffers().input();
        let size = input.len().min(room.len().saturating_sub(2));
        if input.is_empty() {
            return Ok(0);
        }
        if size == 0 {
            return Err(Error::Io(io::Error::other("the head is too long")));
        }
        let mut written = 0;
        self.unfolding.take(input.get(..size).unwrap_or_default(), &mut |byte| {
            if let Some(place) = room.get_mut(written) {
                *place = byte;
                written += 1;
            }
        });
        self.inner.buffers().input_consume(size);
        self.buffers.input_appended(written);
        Ok(written)
    }
}

fn is_timeout(error: &Error) -> bool {
    match error {
        Error::Timeout(_) => true,
        Error::Io(error) => matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock),
        _ => false,
    }
}

/// Joins the lines of a head. A line's end is held back until it is known that the next line does not continue it.
#[derive(Debug, Default)]
struct Unfolding {
    /// The end of a line that is held back.
    held: &'static [u8],
    /// The length of the current line in bytes, and whether its last byte is a CR.
    length: usize,
    is_after_cr: bool,
    /// Whether the current line continues the one before it, and has only blanks yet.
    is_fold: bool,
    /// The beginning of the status line.
    status: [u8; 12],
    has_status: bool,
    is_body: bool,
}

impl Unfolding {
    fn take(&mut self, bytes: &[u8], write: &mut dyn FnMut(u8)) {
        for &byte in bytes {
            if self.is_body {
                write(byte);
            } else {
                self.take_of_head(byte, write);
            }
        }
    }

    fn take_of_head(&mut self, byte: u8, write: &mut dyn FnMut(u8)) {
        let is_blank = matches!(byte, b' ' | b'\t');
        if self.is_fold && is_blank {
            return;
        }
        self.is_fold = false;
        if !self.held.is_empty() && !self.is_after_cr {
            if is_blank {
                self.held = &[];
                self.is_fold = true;
                self.length = 1;
                return write(b' ');
            }
            self.held.iter().for_each(|byte| write(*byte));
            self.held = &[];
        }
        match byte {
            b'\r' if !self.is_after_cr => self.is_after_cr = true,
            b'\n' => self.end_line(write),
            _ => {
                if std::mem::take(&mut self.is_after_cr) {
                    write(b'\r');
                    self.length += 1;
                }
                if let Some(place) = self.status.get_mut(self.length).filter(|_| !self.has_status) {
                    *place = byte;
                }
                self.length += 1;
                write(byte);
            }
        }
    }

    fn end_line(&mut self, write: &mut dyn FnMut(u8)) {
        let end: &'static [u8] = if std::mem::take(&mut self.is_after_cr) { b"\r\n" } else { b"\n" };
        let length = std::mem::take(&mut self.length);
        let is_first = !std::mem::replace(&mut self.has_status, true);
        if length > 0 && !is_first {
            self.held = end;
            return;
        }
        end.iter().for_each(|byte| write(*byte));
        if length == 0 && !is_first {
            // An interim answer has another head behind it.
            let is_interim = self.status.get(9) == Some(&b'1') && &self.status[9..12] != b"101";
            *self = Self { is_body: !is_interim, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: folds of a head are spaces, also behind an interim answer, however the bytes are cut; a body stays as it is.
    #[test]
    fn heads_are_unfolded() {
        for (sent, expected) in [
            ("HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n\r\n x", "HTTP/1.1 200 OK\r\na: b c\r\n\r\n\r\n x"),
            (
                "HTTP/1.1 200 OK\r\na:\r\n\t \t b\r\n \r\nc: d\r\n\r\n",
                "HTTP/1.1 200 OK\r\na: b \r\nc: d\r\n\r\n",
            ),
            ("HTTP/1.1 200 OK\na: b\n c\n\nx\n y", "HTTP/1.1 200 OK\na: b c\n\nx\n y"),
            ("HTTP/1.1 200 OK\r\n\r\n a", "HTTP/1.1 200 OK\r\n\r\n a"),
            (
                "HTTP/1.1 103 X\r\na: b\r\n c\r\n\r\nHTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\nx\r\n y",
                "HTTP/1.1 103 X\r\na: b c\r\n\r\nHTTP/1.1 200 OK\r\na: b c\r\n\r\nx\r\n y",
            ),
        ] {
            for cut in 1..sent.len() {
                let mut unfolding = Unfolding::default();
                let mut read = Vec::new();
                for part in sent.as_bytes().chunks(cut) {
                    unfolding.take(part, &mut |byte| read.push(byte));
                }
                assert_eq!(String::from_utf8(read).unwrap(), expected, "in parts of {cut}");
            }
        }
    }
}
