//! `completion/complete`.

use super::access::NextQuestion;
use super::answer::{Answer, Completion};
use super::event::{CompletionRequest, Event, OwnedCaller};
use super::reply::{ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::response::ResponseWriter;
use super::{Connection, RequestOutcome};
use crate::catalog::{Catalog, CatalogRoute, Completer, HandlerId, ListKind, PromptEntry, TemplateEntry};
use crate::engine::{AccessRound, AccessView, Engine, Suggested};
use crate::guard::{Decision, Effort, RateClass, Verdict};
use crate::jsonrpc::{Json, JsonMembers};
use crate::limits::Limits;
use crate::now::Now;
use crate::principal::Principal;
use crate::rank;
use crate::version::{COMPLETE, INVALID_PARAMS, ProtocolMethod};
use mcp_resources_template::{UriTemplate, uri};
use std::borrow::Cow;
use std::sync::Arc;

/// The type of references to resources and templates.
const OURS: &str = "ref/resource";
/// The type of references to prompts.
const PROMPT: &str = "ref/prompt";

/// A completion that waits for its handler.
#[derive(Debug)]
pub(super) struct CompletionTask {
    /// The filter for the values, if principals may see different things.
    suggested: Option<Box<Suggested>>,
    /// Values that handlers decide about.
    withheld: Option<Completion<'static>>,
    round: AccessRound,
}

impl Connection {
    pub(super) fn complete<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        if self.engine.has_custom_method(COMPLETE) && !self.names_own(request) {
            return self.call(request, COMPLETE.into(), out);
        }
        let params = match CompleteParams::parse(request, self.engine.limits()) {
            Ok(params) => params,
            Err(message) => return self.refuse(request, INVALID_PARAMS, &message, out),
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Completion, None, out) {
            return refused;
        }
        let catalog = self.engine.catalog();
        let (found, exhausted) = params.target(&catalog, self, request.principal);
        let Some(target) =
            found.filter(|target| target.is_seen(&self.engine, request.principal, &params.reference))
        else {
            let why = if params.is_prompt { "prompt" } else { "ref" };
            let outcome =
                self.refuse(request, INVALID_PARAMS, &format!("Invalid params: unknown {why}"), out);
            return if exhausted {
                RequestOutcome { verdict: Verdict::Exhausted, ..outcome }
            } else {
                outcome
            };
        };
        let Some((handler, completer)) = target.completer(&params.variable) else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: unknown argument", out);
        };
        let suggested = params.suggested(self, target.template(), request.principal);
        match completer {
            Completer::Handler => {}
            Completer::Values(values) => {
                return self.suggest(request, values, &params.value, suggested.as_deref(), out);
            }
            Completer::Words(words) => {
                return self.suggest(request, words, &params.value, suggested.as_deref(), out);
            }
            Completer::Nothing => {
                return self.suggest(request, &[""; 0], &params.value, None, out);
            }
        }
        let timeout = self.engine.limits().completion_timeout;
        let task = ReplyTask::Complete(Box::new(CompletionTask {
            suggested,
            withheld: None,
            round: AccessRound::default(),
        }));
        let pending = PendingRequest { task, timeout, uri: None, flight: None };
        self.wait(request, pending, out, |token, caller| {
            Event::Complete(CompletionRequest {
                token,
                handler,
                reference: params.reference,
                variable: params.variable,
                value: params.value,
                arguments: params.arguments,
                caller,
            })
        })
    }

    /// Whether the reference names a resource, a template, or a prompt of this server.
    fn names_own(&self, request: &Request<'_, '_>) -> bool {
        let reference = request.params.get("ref").and_then(Json::object);
        let text = |name: &str| reference.as_ref().and_then(|reference| reference.get(name)?.as_str());
        match text("type").as_deref() {
            Some(OURS) => true,
            Some(PROMPT) => text("name").is_some_and(|name| {
                let catalog = self.engine.catalog();
                let prompt = catalog.prompt(&name);
                prompt.is_some_and(|entry| self.engine.sees_prompt(request.principal, entry))
            }),
            _ => false,
        }
    }

    /// Answers for a variable whose values are known without a handler.
    fn suggest<'m, V: AsRef<str>>(
        &mut self,
        request: &Request<'_, 'm>,
        values: &[V],
        typed: &str,
        suggested: Option<&Suggested>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let values = rank::ranked(values, typed).into_iter().map(Cow::Borrowed).collect();
        let mut completion = Completion { values, total: None, has_more: None };
        if let Some(suggested) = suggested {
            let questions = {
                let mut view = self.access_view(request);
                filter(&mut completion, suggested, &self.engine, &mut view);
                view.into_questions()
            };
            if !questions.is_empty() {
                return self.hold(request, ProtocolMethod::Complete, questions, out);
            }
        }
        write(&self.response_writer(request), out, &completion, self.engine.limits());
        RequestOutcome::answered()
    }
}

