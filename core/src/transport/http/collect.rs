//! The body of a request, within a bound of size and of time.

use super::phase::{Either, either};
use bytes::{Bytes, BytesMut};
use http_body::Body;
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// Why there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoBody {
    /// It is larger than it may be.
    TooLarge,
    /// It did not come in time.
    Late,
    /// The client is gone, or broke its own promise.
    Broken,
}

/// Reads the whole body. One that came with the head is not copied, and needs no timer: hyper hands it over in the turn
/// after it was first asked.
pub(super) async fn collect<B>(body: B, limit: usize, patience: Duration) -> Result<Bytes, NoBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = Collecting { body, limit, whole: Bytes::new() };
    if body.body.is_end_stream() {
        return Ok(Bytes::new());
    }
    for _ in 0..2 {
        if let Some(done) = body.at_once().await {
            return done;
        }
        if !body.whole.is_empty() {
            break;
        }
        next_turn().await;
    }
    match either(body.rest(), tokio::time::sleep(patience)).await {
        Either::First(done) => done,
        Either::Second(()) => Err(NoBody::Late),
    }
}

/// Lets the task's other half work: whoever wants to be polled again is, at once.
async fn next_turn() {
    let mut is_next = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_next, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
    .await;
}

struct Collecting<B> {
    body: B,
    limit: usize,
    whole: Bytes,
}

impl<B: Body<Data = Bytes> + Unpin> Collecting<B> {
    /// Takes what is there; `None` if that is not all.
    async fn at_once(&mut self) -> Option<Result<Bytes, NoBody>> {
        poll_fn(|context| {
            std::task::Poll::Ready(match Pin::new(&mut self.body).poll_frame(context) {
                std::task::Poll::Pending => None,
                std::task::Poll::Ready(frame) => match self.take(frame) {
                    Ok(true) => Some(Ok(std::mem::take(&mut self.whole))),
                    Ok(false) if self.body.is_end_stream() => Some(Ok(std::mem::take(&mut self.whole))),
                    Ok(false) => None,
                    Err(why) => Some(Err(why)),
                },
            })
        })
        .await
    }

    async fn rest(&mut self) -> Result<Bytes, NoBody> {
        let first = std::mem::take(&mut self.whole);
        let mut whole = BytesMut::from(first);
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let is_end = self.take_after(frame, whole.len())?;
            whole.extend_from_slice(&std::mem::take(&mut self.whole));
            if is_end {
                return Ok(whole.freeze());
            }
        }
    }

    fn take<E>(&mut self, frame: Option<Result<http_body::Frame<Bytes>, E>>) -> Result<bool, NoBody> {
        self.take_after(frame, 0)
    }

    /// Puts the data of a frame into `whole`; whether it was the end. `before` bytes came earlier.
    fn take_after<E>(
        &mut self,
        frame: Option<Result<http_body::Frame<Bytes>, E>>,
        before: usize,
    ) -> Result<bool, NoBody> {
        let Some(frame) = frame else { return Ok(true) };
        // Trailers say nothing here.
        self.whole = frame.map_err(|_| NoBody::Broken)?.into_data().unwrap_or_default();
        if before + self.whole.len() > self.limit { Err(NoBody::TooLarge) } else { Ok(false) }
    }
}
