//! Limits the bytes that a Postgres server sends, before any of them are stored.
//!
//! ```text
//!   socket ──▶ BoundedStream: heads of messages, bytes and messages of a phase ──▶ tokio-postgres, which keeps whole messages
//! ```
//!
//! Law: a server is not trusted. There is a limit for the data of each phase: the start, idle time and answers. The connection to
//! a server that exceeds one is closed, and the log names the limit.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The largest row: the largest value, and the lengths of the values.
const ROW: u64 = crate::db::session::LARGEST + (64 << 10);
/// The largest error or notice, and the largest description of columns or parameters.
const DESCRIPTION: u64 = 1 << 20;
/// The largest message of any other kind.
const SMALL: u64 = 64 << 10;
/// The most bytes until the server is ready for the first query.
const START: u64 = 1 << 20;
/// The most bytes of settings that a server reports in a connection: each is kept by its name.
const SETTINGS: u64 = 1 << 20;
/// Maximum number of bytes received for one query or one check, including notices.
const ANSWER: u64 = crate::db::session::LARGEST + (8 << 20);

/// Maximum number of answers for one query: one for each chunk of its rows, and for each type of its columns that is
/// looked up. Types may be nested, and so are the look-ups.
const ANSWERS: u64 = 128;

/// Counts of the current query, and why a connection was left. The stream and the session share them.
#[derive(Debug, Default)]
pub(super) struct MessageCounts {
    bytes: AtomicU64,
    answers: AtomicU64,
    excess: OnceLock<&'static str>,
}

impl MessageCounts {
    /// Resets the counters at the beginning of a query.
    pub(super) fn begin(&self) {
        self.bytes.store(0, Ordering::Relaxed);
        self.answers.store(0, Ordering::Relaxed);
    }

    /// Counts received bytes and answers; returns the exceeded limit, if any.
    fn add(&self, bytes: u64, answers: u64) -> Option<&'static str> {
        let all = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let answered = self.answers.fetch_add(answers, Ordering::Relaxed).saturating_add(answers);
        match (all > ANSWER, answered > ANSWERS) {
            (true, _) => Some("an answer without an end"),
            (_, true) => Some("answers without an end"),
            _ => None,
        }
    }

    /// The limit that the server has exceeded, as half a sentence.
    pub(super) fn excess(&self) -> Option<&'static str> {
        self.excess.get().copied()
    }
}

/// A stream of Postgres messages with limits.
#[derive(Debug)]
pub(super) struct BoundedStream<S> {
    inner: S,
    messages: Messages,
    received: Arc<MessageCounts>,
}

impl<S> BoundedStream<S> {
    pub(super) fn new(inner: S, received: Arc<MessageCounts>) -> Self {
        Self { inner, messages: Messages::default(), received }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let own = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut own.inner).poll_read(cx, buf))?;
        let bytes = buf.filled().get(before..).unwrap_or_default();
        let answers = own.messages.answers;
        let excess = own.messages.take(bytes);
        let answers = own.messages.answers.saturating_sub(answers);
        match excess.or_else(|| own.received.add(bytes.len() as u64, answers)) {
            None => Poll::Ready(Ok(())),
            Some(excess) => {
                let _ = own.received.excess.set(excess);
                // What exceeds a limit is not handed on.
                buf.set_filled(before);
                Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, excess)))
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

/// The messages in the bytes, by their heads: a letter, and a length of four bytes that counts itself.
#[derive(Debug, Default)]
struct Messages {
    head: [u8; 5],
    /// The number of bytes of the head that have been read.
    known: usize,
    /// The number of bytes of the body that are still to come.
    left: u64,
    is_ready: bool,
    /// The number of times that the server was ready for a query.
    answers: u64,
    start: u64,
    settings: u64,
}

impl Messages {
    /// Scans received bytes; returns the problem, if any, as half a sentence.
    fn take(&mut self, mut bytes: &[u8]) -> Option<&'static str> {
        while let Some((first, rest)) = bytes.split_first() {
            if self.left > 0 {
                let skipped = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= skipped as u64;
                bytes = bytes.get(skipped..).unwrap_or_default();
                continue;
            }
            if let Some(place) = self.head.get_mut(self.known) {
                *place = *first;
            }
            self.known += 1;
            bytes = rest;
            if self.known == self.head.len() {
                self.known = 0;
                if let Some(excess) = self.begin() {
                    return Some(excess);
                }
            }
        }
        None
    }

    /// Judges a message by its head.
    fn begin(&mut self) -> Option<&'static str> {
        let [kind, length @ ..] = self.head;
        let length = u64::from(u32::from_be_bytes(length));
        if length < 4 || length > i32::MAX.unsigned_abs().into() {
            return Some("a message with an impossible length");
        }
        let max = match kind {
            b'D' => ROW,
            b'E' | b'N' | b'T' | b't' => DESCRIPTION,
            _ => SMALL,
        };
        if length > max {
            return Some("too long a message");
        }
        self.left = length - 4;
        self.answers = self.answers.saturating_add(u64::from(kind == b'Z'));
        if !self.is_ready {
            self.start = self.start.saturating_add(length + 1);
            self.is_ready = kind == b'Z';
            if self.start > START {
                return Some("too many messages before it is ready");
            }
        }
        if kind == b'S' {
            self.settings = self.settings.saturating_add(length + 1);
            if self.settings > SETTINGS {
                return Some("too many settings");
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, length: i32, body: &[u8]) -> Vec<u8> {
        [&[kind][..], &length.to_be_bytes(), body].concat()
    }

    fn whole(kind: u8, body: &[u8]) -> Vec<u8> {
        message(kind, i32::try_from(body.len()).unwrap() + 4, body)
    }

    // S-20: messages are judged by their heads, however the bytes are cut.
    #[test]
    fn heads_are_judged() {
        let ready = whole(b'Z', b"I");
        let row = |length: u64| message(b'D', i32::try_from(length).unwrap(), b"");
        for (bytes, expected) in [
            (ready.clone(), None),
            ([ready.clone(), whole(b'D', &[0; 100_000]), ready.clone()].concat(), None),
            (row(ROW), Some("too many messages before it is ready")),
            ([ready.clone(), row(ROW)].concat(), None),
            ([ready.clone(), row(ROW + 1)].concat(), Some("too long a message")),
            (message(b'E', i32::MAX, b""), Some("too long a message")),
            (message(b'R', 65_537, b""), Some("too long a message")),
            (message(b'Z', -1, b""), Some("a message with an impossible length")),
            (message(b'Z', i32::MIN, b""), Some("a message with an impossible length")),
            (message(b'Z', 3, b""), Some("a message with an impossible length")),
            (whole(b'N', &[0; 1_000]).repeat(1_100), Some("too many messages before it is ready")),
            ([ready.clone(), whole(b'N', &[0; 1_000]).repeat(1_100)].concat(), None),
            ([ready, whole(b'S', b"a\0b\0").repeat(200_000)].concat(), Some("too many settings")),
        ] {
            for cut in [1, 4, 5, 4_096, bytes.len()] {
                let mut messages = Messages::default();
                let found = bytes.chunks(cut).find_map(|part| messages.take(part));
                assert_eq!(found, expected, "{:?} in parts of {cut}", &bytes[..5]);
            }
        }
    }
}
