//! A request whose handler is still running: takes its outcome, from the event loop or from a worker thread.

use crate::calls::client::{Client, DeliveryReady};
use crate::calls::contextvars::CallContext;
use crate::calls::function::Function;
use crate::calls::outcome::EndedCall;
use crate::calls::waker::delivering;
use crate::values::contents::{Gather, HandlerResult, is_plain};
use crate::values::error::{self, Import};
use mcp_resources_engine::connection::EncodedReply;
use mcp_resources_engine::error::ErrorPurpose;
use mcp_resources_runtime::transport::pump::PendingReply;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Arc;

static UNFINISHED: Import = Import::new("mcp_resources.functions", "is_unfinished");
static FINISHED: Import = Import::new("mcp_resources.functions", "finished");
static PARTIAL: Import = Import::new("functools", "partial");

/// An answer whose contents are larger is worded without the interpreter.
const LARGE: usize = 32 * 1024;

/// A request whose handler is still running.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Pending {
    pub(crate) client: Client,
    pub(crate) purpose: ErrorPurpose,
    pub(crate) function: Py<Function>,
    /// The name of the request, for the log.
    pub(crate) what: String,
    /// The context in which the function runs and its result is converted.
    pub(crate) context: CallContext,
    pub(crate) reply: Arc<PendingReply>,
}

#[pymethods]
impl Pending {
    /// The task is done.
    fn __call__(slf: &Bound<'_, Self>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let own = slf.get();
        let py = slf.py();
        own.client.runtime().tasks.take(own.client.peer().connection(), own.reply.token());
        let result = task.call_method0(intern!(py, "result"));
        if let Some(value) = result.as_ref().ok().filter(|value| is_unfinished(own.purpose, value)) {
            return Self::finish_later(slf, value);
        }
        if result.is_err() && !own.reply.is_cancelled() {
            error::log(py, &error::CANCELLED, (&own.function.get().name, &own.what, task));
        }
        own.finish(py, result, false)
    }

    /// Collects the chunks of a generator that the function has returned; `None` if it is no read.
    fn gather(&self) -> Option<Gather> {
        let gather = if self.purpose == ErrorPurpose::Read { self.reply.gather() } else { None };
        gather.map(|(gather, cancelled)| Gather::new(gather, cancelled))
    }

    /// The worker has a result.
    fn succeed(slf: &Bound<'_, Self>, result: Bound<'_, PyAny>) -> PyResult<()> {
        let own = slf.get();
        let py = slf.py();
        if !is_unfinished(own.purpose, &result) {
            return own.handled(py, Ok(result));
        }
        // Only the event loop can await it.
        if own.client.runtime().state.queue.get().jobs.handled() {
            let later = PARTIAL.get(py)?.call1((slf.getattr(intern!(py, "finish_later"))?, result))?;
            own.client.leave(DeliveryReady(Arc::new(later.unbind())));
        }
        Ok(())
    }

    /// Awaits the function's return value on the loop, and answers with the result.
    pub(crate) fn finish_later(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let own = slf.get();
        let started = FINISHED
            .get(slf.py())?
            .call1((value, own.gather()))
            .and_then(|coroutine| own.client.runtime().start(&own.context, &coroutine, own.function.get()));
        match started {
            Ok(task) => Self::follow(slf, &task),
            Err(error) => own.finish(slf.py(), Err(error), false),
        }
    }

    /// The worker has an exception.
    fn fail(&self, py: Python<'_>, error: Bound<'_, PyAny>) -> PyResult<()> {
        self.handled(py, Err(PyErr::from_value(error)))
    }
}

impl Pending {
    /// Answers with the result of a task, unless the request is cancelled first.
    pub(crate) fn follow(slf: &Bound<'_, Self>, task: &Bound<'_, PyAny>) -> PyResult<()> {
        let own = slf.get();
        let py = slf.py();
        let runtime = own.client.runtime();
        let connection = own.client.peer().connection();
        if own.reply.is_cancelled() {
            task.call_method0(intern!(py, "cancel"))?;
        }
        if runtime.tasks.insert(connection, own.reply.token(), task.clone().unbind()) {
            runtime.drive(py, "suspended", ())?;
        }
        task.call_method1(intern!(py, "add_done_callback"), (slf,))?;
        Ok(())
    }

    /// No client waits for an answer, and no handler has started.
    pub(crate) fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.client.peer().abandon(self.reply.token());
        self.client.appended(py, true)
    }

    /// A worker has called the function.
    fn handled(&self, py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) -> PyResult<()> {
        let is_of_interest = self.client.runtime().state.queue.get().jobs.handled();
        if is_of_interest { self.finish(py, result, true) } else { Ok(()) }
    }

    /// Words the outcome and appends it.
    pub(crate) fn finish(
        &self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        by_worker: bool,
    ) -> PyResult<()> {
        let ended = EndedCall {
            purpose: self.purpose,
            function: &self.function,
            what: &self.what,
            context: &self.context,
            redactor: self.client.runtime().state.redactor.as_ref(),
        };
        self.give(py, ended.read(py, result), by_worker)
    }

    /// Encodes an answer and appends it.
    pub(crate) fn give(&self, py: Python<'_>, given: HandlerResult, by_worker: bool) -> PyResult<()> {
        let now = self.client.peer().now();
        if let Some(reply) = self.reply.take() {
            let is_large = given.size() > LARGE;
            let word = move || given.answer(|answer| reply.encode(answer, now));
            let mut encoded: EncodedReply = if is_large { py.detach(word) } else { word() };
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

/// Whether a function has returned something that must be awaited or run before it is a result: an awaitable, an
/// asynchronous iterator or, from a read, a generator. That happens behind decorators and lambdas.
pub(crate) fn is_unfinished(purpose: ErrorPurpose, value: &Bound<'_, PyAny>) -> bool {
    if is_plain(value) || value.is_exact_instance_of::<PyDict>() {
        return false;
    }
    let asked =
        UNFINISHED.get(value.py()).and_then(|test| test.call1((value, purpose == ErrorPurpose::Read)));
    asked.and_then(|is| is.extract()).unwrap_or(false)
}
