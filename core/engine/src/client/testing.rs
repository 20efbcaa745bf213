//! The client for tests of a server: the machine, driven message by message. Each language transports the bytes and converts
//! messages to its own types.
//!
//! ```text
//!   a request ──▶ TestClient ─ Machine ──▶ output: bytes ──▶ a connection in memory ──▶ the server
//!   messages: results, errors, notifications ◀── received(bytes) ◀───────────────────────
//! ```
//!
//! Law: messages of the server are classified and returned unchecked. Nothing is sent unless the test asks for it, except the
//! handshake of a legacy revision, and answers to `ping`.

use super::decode::one_line;
use super::{
    Access, ClientCall, ClientError, ClientImplementation, ClientLimits, Effect, Failure, Machine,
    MachineOptions, Outgoing,
};
use crate::jsonrpc::{Json, JsonMembers, Line, Lines, RawParams, object};
use crate::meta;
use crate::now::Now;
use crate::version::{ProtocolMethod, Revision, ServerNotification};

/// Maximum nesting of the params and capabilities of a test.
const NESTING: usize = 128;
/// No time passes, so nothing times out.
const NOW: Now = Now { tick: 0, unix: 0 };

/// A test client for one revision. See the module.
#[derive(Debug)]
pub struct TestClient {
    machine: Machine,
    lines: Lines,
    effects: Vec<Effect>,
    output: Vec<u8>,
    messages: Vec<ServerMessage>,
    handshake: Option<u64>,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMessage {
    /// Its kind.
    pub kind: MessageKind,
    /// The request that it answers or belongs to.
    pub id: Option<u64>,
    /// The method of a notification; empty for an answer.
    pub method: String,
    /// Its result, error or params, as JSON text.
    pub body: String,
}

/// The kinds of message that a server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// A result.
    Result,
    /// An error.
    Error,
    /// A watched resource has changed.
    Updated,
    /// A list has changed.
    ListChanged,
    /// A listen is open.
    Acknowledged,
    /// A handler reports its progress.
    Progress,
    /// A log message.
    Log,
    /// The server ended a listen.
    Cancelled,
    /// Anything else.
    Other,
}

