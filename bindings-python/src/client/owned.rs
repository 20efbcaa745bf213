//! What belongs to the native thread of one process.
//!
//! Law: a process that was forked has no such thread, and its locks may be held for ever: there it is left alone.

use pyo3::PyResult;
use pyo3::exceptions::PyRuntimeError;

/// See the module.
pub(crate) struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    pub(crate) fn get(&self) -> PyResult<&T> {
        let own = self.value.as_ref().filter(|_| self.process == std::process::id());
        let forked = "this client belongs to the process that made it: make a new one after os.fork()";
        own.ok_or_else(|| PyRuntimeError::new_err(forked))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
