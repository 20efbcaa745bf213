//! The protocol state of one client: it takes the bytes of messages, appends the bytes of answers, and returns events.
//!
//! Law: no I/O, no clock, no thread. The same calls give the same bytes. All functions for runtimes are in this file; the
//! other files hold the parts.

// From the bytes of a message to its method, with the checks in between.
mod dispatch;
mod header_check;
mod request;
mod terms;

// The methods, each for both eras.
mod call;
mod complete;
mod handshake;
mod list;
mod named;
mod read;
mod resource_tools;
mod subscribe;

// Pending work: for the runtime, for the rest of a batch, for an identical read, for the client. And its records.
mod access;
mod ask;
mod batch;
mod cached;
mod inflight;
mod request_record;

// The types that the connection and its runtime exchange.
mod answer;
mod blocks;
mod event;
mod foreign;
mod gather;
mod outcome;

// Encodes answers.
mod contents;
mod inputs;
mod logs;
mod reply;
mod response;
mod schema;
mod tool_text;

pub use access::{AccessRequest, HeldRequest};
pub use answer::*;
pub use ask::{AskError, AskLasts};
pub use blocks::{BlockKind, ContentBlock, PromptMessage, PromptResult, ToolResult};
pub use event::*;
pub use gather::ContentsGatherer;
pub use header_check::{HeaderCheck, HeaderField, Standing};
pub use outcome::{OutcomeStatus, RequestOutcome, RequestRefusal};
pub use reply::{Cancelled, EncodedReply, Reply};
pub use terms::ClientCapabilities;

pub(crate) use cached::EncodedContents;
pub(crate) use list::Listed;
pub(crate) use resource_tools::tools as resource_tools;
pub(crate) use response::SERVER_INFO;

use crate::engine::{Engine, OpenConnection, ReadFlight};
use crate::guard::Verdict;
use crate::headers::Headers;
use crate::hub::{ConnectionId, Delivered, HubDelivery, ListenEnding};
use crate::jsonrpc::{DecodeLimits, Envelope, OversizedLine, OwnedId, end};
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{self, INVALID_REQUEST, Revision};
use access::{AccessState, NextQuestion};
use ask::ClientAsks;
use batch::Batches;
use cached::WaitingReads;
use inflight::{InFlight, Late};
use reply::{NextRead, WrittenReply};
use request_record::PendingRecord;
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Waker;
use terms::SessionTerms;

#[cfg(test)]
mod tests;

/// An answer of at least this many bytes is handed over instead of copied.
const BIG: usize = 64 * 1024;

/// The kind of transport behind a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionKind {
    /// A process at the other end of a pipe: both eras, one message on each line.
    Stdio,
    /// One legacy HTTP session.
    Session,
    /// One modern HTTP request; the connection ends with it.
    Request,
    /// One legacy HTTP request to a server without sessions; the connection ends with it.
    Stateless,
    /// A component inside another server: results without an envelope.
    Bare,
    /// A client of another server, which passes its messages on: see [`embedded`](crate::embedded).
    Embedded,
    /// The reads of a client of another server, where this program owns the pipe between them: see
    /// [`EmbeddedFront`](crate::embedded::EmbeddedFront).
    Beside,
}

/// The message of the error for a request larger than [`Limits::message`](crate::limits::Limits::message).
pub(crate) const TOO_LARGE: &str = "Message too large";

/// The log message for a request larger than the limit of `max` bytes.
pub(crate) fn too_large_advice(max: usize) -> String {
    format!(
        "a message was refused: it is larger than the limit \"message\" of {max} bytes, which you can raise"
    )
}

/// One message with its sender.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'m> {
    /// The bytes of the message, without the line end.
    pub message: &'m [u8],
    /// The sender.
    pub principal: &'m Arc<Principal>,
    /// The headers of the HTTP request that describe the message; `None` on other transports.
    pub header_check: Option<HeaderCheck<'m>>,
}

