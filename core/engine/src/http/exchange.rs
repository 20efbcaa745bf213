//! A request that is not answered at once, for its handlers and its writer.

use super::Endpoint;
use super::channel::Channel;
use super::state::ReaderId;
use super::turn::Turn;
use crate::connection::{Answer, AskError, AskId, AskLasts, EncodedReply, HeldRequest, Reply, RequestToken};
use crate::hub::ConnectionId;
use crate::now::{Millis, Now};
use std::sync::Arc;
use std::task::Waker;

/// An incomplete response. Cheap to clone; `Send + Sync`.
///
/// Two sides use it, on any threads. *Handlers* add answers and reports; they never write to the client. The *writer*,
/// which owns the HTTP response, repeats these steps until a turn has `end`: call [`Exchange::register`], call
/// [`Exchange::deliver`], write the result, and wait for the waker or [`Exchange::deadline`]. If the client
/// disconnects, the writer calls [`Exchange::closed`].
///
/// A legacy request outlives its writer: keep the clone for its handlers separate from the HTTP library's own future.
#[derive(Clone, Debug)]
pub struct Exchange {
    endpoint: Arc<Endpoint>,
    channel: Arc<Channel>,
    reader_id: ReaderId,
    is_session: bool,
}

impl Exchange {
    pub(super) fn new(
        endpoint: &Arc<Endpoint>,
        channel: Arc<Channel>,
        reader_id: ReaderId,
        is_session: bool,
    ) -> Self {
        Self { endpoint: Arc::clone(endpoint), channel, reader_id, is_session }
    }

    /// The connection to which the tokens in its events belong.
    pub fn connection(&self) -> ConnectionId {
        self.channel.id()
    }

    /// Answers an event at once. Wakes the writer.
    pub fn respond(&self, token: RequestToken, answer: Answer<'_>, now: Now) -> Turn<'static> {
        let turn = self.channel.with(|state| {
            let mut line = Vec::new();
            let outcome = state.connection.respond(token, answer, now, &mut line);
            state.settled(token, line, outcome)
        });
        self.noted(turn)
    }

    /// Serves a held request from its start, for [`Event::Again`](crate::connection::Event::Again). Wakes the writer.
    pub fn again<'h>(&self, held: &'h HeldRequest, now: Now) -> Turn<'h> {
        let turn = self.channel.with(|state| state.again(held, now));
        if self.is_session {
            self.endpoint.note_session(&self.channel);
        }
        turn
    }

    /// Takes the reply out to encode it elsewhere; see [`Connection::detach`](crate::connection::Connection::detach).
    pub fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.channel.with(|state| state.connection.detach(token))
    }

    /// Runs `work` on a reply in place, for handlers that report before they answer.
    pub fn with_reply<R>(&self, token: RequestToken, work: impl FnOnce(&mut Reply) -> R) -> Option<R> {
        self.channel.with(|state| state.connection.reply(token).map(work))
    }

    /// Adds an answer that was encoded elsewhere. Wakes the writer.
    pub fn finish(&self, encoded: EncodedReply, now: Now) -> Turn<'static> {
        let turn = self.channel.with(|state| state.finish(encoded, now));
        self.noted(turn)
    }

    /// Ends a request that the runtime will not answer. Frees its slot, and ends the response without an answer.
    pub fn abandon(&self, token: RequestToken, now: Now) {
        self.channel.with(|state| {
            let mut line = Vec::new();
            let outcome = state.connection.abandon(token, now, &mut line);
            let _ = state.settled(token, line, outcome);
        });
    }

    /// Sends a message made by [`Reply::progress`] or [`Reply::log`] before the answer, if the client accepts events
    /// and is not more than [`Limits::output`](crate::limits::Limits::output) behind. Wakes the writer.
    pub fn report(&self, token: RequestToken, message: &[u8]) {
        self.channel.with(|state| state.report(token, message));
    }

    /// Sends a request to a legacy client, on this response if it can carry one, else on the session's notification
    /// stream; see [`Connection::ask`](crate::connection::Connection::ask).
    ///
    /// # Errors
    /// [`AskError`]; [`AskError::NotSupported`] also if the client has no open stream that can carry it.
    pub fn ask(&self, method: &str, params: &str, now: Now) -> Result<AskId, AskError> {
        self.ask_for(method, params, AskLasts::AsRead, now)
    }

    /// The same, with another time within which the answer must come.
    ///
    /// # Errors
    /// As [`Exchange::ask`].
    pub fn ask_for(&self, method: &str, params: &str, lasts: AskLasts, now: Now) -> Result<AskId, AskError> {
        let asked = self.channel.with(|state| state.ask(self.reader_id, method, params, lasts, now));
        self.endpoint.note_session(&self.channel);
        asked
    }

    /// Withdraws such a request: see [`Connection::withdraw_ask`](crate::connection::Connection::withdraw_ask).
    pub fn withdraw_ask(&self, ask: AskId) {
        self.channel.with(|state| state.withdraw_ask(self.reader_id, ask));
    }

    /// Registers the waker of the writer, called once when there is something to deliver. Call this before
    /// [`Exchange::deliver`], so that no change in between goes unnoticed.
    pub fn register(&self, waker: &Waker) {
        let before = self.channel.with(|state| state.register(self.reader_id, waker));
        drop(before);
    }

    /// Appends data that the client has not received, up to about `room` bytes; a single answer is never split. The
    /// writer calls this when it is woken, at the deadline, and while a turn has `more` and the client can receive
    /// more.
    pub fn deliver(&self, room: usize, now: Now, out: &mut Vec<u8>) -> Turn<'static> {
        let turn = self.channel.with(|state| {
            let passed = state.deadline().filter(|deadline| !self.is_session && *deadline <= now.tick);
            let expired = passed.map(|_| state.tick(now));
            let mut turn = state.deliver(self.reader_id, room, now, out);
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
            (false, true) if !turn.events.is_empty() => self.endpoint.note_session(&self.channel),
            (false, _) => {}
        }
        turn
    }

    /// The latest time at which the writer must call [`Exchange::deliver`], on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        self.channel.with(|state| {
            let own = if self.is_session { None } else { state.deadline() };
            [own, state.stream_deadline(self.reader_id)].into_iter().flatten().min()
        })
    }

    /// Reports that the client disconnected before the end. This cancels a modern request. A legacy
    /// request continues; its answer can be fetched later if the response was an event stream.
    pub fn closed(&self, now: Now) -> Turn<'static> {
        if self.is_session {
            self.channel.with(|state| state.leave(self.reader_id, now));
            self.endpoint.note_session(&self.channel);
            return Turn::ended(self.channel.id());
        }
        self.endpoint.forget(&self.channel);
        let turn = self
            .channel
            .with(|state| if state.is_over() { Turn::new(self.channel.id()) } else { state.end(now) });
        Turn { end: true, ..turn }
    }

    /// Updates the endpoint's deadline, because the deadline of a session may have changed.
    fn noted(&self, turn: Turn<'static>) -> Turn<'static> {
        if self.is_session {
            self.endpoint.note_session(&self.channel);
        }
        turn
    }
}
