//! The words of a client, for `mcp_resources.testing`.

use mcp_resources_engine::client::{self, Ask, Heard};
use mcp_resources_engine::version::Revision;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Words(Mutex<client::Words>);

#[pymethods]
impl Words {
    #[new]
    fn new(revision: &str, capabilities: &str) -> PyResult<Self> {
        let found = Revision::parse(revision);
        let revision = found
            .ok_or_else(|| PyValueError::new_err(format!("{revision:?} is no revision of the protocol")))?;
        Ok(Self(Mutex::new(client::Words::new(revision, capabilities))))
    }

    fn request(&self, ask: &str, params: &str, meta: &str) -> PyResult<(u64, Vec<u8>)> {
        let ask = Ask::named(ask).ok_or_else(|| PyValueError::new_err(format!("{ask:?} is no method")))?;
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).request(ask, params, meta))
    }

    #[staticmethod]
    fn initialized() -> Vec<u8> {
        client::Words::initialized()
    }

    #[staticmethod]
    fn cancel(id: u64) -> Vec<u8> {
        client::Words::cancel(id)
    }

    #[staticmethod]
    fn sort(line: &[u8]) -> Option<(&'static str, Option<u64>, String)> {
        Heard::sort(line).map(|heard| (heard.sort.as_str(), heard.id, heard.body))
    }
}
