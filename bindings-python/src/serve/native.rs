//! The native HTTP server: its threads read, answer what the engine can, and write; the event loop runs the handlers.
//!
//! Law: a thread of the server never waits for the interpreter. It leaves its requests in the loop's inbox and wakes
//! the loop through a descriptor, once for a batch.

use crate::calls::client::Runtime;
use crate::calls::waker::Wakeup;
use crate::serve::auth::TokenVerifier;
use crate::serve::server::Server;
use crate::serve::web::Web;
use crate::values::error;
use crate::values::lock::lock;
use crate::values::rules;
use mcp_resources_runtime::transport::http as core;
use mcp_resources_runtime::transport::http::{Running, Tls};
use mcp_resources_runtime::transport::pump::HttpSide;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The native HTTP server.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct HttpServer {
    web: Arc<Web>,
    /// The descriptor that the loop watches.
    #[pyo3(get)]
    wakeup: Py<Wakeup>,
    #[pyo3(get)]
    scheme: &'static str,
    #[pyo3(get)]
    path: String,
    running: Mutex<Option<Running>>,
}

/// The files for TLS.
#[derive(FromPyObject)]
struct TlsFiles {
    #[pyo3(item(0))]
    certificate: PathBuf,
    #[pyo3(item(1))]
    key: PathBuf,
}

#[pymethods]
impl HttpServer {
    /// Makes a server on the event loop of `driver`. `options` are those of an endpoint; `verifier` verifies tokens
    /// instead of the driver; `tls` has the files of certificate and key.
    #[new]
    #[pyo3(signature = (server, driver, options, verifier = None, tls = None))]
    fn new(
        server: &Server,
        driver: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        verifier: Option<&TokenVerifier>,
        tls: Option<TlsFiles>,
    ) -> PyResult<Self> {
        let state = server.state.clone();
        let mut given = server.http_options();
        given.rules = rules::read(given.rules, options)?;
        if options.contains("auth")? {
            (given.identity, given.verifier) = (None, None);
        }
        if let Some(TlsFiles { certificate, key }) = tls {
            let made = Tls::from_pem(certificate, key);
            let refused = |error| error::raise(driver.py(), "Registration", (format!("tls: {error}"),));
            given.tls = Some(made.map_err(refused)?);
        }
        let scheme = if given.tls.is_some() { "https" } else { "http" };
        let path = given.rules.path.clone();
        let engine = state.engine()?;
        let clock = state.clock.clone();
        let runtime = Runtime::new(state, driver, true)?;
        let (web, wakeup) = Web::new(driver.py(), runtime, |inbox, event_handler| {
            if given.rules.auth.is_some() && given.verifier.is_none() {
                given.verifier = Some(verifier.map_or_else(|| inbox.reach() as _, TokenVerifier::shared));
            }
            let made = core::HttpServer::new(&engine, clock, given, event_handler);
            made.map(HttpSide::Native).map_err(|error| rules::refused(driver.py(), &error))
        })?;
        Ok(Self { web, wakeup, scheme, path, running: Mutex::default() })
    }

    /// Starts to listen, on threads of its own. Returns the port. Raises an `OSError`, with the system's error number
    /// if there is one.
    fn listen(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<u16> {
        let listeners = py.detach(|| core::listen((host, port)));
        let refused = |error: io::Error| PyOSError::new_err((error.raw_os_error(), error.to_string()));
        let listeners = listeners.map_err(refused)?;
        let reach = self.web.inbox.reach();
        let Some(server) = self.web.side.native() else { return Ok(port) };
        let running = server.run(listeners, 1, move || reach.ended())?;
        let port = running.address().port();
        *lock(&self.running) = Some(running);
        Ok(port)
    }

    /// Accepts no further requests; those in flight get the grace period. The driver is called at the end.
    fn shutdown(&self, py: Python<'_>) {
        // A thread that holds the GIL may wait for this lock, so the lock is never held while taking the GIL.
        py.detach(|| {
            let running = lock(&self.running);
            running.iter().for_each(Running::shutdown);
        });
    }

    /// Drops the threads.
    fn close(&self) {
        lock(&self.running).take();
        self.web.close();
    }

    /// The number of handlers suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.web.runtime.tasks.len()
    }
}
