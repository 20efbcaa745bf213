//! HTTP without a socket: the methods that an ASGI server calls. The core has every rule; this module passes on its
//! turns.

use crate::calls::client::{DeliveryReady, Runtime};
use crate::calls::waker::{Wakeup, delivering};
use crate::serve::auth::VerifiedParts;
use crate::serve::server::Server;
use crate::serve::web::{HeadParts, TurnParts, Web, WebPeer, head_parts, seconds};
use crate::values::error;
use crate::values::lock::lock;
use crate::values::rules;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::{DeniedToken, RequestHead, Verified};
use mcp_resources_runtime::transport::EngineClock;
use mcp_resources_runtime::transport::http::session_ids;
use mcp_resources_runtime::transport::pump::HttpSide;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::{Arc, Mutex};

/// A response that is complete: its head and body.
type ResponseParts<'py> = (HeadParts, Bound<'py, PyBytes>);
/// An endpoint on the event loop of its driver.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Endpoint {
    web: Arc<Web>,
    /// The descriptor that the loop watches.
    #[pyo3(get)]
    wakeup: Py<Wakeup>,
}

/// A request whose head may come in.
#[pyclass(module = "mcp_resources._core")]
pub struct Admitted(Option<(core::Admitted, Arc<EngineClock>)>);

/// A request whose head has passed: what remains is its body.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Identified(core::Identified);

/// A body that comes in several parts.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Receiving(Mutex<Option<core::Receiving>>);

/// A response that is being made.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Exchange(Arc<WebPeer>);

/// The result of an admission.
#[derive(IntoPyObject)]
pub(crate) enum Admission<'py> {
    Admitted(Bound<'py, Admitted>),
    Refused(ResponseParts<'py>),
}

/// The result of an identification.
#[derive(IntoPyObject)]
pub(crate) enum Identification<'py> {
    Identified(Bound<'py, Identified>),
    Refused(ResponseParts<'py>),
}

#[pymethods]
impl Endpoint {
    #[new]
    fn new(server: &Server, driver: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let state = server.state.clone();
        let rules = server.embedded_rules(options.py(), options.contains("auth")?)?;
        let endpoint = core::Endpoint::new(state.engine()?, rules::read(rules, options)?, session_ids());
        let endpoint = endpoint.map_err(|error| rules::refused(driver.py(), &error))?;
        let runtime = Runtime::new(state, driver, true)?;
        let (web, wakeup) = Web::new(driver.py(), runtime, |_, _| Ok(HttpSide::Loop(endpoint)))?;
        Ok(Self { web, wakeup })
    }

    /// Raises if an option has a value that is not allowed.
    #[staticmethod]
    fn check(server: &Server, options: &Bound<'_, PyDict>) -> PyResult<()> {
        let rules = server.embedded_rules(options.py(), options.contains("auth")?)?;
        let made = core::Endpoint::new(server.state.engine()?, rules::read(rules, options)?, session_ids());
        made.map(drop).map_err(|error| rules::refused(options.py(), &error))
    }

    /// Checks the head of a request: its verb, its target, and the path under which the target is mounted. `client` is
    /// the sender's address, if known.
    fn admit<'py>(
        &self,
        py: Python<'py>,
        verb: &str,
        target: &str,
        mount: &str,
        headers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
        client: Option<&str>,
    ) -> PyResult<Admission<'py>> {
        let read = |(name, value): &'_ (Bound<'py, PyBytes>, Bound<'py, PyBytes>)| {
            (String::from_utf8_lossy(name.as_bytes()).into_owned(), value.as_bytes().to_vec())
        };
        let headers: Vec<_> = headers.iter().map(read).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        let client = client.and_then(|address| address.parse().ok());
        let endpoint = self.web.side.endpoint();
        let clock = &self.web.runtime.state.clock;
        match endpoint.admit(&RequestHead { verb, target, headers: &headers, client, mount }, clock.now()) {
            Ok(admitted) => {
                let admitted = Admitted(Some((admitted, clock.clone())));
                Ok(Admission::Admitted(Bound::new(py, admitted)?))
            }
            Err(response) => {
                if let Some(advice) = endpoint.advice(&response, clock.now()) {
                    error::log(py, &error::REFUSED, (advice,));
                }
                Ok(Admission::Refused(response_parts(py, response)))
            }
        }
    }

    /// Takes a request with its body. Handlers run, or are started.
    fn open<'py>(
        &self,
        py: Python<'py>,
        request: &Identified,
        body: &[u8],
    ) -> PyResult<(Exchange, TurnParts<'py>)> {
        let now = self.web.runtime.state.clock.now();
        let mut out = Vec::new();
        let opened = self.web.side.endpoint().open(&request.0, body, now, &mut out);
        let core::OpenedRequest { turn, exchange } = opened;
        let own = self.web.client(py, turn.connection, exchange)?;
        let parts = self.web.turn(py, turn, &out, &own)?;
        Ok((Exchange(own), parts))
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.web.timer.fired();
        let endpoint = self.web.side.endpoint();
        let now = self.web.runtime.state.clock.now();
        delivering(py, || endpoint.engine().tick(now))?;
        self.web.turns(py, endpoint.tick(now))?;
        self.web.rearm(py)
    }

    /// Ends the listens and streams of notifications of this endpoint.
    fn shutdown(&self) {
        self.web.side.endpoint().shutdown();
    }

    /// Ends every session and cancels the requests in flight.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let turns = self.web.side.endpoint().close(self.web.runtime.state.clock.now());
        self.web.turns(py, turns)
    }
}

