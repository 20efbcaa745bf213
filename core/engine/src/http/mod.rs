//! The rules of Streamable HTTP, both eras, without a socket: a head and a body in, turns out.
//!
//! ```text
//!  head ──▶ Endpoint::admit ──▶ Admitted ──(the runtime verifies the token)──▶ identify ──▶ Identified
//!                │ Err(Response)                                              │ Err(Response)
//!                ▼                                                            ▼
//!             write it, done                                               write it, done
//!
//!  body, within Identified::body_limit ──▶ Endpoint::open ──▶ Turn, and an Exchange unless the turn has `end`
//!
//!  the writer:  register(waker) ─▶ deliver(room, now, out) ─▶ write ─▶ wait for the waker or the deadline ─▶ …
//!  a handler:   respond | detach … finish | report                     (wakes the writer)
//!  the engine                                                           (wakes the writers of listens and streams)
//! ```
//!
//! Law: no I/O, no clock, no randomness. A runtime passes on [`Turn`]s and knows nothing about the protocol.

mod accept;
mod admission;
mod answers;
mod auth;
mod authority;
mod channel;
mod cors;
mod exchange;
mod head;
mod lines;
mod paths;
mod proxies;
mod receiving;
mod refused;
mod rules;
mod sessions;
mod sse;
mod sse24;
mod state;
mod stream;
mod tokens;
mod turn;

pub use admission::{Admitted, Identified};
pub use auth::{Auth, DeniedToken, RulesError, Verified};
pub use exchange::Exchange;
pub use head::{EVENT_STREAM, JSON, RequestHead, Response, ResponseHead};
pub use receiving::Receiving;
pub use rules::{Answers, Hosts, Origins, Polling, Rules, Sse24};
pub use sessions::{SESSION_HEADER, SESSION_ID_BYTES};
pub use turn::Turn;

// Hidden, for `mcp-resources-runtime`: its static tokens must be ones that a client can send.
#[doc(hidden)]
pub use auth::is_token;

use crate::connection::{Connection, ConnectionKind, Standing};
use crate::engine::Engine;
use crate::hub::ConnectionId;
use crate::now::{Millis, Now};
use crate::version::Revision;
use admission::{Admission, Verb};
use channel::Channel;
use refused::{Logged, Refused};
use sessions::Sessions;
use state::{ChannelState, Taken};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[cfg(test)]
mod model;
#[cfg(test)]
mod random;
#[cfg(test)]
mod tests;

/// Returns random bytes for a session id; `None` if the runtime has no randomness, in which case no session begins.
pub type SessionIds = Box<dyn Fn() -> Option<[u8; SESSION_ID_BYTES]> + Send + Sync>;

/// One MCP endpoint of a server: its rules and its sessions. `Send + Sync`.
pub struct Endpoint {
    engine: Arc<Engine>,
    gate: Arc<Admission>,
    session_ids: SessionIds,
    sessions: Mutex<Sessions>,
    older: Mutex<Sessions>,
    /// Channels that may have notifications, to be ended with the endpoint.
    channels: Mutex<HashMap<ConnectionId, Weak<Channel>>>,
    refusals: Logged,
    /// The time at which [`Endpoint::tick`] is due; `u64::MAX` is never.
    due: AtomicU64,
    /// Set by [`Endpoint::shutdown`].
    closing: AtomicBool,
}

/// The first turn of a response, and the exchange for the rest.
#[derive(Debug)]
#[must_use = "the turn says what to write and what to do"]
pub struct OpenedRequest<'m> {
    /// The data to write and the events to handle now.
    pub turn: Turn<'m>,
    /// The source of the rest; `None` if the turn has `end`.
    pub exchange: Option<Exchange>,
}

impl<'m> OpenedRequest<'m> {
    fn whole(turn: Turn<'m>) -> Self {
        Self { turn, exchange: None }
    }
}

impl Endpoint {
    /// Makes an endpoint of `engine`. `session_ids` returns unpredictable random bytes; it is called once for
    /// each session.
    ///
    /// # Errors
    /// [`RulesError`] if a rule is invalid.
    pub fn new(engine: Arc<Engine>, rules: Rules, session_ids: SessionIds) -> Result<Arc<Self>, RulesError> {
        let gate = Admission::new(rules, engine.limits(), &engine.options().revisions)?;
        if gate.rules.metrics.is_some() {
            engine.measure();
        }
        let gate = Arc::new(gate);
        let cache = Arc::downgrade(&gate);
        engine.join(cache);
        Ok(Arc::new(Self {
            engine,
            gate,
            session_ids,
            sessions: Mutex::default(),
            older: Mutex::default(),
            channels: Mutex::default(),
            refusals: Logged::default(),
            due: AtomicU64::new(u64::MAX),
            closing: AtomicBool::new(false),
        }))
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The rules it was built with.
    pub fn rules(&self) -> &Rules {
        &self.gate.rules
    }

    /// The paths that it serves, each with and without a final slash, for runtimes with a router of their own.
    pub fn paths(&self) -> Vec<String> {
        self.gate.paths()
    }

    /// Checks the head of a request.
    ///
    /// # Errors
    /// The response to send instead: 431, 400 or 501 if the end of the body is in doubt, 403, 404 or 405; 401 or 400 if the
    /// `Authorization` header is missing or invalid. The answer of the health path, metadata documents, which require no
    /// token, and answers to preflights are returned this way too.
    pub fn admit(&self, head: &RequestHead<'_>, now: Now) -> Result<Admitted, Response> {
        self.gate.admit(head, now)
    }

    /// The log message for a response of [`Endpoint::admit`]: the option that would allow such requests. Returns the
    /// same message at most once a minute.
    pub fn advice(&self, response: &Response, now: Now) -> Option<String> {
        self.refusals.advice(response, now)
    }

    /// The log message for closing a connection above
    /// [`Limits::connections_per_client`](crate::limits::Limits::connections_per_client), at most once a minute.
    pub fn crowded(&self, now: Now) -> Option<String> {
        self.refusals.once(&Refused::Connections(self.engine.limits().connections_per_client), now)
    }

    /// Handles a request with its body (empty for `GET` and `DELETE`): appends the beginning of the response's body to
    /// `out`, and returns what to do next.
    pub fn open<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        body: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        self.engine.note_grant(&request.principal);
        match request.call.verb {
            Verb::Post => self.post(request, body, now, out),
            Verb::Get => self.get(request, now, out),
            Verb::Delete => self.delete(request, now, out),
            Verb::Connect => self.connect_sse24(request, now, out),
            Verb::Send => self.send_sse24(request, body, now, out),
            Verb::Metrics => self.show_metrics(request, out),
        }
    }

