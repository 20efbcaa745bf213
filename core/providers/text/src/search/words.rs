//! Splits a text into folded words, so that Japanese and English are searched alike.
//!
//! ```text
//!   ＡＰＩサーバーの検索  ──── fold ────▶  apiサーバーの検索  ── `ー` at the end of a katakana word ──▶  apiサーバの検索
//!                                             api | サー ーバ バの の検 検索 索          words, and pairs of characters
//! ```
//!
//! Law: every CJK character begins exactly one token: a pair with the next character, or itself at the end of its run. So a
//! string of two or more characters is a phrase of pairs, and one character is the prefix of a token.

use super::fold::{CharRole, folded, is_emoji, role, variant};
use memchr::memmem::Finder;
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::char::is_combining_mark;

/// The longest word in characters. The rest of a longer one, such as a key in base64, is not searched.
const LONGEST: usize = 64;
/// A katakana word that is shorter without its `ー` keeps it: `キー` is another word than `キ`.
const KATAKANA: usize = 3;

/// The tokens of a text, in its order.
#[derive(Clone, Debug, Default)]
pub struct SearchTokens {
    /// The tokens with a space before each, and one at the end.
    folded: String,
    tokens: Vec<SearchToken>,
}

/// One token.
#[derive(Clone, Copy, Debug)]
struct SearchToken {
    /// The offset of its beginning in the folded text, with its space.
    at: usize,
    /// The bytes of the original text that it represents.
    start: usize,
    end: usize,
}

/// The class of a folded character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharClass {
    /// A word between spaces.
    Word,
    /// A run of characters of a script without spaces between words.
    Cjk,
    /// A mark on the character before it.
    Mark,
    /// Without width: it neither separates nor is searched.
    Ignored,
    Separator,
}

impl SearchTokens {
    /// Folds and cuts `text`.
    pub fn from_text(text: &str) -> Self {
        let mut cutter = WordCutter::default();
        // About as many as there are: a token for each CJK character of three bytes, or for each short word.
        cutter.words.folded.reserve(text.len() * 2);
        cutter.words.tokens.reserve(text.len() / 4);
        let mut start = 0;
        while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
            start += cutter.ascii(rest, start).or_else(|| cutter.folded(rest, start)).unwrap_or_else(|| {
                let cluster = cluster(rest);
                cutter.cluster(cluster, start);
                cluster.len()
            });
        }
        cutter.finish()
    }

    /// The tokens, separated by spaces: as an index stores them.
    pub fn into_folded(self) -> String {
        self.folded
    }

    /// The number of tokens.
    pub fn count(&self) -> usize {
        self.tokens.len()
    }

    /// Finds a phrase in the original text: tokens separated by spaces; the last one may be a prefix.
    pub(super) fn find<'w>(&'w self, phrase: &'w Phrase) -> impl Iterator<Item = Range<usize>> + 'w {
        let mut from = 0;
        let needle = Finder::new(&phrase.needle);
        std::iter::from_fn(move || {
            let at = from + needle.find(self.folded.as_bytes().get(from..)?)?;
            from = at + 1;
            let first = self.tokens.binary_search_by_key(&at, |token| token.at).ok()?;
            let last = self.tokens.get(first + phrase.tokens - 1)?;
            // A prefix is one character, and its token may have one more.
            let end = if phrase.is_prefix {
                last.end.min(self.second(first + phrase.tokens - 1))
            } else {
                last.end
            };
            Some(self.tokens.get(first)?.start..end)
        })
    }

    /// The offset of a token's second character, if the token is a pair.
    fn second(&self, at: usize) -> usize {
        match (self.tokens.get(at), self.tokens.get(at + 1)) {
            (Some(one), Some(next)) if next.start < one.end => next.start,
            (Some(one), _) => one.end,
            _ => usize::MAX,
        }
    }
}

/// Tokens of a query that must follow one another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    /// The tokens, with a space before each, and one at the end unless the last one is a prefix.
    needle: String,
    tokens: usize,
    is_prefix: bool,
}

impl Phrase {
    /// The phrase that `text` is; `None` if nothing of it is searched.
    pub(super) fn from_text(text: &str) -> Option<Self> {
        let mut words = SearchTokens::from_text(text);
        let last = words.tokens.last().copied()?;
        let mut needle = std::mem::take(&mut words.folded);
        let mut tokens = words.tokens.len();
        let token = needle.get(last.at..).unwrap_or_default().trim_ascii();
        let mut is_prefix = false;
        if token.chars().next().is_some_and(|first| class(first) == CharClass::Cjk) {
            let ends_a_pair =
                tokens >= 2 && words.tokens.get(tokens - 2).is_some_and(|pair| pair.end == last.end);
            if ends_a_pair {
                // The pair before it says as much, and what follows in a text is not known.
                needle.truncate(last.at + 1);
                tokens -= 1;
            } else {
                needle.truncate(needle.trim_ascii_end().len());
                is_prefix = true;
            }
        }
        Some(Self { needle, tokens, is_prefix })
    }

