//! One client, as handlers of an event loop meet it, and what the clients of that loop share.

use crate::calls::contextvars::CallContext;
use crate::calls::function::Function;
use crate::calls::server_state::ServerState;
use mcp_resources_engine::connection::{AskId, RequestToken};
use mcp_resources_runtime::transport::Peer;
use mcp_resources_runtime::transport::pump::PendingCalls;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyReferenceError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::Deref;
use std::sync::Arc;

/// A client, by its transport. No method blocks, and none waits for the interpreter with a lock held.
pub(crate) trait LoopClient: Send + Sync {
    /// Takes its answers.
    fn peer(&self) -> &Peer;

    /// The state shared with the other clients on its event loop.
    fn runtime(&self) -> &Runtime;

    /// The context for a function that answers one of its requests.
    fn context(&self, py: Python<'_>) -> PyResult<CallContext>;

    /// Whether it is so far behind that no handler should start for it.
    fn is_full(&self) -> bool {
        false
    }

    /// Whether an answer of a worker must be written by the worker threads.
    fn needs_writer(&self) -> bool {
        false
    }

    /// Has appended output written.
    fn write(self: Arc<Self>, py: Python<'_>) -> PyResult<()>;

    /// Writes as much as the client takes; the loop writes the rest. Any thread; needs no interpreter.
    fn write_elsewhere(&self) {}

    /// Leaves something for the event loop to call. Any thread.
    fn leave(&self, ready: DeliveryReady);
}

/// A function to call on the loop when a response has output to deliver.
#[derive(Clone)]
pub(crate) struct DeliveryReady(pub(crate) Arc<Py<PyAny>>);

/// One client. A clone is the same client.
#[derive(Clone)]
pub(crate) struct Client(pub(crate) Arc<dyn LoopClient>);

impl Client {
    /// Called after an answer or a report was given: has it written. A worker leaves that to its queue.
    pub(crate) fn appended(&self, py: Python<'_>, by_worker: bool) -> PyResult<()> {
        if by_worker && self.needs_writer() {
            self.runtime().state.queue.get().jobs.leave_unwritten(self.clone());
            return Ok(());
        }
        self.0.clone().write(py)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for Client {
    type Target = dyn LoopClient;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

/// The state shared by the clients of one event loop.
pub(crate) struct Runtime {
    pub(crate) state: Arc<ServerState>,
    /// A weak proxy: the driver holds what holds this.
    driver: Py<PyAny>,
    /// Starts a coroutine as a task.
    start: Py<PyAny>,
    pub(crate) eager: bool,
    /// The context in which serving began.
    pub(crate) context: CallContext,
    /// Whether `def` handlers run on the worker threads.
    pub(crate) threads: bool,
    /// The tasks of handlers that are suspended on the loop.
    pub(crate) tasks: PendingCalls<RequestToken, Py<PyAny>>,
    /// The futures of handlers that have asked their client.
    pub(crate) asks: PendingCalls<AskId, Py<PyAny>>,
}

impl Runtime {
    /// For the loop of `driver`, whose thread this is.
    pub(crate) fn new(state: Arc<ServerState>, driver: &Bound<'_, PyAny>, threads: bool) -> PyResult<Self> {
        let py = driver.py();
        let context = CallContext::current(py)?;
        state.serves_in(py, &context);
        Ok(Self {
            state,
            start: driver.getattr("start")?.unbind(),
            eager: driver.getattr("eager")?.extract()?,
            context,
            driver: driver.clone().unbind(),
            threads,
            tasks: PendingCalls::default(),
            asks: PendingCalls::default(),
        })
    }

    /// Starts a coroutine of `function` as a task, in `context`.
    pub(crate) fn start<'py>(
        &self,
        context: &CallContext,
        coroutine: &Bound<'py, PyAny>,
        function: &Function,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        context.call(self.start.bind(py), &PyTuple::new(py, [coroutine])?, Some(function.task.bind(py)))
    }

    /// Calls a method of the driver, unless that is gone, and the loop with it.
    pub(crate) fn drive<'py>(&self, py: Python<'py>, name: &str, args: impl PyCallArgs<'py>) -> PyResult<()> {
        match self.driver.call_method1(py, name, args) {
            Err(error) if error.is_instance_of::<PyReferenceError>(py) => Ok(()),
            other => other.map(drop),
        }
    }
}
