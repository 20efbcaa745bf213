//! The lines of two pipes with this engine between them: what a line of the client or of the other server is, and how the
//! answers of both are written.
//!
//! Law: a line that needs nothing of this engine is passed on as it came, byte for byte. Ids of questions to the other
//! server are texts that no client chooses, so answers are never confused.

use super::connection::{EmbeddedNotice, TheirAnswer};
use super::{EmbeddedServer, Sorted};
use crate::connection::TOO_LARGE;
use crate::jsonrpc::{
    DecodeLimits, Decoded, Envelope, Id, Json, Message, ObjectWriter, OversizedLine, OwnedId, RawParams,
    decode, end, object,
};
use crate::meta;
use crate::principal::Principal;
use crate::version::{CANCELLED, INVALID_REQUEST, ProtocolMethod, Revision};
use std::borrow::Cow;
use std::cell::LazyCell;

/// The beginning of the ids of questions to the other server.
const QUESTION: &str = "mcp-resources:";
/// The params of a message without any.
const NO_PARAMS: &str = "{}";

/// A line of the client.
#[derive(Debug)]
pub enum ClientLine {
    /// Pass it on.
    Theirs,
    /// Pass it on; this engine must know of it too: [`EmbeddedConnection::tell`](super::EmbeddedConnection::tell).
    Told {
        /// The method.
        method: String,
        /// The params as JSON text.
        params: String,
    },
    /// End the request with this id here, and pass the line on.
    Cancels(String),
    /// Start the request here; do not pass it on.
    Ours(LineRequest),
    /// Pass it on, and start the request here when the other server has answered.
    Both(LineRequest),
}

/// A request in a line.
#[derive(Clone, Debug)]
pub struct LineRequest {
    /// The id as JSON text.
    pub id: String,
    /// The method.
    pub method: String,
    /// The params as JSON text; `{}` without any.
    pub params: String,
    /// The revision of a modern request, which is complete in itself. `None` for a request of a session.
    pub version: Option<String>,
    /// Whether it opens a listen, which is then opened at the other server too.
    pub is_listen: bool,
    /// Whether the other server's answer begins a session.
    pub is_handshake: bool,
}

/// A line of the other server.
#[derive(Debug)]
pub enum ServerLine {
    /// Pass it on.
    Other,
    /// A notification of a change: [`EmbeddedServer::changed`] says whether to pass it on.
    Change(EmbeddedNotice),
    /// An answer to the request of the client with this id.
    Answer {
        /// The id in the form of [`LineRequest::key`].
        key: String,
        /// The answer.
        answer: OwnedAnswer,
    },
    /// An answer to the question with this number.
    Asked {
        /// Its number.
        question: u64,
        /// The answer.
        answer: OwnedAnswer,
    },
    /// A message of a listen that no client has opened. Drop it.
    Unasked,
}

/// An answer of the other server, kept until it is merged.
#[derive(Clone, Debug)]
pub enum OwnedAnswer {
    /// The result as JSON text.
    Result(String),
    /// The error as JSON text.
    Error {
        /// Its code.
        code: i64,
        /// Its message.
        message: String,
        /// Its data as JSON text.
        data: Option<String>,
    },
}

impl OwnedAnswer {
    pub(super) fn from_json(result: Result<Json<'_>, Json<'_>>) -> Self {
        match result {
            Ok(result) => Self::Result(result.raw().to_owned()),
            Err(error) => {
                let members = error.object();
                let member = |name: &str| members.as_ref().and_then(|members| members.get(name));
                Self::Error {
                    code: member("code").and_then(Json::as_i64).unwrap_or_default(),
                    message: member("message").and_then(Json::as_str).unwrap_or_default().into_owned(),
                    data: member("data").map(|data| data.raw().to_owned()),
                }
            }
        }
    }

    /// For [`EmbeddedRequest::theirs`](super::EmbeddedRequest::theirs).
    pub fn as_theirs(&self) -> TheirAnswer<'_> {
        match self {
            Self::Result(text) => TheirAnswer::Result(text),
            Self::Error { code, message, data } => {
                TheirAnswer::Error { code: *code, message, data: data.as_deref() }
            }
        }
    }

    /// The revision under which the other server begins a session.
    pub fn negotiated(&self) -> Option<String> {
        let Self::Result(text) = self else { return None };
        let members = Json::parse(text.as_bytes(), usize::MAX)?.object()?;
        members.get("protocolVersion")?.as_str().map(Cow::into_owned)
    }

    /// Appends the line that answers the request with this id.
    pub fn write(&self, id: &str, out: &mut Vec<u8>) {
        match self {
            Self::Result(text) => write_result(id, text, out),
            Self::Error { code, message, data } => write_error(id, *code, message, data.as_deref(), out),
        }
    }
}

