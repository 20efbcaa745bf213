//! The short forms of what is sent and received, written out.

use super::case::Case;
use mcp_resources_engine::version::Revision;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

pub(crate) const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(crate) const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// Errors by their kind: the code before 2026-07-28, and the code there (DEC-20).
const CODES: [(&str, i32, i32); 10] = [
    ("not_found", -32002, -32602),
    ("invalid_parameter", -32602, -32602),
    ("access_denied", -32003, -31003),
    ("invalid_uri", -32602, -32602),
    ("read_error", -32603, -32603),
    ("size_exceeded", -32603, -31013),
    ("timeout", -32603, -31008),
    ("rate_limited", -32603, -31029),
    ("input_required", -32603, -32603),
    ("input_declined", -32603, -32602),
];

/// The values that expand the short forms.
pub(crate) struct Terms {
    revision: Option<Revision>,
    server_info: Value,
}

impl Terms {
    pub(crate) fn new(case: &Case, catalog: &Value) -> Self {
        let mut server_info = catalog["server"].clone();
        server_info.as_object_mut().expect("a server is an object").remove("instructions");
        Self { revision: case.revision, server_info }
    }

    /// One expected message.
    pub(crate) fn message(&self, short: &Value) -> Value {
        let mut message = match short {
            Value::Array(messages) => return messages.iter().map(|message| self.message(message)).collect(),
            Value::Object(members) if members.contains_key("$set") => {
                return json!({ "$set": self.message(&members["$set"]) });
            }
            Value::Object(members) => members.clone(),
            _ => panic!("{short}: no message"),
        };
        let is_short = !message.contains_key("jsonrpc");
        if is_short {
            message.insert("jsonrpc".into(), "2.0".into());
            self.complete_result(message.get_mut("result"));
        }
        if let Some(error) = message.get_mut("error").and_then(Value::as_object_mut) {
            self.complete_error(error);
            if is_short && !message.contains_key("id") && self.has_null_id() {
                message.insert("id".into(), Value::Null);
            }
        }
        Value::Object(message)
    }

    fn complete_result(&self, result: Option<&mut Value>) {
        let Some(result) = result.and_then(Value::as_object_mut) else { return };
        let Some(revision) = self.revision.filter(|_| !result.contains_key("$open")) else { return };
        if !revision.is_modern() {
            result.remove("ttlMs");
            result.remove("cacheScope");
            return;
        }
        let kind = result.entry("resultType").or_insert_with(|| "complete".into()).clone();
        result.entry("_meta").or_insert_with(|| json!({ SERVER_INFO: self.server_info }));
        let cacheable =
            ["contents", "resources", "resourceTemplates", "supportedVersions", "tools", "prompts"];
        if kind == "complete" && cacheable.iter().any(|member| result.contains_key(*member)) {
            result.entry("ttlMs").or_insert_with(|| 0.into());
            result.entry("cacheScope").or_insert_with(|| "private".into());
        }
    }

    fn complete_error(&self, error: &mut Map<String, Value>) {
        if let Some(kind) = error.get("kind").and_then(Value::as_str) {
            let found = CODES.iter().find(|(word, ..)| *word == kind);
            let (_, legacy, modern) = found.unwrap_or_else(|| panic!("{kind}: no kind of error"));
            let is_modern = self.revision.is_some_and(Revision::is_modern);
            let code = if is_modern { modern } else { legacy };
            let message =
                if kind == "not_found" { json!("Resource not found") } else { json!({ "$line": true }) };
            let data = std::mem::take(error);
            error.extend([
                ("code".into(), json!(code)),
                ("message".into(), message),
                ("data".into(), data.into()),
            ]);
        }
        error.entry("message").or_insert_with(|| json!({ "$line": true }));
        error.entry("data").or_insert_with(|| json!({ "$any": true }));
    }

    fn has_null_id(&self) -> bool {
        self.revision.is_some_and(|revision| revision <= Revision::V2025_06_18)
    }
}

/// A request or notification of the short form, as the client sends it.
pub(crate) fn outgoing(short: &Value, revision: Option<Revision>, capabilities: &Value) -> Value {
    let mut message = short.clone();
    message["jsonrpc"] = "2.0".into();
    if short.get("id").is_some() && revision.is_some_and(Revision::is_modern) {
        let meta = message["params"]["_meta"].as_object().cloned().unwrap_or_default();
        message["params"]["_meta"] = json!({ VERSION: "2026-07-28", CAPABILITIES: capabilities });
        message["params"]["_meta"].as_object_mut().expect("just made").extend(meta);
    }
    message
}

/// `value` with its references and repetitions written out.
pub(crate) fn resolve(value: &Value, bound: &BTreeMap<String, String>) -> Value {
    match value {
        Value::Object(members) if members.contains_key("$ref") => Value::String(reference(members, bound)),
        Value::Object(members) if members.contains_key("$repeat") => {
            let parts = &members["$repeat"];
            let times = usize::try_from(parts[2].as_u64().expect("a number")).expect("a small one");
            let [prefix, unit] = [0, 1].map(|part| parts[part].as_str().expect("a text"));
            Value::String(format!("{prefix}{}", unit.repeat(times)))
        }
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), resolve(value, bound))).collect()
        }
        Value::Array(items) => items.iter().map(|item| resolve(item, bound)).collect(),
        other => other.clone(),
    }
}

/// A text that was bound, perhaps changed.
fn reference(members: &Map<String, Value>, bound: &BTreeMap<String, String>) -> String {
    let name = members["$ref"].as_str().expect("a name");
    let mut text = bound.get(name).unwrap_or_else(|| panic!("{name} is not bound")).clone();
    if let Some(at) = members.get("flip").and_then(Value::as_u64) {
        let at = usize::try_from(at).expect("small").min(text.len() - 1);
        let other = if &text[at..=at] == "A" { "B" } else { "A" };
        text.replace_range(at..=at, other);
    }
    if let Some(cut) = members.get("cut").and_then(Value::as_u64) {
        text.truncate(text.len() - usize::try_from(cut).expect("small"));
    }
    text
}
