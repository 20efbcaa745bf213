//! What the engine hands to its host: the requests that only the author can answer, and what the host must know.
//!
//! An event borrows the message it came from, never the connection.

use crate::catalog::HandlerId;
use crate::headers::Headers;
use crate::jsonrpc::Json;
use crate::principal::Principal;
use crate::version::Revision;
use mcp_resources_template::Params;
use smallvec::SmallVec;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// The events of one call: one inline, several only for a batch or a tick.
pub type Events<'m> = SmallVec<[Event<'m>; 1]>;

/// Something for the host to do. Every `Read`, `Complete`, `List` and `Call` is answered exactly once, with
/// [`Connection::respond`](super::Connection::respond) or [`Connection::finish`](super::Connection::finish),
/// also after `Cancelled`.
#[derive(Debug)]
pub enum Event<'m> {
    /// A resource of the author's is read.
    Read(ReadRequest<'m>),
    /// A variable of a template is completed.
    Complete(CompletionRequest<'m>),
    /// The resources of a list source are listed: the concrete ones of a template, or those of a mount.
    List(ListRequest<'m>),
    /// A method declared by an [`Extension`](crate::engine::Extension) is called.
    Call(CallRequest<'m>),
    /// The client answered what [`Connection::ask`](super::Connection::ask) asked.
    Replied {
        /// The number that `ask` returned.
        ask: AskId,
        /// The client's `result`, or its `error` object; `None` when it ran out of time.
        answer: Option<Result<Json<'m>, Json<'m>>>,
    },
    /// A notification that is not ours.
    Notified {
        /// Its method.
        method: Cow<'m, str>,
        /// Its params, if it had an object.
        params: Option<Json<'m>>,
    },
    /// This read waits for another one of the same that is under way, and is answered when that one is: there is nothing
    /// to do (`Options::cache`).
    Shared(RequestToken),
    /// The request was cancelled or ran out of time: stop working on it. It still has to be answered; the answer is
    /// dropped.
    Cancelled(RequestToken),
    /// A URI or list is watched from now on, or no longer: call
    /// [`Engine::settle_interest`](crate::engine::Engine::settle_interest) once no lock is held. Only if there is an observer.
    Interest,
}

impl Event<'_> {
    /// Who is to answer; `None` for an event that has no answer of the host's.
    pub fn handler(&self) -> Option<HandlerId> {
        match self {
            Self::Read(request) => Some(request.handler),
            Self::Complete(request) => Some(request.handler),
            Self::List(request) => Some(request.handler),
            Self::Call(request) => Some(request.handler),
            _ => None,
        }
    }

    /// The request that will be answered later; `None` for an event that has no answer.
    pub fn asks(&self) -> Option<RequestToken> {
        match self {
            Self::Read(request) => Some(request.token),
            Self::Complete(request) => Some(request.token),
            Self::List(request) => Some(request.token),
            Self::Call(request) => Some(request.token),
            Self::Shared(token) => Some(*token),
            _ => None,
        }
    }
}

/// Names one request of one connection while it is unanswered: an index and a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestToken {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl RequestToken {
    /// The token as one number, for a host language.
    pub fn to_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    /// The token that [`to_u64`](Self::to_u64) gave. An invented number names no request: it is ignored.
    #[expect(clippy::cast_possible_truncation, reason = "the two halves of the number")]
    pub fn from_u64(number: u64) -> Self {
        Self { index: number as u32, generation: (number >> 32) as u32 }
    }
}

/// Names one request of the server to a legacy client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// Who asked, and under which terms.
#[derive(Clone, Debug)]
pub struct Caller<'m> {
    /// The principal that the transport verified.
    pub principal: &'m Arc<Principal>,
    /// The headers of the HTTP request that it came in.
    pub headers: Option<&'m Arc<Headers>>,
    /// The revision that this request is served under.
    pub revision: Revision,
    /// `clientInfo`, unverified: for display and logs.
    pub client_info: ClientInfo<'m>,
    /// `params._meta`, when it is an object: trace context among others.
    pub meta: Option<Json<'m>>,
}

/// The client's description of itself, as JSON text.
#[derive(Clone, Debug, Default)]
pub enum ClientInfo<'m> {
    /// It gave none.
    #[default]
    None,
    /// In this request (2026-07-28).
    Request(&'m str),
    /// In the handshake of the session.
    Session(Arc<str>),
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
    /// Names the request in the answer.
    pub token: RequestToken,
    /// The author's function.
    pub handler: HandlerId,
    /// The URI as the client spelled it; contents repeat it.
    pub uri: Cow<'m, str>,
    /// The values of the template's variables; `None` for a resource.
    pub params: Option<Params<'m>>,
    /// What the client answered to an earlier `InputRequired`: a JSON object, key to result.
    pub inputs: Option<Json<'m>>,
    /// The author's own state from that `InputRequired`, authenticated.
    pub state: Option<Vec<u8>>,
    /// Who asks.
    pub caller: Caller<'m>,
}

/// `completion/complete`, for a completer.
#[derive(Debug)]
pub struct CompletionRequest<'m> {
    /// Names the request in the answer.
    pub token: RequestToken,
    /// The handler of the template, or the fallback.
    pub handler: HandlerId,
    /// What the client wants completed, as it wrote it: the text of a template, or a URI. A fallback needs it.
    pub reference: Cow<'m, str>,
    /// The variable to complete.
    pub variable: Cow<'m, str>,
    /// What has been typed.
    pub value: Cow<'m, str>,
    /// The values chosen so far (`context.arguments`); empty before 2025-06-18.
    pub arguments: Vec<(Cow<'m, str>, Cow<'m, str>)>,
    /// Who asks.
    pub caller: Caller<'m>,
}

/// `resources/list` has come to a list source: a template with a `.list` callback, or one without a template.
#[derive(Debug)]
pub struct ListRequest<'m> {
    /// Names the request in the answer.
    pub token: RequestToken,
    /// The function that lists.
    pub handler: HandlerId,
    /// Where to go on: what the callback's last page gave as `next`. Always `None` for a callback that does not page.
    pub cursor: Option<String>,
    /// How many items fit on the page.
    pub limit: usize,
    /// Whose list it is.
    pub principal: Arc<Principal>,
    /// Who asks; `None` when one request goes on from one source to the next.
    pub caller: Option<Caller<'m>>,
}

/// A custom method, for the author's function behind the extension door.
#[derive(Debug)]
pub struct CallRequest<'m> {
    /// Names the request in the answer.
    pub token: RequestToken,
    /// The handler given with the extension.
    pub handler: HandlerId,
    /// The method.
    pub method: Cow<'m, str>,
    /// The params, if there are any: a JSON object.
    pub params: Option<Json<'m>>,
    /// What the client answered to an earlier `InputRequired`, as for a read.
    pub inputs: Option<Json<'m>>,
    /// The author's own state from that `InputRequired`, authenticated.
    pub state: Option<Vec<u8>>,
    /// Who asks.
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
