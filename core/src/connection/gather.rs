//! Contents that come in chunks: encoded as they come, into a buffer of bounded size. Nothing of it reaches the wire
//! before the last chunk, so a late failure is still a proper error.

use crate::base64::Encoder;
use crate::engine::Engine;
use crate::error::ReadError;
use crate::json_text;
use crate::jsonrpc::ObjectWriter;
use crate::resource::CacheHint;
use std::fmt;
use std::sync::Arc;

/// See the module. Made by [`Reply::gather`](super::Reply::gather), answered with
/// [`Answer::Gathered`](super::Answer::Gathered).
pub struct Gather {
    engine: Arc<Engine>,
    mime_type: Option<String>,
    pub(super) cache: Option<CacheHint>,
    chunks: Chunks,
    /// Encoded: text with its quotes, a blob without.
    encoded: Vec<u8>,
    /// Bytes before encoding.
    size: usize,
}

enum Chunks {
    None,
    Text,
    Blob(Encoder),
}

impl Gather {
    pub(super) fn new(engine: Arc<Engine>) -> Self {
        Self { engine, mime_type: None, cache: None, chunks: Chunks::None, encoded: Vec::new(), size: 0 }
    }

    /// Sets the media type; else it is the resource's own.
    pub fn mime_type(&mut self, mime_type: impl Into<String>) {
        self.mime_type = Some(mime_type.into());
    }

    /// Sets the caching hint; else it is the resource's own.
    pub fn cache(&mut self, cache: CacheHint) {
        self.cache = Some(cache);
    }

    /// More text.
    ///
    /// # Errors
    /// [`ReadError::SizeExceeded`] above [`Limits::contents`](crate::limits::Limits::contents), or when all replies
    /// together hold more than `contents_total`; [`ReadError::Failed`] if a chunk of bytes came before.
    pub fn text(&mut self, chunk: &str) -> Result<(), ReadError> {
        match self.chunks {
            Chunks::None => {
                self.chunks = Chunks::Text;
                self.encoded.extend_from_slice(b"\"\"");
            }
            Chunks::Text => {}
            Chunks::Blob(_) => return Err(ReadError::Failed),
        }
        self.reserve(chunk.len())?;
        json_text::continue_into(chunk, &mut self.encoded);
        Ok(())
    }

    /// More bytes.
    ///
    /// # Errors
    /// As [`Gather::text`]; [`ReadError::Failed`] if a chunk of text came before.
    pub fn blob(&mut self, chunk: &[u8]) -> Result<(), ReadError> {
        self.reserve(chunk.len())?;
        if matches!(self.chunks, Chunks::None) {
            self.chunks = Chunks::Blob(Encoder::default());
        }
        match &mut self.chunks {
            Chunks::Blob(encoder) => {
                encoder.push(chunk, &mut self.encoded);
                Ok(())
            }
            _ => Err(ReadError::Failed),
        }
    }

    pub(super) fn is_text(&self) -> bool {
        !matches!(self.chunks, Chunks::Blob(_))
    }

    pub(super) fn own_mime_type(&self) -> Option<&str> {
        self.mime_type.as_deref()
    }

    pub(super) fn write(&self, entry: &mut ObjectWriter<'_>) {
        match &self.chunks {
            // A generator that yields nothing is an empty text.
            Chunks::None => entry.str("text", ""),
            Chunks::Text => entry.value("text").extend_from_slice(&self.encoded),
            Chunks::Blob(encoder) => {
                let out = entry.value("blob");
                out.push(b'"');
                out.extend_from_slice(&self.encoded);
                encoder.clone().finish(out);
                out.push(b'"');
            }
        }
    }

    fn reserve(&mut self, more: usize) -> Result<(), ReadError> {
        let limits = self.engine.limits();
        let exceeded = |limit: usize| ReadError::SizeExceeded { limit: limit as u64, size: None };
        if self.size + more > limits.contents {
            return Err(exceeded(limits.contents));
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
