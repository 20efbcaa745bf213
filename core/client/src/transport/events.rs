//! Event streams: the answer to a request, and the notifications of a server; resumed after a break.

use super::Inbound;
use super::endpoint::{ClientSession, HttpTransport, not_carried};
use super::sse::Events;
use super::wire;
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use mcp_resources_engine::client::{Failure, NotCarried};
use std::time::Duration;
use tokio::time::sleep;

/// Maximum number of failed attempts to resume a stream, or to open the notification stream.
const TRIES: u32 = 5;
/// The shortest and the longest pause before an attempt.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

/// The reason for which an exchange did not complete.
#[derive(Debug)]
pub(super) enum StreamFault {
    NotCarried(NotCarried),
    /// The server no longer knows this session.
    SessionEnded(HeaderValue),
}

/// One stream, across all its resumptions.
struct TransportStream {
    events: Events,
    /// The request that it answers; `None` for the notification stream.
    id: Option<u64>,
    /// The number of attempts to open it since the last event.
    tries: u32,
}

impl HttpTransport {
    /// Passes on messages until the answer to the request `id`, and returns the rest of the body. Resumes a stream that
    /// belongs to a session.
    pub(super) async fn follow(
        &self,
        mut body: Incoming,
        id: u64,
        session: Option<&ClientSession>,
    ) -> Result<Incoming, StreamFault> {
        let mut stream = TransportStream { events: Events::new(self.longest), id: Some(id), tries: 0 };
        loop {
            let fault = match self.pour(&mut stream, &mut body).await? {
                None => return Ok(body),
                Some(fault) => fault,
            };
            let session = session.filter(|_| stream.events.id().is_some());
            let Some(session) = session else { return Err(fault) };
            body = self.resume(&mut stream, session, fault).await?;
        }
    }

    /// Passes on notifications of the server, until the session ends, or at once if the server has no notification
    /// stream.
    pub(super) async fn stand(&self, session: &ClientSession) {
        let mut stream = TransportStream { events: Events::new(self.longest), id: None, tries: 0 };
        let mut opened = self.stream(session, None).await;
        let fault = loop {
            let fault = match opened {
                Ok(mut body) => {
                    // Nothing is lost if the stream was resumed after an event.
                    if stream.events.id().is_none() {
                        self.report(Inbound::StreamOpened).await;
                    }
                    match self.pour(&mut stream, &mut body).await {
                        Ok(fault) => fault.unwrap_or_else(|| self.ended("the stream has ended")),
                        Err(fault) => break fault,
                    }
                }
                // 405, or another status with which servers say that they have no such stream.
                Err(fault) if stream.tries == 0 && fault.is_final() => match fault {
                    StreamFault::SessionEnded(_) => break fault,
                    StreamFault::NotCarried(_) => return,
                },
                Err(fault) => fault,
            };
            opened = self.resume(&mut stream, session, fault).await;
            if let Err(fault) = opened {
                break fault;
            }
        };
        match fault {
            StreamFault::SessionEnded(ended) => self.end_session(&ended).await,
            StreamFault::NotCarried(fault) => {
                let reason = format!("the stream of notifications broke: {}", fault.failure);
                self.report(Inbound::Lost(reason)).await;
            }
        }
    }

    /// Passes on messages: `None` after the answer, else the reason for which the stream ended.
    async fn pour(
        &self,
        stream: &mut TransportStream,
        body: &mut Incoming,
    ) -> Result<Option<StreamFault>, StreamFault> {
        let mut fault = self.ended("the stream ended before the answer");
        while let Some(frame) = wire::frame(body).await {
            let data = match frame {
                Ok(data) => data,
                Err(error) => {
                    fault = self.broken(&error);
                    break;
                }
            };
            let limit = self.longest as u64;
            let read = stream.events.push(&data);
            while let Some(message) = stream.events.next() {
                let is_answer = stream.id.is_some_and(|id| wire::answers(&message, id));
                self.report(Inbound::Message(message)).await;
                if is_answer {
                    return Ok(None);
                }
            }
            read.map_err(|_| not_carried(None, Failure::TooLarge { limit }))?;
        }
        if stream.events.restart() {
            stream.tries = 0;
        }
        Ok(Some(fault))
    }

    /// Reopens a stream, up to [`TRIES`] times. The error is `fault` or a later one.
    async fn resume(
        &self,
        stream: &mut TransportStream,
        session: &ClientSession,
        mut fault: StreamFault,
    ) -> Result<Incoming, StreamFault> {
        let mut failures = 0;
        // Proxies close notification streams that are silent for long, so for those only failures to open count.
        while failures < TRIES && (stream.tries < TRIES || stream.id.is_none()) {
            sleep(stream.pause()).await;
            stream.tries = stream.tries.saturating_add(1);
            let found = match self.stream(session, stream.events.id()).await {
                Ok(body) => return Ok(body),
                Err(found) => found,
            };
            match found {
                // The event is too old to resume after. Its successors are lost, but later notifications are not.
                StreamFault::NotCarried(_)
                    if found.is_final() && stream.id.is_none() && stream.events.id().is_some() =>
                {
                    stream.events.forget();
                }
                _ if found.is_final() => return Err(found),
                _ => fault = found,
            }
            failures += 1;
        }
        Err(fault)
    }
}

impl TransportStream {
    /// The pause before the next attempt: the server's `retry`, or longer each time. Randomized, so that the clients of
    /// a restarted server do not return all at once.
    fn pause(&self) -> Duration {
        let (shortest, longest) = PAUSES;
        let requested = self.events.retry().map(|retry| retry.clamp(shortest, longest));
        let grown = || (Duration::from_secs(1) * 2_u32.saturating_pow(self.tries)).min(longest);
        let jitter = f64::from(getrandom::u32().unwrap_or_default()) / f64::from(u32::MAX);
        requested.unwrap_or_else(|| grown().mul_f64(0.5 + jitter / 2.0))
    }
}

impl StreamFault {
    /// Whether another attempt would fail in the same way.
    fn is_final(&self) -> bool {
        let is_refusal = |status| (StatusCode::OK.as_u16()..500).contains(&status);
        match self {
            Self::SessionEnded(_) => true,
            Self::NotCarried(fault) => fault.status.is_some_and(is_refusal),
        }
    }
}
