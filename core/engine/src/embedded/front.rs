//! The pipe of a client, where this program owns it and another server is behind it: which lines this engine answers alone.
//!
//! Law: only reads of our own resources are answered here. The other server gets all other lines: this engine is inside its
//! connection too, and merges, subscribes and adopts there.

use super::lines::{OwnedAnswer, id_key};
use super::{EmbeddedServer, Params};
use crate::catalog::CatalogRoute;
use crate::connection::{Connection, ConnectionKind};
use crate::engine::Engine;
use crate::jsonrpc::{Decoded, Envelope, Id, Json, Message, OwnedId, RawParams, decode};
use crate::version::{CANCELLED, ProtocolMethod};
use mcp_resources_template::uri;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Most requests whose answers by the other server are waited for when the client has closed its end.
const MOST_WAITING: usize = 1_024;

/// The server that gets a line of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontLine {
    /// The connection of [`EmbeddedFront::connect`] alone.
    Ours,
    /// The other server alone.
    Theirs,
    /// The other server, and the connection, whose output is dropped.
    Both,
}

/// The state of the pipe of one client of another server.
pub struct EmbeddedFront {
    server: Arc<EmbeddedServer>,
    /// The handshake that the other server has not answered.
    handshake: Option<FrontHandshake>,
    /// Whether the other server has sent something.
    is_ready: bool,
    /// Whether the other server has begun a session.
    has_session: bool,
    /// The ids of requests that the other server has not answered.
    waiting: HashSet<String>,
}

struct FrontHandshake {
    key: String,
    method: String,
    params: String,
}

impl EmbeddedFront {
    /// The state of a new client.
    pub fn new(server: &Arc<EmbeddedServer>) -> Self {
        let server = server.clone();
        Self { server, handshake: None, is_ready: false, has_session: false, waiting: HashSet::new() }
    }

    /// The connection for the lines that are ours.
    pub fn connect(engine: &Arc<Engine>) -> Connection {
        engine.connect(ConnectionKind::Beside)
    }

    /// The number of requests that the other server has not answered, but for those that last as long as the client.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Finds the server that gets a line of the client.
    pub fn client_line(&mut self, line: &[u8]) -> FrontLine {
        let is_small = line.len() <= self.server.engine.limits().message;
        let limits = self.server.line_limits();
        match decode(line, &limits) {
            Decoded::Message(Message::Request { id, method, params }) => {
                let known = ProtocolMethod::parse(&method);
                match known {
                    Some(ProtocolMethod::Read) if is_small && self.answers(&params) => {
                        return FrontLine::Ours;
                    }
                    // It is open until the client or the server ends.
                    Some(ProtocolMethod::Listen) => return FrontLine::Theirs,
                    Some(ProtocolMethod::Initialize) => self.greeted(id, &method, &params),
                    _ => {}
                }
                if self.waiting.len() < MOST_WAITING {
                    self.waiting.insert(id.canonical().into_owned());
                }
                match known {
                    Some(ProtocolMethod::SetLevel) => FrontLine::Both,
                    _ => FrontLine::Theirs,
                }
            }
            Decoded::Message(Message::Notification { method, params }) if method == CANCELLED => {
                if let Some(id) = params.get("requestId") {
                    self.waiting.remove(&id_key(id.raw()));
                }
                FrontLine::Both
            }
            _ => FrontLine::Theirs,
        }
    }

    /// Looks at a line that the other server sends. Returns the message with which the connection begins the same session;
    /// its output is dropped.
    pub fn server_line(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        self.is_ready = true;
        if self.waiting.is_empty() {
            return None;
        }
        let Decoded::Message(Message::Response { id: Some(id), result }) =
            decode(line, &self.server.line_limits())
        else {
            return None;
        };
        let key = id.canonical();
        self.waiting.remove(&*key);
        let handshake = self.handshake.take_if(|handshake| handshake.key == *key)?;
        let version = OwnedAnswer::from_json(result).negotiated()?;
        self.has_session = true;
        let params = Params::parse(&handshake.params, self.server.engine.limits());
        let mut message = Vec::new();
        Envelope::request(&mut message, OwnedId::from(0).as_id(), &handshake.method, |writer| {
            for (name, value) in params.0.iter().flat_map(|members| members.iter()) {
                match &*name {
                    "protocolVersion" => writer.str("protocolVersion", &version),
                    _ => writer.named(&name).extend_from_slice(value.raw().as_bytes()),
                }
            }
        });
        Some(message)
    }

    /// The other server has ended: nothing is waited for.
    pub fn server_left(&mut self) {
        self.waiting.clear();
        self.handshake = None;
    }

    fn greeted(&mut self, id: Id<'_>, method: &str, params: &RawParams<'_>) {
        let params = match params {
            RawParams::Object { raw, .. } => raw.raw().to_owned(),
            RawParams::Absent | RawParams::Other(_) => return,
        };
        let key = id.canonical().into_owned();
        self.handshake = Some(FrontHandshake { key, method: method.to_owned(), params });
    }

    /// Whether a read is of a resource of our own, in the era that the other server serves.
    fn answers(&self, params: &RawParams<'_>) -> bool {
        let is_modern = super::lines::version(params).is_some();
        let is_in_turn = if is_modern { self.is_ready && !self.has_session } else { self.has_session };
        let Some(given) = params.get("uri").and_then(Json::as_str).filter(|_| is_in_turn) else {
            return false;
        };
        let engine = &self.server.engine;
        let Ok(normal) = uri::normalize(&given, engine.limits().uri) else { return false };
        let catalog = engine.catalog();
        matches!(catalog.route(&normal), CatalogRoute::Resource(_) | CatalogRoute::Template(..))
    }
}

impl fmt::Debug for EmbeddedFront {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedFront").field("has_session", &self.has_session).finish_non_exhaustive()
    }
}