    /// As FTS5 has it: a string, whose quotes nothing in it can end.
    pub(super) fn append_to(&self, query: &mut String) {
        query.push('"');
        query.push_str(&self.needle.trim_ascii().replace('"', "\"\""));
        query.push_str(if self.is_prefix { "\" *" } else { "\"" });
    }

    /// Its number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens
    }
}

/// Puts folded characters together.
#[derive(Default)]
struct WordCutter {
    words: SearchTokens,
    run: Vec<(char, usize, usize)>,
    class: Option<CharClass>,
}

impl WordCutter {
    /// Reads a word in ASCII, or one other ASCII character, from the beginning of a text; returns its length. `None` if
    /// the following text may belong to it.
    fn ascii(&mut self, rest: &str, start: usize) -> Option<usize> {
        let bytes = rest.as_bytes();
        let word = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        let end = word.max(1);
        if !bytes.first()?.is_ascii() || bytes.get(end).is_some_and(|next| !next.is_ascii()) {
            return None;
        }
        if word == 0 {
            self.flush();
        } else if self.class == Some(CharClass::Word) {
            // It ends a word that began with other letters.
            let chars = rest.get(..word)?.char_indices();
            chars.for_each(|(at, char)| self.push(char.to_ascii_lowercase(), start + at, start + at + 1));
        } else {
            self.flush();
            self.token(start, start + word);
            let own = self.words.folded.len();
            self.words.folded.push_str(rest.get(..word.min(LONGEST))?);
            self.words.folded.get_mut(own..)?.make_ascii_lowercase();
        }
        Some(end)
    }

    /// Takes a character that is folded already, or a usual separator; returns its length.
    fn folded(&mut self, rest: &str, start: usize) -> Option<usize> {
        let mut chars = rest.chars();
        let first = chars.next()?;
        let is_searched = is_folded(first);
        if !is_searched && !is_usual_separator(first) || chars.next().is_some_and(extends) {
            return None;
        }
        if is_searched {
            self.cjk(first, start, start + first.len_utf8());
        } else {
            self.flush();
        }
        Some(first.len_utf8())
    }

    /// Takes a character with its marks.
    fn cluster(&mut self, cluster: &str, start: usize) {
        let end = start + cluster.len();
        let role = cluster.chars().next().map_or(CharRole::Nothing, role);
        if role != CharRole::Usual {
            self.flush();
        }
        if role != CharRole::Nothing {
            folded(cluster, &mut |char| self.push(char, start, end));
        }
        if role == CharRole::Alone {
            self.flush();
        }
    }

    fn push(&mut self, char: char, start: usize, end: usize) {
        match class(char) {
            CharClass::Ignored => {}
            CharClass::Separator => self.flush(),
            CharClass::Mark => {
                // On nothing it is nothing.
                if let Some(last) = self.run.last().copied() {
                    self.run.push((char, last.1, end));
                }
            }
            CharClass::Cjk => self.cjk(char, start, end),
            CharClass::Word => self.add(CharClass::Word, char, start, end),
        }
    }

    fn cjk(&mut self, char: char, start: usize, end: usize) {
        self.add(CharClass::Cjk, char, start, end);
    }

    fn add(&mut self, class: CharClass, char: char, start: usize, end: usize) {
        if self.class != Some(class) {
            self.flush();
            self.class = Some(class);
        }
        self.run.push((char, start, end));
    }

    fn flush(&mut self) {
        let run = std::mem::take(&mut self.run);
        match self.class.take() {
            Some(CharClass::Word) => self.word(&run),
            Some(CharClass::Cjk) => self.pairs(&without_long_ends(&run)),
            _ => {}
        }
        self.run = run;
        self.run.clear();
    }

    fn word(&mut self, run: &[(char, usize, usize)]) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { return };
        self.token(first.1, last.2);
        self.words.folded.extend(run.iter().take(LONGEST).map(|(char, ..)| char));
    }

    fn pairs(&mut self, run: &[(char, usize, usize)]) {
        for (at, (char, start, end)) in run.iter().enumerate() {
            let next = run.get(at + 1);
            self.token(*start, next.map_or(*end, |(.., end)| *end));
            self.words.folded.push(*char);
            self.words.folded.extend(next.map(|(char, ..)| char));
        }
    }

    fn token(&mut self, start: usize, end: usize) {
        self.words.tokens.push(SearchToken { at: self.words.folded.len(), start, end });
        self.words.folded.push(' ');
    }

    fn finish(mut self) -> SearchTokens {
        self.flush();
        if !self.words.folded.is_empty() {
            self.words.folded.push(' ');
        }
        self.words
    }
}

