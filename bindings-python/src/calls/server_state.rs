//! State shared by the calls of one server: its functions, its worker threads, and the threads that take its records.

use crate::calls::consumer::ConsumerThread;
use crate::calls::contextvars::CallContext;
use crate::calls::function::Function;
use crate::calls::jobs::ThreadNeed;
use crate::calls::queue::Queue;
use crate::calls::redact::Redactor;
use crate::values::error;
use crate::values::lock::lock;
use mcp_resources_engine::catalog::HandlerId;
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::guard::AuditRecord;
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_runtime::provider::Mounts;
use mcp_resources_runtime::registry::Registry;
use mcp_resources_runtime::transport::EngineClock;
use mcp_resources_runtime::transport::pump::ServingRegistry;
use mcp_resources_serve::ServedConfig;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, OnceLock};

/// The state shared by all channels of a server.
pub(crate) struct ServerState {
    pub(crate) clock: Arc<EngineClock>,
    pub(crate) queue: Py<Queue>,
    /// Starts a worker thread.
    pub(crate) spawn: Py<PyAny>,
    /// Looks at contents before they are encoded, in the context of the request.
    pub(crate) redactor: Option<Arc<Redactor>>,
    /// The value of the server's lifespan.
    pub(crate) lifespan: Mutex<Option<Py<PyAny>>>,
    pub(crate) record_consumer: Option<Consumer>,
    /// Takes what clients watch, once a function wants to know.
    pub(crate) watch_consumer: OnceLock<Consumer>,
    pub(crate) registry: Registry<Functions>,
    pub(crate) serving: ServingRegistry,
    /// The configuration file that the server was made from.
    pub(crate) config: OnceLock<ServedConfig>,
}

/// The functions behind one number.
pub(crate) type Functions = mcp_resources_runtime::transport::WorkFunctions<Py<Function>>;

/// The records for a function, or the changes of watches. Its thread is started when the server begins to serve, in each
/// process.
pub(crate) struct Consumer {
    pub(crate) start: Py<PyAny>,
    pub(crate) thread: ConsumerThread,
}

impl ServerState {
    /// The engine, made when it is first needed.
    pub(crate) fn engine(&self) -> PyResult<Arc<Engine>> {
        self.registry.engine().map_err(|error| Python::attach(|py| error::registration(py, &error, None)))
    }

    /// The server runs in this context: what providers read is redacted in the first one, unless a request has its own.
    pub(crate) fn serves_in(&self, py: Python<'_>, context: &CallContext) {
        if let Some(redactor) = &self.redactor {
            redactor.serves_in(py, context);
        }
    }

    pub(crate) fn take_audit_records(&self, entries: &mut Vec<AuditRecord>) {
        self.registry.take_audit_records(entries);
    }

    pub(crate) fn mounts(&self) -> &Arc<Mounts> {
        self.registry.mounts()
    }

    /// The value of the server's lifespan.
    pub(crate) fn lifespan(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.lifespan).as_ref().map(|value| value.clone_ref(py))
    }

    /// Converts a refused registration, with the function that it collides with.
    pub(crate) fn refusal(&self, py: Python<'_>, error: &RegistrationError) -> PyErr {
        let first = self.registry.collides_with(error);
        let first = first.map(|functions| functions.reader.get().name.clone());
        error::registration(py, error, first.as_deref())
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.registry.visit(|functions| {
            let all = std::iter::once(&functions.reader).chain(functions.completers.values());
            for function in all.chain(functions.lister.as_ref().into_iter().chain(functions.access.as_ref()))
            {
                if result.is_ok() {
                    result = visit.call(function);
                }
            }
        });
        result?;
        visit.call(&self.spawn)?;
        visit.call(self.redactor.as_ref().map(|redactor| &redactor.function))?;
        let consumers = self.record_consumer.iter().chain(self.watch_consumer.get());
        consumers.map(|consumer| &consumer.start).try_for_each(|start| visit.call(start))?;
        match self.lifespan.try_lock() {
            Ok(value) => visit.call(&*value),
            Err(_) => Ok(()),
        }
    }

    /// The functions behind a number, unless they were removed in the meantime.
    pub(crate) fn functions(&self, id: HandlerId) -> Option<Arc<Functions>> {
        self.registry.get(id)
    }

    /// Sees to it that waiting jobs are taken. On the loop's thread, after the jobs of one read are pushed.
    pub(crate) fn kick(&self, py: Python<'_>) -> PyResult<()> {
        match self.queue.get().jobs.kick() {
            ThreadNeed::Nothing => Ok(()),
            ThreadNeed::Thread => self.start_thread(py),
        }
    }

    /// Starts a worker thread. If the system cannot, `spawn` reports that to the queue.
    pub(crate) fn start_thread(&self, py: Python<'_>) -> PyResult<()> {
        self.spawn.call1(py, (&self.queue,)).map(drop)
    }
}

/// The threads of this server end, without being waited for.
impl Drop for ServerState {
    fn drop(&mut self) {
        self.queue.get().jobs.retire();
        self.record_consumer
            .iter()
            .chain(self.watch_consumer.get())
            .for_each(|consumer| consumer.thread.close());
        // The log's thread never needs the interpreter, but a disk may be slow.
        match Python::try_attach(|py| py.detach(|| self.registry.end_audit())) {
            Some(()) => {}
            None => self.registry.end_audit(),
        }
    }
}
