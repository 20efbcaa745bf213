//! What a handler may ask of its request, kept while the request waits. Its buffers serve one request after another.

use mcp_resources::connection::Caller;
use napi_derive::napi;

/// How much of a buffer is kept for the next request.
const KEPT: usize = 1024;

/// See the module.
#[derive(Default)]
pub(crate) struct About {
    /// Whether it is a request that waits.
    is_there: bool,
    revision: &'static str,
    texts: [Text; 6],
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
    /// Who asks, as text.
    pub principal: String,
    /// The revision of the protocol.
    pub revision: &'static str,
    /// What the client says of itself.
    pub client_info: Option<String>,
    /// `_meta` of the request.
    pub meta: Option<String>,
    /// The client's answers to an earlier question.
    pub inputs: Option<String>,
    /// The state given with that.
    pub state: Option<String>,
}

impl About {
    /// Forgets the request before and begins with this one.
    pub(crate) fn begin(&mut self, caller: Option<&Caller<'_>>) {
        self.is_there = true;
        self.revision = caller.map_or("", |caller| caller.revision.as_str());
        let [uri, principal, client_info, meta, ..] = &mut self.texts;
        uri.set(None);
        principal.set(caller.map(|caller| caller.principal.id()));
        client_info.set(caller.and_then(|caller| caller.client_info.as_str()));
        meta.set(caller.and_then(|caller| caller.meta.as_ref()).map(|meta| meta.raw()));
    }

    /// It is a read of this URI.
    pub(crate) fn of(&mut self, uri: &str) {
        let [own, ..] = &mut self.texts;
        own.set(Some(uri));
    }

    /// It is a further round of a request: with the client's answers and the author's state.
    pub(crate) fn round(&mut self, inputs: Option<&str>, state: Option<&[u8]>) {
        let [_, _, _, _, own_inputs, own_state] = &mut self.texts;
        own_inputs.set(inputs);
        own_state.set(state.map(String::from_utf8_lossy).as_deref());
    }

    /// The request is over.
    pub(crate) fn end(&mut self) {
        self.is_there = false;
        self.texts.iter_mut().for_each(|text| text.set(None));
    }

    /// What is known of a request; `None` if it is over.
    pub(crate) fn fields(&self) -> Option<RequestFields> {
        if !self.is_there {
            return None;
        }
        let [uri, principal, client_info, meta, inputs, state] = &self.texts;
        Some(RequestFields {
            uri: uri.get(),
            principal: principal.get().unwrap_or_default(),
            revision: self.revision,
            client_info: client_info.get(),
            meta: meta.get(),
            inputs: inputs.get(),
            state: state.get(),
        })
    }
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
