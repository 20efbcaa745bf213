//! The results of tools and prompts: blocks of content, and how each revision shows them.
//!
//! Law: a result never has a kind of block that its revision lacks: such a block becomes a text. Bytes are encoded
//! straight from the handler's buffers.

use super::answer::{Body, Contents, ReadResult};
use super::contents::{self, BYTES, write_entry};
use super::response;
use crate::base64;
use crate::catalog::{write_annotations, write_item};
use crate::guard::Redactor;
use crate::jsonrpc::{Json, ObjectWriter};
use crate::meta;
use crate::resource::{Annotations, Audience, Resource};
use crate::version::{FieldSet, Revision};
use std::borrow::Cow;

/// The result of a tool.
#[derive(Debug, Default)]
pub struct ToolResult<'a> {
    /// The blocks, in order. May be empty.
    pub content: Vec<ContentBlock<'a>>,
    /// The structured result as JSON text, sent from 2025-06-18. Before 2026-07-28 a value that is not an object is
    /// sent as the member `result` of one; so is every value of a tool whose output schema is not of an object.
    pub structured: Option<Cow<'a, str>>,
    /// Whether the tool failed, in a way that the model can read and mend.
    pub is_error: bool,
    /// `_meta`: a JSON object; the engine adds its own keys.
    pub meta: Option<Cow<'a, str>>,
}

/// The result of a prompt.
#[derive(Debug, Default)]
pub struct PromptResult<'a> {
    /// A description for people.
    pub description: Option<Cow<'a, str>>,
    /// The messages, in order.
    pub messages: Vec<PromptMessage<'a>>,
    /// `_meta`: a JSON object; the engine adds its own keys.
    pub meta: Option<Cow<'a, str>>,
}

/// One message of a prompt.
#[derive(Clone, Debug)]
pub struct PromptMessage<'a> {
    /// The speaker.
    pub role: Audience,
    /// The content of the message.
    pub content: ContentBlock<'a>,
}

/// One block of a result.
#[derive(Clone, Debug)]
pub struct ContentBlock<'a> {
    /// The kind of block, and its contents.
    pub kind: BlockKind<'a>,
    /// Hints for clients. A link has those of its resource instead.
    pub annotations: Annotations,
    /// `_meta`: a JSON object, sent only under revisions that define it.
    pub meta: Option<Cow<'a, str>>,
}

/// The kinds of block.
#[derive(Clone, Debug)]
pub enum BlockKind<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// An image, with its media type.
    Image(Body<'a>, Cow<'a, str>),
    /// A sound, with its media type (2025-03-26).
    Audio(Body<'a>, Cow<'a, str>),
    /// A resource that the client may read (2025-06-18).
    Link(Box<Resource>),
    /// The contents of a resource. Their `uri` must be set.
    Embedded(Contents<'a>),
}

impl<'a> ToolResult<'a> {
    /// A result with these blocks.
    pub fn new(content: impl IntoIterator<Item = ContentBlock<'a>>) -> Self {
        Self { content: content.into_iter().collect(), ..Self::default() }
    }

    /// A result with one text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new([ContentBlock::text(text)])
    }

    /// A value as JSON text: for clients that show texts, and as the structured result.
    pub fn json(json: impl Into<Cow<'a, str>>) -> Self {
        let json = json.into();
        Self { structured: Some(json.clone()), ..Self::text(json) }
    }

    /// A failure that the model can read and mend, as one sentence.
    pub fn error(sentence: impl Into<Cow<'a, str>>) -> Self {
        Self { is_error: true, ..Self::text(sentence) }
    }

    /// The size of the blocks and of the structured result in bytes, before any base64.
    pub fn size(&self) -> usize {
        size(self.content.iter()) + self.structured.as_ref().map_or(0, |json| json.len())
    }

    /// Copies everything that it borrows.
    pub fn into_owned(self) -> ToolResult<'static> {
        ToolResult {
            content: self.content.into_iter().map(ContentBlock::into_owned).collect(),
            structured: self.structured.map(own),
            is_error: self.is_error,
            meta: self.meta.map(own),
        }
    }
}

impl PromptResult<'_> {
    /// Copies everything that it borrows.
    pub fn into_owned(self) -> PromptResult<'static> {
        let message = |message: PromptMessage<'_>| PromptMessage {
            role: message.role,
            content: message.content.into_owned(),
        };
        PromptResult {
            description: self.description.map(own),
            messages: self.messages.into_iter().map(message).collect(),
            meta: self.meta.map(own),
        }
    }
}

impl<'a> PromptResult<'a> {
    /// A result with these messages.
    pub fn new(messages: impl IntoIterator<Item = PromptMessage<'a>>) -> Self {
        Self { messages: messages.into_iter().collect(), ..Self::default() }
    }

