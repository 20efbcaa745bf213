//! Where records of requests go: to a file, or to a function of the author's.
//!
//! Law: the function is called on the log's own thread, which waits for the interpreter; nobody who serves waits for it.

use crate::error::Import;
use mcp_resources::guard::AuditEntry;
use mcp_resources::transport::{AuditFile, AuditSink};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::io;
use std::path::PathBuf;

static LOADS: Import = Import::new("json", "loads");
static UNRECORDED: Import = Import::new("mcp_resources.log", "unrecorded");

/// What an author gave for the log: a path, or what can be called.
pub(crate) fn sink(given: &Bound<'_, PyAny>) -> PyResult<Box<dyn AuditSink>> {
    if given.is_callable() {
        return Ok(Box::new(Calls(given.clone().unbind())));
    }
    match given.extract::<PathBuf>() {
        Ok(path) => Ok(Box::new(AuditFile::open(path)?)),
        Err(_) => Err(PyTypeError::new_err("audit is neither a path nor a function")),
    }
}

/// A function that takes each entry as a `dict`.
struct Calls(Py<PyAny>);

impl AuditSink for Calls {
    fn take(&mut self, entries: &[AuditEntry]) -> io::Result<()> {
        Python::attach(|py| {
            for entry in entries {
                if let Err(error) = self.call(py, entry) {
                    // The log of the author is gone too: the interpreter ends.
                    let _ = UNRECORDED.get(py).and_then(|log| log.call1((error.into_value(py),)));
                }
            }
        });
        Ok(())
    }
}

impl Calls {
    fn call(&self, py: Python<'_>, entry: &AuditEntry) -> PyResult<()> {
        let mut line = Vec::new();
        entry.write_line(&mut line);
        let entry = LOADS.get(py)?.call1((line.as_slice(),))?;
        self.0.call1(py, (entry,)).map(drop)
    }
}
