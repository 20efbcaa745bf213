//! The types that a client's machine and its runtime exchange.

use super::{ClientError, Failure, ServerMessage};
use crate::connection::{Completion, Contents};
use crate::jsonrpc::{Json, JsonKind};
use crate::now::Millis;
use crate::version::Revision;
use std::sync::Arc;

/// A message for the server. The transport writes it as a line, or posts it as a body whose headers repeat parts of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The id of a request; `None` for a notification or a response.
    pub id: Option<u64>,
    /// The method, for the header `Mcp-Method`; empty for a response.
    pub method: String,
    /// The revision of this message, for the header `MCP-Protocol-Version`; `None` for the handshake of a legacy revision,
    /// which has no such header.
    pub revision: Option<&'static str>,
    /// Whether the message is self-contained (2026-07-28), or belongs to a session.
    pub is_modern: bool,
    /// The text for the header `Mcp-Name`, not yet encoded.
    pub name: Option<String>,
    /// The JSON text, without a line break.
    pub body: Vec<u8>,
}

/// One resource or template of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name of its server.
    pub server: Arc<str>,
    /// Its URI, or the text of the template.
    pub uri: String,
    /// The whole entry: a JSON object, as the server sent it.
    pub json: String,
}

/// A page of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The valid entries that are allowed.
    pub items: Vec<Listed>,
    /// The cursor of the next page.
    pub next: Option<String>,
    /// The number of invalid entries that were left out.
    pub odd: usize,
    /// The names that the server gives to the parts it could not list now.
    pub missing: Vec<String>,
}

/// The contents of a watched resource: reported first at the start, then after each change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The name of its server.
    pub server: Arc<str>,
    /// The URI of the resource. It may lie under the watched one, if the server reports a change there.
    pub uri: String,
    /// The contents; `None` if the resource no longer exists.
    pub contents: Option<Vec<Contents<'static>>>,
}

/// A server's description of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerAbout {
    /// The agreed revision.
    pub revision: Revision,
    /// `serverInfo`: a JSON object.
    pub info: String,
    /// `capabilities`: a JSON object.
    pub capabilities: String,
    /// Instructions for using the server, if it gives any.
    pub instructions: Option<String>,
    /// Whether it sends notifications about changed resources.
    pub has_subscriptions: bool,
    /// Whether it sends notifications about changed lists.
    pub has_list_changes: bool,
    /// Whether it completes variables of templates. `true` for 2024-11-05, which cannot declare it.
    pub has_completions: bool,
}

impl ServerAbout {
    /// Whether the server says that it announces changes of the list `name`: `tools` or `prompts`.
    pub fn announces(&self, name: &str) -> bool {
        let capabilities = Json::parse(self.capabilities.as_bytes(), usize::MAX).and_then(Json::object);
        let own = capabilities.and_then(|capabilities| capabilities.get(name)).and_then(Json::object);
        own.and_then(|own| own.get("listChanged")).and_then(Json::as_bool) == Some(true)
    }

    /// Whether the server declares the capability `name`, such as `resources`.
    pub fn declares(&self, name: &str) -> bool {
        let capabilities = Json::parse(self.capabilities.as_bytes(), usize::MAX).and_then(Json::object);
        let declared = capabilities.and_then(|capabilities| capabilities.get(name));
        declared.is_some_and(|declared| declared.kind() != JsonKind::Null)
    }
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientCall {
    /// A page of the resources.
    List {
        /// The page's cursor; `None` for the first page.
        cursor: Option<String>,
    },
    /// A page of the templates.
    ListTemplates {
        /// The page's cursor; `None` for the first page.
        cursor: Option<String>,
    },
    /// The contents of a resource.
    Read {
        /// Its URI.
        uri: String,
    },
    /// Values for a variable of a template.
    Complete {
        /// The text of the template.
        template: String,
        /// The variable.
        variable: String,
        /// The text typed so far.
        value: String,
        /// Values that were chosen for other variables.
        context: Vec<(String, String)>,
    },
    /// Any other method.
    Custom {
        /// Its name.
        method: String,
        /// Its params: a JSON object.
        params: String,
    },
}

/// Options of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// Time-out in ms; `None` for the machine's default. Each progress notification restarts it, up to ten times the
    /// time-out in all.
    pub timeout: Option<Millis>,
    /// Whether to ask for progress notifications.
    pub progress: bool,
}

