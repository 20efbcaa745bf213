//! One client of the other server: its requests to this engine, and what a binding does next for each of them.

use super::adopted::{self, AdoptedQuestion};
use super::merge;
use super::{EmbeddedServer, Params};
use crate::connection::{
    Answer, Arrival, Cancelled, Connection, ConnectionKind, EncodedReply, Event, Events, HeldRequest, Reply,
    RequestOutcome, RequestToken,
};
use crate::hub::{ConnectionId, ListKinds};
use crate::jsonrpc::{
    DecodeLimits, Decoded, Envelope, Id, Json, Message, ObjectWriter, OwnedId, RawParams, decode,
};
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::{CANCELLED, METHOD_NOT_FOUND, ProtocolMethod};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Most steps of one request that a binding has not taken: further progress and log messages are dropped.
const MOST_STEPS: usize = 1_024;
/// Notifications of a listen are taken up to about this many bytes at once.
const ROOM: usize = 16 * 1024;

/// A request of a client to this engine.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddedRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// Its params as JSON text; `{}` without any.
    pub params: &'a str,
    /// The client's id as JSON text. Only the notifications of a listen show it.
    pub id: &'a str,
    /// The answer of the other server, for [`Sorted::Both`](super::Sorted).
    pub theirs: Option<TheirAnswer<'a>>,
}

/// An answer of the other server.
#[derive(Clone, Copy, Debug)]
pub enum TheirAnswer<'a> {
    /// The result as JSON text.
    Result(&'a str),
    /// An error.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: &'a str,
        /// Its data as JSON text.
        data: Option<&'a str>,
    },
}

/// A message for the engine: keep it until its events are handled.
#[derive(Debug)]
pub struct EmbeddedMessage {
    number: u64,
    /// Empty if there is nothing to ask this engine.
    bytes: Vec<u8>,
}

impl EmbeddedMessage {
    /// The number of the request, for its steps.
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// The next thing to do for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbeddedStep {
    /// Answer the client with this result (JSON text). The request is over.
    Result(String),
    /// Answer with this error. The request is over.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its data as JSON text.
        data: Option<String>,
    },
    /// Answer as the other server did, for the latest question or in [`EmbeddedRequest::theirs`]. The request is over.
    Theirs,
    /// Send this notification to the client, in the stream of the request.
    Send(EmbeddedNotice),
    /// Ask the other server on behalf of the client, then call [`EmbeddedConnection::answer`].
    Ask {
        /// The method.
        method: &'static str,
        /// The params as JSON text.
        params: String,
    },
}

/// A notification for a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmbeddedNotice {
    /// Its method.
    pub method: String,
    /// Its params as JSON text.
    pub params: Option<String>,
}

/// One client of the other server: a legacy session, or one modern request.
///
/// ```text
///   prepare ─▶ start ─▶ [ Ask ─▶ answer ]… ─▶ Result | Error | Theirs ─▶ end
///                        Send…                                             ▲
///                        the binding gives up ─────────────────────────────┘ cancels the handler
/// ```
pub struct EmbeddedConnection {
    server: Arc<EmbeddedServer>,
    connection: Connection,
    calls: HashMap<u64, EmbeddedCall>,
    tokens: HashMap<RequestToken, u64>,
    next: u64,
    /// The lists whose changes this engine tells the session.
    told: ListKinds,
    /// The sender of the latest message.
    sender: Arc<Principal>,
    /// The waker of the connection of a modern request, set once: setting it calls it.
    relay: Option<Arc<WakerRelay>>,
}

/// Passes a call on to the waker that was registered last, or keeps it for the next one.
#[derive(Default)]
struct WakerRelay(Mutex<RelayState>);

#[derive(Default)]
struct RelayState {
    waker: Option<Waker>,
    /// Whether it was called while there was no waker.
    is_called: bool,
}

impl WakerRelay {
    fn register(&self, waker: Waker) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.is_called) {
            drop(state);
            waker.wake();
        } else {
            state.waker = Some(waker);
        }
    }
}

impl Wake for WakerRelay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waker = state.waker.take();
        state.is_called = waker.is_none();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

struct EmbeddedCall {
    method: Option<ProtocolMethod>,
    params: String,
    id: OwnedId,
    token: Option<RequestToken>,
    /// The result that the other server gave.
    theirs: Option<String>,
    question: Option<AdoptedQuestion>,
    /// Whether the other server's latest error is the answer.
    raises: bool,
    steps: VecDeque<EmbeddedStep>,
    waker: Option<Waker>,
    is_over: bool,
}

