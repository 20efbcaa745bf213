//! Providers, for Python.

use crate::calls::embed::Embedder;
use crate::calls::waker::delivering;
use crate::values::contents::Data;
use crate::values::error::shown;
use crate::values::options::{convert, refused, set};
use mcp_resources_providers::declared::one;
use mcp_resources_providers::rag::Rag;
use mcp_resources_providers::registry::ProviderSet;
use mcp_resources_providers::results::{Content, PutOptions, Results, ResultsError};
use mcp_resources_providers::{memory as folders, metrics as series};
use mcp_resources_runtime::provider;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyString};
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

/// Series of numbers: `metrics:///{name}`.
#[pyclass(frozen, extends = Provider, module = "mcp_resources.providers")]
pub struct Metrics(series::Metrics);

/// A cache of results. `providers.Results` adds what waits.
#[pyclass(frozen, subclass, extends = Provider, module = "mcp_resources._core")]
pub struct ResultCache(Results);

/// A provider of this kind, with its options by their names.
#[pyfunction]
pub(crate) fn declared(kind: &str, options: &Bound<'_, PyAny>) -> PyResult<Provider> {
    let mut set = ProviderSet::new();
    set.add(kind, convert(options)?).map_err(|error| refused(kind, options, &error))?;
    let provider = set.providers().pop().ok_or_else(|| PyTypeError::new_err(format!("no {kind}")))?;
    Ok(Provider { provider, kind: kind.into() })
}

/// Documents that are found by vectors too, with their options by their names.
#[pyfunction]
pub(crate) fn embedded(options: &Bound<'_, PyAny>, embedder: Py<PyAny>) -> PyResult<Provider> {
    let own: Rag = one(convert(options)?).map_err(|error| refused("rag", options, &error))?;
    let provider = Arc::new(own.with_embedder(Arc::new(Embedder(embedder))));
    Ok(Provider { provider, kind: "rag".into() })
}

/// An empty folder in memory.
#[pyfunction]
pub(crate) fn memory(py: Python<'_>) -> PyResult<Py<Memory>> {
    let folder = folders::Memory::new();
    let provider = Provider { provider: Arc::new(folder.clone()), kind: "memory".into() };
    Py::new(py, PyClassInitializer::from(provider).add_subclass(Memory(folder)))
}

/// Series of numbers, with their options by their names.
#[pyfunction]
pub(crate) fn metrics(py: Python<'_>, options: &Bound<'_, PyAny>) -> PyResult<Py<Metrics>> {
    let own: series::Metrics = one(convert(options)?).map_err(|error| refused("metrics", options, &error))?;
    let provider = Provider { provider: Arc::new(own.clone()), kind: "metrics".into() };
    Py::new(py, PyClassInitializer::from(provider).add_subclass(Metrics(own)))
}

#[pymethods]
impl Provider {
    fn __repr__(&self) -> String {
        format!("<provider {}>", self.kind)
    }
}

#[pymethods]
impl Memory {
    /// Stores a text or bytes at a path, and replaces an earlier entry.
    #[pyo3(signature = (path, body, mime_type = None))]
    fn put(
        &self,
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        mime_type: Option<PyBackedStr>,
    ) -> PyResult<()> {
        let path = text(path, "path", "notes/today.md")?;
        let body = data(&path, body)?;
        let folder = &self.0;
        let mime_type = mime_type.as_deref();
        let put = || match &body {
            Data::Text(text) => folder.put_text(&path, &**text, mime_type),
            Data::Bytes(bytes) => folder.put_bytes(&path, &**bytes, mime_type),
        };
        delivering(py, || py.detach(put))
    }

    /// Removes the entry at a path. `False` if there is none.
    fn remove(&self, py: Python<'_>, path: &Bound<'_, PyAny>) -> PyResult<bool> {
        let path = text(path, "path", "notes/today.md")?;
        delivering(py, || py.detach(|| self.0.remove(&path)))
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.0.len())
    }
}

