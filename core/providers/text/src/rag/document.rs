//! A document in a collection, and its rows in an index: one for each chunk.
//!
//! Law: the description of a document is in the row of its first chunk. A document whose row cannot be read is
//! requested from its source again.

use super::chunk::Chunk;
use crate::search::{Put, SearchTokens};
use serde_json::{Value, json};
use std::borrow::Cow;

/// The description of a document.
#[derive(Clone, Debug)]
pub(super) struct RagDocument {
    pub(super) id: String,
    pub(super) title: Option<String>,
    pub(super) modified: Option<String>,
    pub(super) size: u64,
    pub(super) mime_type: Cow<'static, str>,
    /// Of its text.
    pub(super) digest: u64,
    /// The source's.
    pub(super) stamp: String,
    /// The number of its chunks.
    pub(super) chunks: usize,
}

impl RagDocument {
    /// The rows of its chunks.
    pub(super) fn puts(&self, chunks: &[Chunk]) -> Vec<Put> {
        let title = self.title.as_deref().unwrap_or_default();
        let row = |(at, chunk): (usize, &Chunk)| Put {
            key: chunk_key(&self.id, at),
            lang: None,
            stamp: self.stamp.clone(),
            head: if at == 0 { self.head() } else { String::new() },
            body: json!([chunk.heading, chunk.text]).to_string(),
            title: SearchTokens::from_text(title).into_folded(),
            headings: SearchTokens::from_text(&chunk.heading).into_folded(),
            text: SearchTokens::from_text(&chunk.text).into_folded(),
        };
        chunks.iter().enumerate().map(row).collect()
    }

    fn head(&self) -> String {
        let Self { title, modified, size, mime_type, digest, chunks, .. } = self;
        json!({
            "title": title, "modified": modified, "size": size, "mime_type": mime_type, "digest": digest, "chunks": chunks
        })
        .to_string()
    }

    /// Of the row of its first chunk.
    pub(super) fn from_head(id: &str, stamp: String, head: &str) -> Option<Self> {
        let head: Value = serde_json::from_str(head).ok()?;
        let text = |name: &str| head.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| head.get(name)?.as_u64();
        Some(Self {
            id: id.to_owned(),
            title: text("title"),
            modified: text("modified"),
            size: number("size")?,
            mime_type: text("mime_type")?.into(),
            digest: number("digest")?,
            stamp,
            chunks: usize::try_from(number("chunks")?).ok()?,
        })
    }
}

/// The key of a chunk: its document's id, and its number.
pub(super) fn chunk_key(id: &str, at: usize) -> String {
    format!("{id}\n{at:06}")
}

/// The document of a chunk, and its number.
pub(super) fn of_key(key: &str) -> Option<(&str, usize)> {
    let (id, at) = key.rsplit_once('\n')?;
    Some((id, at.parse().ok()?))
}

/// The chunk in the body of a row.
pub(super) fn of_body(body: &str) -> Option<Chunk> {
    let (heading, text) = serde_json::from_str(body).ok()?;
    Some(Chunk { heading, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-03: what an index has of a document is what was known of it.
    #[test]
    fn a_document_is_in_its_first_row() {
        let document = RagDocument {
            id: "a/b.md".into(),
            title: Some("\"T\"".into()),
            modified: None,
            size: u64::MAX,
            mime_type: "text/markdown".into(),
            digest: u64::MAX - 1,
            stamp: "1/2".into(),
            chunks: 2,
        };
        let chunk = |text: &str| Chunk { heading: "H".into(), text: text.into() };
        let rows = document.puts(&[chunk("one"), chunk("two")]);
        assert_eq!(of_key(&rows[1].key), Some(("a/b.md", 1)));
        assert_eq!(of_body(&rows[1].body), Some(chunk("two")));
        let known = RagDocument::from_head("a/b.md", rows[0].stamp.clone(), &rows[0].head).unwrap();
        assert_eq!(format!("{known:?}"), format!("{document:?}"));
        assert!(rows[1].head.is_empty());
        for head in ["", "{}", "[]", "[[null],1]"] {
            assert!(RagDocument::from_head("a", String::new(), head).is_none(), "{head}");
        }
    }
}
