//! The options of the provider: its servers by name, each an entry as in a file of `mcpServers`.

use mcp_resources_client::{ServerConfig, Target};
use mcp_resources_engine::client::AllowList;
use mcp_resources_engine::option::{OptionError, OptionValue, PathStep, set_all};
use mcp_resources_provider_kit::named_secrets::{self, HiddenText, SecretSource, pairs};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{DAY, OptionDefault, OptionType};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The longest prefix.
const PREFIX: usize = 64;

provider_options! {
    /// The options of [`Upstream`](crate::Upstream).
    ///
    /// ```
    /// use mcp_resources_provider_upstream::{ServerEntry, Upstream, UpstreamOptions};
    /// let wiki = ServerEntry::new().url("https://wiki.example/mcp").header_from_env("Authorization", "HOME").prefix("wiki");
    /// let notes = ServerEntry::new().command("notes-server").args(["--all"]).resources(["note://public/**"]);
    /// let upstream = Upstream::new(UpstreamOptions::new().server("wiki", wiki).server("notes", notes))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct UpstreamOptions: "an object with servers" {
        /// Serves what each server has. A text is the URL of a server.
        servers: custom(Vec<(String, ServerEntry)>, servers, OptionType::Named("a URL or an object", ServerEntry::TABLE));
    }
}

provider_options! {
    /// A server: a command or a URL, and what is served of it.
    #[derive(Clone, Debug)]
    pub struct ServerEntry: "a URL or an object" {
        /// The program of the server, which is started when it is first needed, and used over its stdin and stdout.
        command: some_text("program") = None;
        /// The arguments of `command`.
        args: texts("text") = [];
        /// Environment variables of `command`, in addition to those of this process: their values, or the variables that
        /// contain them.
        env: custom(Vec<(String, SecretSource)>, env, OptionType::NamedSecrets, OptionDefault::Names) = Vec::new();
        /// The working directory of `command`. Default: that of this process.
        cwd: file = None;
        /// The URL of a server over HTTP, instead of `command`.
        url: some_text("URL") = None;
        /// Headers of every request to `url`: their values, or the environment variables that contain them.
        headers: custom(Vec<(String, SecretSource)>, headers, OptionType::NamedSecrets, OptionDefault::Names) = Vec::new();
        /// The URIs that are served. Others do not exist for clients. `*` is all.
        resources: texts("glob") = ["*"];
        /// The names of the tools and prompts that are served. `*` is all.
        tools: texts("glob") = ["*"];
        /// The prefix of all URIs, tools and prompts of the server, such as `wiki`: `wiki+note://x` and `wiki_search`.
        /// Default: only names that two servers have get one.
        prefix: some_text("prefix") = None;
        /// The maximum time for an answer of the server. No time ends the call of a tool.
        timeout: time(Duration::from_millis(1), DAY) = Duration::from_secs(30);
        /// The time without requests and subscriptions after which the server is ended. Default: it is never ended.
        idle: some_time = None;
        /// Whether each client has a process of `command`, or a connection to `url`, of its own for its calls, so that a server
        /// from before 2026-07-28 can ask it for input, and log to it. At a `url`, clients that can be asked always have one.
        per_client: flag = false;
    }
}

impl UpstreamOptions {
    /// No server yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves what a server has. Its name is part of names that two servers have.
    #[must_use]
    pub fn server(mut self, name: impl Into<String>, entry: ServerEntry) -> Self {
        self.servers.push((name.into(), entry));
        self
    }

    /// Takes relative directories as beginning at `folder`.
    #[must_use]
    pub fn based_at(mut self, folder: &Path) -> Self {
        for directory in self.servers.iter_mut().filter_map(|(_, entry)| entry.cwd.as_mut()) {
            *directory = folder.join(&*directory);
        }
        self
    }
}

