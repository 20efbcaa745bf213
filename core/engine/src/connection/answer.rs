//! The answers of a runtime to events.

use super::blocks::{PromptResult, ToolResult};
use crate::catalog::encode_item;
use crate::error::ReadError;
use crate::resource::{CacheHint, Resource};
use crate::version::FieldSet;
use std::borrow::Cow;
use std::sync::Arc;

/// The answer to a `Read`, `Complete`, `List`, `Tool`, `Prompt` or `Call` event. If the variant does not fit the event,
/// the client gets an internal error, and [`Encoded::misuse`](super::EncodedReply) describes the mistake.
#[derive(Debug)]
pub enum Answer<'a> {
    /// For a read: the contents. For a tool: blocks, as [`ContentBlock::from_contents`](super::ContentBlock) makes them.
    Contents(ReadResult<'a>),
    /// For a read: contents gathered chunk by chunk.
    Gathered(super::ContentsGatherer),
    /// For a read, tool, prompt or custom method (2026-07-28): the client must provide input first.
    InputRequired(InputRequired<'a>),
    /// For a completion.
    Completion(Completion<'a>),
    /// For a list.
    Listed(ListPage),
    /// For questions about access: one answer for each, in their order. `None` means no, for this request only: the
    /// handler failed. An error means that for all of them.
    Access(Vec<Option<bool>>),
    /// For a tool.
    Tool(ToolResult<'a>),
    /// For a prompt.
    Prompt(PromptResult<'a>),
    /// For a custom method. For a tool or prompt: a result that is sent as it is, whatever the revision.
    Raw(RawResult<'a>),
    /// For any event: an error.
    Failed(ReadError),
}

/// The contents of a read. An empty list is sent as the error `not_found`, never as an empty array
///.
#[derive(Debug, Default)]
pub struct ReadResult<'a> {
    /// One or more entries.
    pub contents: Vec<Contents<'a>>,
    /// Overrides the resource's own caching hint.
    pub cache: Option<CacheHint>,
}

impl ReadResult<'_> {
    /// Copies everything that it borrows.
    pub fn into_owned(self) -> ReadResult<'static> {
        ReadResult {
            contents: self.contents.into_iter().map(Contents::into_owned).collect(),
            cache: self.cache,
        }
    }
}

/// One entry of the contents.
#[derive(Clone, Debug)]
pub struct Contents<'a> {
    /// The entry's URI; `None` for the requested URI.
    pub uri: Option<Cow<'a, str>>,
    /// The media type. `None` for the resource's own type; if it has none, `text/plain` for text and
    /// `application/octet-stream` for a blob.
    pub mime_type: Option<Cow<'a, str>>,
    /// The text or bytes.
    pub body: Body<'a>,
    /// `_meta`: a JSON object, sent only under revisions that define it.
    pub meta: Option<Cow<'a, str>>,
}

/// Text or bytes. [`Body::into_plain`] reduces the five variants to two.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// Sent as `text`.
    Text(Cow<'a, str>),
    /// The same, shared: it is not copied before it is encoded.
    SharedText(Arc<str>),
    /// Sent as `blob`, base64.
    Blob(Cow<'a, [u8]>),
    /// The same, shared: it is not copied before it is encoded.
    SharedBlob(Arc<[u8]>),
    /// Sent as `blob`: bytes that another server has already encoded. The read fails if it is not base64 in the
    /// standard alphabet with padding.
    Base64(Cow<'a, str>),
}

/// Text or bytes, for code that inspects contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainContents<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes, decoded.
    Blob(Cow<'a, [u8]>),
}

impl<'a> From<PlainContents<'a>> for Body<'a> {
    fn from(plain: PlainContents<'a>) -> Self {
        match plain {
            PlainContents::Text(text) => Self::Text(text),
            PlainContents::Blob(bytes) => Self::Blob(bytes),
        }
    }
}

impl<'a> Contents<'a> {
    /// Text under the requested URI.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::from_body(Body::Text(text.into()))
    }

    /// Shared text, such as a cached file, under the requested URI.
    pub fn shared_text(text: impl Into<Arc<str>>) -> Self {
        Self::from_body(Body::SharedText(text.into()))
    }

    /// Bytes under the requested URI.
    pub fn blob(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::from_body(Body::Blob(bytes.into()))
    }

    /// Shared bytes, such as a cached file, under the requested URI.
    pub fn shared_blob(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::from_body(Body::SharedBlob(bytes.into()))
    }

    /// Bytes that are already base64: in the standard alphabet, with padding, without line breaks.
    pub fn base64(text: impl Into<Cow<'a, str>>) -> Self {
        Self::from_body(Body::Base64(text.into()))
    }

    pub(super) fn from_body(body: Body<'a>) -> Self {
        Self { uri: None, mime_type: None, body, meta: None }
    }

    /// Serializes `value` as text of type `application/json`.
    ///
    /// # Errors
    /// The error of `serde_json` for a value that has no JSON form.
    pub fn json(value: &impl serde::Serialize) -> Result<Contents<'static>, serde_json::Error> {
        Ok(Contents::text(serde_json::to_string(value)?).with_mime_type("application/json"))
    }

    /// Sets the URI.
    #[must_use]
    pub fn with_uri(mut self, uri: impl Into<Cow<'a, str>>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// Sets the media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<Cow<'a, str>>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Sets `_meta`, a JSON object.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Into<Cow<'a, str>>) -> Self {
        self.meta = Some(meta.into());
        self
    }
}

