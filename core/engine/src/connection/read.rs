//! `resources/read`.

use super::access::NextQuestion;
use super::answer::{Answer, Contents, ReadResult};
use super::cached::Sharing;
use super::call;
use super::contents;
use super::event::{Event, OwnedCaller, ReadRequest};
use super::gather::ContentsGatherer;
use super::inputs::{InputClient, Retry};
use super::reply::{ReplyContext, ReplyTask, WrittenReply};
use super::request::{PendingRequest, Request};
use super::{Connection, ConnectionKind, OutcomeStatus, RequestOutcome};
use crate::catalog::{CatalogRoute, HandlerId, ItemSource, ResourceEntry, TemplateEntry};
use crate::engine::{AccessAnswers, AccessRound, AccessView, ReadLeader};
use crate::error::ReadError;
use crate::guard::RateClass;
use crate::now::Now;
use crate::resource::{CacheHint, CacheScope};
use crate::version::{INVALID_PARAMS, ProtocolMethod, READ};
use mcp_resources_template::MatchedParams;
use mcp_resources_template::uri::{self, InvalidUri};
use std::borrow::Cow;
use std::sync::Arc;

/// The target of a URI.
enum ReadTarget<'u> {
    Constant(Arc<ResourceEntry>),
    Handler(Handled<'u>),
    Failed(ReadError),
    /// The search reached its limit. The client gets the same error as for an unknown URI.
    Exhausted,
}

/// A handler and its arguments.
struct Handled<'u> {
    served: ServedBy,
    handler: HandlerId,
    params: Option<MatchedParams<'u>>,
}

/// The parameters of a read: the URI in the client's spelling and in normal form, and the input of a retry.
struct ReadParams<'m> {
    uri: Cow<'m, str>,
    normal: Cow<'m, str>,
    retry: Retry<'m>,
    /// The epoch of the read cache before the URI was routed.
    epoch: u64,
}

/// A read that waits for its handler.
#[derive(Debug)]
pub(super) struct ReadTask {
    pub(super) served: ServedBy,
    pub(super) asker: InputClient,
    /// Whether the request carried input responses or a state: its result must not be cached.
    pub(super) retried: bool,
    /// Maximum size of the contents, in bytes.
    pub(super) max: usize,
    /// The leadership of a shared read, if other requests may wait for it.
    pub(super) leader: Option<ReadLeader>,
    /// Contents with URIs that handlers decide about.
    pub(super) withheld: Option<Box<WithheldContents>>,
}

/// Contents that wait until handlers have decided who may see them.
#[derive(Debug)]
pub(super) struct WithheldContents {
    result: ReadResult<'static>,
    round: AccessRound,
}

/// The registration that serves a read.
#[derive(Clone, Debug)]
pub(super) enum ServedBy {
    Resource(Arc<ResourceEntry>),
    Template(Arc<TemplateEntry>),
    /// The fallback, which has no registered details: its contents carry their own.
    Fallback,
}