#[pymethods]
impl Admitted {
    /// The bearer token to verify; `None` if none is required.
    #[getter]
    fn token(&self) -> Option<&str> {
        self.0.as_ref().and_then(|(admitted, _)| admitted.token())
    }

    /// Continues with the sender: the verified token, or `None` if none is required. `denied`: the token is invalid
    /// (`False`), or could not be verified (`True`).
    #[pyo3(signature = (verified = None, denied = None))]
    fn identify<'py>(
        &mut self,
        py: Python<'py>,
        verified: Option<VerifiedParts>,
        denied: Option<bool>,
    ) -> PyResult<Identification<'py>> {
        let again = || PyRuntimeError::new_err("the request is identified already");
        let admitted = self.0.take().ok_or_else(again)?;
        let who = DeniedToken::unless(verified.map(Verified::from), denied);
        Ok(match admitted.0.identify(who, admitted.1.now()) {
            Ok(identified) => Identification::Identified(Bound::new(py, Identified(identified))?),
            Err(response) => Identification::Refused(response_parts(py, response)),
        })
    }
}

#[pymethods]
impl Identified {
    /// Maximum number of bytes of the body to read.
    #[getter]
    fn body_limit(&self) -> usize {
        self.0.body_limit()
    }

    /// The response to a longer body.
    fn too_large<'py>(&self, py: Python<'py>) -> ResponseParts<'py> {
        response_parts(py, self.0.too_large())
    }

    /// Maximum time to wait for the whole body, in seconds.
    #[getter]
    fn body_timeout(&self) -> f64 {
        seconds(self.0.body_timeout())
    }

    /// The response to a body that takes longer.
    fn too_late<'py>(&self, py: Python<'py>) -> ResponseParts<'py> {
        response_parts(py, self.0.too_late())
    }

    /// Counts a body that comes in several parts.
    fn receiving(&self) -> Receiving {
        Receiving(Mutex::new(Some(self.0.receiving())))
    }
}

#[pymethods]
impl Receiving {
    /// Counts further bytes. The response to send instead of reading on, if it is too much.
    fn take<'py>(&self, py: Python<'py>, bytes: usize) -> Option<ResponseParts<'py>> {
        let mut receiving = lock(&self.0);
        let refused = receiving.as_mut()?.take(bytes).err()?;
        Some(response_parts(py, refused))
    }

    /// Releases the bytes counted so far: the body is complete, or reading has stopped.
    fn close(&self) {
        lock(&self.0).take();
    }
}

#[pymethods]
impl Exchange {
    /// Has `callback` called once on the loop, when there is something to deliver.
    fn register(&self, callback: Py<PyAny>) {
        if let Some(exchange) = self.0.peer.http() {
            exchange.register(&self.0.web.inbox.waker(DeliveryReady(Arc::new(callback))));
        }
    }

    /// Takes unsent output for the client, up to about `room` bytes.
    fn deliver<'py>(&self, py: Python<'py>, room: usize) -> PyResult<TurnParts<'py>> {
        let Some(exchange) = self.0.peer.http() else {
            return Ok((None, PyBytes::new(py, b""), true, false));
        };
        let mut out = Vec::new();
        let turn = exchange.deliver(room, self.0.web.runtime.state.clock.now(), &mut out);
        self.0.web.turn(py, turn, &out, &self.0)
    }

    /// In how many seconds `deliver` must be called at the latest.
    #[getter]
    fn deadline(&self) -> Option<f64> {
        let deadline = self.0.peer.http()?.deadline()?;
        Some(seconds(deadline.saturating_sub(self.0.web.runtime.state.clock.now().tick)))
    }

    /// The client is gone.
    fn closed(&self, py: Python<'_>) -> PyResult<()> {
        let Some(exchange) = self.0.peer.http() else { return Ok(()) };
        let turn = exchange.closed(self.0.web.runtime.state.clock.now());
        self.0.web.turn(py, turn, &[], &self.0).map(drop)
    }
}

fn response_parts(py: Python<'_>, response: core::Response) -> ResponseParts<'_> {
    (head_parts(response.head), PyBytes::new(py, &response.body))
}