/// A run without the `ー` at the ends of its katakana words: `サーバー` and `サーバ` are the same word.
fn without_long_ends(run: &[(char, usize, usize)]) -> Cow<'_, [(char, usize, usize)]> {
    if run.iter().all(|(char, ..)| *char != 'ー') {
        return Cow::Borrowed(run);
    }
    let mut out: Vec<(char, usize, usize)> = Vec::with_capacity(run.len());
    let mut katakana = 0;
    let strip = |out: &mut Vec<(char, usize, usize)>, mut katakana: usize| {
        while katakana > KATAKANA && out.last().is_some_and(|(char, ..)| *char == 'ー') {
            out.pop();
            katakana -= 1;
        }
    };
    for item in run {
        if matches!(item.0, 'ァ'..='ヺ' | 'ー' | 'ㇰ'..='ㇿ') {
            katakana += 1;
        } else {
            strip(&mut out, katakana);
            katakana = 0;
        }
        out.push(*item);
    }
    strip(&mut out, katakana);
    Cow::Owned(out)
}

/// The first character of a text with all that belongs to it.
pub(super) fn cluster(rest: &str) -> &str {
    let next = rest.char_indices().skip(1).find(|(_, next)| !extends(*next));
    next.and_then(|(end, _)| rest.get(..end)).unwrap_or(rest)
}

/// Whether a character is part of the one before it before normalisation: marks, the marks of half-width kana, later jamo.
fn extends(char: char) -> bool {
    !char.is_ascii()
        && !is_usual_cjk(char)
        && (matches!(char, '\u{ff9e}' | '\u{ff9f}' | '\u{1160}'..='\u{11ff}') || is_combining_mark(char))
}

/// Whether a single character is already folded, and CJK: most characters of a Japanese text are.
fn is_folded(char: char) -> bool {
    is_usual_cjk(char) && variant(char) == char
}

/// Whether a character is one of those that most of a Japanese text consists of. None of them is a mark.
fn is_usual_cjk(char: char) -> bool {
    matches!(char, '々'..='〇' | 'ぁ'..='ゖ' | 'ァ'..='ヺ' | 'ー' | '\u{4e00}'..='\u{9fff}')
}

/// Whether a character is one of those between the words of a Japanese text.
fn is_usual_separator(char: char) -> bool {
    matches!(char, '\u{3000}'..='\u{3002}' | '「'..='』' | '・')
}

fn class(char: char) -> CharClass {
    match char {
        '0'..='9' | 'a'..='z' => CharClass::Word,
        '\0'..='\u{7f}' => CharClass::Separator,
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2060}'
        | '\u{1f3fb}'..='\u{1f3ff}'
        | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{e0100}'..='\u{e01ef}' => CharClass::Ignored,
        _ if is_cjk(char) => CharClass::Cjk,
        _ if is_combining_mark(char) => CharClass::Mark,
        _ if char.is_alphanumeric() || is_emoji(char) => CharClass::Word,
        _ => CharClass::Separator,
    }
}

