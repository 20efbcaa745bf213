//! The builder of a client.

use crate::config::{ClientConfig, ConfigError, ServerConfig};
use crate::handle::{Client, Inner};
use crate::hooks::{Answer, Answers, ConnectionFn, Hooks, LIST_CHANGES, NoteFn, NotifiedFn};
use crate::link::ServerHandle;
use crate::target::Target;
use mcp_resources_engine::client::{
    Access, AllowList, ClientImplementation, ClientLimits, ClientQuestion, MachineOptions,
};
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::version::{QUESTIONS, Revision};
use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::broadcast;

/// Builds a [`Client`].
#[derive(Default)]
pub struct ClientBuilder {
    servers: Vec<ServerConfig>,
    timeout: Option<Millis>,
    revision: Option<Revision>,
    info: Option<ClientImplementation>,
    answers: HashMap<String, Answers>,
    capabilities: Option<String>,
    refusal: Option<String>,
    note: Option<NoteFn>,
    left_out: Option<NoteFn>,
    notified: Option<NotifiedFn>,
    connection: Option<ConnectionFn>,
    limits: ClientLimits,
    runtime: Option<Handle>,
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.servers.iter().map(|server| &server.name).collect();
        f.debug_struct("ClientBuilder").field("servers", &names).finish_non_exhaustive()
    }
}

impl ClientBuilder {
    /// Starts with the servers of a configuration file that `agent` may use: see [`ClientConfig`].
    ///
    /// # Errors
    /// As [`ClientConfig::load`] and [`ClientConfig::servers`].
    pub fn from_config(path: impl AsRef<Path>, agent: Option<&str>) -> Result<Self, ConfigError> {
        let servers = ClientConfig::load(path)?.servers(agent)?;
        Ok(servers.into_iter().fold(Self::default(), Self::server_with))
    }

    /// Adds a server whose resources are all allowed.
    #[must_use]
    pub fn server(self, name: &str, target: Target) -> Self {
        self.server_with(ServerConfig::new(name, target, AllowList::Everything))
    }

    /// Adds a server as it is configured.
    #[must_use]
    pub fn server_with(mut self, config: ServerConfig) -> Self {
        self.servers.push(config);
        self
    }

    /// Replaces the allow-list of the server `name`.
    #[must_use]
    pub fn allow(mut self, name: &str, allowed: &AllowList) -> Self {
        for server in self.servers.iter_mut().filter(|server| server.name == name) {
            server.resources = allowed.clone();
        }
        self
    }

    /// Sets the time-out of a request in ms, for servers whose configuration has none. Default 30,000.
    #[must_use]
    pub fn timeout(mut self, timeout: Millis) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the only revision to use. Default: 2026-07-28 with servers that support it, else the newest older one.
    #[must_use]
    pub fn revision(mut self, revision: Revision) -> Self {
        self.revision = Some(revision);
        self
    }

    /// Sets the name and the version of the program, for the servers' logs.
    #[must_use]
    pub fn info(mut self, name: &str, version: &str) -> Self {
        self.info = Some(ClientImplementation { name: name.into(), version: version.into() });
        self
    }

    /// Answers questions of servers with this method: `elicitation/create`, `sampling/createMessage` or `roots/list`.
    /// The client declares the corresponding capability.
    #[must_use]
    pub fn answer_with(
        mut self,
        method: &str,
        answer: impl Fn(ClientQuestion) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.answers.insert(method.into(), Arc::new(answer));
        self
    }

    /// Declares these capabilities, a JSON object, instead of those that the answered questions need. Hidden, for the crate
    /// `mcp-resources-provider-upstream`: it declares those of its own client.
    #[doc(hidden)]
    #[must_use]
    pub fn capabilities(mut self, capabilities: String) -> Self {
        self.capabilities = Some(capabilities);
        self
    }

    /// Refuses the questions of older servers that are not answered with this reason, and notes it. Hidden, for the crate
    /// `mcp-resources-provider-upstream`: it says which key lets clients answer.
    #[doc(hidden)]
    #[must_use]
    pub fn refusal(mut self, reason: String) -> Self {
        self.refusal = Some(reason);
        self
    }

    /// Calls `note` with the name of a server and a sentence about anything that was ignored and, without
    /// [`ClientBuilder::on_left_out`], about invalid entries that were left out. For logging.
    #[must_use]
    pub fn on_note(mut self, note: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.note = Some(Arc::new(note));
        self
    }

