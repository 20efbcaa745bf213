//! The native HTTP server: its threads read, answer what the engine can, and write; the event loop runs the handlers.
//!
//! Law: a thread of the server never waits for the interpreter. It leaves what it has in the loop's inbox and rings a
//! bell that the loop watches, once for a batch.

use crate::auth::{TokenVerifier, VerifiedParts};
use crate::bell::{Bell, Ear};
use crate::error;
use crate::peer::Runtime;
use crate::rules;
use crate::server::Server;
use crate::web::{Way, Web};
use mcp_resources_host::transport::http as core;
use mcp_resources_host::transport::http::{HttpOptions, Running, Tls, Verdict};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct HttpServer {
    web: Arc<Web>,
    ear: Mutex<Option<Ear>>,
    running: Mutex<Option<Running>>,
}

/// A token that waits for its verifier.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Verification(Mutex<Option<Verdict>>);

#[pymethods]
impl HttpServer {
    /// On the event loop of `driver`. `options` are those of an endpoint; `verifier` is asked for tokens instead of the
    /// driver; `tls` are the files of certificate and key.
    #[new]
    #[pyo3(signature = (server, driver, options, verifier = None, tls = None))]
    fn new(
        server: &Server,
        driver: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
        verifier: Option<&TokenVerifier>,
        tls: Option<(PathBuf, PathBuf)>,
    ) -> PyResult<Self> {
        let host = server.host.clone();
        let (bell, ear) = Bell::new()?;
        let web = Web::new(Runtime::new(host.clone(), driver, true)?, bell);
        let mut given = HttpOptions::new(rules::read(options)?);
        if given.rules.auth.is_some() {
            given.verifier = Some(verifier.map_or_else(|| web.inbox.reach() as _, TokenVerifier::shared));
        }
        if let Some((certificate, key)) = tls {
            let made = Tls::from_pem(certificate, key);
            let refused = |error| error::raise(driver.py(), "RegistrationError", (format!("tls: {error}"),));
            given.tls = Some(made.map_err(refused)?);
        }
        let made = core::HttpServer::new(&host.engine()?, host.clock.clone(), given, web.host.clone());
        let made = made.map_err(|error| rules::refused(driver.py(), &error))?;
        web.settle(Way::Native(made));
        host.serve(&web);
        host.begin(driver.py())?;
        Ok(Self { web, ear: Mutex::new(Some(ear)), running: Mutex::default() })
    }

    /// Starts to listen, on threads of its own. Returns the port.
    fn listen(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<u16> {
        let listener = py.detach(|| TcpListener::bind((host, port)));
        let listener = listener.map_err(|error| unavailable(py, &error, host, port))?;
        let reach = self.web.inbox.reach();
        let Some(server) = self.web.native() else { return Ok(port) };
        let running = server.run(listener, 1, move || reach.ended())?;
        let port = running.address().port();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(port)
    }

    /// What the loop watches for threads that have something for it, once.
    fn ear(&self) -> Option<Ear> {
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// No new request comes in; what is in flight has its grace. The driver hears of the end.
    fn shutdown(&self, py: Python<'_>) {
        // A thread that holds the GIL may wait for this lock, so the lock is never held while taking the GIL.
        py.detach(|| {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.iter().for_each(Running::shutdown);
        });
    }

    /// Lets go of the threads.
    fn close(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.web.close();
    }

    /// How many handlers are suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.web.runtime.suspended()
    }
}

/// An `OSError` with its number, that says which address cannot be had, and what would help.
fn unavailable(py: Python<'_>, error: &io::Error, host: &str, port: u16) -> PyErr {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => "; stop what listens there, or choose another port (0 is any free one)",
        io::ErrorKind::PermissionDenied => "; choose a port from 1024 on",
        io::ErrorKind::AddrNotAvailable => "; use an address of this machine, such as 127.0.0.1 or 0.0.0.0",
        _ => "",
    };
    let named = |code: i32| py.import("os")?.call_method1("strerror", (code,))?.extract::<String>();
    let text = error.raw_os_error().and_then(|code| named(code).ok()).unwrap_or_else(|| error.to_string());
    let message = format!("cannot listen at {host}:{port}: {text}{remedy}");
    match error.raw_os_error() {
        Some(code) => PyOSError::new_err((code, message)),
        None => PyOSError::new_err(message),
    }
}

#[pymethods]
impl Verification {
    /// It is good.
    fn accept(&self, verified: VerifiedParts) {
        if let Some(verdict) = self.take() {
            verdict.accept(verified.into());
        }
    }

    /// It is not good, or that cannot be found out now.
    fn refuse(&self, unavailable: bool) {
        if let Some(verdict) = self.take() {
            verdict.refuse(unavailable);
        }
    }
}

impl Verification {
    pub(crate) fn new(verdict: Verdict) -> Self {
        Self(Mutex::new(Some(verdict)))
    }

    fn take(&self) -> Option<Verdict> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
