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
pub struct Gather {
    engine: Arc<Engine>,
    max: usize,
    mime_type: Option<String>,
    pub(super) cache: Option<CacheHint>,
    chunks: Chunks,
    /// Whether chunks are kept unencoded, because redaction must see the whole contents first.
    is_raw: bool,
    /// The encoded body: text with its quotes, a blob without.
    encoded: Vec<u8>,
    /// Size in bytes before encoding.
    size: usize,
}

enum Chunks {
    None,
    Text,
    Blob(Encoder),
    RawText(String),
    RawBlob(Vec<u8>),
}

impl Gather {
    pub(super) fn new(engine: Arc<Engine>, max: usize) -> Self {
        let is_raw = engine.looks_at_contents();
        Self {
            engine,
            max,
            mime_type: None,
            cache: None,
            chunks: Chunks::None,
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
        if matches!(self.chunks, Chunks::None) {
            self.chunks = if self.is_raw { Chunks::RawText(String::new()) } else { Chunks::Text };
            self.encoded.extend_from_slice(b"\"\"");
        }
        self.reserve(chunk.len())?;
        match &mut self.chunks {
            Chunks::Text => json_text::continue_into(chunk, &mut self.encoded),
            Chunks::RawText(text) => text.push_str(chunk),
            Chunks::None | Chunks::Blob(_) | Chunks::RawBlob(_) => return Err(ReadError::Failed),
        }
        Ok(())
    }

    /// Appends a chunk of bytes.
    ///
    /// # Errors
    /// As [`Gather::text`]; [`ReadError::Failed`] after a chunk of text.
    pub fn blob(&mut self, chunk: &[u8]) -> Result<(), ReadError> {
        self.reserve(chunk.len())?;
        if matches!(self.chunks, Chunks::None) {
            self.chunks =
                if self.is_raw { Chunks::RawBlob(Vec::new()) } else { Chunks::Blob(Encoder::default()) };
        }
        match &mut self.chunks {
            Chunks::Blob(encoder) => encoder.push(chunk, &mut self.encoded),
            Chunks::RawBlob(bytes) => bytes.extend_from_slice(chunk),
            Chunks::None | Chunks::Text | Chunks::RawText(_) => return Err(ReadError::Failed),
        }
        Ok(())
    }

    /// Makes the answer: contents if the chunks were kept unencoded, else [`Answer::Gathered`].
    pub fn into_answer(mut self) -> Answer<'static> {
        let body = match std::mem::replace(&mut self.chunks, Chunks::None) {
            Chunks::RawText(text) => Body::Text(text.into()),
            Chunks::RawBlob(bytes) => Body::Blob(bytes.into()),
            Chunks::None if self.is_raw => Body::Text("".into()),
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
        !matches!(self.chunks, Chunks::Blob(_) | Chunks::RawBlob(_))
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
            Chunks::None => out.extend_from_slice(b"\"\""),
            Chunks::Text => out.extend_from_slice(&self.encoded),
            Chunks::Blob(encoder) => {
                out.push(b'"');
                out.extend_from_slice(&self.encoded);
                encoder.clone().finish(out);
                out.push(b'"');
            }
            Chunks::RawText(text) => json_text::escape_into(text, out),
            Chunks::RawBlob(bytes) => {
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

impl Drop for Gather {
    fn drop(&mut self) {
        self.engine.let_go(self.size);
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gather").field("size", &self.size).finish_non_exhaustive()
    }
}
