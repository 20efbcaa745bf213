//! The data of a request that a handler can ask for, kept while the request waits. Its buffers serve one request after
//! another.

use mcp_resources_engine::headers::Headers;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::trace::TraceContext;
use mcp_resources_runtime::transport::WorkRequest;
use napi_derive::napi;
use std::sync::Arc;

/// The size of a buffer that is kept for the next request.
const KEPT: usize = 1024;

/// The data of one request, in reused buffers.
#[derive(Default)]
pub(crate) struct About {
    /// Whether it is a request that waits.
    is_there: bool,
    revision: &'static str,
    principal: Option<Arc<Principal>>,
    headers: Option<Arc<Headers>>,
    texts: [Text; 5],
}

/// A text, or none.
#[derive(Default)]
struct Text {
    is_there: bool,
    text: String,
}

/// The same for JavaScript: JSON where it is not said otherwise.
#[napi(object, object_from_js = false)]
pub struct RequestFields {
    /// The URI as the client spelled it, as text; of reads alone.
    pub uri: Option<String>,
    /// The principal, as text.
    pub principal: String,
    /// The scopes of its token, as texts.
    pub scopes: Vec<String>,
    /// The claims of its token.
    pub claims: Option<String>,
    /// The revision of the protocol.
    pub revision: &'static str,
    /// The headers of the HTTP request, by lower-case names.
    pub headers: Vec<(String, String)>,
    /// The client's description of itself.
    pub client_info: Option<String>,
    /// `_meta` of the request.
    pub meta: Option<String>,
    /// The members of the trace that it belongs to, as texts by their names.
    pub trace: Vec<(&'static str, String)>,
    /// The client's answers to an earlier question.
    pub inputs: Option<String>,
    /// The state given with that.
    pub state: Option<String>,
}

impl About {
    /// Forgets the request before and begins with this one.
    pub(crate) fn begin(&mut self, request: &WorkRequest<'_>) {
        let who = &request.who;
        self.headers = who.headers().cloned();
        self.is_there = true;
        self.revision = who.revision();
        let [uri, client_info, meta, inputs, state] = &mut self.texts;
        uri.set(request.uri());
        self.principal = who.identity().cloned();
        client_info.set(who.client_info());
        meta.set(who.meta());
        inputs.set(who.inputs());
        state.set(who.state().map(String::from_utf8_lossy).as_deref());
    }

    /// The request is over.
    pub(crate) fn end(&mut self) {
        self.is_there = false;
        self.principal = None;
        self.headers = None;
        self.texts.iter_mut().for_each(|text| text.set(None));
    }

    /// The data of a request; `None` if it is over.
    pub(crate) fn fields(&self) -> Option<RequestFields> {
        if !self.is_there {
            return None;
        }
        let [uri, client_info, meta, inputs, state] = &self.texts;
        let principal = self.principal.as_deref();
        Some(RequestFields {
            uri: uri.get(),
            principal: principal.map(|principal| principal.id().to_owned()).unwrap_or_default(),
            scopes: principal.map(|principal| principal.scopes().to_vec()).unwrap_or_default(),
            claims: principal.and_then(|principal| principal.claims()).map(str::to_owned),
            revision: self.revision,
            headers: self.headers.as_deref().map(members).unwrap_or_default(),
            client_info: client_info.get(),
            meta: meta.get(),
            trace: meta.get().map(|meta| trace(&meta)).unwrap_or_default(),
            inputs: inputs.get(),
            state: state.get(),
        })
    }
}

fn members(headers: &Headers) -> Vec<(String, String)> {
    let value = |name: &str| headers.get(name).unwrap_or_default();
    headers.iter().map(|(name, _)| (name.clone(), value(&name))).collect()
}

/// The text was part of a message: its nesting is bounded.
fn trace(meta: &str) -> Vec<(&'static str, String)> {
    let trace = TraceContext::of_text(meta, usize::MAX);
    trace.members().map(|(name, value)| (name, value.to_owned())).collect()
}

impl Text {
    fn set(&mut self, text: Option<&str>) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        self.text.push_str(text.unwrap_or_default());
        self.is_there = text.is_some();
    }

    fn get(&self) -> Option<String> {
        self.is_there.then(|| self.text.clone())
    }
}
