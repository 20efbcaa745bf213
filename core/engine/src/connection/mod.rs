//! The protocol state of one peer: bytes of messages in, bytes of answers and events out.
//!
//! Law: no I/O, no clock, no thread. The same calls give the same bytes. Everything that a host calls on a connection is in
//! this file; the files below it hold the parts.

// From the bytes of a message to its method: the ladder asks the others.
mod ladder;
mod mirror;
mod request;
mod terms;

// The methods, each for both eras.
mod call;
mod complete;
mod handshake;
mod list;
mod read;
mod subscribe;

// What waits: for the host, for the rest of a batch, for another read of the same, for the client. And its record.
mod ask;
mod batch;
mod cached;
mod inflight;
mod record;

// What passes between the connection and its host.
mod answer;
mod event;
mod gather;
mod outcome;

// From an answer to bytes.
mod contents;
mod inputs;
mod logs;
mod reply;
mod schema;
mod words;

pub use answer::*;
pub use ask::AskError;
pub use event::*;
pub use gather::Gather;
pub use mirror::{Field, Mirror, Standing};
pub use outcome::{Outcome, Refusal, Status};
pub use reply::{Cancelled, Encoded, Reply};

pub(crate) use cached::EncodedContents;
pub(crate) use list::Listed;
pub(crate) use words::SERVER_INFO;

use crate::engine::{Engine, Flight, OpenConnection};
use crate::guard::Verdict;
use crate::hub::{ConnectionId, Delivered, Delivery, Ending};
use crate::jsonrpc::{DecodeLimits, Envelope, OwnedId, end};
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{INVALID_REQUEST, Revision};
use ask::Asks;
use batch::Batches;
use cached::WaitingReads;
use inflight::{InFlight, Late};
use record::PendingRecord;
use reply::{Next, Written};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use terms::Session;

#[cfg(test)]
mod tests;

/// An answer of so many bytes is handed over instead of copied.
const BIG: usize = 64 * 1024;

/// What a connection is to its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A process at the other end of a pipe: both eras, one message per line.
    Stdio,
    /// One legacy HTTP session.
    Session,
    /// One modern HTTP request; the connection dies with it.
    Request,
    /// One legacy HTTP request to a server without sessions (DEC-25); the connection dies with it.
    Stateless,
    /// A part inside another server (`design` section 12): results without an envelope.
    Bare,
}

/// One message, and who sent it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'m> {
    /// The bytes of one message, without the line end.
    pub message: &'m [u8],
    /// Who sent it.
    pub principal: &'m Arc<Principal>,
    /// What the head of the HTTP request says of the message; `None` where there is no head.
    pub mirror: Option<Mirror<'m>>,
}

/// The protocol state of one peer.
///
/// ```text
///                        initialize                notifications/initialized
///   no session ─────────────────────▶ negotiated ───────────────────────────▶ operating      (legacy)
///
///   any state: a request with the modern `_meta` is served by itself, and changes nothing    (2026-07-28)
/// ```
pub struct Connection {
    engine: Arc<Engine>,
    peer: ConnectionKind,
    id: ConnectionId,
    waker: Waker,
    decode: DecodeLimits,
    session: Option<Session>,
    /// Whether `notifications/initialized` has come.
    is_operating: bool,
    inflight: InFlight,
    /// The ids of open listens. One that the server ended stays until its id comes again.
    listens: HashSet<OwnedId>,
    asks: Asks,
    batches: Batches,
    waiting: WaitingReads,
    /// The request that is being looked at, until it waits or has ended.
    opening: Option<PendingRecord>,
    _open: Option<OpenConnection>,
    /// Who sent the latest message, where that makes a difference: a session outlives its tokens.
    principal: Option<Arc<Principal>>,
    /// Set by [`Connection::shutdown`].
    closing: bool,
}

impl Connection {
    pub(crate) fn new(engine: Arc<Engine>, id: ConnectionId, peer: ConnectionKind) -> Self {
        let limits = engine.limits();
        let decode = DecodeLimits { nesting: limits.nesting, batch: limits.batch, ..DecodeLimits::default() };
        let open = OpenConnection::of(&engine, peer);
        Self {
            engine,
            peer,
            id,
            waker: Waker::noop().clone(),
            decode,
            session: None,
            is_operating: false,
            inflight: InFlight::default(),
            listens: HashSet::new(),
            asks: Asks::default(),
            batches: Batches::default(),
            waiting: WaitingReads::new(),
            opening: None,
            _open: open,
            principal: None,
            closing: false,
        }
    }

