//! The answer to a request, sent once from any thread.
//!
//! ```text
//!   open ──send──▶ answered          a request that is cancelled or has run out of time meanwhile gets nothing,
//!    └──────drop──▶ failed           and its place is free again when the responder is gone
//! ```

use super::asks::{AskedClient, ProviderAsks};
use super::mounts::MountedProvider;
use crate::transport::Peer;
use mcp_resources_engine::connection::{
    Answer, Cancelled, ClientCapabilities, Completion, InputRequired, ListPage, LogLevel, RawResult,
    ReadResult, Reply,
};
use mcp_resources_engine::error::ReadError;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// Answers one request, once, on any thread. If this is dropped without an answer, for example by a panic, the request
/// fails. The request counts as in flight until its responder is dropped, even if it was cancelled.
#[must_use = "dropped without an answer, it fails the request"]
pub struct Responder<T> {
    open: Option<Box<OpenRequest>>,
    sort: PhantomData<fn(T)>,
}

/// A request that a worker has accepted: its runtime counts it until this is dropped.
struct PendingAnswer(Peer);

/// The parts needed to answer.
struct OpenRequest {
    pending: PendingAnswer,
    peer: Peer,
    reply: Reply,
    cancelled: Cancelled,
    redact: Option<Redact>,
    /// The name of the mount, for the log.
    mount: Arc<str>,
    asks: Arc<ProviderAsks>,
    /// The continuation if this provider answers that there is nothing.
    otherwise: Option<Otherwise>,
}

/// Passes an unanswered request on.
pub(super) type Otherwise = Box<dyn FnOnce(Peer, Reply) + Send>;

/// The server's redaction function, applied to the contents of a URI for a peer before they are encoded.
pub type Redact = Arc<dyn Fn(&Peer, &str, Answer<'static>) -> Answer<'static> + Send + Sync>;

/// A result that a [`Responder`] can send.
pub trait IntoAnswer: Sized {
    /// Whether the answer has contents, whose size is limited.
    #[doc(hidden)]
    const IS_CONTENTS: bool = false;

    #[doc(hidden)]
    fn into_answer(self) -> Answer<'static>;
}

impl IntoAnswer for ReadResult<'static> {
    const IS_CONTENTS: bool = true;

    fn into_answer(self) -> Answer<'static> {
        Answer::Contents(self)
    }
}

impl IntoAnswer for ListPage {
    fn into_answer(self) -> Answer<'static> {
        Answer::Listed(self)
    }
}

impl IntoAnswer for Completion<'static> {
    fn into_answer(self) -> Answer<'static> {
        Answer::Completion(self)
    }
}

impl IntoAnswer for RawResult<'static> {
    fn into_answer(self) -> Answer<'static> {
        Answer::Raw(self)
    }
}

impl<T: IntoAnswer> Responder<T> {
    pub(super) fn new(
        peer: Peer,
        reply: Reply,
        redact: Option<Redact>,
        mounted: &MountedProvider,
        otherwise: Option<Otherwise>,
    ) -> Self {
        let (mount, asks) = (mounted.name().clone(), mounted.asks().clone());
        let cancelled = reply.cancelled();
        let pending = PendingAnswer::new(&peer);
        let open =
            Some(Box::new(OpenRequest { pending, peer, reply, cancelled, redact, mount, asks, otherwise }));
        Self { open, sort: PhantomData }
    }

    /// Sends the answer.
    pub fn send(mut self, answer: Result<T, ReadError>) {
        let Some(mut open) = self.open.take() else { return };
        match (answer, open.otherwise.take()) {
            (Err(ReadError::NotFound), Some(otherwise)) => otherwise(open.peer, open.reply),
            (answer, _) => open.answer(answer.map_or_else(Answer::Failed, T::into_answer)),
        }
    }
}

impl<T> Responder<T> {
    /// Whether the answer is no longer needed: the request was cancelled or timed out.
    pub fn is_cancelled(&self) -> bool {
        self.open.as_ref().is_none_or(|open| open.cancelled.get())
    }

