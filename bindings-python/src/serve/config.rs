//! Servers from a configuration file: the core reads it.

use crate::calls::server_state::Functions;
use crate::serve::server::Server;
use crate::values::error;
use crate::values::lock::lock;
use mcp_resources_engine::engine::{ServerInfo, Setup};
use mcp_resources_engine::http::Rules;
use mcp_resources_runtime::registry::Registry;
use mcp_resources_runtime::transport::AuditFile;
use mcp_resources_runtime::transport::http::HttpOptions;
use mcp_resources_serve::{ConfigFileError, FILE_OPTIONS, ForeignConfig, ServedConfig};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Mutex;

/// An opened configuration file, for one server.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Config {
    /// The name of its server.
    #[pyo3(get)]
    name: String,
    opened: Mutex<Option<ForeignConfig>>,
}

#[pymethods]
impl Config {
    /// Reads the file, and opens what it names. `watch`: whether its changes take effect while the server runs.
    #[new]
    fn new(py: Python<'_>, path: PathBuf, watch: bool) -> PyResult<Self> {
        let opened = py.detach(|| ForeignConfig::open(&path, watch)).map_err(|error| refused(py, &error))?;
        Ok(Self { name: opened.setup().info.name, opened: Mutex::new(Some(opened)) })
    }

    /// The options of a server that stand in the file alone.
    #[staticmethod]
    fn options() -> [&'static str; FILE_OPTIONS.len()] {
        FILE_OPTIONS
    }
}

impl Config {
    /// The configuration, once.
    pub(crate) fn take(&self) -> PyResult<ForeignConfig> {
        lock(&self.opened)
            .take()
            .ok_or_else(|| PyRuntimeError::new_err("the configuration has a server already"))
    }
}

/// Mounts what the file names. Law: without the interpreter, which a provider may wait for.
pub(crate) fn begin(
    py: Python<'_>,
    config: ForeignConfig,
    registry: &Registry<Functions>,
    info: ServerInfo,
) -> PyResult<ServedConfig> {
    py.detach(|| config.begin(registry, info)).map_err(|error| refused(py, &error))
}

/// The setup of a server, and its audit log.
pub(crate) fn setup(config: Option<&mut ForeignConfig>, info: ServerInfo) -> (Setup, Option<AuditFile>) {
    match config {
        Some(config) => (config.setup(), config.take_audit()),
        None => (Setup { info, ..Setup::default() }, None),
    }
}

impl Server {
    /// The options with which endpoints begin.
    pub(crate) fn http_options(&self) -> HttpOptions {
        self.state.config.get().map(|config| config.http().clone()).unwrap_or_default()
    }

    /// The rules with which an endpoint inside another server begins. `is_own`: it has an `auth` of its own.
    pub(crate) fn embedded_rules(&self, py: Python<'_>, is_own: bool) -> PyResult<Rules> {
        match self.state.config.get() {
            Some(config) if !is_own => config.embedded_rules().map_err(|error| refused(py, &error)),
            _ => Ok(self.http_options().rules),
        }
    }
}

fn refused(py: Python<'_>, error: &ConfigFileError) -> PyErr {
    error::raise(py, "Registration", (error.to_string(),))
}
