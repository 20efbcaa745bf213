//! What is searched for: words that must all occur, each a phrase of tokens.
//!
//! Law: no character of a query is syntax but the space and `"`, which keeps words together.

use super::words::{Phrase, Words};
use std::ops::Range;

/// The longest query in bytes.
pub(crate) const QUERY: usize = 1_024;
/// The most words of a query, and the most tokens in all of them.
const PHRASES: usize = 16;
const TOKENS: usize = 256;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query {
    phrases: Vec<Phrase>,
}

/// Where the words of a query occur in one text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hits {
    /// How often each word occurs, in their order.
    pub(crate) counts: Vec<usize>,
    /// Their places in bytes, in order; what touches is one place.
    pub(crate) places: Vec<Range<usize>>,
}

impl Query {
    /// Reads a query; `None` if it is longer than one may be. One of punctuation alone has no words and finds nothing.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > QUERY {
            return None;
        }
        let mut phrases: Vec<Phrase> = Vec::new();
        for (at, part) in text.split('"').enumerate() {
            let is_quoted = at % 2 == 1;
            let words = part.split(|char: char| char.is_whitespace() && !is_quoted);
            for phrase in words.filter_map(Phrase::of) {
                if !phrases.contains(&phrase) {
                    phrases.push(phrase);
                }
            }
        }
        let tokens: usize = phrases.iter().map(Phrase::len).sum();
        (phrases.len() <= PHRASES && tokens <= TOKENS).then_some(Self { phrases })
    }

    /// Whether there is no word in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// As FTS5 has it.
    pub(super) fn fts(&self) -> String {
        let mut text = String::new();
        for phrase in &self.phrases {
            if !text.is_empty() {
                text.push_str(" AND ");
            }
            phrase.append_to(&mut text);
        }
        text
    }

    /// Where its words occur in a text.
    pub(crate) fn hits(&self, words: &Words) -> Hits {
        let mut hits = Hits::default();
        let mut all: Vec<Range<usize>> = Vec::new();
        for phrase in &self.phrases {
            let before = all.len();
            all.extend(words.find(phrase));
            hits.counts.push(all.len() - before);
        }
        all.sort_by_key(|at| (at.start, at.end));
        for at in all {
            match hits.places.last_mut() {
                Some(last) if at.start <= last.end => last.end = last.end.max(at.end),
                _ => hits.places.push(at),
            }
        }
        hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fts(text: &str) -> Option<String> {
        Query::parse(text).map(|query| query.fts())
    }

    /// S-07: no query is an expression of the index's own language.
    #[test]
    fn a_query_is_words() {
        for (text, expected) in [
            ("検索", r#""検索""#),
            ("検索 設定", r#""検索" AND "設定""#),
            ("検索　設定　検索", r#""検索" AND "設定""#),
            ("全文検索", r#""全文 文検 検索""#),
            ("化", r#""化" *"#),
            ("issue化", r#""issue 化" *"#),
            ("a OR b", r#""a" AND "or" AND "b""#),
            ("title: NEAR(a b) * ^ - ' ;", r#""title" AND "near a" AND "b""#),
            (r#""two words" three"#, r#""two words" AND "three""#),
            (r#""open end"#, r#""open end""#),
            ("… !", ""),
            ("", ""),
        ] {
            assert_eq!(fts(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(fts(&"x".repeat(QUERY + 1)), None);
        assert_eq!(fts(&(0..20).map(|n| format!("w{n} ")).collect::<String>()), None);
    }

    /// S-07: places do not overlap, so each mark is put once.
    #[test]
    fn places_do_not_overlap() {
        let query = Query::parse("検索 索引 化").unwrap();
        let hits = query.hits(&Words::of("検索索引の最適化"));
        assert_eq!(hits.counts, [1, 1, 1]);
        assert_eq!(hits.places, [0..12, 21..24]);
    }
}
