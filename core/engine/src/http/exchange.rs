//! One request that is not answered at once: what its handlers and its writer do with it.

use super::Endpoint;
use super::channel::Channel;
use super::state::ReaderId;
use super::turn::Turn;
use crate::connection::{Answer, AskError, AskId, Encoded, Reply, RequestToken};
use crate::hub::ConnectionId;
use crate::now::{Millis, Now};
use std::sync::Arc;
use std::task::Waker;

/// A response that is not complete. Cheap to clone; `Send + Sync`.
///
/// Two sides use it, on any threads. *Handlers* give answers and reports; nothing of theirs writes to the client. The
/// *writer*, who holds the response, calls [`Exchange::register`], then [`Exchange::deliver`], writes what that gives,
/// and waits until it is woken or [`Exchange::deadline`] has come; until a turn has `end`. A writer whose client is gone
/// calls [`Exchange::closed`].
///
/// A legacy request outlives its writer: keep the clone that its handlers need apart from the HTTP library's own future.
#[derive(Clone, Debug)]
pub struct Exchange {
    endpoint: Arc<Endpoint>,
    channel: Arc<Channel>,
    seat: ReaderId,
    is_session: bool,
}

impl Exchange {
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        channel: Arc<Channel>,
        seat: ReaderId,
        is_session: bool,
    ) -> Self {
        Self { endpoint: Arc::clone(endpoint), channel, seat, is_session }
    }

    /// Whose tokens its events speak of.
    pub fn connection(&self) -> ConnectionId {
        self.channel.id()
    }

    /// Answers an event at once. The writer is woken.
    pub fn respond(&self, token: RequestToken, answer: Answer<'_>, now: Now) -> Turn<'static> {
        let turn = self.channel.with(|state| {
            let mut line = Vec::new();
            let outcome = state.connection.respond(token, answer, now, &mut line);
            state.settled(token, line, outcome)
        });
        self.noted(turn)
    }

    /// Takes the reply out, to be encoded elsewhere; see [`Connection::detach`](crate::connection::Connection::detach).
    pub fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.channel.with(|state| state.connection.detach(token))
    }

    /// Works on a reply in place: for a handler that reports before it answers at once.
    pub fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        self.channel.with(|state| state.connection.reply(token).map(work))
    }

    /// Takes an answer that was encoded elsewhere. The writer is woken.
    pub fn finish(&self, encoded: Encoded, now: Now) -> Turn<'static> {
        let turn = self.channel.with(|state| state.finish(encoded, now));
        self.noted(turn)
    }

    /// The host will give no answer to this request. Frees its place, and ends the response without one.
    pub fn abandon(&self, token: RequestToken, now: Now) {
        self.channel.with(|state| {
            let mut line = Vec::new();
            let outcome = state.connection.abandon(token, now, &mut line);
            let _ = state.settled(token, line, outcome);
        });
    }

    /// Sends what [`Reply::progress`] or [`Reply::log`] made, before the answer, if the client takes events and is not
    /// more than [`Limits::output`](crate::limits::Limits::output) behind. The writer is woken.
    pub fn report(&self, token: RequestToken, message: &[u8]) {
        self.channel.with(|state| state.report(token, message));
    }

    /// Sends a request to a legacy client, on this response if it can carry one, else on the session's stream of
    /// notifications; see [`Connection::ask`](crate::connection::Connection::ask).
    ///
    /// # Errors
    /// [`AskError`]; [`AskError::NotSupported`] also when the client reads no stream that could carry it.
    pub fn ask(&self, method: &str, params: &str, now: Now) -> Result<AskId, AskError> {
        let asked = self.channel.with(|state| state.ask(self.seat, method, params, now));
        self.endpoint.note_session(&self.channel);
        asked
    }

    /// The writer waits: `waker` is woken when there is something to deliver, once. Call it before
    /// [`Exchange::deliver`], so that nothing comes unseen between the two.
    pub fn register(&self, waker: &Waker) {
        let before = self.channel.with(|state| state.register(self.seat, waker));
        drop(before);
    }

    /// Appends what the client has not been sent, up to about `room` bytes (an answer in one piece is not cut): for the
    /// writer, when it was woken, when the deadline has come, or while a turn says `more` and the client takes more.
    pub fn deliver(&self, room: usize, now: Now, out: &mut Vec<u8>) -> Turn<'static> {
        let turn = self.channel.with(|state| {
            let passed = state.deadline().filter(|deadline| !self.is_session && *deadline <= now.tick);
            let expired = passed.map(|_| state.tick(now));
            let mut turn = state.deliver(self.seat, room, now, out);
            if let Some(expired) = expired {
                turn.events.insert_many(0, expired.events);
            }
            if turn.end && !self.is_session {
                turn.events.extend(state.end(now).events);
            }
            turn
        });
        match (turn.end, self.is_session) {
            (true, true) => self.endpoint.note_session(&self.channel),
            (true, false) => self.endpoint.forget(&self.channel),
            (false, _) => {}
        }
        turn
    }

    /// When the writer must call [`Exchange::deliver`] at the latest, on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        self.channel.with(|state| {
            let own = if self.is_session { None } else { state.deadline() };
            [own, state.stream_deadline(self.seat)].into_iter().flatten().min()
        })
    }

    /// The client is gone before the end. Of a modern request it is the cancellation; a legacy one goes on,
    /// and its answer can be fetched where the response was a stream of events.
    pub fn closed(&self, now: Now) -> Turn<'static> {
        if self.is_session {
            self.channel.with(|state| state.leave(self.seat, now));
            self.endpoint.note_session(&self.channel);
            return Turn::ended(self.channel.id());
        }
        self.endpoint.forget(&self.channel);
        let turn = self
            .channel
            .with(|state| if state.is_over() { Turn::of(self.channel.id()) } else { state.end(now) });
        Turn { end: true, ..turn }
    }

    /// A request that goes on may have a new deadline.
    fn noted(&self, turn: Turn<'static>) -> Turn<'static> {
        if self.is_session {
            self.endpoint.note_session(&self.channel);
        }
        turn
    }
}
