//! Folding of characters for searches.
//!
//! ```text
//!   Ｃａｆé   ── NFKC ──▶ Café   ── lower case ──▶ café   ── without the marks of Latin, Greek and Cyrillic ──▶ cafe
//! ```
//!
//! Law: the original character decides whether it belongs to the word before it. Its folded form may look like letters:
//! `™` becomes `tm`, and is no part of `Docker`.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The role of a character in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CharRole {
    /// Its folded form decides whether it is part of a word.
    Usual,
    /// A word of its own: a superscript, a fraction, a symbol made of letters, an emoji.
    Alone,
    /// It is not searched: the sign of a trade mark.
    Nothing,
}

/// The role of a cluster, by its first character.
pub(super) fn role(first: char) -> CharRole {
    match first {
        '™' | '℠' => CharRole::Nothing,
        'ª' | 'º' | '²' | '³' | '¹' | '¼'..='¾' | '⁰'..='ⁿ' | '⅐'..='⅟' | '↉' => {
            CharRole::Alone
        }
        // Letters above the line.
        'ʰ'..='ʸ'
        | 'ˠ'..='ˤ'
        | 'ᴬ'..='ᵡ'
        | 'ᵸ'
        | 'ᶛ'..='ᶿ'
        | 'ⱽ'
        | 'ꚜ'
        | 'ꚝ'
        | 'ꝰ'
        | 'ꟲ'..='ꟴ'
        | 'ꟸ'
        | 'ꟹ'
        | 'ꭜ'..='ꭟ' => CharRole::Alone,
        // Signs of several letters, and letters in circles.
        '℀' | '℁' | '℅' | '℆' | '№' | '℡' | '℻' | 'Ⓐ'..='ⓩ' | '\u{1f100}'..='\u{1f1e5}' => {
            CharRole::Alone
        }
        _ if is_emoji(first) => CharRole::Alone,
        _ => CharRole::Usual,
    }
}

/// Whether a character is a picture, which is searched as a word of its own.
pub(super) fn is_emoji(char: char) -> bool {
    matches!(char,
        '⌚' | '⌛' | '⌨' | '⏏' | '⏩'..='⏳' | '⏸'..='⏺' | '☀'..='❵' | '➔'..='➿' | '⬅'..='⬇' | '⬛' | '⬜' | '⭐' | '⭕'
        | '\u{1f000}'..='\u{1f0ff}' | '\u{1f1e6}'..='\u{1f1ff}' | '\u{1f300}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}')
}

/// The folded characters of a cluster, a character with its marks.
pub(super) fn folded(cluster: &str, push: &mut dyn FnMut(char)) {
    // Marks are dropped behind these, and kept behind others: `ガ` is not `カ`.
    let mut is_foldable = false;
    for char in cluster.nfkc().flat_map(char::to_lowercase) {
        if is_combining_mark(char) {
            if !(is_foldable && is_letter_mark(char)) {
                push(variant(char));
            }
            continue;
        }
        is_foldable = is_alphabet(char) || char.is_ascii_digit();
        if !is_alphabet(char) || char.is_ascii() {
            push(variant(char));
            continue;
        }
        for part in std::iter::once(char).nfd().filter(|part| !is_combining_mark(*part)) {
            letters(part, push);
        }
    }
}

/// A letter of Latin, Greek or Cyrillic, as the letters that people type for it.
fn letters(char: char, push: &mut dyn FnMut(char)) {
    let several = match char {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        _ => {
            return push(match char {
                'ς' => 'σ',
                'ø' => 'o',
                'ł' => 'l',
                'đ' | 'ð' => 'd',
                'ħ' => 'h',
                'ı' => 'i',
                'ŧ' => 't',
                other => other,
            });
        }
    };
    several.chars().for_each(push);
}

/// Whether a character is of an alphabet whose marks are often left out.
fn is_alphabet(char: char) -> bool {
    char.is_alphabetic()
        && matches!(char,
            'a'..='z' | 'A'..='Z' | '\u{c0}'..='\u{24f}' | '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}' | '\u{1c80}'..='\u{1c8f}'
            | '\u{1e00}'..='\u{1fff}' | '\u{2c60}'..='\u{2c7f}' | '\u{a640}'..='\u{a69f}' | '\u{a720}'..='\u{a7ff}'
            | '\u{ab30}'..='\u{ab6f}')
}