impl Connection {
    pub(super) fn read<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: uri must be a string", out);
        };
        let Ok(normal) = normal(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Read, Some(&uri), out) {
            return refused;
        }
        let retry = match self.retry(request, READ, &normal) {
            Ok(retry) => retry,
            // The state of a round that another server began: only that server can open it.
            Err(_) if self.is_theirs(&normal) => Retry { retried: true, ..Retry::default() },
            Err(message) => return self.refuse(request, INVALID_PARAMS, &message, out),
        };
        let epoch = self.engine.cache().map_or(0, |cache| cache.epoch());
        let (found, lacking) = self.find(request, &normal);
        if let Err(refused) = self.admit(request, &normal, lacking) {
            return self.turn_away(request, refused, &uri, out);
        }
        let deciding = found.deciding();
        if deciding.is_some() {
            match self.decided(request, deciding, &normal, || found.params()) {
                Ok(true) => {}
                Ok(false) => return self.turn_away(request, self.hidden(), &uri, out),
                Err(questions) => return self.hold(request, ProtocolMethod::Read, questions, out),
            }
        }
        match found {
            ReadTarget::Constant(entry) => self.constant(request, &uri, &entry, retry.retried, out),
            ReadTarget::Handler(found) => {
                let requested = ReadParams { uri, normal, retry, epoch };
                self.handled(request, requested, found, out)
            }
            ReadTarget::Failed(error) => self.fail(request, &error, Some(&uri), out),
            ReadTarget::Exhausted => self.exhausted(request, &uri, out),
        }
    }

    /// Answers from the cache or calls the handler, unless the registered size is known to exceed the limit.
    fn handled<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        ReadParams { uri, normal, retry, epoch }: ReadParams<'m>,
        Handled { served, handler, params }: Handled<'m>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let max = self.engine.most_bytes(&normal);
        if let Some(size) = served.size().filter(|size| *size > max as u64) {
            let error = ReadError::SizeExceeded { limit: max as u64, size: Some(size) };
            return self.fail(request, &error, Some(&uri), out);
        }
        let is_first = !retry.retried;
        let kept = is_first.then(|| self.answer_kept(request, &uri, &normal, out)).flatten();
        if let Some(answered) = kept {
            return answered;
        }
        let room = match self.room(request, Some(&uri), out) {
            Ok(room) => room,
            Err(refused) => return *refused,
        };
        let sharing = if is_first { self.share(request, &normal, &served, epoch) } else { Sharing::None };
        let (leader, awaited) = match sharing {
            Sharing::None => (None, None),
            Sharing::Leads(leader) => (Some(leader), None),
            Sharing::Waits(flight) => (None, Some(flight)),
        };
        let flight = leader.as_ref().map(|leader| leader.flight().clone());
        let task =
            ReadTask { served, asker: request.asker(), retried: retry.retried, max, leader, withheld: None };
        let timeout = self.engine.limits().read_timeout;
        let sent = Some(uri.clone().into_owned());
        let pending = PendingRequest { task: ReplyTask::Read(task), timeout, uri: sent, flight };
        let token = self.insert(request, room, pending);
        if let Some(flight) = awaited {
            self.waiting.push((token, flight));
            return RequestOutcome::with_one(OutcomeStatus::Pending, Event::Shared(token));
        }
        let Retry { inputs, state, .. } = retry;
        let caller = request.caller();
        let read = ReadRequest { token, handler, uri, params, inputs, state, caller };
        RequestOutcome::with_one(OutcomeStatus::Pending, Event::Read(read))
    }

    /// Whether another server, which this connection is inside, serves the URI.
    fn is_theirs(&self, normal: &str) -> bool {
        self.kind == ConnectionKind::Embedded
            && matches!(self.engine.catalog().route(normal), CatalogRoute::Fallback(_))
    }

    /// Finds the target of a URI, and the required scopes that the principal lacks.
    fn find<'m>(&self, request: &Request<'_, '_>, normal: &Cow<'m, str>) -> (ReadTarget<'m>, Vec<String>) {
        let catalog = self.engine.catalog();
        let lacking = |route: &CatalogRoute<'_, '_>| {
            if route.scopes().is_empty() {
                return Vec::new();
            }
            let lacking = self.engine.guard().missing(request.principal, route.scopes());
            lacking.into_iter().map(str::to_owned).collect()
        };
        match normal {
            Cow::Borrowed(normal) => {
                let route = catalog.route(normal);
                let lacking = lacking(&route);
                (ReadTarget::from_route(route), lacking)
            }
            Cow::Owned(normal) => {
                let route = catalog.route(normal);
                let lacking = lacking(&route);
                (ReadTarget::from_route(route).into_owned(), lacking)
            }
        }
    }

    /// Answers with a constant.
    fn constant<'m>(
        &self,
        request: &Request<'_, '_>,
        uri: &str,
        entry: &ResourceEntry,
        retried: bool,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let contents = match &entry.source {
            ItemSource::Text(text) => Contents::text(&**text),
            ItemSource::Bytes(bytes) => Contents::blob(&**bytes),
            ItemSource::Handler(_) => return self.fail(request, &ReadError::Failed, Some(uri), out),
        };
        let details = &entry.resource.details;
        let cache = if retried { CacheHint::default() } else { self.engine.shared(details.cache) };
        let contents = match &entry.page_meta {
            Some(meta) => contents.with_meta(&**meta),
            None => contents,
        };
        let result = ReadResult::from(contents);
        let max = self.engine.most_bytes(&entry.canonical);
        if let Err(error) = contents::check(&result, max) {
            return self.fail(request, &error, Some(uri), out);
        }
        contents::write(
            &self.response_writer(request),
            out,
            uri,
            details.mime_type.as_deref(),
            &result,
            cache,
        );
        RequestOutcome::answered()
    }
}