impl Contents<'_> {
    /// Copies everything that it borrows.
    pub fn into_owned(self) -> Contents<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let body = match self.body {
            Body::Text(text) => Body::Text(own(text)),
            Body::SharedText(text) => Body::SharedText(text),
            Body::Blob(bytes) => Body::Blob(Cow::Owned(bytes.into_owned())),
            Body::SharedBlob(bytes) => Body::SharedBlob(bytes),
            Body::Base64(text) => Body::Base64(own(text)),
        };
        Contents {
            uri: self.uri.map(own),
            mime_type: self.mime_type.map(own),
            body,
            meta: self.meta.map(own),
        }
    }
}

impl<'a> From<Contents<'a>> for ReadResult<'a> {
    fn from(contents: Contents<'a>) -> Self {
        Self { contents: vec![contents], cache: None }
    }
}

/// Completion values, best first. Only the first 100 are sent; `total` and `hasMore` then tell the client about
/// the rest.
#[derive(Clone, Debug, Default)]
pub struct Completion<'a> {
    /// The values.
    pub values: Vec<Cow<'a, str>>,
    /// The number of all values; `None` if `values` has them all.
    pub total: Option<u64>,
    /// Whether more values exist; `None` to compute it.
    pub has_more: Option<bool>,
}

impl Completion<'_> {
    /// Copies everything that it borrows.
    pub(super) fn into_owned(self) -> Completion<'static> {
        let values = self.values.into_iter().map(|value| Cow::Owned(value.into_owned())).collect();
        Completion { values, total: self.total, has_more: self.has_more }
    }
}

/// The result of a list source.
#[derive(Debug, Default)]
pub struct ListPage {
    /// The resources. Items that would not be served by this source are left out: see
    /// [`Lister::owns`](crate::catalog::Lister::owns).
    pub items: Vec<Item>,
    /// The source's cursor for its next page, if it has pages.
    pub next: Option<String>,
    /// Names of parts that could not be listed now. All other items are sent, and the result names the missing parts in
    /// `_meta` under [`meta::MISSING`](crate::meta::MISSING). Up to 100 names of up to 256 bytes each.
    pub missing: Vec<String>,
}

impl ListPage {
    /// A complete list, or one page of it.
    pub fn new(items: impl IntoIterator<Item = impl Into<Item>>) -> Self {
        Self { items: items.into_iter().map(Into::into).collect(), next: None, missing: Vec::new() }
    }

    /// Sets the cursor of the next page.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// Adds the name of a part that could not be listed now.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.missing.push(name.into());
        self
    }
}

