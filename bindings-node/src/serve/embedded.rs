//! Our part of a server of an SDK: the functions that `js/attach.ts` calls for its messages. The core sorts, merges and
//! answers; this module passes texts.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::calls::about::RequestFields;
use crate::calls::answers::Answers;
use crate::calls::driver::{Client, Drive, Driver, LoopTask, RequestKey, Shared};
use crate::calls::elsewhere::Elsewhere;
use crate::calls::function::Callee;
use crate::calls::origin::HttpOrigin;
use crate::calls::run;
use crate::calls::server_state::Served;
use crate::calls::table::RequestTable;
use crate::serve::server::Server;
use crate::values::error::registration;
use crate::values::spelling::{number, whole};
use mcp_resources_engine::connection::{RequestOutcome, RequestToken};
use mcp_resources_engine::embedded as core;
use mcp_resources_engine::embedded::{EmbeddedRequest, EmbeddedStep, SenderToken, TheirAnswer};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::transport::pump::PumpTimer;
use mcp_resources_runtime::transport::{EmbeddedClient, EventHandler, Peer, WorkRequest};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Notifications of a session are taken up to about this many bytes at once.
const ROOM: usize = 16 * 1024;

/// The server that answers a message.
#[napi]
pub enum SortedBy {
    /// The SDK alone.
    Theirs,
    /// This one alone.
    Ours,
    /// Both: the SDK first.
    Both,
    /// The SDK, and this one must know.
    Told,
}

/// Where a message goes.
#[napi(object, object_from_js = false)]
pub struct SortedMessage {
    /// The server that answers it.
    pub by: SortedBy,
    /// The id (JSON text) of the request that it cancels.
    pub cancels: Option<String>,
}

/// The SDK's answer: a result, or an error. Results and data are JSON text.
#[napi(object, object_to_js = false)]
pub struct TheirFields {
    /// The result.
    pub result: Option<String>,
    /// The code of the error.
    pub code: Option<i64>,
    /// The message of the error.
    pub message: Option<String>,
    /// The data of the error.
    pub data: Option<String>,
}

/// An action for a request.
#[napi]
pub enum StepKind {
    /// Answer with the result in `text`. The request is over.
    Result,
    /// Answer with an error. The request is over.
    Error,
    /// Answer as the SDK did. The request is over.
    Theirs,
    /// Send a notification.
    Send,
    /// Ask the SDK.
    Ask,
}

/// The next step of a request. Results, params and data are JSON text.
#[napi(object, object_from_js = false)]
pub struct StepFields {
    /// The action.
    pub kind: StepKind,
    /// The method of a notification or question, or the message of an error.
    pub name: Option<String>,
    /// The result, the params, or the data of an error.
    pub text: Option<String>,
    /// The code of an error.
    pub code: Option<i64>,
}

/// A notification for a client.
#[napi(object, object_from_js = false)]
pub struct NoticeFields {
    /// Its method.
    pub method: String,
    /// Its params as JSON text.
    pub params: Option<String>,
}

/// Our part of one server of an SDK, and the event loop of its clients.
#[napi]
pub struct Embedding(Rc<Embedded>);

/// The sender of messages.
#[napi]
pub struct MessageSender(Arc<Principal>);

/// One client of the SDK's server: a session, or one request.
#[napi]
pub struct EmbeddedSession {
    embedded: Rc<Embedded>,
    client: Arc<EmbeddedClient>,
}

/// The state that the clients of one server share. Lives on the thread of its JavaScript.
struct Embedded {
    core: Arc<core::EmbeddedServer>,
    shared: Shared,
    elsewhere: Arc<dyn EventHandler>,
    requests: RequestTable,
    /// The clients with a deadline.
    busy: RefCell<HashMap<ConnectionId, std::sync::Weak<EmbeddedClient>>>,
    timer: PumpTimer,
}

#[napi]
impl MessageSender {
    /// `owner` is that of a verified token; `null` without one. `local`: it is on the other end of a pipe.
    #[napi(catch_unwind, constructor)]
    pub fn new(owner: Option<String>, scopes: Vec<String>, local: bool) -> Self {
        let token = owner.as_deref().map(|owner| SenderToken { owner, scopes: &scopes });
        Self(core::EmbeddedServer::sender(token, local))
    }
}