/// The protocol state of one client.
///
/// ```text
///                        initialize                notifications/initialized
///   no session ─────────────────────▶ negotiated ───────────────────────────▶ operating      (legacy)
///
///   any state: a request with the modern `_meta` is served by itself, and changes nothing    (2026-07-28)
/// ```
pub struct Connection {
    engine: Arc<Engine>,
    kind: ConnectionKind,
    id: ConnectionId,
    waker: Waker,
    decode: DecodeLimits,
    session: Option<SessionTerms>,
    /// Whether `notifications/initialized` has arrived.
    is_operating: bool,
    inflight: InFlight,
    /// The ids of open listens. An id stays here after the server ended its listen, until a request uses it again.
    listens: HashSet<OwnedId>,
    asks: ClientAsks,
    batches: Batches,
    waiting: WaitingReads,
    access: AccessState,
    /// The record of the current request, until the request waits or has ended.
    opening: Option<PendingRecord>,
    _open: Option<OpenConnection>,
    /// The sender of the latest message, where it matters: a session outlives its tokens.
    principal: Option<Arc<Principal>>,
    /// The address of the client of the latest message, for records.
    address: Option<IpAddr>,
    /// Set by [`Connection::shutdown`].
    closing: bool,
    /// Whether it serves the requests inside a call of a tool, which are not recorded and do not wait for other reads.
    is_inner: bool,
    /// Whether the author was told of a message that was too large.
    told_too_large: bool,
}

impl Connection {
    pub(crate) fn new(engine: Arc<Engine>, id: ConnectionId, kind: ConnectionKind) -> Self {
        let limits = engine.limits();
        let decode = DecodeLimits { nesting: limits.nesting, batch: limits.batch, ..DecodeLimits::default() };
        let open = OpenConnection::if_enabled(&engine, kind);
        Self {
            engine,
            kind,
            id,
            waker: Waker::noop().clone(),
            decode,
            session: None,
            is_operating: false,
            inflight: InFlight::default(),
            listens: HashSet::new(),
            asks: ClientAsks::default(),
            batches: Batches::default(),
            waiting: WaitingReads::new(),
            access: AccessState::default(),
            opening: None,
            _open: open,
            principal: None,
            closing: false,
            is_inner: false,
            told_too_large: false,
            address: None,
        }
    }

    /// Sets the waker to call whenever there is new work for [`Connection::deliver`]. Call this before the first
    /// message, or as soon as one has begun a session, listens, or waits for another read: work that is already there
    /// calls the waker at once. Spurious calls are possible.
    ///
    /// The waker is called and dropped on any thread, also during a call of this or another connection. It must neither
    /// block nor call the engine: it only signals the runtime, which delivers later.
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

