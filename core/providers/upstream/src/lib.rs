//! Other servers as a provider: what they have, in one server for each agent.
//!
//! ```text
//!   an agent's engine ──▶ UpstreamProvider ──▶ its view: servers, allow-lists, names
//!   another agent's   ──▶ UpstreamProvider ──▶ its view ──┐
//!                                                         └──▶ UpstreamServer, one for all agents ──▶ Client
//! ```
//!
//! Law: agents share connections, subscriptions and `public` results, and nothing else. One server that hangs, lies or ends
//! costs only itself.
//!
//! # Examples
//! ```no_run
//! use mcp_resources_client::ClientConfig;
//! use mcp_resources_provider_upstream::Upstreams;
//! use mcp_resources_runtime::server::ResourceServer;
//!
//! # async fn show() -> Result<(), Box<dyn std::error::Error>> {
//! let upstreams = Upstreams::new(tokio::runtime::Handle::current(), |server, note| eprintln!("{server}: {note}"));
//! let config = ClientConfig::load("team.yaml")?;
//! let provider = upstreams.provider(config.servers(Some("frontend"))?)?;
//! ResourceServer::builder("team", "1.0.0").mount(provider).build()?.run_stdio().await?;
//! upstreams.close().await;
//! # Ok(()) }
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]
// As for the client, Linux and macOS: elsewhere this crate is empty.
#![cfg(unix)]

mod breaker;
mod calls;
mod completion;
mod conflicts;
mod declared;
mod entries;
mod figures;
mod latency;
mod lock;
mod names;
mod options;
mod owners;
mod provider;
mod recent;
mod server;
mod shared_work;
mod summary;
mod table;
mod view;
mod walk;
mod wire;

pub use conflicts::UpstreamConflict;
pub use declared::Upstream;
pub use options::{ServerEntry, UpstreamOptions};
pub use provider::UpstreamProvider;
pub use server::UpstreamServer;
pub use summary::UpstreamSummary;

use mcp_resources_client::{ClientCredentials, ConfigError, ServerConfig, Target};
use mcp_resources_engine::client::{Access, AllowList};
use mcp_resources_engine::guard::Glob;
use server::{NoteFn, lock};
use std::fmt;
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use view::{UpstreamView, ViewServer};

/// The servers of all agents. Agents whose entries reach a server in the same way share it.
pub struct Upstreams {
    runtime: Handle,
    note: NoteFn,
    servers: Mutex<Vec<(ServerKey, Arc<UpstreamServer>)>>,
}

/// The way in which a server is reached.
#[derive(Clone, PartialEq)]
struct ServerKey {
    name: String,
    target: String,
    timeout: Option<u64>,
    idle: Option<u64>,
    per_client: bool,
    credentials: Option<ClientCredentials>,
}

impl Upstreams {
    /// No servers yet. Their tasks run on `runtime`; `note` gets the name of a server, and a sentence for the log.
    pub fn new(runtime: Handle, note: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        Self { runtime, note: Arc::new(note), servers: Mutex::default() }
    }

    /// The provider for an agent that has these servers. None is started before it is needed.
    ///
    /// # Errors
    /// [`ConfigError`] if two servers have the same name, or a glob is none.
    pub fn provider(&self, mut configs: Vec<ServerConfig>) -> Result<UpstreamProvider, ConfigError> {
        let wrong = |message: String| ConfigError { message };
        configs.sort_by(|one, other| one.name.cmp(&other.name));
        let others = configs.iter().skip(1);
        if let Some((one, _)) = configs.iter().zip(others).find(|(one, other)| one.name == other.name) {
            return Err(wrong(format!("two servers are named {:?}", one.name)));
        }
        let mut servers = Vec::with_capacity(configs.len());
        for config in configs {
            let (access, tools) = access_of(&config)?;
            let has_resources = config.resources != AllowList::Nothing;
            let prefix = config.prefix.clone();
            servers.push(ViewServer { server: self.server(config), access, has_resources, tools, prefix });
        }
        Ok(UpstreamProvider::new(UpstreamView::new(servers), self.runtime.clone()))
    }

    /// All servers, in the order in which agents named them.
    pub fn servers(&self) -> Vec<Arc<UpstreamServer>> {
        lock(&self.servers).iter().map(|(_, server)| server.clone()).collect()
    }

    /// The states, subscriptions and latencies of all servers, as text for Prometheus.
    pub fn metrics_text(&self) -> String {
        figures::text(&self.servers())
    }

    /// Ends all connections, and the servers that were started.
    pub async fn close(&self) {
        let ends: Vec<_> = self
            .servers()
            .into_iter()
            .map(|server| server.clone().spawn(async move { server.close().await }))
            .collect();
        for end in ends {
            let _ = end.await;
        }
    }

    /// Keeps what is watched subscribed until the result is dropped: for an agent whose provider is replaced.
    pub fn hold(&self) -> HeldWatches {
        let servers = self.servers().into_iter();
        HeldWatches(servers.map(|server| (server.clone(), server.hold())).collect())
    }

    /// Ends the servers that no agent has any more.
    pub async fn end_unused(&self) {
        let mut unused = Vec::new();
        lock(&self.servers).retain(|(_, server)| {
            // One is the table's own.
            let is_used = Arc::strong_count(server) > 1;
            if !is_used {
                unused.push(server.clone());
            }
            is_used
        });
        for server in unused {
            server.close().await;
        }
    }

    /// The server that an entry reaches: a known one, if another agent's entry reaches it in the same way.
    fn server(&self, config: ServerConfig) -> Arc<UpstreamServer> {
        let key = ServerKey {
            name: config.name.clone(),
            target: described(&config.target),
            timeout: config.timeout,
            idle: config.idle,
            per_client: config.per_client,
            credentials: config.credentials.clone(),
        };
        let mut servers = lock(&self.servers);
        if let Some((_, server)) = servers.iter().find(|(known, _)| *known == key) {
            return server.clone();
        }
        let server = UpstreamServer::new(config, self.runtime.clone(), self.note.clone());
        servers.push((key, server.clone()));
        server
    }
}

/// The things that an entry permits: URIs, and the names of tools; `None` for all of them.
///
/// # Errors
/// A glob is none.
pub(crate) fn access_of(config: &ServerConfig) -> Result<(Access, Option<Vec<Glob>>), ConfigError> {
    let wrong = |text: &str, error: &dyn fmt::Display| ConfigError {
        message: format!("server {:?}: {text:?} is no glob, {error}", config.name),
    };
    let access = Access::new(&config.resources).map_err(|(glob, error)| wrong(&glob, &error))?;
    let glob = |text: &String| Glob::parse(text).map_err(|error| wrong(text, &error));
    let tools = config.tools.as_ref().map(|globs| globs.iter().map(glob).collect()).transpose()?;
    Ok((access, tools))
}

/// Watches that are kept: [`Upstreams::hold`].
#[derive(Debug)]
#[must_use = "dropping it ends watches without another user"]
pub struct HeldWatches(Vec<(Arc<UpstreamServer>, Vec<String>)>);

impl Drop for HeldWatches {
    fn drop(&mut self) {
        for (server, uris) in &self.0 {
            uris.iter().for_each(|uri| server.unhear(uri));
        }
    }
}

/// A text that is the same for targets that reach the same server. A stream is like no other.
fn described(target: &Target) -> String {
    match target {
        Target::Command { .. } | Target::Url { .. } => format!("{target:?}"),
        other => format!("{:p}", std::ptr::from_ref(other)),
    }
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").field("servers", &lock(&self.servers).len()).finish_non_exhaustive()
    }
}
