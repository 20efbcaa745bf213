//! A request whose handler is still at work: what is told its outcome, from the loop or from a worker thread.

use crate::bell::delivering;
use crate::convert::{Gather, Given};
use crate::error;
use crate::function::Function;
use crate::peer::Client;
use mcp_resources_engine::connection::{Cancelled, Encoded, Reply, RequestToken};
use mcp_resources_engine::error::Purpose;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An answer whose contents are larger is worded without the interpreter.
const LARGE: usize = 32 * 1024;

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Pending {
    pub(crate) client: Client,
    pub(crate) token: RequestToken,
    pub(crate) purpose: Purpose,
    pub(crate) function: Py<Function>,
    /// What is asked, for the author's log.
    pub(crate) what: String,
    pub(crate) slot: Arc<Slot>,
}

/// The reply that a handler's reports and its answer share. It is gone once the answer is there.
pub(crate) struct Slot {
    pub(crate) cancelled: Cancelled,
    reply: Mutex<Option<Reply>>,
}

#[pymethods]
impl Pending {
    /// The task is done.
    fn __call__(&self, py: Python<'_>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        self.client.runtime().take_task(self.client.peer().connection(), self.token);
        let result = task.call_method0(intern!(py, "result"));
        self.finish(py, result, false)
    }

    /// The worker has a result.
    fn succeed(&self, py: Python<'_>, result: Bound<'_, PyAny>) -> PyResult<()> {
        if self.client.runtime().host.queue.get().jobs.handled() {
            self.finish(py, Ok(result), true)
        } else {
            Ok(())
        }
    }

    /// The worker has an exception.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        let error = Err(PyErr::from_value(error));
        if self.client.runtime().host.queue.get().jobs.handled() {
            self.finish(py, error, true)
        } else {
            Ok(())
        }
    }
}

impl Pending {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.slot.cancelled.get()
    }

    /// Nobody waits for an answer, and no handler has started.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.client.peer().abandon(self.token);
        self.client.appended(py, true)
    }

    /// Words the outcome and appends it.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        by_worker: bool,
    ) -> PyResult<()> {
        let function = self.function.get();
        let given = Given::new(self.purpose, function, &self.what, result, py);
        let redact = self.client.runtime().host.redactor.as_deref();
        let given = given.redacted(redact, function, &self.what, py);
        self.give(py, given, by_worker)
    }

    /// Encodes an answer and appends it.
    pub(crate) fn give(&self, py: Python<'_>, given: Given, by_worker: bool) -> PyResult<()> {
        let now = self.client.runtime().host.clock.now();
        if let Some(reply) = self.slot.take() {
            let is_large = given.size() > LARGE;
            let word = move || given.answer(|answer| reply.encode(answer, now));
            let mut encoded: Encoded = if is_large { py.detach(word) } else { word() };
            // Before the client can have the answer.
            if let Some(misuse) = encoded.misuse.take() {
                error::log_misuse(py, &self.function.get().name, &misuse);
            }
            let outcome = delivering(py, || self.client.peer().finish(encoded))?;
            if !outcome.events.is_empty() {
                self.client.peer().handle(outcome.events);
            }
        }
        self.client.appended(py, by_worker)
    }
}

impl Slot {
    pub(crate) fn new(reply: Reply) -> Arc<Self> {
        Arc::new(Self { cancelled: reply.cancelled(), reply: Mutex::new(Some(reply)) })
    }

    /// Lets `report` word something about the request, if it is still unanswered.
    pub(crate) fn report(&self, report: impl FnOnce(&mut Reply) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        self.lock().as_mut().and_then(report)
    }

    /// What the chunks of a generator are pushed into.
    pub(crate) fn gather(&self) -> Option<Gather> {
        self.lock().as_ref().map(|reply| Gather::new(reply.gather(), self.cancelled.clone()))
    }

    fn take(&self) -> Option<Reply> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Reply>> {
        self.reply.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