impl EmbeddedConnection {
    pub(super) fn new(server: Arc<EmbeddedServer>, connection: Connection) -> Self {
        Self {
            server,
            connection,
            calls: HashMap::new(),
            tokens: HashMap::new(),
            next: 0,
            told: ListKinds::NONE,
            sender: Principal::local(),
            relay: None,
        }
    }

    /// Its number, for the tables of runtimes.
    pub fn id(&self) -> ConnectionId {
        self.connection.id()
    }

    /// The server that it belongs to.
    pub fn server(&self) -> &Arc<EmbeddedServer> {
        &self.server
    }

    /// Sets the waker to call when there are notifications for [`EmbeddedConnection::deliver`], or for the steps of a
    /// listen. See [`Connection::wake_with`].
    pub fn wake_with(&mut self, waker: Waker) {
        self.connection.wake_with(waker);
    }

    /// The lists of a legacy session whose changes this engine announces. All others, the other server announces as
    /// before.
    pub fn told(&self) -> Option<ListKinds> {
        self.connection.revision().map(|_| self.told)
    }

    /// Makes the message of a request or notification, and a call for its steps.
    pub fn prepare(&mut self, request: EmbeddedRequest<'_>) -> EmbeddedMessage {
        self.next += 1;
        let number = self.next;
        let method = ProtocolMethod::parse(request.method);
        let id = Json::parse(request.id.as_bytes(), 1).and_then(Id::from_json);
        let id = id.filter(|_| method == Some(ProtocolMethod::Listen));
        let id = id.map_or_else(|| OwnedId::from(number), OwnedId::from);
        let mut call = EmbeddedCall {
            method,
            params: request.params.to_owned(),
            id,
            token: None,
            theirs: None,
            question: None,
            raises: false,
            steps: VecDeque::new(),
            waker: None,
            is_over: false,
        };
        let mut bytes = Vec::new();
        match request.theirs {
            Some(TheirAnswer::Error { code, .. }) if !call.may_fail(code) => call.push(EmbeddedStep::Theirs),
            theirs => {
                if let Some(TheirAnswer::Result(text)) = theirs {
                    call.theirs = Some(text.to_owned());
                }
                self.write_message(&call, request, &mut bytes);
            }
        }
        self.calls.insert(number, call);
        EmbeddedMessage { number, bytes }
    }

