//! The configuration of clients and gateways: `mcpServers` and `agents`, in JSON or YAML.
//!
//! Law: no value of `env`, `headers`, `token`, `url`, a variable or an `envFile` appears in an error message.

mod entry;
mod expand;

use crate::target::ClientCredentials;
use crate::target::Target;
use entry::{JsonEntry, join, kind, object};
pub use expand::ExpandScope;
use mcp_resources_engine::client::AllowList;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::suggest::{closest, unexpected};
use mcp_resources_runtime::transport::{document_json, document_value};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// A parsed and checked configuration.
///
/// ```yaml
/// mcpServers:
///   filesystem:
///     command: server                              # or url: http://host/mcp, exactly one
///     args: [--root, /project]
///     env: {LOG: info}                             # beside the environment of this process
///     headers: {Authorization: "Bearer ${TOKEN}"}  # with url
///     resources: ["file:///project/src/**/*.ts"]   # globs or "*"; missing: nothing
///     timeout: 10000                               # ms for one request
///     prefix: fs                                   # for a gateway
///     tools: ["read_*"]                            # for a gateway: globs or "*"; missing: all
///     idle: 10min                                  # for a gateway: end it when it was not used for so long
///     client_credentials: {token_url: "https://…", client_id: gateway, client_secret: "${SECRET}", scope: read}   # with url
/// agents:
///   frontend:
///     token_env: FRONTEND_TOKEN                    # or token: for a gateway over HTTP
///     mcpServers:
///       filesystem: {resources: ["file:///project/src/ui/**"]}
/// ```
///
/// An agent has the servers that it names and no others. Its entry is laid over the definition of the same name: `env` and
/// `headers` are merged, other keys replaced, and its own `resources` alone decide what it may see.
///
/// The keys of real `mcpServers` files are understood: `type`, `cwd`, `envFile` (lines `KEY=VALUE`; `env` wins), `disabled` or
/// `enabled`, and VS Code's `servers` instead of `mcpServers`. A relative `cwd` or `envFile` starts at the file's folder. A
/// relative `command` is looked up as the system does it: in `PATH`, or with a slash from the directory of the process.
/// Other keys about tools, and those about appearance, such as `autoApprove` and `description`, are ignored; so are keys
/// that begin with `_` or `x-`. Any other key is an error.
///
/// In strings, `${NAME}`, `${env:NAME}` and `${NAME:-default}` are replaced by environment variables; `${workspaceFolder}`,
/// `${workspaceFolderBasename}`, `${userHome}`, `${pathSeparator}` and `${/}` as VS Code and Cursor do it. They are replaced
/// when the server is used, so a variable that is not set affects only this server.
#[derive(Clone, Default)]
pub struct ClientConfig {
    /// The beginning of messages: the path of the file and a colon, or nothing.
    source: String,
    folder: PathBuf,
    servers: BTreeMap<String, JsonEntry>,
    agents: BTreeMap<String, Agent>,
    guard: Option<Value>,
}

#[derive(Clone, Default)]
struct Agent {
    token: Option<AgentToken>,
    /// Its entries, already merged with the definitions.
    servers: BTreeMap<String, JsonEntry>,
}

#[derive(Clone)]
enum AgentToken {
    Text(String),
    Variable(String),
}

/// One server, as an agent may use it, or any client if there is no agent.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// Its name.
    pub name: String,
    /// Its address.
    pub target: Target,
    /// The allow-list.
    pub resources: AllowList,
    /// Whether the key `resources` is present.
    pub is_restricted: bool,
    /// The time-out of a request, in ms.
    pub timeout: Option<Millis>,
    /// The prefix that a gateway adds to its URIs.
    pub prefix: Option<String>,
    /// Globs of the names of tools and prompts that a gateway offers; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The time without a request after which a gateway ends the server, in ms; `None` for never.
    pub idle: Option<Millis>,
    /// Whether a gateway has a connection, or a process, of its own for the calls of each client.
    pub per_client: bool,
    /// The client's credentials for tokens of an authorization server. For a server over HTTP.
    pub credentials: Option<ClientCredentials>,
}

impl ServerConfig {
    /// A server without further settings.
    pub fn new(name: impl Into<String>, target: Target, resources: AllowList) -> Self {
        let is_restricted = resources != AllowList::Nothing;
        Self {
            name: name.into(),
            target,
            resources,
            is_restricted,
            timeout: None,
            prefix: None,
            tools: None,
            idle: None,
            per_client: false,
            credentials: None,
        }
    }
}

/// An error in a configuration.
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

