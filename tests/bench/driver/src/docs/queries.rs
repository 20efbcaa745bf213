//! The searches of W11: from words that most pages have to words that none has, in both languages, with one character, several
//! words, phrases, other widths, and options.

use super::corpus::Words;
use std::error::Error;

/// Ranks of words, from the most usual to the rare.
const RANKS: [usize; 12] = [0, 1, 4, 10, 25, 60, 130, 400, 1_000, 3_000, 8_000, 19_000];
/// Searches that are written by hand.
const OTHERS: &[&str] = &[
    "の",
    "は",
    "化",
    "設",
    "検",
    "サ",
    "全",
    "値",
    "API",
    "ＡＰＩ",
    "ａｐｉ",
    "ｻｰﾊﾞｰ",
    "サーバ",
    "設定 検索",
    "設定 検索 文書",
    "の は を",
    "the of and",
    "server client",
    "server balancer retry",
    "APIの",
    "API 設定",
    "設定します",
    "\"the server\"",
    "\"of the\"",
    "\"設定を\"",
    "を確認してください",
    "すぐに反映されます",
    "全文検索",
    "最適化",
    "自動化 最適化",
    "インターフェース",
    "アプリケーション サーバー 設定",
    "backup restore",
    "the 設定",
    "timeout retry 障害",
    "snapshot",
    "the in of to a",
    "サーバーの設定",
    "場合は",
    "確認",
];
/// Searches that find nothing.
const NOTHING: &[&str] = &["zzzznothing", "鬱鬱", "the zzzznothing", "龘"];

/// A search.
#[derive(Debug)]
pub(super) struct Query {
    text: String,
    options: &'static str,
    expected: Expected,
}

/// What must come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Hits,
    Nothing,
    Any,
}

impl Query {
    pub(super) fn from_words(text: &str) -> Self {
        Self { text: text.to_owned(), options: "", expected: Expected::Hits }
    }

    pub(super) fn expecting(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }

    /// What is read.
    pub(super) fn uri(&self) -> String {
        let mut uri = String::from("docs:///handbook/search?q=");
        for byte in self.text.bytes() {
            if byte.is_ascii_alphanumeric() {
                uri.push(char::from(byte));
            } else {
                uri.push('%');
                uri.extend(
                    [byte >> 4, byte & 15].map(|half| {
                        char::from_digit(half.into(), 16).unwrap_or_default().to_ascii_uppercase()
                    }),
                );
            }
        }
        uri + self.options
    }

    /// Whether the answer is one to this search.
    pub(super) fn check(&self, answer: &str) -> Result<(), Box<dyn Error>> {
        let has_hits = answer.contains("\"snippet\":");
        let is_right = match self.expected {
            Expected::Hits => has_hits,
            Expected::Nothing => !has_hits && answer.contains("\"hits\":[]"),
            Expected::Any => true,
        };
        let is_whole = !answer.contains("\"incomplete\":true");
        if is_right && is_whole {
            Ok(())
        } else {
            Err(format!("wrong answer to {:?}: {answer:.200}", self.text).into())
        }
    }
}

/// All searches, the same in every run.
pub(super) fn all() -> Vec<Query> {
    let words = Words::new();
    let at = |list: &[String], rank: usize| list.get(rank).cloned().unwrap_or_default();
    let ranked = RANKS.iter().flat_map(|rank| [at(&words.english, *rank), at(&words.japanese, *rank)]);
    let pairs =
        [2_usize, 8, 30].map(|rank| format!("{} {}", at(&words.english, rank), at(&words.english, rank + 3)));
    let several = [2_usize, 8, 30]
        .map(|rank| format!("{} {}", at(&words.japanese, rank), at(&words.japanese, rank + 3)));
    let mut all: Vec<Query> =
        ranked.chain(pairs).chain(several).map(|text| Query::from_words(&text)).collect();
    all.extend(OTHERS.iter().map(|text| Query::from_words(text)));
    all.extend(NOTHING.iter().map(|text| Query::from_words(text).expecting(Expected::Nothing)));
    for (text, options) in [
        ("API設定", ""),
        ("全文検索の設定", ""),
        ("the", "&k=100"),
        ("設定", "&k=100"),
        ("server", "&lang=ja"),
        ("API", "&lang=en"),
        ("の", "&lang=en"),
        ("検索", "&k=1"),
    ] {
        all.push(Query { options, expected: Expected::Any, ..Query::from_words(text) });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_are_many_and_encoded() {
        let all = all();
        assert!(all.len() >= 80, "{}", all.len());
        assert_eq!(Query::from_words("a 検").uri(), "docs:///handbook/search?q=a%20%E6%A4%9C");
    }
}
