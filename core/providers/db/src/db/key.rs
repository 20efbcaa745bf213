//! Keys of rows in URIs: their values, separated by commas, such as `3` or `2,3`.
//!
//! ```text
//!  a text      its characters; `/` is ~2F, `,` is ~2C, other characters that a path may not hold likewise
//!  ~           NULL                      ~~      an empty text
//!  ~x0A1B      bytes                     ~t3     a text that would read as a number, where a number may stand
//!  ~u4DFC      a text that is not UTF-8
//!  ~7E         a tilde at the beginning of a text, or before two hexadecimal digits
//! ```
//!
//! Law: a key has one spelling. A row is served under that one only: others that the database takes for the same value,
//! such as `03`, are not found, so they cannot bypass the guard.

use super::value::DbValue;
use mcp_resources_engine::guard;
use mcp_resources_provider_kit::path;
use mcp_resources_template::uri::hex_pair;
use std::fmt::Write;

/// The possible values of a key's column, which decide how its text is parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Affinity {
    /// All that is not NULL or bytes is a text.
    Text,
    /// Numbers, and texts that are none.
    Number,
    /// Whole numbers alone.
    Integer,
}

/// The text of a key, before it is percent-encoded.
pub(super) fn encode(values: &[DbValue], affinity: impl Fn(usize) -> Affinity) -> String {
    let all = |is_strict: bool| {
        let values = values.iter().enumerate();
        values.map(|(at, value)| encode_value(value, affinity(at), is_strict)).collect::<Vec<_>>().join(",")
    };
    let text = all(false);
    let mut whole = String::from("db:///-/-/");
    path::append(&mut whole, &text);
    // What looks like a drive, or like an encoded separator, would be hidden.
    if guard::is_harmless(&whole) { text } else { all(true) }
}

/// Decodes the values of a key; `None` if a text is not UTF-8 or a number is invalid.
pub(super) fn decode(text: &str, affinity: impl Fn(usize) -> Affinity) -> Option<Vec<DbValue>> {
    text.split(',').enumerate().map(|(at, token)| read(token, affinity(at))).collect()
}

/// Decodes the beginning of a value's text.
pub(super) fn decode_prefix(text: &str) -> Option<String> {
    read_text(text)
}

fn encode_value(value: &DbValue, affinity: Affinity, is_strict: bool) -> String {
    match value {
        DbValue::Null => "~".into(),
        DbValue::Bool(truth) => truth.to_string(),
        DbValue::Integer(whole) => whole.to_string(),
        DbValue::Real(number) => format!("{number:?}"),
        DbValue::Single(number) => format!("{number:?}"),
        DbValue::Blob(bytes) => encode_bytes("~x", bytes),
        DbValue::OddText(bytes) => encode_bytes("~u", bytes),
        DbValue::Text(text) | DbValue::Json(text) if text.is_empty() => "~~".into(),
        DbValue::Text(text) | DbValue::Json(text) => {
            let prefix = if affinity != Affinity::Text && number(text).is_some() { "~t" } else { "" };
            format!("{prefix}{}", encode_text(text, is_strict))
        }
    }
}

fn encode_bytes(prefix: &str, bytes: &[u8]) -> String {
    bytes.iter().fold(prefix.into(), |mut text, byte| {
        let _ = write!(text, "{byte:02X}");
        text
    })
}

fn encode_text(text: &str, is_strict: bool) -> String {
    if is_strict {
        let mut encoded = String::with_capacity(3 * text.len());
        for byte in text.bytes() {
            match byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
                true => encoded.push(char::from(byte)),
                false => drop(write!(encoded, "~{byte:02X}")),
            }
        }
        return encoded;
    }
    let encoded = path::text(text.as_bytes()).replace(',', "~2C");
    match encoded.strip_prefix('~') {
        Some(rest) if text.starts_with('~') && !rest.starts_with("7E") => format!("~7E{rest}"),
        _ => encoded,
    }
}

