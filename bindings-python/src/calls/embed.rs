//! The `embedder` function, which makes vectors. Threads of a provider call it.

use crate::calls::redact::PROVIDER_CALLS;
use mcp_resources_providers::rag;
use pyo3::prelude::*;

/// The user's embedding function.
#[derive(Debug)]
pub(crate) struct Embedder(pub(crate) Py<PyAny>);

impl rag::Embedder for Embedder {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, String> {
        let call = |py: Python<'_>| self.0.call1(py, (texts,))?.extract(py);
        let called = PROVIDER_CALLS.begin().and_then(|_tracked| Python::try_attach(call));
        called.ok_or("the program ends")?.map_err(|error: PyErr| error.to_string())
    }
}
