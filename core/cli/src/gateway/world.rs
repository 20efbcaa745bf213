//! The servers of one agent, and the server that shows them.

use crate::error::Failed;
use crate::output;
use mcp_resources_client::{ClientConfig, ServerConfig};
use mcp_resources_engine::catalog::MountId;
use mcp_resources_engine::engine::ServerInfo;
use mcp_resources_engine::guard::{AuditRecord, Policy};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::now::Millis;
use mcp_resources_provider_upstream::{UpstreamProvider, Upstreams};
use mcp_resources_runtime::server::{Builder, Diagnostic, ResourceServer};
use mcp_resources_runtime::transport::{AuditFile, AuditSink};
use mcp_resources_serve::OpenedGuard;
use std::io;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The name under which the gateway serves.
const NAME: &str = "mcp-resources-gateway";
/// The time beyond a server's own time-out after which a read is given up: for a start, and for the next server.
const BEYOND: Millis = 15_000;
/// The time-out of servers without one of their own.
const TIMEOUT: Millis = 30_000;

/// Interval at which it is checked whether a provider is still mounted.
const LOOK: Duration = Duration::from_secs(60);

/// An agent and its servers, as configured.
pub(super) struct WorldConfig {
    /// Its name; `None` where the file has no agents.
    pub(super) agent: Option<String>,
    pub(super) token: Option<String>,
    pub(super) servers: Vec<ServerConfig>,
}

impl WorldConfig {
    /// The servers of an agent, and its token if `needs_token`. A server that cannot be used here is left out with a warning;
    /// if none is left, the first reason is the error.
    pub(super) fn new(
        config: &ClientConfig,
        agent: Option<String>,
        needs_token: bool,
    ) -> Result<Self, Failed> {
        let asked = agent.as_deref().filter(|_| needs_token);
        let token = asked.map(|agent| config.token(agent)).transpose()?.flatten();
        let servers = match config.servers(agent.as_deref()) {
            Ok(servers) => servers,
            Err(first) => {
                let mut servers = Vec::new();
                for name in config.server_names_of(agent.as_deref())? {
                    match config.server(&name, agent.as_deref()) {
                        Ok(server) => servers.push(server),
                        Err(error) => output::say("warning", &format!("{error}; this server is left out")),
                    }
                }
                if servers.is_empty() {
                    return Err(first.into());
                }
                servers
            }
        };
        for server in servers.iter().filter(|server| !server.is_restricted) {
            output::say(
                "note",
                &format!(
                    "{}{}: no resources are shown without the key \"resources\", such as [\"*\"]",
                    agent.as_deref().map(|agent| format!("{agent}, ")).unwrap_or_default(),
                    server.name
                ),
            );
        }
        Ok(Self { agent, token, servers })
    }
}

/// The rules, the limits and the audit log of all agents.
#[derive(Debug)]
pub(super) struct GatewayGuard {
    policy: Policy,
    limits: Limits,
    audit: Option<SharedAudit>,
}

/// One file for the servers of all agents.
#[derive(Clone, Debug)]
struct SharedAudit(Arc<Mutex<AuditFile>>);

impl AuditSink for SharedAudit {
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take(entries)
    }
}

impl GatewayGuard {
    pub(super) fn new(guard: OpenedGuard) -> Self {
        let OpenedGuard { policy, limits, audit } = guard;
        Self { policy, limits, audit: audit.map(|file| SharedAudit(Arc::new(Mutex::new(file)))) }
    }

    /// Takes the rules of a file that was read again. The limits and the audit log are those of the start.
    ///
    /// # Errors
    /// The limits are others.
    pub(super) fn update(&mut self, other: Self) -> Result<(), String> {
        if format!("{:?}", self.limits) != format!("{:?}", other.limits) {
            return Err("guard.limits has changed; start the gateway again for that".into());
        }
        self.policy = other.policy;
        Ok(())
    }
}

