//! Our part of a server of an SDK: the methods that its middleware calls. The core sorts, merges and answers; this module
//! passes texts.

use crate::calls::client::{Client, DeliveryReady, LoopClient, Runtime};
use crate::calls::contextvars::CallContext;
use crate::calls::run;
use crate::calls::waker::{LoopOwner, LoopWaker, Owner, Wakeup, delivering, watched};
use crate::serve::server::Server;
use crate::serve::web::seconds;
use crate::serve::{audit, inbox};
use crate::values::error;
use crate::values::json::{dumps, loads};
use crate::values::lock::lock;
use mcp_resources_engine::connection::RequestOutcome;
use mcp_resources_engine::embedded as core;
use mcp_resources_engine::embedded::{EmbeddedRequest, EmbeddedStep, SenderToken, Sorted, TheirAnswer};
use mcp_resources_engine::engine::TimerRegistration;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::principal::Principal;
use mcp_resources_runtime::provider::Providers;
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox};
use mcp_resources_runtime::transport::pump::{PumpTimer, TIME};
use mcp_resources_runtime::transport::{EmbeddedClient, EventHandler, Peer};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

/// Notifications of a session are taken up to about this many bytes at once.
const ROOM: usize = 16 * 1024;

/// Our part of one server of an SDK, whatever the event loop.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Embedding {
    core: Arc<core::EmbeddedServer>,
    server: Py<Server>,
}

/// The sender of a message.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Sender(Arc<Principal>);

/// The clients of one event loop.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct EmbeddedLoop {
    shared: Arc<Shared>,
    /// The descriptor that the loop watches.
    #[pyo3(get)]
    wakeup: Py<Wakeup>,
}

/// One client of the SDK's server.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct EmbeddedSession {
    shared: Arc<Shared>,
    client: Arc<EmbeddedClient>,
}

struct Shared {
    core: Arc<core::EmbeddedServer>,
    runtime: Runtime,
    inbox: Arc<RequestInbox<DeliveryReady>>,
    /// Providers, then the inbox.
    event_handler: Arc<dyn EventHandler>,
    waker: Arc<LoopWaker>,
    timer: PumpTimer,
    /// The clients with a deadline.
    busy: Mutex<HashMap<ConnectionId, Weak<EmbeddedClient>>>,
    _timer_registration: TimerRegistration,
}

/// One client, with the context of the request that it makes.
struct EmbeddedPeer {
    shared: Arc<Shared>,
    peer: Peer,
}

/// The SDK's answer: a result, or the code, message and data of an error.
#[derive(FromPyObject)]
enum TheirParts<'py> {
    Error(i64, String, Bound<'py, PyAny>),
    Result(Bound<'py, PyAny>),
}

/// The next step: a word, and what it needs.
type StepParts<'py> = (&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);
/// A notification: its method and its params.
type NoticeParts<'py> = (String, Bound<'py, PyAny>);

#[pymethods]
impl Sender {
    /// `owner` is that of a verified token; `None` without one. `local`: it is on the other end of a pipe.
    #[new]
    fn new(owner: Option<&str>, scopes: Vec<String>, local: bool) -> Self {
        let token = owner.map(|owner| SenderToken { owner, scopes: &scopes });
        Self(core::EmbeddedServer::sender(token, local))
    }
}

#[pymethods]
impl Embedding {
    /// Lets another server send the results of `server`.
    #[new]
    fn new(py: Python<'_>, server: &Bound<'_, Server>, adopt: bool) -> PyResult<Self> {
        let state = &server.get().state;
        let made = core::EmbeddedServer::new(state.engine()?, adopt, state.clock.now());
        let core = made.map_err(|error| error::registration(py, &error, None))?;
        Ok(Self { core, server: server.clone().unbind() })
    }

    /// Whether `sort` must see messages of this method: the SDK answers all others.
    fn concerns(&self, method: &str, is_request: bool) -> bool {
        self.core.concerns(method, is_request)
    }

