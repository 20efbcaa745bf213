//! The requests that handlers get: owned, so that they may be kept across awaits and moved to other threads.

use super::ResourceServer;
use super::answer::HandlerError;
use super::ask::{self, AskFailed};
use super::link::HandlerLink;
use super::params;
use mcp_resources_engine::connection as engine;
use mcp_resources_engine::connection::{AskError, LogLevel, OwnedCaller};
use mcp_resources_engine::engine::AccessQuestion;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::headers::Headers;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::trace::TraceContext;
use mcp_resources_engine::version::Revision;
use mcp_resources_template::{MatchedParams, Value};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// `resources/read`, for a handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReadRequest {
    /// The URI as the client spelled it.
    pub uri: String,
    /// The values of the template's variables; `None` for a resource.
    pub values: Option<MatchedParams<'static>>,
    /// The client's answers to an earlier [`InputRequired`](mcp_resources_engine::connection::InputRequired): a
    /// JSON object, key to result. Validated against the schemas of the questions.
    pub inputs: Option<String>,
    /// The state of that `InputRequired`. It was sealed, so the client cannot have changed it.
    pub state: Option<Vec<u8>>,
    /// The sender of the request, and functions for reports.
    pub context: Context,
}

impl ReadRequest {
    pub(super) fn new(request: engine::ReadRequest<'_>, link: Arc<HandlerLink>) -> Self {
        Self {
            uri: request.uri.into_owned(),
            values: request.params.map(MatchedParams::into_owned),
            inputs: request.inputs.map(|inputs| inputs.raw().to_owned()),
            state: request.state,
            context: Context::new(request.caller, link),
        }
    }

    /// The text of one variable; `None` if the URI leaves it undefined, or it is a list or a map.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.values.as_ref()?.get(name).and_then(Value::as_str)
    }

    /// Deserializes all variables into a struct with a field for each. Numbers, booleans, enums and anything else that serde
    /// reads from text are parsed; an `Option` may be undefined; a `Vec` takes a list.
    ///
    /// # Errors
    /// [`ReadError::InvalidParameter`], which names the variable to the client.
    ///
    /// ```
    /// # use mcp_resources::{HandlerError, ReadRequest};
    /// #[derive(serde::Deserialize)]
    /// struct Forecast {
    ///     city: String,
    ///     days: Option<u8>,
    /// }
    ///
    /// async fn forecast(request: ReadRequest) -> Result<String, HandlerError> {
    ///     let Forecast { city, days } = request.params()?;
    ///     Ok(format!("{city}: {} days of sun", days.unwrap_or(3)))
    /// }
    /// ```
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        params::read(self.values.as_ref())
    }

    /// The user's answer to the form `key`, deserialized; `None` if the client has not been asked yet.
    ///
    /// # Errors
    /// [`ReadError::InputDeclined`] if the user declined or cancelled; [`ReadError::InvalidParameter`] if the
    /// content does not fit the type.
    pub fn input<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ReadError> {
        input(self.inputs.as_deref(), key)
    }
}

/// The accepted answer to one form.
fn input<T: DeserializeOwned>(inputs: Option<&str>, key: &str) -> Result<Option<T>, ReadError> {
    let Some(inputs) = inputs else { return Ok(None) };
    let invalid = || ReadError::InvalidParameter { parameter: key.to_owned(), expected: "an answer".into() };
    let mut results: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(inputs).map_err(|_| invalid())?;
    let Some(mut result) = results.remove(key) else { return Ok(None) };
    if result.get("action").and_then(serde_json::Value::as_str) != Some("accept") {
        return Err(ReadError::InputDeclined);
    }
    let content = result.get_mut("content").map(serde_json::Value::take).unwrap_or_default();
    serde_json::from_value(content).map(Some).map_err(|_| invalid())
}

/// `completion/complete`, for a completer.
#[derive(Debug)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The variable to complete.
    pub variable: String,
    /// The text typed so far.
    pub value: String,
    /// The values chosen so far (`context.arguments`); empty before 2025-06-18.
    pub arguments: Vec<(String, String)>,
    /// The sender of the request, and functions for reports.
    pub context: Context,
}

impl CompletionRequest {
    pub(super) fn new(request: engine::CompletionRequest<'_>, link: Arc<HandlerLink>) -> Self {
        let own = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        Self {
            variable: request.variable.into_owned(),
            value: request.value.into_owned(),
            arguments: request.arguments.into_iter().map(own).collect(),
            context: Context::new(request.caller, link),
        }
    }