impl ServerEntry {
    /// A server that cannot be reached yet: set [`command`](Self::command) or [`url`](Self::url).
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends a header with this value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Literal(HiddenText(value.into()))));
        self
    }

    /// Sends a header whose value a variable of the environment has when the provider is made.
    #[must_use]
    pub fn header_from_env(mut self, name: impl Into<String>, variable: impl Into<String>) -> Self {
        self.headers.push((name.into(), SecretSource::Env(variable.into())));
        self
    }

    /// Sets a variable of the program.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), SecretSource::Literal(HiddenText(value.into()))));
        self
    }

    /// The configuration of the server `name`.
    pub(crate) fn config(self, name: &str) -> Result<ServerConfig, OptionError> {
        let refused = |what: String| OptionError::sentence(format!("upstream: the server {name:?} {what}"));
        let texts = |sources: &[(String, SecretSource)], what: &str| {
            let text = |(key, source): &(String, SecretSource)| {
                let text = source.text(&format!("{what} {key}"))?;
                match text.chars().any(|c| c.is_control() && c != '\t') {
                    true => Err(format!("{what} {key} contains a control character, such as a line break")),
                    false => Ok((key.clone(), text)),
                }
            };
            let texts: Result<BTreeMap<String, String>, String> = sources.iter().map(text).collect();
            texts.map_err(|error| refused(format!("cannot be reached: {error}")))
        };
        let has_url = self.url.is_some();
        let target = match (self.command.filter(|program| !program.is_empty()), self.url) {
            (Some(program), None) => {
                let env = texts(&self.env, "the variable")?;
                Target::Command { program, args: self.args, env, directory: self.cwd }
            }
            (None, Some(url)) => {
                if !is_http(&url) {
                    return Err(refused("has a url that is no http URL; write https://HOST/mcp".into()));
                }
                Target::Url { url, headers: texts(&self.headers, "the header")? }
            }
            _ => return Err(refused("needs either a command or a url".into())),
        };
        let (there, strange, is_given) = match has_url {
            true => ("url", "command's args, env and cwd", !self.env.is_empty()),
            false => ("command", "headers", !self.headers.is_empty()),
        };
        if is_given {
            return Err(refused(format!(
                "has a {there}, with which {strange} have no effect; leave them out"
            )));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if let Some(prefix) = &self.prefix
            && (prefix.is_empty() || prefix.len() > PREFIX || !prefix.chars().all(is_plain))
        {
            return Err(refused(format!(
                "has the prefix {prefix:?}, expected 1 to {PREFIX} letters, digits, \"-\", \"_\" and \".\""
            )));
        }
        let is_all = |globs: &[String]| globs.iter().any(|glob| glob == "*");
        let resources = match is_all(&self.resources) {
            true => AllowList::Everything,
            false if self.resources.is_empty() => AllowList::Nothing,
            false => AllowList::Globs(self.resources),
        };
        let mut config = ServerConfig::new(name, target, resources);
        config.tools = (!is_all(&self.tools)).then_some(self.tools);
        config.prefix = self.prefix;
        config.timeout = u64::try_from(self.timeout.as_millis()).ok();
        config.per_client = self.per_client;
        config.idle =
            self.idle.and_then(|idle| u64::try_from(idle.as_millis()).ok()).filter(|idle| *idle > 0);
        Ok(config)
    }
}

fn is_http(url: &str) -> bool {
    let begins =
        |scheme: &str| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme));
    begins("https://") || begins("http://")
}

fn servers(value: OptionValue) -> Result<Vec<(String, ServerEntry)>, OptionError> {
    let read = |(name, value): (String, OptionValue)| {
        if let OptionValue::Text(url) = value {
            return Ok((name, ServerEntry::new().url(url)));
        }
        let mut entry = ServerEntry::default();
        match set_all(&mut entry, value) {
            Ok(()) => Ok((name, entry)),
            Err(error) => Err(error.under(PathStep::Name(name.into()))),
        }
    };
    pairs(value)?.into_iter().map(read).collect()
}

fn env(value: OptionValue) -> Result<Vec<(String, SecretSource)>, OptionError> {
    named_secrets::read(value, "upstream: the variable")
}

fn headers(value: OptionValue) -> Result<Vec<(String, SecretSource)>, OptionError> {
    named_secrets::read(value, "upstream: the header")
}
