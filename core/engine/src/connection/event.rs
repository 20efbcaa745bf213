//! The events that the engine returns to its runtime: requests that need a handler, and changes that the runtime must know
//! about.
//!
//! An event borrows from the message, never from the connection.

use super::access::{AccessRequest, HeldRequest};
use crate::catalog::HandlerId;
use crate::headers::Headers;
use crate::jsonrpc::Json;
use crate::principal::Principal;
use crate::version::Revision;
use mcp_resources_template::MatchedParams;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The events of one call: usually one, stored inline; several only for a batch or a tick.
pub type Events<'m> = SmallVec<[Event<'m>; 1]>;

/// An action for the runtime. Answer every `Read`, `Complete`, `List`, `Tool`, `Prompt`, `Access` and `Call` exactly once, with
/// [`Connection::respond`](super::Connection::respond) or [`Connection::finish`](super::Connection::finish), even after
/// `Cancelled`.
#[derive(Debug)]
pub enum Event<'m> {
    /// Read a resource with its handler.
    Read(ReadRequest<'m>),
    /// Complete a variable of a template, or an argument of a prompt.
    Complete(CompletionRequest<'m>),
    /// List the resources of a list source: of a template, or of a mount.
    List(ListRequest<'m>),
    /// Call a tool.
    Tool(NamedRequest<'m>),
    /// Get a prompt.
    Prompt(NamedRequest<'m>),
    /// Decide who may use resources: whose registration has [`Details::access`](crate::resource::Details::access).
    Access(AccessRequest),
    /// Serve a held request from its start: call [`Connection::again`](super::Connection::again), and handle its events.
    Again(Box<HeldRequest>),
    /// Call a method that an [`Extension`](crate::engine::Extension) declares.
    Call(CallRequest<'m>),
    /// The client answered a request made with [`Connection::ask`](super::Connection::ask).
    Replied {
        /// The number returned by `ask`.
        ask: AskId,
        /// The client's `result` or `error` object; `None` after a time-out.
        answer: Option<Result<Json<'m>, Json<'m>>>,
    },
    /// The client sent a notification that the engine does not know.
    Notified {
        /// Its method.
        method: Cow<'m, str>,
        /// Its params, if it had an object.
        params: Option<Json<'m>>,
    },
    /// Nothing to do: the read waits for an identical one that is in progress, and will be answered with it
    /// (`Options::cache`).
    Shared(RequestToken),
    /// The request was cancelled or timed out: stop working on it. It still needs an answer, which is discarded.
    Cancelled(RequestToken),
    /// A URI or list gained its first watcher or lost its last one: call
    /// [`Engine::settle_interest`](crate::engine::Engine::settle_interest) while holding no lock. Sent only if there is
    /// an observer.
    Interest,
}

impl Event<'_> {
    /// The handler to call; `None` for an event without an answer.
    pub fn handler(&self) -> Option<HandlerId> {
        match self {
            Self::Read(request) => Some(request.handler),
            Self::Complete(request) => Some(request.handler),
            Self::List(request) => Some(request.handler),
            Self::Tool(request) | Self::Prompt(request) => Some(request.handler),
            Self::Call(request) => Some(request.handler),
            Self::Access(request) => Some(request.batch.handler),
            _ => None,
        }
    }

    /// The request that needs an answer; `None` for an event without one.
    pub fn asks(&self) -> Option<RequestToken> {
        match self {
            Self::Read(request) => Some(request.token),
            Self::Complete(request) => Some(request.token),
            Self::List(request) => Some(request.token),
            Self::Tool(request) | Self::Prompt(request) => Some(request.token),
            Self::Call(request) => Some(request.token),
            Self::Access(request) => Some(request.token),
            Self::Shared(token) => Some(*token),
            _ => None,
        }
    }
}

/// Identifies an unanswered request of one connection: an index and a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestToken {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl RequestToken {
    /// Converts the token to a number, for other languages.
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// Converts a number from [`to_u64`](Self::to_u64) back. Any other number identifies no request and is ignored.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the number")]
    pub fn from_u64(number: u64) -> Self {
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// Identifies a request from the server to a legacy client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// The principal that sent a request, and the terms of the request.
#[derive(Clone, Debug)]
pub struct Caller<'m> {
    /// The principal, verified by the transport.
    pub principal: &'m Arc<Principal>,
    /// The headers of the HTTP request.
    pub headers: Option<&'m Arc<Headers>>,
    /// The revision under which this request is served.
    pub revision: Revision,
    /// `clientInfo`, unverified: for display and logs only.
    pub client_info: ClientInfo<'m>,
    /// `params._meta`, if it is an object: it may carry trace context, for example.
    pub meta: Option<Json<'m>>,
}

/// A copy of a [`Caller`], for a runtime that needs it after the message, and for the next source of a list.
#[derive(Clone, Debug)]
pub struct OwnedCaller {
    /// The principal, verified by the transport.
    pub principal: Arc<Principal>,
    /// The headers of the HTTP request.
    pub headers: Option<Arc<Headers>>,
    /// The revision under which this request is served.
    pub revision: Revision,
    /// `clientInfo`, unverified, as JSON text.
    pub client_info: Option<Arc<str>>,
    /// `params._meta` as JSON text.
    pub meta: Option<Arc<str>>,
}

/// The sender of a list request.
#[derive(Clone, Debug)]
pub enum ListCaller<'m> {
    /// Of the message that asked for the list.
    Message(Caller<'m>),
    /// Of a list that continues with its next source: its message is gone.
    Kept(Arc<OwnedCaller>),
}

/// The client's description of itself, as JSON text.
#[derive(Clone, Debug, Default)]
pub enum ClientInfo<'m> {
    /// The client gave none.
    #[default]
    None,
    /// From this request (2026-07-28).
    Request(&'m str),
    /// From the handshake of the session.
    Session(Arc<str>),
}

impl From<Caller<'_>> for OwnedCaller {
    fn from(caller: Caller<'_>) -> Self {
        Self {
            principal: caller.principal.clone(),
            headers: caller.headers.cloned(),
            revision: caller.revision,
            client_info: match caller.client_info {
                ClientInfo::None => None,
                ClientInfo::Request(text) => Some(text.into()),
                ClientInfo::Session(text) => Some(text),
            },
            meta: caller.meta.map(|meta| meta.raw().into()),
        }
    }
}

impl From<ListCaller<'_>> for OwnedCaller {
    fn from(caller: ListCaller<'_>) -> Self {
        match caller {
            ListCaller::Message(caller) => caller.into(),
            ListCaller::Kept(caller) => Arc::unwrap_or_clone(caller),
        }
    }
}

impl ClientInfo<'_> {
    /// The JSON object, if there is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::None => None,
            Self::Request(text) => Some(text),
            Self::Session(text) => Some(text),
        }
    }
}