/// One resource of a list.
#[derive(Clone, Debug)]
pub enum Item {
    /// A resource, sent with the fields that the client's revision defines.
    Resource(Resource),
    /// A resource described by another server, passed on unchanged whatever the revision. An invalid one is left out
    /// and logged.
    Foreign {
        /// Its URI.
        uri: String,
        /// The other server's description: a JSON object with `name`, and with `uri` equal to the field above. At most
        /// [`Limits::list_item`](crate::limits::Limits::list_item) bytes. Line breaks are removed.
        json: String,
    },
}

impl Item {
    /// Its URI as given.
    pub fn uri(&self) -> &str {
        match self {
            Self::Resource(resource) => &resource.uri,
            Self::Foreign { uri, .. } => uri,
        }
    }

    /// Appends the item to a list. It must have passed its checks.
    pub(crate) fn encode(&self, fields: FieldSet, out: &mut Vec<u8>) {
        match self {
            Self::Resource(resource) => encode_item(resource, fields, out),
            Self::Foreign { json, .. } => out.extend_from_slice(json.as_bytes()),
        }
    }
}

impl From<Resource> for Item {
    fn from(resource: Resource) -> Self {
        Self::Resource(resource)
    }
}

/// Input that the client must provide before the read can be answered.
#[derive(Debug, Default)]
pub struct InputRequired<'a> {
    /// The questions. May be empty if `state` is given.
    pub requests: Vec<InputRequest<'a>>,
    /// The handler's own state: sealed, and returned with the retry.
    pub state: Option<Cow<'a, [u8]>>,
}

/// One question to the client.
#[derive(Clone, Debug)]
pub struct InputRequest<'a> {
    /// Identifies the answer; unique within one `InputRequired`.
    pub key: Cow<'a, str>,
    /// The question.
    pub ask: InputAsk<'a>,
}

/// The kinds of question.
#[derive(Clone, Debug)]
pub enum InputAsk<'a> {
    /// A form for the user; requires the client capability `elicitation`.
    Form {
        /// The message for the user.
        message: Cow<'a, str>,
        /// The flat JSON schema of the answer, as JSON text; the answer is checked against it.
        schema: Cow<'a, str>,
    },
    /// A web page for the user; requires the client capability `elicitation.url`.
    Url {
        /// The message for the user.
        message: Cow<'a, str>,
        /// The page's URL. Must not contain information about the user.
        url: Cow<'a, str>,
    },
    /// A completion of the client's model: the params of the request as JSON text. Requires the client capability
    /// `sampling`.
    Sampling(Cow<'a, str>),
    /// The client's roots. Requires the client capability `roots`.
    Roots,
}

impl<'a> InputAsk<'a> {
    /// Makes a question from a binding's name for its kind: `form` and `url` with the message for the user and the
    /// schema or URL, `sample` with its params. Any other name asks for the roots.
    pub fn from_parts(sort: &str, text: impl Into<Cow<'a, str>>, more: impl Into<Cow<'a, str>>) -> Self {
        match sort {
            "form" => Self::Form { message: text.into(), schema: more.into() },
            "url" => Self::Url { message: text.into(), url: more.into() },
            "sample" => Self::Sampling(text.into()),
            _ => Self::Roots,
        }
    }
}

/// The result of a custom method.
#[derive(Debug, Default)]
pub struct RawResult<'a> {
    /// A JSON object with the members of the result, without `resultType` and `_meta`. Sent without the white space
    /// between its tokens, otherwise unchanged. For methods whose name ends with `/list`, modern results without `ttlMs`
    /// and `cacheScope` get those of [`Options::list_cache`](crate::engine::EngineOptions::list_cache).
    pub members: Cow<'a, str>,
    /// `resultType` for 2026-07-28; `None` for `complete`.
    pub result_type: Option<Cow<'a, str>>,
    /// `_meta`: a JSON object; the engine adds its own keys.
    pub meta: Option<Cow<'a, str>>,
}