    /// Handles one message. Appends immediate answers to `out`, each ended by a newline, and returns events for the
    /// runtime.
    pub fn message<'m>(&mut self, arrival: Arrival<'m>, now: Now, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        self.message_with(arrival, None, now, out)
    }

    /// Like [`Connection::message`], with headers for handlers that no rule of HTTP reads: for tests of a server.
    pub fn message_with<'m>(
        &mut self,
        arrival: Arrival<'m>,
        headers: Option<&'m Arc<Headers>>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        if matches!(self.kind, ConnectionKind::Session | ConnectionKind::Embedded) {
            self.know(arrival.principal);
        }
        let outcome = self.dispatch(arrival, headers, now, out);
        if self.kind != ConnectionKind::Session {
            for (_, mut line) in self.take_completed() {
                out.append(&mut line);
            }
        }
        outcome
    }

    /// Takes the responses of batches that a cancellation in the last message completed, with the cancelled request:
    /// over HTTP they belong to another stream than that message.
    pub(crate) fn take_completed(&mut self) -> Vec<(RequestToken, Vec<u8>)> {
        self.batches.take_completed()
    }

    /// Refuses a line that was larger than [`Limits::message`](crate::limits::Limits::message), which the runtime has
    /// discarded. The error has the id of the request if it was found. The log names the limit once for each connection.
    pub fn too_long(&mut self, line: OversizedLine<'_>, out: &mut Vec<u8>) -> RequestOutcome<'static> {
        let outcome = self.unreadable(line.id(), INVALID_REQUEST, TOO_LARGE, out);
        let is_first = !std::mem::replace(&mut self.told_too_large, true);
        let misuse = is_first.then(|| too_large_advice(self.engine.limits().message));
        RequestOutcome { misuse, ..outcome }
    }

    /// Answers an event inside the runtime's loop.
    pub fn respond(
        &mut self,
        token: RequestToken,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'static> {
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
            None => RequestOutcome::new(OutcomeStatus::Accepted),
        }
    }

    /// Takes the reply of a request to encode it elsewhere: call this before another thread or an await uses it. `None`
    /// if it was taken already, was dropped, or the token is unknown. A dropped request still needs
    /// [`Connection::abandon`].
    pub fn detach(&mut self, token: RequestToken) -> Option<Reply> {
        self.inflight.detach(token)
    }

    /// The reply, left in place: to report progress from a handler that runs inside the runtime's loop.
    pub fn reply(&mut self, token: RequestToken) -> Option<&mut Reply> {
        self.inflight.get(token)
    }

    /// Appends an answer that was encoded elsewhere, unless its request was cancelled or timed out. O(1).
    pub fn finish(&mut self, encoded: EncodedReply, now: Now, out: &mut Vec<u8>) -> RequestOutcome<'static> {
        let EncodedReply { misuse, token, mut bytes, next, missing_capability, verdict } = encoded;
        let length = bytes.len();
        let max = self.engine.limits().batch_bytes;
        match self.inflight.wanted(token) {
            Some(ticket) if ticket.batch.is_some() && next.is_none() => {
                self.batches.answer(ticket, &bytes, max, out);
            }
            // A small answer must not replace a buffer with a large capacity.
            Some(_) if out.is_empty() && bytes.len() >= BIG => std::mem::swap(out, &mut bytes),
            Some(_) => out.append(&mut bytes),
            None => {}
        }
        self.go_on(token, WrittenReply { misuse, missing_capability, verdict }, next, length, now)
    }

    /// Ends a request that the runtime will not answer, because its handler was cancelled. Frees the slot.
    pub fn abandon(&mut self, token: RequestToken, now: Now, out: &mut Vec<u8>) -> RequestOutcome<'static> {
        if let Some(batch) = self.inflight.wanted(token).and_then(|ticket| ticket.batch) {
            self.batches.drop_one(batch, out);
        }
        self.record_token(token, Verdict::Cancelled, 0, now);
        self.inflight.settle(token);
        RequestOutcome::new(OutcomeStatus::Accepted)
    }

    /// Answers the reads that waited for a shared one, and writes pending notifications, up to about `room` bytes. Call
    /// it when woken, and again when the stream has room as long as it returns `More`.
    pub fn deliver(&mut self, room: usize, out: &mut Vec<u8>) -> Delivered {
        self.answer_waiting(&mut |_, line| out.append(line));
        let ending = if self.kind == ConnectionKind::Stdio {
            ListenEnding::ResultThenCancelled
        } else {
            ListenEnding::ResultOnly
        };
        let engine = &self.engine;
        let delivered = if engine.has_access() || engine.hub().has_regranted() {
            let engine = engine.clone();
            let description = engine.description();
            let server_info = engine.names_itself().then(|| description.full());
            self.deliver_asking(&engine, HubDelivery { room, server_info, ending }, out)
        } else {
            let description = engine.description();
            let server_info = engine.names_itself().then(|| description.full());
            let latest = self.principal.as_ref();
            let mut may_see =
                |principal: &Arc<Principal>, uri: &str| engine.sees(latest.unwrap_or(principal), uri);
            engine.hub().deliver(self.id, HubDelivery { room, server_info, ending }, out, &mut may_see)
        };
        match delivered {
            Delivered::Idle if self.closing => Delivered::Ended,
            delivered => delivered,
        }
    }

    /// Sets the address that the next messages come from, for their records.
    pub(crate) fn set_address(&mut self, address: Option<IpAddr>) {
        self.address = address;
    }

    /// Answers the reads whose shared handler call has ended. `write` gets each line with the request that it answers.
    /// For runtimes that write answers to separate streams; for all others [`Connection::deliver`] does this.
    pub fn answer_waiting(&mut self, write: &mut dyn FnMut(RequestToken, &mut Vec<u8>)) {
        if self.waiting.is_empty() {
            return;
        }
        let is_over = |(_, flight): &mut (RequestToken, Arc<ReadFlight>)| flight.finished().is_some();
        let over: WaitingReads = self.waiting.extract_if(.., is_over).collect();
        for (token, flight) in over {
            // Taking a cancelled request frees its slot.
            let (Some(reply), Some(finished)) = (self.inflight.take(token), flight.finished()) else {
                continue;
            };
            let ticket = reply.context.ticket.clone();
            let mut line = Vec::new();
            let written = reply.finished(finished, &mut line);
            self.record_token(token, written.verdict, line.len(), finished.now);
            if ticket.batch.is_some() {
                let answer = std::mem::take(&mut line);
                let max = self.engine.limits().batch_bytes;
                self.batches.answer(&ticket, &answer, max, &mut line);
            }
            self.inflight.settle(token);
            write(token, &mut line);
        }
    }

    /// Its kind of transport.
    pub fn kind(&self) -> ConnectionKind {
        self.kind
    }

    /// Its number, for records and for the tables of runtimes.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The latest time at which [`Connection::tick`] must be called, on the clock of [`Now::tick`].
    pub fn deadline(&self) -> Option<Millis> {
        let questions = self.has_questions().then_some(0);
        [self.inflight.deadline(), self.asks.deadline(), questions].into_iter().flatten().min()
    }

    /// Sends a request to a legacy client: `ping`, `elicitation/create`, `sampling/createMessage`, `roots/list`, or a
    /// custom method. `params` is a JSON object. The answer arrives as [`Event::Replied`], also when there was none
    /// within [`Limits::read_timeout`](crate::limits::Limits::read_timeout).
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
        self.ask_for(method, params, AskLasts::AsRead, now, out)
    }

    /// The same, with another time within which the answer must come.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn ask_for(
        &mut self,
        method: &str,
        params: &str,
        lasts: AskLasts,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Result<AskId, AskError> {
        let session = self.session.as_ref().ok_or(AskError::UseInputRequired)?;
        if self.kind == ConnectionKind::Beside {
            return Err(AskError::Attached);
        }
        if !session.capabilities.allow_method(method) {
            return Err(AskError::NotSupported);
        }
        let limits = self.engine.limits();
        if self.asks.len() >= limits.asks {
            return Err(AskError::LimitReached);
        }
        let members = response::members_of(params).ok_or(AskError::InvalidParams)?;
        let deadline = match lasts {
            AskLasts::AsRead => now.tick.saturating_add(limits.read_timeout),
            AskLasts::UntilWithdrawn => Millis::MAX,
        };
        let ask = self.asks.begin(deadline);
        let id = OwnedId::from(ask.0);
        Envelope::request(out, id.as_id(), method, |writer| writer.members(members.as_bytes()));
        end(out);
        Ok(ask)
    }

    /// Withdraws a request to the client: its answer is no longer wanted, and gives no event. The client is notified.
    pub fn withdraw_ask(&mut self, ask: AskId, out: &mut Vec<u8>) {
        if self.asks.withdraw(ask) {
            response::notification(out, version::CANCELLED, |params| params.u64("requestId", ask.0));
        }
    }

    /// Handles time-outs: answers the requests whose deadline has passed.
    pub fn tick(&mut self, now: Now, out: &mut Vec<u8>) -> RequestOutcome<'static> {
        self.tick_each(now, &mut |_, line| out.append(line))
    }

    /// Like [`Connection::tick`], for runtimes that write answers to separate streams: `write` gets each line with the
    /// request that it answers.
    pub fn tick_each(
        &mut self,
        now: Now,
        write: &mut dyn FnMut(RequestToken, &mut Vec<u8>),
    ) -> RequestOutcome<'static> {
        let mut expired = Vec::new();
        let mut late = Late::default();
        let engine = &self.engine;
        for (token, ticket) in self.inflight.expire(now.tick, |ticket| cached::time_out(engine, ticket, now))
        {
            let mut line = Vec::new();
            let mut out = Vec::new();
            late.add(&ticket);
            if ticket.is_own {
                self.access.expire(token);
                expired.push(Event::Cancelled(token));
                continue;
            }
            ticket.write_expired(&mut line);
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
        let questions = if self.has_questions() { self.take_questions(now) } else { Events::new() };
        let events: Vec<_> = expired.into_iter().chain(unanswered).chain(questions).collect();
        RequestOutcome { misuse: late.message(), ..RequestOutcome::new(OutcomeStatus::Accepted).with(events) }
    }

    /// The number of requests that wait for the runtime, cancelled ones included.
    pub fn in_flight(&self) -> usize {
        self.inflight.len()
    }

    /// Cancels all requests in flight without an answer: at the end of input, after the grace period.
    pub fn cancel_all(&mut self, now: Now) -> Events<'static> {
        self.drop_all(now)
    }

    /// Appends an answer to a cancelled request, for transports that must send one. Does nothing if the
    /// request was not cancelled, or belongs to a batch.
    pub fn say_cancelled(&self, token: RequestToken, out: &mut Vec<u8>) {
        if let Some(ticket) = self.inflight.dropped(token).filter(|ticket| ticket.batch.is_none()) {
            ticket.say_cancelled(out);
        }
    }

    /// The revision of the handshake; `None` before it.
    pub fn revision(&self) -> Option<Revision> {
        self.session.as_ref().map(|session| session.revision)
    }

    /// Serves requests under a legacy revision without a handshake: for [`ConnectionKind::Stateless`].
    pub fn assume(&mut self, revision: Revision) {
        self.session = Some(SessionTerms::assumed(revision));
    }

    /// Whether notifications can be sent to the client later.
    fn can_notify(&self) -> bool {
        !matches!(self.kind, ConnectionKind::Stateless | ConnectionKind::Beside)
    }

    /// Marks all subscriptions of a legacy client as changed, because notifications may have been lost.
    pub fn mark_all(&mut self) {
        self.engine.hub().mark_all(self.id);
    }

    /// Ends the listens of this connection with their results, after the notifications that are due. Later
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

    /// Ends the listens of this connection with their results, because the token that opened them has expired. Call
    /// [`Connection::deliver`] next.
    pub fn end_listens(&mut self) -> Events<'static> {
        let left = self.engine.hub().end_listens(self.id);
        self.engine.mark_interest(left).into_iter().collect()
    }

    /// Lets streams stay open again, after the client was authenticated anew following
    /// [`Engine::revoke`](crate::engine::Engine::revoke).
    pub fn readmit(&self) {
        self.engine.hub().readmit(self.id);
    }

    /// Ends its streams, as [`Engine::revoke`](crate::engine::Engine::revoke) does. Call [`Connection::deliver`] next.
    pub(crate) fn dismiss(&self) {
        self.engine.hub().dismiss(self.id);
    }

    /// Ends the connection: frees its subscriptions and cancels the requests in flight.
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
        if self.kind == ConnectionKind::Bare { Envelope::Bare } else { Envelope::JsonRpc }
    }

    /// Frees the slot of an answer that is written. If another event is needed first, puts the reply back and returns
    /// the event.
    fn go_on<'o>(
        &mut self,
        token: RequestToken,
        written: WrittenReply,
        next: Option<NextRead>,
        bytes: usize,
        now: Now,
    ) -> RequestOutcome<'o> {
        let WrittenReply { misuse, missing_capability, verdict } = written;
        let mut outcome = RequestOutcome::new(OutcomeStatus::Answered);
        outcome.misuse = misuse;
        outcome.verdict = verdict;
        match next {
            Some(NextRead { reply, question, caller }) if self.inflight.wanted(token).is_some() => {
                outcome.status = OutcomeStatus::Pending;
                match question {
                    NextQuestion::Settled(settled) => {
                        self.inflight.settle(token);
                        self.settle_notices(token, settled);
                    }
                    question => {
                        // A request that is served again makes its own reply.
                        if !matches!(question, NextQuestion::Again(_)) {
                            self.inflight.put_back(token, reply);
                        }
                        outcome.events.extend(question.event(token, caller));
                    }
                }
            }
            _ => {
                self.record_token(token, verdict, bytes, now);
                self.inflight.settle(token);
            }
        }
        if missing_capability {
            outcome.status = OutcomeStatus::Refused(RequestRefusal::Capability);
        }
        outcome
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("kind", &self.kind).field("id", &self.id).finish_non_exhaustive()
    }
}
