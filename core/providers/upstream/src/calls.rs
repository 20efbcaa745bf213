//! Calls of tools, and of prompts: which server has the name, and what passes to it and back.
//!
//! Law: params and results pass as they are, but for `_meta` and names. A call whose name or state is not this agent's is
//! answered as one that does not exist.

use crate::names::NamedTarget;
use crate::server::{LogFn, RequestOptions, lock};
use crate::view::{LIST, UpstreamView, failed, refused};
use crate::wire::{self, PassedTerms};
use mcp_resources_client::ProgressFn;
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::connection::{ClientCapabilities, LogLevel, RawResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::jsonrpc::{Json, object};
use mcp_resources_engine::version::Revision;
use mcp_resources_runtime::provider::AskedClient;
use std::time::Duration;
use tokio::time::Instant;
use xxhash_rust::xxh3::xxh3_64;

/// The time for learning which tools there are before a call.
const LEARN: Duration = Duration::from_secs(10);

/// A call of a tool, or for a prompt.
pub(crate) struct ForeignCall<'a> {
    pub(crate) list: ListKind,
    pub(crate) method: &'a str,
    /// A JSON object.
    pub(crate) params: &'a str,
    pub(crate) revision: Revision,
    pub(crate) progress: Option<ProgressFn>,
    /// The least severe log messages that the client wants, and a function that gets them.
    pub(crate) log: Option<(LogLevel, LogFn)>,
    /// The client, if it has a session and so can be asked.
    pub(crate) asked: Option<AskedClient>,
    /// The kinds of questions that the client answers.
    pub(crate) capabilities: ClientCapabilities,
}

impl UpstreamView {
    /// The tool or prompt of this name here.
    pub(crate) async fn target(&self, list: ListKind, name: &str) -> Option<NamedTarget> {
        if let Some(target) = self.routes(list).find(name) {
            return Some(target.clone());
        }
        // A server that hangs delays the calls of tools that others have no longer than a list.
        for time in [LIST, LEARN] {
            let tables = self.tables(list, Instant::now() + time).await;
            let found = self.routes(list).find(name).cloned();
            let is_whole = self
                .servers
                .iter()
                .zip(&tables)
                .all(|(own, table)| table.is_some() || !own.is_asked_for(list));
            if found.is_some() || is_whole {
                return found;
            }
        }
        None
    }

    /// Calls a tool, or gets a prompt.
    pub(crate) async fn call(&self, call: ForeignCall<'_>) -> Result<RawResult<'static>, ReadError> {
        let ForeignCall { list, method, params, revision, progress, log, asked, capabilities } = call;
        let given = wire::members(params).ok_or(ReadError::Failed)?;
        let name = given.get("name").and_then(Json::as_str).unwrap_or_default();
        let Some(target) = self.target(list, &name).await else {
            let kind = if list == ListKind::Tools { "tool" } else { "prompt" };
            let shown: String = name.chars().filter(|char| !char.is_control()).take(100).collect();
            return Err(refused(format!("Unknown {kind}: {shown}")));
        };
        if let Some(state) = given.get("requestState").and_then(Json::as_str)
            && lock(&self.states).get(&state_digest(&target, &state)).is_none()
        {
            return Err(refused("Invalid params: unknown requestState".into()));
        }
        let Some(own) = self.servers.get(target.server) else { return Err(ReadError::Failed) };
        let terms = PassedTerms {
            is_modern: own.server.is_modern(),
            is_client_modern: revision.is_modern(),
            level: log.as_ref().map(|(level, _)| *level),
        };
        let meta = wire::passed_meta(given.get("_meta").map(Json::raw), &terms);
        let mut sent = Vec::new();
        object(&mut sent, |writer| {
            for (member, value) in given.iter().filter(|(member, _)| member != "_meta") {
                match &*member {
                    "name" => writer.str("name", &target.name),
                    _ => writer.named(&member).extend_from_slice(value.raw().as_bytes()),
                }
            }
            meta.iter().for_each(|meta| writer.value("_meta").extend_from_slice(meta.as_bytes()));
        });
        let sent = String::from_utf8(sent).map_err(|_| ReadError::Failed)?;
        let level = terms.level;
        let told = log.map(|(_, log)| log);
        let mut options = RequestOptions {
            only_reads: list == ListKind::Prompts,
            has_no_end: true,
            progress,
            ..RequestOptions::default()
        };
        let name = own.server.name();
        match asked.filter(|_| own.server.has_own_links(capabilities)) {
            Some(asked) => {
                let call = own.server.own_call(asked, told).await;
                let call = call.map_err(|error| failed(name, error, None))?;
                if let Some(level) = level {
                    call.link().wants(level).await;
                }
                options.own = Some(call);
            }
            None => options.log = told.filter(|_| terms.is_modern),
        }
        let answered = own.server.request(method, &sent, options).await;
        let text = answered.map_err(|error| failed(own.server.name(), error, None))?;
        let members = wire::members(&text).ok_or(ReadError::Failed)?;
        let mut result = RawResult::from_foreign(&members);
        if !result.is_complete() {
            if !revision.is_modern() {
                return Err(ReadError::InputRequired);
            }
            if let Some(state) = members.get("requestState").and_then(Json::as_str) {
                lock(&self.states).insert(state_digest(&target, &state), ());
            }
        }
        result.meta =
            result.meta.map(|meta| wire::meta_with_page(&meta, &|uri| self.shown(target.server, uri)).into());
        Ok(result)
    }
}

/// By which a state is known to be one that this call was given.
fn state_digest(target: &NamedTarget, state: &str) -> u64 {
    xxh3_64(format!("{}\n{}\n{state}", target.server, target.name).as_bytes())
}
