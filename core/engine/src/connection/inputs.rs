//! Requests in several rounds (MRTR): the questions to the client, and the state that it returns.
//!
//! The state is sealed. It contains the principal, the URI or custom method, the expiry, the questions, and the
//! handler's own bytes. Any process with the key can continue the request.

use super::answer::{InputAsk, InputRequest, InputRequired};
use super::logs::is_secret_name;
use super::response::ResponseWriter;
use super::schema;
use super::terms::ClientCapabilities;
use crate::base64;
use crate::engine::Engine;
use crate::jsonrpc::{self, Json, ObjectWriter};
use crate::meta;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The questions of a handler, and the client that gets them.
pub(super) struct InputAsks<'r, 'a> {
    pub(super) request: &'r InputRequired<'r>,
    pub(super) binding: StateBinding<'a>,
    pub(super) capabilities: ClientCapabilities,
}

/// The request that a state is valid for; it is refused everywhere else.
#[derive(Clone, Copy, Debug)]
pub(super) struct StateBinding<'a> {
    pub(super) method: &'a str,
    /// The normal form of a URI, or the value of the header `Mcp-Name`.
    pub(super) what: &'a str,
    pub(super) principal: &'a Principal,
}

/// The client of a pending request, and its capabilities.
#[derive(Debug)]
pub(super) struct InputClient {
    pub(super) capabilities: ClientCapabilities,
    pub(super) principal: Arc<Principal>,
}

impl InputClient {
    /// Makes the questions that answer a request of `method` for `what`.
    pub(super) fn ask<'r, 'a>(
        &'a self,
        request: &'r InputRequired<'r>,
        method: &'a str,
        what: &'a str,
    ) -> InputAsks<'r, 'a> {
        let binding = StateBinding { method, what, principal: &self.principal };
        InputAsks { request, binding, capabilities: self.capabilities }
    }
}

/// The sealed questions, or the capabilities that the client lacks.
pub(super) enum InputRequests<'a> {
    Ready { requests: Vec<(&'a str, InputKind, &'a InputAsk<'a>)>, state: String },
    Missing(Vec<InputKind>),
}

/// The kinds of question, and the capability that each requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputKind {
    Form,
    Url,
    Sampling,
    SamplingTools,
    Roots,
}

/// The contents of a sealed `requestState`.
#[derive(Serialize, Deserialize)]
struct SealedState {
    /// The expiry, in milliseconds since 1970.
    until: Millis,
    /// The questions, by key.
    asked: BTreeMap<String, InputQuestion>,
    /// The handler's own state, in base64.
    own: Option<String>,
}

impl SealedState {
    fn own(&self) -> Option<Vec<u8>> {
        base64::decode(self.own.as_deref()?)
    }
}

#[derive(Serialize, Deserialize)]
enum InputQuestion {
    /// A form, with the schema of the answer.
    Form(String),
    Url,
    Other,
}

/// The input of a retry; empty for a first request.
#[derive(Default)]
pub(super) struct Retry<'m> {
    pub(super) inputs: Option<Json<'m>>,
    pub(super) state: Option<Vec<u8>>,
    /// Whether the request carried responses or a state, even empty ones.
    pub(super) retried: bool,
}

impl<'r> InputAsks<'r, '_> {
    /// Checks the questions against the client's capabilities and seals the state. An error describes a mistake of the
    /// handler.
    pub(super) fn seal(&self, engine: &Engine, now: Now) -> Result<InputRequests<'r>, String> {
        if self.request.requests.is_empty() && self.request.state.is_none() {
            return Err("an InputRequired needs a request or a state".into());
        }
        let mut asked = BTreeMap::new();
        let mut requests = Vec::new();
        for InputRequest { key, ask } in &self.request.requests {
            if asked.insert(key.to_string(), question(ask)?).is_some() {
                return Err(format!("the input key {key} is used twice"));
            }
            requests.push((&**key, InputKind::from_ask(ask), ask));
        }
        let missing: Vec<_> = requests
            .iter()
            .map(|(_, sort, _)| *sort)
            .filter(|sort| !self.capabilities.allow(*sort))
            .collect();
        if !missing.is_empty() {
            return Ok(InputRequests::Missing(missing));
        }
        let own = self.request.state.as_deref().map(|state| {
            let mut text = Vec::new();
            base64::encode_into(state, &mut text);
            String::from_utf8(text).unwrap_or_default()
        });
        let state = SealedState { until: now.unix.saturating_add(engine.limits().state_ttl), asked, own };
        Ok(InputRequests::Ready { requests, state: self.seal_state(&state, engine)? })
    }

    fn seal_state(&self, state: &SealedState, engine: &Engine) -> Result<String, String> {
        let seal = engine.state_seal().ok_or("no key is configured for request states")?;
        let plain = serde_json::to_vec(state).map_err(|error| error.to_string())?;
        let sealed = seal.seal(&self.binding.purpose(), &self.binding.context(), &plain);
        let sealed = sealed.map_err(|error| error.to_string())?;
        if sealed.len() > engine.limits().state {
            let size = sealed.len();
            let max = engine.limits().state;
            return Err(format!("the request state has {size} bytes, more than the limit `state` of {max}"));
        }
        Ok(sealed)
    }
}

