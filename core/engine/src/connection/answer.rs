//! What a host gives back for an event.

use crate::catalog::encode_item;
use crate::error::ReadError;
use crate::resource::{CacheHint, Resource};
use crate::version::FieldSet;
use std::borrow::Cow;
use std::sync::Arc;

/// The answer to a `Read`, `Complete`, `List` or `Call`. An answer of the wrong sort for its event is an internal
/// error to the client and names the mistake in [`Encoded::misuse`](super::Encoded).
#[derive(Debug)]
pub enum Answer<'a> {
    /// To a read: contents.
    Contents(ReadResult<'a>),
    /// To a read: contents that were gathered chunk by chunk.
    Gathered(super::Gather),
    /// To a read (2026-07-28): the client must give input first.
    InputRequired(InputRequired<'a>),
    /// To a completion.
    Completion(Completion<'a>),
    /// To a list.
    Listed(ListPage),
    /// To a call.
    Raw(RawResult<'a>),
    /// To any: it failed.
    Failed(ReadError),
}

/// The contents of a read. None at all is told as `not_found`, never as an empty array.
#[derive(Debug, Default)]
pub struct ReadResult<'a> {
    /// One or more entries.
    pub contents: Vec<Contents<'a>>,
    /// Overrides the resource's own caching hint.
    pub cache: Option<CacheHint>,
}

impl ReadResult<'_> {
    /// For longer than what it borrows.
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
    /// The entry's URI; `None` is the URI that was asked for.
    pub uri: Option<Cow<'a, str>>,
    /// The media type; `None` is the resource's own, else `text/plain` for text and `application/octet-stream` for a blob.
    pub mime_type: Option<Cow<'a, str>>,
    /// The content.
    pub body: Body<'a>,
    /// `_meta`: a JSON object, sent to revisions that have it.
    pub meta: Option<Cow<'a, str>>,
}

/// Text or bytes. [`Body::into_plain`] leaves two cases of the five.
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
    /// Sent as `blob`: base64 already, as another server sent it. If it is not in the standard alphabet with padding, the
    /// read fails.
    Base64(Cow<'a, str>),
}

/// Text or bytes, for those who look at contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plain<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// Bytes, decoded.
    Blob(Cow<'a, [u8]>),
}

impl<'a> From<Plain<'a>> for Body<'a> {
    fn from(plain: Plain<'a>) -> Self {
        match plain {
            Plain::Text(text) => Self::Text(text),
            Plain::Blob(bytes) => Self::Blob(bytes),
        }
    }
}

impl<'a> Contents<'a> {
    /// A text under the URI that was asked for.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Body::Text(text.into()))
    }

    /// A text that is shared, such as a cached file.
    pub fn shared_text(text: impl Into<Arc<str>>) -> Self {
        Self::of(Body::SharedText(text.into()))
    }

    /// Bytes under the URI that was asked for.
    pub fn blob(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::of(Body::Blob(bytes.into()))
    }

    /// Bytes that are shared, such as a cached file.
    pub fn shared_blob(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self::of(Body::SharedBlob(bytes.into()))
    }

    /// Bytes that are base64 already: in the standard alphabet, with padding, without line breaks.
    pub fn base64(text: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Body::Base64(text.into()))
    }

    fn of(body: Body<'a>) -> Self {
        Self { uri: None, mime_type: None, body, meta: None }
    }

    /// Any value that serde can write, as `application/json` text.
    ///
    /// # Errors
    /// What `serde_json` says of a value that has no JSON form.
    pub fn json(value: &impl serde::Serialize) -> Result<Contents<'static>, serde_json::Error> {
        Ok(Contents::text(serde_json::to_string(value)?).with_mime_type("application/json"))
    }

    /// The same with another URI.
    #[must_use]
    pub fn with_uri(mut self, uri: impl Into<Cow<'a, str>>) -> Self {
        self.uri = Some(uri.into());
        self
    }

    /// The same with a media type.
    #[must_use]
    pub fn with_mime_type(mut self, mime_type: impl Into<Cow<'a, str>>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// The same with `_meta`, a JSON object.
    #[must_use]
    pub fn with_meta(mut self, meta: impl Into<Cow<'a, str>>) -> Self {
        self.meta = Some(meta.into());
        self
    }
}

impl Contents<'_> {
    /// The same, with copies of all that it borrows.
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