    /// A result with one text of the user.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new([PromptMessage { role: Audience::User, content: ContentBlock::text(text) }])
    }
}

impl<'a> ContentBlock<'a> {
    /// A block of this kind.
    pub fn new(kind: BlockKind<'a>) -> Self {
        Self { kind, annotations: Annotations::default(), meta: None }
    }

    /// A text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(BlockKind::Text(text.into()))
    }

    /// An image with a media type such as `image/png`.
    pub fn image(bytes: impl Into<Cow<'a, [u8]>>, mime_type: impl Into<Cow<'a, str>>) -> Self {
        Self::new(BlockKind::Image(Body::Blob(bytes.into()), mime_type.into()))
    }

    /// A sound with a media type such as `audio/wav`.
    pub fn audio(bytes: impl Into<Cow<'a, [u8]>>, mime_type: impl Into<Cow<'a, str>>) -> Self {
        Self::new(BlockKind::Audio(Body::Blob(bytes.into()), mime_type.into()))
    }

    /// A link to a resource.
    pub fn link(resource: impl Into<Resource>) -> Self {
        Self::new(BlockKind::Link(Box::new(resource.into())))
    }

    /// The contents of the resource at `uri`.
    pub fn embedded(contents: Contents<'a>, uri: impl Into<Cow<'a, str>>) -> Self {
        Self::new(BlockKind::Embedded(contents.with_uri(uri)))
    }

    /// Makes a block from a binding's name for its kind: `text`, `image`, `audio`, or `resource` for the contents of the
    /// resource at `uri`. `None` for another name, for a text without text, and for contents without a URI.
    pub fn from_parts(
        kind: &str,
        body: Body<'a>,
        mime_type: Option<Cow<'a, str>>,
        uri: Option<Cow<'a, str>>,
    ) -> Option<Self> {
        let or_bytes = |mime_type: Option<Cow<'a, str>>| mime_type.unwrap_or(Cow::Borrowed(BYTES));
        Some(Self::new(match (kind, body) {
            ("text", Body::Text(text)) => BlockKind::Text(text),
            ("text", Body::SharedText(text)) => BlockKind::Text(Cow::Owned(text.to_string())),
            ("image", body) => BlockKind::Image(body, or_bytes(mime_type)),
            ("audio", body) => BlockKind::Audio(body, or_bytes(mime_type)),
            ("resource", body) => {
                BlockKind::Embedded(Contents { uri: Some(uri?), mime_type, body, meta: None })
            }
            _ => return None,
        }))
    }

    /// The contents of the resource at `uri` as a model can use them: a text as it is, images and sounds as such, and
    /// other bytes as an embedded resource.
    pub fn from_contents(contents: Contents<'a>, uri: &str) -> Self {
        let mime_type = contents.mime_type.clone().unwrap_or_default();
        let is = |kind: &str| mime_type.starts_with(kind);
        let kind = match contents.body {
            Body::Text(text) => BlockKind::Text(text),
            Body::SharedText(text) => BlockKind::Text(Cow::Owned(text.to_string())),
            body if is("image/") => BlockKind::Image(body, mime_type),
            body if is("audio/") => BlockKind::Audio(body, mime_type),
            body => {
                let own = contents.uri.unwrap_or_else(|| Cow::Owned(uri.to_owned()));
                let mime_type = contents.mime_type;
                BlockKind::Embedded(Contents { uri: Some(own), mime_type, body, meta: contents.meta })
            }
        };
        Self::new(kind)
    }
}

impl ContentBlock<'_> {
    /// Copies everything that it borrows.
    pub fn into_owned(self) -> ContentBlock<'static> {
        let blob = |body: Body<'_>| Contents::from_body(body).into_owned().body;
        let kind = match self.kind {
            BlockKind::Text(text) => BlockKind::Text(own(text)),
            BlockKind::Image(body, mime_type) => BlockKind::Image(blob(body), own(mime_type)),
            BlockKind::Audio(body, mime_type) => BlockKind::Audio(blob(body), own(mime_type)),
            BlockKind::Link(resource) => BlockKind::Link(resource),
            BlockKind::Embedded(contents) => BlockKind::Embedded(contents.into_owned()),
        };
        ContentBlock { kind, annotations: self.annotations, meta: self.meta.map(own) }
    }
}

/// A read as a tool's result: see [`ContentBlock::from_contents`].
impl<'a> From<ReadResult<'a>> for ToolResult<'a> {
    fn from(result: ReadResult<'a>) -> Self {
        Self::new(result.contents.into_iter().map(|contents| ContentBlock::from_contents(contents, "")))
    }
}