    /// The value chosen for another variable.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }
}

/// `resources/list`, for a template with a function that lists its resources.
#[derive(Debug)]
#[non_exhaustive]
pub struct ListRequest {
    /// The `next` of the previous page. Always `None` for a function without pages.
    pub cursor: Option<String>,
    /// Maximum number of resources on the page.
    pub limit: usize,
    /// The sender of the request, and functions for reports.
    pub context: Context,
}

impl ListRequest {
    pub(super) fn new(request: engine::ListRequest<'_>, link: Arc<HandlerLink>) -> Self {
        let engine::ListRequest { cursor, limit, caller, .. } = request;
        Self { cursor, limit, context: Context::new(caller, link) }
    }
}

/// Questions who may use resources, for the handler that decides.
pub(super) struct DecisionRequest {
    pub(super) principal: Arc<Principal>,
    pub(super) questions: Arc<[AccessQuestion]>,
    link: Arc<HandlerLink>,
}

impl DecisionRequest {
    pub(super) fn new(request: &engine::AccessRequest, link: Arc<HandlerLink>) -> Self {
        let questions = request.batch.questions.clone();
        Self { principal: request.caller.principal.clone(), questions, link }
    }

    /// Logs the failure of one question.
    pub(super) fn log(&self, error: HandlerError) {
        let _ = self.link.client().shared.failed(error);
    }
}

/// A custom method, for its handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct CallRequest {
    /// The method.
    pub method: String,
    /// The params as JSON text, if there are any: an object.
    pub params: Option<String>,
    /// The client's answers to an earlier `InputRequired`: see [`ReadRequest::inputs`].
    pub inputs: Option<String>,
    /// The state of that `InputRequired`: see [`ReadRequest::state`].
    pub state: Option<Vec<u8>>,
    /// The sender of the request, and functions for reports.
    pub context: Context,
}

impl CallRequest {
    pub(super) fn new(request: engine::CallRequest<'_>, link: Arc<HandlerLink>) -> Self {
        Self {
            method: request.method.into_owned(),
            params: request.params.map(|params| params.raw().to_owned()),
            inputs: request.inputs.map(|inputs| inputs.raw().to_owned()),
            state: request.state,
            context: Context::new(request.caller, link),
        }
    }

    /// The user's answer to the form `key`: see [`ReadRequest::input`].
    ///
    /// # Errors
    /// As there.
    pub fn input<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ReadError> {
        input(self.inputs.as_deref(), key)
    }

    /// Deserializes the params. Absent params are an empty object.
    ///
    /// # Errors
    /// [`ReadError::InvalidParameter`].
    pub fn params<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        let text = self.params.as_deref().unwrap_or("{}");
        serde_json::from_str(text).map_err(|error| ReadError::InvalidParameter {
            parameter: "params".into(),
            expected: if serde_json::from_str::<IgnoredAny>(text).is_ok() && error.is_data() {
                "the members that the method defines".into()
            } else {
                "an object".into()
            },
        })
    }
}

/// A call of a tool, or the request for a prompt, for its handler.
#[derive(Debug)]
#[non_exhaustive]
pub struct NamedCall {
    /// The name of the tool or prompt.
    pub name: String,
    /// The arguments as JSON text: an object, not checked against the schema of the tool. Those of a prompt are texts,
    /// and its required ones are there.
    pub arguments: String,
    /// The client's answers to an earlier `InputRequired`: see [`ReadRequest::inputs`].
    pub inputs: Option<String>,
    /// The state of that `InputRequired`: see [`ReadRequest::state`].
    pub state: Option<Vec<u8>>,
    /// The sender of the request, and functions for reports.
    pub context: Context,
}

impl NamedCall {
    pub(super) fn new(request: engine::NamedRequest<'_>, link: Arc<HandlerLink>) -> Self {
        Self {
            name: request.name.into_owned(),
            arguments: request.arguments.map_or("{}", |arguments| arguments.raw()).to_owned(),
            inputs: request.inputs.map(|inputs| inputs.raw().to_owned()),
            state: request.state,
            context: Context::new(request.caller, link),
        }
    }

    /// The user's answer to the form `key`: see [`ReadRequest::input`].
    ///
    /// # Errors
    /// As there.
    pub fn input<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, ReadError> {
        input(self.inputs.as_deref(), key)
    }