    fn write_message(&self, call: &EmbeddedCall, request: EmbeddedRequest<'_>, out: &mut Vec<u8>) {
        let is_merged = request.theirs.is_some();
        let params = Params::parse(request.params, self.server.engine.limits());
        let theirs = call.theirs.as_deref().map(|text| Params::parse(text, self.server.engine.limits()));
        Envelope::request(out, call.id.as_id(), request.method, |writer| {
            for (name, value) in params.0.iter().flat_map(|members| members.iter()) {
                let value = match (call.method, &*name) {
                    // A cursor of the other server says nothing here.
                    (Some(ProtocolMethod::ListTemplates | ProtocolMethod::ListTools), "cursor")
                    | (Some(ProtocolMethod::ListPrompts), "cursor")
                        if is_merged =>
                    {
                        continue;
                    }
                    // The other server has chosen the revision.
                    (Some(ProtocolMethod::Initialize), "protocolVersion") => {
                        theirs.as_ref().and_then(|theirs| theirs.json("protocolVersion")).unwrap_or(value)
                    }
                    _ => value,
                };
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        });
    }

    /// Begins a request. Returns the events for our handlers.
    pub fn start<'m>(
        &mut self,
        message: &'m EmbeddedMessage,
        principal: &'m Arc<Principal>,
        now: Now,
    ) -> RequestOutcome<'m> {
        if message.bytes.is_empty() {
            return RequestOutcome::nothing();
        }
        self.sender = principal.clone();
        if let Some(ProtocolMethod::Listen | ProtocolMethod::Initialize) = self.method(message.number) {
            self.server.state().watching.insert(self.id());
        }
        let mut out = Vec::new();
        let arrival = Arrival { message: &message.bytes, principal, header_check: None };
        let mut outcome = self.connection.message(arrival, now, &mut out);
        if let Some(token) = outcome.events.iter().find_map(Event::asks) {
            self.tokens.insert(token, message.number);
            if let Some(call) = self.calls.get_mut(&message.number) {
                call.token = Some(token);
            }
        }
        if self.method(message.number) == Some(ProtocolMethod::Initialize)
            && self.connection.revision().is_some()
        {
            self.told = self.server.engine.announced_lists(principal);
        }
        self.take_lines(message.number, &out);
        self.adopt(&mut outcome.events);
        outcome
    }

    /// Makes and starts a notification of the client, which has no steps.
    pub fn tell<'m>(
        &mut self,
        message: &'m mut Vec<u8>,
        method: &str,
        params: &str,
        sender: &'m Arc<Principal>,
        now: Now,
    ) -> RequestOutcome<'m> {
        let params = Params::parse(params, self.server.engine.limits());
        let write = |writer: &mut ObjectWriter<'_>| {
            for (name, value) in params.0.iter().flat_map(|members| members.iter()) {
                writer.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        };
        match ProtocolMethod::parse(method) {
            Some(_) => {
                self.next += 1;
                let id = OwnedId::from(self.next);
                Envelope::request(message, id.as_id(), method, write);
            }
            None => Envelope::notification(message, method, write),
        }
        self.sender = sender.clone();
        let arrival = Arrival { message, principal: sender, header_check: None };
        self.connection.message(arrival, now, &mut Vec::new())
    }

    /// The next step of a request; `None` if there is none now. Once it is over, call [`EmbeddedConnection::end`].
    pub fn next_step(&mut self, number: u64) -> Option<EmbeddedStep> {
        if !self.is_session() {
            self.answer_shared();
        }
        let call = self.calls.get_mut(&number)?;
        if call.steps.is_empty() && call.method == Some(ProtocolMethod::Listen) && !call.is_over {
            let mut out = Vec::new();
            self.connection.deliver(ROOM, &mut out);
            self.take_lines(number, &out);
        }
        self.calls.get_mut(&number)?.steps.pop_front()
    }

    /// Has `waker` called once when the request has a step; at once if it has one already.
    pub fn register(&mut self, number: u64, waker: Waker) {
        let is_session = self.is_session();
        let Some(call) = self.calls.get_mut(&number) else { return };
        if !call.steps.is_empty() {
            waker.wake();
            return;
        }
        call.waker = Some(waker.clone());
        if !is_session {
            match &self.relay {
                Some(relay) => relay.register(waker),
                None => {
                    let relay = Arc::new(WakerRelay::default());
                    relay.register(waker);
                    self.connection.wake_with(Waker::from(relay.clone()));
                    self.relay = Some(relay);
                }
            }
        }
    }

    /// Ends a request. One without its last step is cancelled, and the binding gets the event for its handler.
    pub fn end(&mut self, number: u64, now: Now) -> Events<'static> {
        let Some(call) = self.calls.remove(&number) else { return Events::new() };
        if let Some(token) = call.token {
            self.tokens.remove(&token);
        }
        let mut events = Events::new();
        if !call.is_over {
            let mut message = Vec::new();
            Envelope::notification(&mut message, CANCELLED, |params| {
                params.raw("requestId", Json::from(call.id.as_id()));
            });
            let sender = self.sender.clone();
            let arrival = Arrival { message: &message, principal: &sender, header_check: None };
            let cancelled = self.connection.message(arrival, now, &mut Vec::new()).events;
            events.extend(cancelled.into_iter().filter_map(|event| match event {
                Event::Cancelled(token) => Some(Event::Cancelled(token)),
                Event::Interest => Some(Event::Interest),
                _ => None,
            }));
        }
        if let (Some(token), Some(_)) = (call.token, call.question) {
            self.connection.abandon(token, now, &mut Vec::new());
            events.retain(|event| !matches!(event, Event::Cancelled(other) if *other == token));
        }
        events
    }

    /// Passes on the other server's answer to the question of [`EmbeddedStep::Ask`].
    pub fn answer(&mut self, number: u64, given: TheirAnswer<'_>, now: Now) -> RequestOutcome<'static> {
        let asked = self.calls.get_mut(&number).and_then(|call| Some((call.token?, call.question.take()?)));
        let Some((token, question)) = asked else { return RequestOutcome::nothing() };
        let answer = question.read(given, &self.server);
        if let Some(call) = self.calls.get_mut(&number) {
            call.raises = answer.is_their_error && call.method == Some(ProtocolMethod::Read);
        }
        self.respond(token, answer.answer, now)
    }

    /// Takes pending notifications for a legacy session, up to about `room` bytes. Call it when woken, until it returns
    /// none.
    pub fn deliver(&mut self, room: usize) -> Vec<EmbeddedNotice> {
        self.answer_shared();
        let mut out = Vec::new();
        self.connection.deliver(room, &mut out);
        let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.filter_map(|line| parse(line)?.err()).collect()
    }

    /// Answers the reads that waited for the same read of another client.
    pub fn answer_shared(&mut self) {
        let mut answered = Vec::new();
        self.connection.answer_waiting(&mut |token, line| answered.push((token, std::mem::take(line))));
        for (token, line) in answered {
            self.take_answer(token, &line);
        }
    }

    /// Ends the connection, with the one of the other server: cancels requests and frees subscriptions.
    pub fn close(&mut self, now: Now) -> Events<'static> {
        self.calls.clear();
        self.tokens.clear();
        self.connection.close(now)
    }

    /// The number of requests without their last step.
    pub fn in_flight(&self) -> usize {
        self.calls.values().filter(|call| !call.is_over).count()
    }

    /// Whether it lasts longer than its requests.
    fn is_session(&self) -> bool {
        self.connection.kind() == ConnectionKind::Embedded && self.connection.revision().is_some()
    }

    fn method(&self, number: u64) -> Option<ProtocolMethod> {
        self.calls.get(&number)?.method
    }
}

