//! Our part of a server that another library serves: it sorts the messages of that server's clients, answers those about
//! our resources, and merges the answers that both give.
//!
//! ```text
//!   client ──▶ the other server's connection ──▶ EmbeddedServer::sort
//!                   │ Theirs: its own handler         │ Ours, Both, Told
//!                   ◀─────────────────────────────────┴──▶ EmbeddedConnection::start ──▶ Event ──▶ our handlers
//!                                                              └──▶ EmbeddedStep: a result, an error, a notification,
//!                                                                   or a request for the other server (Ask)
//! ```
//!
//! Law: bindings carry texts between the two servers and know no method, member or code of the protocol. Nothing of the
//! other server's answers changes except in greetings, and in lists to which both contribute.
//!
//! A legacy session has a connection until the other server's session ends. A modern request has one of its own, as over
//! HTTP: its progress and its log messages belong to it, and a listen keeps the id of its client.

mod adopted;
mod connection;
mod front;
mod lines;
mod merge;
#[cfg(test)]
mod tests;

pub use connection::{
    EmbeddedConnection, EmbeddedMessage, EmbeddedNotice, EmbeddedRequest, EmbeddedStep, TheirAnswer,
};

pub use front::{EmbeddedFront, FrontLine};
pub use lines::{
    ClientLine, LineRequest, OwnedAnswer, ServerLine, write_error, write_notice, write_question,
    write_question_cancelled, write_result, write_too_large,
};

use crate::catalog::{CatalogRoute, Edit, HandlerId, ListKind};
use crate::connection::ConnectionKind;
use crate::engine::Engine;
use crate::hub::{ConnectionId, ListKinds};
use crate::jsonrpc::{Json, JsonMembers};
use crate::limits::Limits;
use crate::now::Now;
use crate::principal::{ANONYMOUS, Principal};
use crate::resource::RegistrationError;
use crate::version::{CANCELLED, INITIALIZED, ProtocolMethod, Revision, ServerNotification};
use mcp_resources_template::uri;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The key of the list source of adopted resources.
const SOURCE: &str = "the server's own";
/// Most sentences that wait for the log, and most that are remembered so that none is logged twice.
const MOST_WARNINGS: usize = 1_000;

/// The server that answers a message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sorted {
    /// The other server alone. Pass the message on.
    Theirs,
    /// This one alone: start the request with its connection.
    Ours,
    /// Both: ask the other server first, then start the request here with [`EmbeddedRequest::theirs`].
    Both,
    /// The other server answers, and this one must know: start the message here, ignore its steps, and pass it on.
    Told,
    /// The client cancels the request with this id (JSON text). End that request here, and pass the message on.
    Cancels(String),
}

/// A token that the other server has verified.
#[derive(Clone, Copy, Debug)]
pub struct SenderToken<'t> {
    /// Its subject, or the client that it was issued to.
    pub owner: &'t str,
    /// Its scopes.
    pub scopes: &'t [String],
}

/// Our part of one server of another library. `Send + Sync`; shared by its connections.
pub struct EmbeddedServer {
    engine: Arc<Engine>,
    /// The handler of resources that the other server has; `None` if they are left out.
    adopted: Option<HandlerId>,
    state: Mutex<SharedState>,
}

#[derive(Default)]
struct SharedState {
    /// Names of our tools and prompts that the other server has too: it serves them.
    yielded_tools: BTreeSet<String>,
    yielded_prompts: BTreeSet<String>,
    warnings: Vec<String>,
    warned: BTreeSet<String>,
    /// Sessions, and requests that listen.
    watching: HashSet<ConnectionId>,
}