fn read(token: &str, affinity: Affinity) -> Option<DbValue> {
    match token {
        "~" => return Some(DbValue::Null),
        "~~" => return Some(DbValue::Text(String::new())),
        _ => {}
    }
    if let Some(digits) = token.strip_prefix("~x") {
        return read_bytes(digits).map(DbValue::Blob);
    }
    if let Some(digits) = token.strip_prefix("~u") {
        return read_bytes(digits).map(DbValue::OddText);
    }
    if let Some(text) = token.strip_prefix("~t") {
        return read_text(text).map(DbValue::Text);
    }
    match affinity {
        Affinity::Text => read_text(token).map(DbValue::Text),
        Affinity::Number => number(token).or_else(|| read_text(token).map(DbValue::Text)),
        Affinity::Integer => number(token).filter(|value| matches!(value, DbValue::Integer(_))),
    }
}

fn read_bytes(digits: &str) -> Option<Vec<u8>> {
    (0..digits.len()).step_by(2).map(|at| hex_pair(digits.as_bytes().get(at..)?)).collect()
}

/// The number that is written exactly so.
fn number(text: &str) -> Option<DbValue> {
    if let Some(whole) = text.parse::<i64>().ok().filter(|whole| whole.to_string() == text) {
        return Some(DbValue::Integer(whole));
    }
    text.parse::<f64>().ok().filter(|number| format!("{number:?}") == text).map(DbValue::Real)
}

/// A text without its escapes.
fn read_text(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let pair = if byte == b'~' { hex_pair(&bytes[at + 1..]) } else { None };
        out.push(pair.unwrap_or(byte));
        at += if pair.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: compound keys, and keys with slashes, commas, tildes and NULL, have one spelling each, and are read as they were.
    #[test]
    fn keys_are_read_as_they_were_written() {
        let text = |text: &str| DbValue::Text(text.into());
        for (values, affinity, expected) in [
            (vec![DbValue::Integer(3)], Affinity::Integer, "3"),
            (vec![DbValue::Integer(-2), DbValue::Integer(3)], Affinity::Integer, "-2,3"),
            (vec![text("a/b"), text("c,d")], Affinity::Text, "a~2Fb,c~2Cd"),
            (vec![text("~"), text("~~"), text("~2F"), text("a~10")], Affinity::Text, "~7E,~7E~,~7E2F,a~7E10"),
            (vec![text("HEAD~1")], Affinity::Text, "HEAD~1"),
            (vec![DbValue::Null, text("")], Affinity::Number, "~,~~"),
            (vec![DbValue::Blob(vec![10, 255])], Affinity::Number, "~x0AFF"),
            (vec![DbValue::OddText(vec![0x4D, 0xFC])], Affinity::Text, "~u4DFC"),
            (vec![text("~x0A"), text("~t")], Affinity::Text, "~7Ex0A,~7Et"),
            (vec![text("3"), DbValue::Integer(3), text("03")], Affinity::Number, "~t3,3,03"),
            (vec![text("3")], Affinity::Text, "3"),
            (vec![DbValue::Real(1.5), DbValue::Real(3.0)], Affinity::Number, "1.5,3.0"),
            (vec![text(".."), text(".")], Affinity::Text, "~2E~2E,~2E"),
            (vec![text("検索 a%b?#")], Affinity::Text, "検索 a%b?#"),
            (vec![text("\\\n")], Affinity::Text, "~5C~0A"),
        ] {
            let written = encode(&values, |_| affinity);
            assert_eq!(written, expected);
            assert_eq!(decode(&written, |_| affinity), Some(values));
        }
        for (wrong, affinity) in [
            ("~x0", Affinity::Text),
            ("~FF", Affinity::Text),
            ("a", Affinity::Integer),
            ("03", Affinity::Integer),
        ] {
            assert_eq!(decode(wrong, |_| affinity), None, "{wrong}");
        }
    }

    // S-20: no key is hidden by its own spelling.
    #[test]
    fn every_key_is_harmless() {
        for odd in ["C:", "%2F", "%252e%252e", "a%5Cb", "..", "%00", "a:b/c"] {
            for values in
                [vec![DbValue::Text(odd.into())], vec![DbValue::Text(odd.into()), DbValue::Integer(1)]]
            {
                let mut uri = String::from("db:///a/b/");
                let written = encode(&values, |_| Affinity::Text);
                path::append(&mut uri, &written);
                assert!(guard::is_harmless(&uri), "{uri}");
                let read = decode(&written, |at| if at == 0 { Affinity::Text } else { Affinity::Integer });
                assert_eq!(read, Some(values), "{uri}");
            }
        }
    }
}