impl CompletionTask {
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (WrittenReply, Option<(NextQuestion, Arc<OwnedCaller>)>) {
        let engine = &context.engine;
        let Some(suggested) = &self.suggested else {
            return match answer {
                Answer::Completion(completion) => {
                    write(&context.response_writer(), out, &completion, engine.limits());
                    (WrittenReply::default(), None)
                }
                Answer::Failed(error) => (context.fail(error, out), None),
                _ => (context.wrong_sort(out), None),
            };
        };
        let principal = &suggested.principal;
        let (mut completion, misuse) = match (self.withheld.take(), answer) {
            (None, Answer::Completion(completion)) => (completion, None),
            (None, Answer::Failed(error)) => return (context.fail(error, out), None),
            (None, _) => return (context.wrong_sort(out), None),
            (Some(completion), answer) => (completion, self.round.take(engine, principal, &answer, now)),
        };
        let answers = self.round.answers().clone();
        let mut view = engine.access_view(principal, Some(&answers), now);
        if self.round.next().is_none() {
            filter(&mut completion, suggested, engine, &mut view);
        }
        self.round.add(engine, view.into_questions());
        let written = WrittenReply { misuse, ..WrittenReply::default() };
        if let Some(batch) = self.round.next() {
            self.withheld = Some(completion.into_owned());
            let revision = context.ticket.revision;
            let principal = principal.clone();
            let caller = OwnedCaller { principal, headers: None, revision, client_info: None, meta: None };
            return (written, Some((NextQuestion::Access(batch), Arc::new(caller))));
        }
        write(&context.response_writer(), out, &completion, engine.limits());
        (written, None)
    }
}

/// Names and values, as in [`CompletionRequest::arguments`].
type Arguments<'m> = Vec<(Cow<'m, str>, Cow<'m, str>)>;

/// The params of the request.
struct CompleteParams<'m> {
    /// Whether the reference is the name of a prompt, as opposed to a URI or template.
    is_prompt: bool,
    reference: Cow<'m, str>,
    variable: Cow<'m, str>,
    value: Cow<'m, str>,
    arguments: Arguments<'m>,
}

impl<'m> CompleteParams<'m> {
    fn parse(request: &Request<'_, 'm>, limits: &Limits) -> Result<Self, Cow<'static, str>> {
        let reference =
            request.params.get("ref").and_then(Json::object).ok_or("Invalid params: ref is missing")?;
        let argument = request.params.get("argument").and_then(Json::object);
        let argument = argument.ok_or("Invalid params: argument is missing")?;
        let text = |members: &JsonMembers<'m>, name| members.get(name).and_then(Json::as_str);
        let sort = text(&reference, "type");
        let is_prompt = sort.as_deref() == Some(PROMPT);
        let reference = match sort.as_deref() {
            Some(OURS) => text(&reference, "uri").ok_or("Invalid params: ref.uri must be a string")?,
            Some(PROMPT) => text(&reference, "name").ok_or("Invalid params: ref.name must be a string")?,
            _ => return Err("Invalid params: unknown ref type".into()),
        };
        let variable = text(&argument, "name").ok_or("Invalid params: argument.name must be a string")?;
        let value = text(&argument, "value").ok_or("Invalid params: argument.value must be a string")?;
        if value.len() > limits.uri || (!is_prompt && value.chars().any(char::is_control)) {
            return Err("Invalid params: argument.value has characters that a URI cannot contain".into());
        }
        let has_context = request.terms.revision.has_completion_context();
        let arguments = if has_context { context(request, limits.arguments)? } else { Vec::new() };
        Ok(Self { is_prompt, reference, variable, value, arguments })
    }

    /// Resolves `ref.uri`: to a template, by its text or by a URI that it matches, else to the fallback. Also returns
    /// whether the search for a template used up its budget.
    fn target<'c>(
        &self,
        catalog: &'c Catalog,
        connection: &Connection,
        principal: &Principal,
    ) -> (Option<CompletionTarget<'c>>, bool) {
        if self.is_prompt {
            let elsewhere = || catalog.named_fallback(ListKind::Prompts).map(CompletionTarget::ForeignPrompt);
            let own = catalog.prompt(&self.reference).map(CompletionTarget::Prompt);
            return (own.or_else(elsewhere), false);
        }
        if let Some(entry) = catalog.template_by_text(&self.reference) {
            return (Some(CompletionTarget::Template(entry)), false);
        }
        let engine = &connection.engine;
        let fallback = || {
            let handler = catalog.fallback()?;
            Some(CompletionTarget::Fallback(handler, UriTemplate::parse(&self.reference).ok()))
        };
        match uri::normalize(&self.reference, engine.limits().uri) {
            Ok(normal) if engine.decide(&engine.guard(), principal, &normal) == Decision::Allow => {
                match catalog.route(&normal) {
                    // A URI that no read accepts names no template.
                    CatalogRoute::Template(entry, params) => {
                        (entry.check(&params).is_ok().then_some(CompletionTarget::Template(entry)), false)
                    }
                    CatalogRoute::Fallback(_) => (fallback(), false),
                    CatalogRoute::None { exhausted } => (None, exhausted),
                    _ => (None, false),
                }
            }
            // The text of a template need not be a URI.
            _ if self.reference.contains('{') => (fallback(), false),
            _ => (None, false),
        }
    }
}

