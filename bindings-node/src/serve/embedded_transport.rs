//! One transport of a server of an SDK: which messages of its client this server answers, and what is sent for them. The
//! core sorts, merges, answers and writes; this module keeps the requests by the numbers that JavaScript uses.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::serve::embedded::{Embedded, Embedding};
use crate::values::spelling::{number, whole};
use mcp_resources_engine::embedded::{
    ClientLine, EmbeddedNotice, EmbeddedRequest, EmbeddedServer, EmbeddedStep, LineRequest, OwnedAnswer,
    SenderToken, ServerLine, write_error, write_notice, write_question, write_question_cancelled,
    write_result,
};
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::EmbeddedClient;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Notifications of a session are taken up to about this many bytes at once.
const ROOM: usize = 16 * 1024;
/// Most requests that wait for an answer of the SDK: of any more, the SDK's answer is the whole one.
const MOST_WAITING: usize = 1_024;

/// The server that answers a message.
#[napi]
pub enum TakenBy {
    /// The SDK alone.
    Theirs,
    /// This one alone.
    Ours,
    /// Both: the SDK first.
    Both,
}

/// A message of the client.
#[napi(object, object_to_js = false)]
pub struct ArrivedFields {
    /// Its method.
    pub method: String,
    /// Whether it has an id.
    pub is_request: bool,
    /// Whether the answer of this server alone is asked for; the message comes again otherwise.
    pub is_early: bool,
    /// Whether it came over HTTP.
    pub is_http: bool,
    /// Whether the transport has a session id.
    pub has_session: bool,
    /// The revision that the SDK's server has agreed on.
    pub version: Option<String>,
    /// The owner of its token, if there is one.
    pub owner: Option<String>,
    /// The scopes of the token.
    pub scopes: Option<Vec<String>>,
}

/// A message to send.
#[napi(object, object_from_js = false)]
pub struct OutputFields {
    /// The number of its request; that of the transport for a notification of the session.
    pub call: f64,
    /// The message; `null` if there is none.
    pub text: Option<String>,
    /// Whether it is for the SDK's server, not for the client.
    pub is_for_server: bool,
    /// The id (JSON text) of the request in whose stream it is sent.
    pub related: Option<String>,
    /// Whether the request is over.
    pub is_last: bool,
}

/// The way of a message of the SDK's server.
#[napi(object, object_from_js = false)]
pub struct SentFields {
    /// Whether it is for this server, and not to be sent.
    pub is_taken: bool,
    /// The id (JSON text) of the request in whose stream it is sent, if not that of the SDK.
    pub related: Option<String>,
}

/// One transport of a server of an SDK.
#[napi]
pub struct EmbeddedTransport {
    embedded: Rc<Embedded>,
    /// The number with which the driver is called when there is something to send.
    number: f64,
    /// Whether each request stands for itself, although the SDK's server has not agreed on a revision.
    is_modern: bool,
    ready: Arc<ReadyCalls>,
    state: RefCell<TransportState>,
}

#[derive(Default)]
struct TransportState {
    session: Option<Arc<EmbeddedClient>>,
    /// Notifications of the session that are not sent yet.
    notices: VecDeque<EmbeddedNotice>,
    calls: HashMap<u64, TransportCall>,
    /// Calls by the ids of their requests.
    by_id: HashMap<String, u64>,
    /// Calls by the ids that the SDK's server will answer.
    waiting: HashMap<String, u64>,
    last_question: u64,
}

/// A request that this server answers.
struct TransportCall {
    request: Rc<LineRequest>,
    sender: Arc<Principal>,
    client: Arc<EmbeddedClient>,
    /// Whether the client ends with it.
    owns_client: bool,
    /// Its number in the client, once it has begun.
    begun: Option<u64>,
    /// The SDK's latest answer.
    latest: Option<Rc<OwnedAnswer>>,
    /// The key of the id that the SDK's server will answer, and the number if it is a question.
    waits_for: Option<(String, Option<u64>)>,
    is_cancelled: bool,
}

/// The requests that may have something to send, each once for each time that it is woken; and the session.
struct ReadyCalls {
    calls: Mutex<VecDeque<u64>>,
    waker: Waker,
}

/// Wakes one request, from any thread.
struct CallWaker {
    ready: Arc<ReadyCalls>,
    call: u64,
}

impl ReadyCalls {
    fn add(&self, call: u64) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).push_back(call);
    }

    fn first(&self) -> Option<u64> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).front().copied()
    }

    fn remove_first(&self) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    }
}

impl Wake for CallWaker {
    fn wake(self: Arc<Self>) {
        self.ready.add(self.call);
        self.ready.waker.wake_by_ref();
    }
}

