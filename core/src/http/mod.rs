//! The rules of Streamable HTTP, both eras, without a socket: a head and a body in, turns out (requirements, sections 2,
//! 12 and 13).
//!
//! ```text
//!  head ──▶ Endpoint::admit ──▶ Admitted ──(the host verifies the token)──▶ identify ──▶ Identified
//!                │ Err(Response)                                              │ Err(Response)
//!                ▼                                                            ▼
//!             write it, done                                               write it, done
//!
//!  body, within Identified::body_limit ──▶ Endpoint::open ──▶ Turn, and an Exchange unless the turn has `end`
//!
//!  the writer:  register(waker) ─▶ deliver(room, now, out) ─▶ write ─▶ wait for the waker or the deadline ─▶ …
//!  a handler:   respond | detach … finish | report                     (wakes the writer)
//!  the engine's lists of woken connections ─▶ Endpoint::wake           (wakes the writers of listens and streams)
//! ```
//!
//! Law: no I/O, no clock, no randomness. A host moves [`Turn`]s and knows no word of the protocol.

mod accept;
mod admission;
mod auth;
mod channel;
mod cors;
mod exchange;
mod head;
mod rules;
mod sessions;
mod sse;
mod stream;
mod turn;

pub use admission::{Admitted, Identified};
pub use auth::{Auth, Denied, RulesError, Verified};
pub use exchange::Exchange;
pub use head::{Head, Response, ResponseHead};
pub use rules::{Answers, Hosts, Origins, Polling, Rules};
pub use sessions::SESSION_ID_BYTES;
pub use turn::Turn;

use crate::connection::{Peer, Standing};
use crate::engine::Engine;
use crate::hub::ConnectionId;
use crate::now::{Millis, Now};
use crate::version::{INTERNAL_ERROR, INVALID_REQUEST};
use admission::{Gate, Header, Verb};
use channel::{Channel, State, Taken};
use sessions::Sessions;
use sse::EventId;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

#[cfg(test)]
mod tests;

/// Random bytes for a session id, from the host.
pub type SessionIds = Box<dyn Fn() -> [u8; SESSION_ID_BYTES] + Send + Sync>;

/// One MCP endpoint of a server: its rules and its sessions. `Send + Sync`.
pub struct Endpoint {
    engine: Arc<Engine>,
    gate: Arc<Gate>,
    session_ids: SessionIds,
    sessions: Mutex<Sessions>,
    /// Who is woken when the hub has something for a connection.
    channels: Mutex<HashMap<ConnectionId, Weak<Channel>>>,
    /// When [`Endpoint::tick`] is due; `u64::MAX` is never.
    due: AtomicU64,
}

/// The first turn of a response, and the rest of it.
#[derive(Debug)]
#[must_use = "the turn says what to write and what to do"]
pub struct Opened<'m> {
    /// What to write and to do now.
    pub turn: Turn<'m>,
    /// Where the rest comes from; `None` if the turn has `end`.
    pub exchange: Option<Exchange>,
}

impl<'m> Opened<'m> {
    fn whole(turn: Turn<'m>) -> Self {
        Self { turn, exchange: None }
    }
}

