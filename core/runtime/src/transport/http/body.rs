//! The body of a response: complete, or written piece by piece from its exchange.
//!
//! Law: data is encoded when hyper asks for it, so a client that does not read costs dirty marks instead of memory.

use super::HttpServer;
use super::parked::{LentWriter, StreamPlace};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::StatusCode;
use hyper::header::{CONNECTION, HeaderValue};
use mcp_resources_engine::http::{Exchange, ResponseHead};
use mcp_resources_engine::now::Millis;
use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// Maximum number of bytes encoded at once for a client that reads.
const ROOM: usize = 64 * 1024;

/// The body of a response.
#[derive(Debug)]
pub struct ResponseBody(BodyKind);

#[derive(Debug)]
enum BodyKind {
    Whole(Bytes),
    Stream { first: Vec<u8>, writer: BodyWriter },
    Lent { first: Vec<u8>, writer: LentWriter },
}

impl ResponseBody {
    pub(super) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self(BodyKind::Whole(bytes.into()))
    }

    /// A response without a body, after which the connection closes.
    pub(crate) fn none(status: StatusCode) -> hyper::Response<Self> {
        let mut answer = hyper::Response::new(Self::whole(Bytes::new()));
        *answer.status_mut() = status;
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        answer
    }

    pub(super) fn stream(first: Vec<u8>, writer: BodyWriter) -> Self {
        Self(BodyKind::Stream { first, writer })
    }

    /// Keeps the writer of a stream in `place`, from which the owner of the connection may take it.
    pub(super) fn kept_in(self, place: &Arc<StreamPlace>) -> Self {
        Self(match self.0 {
            BodyKind::Stream { first, writer } => BodyKind::Lent { first, writer: place.lend(writer) },
            other => other,
        })
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |bytes| Poll::Ready(Some(Ok(Frame::data(bytes))));
        let mut out = Vec::new();
        let polled = match &mut self.0 {
            BodyKind::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            BodyKind::Whole(bytes) => return frame(std::mem::take(bytes)),
            BodyKind::Stream { first, .. } | BodyKind::Lent { first, .. } if !first.is_empty() => {
                return frame(std::mem::take(first).into());
            }
            BodyKind::Stream { writer, .. } if writer.ended => return Poll::Ready(None),
            BodyKind::Lent { writer, .. } if writer.has_ended() => return Poll::Ready(None),
            BodyKind::Stream { writer, .. } => writer.poll(context, &mut out).map(drop),
            BodyKind::Lent { writer, .. } => writer.poll(context, &mut out),
        };
        match polled {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) if out.is_empty() => Poll::Ready(None),
            Poll::Ready(()) => frame(out.into()),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Whole(bytes) => bytes.is_empty(),
            BodyKind::Stream { first, writer } => first.is_empty() && writer.ended,
            BodyKind::Lent { first, writer } => first.is_empty() && writer.has_ended(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodyKind::Stream { .. } | BodyKind::Lent { .. } => SizeHint::default(),
        }
    }
}

/// Writes the data of an exchange. Dropping it before the end means that the client has disconnected.
pub(super) struct BodyWriter {
    server: Arc<HttpServer>,
    exchange: Exchange,
    alarm: Option<(Millis, Pin<Box<Sleep>>)>,
    ended: bool,
}

impl BodyWriter {
    pub(super) fn new(server: Arc<HttpServer>, exchange: Exchange) -> Self {
        Self { server, exchange, alarm: None, ended: false }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Ready with a head, with data in `out`, or at the end.
    pub(super) fn poll(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<ResponseHead>> {
        loop {
            self.exchange.register(context.waker());
            let mut turn = self.exchange.deliver(ROOM, self.server.now(), out);
            let head = turn.head.take();
            self.ended = turn.end;
            self.server.after(turn, Some(&self.exchange));
            if self.ended || head.is_some() || !out.is_empty() {
                return Poll::Ready(head);
            }
            if self.wait(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the deadline, if there is one.
    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(deadline) = self.exchange.deadline() else { return Poll::Pending };
        let stands = self.server.clock.stands(context.waker());
        let left = deadline.saturating_sub(self.server.now().tick);
        if left == 0 {
            return Poll::Ready(());
        }
        if stands {
            return Poll::Pending;
        }
        let at = || Instant::now() + Duration::from_millis(left);
        let (armed, sleep) =
            self.alarm.get_or_insert_with(|| (deadline, Box::pin(tokio::time::sleep_until(at()))));
        // A timer that fired too early is set again; one that is later than the deadline is moved.
        if *armed > deadline || sleep.is_elapsed() {
            sleep.as_mut().reset(at());
            *armed = deadline;
        }
        sleep.as_mut().poll(context)
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if !self.ended {
            let turn = self.exchange.closed(self.server.now());
            self.server.after(turn, Some(&self.exchange));
        }
    }
}

impl fmt::Debug for BodyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("ended", &self.ended).finish_non_exhaustive()
    }
}
