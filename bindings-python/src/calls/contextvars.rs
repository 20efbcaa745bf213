//! The context variables (`contextvars`) of user functions: those of the request that they answer.
//!
//! Law: every function runs in a copy of the context in which its request arrived, on whichever thread. So a variable that
//! a middleware sets for one request never reaches another.

use crate::values::error::Import;
use crate::values::lock::lock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};
use std::sync::{Arc, Mutex};

static COPY: Import = Import::new("contextvars", "copy_context");

/// A `contextvars.Context`.
pub(crate) struct CallContext(Py<PyAny>);

impl CallContext {
    /// A copy of the context of this thread.
    pub(crate) fn current(py: Python<'_>) -> PyResult<Self> {
        Ok(Self(COPY.get(py)?.call0()?.unbind()))
    }

    /// A copy, for one call.
    pub(crate) fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        self.0.call_method0(py, intern!(py, "copy")).map(Self)
    }

    /// The same context.
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Self(self.0.clone_ref(py))
    }

    /// Its method `run`, which calls a function in it.
    pub(crate) fn runner<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.0.bind(py).getattr(intern!(py, "run"))
    }

    /// Calls a function in it.
    pub(crate) fn call<'py>(
        &self,
        function: &Bound<'py, PyAny>,
        positional: &Bound<'py, PyTuple>,
        keywords: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        self.runner(py)?.call(with_function(function, positional)?, keywords)
    }

    /// Runs `work` in it.
    pub(crate) fn within<R: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(Python<'_>) -> R + Send + 'static,
    ) -> PyResult<R> {
        let work = Mutex::new(Some(work));
        let done = Arc::new(Mutex::new(None));
        let result = done.clone();
        let once = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
            let work = lock(&work).take();
            let made = work.map(|work| work(arguments.py()));
            *lock(&result) = made;
        };
        let function = PyCFunction::new_closure(py, None, None, once)?;
        self.runner(py)?.call1((function,))?;
        let made = lock(&done).take();
        made.ok_or_else(|| PyRuntimeError::new_err("the context did not run the function"))
    }
}

/// The arguments of `run`: the function, then its own.
pub(crate) fn with_function<'py>(
    function: &Bound<'py, PyAny>,
    positional: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    let all = std::iter::once(function.clone()).chain(positional.iter()).collect::<Vec<_>>();
    PyTuple::new(function.py(), all)
}