    /// Ends the listens of this endpoint with their results, and its notification streams after their pending
    /// notifications; later ones end at once. Other requests continue until [`Endpoint::close`]. Other endpoints and
    /// pipes of the same engine are not affected.
    pub fn shutdown(&self) {
        self.closing.store(true, Ordering::SeqCst);
        let found: Vec<_> = self.channels().values().filter_map(Weak::upgrade).collect();
        found.iter().for_each(|channel| channel.with(ChannelState::shutdown));
    }

    /// Registers a channel that may have notifications.
    fn know(&self, channel: &Arc<Channel>) {
        channel.register_waker();
        self.channels().insert(channel.id(), Arc::downgrade(channel));
        // Checked after registering the channel, so that a concurrent shutdown is not missed.
        if self.closing.load(Ordering::SeqCst) {
            channel.with(ChannelState::shutdown);
        }
    }

    /// The latest time at which [`Endpoint::tick`] must be called, on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        Some(self.due.load(Ordering::Acquire)).filter(|due| *due != u64::MAX)
    }

    fn post<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        body: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> OpenedRequest<'m> {
        let is_modern = request.call.names_modern();
        let (session, standing) = match (is_modern, self.rules().sessions) {
            (true, _) => (None, Standing::Missing),
            (false, true) => self.session_of(request, now),
            (false, false) => (None, Standing::Known),
        };
        let header_check = request.call.header_check(standing);
        if let Some(channel) = session {
            let taken =
                channel.with(|state| state.message(request, header_check, &self.gate, body, now, out));
            self.note_session(&channel);
            return self.opened(taken, &channel, true);
        }
        let mut state = ChannelState::new(self.connect(request, is_modern), false, now);
        let taken = state.message(request, header_check, &self.gate, body, now, out);
        match taken {
            Taken::Whole(turn) if state.begins_session() => {
                OpenedRequest::whole(self.begin_session(state, request, turn, now, out))
            }
            Taken::Whole(mut turn) => {
                if state.has_notices() {
                    // For a listen that ended at once.
                    state.end(now).events.into_iter().for_each(|event| turn.events.push(event));
                }
                OpenedRequest::whole(turn)
            }
            Taken::Stream(..) => {
                let has_notices = state.has_notices();
                let channel = Arc::new(Channel::new(state, &request.principal));
                if has_notices {
                    self.know(&channel);
                }
                self.opened(taken, &channel, false)
            }
        }
    }

    /// Answers with the metrics, for clients that may read them.
    fn show_metrics<'m>(&self, request: &'m Identified, out: &mut Vec<u8>) -> OpenedRequest<'m> {
        let text = self.engine.metrics_text().unwrap_or_default();
        let response = Response::metrics(text.into_bytes());
        OpenedRequest::whole(sessions::refuse(
            self.engine.connect(ConnectionKind::Bare).id(),
            response,
            request,
            out,
        ))
    }

    /// Makes the connection of a request that has no session yet.
    fn connect(&self, request: &Identified, is_modern: bool) -> Connection {
        if is_modern {
            return self.engine.connect(ConnectionKind::Request);
        }
        if self.rules().sessions {
            return self.engine.connect(ConnectionKind::Session);
        }
        let mut connection = self.engine.connect(ConnectionKind::Stateless);
        connection.assume(request.call.legacy_revision().unwrap_or(Revision::UNNAMED));
        connection
    }

    fn opened<'m>(
        self: &Arc<Self>,
        taken: Taken<'m>,
        channel: &Arc<Channel>,
        is_session: bool,
    ) -> OpenedRequest<'m> {
        match taken {
            Taken::Whole(turn) => OpenedRequest::whole(turn),
            Taken::Stream(turn, reader_id) => {
                let exchange = Exchange::new(self, Arc::clone(channel), reader_id, is_session);
                OpenedRequest { turn, exchange: Some(exchange) }
            }
        }
    }

    fn note(&self, deadline: Option<Millis>) {
        if let Some(deadline) = deadline {
            self.due.fetch_min(deadline, Ordering::AcqRel);
        }
    }

    fn forget(&self, channel: &Channel) {
        self.channels().remove(&channel.id());
        if self.rules().sse24.is_some() {
            self.older().remove_channel(channel);
        }
    }

    /// The sessions of 2024-11-05.
    fn older(&self) -> MutexGuard<'_, Sessions> {
        self.older.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    fn tokens(&self) -> &tokens::TokenCache {
        &self.gate.tokens
    }

    fn channels(&self) -> MutexGuard<'_, HashMap<ConnectionId, Weak<Channel>>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("rules", self.rules()).finish_non_exhaustive()
    }
}