#[napi]
impl EmbeddedTransport {
    /// A transport of the server of `embedding`. With `modern`, each request stands for itself, although the SDK's server
    /// has not agreed on a revision. The driver delivers on `number`.
    #[napi(catch_unwind, constructor)]
    pub fn new(embedding: &Embedding, number: f64, modern: bool) -> Self {
        let embedded = embedding.0.clone();
        let waker = embedded.shared.response_waker(number);
        let ready = Arc::new(ReadyCalls { calls: Mutex::default(), waker });
        Self { embedded, number, is_modern: modern, ready, state: RefCell::default() }
    }

    /// Takes a message of the client. `call` is the number for a request that is not the SDK's alone; `text` makes the JSON
    /// text of the message, and is called only if the result depends on it. Then call `next`.
    #[napi(catch_unwind)]
    pub fn take(
        &self,
        message: ArrivedFields,
        call: f64,
        #[napi(ts_arg_type = "() => string")] text: Function<'_, (), String>,
    ) -> Result<TakenBy> {
        let version = message.version.as_deref().unwrap_or_default();
        let is_modern = self.is_modern || EmbeddedServer::is_modern(version);
        if message.is_early && !is_modern {
            return Ok(TakenBy::Theirs);
        }
        let scopes = message.scopes.as_deref().unwrap_or_default();
        let token = message.owner.as_deref().map(|owner| SenderToken { owner, scopes });
        let sender = EmbeddedServer::sender(token, !message.is_http && !message.has_session);
        // A message without JSON text counts as empty: this server answers no such message.
        let text = || text.call(()).unwrap_or_default();
        let core = &self.embedded.core;
        let line = core.client_message(&message.method, message.is_request, &sender, text);
        if message.is_early && !matches!(line, ClientLine::Ours(_)) {
            return Ok(TakenBy::Theirs);
        }
        let session = || match is_modern {
            true => None,
            false => Some(self.session(version, !message.is_http || message.has_session)),
        };
        match line {
            ClientLine::Theirs => {}
            ClientLine::Told { method, params } => {
                if let Some(client) = session() {
                    let mut buffer = Vec::new();
                    let outcome = client.tell(&mut buffer, &method, &params, &sender);
                    self.embedded.turn(&client, outcome, None)?;
                }
            }
            ClientLine::Cancels(key) => {
                let cancelled = self.state.borrow_mut().cancel(&key);
                cancelled.into_iter().for_each(|call| self.ready.add(call));
            }
            ClientLine::Ours(request) => {
                self.open(call, request, CallOrigin { sender, version, session: session() }, false);
                return Ok(TakenBy::Ours);
            }
            ClientLine::Both(request) => {
                if self.state.borrow().may_wait(&request.key()) {
                    self.open(call, request, CallOrigin { sender, version, session: session() }, true);
                    return Ok(TakenBy::Both);
                }
            }
        }
        Ok(TakenBy::Theirs)
    }

    /// The next message to send. `null` if there is none now; then the driver delivers once there is one.
    #[napi(catch_unwind)]
    pub fn next(&self) -> Result<Option<OutputFields>> {
        while let Some(call) = self.ready.first() {
            let output = if call == whole(self.number) { self.notice() } else { self.next_of(number(call))? };
            if output.is_some() {
                return Ok(output);
            }
            self.ready.remove_first();
        }
        Ok(None)
    }

    /// Takes a message of the SDK's server: its method, and the ids (JSON texts) of itself and of the request in whose stream
    /// it is sent. `text` makes its JSON text. If it is taken, call `next`.
    #[napi(catch_unwind)]
    pub fn sent(
        &self,
        method: Option<String>,
        id: Option<String>,
        related: Option<String>,
        #[napi(ts_arg_type = "() => string")] text: Function<'_, (), String>,
    ) -> Result<SentFields> {
        let is_taken = match (method, id) {
            (Some(method), None) => EmbeddedServer::is_change(&method) && self.changed(&text.call(())?)?,
            (None, Some(id)) => self.answered(&EmbeddedServer::id_key(&id), text)?,
            _ => false,
        };
        let related = related.filter(|_| !is_taken).and_then(|related| self.related(&related));
        Ok(SentFields { is_taken, related })
    }

    /// Ends a request; one without an answer is cancelled.
    #[napi(catch_unwind)]
    pub fn end(&self, call: f64) -> Result<()> {
        let ended = self.state.borrow_mut().end(whole(call));
        ended.map_or(Ok(()), |ended| self.finish(&ended))
    }

    /// The client is gone.
    #[napi(catch_unwind)]
    pub fn close(&self) -> Result<()> {
        let TransportState { session, calls, .. } = self.state.take();
        calls.values().try_for_each(|call| self.finish(call))?;
        session.map_or(Ok(()), |session| self.embedded.close(&session))
    }
}