impl Endpoint {
    /// An endpoint of `engine`. `session_ids` gives random bytes that nobody can guess (R-169); it is called once for
    /// each session.
    ///
    /// # Errors
    /// [`RulesError`] if the rules cannot be applied.
    pub fn new(engine: Arc<Engine>, rules: Rules, session_ids: SessionIds) -> Result<Arc<Self>, RulesError> {
        let gate = Gate::new(rules, engine.limits(), &engine.options().revisions)?;
        Ok(Arc::new(Self {
            engine,
            gate: Arc::new(gate),
            session_ids,
            sessions: Mutex::default(),
            channels: Mutex::default(),
            due: AtomicU64::new(u64::MAX),
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

    /// Looks at the head of a request (requirements §2, steps 1 to 3).
    ///
    /// # Errors
    /// The response to send instead: 431, 403, 404, 405, or 401 and 400 for what is wrong with the token's header; also
    /// the documents that are found without a token, and the answers to preflights.
    pub fn admit(&self, head: &Head<'_>) -> Result<Admitted, Response> {
        self.gate.admit(head)
    }

    /// Takes a request with its body (empty for `GET` and `DELETE`), appends the beginning of the response's body to
    /// `out`, and says what to do (requirements §2, steps 6 to 9).
    pub fn open<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        body: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Opened<'m> {
        match request.call.verb {
            Verb::Post => self.post(request, body, now, out),
            Verb::Get => self.get(request, now, out),
            Verb::Delete => self.delete(request, now, out),
        }
    }

    /// Wakes the writers of connections that the engine says have something to deliver. Names that are not of this
    /// endpoint are ignored.
    pub fn wake(&self, woken: &[ConnectionId]) {
        let found: Vec<_> = {
            let channels = self.channels();
            woken.iter().filter_map(|id| channels.get(id)?.upgrade()).collect()
        };
        found.iter().for_each(|channel| channel.wake());
    }

    /// When [`Endpoint::tick`] must be called at the latest, on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        Some(self.due.load(Ordering::Acquire)).filter(|due| *due != u64::MAX)
    }

    /// Lets time pass for the sessions: answers what has run out of time, ends what is idle. One turn for each session
    /// that leaves something to do; nothing of them is to be written.
    pub fn tick(&self, now: Now) -> Vec<Turn<'static>> {
        if self.due.load(Ordering::Acquire) > now.tick {
            return Vec::new();
        }
        self.due.store(u64::MAX, Ordering::Release);
        let idle = self.engine.limits().session_idle;
        let mut turns = Vec::new();
        let all = self.sessions().all();
        for (id, channel) in all {
            let (turn, expires) = channel.with(|state| (state.tick(now), state.expires(idle)));
            turns.push(turn);
            if expires.is_some_and(|expires| expires <= now.tick) {
                turns.extend(self.end_session(&id, now));
            } else {
                self.note_session(&channel);
            }
        }
        turns.retain(|turn| !turn.events.is_empty());
        turns
    }

    /// Ends every session, at the end of a shutdown: after [`Engine::shutdown`] and whatever time was given to what was in
    /// flight. Modern requests that are left are ended by [`Exchange::closed`].
    pub fn close(&self, now: Now) -> Vec<Turn<'static>> {
        let ids: Vec<_> = self.sessions().all().into_iter().map(|(id, _)| id).collect();
        let turns = ids.iter().filter_map(|id| self.end_session(id, now));
        turns.filter(|turn| !turn.events.is_empty()).collect()
    }

    /// How many sessions are open: for metrics and leak tests.
    pub fn sessions_open(&self) -> usize {
        self.sessions().len()
    }