/// Shows names only, because values may be secrets.
impl fmt::Debug for ClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agents = self.agents.iter().map(|(name, agent)| (name, agent.servers.keys().collect::<Vec<_>>()));
        f.debug_struct("ClientConfig")
            .field("folder", &self.folder)
            .field("servers", &self.servers.keys().collect::<Vec<_>>())
            .field("agents", &agents.collect::<BTreeMap<_, _>>())
            .finish_non_exhaustive()
    }
}

impl ClientConfig {
    /// Reads a file: YAML for `.yaml` and `.yml` (feature `yaml`), else JSON.
    ///
    /// # Errors
    /// [`ConfigError`] if it cannot be read or is larger than 16 MiB, and as [`ClientConfig::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ConfigError> {
        let path = path.as_ref();
        let source = format!("{}: ", path.display());
        let failed = |reason: String| ConfigError { message: format!("{source}{reason}") };
        let value = document_value(path).map_err(failed)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // A child may run in another directory, so relative paths are made absolute now.
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.into());
        let mut config = Self::checked(value, folder).map_err(failed)?;
        config.source = source;
        Ok(config)
    }

    /// Parses the text of a JSON object. `folder` is the base of relative paths.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown key, a value of the wrong type, neither or both of `command` and `url`, an
    /// invalid glob, and a server of an agent without a definition.
    pub fn parse(text: &str, folder: impl Into<PathBuf>) -> Result<Self, ConfigError> {
        let config = document_json(text).and_then(|value| Self::checked(value, folder.into()));
        config.map_err(|message| ConfigError { message })
    }

    /// The names of all servers in `mcpServers`, including disabled ones.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// The names of the servers of `agent`, or of all without an agent; without disabled ones.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown agent.
    pub fn server_names_of(&self, agent: Option<&str>) -> Result<Vec<String>, ConfigError> {
        let (_, entries) = self.entries(agent)?;
        let used = entries.iter().filter(|(_, entry)| !entry::is_disabled(entry));
        Ok(used.map(|(name, _)| name.clone()).collect())
    }

    /// The key `guard`, for a gateway: not checked here.
    pub fn guard(&self) -> Option<&Value> {
        self.guard.as_ref()
    }

    /// The folder at which relative paths begin.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the agents.
    pub fn agent_names(&self) -> impl Iterator<Item = &str> {
        self.agents.keys().map(String::as_str)
    }

    /// The servers of `agent`, or those of `mcpServers` without an agent, sorted by name, without disabled ones.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown agent, a variable that is not set, an `envFile` that cannot be read, and a server
    /// that supports only the SSE transport of 2024-11-05.
    pub fn servers(&self, agent: Option<&str>) -> Result<Vec<ServerConfig>, ConfigError> {
        let (key, entries) = self.entries(agent)?;
        let used = entries.iter().filter(|(_, entry)| !entry::is_disabled(entry));
        used.map(|(name, entry)| self.resolve(&key, name, entry)).collect()
    }

    /// The server `name` of `agent`, even if it is disabled, because it was asked for by name. Variables of other
    /// servers are not resolved.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown server, and as [`ClientConfig::servers`].
    pub fn server(&self, name: &str, agent: Option<&str>) -> Result<ServerConfig, ConfigError> {
        let (key, entries) = self.entries(agent)?;
        let Some(entry) = entries.get(name) else {
            let known: Vec<&str> = entries.keys().map(String::as_str).collect();
            return Err(self.error(format!("{key}: {}", unexpected("server", name, &known))));
        };
        self.resolve(&key, name, entry)
    }

    /// The bearer token of `agent`: its `token`, or the variable named by `token_env`. `None` if it has neither.
    ///
    /// # Errors
    /// [`ConfigError`] for an unknown agent, and for a variable that is empty or not set.
    pub fn token(&self, agent: &str) -> Result<Option<String>, ConfigError> {
        let key = join("agents", agent);
        let scope = ExpandScope::new(&self.folder, &process_variable);
        let token = match &self.agent(agent)?.token {
            None => return Ok(None),
            Some(AgentToken::Text(text)) => scope.expand(text, &join(&key, "token")),
            Some(AgentToken::Variable(name)) => process_variable(name)
                .ok_or_else(|| format!("{}: the variable {name} is not set", join(&key, "token_env"))),
        };
        let token = token.map_err(|reason| self.error(reason))?;
        match token.is_empty() {
            true => Err(self.error(format!("{key}: the token is empty"))),
            false => Ok(Some(token)),
        }
    }

    fn agent(&self, name: &str) -> Result<&Agent, ConfigError> {
        self.agents.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.agent_names().collect();
            self.error(match known.is_empty() {
                true => format!("there is no agent {name:?}: the file has no key \"agents\""),
                false => format!("agents: {}", unexpected("agent", name, &known)),
            })
        })
    }

    fn entries(&self, agent: Option<&str>) -> Result<(String, &BTreeMap<String, JsonEntry>), ConfigError> {
        match agent {
            None => Ok(("mcpServers".into(), &self.servers)),
            Some(name) => Ok((join(&join("agents", name), "mcpServers"), &self.agent(name)?.servers)),
        }
    }

    fn resolve(&self, key: &str, name: &str, entry: &JsonEntry) -> Result<ServerConfig, ConfigError> {
        let scope = ExpandScope::new(&self.folder, &process_variable);
        entry::resolve(name, &join(key, name), entry, &scope).map_err(|reason| self.error(reason))
    }

    fn error(&self, reason: String) -> ConfigError {
        ConfigError { message: format!("{}{reason}", self.source) }
    }

    fn checked(value: Value, folder: PathBuf) -> Result<Self, String> {
        const KNOWN: [&str; 5] = ["mcpServers", "agents", "guard", "servers", "inputs"];
        let Value::Object(members) = value else {
            return Err(format!(
                "a configuration must be an object with the key \"mcpServers\", not {}",
                kind(&value)
            ));
        };
        if let Some(key) =
            members.keys().find(|key| !KNOWN.contains(&key.as_str()) && !entry::is_comment(key))
        {
            return Err(unexpected("key", key, &KNOWN[..3]));
        }
        let definitions = match (members.get("mcpServers"), members.get("servers")) {
            (Some(_), Some(_)) => {
                return Err("\"servers\" is another name of \"mcpServers\": write one of them".into());
            }
            (Some(servers), None) => map("mcpServers", servers)?,
            (None, Some(servers)) => map("servers", servers)?,
            (None, None) if members.contains_key("agents") => BTreeMap::new(),
            (None, None) => return Err("the key \"mcpServers\" is missing".into()),
        };
        let mut servers = BTreeMap::new();
        for (name, definition) in definitions {
            let key = join("mcpServers", name);
            let definition = object(&key, definition)?;
            entry::check(&key, definition)?;
            servers.insert(name.clone(), definition.clone());
        }
        let mut agents = BTreeMap::new();
        for (name, agent) in
            members.get("agents").map(|agents| map("agents", agents)).transpose()?.unwrap_or_default()
        {
            agents.insert(name.clone(), Agent::checked(name, agent, &servers)?);
        }
        Ok(Self { source: String::new(), folder, servers, agents, guard: members.get("guard").cloned() })
    }
}

