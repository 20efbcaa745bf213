//! Requests to a provider.

use super::context::RequestContext;
use super::mount::Route;
use super::responder::{IntoAnswer, Responder};
use mcp_resources_engine::connection::{CallRequest, CompletionRequest, ListRequest, ReadRequest};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::version::Revision;
use mcp_resources_template::{MatchedParams, Value};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A read, borrowed from its message: for [`Provider::read_now`](super::Provider::read_now).
#[derive(Clone, Copy)]
pub struct ReadRef<'r> {
    pub(super) route: Route,
    pub(super) request: &'r ReadRequest<'r>,
    pub(super) engine: &'r Engine,
}

impl<'r> ReadRef<'r> {
    /// The part of the provider that serves the URI.
    pub fn route(&self) -> Route {
        self.route
    }

    /// The URI as the client spelled it; contents repeat it.
    pub fn uri(&self) -> &'r str {
        &self.request.uri
    }

    /// The values of the template's variables; `None` for a resource.
    pub fn params(&self) -> Option<&'r MatchedParams<'r>> {
        self.request.params.as_ref()
    }

    /// The text of one variable; `None` if the URI leaves it undefined, or it is a list or a map.
    pub fn param(&self, name: &str) -> Option<&'r str> {
        self.params()?.get(name).and_then(Value::as_str)
    }

    /// The principal that sent the request.
    pub fn principal(&self) -> &'r Arc<Principal> {
        self.request.caller.principal
    }

    /// Whether the principal may see `uri`, in any spelling. Check each URI, path or row before including it in
    /// contents.
    pub fn permits(&self, uri: &str) -> bool {
        self.engine.permits(self.principal(), uri)
    }
}

/// The principal that sent a request, and its access rights.
#[derive(Clone)]
pub(super) struct ProviderRequester {
    principal: Arc<Principal>,
    engine: Arc<Engine>,
}

impl ProviderRequester {
    pub(super) fn new(principal: &Arc<Principal>, engine: &Arc<Engine>) -> Self {
        Self { principal: principal.clone(), engine: engine.clone() }
    }

    pub(super) fn permits(&self, uri: &str) -> bool {
        self.engine.permits(&self.principal, uri)
    }

    /// The number of items on a page of a list.
    pub(super) fn page(&self) -> usize {
        self.engine.limits().page
    }
}

/// A read: see [`Provider::read`](super::Provider::read).
#[derive(Clone)]
pub struct Read {
    route: Route,
    uri: String,
    params: Option<MatchedParams<'static>>,
    inputs: Option<Arc<str>>,
    state: Option<Arc<[u8]>>,
    meta: Option<Arc<str>>,
    revision: Revision,
    asker: ProviderRequester,
}

/// A page of a list: see [`Provider::list`](super::Provider::list).
pub struct List {
    route: Route,
    cursor: Option<String>,
    limit: usize,
    asker: ProviderRequester,
}

/// A completion: see [`Provider::complete`](super::Provider::complete).
pub struct Complete {
    route: Route,
    reference: String,
    variable: String,
    value: String,
    arguments: Vec<(String, String)>,
    asker: ProviderRequester,
}

/// A call of a custom method: see [`Provider::call`](super::Provider::call).
pub struct Call {
    route: Route,
    method: String,
    params: Option<String>,
    revision: Revision,
    asker: ProviderRequester,
}

/// Methods of all requests.
macro_rules! asked {
    ($($request:ident)+) => {$(
        impl $request {
            /// The context for code that works for this request, which `reply` will answer.
            pub fn context<'r, T: IntoAnswer>(&'r self, reply: &'r Responder<T>) -> RequestContext<'r> {
                RequestContext::new(&self.asker, reply)
            }

            /// The part of the provider that is addressed.
            pub fn route(&self) -> Route {
                self.route
            }

            /// The principal that sent the request.
            pub fn principal(&self) -> &Arc<Principal> {
                &self.asker.principal
            }

            /// Whether the principal may see `uri`, in any spelling. Check each URI, path or row before including it in
            /// contents.
            pub fn permits(&self, uri: &str) -> bool {
                self.asker.permits(uri)
            }
        }
    )+};
}

asked! { Read List Complete Call }

impl Read {
    pub(super) fn new(route: Route, request: ReadRequest<'_>, engine: &Arc<Engine>) -> Self {
        let ReadRequest { uri, params, inputs, state, caller, .. } = request;
        let asker = ProviderRequester::new(caller.principal, engine);
        Self {
            route,
            uri: uri.into_owned(),
            params: params.map(MatchedParams::into_owned),
            inputs: inputs.map(|inputs| inputs.raw().into()),
            state: state.map(Arc::from),
            meta: caller.meta.map(|meta| meta.raw().into()),
            revision: caller.revision,
            asker,
        }
    }

