//! A request whose handler is still at work: what takes its outcome, from the loop or from a worker thread.

use crate::convert::HandlerResult;
use crate::error;
use crate::function::Function;
use crate::peer::Client;
use crate::waker::delivering;
use mcp_resources_engine::connection::Encoded;
use mcp_resources_engine::error::Purpose;
use mcp_resources_host::transport::pump::PendingReply;
use pyo3::intern;
use pyo3::prelude::*;
use std::sync::Arc;

/// An answer whose contents are larger is worded without the interpreter.
const LARGE: usize = 32 * 1024;

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Pending {
    pub(crate) client: Client,
    pub(crate) purpose: Purpose,
    pub(crate) function: Py<Function>,
    /// What is asked, for the author's log.
    pub(crate) what: String,
    pub(crate) reply: Arc<PendingReply>,
}

#[pymethods]
impl Pending {
    /// The task is done.
    fn __call__(&self, py: Python<'_>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        self.client.runtime().tasks.take(self.client.peer().connection(), self.reply.token());
        let result = task.call_method0(intern!(py, "result"));
        if result.is_err() && !self.reply.is_cancelled() {
            error::log(py, &error::CANCELLED, (&self.function.get().name, &self.what, task));
        }
        self.finish(py, result, false)
    }

    /// The worker has a result.
    fn succeed(&self, py: Python<'_>, result: Bound<'_, PyAny>) -> PyResult<()> {
        self.handled(py, Ok(result))
    }

    /// The worker has an exception.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.handled(py, Err(PyErr::from_value(error)))
    }
}

impl Pending {
    /// No client waits for an answer, and no handler has started.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.client.peer().abandon(self.reply.token());
        self.client.appended(py, true)
    }

    /// A worker has called the function.
    fn handled(&self, py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let is_of_interest = self.client.runtime().host.queue.get().jobs.handled();
        if is_of_interest { self.finish(py, result, true) } else { Ok(()) }
    }

    /// Words the outcome and appends it.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        by_worker: bool,
    ) -> PyResult<()> {
        let host = &self.client.runtime().host;
        let given = HandlerResult::new(self.purpose, self.function.get(), &self.what, result, host, py);
        self.give(py, given, by_worker)
    }

    /// Encodes an answer and appends it.
    pub(crate) fn give(&self, py: Python<'_>, given: HandlerResult, by_worker: bool) -> PyResult<()> {
        let now = self.client.peer().now();
        if let Some(reply) = self.reply.take() {
            let is_large = given.size() > LARGE;
            let word = move || given.answer(|answer| reply.encode(answer, now));
            let mut encoded: Encoded = if is_large { py.detach(word) } else { word() };
            // Before the client can have the answer.
            if let Some(misuse) = encoded.misuse.take() {
                error::log(py, &error::MISUSED, (&self.function.get().name, misuse));
            }
            let outcome = delivering(py, || self.client.peer().finish(encoded))?;
            if !outcome.events.is_empty() {
                self.client.peer().handle(outcome.events);
            }
        }
        self.client.appended(py, by_worker)
    }
}
