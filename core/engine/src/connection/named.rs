//! `tools/call` and `prompts/get`.
//!
//! Law: a tool or prompt that the principal may not see gets the same answer as one that does not exist.

use super::answer::Answer;
use super::blocks::{self, PromptResult, ToolResult};
use super::call;
use super::event::{Event, NamedRequest};
use super::inputs::InputClient;
use super::reply::{ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::response;
use super::{Connection, RequestOutcome, RequestRefusal};
use crate::catalog::{HandlerId, ListKind, PromptEntry, ToolEntry, ToolSource};
use crate::error::ReadError;
use crate::guard::{RateClass, Verdict};
use crate::jsonrpc::{Json, JsonKind};
use crate::now::{Millis, Now};
use crate::version::{CALL_TOOL, GET_PROMPT, INVALID_PARAMS};
use std::borrow::Cow;
use std::sync::Arc;

/// A call that waits for its handler.
#[derive(Debug)]
pub(super) struct NamedTask {
    entry: NamedEntry,
    pub(super) asker: InputClient,
}

/// The registration that serves a call.
#[derive(Clone, Debug)]
enum NamedEntry {
    Tool(Arc<ToolEntry>),
    Prompt(Arc<PromptEntry>),
}

impl Connection {
    /// Calls a tool.
    pub(super) fn call_tool<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.call_named(request, CALL_TOOL, out)
    }

    /// Gets a prompt.
    pub(super) fn get_prompt<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        self.call_named(request, GET_PROMPT, out)
    }

    fn call_named<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        method: &str,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let Ok(Some(name)) = request.optional_text("name") else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: name must be a string", out);
        };
        let arguments = request.params.get("arguments");
        if arguments.is_some_and(|arguments| arguments.kind() != JsonKind::Object) {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: arguments must be an object", out);
        }
        if let Some(refused) = self.refuse_rate(request, RateClass::Call, None, out) {
            return refused;
        }
        if let Some(handler) = self.named_elsewhere(request, method, &name) {
            return self.call_elsewhere(request, method, handler, out);
        }
        let entry = match self.named(request, method, &name, out) {
            Ok(entry) => entry,
            Err(refused) => return *refused,
        };
        if let NamedEntry::Prompt(entry) = &entry
            && let Err(why) = check_arguments(entry, arguments)
        {
            return self.refuse(request, INVALID_PARAMS, &why, out);
        }
        let retry = match self.retry(request, method, &name) {
            Ok(retry) => retry,
            Err(message) => return self.refuse(request, INVALID_PARAMS, &message, out),
        };
        let Some(handler) = entry.handler() else {
            let NamedEntry::Tool(entry) = entry else { return RequestOutcome::nothing() };
            return self.call_resource_tool(request, entry, arguments, out);
        };
        let is_tool = matches!(entry, NamedEntry::Tool(_));
        let task = ReplyTask::Named(Box::new(NamedTask { entry, asker: request.asker() }));
        let timeout = or_never(self.engine.limits().call_timeout);
        let pending = PendingRequest { task, timeout, uri: None, flight: None };
        self.wait(request, pending, out, |token, caller| {
            let (inputs, state) = (retry.inputs, retry.state);
            let named = NamedRequest { token, handler, name, arguments, inputs, state, caller };
            if is_tool { Event::Tool(named) } else { Event::Prompt(named) }
        })
    }

    /// The handler of tools or prompts that are not registered here, if the name is not, and the policy permits it.
    fn named_elsewhere(&self, request: &Request<'_, '_>, method: &str, name: &str) -> Option<HandlerId> {
        let catalog = self.engine.catalog();
        let guard = self.engine.guard();
        if method == CALL_TOOL {
            let handler = catalog.named_fallback(ListKind::Tools).filter(|_| catalog.tool(name).is_none());
            return handler.filter(|_| guard.permits_tool(request.principal, name));
        }
        let handler = catalog.named_fallback(ListKind::Prompts).filter(|_| catalog.prompt(name).is_none());
        handler.filter(|_| guard.permits_prompt(request.principal, name))
    }

    /// The tool or prompt, if the principal may know about it.
    fn named<'m>(
        &self,
        request: &Request<'_, '_>,
        method: &str,
        name: &str,
        out: &mut Vec<u8>,
    ) -> Result<NamedEntry, Box<RequestOutcome<'m>>> {
        let catalog = self.engine.catalog();
        let guard = self.engine.guard();
        let is_tool = method == CALL_TOOL;
        let entry = if is_tool {
            catalog.tool(name).cloned().map(NamedEntry::Tool)
        } else {
            catalog.prompt(name).cloned().map(NamedEntry::Prompt)
        };
        let Some(entry) = entry else {
            return Err(self.unknown_name(request, is_tool, name, Verdict::NotFound, out));
        };
        let (permitted, may_challenge) = match &entry {
            // Whether scopes or the policy hide the template of a tool is not told.
            NamedEntry::Tool(entry) => (
                guard.permits_tool(request.principal, name)
                    && self.engine.reaches_tool(request.principal, entry),
                !matches!(entry.source, ToolSource::Template(_) | ToolSource::Resource(_)),
            ),
            NamedEntry::Prompt(_) => (guard.permits_prompt(request.principal, name), true),
        };
        let missing = guard.missing(request.principal, entry.scopes());
        if permitted && missing.is_empty() {
            return Ok(entry);
        }
        if !permitted || !request.challenges || !may_challenge {
            return Err(self.unknown_name(request, is_tool, name, Verdict::Hidden, out));
        }
        let code = request.terms.revision.code(&ReadError::AccessDenied);
        self.response_writer(request)
            .error(out, code, "Insufficient scope", |data| data.str("kind", "access_denied"));
        let scopes = missing.into_iter().map(str::to_owned).collect();
        Err(Box::new(RequestOutcome { scopes, ..RequestOutcome::refused(RequestRefusal::Scope) }))
    }

    fn unknown_name<'m>(
        &self,
        request: &Request<'_, '_>,
        is_tool: bool,
        name: &str,
        verdict: Verdict,
        out: &mut Vec<u8>,
    ) -> Box<RequestOutcome<'m>> {
        let kind = if is_tool { "tool" } else { "prompt" };
        let shown: String = name.chars().filter(|char| !char.is_control()).take(MOST_SHOWN).collect();
        let refused = self.refuse(request, INVALID_PARAMS, &format!("Unknown {kind}: {shown}"), out);
        Box::new(RequestOutcome { verdict, ..refused })
    }
}

