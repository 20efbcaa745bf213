//! Contents that come in chunks: encoded on arrival into a buffer of limited size. Nothing is sent before the last
//! chunk, so a late failure can still be reported as an error.

use super::answer::{Answer, Body, Contents, ReadResult};
use crate::base64::{self, Encoder};
use crate::engine::Engine;
use crate::error::ReadError;
use crate::json_text;
use crate::jsonrpc::ObjectWriter;
use crate::resource::CacheHint;
use std::fmt;
use std::sync::Arc;

/// Contents gathered chunk by chunk. Made by [`Reply::gather`](super::Reply::gather), answered with
/// [`Answer::Gathered`](super::Answer::Gathered).
pub struct ContentsGatherer {
    engine: Arc<Engine>,
    max: usize,
    mime_type: Option<String>,
    pub(super) cache: Option<CacheHint>,
    chunks: ContentsChunks,
    /// Whether chunks are kept unencoded, because redaction must see the whole contents first.
    is_raw: bool,
    /// The encoded body: text with its quotes, a blob without.
    encoded: Vec<u8>,
    /// Size in bytes before encoding.
    size: usize,
}

enum ContentsChunks {
    None,
    Text,
    Blob(Encoder),
    RawText(String),
    RawBlob(Vec<u8>),
}

impl ContentsGatherer {
    pub(super) fn new(engine: Arc<Engine>, max: usize) -> Self {
        let is_raw = engine.looks_at_contents();
        Self {
            engine,
            max,
            mime_type: None,
            cache: None,
            chunks: ContentsChunks::None,
            is_raw,
            encoded: Vec::new(),
            size: 0,
        }
    }

    /// Sets the media type. The default is the resource's own.
    pub fn mime_type(&mut self, mime_type: impl Into<String>) {
        self.mime_type = Some(mime_type.into());
    }

    /// Sets the caching hint. The default is the resource's own.
    pub fn cache(&mut self, cache: CacheHint) {
        self.cache = Some(cache);
    }

    /// Appends a chunk of text.
    ///
    /// # Errors
    /// [`ReadError::SizeExceeded`] above [`Limits::contents`](crate::limits::Limits::contents) or the policy's limit
    /// for this URI, or if all replies together hold more than `contents_total` bytes. [`ReadError::Failed`] after a
    /// chunk of bytes.
    pub fn text(&mut self, chunk: &str) -> Result<(), ReadError> {
        if matches!(self.chunks, ContentsChunks::None) {
            self.chunks =
                if self.is_raw { ContentsChunks::RawText(String::new()) } else { ContentsChunks::Text };
            self.encoded.extend_from_slice(b"\"\"");
        }
        self.reserve(chunk.len())?;
        match &mut self.chunks {
            ContentsChunks::Text => json_text::continue_into(chunk, &mut self.encoded),
            ContentsChunks::RawText(text) => text.push_str(chunk),
            ContentsChunks::None | ContentsChunks::Blob(_) | ContentsChunks::RawBlob(_) => {
                return Err(ReadError::Failed);
            }
        }
        Ok(())
    }

    /// Appends a chunk of bytes.
    ///
    /// # Errors
    /// As [`ContentsGatherer::text`]; [`ReadError::Failed`] after a chunk of text.
    pub fn blob(&mut self, chunk: &[u8]) -> Result<(), ReadError> {
        self.reserve(chunk.len())?;
        if matches!(self.chunks, ContentsChunks::None) {
            self.chunks = if self.is_raw {
                ContentsChunks::RawBlob(Vec::new())
            } else {
                ContentsChunks::Blob(Encoder::default())
            };
        }
        match &mut self.chunks {
            ContentsChunks::Blob(encoder) => encoder.push(chunk, &mut self.encoded),
            ContentsChunks::RawBlob(bytes) => bytes.extend_from_slice(chunk),
            ContentsChunks::None | ContentsChunks::Text | ContentsChunks::RawText(_) => {
                return Err(ReadError::Failed);
            }
        }
        Ok(())
    }

    /// Makes the answer: contents if the chunks were kept unencoded, else [`Answer::Gathered`].
    pub fn into_answer(mut self) -> Answer<'static> {
        let body = match std::mem::replace(&mut self.chunks, ContentsChunks::None) {
            ContentsChunks::RawText(text) => Body::Text(text.into()),
            ContentsChunks::RawBlob(bytes) => Body::Blob(bytes.into()),
            ContentsChunks::None if self.is_raw => Body::Text("".into()),
            encoded => {
                self.chunks = encoded;
                return Answer::Gathered(self);
            }
        };
        let mime_type = self.mime_type.take().map(Into::into);
        let contents = vec![Contents { uri: None, mime_type, body, meta: None }];
        Answer::Contents(ReadResult { contents, cache: self.cache })
    }

    pub(super) fn is_text(&self) -> bool {
        !matches!(self.chunks, ContentsChunks::Blob(_) | ContentsChunks::RawBlob(_))
    }

    pub(super) fn own_mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    pub(super) fn write(&self, entry: &mut ObjectWriter<'_>) {
        let name = if self.is_text() { "text" } else { "blob" };
        self.write_body(entry.value(name));
    }

    /// The body with its quotes.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(self.encoded.len() + 8);
        self.write_body(&mut body);
        body
    }

    fn write_body(&self, out: &mut Vec<u8>) {
        match &self.chunks {
            // Without any chunk the contents are an empty text.
            ContentsChunks::None => out.extend_from_slice(b"\"\""),
            ContentsChunks::Text => out.extend_from_slice(&self.encoded),
            ContentsChunks::Blob(encoder) => {
                out.push(b'"');
                out.extend_from_slice(&self.encoded);
                encoder.clone().finish(out);
                out.push(b'"');
            }
            ContentsChunks::RawText(text) => json_text::escape_into(text, out),
            ContentsChunks::RawBlob(bytes) => {
                out.push(b'"');
                base64::encode_into(bytes, out);
                out.push(b'"');
            }
        }
    }

    fn reserve(&mut self, more: usize) -> Result<(), ReadError> {
        let limits = self.engine.limits();
        let exceeded = |limit: usize| ReadError::SizeExceeded { limit: limit as u64, size: None };
        if self.size + more > self.max {
            return Err(exceeded(self.max));
        }
        if !self.engine.hold(more) {
            return Err(exceeded(limits.contents_total));
        }
        self.size += more;
        Ok(())
    }
}

impl Drop for ContentsGatherer {
    fn drop(&mut self) {
        self.engine.let_go(self.size);
    }
}

impl fmt::Debug for ContentsGatherer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("size", &self.size).finish_non_exhaustive()
    }
}
