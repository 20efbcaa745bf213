//! Writes the contents of a read, straight from the handler's buffers into the output.

use super::answer::{Body, Contents, PlainContents, ReadResult};
use super::gather::ContentsGatherer;
use super::response::{self, ResponseWriter};
use crate::base64;
use crate::error::{ReadError, Shown};
use crate::guard::Redactor;
use crate::jsonrpc::{Json, ObjectWriter};
use crate::resource::CacheHint;
use std::borrow::Cow;

pub(super) const TEXT: &str = "text/plain";
pub(super) const BYTES: &str = "application/octet-stream";
const TTL: &str = "ttlMs";
const SCOPE: &str = "cacheScope";

/// Refuses empty contents, and contents larger than `max` bytes.
pub(super) fn check(result: &ReadResult<'_>, max: usize) -> Result<(), ReadError> {
    if result.contents.is_empty() {
        return Err(ReadError::NotFound);
    }
    let size: usize = result.contents.iter().map(|contents| contents.body.len()).sum();
    if size > max {
        return Err(ReadError::SizeExceeded { limit: max as u64, size: Some(size as u64) });
    }
    Ok(())
}

/// Replaces the parts of texts that the detectors find.
pub(super) fn redact(result: &mut ReadResult<'_>, redactor: &Redactor) {
    result.contents.iter_mut().for_each(|contents| redact_entry(contents, redactor));
}

/// Replaces the parts of one text that the detectors find.
pub(super) fn redact_entry(contents: &mut Contents<'_>, redactor: &Redactor) {
    match &mut contents.body {
        Body::Text(text) => *text = redactor.redact(std::mem::take(text)),
        Body::SharedText(text) => {
            if let Cow::Owned(redacted) = redactor.redact(Cow::Borrowed(&**text)) {
                contents.body = Body::Text(Cow::Owned(redacted));
            }
        }
        Body::Blob(_) | Body::SharedBlob(_) | Body::Base64(_) => {}
    }
}

/// The log message if a blob that should be base64 is not. `uri` is the requested URI.
pub(super) fn broken_base64(result: &ReadResult<'_>, uri: &str) -> Option<String> {
    result.contents.iter().find_map(|contents| match &contents.body {
        Body::Base64(text) if !base64::is_valid(text) => {
            let uri = Shown(contents.uri.as_deref().unwrap_or(uri));
            let length = text.len();
            Some(format!(
                "the blob of {uri}, {length} bytes, is not base64 in the standard alphabet with padding; the client got an \
                 error. Give the bytes themselves, or encode them so"
            ))
        }
        _ => None,
    })
}

/// Writes a result. `uri` is in the client's spelling, `mime_type` is the resource's own.
pub(super) fn write(
    response: &ResponseWriter<'_>,
    out: &mut Vec<u8>,
    uri: &str,
    mime_type: Option<&str>,
    result: &ReadResult<'_>,
    cache: CacheHint,
) {
    let with_meta = response.revision.has_contents_meta();
    response.complete(out, |writer| {
        writer.array("contents", |array| {
            for contents in &result.contents {
                array.object(|entry| write_entry(entry, contents, uri, mime_type, with_meta));
            }
        });
        hint(writer, response, cache);
    });
}

/// Writes a result whose contents came in chunks and are already encoded.
pub(super) fn write_gathered(
    response: &ResponseWriter<'_>,
    out: &mut Vec<u8>,
    uri: &str,
    mime_type: Option<&str>,
    gather: &ContentsGatherer,
    cache: CacheHint,
) {
    let default = if gather.is_text() { TEXT } else { BYTES };
    let mime_type = gather.own_mime_type().or(mime_type).unwrap_or(default);
    response.complete(out, |writer| {
        writer.array("contents", |array| {
            array.object(|entry| {
                entry.str("uri", uri);
                entry.str("mimeType", mime_type);
                gather.write(entry);
            });
        });
        hint(writer, response, cache);
    });
}

/// Writes the caching hint, under revisions that have it.
pub(super) fn hint(writer: &mut ObjectWriter<'_>, response: &ResponseWriter<'_>, cache: CacheHint) {
    if response.revision.is_modern() {
        writer.u64(TTL, cache.ttl_ms);
        writer.str(SCOPE, cache.scope.as_str());
    }
}

/// Writes the members of the caching hint that are absent from `members`, the text of a result.
pub(super) fn missing_hint(
    writer: &mut ObjectWriter<'_>,
    response: &ResponseWriter<'_>,
    members: &str,
    cache: CacheHint,
) {
    let own = Json::parse(members.as_bytes(), usize::MAX).and_then(Json::object);
    let Some(own) = own.filter(|_| response.revision.is_modern()) else { return };
    if own.get(TTL).is_none() {
        writer.u64(TTL, cache.ttl_ms);
    }
    if own.get(SCOPE).is_none() {
        writer.str(SCOPE, cache.scope.as_str());
    }
}

pub(super) fn write_entry(
    entry: &mut ObjectWriter<'_>,
    contents: &Contents<'_>,
    uri: &str,
    mime_type: Option<&str>,
    with_meta: bool,
) {
    entry.str("uri", contents.uri.as_deref().unwrap_or(uri));
    let own = contents.mime_type.as_deref().or(mime_type);
    match contents.body.as_text() {
        Some(text) => {
            entry.str("mimeType", own.unwrap_or(TEXT));
            entry.str("text", text);
        }
        None => {
            entry.str("mimeType", own.unwrap_or(BYTES));
            contents.body.write_blob(entry.value("blob"));
        }
    }
    if let Some(members) = contents.meta.as_deref().filter(|_| with_meta).and_then(response::members_of) {
        entry.object(response::META, |meta| meta.members(members.as_bytes()));
    }
}

impl<'a> Body<'a> {
    /// Its size in bytes, before any base64 encoding.
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::SharedText(text) => text.len(),
            Self::Blob(bytes) => bytes.len(),
            Self::SharedBlob(bytes) => bytes.len(),
            Self::Base64(text) => base64::decoded_len(text),
        }
    }

    /// The text; `None` for bytes.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::SharedText(text) => Some(text),
            Self::Blob(_) | Self::SharedBlob(_) | Self::Base64(_) => None,
        }
    }

    /// Returns text or decoded bytes; copies shared data. `None` if it is [`Body::Base64`] and not valid base64.
    pub fn into_plain(self) -> Option<PlainContents<'a>> {
        Some(match self {
            Self::Text(text) => PlainContents::Text(text),
            Self::SharedText(text) => PlainContents::Text(Cow::Owned(text.to_string())),
            Self::Blob(bytes) => PlainContents::Blob(bytes),
            Self::SharedBlob(bytes) => PlainContents::Blob(Cow::Owned(bytes.to_vec())),
            Self::Base64(text) => PlainContents::Blob(Cow::Owned(base64::decode(&text)?)),
        })
    }

    /// Appends a blob as a JSON string. [`Body::Base64`] must have been validated.
    pub(super) fn write_blob(&self, out: &mut Vec<u8>) {
        out.push(b'"');
        match self {
            Self::Blob(bytes) => base64::encode_into(bytes, out),
            Self::SharedBlob(bytes) => base64::encode_into(bytes, out),
            Self::Base64(text) => out.extend_from_slice(text.as_bytes()),
            Self::Text(_) | Self::SharedText(_) => {}
        }
        out.push(b'"');
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