impl TestClient {
    /// Makes a client that declares `capabilities`, the text of a JSON object; any other text counts as `{}`. A legacy
    /// revision starts with its handshake: [`TestClient::handshake`].
    pub fn new(revision: Revision, capabilities: &str) -> Self {
        let mut options = MachineOptions::new("server", Access::everything());
        options.revision = Some(revision);
        options.info = ClientImplementation {
            name: "mcp-resources-testing".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        options.is_testing = true;
        let mut client = Self {
            machine: Machine::new(options),
            lines: Lines::new(ClientLimits::default().message),
            effects: Vec::new(),
            output: Vec::new(),
            messages: Vec::new(),
            handshake: None,
        };
        client.declare(capabilities);
        client.machine.connect_now(&mut client.effects);
        client.machine.opened(NOW, &mut client.effects);
        client.handshake = client.effects.iter().find_map(|effect| match effect {
            Effect::Send(message) => message.id,
            _ => None,
        });
        client.perform();
        client
    }

    /// Declares other capabilities on later requests. A session keeps those of its handshake.
    pub fn declare(&mut self, capabilities: &str) {
        let capabilities = parsed(capabilities).map_or_else(|| "{}".into(), |json| one_line(json));
        self.machine.declare(capabilities);
    }

    /// The id of the handshake; `None` for a revision without one. Send requests only after its answer.
    pub fn handshake(&self) -> Option<u64> {
        self.handshake
    }

    /// Returns the method with the short name `name`, such as `read`, or `name` itself if it contains a slash. `None`
    /// for any other name.
    pub fn method(name: &str) -> Option<&str> {
        let method = match name {
            "initialize" => ProtocolMethod::Initialize,
            "discover" => ProtocolMethod::Discover,
            "list" => ProtocolMethod::List,
            "list_templates" => ProtocolMethod::ListTemplates,
            "read" => ProtocolMethod::Read,
            "complete" => ProtocolMethod::Complete,
            "subscribe" => ProtocolMethod::Subscribe,
            "unsubscribe" => ProtocolMethod::Unsubscribe,
            "listen" => ProtocolMethod::Listen,
            "set_level" => ProtocolMethod::SetLevel,
            _ => return name.contains('/').then_some(name),
        };
        Some(method.as_str())
    }

    /// Sends a request and returns its id. `params` and `meta` are the texts of JSON objects. Members of a `_meta` in
    /// `params` are sent too; members that the revision requires are replaced by the client's own.
    ///
    /// # Errors
    /// [`ClientError`] if a text is not a JSON object, the handshake is unanswered, or too many requests are pending.
    pub fn send(&mut self, method: &str, params: &str, meta: &str) -> Result<u64, ClientError> {
        if self.machine.about().is_none() {
            return Err(Failure::Unreachable { reason: "no handshake was made".into() }.into());
        }
        let params = with_meta(params, meta).ok_or_else(no_object)?;
        let call = ClientCall::Custom { method: method.into(), params };
        let id = self.machine.call_by_id(call, NOW, &mut self.effects);
        match self.effects.pop_if(|effect| matches!(effect, Effect::Finished { .. })) {
            Some(Effect::Finished { outcome: Err(error), .. }) => Err(error),
            _ => {
                self.perform();
                Ok(id)
            }
        }
    }

    /// Sends a notification with the members of `params`, the text of a JSON object.
    ///
    /// # Errors
    /// [`ClientError`] if `params` is not a JSON object.
    pub fn notify(&mut self, method: &str, params: &str) -> Result<(), ClientError> {
        let params = parsed(params).ok_or_else(no_object)?;
        self.machine.notify(method, params, &mut self.effects);
        self.perform();
        Ok(())
    }

    /// Cancels a pending request.
    pub fn cancel(&mut self, id: u64) {
        self.machine.cancel(id, NOW, &mut self.effects);
        self.perform();
    }

    /// Takes bytes of the server, in chunks of any size.
    pub fn received(&mut self, bytes: &[u8]) {
        self.lines.push(bytes);
        while let Some(line) = self.lines.next() {
            if let Line::Message(line) = line {
                self.machine.received(line, NOW, &mut self.effects);
            }
        }
        self.perform();
    }

    /// Takes the messages received since the last call, in order.
    pub fn take_messages(&mut self) -> Vec<ServerMessage> {
        std::mem::take(&mut self.messages)
    }

    /// Takes the lines to send.
    pub fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Carries out the effects. Answers are reported as messages, so [`Effect::Finished`] is ignored.
    fn perform(&mut self) {
        for effect in self.effects.drain(..) {
            match effect {
                Effect::Send(Outgoing { body, .. }) => {
                    self.output.extend_from_slice(&body);
                    self.output.push(b'\n');
                }
                Effect::Message(message) => self.messages.push(message),
                _ => {}
            }
        }
    }
}

impl ServerMessage {
    pub(super) fn answer(id: Option<u64>, result: Result<Json<'_>, Json<'_>>) -> Self {
        let (kind, body) = match result {
            Ok(result) => (MessageKind::Result, result),
            Err(error) => (MessageKind::Error, error),
        };
        Self { kind, id, method: String::new(), body: body.raw().to_owned() }
    }

    pub(super) fn notification(method: &str, params: &RawParams<'_>) -> Self {
        let body = match params {
            RawParams::Object { raw, .. } => raw.raw(),
            RawParams::Absent | RawParams::Other(_) => "{}",
        };
        Self {
            kind: MessageKind::from_method(method),
            id: belongs_to(params),
            method: method.to_owned(),
            body: body.to_owned(),
        }
    }
}

impl MessageKind {
    fn from_method(method: &str) -> Self {
        match ServerNotification::parse(method) {
            Some(ServerNotification::Updated) => Self::Updated,
            Some(ServerNotification::Acknowledged) => Self::Acknowledged,
            Some(ServerNotification::Progress) => Self::Progress,
            Some(ServerNotification::Cancelled) => Self::Cancelled,
            Some(ServerNotification::ListChanged) => Self::ListChanged,
            None if method == "notifications/message" => Self::Log,
            None if method.ends_with("/list_changed") => Self::ListChanged,
            None => Self::Other,
        }
    }

    /// Its name in bindings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Error => "error",
            Self::Updated => "updated",
            Self::ListChanged => "list_changed",
            Self::Acknowledged => "acknowledged",
            Self::Progress => "progress",
            Self::Log => "log",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }
}

/// The listen or request that a notification belongs to.
fn belongs_to(params: &RawParams<'_>) -> Option<u64> {
    let listen = params.meta(meta::SUBSCRIPTION_ID);
    let request = || params.get(meta::PROGRESS_TOKEN).or_else(|| params.get("requestId"));
    listen.or_else(request)?.as_u64()
}

