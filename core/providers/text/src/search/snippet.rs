//! Cuts a snippet around the hits of a search.
//!
//! Law: a cut never splits a character, and hits are between `**`.

use super::query::Hits;
use std::ops::Range;

/// Approximate length of a snippet in characters.
const LENGTH: usize = 160;
/// Number of characters before the first hit.
const BEFORE: usize = 40;
const MARK: &str = "**";

/// A piece of `text` with the most hits, each between `**`; the beginning of the text if there are no hits. Line breaks
/// become spaces.
pub fn snippet(text: &str, hits: &Hits) -> String {
    let range = window(text, &hits.places);
    let mut out = String::new();
    if range.start > 0 {
        out.push('…');
    }
    let mut at = range.start;
    for place in hits.places.iter().filter(|place| place.start >= range.start && place.end <= range.end) {
        append(&mut out, text.get(at..place.start));
        out.push_str(MARK);
        append(&mut out, text.get(place.clone()));
        out.push_str(MARK);
        at = place.end;
    }
    append(&mut out, text.get(at..range.end));
    let mut out = out.trim().to_owned();
    if range.end < text.trim_end().len() {
        out.push('…');
    }
    out
}

/// The bytes that are shown.
fn window(text: &str, places: &[Range<usize>]) -> Range<usize> {
    let mut best = (0, 0..0);
    for (at, first) in places.iter().enumerate() {
        let start = back(text, first.start, BEFORE);
        let end = forward(text, start, LENGTH).max(first.end);
        let seen = places.iter().skip(at).take_while(|place| place.end <= end).count();
        if seen > best.0 {
            best = (seen, start..end);
        }
    }
    if best.0 == 0 { 0..forward(text, 0, LENGTH) } else { best.1 }
}

/// The offset this many characters before `at`, behind a space if there is one nearby.
fn back(text: &str, at: usize, chars: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    let Some((start, _)) = before.char_indices().rev().nth(chars) else { return 0 };
    let rest = text.get(start..at).unwrap_or_default();
    rest.char_indices()
        .take(BEFORE / 2)
        .find(|(_, char)| char.is_whitespace())
        .map_or(start, |(space, char)| start + space + char.len_utf8())
}

fn forward(text: &str, at: usize, chars: usize) -> usize {
    text.get(at..).unwrap_or_default().char_indices().nth(chars).map_or(text.len(), |(end, _)| at + end)
}

/// Appends a piece, each run of white space as one space.
fn append(out: &mut String, piece: Option<&str>) {
    for char in piece.unwrap_or_default().chars() {
        if !char.is_whitespace() && !char.is_control() {
            out.push(char);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::query::SearchQuery;
    use super::super::words::SearchTokens;
    use super::*;

    fn shown(text: &str, query: &str) -> String {
        snippet(text, &SearchQuery::parse(query).unwrap().hits(&SearchTokens::from_text(text)))
    }

    // S-07: cut between characters, with what was found marked in the text as it is.
    #[test]
    fn hits_are_marked() {
        assert_eq!(shown("全文検索の設定", "検索 設定"), "全文**検索**の**設定**");
        assert_eq!(shown("ｹﾝｻｸを\n  使う", "ケンサク"), "**ｹﾝｻｸ**を 使う");
        assert_eq!(shown("nothing here", "other"), "nothing here");
        let long = format!("{}検索{}", "あ🦀".repeat(100), "い".repeat(500));
        let snippet = shown(&long, "検索");
        assert!(
            snippet.starts_with('…') && snippet.ends_with('…') && snippet.contains("**検索**"),
            "{snippet}"
        );
        assert!(snippet.chars().count() < 180);
        let words = format!("{} needle and needle", "word ".repeat(100));
        let snippet = shown(&words, "needle");
        assert!(snippet.ends_with("**needle** and **needle**"), "{snippet}");
        assert_eq!(shown("", "x"), "");
    }
}