#[napi]
impl Embedding {
    /// Makes `server` part of another one. `driver` is the number that functions are called with; `drive` is called with the
    /// tasks of the event loop.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        server: &Server,
        driver: u32,
        #[napi(ts_arg_type = "(task: LoopTask, value: number, text: string | null) => void")] drive: Drive,
        adopt: bool,
    ) -> Result<Self> {
        let state = server.state.clone();
        let made = core::EmbeddedServer::new(state.engine()?, adopt, state.clock.now());
        let core = made.map_err(|error| registration(&state.env, &error, None))?;
        let shared = Shared::new(state.clone(), driver, drive, None);
        let elsewhere = Elsewhere::behind(state.registry.mounts(), &state.woken, &shared.inbox, None);
        let embedded = Rc::new(Embedded {
            core,
            shared,
            elsewhere,
            requests: RequestTable::default(),
            busy: RefCell::default(),
            timer: PumpTimer::default(),
        });
        let served: Weak<Embedded> = Rc::downgrade(&embedded);
        state.serve(served);
        Ok(Self(embedded))
    }

    /// Those of the SDK's names that `server` has too: of tools, or of prompts.
    #[napi(catch_unwind)]
    pub fn conflicts(server: &Server, prompts: bool, names: Vec<String>) -> Result<Vec<String>> {
        let engine = server.state.engine()?;
        let catalog = engine.catalog();
        let is_own = |name: &String| match prompts {
            true => catalog.prompt(name).is_some(),
            false => catalog.tool(name).is_some(),
        };
        Ok(names.into_iter().filter(is_own).collect())
    }

    /// Whether each request under this revision stands for itself.
    #[napi(catch_unwind)]
    pub fn is_modern(version: String) -> bool {
        core::EmbeddedServer::is_modern(&version)
    }

    /// Whether `changed` must see a notification.
    #[napi(catch_unwind)]
    pub fn is_change(method: String) -> bool {
        core::EmbeddedServer::is_change(&method)
    }

    /// The object through which handlers answer.
    #[napi(catch_unwind, getter)]
    pub fn answers(&self) -> Answers {
        Answers(self.0.clone())
    }

    /// Sorts a message. `params` makes their JSON text, and is called only if the result depends on them.
    #[napi(catch_unwind)]
    pub fn sort(
        &self,
        method: String,
        is_request: bool,
        sender: &MessageSender,
        #[napi(ts_arg_type = "() => string")] params: Function<'_, (), String>,
    ) -> SortedMessage {
        // Params without JSON text count as absent: this server answers no such message.
        let text = || Cow::Owned(params.call(()).unwrap_or_default());
        let (by, cancels) = match self.0.core.sort(&method, is_request, &sender.0, text) {
            core::Sorted::Theirs => (SortedBy::Theirs, None),
            core::Sorted::Cancels(id) => (SortedBy::Theirs, Some(id)),
            core::Sorted::Ours => (SortedBy::Ours, None),
            core::Sorted::Both => (SortedBy::Both, None),
            core::Sorted::Told => (SortedBy::Told, None),
        };
        SortedMessage { by, cancels }
    }

    /// Takes a notification of the SDK's server. `true` if it must not be sent: this server tells its subscribers.
    #[napi(catch_unwind)]
    pub fn changed(&self, method: String, params: String, session: Option<&EmbeddedSession>) -> Result<bool> {
        let told = session.and_then(|session| session.client.told());
        let state = &self.0.shared.state;
        let now = state.clock.now();
        state.delivering(|| self.0.core.changed(told, &method, &params, now))
    }

    /// A client that is served under a revision. `lasts`: notifications can reach it after an answer; then the driver
    /// delivers on `session`.
    #[napi(catch_unwind)]
    pub fn connect(&self, version: String, lasts: bool, session: Option<f64>) -> EmbeddedSession {
        let embedded = self.0.clone();
        let clock = embedded.shared.state.clock.clone();
        let client = EmbeddedClient::new(&embedded.core, clock, &version, lasts);
        if let Some(session) = session {
            client.wake_with(embedded.shared.response_waker(session));
        }
        EmbeddedSession { embedded, client }
    }

    /// Takes the sentences for the log.
    #[napi(catch_unwind)]
    pub fn warnings(&self) -> Vec<String> {
        self.0.core.take_warnings()
    }

    /// Something was left for the loop.
    #[napi(catch_unwind)]
    pub fn work(&self) -> Result<()> {
        let driver: Rc<dyn Driver> = self.0.clone();
        let mut result = Ok(());
        for item in self.0.shared.inbox.take() {
            result = result.and(run::do_left(&driver, item));
        }
        result?;
        self.0.rest(None)
    }

    /// It is time.
    #[napi(catch_unwind)]
    pub fn timer(&self) -> Result<()> {
        self.0.tick()
    }

    /// The number of clients with a request that has a deadline: for tests.
    #[napi(catch_unwind, getter)]
    pub fn busy(&self) -> f64 {
        number(self.0.busy.borrow().len() as u64)
    }

    /// Stops calling the driver.
    #[napi(catch_unwind)]
    pub fn release(&self) {
        self.0.shared.release();
    }
}

