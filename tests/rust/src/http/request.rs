//! The short forms of requests, written out.

use crate::wire::case::Case;
use crate::wire::expand::{VERSION, outgoing};
use crate::wire::write;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_resources_engine::version::Revision;
use serde_json::{Map, Value, json};

/// A request as it goes out.
pub(crate) struct Request {
    pub(crate) verb: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// `session` is the session that requests belong to, if there is one.
    pub(crate) fn parse(verb: &str, given: &Value, step: &Value, case: &Case, session: Option<&str>) -> Self {
        let mut headers = Headers(Vec::new());
        headers.set("Host", "localhost:8000");
        let mut method = verb.to_uppercase();
        let mut body = Vec::new();
        match verb {
            "http" => {
                method = given["verb"].as_str().unwrap_or("POST").to_owned();
                headers.of_verb(&method);
                body = bytes(&given["body"]);
            }
            "get" | "delete" => {
                headers.of_verb(&method);
                headers.of_session(case, session);
                if let Some(id) = given["last_event_id"].as_str() {
                    headers.set("Last-Event-ID", id);
                }
            }
            _ => {
                method = "POST".into();
                headers.of_verb("POST");
                let message = message(verb, given, step, case);
                headers.of_message(&message, case, session);
                body = write(&message).into_bytes();
            }
        }
        let target = given["target"].as_str().or(case.member("rules")["path"].as_str()).unwrap_or("/mcp");
        if let Some(token) = step["token"].as_str() {
            headers.set("Authorization", &format!("Bearer {token}"));
        }
        headers.replace(&given["headers"]);
        headers.replace(&step["headers_sent"]);
        Self { verb: method, target: target.to_owned(), headers: headers.0, body }
    }
}

fn message(verb: &str, given: &Value, step: &Value, case: &Case) -> Value {
    if verb == "post" {
        return given.clone();
    }
    let capabilities = step.get("capabilities").cloned().unwrap_or_else(|| case.capabilities());
    outgoing(given, case.revision, &capabilities)
}

/// The exact bytes of a body.
fn bytes(given: &Value) -> Vec<u8> {
    match (given, &given["raw"], &given["base64"]) {
        (Value::Null, ..) => Vec::new(),
        (_, Value::String(text), _) => text.clone().into_bytes(),
        (_, _, Value::String(encoded)) => STANDARD.decode(encoded).expect("base64"),
        _ => write(given).into_bytes(),
    }
}

struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    fn set(&mut self, name: &str, value: &str) {
        self.0.push((name.to_owned(), value.as_bytes().to_vec()));
    }

    fn of_verb(&mut self, verb: &str) {
        match verb {
            "POST" => {
                self.set("Content-Type", "application/json");
                self.set("Accept", "application/json, text/event-stream");
            }
            "GET" => self.set("Accept", "text/event-stream"),
            _ => {}
        }
    }

    fn of_session(&mut self, case: &Case, session: Option<&str>) {
        let Some(revision) = case.revision.filter(|revision| !revision.is_modern()) else { return };
        if let Some(session) = session {
            self.set("Mcp-Session-Id", session);
            if revision >= Revision::V2025_06_18 {
                self.set("MCP-Protocol-Version", revision.as_str());
            }
        }
    }

    /// The headers of a message: those that a modern client repeats, or the session.
    fn of_message(&mut self, message: &Value, case: &Case, session: Option<&str>) {
        let Some(version) = message["params"]["_meta"][VERSION].as_str() else {
            return self.of_session(case, session);
        };
        self.set("MCP-Protocol-Version", version);
        self.set("Mcp-Method", message["method"].as_str().unwrap_or_default());
        if let Some(uri) = message["params"]["uri"].as_str() {
            self.set("Mcp-Name", &wrapped(uri));
        }
    }

    /// Headers given by name: null takes one away, a list repeats it, `{"base64"}` is bytes.
    fn replace(&mut self, given: &Value) {
        for (name, value) in given.as_object().unwrap_or(&Map::new()) {
            self.0.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
            let values = match value {
                Value::Null => Vec::new(),
                Value::Array(values) => values.clone(),
                one => vec![one.clone()],
            };
            for value in values {
                let bytes = match &value {
                    Value::String(text) => text.clone().into_bytes(),
                    _ => bytes(&json!({ "base64": value["base64"] })),
                };
                self.0.push((name.clone(), bytes));
            }
        }
    }
}

/// A URI as it can stand in a header.
fn wrapped(uri: &str) -> String {
    let is_plain = uri.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') && uri.trim() == uri;
    let looks_wrapped = uri.starts_with("=?base64?") && uri.ends_with("?=");
    if is_plain && !looks_wrapped { uri.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(uri)) }
}
