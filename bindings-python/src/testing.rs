//! The compiled part of the client of `mcp_resources.testing`.

use crate::values::lock::lock;
use mcp_resources_engine::client::{self, ClientError};
use mcp_resources_engine::option::{FromOption, OptionError};
use mcp_resources_engine::version::Revision;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Mutex;

/// A client for tests.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct TestClient(Mutex<client::TestClient>);

#[pymethods]
impl TestClient {
    #[new]
    fn new(revision: &str, capabilities: &str) -> PyResult<Self> {
        let unknown = |error: OptionError| PyValueError::new_err(error.to_string());
        let revision = Revision::from_option(revision.into()).map_err(unknown)?;
        Ok(Self(Mutex::new(client::TestClient::new(revision, capabilities))))
    }

    #[getter]
    fn handshake(&self) -> Option<u64> {
        lock(&self.0).handshake()
    }

    fn send(&self, ask: &str, params: &str, meta: &str) -> PyResult<u64> {
        let unknown = || PyValueError::new_err(format!("{ask:?} is no method"));
        let method = client::TestClient::method(ask).ok_or_else(unknown)?;
        let sent = lock(&self.0).send(method, params, meta);
        sent.map_err(|error: ClientError| PyValueError::new_err(error.to_string()))
    }

    fn cancel(&self, id: u64) {
        lock(&self.0).cancel(id);
    }

    fn output(&self) -> Vec<u8> {
        lock(&self.0).output()
    }

    /// Takes bytes of the server. Returns the messages, each as its kind, the id of its request, and its content.
    fn received(&self, bytes: &[u8]) -> Vec<(&'static str, Option<u64>, String)> {
        let mut client = lock(&self.0);
        client.received(bytes);
        client
            .take_messages()
            .into_iter()
            .map(|message| (message.kind.as_str(), message.id, message.body))
            .collect()
    }
}