#[pymethods]
impl Metrics {
    /// Adds a sample to a series.
    #[pyo3(signature = (name, value, at = None))]
    fn push(
        &self,
        name: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        at: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let name = text(name, "name", "queue_length")?;
        let wrong = |what: &str, given: &Bound<'_, PyAny>, expected: &str| {
            PyTypeError::new_err(format!("{}: {what} is {}, expected {expected}", &*name, shown(given)))
        };
        let number = value.extract::<f64>().map_err(|_| wrong("the value", value, "a number"))?;
        // No call of the core's asks for the interpreter: its lock may be held.
        let pushed = match at {
            None => self.0.push(&name, number),
            Some(at) => {
                let seconds = at.extract::<f64>().or_else(|_| at.call_method0("timestamp")?.extract());
                let seconds =
                    seconds.map_err(|_| wrong("the time", at, "a datetime or seconds since 1970"))?;
                self.0.push_at_millis(&name, number, seconds * 1_000.0)
            }
        };
        pushed.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The number of refused samples.
    #[getter]
    fn refused(&self) -> u64 {
        self.0.refused()
    }
}

#[pymethods]
impl ResultCache {
    #[new]
    fn new(options: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let results: Results = one(convert(options)?).map_err(|error| refused("results", options, &error))?;
        let provider = Provider { provider: Arc::new(results.clone()), kind: "results".into() };
        Ok(PyClassInitializer::from(provider).add_subclass(Self(results)))
    }

    /// Stores a text or bytes under an id, and replaces an earlier result.
    #[pyo3(signature = (id, body, *, ttl = None, mime_type = None, principal = None))]
    fn put(
        &self,
        id: &Bound<'_, PyAny>,
        body: &Bound<'_, PyAny>,
        ttl: Option<&Bound<'_, PyAny>>,
        mime_type: Option<&Bound<'_, PyAny>>,
        principal: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = id.py();
        let id = text(id, "id", "latest")?;
        let mut options = PutOptions::new();
        for (name, value) in [("ttl", ttl), ("mime_type", mime_type), ("principal", principal)] {
            value.map_or(Ok(()), |value| set(&mut options, name, value))?;
        }
        let content = match data(&id, body)? {
            Data::Text(text) => Content::from(&*text),
            Data::Bytes(bytes) => Content::from(&*bytes),
        };
        delivering(py, || py.detach(|| self.0.put(&id, content, options)))?.map_err(failed)
    }

    /// The contents under an id; `None` if there are none.
    #[pyo3(signature = (id, *, principal = None))]
    fn get<'py>(
        &self,
        id: &Bound<'py, PyAny>,
        principal: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = id.py();
        let id = text(id, "id", "latest")?;
        let found = py.detach(|| self.0.get(&id, principal)).map_err(failed)?;
        Ok(found.map(|entry| match entry.content {
            Content::Text(text) => PyString::new(py, &text).into_any(),
            Content::Blob(bytes) => PyBytes::new(py, &bytes).into_any(),
        }))
    }

    /// Removes the result under an id. `False` if there is none.
    #[pyo3(signature = (id, *, principal = None))]
    fn remove(&self, id: &Bound<'_, PyAny>, principal: Option<&str>) -> PyResult<bool> {
        let py = id.py();
        let id = text(id, "id", "latest")?;
        delivering(py, || py.detach(|| self.0.remove(&id, principal)))?.map_err(failed)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| self.0.len()).map_err(failed)
    }
}

/// The exception for a result that cannot be stored or returned.
fn failed(error: ResultsError) -> PyErr {
    match error {
        ResultsError::File(what) => PyOSError::new_err(what),
        error => PyValueError::new_err(error.to_string()),
    }
}

/// The body of an entry.
fn data(of: &str, body: &Bound<'_, PyAny>) -> PyResult<Data> {
    Data::read(body)?.ok_or_else(|| {
        PyTypeError::new_err(format!("{of}: the body is {}, expected a text or bytes", shown(body)))
    })
}

/// A text that names something.
fn text(value: &Bound<'_, PyAny>, what: &str, example: &str) -> PyResult<PyBackedStr> {
    let refused =
        |_| PyTypeError::new_err(format!("{what} is {}, expected a text such as {example:?}", shown(value)));
    value.extract().map_err(refused)
}
