//! Subscriptions to changes: `resources/subscribe` and `resources/unsubscribe`, `subscriptions/listen`
//!.

use super::request::Request;
use super::response;
use super::{Connection, ConnectionKind, OutcomeStatus, RequestOutcome};
use crate::catalog::CatalogRoute;
use crate::engine::AccessView;
use crate::error::ReadError;
use crate::guard::{RateClass, Verdict};
use crate::hub::{Filter, ListKinds, ListenError};
use crate::jsonrpc::{Json, OwnedId};
use crate::principal::Principal;
use crate::version::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, ProtocolMethod};
use mcp_resources_template::{MatchedParams, uri};
use std::borrow::Cow;

/// The members of the filter that ask for changes of a list.
const LISTS: [(&str, ListKinds); 3] = [
    ("resourcesListChanged", ListKinds::RESOURCES),
    ("toolsListChanged", ListKinds::TOOLS),
    ("promptsListChanged", ListKinds::PROMPTS),
];

impl Connection {
    pub(super) fn subscribe<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: uri must be a string", out);
        };
        let Ok(normal) = uri::normalize(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Subscribe, Some(&uri), out) {
            return refused;
        }
        let (served, lacking, deciding) = {
            let catalog = self.engine.catalog();
            let route = catalog.route(&normal);
            let lacking = self.engine.guard().missing(request.principal, route.scopes());
            let lacking: Vec<String> = lacking.into_iter().map(str::to_owned).collect();
            let deciding = route.access().map(|handler| (handler, params_of(&route)));
            (Served::by(&route), lacking, deciding)
        };
        if let Err(refused) = self.admit(request, &normal, lacking) {
            return self.turn_away(request, refused, &uri, out);
        }
        match served {
            Served::Yes => {}
            Served::Exhausted => return self.exhausted(request, &uri, out),
            Served::Failed(error) => return self.fail(request, &error, Some(&uri), out),
        }
        if let Some((handler, params)) = deciding {
            match self.decided(request, Some(handler), &normal, || params) {
                Ok(true) => {}
                Ok(false) => return self.turn_away(request, self.hidden(), &uri, out),
                Err(questions) => return self.hold(request, ProtocolMethod::Subscribe, questions, out),
            }
        }
        match self.engine.hub().subscribe(self.id, &self.engine.key_of(&normal), &uri) {
            Ok(first) => {
                self.response_writer(request).complete(out, |_| ());
                match first {
                    Some(uri) => RequestOutcome::answered().with(self.engine.mark_interest([uri])),
                    None => RequestOutcome::answered(),
                }
            }
            Err(limit) => self.refuse(request, INTERNAL_ERROR, &limit.to_string(), out),
        }
    }

    pub(super) fn unsubscribe<'m>(
        &mut self,
        request: &Request<'_, 'm>,
        out: &mut Vec<u8>,
    ) -> RequestOutcome<'m> {
        let Ok(Some(uri)) = request.optional_text("uri") else {
            return self.refuse(request, INVALID_PARAMS, "Invalid params: uri must be a string", out);
        };
        let Ok(normal) = uri::normalize(&uri, self.engine.limits().uri) else {
            return self.fail(request, &ReadError::InvalidUri, self.echo(&uri), out);
        };
        let hub = self.engine.hub();
        let key = self.engine.key_of(&normal);
        let last = hub.unsubscribe(self.id, &key);
        // The template may have come after the subscription.
        let plain = if *key == *normal { None } else { hub.unsubscribe(self.id, &normal) };
        self.response_writer(request).complete(out, |_| ());
        match (last, plain) {
            (None, None) => RequestOutcome::answered(),
            (last, plain) => {
                RequestOutcome::answered().with(self.engine.mark_interest(last.into_iter().chain(plain)))
            }
        }
    }

    pub(super) fn listen<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let requested = match ListenParams::parse(request) {
            Ok(requested) => requested,
            Err(message) => return self.refuse(request, INVALID_PARAMS, message, out),
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Subscribe, None, out) {
            return refused;
        }
        if requested.uris.len() > self.engine.limits().filter_uris {
            return self.refuse(request, INTERNAL_ERROR, "Subscription limit reached", out);
        }
        let (honoured, questions) = {
            let mut view = self.access_view(request);
            (self.honour(requested, request.principal, &mut view), view.into_questions())
        };
        if !questions.is_empty() {
            return self.hold(request, ProtocolMethod::Listen, questions, out);
        }
        // Record it if a URI was left out because the search for its template used up its budget.
        let verdict = if honoured.exhausted { Verdict::Exhausted } else { Verdict::Ok };
        if honoured.is_empty() {
            // A listen without anything to watch ends at once.
            self.acknowledge(request, &honoured, out);
            return RequestOutcome { verdict, ..self.end(request, out) };
        }
        let pairs: Vec<_> = honoured.uris.iter().map(|(normal, uri)| (&**normal, &**uri)).collect();
        let filter = Filter { lists: honoured.lists, uris: &pairs };
        match self.engine.hub().listen(self.id, request.id, request.principal.clone(), filter, &self.waker) {
            Ok(first) => {
                self.listens.insert(OwnedId::from(request.id));
                if self.closing {
                    self.engine.hub().shutdown(self.id);
                }
                self.acknowledge(request, &honoured, out);
                let outcome =
                    RequestOutcome::new(OutcomeStatus::Pending).with(self.engine.mark_interest(first));
                RequestOutcome { verdict, ..outcome }
            }
            Err(ListenError::IdInUse) => self.refuse(
                request,
                INVALID_REQUEST,
                "Invalid Request: a request with this id is in flight",
                out,
            ),
            Err(ListenError::LimitReached) => {
                self.refuse(request, INTERNAL_ERROR, "Subscription limit reached", out)
            }
        }
    }

    /// The part of the filter that is granted.
    fn honour<'m>(
        &self,
        requested: ListenParams<'m>,
        principal: &Principal,
        view: &mut AccessView<'_>,
    ) -> Honoured<'m> {
        // Inside another server, that server's tools and prompts change too.
        let announced = match self.kind {
            ConnectionKind::Embedded => ListKinds::ALL,
            _ => self.engine.announced_lists(principal),
        };
        let lists = requested.lists.intersection(announced);
        let mut honoured = Honoured { lists, uris: Vec::new(), exhausted: false };
        if !self.engine.options().subscribe {
            return honoured;
        }
        let catalog = self.engine.catalog();
        let limit = self.engine.limits().uri;
        let mut seen = std::collections::HashSet::new();
        for uri in requested.uris {
            let Ok(normal) = uri::normalize(&uri, limit).map(Cow::into_owned) else { continue };
            let route = catalog.route(&normal);
            honoured.exhausted |= matches!(route, CatalogRoute::None { exhausted: true });
            let exists = matches!(Served::by(&route), Served::Yes) && view.sees_routed(&route, &normal);
            let key = self.engine.key_of(&normal).into_owned();
            // Of two spellings of one URI the first is used.
            if exists && seen.insert(key.clone()) {
                honoured.uris.push((key, uri));
            }
        }
        honoured
    }

    /// Writes the acknowledgement of a listen.
    fn acknowledge(&self, request: &Request<'_, '_>, honoured: &Honoured<'_>, out: &mut Vec<u8>) {
        response::notification(out, "notifications/subscriptions/acknowledged", |params| {
            params.object(response::META, |meta| put_id(meta.value(response::SUBSCRIPTION_ID), request));
            params.object("notifications", |filter| {
                for (name, list) in LISTS {
                    if honoured.lists.contains(list) {
                        filter.bool(name, true);
                    }
                }
                if !honoured.uris.is_empty() {
                    filter.array("resourceSubscriptions", |uris| {
                        honoured.uris.iter().for_each(|(_, uri)| uris.str(uri));
                    });
                }
            });
        });
    }

    /// Ends a listen that has nothing to watch.
    fn end<'m>(&self, request: &Request<'_, '_>, out: &mut Vec<u8>) -> RequestOutcome<'m> {
        let meta = format!("\"{}\":{}", response::SUBSCRIPTION_ID, request.id.raw());
        self.response_writer(request).result(out, "complete", &meta, |_| ());
        RequestOutcome::answered()
    }
}