/// Most characters of an unknown name in the error about it.
const MOST_SHOWN: usize = 100;

/// A time-out of 0 as one that never passes.
pub(super) fn or_never(timeout: Millis) -> Millis {
    if timeout == 0 { Millis::MAX } else { timeout }
}

/// Checks that the arguments of a prompt are texts, and that all required ones are given.
fn check_arguments(entry: &PromptEntry, arguments: Option<Json<'_>>) -> Result<(), Cow<'static, str>> {
    let given = arguments.and_then(Json::object);
    let mut values = given.iter().flat_map(|given| given.iter().map(|(_, value)| value));
    if values.any(|value| value.kind() != JsonKind::String) {
        return Err("Invalid params: arguments must be an object of strings".into());
    }
    let is_missing = |name: &str| given.as_ref().is_none_or(|given| given.get(name).is_none());
    let mut required = entry.prompt.arguments.iter().filter(|argument| argument.required);
    match required.find(|argument| is_missing(&argument.name)) {
        Some(argument) => Err(format!("Invalid params: the argument {} is missing", argument.name).into()),
        None => Ok(()),
    }
}

impl NamedEntry {
    fn handler(&self) -> Option<HandlerId> {
        match self {
            Self::Tool(entry) => entry.source.handler(),
            Self::Prompt(entry) => Some(entry.handler),
        }
    }

    fn scopes(&self) -> &[String] {
        match self {
            Self::Tool(entry) => &entry.tool.scopes,
            Self::Prompt(entry) => &entry.prompt.scopes,
        }
    }
}

impl NamedTask {
    /// Whether a tool is called, as opposed to a prompt.
    pub(super) fn is_tool(&self) -> bool {
        matches!(self.entry, NamedEntry::Tool(_))
    }

    pub(super) fn write(
        &self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> WrittenReply {
        let (method, name) = match &self.entry {
            NamedEntry::Tool(entry) => (CALL_TOOL, &entry.tool.name),
            NamedEntry::Prompt(entry) => (GET_PROMPT, &entry.prompt.name),
        };
        match (answer, &self.entry) {
            (Answer::Raw(result), _) => call::write_raw(context, &result, out, |_| ()),
            (Answer::InputRequired(request), _) => {
                context.input(&self.asker.ask(&request, method, name), now, out)
            }
            (Answer::Tool(result), NamedEntry::Tool(entry)) => write_tool(context, entry, result, out),
            (Answer::Contents(result), NamedEntry::Tool(entry)) => {
                write_tool(context, entry, result.into(), out)
            }
            (Answer::Prompt(result), NamedEntry::Prompt(_)) => write_prompt(context, result, out),
            (Answer::Failed(error), NamedEntry::Tool(entry)) => fail_tool(context, entry, error, out),
            (Answer::Failed(error), NamedEntry::Prompt(_)) => context.fail(error, out),
            _ => context.wrong_sort(out),
        }
    }
}

/// Writes the failure of a tool: as a result that the model can read, except for errors of the protocol.
fn fail_tool(
    context: &ReplyContext,
    entry: &Arc<ToolEntry>,
    error: ReadError,
    out: &mut Vec<u8>,
) -> WrittenReply {
    let name = &entry.tool.name;
    let verdict = Verdict::from(&error);
    let sentence = match &error {
        ReadError::Custom { .. }
        | ReadError::Foreign { .. }
        | ReadError::RateLimited { .. }
        | ReadError::InputRequired => {
            return context.fail(error, out);
        }
        ReadError::Failed => format!("The tool {name} failed"),
        ReadError::InvalidParameter { parameter, expected } => {
            format!("Invalid arguments for {name}: {parameter}: expected {expected}")
        }
        ReadError::RefusedParameter { parameter, reason, .. } => {
            format!("Invalid arguments for {name}: {parameter}: {reason}")
        }
        ReadError::AccessDenied if !context.engine.options().explicit_denials => {
            ReadError::NotFound.to_string()
        }
        other => other.to_string(),
    };
    WrittenReply { verdict, ..write_tool(context, entry, ToolResult::error(sentence), out) }
}

pub(super) fn write_tool(
    context: &ReplyContext,
    entry: &ToolEntry,
    mut result: ToolResult<'_>,
    out: &mut Vec<u8>,
) -> WrittenReply {
    if let Some(amounts) = context.engine.amounts()
        && let Some(redactor) = amounts.redactor()
    {
        result.content.iter_mut().for_each(|block| blocks::redact(block, redactor));
        result.structured = result.structured.map(|json| redactor.redact(json));
    }
    let limits = context.engine.limits();
    let revision = context.ticket.revision;
    let size = result.size();
    if size > limits.contents {
        return too_large(context, &entry.tool.name, size, out);
    }
    if let Some(why) = result.content.iter().find_map(blocks::broken) {
        return context.misuse(format!("the tool {}: {why}", entry.tool.name), out);
    }
    let Some(meta) = meta_members(result.meta.as_deref()) else {
        return context.misuse(format!("the tool {}: _meta is not a JSON object", entry.tool.name), out);
    };
    let fields = revision.tool_fields();
    let mut structured = None;
    if let Some(json) = result.structured.as_deref() {
        let wraps = entry.wraps_output();
        let is_wrapped =
            |value: Json<'_>| fields.has_object_output() && wraps.unwrap_or(value.kind() != JsonKind::Object);
        let Some(text) = blocks::structured(json, limits.nesting, is_wrapped) else {
            let why =
                format!("its structured result is not JSON, or is nested more than {} deep", limits.nesting);
            return context.misuse(format!("the tool {}: {why}", entry.tool.name), out);
        };
        if fields.has_object_output() && !text.starts_with('{') {
            let why = "its structured result is not an object, as its output schema says";
            return context.misuse(format!("the tool {}: {why}", entry.tool.name), out);
        }
        structured = Some(text).filter(|_| fields.has_output());
    }
    context.response_writer().result(out, response::COMPLETE, &meta, |writer| {
        writer.array("content", |array| {
            for block in &result.content {
                array.object(|object| blocks::write(object, block, revision));
            }
        });
        if let Some(structured) = &structured {
            writer.value("structuredContent").extend_from_slice(structured.as_bytes());
        }
        if result.is_error {
            writer.bool("isError", true);
        }
    });
    WrittenReply::default()
}

fn write_prompt(context: &ReplyContext, mut result: PromptResult<'_>, out: &mut Vec<u8>) -> WrittenReply {
    if let Some(amounts) = context.engine.amounts()
        && let Some(redactor) = amounts.redactor()
    {
        result.messages.iter_mut().for_each(|message| blocks::redact(&mut message.content, redactor));
    }
    let revision = context.ticket.revision;
    let size = blocks::size(result.messages.iter().map(|message| &message.content));
    let limit = context.engine.limits().contents;
    if size > limit {
        return context.fail(ReadError::SizeExceeded { limit: limit as u64, size: Some(size as u64) }, out);
    }
    if let Some(why) = result.messages.iter().find_map(|message| blocks::broken(&message.content)) {
        return context.misuse(format!("a prompt: {why}"), out);
    }
    let Some(meta) = meta_members(result.meta.as_deref()) else {
        return context.misuse("a prompt: _meta is not a JSON object".into(), out);
    };
    context.response_writer().result(out, response::COMPLETE, &meta, |writer| {
        if let Some(description) = &result.description {
            writer.str("description", description);
        }
        writer.array("messages", |array| {
            for message in &result.messages {
                array.object(|object| {
                    object.str("role", message.role.as_str());
                    object.object("content", |object| blocks::write(object, &message.content, revision));
                });
            }
        });
    });
    WrittenReply::default()
}

/// Writes the failure for a result that exceeds the limit, and tells the log.
fn too_large(context: &ReplyContext, name: &str, size: usize, out: &mut Vec<u8>) -> WrittenReply {
    let limit = context.engine.limits().contents;
    let misuse = format!("the tool {name} returned {size} bytes, more than the limit `contents` of {limit}");
    let error = ReadError::SizeExceeded { limit: limit as u64, size: Some(size as u64) };
    WrittenReply { misuse: Some(misuse), ..context.fail(error, out) }
}

/// The members of `_meta`; `None` if it is not an object.
fn meta_members(meta: Option<&str>) -> Option<String> {
    response::members_of(meta.unwrap_or("{}"))
}
