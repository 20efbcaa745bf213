//! The Python binding: a list of exports.

use pyo3::prelude::*;

/// A
#[pyclass(frozen)]
pub struct A {
    #[pyo3(get)]
    x: i32,
}

#[pymethods]
impl A {
    #[new]
    #[pyo3(signature = (x, **kw), text_signature = "(x, *, a=None)")]
    fn new(x: i32, kw: Option<&Bound<'_, pyo3::types::PyDict>>) -> Self {
        let _ = kw;
        A { x }
    }
    fn f(&self, py: Python<'_>) -> i32 {
        py.detach(|| self.x)
    }
}

/// The core
#[pymodule(gil_used = false)]
mod _core {
    #[pymodule_export]
    use super::A;
}
