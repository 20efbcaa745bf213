//! Event streams that wait: their connection is taken back from hyper, whose buffers are then free.
//!
//! Law: a connection is taken only between two requests, when everything that was to be written is written. Afterwards
//! hyper gets it again, with the bytes that came meanwhile.

use super::body::BodyWriter;
use bytes::Bytes;
use http_body::Body;
use hyper::body::Incoming;
use hyper::header::CONNECTION;
use hyper::{Method, Request, Version};
use std::future::poll_fn;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes of the next request that are read while a stream waits.
const EARLY: usize = 512;

/// Whether the connection may be taken while the response to `request` waits: the client does not close it afterwards, and
/// the request has been read to its end when there is a response.
pub(super) fn may_park(request: &Request<Incoming>) -> bool {
    let is_whole = request.method() == Method::POST || request.body().is_end_stream();
    let closes = request
        .headers()
        .get_all(CONNECTION)
        .iter()
        .any(|value| !value.as_bytes().eq_ignore_ascii_case(b"keep-alive"));
    is_whole && !closes && request.version() == Version::HTTP_11 && request.method() != Method::HEAD
}

/// The state that a connection and the response on it share.
#[derive(Debug, Default)]
pub(super) struct StreamPlace {
    /// The writer of a response that may be taken from hyper.
    writer: Mutex<Option<BodyWriter>>,
    /// Whether that writer has nothing to write now.
    waits: AtomicBool,
    /// Whether all that was written has reached the system.
    is_flushed: AtomicBool,
    /// Whether there was a request.
    has_begun: AtomicBool,
}

/// The writer of a response, lent to its body. The body is dropped when the response has ended, or cannot be written.
#[derive(Debug)]
pub(super) struct LentWriter(Arc<StreamPlace>);

/// A socket that hyper gets again, with what was read of the next request.
pub(super) struct ReturnedSocket<S> {
    socket: S,
    early: Bytes,
    place: Arc<StreamPlace>,
}

impl StreamPlace {
    /// Notes that there was a request.
    pub(super) fn begin(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Relaxed)
    }

    /// Puts in the writer of a response.
    pub(super) fn lend(self: &Arc<Self>, writer: BodyWriter) -> LentWriter {
        *self.writer() = Some(writer);
        LentWriter(self.clone())
    }

    /// Takes the writer out, if it waits and hyper has written everything.
    pub(super) fn take(&self) -> Option<BodyWriter> {
        let is_idle = self.waits.load(Ordering::Relaxed) && self.is_flushed.load(Ordering::Relaxed);
        is_idle.then(|| self.writer().take()).flatten()
    }

    fn writer(&self) -> MutexGuard<'_, Option<BodyWriter>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LentWriter {
    /// As [`BodyWriter::poll`].
    pub(super) fn poll(&self, context: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<()> {
        let polled =
            self.0.writer().as_mut().map_or(Poll::Ready(()), |writer| writer.poll(context, out).map(drop));
        self.0.waits.store(polled.is_pending(), Ordering::Relaxed);
        polled
    }

    /// Whether the response has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.0.writer().as_ref().is_none_or(BodyWriter::has_ended)
    }
}

impl Drop for LentWriter {
    fn drop(&mut self) {
        self.0.waits.store(false, Ordering::Relaxed);
        let writer = self.0.writer().take();
        // Without the lock, because its drop calls the engine.
        drop(writer);
    }
}

impl<S> ReturnedSocket<S> {
    pub(super) fn new(socket: S, early: Bytes, place: Arc<StreamPlace>) -> Self {
        Self { socket, early, place }
    }

    pub(super) fn into_socket(self) -> S {
        self.socket
    }
}

/// Writes the rest of a chunked response. Returns the bytes of the next request that came meanwhile; `None` if the client
/// disconnected.
pub(super) async fn finish<S>(socket: &mut S, mut writer: BodyWriter, mut early: Vec<u8>) -> Option<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut unsent = UnsentChunks::default();
    let written = poll_fn(|context| {
        loop {
            if early.len() < EARLY && is_gone(socket, &mut early, context) {
                return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
            }
            ready!(unsent.poll_write(socket, context))?;
            if writer.has_ended() {
                return Poll::Ready(Ok::<(), io::Error>(()));
            }
            let mut data = Vec::new();
            ready!(writer.poll(context, &mut data).map(drop));
            unsent.push(&data, writer.has_ended());
        }
    });
    written.await.ok()?;
    Some(early.into())
}

/// Reads what is there of the next request; whether the client has disconnected.
fn is_gone<S: AsyncRead + Unpin>(socket: &mut S, early: &mut Vec<u8>, context: &mut Context<'_>) -> bool {
    let mut bytes = [0; EARLY];
    while early.len() < EARLY {
        let mut buffer = ReadBuf::new(&mut bytes);
        match Pin::new(&mut *socket).poll_read(context, &mut buffer) {
            Poll::Pending => return false,
            Poll::Ready(Ok(())) if !buffer.filled().is_empty() => early.extend_from_slice(buffer.filled()),
            Poll::Ready(_) => return true,
        }
    }
    false
}

/// Chunks that are not written yet.
#[derive(Default)]
struct UnsentChunks {
    bytes: Vec<u8>,
    sent: usize,
    is_unflushed: bool,
}

impl UnsentChunks {
    /// Appends data as a chunk, and the last chunk after it.
    fn push(&mut self, data: &[u8], is_last: bool) {
        self.bytes.reserve_exact(data.len() + 32);
        if !data.is_empty() {
            // Writing to a vector cannot fail.
            let _ = write!(self.bytes, "{:X}\r\n", data.len());
            self.bytes.extend_from_slice(data);
            self.bytes.extend_from_slice(b"\r\n");
        }
        if is_last {
            self.bytes.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// Ready when everything is written; the memory is free then.
    fn poll_write<S>(&mut self, socket: &mut S, context: &mut Context<'_>) -> Poll<io::Result<()>>
    where
        S: AsyncWrite + Unpin,
    {
        while let Some(rest) = self.bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match ready!(Pin::new(&mut *socket).poll_write(context, rest))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.sent += count,
            }
            self.is_unflushed = true;
        }
        if self.is_unflushed {
            ready!(Pin::new(socket).poll_flush(context))?;
            *self = Self::default();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReturnedSocket<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.early.is_empty() {
            return Pin::new(&mut this.socket).poll_read(context, buffer);
        }
        let count = this.early.len().min(buffer.remaining());
        buffer.put_slice(&this.early.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReturnedSocket<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.place.is_flushed.store(false, Ordering::Relaxed);
        Pin::new(&mut this.socket).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(context);
        this.place.is_flushed.store(flushed.is_ready(), Ordering::Relaxed);
        flushed
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
        this.place.is_flushed.store(false, Ordering::Relaxed);
        Pin::new(&mut this.socket).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