/// The data of a request besides its message.
struct CallOrigin<'v> {
    sender: Arc<Principal>,
    version: &'v str,
    /// `None` if the request stands for itself.
    session: Option<Arc<EmbeddedClient>>,
}

impl EmbeddedTransport {
    /// The next message for a request.
    fn next_of(&self, call: f64) -> Result<Option<OutputFields>> {
        loop {
            let (client, request, begun) = {
                let mut state = self.state.borrow_mut();
                let Some(open) = state.calls.get_mut(&whole(call)) else { return Ok(None) };
                if open.is_cancelled {
                    let question = open.waits_for.take().and_then(|(_, question)| question);
                    drop(state);
                    return self.cancelled(call, question).map(Some);
                }
                match (open.begun, &open.waits_for) {
                    (None, Some(_)) => return Ok(None),
                    (begun, _) => (open.client.clone(), open.request.clone(), begun),
                }
            };
            let Some(begun) = begun else {
                self.start(call)?;
                continue;
            };
            let Some(step) = client.next_step(begun) else {
                client.register(begun, self.waker(whole(call)));
                return Ok(None);
            };
            let mut out = Vec::new();
            let (is_for_server, is_last) = match step {
                EmbeddedStep::Result(text) => {
                    write_result(&request.id, &text, &mut out);
                    (false, true)
                }
                EmbeddedStep::Error { code, message, data } => {
                    write_error(&request.id, code, &message, data.as_deref(), &mut out);
                    (false, true)
                }
                EmbeddedStep::Theirs => {
                    self.latest(call).iter().for_each(|answer| answer.write(&request.id, &mut out));
                    (false, true)
                }
                EmbeddedStep::Send(notice) => {
                    write_notice(&notice, &mut out);
                    (false, false)
                }
                EmbeddedStep::Ask { method, params } => {
                    write_question(self.state.borrow_mut().ask(whole(call)), method, &params, &mut out);
                    (true, false)
                }
            };
            if is_last {
                self.end(call)?;
            }
            let text = String::from_utf8(out).ok().filter(|text| !text.is_empty());
            return Ok(Some(OutputFields {
                call,
                text,
                is_for_server,
                related: Some(request.id.clone()),
                is_last,
            }));
        }
    }

    /// The next notification of the session.
    fn notice(&self) -> Option<OutputFields> {
        let mut state = self.state.borrow_mut();
        if state.notices.is_empty() {
            let notices = state.session.as_ref()?.deliver(ROOM);
            state.notices.extend(notices);
        }
        let mut out = Vec::new();
        write_notice(&state.notices.pop_front()?, &mut out);
        let text = String::from_utf8(out).ok();
        Some(OutputFields { call: self.number, text, is_for_server: false, related: None, is_last: false })
    }

    /// Takes an answer of the SDK's server. `false` if it is for the client.
    fn answered(&self, key: &str, text: Function<'_, (), String>) -> Result<bool> {
        let Some(call) = self.state.borrow_mut().waiting.remove(key) else {
            // The request is gone that the question was for.
            return Ok(EmbeddedServer::is_question(key));
        };
        let line = text.call(())?;
        let (ServerLine::Answer { answer, .. } | ServerLine::Asked { answer, .. }) =
            self.embedded.core.server_line(line.as_bytes())
        else {
            return Ok(true);
        };
        let answer = Rc::new(answer);
        let asked = {
            let mut state = self.state.borrow_mut();
            let Some(open) = state.calls.get_mut(&call) else { return Ok(true) };
            open.waits_for = None;
            open.latest = Some(answer.clone());
            open.begun.map(|begun| (open.client.clone(), begun))
        };
        if let Some((client, begun)) = asked {
            let outcome = client.answer(begun, answer.as_theirs());
            self.embedded.turn(&client, outcome, Some(number(call)))?;
        }
        self.ready.add(call);
        Ok(true)
    }

    /// The id (JSON text) of the request for which the SDK's server was asked with this id.
    fn related(&self, id: &str) -> Option<String> {
        let state = self.state.borrow();
        let call = state.waiting.get(&EmbeddedServer::id_key(id))?;
        Some(state.calls.get(call)?.request.id.clone())
    }

    /// Takes a notification of a change. `true` if it must not be sent: this server tells its subscribers.
    fn changed(&self, line: &str) -> Result<bool> {
        let ServerLine::Change(notice) = self.embedded.core.server_line(line.as_bytes()) else {
            return Ok(false);
        };
        let told = self.state.borrow().session.as_ref().and_then(|session| session.told());
        let state = &self.embedded.shared.state;
        let now = state.clock.now();
        let params = notice.params.as_deref().unwrap_or("{}");
        state.delivering(|| self.embedded.core.changed(told, &notice.method, params, now))
    }

