//! One transport of a server of an SDK: which messages of its client this server answers, and what is sent for them. The
//! core sorts, merges, answers and writes; this module keeps the requests by the numbers that JavaScript uses.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::serve::embedded::{Embedded, Embedding};
use crate::values::spelling::{number, whole};
use mcp_resources_engine::embedded::{
    ClientLine, EmbeddedRequest, EmbeddedServer, EmbeddedStep, LineRequest, OwnedAnswer, SenderToken,
    ServerLine, write_error, write_notice, write_question, write_question_cancelled, write_result,
};
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::EmbeddedClient;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

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

/// The side that a message is for.
#[napi]
pub enum OutputSide {
    /// The client.
    Client,
    /// The SDK's server.
    Server,
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

/// What becomes of a message of the client.
#[napi(object, object_from_js = false)]
pub struct TakenFields {
    /// The server that answers it.
    pub by: TakenBy,
    /// The request that it cancels.
    pub cancelled: Option<f64>,
}

/// A message to send for a request.
#[napi(object, object_from_js = false)]
pub struct OutputFields {
    /// The side that it is for.
    pub to: OutputSide,
    /// The message; `null` if there is none.
    pub text: Option<String>,
    /// Whether the request is over.
    pub is_last: bool,
}

/// One transport of a server of an SDK.
#[napi]
pub struct EmbeddedTransport {
    embedded: Rc<Embedded>,
    /// The number with which the driver delivers notifications of the session.
    session_number: f64,
    /// Whether each request stands for itself, although the SDK's server has not agreed on a revision.
    is_modern: bool,
    state: RefCell<TransportState>,
}

#[derive(Default)]
struct TransportState {
    session: Option<Arc<EmbeddedClient>>,
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

#[napi]
impl EmbeddedTransport {
    /// A transport of the server of `embedding`. With `modern`, each request stands for itself, although the SDK's server
    /// has not agreed on a revision.
    #[napi(catch_unwind, constructor)]
    pub fn new(embedding: &Embedding, session: f64, modern: bool) -> Self {
        Self {
            embedded: embedding.0.clone(),
            session_number: session,
            is_modern: modern,
            state: RefCell::default(),
        }
    }

    /// Takes a message of the client. `call` is the number for a request that is not the SDK's alone; `text` makes the JSON
    /// text of the message, and is called only if the result depends on it.
    #[napi(catch_unwind)]
    pub fn take(
        &self,
        message: ArrivedFields,
        call: f64,
        #[napi(ts_arg_type = "() => string")] text: Function<'_, (), String>,
    ) -> Result<TakenFields> {
        let taken = |by| TakenFields { by, cancelled: None };
        let version = message.version.as_deref().unwrap_or_default();
        let is_modern = self.is_modern || EmbeddedServer::is_modern(version);
        if message.is_early && !is_modern {
            return Ok(taken(TakenBy::Theirs));
        }
        let scopes = message.scopes.as_deref().unwrap_or_default();
        let token = message.owner.as_deref().map(|owner| SenderToken { owner, scopes });
        let sender = EmbeddedServer::sender(token, !message.is_http && !message.has_session);
        // A message without JSON text counts as empty: this server answers no such message.
        let text = || text.call(()).unwrap_or_default();
        let core = &self.embedded.core;
        let line = core.client_message(&message.method, message.is_request, &sender, text);
        if message.is_early && !matches!(line, ClientLine::Ours(_)) {
            return Ok(taken(TakenBy::Theirs));
        }
        let session = || match is_modern {
            true => None,
            false => Some(self.session(version, !message.is_http || message.has_session)),
        };
        match line {
            ClientLine::Theirs => Ok(taken(TakenBy::Theirs)),
            ClientLine::Told { method, params } => {
                if let Some(client) = session() {
                    let mut buffer = Vec::new();
                    let outcome = client.tell(&mut buffer, &method, &params, &sender);
                    self.embedded.turn(&client, outcome, None)?;
                }
                Ok(taken(TakenBy::Theirs))
            }
            ClientLine::Cancels(key) => {
                let cancelled = self.state.borrow_mut().cancel(&key);
                Ok(TakenFields { by: TakenBy::Theirs, cancelled: cancelled.map(number) })
            }
            ClientLine::Ours(request) => {
                self.open(call, request, CallOrigin { sender, version, session: session() }, false);
                Ok(taken(TakenBy::Ours))
            }
            ClientLine::Both(request) => {
                if !self.state.borrow().may_wait(&request.key()) {
                    return Ok(taken(TakenBy::Theirs));
                }
                self.open(call, request, CallOrigin { sender, version, session: session() }, true);
                Ok(taken(TakenBy::Both))
            }
        }
    }

