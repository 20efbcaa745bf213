//! How a client is made: the options of `js/client-options.ts` as those of the core.

use super::arrival::News;
use super::desk::{Asked, Desk};
use crate::error::unusable;
use crate::options::read;
use crate::peer::whole;
use mcp_resources_engine::client::Allowed;
use mcp_resources_engine::version::QUESTIONS;
use mcp_resources_host::client::{Client, ClientBuilder, ConfigError, ServerConfig, Target};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;

/// What a client is made of: a file, a command, a URL, or none of them for a server in this process.
#[napi(object, object_to_js = false)]
pub struct ClientFields {
    /// The path of a configuration.
    pub config: Option<String>,
    /// The agent whose servers it is about.
    pub agent: Option<String>,
    /// A program and its arguments.
    pub command: Option<Vec<String>>,
    /// An endpoint.
    pub url: Option<String>,
    /// The name of the server.
    pub name: Option<String>,
    /// Globs; left out, everything.
    pub resources: Option<Vec<String>>,
    /// Milliseconds for a request.
    pub timeout: Option<f64>,
    /// The only revision to speak.
    pub revision: Option<String>,
    /// Headers of every request.
    pub headers: Option<HashMap<String, String>>,
    /// Variables of the program.
    pub env: Option<HashMap<String, String>>,
    /// Its directory.
    pub cwd: Option<String>,
    /// The questions that are answered, by their capabilities.
    pub answers: Vec<String>,
    /// Whether notes are wanted.
    pub notes: bool,
}

/// A builder and, for a server in this process, its end of a pipe.
pub(super) fn builder(
    mut fields: ClientFields,
    desk: &Arc<Desk>,
    wrong: impl Fn(ConfigError) -> Error,
) -> Result<(ClientBuilder, Option<OwnedFd>)> {
    let (mut builder, socket) = match fields.config.take() {
        Some(path) => (ClientBuilder::from_config(path, fields.agent.as_deref()).map_err(wrong)?, None),
        None => {
            let (server, socket) = server(&mut fields)?;
            (Client::builder().server_with(server), socket)
        }
    };
    if let Some(timeout) = fields.timeout {
        builder = builder.timeout(whole(timeout));
    }
    if let Some(date) = fields.revision {
        builder = builder.revision(read(date)?);
    }
    if fields.notes {
        let desk = desk.clone();
        builder = builder
            .on_note(move |server, note| desk.leave(0.0, News::Note(server.to_owned(), note.to_owned())));
    }
    for capability in fields.answers {
        builder = answering(builder, &capability, desk)?;
    }
    Ok((builder, socket))
}

fn server(fields: &mut ClientFields) -> Result<(ServerConfig, Option<OwnedFd>)> {
    let (target, socket) = target(fields)?;
    let name = fields.name.take().unwrap_or_else(|| "server".into());
    let resources = fields.resources.take().map_or(Allowed::Everything, Allowed::Globs);
    Ok((ServerConfig::new(name, target, resources), socket))
}

fn target(fields: &mut ClientFields) -> Result<(Target, Option<OwnedFd>)> {
    if let Some(url) = fields.url.take() {
        let headers = fields.headers.take().into_iter().flatten().collect();
        return Ok((Target::Url { url, headers }, None));
    }
    let Some(command) = fields.command.take() else {
        let (ours, theirs) = UnixStream::pair().map_err(|error| Error::from_reason(error.to_string()))?;
        return Ok((Target::Socket(Arc::new(Mutex::new(Some(ours)))), Some(theirs.into())));
    };
    let mut words = command.into_iter();
    let program = words.next().ok_or_else(|| unusable("the command is an empty array".into()))?;
    let env = fields.env.take().into_iter().flatten().collect();
    let directory = fields.cwd.take().map(Into::into);
    Ok((Target::Command { program, args: words.collect(), env, directory }, None))
}

/// Has the author's function for this capability answer on the loop.
fn answering(builder: ClientBuilder, capability: &str, desk: &Arc<Desk>) -> Result<ClientBuilder> {
    let known = QUESTIONS.into_iter().find(|(_, name)| **name == *capability);
    let (method, capability) =
        known.ok_or_else(|| unusable(format!("{capability:?} is no question of a server's")))?;
    let desk = desk.clone();
    Ok(builder.answer_with(method, move |question| {
        let (reply, answer) = oneshot::channel();
        let asked = Asked { question: desk.ask(reply), desk: desk.clone() };
        desk.leave(f64::from(asked.question), News::Question(question, capability));
        Box::pin(async move {
            let answer = answer.await;
            drop(asked);
            answer.unwrap_or_else(|_| Err("the client was closed before it answered".into()))
        })
    }))
}