impl EmbeddedServer {
    /// Makes this engine part of another server. With `adopts`, the resources and templates of the other server are
    /// listed and read too, under the policy of this engine; otherwise clients cannot see them.
    ///
    /// # Errors
    /// [`RegistrationError`] if the engine is part of a server already, or has a fallback, which would hide the resources
    /// of the other server.
    pub fn new(engine: Arc<Engine>, adopts: bool, now: Now) -> Result<Arc<Self>, RegistrationError> {
        let refused = |field: &str, value: &str, expected: &str| RegistrationError::InvalidField {
            of: "attach".to_owned(),
            field: field.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let again = "a ResourceServer that is not attached yet; make another one";
        if engine.is_embedded() {
            return Err(refused("server", "attached to a server already", again));
        }
        if adopts && engine.catalog().fallback().is_some() {
            let expected = "false, because a provider serves every URI that has no resource";
            return Err(refused("adopt", "true", expected));
        }
        if !engine.embed() {
            return Err(refused("server", "attached to a server already", again));
        }
        let adopted = adopts.then(|| engine.new_handler());
        if let Some(handler) = adopted {
            let mount = engine.new_mount();
            let source = Edit::AddSource {
                list: ListKind::Resources,
                key: SOURCE.to_owned(),
                handler,
                mount,
                pages: true,
            };
            engine.publish(vec![source, Edit::SetFallback { handler: adopted }], now)?;
        }
        Ok(Arc::new(Self { engine, adopted, state: Mutex::default() }))
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Makes the state of a client. `version` is the revision under which the other server serves it. `lasts` says that
    /// notifications can reach the client after the answer: `false` for a legacy request over HTTP without a session.
    pub fn connect(self: &Arc<Self>, version: &str, lasts: bool) -> EmbeddedConnection {
        let revision = Revision::parse(version).unwrap_or(Revision::NEWEST_LEGACY);
        let kind =
            if lasts || revision.is_modern() { ConnectionKind::Embedded } else { ConnectionKind::Stateless };
        let mut connection = self.engine.connect(kind);
        if kind == ConnectionKind::Stateless {
            connection.assume(revision);
        }
        EmbeddedConnection::new(self.clone(), connection)
    }

    /// Ends the listens of all clients with their results, and the notifications of sessions. Clients that come later are
    /// served as before.
    pub fn shutdown(&self) {
        let watching: Vec<_> = self.state().watching.iter().copied().collect();
        // Outside the lock: the hub calls wakers.
        watching.into_iter().for_each(|id| self.engine.hub().shutdown(id));
    }

    /// The sender of a message: the owner of a verified token, with its scopes; without a token, the local process or an
    /// anonymous client. A token without an owner is no token.
    pub fn sender(token: Option<SenderToken<'_>>, is_local: bool) -> Arc<Principal> {
        match token.filter(|token| !token.owner.is_empty() && token.owner != ANONYMOUS) {
            Some(token) => Principal::new(token.owner).with_scopes(token.scopes.iter().cloned()),
            None if is_local && token.is_none() => Principal::local(),
            None => Principal::anonymous(None),
        }
    }

    /// Whether requests under this revision are complete in themselves, so that each has a connection of its own.
    pub fn is_modern(version: &str) -> bool {
        Revision::parse(version).is_some_and(Revision::is_modern)
    }

    /// Whether a message of this method may be for this engine. If not, the other server answers it, whatever its sender and
    /// its params: [`EmbeddedServer::sort`] need not see it.
    pub fn concerns(&self, method: &str, is_request: bool) -> bool {
        if !is_request {
            return method == INITIALIZED || method == CANCELLED;
        }
        match ProtocolMethod::parse(method) {
            None => self.engine.has_custom_method(method),
            Some(ProtocolMethod::Ping) => false,
            Some(ProtocolMethod::CallTool) => self.engine.catalog().has_tools(),
            Some(ProtocolMethod::GetPrompt) => self.engine.catalog().has_prompts(),
            Some(_) => true,
        }
    }

    /// Finds the server that answers a message. `params` makes their JSON text, and is called only if the answer depends on
    /// them.
    pub fn sort<'p>(
        &self,
        method: &str,
        is_request: bool,
        principal: &Principal,
        params: impl FnOnce() -> Cow<'p, str>,
    ) -> Sorted {
        if !self.concerns(method, is_request) {
            return Sorted::Theirs;
        }
        if !is_request {
            if method == INITIALIZED {
                return Sorted::Told;
            }
            let text = params();
            let id = Params::parse(&text, self.engine.limits()).json("requestId");
            return id.map_or(Sorted::Theirs, |id| Sorted::Cancels(id.raw().to_owned()));
        }
        let Some(known) = ProtocolMethod::parse(method) else { return Sorted::Ours };
        let is_theirs = match known {
            ProtocolMethod::Initialize | ProtocolMethod::Discover => return Sorted::Both,
            ProtocolMethod::List | ProtocolMethod::Read | ProtocolMethod::Listen => return Sorted::Ours,
            ProtocolMethod::SetLevel => return Sorted::Told,
            ProtocolMethod::Subscribe | ProtocolMethod::Unsubscribe | ProtocolMethod::ListTemplates
                if self.adopted.is_none() =>
            {
                return Sorted::Ours;
            }
            ProtocolMethod::ListTools => !self.engine.offers_tools(principal),
            ProtocolMethod::ListPrompts => !self.engine.offers_prompts(principal),
            _ => false,
        };
        if is_theirs {
            return Sorted::Theirs;
        }
        let text = params();
        self.sort_by_params(known, &Params::parse(&text, self.engine.limits()), principal)
    }

    fn sort_by_params(&self, method: ProtocolMethod, params: &Params<'_>, principal: &Principal) -> Sorted {
        let list = |kind| match params.text("cursor") {
            Some(cursor) if self.engine.open_cursor(kind, &cursor, principal).is_some() => Sorted::Ours,
            _ => Sorted::Both,
        };
        let owned = |is_own: bool| if is_own { Sorted::Ours } else { Sorted::Theirs };
        match method {
            ProtocolMethod::ListTemplates => list(ListKind::Templates),
            ProtocolMethod::ListTools => list(ListKind::Tools),
            ProtocolMethod::ListPrompts => list(ListKind::Prompts),
            ProtocolMethod::CallTool => {
                owned(params.text("name").is_some_and(|name| self.owns_tool(&name, principal)))
            }
            ProtocolMethod::GetPrompt => {
                owned(params.text("name").is_some_and(|name| self.owns_prompt(&name, principal)))
            }
            ProtocolMethod::Complete => match params.reference() {
                Some((kind, name)) if kind == PROMPT => owned(self.owns_prompt(&name, principal)),
                _ => Sorted::Ours,
            },
            // The other server may begin to watch what its clients subscribe to.
            _ if params.text("uri").is_some_and(|uri| self.adopts(&uri, principal)) => Sorted::Both,
            _ => Sorted::Ours,
        }
    }

    /// Whether a notification of this method tells a change, so that [`EmbeddedServer::changed`] must see it.
    pub fn is_change(method: &str) -> bool {
        ServerNotification::parse(method) == Some(ServerNotification::Updated)
            || ListKinds::from_method(method).is_some()
    }

    /// Recognises a change that the other server tells its clients, and announces it to all that subscribe here. Returns
    /// whether the notification must not be sent: this engine tells those clients. `told` has the lists of
    /// [`EmbeddedConnection::told`] for a legacy session; `None` for a modern client.
    pub fn changed(&self, told: Option<ListKinds>, method: &str, params: &str, now: Now) -> bool {
        if ServerNotification::parse(method) == Some(ServerNotification::Updated) {
            if let Some(uri) = Params::parse(params, self.engine.limits()).text("uri") {
                // No client can watch a URI that is refused.
                let _ = self.engine.updated(&uri, now);
            }
            return true;
        }
        let Some(list) = ListKinds::from_method(method) else { return false };
        if list != ListKinds::RESOURCES {
            let mut state = self.state();
            match list {
                ListKinds::TOOLS => state.yielded_tools.clear(),
                _ => state.yielded_prompts.clear(),
            }
        }
        self.engine.list_changed(list, now);
        list == ListKinds::RESOURCES || told.is_none_or(|told| told.contains(list))
    }

    /// The names of the tools of `engine`: one that the other server has too should be refused when they are attached.
    pub fn tool_names(engine: &Engine) -> Vec<String> {
        engine.catalog().tools().map(|entry| entry.tool.name.clone()).collect()
    }

    /// Takes the sentences for the log.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut self.state().warnings)
    }

