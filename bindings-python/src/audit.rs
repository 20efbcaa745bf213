//! Where records of requests go: to a file, or to a function of the author's.
//!
//! Law: writing the log never blocks a request. The function runs on a thread of Python's, with no frame of Rust below
//! it: when the interpreter ends, a thread inside the function dies where it stands.

use crate::server::Host;
use mcp_resources_engine::guard::AuditEntry;
use mcp_resources_host::transport::{AuditFile, RecordBell};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::task::Waker;

/// What an author gave for the log.
pub(crate) enum Audit {
    File(AuditFile),
    /// Starts a thread that takes what is recorded.
    Function(Py<PyAny>),
}

/// The function's side of the log: starts its thread when the server begins to serve, in each process anew.
pub(crate) struct Recorder {
    start: Py<PyAny>,
    bell: Arc<RecordBell>,
    /// The process whose thread runs; 0 is none.
    process: AtomicU32,
}

/// What was recorded, for the thread that takes it.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Records {
    host: Weak<Host>,
    bell: Arc<RecordBell>,
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
    pub(crate) fn new(start: Py<PyAny>) -> Self {
        Self { start, bell: Arc::default(), process: AtomicU32::new(0) }
    }

    pub(crate) fn start_function(&self) -> &Py<PyAny> {
        &self.start
    }

    /// What wakes the thread.
    pub(crate) fn waker(&self) -> Waker {
        self.bell.clone().into()
    }

    /// The server begins to serve: there must be a thread in this process.
    pub(crate) fn begin(&self, py: Python<'_>, host: &Arc<Host>) -> PyResult<()> {
        let process = std::process::id();
        if self.process.swap(process, Ordering::AcqRel) == process {
            return Ok(());
        }
        let records = Records { host: Arc::downgrade(host), bell: self.bell.clone() };
        let started = self.start.call1(py, (records,));
        if started.is_err() {
            self.process.store(0, Ordering::Release);
        }
        started.map(drop)
    }

    fn is_running(&self) -> bool {
        self.process.load(Ordering::Acquire) == std::process::id()
    }

    /// Waits until the function has taken all that is recorded now; a second at most. Without the interpreter.
    pub(crate) fn flush(&self) {
        if self.is_running() {
            self.bell.flush();
        }
    }

    /// Ends the thread, after all that is recorded now; waits for it, a second at most. Without the interpreter.
    pub(crate) fn end(&self) {
        self.flush();
        self.close();
        if self.is_running() {
            self.bell.wait_for_end();
        }
    }

    /// Ends the thread when it is idle.
    pub(crate) fn close(&self) {
        self.bell.close();
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

fn line<'py>(py: Python<'py>, entry: &AuditEntry) -> Bound<'py, PyBytes> {
    let mut line = Vec::new();
    entry.write_line(&mut line);
    PyBytes::new(py, &line)
}