    fn post<'m>(
        self: &Arc<Self>,
        request: &'m Identified,
        body: &'m [u8],
        now: Now,
        out: &mut Vec<u8>,
    ) -> Opened<'m> {
        let is_modern = request.call.names_modern();
        let (session, standing) =
            if is_modern { (None, Standing::Missing) } else { self.session_of(request) };
        let call = (request, request.call.mirror(standing), self.rules());
        if let Some(channel) = session {
            let taken = channel.with(|state| state.message(call, body, now, out));
            self.note_session(&channel);
            return self.opened(taken, &channel, true);
        }
        let peer = if is_modern { Peer::Request } else { Peer::Session };
        let mut state = State::new(self.engine.connect(peer), false, now);
        let taken = state.message(call, body, now, out);
        match taken {
            Taken::Whole(turn) if state.connection.revision().is_some() => {
                Opened::whole(self.begin_session(state, request, (turn, out), now))
            }
            Taken::Whole(turn) => Opened::whole(turn),
            Taken::Stream(..) => {
                let channel = Arc::new(Channel::new(state, request.principal.id()));
                self.channels().insert(channel.id(), Arc::downgrade(&channel));
                self.opened(taken, &channel, false)
            }
        }
    }

    fn opened<'m>(
        self: &Arc<Self>,
        taken: Taken<'m>,
        channel: &Arc<Channel>,
        is_session: bool,
    ) -> Opened<'m> {
        match taken {
            Taken::Whole(turn) => Opened::whole(turn),
            Taken::Stream(turn, seat) => {
                let exchange = Exchange::new(self, Arc::clone(channel), seat, is_session);
                Opened { turn, exchange: Some(exchange) }
            }
        }
    }

    /// The handshake was answered: names the session in the response (R-169).
    fn begin_session<'m>(
        &self,
        mut state: State,
        request: &Identified,
        (turn, out): (Turn<'m>, &mut Vec<u8>),
        now: Now,
    ) -> Turn<'m> {
        state.become_session();
        let channel = Arc::new(Channel::new(state, request.principal.id()));
        let random = (self.session_ids)();
        let id = {
            let mut sessions = self.sessions();
            let has_room = sessions.len() < self.engine.limits().sessions;
            if has_room { sessions.insert(random, &channel) } else { None }
        };
        let Some(id) = id else {
            let _ = channel.with(|state| state.end(now));
            let refused = Response::error(503, INTERNAL_ERROR, "Too many sessions");
            return refuse(turn.connection, refused, request, out);
        };
        self.channels().insert(channel.id(), Arc::downgrade(&channel));
        self.note_session(&channel);
        Turn { head: turn.head.map(|head| head.with("mcp-session-id", id)), ..turn }
    }

    /// R-173, R-174.
    fn get<'m>(self: &Arc<Self>, request: &'m Identified, now: Now, out: &mut Vec<u8>) -> Opened<'m> {
        let channel = match self.session_or_refusal(request) {
            Ok(channel) => channel,
            Err(refused) => {
                return Opened::whole(refuse(self.engine.connect(Peer::Session).id(), refused, request, out));
            }
        };
        let call = &request.call;
        let seat = channel.with(|state| {
            let last = call.last_event_id.as_deref();
            if let Some(seat) = last.and_then(EventId::parse).and_then(|id| state.resume(id, call, now)) {
                return Some(seat);
            }
            if last.is_some() {
                state.connection.mark_all();
            }
            state.has_room().then(|| state.open_notices(call, self.rules(), now))
        });
        let Some(seat) = seat else {
            let refused = Response::error(503, INTERNAL_ERROR, "Too many streams");
            return Opened::whole(refuse(channel.id(), refused, request, out));
        };
        let turn = channel.with(|state| state.deliver(seat, self.engine.limits().output, now, out)).shorten();
        self.note_session(&channel);
        let taken = if turn.end { Taken::Whole(turn) } else { Taken::Stream(turn, seat) };
        self.opened(taken, &channel, true)
    }

    /// R-172.
    fn delete<'m>(&self, request: &'m Identified, now: Now, out: &mut Vec<u8>) -> Opened<'m> {
        let none = || self.engine.connect(Peer::Session).id();
        let ended = self.session_or_refusal(request).and_then(|_| {
            let id = request.call.session.text().unwrap_or_default();
            self.end_session(id, now).map(Turn::shorten).ok_or_else(session_unknown)
        });
        Opened::whole(match ended {
            Err(refused) => refuse(none(), refused, request, out),
            Ok(turn) => {
                let head = Response::empty(204).head.shared_with(request.call.origin.as_deref());
                Turn { head: Some(head), end: true, ..turn }
            }
        })
    }

    /// The session that a request belongs to, and what its session is.
    fn session_of(&self, request: &Identified) -> (Option<Arc<Channel>>, Standing) {
        let id = match &request.call.session {
            Header::Absent => return (None, Standing::Missing),
            Header::Repeated => return (None, Standing::Unknown),
            Header::Once(_) => request.call.session.text().unwrap_or_default(),
        };
        match self.sessions().find(id, request.principal.id()) {
            Some(channel) => (Some(Arc::clone(channel)), Standing::Known),
            None => (None, Standing::Unknown),
        }
    }

    fn session_or_refusal(&self, request: &Identified) -> Result<Arc<Channel>, Response> {
        if request.call.names_no_revision() {
            return Err(Response::error(400, INVALID_REQUEST, "Unsupported protocol version"));
        }
        match self.session_of(request) {
            (Some(channel), _) => Ok(channel),
            (None, Standing::Missing) => {
                Err(Response::error(400, INVALID_REQUEST, "Invalid Request: Mcp-Session-Id is missing"))
            }
            (None, _) => Err(session_unknown()),
        }
    }

    fn end_session(&self, id: &str, now: Now) -> Option<Turn<'static>> {
        let channel = self.sessions().remove(id)?;
        self.forget(channel.id());
        Some(channel.with(|state| state.end(now)))
    }

    /// A session may have a nearer deadline than before.
    fn note_session(&self, channel: &Channel) {
        let idle = self.engine.limits().session_idle;
        let (work, end) = channel.with(|state| (state.deadline(), state.expires(idle)));
        self.note(work);
        self.note(end);
    }

    fn note(&self, deadline: Option<Millis>) {
        if let Some(deadline) = deadline {
            self.due.fetch_min(deadline, Ordering::AcqRel);
        }
    }

    fn forget(&self, id: ConnectionId) {
        self.channels().remove(&id);
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
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

fn session_unknown() -> Response {
    Response::error(404, INVALID_REQUEST, "Session not found")
}

/// A response without a message.
fn refuse<'m>(id: ConnectionId, refused: Response, request: &Identified, out: &mut Vec<u8>) -> Turn<'m> {
    let Response { head, body } = refused.shared_with(request.call.origin.as_deref());
    *out = body;
    Turn { head: Some(head), ..Turn::ended(id) }
}
