//! `resources/directory/read` (SEP-2640): the children of any directory that a provider serves, under any scheme.
//!
//! ```text
//!   params.uri ── the catalogue's route ──▶ the provider that serves it ── Provider::directory ──▶ its children
//!                                                                           │ sorted, guarded, cut into pages
//!   answer ◀────────────────────────────────────────────── DirectoryPage ◀──┘
//! ```
//!
//! Law: a directory that the principal may not see, a resource that is no directory, and an unknown URI get the same
//! error. A page is limited in entries and in bytes, and a cursor contains only a URI that the client has seen.

use super::context::RequestContext;
use super::mount::Route;
use super::request::ProviderRequester;
use super::responder::{IntoAnswer, Responder};
use mcp_resources_engine::catalog::{CatalogRoute, HandlerId, ItemSource, encode_item};
use mcp_resources_engine::connection::{Answer, CallRequest, RawResult};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::jsonrpc::{Json, JsonKind, object};
use mcp_resources_engine::resource::Resource;
use mcp_resources_engine::version::{FieldSet, INVALID_PARAMS};
use mcp_resources_template::{MatchedParams, Value, uri};
use std::fmt;
use std::sync::Arc;

/// The part that stands for the method, whatever provider answers. No provider has so many parts.
pub(super) const DIRECTORIES: Route = Route(u32::MAX);

/// Maximum size of the children on a page in bytes: a further child begins the next page.
const PAGE: usize = 1 << 20;

/// The request for the children of a directory: see [`Provider::directory`](super::Provider::directory).
pub struct Directory {
    route: Route,
    uri: String,
    params: Option<MatchedParams<'static>>,
    cursor: Option<String>,
    asker: ProviderRequester,
}

/// A page of the children of a directory, made by [`Directory::page`].
#[derive(Debug)]
pub struct DirectoryPage {
    members: String,
}

/// A request whose provider is not asked yet.
pub(super) struct DirectoryQuestion {
    uri: String,
    cursor: Option<String>,
    asker: ProviderRequester,
    engine: Arc<Engine>,
}

impl Directory {
    /// Most children of a directory that a provider should look at for one page.
    pub const MOST_CHILDREN: usize = 10_000;

    /// The part of the provider that serves the URI.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The URI in canonical form.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The text of one variable; `None` for a resource, and if the URI leaves it undefined.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.as_ref()?.get(name).and_then(Value::as_str)
    }

    /// The context for code that works for this request, which `reply` will answer.
    pub fn context<'r, T: IntoAnswer>(&'r self, reply: &'r Responder<T>) -> RequestContext<'r> {
        RequestContext::new(&self.asker, reply)
    }

    /// Whether the principal may see `uri`, in any spelling.
    pub fn permits(&self, uri: &str) -> bool {
        self.asker.permits(uri)
    }

    /// The requested page, out of all `children` in any order. Those that the principal may not see are left out.
    pub fn page(&self, children: impl IntoIterator<Item = Resource>) -> DirectoryPage {
        let cursor = self.cursor.as_deref();
        let mut rest: Vec<Resource> = children
            .into_iter()
            .filter(|child| cursor.is_none_or(|cursor| *child.uri > *cursor) && self.permits(&child.uri))
            .collect();
        rest.sort_by(|one, other| one.uri.cmp(&other.uri));
        let mut items = Vec::new();
        let mut last: Option<&str> = None;
        let mut next = None;
        for (count, child) in rest.iter().enumerate() {
            let before = items.len();
            if count > 0 {
                items.push(b',');
            }
            encode_item(child, FieldSet::Full, &mut items);
            if count > 0 && (count >= self.asker.page() || items.len() > PAGE) {
                items.truncate(before);
                next = last;
                break;
            }
            last = Some(&child.uri);
        }
        let mut members = Vec::new();
        object(&mut members, |result| {
            let array = result.value("resources");
            array.push(b'[');
            array.extend_from_slice(&items);
            array.push(b']');
            if let Some(next) = next {
                result.str("nextCursor", next);
            }
            // The text of the extension asks for no caching hint here; the official TypeScript client does.
            result.u64("ttlMs", 0);
            result.str("cacheScope", "private");
        });
        DirectoryPage { members: String::from_utf8(members).unwrap_or_default() }
    }

    /// The error for a URI that is no directory.
    pub fn absent(&self) -> ReadError {
        absent(&self.uri)
    }
}

impl IntoAnswer for DirectoryPage {
    fn into_answer(self) -> Answer<'static> {
        Answer::Raw(RawResult { members: self.members.into(), ..RawResult::default() })
    }
}

impl DirectoryQuestion {
    /// Reads the params.
    ///
    /// # Errors
    /// `uri` is no URI, or `cursor` is none of ours.
    pub(super) fn parse(request: &CallRequest<'_>, engine: &Arc<Engine>) -> Result<Self, ReadError> {
        let params = request.params.and_then(Json::object);
        let member = |name: &str| params.as_ref().and_then(|params| params.get(name));
        let given = member("uri").and_then(Json::as_str);
        let normal = given.and_then(|given| {
            uri::normalize(&given, engine.limits().uri).ok().map(std::borrow::Cow::into_owned)
        });
        let uri = normal.ok_or_else(|| invalid("uri", "the URI of a resource"))?;
        let is_ours = |cursor: &str| uri::scheme(cursor) == uri::scheme(&uri);
        let cursor = match member("cursor") {
            Some(cursor) if cursor.kind() != JsonKind::Null => {
                let text = cursor.as_str().filter(|text| is_ours(text));
                let text = text.ok_or_else(|| invalid("cursor", "the nextCursor of an earlier page"))?;
                Some(text.into_owned())
            }
            _ => None,
        };
        let asker = ProviderRequester::new(request.caller.principal, engine);
        Ok(Self { uri, cursor, asker, engine: engine.clone() })
    }

    /// The handler of the URI, if the principal may see it.
    pub(super) fn handler(&self) -> Option<HandlerId> {
        if !self.asker.permits(&self.uri) {
            return None;
        }
        match self.engine.catalog().route(&self.uri) {
            CatalogRoute::Resource(entry) => match &entry.source {
                ItemSource::Handler(handler) => Some(*handler),
                ItemSource::Text(_) | ItemSource::Bytes(_) => None,
            },
            CatalogRoute::Template(entry, _) => Some(entry.handler),
            _ => None,
        }
    }

    /// The request for the part of the provider that has the handler.
    pub(super) fn at(self, route: Route) -> Directory {
        let params = match self.engine.catalog().route(&self.uri) {
            CatalogRoute::Template(_, params) => Some(params.into_owned()),
            _ => None,
        };
        let Self { uri, cursor, asker, .. } = self;
        Directory { route, uri, params, cursor, asker }
    }

    /// The error for a URI that is no directory.
    pub(super) fn absent(&self) -> ReadError {
        absent(&self.uri)
    }
}

fn absent(uri: &str) -> ReadError {
    let message = format!("No directory resource is served at {uri}");
    ReadError::Custom { code: INVALID_PARAMS, message, data: None }
}

fn invalid(parameter: &str, expected: &str) -> ReadError {
    ReadError::InvalidParameter { parameter: parameter.into(), expected: expected.into() }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directory")
            .field("route", &self.route)
            .field("uri", &self.uri)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}
