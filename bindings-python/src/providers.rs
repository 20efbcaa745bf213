//! Providers, as authors hold them.

use crate::bell::delivering;
use crate::convert::Data;
use crate::error::shown;
use crate::options::{convert, refused};
use mcp_resources_host::provider;
use mcp_resources_providers::declared::Set;
use mcp_resources_providers::memory as folders;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use std::sync::Arc;

/// A source of resources for `ResourceServer.mount`.
#[pyclass(frozen, subclass, module = "mcp_resources.providers")]
pub struct Provider {
    pub(crate) provider: Arc<dyn provider::Provider>,
    kind: String,
}

/// A folder in memory: `memory:///{+path}`.
#[pyclass(frozen, extends = Provider, module = "mcp_resources.providers")]
pub struct Memory(folders::Memory);

/// A provider of this kind, with its options by their names.
#[pyfunction]
pub(crate) fn declared(kind: &str, options: &Bound<'_, PyAny>) -> PyResult<Provider> {
    let mut set = Set::new();
    set.add(kind, convert(options)?).map_err(|error| refused(kind, options, &error))?;
    let provider = set.providers().pop().ok_or_else(|| PyTypeError::new_err(format!("no {kind}")))?;
    Ok(Provider { provider, kind: kind.into() })
}

/// An empty folder in memory.
#[pyfunction]
pub(crate) fn memory(py: Python<'_>) -> PyResult<Py<Memory>> {
    let folder = folders::Memory::new();
    let provider = Provider { provider: Arc::new(folder.clone()), kind: "memory".into() };
    Py::new(py, PyClassInitializer::from(provider).add_subclass(Memory(folder)))
}

#[pymethods]
impl Provider {
    fn __repr__(&self) -> String {
        format!("<provider {}>", self.kind)
    }
}

#[pymethods]
impl Memory {
    /// Puts a text or bytes at a path, in the place of what was there.
    #[pyo3(signature = (path, body, mime_type = None))]
    fn put(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        mime_type: Option<PyBackedStr>,
    ) -> PyResult<()> {
        let path = text(path)?;
        let refused = || {
            let given = shown(body);
            PyTypeError::new_err(format!("{}: the body is {given}, expected a text or bytes", &*path))
        };
        let body = Data::read(body)?.ok_or_else(refused)?;
        let (folder, mime_type) = (&self.0, mime_type.as_deref());
        let put = || match &body {
            Data::Text(text) => folder.put_text(&path, &**text, mime_type),
            Data::Bytes(bytes) => folder.put_bytes(&path, &**bytes, mime_type),
            Data::Copied(bytes) => folder.put_bytes(&path, &**bytes, mime_type),
        };
        delivering(py, || py.detach(put))
    }

    /// Takes out what is at a path. `False` if nothing is.
    fn remove(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
        let path = text(path)?;
        delivering(py, || py.detach(|| self.0.remove(&path)))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.len())
    }
}

/// The path of an entry.
fn text(path: &Bound<'_, PyAny>) -> PyResult<PyBackedStr> {
    let refused = |_| {
        let given = shown(path);
        PyTypeError::new_err(format!("path is {given}, expected a text such as \"notes/today.md\""))
    };
    path.extract().map_err(refused)
}