/// For runtimes: the answers of handlers. See the same functions of [`Connection`].
impl EmbeddedConnection {
    /// Answers an event at once.
    pub fn respond(&mut self, token: RequestToken, answer: Answer<'_>, now: Now) -> RequestOutcome<'static> {
        let mut out = Vec::new();
        let mut outcome = self.connection.respond(token, answer, now, &mut out);
        self.take_answer(token, &out);
        self.adopt(&mut outcome.events);
        outcome
    }

    /// Serves a held request from its start, for [`Event::Again`].
    pub fn again<'h>(&mut self, held: &'h HeldRequest, now: Now) -> RequestOutcome<'h> {
        let mut out = Vec::new();
        let mut outcome = self.connection.again(held, now, &mut out);
        self.take_answer(held.token(), &out);
        self.adopt(&mut outcome.events);
        outcome
    }

    /// Takes a reply out, to be encoded elsewhere.
    pub fn detach(&mut self, token: RequestToken) -> Option<Reply> {
        self.connection.detach(token)
    }

    /// The reply, left in place.
    pub fn reply(&mut self, token: RequestToken) -> Option<&mut Reply> {
        self.connection.reply(token)
    }

    /// Takes an answer that was encoded elsewhere.
    pub fn finish(&mut self, encoded: EncodedReply, now: Now) -> RequestOutcome<'static> {
        let token = encoded.token();
        let mut out = Vec::new();
        let mut outcome = self.connection.finish(encoded, now, &mut out);
        self.take_answer(token, &out);
        self.adopt(&mut outcome.events);
        outcome
    }

    /// Takes a report that a handler sends before its answer.
    pub fn report(&mut self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        let Some(call) = self.tokens.get(&token).and_then(|number| self.calls.get_mut(number)) else {
            return;
        };
        if !cancelled.get() && call.steps.len() < MOST_STEPS {
            self.take_answer(token, message);
        }
    }

    /// Ends a request that its handler will not answer.
    pub fn abandon(&mut self, token: RequestToken, now: Now) {
        self.connection.abandon(token, now, &mut Vec::new());
    }

    /// The latest time at which [`EmbeddedConnection::tick`] must be called.
    pub fn deadline(&self) -> Option<Millis> {
        self.connection.deadline()
    }

    /// Handles time-outs.
    pub fn tick(&mut self, now: Now) -> RequestOutcome<'static> {
        let mut expired = Vec::new();
        let mut outcome =
            self.connection.tick_each(now, &mut |token, line| expired.push((token, std::mem::take(line))));
        for (token, line) in expired {
            self.take_answer(token, &line);
            // A question to the other server has no handler here.
            let asked = self.tokens.get(&token).and_then(|number| self.calls.get_mut(number));
            if asked.is_some_and(|call| call.question.take().is_some()) {
                self.connection.abandon(token, now, &mut Vec::new());
                outcome.events.retain(|event| !matches!(event, Event::Cancelled(other) if *other == token));
            }
        }
        outcome
    }
}

