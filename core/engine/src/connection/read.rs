//! `resources/read` (R-061 … R-069).

use super::answer::{Contents, ReadResult};
use super::contents;
use super::event::{Event, ReadRequest};
use super::inputs::{self, About, Retry};
use super::reply::{ReadTask, Served, Task};
use super::request::Request;
use super::{Connection, Outcome, Status};
use crate::catalog::{HandlerId, ResourceEntry, Route, Source};
use crate::error::ReadError;
use crate::guard::{Action, RateClass, Verdict};
use crate::resource::CacheHint;
use crate::version::{INVALID_PARAMS, READ};
use mcp_resources_template::Params;
use mcp_resources_template::uri::{self, InvalidUri};
use std::borrow::Cow;
use std::sync::Arc;

/// Where a read has led.
enum Found<'u> {
    Constant(Arc<ResourceEntry>),
    Handler(Handled<'u>),
    Failed(ReadError),
    /// The search ended at its limit: told as if there were nothing.
    Exhausted,
}

/// A function of the author's, and what it is called with.
struct Handled<'u> {
    served: Served,
    handler: HandlerId,
    params: Option<Params<'u>>,
}

/// What is read: as the client spelled it, in normal form, and what a further round brings.
struct Asked<'m> {
    uri: Cow<'m, str>,
    normal: Cow<'m, str>,
    retry: Retry<'m>,
    /// The read cache's before it was routed.
    epoch: u64,
}

impl Connection {
    pub(super) fn read<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> Outcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, (INVALID_PARAMS, "Invalid params: uri must be a string"), out);
        };
        let Ok(normal) = normal(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Read, Some(&uri), out) {
            return refused;
        }
        let retry = match self.retry(request, (READ, &normal)) {
            Ok(retry) => retry,
            Err(message) => return self.refuse(request, (INVALID_PARAMS, &message), out),
        };
        let epoch = self.engine.cache().map_or(0, |cache| cache.epoch());
        let (found, lacking) = self.find(request, &normal);
        if let Err(refused) = self.admit(request, Action::Read, (&normal, lacking)) {
            return self.turn_away(request, refused, &uri, out);
        }
        match found {
            Found::Constant(entry) => self.constant(request, &uri, (&entry, retry.retried), out),
            Found::Handler(found) => {
                let asked = Asked { uri, normal, retry, epoch };
                self.handled(request, asked, found, out)
            }
            Found::Failed(error) => self.fail(request, &error, Some(&uri), out),
            Found::Exhausted => self.exhausted(request, &uri, out),
        }
    }

    /// Tells that there is nothing, and records why: a template may have been missed.
    pub(super) fn exhausted<'m>(
        &self,
        request: &Request<'_, '_>,
        uri: &str,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let outcome = self.fail(request, &ReadError::NotFound, Some(uri), out);
        Outcome { verdict: Verdict::Exhausted, ..outcome }
    }

    /// Answers from the cache, or has the author's function called, unless that is known to give too much.
    fn handled<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        Asked { uri, normal, retry, epoch }: Asked<'m>,
        Handled { served, handler, params }: Handled<'m>,
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let most = self.engine.most_bytes(&normal);
        if let Some(size) = served.size().filter(|size| *size > most as u64) {
            let error = ReadError::SizeExceeded { limit: most as u64, size: Some(size) };
            return self.fail(request, &error, Some(&uri), out);
        }
        let is_first = !retry.retried;
        let kept = is_first.then(|| self.answer_kept(request, (&uri, &normal), out)).flatten();
        if let Some(answered) = kept {
            return answered;
        }
        let asker = request.asker();
        let task = Task::Read(ReadTask { served, asker, retried: retry.retried, most, lead: None });
        let (timeout, sent) = (self.engine.limits().read_timeout, uri.clone().into_owned());
        let (token, caller) = match self.enter(request, (task, timeout, Some(sent)), out) {
            Ok(entered) => entered,
            Err(refused) => return *refused,
        };
        let shared = is_first.then(|| self.fly(token, (request, &normal), epoch)).flatten();
        if let Some(waits) = shared {
            return waits;
        }
        let Retry { inputs, state, .. } = retry;
        let read = ReadRequest { token, handler, uri, params, inputs, state, caller };
        Outcome::with_one(Status::Pending, Event::Read(read))
    }

    /// What serves a URI, and the scopes that it needs and the principal lacks.
    fn find<'m>(&self, request: &Request<'_, '_>, normal: &Cow<'m, str>) -> (Found<'m>, Vec<String>) {
        let catalog = self.engine.catalog();
        let lacking = |route: &Route<'_, '_>| {
            let lacking = self.engine.guard().missing(request.principal, route.scopes());
            lacking.into_iter().map(str::to_owned).collect()
        };
        match normal {
            Cow::Borrowed(normal) => {
                let route = catalog.route(normal);
                let lacking = lacking(&route);
                (Found::of(route), lacking)
            }
            Cow::Owned(normal) => {
                let route = catalog.route(normal);
                let lacking = lacking(&route);
                (Found::of(route).into_owned(), lacking)
            }
        }
    }

    /// A constant, answered here.
    fn constant<'m>(
        &self,
        request: &Request<'_, '_>,
        uri: &str,
        (entry, retried): (&ResourceEntry, bool),
        out: &mut Vec<u8>,
    ) -> Outcome<'m> {
        let contents = match &entry.source {
            Source::Text(text) => Contents::text(&**text),
            Source::Bytes(bytes) => Contents::blob(&**bytes),
            Source::Handler(_) => return self.fail(request, &ReadError::Failed, Some(uri), out),
        };
        let details = &entry.resource.details;
        let cache = if retried { CacheHint::default() } else { self.engine.shared(details.cache) };
        let result = ReadResult::from(contents);
        let most = self.engine.most_bytes(&entry.canonical);
        if let Err(error) = contents::check(&result, most) {
            return self.fail(request, &error, Some(uri), out);
        }
        contents::write(&self.wording(request), out, (uri, details.mime_type.as_deref()), (&result, cache));
        Outcome::answered()
    }

    /// What a further round of `what` brings; nothing before 2026-07-28.
    pub(super) fn retry<'m>(
        &self,
        request: &Request<'_, 'm>,
        (method, what): (&str, &str),
    ) -> Result<Retry<'m>, String> {
        let (responses, state) = (request.params.get("inputResponses"), request.params.get("requestState"));
        if !request.terms.revision.is_modern() || (responses.is_none() && state.is_none()) {
            return Ok(Retry::default());
        }
        let about = About { method, what, principal: request.principal };
        inputs::open(&self.engine, about, (responses, state), request.now)
    }

    /// A malformed URI is repeated only while it is not longer than a good one may be.
    pub(super) fn echo<'a>(&self, uri: &'a str) -> Option<&'a str> {
        (uri.len() <= self.engine.limits().uri).then_some(uri)
    }
}

