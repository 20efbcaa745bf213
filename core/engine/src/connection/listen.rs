//! `subscriptions/listen` (R-087 … R-100).

use super::event::Event;
use super::request::Request;
use super::words;
use super::{Connection, Events, Outcome, Status};
use crate::catalog::Route;
use crate::guard::{Action, RateClass, Verdict};
use crate::hub::{Filter, ListKinds, ListenError};
use crate::jsonrpc::{Json, OwnedId};
use crate::principal::Principal;
use crate::version::{INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST};
use mcp_resources_template::uri;
use std::borrow::Cow;

/// The members of the filter that ask for changes of a list.
const LISTS: [(&str, ListKinds); 3] = [
    ("resourcesListChanged", ListKinds::RESOURCES),
    ("toolsListChanged", ListKinds::TOOLS),
    ("promptsListChanged", ListKinds::PROMPTS),
];

impl Connection {
    pub(super) fn listen<'m>(&mut self, request: &Request<'_, 'm>, out: &mut Vec<u8>) -> Outcome<'m> {
        let asked = match Asked::parse(request) {
            Ok(asked) => asked,
            Err(message) => return self.refuse(request, (INVALID_PARAMS, message), out),
        };
        if let Some(refused) = self.refuse_rate(request, RateClass::Subscribe, None, out) {
            return refused;
        }
        if asked.uris.len() > self.engine.limits().filter_uris {
            return self.refuse(request, (INTERNAL_ERROR, "Subscription limit reached"), out);
        }
        let honoured = self.honour(asked, request.principal);
        // A URI that was left out because the search for its template ended at its budget is recorded.
        let verdict = if honoured.exhausted { Verdict::Exhausted } else { Verdict::Ok };
        if honoured.is_empty() {
            // DEC-10: nothing to wait for.
            self.acknowledge(request, &honoured, out);
            return Outcome { verdict, ..self.end(request, out) };
        }
        let pairs: Vec<_> = honoured.uris.iter().map(|(normal, uri)| (&**normal, &**uri)).collect();
        let filter = Filter { lists: honoured.lists, uris: &pairs };
        match self.engine.hub().listen(self.id, request.id, request.principal.clone(), filter) {
            Ok(first) => {
                self.listens.insert(OwnedId::from(request.id));
                if self.closing {
                    self.engine.hub().shutdown(self.id, &mut Vec::new());
                }
                self.acknowledge(request, &honoured, out);
                let outcome =
                    Outcome::new(Status::Pending).with(first.into_iter().map(|uri| Event::Watched { uri }));
                Outcome { verdict, ..outcome }
            }
            Err(ListenError::IdInUse) => self.refuse(
                request,
                (INVALID_REQUEST, "Invalid Request: a request with this id is in flight"),
                out,
            ),
            Err(ListenError::LimitReached) => {
                self.refuse(request, (INTERNAL_ERROR, "Subscription limit reached"), out)
            }
        }
    }

    /// The part of the filter that is granted (R-089, DEC-19).
    fn honour<'m>(&self, asked: Asked<'m>, principal: &Principal) -> Honoured<'m> {
        let lists = asked.lists.intersection(self.engine.announced_lists());
        let mut honoured = Honoured { lists, uris: Vec::new(), exhausted: false };
        if !self.engine.options().subscribe {
            return honoured;
        }
        let (catalog, limit) = (self.engine.catalog(), self.engine.limits().uri);
        let mut seen = std::collections::HashSet::new();
        for uri in asked.uris {
            let Ok(normal) = uri::normalize(&uri, limit).map(Cow::into_owned) else { continue };
            let route = catalog.route(&normal);
            honoured.exhausted |= matches!(route, Route::None { exhausted: true });
            let exists = matches!(route, Route::Resource(_) | Route::Template(..))
                && self.engine.sees(principal, Action::Subscribe, &normal);
            // Of two spellings of one URI the first is told (DEC-15).
            if exists && seen.insert(normal.clone()) {
                honoured.uris.push((normal, uri));
            }
        }
        honoured
    }

    ///
    fn acknowledge(&self, request: &Request<'_, '_>, honoured: &Honoured<'_>, out: &mut Vec<u8>) {
        words::notification(out, "notifications/subscriptions/acknowledged", |params| {
            params.object(words::META, |meta| put_id(meta.value(words::SUBSCRIPTION_ID), request));
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

    /// The result of a listen that has nothing to wait for.
    fn end<'m>(&self, request: &Request<'_, '_>, out: &mut Vec<u8>) -> Outcome<'m> {
        let meta = format!("\"{}\":{}", words::SUBSCRIPTION_ID, request.id.raw());
        self.wording(request).result(out, "complete", &meta, |_| ());
        Outcome::answered()
    }
}

/// How the server ends what a connection listens to.
impl Connection {
    /// Ends the listens of this connection with their results, after what they must still be told. It is
    /// told of no later change, and a later listen ends at once; other connections go on. Deliver next:
    /// [`Connection::deliver`] returns [`Delivered::Ended`](crate::hub::Delivered::Ended) once all is said.
    pub fn shutdown(&mut self) {
        self.closing = true;
        self.engine.hub().shutdown(self.id, &mut Vec::new());
    }

    /// Whether [`Connection::shutdown`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Ends the listens of this connection with their results and nothing else: the token that they were opened with has
    /// expired. Deliver next.
    pub fn end_listens(&mut self) -> Events<'static> {
        let left = self.engine.hub().end_listens(self.id, &mut Vec::new());
        left.into_iter().map(|uri| Event::Unwatched { uri }).collect()
    }

    /// The client was let in again after [`Engine::revoke`](crate::engine::Engine::revoke): its next stream goes on.
    pub fn readmit(&self) {
        self.engine.hub().readmit(self.id);
    }

    /// Its streams end, as after [`Engine::revoke`](crate::engine::Engine::revoke). Deliver next.
    pub(crate) fn dismiss(&self) {
        self.engine.hub().dismiss(self.id);
    }
}

fn put_id(out: &mut Vec<u8>, request: &Request<'_, '_>) {
    out.extend_from_slice(request.id.raw().as_bytes());
}

/// What a client wants to hear of.
struct Asked<'m> {
    lists: ListKinds,
    uris: Vec<Cow<'m, str>>,
}

/// What it will hear of: canonical URIs, each with the client's spelling.
struct Honoured<'m> {
    lists: ListKinds,
    uris: Vec<(String, Cow<'m, str>)>,
    /// Whether the search for a template ended at its budget.
    exhausted: bool,
}

impl Honoured<'_> {
    fn is_empty(&self) -> bool {
        self.lists == ListKinds::NONE && self.uris.is_empty()
    }
}

impl<'m> Asked<'m> {
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
