//! The messages between a client and the server under development: what the relay has to know of them.
//!
//! Law: a message passes byte for byte. The words of the protocol that the command needs for that are in this file.

use mcp_resources_engine::meta;
use mcp_resources_engine::version::{CALL_TOOL, CANCELLED, INITIALIZED};
use serde_json::{Value, json};

/// The error code of a request that the server did not answer.
const INTERNAL: i64 = -32_603;
const INITIALIZE: &str = "initialize";
const SUBSCRIBE: &str = "resources/subscribe";
const UNSUBSCRIBE: &str = "resources/unsubscribe";
const SET_LEVEL: &str = "logging/setLevel";
const LISTEN: &str = "subscriptions/listen";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
const UPDATED: &str = "notifications/resources/updated";

/// A list of a server whose changes clients are notified of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerList {
    Resources,
    Tools,
    Prompts,
}

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayedKind {
    Request(RequestKind),
    /// The client's word that the handshake is over.
    Initialized,
    Cancelled,
    Acknowledged,
    Notification,
    Answer,
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Initialize,
    Subscribe,
    Unsubscribe,
    SetLevel,
    Listen,
    /// It may have effects, so it is not repeated.
    CallTool,
    Other,
}

/// A message that was read.
#[derive(Debug)]
pub(super) struct RelayedMessage {
    pub(super) kind: RelayedKind,
    /// The id as JSON text.
    pub(super) id: Option<String>,
    pub(super) method: String,
    /// The URI or name that it is about.
    pub(super) about: Option<String>,
    /// The request that a notification belongs to, as JSON text of its id.
    pub(super) listen: Option<String>,
    /// As JSON text.
    pub(super) progress: Option<String>,
    /// The code of an error.
    pub(super) error: Option<i64>,
    value: Value,
}

impl ServerList {
    pub(super) const ALL: [Self; 3] = [Self::Resources, Self::Tools, Self::Prompts];

    fn word(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Tools => "tools",
            Self::Prompts => "prompts",
        }
    }

    /// The method that lists its entries.
    pub(super) fn method(self) -> String {
        format!("{}/list", self.word())
    }

    fn changed(self) -> String {
        format!("notifications/{}/list_changed", self.word())
    }
}

impl RelayedMessage {
    /// Reads a message; `None` if it is none.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let members = value.as_object()?;
        let id = members.get("id").filter(|id| !id.is_null()).map(Value::to_string);
        let method = members.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let params = members.get("params");
        let param = |name: &str| params.and_then(|params| params.get(name));
        let hidden = |name: &str| param("_meta").and_then(|hidden| hidden.get(name)).map(Value::to_string);
        let kind = match (method.as_str(), &id) {
            ("", _) => RelayedKind::Answer,
            (method, Some(_)) => RelayedKind::Request(RequestKind::from_method(method)),
            (INITIALIZED, None) => RelayedKind::Initialized,
            (CANCELLED, None) => RelayedKind::Cancelled,
            (ACKNOWLEDGED, None) => RelayedKind::Acknowledged,
            (_, None) => RelayedKind::Notification,
        };
        let about = ["uri", "name"].into_iter().find_map(|name| param(name)?.as_str());
        let is_request = matches!(kind, RelayedKind::Request(_));
        Some(Self {
            kind,
            about: about.map(str::to_owned),
            listen: hidden(meta::SUBSCRIPTION_ID),
            progress: if is_request {
                hidden(meta::PROGRESS_TOKEN)
            } else {
                param(meta::PROGRESS_TOKEN).map(Value::to_string)
            },
            error: members.get("error").and_then(|error| error.get("code")?.as_i64()),
            id,
            method,
            value,
        })
    }

    /// The id of the request that a client cancels.
    pub(super) fn cancelled(&self) -> Option<String> {
        self.value.get("params")?.get("requestId").map(Value::to_string)
    }

    /// Notifications for the listen that this message opened: of changed lists, and of everything that it watches.
    pub(super) fn listen_notices(&self, lists: &[ServerList]) -> Vec<Vec<u8>> {
        let wanted = self.value.get("params").and_then(|params| params.get("notifications"));
        let wants = |name: &str| wanted.and_then(|wanted| wanted.get(name));
        let own = json!({ meta::SUBSCRIPTION_ID: self.value.get("id") });
        let mut notices = Vec::new();
        for list in lists {
            if wants(&format!("{}ListChanged", list.word())).and_then(Value::as_bool) == Some(true) {
                notices.push(notice(&list.changed(), &json!({ "_meta": own })));
            }
        }
        let uris = wants("resourceSubscriptions").and_then(Value::as_array).into_iter().flatten();
        notices.extend(uris.map(|uri| notice(UPDATED, &json!({ "uri": uri, "_meta": own }))));
        notices
    }
}