    /// Deserializes the arguments.
    ///
    /// # Errors
    /// [`ReadError::RefusedParameter`]: the model gets the reason.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, ReadError> {
        serde_json::from_str(&self.arguments).map_err(|error| {
            let text = error.to_string();
            // The text is one line, so its number means nothing.
            let end = text.rfind(" at line ").unwrap_or(text.len());
            let reason = text.get(..end).unwrap_or_default().to_owned();
            ReadError::RefusedParameter { parameter: "arguments".into(), value: String::new(), reason }
        })
    }
}

/// The sender of a request, and functions for reporting before the answer. A clone counts towards
/// [`Limits::in_flight`](mcp_resources_engine::limits::Limits::in_flight) until it is dropped.
#[derive(Clone)]
pub struct Context {
    caller: OwnedCaller,
    link: Arc<HandlerLink>,
}

impl Context {
    fn new(caller: impl Into<OwnedCaller>, link: Arc<HandlerLink>) -> Self {
        Self { caller: caller.into(), link }
    }

    /// The principal that sent the request. It is always there.
    pub fn principal(&self) -> Option<&Principal> {
        Some(&self.caller.principal)
    }

    /// The headers of the HTTP request, without `Authorization` and `Cookie`; `None` over a pipe. They are chosen by
    /// the client and not verified.
    pub fn headers(&self) -> Option<&Headers> {
        self.caller.headers.as_deref()
    }

    /// The scopes of the principal's token, including implied ones. Empty without a token.
    pub fn scopes(&self) -> &[String] {
        self.principal().map_or(&[], Principal::scopes)
    }

    /// The claims of the principal's token, a JSON object; `None` without a token, or if its verifier returned none.
    /// Cached results are shared by all tokens of a principal with the same scopes: leave the `ttl` of a resource at 0
    /// if its contents depend on claims.
    pub fn claims(&self) -> Option<&str> {
        self.principal()?.claims()
    }

    /// The revision of the request. It is always there.
    pub fn revision(&self) -> Option<Revision> {
        Some(self.caller.revision)
    }

    /// The client's description of itself, a JSON object. Unverified: for display and logs only.
    pub fn client_info(&self) -> Option<&str> {
        self.caller.client_info.as_deref()
    }

    /// `_meta` of the request, a JSON object: it may carry trace context, for example.
    pub fn meta(&self) -> Option<&str> {
        self.caller.meta.as_deref()
    }

    /// The trace context of the request, as far as it is well-formed in `_meta`: for OpenTelemetry propagators.
    pub fn trace(&self) -> TraceContext<'_> {
        // The text was part of a message, so its nesting is limited.
        self.meta().map(|meta| TraceContext::of_text(meta, usize::MAX)).unwrap_or_default()
    }

    /// The server, to report changes from inside a handler.
    pub fn server(&self) -> ResourceServer {
        self.link.server()
    }

    /// Sends progress to the client, if the client asked for it. Values that do not grow, or follow too soon
    /// after the last one, are not sent.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        self.link.report(|reply, now| reply.progress(progress, total, message, now));
    }

    /// Sends a log message to the client, if the server offers logging and the client wants this level.
    /// A value without a JSON form is not sent.
    pub fn log(&self, level: LogLevel, logger: Option<&str>, data: &impl Serialize) {
        if let Ok(data) = serde_json::to_string(data) {
            self.link.report(|reply, _| reply.log(level, logger, &data));
        }
    }

    /// Sends a request to a client of a legacy revision and waits for its result: `elicitation/create`,
    /// `sampling/createMessage`, `roots/list`, or a custom method. `params` must serialize to a JSON object. To
    /// ask a client of 2026-07-28, return [`InputRequired`](mcp_resources_engine::connection::InputRequired) instead.
    ///
    /// # Errors
    /// [`AskFailed`], also if the client has not declared the capability, or has no open stream that can carry the
    /// request.
    pub async fn ask(&self, method: &str, params: &impl Serialize) -> Result<serde_json::Value, AskFailed> {
        let params = serde_json::to_string(params);
        let params = params.map_err(|_| AskFailed::NotAsked(AskError::InvalidParams))?;
        ask::ask(&self.link, method, &params).await
    }

    /// Whether the answer is no longer wanted: the request was cancelled, or timed out. Futures are dropped
    /// automatically; this is for threads and tasks that a handler started.
    pub fn is_cancelled(&self) -> bool {
        self.link.is_cancelled()
    }

    /// Waits until the answer is no longer wanted.
    pub async fn cancelled(&self) {
        self.link.cancelled().await;
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("revision", &self.revision()).finish_non_exhaustive()
    }
}