    /// The server that answers a message: `theirs`, `ours`, `both`, or `told` if the SDK does and this server must know.
    fn sort(
        &self,
        method: &str,
        is_request: bool,
        sender: &Sender,
        params: &Bound<'_, PyAny>,
    ) -> PyResult<&'static str> {
        let mut failed = None;
        let mut text = || {
            dumps(params).unwrap_or_else(|error| {
                failed = Some(error);
                String::new()
            })
        };
        let sorted = self.core.sort(method, is_request, &sender.0, || Cow::Owned(text()));
        match failed {
            Some(error) => Err(error),
            None => Ok(match sorted {
                // The SDK cancels the task that waits here.
                Sorted::Theirs | Sorted::Cancels(_) => "theirs",
                Sorted::Ours => "ours",
                Sorted::Both => "both",
                Sorted::Told => "told",
            }),
        }
    }

    /// Takes a notification of the SDK's server. `True` if it must not be sent: this server tells its subscribers.
    #[pyo3(signature = (method, params, session = None))]
    fn changed(
        &self,
        py: Python<'_>,
        method: &str,
        params: &Bound<'_, PyAny>,
        session: Option<&EmbeddedSession>,
    ) -> PyResult<bool> {
        let text = dumps(params)?;
        let told = session.and_then(|session| session.client.told());
        let now = self.server.get().state.clock.now();
        delivering(py, || self.core.changed(told, method, &text, now))
    }

    /// Whether each request under this revision stands for itself.
    #[staticmethod]
    fn is_modern(version: &str) -> bool {
        core::EmbeddedServer::is_modern(version)
    }

    /// Whether `changed` must see a notification.
    #[staticmethod]
    fn is_change(method: &str) -> bool {
        core::EmbeddedServer::is_change(method)
    }

    /// The names of the tools of `server`.
    #[staticmethod]
    fn tools(server: &Server) -> PyResult<Vec<String>> {
        Ok(core::EmbeddedServer::tool_names(&*server.state.engine()?))
    }

    /// Ends the listens of all clients with their results, and the notifications of sessions.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        delivering(py, || self.core.shutdown())
    }

    /// Takes the sentences for the log.
    fn warnings(&self) -> Vec<String> {
        self.core.take_warnings()
    }
}

#[pymethods]
impl EmbeddedLoop {
    #[new]
    fn new(py: Python<'_>, embedding: &Embedding, driver: &Bound<'_, PyAny>) -> PyResult<Self> {
        let state = embedding.server.get().state.clone();
        let runtime = Runtime::new(state.clone(), driver, true)?;
        let (waker, wakeup) = watched(py)?;
        let inbox = waker.inbox();
        let handler: Arc<dyn EventHandler> = Providers::before(state.mounts().clone(), inbox.reach());
        let core = embedding.core.clone();
        let shared = Arc::new(Shared {
            _timer_registration: core.engine().register_timer(waker.waker(TIME)),
            core,
            runtime,
            inbox,
            event_handler: handler,
            waker,
            timer: PumpTimer::default(),
            busy: Mutex::default(),
        });
        let served: Weak<Shared> = Arc::downgrade(&shared);
        shared.waker.belongs_to(Owner::new(served, true));
        audit::begin(py, &state)?;
        Ok(Self { shared, wakeup })
    }

    /// A client that is served under a revision. `lasts`: notifications can reach it after an answer; `ready` is then
    /// called when there are some.
    fn connect(&self, version: &str, lasts: bool, ready: Option<Py<PyAny>>) -> EmbeddedSession {
        let shared = self.shared.clone();
        let clock = shared.runtime.state.clock.clone();
        let client = EmbeddedClient::new(&shared.core, clock, version, lasts);
        if let Some(ready) = ready {
            client.wake_with(shared.inbox.waker(DeliveryReady(Arc::new(ready))));
        }
        EmbeddedSession { shared, client }
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.tick(py)
    }

    /// The number of clients with a request that has a deadline.
    #[getter]
    fn busy(&self) -> usize {
        lock(&self.shared.busy).len()
    }

    /// The number of handlers suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.shared.runtime.tasks.len()
    }

    /// Serves no longer.
    fn close(&self) {
        self.shared.inbox.close();
        self.shared.waker.close();
    }
}