/// The values of a completion, best first. More than 100 are cut, and `total` and `hasMore` say so.
#[derive(Clone, Debug, Default)]
pub struct Completion<'a> {
    /// The values.
    pub values: Vec<Cow<'a, str>>,
    /// How many there are in all; `None` is as many as given.
    pub total: Option<u64>,
    /// Whether there are more than were given; `None` is computed.
    pub has_more: Option<bool>,
}

/// What a `.list` callback or another list source returned.
#[derive(Debug, Default)]
pub struct ListPage {
    /// The resources. One that something else would serve is left out: see [`Lister::owns`](crate::catalog::Lister::owns).
    pub items: Vec<Item>,
    /// Where its next page begins, for a callback that pages.
    pub next: Option<String>,
    /// The names of parts that could not be listed now. The rest is sent, and the result names them in `_meta` under
    /// [`meta::MISSING`](crate::meta::MISSING). Up to 100 names, each of up to 256 bytes.
    pub missing: Vec<String>,
}

impl ListPage {
    /// All of a list, or a page of it.
    pub fn new(items: impl IntoIterator<Item = impl Into<Item>>) -> Self {
        Self { items: items.into_iter().map(Into::into).collect(), next: None, missing: Vec::new() }
    }

    /// The same where another page follows, which begins at `next`.
    #[must_use]
    pub fn with_next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    /// The same without the part with this name, which could not be listed now.
    #[must_use]
    pub fn without(mut self, name: impl Into<String>) -> Self {
        self.missing.push(name.into());
        self
    }
}

/// One resource of a list.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "most lists hold resources only, which need no allocation each"
)]
pub enum Item {
    /// A resource. Each revision gets the fields that it defines.
    Resource(Resource),
    /// A resource that another server describes. It is passed on as it is, whatever the revision, unless it is unsound:
    /// then it is left out, and the log names it.
    Foreign {
        /// Its URI.
        uri: String,
        /// What the other server says of it: a JSON object with `name` and with `uri`, which must be this URI. At most
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

    /// Appends it as a list item. It must have been checked.
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

/// What the client must give before the read can be answered (R-133 … R-144).
#[derive(Debug, Default)]
pub struct InputRequired<'a> {
    /// What to ask; may be empty when `state` is given.
    pub requests: Vec<InputRequest<'a>>,
    /// The author's own state: sealed, and handed back with the retry.
    pub state: Option<Cow<'a, [u8]>>,
}

/// One question to the client.
#[derive(Clone, Debug)]
pub struct InputRequest<'a> {
    /// Names the answer; unique within one `InputRequired`.
    pub key: Cow<'a, str>,
    /// What is asked.
    pub ask: InputAsk<'a>,
}

/// The sorts of question.
#[derive(Clone, Debug)]
pub enum InputAsk<'a> {
    /// A form for the user: the client must have declared `elicitation`.
    Form {
        /// What the user reads.
        message: Cow<'a, str>,
        /// The flat JSON schema of the answer, as JSON text; the answer is checked against it.
        schema: Cow<'a, str>,
    },
    /// A page for the user: the client must have declared `elicitation.url`.
    Url {
        /// What the user reads.
        message: Cow<'a, str>,
        /// The page; must carry nothing about the user.
        url: Cow<'a, str>,
    },
    /// A completion of the client's model: `sampling`. The params of the request as JSON text.
    Sampling(Cow<'a, str>),
    /// The client's roots: `roots`.
    Roots,
}

impl<'a> InputAsk<'a> {
    /// A question by the word that bindings have for its sort: a `form` and a `url` with what the user reads and the schema
    /// or page, a `sample` with its params. Any other word asks for the roots.
    pub fn of(sort: &str, text: impl Into<Cow<'a, str>>, more: impl Into<Cow<'a, str>>) -> Self {
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
    /// A JSON object with the result's own members, without `resultType` and `_meta`. Sent as it is, without the white
    /// space between its tokens. A list method (`tools/list`) of a modern request gets the members `ttlMs` and
    /// `cacheScope` of [`Options::list_cache`](crate::engine::Options::list_cache) where it has none of its own.
    pub members: Cow<'a, str>,
    /// `resultType` for 2026-07-28; `None` is `complete`.
    pub result_type: Option<Cow<'a, str>>,
    /// `_meta`: a JSON object; the engine adds its own keys.
    pub meta: Option<Cow<'a, str>>,
}