/// The result of a call.
#[derive(Clone, Debug)]
pub enum ClientOutcome {
    /// The result of a list.
    Page(Page),
    /// The result of a read.
    Contents {
        /// The contents that are allowed.
        contents: Vec<Contents<'static>>,
        /// The `ttlMs` that the server sent; 0 without one.
        ttl: Millis,
    },
    /// The result of a completion.
    Completion(Completion<'static>),
    /// The result of any other method: the member `result` as JSON text.
    Result(String),
}

/// A question of the server: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientQuestion {
    /// The number to pass to [`Machine::answer`](super::Machine::answer).
    pub id: u64,
    /// The name of the server.
    pub server: Arc<str>,
    /// The method.
    pub method: String,
    /// Its params: a JSON object.
    pub params: String,
}

/// Progress of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The progress so far.
    pub progress: f64,
    /// The total, if known.
    pub total: Option<f64>,
    /// A description of the current step, if the server gives one.
    pub message: Option<String>,
}

/// An action for the runtime. Perform effects in order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Open the transport, then call [`Machine::opened`](super::Machine::opened) or
    /// [`Machine::lost`](super::Machine::lost).
    Connect,
    /// Close the transport. Ignore anything that still arrives from it.
    Disconnect {
        /// The reason.
        why: Failure,
    },
    /// Send a message.
    Send(Outgoing),
    /// The answer to this request is no longer needed: its HTTP exchange may be closed.
    Abort(u64),
    /// A call has ended.
    Finished {
        /// The number that the runtime gave it.
        call: u64,
        /// Its outcome.
        outcome: Result<ClientOutcome, ClientError>,
    },
    /// A call has made progress.
    Progressed {
        /// The number that the runtime gave it.
        call: u64,
        /// The progress.
        progress: Progress,
    },
    /// A watched resource has changed, or was read for the first time; an error ends the watch.
    Changed {
        /// The number that the runtime gave the watch.
        watch: u64,
        /// The contents.
        change: Result<Change, ClientError>,
    },
    /// A resource may have changed that [`Machine::hear`](super::Machine::hear) named: the server says so, or the connection
    /// was lost meanwhile.
    Heard {
        /// The number that the runtime gave the watch.
        watch: u64,
        /// Whether nothing has changed yet: the subscription has become active for the first time.
        is_first: bool,
    },
    /// A notification that the machine does not handle itself, if
    /// [`MachineOptions::reports_notifications`](super::MachineOptions::reports_notifications) is set.
    Notified {
        /// The method.
        method: String,
        /// Its params: a JSON object.
        params: String,
    },
    /// The server asks a question.
    Asked(ClientQuestion),
    /// This question no longer needs an answer.
    Withdrawn(u64),
    /// The list of resources has changed.
    ListChanged,
    /// A message of the server, unchanged, before the machine handles it. Only for [`TestClient`](super::TestClient).
    #[doc(hidden)]
    Message(ServerMessage),
    /// Something that a result had and its caller does not get: an entry that cannot be used, and why. For people.
    LeftOut(String),
    /// A note for the log about a mistake of the server, such as an invalid message.
    Noted(String),
}

/// The reason for the loss of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The transport could not be opened.
    NotOpened(String),
    /// The transport was open, and failed or was closed.
    Broken(String),
    /// The server is reachable, but refuses this client.
    Refused(Failure),
    /// The HTTP session has ended; the server is still reachable.
    Session,
}

impl Lost {
    /// The error for calls that end because of it.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NotOpened(reason) | Self::Broken(reason) => Failure::Unreachable { reason: reason.clone() },
            Self::Refused(failure) => failure.clone(),
            Self::Session => Failure::Unreachable { reason: "its session has ended".into() },
        }
    }
}

/// The reason for which the transport could not complete a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCarried {
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The failure.
    pub failure: Failure,
}
