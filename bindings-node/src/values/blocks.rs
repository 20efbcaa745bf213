//! Blocks of the results of tools and prompts, as objects of JavaScript.

use crate::values::contents::Entry;
use crate::values::error::unusable;
use crate::values::options::PlainValue;
use crate::values::resource::resource;
use mcp_resources_engine::connection::{BlockKind, ContentBlock, PromptMessage};
use mcp_resources_engine::resource::Audience;
use napi::bindgen_prelude::*;
use napi_derive::napi;

/// One block. A link has `link`; the other kinds have `entry`.
#[napi(object, object_to_js = false)]
pub struct BlockFields {
    /// The kind, unless it is a link.
    #[napi(ts_type = "'text' | 'image' | 'audio' | 'resource'")]
    pub kind: Option<String>,
    /// The body, with its media type and URI.
    pub entry: Option<Entry>,
    /// The resource that a link leads to.
    pub link: Option<PlainValue>,
    /// `audience`, `priority` and `lastModified`.
    pub hints: Option<PlainValue>,
    /// Members of `_meta` as JSON text.
    pub meta: Option<String>,
}

/// One message of a prompt.
#[napi(object, object_to_js = false)]
pub struct PromptMessageFields {
    /// The speaker.
    #[napi(ts_type = "'user' | 'assistant'")]
    pub role: String,
    /// The text or block.
    pub content: BlockFields,
}

impl BlockFields {
    pub(crate) fn into_block(self) -> Result<ContentBlock<'static>> {
        if let Some(link) = self.link {
            return Ok(ContentBlock::link(resource(link)?));
        }
        let contents = self.entry.ok_or_else(|| unusable("a block has no body".into()))?.into_contents();
        let kind = self.kind.unwrap_or_default();
        let made = ContentBlock::from_parts(&kind, contents.body, contents.mime_type, contents.uri);
        let mut block =
            made.ok_or_else(|| unusable(format!("a block of the kind {kind:?} is incomplete")))?;
        if let BlockKind::Embedded(embedded) = &mut block.kind {
            embedded.meta = contents.meta;
        }
        if let Some(hints) = self.hints {
            block.annotations = resource(hints)?.details.annotations;
        }
        block.meta = self.meta.map(Into::into);
        Ok(block)
    }
}

impl PromptMessageFields {
    pub(crate) fn into_message(self) -> Result<PromptMessage<'static>> {
        let refused = || unusable(format!("role is {:?}, expected \"user\" or \"assistant\"", self.role));
        let role = Audience::parse(&self.role).ok_or_else(refused)?;
        Ok(PromptMessage { role, content: self.content.into_block()? })
    }
}