#[pymethods]
impl EmbeddedSession {
    /// Begins a request; returns its number. `theirs` is the SDK's answer, if both answer.
    #[pyo3(signature = (method, params, id, sender, theirs = None))]
    fn start(
        &self,
        py: Python<'_>,
        method: &str,
        params: &Bound<'_, PyAny>,
        id: &Bound<'_, PyAny>,
        sender: &Sender,
        theirs: Option<TheirParts<'_>>,
    ) -> PyResult<u64> {
        let params = dumps(params)?;
        let id = dumps(id)?;
        let theirs = theirs.map(TheirText::read).transpose()?;
        let theirs = theirs.as_ref().map(TheirText::answer);
        let request = EmbeddedRequest { method, params: &params, id: &id, theirs };
        let message = self.client.prepare(request);
        let outcome = self.client.start(&message, &sender.0);
        self.turn(py, outcome)?;
        Ok(message.number())
    }

    /// Lets this server know a message that the SDK answers.
    fn tell(&self, py: Python<'_>, method: &str, params: &Bound<'_, PyAny>, sender: &Sender) -> PyResult<()> {
        let params = dumps(params)?;
        let mut message = Vec::new();
        let outcome = self.client.tell(&mut message, method, &params, &sender.0);
        self.turn(py, outcome)
    }

    /// The next step of a request; `None` if there is nothing to do now.
    fn next<'py>(&self, py: Python<'py>, number: u64) -> PyResult<Option<StepParts<'py>>> {
        let Some(step) = self.client.next_step(number) else { return Ok(None) };
        let none = || py.None().into_bound(py);
        let text = |text: &str| text.into_pyobject(py).map(Bound::into_any);
        Ok(Some(match step {
            EmbeddedStep::Result(result) => ("result", loads(py, Some(&result))?, none(), none()),
            EmbeddedStep::Error { code, message, data } => {
                ("error", code.into_pyobject(py)?.into_any(), text(&message)?, loads(py, data.as_deref())?)
            }
            EmbeddedStep::Theirs => ("theirs", none(), none(), none()),
            EmbeddedStep::Send(notice) => {
                ("send", text(&notice.method)?, loads(py, notice.params.as_deref())?, none())
            }
            EmbeddedStep::Ask { method, params } => ("ask", text(method)?, loads(py, Some(&params))?, none()),
        }))
    }

    /// Has `callback` called once when the request has a step; at once if it has one.
    fn register(&self, number: u64, callback: Py<PyAny>) {
        self.client.register(number, self.shared.inbox.waker(DeliveryReady(Arc::new(callback))));
    }

    /// Passes on the SDK's answer to a question.
    fn answer(&self, py: Python<'_>, number: u64, theirs: TheirParts<'_>) -> PyResult<()> {
        let text = TheirText::read(theirs)?;
        self.turn(py, self.client.answer(number, text.answer()))
    }

    /// Ends a request; one without an answer is cancelled.
    fn end(&self, py: Python<'_>, number: u64) -> PyResult<()> {
        let events = self.client.end(number);
        self.turn(py, RequestOutcome { events, ..RequestOutcome::nothing() })
    }

    /// Takes notifications for the client, some of those that wait.
    fn deliver<'py>(&self, py: Python<'py>) -> PyResult<Vec<NoticeParts<'py>>> {
        let notices = self.client.deliver(ROOM).into_iter();
        notices.map(|notice| Ok((notice.method, loads(py, notice.params.as_deref())?))).collect()
    }

    /// The number of requests without their answer.
    #[getter]
    fn in_flight(&self) -> usize {
        self.client.in_flight()
    }

    /// Ends the client.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        lock(&self.shared.busy).remove(&self.client.id());
        let events = self.client.close();
        self.turn(py, RequestOutcome { events, ..RequestOutcome::nothing() })
    }
}

impl Embedding {
    /// Our part of the SDK's server.
    pub(crate) fn core(&self) -> &Arc<core::EmbeddedServer> {
        &self.core
    }
}

impl EmbeddedSession {
    /// Handles the events of an outcome, in the context of this thread.
    fn turn(&self, py: Python<'_>, outcome: RequestOutcome<'_>) -> PyResult<()> {
        self.shared.turn(py, &self.client, outcome)
    }
}

