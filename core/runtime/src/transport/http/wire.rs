//! Checks the bytes of a connection before hyper reads them: refuses requests with an ambiguous end, and heads that
//! take too long.
//!
//! hyper accepts line ends without a carriage return, and drops a second length before it can be seen. A proxy in front
//! may parse such a request differently, and be tricked into taking a part of its body for another request (RFC 9112,
//! section 11.2). So the first ambiguous line is cut off with a byte that no head may contain: hyper answers 400, and
//! the connection ends.
//!
//! Law: one state and a few bytes for each connection. Bytes are copied only if a line of a head arrives in pieces.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// The part of a line that is examined; longer than any length or coding.
const LINE: usize = 64;

/// A socket whose input is checked.
pub(super) struct CheckedStream<S> {
    socket: S,
    scan: FramingScan,
    /// Maximum time for a head.
    patience: Duration,
    alarm: Option<Pin<Box<Sleep>>>,
    /// Maximum time for which the client may accept no data. Some systems detect that themselves, but not all.
    stall: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
}

/// The part of a request that the next byte belongs to.
#[derive(Debug, PartialEq, Eq)]
enum HeadPosition {
    Head,
    /// The remaining bytes of a body, or of a chunk with its line end.
    Body(u64),
    Chunk(u64),
    ChunkSize,
    Trailer,
    /// Nothing more is read.
    Broken,
}

struct FramingScan {
    at: HeadPosition,
    /// The number of lines of this head so far.
    lines: usize,
    length: Option<u64>,
    is_chunked: bool,
    /// The beginning of an incomplete line.
    line: [u8; LINE],
    held: usize,
    /// Its last byte.
    last: u8,
    /// Whether a head was complete on this connection.
    is_known: bool,
}

/// A line is ambiguous.
struct Doubt;

impl<S> CheckedStream<S> {
    /// `patience` limits a head, `stall` a client that accepts no data.
    pub(super) fn new(socket: S, patience: Duration, stall: Duration) -> Self {
        Self { socket, scan: FramingScan::new(), patience, alarm: None, stall, stalled: None }
    }

