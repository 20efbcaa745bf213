//! Reads the body of a request within limits of size and time.

use super::phase::{Either, either};
use bytes::{Bytes, BytesMut};
use http_body::Body;
use mcp_resources_engine::http::{Identified, Receiving, Response};
use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

/// The reason for which there is no body.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoBody {
    /// It exceeds the size or time limit.
    Refused(Box<Response>),
    /// The client disconnected, or the body does not match its declared length.
    Broken,
}

/// Reads the whole body. A body that arrived with the head is not copied and needs no timer, because hyper provides it
/// one turn after the first poll.
///
/// Also returns whether the client had to be waited for.
pub(super) async fn collect<B>(body: B, request: &Identified) -> Result<(Bytes, bool), NoBody>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut body = BodyCollector { body, request, whole: Bytes::new() };
    if body.body.is_end_stream() {
        return Ok((Bytes::new(), false));
    }
    for _ in 0..2 {
        if let Some(done) = body.at_once().await {
            return done.map(|whole| (whole, false));
        }
        if !body.whole.is_empty() {
            break;
        }
        next_turn().await;
    }
    let patience = Duration::from_millis(request.body_timeout());
    match either(body.rest(), tokio::time::sleep(patience)).await {
        Either::First(done) => done.map(|whole| (whole, true)),
        Either::Second(()) => Err(NoBody::Refused(Box::new(request.too_late()))),
    }
}

/// Yields once, so that the other half of the task is polled.
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

struct BodyCollector<'r, B> {
    body: B,
    request: &'r Identified,
    whole: Bytes,
}

impl<B: Body<Data = Bytes> + Unpin> BodyCollector<'_, B> {
    /// Reads the available part; `None` if that is not all.
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
        let mut receiving = self.request.receiving();
        let first = std::mem::take(&mut self.whole);
        count(&mut receiving, &first)?;
        let mut whole = BytesMut::from(first);
        loop {
            let frame = poll_fn(|context| Pin::new(&mut self.body).poll_frame(context)).await;
            let Some(data) = data(frame)? else { return Ok(whole.freeze()) };
            count(&mut receiving, &data)?;
            whole.extend_from_slice(&data);
        }
    }

    /// Appends the data of the first frame to `whole`; returns whether it was the last.
    fn take<E>(&mut self, frame: Option<Result<http_body::Frame<Bytes>, E>>) -> Result<bool, NoBody> {
        let Some(data) = data(frame)? else { return Ok(true) };
        self.whole = data;
        if self.whole.len() > self.request.body_limit() {
            return Err(NoBody::Refused(Box::new(self.request.too_large())));
        }
        Ok(false)
    }
}

fn count(receiving: &mut Receiving, data: &Bytes) -> Result<(), NoBody> {
    receiving.take(data.len()).map_err(|response| NoBody::Refused(Box::new(response)))
}

/// The data of a frame; `None` at the end. Trailers are ignored.
fn data<E>(frame: Option<Result<http_body::Frame<Bytes>, E>>) -> Result<Option<Bytes>, NoBody> {
    let Some(frame) = frame else { return Ok(None) };
    Ok(Some(frame.map_err(|_| NoBody::Broken)?.into_data().unwrap_or_default()))
}