impl StateBinding<'_> {
    fn purpose(&self) -> String {
        format!("requestState {}", self.method)
    }

    fn context(&self) -> [&[u8]; 2] {
        [self.what.as_bytes(), self.principal.id().as_bytes()]
    }
}

/// Opens the input of a retry. The error is a sentence for the client.
pub(super) fn open<'m>(
    engine: &Engine,
    binding: StateBinding<'_>,
    responses: Option<Json<'m>>,
    state: Option<Json<'m>>,
    now: Now,
) -> Result<Retry<'m>, String> {
    let state = match state {
        None => None,
        Some(text) => Some(open_state(engine, binding, text, now)?),
    };
    let Some(responses) = responses else {
        return Ok(Retry { inputs: None, state: state.and_then(|state| state.own()), retried: true });
    };
    let members = responses.object().ok_or("Invalid params: inputResponses must be an object")?;
    let Some(state) = state else {
        // Every question is sent with a state, and answers are checked against it.
        return if members.is_empty() {
            Ok(Retry { retried: true, ..Retry::default() })
        } else {
            Err("Invalid params: inputResponses without requestState".into())
        };
    };
    for (key, question) in &state.asked {
        if let Some(response) = members.get(key) {
            question.check(response).map_err(|why| format!("Invalid inputResponses: {key}: {why}"))?;
        }
    }
    Ok(Retry { inputs: Some(responses), state: state.own(), retried: true })
}

fn open_state(
    engine: &Engine,
    binding: StateBinding<'_>,
    text: Json<'_>,
    now: Now,
) -> Result<SealedState, String> {
    let invalid = || "Invalid requestState".to_owned();
    let text = text.as_str().filter(|text| text.len() <= engine.limits().state).ok_or_else(invalid)?;
    let seal = engine.state_seal().ok_or_else(invalid)?;
    let plain = seal.open(&binding.purpose(), &binding.context(), &text);
    let state: SealedState =
        plain.and_then(|plain| serde_json::from_slice(&plain).ok()).ok_or_else(invalid)?;
    if now.unix >= state.until { Err(invalid()) } else { Ok(state) }
}