#[napi]
impl EmbeddedSession {
    /// Begins a request; returns its number. `call` names it for the driver, `theirs` is the SDK's answer if both answer.
    #[napi(catch_unwind)]
    pub fn start(
        &self,
        method: String,
        params: String,
        id: String,
        sender: &MessageSender,
        call: f64,
        theirs: Option<TheirFields>,
    ) -> Result<f64> {
        let theirs = theirs.as_ref().map(TheirFields::answer);
        let request = EmbeddedRequest { method: &method, params: &params, id: &id, theirs };
        let message = self.client.prepare(request);
        let outcome = self.client.start(&message, &sender.0);
        self.embedded.turn(&self.client, outcome, Some(call))?;
        Ok(number(message.number()))
    }

    /// Lets this server know a message that the SDK answers.
    #[napi(catch_unwind)]
    pub fn tell(&self, method: String, params: String, sender: &MessageSender) -> Result<()> {
        let mut message = Vec::new();
        let outcome = self.client.tell(&mut message, &method, &params, &sender.0);
        self.embedded.turn(&self.client, outcome, None)
    }

    /// What to do next for a request; `null` if there is nothing now.
    #[napi(catch_unwind)]
    pub fn next(&self, request: f64) -> Option<StepFields> {
        self.client.next_step(whole(request)).map(StepFields::from)
    }

    /// Has the driver deliver once on `call` when the request has a step; at once if it has one.
    #[napi(catch_unwind)]
    pub fn register(&self, request: f64, call: f64) {
        self.client.register(whole(request), self.embedded.shared.response_waker(call));
    }

    /// Passes on the SDK's answer to a question.
    #[napi(catch_unwind)]
    pub fn answer(&self, request: f64, call: f64, theirs: TheirFields) -> Result<()> {
        let outcome = self.client.answer(whole(request), theirs.answer());
        self.embedded.turn(&self.client, outcome, Some(call))
    }

    /// Ends a request; one without an answer is cancelled.
    #[napi(catch_unwind)]
    pub fn end(&self, request: f64) -> Result<()> {
        let events = self.client.end(whole(request));
        self.embedded.turn(&self.client, RequestOutcome { events, ..RequestOutcome::nothing() }, None)
    }

    /// Takes notifications for the client, some of those that wait.
    #[napi(catch_unwind)]
    pub fn deliver(&self) -> Vec<NoticeFields> {
        let notices = self.client.deliver(ROOM).into_iter();
        notices.map(|notice| NoticeFields { method: notice.method, params: notice.params }).collect()
    }

    /// The number of requests without their answer.
    #[napi(catch_unwind, getter)]
    pub fn in_flight(&self) -> f64 {
        number(self.client.in_flight() as u64)
    }

    /// Ends the client.
    #[napi(catch_unwind)]
    pub fn close(&self) -> Result<()> {
        self.embedded.busy.borrow_mut().remove(&self.client.id());
        let events = self.client.close();
        self.embedded.turn(&self.client, RequestOutcome { events, ..RequestOutcome::nothing() }, None)
    }
}