/// Whether a character is of a script without spaces between words.
pub fn is_cjk(char: char) -> bool {
    matches!(char,
        '々'..='〇' | '〡'..='〩' | '〱'..='〵' | '〸'..='〼'
        | 'ぁ'..='ゖ' | 'ゝ'..='ゟ' | 'ァ'..='ヺ' | 'ー'..='ヿ' | 'ㄅ'..='ㄯ' | 'ㆠ'..='ㆿ' | 'ㇰ'..='ㇿ'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}'
        | '\u{1100}'..='\u{11ff}' | '\u{ac00}'..='\u{d7ff}'
        | '\u{e01}'..='\u{e3a}' | '\u{e40}'..='\u{e4e}' | '\u{e81}'..='\u{edf}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17d3}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &str) -> String {
        SearchTokens::from_text(text).into_folded().trim_ascii().to_owned()
    }

    // S-07: width, case, forms of characters and the mark at the end of a katakana word make no difference.
    #[test]
    fn texts_are_folded_and_cut() {
        for (text, expected) in [
            ("", ""),
            (" -- ", ""),
            ("Full-Text search, v2.0", "full text search v2 0"),
            ("検索", "検索 索"),
            ("ｹﾝｻｸ", "ケン ンサ サク ク"),
            ("ｶﾞｲﾄﾞ", "ガイ イド ド"),
            ("ガイド", "ガイ イド ド"),
            ("ＡＰＩ", "api"),
            ("issue化", "issue 化"),
            ("APIの検索", "api の検 検索 索"),
            ("サーバー", "サー ーバ バ"),
            ("サーバ", "サー ーバ バ"),
            ("ｻｰﾊﾞｰ設定", "サー ーバ バ設 設定 定"),
            ("サーバーレス", "サー ーバ バー ーレ レス ス"),
            ("キー", "キー ー"),
            ("コピー", "コピ ピー ー"),
            ("ユーザーー名", "ユー ーザ ザ名 名"),
            ("検索。設定", "検索 索 設定 定"),
            ("検\u{200b}索", "検索 索"),
            ("葛\u{e0100}飾", "葛飾 飾"),
            ("㈱山田", "株 山田 田"),
            ("Caf\u{e9} cafe\u{301}", "cafe cafe"),
            ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
            ("\u{301}x", "x"),
            ("10㎏", "10kg"),
            ("H₂O ① 準備", "h2o 1 準備 備"),
            ("Docker™ and x² and Note¹ here", "docker and x 2 and note 1 here"),
            ("Acme℠co №5 1ª nº2 10⁻³ 1½", "acme co no 5 1 a n o 2 10 3 1 1 2"),
            ("m²面積", "m 2 面積 積"),
            ("🚀Start 👍🏽 👨\u{200d}👩 ⚙\u{fe0f} 🇯🇵", "🚀 start 👍 👨 👩 ⚙ 🇯 🇵"),
            ("1\u{fe0f}\u{20e3} Install", "1 install"),
            ("髙橋", "高橋 橋"),
        ] {
            assert_eq!(folded(text), expected, "{text}");
        }
        assert_eq!(folded(&"a".repeat(1_000)), "a".repeat(LONGEST));
    }

    /// Characters that the shortcut skips are their own folded form.
    #[test]
    fn folded_characters_stay() {
        for char in ('\0'..=char::MAX).filter(|char| is_folded(*char)) {
            let mut again = String::new();
            super::folded(&char.to_string(), &mut |char| again.push(char));
            assert_eq!(again, char.to_string());
            assert_eq!(class(char), CharClass::Cjk, "{char}");
        }
        for char in ('\0'..=char::MAX).filter(|char| is_usual_cjk(*char)) {
            assert!(!is_combining_mark(char), "{char}");
        }
    }

    /// Separators that the shortcut skips separate in their folded form too.
    #[test]
    fn usual_separators_separate() {
        for char in ('\0'..=char::MAX).filter(|char| is_usual_separator(*char)) {
            assert_eq!(role(char), CharRole::Usual, "{char}");
            super::folded(&char.to_string(), &mut |char| {
                assert_eq!(class(char), CharClass::Separator, "{char}")
            });
            assert_eq!(folded(&format!("検{char}索")), "検 索", "{char}");
        }
    }

    // S-07: what is found is where it stands in the text, whatever it was folded to.
    #[test]
    fn phrases_are_found_in_the_text() {
        for (text, query, expected) in [
            ("全文検索の設定", "検索", vec!["検索"]),
            ("ｹﾝｻｸとケンサク", "ケンサク", vec!["ｹﾝｻｸ", "ケンサク"]),
            ("サーバーとサーバ", "ｻｰﾊﾞ", vec!["サーバ", "サーバ"]),
            ("最適化を化学で", "化", vec!["化", "化"]),
            ("issue化する。issue を", "issue化", vec!["issue化"]),
            ("a a a", "a", vec!["a", "a", "a"]),
            ("Max_Bytes and max bytes", "max-bytes", vec!["Max_Bytes", "max bytes"]),
            ("ＡＰＩ API apis", "api", vec!["ＡＰＩ", "API"]),
            ("検索。設定", "検索設定", vec![]),
            ("設定file", "設定file", vec!["設定file"]),
            ("再設定file", "設定file", vec!["設定file"]),
            ("検索索引", "検索索引", vec!["検索索引"]),
            ("Docker™ docker", "docker", vec!["Docker", "docker"]),
            ("Docker™", "docker™", vec!["Docker"]),
            ("x² and x²y", "x²", vec!["x²", "x²"]),
            ("Cafe\u{301}s café", "cafe", vec!["café"]),
            ("Die Straße, STRASSE", "strasse", vec!["Straße", "STRASSE"]),
            ("İstanbul'da", "istanbul", vec!["İstanbul"]),
            ("go 🚀🚀 now", "🚀", vec!["🚀", "🚀"]),
            ("髙橋と高橋", "高橋", vec!["髙橋", "高橋"]),
            ("ガ カ", "カ", vec!["カ"]),
        ] {
            let words = SearchTokens::from_text(text);
            let phrase = Phrase::from_text(query).unwrap();
            let found: Vec<_> = words.find(&phrase).map(|at| &text[at]).collect();
            assert_eq!(found, expected, "{query} in {text}");
        }
        assert_eq!(Phrase::from_text("…"), None);
    }
}
