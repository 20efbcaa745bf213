//! The settings of a client for another language, as options by name.

use super::{ClientEvent, EventTable};
use crate::builder::ClientBuilder;
use crate::config::{ConfigError, ServerConfig};
use crate::handle::Client;
use crate::target::Target;
use mcp_resources_engine::client::AllowList;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep};
use mcp_resources_engine::suggest;
use mcp_resources_engine::version::{QUESTIONS, Revision};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A configuration file, or one server: a command, a URL, or neither for a server in the same process.
#[derive(Debug, Default)]
pub struct ClientSettings {
    config: Option<PathBuf>,
    agent: Option<String>,
    name: Option<String>,
    command: Option<Vec<String>>,
    url: Option<String>,
    env: Vec<(String, String)>,
    cwd: Option<PathBuf>,
    headers: Vec<(String, String)>,
    /// `None` allows everything.
    resources: Option<Vec<String>>,
    timeout: Option<Millis>,
    revision: Option<Revision>,
    /// The answered questions, by capability.
    answers: Vec<String>,
    notes: bool,
}

impl NamedOptions for ClientSettings {
    const EXPECTED: &'static str = "options of a client";
    const NAMES: &'static [&'static str] = &[
        "config",
        "agent",
        "name",
        "command",
        "url",
        "env",
        "cwd",
        "headers",
        "resources",
        "timeout",
        "revision",
        "answers",
        "notes",
    ];

    fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError> {
        match name {
            "config" => path(value).map(|value| self.config = value),
            "agent" => FromOption::from_option(value).map(|value| self.agent = value),
            "name" => FromOption::from_option(value).map(|value| self.name = value),
            "command" => FromOption::from_option(value).map(|value| self.command = value),
            "url" => FromOption::from_option(value).map(|value| self.url = value),
            "env" => FromOption::from_option(value).map(|value| self.env = value),
            "cwd" => path(value).map(|value| self.cwd = value),
            "headers" => FromOption::from_option(value).map(|value| self.headers = value),
            "resources" => FromOption::from_option(value).map(|value| self.resources = value),
            "timeout" => FromOption::from_option(value).map(|value| self.timeout = value),
            "revision" => FromOption::from_option(value).map(|value| self.revision = value),
            "answers" => FromOption::from_option(value).map(|value| self.answers = value),
            "notes" => FromOption::from_option(value).map(|value| self.notes = value),
            _ => Err(OptionError::unknown("option", name, Self::NAMES)),
        }
        .map_err(|error| error.under(PathStep::Name(name.to_owned().into())))
    }
}

/// Makes a builder, and the other end of the pipe for a server in the same process. The client runs on `runtime`.
pub(super) fn builder(
    mut settings: ClientSettings,
    runtime: &Handle,
    table: &Arc<EventTable>,
) -> Result<(ClientBuilder, Option<OwnedFd>), ConfigError> {
    let (mut builder, far) = match settings.config.take() {
        Some(path) => (ClientBuilder::from_config(path, settings.agent.as_deref())?, None),
        None => {
            let (target, far) = target(&mut settings, runtime)?;
            let name = settings.name.as_deref().unwrap_or("server");
            let allowed = settings.resources.take().map_or(AllowList::Everything, AllowList::Globs);
            (Client::builder().server_with(ServerConfig::new(name, target, allowed)), far)
        }
    };
    if let Some(timeout) = settings.timeout {
        builder = builder.timeout(timeout);
    }
    if let Some(revision) = settings.revision {
        builder = builder.revision(revision);
    }
    if settings.notes {
        let table = table.clone();
        builder = builder
            .on_note(move |server, note| table.put(0, ClientEvent::Note(server.to_owned(), note.to_owned())));
    }
    for name in &settings.answers {
        let found = QUESTIONS.into_iter().find(|(_, capability)| capability == name);
        let known = QUESTIONS.map(|(_, capability)| capability);
        let unknown = || wrong(suggest::unexpected("answers: question", name, &known));
        let (method, capability) = found.ok_or_else(unknown)?;
        let table = table.clone();
        builder =
            builder.answer_with(method, move |question| Box::pin(table.clone().ask(question, capability)));
    }
    Ok((builder, far))
}

fn target(settings: &mut ClientSettings, runtime: &Handle) -> Result<(Target, Option<OwnedFd>), ConfigError> {
    if let Some(url) = settings.url.take() {
        let headers = std::mem::take(&mut settings.headers).into_iter().collect();
        return Ok((Target::Url { url, headers }, None));
    }
    let Some(command) = settings.command.take() else {
        let (ours, theirs) =
            sockets(runtime).map_err(|error| wrong(format!("no socket can be made: {error}")))?;
        return Ok((Target::stream(ours), Some(theirs.into())));
    };
    let mut words = command.into_iter();
    let empty = || wrong("the command is empty: give a list such as [\"program\", \"argument\"]".into());
    let program = words.next().ok_or_else(empty)?;
    let env = std::mem::take(&mut settings.env).into_iter().collect();
    Ok((Target::Command { program, args: words.collect(), env, directory: settings.cwd.take() }, None))
}

/// A pair of sockets: one for the client, and one that blocks.
fn sockets(runtime: &Handle) -> io::Result<(tokio::net::UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let _entered = runtime.enter();
    Ok((tokio::net::UnixStream::from_std(ours)?, theirs))
}

/// Parses a path: a text, or bytes in the system's encoding.
fn path(value: OptionValue) -> Result<Option<PathBuf>, OptionError> {
    match value {
        OptionValue::Bytes(bytes) => Ok(Some(std::ffi::OsString::from_vec(bytes).into())),
        value => Ok(Option::<String>::from_option(value)?.map(Into::into)),
    }
}

fn wrong(message: String) -> ConfigError {
    ConfigError { message }
}
