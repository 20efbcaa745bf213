//! The servers as a provider of a program's own server: declared by options, asked on the runtime of all clients.
//!
//! Law: nothing is started before it is needed, and a forked process has its own connections.

use crate::Upstreams;
use crate::options::UpstreamOptions;
use crate::provider::{self, UpstreamProvider};
use crate::server::lock;
use mcp_resources_client::{ServerConfig, Target, guard_children};
use mcp_resources_engine::connection::{Completion, ListPage, RawResult, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_runtime::provider::{
    Call, Complete, Feed, InterestChange, IntoAnswer, List, Mount, Provider, Read, Responder,
};
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::runtime::Handle;

/// Other servers: their resources, templates, tools and prompts, as a provider of this one. It is in one server at a time.
#[derive(Debug)]
pub struct Upstream {
    servers: Vec<ServerConfig>,
    feed: OnceLock<Feed>,
    /// With the id of its process: a forked process does not have the parent's threads.
    opened: Mutex<Option<(u32, Arc<UpstreamProvider>)>>,
}

impl Upstream {
    /// The provider of these servers. None is started yet.
    ///
    /// # Errors
    /// An entry has neither or both of a command and a URL, a glob is none, or a variable is not set.
    pub fn new(options: UpstreamOptions) -> Result<Self, OptionError> {
        let mut own = Self { servers: Vec::new(), feed: OnceLock::new(), opened: Mutex::default() };
        for (name, entry) in options.servers {
            own.add(entry.config(&name)?)?;
        }
        match own.servers.is_empty() {
            true => {
                Err(OptionError::sentence("upstream: there are no servers; name one: {servers: {NAME: URL}}"))
            }
            false => Ok(own),
        }
    }

    fn add(&mut self, server: ServerConfig) -> Result<(), OptionError> {
        let refused = |what: String| OptionError::sentence(format!("upstream: {what}"));
        if self.servers.iter().any(|known| known.name == server.name) {
            return Err(refused(format!("two servers have the name {:?}", server.name)));
        }
        crate::access_of(&server).map_err(|error| refused(error.message))?;
        self.servers.push(server);
        Ok(())
    }

    /// The provider of this process, which is made at the first use.
    fn open(&self) -> Option<Arc<UpstreamProvider>> {
        let mut opened = lock(&self.opened);
        let process = std::process::id();
        if let Some((_, provider)) = opened.as_ref().filter(|(owner, _)| *owner == process) {
            return Some(provider.clone());
        }
        let note = |reason: String| self.feed.get().iter().for_each(|feed| feed.log(&reason));
        if self.servers.iter().any(|server| matches!(server.target, Target::Command { .. }))
            && let Err(error) = guard_children()
        {
            note(format!("servers may outlive a process that is killed: {error}"));
        }
        let runtime: Handle = match mcp_resources_client::runtime() {
            Ok(runtime) => runtime,
            Err(error) => {
                note(format!("no thread can be started for its servers: {error}"));
                return None;
            }
        };
        let feed = self.feed.get().cloned();
        let upstreams = Upstreams::new(runtime, move |server, note| {
            feed.iter().for_each(|feed| feed.log(&format!("{server}: {note}")));
        });
        let provider = match upstreams.provider(self.servers.clone()) {
            Ok(provider) => Arc::new(provider),
            Err(error) => {
                note(error.message);
                return None;
            }
        };
        self.feed.get().iter().for_each(|feed| provider.report_to((*feed).clone()));
        if let Some((_, parents)) = opened.replace((process, provider.clone())) {
            // Its connections belong to threads that do not exist here.
            std::mem::forget(parents);
        }
        Some(provider)
    }

    fn answer<T: IntoAnswer>(&self, reply: Responder<T>, ask: impl FnOnce(&UpstreamProvider, Responder<T>)) {
        match self.open() {
            Some(provider) => ask(&provider, reply),
            None => reply.send(Err(ReadError::Failed)),
        }
    }
}

impl Declare for Upstream {
    const KIND: OptionKind = OptionKind {
        name: "upstream",
        about: "The resources, tools and prompts of other MCP servers.",
        options: UpstreamOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        declared::read("upstream", options)
            .and_then(|options: UpstreamOptions| Self::new(options.based_at(folder)))
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        let before = self.servers.len();
        let mut servers = other.servers.into_iter();
        servers.try_for_each(|server| self.add(server)).inspect_err(|_| self.servers.truncate(before))
    }

    /// None is known before the servers are asked.
    fn schemes(&self) -> Vec<String> {
        Vec::new()
    }

    /// `NAME=URL`, or `NAME=PROGRAM` with its arguments after commas.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        let member = |name: &str, value: OptionValue| (name.to_owned(), value);
        let named = rest.split_once('=').filter(|(name, target)| !name.is_empty() && !target.is_empty());
        let Some((name, target)) = named else {
            return Err(OptionError::sentence(format!(
                "\"upstream:{rest}\" names no server; write upstream:NAME=URL or upstream:NAME=PROGRAM,ARGUMENT"
            )));
        };
        let entry = match target.contains("://") {
            true => OptionValue::from(target),
            false => {
                let mut words = target.split(',');
                let program = words.next().unwrap_or_default();
                let args = words.map(OptionValue::from).collect();
                OptionValue::Members(vec![
                    member("command", program.into()),
                    member("args", OptionValue::List(args)),
                ])
            }
        };
        Ok(OptionValue::Members(vec![member(
            "servers",
            OptionValue::Members(vec![(name.to_owned(), entry)]),
        )]))
    }
}

impl Provider for Upstream {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        if self.feed.set(feed).is_err() {
            let reason = "it was mounted before; make another for another server".into();
            return Err(RegistrationError::Mount { mount: "upstream".into(), reason });
        }
        let has_tools =
            self.servers.iter().any(|server| server.tools.as_ref().is_none_or(|globs| !globs.is_empty()));
        Ok(provider::mount(has_tools))
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        self.answer(reply, |provider, reply| provider.list(request, reply));
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        self.answer(reply, |provider, reply| provider.read(request, reply));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        self.answer(reply, |provider, reply| provider.complete(request, reply));
    }

    fn call(&self, request: Call, reply: Responder<RawResult<'static>>) {
        self.answer(reply, |provider, reply| provider.call(request, reply));
    }

    fn interest(&self, change: InterestChange<'_>) {
        if let Some(provider) = self.open() {
            provider.interest(change);
        }
    }
}
