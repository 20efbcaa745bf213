//! The other side of a handler's call: the client at the end of a pipe, or one exchange over HTTP.

use crate::server::Host;
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, Cancelled, Encoded, Event, Events, Outcome, Reply, RequestToken,
};
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyReferenceError;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// See the module. No method blocks, and none waits for the interpreter with a lock held.
pub(crate) trait Peer: Send + Sync {
    /// What it shares with the others on its event loop.
    fn runtime(&self) -> &Runtime;
    /// Whose tokens it speaks of.
    fn connection(&self) -> ConnectionId;
    /// Answers at once.
    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Effects;
    /// Takes a reply out, to be worded elsewhere; `None` if nobody waits for it.
    fn detach(&self, token: RequestToken) -> Option<Reply>;
    /// Takes an answer that was worded elsewhere.
    fn finish(&self, encoded: Encoded) -> Effects;
    /// Sends a request to a legacy client.
    fn ask(&self, method: &str, params: &str) -> Result<AskId, AskError>;
    /// There will be no answer.
    fn abandon(&self, token: RequestToken);
    /// Sends what a handler reports before its answer, unless nobody waits for it.
    fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]);
    /// Whether its client is so far behind that no handler should start for it.
    fn is_full(&self) -> bool;
    /// An answer or a report was given: sees to it that it is written.
    fn appended(self: Arc<Self>, py: Python<'_>, by_worker: bool) -> PyResult<()>;
    /// Writes as much as the client takes. Any thread; needs no interpreter. Returns whether the loop must see to the rest.
    fn write_elsewhere(&self) -> bool;
    /// Lets the loop look at the output.
    fn wake_loop(&self);
    /// Gives events of another thread to the loop.
    fn hand_over(self: Arc<Self>, events: Events<'static>);
}

/// What the host must do after a call.
pub(crate) struct Effects {
    pub(crate) events: Events<'static>,
    /// What the author did wrong.
    pub(crate) misuse: Option<String>,
}

/// What the clients of one event loop share.
pub(crate) struct Runtime {
    pub(crate) host: Arc<Host>,
    /// A weak proxy: the driver holds what holds this.
    driver: Py<PyAny>,
    /// Starts a coroutine as a task.
    pub(crate) start: Py<PyAny>,
    pub(crate) eager: bool,
    /// The context that handlers run in a copy of.
    pub(crate) context: Py<PyAny>,
    /// Whether `def` handlers run on the worker threads.
    pub(crate) threads: bool,
    tasks: Mutex<HashMap<(ConnectionId, RequestToken), Py<PyAny>>>,
    /// The futures of handlers that have asked their client.
    asks: Mutex<HashMap<(ConnectionId, AskId), Py<PyAny>>>,
    thread: ThreadId,
}

impl Runtime {
    /// For the loop of `driver`, whose thread this is.
    pub(crate) fn new(host: Arc<Host>, driver: &Bound<'_, PyAny>, threads: bool) -> PyResult<Self> {
        let py = driver.py();
        Ok(Self {
            host,
            start: driver.getattr("start")?.unbind(),
            eager: driver.getattr("eager")?.extract()?,
            context: py.import("contextvars")?.call_method0("copy_context")?.unbind(),
            driver: driver.clone().unbind(),
            threads,
            tasks: Mutex::default(),
            asks: Mutex::default(),
            thread: std::thread::current().id(),
        })
    }

    /// Calls a method of the driver, unless that is gone, and the loop with it.
    pub(crate) fn drive<'py>(&self, py: Python<'py>, name: &str, args: impl PyCallArgs<'py>) -> PyResult<()> {
        match self.driver.call_method1(py, name, args) {
            Err(error) if error.is_instance_of::<PyReferenceError>(py) => Ok(()),
            other => other.map(drop),
        }
    }

    pub(crate) fn on_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// A handler is suspended as a task.
    pub(crate) fn suspend(
        &self,
        py: Python<'_>,
        connection: ConnectionId,
        token: RequestToken,
        task: Py<PyAny>,
    ) -> PyResult<()> {
        let mut tasks = self.tasks();
        let first = tasks.is_empty();
        let before = tasks.insert((connection, token), task);
        drop(tasks);
        drop(before);
        if first { self.drive(py, "suspended", ()) } else { Ok(()) }
    }

    /// The task of a request, if it has one, which is over or is to be.
    pub(crate) fn take_task(&self, connection: ConnectionId, token: RequestToken) -> Option<Py<PyAny>> {
        self.tasks().remove(&(connection, token))
    }

    /// The client of `peer` is asked; its answer goes to `future`.
    pub(crate) fn ask(
        &self,
        peer: &dyn Peer,
        method: &str,
        params: &str,
        future: Py<PyAny>,
    ) -> Result<(), AskError> {
        // Held until the answer has somewhere to go: a thread of the server may have it before `ask` returns.
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        let ask = peer.ask(method, params)?;
        asks.insert((peer.connection(), ask), future);
        Ok(())
    }

    /// Who waits for this answer.
    pub(crate) fn asked(&self, connection: ConnectionId, ask: AskId) -> Option<Py<PyAny>> {
        self.asks.lock().unwrap_or_else(PoisonError::into_inner).remove(&(connection, ask))
    }

    /// How many handlers are suspended on the loop.
    pub(crate) fn suspended(&self) -> usize {
        self.tasks().len()
    }

    fn tasks(&self) -> MutexGuard<'_, HashMap<(ConnectionId, RequestToken), Py<PyAny>>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Effects {
    /// The events, after what the author did wrong in the function `name` is logged.
    pub(crate) fn logged(self, py: Python<'_>, name: &str) -> Events<'static> {
        logged(py, name, self.misuse.as_deref());
        self.events
    }
}

impl From<Outcome<'static>> for Effects {
    fn from(outcome: Outcome<'static>) -> Self {
        Self { events: outcome.events, misuse: outcome.misuse }
    }
}

impl From<Turn<'static>> for Effects {
    fn from(turn: Turn<'static>) -> Self {
        Self { events: turn.events, misuse: turn.misuse }
    }
}

/// The events of an outcome that may borrow its message.
pub(crate) fn events<'m>(
    py: Python<'_>,
    outcome: Outcome<'m>,
) -> impl IntoIterator<Item = Event<'m>> + use<'m> {
    logged(py, "", outcome.misuse.as_deref());
    outcome.events
}

/// Logs what the author did wrong.
pub(crate) fn logged(py: Python<'_>, name: &str, misuse: Option<&str>) {
    if let Some(misuse) = misuse {
        crate::error::log_misuse(py, name, misuse);
    }
}
