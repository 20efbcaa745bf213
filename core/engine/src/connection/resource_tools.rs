//! Resources as tools: `list_resources` and `read_resource`, for hosts that show a model nothing but tools.
//!
//! Law: a tool asks for resources as its own client would, with the client's principal and revision. So everything that
//! holds for `resources/list` and `resources/read` holds here: the guard, rates, sizes, redaction and the cache.

use super::access::NextQuestion;
use super::answer::Answer;
use super::blocks::ToolResult;
use super::event::{Event, ListCaller, OwnedCaller, ReadRequest};
use super::list::ListQuestion;
use super::named;
use super::reply::{EncodedReply, NextRead, Reply, ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::response;
use super::tool_text::{self, LIST, LinePage, READ, TextRange, ToolRefusal, UNKNOWN_CURSOR};
use super::{Arrival, Connection, ConnectionKind, OutcomeStatus, RequestOutcome};
use crate::catalog::{HandlerId, ToolEntry, ToolSource, expanded};
use crate::engine::{AccessAnswers, AccessQuestion, Engine};
use crate::error::ErrorPurpose;
use crate::guard::Verdict;
use crate::jsonrpc::{Json, object};
use crate::now::Now;
use crate::principal::Principal;
use crate::resource::{Tool, ToolAnnotations};
use crate::version::{ProtocolMethod, Revision};
use mcp_resources_template::MatchedParams;
use std::borrow::Cow;
use std::sync::Arc;

/// Most pages that one call searches for a line with the query.
const MOST_PAGES: usize = 50;
/// Shortest limit on a line of a list, in characters.
const SHORTEST_LINE: usize = 120;

/// The two tools, as they are listed.
pub(crate) fn tools() -> [(Tool, ToolSource); 2] {
    let hints = |title: &str| ToolAnnotations {
        title: Some(title.to_owned()),
        read_only: Some(true),
        open_world: Some(false),
        ..ToolAnnotations::default()
    };
    let list = Tool::new(LIST)
        .title("List resources")
        .description(
            "Lists the resources of this server: each line has a URI for read_resource, a name, and what it holds. \
             Lines with {braces} are patterns: fill in the braces to get a URI. Pass query to see only lines that \
             contain it.",
        )
        .input_schema(
            r#"{"type":"object","properties":{"query":{"type":"string","description":"a text that the lines contain"},"cursor":{"type":"string","description":"the cursor of a further page"}},"additionalProperties":false}"#,
        )
        .annotations(hints("List resources"));
    let read = Tool::new(READ)
        .title("Read a resource")
        .description(
            "Reads one resource of this server by its URI, as list_resources shows it or with the braces of a \
             pattern filled in.",
        )
        .input_schema(
            r#"{"type":"object","properties":{"uri":{"type":"string"},"range":{"type":"string","description":"lines, such as \"1-200\""}},"required":["uri"],"additionalProperties":false}"#,
        )
        .annotations(hints("Read a resource"));
    [(list, ToolSource::ListResources), (read, ToolSource::ReadResource)]
}

/// A call of one of the tools.
#[derive(Clone, Debug)]
enum ResourceCall {
    List {
        query: Option<String>,
        /// Whether it is the first page, which also has the templates.
        is_first: bool,
        /// The number of searched pages.
        pages: usize,
    },
    Read {
        uri: String,
        range: Option<TextRange>,
        /// The tool, if it is that of a template.
        tool: Option<String>,
    },
}

/// A call that waits for the handler of a resource or list.
#[derive(Debug)]
pub(super) struct ResourceToolTask {
    entry: Arc<ToolEntry>,
    call: ResourceCall,
    /// The request inside the call, while it waits for its handler.
    inner: Option<Box<Reply>>,
    caller: Arc<OwnedCaller>,
}

/// The sender of the requests inside a call.
struct InnerClient<'e> {
    engine: &'e Arc<Engine>,
    principal: &'e Arc<Principal>,
    revision: Revision,
    /// The answers about access that the call has got.
    answers: Option<Arc<AccessAnswers>>,
    now: Now,
}

/// The outcome of a request inside a call.
enum InnerStep {
    /// The response.
    Done(Vec<u8>, Verdict),
    Read(Box<Reply>, InnerRead),
    List(Box<Reply>, ListQuestion),
    /// Handlers must decide first who may see what it reads or lists.
    Held(Vec<AccessQuestion>),
}

/// The event of a read inside a call.
struct InnerRead {
    handler: HandlerId,
    uri: Cow<'static, str>,
    params: Option<MatchedParams<'static>>,
}