/// `resources/read`, for a handler.
#[derive(Debug)]
pub struct ReadRequest<'m> {
    /// The request to answer.
    pub token: RequestToken,
    /// The handler to call.
    pub handler: HandlerId,
    /// The URI as the client spelled it; contents repeat it.
    pub uri: Cow<'m, str>,
    /// The values of the template's variables; `None` for a resource.
    pub params: Option<MatchedParams<'m>>,
    /// The client's answers to an earlier `InputRequired`: a JSON object, key to result.
    pub inputs: Option<Json<'m>>,
    /// The handler's own state from that `InputRequired`, authenticated.
    pub state: Option<Vec<u8>>,
    /// The sender and terms of the request.
    pub caller: Caller<'m>,
}

/// `completion/complete`, for a completer.
#[derive(Debug)]
pub struct CompletionRequest<'m> {
    /// The request to answer.
    pub token: RequestToken,
    /// The handler of the template or prompt, or the fallback.
    pub handler: HandlerId,
    /// The reference as the client wrote it: the text of a template, a URI, or the name of a prompt. A fallback needs it.
    pub reference: Cow<'m, str>,
    /// The variable or argument to complete.
    pub variable: Cow<'m, str>,
    /// The text typed so far.
    pub value: Cow<'m, str>,
    /// The values chosen so far (`context.arguments`); empty before 2025-06-18.
    pub arguments: Vec<(Cow<'m, str>, Cow<'m, str>)>,
    /// The sender and terms of the request.
    pub caller: Caller<'m>,
}

/// `resources/list`, for a list source: a template with a `.list` callback, or a source without a template.
#[derive(Debug)]
pub struct ListRequest<'m> {
    /// The request to answer.
    pub token: RequestToken,
    /// The handler to call.
    pub handler: HandlerId,
    /// The `next` of the source's last page. Always `None` for a source without pages.
    pub cursor: Option<String>,
    /// Maximum number of items for this page.
    pub limit: usize,
    /// The principal that the list is for.
    pub principal: Arc<Principal>,
    /// The sender and terms of the request, also when the list continues with its next source.
    pub caller: ListCaller<'m>,
}

/// `tools/call` or `prompts/get`, for the handler of the tool or prompt.
#[derive(Debug)]
pub struct NamedRequest<'m> {
    /// The request to answer.
    pub token: RequestToken,
    /// The handler to call.
    pub handler: HandlerId,
    /// The name of the tool or prompt.
    pub name: Cow<'m, str>,
    /// The arguments, if there are any: a JSON object, not checked against the schema of the tool. Those of a prompt are
    /// texts, and its required ones are there.
    pub arguments: Option<Json<'m>>,
    /// The client's answers to an earlier `InputRequired`, as for a read.
    pub inputs: Option<Json<'m>>,
    /// The handler's own state from that `InputRequired`, authenticated.
    pub state: Option<Vec<u8>>,
    /// The sender and terms of the request.
    pub caller: Caller<'m>,
}

/// A custom method, for the handler given with its extension.
#[derive(Debug)]
pub struct CallRequest<'m> {
    /// The request to answer.
    pub token: RequestToken,
    /// The handler given with the extension.
    pub handler: HandlerId,
    /// The method.
    pub method: Cow<'m, str>,
    /// The params, if there are any: a JSON object.
    pub params: Option<Json<'m>>,
    /// The client's answers to an earlier `InputRequired`, as for a read.
    pub inputs: Option<Json<'m>>,
    /// The handler's own state from that `InputRequired`, authenticated.
    pub state: Option<Vec<u8>>,
    /// The sender and terms of the request.
    pub caller: Caller<'m>,
}

/// The severities of log messages, in the order of RFC 5424.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogLevel {
    /// `debug`.
    Debug,
    /// `info`.
    Info,
    /// `notice`.
    Notice,
    /// `warning`.
    Warning,
    /// `error`.
    Error,
    /// `critical`.
    Critical,
    /// `alert`.
    Alert,
    /// `emergency`.
    Emergency,
}

impl LogLevel {
    const ALL: [Self; 8] = [
        Self::Debug,
        Self::Info,
        Self::Notice,
        Self::Warning,
        Self::Error,
        Self::Critical,
        Self::Alert,
        Self::Emergency,
    ];

    /// The level with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == name)
    }

    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
