//! Parses a search: words that must all occur, each a phrase of tokens.
//!
//! Law: only the space and `"`, which encloses a phrase, are syntax in a query.

use super::words::{Phrase, SearchTokens};
use std::ops::Range;

/// The longest query in bytes.
pub(super) const QUERY: usize = 1_024;
/// Maximum number of words of a query, and of tokens in all of them.
const PHRASES: usize = 16;
const TOKENS: usize = 256;

/// A parsed search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchQuery {
    phrases: Vec<Phrase>,
    /// Whether one of the words suffices.
    is_any: bool,
}

/// The occurrences of a query's words in one text.
#[derive(Clone, Debug, Default)]
pub struct Hits {
    /// The number of occurrences of each word, in their order.
    pub counts: Vec<usize>,
    /// Their places in bytes, in order; what touches is one place.
    pub places: Vec<Range<usize>>,
}

impl SearchQuery {
    /// Parses a query; `None` if it is too long. A query of punctuation only has no words and finds nothing.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > QUERY {
            return None;
        }
        let mut phrases: Vec<Phrase> = Vec::new();
        for (at, part) in text.split('"').enumerate() {
            let is_quoted = at % 2 == 1;
            let words = part.split(|char: char| char.is_whitespace() && !is_quoted);
            for phrase in words.filter_map(Phrase::from_text) {
                if !phrases.contains(&phrase) {
                    phrases.push(phrase);
                }
            }
        }
        Self::from_phrases(phrases)
    }

    fn from_phrases(phrases: Vec<Phrase>) -> Option<Self> {
        let query = Self { phrases, is_any: false };
        (query.phrases.len() <= PHRASES && query.tokens() <= TOKENS).then_some(query)
    }

    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Its number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.phrases.iter().map(Phrase::len).sum()
    }

    /// As FTS5 has it.
    pub(super) fn fts(&self) -> String {
        let mut text = String::new();
        for phrase in &self.phrases {
            if !text.is_empty() {
                text.push_str(self.joint());
            }
            phrase.append_to(&mut text);
        }
        text
    }

    fn joint(&self) -> &'static str {
        if self.is_any { " OR " } else { " AND " }
    }

    /// Finds the words in a text.
    pub fn hits(&self, words: &SearchTokens) -> Hits {
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

/// Questions, of which any word may occur.
mod question {
    use crate::search::query::{PHRASES, QUERY, SearchQuery};
    use crate::search::words::{Phrase, is_cjk};

    /// The script of characters, as far as a change of script ends a word.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Script {
        Hiragana,
        Katakana,
        /// Kanji, and what else is written without spaces.
        Cjk,
        /// Letters and digits between spaces.
        Other,
    }

    impl SearchQuery {
        /// Parses a question; `None` if it is too long. A text without spaces is split where the script changes, and
        /// hiragana between other scripts, which is mostly grammar, is ignored. If there are too many words, the first
        /// ones count.
        pub fn question(text: &str) -> Option<Self> {
            if text.len() > QUERY {
                return None;
            }
            let mut words: Vec<(String, bool)> = Vec::new();
            for part in text.split(char::is_whitespace) {
                let mut before = None;
                for char in part.chars() {
                    let script = script(char);
                    match words.last_mut().filter(|_| before == Some(script)) {
                        Some((word, _)) => word.push(char),
                        None => words.push((char.to_string(), script == Script::Hiragana)),
                    }
                    before = Some(script);
                }
            }
            let has_others =
                words.iter().any(|(word, is_hiragana)| !is_hiragana && Phrase::from_text(word).is_some());
            let mut phrases: Vec<Phrase> = Vec::new();
            for (word, _) in words.iter().filter(|(_, is_hiragana)| !is_hiragana || !has_others) {
                if let Some(phrase) = Phrase::from_text(word).filter(|phrase| !phrases.contains(phrase)) {
                    phrases.push(phrase);
                }
            }
            phrases.truncate(PHRASES);
            Self::from_phrases(phrases).map(|query| Self { is_any: true, ..query })
        }

        /// Its words, each as a query.
        pub fn words(&self) -> impl Iterator<Item = Self> + '_ {
            self.phrases.iter().map(|phrase| Self { phrases: vec![phrase.clone()], is_any: true })
        }
    }

    fn script(char: char) -> Script {
        match char {
            'ぁ'..='ゟ' => Script::Hiragana,
            'ァ'..='ヿ' | 'ｦ'..='ﾟ' => Script::Katakana,
            _ if is_cjk(char) => Script::Cjk,
            _ => Script::Other,
        }
    }

    #[cfg(test)]
    mod tests {
        use crate::search::query::SearchQuery;

        // S-03: a question finds what has some of its words.
        #[test]
        fn a_question_is_any_of_its_words() {
            for (text, expected) in [
                ("how to restart", r#""how" OR "to" OR "restart""#),
                ("サーバーの再起動手順は？", r#""サー ーバ" OR "再起 起動 動手 手順""#),
                ("する", r#""する""#),
                ("VPN接続エラー", r#""vpn" OR "接続" OR "エラ ラー""#),
                ("max_bytesの既定値", r#""max bytes" OR "既定 定値""#),
                ("AND OR", r#""and" OR "or""#),
                ("", ""),
            ] {
                assert_eq!(SearchQuery::question(text).unwrap().fts(), expected, "{text}");
            }
            assert!(SearchQuery::question(&"x ".repeat(1_000)).is_none());
            assert_eq!(SearchQuery::question("a b").unwrap().words().count(), 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fts(text: &str) -> Option<String> {
        SearchQuery::parse(text).map(|query| query.fts())
    }

    // S-07: no query is an expression of the index's own language.
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

    // S-07: places do not overlap, so each mark is put once.
    #[test]
    fn places_do_not_overlap() {
        let query = SearchQuery::parse("検索 索引 化").unwrap();
        let hits = query.hits(&SearchTokens::from_text("検索索引の最適化"));
        assert_eq!(hits.counts, [1, 1, 1]);
        assert_eq!(hits.places, [0..12, 21..24]);
    }
}