    /// Passes on the result of a write, or an error if the client has accepted no data for too long.
    fn written<T>(&mut self, poll: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let stall = self.stall;
        let alarm = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(stall)));
        alarm.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Whether a head has taken too long.
    fn is_late(&mut self, context: &mut Context<'_>) -> bool {
        if !self.scan.waits() {
            self.alarm = None;
            return false;
        }
        let patience = self.patience;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        alarm.as_mut().poll(context).is_ready()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for CheckedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.scan.at == HeadPosition::Broken {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        match Pin::new(&mut this.socket).poll_read(context, buffer) {
            Poll::Ready(Ok(())) => {
                let new = buffer.filled().get(before..).unwrap_or_default();
                if let Err(at) = this.scan.feed(new) {
                    buffer.set_filled(before + at);
                    buffer.put_slice(b"\0");
                }
                if !this.scan.waits() {
                    this.alarm = None;
                }
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending if this.is_late(context) => {
                this.scan.at = HeadPosition::Broken;
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CheckedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(context, bytes);
        this.written(written, context)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(context);
        this.written(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, pieces);
        this.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}

impl FramingScan {
    fn new() -> Self {
        Self {
            at: HeadPosition::Head,
            lines: 0,
            length: None,
            is_chunked: false,
            line: [0; LINE],
            held: 0,
            last: 0,
            is_known: false,
        }
    }

    /// Whether a head is incomplete, or the first one has not begun.
    fn waits(&self) -> bool {
        self.at == HeadPosition::Head && (self.lines > 0 || self.held > 0 || !self.is_known)
    }

    /// Checks further bytes; returns the position of the first ambiguous line, if any.
    fn feed(&mut self, new: &[u8]) -> Result<(), usize> {
        let mut from = 0;
        while let Some(rest) = new.get(from..).filter(|rest| !rest.is_empty()) {
            from += match self.at {
                HeadPosition::Body(left) => {
                    self.skip(left, rest.len(), HeadPosition::Body, HeadPosition::Head)
                }
                HeadPosition::Chunk(left) => {
                    self.skip(left, rest.len(), HeadPosition::Chunk, HeadPosition::ChunkSize)
                }
                HeadPosition::Broken => return Err(from),
                HeadPosition::Head | HeadPosition::ChunkSize | HeadPosition::Trailer => {
                    let Some(end) = memchr::memchr(b'\n', rest) else {
                        self.hold(rest);
                        return Ok(());
                    };
                    let part = rest.get(..end).unwrap_or_default();
                    if self.end_of_line(part).is_err() {
                        self.at = HeadPosition::Broken;
                        return Err(from + end);
                    }
                    end + 1
                }
            };
        }
        Ok(())
    }

    fn skip(&mut self, left: u64, there: usize, on: fn(u64) -> HeadPosition, after: HeadPosition) -> usize {
        let there = there as u64;
        self.at = if left > there { on(left - there) } else { after };
        usize::try_from(left.min(there)).unwrap_or(usize::MAX)
    }

    /// Stores the beginning of a line.
    fn hold(&mut self, part: &[u8]) {
        for (place, byte) in self.line.iter_mut().skip(self.held).zip(part) {
            *place = *byte;
        }
        self.held = self.held.saturating_add(part.len());
        self.last = part.last().copied().unwrap_or(self.last);
    }

    /// Completes a line with `part`.
    fn end_of_line(&mut self, part: &[u8]) -> Result<(), Doubt> {
        if self.held == 0 {
            let line = part.strip_suffix(b"\r").ok_or(Doubt)?;
            return self.line(line, line.len() > LINE);
        }
        self.hold(part);
        let kept = self.line;
        let length = std::mem::take(&mut self.held);
        if self.last != b'\r' {
            return Err(Doubt);
        }
        self.line(kept.get(..length - 1).unwrap_or(&kept), length > LINE)
    }

    /// Checks one line without its end. If `is_long`, it may be truncated.
    fn line(&mut self, line: &[u8], is_long: bool) -> Result<(), Doubt> {
        match self.at {
            HeadPosition::ChunkSize => {
                let digits = line.iter().position(|byte| !byte.is_ascii_hexdigit()).unwrap_or(line.len());
                let digits = std::str::from_utf8(line.get(..digits).unwrap_or_default()).unwrap_or_default();
                let size = u64::from_str_radix(digits, 16).map_err(|_| Doubt)?;
                let with_end = size.checked_add(2).ok_or(Doubt)?;
                self.at = if size == 0 { HeadPosition::Trailer } else { HeadPosition::Chunk(with_end) };
            }
            HeadPosition::Trailer if line.is_empty() => self.at = HeadPosition::Head,
            HeadPosition::Head if line.is_empty() && self.lines > 0 => self.end_of_head(),
            // Empty lines before a request are allowed.
            HeadPosition::Head if line.is_empty() => {}
            HeadPosition::Head => {
                self.lines += 1;
                return self.field(line, is_long);
            }
            HeadPosition::Trailer | HeadPosition::Body(_) | HeadPosition::Chunk(_) | HeadPosition::Broken => {
            }
        }
        Ok(())
    }

    /// RFC 9112, section 6.3: exactly one field may give the length of the body, once.
    fn field(&mut self, line: &[u8], is_long: bool) -> Result<(), Doubt> {
        // The position of the colon is compared first, which rules out most lines.
        let named = |own: &[u8]| match line.split_at_checked(own.len()) {
            Some((name, [b':', value @ ..])) if name.eq_ignore_ascii_case(own) => Some(value),
            _ => None,
        };
        let length = named(b"content-length");
        if length.is_none() && named(b"transfer-encoding").is_none() {
            return Ok(());
        }
        if is_long || self.length.is_some() || self.is_chunked {
            return Err(Doubt);
        }
        let Some(digits) = length else {
            self.is_chunked = true;
            return Ok(());
        };
        let digits = digits.trim_ascii();
        // hyper refuses a value that is not a number; the rules refuse a number beyond every limit.
        let digits = std::str::from_utf8(digits).unwrap_or_default();
        self.length = Some(digits.parse().unwrap_or(u64::MAX));
        Ok(())
    }

    fn end_of_head(&mut self) {
        let is_chunked = std::mem::take(&mut self.is_chunked);
        self.at = match self.length.take() {
            _ if is_chunked => HeadPosition::ChunkSize,
            Some(length) if length > 0 => HeadPosition::Body(length),
            _ => HeadPosition::Head,
        };
        self.lines = 0;
        self.is_known = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The position of the ambiguity, however the bytes are cut.
    fn doubt(bytes: &[u8]) -> Option<usize> {
        let whole = FramingScan::new().feed(bytes).err();
        for size in [1, 2, 7] {
            let mut scan = FramingScan::new();
            let pieces = bytes.chunks(size).enumerate();
            let found =
                pieces.filter_map(|(at, piece)| scan.feed(piece).err().map(|found| at * size + found));
            assert_eq!(found.min(), whole, "in pieces of {size}");
        }
        whole
    }

    #[test]
    fn requests_follow_one_another() {
        for good in [
            "GET /mcp HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "\r\nPOST / HTTP/1.1\r\nContent-Length: 3\r\n\r\na\nbPOST / HTTP/1.1\r\nContent-Length:0\r\n\r\n",
            "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3;x=y\r\n\n\n\n\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encodings: x\r\nContent-Length-X: 1\r\nContent-Length: 1\r\n\r\n\n",
        ] {
            assert_eq!(doubt(good.as_bytes()), None, "{good:?}");
        }
    }

    #[test]
    fn a_body_without_one_end_is_in_doubt() {
        let head = "POST / HTTP/1.1\r\nHost: x";
        for bad in [
            "\n\r\n",
            "\r\nContent-Length: 1\nX: y",
            "\r\nContent-Length: 1\r\nContent-Length: 1\r\n",
            "\r\nContent-Length: 1\r\ncontent-length: 2\r\n",
            "\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n",
            "\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n",
            "\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
            "\r\nTransfer-Encoding: chunked\r\n\r\n1\nx\r\n",
            "\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
            "\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        ] {
            assert!(doubt(format!("{head}{bad}").as_bytes()).is_some(), "{bad:?}");
        }
        let long = format!("{head}\r\nContent-Length:{}1\r\n", " ".repeat(LINE));
        assert!(doubt(long.as_bytes()).is_some());
    }

    /// Parts of a body are never taken for a head.
    #[test]
    fn bodies_are_skipped() {
        let inner = "POST / HTTP/1.1\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        let length = inner.len();
        assert_eq!(
            doubt(format!("POST / HTTP/1.1\r\nContent-Length: {length}\r\n\r\n{inner}").as_bytes()),
            None
        );
        let chunked = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{inner}\r\n0\r\n\r\n"
        );
        assert_eq!(doubt(chunked.as_bytes()), None);
        assert!(doubt(format!("{chunked}{inner}").as_bytes()).is_some());
    }

    /// A socket that accepts no data.
    struct Stuck;

    impl AsyncWrite for Stuck {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    // R-214: also on systems that do not detect a client that accepts no data.
    #[tokio::test]
    async fn a_client_that_takes_nothing_is_gone() {
        let mut checked = CheckedStream::new(Stuck, Duration::from_secs(30), Duration::from_millis(1));
        let write = |context: &mut Context<'_>| Pin::new(&mut checked).poll_write(context, b"x");
        let failed = std::future::poll_fn(write).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }
}