/// The normal form; borrowed from the message if the client already used it.
fn normal<'m>(uri: &Cow<'m, str>, limit: usize) -> Result<Cow<'m, str>, InvalidUri> {
    match uri {
        Cow::Borrowed(uri) => uri::normalize(uri, limit),
        Cow::Owned(uri) => Ok(Cow::Owned(uri::normalize(uri, limit)?.into_owned())),
    }
}

impl<'u> ReadTarget<'u> {
    fn from_route(route: CatalogRoute<'_, 'u>) -> Self {
        match route {
            CatalogRoute::Resource(entry) => match &entry.source {
                ItemSource::Handler(handler) => Self::Handler(Handled {
                    served: ServedBy::Resource(entry.clone()),
                    handler: *handler,
                    params: None,
                }),
                ItemSource::Text(_) | ItemSource::Bytes(_) => Self::Constant(entry.clone()),
            },
            CatalogRoute::Template(entry, params) => match entry.check(&params) {
                Ok(()) => Self::Handler(Handled {
                    served: ServedBy::Template(entry.clone()),
                    handler: entry.handler,
                    params: Some(params),
                }),
                Err(error) => Self::Failed(error),
            },
            CatalogRoute::Fallback(handler) => {
                Self::Handler(Handled { served: ServedBy::Fallback, handler, params: None })
            }
            CatalogRoute::None { exhausted: true } => Self::Exhausted,
            // A value that the policy refuses causes the same error as no match.
            _ => Self::Failed(ReadError::NotFound),
        }
    }

    /// The handler that decides who may read it.
    fn deciding(&self) -> Option<HandlerId> {
        match self {
            Self::Handler(found) => Some(found.handler).filter(|_| found.served.has_access()),
            Self::Constant(_) | Self::Failed(_) | Self::Exhausted => None,
        }
    }

    /// A copy of the values of its template.
    fn params(&self) -> Option<MatchedParams<'static>> {
        match self {
            Self::Handler(found) => found.params.clone().map(MatchedParams::into_owned),
            Self::Constant(_) | Self::Failed(_) | Self::Exhausted => None,
        }
    }

    fn into_owned<'o>(self) -> ReadTarget<'o> {
        match self {
            Self::Constant(entry) => ReadTarget::Constant(entry),
            Self::Handler(Handled { served, handler, params }) => ReadTarget::Handler(Handled {
                served,
                handler,
                params: params.map(MatchedParams::into_owned),
            }),
            Self::Failed(error) => ReadTarget::Failed(error),
            Self::Exhausted => ReadTarget::Exhausted,
        }
    }
}

