//! What a client is made from.

use super::desk::{Desk, Word};
use mcp_resources_engine::client::Allowed;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::suggest;
use mcp_resources_engine::version::{QUESTIONS, Revision};
use mcp_resources_host::client::{Client, ClientBuilder, Target};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A configuration file, or one server: a command, a URL, or neither for a server in this process.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Settings {
    config: Option<PathBuf>,
    agent: Option<String>,
    name: String,
    command: Option<Vec<String>>,
    url: Option<String>,
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    headers: BTreeMap<String, String>,
    /// `None` is everything.
    resources: Option<Vec<String>>,
    timeout: Option<Millis>,
    revision: Option<String>,
    /// The questions that are answered, by capability.
    answers: Vec<String>,
    notes: bool,
}

impl Settings {
    /// A builder, and the other end of the pipe for a server in this process.
    pub(crate) fn builder(self, desk: &Arc<Desk>) -> Result<(ClientBuilder, Option<UnixStream>), String> {
        let (mut builder, far) = match &self.config {
            Some(path) => {
                let builder = ClientBuilder::from_config(path, self.agent.as_deref());
                (builder.map_err(|error| error.message)?, None)
            }
            None => self.one()?,
        };
        if let Some(timeout) = self.timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(date) = &self.revision {
            let unknown = || format!("revision: {date:?} is no revision of the protocol");
            builder = builder.revision(Revision::parse(date).ok_or_else(unknown)?);
        }
        for name in &self.answers {
            let Some((method, _)) = QUESTIONS.iter().find(|(_, capability)| capability == name) else {
                let known = QUESTIONS.map(|(_, capability)| capability);
                return Err(suggest::unexpected("answers: question", name, &known));
            };
            let desk = desk.clone();
            builder = builder.answer_with(method, move |question| desk.ask(question));
        }
        if self.notes {
            let desk = desk.clone();
            builder = builder.on_note(move |server, note| desk.put(Word::Noted(server.into(), note.into())));
        }
        Ok((builder, far))
    }

    fn one(&self) -> Result<(ClientBuilder, Option<UnixStream>), String> {
        let mut far = None;
        let target = match (&self.command, &self.url) {
            (Some(command), _) => {
                let (program, args) = command
                    .split_first()
                    .ok_or("the command is empty: give a list such as [\"program\", \"argument\"]")?;
                let (program, args, env) = (program.clone(), args.to_vec(), self.env.clone());
                Target::Command { program, args, env, directory: self.cwd.clone() }
            }
            (None, Some(url)) => Target::Url { url: url.clone(), headers: self.headers.clone() },
            (None, None) => {
                let pair = UnixStream::pair().map_err(|error| format!("no socket can be made: {error}"))?;
                far = Some(pair.1);
                Target::Socket(Arc::new(Mutex::new(Some(pair.0))))
            }
        };
        let allowed = self.resources.clone().map_or(Allowed::Everything, Allowed::Globs);
        Ok((Client::builder().server(&self.name, target).allow(&self.name, &allowed), far))
    }
}