    /// Reports whether the answer is no longer needed, where this responder cannot be asked; `None` if it never was.
    pub fn cancelled(&self) -> Option<Cancelled> {
        self.open.as_ref().map(|open| open.cancelled.clone())
    }

    /// Writes a problem to the server's log, under the name of the mount. Clients do not see it.
    pub fn log(&self, what: &str) {
        if let Some(open) = &self.open {
            open.peer.event_handler().report(&format!("{}: {what}", open.mount));
        }
    }

    /// The client as one that can be asked while this request runs; `None` for a client of 2026-07-28, or one without a
    /// session.
    pub fn asked(&self) -> Option<AskedClient> {
        let open = self.open.as_ref().filter(|open| !open.reply.revision().is_modern())?;
        let capabilities = open.reply.capabilities()?;
        let client = AskedClient::new(&open.peer, &open.asks, open.reply.engine(), capabilities);
        Some(client).filter(|client| client.session().is_open())
    }

    /// The kinds of input that the client supports, in any revision.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.open.as_ref().and_then(|open| open.reply.capabilities()).unwrap_or_default()
    }

    /// The least severe level of log messages that the client wants; `None` if it wants none.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.open.as_ref().and_then(|open| open.reply.log_level())
    }

    /// Sends a log message to the client, if it wants messages of this level. `data` is JSON text.
    pub fn tell(&mut self, level: LogLevel, logger: Option<&str>, data: &str) {
        let Some(open) = &mut self.open else { return };
        if let Some(bytes) = open.reply.log(level, logger, data) {
            open.peer.report(open.reply.token(), &open.cancelled, &bytes);
            open.peer.appended();
        }
    }

    /// Sends progress to the client, if the client asked for it.
    pub fn progress(&mut self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(open) = &mut self.open else { return };
        let now = open.peer.now();
        if let Some(bytes) = open.reply.progress(progress, total, message, now) {
            open.peer.report(open.reply.token(), &open.cancelled, &bytes);
            open.peer.appended();
        }
    }
}

impl Responder<ReadResult<'static>> {
    /// Asks the client for input first (2026-07-28). The client reads again, with its answers and the state: see
    /// [`Read::inputs`](super::Read::inputs).
    pub fn require(mut self, request: InputRequired<'static>) {
        if let Some(open) = self.open.take() {
            open.answer(Answer::InputRequired(request));
        }
    }

    /// Announces the size of the contents in bytes. Call it before producing them.
    ///
    /// # Errors
    /// [`ReadError::SizeExceeded`] if the answer would be too large: send that error instead of the contents.
    pub fn facts(&self, size: u64) -> Result<(), ReadError> {
        let limit = self.most_bytes();
        if size > limit { Err(ReadError::SizeExceeded { limit, size: Some(size) }) } else { Ok(()) }
    }
}

impl<T> Responder<T> {
    pub(super) fn most_bytes(&self) -> u64 {
        self.open.as_ref().map_or(u64::MAX, |open| open.reply.most_bytes() as u64)
    }
}

impl PendingAnswer {
    fn new(peer: &Peer) -> Self {
        peer.pends();
        Self(peer.clone())
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        self.0.settled();
    }
}

impl OpenRequest {
    fn answer(self, answer: Answer<'static>) {
        let Self { pending, peer, reply, cancelled, redact, .. } = self;
        if cancelled.get() {
            peer.abandon(reply.token());
            peer.appended();
            return;
        }
        let answer = match (redact, reply.uri()) {
            (Some(redact), Some(uri)) => redact(&peer, uri, answer),
            _ => answer,
        };
        let encoded = reply.encode(answer, peer.now());
        peer.follow(peer.finish(encoded));
        drop(pending);
    }
}

impl<T> Drop for Responder<T> {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            if !open.cancelled.get() {
                let what = open.reply.uri().unwrap_or("a list, a completion or a call");
                open.peer.misuse(&format!("{}: the provider dropped {what} without an answer", open.mount));
            }
            open.answer(Answer::Failed(ReadError::Failed));
        }
    }
}

impl<T> fmt::Debug for Responder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Responder").field("is_open", &self.open.is_some()).finish_non_exhaustive()
    }
}
