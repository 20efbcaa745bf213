//! What goes between a client's machine and its host.

use super::{ClientError, Failure, Heard};
use crate::connection::{Completion, Contents};
use crate::now::Millis;
use crate::version::Revision;
use std::sync::Arc;

/// A message for the server. Its transport writes a line, or posts a body with headers that repeat a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The id of a request; `None` for a notification or a response.
    pub id: Option<u64>,
    /// The method, for the header `Mcp-Method`; empty for a response.
    pub method: String,
    /// The revision of this message, for the header `MCP-Protocol-Version`; `None` for the handshake of a legacy revision,
    /// which has no such header.
    pub revision: Option<&'static str>,
    /// Whether the message stands for itself (2026-07-28), or belongs to a session.
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
    /// The entries that make sense and are allowed.
    pub items: Vec<Listed>,
    /// Where the next page begins.
    pub next: Option<String>,
    /// How many entries were left out because they make no sense.
    pub odd: usize,
    /// Parts that the server could not list now: the names that it gives.
    pub missing: Vec<String>,
}

/// The contents of a watched resource, once at first and after each change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The name of its server.
    pub server: Arc<str>,
    /// The resource. It may lie beneath the one that is watched, if the server says that such a one has changed.
    pub uri: String,
    /// The contents; `None` if it is gone.
    pub contents: Option<Vec<Contents<'static>>>,
}

/// What a server says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerAbout {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// `serverInfo`: a JSON object.
    pub info: String,
    /// `capabilities`: a JSON object.
    pub capabilities: String,
    /// How it is to be used, if it says so.
    pub instructions: Option<String>,
    /// Whether it tells of changes of resources.
    pub has_subscriptions: bool,
    /// Whether it tells of changes of the list.
    pub has_list_changes: bool,
    /// Whether it completes variables of templates. The revision 2024-11-05 does not say so: true.
    pub has_completions: bool,
}

/// What a client asks of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// A page of the resources.
    List {
        /// Where it begins; `None` for the first.
        cursor: Option<String>,
    },
    /// A page of the templates.
    ListTemplates {
        /// Where it begins; `None` for the first.
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
        /// What is typed so far.
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

/// How one call is made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// How long to wait for the answer, in ms; `None` for the machine's default. A progress notification begins the time
    /// anew, up to ten times as long in all.
    pub timeout: Option<Millis>,
    /// Whether progress is to be reported.
    pub progress: bool,
}

/// What a call gave.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Of a list.
    Page(Page),
    /// Of a read.
    Contents(Vec<Contents<'static>>),
    /// Of a completion.
    Completion(Completion<'static>),
    /// Of any other method: the member `result` as JSON text.
    Result(String),
}

/// A question of the server's: `elicitation/create`, `sampling/createMessage` or `roots/list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What [`Machine::answer`](super::Machine::answer) takes.
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
    /// How far it is.
    pub progress: f64,
    /// How far it goes, if that is known.
    pub total: Option<f64>,
    /// What is being done, if the server says so.
    pub message: Option<String>,
}

/// What a host must do, in this order.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Open the transport, and say [`Machine::opened`](super::Machine::opened) or [`Machine::lost`](super::Machine::lost).
    Connect,
    /// Close the transport. Nothing that still comes from it counts.
    Disconnect {
        /// Why there is no connection.
        why: Failure,
    },
    /// Send a message.
    Send(Outgoing),
    /// The answer to this request is no longer needed: its HTTP exchange may be closed.
    Abort(u64),
    /// A call has ended.
    Finished {
        /// The number that the host gave it.
        call: u64,
        /// How.
        outcome: Result<Outcome, ClientError>,
    },
    /// A call has made progress.
    Progressed {
        /// The number that the host gave it.
        call: u64,
        /// How far.
        progress: Progress,
    },
    /// A watched resource has changed, or was read for the first time; an error ends the watch.
    Changed {
        /// The number that the host gave the watch.
        watch: u64,
        /// The contents.
        change: Result<Change, ClientError>,
    },
    /// The server asks.
    Asked(Question),
    /// An answer to this question is not needed any more.
    Withdrawn(u64),
    /// The list of resources has changed.
    ListChanged,
    /// What the server has said, as it said it. Only for [`TestClient`](super::TestClient), before what the machine
    /// does about it.
    #[doc(hidden)]
    Heard(Heard),
    /// Something that the author of the server would want to know: an entry left out, a message that makes no sense.
    Noted(String),
}

/// What became of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The transport could not be opened.
    NotOpened(String),
    /// It was open, and broke or ended.
    Broken(String),
    /// The server is there, and refuses this client.
    Refused(Failure),
    /// A session of HTTP has ended, the server is still there.
    Session,
}

impl Lost {
    /// What calls fail with that it ends.
    pub fn failure(&self) -> Failure {
        match self {
            Self::NotOpened(reason) | Self::Broken(reason) => Failure::Unreachable { reason: reason.clone() },
            Self::Refused(failure) => failure.clone(),
            Self::Session => Failure::Unreachable { reason: "its session has ended".into() },
        }
    }
}

/// Why the transport could not carry a request to its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCarried {
    /// The status of HTTP, if there was one.
    pub status: Option<u16>,
    /// What is known of it.
    pub failure: Failure,
}
