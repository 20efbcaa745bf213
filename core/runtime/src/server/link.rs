//! The link between a handler and its request, usable from any thread.
//!
//! ```text
//!   attached ──report, or still pending──▶ detached ──answer──▶ answered
//!      └───────────────answer in the loop──────────────────────────▲
//! ```
//!
//! Law: the reply leaves the connection before the handler leaves the loop, and the request's slot is freed when the last
//! reference to the link is dropped. So a client that cancels in a loop cannot pile up work.

use super::ResourceServer;
use super::client::CallerHandle;
use super::span::Span;
use crate::sync::Mutex;
use mcp_resources_engine::connection::{Answer, Cancelled, Reply, RequestToken};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::now::Now;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// The link between a handler and its request.
pub(super) struct HandlerLink {
    client: Arc<CallerHandle>,
    token: RequestToken,
    state: Mutex<ReplyState>,
    cancelled: AtomicBool,
    notify: Notify,
    span: Span,
}

enum ReplyState {
    /// The reply is in the connection.
    Attached,
    /// The reply is with the handler.
    Detached(Box<Reply>, Cancelled),
    /// The reply was used, or is no longer wanted.
    Answered,
}

/// The way to give an answer.
pub(super) enum ReplyRoute {
    /// Through the connection.
    Respond,
    /// Encoded on this thread.
    Finish(Box<Reply>),
    /// Not at all.
    Nowhere,
}

impl HandlerLink {
    pub(super) fn new(client: Arc<CallerHandle>, token: RequestToken, span: Span) -> Arc<Self> {
        let state = Mutex::new(ReplyState::Attached);
        let notify = Notify::new();
        Arc::new(Self { client, token, state, cancelled: AtomicBool::new(false), notify, span })
    }

    pub(super) fn token(&self) -> RequestToken {
        self.token
    }

    /// The tracing span of its work.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn client(&self) -> &Arc<CallerHandle> {
        &self.client
    }

    pub(super) fn server(&self) -> ResourceServer {
        ResourceServer::from(self.client.shared.clone())
    }

    /// Takes the reply out of the connection, unless that was done before. Returns whether it is out now.
    pub(super) fn detach(&self) -> bool {
        self.detached(&mut self.state.lock()).is_some()
    }

    /// Sends the message that `word` makes with the reply, before the answer.
    pub(super) fn report(&self, word: impl FnOnce(&mut Reply, Now) -> Option<Vec<u8>>) {
        let mut state = self.state.lock();
        let Some((reply, cancelled)) = self.detached(&mut state) else { return };
        if let Some(bytes) = word(reply, self.now()) {
            self.client.peer.report(self.token, cancelled, &bytes);
            self.client.peer.appended();
        }
    }

    /// Takes the right to answer, and returns the way to do it.
    pub(super) fn take_route(&self) -> ReplyRoute {
        match std::mem::replace(&mut *self.state.lock(), ReplyState::Answered) {
            ReplyState::Attached => ReplyRoute::Respond,
            ReplyState::Detached(reply, _) => ReplyRoute::Finish(reply),
            ReplyState::Answered => ReplyRoute::Nowhere,
        }
    }

    /// Marks the answer as no longer wanted.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(super) async fn cancelled(&self) {
        // Created before the flag is read, so that it receives every later call of `cancel`.
        let notified = self.notify.notified();
        if !self.is_cancelled() {
            notified.await;
        }
    }

    fn detached<'s>(&self, state: &'s mut ReplyState) -> Option<(&'s mut Reply, &'s Cancelled)> {
        if matches!(state, ReplyState::Attached) {
            *state = match self.client.peer.detach(self.token) {
                Some(reply) => {
                    let cancelled = reply.cancelled();
                    ReplyState::Detached(Box::new(reply), cancelled)
                }
                None => return None,
            };
        }
        match state {
            ReplyState::Detached(reply, cancelled) => Some((reply, cancelled)),
            ReplyState::Attached | ReplyState::Answered => None,
        }
    }

    fn now(&self) -> Now {
        self.client.peer.now()
    }
}

/// Fails the request if it was not answered.
impl Drop for HandlerLink {
    fn drop(&mut self) {
        match self.take_route() {
            ReplyRoute::Nowhere => return,
            ReplyRoute::Finish(reply) if !self.is_cancelled() => {
                let failed = reply.encode(Answer::Failed(ReadError::Failed), self.now());
                // A failure has no further effect.
                let _ = self.client.peer.finish(failed);
            }
            ReplyRoute::Respond | ReplyRoute::Finish(_) => self.client.peer.abandon(self.token),
        }
        self.client.shared.tasks().remove(&(self.client.peer.connection(), self.token));
        self.client.peer.appended();
    }
}