/// An agent's server.
pub(super) struct World {
    pub(super) agent: Option<String>,
    pub(super) token: Option<String>,
    pub(super) server: ResourceServer,
    mount: MountId,
    /// The servers as they were configured, to see whether a file that is read again changes them.
    configured: String,
}

impl World {
    pub(super) fn new(
        config: WorldConfig,
        guard: &GatewayGuard,
        upstreams: &Upstreams,
    ) -> Result<Self, Failed> {
        let longest = config.servers.iter().filter_map(|server| server.timeout).max().unwrap_or(TIMEOUT);
        let mut limits = guard.limits.clone();
        limits.read_timeout = longest.max(TIMEOUT).max(limits.read_timeout).saturating_add(BEYOND);
        limits.completion_timeout = limits.completion_timeout.max(TIMEOUT);
        let mut builder = builder();
        if let Some(audit) = &guard.audit {
            builder = builder.audit(audit.clone());
        }
        let server = builder
            .guard(guard.policy.clone())
            .tools(true)
            .prompts(true)
            .completions(true)
            .cache(true)
            .limits(limits)
            .build()
            .map_err(|error| Failed::usage(error.to_string()))?;
        let WorldConfig { agent, token, servers } = config;
        let configured = described(&servers);
        let mount = mount(&server, upstreams.provider(servers)?)?;
        Ok(Self { agent, token, server, mount, configured })
    }

    /// Takes the servers of a file that was read again. Servers that stay keep their connections. Returns whether anything
    /// has changed.
    pub(super) fn replace(
        &mut self,
        config: WorldConfig,
        guard: &GatewayGuard,
        upstreams: &Upstreams,
    ) -> Result<bool, Failed> {
        self.token = config.token;
        let configured = described(&config.servers);
        let is_guarded_otherwise =
            self.server.set_guard(&guard.policy).map_err(|error| Failed::usage(error.to_string()))?;
        if configured == self.configured {
            return Ok(is_guarded_otherwise);
        }
        let provider = upstreams.provider(config.servers)?;
        self.server.unmount(self.mount);
        self.mount = mount(&self.server, provider)?;
        self.configured = configured;
        Ok(true)
    }
}

/// A server of the gateway, without what other servers have.
pub(super) fn builder() -> Builder {
    ResourceServer::builder(NAME, env!("CARGO_PKG_VERSION")).diagnostics(|diagnostic| match diagnostic {
        Diagnostic::Warning(text) => output::say("warning", text),
        other => output::say("warning", &other.to_string()),
    })
}

fn mount(server: &ResourceServer, provider: UpstreamProvider) -> Result<MountId, Failed> {
    let provider = Arc::new(provider);
    let mount = server.mount(provider.clone()).map_err(|error| Failed::usage(error.to_string()))?;
    let introduced = Arc::new(Notify::new());
    let notify = introduced.clone();
    provider.on_introduced(move || notify.notify_one());
    tokio::spawn(follow_instructions(server.clone(), Arc::downgrade(&provider), introduced));
    Ok(mount)
}

/// A text that is another one if the servers are.
fn described(servers: &[ServerConfig]) -> String {
    let secrets = servers.iter().map(|server| Some(&server.credentials.as_ref()?.client_secret));
    format!("{servers:?} {:?}", secrets.collect::<Vec<_>>())
}

/// Gives the server the instructions of its servers, whenever one of them has described itself.
async fn follow_instructions(
    server: ResourceServer,
    provider: Weak<UpstreamProvider>,
    introduced: Arc<Notify>,
) {
    loop {
        // An unmounted provider adds no instructions.
        let _ = timeout(LOOK, introduced.notified()).await;
        let Some(provider) = provider.upgrade() else { return };
        let instructions = Some(provider.instructions()).filter(|text| !text.is_empty());
        if instructions.is_none() {
            continue;
        }
        let info = ServerInfo {
            name: NAME.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            instructions,
            ..ServerInfo::default()
        };
        if let Err(error) = server.set_info(info) {
            output::say("warning", &format!("the instructions cannot be used: {error}"));
        }
    }
}