impl Connection {
    /// Serves a call of one of the two tools.
    pub(super) fn call_resource_tool<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        entry: Arc<ToolEntry>,
        arguments: Option<Json<'m>>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let parsed = match &entry.source {
            ToolSource::Template(text) => self.template_call(request, &entry, text, arguments),
            ToolSource::Resource(uri) => ResourceCall::of_resource(&entry, uri, arguments),
            _ => ResourceCall::parse(&entry, arguments),
        };
        let (call, cursor) = match parsed {
            Ok(parsed) => parsed,
            Err(sentence) => {
                let refused = ToolResult::error(sentence);
                return self.answer_tool(request, &entry, refused, Verdict::InvalidParameter, out);
            }
        };
        if let (ResourceCall::Read { uri, .. }, Some(opening)) = (&call, &mut self.opening) {
            opening.name_uri(uri, self.engine.limits().uri);
        }
        let engine = self.engine.clone();
        let client = InnerClient {
            engine: &engine,
            principal: request.principal,
            revision: request.terms.revision,
            answers: self.access.answers.clone(),
            now: request.now,
        };
        let (call, step) = call.advance(&client, cursor.as_deref());
        let (inner, event) = match step {
            InnerStep::Done(response, verdict) => {
                let (result, verdict) = call.result(&client, &response, verdict);
                return self.answer_tool(request, &entry, result, verdict, out);
            }
            InnerStep::Read(inner, read) => (inner, Err(read)),
            InnerStep::List(inner, question) => (inner, Ok(question)),
            InnerStep::Held(questions) => {
                return self.hold(request, ProtocolMethod::CallTool, questions, out);
            }
        };
        let uri = match &call {
            ResourceCall::Read { uri, .. } => Some(uri.clone()),
            ResourceCall::List { .. } => None,
        };
        let caller = Arc::new(OwnedCaller::from(request.caller()));
        let task = ResourceToolTask { entry, call, inner: Some(inner), caller };
        let pending = PendingRequest {
            task: ReplyTask::ResourceTool(Box::new(task)),
            timeout: self.engine.limits().read_timeout,
            uri,
            flight: None,
        };
        self.wait(request, pending, out, |token, caller| match event {
            Ok(question) => question.event(token, ListCaller::Message(caller)),
            Err(InnerRead { handler, uri, params }) => {
                Event::Read(ReadRequest { token, handler, uri, params, inputs: None, state: None, caller })
            }
        })
    }

    /// The call of a template's tool.
    fn template_call(
        &self,
        request: &Request<'_, '_>,
        entry: &ToolEntry,
        text: &str,
        arguments: Option<Json<'_>>,
    ) -> Result<(ResourceCall, Option<String>), String> {
        let name = &entry.tool.name;
        let catalog = self.engine.catalog();
        let template = catalog.template_by_text(text).ok_or_else(|| format!("The tool {name} failed"))?;
        let values = self.engine.visible_values(request.principal, entry);
        let own = entry.template.as_ref().zip(values.as_ref());
        let uri = expanded(template, own, arguments)
            .map_err(|why| format!("Invalid arguments for {name}: {why}"))?;
        Ok((ResourceCall::Read { uri, range: None, tool: Some(name.clone()) }, None))
    }

    /// Answers a call of a tool at once.
    fn answer_tool<'m>(
        &mut self,
        request: &Request<'_, '_>,
        entry: &ToolEntry,
        result: ToolResult<'_>,
        verdict: Verdict,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let ticket = Arc::new(self.ticket(request, self.engine.limits().read_timeout));
        let context = ReplyContext { ticket, engine: self.engine.clone(), purpose: ErrorPurpose::Tool };
        let written = named::write_tool(&context, entry, result, out);
        RequestOutcome { misuse: written.misuse, verdict, ..RequestOutcome::new(OutcomeStatus::Answered) }
    }
}

impl ResourceToolTask {
    /// The size that the contents of a read may have.
    pub(super) fn most_bytes(&self) -> Option<usize> {
        self.inner.as_ref().map(|inner| inner.most_bytes())
    }

    /// Writes the answer, unless another callback of a list must be called.
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (WrittenReply, Option<(NextQuestion, Arc<OwnedCaller>)>) {
        let Some(inner) = self.inner.take() else { return (context.wrong_sort(out), None) };
        let EncodedReply { misuse, bytes, next, verdict, .. } = inner.encode(answer, now);
        let written = WrittenReply { misuse, verdict, ..WrittenReply::default() };
        if let Some(NextRead { reply, question, .. }) = next {
            self.inner = Some(Box::new(reply));
            return (written, Some((question, self.caller.clone())));
        }
        let client = InnerClient {
            engine: &context.engine,
            principal: &self.caller.principal,
            revision: context.ticket.revision,
            answers: None,
            now,
        };
        let (call, step) = self.call.clone().continued(&client, bytes, verdict);
        self.call = call;
        let (response, verdict) = match step {
            InnerStep::Done(response, verdict) => (response, verdict),
            InnerStep::List(inner, question) => {
                self.inner = Some(inner);
                return (written, Some((NextQuestion::List(question), self.caller.clone())));
            }
            InnerStep::Read(..) | InnerStep::Held(_) => return (context.wrong_sort(out), None),
        };
        let (result, verdict) = self.call.result(&client, &response, verdict);
        let last = named::write_tool(context, &self.entry, result, out);
        (WrittenReply { misuse: written.misuse.or(last.misuse), verdict, ..WrittenReply::default() }, None)
    }
}