    /// The same request for another part.
    pub(super) fn at(&self, route: Route) -> Self {
        Self { route, ..self.clone() }
    }

    /// The URI as the client spelled it; contents repeat it.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The revision in which the client speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The `_meta` of the request as JSON text, an object, if it has one.
    pub fn meta(&self) -> Option<&str> {
        self.meta.as_deref()
    }

    /// The client's answers to an earlier [`Responder::require`]: a JSON object, key to result.
    pub fn inputs(&self) -> Option<&str> {
        self.inputs.as_deref()
    }

    /// The state that the provider gave then.
    pub fn state(&self) -> Option<&[u8]> {
        self.state.as_deref()
    }

    /// The values of the template's variables; `None` for a resource.
    pub fn params(&self) -> Option<&MatchedParams<'static>> {
        self.params.as_ref()
    }

    /// The text of one variable; `None` if the URI leaves it undefined, or it is a list or a map.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params()?.get(name).and_then(Value::as_str)
    }
}

impl List {
    pub(super) fn new(route: Route, request: ListRequest<'_>, engine: &Arc<Engine>) -> Self {
        let ListRequest { cursor, limit, principal, .. } = request;
        Self { route, cursor, limit, asker: ProviderRequester { principal, engine: engine.clone() } }
    }

    /// The cursor: the `next` of the previous page. `None` for the first page.
    pub fn cursor(&self) -> Option<&str> {
        self.cursor.as_deref()
    }

    /// The maximum number of items of the page.
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl Complete {
    pub(super) fn new(route: Route, request: CompletionRequest<'_>, engine: &Arc<Engine>) -> Self {
        let CompletionRequest { reference, variable, value, arguments, caller, .. } = request;
        let own = |(name, value): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), value.into_owned());
        Self {
            route,
            reference: reference.into_owned(),
            variable: variable.into_owned(),
            value: value.into_owned(),
            arguments: arguments.into_iter().map(own).collect(),
            asker: ProviderRequester::new(caller.principal, engine),
        }
    }

    /// The reference: the text of a template, or a URI. A fallback may complete many of them.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// The variable to complete.
    pub fn variable(&self) -> &str {
        &self.variable
    }

    /// The value typed so far.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The values chosen for other variables.
    pub fn arguments(&self) -> &[(String, String)] {
        &self.arguments
    }

    /// The value chosen for another variable.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }
}

impl Call {
    pub(super) fn new(route: Route, request: CallRequest<'_>, engine: &Arc<Engine>) -> Self {
        let CallRequest { method, params, caller, .. } = request;
        let params = params.map(|params| params.raw().to_owned());
        Self {
            route,
            method: method.into_owned(),
            params,
            revision: caller.revision,
            asker: ProviderRequester::new(caller.principal, engine),
        }
    }

    /// The revision in which the client speaks.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// The method.
    pub fn method(&self) -> &str {
        &self.method
    }

    /// The params as JSON text, an object; `{}` without params.
    pub fn params(&self) -> &str {
        self.params.as_deref().unwrap_or("{}")
    }

    /// The recommended number of items on a page of a list.
    pub fn page(&self) -> usize {
        self.asker.page()
    }

    /// Maximum length of a URI that the server accepts, in bytes.
    pub fn longest_uri(&self) -> usize {
        self.asker.engine.limits().uri
    }
}

/// A change in which resources or lists are watched: see [`Provider::interest`](super::Provider::interest).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterestChange<'a> {
    /// Of one resource.
    Uri {
        /// Its canonical URI.
        uri: &'a Arc<str>,
        /// The part of the provider that serves it.
        route: Route,
        /// `true` when the first client starts watching, `false` after the last one stops.
        on: bool,
    },
    /// Of the lists of resources and templates.
    Lists {
        /// `true` when the first client starts watching, `false` after the last one stops.
        on: bool,
    },
}

impl fmt::Debug for ReadRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadRef")
            .field("route", &self.route)
            .field("uri", &self.uri())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Read").field("route", &self.route).field("uri", &self.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("route", &self.route)
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("route", &self.route)
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Complete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { route, variable, value, .. } = self;
        f.debug_struct("Complete")
            .field("route", route)
            .field("variable", variable)
            .field("value", value)
            .finish_non_exhaustive()
    }
}