impl LineRequest {
    /// A text that is the same for equal ids.
    pub fn key(&self) -> String {
        id_key(&self.id)
    }
}

/// The result of sorting a message, with what is needed of it.
fn sorted_line(sorted: Sorted, message: &Message<'_>) -> ClientLine {
    let (Message::Notification { method, params } | Message::Request { method, params, .. }) = message else {
        return ClientLine::Theirs;
    };
    let request = |id: Id<'_>| {
        let known = ProtocolMethod::parse(method);
        LineRequest {
            id: id.raw().to_owned(),
            method: method.clone().into_owned(),
            params: params_text(params).to_owned(),
            version: version(params),
            is_listen: known == Some(ProtocolMethod::Listen),
            is_handshake: known == Some(ProtocolMethod::Initialize),
        }
    };
    match (sorted, message) {
        (Sorted::Cancels(id), _) => ClientLine::Cancels(id_key(&id)),
        (Sorted::Told, _) => {
            ClientLine::Told { method: method.clone().into_owned(), params: params_text(params).to_owned() }
        }
        (Sorted::Ours, Message::Request { id, .. }) => ClientLine::Ours(request(*id)),
        (Sorted::Both, Message::Request { id, .. }) => ClientLine::Both(request(*id)),
        _ => ClientLine::Theirs,
    }
}

fn params_text<'p>(params: &'p RawParams<'_>) -> &'p str {
    match params {
        RawParams::Object { raw, .. } => raw.raw(),
        RawParams::Absent | RawParams::Other(_) => NO_PARAMS,
    }
}

/// A text that is the same for equal ids, which are JSON texts.
pub(super) fn id_key(id: &str) -> String {
    let parsed = Json::parse(id.as_bytes(), 1).and_then(Id::from_json);
    parsed.map_or_else(|| id.to_owned(), |id| id.canonical().into_owned())
}

impl EmbeddedServer {
    /// Reads a line of the client.
    pub fn client_line(&self, line: &[u8], sender: &Principal) -> ClientLine {
        let Decoded::Message(message) = decode(line, &self.line_limits()) else { return ClientLine::Theirs };
        let sorted = match &message {
            Message::Response { .. } => Sorted::Theirs,
            Message::Notification { method, params } => {
                self.sort(method, false, sender, || Cow::Borrowed(params_text(params)))
            }
            Message::Request { method, params, .. } => {
                self.sort(method, true, sender, || Cow::Borrowed(params_text(params)))
            }
        };
        sorted_line(sorted, &message)
    }

    /// Reads a message of the client whose method, and whether it has an id, are known. `line` makes its JSON text, and is
    /// called only if the result depends on more.
    pub fn client_message(
        &self,
        method: &str,
        is_request: bool,
        sender: &Principal,
        line: impl FnOnce() -> String,
    ) -> ClientLine {
        let line = LazyCell::new(line);
        let limits = self.line_limits();
        let message = LazyCell::new(|| match decode(line.as_bytes(), &limits) {
            Decoded::Message(message) => Some(message),
            _ => None,
        });
        let params = || match &*message {
            Some(Message::Notification { params, .. } | Message::Request { params, .. }) => {
                params_text(params)
            }
            _ => NO_PARAMS,
        };
        match self.sort(method, is_request, sender, || Cow::Borrowed(params())) {
            Sorted::Theirs => ClientLine::Theirs,
            sorted => (*message).as_ref().map_or(ClientLine::Theirs, |message| sorted_line(sorted, message)),
        }
    }

    /// A text that is the same for equal ids, which are JSON texts.
    pub fn id_key(id: &str) -> String {
        id_key(id)
    }

    /// The same text for the id of a question to the other server.
    pub fn question_key(question: u64) -> String {
        question_id(question).as_id().canonical().into_owned()
    }

    /// Whether a question to the other server may have this id, in the form of [`EmbeddedServer::id_key`].
    pub fn is_question(key: &str) -> bool {
        Json::parse(key.as_bytes(), 1).and_then(Id::from_json).and_then(question).is_some()
    }