impl EmbeddedConnection {
    fn take_answer(&mut self, token: RequestToken, lines: &[u8]) {
        if let Some(number) = self.tokens.get(&token).copied() {
            self.take_lines(number, lines);
        }
    }

    /// Turns what the engine wrote for a request into steps.
    fn take_lines(&mut self, number: u64, lines: &[u8]) {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let Some(parsed) = parse(line) else { continue };
            let Some(call) = self.calls.get_mut(&number) else { return };
            let step = match parsed {
                Err(notice) => EmbeddedStep::Send(notice),
                Ok(Ok(result)) => {
                    merge::result(&self.server, &self.sender, call.method, call.theirs.as_deref(), result)
                }
                Ok(Err(_)) if call.yields() => EmbeddedStep::Theirs,
                Ok(Err(error)) => error_step(error),
            };
            call.push(step);
        }
    }

    /// Takes the events for the other server's resources, which become questions to it.
    fn adopt(&mut self, events: &mut Events<'_>) {
        let Some(adopted) = self.server.adopted else { return };
        let questions: Vec<_> = events
            .iter()
            .filter(|event| event.handler() == Some(adopted))
            .filter_map(|event| Some((event.asks()?, adopted::question(event)?)))
            .collect();
        events.retain(|event| event.handler() != Some(adopted));
        for (token, question) in questions {
            let call = self.tokens.get(&token).and_then(|number| self.calls.get_mut(number));
            let Some(call) = call else { continue };
            let (method, params) = question.ask(call.method, &call.params, self.server.engine.limits());
            call.question = Some(question);
            call.push(EmbeddedStep::Ask { method, params });
        }
    }
}

impl EmbeddedCall {
    fn push(&mut self, step: EmbeddedStep) {
        self.is_over |= !matches!(step, EmbeddedStep::Send(_) | EmbeddedStep::Ask { .. });
        self.steps.push_back(step);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Whether the other server's answer is used if this engine answers with an error.
    fn yields(&self) -> bool {
        let is_subscription =
            matches!(self.method, Some(ProtocolMethod::Subscribe | ProtocolMethod::Unsubscribe));
        self.raises || (self.theirs.is_some() && !is_subscription)
    }

    /// Whether the answer of this engine is enough if the other server answers with an error.
    fn may_fail(&self, code: i64) -> bool {
        match self.method {
            Some(ProtocolMethod::Subscribe | ProtocolMethod::Unsubscribe) => true,
            Some(ProtocolMethod::ListTemplates | ProtocolMethod::ListTools | ProtocolMethod::ListPrompts) => {
                code == i64::from(METHOD_NOT_FOUND)
            }
            _ => false,
        }
    }
}

type Parsed<'l> = Result<Result<Json<'l>, Json<'l>>, EmbeddedNotice>;

/// Reads a message that the engine wrote: an answer, or a notification.
fn parse(line: &[u8]) -> Option<Parsed<'_>> {
    let limits = DecodeLimits { nesting: usize::MAX, batch: 1, members: usize::MAX };
    match decode(line, &limits) {
        Decoded::Message(Message::Response { result, .. }) => Some(Ok(result)),
        Decoded::Message(Message::Notification { method, params }) => {
            let params = match params {
                RawParams::Object { raw, .. } => Some(raw.raw().to_owned()),
                _ => None,
            };
            Some(Err(EmbeddedNotice { method: method.into_owned(), params }))
        }
        _ => None,
    }
}

fn error_step(error: Json<'_>) -> EmbeddedStep {
    let members = error.object();
    let member = |name: &str| members.as_ref().and_then(|members| members.get(name));
    EmbeddedStep::Error {
        code: member("code").and_then(Json::as_i64).unwrap_or_default(),
        message: member("message").and_then(Json::as_str).unwrap_or_default().into_owned(),
        data: member("data").map(|data| data.raw().to_owned()),
    }
}

impl Drop for EmbeddedConnection {
    fn drop(&mut self) {
        self.server.state().watching.remove(&self.id());
    }
}

impl fmt::Debug for EmbeddedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedConnection").field("id", &self.id()).finish_non_exhaustive()
    }
}
