//! The destination of audit records: a file, or the audit function.
//!
//! Law: writing the log never blocks a request. The function runs on a Python thread without Rust frames below it,
//! because the interpreter stops such threads wherever they are when it exits.

use crate::calls::server_state::ServerState;
use mcp_resources_engine::guard::AuditRecord;
use mcp_resources_runtime::provider::WatchChange;
use mcp_resources_runtime::transport::{AuditFile, ConsumerSignal};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

/// The value of the option `audit`.
pub(crate) enum Audit {
    File(AuditFile),
    /// Starts a thread that takes the records.
    Function(Py<PyAny>),
}

/// The changes of what clients watch, for the thread that takes them.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Watches {
    state: Weak<ServerState>,
    signal: Arc<ConsumerSignal>,
}

/// The audit records, for the thread that takes them.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Records {
    state: Weak<ServerState>,
    signal: Arc<ConsumerSignal>,
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

/// Called when the server begins to serve: starts the threads of this process that take records and changes of watches.
pub(crate) fn begin(py: Python<'_>, state: &Arc<ServerState>) -> PyResult<()> {
    if let Some(consumer) = state.watch_consumer.get() {
        let watches = |signal| Watches { state: Arc::downgrade(state), signal };
        consumer.thread.begin(|signal| consumer.start.call1(py, (watches(signal),)).map(drop))?;
    }
    let Some(consumer) = &state.record_consumer else { return Ok(()) };
    let records = |signal| Records { state: Arc::downgrade(state), signal };
    consumer.thread.begin(|signal| consumer.start.call1(py, (records(signal),)).map(drop))
}

#[pymethods]
impl Records {
    /// Waits for the next lines of JSON, oldest first. `None` ends the thread.
    fn next<'py>(&self, py: Python<'py>) -> Option<Vec<Bound<'py, PyBytes>>> {
        loop {
            let mut entries = Vec::new();
            if let Some(state) = self.state.upgrade() {
                state.take_audit_records(&mut entries);
            }
            if !entries.is_empty() {
                return Some(entries.iter().map(|entry| line(py, entry)).collect());
            }
            if !py.detach(|| self.signal.wait()) {
                return None;
            }
        }
    }
}

#[pymethods]
impl Watches {
    /// Waits for the next changes: the name of the watched function, the URI, and whether clients begin to watch it.
    /// `None` ends the thread.
    fn next(&self, py: Python<'_>) -> Option<Vec<(String, String, bool)>> {
        loop {
            let taken = self.state.upgrade().map(|state| state.mounts().take_watches()).unwrap_or_default();
            if !taken.is_empty() {
                let change = |one: &WatchChange| (one.name.to_string(), one.uri.to_string(), one.is_watched);
                return Some(taken.iter().map(change).collect());
            }
            if !py.detach(|| self.signal.wait()) {
                return None;
            }
        }
    }
}

fn line<'py>(py: Python<'py>, entry: &AuditRecord) -> Bound<'py, PyBytes> {
    let mut line = Vec::new();
    entry.write_line(&mut line);
    PyBytes::new(py, &line)
}