/// Writes the result `input_required`, which has no caching hints.
pub(super) fn write(
    response: &ResponseWriter<'_>,
    out: &mut Vec<u8>,
    requests: &[(&str, InputKind, &InputAsk<'_>)],
    state: &str,
) {
    response.result(out, "input_required", "", |result| {
        if !requests.is_empty() {
            result.object("inputRequests", |inputs| {
                for (key, _, ask) in requests {
                    jsonrpc::object(inputs.named(key), |request| write_request(request, ask));
                }
            });
        }
        result.str("requestState", state);
    });
}

/// Writes the error that lists the undeclared capabilities.
pub(super) fn write_missing(response: &ResponseWriter<'_>, out: &mut Vec<u8>, missing: &[InputKind]) {
    let names: Vec<_> = missing.iter().map(|sort| sort.name()).collect();
    let message = format!("Client capability required: {}", names.join(", "));
    response.error(out, version::MISSING_CLIENT_CAPABILITY, &message, |data| {
        data.object("requiredCapabilities", |required| write_required(required, missing));
    });
}

fn write_required(required: &mut ObjectWriter<'_>, missing: &[InputKind]) {
    let has = |sort| missing.contains(&sort);
    if has(InputKind::Form) || has(InputKind::Url) {
        required.object("elicitation", |elicitation| {
            // `{}` alone means a form; beside `url`, `form` must be named.
            if has(InputKind::Form) && has(InputKind::Url) {
                elicitation.object("form", |_| ());
            }
            if has(InputKind::Url) {
                elicitation.object("url", |_| ());
            }
        });
    }
    if has(InputKind::Sampling) || has(InputKind::SamplingTools) {
        required.object("sampling", |sampling| {
            if has(InputKind::SamplingTools) {
                sampling.object("tools", |_| ());
            }
        });
    }
    if has(InputKind::Roots) {
        required.object("roots", |_| ());
    }
}

fn write_request(request: &mut ObjectWriter<'_>, ask: &InputAsk<'_>) {
    match ask {
        InputAsk::Form { message, schema } => {
            request.str("method", "elicitation/create");
            request.object("params", |params| {
                params.str("mode", "form");
                params.str("message", message);
                put_json(params.value("requestedSchema"), schema);
            });
        }
        InputAsk::Url { message, url } => {
            request.str("method", "elicitation/create");
            request.object("params", |params| {
                params.str("mode", "url");
                params.str("message", message);
                params.str("url", url);
            });
        }
        InputAsk::Sampling(params) => {
            request.str("method", "sampling/createMessage");
            put_json(request.value("params"), params);
        }
        InputAsk::Roots => {
            request.str("method", "roots/list");
            request.object("params", |_| ());
        }
    }
}

/// Writes JSON text that [`question`] has validated, on one line. Keeps the order of members, which is the order of a
/// form's fields.
fn put_json(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(meta::compact(text).as_bytes());
}

/// Returns the part of a question that its state must contain. An error describes a mistake of the handler.
fn question(ask: &InputAsk<'_>) -> Result<InputQuestion, String> {
    let object = |text: &str| {
        let value: Option<Value> = serde_json::from_str(text).ok();
        value.filter(Value::is_object)
    };
    match ask {
        InputAsk::Form { schema, .. } => {
            let value = object(schema).ok_or("the schema of a form must be a JSON object")?;
            let properties = value.get("properties").and_then(Value::as_object);
            if let Some(name) =
                properties.into_iter().flat_map(|all| all.keys()).find(|name| is_secret_name(name))
            {
                return Err(format!("a form must not ask for a secret ({name}): use a URL"));
            }
            Ok(InputQuestion::Form(value.to_string()))
        }
        InputAsk::Url { .. } => Ok(InputQuestion::Url),
        InputAsk::Sampling(params) if object(params).is_none() => {
            Err("the params of a sampling request must be a JSON object".into())
        }
        InputAsk::Sampling(_) | InputAsk::Roots => Ok(InputQuestion::Other),
    }
}

impl InputQuestion {
    /// Checks that a response has the form that the question requires.
    fn check(&self, response: Json<'_>) -> Result<(), String> {
        let members = response.object().ok_or("must be an object")?;
        if matches!(self, Self::Other) {
            return Ok(());
        }
        let action = members.get("action").and_then(Json::as_str);
        match (action.as_deref(), self) {
            (Some("decline" | "cancel"), _) | (Some("accept"), Self::Url | Self::Other) => Ok(()),
            (Some("accept"), Self::Form(schema)) => {
                let content: Value = members
                    .get("content")
                    .and_then(|content| serde_json::from_str(content.raw()).ok())
                    .unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                let content = content.as_object().ok_or("content must be an object")?;
                schema::check(&serde_json::from_str(schema).unwrap_or_default(), content)
            }
            _ => Err("action must be accept, decline or cancel".into()),
        }
    }
}

impl InputKind {
    fn from_ask(ask: &InputAsk<'_>) -> Self {
        match ask {
            InputAsk::Form { .. } => Self::Form,
            InputAsk::Url { .. } => Self::Url,
            InputAsk::Sampling(params) => {
                let params: Value = serde_json::from_str(params).unwrap_or_default();
                if params.get("tools").is_some() { Self::SamplingTools } else { Self::Sampling }
            }
            InputAsk::Roots => Self::Roots,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Form => "elicitation",
            Self::Url => "elicitation.url",
            Self::Sampling => "sampling",
            Self::SamplingTools => "sampling.tools",
            Self::Roots => "roots",
        }
    }
}

impl ClientCapabilities {
    fn allow(self, sort: InputKind) -> bool {
        match sort {
            InputKind::Form => self.form,
            InputKind::Url => self.url,
            InputKind::Sampling => self.sampling,
            InputKind::SamplingTools => self.sampling_tools,
            InputKind::Roots => self.roots,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-145: the schema is sent on one line, and keeps the order of its fields.
    #[test]
    fn a_schema_keeps_its_order_and_loses_its_line_breaks() {
        let mut out = Vec::new();
        put_json(
            &mut out,
            "{\n  \"type\": \"object\",\n  \"properties\": {\"b\": {}, \"a\": {\"title\": \"a b\"}}\n}",
        );
        assert_eq!(
            String::from_utf8_lossy(&out),
            r#"{"type":"object","properties":{"b":{},"a":{"title":"a b"}}}"#
        );
    }
}