    /// Has `waker` called whenever there is something for [`Connection::deliver`] and there was nothing before. Call this
    /// before the first message, or as soon as one of them has begun a session, listens, or waits for another read: what has
    /// come up until then wakes it at once. It may be called when there is nothing.
    ///
    /// It is called and dropped on any thread, also inside a call of this connection or of another one, so it must neither
    /// wait nor call the engine: it leaves a word, and the host delivers later.
    pub fn wake_with(&mut self, waker: Waker) {
        if self.session.is_some() || !self.listens.is_empty() {
            self.engine.hub().wake_with(self.id, &waker);
        }
        self.waiting.iter().for_each(|(_, flight)| flight.wake_with(self.id, &waker));
        self.waker = waker;
    }

    /// Whether a legacy client has sent `notifications/initialized`.
    pub(crate) fn is_operating(&self) -> bool {
        self.is_operating
    }

    /// Takes one message. Appends what can be answered to `out`, each message ended by a newline, and returns what
    /// cannot.
    pub fn message<'m>(&mut self, arrival: Arrival<'m>, now: Now, out: &mut Vec<u8>) -> Outcome<'m> {
        if self.peer == ConnectionKind::Session {
            self.know(arrival.principal);
        }
        let outcome = self.climb(arrival, now, out);
        if self.peer != ConnectionKind::Session {
            for (_, mut line) in self.take_completed() {
                out.append(&mut line);
            }
        }
        outcome
    }

    /// The answers of batches that cancellations in the last message completed, with the request that was cancelled: an
    /// answer over HTTP belongs to another stream than the message.
    pub(crate) fn take_completed(&mut self) -> Vec<(RequestToken, Vec<u8>)> {
        self.batches.take_completed()
    }

    /// Tells the peer that a line or body was larger than [`Limits::message`](crate::limits::Limits::message); the
    /// host has thrown it away (R-153).
    pub fn too_long(&mut self, out: &mut Vec<u8>) -> Outcome<'static> {
        self.unreadable(None, INVALID_REQUEST, "Message too large", out)
    }

    /// Answers an event at once, inside the host's loop.
    pub fn respond(
        &mut self,
        token: RequestToken,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Outcome<'static> {
        match self.inflight.take(token) {
            Some(reply) if reply.context.ticket.batch.is_some() => {
                let encoded = reply.encode(answer, now);
                self.finish(encoded, now, out)
            }
            Some(reply) => {
                let before = out.len();
                let (written, next) = reply.write(answer, now, out);
                self.go_on(token, written, next, out.len() - before, now)
            }
            None => Outcome::new(Status::Accepted),
        }
    }

    /// Takes the reply out, to be encoded elsewhere: before a thread or an await. `None` if it was taken already, was
    /// dropped, or the token names no request; a dropped one is still to be answered, with [`Connection::abandon`].
    pub fn detach(&mut self, token: RequestToken) -> Option<Reply> {
        self.inflight.detach(token)
    }

    /// The reply in place: to report progress from a handler that runs inside the host's loop.
    pub fn reply(&mut self, token: RequestToken) -> Option<&mut Reply> {
        self.inflight.get(token)
    }

    /// Appends an answer that was encoded elsewhere, unless its request was cancelled or timed out. O(1).
    pub fn finish(&mut self, encoded: Encoded, now: Now, out: &mut Vec<u8>) -> Outcome<'static> {
        let Encoded { misuse, token, mut bytes, next, missing_capability, verdict } = encoded;
        let length = bytes.len();
        let max = self.engine.limits().batch_bytes;
        match self.inflight.wanted(token) {
            Some(ticket) if ticket.batch.is_some() && next.is_none() => {
                self.batches.answer(ticket, &bytes, max, out);
            }
            // A small one does not take the place of a buffer with room for many.
            Some(_) if out.is_empty() && bytes.len() >= BIG => std::mem::swap(out, &mut bytes),
            Some(_) => out.append(&mut bytes),
            None => {}
        }
        self.go_on(token, Written { misuse, missing_capability, verdict }, next, length, now)
    }

    /// The host will give no answer: its handler was cancelled before it could. Frees the slot.
    pub fn abandon(&mut self, token: RequestToken, now: Now, out: &mut Vec<u8>) -> Outcome<'static> {
        if let Some(batch) = self.inflight.wanted(token).and_then(|ticket| ticket.batch) {
            self.batches.drop_one(batch, out);
        }
        self.record_token(token, Verdict::Cancelled, 0, now);
        self.inflight.settle(token);
        Outcome::new(Status::Accepted)
    }

    /// Answers the reads that waited for another one, and writes what the hub has marked for this connection, up to about
    /// `room` bytes. Call it when woken, and again when the stream can take more as long as it returns `More`.
    pub fn deliver(&mut self, room: usize, out: &mut Vec<u8>) -> Delivered {
        self.landed(&mut |_, line| out.append(line));
        let ending =
            if self.peer == ConnectionKind::Stdio { Ending::ResultThenCancelled } else { Ending::ResultOnly };
        let delivery = Delivery { room, server_info: self.engine.server_info(), ending };
        let (engine, latest) = (&self.engine, self.principal.as_deref());
        let mut may_see = |principal: &Principal, uri: &str| engine.sees(latest.unwrap_or(principal), uri);
        match engine.hub().deliver(self.id, delivery, out, &mut may_see) {
            Delivered::Idle if self.closing => Delivered::Ended,
            delivered => delivered,
        }
    }

    /// Answers the reads that waited for another one, as far as that has its answer. `write` takes each line with the
    /// request that it answers. For a host that writes the answers of different requests to different streams;
    /// [`Connection::deliver`] does the same for all others.
    pub fn landed(&mut self, write: &mut dyn FnMut(RequestToken, &mut Vec<u8>)) {
        if self.waiting.is_empty() {
            return;
        }
        let is_over = |(_, flight): &mut (RequestToken, Arc<Flight>)| flight.finished().is_some();
        let over: WaitingReads = self.waiting.extract_if(.., is_over).collect();
        for (token, flight) in over {
            // One that was cancelled has its place freed here.
            let (Some(reply), Some(finished)) = (self.inflight.take(token), flight.finished()) else {
                continue;
            };
            let (ticket, mut line) = (reply.context.ticket.clone(), Vec::new());
            let written = reply.finished(finished, &mut line);
            self.record_token(token, written.verdict, line.len(), finished.now);
            if ticket.batch.is_some() {
                let (answer, max) = (std::mem::take(&mut line), self.engine.limits().batch_bytes);
                self.batches.answer(&ticket, &answer, max, &mut line);
            }
            self.inflight.settle(token);
            write(token, &mut line);
        }
    }

    /// What it is to its transport.
    pub fn peer(&self) -> ConnectionKind {
        self.peer
    }

    /// Its number, for records and for the tables of hosts.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// When [`Connection::tick`] must be called at the latest, on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        [self.inflight.deadline(), self.asks.deadline()].into_iter().flatten().min()
    }

    /// Sends a request to a legacy client (`ping`, `elicitation/create`, `sampling/createMessage`, `roots/list`, or one
    /// of the author's). `params` is a JSON object. The answer, or that there was none within
    /// [`Limits::read_timeout`](crate::limits::Limits::read_timeout), comes as [`Event::Replied`].
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent then.
    pub fn ask(
        &mut self,
        method: &str,
        params: &str,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<AskId, AskError> {
        let session = self.session.as_ref().ok_or(AskError::UseInputRequired)?;
        if !session.capabilities.allow_method(method) {
            return Err(AskError::NotSupported);
        }
        let limits = self.engine.limits();
        if self.asks.len() >= limits.asks {
            return Err(AskError::LimitReached);
        }
        let members = words::members_of(params).ok_or(AskError::InvalidParams)?;
        let ask = self.asks.begin(now.tick.saturating_add(limits.read_timeout));
        let id = OwnedId::from(ask.0);
        Envelope::request(out, id.as_id(), method, |writer| writer.members(members.as_bytes()));
        end(out);
        Ok(ask)
    }

    /// Lets time pass: answers what has run out of time.
    pub fn tick(&mut self, now: Now, out: &mut Vec<u8>) -> Outcome<'static> {
        self.tick_each(now, &mut |_, line| out.append(line))
    }

    /// The same, for a host that writes the answers of different requests to different streams: `write` takes each line
    /// with the request that it answers.
    pub fn tick_each(
        &mut self,
        now: Now,
        write: &mut dyn FnMut(RequestToken, &mut Vec<u8>),
    ) -> Outcome<'static> {
        let (mut expired, mut late) = (Vec::new(), Late::default());
        let engine = &self.engine;
        for (token, ticket) in self.inflight.expire(now.tick, |ticket| cached::time_out(engine, ticket, now))
        {
            let (mut line, mut out) = (Vec::new(), Vec::new());
            ticket.say_expired(&mut line);
            late.add(&ticket);
            self.record_ended(&ticket, Verdict::Timeout, line.len(), now);
            match ticket.batch {
                Some(_) => self.batches.answer(&ticket, &line, engine.limits().batch_bytes, &mut out),
                None => out = line,
            }
            write(token, &mut out);
            expired.push(Event::Cancelled(token));
        }
        let unanswered =
            self.asks.expire(now.tick).into_iter().map(|ask| Event::Replied { ask, answer: None });
        let events: Vec<_> = expired.into_iter().chain(unanswered).collect();
        Outcome { misuse: late.message(), ..Outcome::new(Status::Accepted).with(events) }
    }

    /// How many requests wait for an answer of the host's, cancelled ones included.
    pub fn in_flight(&self) -> usize {
        self.inflight.len()
    }

    /// Cancels what is in flight, without an answer: at the end of input, after the grace (R-150).
    pub fn cancel_all(&mut self, now: Now) -> Events<'static> {
        self.drop_all(now)
    }

    /// Appends an answer to a request that was cancelled, where the transport must send one (DEC-21). Nothing if it was
    /// not cancelled, or belongs to a batch.
    pub fn say_cancelled(&self, token: RequestToken, out: &mut Vec<u8>) {
        if let Some(ticket) = self.inflight.dropped(token).filter(|ticket| ticket.batch.is_none()) {
            ticket.say_cancelled(out);
        }
    }

    /// The revision of the handshake, once there was one.
    pub fn revision(&self) -> Option<Revision> {
        self.session.as_ref().map(|session| session.revision)
    }

    /// Serves a request under a legacy revision without its handshake: for [`ConnectionKind::Stateless`].
    pub fn assume(&mut self, revision: Revision) {
        self.session = Some(Session::assumed(revision));
    }

    /// Whether it can tell its client of changes later.
    fn can_notify(&self) -> bool {
        self.peer != ConnectionKind::Stateless
    }

    /// Marks everything that a legacy client subscribed to: notifications may have been lost on their way to it.
    pub fn mark_all(&mut self) {
        self.engine.hub().mark_all(self.id);
    }

    /// Ends the listens of this connection with their results, after the notifications that are due (R-096, R-097). Later
    /// changes are not sent, and a later listen ends at once; other connections go on. Call [`Connection::deliver`] next:
    /// it returns [`Delivered::Ended`] once everything is written.
    pub fn shutdown(&mut self) {
        self.closing = true;
        self.engine.hub().shutdown(self.id);
    }

    /// Whether [`Connection::shutdown`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Ends the listens of this connection with their results and nothing else: the token that they were opened with has
    /// expired. Deliver next.
    pub fn end_listens(&mut self) -> Events<'static> {
        let left = self.engine.hub().end_listens(self.id);
        self.engine.mark_interest(left).into_iter().collect()
    }

    /// The client was let in again after [`Engine::revoke`](crate::engine::Engine::revoke): its next stream goes on.
    pub fn readmit(&self) {
        self.engine.hub().readmit(self.id);
    }

    /// Its streams end, as after [`Engine::revoke`](crate::engine::Engine::revoke). Deliver next.
    pub(crate) fn dismiss(&self) {
        self.engine.hub().dismiss(self.id);
    }

    /// Ends the connection: frees its subscriptions and cancels what is in flight (R-044, R-084).
    pub fn close(&mut self, now: Now) -> Events<'static> {
        let mut events = self.cancel_all(now);
        events.extend(self.engine.mark_interest(self.engine.hub().disconnect(self.id)));
        events.extend(
            self.asks.expire(Millis::MAX).into_iter().map(|ask| Event::Replied { ask, answer: None }),
        );
        self.listens.clear();
        events
    }

    /// The engine it belongs to.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    fn envelope(&self) -> Envelope {
        if self.peer == ConnectionKind::Bare { Envelope::Bare } else { Envelope::JsonRpc }
    }

    /// The answer is written: frees the slot. If another event is needed first, puts the reply back and returns the event.
    fn go_on<'o>(
        &mut self,
        token: RequestToken,
        written: Written,
        next: Option<Next>,
        bytes: usize,
        now: Now,
    ) -> Outcome<'o> {
        let Written { misuse, missing_capability, verdict } = written;
        let mut outcome = Outcome::new(Status::Answered);
        (outcome.misuse, outcome.verdict) = (misuse, verdict);
        match next {
            Some(Next { reply, question }) if self.inflight.wanted(token).is_some() => {
                self.inflight.put_back(token, reply);
                outcome.status = Status::Pending;
                outcome.events.push(question.event(token, None));
            }
            _ => {
                self.record_token(token, verdict, bytes, now);
                self.inflight.settle(token);
            }
        }
        if missing_capability {
            outcome.status = Status::Refused(Refusal::Capability);
        }
        outcome
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("peer", &self.peer).field("id", &self.id).finish_non_exhaustive()
    }
}