impl ReadTask {
    /// Writes the answer, also for the requests that wait for the same read.
    pub(super) fn write(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> (WrittenReply, Option<NextQuestion>) {
        let (answer, misuse, question) = self.decided(context, answer, now);
        if question.is_some() {
            return (WrittenReply { misuse, ..WrittenReply::default() }, question);
        }
        let written = self.write_decided(context, answer, now, out);
        (WrittenReply { misuse: misuse.or(written.misuse), ..written }, None)
    }

    /// The sender of its questions.
    pub(super) fn caller(&self, context: &ReplyContext) -> Arc<OwnedCaller> {
        Arc::new(OwnedCaller {
            principal: self.asker.principal.clone(),
            headers: None,
            revision: context.ticket.revision,
            client_info: None,
            meta: None,
        })
    }

    /// Asks the handlers that decide about URIs in the contents.
    fn decided<'a>(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'a>,
        now: Now,
    ) -> (Answer<'a>, Option<String>, Option<NextQuestion>) {
        let engine = &context.engine;
        if !engine.has_access() {
            return (answer, None, None);
        }
        // The requested URI was decided about before the handler was called: only another URI is a question.
        let has_others = match &answer {
            Answer::Contents(result) => result.contents.iter().any(|entry| entry.uri.is_some()),
            _ => false,
        };
        if self.withheld.is_none() && !has_others {
            return (answer, None, None);
        }
        let principal = &self.asker.principal;
        let requested = context.normal_uri();
        let shows = |view: &mut AccessView<'_>, entry: &Contents<'_>| {
            let Some(uri) = &entry.uri else { return true };
            uri::normalize(uri, engine.limits().uri)
                .is_ok_and(|normal| normal == requested || view.sees(&normal))
        };
        let (mut withheld, misuse) = match (self.withheld.take(), answer) {
            (None, Answer::Contents(mut result)) => {
                let mut view = engine.access_view(principal, None, now);
                let mut shown =
                    result.contents.iter().map(|entry| shows(&mut view, entry)).collect::<Vec<_>>();
                if view.unknown() == 0 {
                    shown.reverse();
                    result.contents.retain(|_| shown.pop().unwrap_or_default());
                    return (Answer::Contents(result), None, None);
                }
                let round = AccessRound::new(engine, AccessAnswers::default(), view.into_questions());
                (Box::new(WithheldContents { result: result.into_owned(), round }), None)
            }
            (None, answer) => return (answer, None, None),
            (Some(mut withheld), answer) => {
                let misuse = withheld.round.take(engine, principal, &answer, now);
                (withheld, misuse)
            }
        };
        if let Some(batch) = withheld.round.next() {
            self.withheld = Some(withheld);
            return (Answer::Access(Vec::new()), misuse, Some(NextQuestion::Access(batch)));
        }
        let mut result = std::mem::take(&mut withheld.result);
        let mut view = engine.access_view(principal, Some(withheld.round.answers()), now);
        result.contents.retain(|entry| shows(&mut view, entry));
        (Answer::Contents(result), misuse, None)
    }

