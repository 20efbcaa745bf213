//! The configuration of clients: `mcpServers` and `agents` (S-10), in JSON or YAML.

use super::Target;
use mcp_resources_engine::client::Allowed;
use mcp_resources_engine::now::Millis;
use std::fmt;
use std::path::Path;

/// A configuration that has been read and checked.
#[derive(Clone, Debug, Default)]
pub struct Config {}

/// One server as one agent, or everybody, may use it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// What may be seen of it.
    pub resources: Allowed,
    /// Whether the key `resources` is there.
    pub is_restricted: bool,
    /// How long one request may take, in ms.
    pub timeout: Option<Millis>,
    /// What a gateway puts before its URIs.
    pub prefix: Option<String>,
}

/// What is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// One sentence that names the key, the agent, the server or the file.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Reads a file: YAML for `.yaml` and `.yml`, else JSON.
    ///
    /// # Errors
    /// [`ConfigError`] if it cannot be read or is larger than 16 MiB, and as [`Config::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        Err(ConfigError { message: format!("{}: not built yet", path.as_ref().display()) })
    }

    /// The servers of `agent`, in the order of their names; without an agent those of `mcpServers` themselves.
    ///
    /// # Errors
    /// [`ConfigError`] for an agent that the file does not have.
    pub fn servers(&self, agent: Option<&str>) -> Result<Vec<ServerConfig>, ConfigError> {
        let _ = agent;
        Ok(Vec::new())
    }
}