impl ResourceCall {
    /// The call of the tool of one resource. An error is a sentence for the model.
    fn of_resource(
        entry: &ToolEntry,
        uri: &str,
        arguments: Option<Json<'_>>,
    ) -> Result<(Self, Option<String>), String> {
        let name = &entry.tool.name;
        let given = arguments.and_then(Json::object);
        match given.iter().flat_map(|given| given.iter()).next() {
            Some((argument, _)) => {
                Err(format!("Invalid arguments for {name}: {argument}: no such argument; it has none"))
            }
            None => Ok((Self::Read { uri: uri.to_owned(), range: None, tool: Some(name.clone()) }, None)),
        }
    }

    /// Reads the arguments. Also returns the cursor of a list. An error is a sentence for the model.
    fn parse(entry: &ToolEntry, arguments: Option<Json<'_>>) -> Result<(Self, Option<String>), String> {
        let name = &entry.tool.name;
        let is_read = entry.source == ToolSource::ReadResource;
        let known = if is_read { ["uri", "range"] } else { ["query", "cursor"] };
        let invalid = |argument: &str, why: &str| format!("Invalid arguments for {name}: {argument}: {why}");
        let mut values = [None, None];
        for (argument, value) in arguments.and_then(Json::object).iter().flat_map(|given| given.iter()) {
            let Some(at) = known.iter().position(|own| *own == argument) else {
                return Err(invalid(&argument, &format!("no such argument; expected {}", known.join(", "))));
            };
            if value != Json::NULL {
                let text = value.as_str().ok_or_else(|| invalid(&argument, "expected a text"))?;
                values[at] = Some(text.into_owned()).filter(|text| is_read || !text.is_empty());
            }
        }
        let [first, second] = values;
        if !is_read {
            return Ok((Self::List { query: first, is_first: second.is_none(), pages: 1 }, second));
        }
        let uri = first.ok_or_else(|| invalid("uri", "it is missing"))?;
        let expected = r#"expected lines, such as "1-200""#;
        let range = second
            .filter(|range| !range.is_empty())
            .map(|range| TextRange::parse(&range).ok_or_else(|| invalid("range", expected)));
        Ok((Self::Read { uri, range: range.transpose()?, tool: None }, None))
    }

    /// Sends the first request of the call.
    fn advance(self, client: &InnerClient<'_>, cursor: Option<&str>) -> (Self, InnerStep) {
        match &self {
            Self::Read { uri, .. } => {
                let step = client.ask(ProtocolMethod::Read, Some(("uri", uri)));
                (self, step)
            }
            Self::List { .. } => {
                let cursor = cursor.map(|cursor| ("cursor", cursor));
                match client.ask(ProtocolMethod::List, cursor) {
                    InnerStep::Done(response, verdict) => self.continued(client, response, verdict),
                    step => (self, step),
                }
            }
        }
    }

    /// Goes on to the next pages of a list as long as no line contains the query.
    fn continued(
        mut self,
        client: &InnerClient<'_>,
        response: Vec<u8>,
        verdict: Verdict,
    ) -> (Self, InnerStep) {
        let mut response = response;
        let mut verdict = verdict;
        while let Self::List { query: Some(query), is_first, pages } = &mut self {
            let Ok(result) = tool_text::answered(&response) else { break };
            let page = LinePage::new(&result, "resources", "uri", usize::MAX).matching(Some(query));
            let has_templates = *is_first && !client.templates(Some(query), usize::MAX).is_empty();
            let Some(next) = page.next.filter(|_| page.lines.is_empty() && !has_templates) else { break };
            if *pages >= MOST_PAGES {
                break;
            }
            *pages += 1;
            *is_first = false;
            match client.ask(ProtocolMethod::List, Some(("cursor", &next))) {
                InnerStep::Done(next, ended) => {
                    response = next;
                    verdict = ended;
                }
                // The page so far has the cursor of the next one, which another call asks for.
                InnerStep::Held(_) => break,
                step => return (self, step),
            }
        }
        (self, InnerStep::Done(response, verdict))
    }