/// Whether a mark is one of such an alphabet, and not of another script.
fn is_letter_mark(char: char) -> bool {
    matches!(char,
        '\u{300}'..='\u{36f}' | '\u{483}'..='\u{489}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{2de0}'..='\u{2dff}' | '\u{a66f}'..='\u{a67d}' | '\u{a69e}'..='\u{a69f}' | '\u{fe20}'..='\u{fe2f}')
}

/// Variants of kanji that occur in names, each with the usual form. Only forms of single characters, none of two words.
const VARIANTS: [(char, char); 31] = [
    ('髙', '高'),
    ('﨑', '崎'),
    ('嵜', '崎'),
    ('𠮷', '吉'),
    ('德', '徳'),
    ('黑', '黒'),
    ('澤', '沢'),
    ('濱', '浜'),
    ('濵', '浜'),
    ('邊', '辺'),
    ('邉', '辺'),
    ('齋', '斎'),
    ('齊', '斉'),
    ('櫻', '桜'),
    ('廣', '広'),
    ('國', '国'),
    ('學', '学'),
    ('惠', '恵'),
    ('瀨', '瀬'),
    ('眞', '真'),
    ('榮', '栄'),
    ('壽', '寿'),
    ('靜', '静'),
    ('淺', '浅'),
    ('淸', '清'),
    ('靑', '青'),
    ('緖', '緒'),
    ('栁', '柳'),
    ('舘', '館'),
    ('彌', '弥'),
    ('槇', '槙'),
];

/// A bit for the lowest byte of each variant. Few other kanji have one of these.
const LOWEST_BYTES: [u64; 4] = {
    let mut bits = [0; 4];
    let mut at = 0;
    while at < VARIANTS.len() {
        let byte = VARIANTS[at].0 as u8;
        bits[byte as usize / 64] |= 1 << (byte % 64);
        at += 1;
    }
    bits
};

/// The usual form of a kanji: most have no other.
pub(super) fn variant(char: char) -> char {
    let byte = u32::from(char).to_le_bytes()[0];
    let bits = LOWEST_BYTES.get(usize::from(byte / 64)).copied().unwrap_or_default();
    if bits >> (byte % 64) & 1 == 0 {
        return char;
    }
    VARIANTS.iter().find(|(variant, _)| *variant == char).map_or(char, |(_, usual)| *usual)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let cluster = super::super::words::cluster(rest);
            folded(cluster, &mut |char| out.push(char));
            rest = &rest[cluster.len()..];
        }
        out
    }

    // S-07: letters of three alphabets are found without their marks, and no others are.
    #[test]
    fn marks_are_left_out_where_people_leave_them_out() {
        for (text, expected) in [
            ("café cafe\u{301} CAFÉ", "cafe cafe cafe"),
            ("naïve résumé Ünïcode", "naive resume unicode"),
            ("Straße STRASSE STRAẞE", "strasse strasse strasse"),
            ("İstanbul ISTANBUL ıstanbul", "istanbul istanbul istanbul"),
            ("Łódź Søren Đà Nẵng Ærø", "lodz soren da nang aero"),
            ("Ὀδυσσεύς ΟΔΥΣΣΕΎΣ", "οδυσσευσ οδυσσευσ"),
            ("ё Ё й", "е е и"),
            ("1\u{fe0f}\u{20e3}", "1\u{fe0f}"),
            ("ガ カ\u{3099} ｶﾞ カ", "ガ ガ ガ カ"),
            ("ぱ は", "ぱ は"),
            ("한글 \u{1112}\u{1161}\u{11ab}", "한글 한"),
            ("हिन्दी", "हिन्दी"),
            ("ที่", "ที่"),
            ("שָׁלוֹם", "שָׁלוֹם"),
            ("髙橋 𠮷野 﨑", "高橋 吉野 崎"),
            ("oﬃce ﬁle", "office file"),
        ] {
            assert_eq!(shown(text), shown_nfc(expected), "{text}");
        }
    }

    fn shown_nfc(text: &str) -> String {
        text.nfkc().collect()
    }

    // S-07: what is folded once more does not change, so a query and a text are folded alike.
    #[test]
    fn folding_twice_changes_nothing() {
        for char in ('\0'..'\u{20000}').filter(|char| !is_combining_mark(*char)) {
            let once = shown(&char.to_string());
            assert_eq!(shown(&once), once, "{char} {:x}", u32::from(char));
        }
    }
}