impl RequestKind {
    fn from_method(method: &str) -> Self {
        match method {
            INITIALIZE => Self::Initialize,
            SUBSCRIBE => Self::Subscribe,
            UNSUBSCRIBE => Self::Unsubscribe,
            SET_LEVEL => Self::SetLevel,
            LISTEN => Self::Listen,
            CALL_TOOL => Self::CallTool,
            _ => Self::Other,
        }
    }
}

/// Notifications for a session: of changed lists, and of everything that it has subscribed to.
pub(super) fn session_notices<'u>(
    lists: &[ServerList],
    uris: impl Iterator<Item = &'u String>,
) -> Vec<Vec<u8>> {
    let changed = lists.iter().map(|list| notice(&list.changed(), &json!({})));
    changed.chain(uris.map(|uri| notice(UPDATED, &json!({ "uri": uri })))).collect()
}

/// A request of a client under another id.
pub(super) fn with_id(line: &[u8], id: &str) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(line).ok()?;
    value.as_object_mut()?.insert("id".into(), id.into());
    Some(ended(&value))
}

/// The client's cancellation of a request.
pub(super) fn cancellation(id: &str) -> Vec<u8> {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    notice(CANCELLED, &json!({ "requestId": id }))
}

/// The error of a request that the server cannot answer.
pub(super) fn failure(id: &str, why: &str) -> Vec<u8> {
    let id: Value = serde_json::from_str(id).unwrap_or_default();
    ended(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": INTERNAL, "message": why } }))
}

fn notice(method: &str, params: &Value) -> Vec<u8> {
    ended(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
}

fn ended(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> RelayedMessage {
        RelayedMessage::read(text.as_bytes()).unwrap()
    }

    #[test]
    fn messages_are_told_apart() {
        for (text, kind, id) in [
            (
                r#"{"id":"a","method":"initialize"}"#,
                RelayedKind::Request(RequestKind::Initialize),
                Some("\"a\""),
            ),
            (r#"{"id":1,"method":"tools/call"}"#, RelayedKind::Request(RequestKind::CallTool), Some("1")),
            (r#"{"id":1,"result":{}}"#, RelayedKind::Answer, Some("1")),
            (r#"{"id":null,"error":{"code":-32700}}"#, RelayedKind::Answer, None),
            (r#"{"method":"notifications/initialized"}"#, RelayedKind::Initialized, None),
            (r#"{"method":"notifications/x"}"#, RelayedKind::Notification, None),
        ] {
            let message = read(text);
            assert_eq!((message.kind, message.id.as_deref()), (kind, id), "{text}");
        }
        assert!(RelayedMessage::read(b"[]").is_none() && RelayedMessage::read(b"{").is_none());
    }

    #[test]
    fn listens_are_notified_of_what_they_want() {
        let listen = read(
            r#"{"id":7,"method":"subscriptions/listen","params":{"notifications":{"resourcesListChanged":true,"resourceSubscriptions":["a:b"]}}}"#,
        );
        let notices = listen.listen_notices(&[ServerList::Resources, ServerList::Tools]);
        let texts: Vec<String> = notices.into_iter().map(|line| String::from_utf8(line).unwrap()).collect();
        assert_eq!(texts.len(), 2);
        assert!(
            texts[0].contains("notifications/resources/list_changed")
                && texts[0].contains("subscriptionId\":7")
        );
        assert!(texts[1].contains("\"uri\":\"a:b\""));
    }
}