impl Agent {
    fn checked(name: &str, value: &Value, definitions: &BTreeMap<String, JsonEntry>) -> Result<Self, String> {
        const KNOWN: [&str; 4] = ["mcpServers", "token", "token_env", "description"];
        let key = join("agents", name);
        let members = object(&key, value)?;
        if let Some(unknown) =
            members.keys().find(|key| !KNOWN.contains(&key.as_str()) && !entry::is_comment(key))
        {
            return Err(format!("{key}: {}", unexpected("key", unknown, &KNOWN[..3])));
        }
        let text = |member: &str| {
            members.get(member).map(|value| entry::string(&join(&key, member), value)).transpose()
        };
        let token = match (text("token")?, text("token_env")?) {
            (Some(_), Some(_)) => {
                return Err(format!("{key} has both \"token\" and \"token_env\": one of them is needed"));
            }
            (Some(token), None) => Some(AgentToken::Text(token.into())),
            (None, variable) => variable.map(|name| AgentToken::Variable(name.into())),
        };
        let key = join(&key, "mcpServers");
        let mut servers = BTreeMap::new();
        let own =
            members.get("mcpServers").map(|servers| map(&key, servers)).transpose()?.unwrap_or_default();
        for (server, laid) in own {
            let at = join(&key, server);
            let laid = object(&at, laid)?;
            let definition = definitions.get(server);
            if definition.is_none() && !laid.contains_key("command") && !laid.contains_key("url") {
                return Err(undefined(name, server, definitions));
            }
            // Checked separately first, so that errors of the definition are not attributed to the agent.
            entry::check_keys(&at, laid)?;
            let whole = entry::overlay(definition, laid);
            entry::check(&at, &whole)?;
            servers.insert(server.clone(), whole);
        }
        Ok(Self { token, servers })
    }
}

fn undefined(agent: &str, server: &str, definitions: &BTreeMap<String, JsonEntry>) -> String {
    let hint = match closest(server, definitions.keys().map(String::as_str)) {
        Some(name) => format!("did you mean {name:?}?"),
        None => "define it there, or give it a command or a url here".into(),
    };
    format!("agent {agent:?} names the server {server:?}, which \"mcpServers\" does not have; {hint}")
}

/// The members of an object by name, so that their order in the file has no effect.
fn map<'v>(key: &str, value: &'v Value) -> Result<BTreeMap<&'v String, &'v Value>, String> {
    object(key, value).map(|members| members.iter().collect())
}

fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[cfg(test)]
mod tests;