/// A copy of the values of the template.
fn params_of(route: &CatalogRoute<'_, '_>) -> Option<MatchedParams<'static>> {
    match route {
        CatalogRoute::Template(_, params) => Some(params.clone().into_owned()),
        _ => None,
    }
}

fn put_id(out: &mut Vec<u8>, request: &Request<'_, '_>) {
    out.extend_from_slice(request.id.raw().as_bytes());
}

/// Whether a URI can be watched: a read of it would call a handler, or answer with a constant.
enum Served {
    Yes,
    Failed(ReadError),
    /// The search for its template used up its budget.
    Exhausted,
}

impl Served {
    fn by(route: &CatalogRoute<'_, '_>) -> Self {
        match route {
            CatalogRoute::Template(entry, params) => {
                entry.check(params).map_or_else(Self::Failed, |()| Self::Yes)
            }
            CatalogRoute::None { exhausted: true } => Self::Exhausted,
            route if route.exists() => Self::Yes,
            _ => Self::Failed(ReadError::NotFound),
        }
    }
}

/// The filter that a client asks for.
struct ListenParams<'m> {
    lists: ListKinds,
    uris: Vec<Cow<'m, str>>,
}

/// The granted filter: canonical URIs, each with the client's spelling.
struct Honoured<'m> {
    lists: ListKinds,
    uris: Vec<(String, Cow<'m, str>)>,
    /// Whether the search for a template used up its budget.
    exhausted: bool,
}

impl Honoured<'_> {
    fn is_empty(&self) -> bool {
        self.lists == ListKinds::NONE && self.uris.is_empty()
    }
}

impl<'m> ListenParams<'m> {
    fn parse(request: &Request<'_, 'm>) -> Result<Self, &'static str> {
        let filter = request.params.get("notifications").and_then(Json::object);
        let filter = filter.ok_or("Invalid params: notifications must be an object")?;
        let mut lists = ListKinds::NONE;
        for (name, list) in LISTS {
            match filter.get(name).map(Json::as_bool) {
                None | Some(Some(false)) => {}
                Some(Some(true)) => lists = lists | list,
                Some(None) => {
                    return Err("Invalid params: the list members of notifications must be booleans");
                }
            }
        }
        let uris = match filter.get("resourceSubscriptions") {
            None => Vec::new(),
            Some(list) => list
                .array()
                .and_then(|items| items.map(Json::as_str).collect())
                .ok_or("Invalid params: resourceSubscriptions must be an array of strings")?,
        };
        Ok(Self { lists, uris })
    }
}