    fn write_decided(
        &mut self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> WrittenReply {
        let mut answer = self.prepared(context, answer);
        let misuse = match &answer {
            Answer::Contents(result) => contents::broken_base64(result, context.uri()),
            _ => None,
        };
        if misuse.is_some() {
            answer = Answer::Failed(ReadError::Failed);
        }
        let written = match self.leader.take() {
            Some(leader) => self.write_shared(context, leader, answer, now, out),
            None => self.answer(context, answer, now, out),
        };
        WrittenReply { misuse: written.misuse.or(misuse), ..written }
    }

    pub(super) fn answer(
        &self,
        context: &ReplyContext,
        answer: Answer<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> WrittenReply {
        match answer {
            Answer::Contents(result) => self.contents(context, &result, out),
            Answer::Gathered(gather) => self.gathered(context, &gather, out),
            Answer::InputRequired(request) => {
                context.input(&self.asker.ask(&request, READ, &context.normal_uri()), now, out)
            }
            Answer::Failed(error) => context.fail(error, out),
            // Another server asks its client for input.
            Answer::Raw(result) if matches!(self.served, ServedBy::Fallback) => {
                call::write_raw(context, &result, out, |_| ())
            }
            Answer::Completion(_)
            | Answer::Listed(_)
            | Answer::Access(_)
            | Answer::Tool(_)
            | Answer::Prompt(_)
            | Answer::Raw(_) => context.wrong_sort(out),
        }
    }

    fn contents(&self, context: &ReplyContext, result: &ReadResult<'_>, out: &mut Vec<u8>) -> WrittenReply {
        if let Err(error) = contents::check(result, self.max) {
            return context.fail(error, out);
        }
        let cache = context.engine.shared(self.cache(result.cache));
        contents::write(
            &context.response_writer(),
            out,
            context.uri(),
            self.served.mime_type(),
            result,
            cache,
        );
        WrittenReply::default()
    }

    fn gathered(&self, context: &ReplyContext, gather: &ContentsGatherer, out: &mut Vec<u8>) -> WrittenReply {
        let cache = context.engine.shared(self.cache(gather.cache));
        let mime_type = self.served.mime_type();
        contents::write_gathered(&context.response_writer(), out, context.uri(), mime_type, gather, cache);
        WrittenReply::default()
    }

    /// Removes entries that the principal may not see and redacts the rest. Unencoded chunks become
    /// contents.
    fn prepared<'a>(&self, context: &ReplyContext, answer: Answer<'a>) -> Answer<'a> {
        let answer = match answer {
            Answer::Gathered(gather) => gather.into_answer(),
            other => other,
        };
        let Answer::Contents(mut result) = answer else { return answer };
        if context.engine.restricts() {
            let requested = context.normal_uri();
            result.contents.retain(|entry| self.may_show(context, entry, &requested));
        }
        if let Some(meta) = self.served.page_meta() {
            let own = result.contents.iter_mut().filter(|entry| entry.uri.is_none() && entry.meta.is_none());
            own.for_each(|entry| entry.meta = Some(Cow::Owned(meta.to_owned())));
        }
        if let Some(amounts) = context.engine.amounts()
            && let Some(redactor) = amounts.redactor()
        {
            contents::redact(&mut result, redactor);
        }
        Answer::Contents(result)
    }

    /// Whether an entry is the requested one, or one that the principal could have requested.
    fn may_show(&self, context: &ReplyContext, entry: &Contents<'_>, requested: &str) -> bool {
        let Some(uri) = &entry.uri else { return true };
        let normal = uri::normalize(uri, context.engine.limits().uri);
        normal.is_ok_and(|normal| normal == requested || context.engine.sees(&self.asker.principal, &normal))
    }

    /// The caching hint of one result: its own, else the resource's; none after a round of input. Private
    /// results stay private.
    pub(super) fn cache(&self, own: Option<CacheHint>) -> CacheHint {
        if self.retried {
            return CacheHint::default();
        }
        if matches!(self.served, ServedBy::Fallback) {
            return own.unwrap_or_default();
        }
        let resource = self.served.cache();
        let own = own.unwrap_or(resource);
        let scope = if resource.scope == CacheScope::Private { CacheScope::Private } else { own.scope };
        CacheHint { scope, ..own }
    }
}

impl ServedBy {
    /// Whether its handler decides who may use it.
    fn has_access(&self) -> bool {
        match self {
            Self::Resource(entry) => entry.resource.details.access,
            Self::Template(entry) => entry.template.details.access,
            Self::Fallback => false,
        }
    }

    /// The registered size.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Self::Resource(entry) => entry.resource.size,
            Self::Template(_) | Self::Fallback => None,
        }
    }

    pub(super) fn mime_type(&self) -> Option<&str> {
        match self {
            Self::Resource(entry) => entry.resource.details.mime_type.as_deref(),
            Self::Template(entry) => entry.template.details.mime_type.as_deref(),
            Self::Fallback => None,
        }
    }

    /// Members of `_meta` that the contents repeat.
    fn page_meta(&self) -> Option<&str> {
        match self {
            Self::Resource(entry) => entry.page_meta.as_deref(),
            Self::Template(entry) => entry.page_meta.as_deref(),
            Self::Fallback => None,
        }
    }

    pub(super) fn cache(&self) -> CacheHint {
        match self {
            Self::Resource(entry) => entry.resource.details.cache,
            Self::Template(entry) => entry.template.details.cache,
            Self::Fallback => CacheHint::default(),
        }
    }
}
