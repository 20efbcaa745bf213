//! Contents as they are kept: encoded once, so that a later answer copies them. Nothing in them depends on the request.

use super::answer::{Body, Contents, ReadResult};
use super::contents::{self, BYTES, TEXT};
use super::gather::Gather;
use super::words::{self, Wording};
use crate::base64;
use crate::json_text;
use crate::resource::CacheHint;

/// The contents of one read, encoded.
#[derive(Debug)]
pub(crate) struct Kept {
    entries: Vec<Entry>,
    hint: CacheHint,
}

#[derive(Debug)]
struct Entry {
    /// `None` is the URI that is asked for, in the client's own spelling.
    uri: Option<String>,
    mime_type: String,
    /// The member that carries the body.
    name: &'static str,
    /// The body with its quotes.
    body: Box<[u8]>,
    /// The members of `_meta`.
    meta: Option<String>,
}

impl Kept {
    /// What a handler gave. `mime_type` is the resource's own, `hint` what the result is to be kept by.
    pub(crate) fn of(result: &ReadResult<'_>, mime_type: Option<&str>, hint: CacheHint) -> Self {
        let entry = |contents: &Contents<'_>| Entry::of(contents, mime_type);
        Self { entries: result.contents.iter().map(entry).collect(), hint }
    }

    /// What was gathered from chunks.
    pub(super) fn gathered(gather: &Gather, mime_type: Option<&str>, hint: CacheHint) -> Self {
        let (name, default) = if gather.is_text() { ("text", TEXT) } else { ("blob", BYTES) };
        let mime_type = gather.own_mime_type().or(mime_type).unwrap_or(default).to_owned();
        let body = gather.encoded().into_boxed_slice();
        Self { entries: vec![Entry { uri: None, mime_type, name, body, meta: None }], hint }
    }

    /// Writes the result with the hint that is left of its own.
    pub(super) fn write(&self, wording: &Wording<'_>, out: &mut Vec<u8>, uri: &str, hint: CacheHint) {
        let with_meta = wording.revision.has_contents_meta();
        wording.complete(out, |writer| {
            writer.array("contents", |array| {
                for entry in &self.entries {
                    array.object(|writer| {
                        writer.str("uri", entry.uri.as_deref().unwrap_or(uri));
                        writer.str("mimeType", &entry.mime_type);
                        writer.value(entry.name).extend_from_slice(&entry.body);
                        if let Some(meta) = entry.meta.as_deref().filter(|_| with_meta) {
                            writer.object(words::META, |writer| writer.members(meta.as_bytes()));
                        }
                    });
                }
            });
            contents::hint(writer, wording, hint);
        });
    }

    /// What it says of how long it may be kept, and by whom.
    pub(crate) fn hint(&self) -> CacheHint {
        self.hint
    }

    /// Roughly the bytes that it takes.
    pub(crate) fn size(&self) -> usize {
        const RECORD: usize = 160;
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let size = |entry: &Entry| {
            RECORD + entry.body.len() + entry.mime_type.len() + text(&entry.uri) + text(&entry.meta)
        };
        self.entries.iter().map(size).sum()
    }
}

impl Entry {
    fn of(contents: &Contents<'_>, mime_type: Option<&str>) -> Self {
        let own = contents.mime_type.as_deref().or(mime_type);
        let mut body = Vec::new();
        let (name, default) = match &contents.body {
            Body::Text(text) => {
                json_text::escape_into(text, &mut body);
                ("text", TEXT)
            }
            Body::Blob(bytes) => {
                body.reserve_exact(base64::encoded_len(bytes.len()) + 2);
                body.push(b'"');
                base64::encode_into(bytes, &mut body);
                body.push(b'"');
                ("blob", BYTES)
            }
        };
        Self {
            uri: contents.uri.as_deref().map(str::to_owned),
            mime_type: own.unwrap_or(default).to_owned(),
            name,
            body: body.into_boxed_slice(),
            meta: contents.meta.as_deref().and_then(words::members_of),
        }
    }
}
