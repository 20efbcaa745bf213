//! What a handler is told about its request, and what it can tell the client before it answers.

use crate::error::{self, Import};
use crate::peer::Client;
use mcp_resources_engine::connection::{LogLevel, Reply};
use mcp_resources_engine::now::Now;
use mcp_resources_engine::trace::TraceContext;
use mcp_resources_host::transport::pump::PendingReply;
use mcp_resources_host::transport::{Request, Who};
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
static LOADS: Import = Import::new("json", "loads");

/// The request that a handler answers. Usable from any thread while it does.
#[pyclass(frozen, module = "mcp_resources")]
pub struct Context {
    uri: Option<String>,
    who: Who<'static>,
    client: Client,
    reply: Arc<PendingReply>,
}

impl Context {
    pub(crate) fn new(request: &Request<'_>, client: Client, reply: Arc<PendingReply>) -> Self {
        let (uri, who) = (request.uri().map(str::to_owned), request.who.clone().into_owned());
        Self { uri, who, client, reply }
    }
}

#[pymethods]
impl Context {
    /// The URI as the client spelled it; `None` outside of reads.
    #[getter]
    fn uri(&self) -> Option<&str> {
        self.uri.as_deref()
    }

    /// The identity that the transport verified: empty for the local process, `anonymous` for an HTTP client without a token.
    #[getter]
    fn principal(&self) -> &str {
        self.who.principal()
    }

    /// The scopes of the caller's token, with those that they include.
    #[getter]
    fn scopes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.who.identity().map_or(&[][..], |principal| principal.scopes()))
    }

    /// The claims of the caller's token; `None` if there are none.
    #[getter]
    fn claims<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.identity().and_then(|principal| principal.claims()))
    }

    /// The headers of the HTTP request by lower-case names, without credentials; empty over a pipe. None is verified.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let found = PyDict::new(py);
        if let Some(headers) = self.who.headers() {
            headers.iter().try_for_each(|(name, _)| found.set_item(&name, headers.get(&name)))?;
        }
        Ok(found)
    }

    /// The revision of the protocol that the request is served under.
    #[getter]
    fn revision(&self) -> &str {
        self.who.revision()
    }

    /// What the client says of itself, unverified; `None` if nothing.
    #[getter]
    fn client_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.client_info())
    }

    /// `_meta` of the request; `None` if it has none.
    #[getter]
    fn meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loads(py, self.who.meta())
    }

    /// The trace that the request belongs to: a carrier for propagators of OpenTelemetry.
    #[getter]
    fn trace<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let members = PyDict::new(py);
        if let Some(meta) = self.who.meta() {
            // The text was part of a message: its nesting is bounded.
            let trace = TraceContext::of_text(meta, usize::MAX);
            trace.members().try_for_each(|(name, value)| members.set_item(name, value))?;
        }
        Ok(members)
    }

    /// The client's answers to an earlier `InputRequired`, by key.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        INPUTS.get(py)?.call1((self.who.inputs(),))
    }

    /// The state given with that `InputRequired`; `None` at first.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.who.state() {
            Some(state) => LOADS.get(py)?.call1((PyBytes::new(py, state),)),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Whether nobody waits for the answer any longer: the request was cancelled, or has run out of time.
    #[getter]
    fn cancelled(&self) -> bool {
        self.reply.is_cancelled()
    }

    /// Tells the client, if it asked for that, how far the handler is. `progress` must grow.
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

    /// What the server's lifespan gave; `None` without one.
    #[getter]
    fn lifespan(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.client.runtime().host.lifespan(py)
    }

    /// Logs to the client: `ctx.log("info", …)` or `ctx.log.info(…)`.
    #[getter]
    fn log<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        LOG.get(slf.py())?.call1((slf,))
    }

    /// Sends a request to a client of a legacy revision and waits for its result.
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

    /// What `log` does with a level, JSON text and the name of a logger.
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

/// Gives a client's answer to the handler that waits for it, unless that is gone.
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

/// The value of a JSON text.
pub(crate) fn loads<'py>(py: Python<'py>, text: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    match text {
        Some(text) => LOADS.get(py)?.call1((text,)),
        None => Ok(py.None().into_bound(py)),
    }
}
