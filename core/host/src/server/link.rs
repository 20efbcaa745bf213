//! What ties a handler to its request, from whatever thread it works on.
//!
//! ```text
//!   attached ──report, or still pending──▶ detached ──answer──▶ answered
//!      └───────────────answer in the loop──────────────────────────▲
//! ```
//!
//! Law: the reply leaves the connection before the handler leaves the loop, and the request's place is freed when the
//! last who holds the link lets go, so a client that cancels in a loop cannot pile up work.

use super::ResourceServer;
use super::client::Client;
use super::span::Span;
use mcp_resources_engine::connection::{Answer, Cancelled, Reply, RequestToken};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::now::Now;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// See the module.
pub(super) struct Link {
    client: Arc<Client>,
    token: RequestToken,
    state: Mutex<ReplyState>,
    cancelled: AtomicBool,
    notify: Notify,
    span: Span,
}

enum ReplyState {
    /// The connection has the reply.
    Attached,
    /// The handler has it.
    Detached(Box<Reply>, Cancelled),
    /// It was used, or nobody waits for it.
    Answered,
}

/// How to give an answer.
pub(super) enum ReplyRoute {
    /// Through the connection.
    Respond,
    /// Worded here.
    Finish(Box<Reply>),
    /// Not at all.
    Nowhere,
}

impl Link {
    pub(super) fn new(client: Arc<Client>, token: RequestToken, span: Span) -> Arc<Self> {
        let (state, notify) = (Mutex::new(ReplyState::Attached), Notify::new());
        Arc::new(Self { client, token, state, cancelled: AtomicBool::new(false), notify, span })
    }

    pub(super) fn token(&self) -> RequestToken {
        self.token
    }

    /// What its work is done in.
    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    pub(super) fn server(&self) -> ResourceServer {
        ResourceServer::from(self.client.shared.clone())
    }

    /// Takes the reply out of the connection, if it is there; whether it is out now.
    pub(super) fn detach(&self) -> bool {
        self.detached(&mut self.lock()).is_some()
    }

    /// Sends what `word` makes of the reply, before the answer.
    pub(super) fn report(&self, word: impl FnOnce(&mut Reply, Now) -> Option<Vec<u8>>) {
        let mut state = self.lock();
        let Some((reply, cancelled)) = self.detached(&mut state) else { return };
        if let Some(bytes) = word(reply, self.now()) {
            self.client.peer.report(self.token, cancelled, &bytes);
            self.client.peer.appended();
        }
    }

    /// How the one answer is to be given; it is to be given now.
    pub(super) fn way(&self) -> ReplyRoute {
        match std::mem::replace(&mut *self.lock(), ReplyState::Answered) {
            ReplyState::Attached => ReplyRoute::Respond,
            ReplyState::Detached(reply, _) => ReplyRoute::Finish(reply),
            ReplyState::Answered => ReplyRoute::Nowhere,
        }
    }

    /// The answer is no longer wanted.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    pub(super) async fn cancelled(&self) {
        // Made before the flag is read: it hears of every call of `cancel` from here on.
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

    fn lock(&self) -> MutexGuard<'_, ReplyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Nobody works on the request any longer.
impl Drop for Link {
    fn drop(&mut self) {
        match self.way() {
            ReplyRoute::Nowhere => return,
            ReplyRoute::Finish(reply) if !self.is_cancelled() => {
                let failed = reply.encode(Answer::Failed(ReadError::Failed), self.now());
                // Nothing follows from a failure.
                let _ = self.client.peer.finish(failed);
            }
            ReplyRoute::Respond | ReplyRoute::Finish(_) => self.client.peer.abandon(self.token),
        }
        self.client.shared.tasks().remove(&(self.client.peer.connection(), self.token));
        self.client.peer.appended();
    }
}