    /// Adds a sentence for the log, once.
    fn warn(&self, sentence: String) {
        let mut state = self.state();
        if state.warned.len() < MOST_WARNINGS && state.warned.insert(sentence.clone()) {
            state.warnings.push(sentence);
        }
    }

    /// Whether this server has a tool, as `principal` sees it: the other server answers for a hidden one as for one that
    /// does not exist.
    fn owns_tool(&self, name: &str, principal: &Principal) -> bool {
        let catalog = self.engine.catalog();
        let is_seen = catalog.tool(name).is_some_and(|entry| self.engine.sees_tool(principal, entry));
        is_seen && !self.state().yielded_tools.contains(name)
    }

    fn owns_prompt(&self, name: &str, principal: &Principal) -> bool {
        let catalog = self.engine.catalog();
        let is_seen = catalog.prompt(name).is_some_and(|entry| self.engine.sees_prompt(principal, entry));
        is_seen && !self.state().yielded_prompts.contains(name)
    }

    /// Whether the other server serves this URI, and `principal` may see it.
    fn adopts(&self, given: &str, principal: &Principal) -> bool {
        let normal = uri::normalize(given, self.engine.limits().uri);
        let is_theirs =
            |normal: &str| matches!(self.engine.catalog().route(normal), CatalogRoute::Fallback(_));
        self.adopted.is_some()
            && normal.is_ok_and(|normal| is_theirs(&normal) && self.engine.sees(principal, &normal))
    }

    fn state(&self) -> MutexGuard<'_, SharedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for EmbeddedServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedServer").field("adopted", &self.adopted).finish_non_exhaustive()
    }
}

/// The type of references to prompts.
const PROMPT: &str = "ref/prompt";

/// The params of a message, by name.
struct Params<'t>(Option<JsonMembers<'t>>);

impl<'t> Params<'t> {
    fn parse(text: &'t str, limits: &Limits) -> Self {
        Self(Json::parse(text.as_bytes(), limits.nesting.saturating_add(2)).and_then(Json::object))
    }

    fn json(&self, name: &str) -> Option<Json<'t>> {
        self.0.as_ref()?.get(name)
    }

    fn text(&self, name: &str) -> Option<Cow<'t, str>> {
        self.json(name)?.as_str()
    }

    /// The type of a completion's reference, and its name.
    fn reference(&self) -> Option<(Cow<'t, str>, Cow<'t, str>)> {
        let members = self.json("ref")?.object()?;
        Some((members.get("type")?.as_str()?, members.get("name")?.as_str()?))
    }
}