    fn waker(&self, call: u64) -> Waker {
        Waker::from(Arc::new(CallWaker { ready: self.ready.clone(), call }))
    }

    /// The client of requests of a session, which begins with the first of them.
    fn session(&self, version: &str, lasts: bool) -> Arc<EmbeddedClient> {
        if let Some(session) = &self.state.borrow().session {
            return session.clone();
        }
        let session = self.client(version, lasts);
        if lasts {
            session.wake_with(self.waker(whole(self.number)));
        }
        self.state.borrow_mut().session = Some(session.clone());
        session
    }

    fn client(&self, version: &str, lasts: bool) -> Arc<EmbeddedClient> {
        let clock = self.embedded.shared.state.clock.clone();
        EmbeddedClient::new(&self.embedded.core, clock, version, lasts)
    }

    fn open(&self, call: f64, request: LineRequest, origin: CallOrigin<'_>, is_both: bool) {
        let CallOrigin { sender, version, session } = origin;
        let key = request.key();
        let owns_client = session.is_none();
        let open = TransportCall {
            request: Rc::new(request),
            sender,
            client: session.unwrap_or_else(|| self.client(version, true)),
            owns_client,
            begun: None,
            latest: None,
            waits_for: is_both.then(|| (key.clone(), None)),
            is_cancelled: false,
        };
        let call = whole(call);
        let mut state = self.state.borrow_mut();
        if is_both {
            state.waiting.insert(key.clone(), call);
        } else {
            self.ready.add(call);
        }
        state.by_id.insert(key, call);
        state.calls.insert(call, open);
    }

    /// Begins a request in its client.
    fn start(&self, call: f64) -> Result<()> {
        let (client, message, sender) = {
            let mut state = self.state.borrow_mut();
            let Some(open) = state.calls.get_mut(&whole(call)) else { return Ok(()) };
            let LineRequest { id, method, params, .. } = &*open.request;
            let theirs = open.latest.as_ref().map(|answer| answer.as_theirs());
            let message = open.client.prepare(EmbeddedRequest { method, params, id, theirs });
            open.begun = Some(message.number());
            (open.client.clone(), message, open.sender.clone())
        };
        let outcome = client.start(&message, &sender);
        self.embedded.turn(&client, outcome, Some(call))
    }

    fn latest(&self, call: f64) -> Option<Rc<OwnedAnswer>> {
        self.state.borrow().calls.get(&whole(call))?.latest.clone()
    }

    /// A request that its client has cancelled: so is the question to the SDK's server, and then the request is over.
    fn cancelled(&self, call: f64, question: Option<u64>) -> Result<OutputFields> {
        let Some(question) = question else {
            self.end(call)?;
            return Ok(OutputFields { call, text: None, is_for_server: false, related: None, is_last: true });
        };
        let mut out = Vec::new();
        write_question_cancelled(question, &mut out);
        let text = String::from_utf8(out).ok();
        Ok(OutputFields { call, text, is_for_server: true, related: None, is_last: false })
    }

    fn finish(&self, call: &TransportCall) -> Result<()> {
        if let Some(begun) = call.begun {
            self.embedded.ended(&call.client, call.client.end(begun))?;
        }
        if call.owns_client { self.embedded.close(&call.client) } else { Ok(()) }
    }
}

impl TransportState {
    /// Whether there is room for one more answer of the SDK, to a request with this id. While another one with it waits, the
    /// two answers could not be told apart.
    fn may_wait(&self, key: &str) -> bool {
        self.waiting.len() < MOST_WAITING && !self.waiting.contains_key(key)
    }

    /// Marks the request with this id as cancelled. Its number.
    fn cancel(&mut self, key: &str) -> Option<u64> {
        let call = *self.by_id.get(key)?;
        let open = self.calls.get_mut(&call)?;
        open.is_cancelled = true;
        if let Some((waits_for, _)) = &open.waits_for {
            self.waiting.remove(waits_for);
        }
        Some(call)
    }

    /// A number for a question to the SDK's server.
    fn ask(&mut self, call: u64) -> u64 {
        self.last_question += 1;
        let key = EmbeddedServer::question_key(self.last_question);
        if let Some(open) = self.calls.get_mut(&call) {
            open.waits_for = Some((key.clone(), Some(self.last_question)));
            self.waiting.insert(key, call);
        }
        self.last_question
    }

    fn end(&mut self, call: u64) -> Option<TransportCall> {
        let open = self.calls.remove(&call)?;
        let key = open.request.key();
        if self.by_id.get(&key) == Some(&call) {
            self.by_id.remove(&key);
        }
        if let Some((waits_for, _)) = &open.waits_for {
            self.waiting.remove(waits_for);
        }
        Some(open)
    }
}