/// The size of blocks in bytes, before any base64.
pub(super) fn size<'b, 'a: 'b>(blocks: impl Iterator<Item = &'b ContentBlock<'a>>) -> usize {
    let size = |block: &ContentBlock<'_>| match &block.kind {
        BlockKind::Text(text) => text.len(),
        BlockKind::Image(body, _) | BlockKind::Audio(body, _) => body.len(),
        BlockKind::Link(resource) => resource.uri.len(),
        BlockKind::Embedded(contents) => contents.body.len(),
    };
    blocks.map(size).sum()
}

/// Replaces the parts of a text that the detectors find.
pub(super) fn redact(block: &mut ContentBlock<'_>, redactor: &Redactor) {
    match &mut block.kind {
        BlockKind::Text(text) => *text = redactor.redact(std::mem::take(text)),
        BlockKind::Embedded(contents) => contents::redact_entry(contents, redactor),
        BlockKind::Image(..) | BlockKind::Audio(..) | BlockKind::Link(_) => {}
    }
}

/// The log message for a block that cannot be sent.
pub(super) fn broken(block: &ContentBlock<'_>) -> Option<String> {
    let body = match &block.kind {
        BlockKind::Image(body, _) | BlockKind::Audio(body, _) if body.as_text().is_some() => {
            return Some("an image or a sound consists of bytes, not of text".into());
        }
        BlockKind::Embedded(Contents { uri: None, .. }) => {
            return Some("an embedded resource needs a URI".into());
        }
        BlockKind::Image(body, _) | BlockKind::Audio(body, _) => body,
        BlockKind::Embedded(contents) => &contents.body,
        BlockKind::Text(_) | BlockKind::Link(_) => return None,
    };
    let broken = |text: &str| !base64::is_valid(text);
    matches!(body, Body::Base64(text) if broken(text))
        .then(|| "bytes are not base64 in the standard alphabet with padding".into())
}

/// Writes a block as `revision` has it.
pub(super) fn write(object: &mut ObjectWriter<'_>, block: &ContentBlock<'_>, revision: Revision) {
    match &block.kind {
        BlockKind::Text(text) => {
            object.str("type", "text");
            object.str("text", text);
        }
        BlockKind::Image(body, mime_type) => write_bytes(object, "image", body, mime_type),
        BlockKind::Audio(body, mime_type) if revision.has_audio() => {
            write_bytes(object, "audio", body, mime_type);
        }
        BlockKind::Audio(body, mime_type) => {
            object.str("type", "text");
            let text = format!("A sound ({mime_type}, {} bytes), which this client cannot get", body.len());
            object.str("text", &text);
        }
        BlockKind::Link(resource) if revision.has_resource_links() => {
            object.str("type", "resource_link");
            return write_item(object, resource, revision.field_set());
        }
        BlockKind::Link(resource) => {
            object.str("type", "text");
            object.str("text", &link_text(resource));
        }
        BlockKind::Embedded(contents) => {
            object.str("type", "resource");
            object.object("resource", |entry| {
                let uri = contents.uri.as_deref().unwrap_or_default();
                write_entry(entry, contents, uri, None, revision.has_contents_meta());
            });
        }
    }
    write_hints(object, block, revision.field_set());
}

fn write_bytes(object: &mut ObjectWriter<'_>, kind: &str, body: &Body<'_>, mime_type: &str) {
    object.str("type", kind);
    body.write_blob(object.value("data"));
    object.str("mimeType", mime_type);
}

fn write_hints(object: &mut ObjectWriter<'_>, block: &ContentBlock<'_>, fields: FieldSet) {
    object.object_unless_empty("annotations", |hints| write_annotations(hints, &block.annotations, fields));
    let meta = block.meta.as_deref().filter(|_| fields != FieldSet::Basic);
    if let Some(members) = meta.and_then(response::members_of).filter(|members| !members.is_empty()) {
        object.object(response::META, |meta| meta.members(members.as_bytes()));
    }
}

/// A link for clients that have none: its URI, then its name and description.
fn link_text(resource: &Resource) -> String {
    let details = &resource.details;
    let more = [details.name.as_deref(), details.description.as_deref()];
    more.into_iter().flatten().fold(resource.uri.clone(), |text, part| format!("{text} | {part}"))
}

/// The structured result on one line, as a member: the value itself, or an object with the member `result`. `None` if
/// it is not JSON, or is nested more than `nesting` deep.
pub(super) fn structured(
    json: &str,
    nesting: usize,
    is_wrapped: impl FnOnce(Json<'_>) -> bool,
) -> Option<String> {
    let value = Json::parse(json.as_bytes(), nesting)?;
    let text = meta::compact(value.raw());
    Some(if is_wrapped(value) { format!(r#"{{"result":{text}}}"#) } else { text })
}

fn own(text: Cow<'_, str>) -> Cow<'static, str> {
    Cow::Owned(text.into_owned())
}