    /// The result for the model, from the response to the last request of the call.
    fn result<'a>(
        &self,
        client: &InnerClient<'_>,
        response: &'a [u8],
        verdict: Verdict,
    ) -> (ToolResult<'a>, Verdict) {
        let limits = client.engine.limits();
        let result = match tool_text::answered(response) {
            Ok(result) => result,
            Err(refusal) => return (ToolResult::error(self.refusal(&refusal)), verdict),
        };
        match self {
            Self::Read { uri, range, tool } => match tool_text::blocks(
                &result,
                uri,
                tool.as_ref().map(|_| uri.as_str()),
                *range,
                limits.tool_text,
            ) {
                Ok(blocks) => (blocks, verdict),
                Err(sentence) => (ToolResult::error(sentence), Verdict::InvalidParameter),
            },
            Self::List { query, is_first, .. } => {
                let longest = (limits.tool_text / limits.page.max(1)).max(SHORTEST_LINE);
                let query = query.as_deref();
                let mut page = LinePage::new(&result, "resources", "uri", longest).matching(query);
                if *is_first {
                    let used: usize = page.lines.iter().map(|line| line.chars().count() + 1).sum();
                    page.lines.extend(client.templates(query, limits.tool_text.saturating_sub(used)));
                }
                (ToolResult::text(page.text(query)), verdict)
            }
        }
    }

    fn refusal(&self, refusal: &ToolRefusal) -> String {
        let message = &refusal.message;
        match (self, refusal.kind.as_deref()) {
            (Self::Read { uri, .. }, Some("not_found" | "invalid_uri")) => {
                format!("There is no resource {uri}. Call {LIST} to see which exist.")
            }
            (Self::Read { tool: Some(name), .. }, Some("invalid_parameter")) => {
                format!("Invalid arguments for {name}: {message}")
            }
            (Self::Read { uri, .. }, _) => format!("{uri}: {message}"),
            (Self::List { is_first: false, .. }, None) => UNKNOWN_CURSOR.to_owned(),
            (Self::List { .. }, _) => message.clone(),
        }
    }
}

impl InnerClient<'_> {
    /// Sends a request with one member in its params, on a connection of its own.
    fn ask(&self, method: ProtocolMethod, member: Option<(&'static str, &str)>) -> InnerStep {
        let mut connection = self.engine.connect(ConnectionKind::Stateless);
        connection.is_inner = true;
        connection.access.answers.clone_from(&self.answers);
        if !self.revision.is_modern() {
            connection.assume(self.revision);
        }
        let mut message = Vec::new();
        object(&mut message, |request| {
            request.str("jsonrpc", "2.0");
            request.u64("id", 0);
            request.str("method", method.as_str());
            request.object("params", |params| {
                if let Some((name, value)) = member {
                    params.str(name, value);
                }
                if self.revision.is_modern() {
                    params.object(response::META, |meta| {
                        meta.str(response::PROTOCOL_VERSION, self.revision.as_str());
                        meta.object(response::CLIENT_CAPABILITIES, |_| ());
                    });
                }
            });
        });
        let arrival = Arrival { message: &message, principal: self.principal, header_check: None };
        let mut out = Vec::new();
        let RequestOutcome { events, verdict, .. } = connection.message(arrival, self.now, &mut out);
        let held = std::mem::take(&mut connection.access.inner);
        if !held.is_empty() {
            return InnerStep::Held(held);
        }
        let event = events.into_iter().next();
        let inner = event.as_ref().and_then(Event::asks).and_then(|token| connection.detach(token));
        match (event, inner.map(Box::new)) {
            (Some(Event::Read(ReadRequest { handler, uri, params, .. })), Some(inner)) => {
                let uri = Cow::Owned(uri.into_owned());
                let params = params.map(MatchedParams::into_owned);
                InnerStep::Read(inner, InnerRead { handler, uri, params })
            }
            (Some(Event::List(request)), Some(inner)) => {
                InnerStep::List(inner, ListQuestion::from_request(request))
            }
            _ => InnerStep::Done(out, verdict),
        }
    }

    /// The templates as lines that contain `query`, up to `room` characters.
    fn templates(&self, query: Option<&str>, room: usize) -> Vec<String> {
        let mut lines = Vec::new();
        let mut used = 0;
        let mut cursor: Option<String> = None;
        for _ in 0..MOST_PAGES {
            let member = cursor.as_deref().map(|cursor| ("cursor", cursor));
            let InnerStep::Done(response, _) = self.ask(ProtocolMethod::ListTemplates, member) else { break };
            let Ok(result) = tool_text::answered(&response) else { break };
            let page = LinePage::new(&result, "resourceTemplates", "uriTemplate", usize::MAX);
            let page = page.matching(query);
            for line in page.lines {
                used += line.chars().count() + 1;
                if used > room {
                    return lines;
                }
                lines.push(line);
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        lines
    }
}
