//! `Context`: the request that a handler answers, with log messages and progress reports to its client.

use crate::calls::client::Client;
use crate::values::error::{self, Import};
use crate::values::json::{LOADS, loads};
use mcp_resources_engine::connection::{LogLevel, Reply};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::trace::TraceContext;
use mcp_resources_runtime::transport::pump::PendingReply;
use mcp_resources_runtime::transport::{Who, WorkRequest};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::borrow::Cow;
use std::sync::Arc;

static LOG: Import = Import::new("mcp_resources.log", "Log");
static INPUTS: Import = Import::new("mcp_resources.results", "inputs");
static RUNNING_LOOP: Import = Import::new("asyncio", "get_running_loop");
static REPLIED: Import = Import::new("mcp_resources.results", "replied");
static TO_JSON: Import = Import::new("mcp_resources.results", "to_json");

/// The request that a handler answers. It can be used from any thread until the request is answered. `Context[State]` says the
/// type of `lifespan`, to type checkers alone.
#[pyclass(frozen, generic, module = "mcp_resources")]
pub struct Context {
    uri: Option<String>,
    who: Who<'static>,
    client: Client,
    reply: Arc<PendingReply>,
}

impl Context {
    pub(crate) fn new(request: &WorkRequest<'_>, client: Client, reply: Arc<PendingReply>) -> Self {
        let uri = request.uri().map(str::to_owned);
        let who = request.who.clone().into_owned();
        Self { uri, who, client, reply }
    }
}

#[pymethods]
impl Context {
    /// The URI as the client wrote it; `None` if the request is not a read.
    #[getter]
    fn uri(&self) -> Option<&str> {
        self.uri.as_deref()
    }

    /// The verified identity of the client: empty on stdio, `anonymous` for HTTP clients without a token.
    #[getter]
    fn principal(&self) -> &str {
        self.who.principal()
    }

    /// The scopes of the client's token, with the scopes that they imply.
    #[getter]
    fn scopes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.who.identity().map_or(&[][..], |principal| principal.scopes()))
    }

    /// The claims of the client's token; `None` without a token or claims.
    #[getter]
    fn claims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.identity().and_then(|principal| principal.claims()))
    }

    /// The headers of the HTTP request, with lower-case names, without credentials; empty on stdio. Not verified.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        if let Some(headers) = self.who.headers() {
            headers.iter().try_for_each(|(name, _)| found.set_item(&name, headers.get(&name)))?;
        }
        Ok(found)
    }

    /// The protocol revision of the request.
    #[getter]
    fn revision(&self) -> &str {
        self.who.revision()
    }

    /// The self-description of the client, not verified; `None` if it sent none.
    #[getter]
    fn client_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.client_info())
    }

    /// The `_meta` of the request; `None` if it has none.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.meta())
    }

    /// The trace context of the request, as a carrier for OpenTelemetry propagators.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let members = PyDict::new(py);
        if let Some(meta) = self.who.meta() {
            // The text was part of a message, so the limit of nesting was checked.
            let trace = TraceContext::of_text(meta, usize::MAX);
            trace.members().try_for_each(|(name, value)| members.set_item(name, value))?;
        }
        Ok(members)
    }

    /// The client's answers to an earlier `InputRequired`, by the keys of its requests; empty at first.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        INPUTS.get(py)?.call1((self.who.inputs(),))
    }

    /// The `state` of that `InputRequired`; `None` at first.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.who.state() {
            Some(state) => LOADS.get(py)?.call1((PyBytes::new(py, state),)),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Whether the answer is no longer needed: the request was cancelled, timed out, or is answered.
    #[getter]
    fn cancelled(&self) -> bool {
        self.reply.is_cancelled()
    }

    /// Reports progress to the client, if it asked for reports. `progress` must increase.
    #[pyo3(signature = (progress, total = None, message = None))]
    fn progress(
        &self,
        py: Python<'_>,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> PyResult<()> {
        self.report(py, |reply, now| reply.progress(progress, total, message, now))
    }

    /// The value that the lifespan of the server yielded; `None` without a lifespan.
    #[getter]
    fn lifespan(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.client.runtime().state.lifespan(py)
    }

    /// Sends log messages to the client: `ctx.log("info", data)` or `ctx.log.info(data)`.
    #[getter]
    fn log<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        LOG.get(slf.py())?.call1((slf,))
    }

    /// Sends a request to a client with a revision before 2026-07-28, and waits for its result.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        params: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let params: String = TO_JSON.get(py)?.call1((params,))?.extract()?;
        let outside = |_| PyRuntimeError::new_err("ctx.ask needs an event loop: write an `async def`");
        let running = RUNNING_LOOP.get(py)?.call0().map_err(outside)?;
        let future = running.call_method0(intern!(py, "create_future"))?;
        let runtime = self.client.runtime();
        match runtime.asks.ask(self.client.peer(), method, &params, future.clone().unbind()) {
            Ok(()) => self.client.appended(py, false)?,
            Err(why) => return Err(error::raise(py, "AskFailed", (why.to_string(),))),
        }
        Ok(future)
    }

    /// The compiled part of `log`: a level, JSON text, and the name of a logger.
    #[pyo3(signature = (level, data, name = None))]
    fn send_log(&self, py: Python<'_>, level: &str, data: &str, name: Option<&str>) -> PyResult<()> {
        let level = LogLevel::parse(level).ok_or_else(|| PyValueError::new_err("no level of a log"))?;
        self.report(py, |reply, _| reply.log(level, name, data))
    }
}

impl Context {
    fn report(&self, py: Python<'_>, word: impl FnOnce(&mut Reply, Now) -> Option<Vec<u8>>) -> PyResult<()> {
        if self.reply.report(word) { self.client.appended(py, false) } else { Ok(()) }
    }
}

/// Passes a client's answer to the handler that waits for it, unless the handler has ended.
pub(crate) fn replied(
    py: Python<'_>,
    future: &Py<PyAny>,
    answer: Option<&Result<Cow<'_, str>, Cow<'_, str>>>,
) -> PyResult<()> {
    let (result, error) = match answer {
        Some(Ok(result)) => (Some(&**result), None),
        Some(Err(error)) => (None, Some(&**error)),
        None => (None, None),
    };
    REPLIED.get(py)?.call1((future, result, error)).map(drop)
}
