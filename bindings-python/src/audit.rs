//! Where records of requests go: to a file, or to a function of the author's.
//!
//! Law: writing the log never blocks a request. The function runs on a thread of Python's, with no frame of Rust below
//! it: when the interpreter ends, a thread inside the function dies where it stands.

use crate::server::Host;
use mcp_resources_engine::guard::AuditEntry;
use mcp_resources_host::provider::WatchChange;
use mcp_resources_host::transport::pump::RecordThread;
use mcp_resources_host::transport::{AuditFile, RecordSignal};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// What an author gave for the log.
pub(crate) enum Audit {
    File(AuditFile),
    /// Starts a thread that takes what is recorded.
    Function(Py<PyAny>),
}

/// The function's side of the log: starts its thread when the server begins to serve, in each process anew.
pub(crate) struct Recorder {
    pub(crate) start: Py<PyAny>,
    pub(crate) thread: RecordThread,
}

/// What clients watch, for the thread that takes it.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Watches {
    host: Weak<Host>,
    bell: Arc<RecordSignal>,
}

/// What was recorded, for the thread that takes it.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Records {
    host: Weak<Host>,
    bell: Arc<RecordSignal>,
}

impl Audit {
    /// A path, or a function that starts the thread.
    pub(crate) fn read(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        if given.is_callable() {
            return Ok(Self::Function(given.clone().unbind()));
        }
        match given.extract::<PathBuf>() {
            Ok(path) => Ok(Self::File(AuditFile::open(path)?)),
            Err(_) => {
                let given = given.repr()?;
                Err(PyTypeError::new_err(format!("audit is {given}, expected a path or a function")))
            }
        }
    }
}

impl Recorder {
    /// The server begins to serve: there must be a thread in this process.
    pub(crate) fn begin(&self, py: Python<'_>, host: &Arc<Host>) -> PyResult<()> {
        let records = |bell| Records { host: Arc::downgrade(host), bell };
        self.thread.begin(|bell| self.start.call1(py, (records(bell),)).map(drop))
    }

    /// The same for what clients watch.
    pub(crate) fn begin_watching(&self, py: Python<'_>, host: &Arc<Host>) -> PyResult<()> {
        let watches = |bell| Watches { host: Arc::downgrade(host), bell };
        self.thread.begin(|bell| self.start.call1(py, (watches(bell),)).map(drop))
    }
}

#[pymethods]
impl Records {
    /// The next lines of JSON, oldest first. Waits for some; `None` ends the thread.
    fn next<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        loop {
            let mut entries = Vec::new();
            if let Some(host) = self.host.upgrade() {
                host.take_records(&mut entries);
            }
            if !entries.is_empty() {
                return Some(entries.iter().map(|entry| line(py, entry)).collect());
            }
            if !py.detach(|| self.bell.wait()) {
                return None;
            }
        }
    }
}

#[pymethods]
impl Watches {
    /// The next changes: the name of what serves a URI, the URI, and whether it is watched from now on. Waits for some;
    /// `None` ends the thread.
    fn next(&self, py: Python<'_>) -> Option<Vec<(String, String, bool)>> {
        loop {
            let taken = self.host.upgrade().map(|host| host.mounts().take_watches()).unwrap_or_default();
            if !taken.is_empty() {
                let change = |one: &WatchChange| (one.name.to_string(), one.uri.to_string(), one.is_watched);
                return Some(taken.iter().map(change).collect());
            }
            if !py.detach(|| self.bell.wait()) {
                return None;
            }
        }
    }
}

fn line<'py>(py: Python<'py>, entry: &AuditEntry) -> Bound<'py, PyBytes> {
    let mut line = Vec::new();
    entry.write_line(&mut line);
    PyBytes::new(py, &line)
}