    /// The next message to send for a request. `null` if there is none now; then the driver delivers on `call`.
    #[napi(catch_unwind)]
    pub fn next(&self, call: f64) -> Result<Option<OutputFields>> {
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
                client.register(begun, self.embedded.shared.response_waker(call));
                return Ok(None);
            };
            let mut out = Vec::new();
            let (to, is_last) = match step {
                EmbeddedStep::Result(text) => {
                    write_result(&request.id, &text, &mut out);
                    (OutputSide::Client, true)
                }
                EmbeddedStep::Error { code, message, data } => {
                    write_error(&request.id, code, &message, data.as_deref(), &mut out);
                    (OutputSide::Client, true)
                }
                EmbeddedStep::Theirs => {
                    self.latest(call).iter().for_each(|answer| answer.write(&request.id, &mut out));
                    (OutputSide::Client, true)
                }
                EmbeddedStep::Send(notice) => {
                    write_notice(&notice, &mut out);
                    (OutputSide::Client, false)
                }
                EmbeddedStep::Ask { method, params } => {
                    write_question(self.state.borrow_mut().ask(whole(call)), method, &params, &mut out);
                    (OutputSide::Server, false)
                }
            };
            if is_last {
                self.end(call)?;
            }
            let text = String::from_utf8(out).ok().filter(|text| !text.is_empty());
            return Ok(Some(OutputFields { to, text, is_last }));
        }
    }

    /// Takes an answer of the SDK's server, by its id (JSON text): the number of the request that goes on with it, 0 if it
    /// is gone, `null` if the answer is for the client.
    #[napi(catch_unwind)]
    pub fn answered(
        &self,
        id: String,
        #[napi(ts_arg_type = "() => string")] text: Function<'_, (), String>,
    ) -> Result<Option<f64>> {
        let key = EmbeddedServer::id_key(&id);
        let Some(call) = self.state.borrow_mut().waiting.remove(&key) else {
            return Ok(EmbeddedServer::is_question(&key).then_some(0.0));
        };
        let line = text.call(())?;
        let (ServerLine::Answer { answer, .. } | ServerLine::Asked { answer, .. }) =
            self.embedded.core.server_line(line.as_bytes())
        else {
            return Ok(Some(0.0));
        };
        let answer = Rc::new(answer);
        let asked = {
            let mut state = self.state.borrow_mut();
            let Some(open) = state.calls.get_mut(&call) else { return Ok(Some(0.0)) };
            open.waits_for = None;
            open.latest = Some(answer.clone());
            open.begun.map(|begun| (open.client.clone(), begun))
        };
        if let Some((client, begun)) = asked {
            let outcome = client.answer(begun, answer.as_theirs());
            self.embedded.turn(&client, outcome, Some(number(call)))?;
        }
        Ok(Some(number(call)))
    }

    /// The id (JSON text) of the request for which the SDK's server was asked with this id.
    #[napi(catch_unwind)]
    pub fn related(&self, id: String) -> Option<String> {
        let state = self.state.borrow();
        let call = state.waiting.get(&EmbeddedServer::id_key(&id))?;
        Some(state.calls.get(call)?.request.id.clone())
    }

    /// Takes a notification of the SDK's server; `params` makes their JSON text. `true` if it must not be sent: this server
    /// tells its subscribers.
    #[napi(catch_unwind)]
    pub fn changed(
        &self,
        method: String,
        #[napi(ts_arg_type = "() => string")] params: Function<'_, (), String>,
    ) -> Result<bool> {
        if !EmbeddedServer::is_change(&method) {
            return Ok(false);
        }
        let params = params.call(())?;
        let told = self.state.borrow().session.as_ref().and_then(|session| session.told());
        let state = &self.embedded.shared.state;
        let now = state.clock.now();
        state.delivering(|| self.embedded.core.changed(told, &method, &params, now))
    }

    /// Takes notifications for the client, some of those that wait.
    #[napi(catch_unwind)]
    pub fn deliver(&self) -> Vec<String> {
        let Some(session) = self.state.borrow().session.clone() else { return Vec::new() };
        let text = |notice| {
            let mut out = Vec::new();
            write_notice(&notice, &mut out);
            String::from_utf8(out).ok()
        };
        session.deliver(ROOM).into_iter().filter_map(text).collect()
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

/// What a request needs besides its message.
struct CallOrigin<'v> {
    sender: Arc<Principal>,
    version: &'v str,
    /// `None` if the request stands for itself.
    session: Option<Arc<EmbeddedClient>>,
}

impl EmbeddedTransport {
    /// The client of requests of a session, which begins with the first of them.
    fn session(&self, version: &str, lasts: bool) -> Arc<EmbeddedClient> {
        if let Some(session) = &self.state.borrow().session {
            return session.clone();
        }
        let session = self.client(version, lasts);
        if lasts {
            session.wake_with(self.embedded.shared.response_waker(self.session_number));
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
            return Ok(OutputFields { to: OutputSide::Client, text: None, is_last: true });
        };
        let mut out = Vec::new();
        write_question_cancelled(question, &mut out);
        Ok(OutputFields { to: OutputSide::Server, text: String::from_utf8(out).ok(), is_last: false })
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
