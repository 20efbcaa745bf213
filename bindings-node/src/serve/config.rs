//! Servers from a configuration file: the core reads it.

use crate::calls::server_state::ServerState;
use crate::values::error::raise;
use crate::values::options::PlainValue;
use mcp_resources_engine::engine::ServerInfo;
use mcp_resources_engine::http::Rules;
use mcp_resources_runtime::transport::http::HttpOptions;
use mcp_resources_serve::{ConfigFileError, FILE_OPTIONS, ForeignConfig};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::path::Path;

/// An opened configuration file, for one server.
#[napi]
pub struct Config {
    name: String,
    opened: RefCell<Option<ForeignConfig>>,
}

#[napi]
impl Config {
    /// Reads the file, and opens what it names. `watch`: whether its changes take effect while the server runs.
    #[napi(catch_unwind, constructor)]
    pub fn new(env: Env, path: String, watch: bool) -> Result<Self> {
        let opened = ForeignConfig::open(Path::new(&path), watch).map_err(|error| refused(&env, &error))?;
        Ok(Self { name: opened.setup().info.name, opened: RefCell::new(Some(opened)) })
    }

    /// The name of its server.
    #[napi(catch_unwind, getter)]
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// The options of a server that stand in the file alone.
    #[napi(catch_unwind)]
    pub fn options() -> Vec<&'static str> {
        FILE_OPTIONS.to_vec()
    }
}

impl Config {
    /// The configuration, once.
    pub(crate) fn take(&self) -> Result<ForeignConfig> {
        let taken = || Error::from_reason("the configuration has a server already");
        self.opened.take().ok_or_else(taken)
    }
}

impl ServerState {
    /// Mounts what the file names.
    pub(crate) fn begin(&self, config: ForeignConfig, info: ServerInfo) -> Result<()> {
        self.engine()?;
        let begun = self.delivering(|| config.begin(&self.registry, info))?;
        let _ = self.config.set(begun.map_err(|error| refused(&self.env, &error))?);
        Ok(())
    }

    /// The options with which endpoints begin.
    pub(crate) fn http_options(&self) -> HttpOptions {
        self.config.get().map(|config| config.http().clone()).unwrap_or_default()
    }

    /// The rules with which an endpoint inside another server begins, which has these options of its own.
    pub(crate) fn embedded_rules(&self, fields: &PlainValue) -> Result<Rules> {
        match self.config.get() {
            Some(config) if !fields.has("auth") => {
                config.embedded_rules().map_err(|error| refused(&self.env, &error))
            }
            _ => Ok(self.http_options().rules),
        }
    }
}

fn refused(env: &Env, error: &ConfigFileError) -> Error {
    raise(env, "RegistrationError", error.to_string(), &[])
}