/// Adds members to `_meta` in `params`; they replace those of the same name.
fn with_meta(params: &str, further: &str) -> Option<String> {
    let members = parsed(params)?.object()?;
    let further = parsed(further)?.object()?;
    if further.is_empty() {
        return Some(params.to_owned());
    }
    let given = members.get("_meta").and_then(Json::object);
    let mut out = Vec::with_capacity(params.len() + 64);
    object(&mut out, |writer| {
        for (name, value) in members.iter().filter(|(name, _)| name != "_meta") {
            writer.named(&name).extend_from_slice(value.raw().as_bytes());
        }
        writer.object("_meta", |own| {
            let given =
                given.iter().flat_map(JsonMembers::iter).filter(|(name, _)| further.get(name).is_none());
            for (name, value) in given.chain(further.iter()) {
                own.named(&name).extend_from_slice(value.raw().as_bytes());
            }
        });
    });
    String::from_utf8(out).ok()
}

fn parsed(text: &str) -> Option<Json<'_>> {
    Json::parse(text.as_bytes(), NESTING).filter(|json| json.object().is_some())
}

fn no_object() -> ClientError {
    Failure::Unsupported { what: "params or _meta that are no JSON object".into() }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sent(client: &mut TestClient) -> Vec<Value> {
        let output = client.output();
        let lines = output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    // R-029: members of `_meta` are sent as given, except those that describe the client.
    #[test]
    fn a_modern_request_describes_itself_and_a_legacy_one_does_not() {
        let mut client = TestClient::new(Revision::V2026_07_28, r#"{"elicitation":{}}"#);
        assert_eq!((client.handshake(), client.output().len()), (None, 0));
        let params = r#"{"uri":"a:b","_meta":{"a":1,"b":1,"io.modelcontextprotocol/protocolVersion":"x"}}"#;
        let id = client.send("resources/read", params, r#"{"b":2,"progressToken":7}"#).unwrap();
        let message = sent(&mut client).remove(0);
        assert_eq!((&message["id"], &message["params"]["uri"]), (&json!(id), &json!("a:b")));
        let meta = &message["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({ "elicitation": {} }));
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!((&meta["a"], &meta["b"], &meta["progressToken"]), (&json!(1), &json!(2), &json!(7)));
        assert!(client.send("resources/read", "[]", "{}").is_err());
        assert!(client.output().is_empty());
    }

    // R-035, R-038: a legacy client sends its handshake before anything else.
    #[test]
    fn a_legacy_client_begins_with_its_handshake() {
        let mut client = TestClient::new(Revision::V2025_11_25, r#"{"roots":{}}"#);
        let hello = sent(&mut client).remove(0);
        assert_eq!((&hello["id"], &hello["method"]), (&json!(client.handshake()), &json!("initialize")));
        assert_eq!(hello["params"]["capabilities"], json!({ "roots": {} }));
        assert!(client.send("resources/list", "{}", "{}").is_err());
        let answer = json!({ "jsonrpc": "2.0", "id": hello["id"], "result": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": { "name": "x", "version": "1" } } });
        client.received(format!("{answer}\n").as_bytes());
        assert_eq!(client.take_messages()[0].kind, MessageKind::Result);
        assert_eq!(sent(&mut client)[0]["method"], "notifications/initialized");
        client.send("resources/list", "{}", "{}").unwrap();
        assert_eq!(sent(&mut client)[0].get("params"), None);
    }

    // R-127: a pending request is cancelled once; an answered one is not cancelled.
    #[test]
    fn what_comes_back_is_sorted() {
        let mut client = TestClient::new(Revision::V2026_07_28, "{}");
        let ids = [(); 3].map(|()| client.send("resources/list", "{}", "{}").unwrap());
        client.output();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{{"a": 1}}}}
{{"jsonrpc":"2.0","id":{},"error":{{"code":-1,"message":"m"}}}}
[1]
{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a:b","_meta":{{"io.modelcontextprotocol/subscriptionId":{}}}}}}}
"#,
            ids[1], ids[0], ids[2]
        );
        let (first, rest) = text.as_bytes().split_at(20);
        client.received(first);
        client.received(rest);
        let messages: Vec<_> = client
            .take_messages()
            .into_iter()
            .map(|message| (message.kind, message.id, message.body))
            .collect();
        assert_eq!(messages[0], (MessageKind::Result, Some(ids[1]), r#"{"a": 1}"#.to_owned()));
        assert_eq!((messages[1].0, messages[1].1), (MessageKind::Error, Some(ids[0])));
        assert_eq!((messages[2].0, messages[2].1), (MessageKind::Updated, Some(ids[2])));
        assert_eq!(messages.len(), 3);
        ids.into_iter().chain(ids).for_each(|id| client.cancel(id));
        let taken_back = sent(&mut client);
        assert_eq!((taken_back.len(), &taken_back[0]["params"]["requestId"]), (1, &json!(ids[2])));
    }
}
