//! Events as the format writes them.

use super::catalog::Handlers;
use mcp_resources_engine::connection::{CompletionRequest, Event, NamedRequest, ReadRequest, RequestToken};
use mcp_resources_engine::jsonrpc::Json;
use mcp_resources_template::{MatchedParams, Value as Param};
use serde_json::{Map, Value, json};

/// An event that a host sees.
pub(crate) struct Seen {
    /// As the format writes it; for `Cancelled` that is the host's to say.
    pub(crate) value: Value,
    /// The events that must be answered.
    pub(crate) token: Option<RequestToken>,
    /// The cancelled events.
    pub(crate) cancelled: Option<RequestToken>,
}

pub(crate) fn seen(event: Event<'_>, handlers: &Handlers) -> Seen {
    let mut token = None;
    let mut cancelled = None;
    let value = match event {
        Event::Read(read) => {
            token = Some(read.token);
            reading(read, handlers)
        }
        Event::Complete(complete) => {
            token = Some(complete.token);
            completion(&complete, handlers)
        }
        Event::List(list) => {
            token = Some(list.token);
            object("list", [("handler", json!(handlers.name(list.handler))), ("cursor", json!(list.cursor))])
        }
        Event::Tool(call) => {
            token = Some(call.token);
            named("tool", call, handlers)
        }
        Event::Prompt(call) => {
            token = Some(call.token);
            named("prompt", call, handlers)
        }
        Event::Call(call) => {
            token = Some(call.token);
            object(
                "call",
                [
                    ("handler", json!(handlers.name(call.handler))),
                    ("method", json!(call.method)),
                    ("params", parsed(call.params)),
                    ("inputs", unless_empty(parsed(call.inputs))),
                    ("state", state(call.state)),
                ],
            )
        }
        Event::Notified { method, params } => {
            object("notified", [("method", json!(method)), ("params", parsed(params))])
        }
        Event::Cancelled(token) => {
            cancelled = Some(token);
            Value::Null
        }
        Event::Shared(_) => json!({ "shared": true }),
        Event::Interest => json!({ "interest": true }),
        Event::Access(request) => {
            let uris: Vec<&str> = request.batch.questions.iter().map(|question| &*question.uri).collect();
            json!({ "access": uris })
        }
        Event::Again(held) => json!({ "again": held.token().to_u64() }),
        Event::Replied { ask, .. } => json!({ "replied": ask.0 }),
    };
    Seen { value, token, cancelled }
}

fn state(sealed: Option<Vec<u8>>) -> Value {
    sealed.map(|state| serde_json::from_slice(&state).expect("as it was given")).unwrap_or_default()
}

fn reading(read: ReadRequest<'_>, handlers: &Handlers) -> Value {
    object(
        "read",
        [
            ("handler", json!(handlers.name(read.handler))),
            ("uri", json!(read.uri)),
            ("params", params(read.params.as_ref())),
            ("inputs", unless_empty(parsed(read.inputs))),
            ("state", state(read.state)),
            ("meta", parsed(read.caller.meta)),
        ],
    )
}

fn named(kind: &str, call: NamedRequest<'_>, handlers: &Handlers) -> Value {
    object(
        kind,
        [
            ("handler", json!(handlers.name(call.handler))),
            ("name", json!(call.name)),
            ("arguments", unless_empty(parsed(call.arguments))),
            ("inputs", unless_empty(parsed(call.inputs))),
            ("state", state(call.state)),
        ],
    )
}

fn completion(complete: &CompletionRequest<'_>, handlers: &Handlers) -> Value {
    let arguments = complete.arguments.iter();
    let arguments: Map<_, _> = arguments.map(|(name, value)| (name.to_string(), json!(value))).collect();
    object(
        "complete",
        [
            ("handler", json!(handlers.name(complete.handler))),
            ("variable", json!(complete.variable)),
            ("value", json!(complete.value)),
            ("arguments", if arguments.is_empty() { Value::Null } else { arguments.into() }),
        ],
    )
}

/// Whether it is one of those that some languages cannot see.
pub(crate) fn is_quiet(event: &Value) -> bool {
    ["watched", "unwatched", "notified", "shared"].iter().any(|kind| event.get(kind).is_some())
}

/// `meta` is compared only where it is given.
#[cfg(test)]
pub(crate) fn drop_unasked(actual: &mut Value, expected: &Value) {
    for kind in ["read", "complete", "list", "call"] {
        let members = actual.get_mut(kind).and_then(Value::as_object_mut);
        if let Some(members) = members.filter(|_| expected[kind].get("meta").is_none()) {
            members.remove("meta");
        }
    }
}

/// An object of one member, an object of those members that are not null.
fn object<const N: usize>(kind: &str, members: [(&str, Value); N]) -> Value {
    let present = members.into_iter().filter(|(_, value)| !value.is_null());
    json!({ kind: present.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>() })
}

fn unless_empty(value: Value) -> Value {
    if value == json!({}) { Value::Null } else { value }
}

fn parsed(json: Option<Json<'_>>) -> Value {
    json.map_or(Value::Null, |json| serde_json::from_str(json.raw()).expect("an event holds JSON"))
}

fn params(params: Option<&MatchedParams<'_>>) -> Value {
    let Some(params) = params.filter(|params| !params.is_empty()) else { return Value::Null };
    params.iter().map(|(name, value)| (name.to_owned(), param(value))).collect::<Map<_, _>>().into()
}

fn param(value: &Param<'_>) -> Value {
    match value {
        Param::Scalar(text) => json!(text),
        Param::List(items) => json!(items),
        Param::Map(pairs) => pairs.iter().map(|(key, value)| (key.to_string(), json!(value))).collect(),
    }
}
