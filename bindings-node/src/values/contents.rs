//! Contents and questions, as objects of JavaScript.

use mcp_resources_engine::connection::{Body, Contents, InputAsk, InputRequest, PlainContents};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::borrow::Cow;

/// One of the contents: a text or bytes.
#[napi(object)]
pub struct Entry {
    /// Its own URI.
    pub uri: Option<String>,
    /// Its media type.
    pub mime_type: Option<String>,
    /// The text.
    pub text: Option<String>,
    /// The bytes, if there is no text.
    pub bytes: Option<Uint8Array>,
    /// Members of `_meta` as JSON text.
    pub meta: Option<String>,
}

/// A question to the client.
#[napi(object, object_to_js = false)]
pub struct Question {
    /// Names the answer.
    pub key: String,
    /// The kind of question.
    #[napi(ts_type = "'form' | 'url' | 'sample' | 'roots'")]
    pub kind: String,
    /// The text for the user, or the params of a sampling as JSON text.
    pub text: String,
    /// The JSON schema of a form, or a URL.
    pub more: String,
}

impl Entry {
    /// Converts contents for JavaScript; `None` if a blob is not base64.
    pub(crate) fn from_contents(contents: Contents<'static>) -> Option<Self> {
        let Contents { uri, mime_type, body, meta } = contents;
        let (text, bytes) = match body.into_plain()? {
            PlainContents::Text(text) => (Some(text.into_owned()), None),
            PlainContents::Blob(bytes) => (None, Some(bytes.into_owned().into())),
        };
        let [uri, mime_type, meta] = [uri, mime_type, meta].map(|text| text.map(Cow::into_owned));
        Some(Self { uri, mime_type, text, bytes, meta })
    }

    /// For another thread.
    pub(crate) fn into_contents(self) -> Contents<'static> {
        let Self { uri, mime_type, text, bytes, meta } = self;
        let bytes = || Cow::Owned(bytes.map(|bytes| bytes.to_vec()).unwrap_or_default());
        let body = text.map_or_else(|| Body::Blob(bytes()), |text| Body::Text(Cow::Owned(text)));
        let [uri, mime_type, meta] = [uri, mime_type, meta].map(|text| text.map(Cow::Owned));
        Contents { uri, mime_type, body, meta }
    }

    pub(crate) fn read(&self) -> Contents<'_> {
        let body = match (&self.text, &self.bytes) {
            (Some(text), _) => Body::Text(Cow::Borrowed(text)),
            (None, bytes) => Body::Blob(Cow::Borrowed(bytes.as_deref().unwrap_or_default())),
        };
        let lend = |text: &'_ Option<String>| text.clone().map(Cow::Owned);
        Contents { uri: lend(&self.uri), mime_type: lend(&self.mime_type), body, meta: lend(&self.meta) }
    }
}

impl Question {
    pub(crate) fn read(&self) -> InputRequest<'_> {
        let ask = InputAsk::from_parts(&self.kind, &*self.text, &*self.more);
        InputRequest { key: Cow::Borrowed(&self.key), ask }
    }
}
