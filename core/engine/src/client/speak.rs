//! Builds the messages of a client, for both eras.
//!
//! Law: serializes its arguments; the only state that changes is the next id.

use super::Outgoing;
use super::decode::one_line;
use crate::jsonrpc::{Envelope, Id, Json, JsonKind, JsonMembers, ObjectWriter, OwnedId, object};
use crate::meta;
use crate::version::{ProtocolMethod, Revision};

/// The members of `_meta` with which every modern request describes its client.
const DECLARED: [&str; 3] = [meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::CLIENT_INFO];

/// The client's description of itself, the agreed revision, and the next id.
#[derive(Clone, Debug)]
pub(super) struct Speaker {
    /// `None` before a revision is agreed.
    pub(super) revision: Option<Revision>,
    /// A JSON object.
    pub(super) capabilities: String,
    /// A JSON object.
    pub(super) info: String,
    next: u64,
}

/// A request: its method, and everything except its own params.
pub(super) struct OutgoingRequest<'a> {
    pub(super) method: &'a str,
    /// The URI or name for the header `Mcp-Name`.
    pub(super) name: Option<&'a str>,
    /// Whether to ask for progress notifications.
    pub(super) progress: bool,
    /// The caller's members of `_meta`. The client's own members take precedence, but for the capabilities: a caller of
    /// a method that the client does not know answers its questions itself.
    pub(super) meta: Option<JsonMembers<'a>>,
}

impl<'a> OutgoingRequest<'a> {
    pub(super) fn new(method: ProtocolMethod) -> Self {
        Self { method: method.as_str(), name: None, progress: false, meta: None }
    }

    pub(super) fn named(self, name: &'a str) -> Self {
        Self { name: Some(name), ..self }
    }
}

impl Speaker {
    pub(super) fn new(info: String, capabilities: String) -> Self {
        Self { revision: None, capabilities, info, next: 1 }
    }

    /// The id that the next request will have.
    pub(super) fn next_id(&self) -> u64 {
        self.next
    }

    /// Takes the next id. No id is used twice, not even on another connection.
    fn id(&mut self) -> u64 {
        let id = self.next;
        self.next += 1;
        id
    }

    /// Builds a request of the agreed revision.
    pub(super) fn request(
        &mut self,
        ask: &OutgoingRequest<'_>,
        params: impl FnOnce(&mut ObjectWriter<'_>),
    ) -> Outgoing {
        let id = self.id();
        let is_modern = self.revision.is_some_and(Revision::is_modern);
        let mut body = Vec::with_capacity(256);
        let owned = OwnedId::from(id);
        Envelope::request(&mut body, owned.as_id(), ask.method, |writer| {
            params(writer);
            writer.object_unless_empty("_meta", |own| {
                if is_modern {
                    self.declare(own, ask.meta.as_ref());
                }
                if ask.progress {
                    own.u64(meta::PROGRESS_TOKEN, id);
                }
                for (name, value) in ask.meta.iter().flat_map(JsonMembers::iter) {
                    let is_own = is_modern && DECLARED.contains(&&*name)
                        || ask.progress && name == meta::PROGRESS_TOKEN;
                    if !is_own {
                        own.named(&name).extend_from_slice(one_line(value).as_bytes());
                    }
                }
            });
        });
        Outgoing {
            id: Some(id),
            method: ask.method.into(),
            revision: self.revision.map(Revision::as_str),
            is_modern,
            name: ask.name.map(str::to_owned),
            body,
        }
    }

    /// Builds `server/discover`, the first message to a server that may be modern.
    pub(super) fn discover(&mut self) -> Outgoing {
        self.revision = Some(Revision::V2026_07_28);
        let message = self.request(&OutgoingRequest::new(ProtocolMethod::Discover), |_| ());
        self.revision = None;
        message
    }

    /// Builds `initialize`, the handshake of the legacy revisions.
    pub(super) fn initialize(&mut self, revision: Revision) -> Outgoing {
        self.revision = None;
        let info = self.info.clone();
        let capabilities = self.capabilities.clone();
        self.request(&OutgoingRequest::new(ProtocolMethod::Initialize), |params| {
            params.str("protocolVersion", revision.as_str());
            params.value("capabilities").extend_from_slice(capabilities.as_bytes());
            params.value("clientInfo").extend_from_slice(info.as_bytes());
        })
    }

    /// Builds a notification of the agreed revision.
    pub(super) fn notification(&self, method: &str, params: impl FnOnce(&mut ObjectWriter<'_>)) -> Outgoing {
        let mut body = Vec::new();
        Envelope::notification(&mut body, method, params);
        self.outgoing(method, body)
    }

    /// Builds the answer to a request of the server.
    pub(super) fn response(&self, id: Id<'_>, result: Json<'_>) -> Outgoing {
        let mut body = Vec::new();
        object(&mut body, |message| {
            message.str("jsonrpc", "2.0");
            message.raw("id", Json::from(id));
            message.raw("result", result);
        });
        self.outgoing("", body)
    }

    /// Builds an error as the answer to a request of the server.
    pub(super) fn refusal(&self, id: Id<'_>, code: i32, message: &str) -> Outgoing {
        let mut body = Vec::new();
        object(&mut body, |writer| {
            writer.str("jsonrpc", "2.0");
            writer.raw("id", Json::from(id));
            writer.object("error", |error| {
                error.i64("code", code.into());
                error.str("message", message);
            });
        });
        self.outgoing("", body)
    }

    fn outgoing(&self, method: &str, body: Vec<u8>) -> Outgoing {
        Outgoing {
            id: None,
            method: method.into(),
            revision: self.revision.map(Revision::as_str),
            is_modern: self.revision.is_some_and(Revision::is_modern),
            name: None,
            body,
        }
    }

    /// Writes the members of [`DECLARED`].
    fn declare(&self, own: &mut ObjectWriter<'_>, given: Option<&JsonMembers<'_>>) {
        own.str(meta::PROTOCOL_VERSION, Revision::V2026_07_28.as_str());
        let given = given.and_then(|given| given.get(meta::CLIENT_CAPABILITIES));
        let capabilities = given.filter(|json| json.kind() == JsonKind::Object).map(one_line);
        let capabilities = capabilities.as_deref().unwrap_or(&self.capabilities);
        own.value(meta::CLIENT_CAPABILITIES).extend_from_slice(capabilities.as_bytes());
        own.value(meta::CLIENT_INFO).extend_from_slice(self.info.as_bytes());
    }
}
