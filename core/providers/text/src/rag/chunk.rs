//! Splits a document into chunks: by its headings, and a long section by its paragraphs.
//!
//! Law: a chunk has a limited length, never splits a character, and records its heading.

use crate::docs::page::DocsPage;

/// Maximum length of a chunk in bytes; a longer paragraph is cut.
const LONGEST: usize = 2_000;
/// The most chunks of a document.
const CHUNKS: usize = 10_000;

/// A part of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Its heading; empty before the first one.
    pub(super) heading: String,
    pub(super) text: String,
}

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ChunkIter {
    pub(super) title: Option<String>,
    pub(super) chunks: Vec<Chunk>,
}

/// Cuts a text by the sections of the `page` that it is, or by its lines.
pub(super) fn chunks(text: &str, page: Option<DocsPage>) -> ChunkIter {
    let mut chunks = Vec::new();
    let mut title = None;
    if let Some(page) = page {
        title = page.description.title;
        for section in &page.sections {
            cut(&section.heading, &section.text, &mut chunks);
        }
    } else {
        cut("", text, &mut chunks);
    }
    chunks.truncate(CHUNKS);
    ChunkIter { title, chunks }
}

/// Adds a section in pieces; one without text has its heading.
fn cut(heading: &str, text: &str, chunks: &mut Vec<Chunk>) {
    let mut piece = String::new();
    let flush = |piece: &mut String, chunks: &mut Vec<Chunk>| {
        let text = std::mem::take(piece).trim().to_owned();
        if !text.is_empty() {
            chunks.push(Chunk { heading: heading.to_owned(), text });
        }
    };
    for line in text.split_inclusive('\n') {
        if piece.len() + line.len() > LONGEST {
            flush(&mut piece, chunks);
        }
        let mut rest = line;
        while rest.len() > LONGEST {
            let end = (0..=LONGEST).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (start, after) = rest.split_at(end);
            piece.push_str(start);
            flush(&mut piece, chunks);
            rest = after;
        }
        piece.push_str(rest);
    }
    flush(&mut piece, chunks);
    if text.trim().is_empty() && !heading.is_empty() {
        chunks.push(Chunk { heading: heading.to_owned(), text: heading.to_owned() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-03: by headings, and by lines where a section is long.
    #[test]
    fn documents_are_cut_by_headings() {
        let text = "---\ntitle: T\n---\nintro\n# One\na\n## Two\n\n## Three\nc\n";
        let ChunkIter { title, chunks: found } = chunks(text, Some(DocsPage::parse(text)));
        let found: Vec<_> = found.iter().map(|chunk| (&*chunk.heading, &*chunk.text)).collect();
        assert_eq!(title.as_deref(), Some("T"));
        assert_eq!(found, [("", "intro"), ("One", "a"), ("Two", "Two"), ("Three", "c")]);
        let long = format!("{}\n{}\n", "あ".repeat(1_500), "word ".repeat(300));
        let pieces = chunks(&long, None).chunks;
        assert!(pieces.iter().all(|piece| piece.text.len() <= LONGEST && !piece.text.is_empty()));
        let all: usize =
            pieces.iter().map(|piece| piece.text.chars().filter(|char| !char.is_whitespace()).count()).sum();
        assert_eq!(all, 1_500 + 4 * 300);
        assert!(chunks("", Some(DocsPage::parse(""))).chunks.is_empty());
    }
}