impl Embedded {
    /// Handles the events of an outcome. Those of a request run in the context of `call`.
    fn turn(
        self: &Rc<Self>,
        client: &Arc<EmbeddedClient>,
        outcome: RequestOutcome<'_>,
        call: Option<f64>,
    ) -> Result<()> {
        let RequestOutcome { events, misuse, .. } = outcome;
        self.shared.log_misuse(None, misuse)?;
        if !events.is_empty() {
            let clock = self.shared.state.clock.clone();
            let mut peer = Peer::embedded(client.clone(), clock, self.elsewhere.clone());
            if let Some(response) = call {
                peer = peer.with_peer_data(Arc::new(HttpOrigin { driver: self.shared.driver, response }));
            }
            run::handle_all(&Client { peer: Rc::new(peer), driver: self.clone() }, events)?;
        }
        let deadline = client.deadline();
        if deadline.is_some() {
            self.busy.borrow_mut().insert(client.id(), Arc::downgrade(client));
        }
        self.rest(deadline)
    }

    /// Lets requests run out of time.
    fn tick(self: &Rc<Self>) -> Result<()> {
        self.timer.fired();
        let engine = self.core.engine();
        let now = self.shared.state.clock.now();
        self.shared.state.delivering(|| engine.tick(now))?;
        let clients: Vec<_> = self.busy.take().into_values().filter_map(|client| client.upgrade()).collect();
        // Those that still have a deadline are busy again.
        clients.iter().try_for_each(|client| self.turn(client, client.tick(), None))
    }

    /// Makes the loop check its inbox, and arms its timer for the earlier of `deadline` and that of the
    /// engine, unless it fires earlier anyway.
    fn rest(&self, deadline: Option<Millis>) -> Result<()> {
        if self.shared.inbox.is_due() {
            self.shared.drive(LoopTask::Work, 0.0, None)?;
        }
        let deadlines = [deadline, self.core.engine().deadline()];
        let delay = self.timer.arm(&deadlines, self.shared.state.clock.now());
        delay.map_or(Ok(()), |delay| self.shared.drive(LoopTask::Alarm, number(delay), None))
    }
}

impl Served for Embedded {
    fn rearm(&self) -> Result<()> {
        self.rest(None)
    }

    /// The SDK ends its own connections.
    fn shutdown(&self) -> Result<()> {
        Ok(())
    }

    fn waiting(&self) -> usize {
        self.requests.len()
    }

    fn holds(&self) -> bool {
        true
    }
}

impl Driver for Embedded {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        self.requests.begin(peer, request, callee)
    }

    fn number(&self, key: RequestKey) -> Option<f64> {
        self.requests.number(key)
    }

    fn cancelled(&self, key: RequestKey) {
        self.requests.cancelled(key);
    }

    fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        self.requests.over(key)
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        self.requests.find(request)
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        self.requests.about(request)
    }

    fn appended(&self) -> Result<()> {
        self.rest(None)
    }
}

impl TheirFields {
    fn answer(&self) -> TheirAnswer<'_> {
        match self {
            Self { result: Some(result), .. } => TheirAnswer::Result(result),
            Self { code, message, data, .. } => TheirAnswer::Error {
                code: code.unwrap_or_default(),
                message: message.as_deref().unwrap_or_default(),
                data: data.as_deref(),
            },
        }
    }
}

impl From<EmbeddedStep> for StepFields {
    fn from(step: EmbeddedStep) -> Self {
        let empty = |kind| Self { kind, name: None, text: None, code: None };
        match step {
            EmbeddedStep::Result(text) => Self { text: Some(text), ..empty(StepKind::Result) },
            EmbeddedStep::Error { code, message, data } => {
                Self { name: Some(message), text: data, code: Some(code), ..empty(StepKind::Error) }
            }
            EmbeddedStep::Theirs => empty(StepKind::Theirs),
            EmbeddedStep::Send(notice) => {
                Self { name: Some(notice.method), text: notice.params, ..empty(StepKind::Send) }
            }
            EmbeddedStep::Ask { method, params } => {
                Self { name: Some(method.to_owned()), text: Some(params), ..empty(StepKind::Ask) }
            }
        }
    }
}