/// The entry that completes a reference.
enum CompletionTarget<'c> {
    Prompt(&'c Arc<PromptEntry>),
    /// A prompt that is not registered here.
    ForeignPrompt(HandlerId),
    Template(&'c Arc<TemplateEntry>),
    /// The fallback, with the text parsed as a template if possible: it may be one of another server.
    Fallback(HandlerId, Option<UriTemplate>),
}

impl<'c> CompletionTarget<'c> {
    /// Whether `principal` may know that it exists; `name` is the reference.
    fn is_seen(&self, engine: &Engine, principal: &Principal, name: &str) -> bool {
        let guard = engine.guard();
        match self {
            Self::Prompt(entry) => engine.sees_prompt(principal, entry),
            Self::ForeignPrompt(_) => guard.permits_prompt(principal, name),
            Self::Template(entry) => engine.sees_template(principal, entry),
            Self::Fallback(_, parsed) => {
                guard.is_open_to(principal)
                    || parsed.as_ref().is_some_and(|own| guard.knows_template(principal, own))
            }
        }
    }

    /// The completer of the variable `name` and its handler; `None` if there is no such variable.
    fn completer(&self, name: &str) -> Option<(HandlerId, Completer<'c>)> {
        match self {
            Self::Prompt(entry) => Some((entry.handler, entry.completer(name)?)),
            Self::Template(entry) => Some((entry.handler, entry.completer(name)?)),
            Self::ForeignPrompt(handler) | Self::Fallback(handler, _) => Some((*handler, Completer::Handler)),
        }
    }

    fn template(&self) -> Option<&UriTemplate> {
        match self {
            Self::Prompt(_) | Self::ForeignPrompt(_) => None,
            Self::Template(entry) => Some(&entry.parsed),
            Self::Fallback(_, parsed) => parsed.as_ref(),
        }
    }
}

impl CompleteParams<'_> {
    /// The filter for the values; `None` if every principal may see everything.
    fn suggested(
        &self,
        connection: &Connection,
        template: Option<&UriTemplate>,
        principal: &Arc<Principal>,
    ) -> Option<Box<Suggested>> {
        let own = |(name, value): &(Cow<'_, str>, Cow<'_, str>)| (name.to_string(), value.to_string());
        // Behind a policy a target without a template is visible to no principal, so it needs no filter.
        let engine = &connection.engine;
        let template = template.filter(|_| !engine.guard().is_open_to(principal) || engine.has_access())?;
        Some(Box::new(Suggested {
            template: template.clone(),
            principal: principal.clone(),
            variable: self.variable.to_string(),
            arguments: self.arguments.iter().map(own).collect(),
        }))
    }
}

/// The values chosen so far; `max` limits their total size in bytes.
fn context<'m>(request: &Request<'_, 'm>, max: usize) -> Result<Arguments<'m>, Cow<'static, str>> {
    const WRONG: &str = "Invalid params: context.arguments must be an object of strings";
    let Some(context) = request.params.get("context") else { return Ok(Vec::new()) };
    let Some(arguments) = context.object().ok_or(WRONG)?.get("arguments") else { return Ok(Vec::new()) };
    if arguments.raw().len() > max {
        return Err(format!("Invalid params: context.arguments is longer than {max} bytes").into());
    }
    let members = arguments.object().ok_or(WRONG)?;
    let values = members.iter().map(|(name, value)| Some((name, value.as_str()?)));
    values.collect::<Option<_>>().ok_or(WRONG.into())
}

/// Writes the result: at most 100 values, and the total number.
fn write(response: &ResponseWriter<'_>, out: &mut Vec<u8>, completion: &Completion<'_>, limits: &Limits) {
    let max = limits.completion_values.min(100);
    let given = completion.values.len();
    let total = completion.total.unwrap_or(given as u64).max(given as u64);
    let shown = given.min(max);
    let has_more = completion.has_more.unwrap_or(false) || total > shown as u64;
    response.complete(out, |result| {
        result.object("completion", |writer| {
            writer.array("values", |values| {
                for value in completion.values.iter().take(shown) {
                    values.str(value);
                }
            });
            writer.u64("total", total);
            writer.bool("hasMore", has_more);
        });
    });
}

/// Removes values that lead only to URIs that the principal may not see, and the totals that would count them.
/// `access` gets the questions about URIs that handlers decide about.
fn filter(
    completion: &mut Completion<'_>,
    suggested: &Suggested,
    engine: &Engine,
    access: &mut AccessView<'_>,
) {
    let guard = engine.guard();
    let view = guard.view(&suggested.principal);
    let mut effort = Effort::of_completion();
    if engine.has_access() {
        completion.values.truncate(engine.limits().access_batch);
    }
    completion.values.retain(|value| suggested.leads_on(&guard, &view, &mut effort, access, value));
    completion.total = None;
    completion.has_more = None;
}