    /// Reads a line of the other server.
    pub fn server_line(&self, line: &[u8]) -> ServerLine {
        match decode(line, &self.line_limits()) {
            Decoded::Message(Message::Response { id: Some(id), result }) => {
                let answer = OwnedAnswer::from_json(result);
                match question(id) {
                    Some(question) => ServerLine::Asked { question, answer },
                    None => ServerLine::Answer { key: id.canonical().into_owned(), answer },
                }
            }
            Decoded::Message(Message::Notification { method, params }) => {
                let is_unasked = params
                    .meta(meta::SUBSCRIPTION_ID)
                    .and_then(Id::from_json)
                    .is_some_and(|id| question(id).is_some());
                if Self::is_change(&method) {
                    let params = match &params {
                        RawParams::Object { raw, .. } => Some(raw.raw().to_owned()),
                        _ => None,
                    };
                    return ServerLine::Change(EmbeddedNotice { method: method.into_owned(), params });
                }
                if is_unasked { ServerLine::Unasked } else { ServerLine::Other }
            }
            _ => ServerLine::Other,
        }
    }

    /// The texts of others are passed on, so only what protects the reader is limited.
    pub(super) fn line_limits(&self) -> DecodeLimits {
        DecodeLimits { nesting: self.engine.limits().nesting, members: usize::MAX, ..DecodeLimits::default() }
    }
}

/// The revision that a modern request names.
pub(super) fn version(params: &RawParams<'_>) -> Option<String> {
    let version = params.meta(meta::PROTOCOL_VERSION)?.as_str()?;
    // A legacy revision in its place belongs to a session.
    let is_legacy = Revision::parse(&version).is_some_and(|revision| !revision.is_modern());
    (!is_legacy).then(|| version.into_owned())
}

fn question(id: Id<'_>) -> Option<u64> {
    let text = Json::from(id).as_str()?;
    text.strip_prefix(QUESTION)?.parse().ok()
}

fn question_id(question: u64) -> OwnedId {
    let text = format!("\"{QUESTION}{question}\"");
    let id = Json::parse(text.as_bytes(), 1).and_then(Id::from_json);
    id.map_or_else(|| OwnedId::from(question), OwnedId::from)
}

/// Appends the members of an object that is given as JSON text.
fn members(writer: &mut ObjectWriter<'_>, text: &str) {
    let parsed = Json::parse(text.as_bytes(), usize::MAX).and_then(Json::object);
    for (name, value) in parsed.iter().flat_map(|members| members.iter()) {
        writer.named(&name).extend_from_slice(value.raw().as_bytes());
    }
}

/// Appends the line with a result.
pub fn write_result(id: &str, result: &str, out: &mut Vec<u8>) {
    object(out, |message| {
        message.str("jsonrpc", "2.0");
        message.value("id").extend_from_slice(id.as_bytes());
        message.value("result").extend_from_slice(result.as_bytes());
    });
    end(out);
}

/// Appends the line with an error.
pub fn write_error(id: &str, code: i64, message: &str, data: Option<&str>, out: &mut Vec<u8>) {
    object(out, |response| {
        response.str("jsonrpc", "2.0");
        response.value("id").extend_from_slice(id.as_bytes());
        response.object("error", |error| {
            error.i64("code", code);
            error.str("message", message);
            if let Some(data) = data {
                error.value("data").extend_from_slice(data.as_bytes());
            }
        });
    });
    end(out);
}

/// Appends the line that refuses a message larger than either server takes; nothing if it has no id.
pub fn write_too_large(line: OversizedLine<'_>, out: &mut Vec<u8>) {
    if let Some(id) = line.id() {
        write_error(id.raw(), INVALID_REQUEST.into(), TOO_LARGE, None, out);
    }
}

/// Appends the line with a notification.
pub fn write_notice(notice: &EmbeddedNotice, out: &mut Vec<u8>) {
    Envelope::notification(out, &notice.method, |writer| {
        members(writer, notice.params.as_deref().unwrap_or("{}"));
    });
    end(out);
}

/// Appends the line with a question to the other server.
pub fn write_question(question: u64, method: &str, params: &str, out: &mut Vec<u8>) {
    Envelope::request(out, question_id(question).as_id(), method, |writer| members(writer, params));
    end(out);
}

/// Appends the line that cancels a question to the other server.
pub fn write_question_cancelled(question: u64, out: &mut Vec<u8>) {
    Envelope::notification(out, CANCELLED, |params| {
        params.raw("requestId", Json::from(question_id(question).as_id()));
    });
    end(out);
}
