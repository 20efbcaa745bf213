//! Text of a peer, made safe for a terminal and for a message.
//!
//! Law: what [`is_unsafe`] names never reaches a terminal. Everything that shows a peer's text uses this table.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character can move the cursor, start an escape sequence, hide text, or change its direction: C0 (but line
/// feeds and tabs), DEL, C1, line and paragraph separators, bidirectional controls, tags, and invisible format characters.
pub fn is_unsafe(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns `text` with the characters that `is_unsafe` selects written as `\n`, `\t`, `\r`, `\x1b` or `\u{202e}`.
pub fn escape(text: &str, is_unsafe: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !is_unsafe(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\t' => safe.push_str("\\t"),
            '\r' => safe.push_str("\\r"),
            // Writing to a string cannot fail.
            c if c.is_ascii() => drop(write!(safe, "\\x{:02x}", u32::from(c))),
            c => drop(write!(safe, "\\u{{{:x}}}", u32::from(c))),
        }
    }
    Cow::Owned(safe)
}

/// Returns a JSON text with its unsafe characters written as JSON escapes, so that it stays the same value. Line feeds
/// and tabs between tokens are kept.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_unsafe) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            // JSON allows no other control character outside a string than this, and none inside.
            '\r' => safe.push(' '),
            c if is_unsafe(c) => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    // Writing to a string cannot fail.
                    let _ = write!(safe, "\\u{unit:04x}");
                }
            }
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Shortens a peer's text to `limit` characters of one line, for a message: unsafe characters are left out, line feeds
/// and tabs become spaces.
pub fn shortened(text: &str, limit: usize) -> String {
    let mut chars = text.chars().filter(|c| !is_unsafe(*c));
    let mut short: String =
        chars.by_ref().take(limit).map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c }).collect();
    if chars.next().is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_the_same_value_and_is_safe() {
        for text in ["plain é 漢 🦀", "\u{1b}[2J\u{9b}\u{7f}\u{202e}\u{e0041}\u{feff}\n\t\"\\", "\r"] {
            let json = serde_json::to_string(text).unwrap();
            let safe = escape_json(&json);
            assert!(!safe.contains(is_unsafe), "{safe:?}");
            assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        }
    }

    #[test]
    fn a_message_is_one_short_line() {
        assert_eq!(shortened("a\u{1b}[2J\u{202e}\nb\tc", 9), "a[2J b c");
        assert_eq!(shortened("abcdef", 3), "abc…");
        assert_eq!(shortened("abc\u{1b}", 3), "abc");
    }
}