    /// Calls `left_out` with the name of a server and a sentence for each entry of a result that was left out because it
    /// cannot be used: which entry, and why. Entries that the allow-list excludes are not reported.
    #[must_use]
    pub fn on_left_out(mut self, left_out: impl Fn(&str, &str) + Send + Sync + 'static) -> Self {
        self.left_out = Some(Arc::new(left_out));
        self
    }

    /// Calls `notified` with the name of a server, the method and the params of each notification that the client does not
    /// handle itself: a JSON object, not checked otherwise. With [`Client::list_changes`], changes of the lists of tools and
    /// prompts are among them.
    #[must_use]
    pub fn on_notification(mut self, notified: impl Fn(&str, &str, &str) + Send + Sync + 'static) -> Self {
        self.notified = Some(Arc::new(notified));
        self
    }

    /// Calls `report` with the name of a server when a connection to it is made, and with a reason when it is lost or cannot be
    /// made. Hidden, for the command: `browse` shows it. It is called on the task of the server, and must not block.
    #[doc(hidden)]
    #[must_use]
    pub fn on_connection(mut self, report: impl Fn(&str, Option<&str>) + Send + Sync + 'static) -> Self {
        self.connection = Some(Arc::new(report));
        self
    }

    /// Sets the limits on data from servers.
    #[must_use]
    pub fn limits(mut self, limits: ClientLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the runtime for the client's tasks. Default: the one in which [`ClientBuilder::connect`] is called.
    #[must_use]
    pub fn runtime(mut self, runtime: Handle) -> Self {
        self.runtime = Some(runtime);
        self
    }

    /// Makes the client. Each server is started or connected to when it is first needed.
    ///
    /// # Errors
    /// [`ConfigError`] if there is no server, two have the same name, a glob or a method is invalid, or there is no
    /// tokio runtime.
    pub fn connect(self) -> Result<Client, ConfigError> {
        let wrong = |message: String| ConfigError { message };
        let runtime = match self.runtime {
            Some(runtime) => runtime,
            None => Handle::try_current().map_err(|_| {
                wrong(
                    "a client needs a tokio runtime: connect() inside one, or name it with runtime()".into(),
                )
            })?,
        };
        if let Some(method) = self.answers.keys().find(|method| !is_question(method)) {
            let known = QUESTIONS.map(|(method, _)| method).join(", ");
            return Err(wrong(format!("{method:?} is not a question of servers; expected one of {known}")));
        }
        let (lists, _) = broadcast::channel(LIST_CHANGES);
        let hooks = Arc::new(Hooks {
            answers: self.answers,
            note: self.note,
            left_out: self.left_out,
            notified: self.notified,
            connection: self.connection,
            lists,
        });
        let mut links: Vec<Arc<ServerHandle>> = Vec::with_capacity(self.servers.len());
        let mut servers = self.servers;
        servers.sort_by(|one, other| one.name.cmp(&other.name));
        for server in servers {
            if links.last().is_some_and(|before| *before.name == *server.name) {
                return Err(wrong(format!("two servers are named {:?}", server.name)));
            }
            let access = Access::new(&server.resources).map_err(|(glob, error)| {
                wrong(format!("server {:?}: {glob:?} is no glob, {error}", server.name))
            })?;
            let mut options = MachineOptions::new(server.name.as_str(), access);
            options.revision = self.revision;
            options.has_exchanges = matches!(server.target, Target::Url { .. });
            options.answers = hooks.answers.keys().cloned().collect();
            options.capabilities.clone_from(&self.capabilities);
            options.refusal.clone_from(&self.refusal);
            options.reports_notifications = hooks.notified.is_some();
            options.limits = self.limits.clone();
            options.limits.timeout = server.timeout.or(self.timeout).unwrap_or(options.limits.timeout);
            options.seed = getrandom::u64().unwrap_or_default();
            if let Some(info) = &self.info {
                options.info = info.clone();
            }
            links.push(Arc::new(ServerHandle::start(
                server.target,
                server.credentials,
                options,
                hooks.clone(),
                &runtime,
            )));
        }
        Ok(Client::new(Inner::new(links, hooks, self.limits.pages)))
    }
}

fn is_question(method: &str) -> bool {
    QUESTIONS.iter().any(|(known, _)| *known == method)
}