/// The normal form, borrowed from the message where the client spelled it so.
fn normal<'m>(uri: &Cow<'m, str>, limit: usize) -> Result<Cow<'m, str>, InvalidUri> {
    match uri {
        Cow::Borrowed(uri) => uri::normalize(uri, limit),
        Cow::Owned(uri) => Ok(Cow::Owned(uri::normalize(uri, limit)?.into_owned())),
    }
}

impl<'u> Found<'u> {
    fn of(route: Route<'_, 'u>) -> Self {
        match route {
            Route::Resource(entry) => match &entry.source {
                Source::Handler(handler) => Self::Handler(Handled {
                    served: Served::Resource(entry.clone()),
                    handler: *handler,
                    params: None,
                }),
                Source::Text(_) | Source::Bytes(_) => Self::Constant(entry.clone()),
            },
            Route::Template(entry, params) => match entry.check(&params) {
                Ok(()) => Self::Handler(Handled {
                    served: Served::Template(entry.clone()),
                    handler: entry.handler,
                    params: Some(params),
                }),
                Err(error) => Self::Failed(error),
            },
            Route::None { exhausted: true } => Self::Exhausted,
            // A value that the policy refuses is told like no match.
            _ => Self::Failed(ReadError::NotFound),
        }
    }

    fn into_owned<'o>(self) -> Found<'o> {
        match self {
            Self::Constant(entry) => Found::Constant(entry),
            Self::Handler(Handled { served, handler, params }) => {
                Found::Handler(Handled { served, handler, params: params.map(Params::into_owned) })
            }
            Self::Failed(error) => Found::Failed(error),
            Self::Exhausted => Found::Exhausted,
        }
    }
}