impl Shared {
    fn turn(
        self: &Arc<Self>,
        py: Python<'_>,
        client: &Arc<EmbeddedClient>,
        outcome: RequestOutcome<'_>,
    ) -> PyResult<()> {
        let RequestOutcome { events, misuse, .. } = outcome;
        error::log_misuse(py, "", misuse.as_deref());
        if !events.is_empty() {
            let clock = self.runtime.state.clock.clone();
            let context = Arc::new(CallContext::current(py)?);
            let peer =
                Peer::embedded(client.clone(), clock, self.event_handler.clone()).with_peer_data(context);
            run::handle_all(py, &Client(Arc::new(EmbeddedPeer { shared: self.clone(), peer })), events)?;
            self.runtime.state.kick(py)?;
        }
        let deadline = client.deadline();
        if deadline.is_some() {
            lock(&self.busy).insert(client.id(), Arc::downgrade(client));
        }
        self.rearm(py, deadline)
    }

    /// Lets requests run out of time.
    fn tick(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.timer.fired();
        let now = self.runtime.state.clock.now();
        delivering(py, || self.core.engine().tick(now))?;
        let clients: Vec<_> = lock(&self.busy).values().filter_map(Weak::upgrade).collect();
        let mut earliest: Option<Millis> = None;
        for client in clients {
            self.turn(py, &client, client.tick())?;
            match client.deadline() {
                Some(deadline) => earliest = Some(earliest.map_or(deadline, |other| other.min(deadline))),
                None => drop(lock(&self.busy).remove(&client.id())),
            }
        }
        self.rearm(py, earliest)
    }

    /// Arms the loop's timer, unless it rings before that anyway.
    fn rearm(&self, py: Python<'_>, deadline: Option<Millis>) -> PyResult<()> {
        let deadlines = [deadline, self.core.engine().deadline()];
        if !self.waker.is_on_loop() {
            if self.timer.is_late_for(&deadlines) {
                self.inbox.leave([]);
            }
            return Ok(());
        }
        let delay = self.timer.arm(&deadlines, self.runtime.state.clock.now());
        delay.map_or(Ok(()), |delay| self.runtime.drive(py, "alarm", (seconds(delay),)))
    }
}

impl LoopOwner for Shared {
    fn work(self: Arc<Self>, py: Python<'_>, _is_change: bool) -> PyResult<()> {
        self.waker.take();
        let client = |peer| Client(Arc::new(EmbeddedPeer { shared: self.clone(), peer }));
        let result = inbox::take(py, &self.inbox, &self.runtime, client);
        self.runtime.state.kick(py)?;
        self.rearm(py, None)?;
        result
    }
}

impl LoopClient for EmbeddedPeer {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn runtime(&self) -> &Runtime {
        &self.shared.runtime
    }

    /// The context of the request.
    fn context(&self, py: Python<'_>) -> PyResult<CallContext> {
        let request = self.peer.peer_data().and_then(|data| data.downcast_ref::<CallContext>());
        request.unwrap_or(&self.shared.runtime.context).copy(py)
    }

    /// The answer has left its callback in the inbox.
    fn write(self: Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.shared.waker.is_on_loop() { self.shared.clone().work(py, true) } else { Ok(()) }
    }

    fn leave(&self, ready: DeliveryReady) {
        self.shared.inbox.leave([InboxItem::Own(ready)]);
    }
}

/// A loop that was forgotten watches no longer.
impl Drop for Shared {
    fn drop(&mut self) {
        self.waker.close();
    }
}

/// The SDK's answer as text.
enum TheirText {
    Result(String),
    Error(i64, String, Option<String>),
}

impl TheirText {
    fn read(parts: TheirParts<'_>) -> PyResult<Self> {
        Ok(match parts {
            TheirParts::Result(result) => Self::Result(dumps(&result)?),
            TheirParts::Error(code, message, data) => {
                Self::Error(code, message, if data.is_none() { None } else { Some(dumps(&data)?) })
            }
        })
    }

    fn answer(&self) -> TheirAnswer<'_> {
        match self {
            Self::Result(text) => TheirAnswer::Result(text),
            Self::Error(code, message, data) => {
                TheirAnswer::Error { code: *code, message, data: data.as_deref() }
            }
        }
    }
}
