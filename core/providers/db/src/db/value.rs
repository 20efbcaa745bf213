//! Values of a row, and their JSON.
//!
//! Law: whole numbers are exact. What JSON has no form for is a text; bytes are an object with the one member `base64`.

use mcp_resources_engine::{base64, json_text};
use std::io::Write;

/// Maximum nesting of JSON from the database that is served as JSON; deeper JSON is served as text, because readers
/// have limits.
const DEEPEST: usize = 64;

/// One value of a database.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DbValue {
    /// NULL.
    Null,
    Bool(bool),
    Integer(i64),
    Real(f64),
    /// With fewer digits than `Real`.
    Single(f32),
    Text(String),
    /// A text of SQLite that is not UTF-8. Served as bytes, but ordered among the texts.
    OddText(Vec<u8>),
    Blob(Vec<u8>),
    /// JSON as the database writes it.
    Json(String),
}

impl DbValue {
    /// Appends it as JSON.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            // Writing to memory does not fail.
            Self::Integer(whole) => drop(write!(out, "{whole}")),
            Self::Real(number) => write_number(&format!("{number:?}"), number.is_finite(), out),
            Self::Single(number) => write_number(&format!("{number:?}"), number.is_finite(), out),
            Self::Text(text) => json_text::escape_into(text, out),
            Self::Blob(bytes) | Self::OddText(bytes) => {
                out.extend_from_slice(b"{\"base64\":\"");
                base64::encode_into(bytes, out);
                out.extend_from_slice(b"\"}");
            }
            Self::Json(text) if is_shallow_json(text) => out.extend_from_slice(text.as_bytes()),
            Self::Json(text) => json_text::escape_into(text, out),
        }
    }
}

fn write_number(text: &str, is_finite: bool, out: &mut Vec<u8>) {
    match (is_finite, text) {
        (true, _) => out.extend_from_slice(text.as_bytes()),
        (false, "inf") => out.extend_from_slice(b"\"Infinity\""),
        (false, "-inf") => out.extend_from_slice(b"\"-Infinity\""),
        (false, _) => out.extend_from_slice(b"\"NaN\""),
    }
}

/// Whether a text is JSON that every reader reads.
fn is_shallow_json(text: &str) -> bool {
    let mut depth = 0_usize;
    let mut max = 0;
    let mut is_text = false;
    let mut is_escaped = false;
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_text,
            b'"' => is_text = !is_text,
            b'[' | b'{' if !is_text => {
                depth += 1;
                max = max.max(depth);
            }
            b']' | b'}' if !is_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max <= DEEPEST && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &DbValue) -> String {
        let mut out = Vec::new();
        value.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    // S-20: every value has one form in JSON, and whole numbers of 64 bits are exact.
    #[test]
    fn values_are_json() {
        for (value, expected) in [
            (DbValue::Null, "null"),
            (DbValue::Bool(true), "true"),
            (DbValue::Integer(i64::MAX), "9223372036854775807"),
            (DbValue::Integer(i64::MIN), "-9223372036854775808"),
            (DbValue::Real(0.1), "0.1"),
            (DbValue::Real(1e300), "1e300"),
            (DbValue::Real(3.0), "3.0"),
            (DbValue::Single(0.1), "0.1"),
            (DbValue::Real(f64::NAN), "\"NaN\""),
            (DbValue::Real(f64::NEG_INFINITY), "\"-Infinity\""),
            (DbValue::Text("a\"\n\u{0}検".into()), "\"a\\\"\\n\\u0000検\""),
            (DbValue::Blob(vec![0, 1, 2]), "{\"base64\":\"AAEC\"}"),
            (DbValue::Json("{\"a\": [1, \"]\"]}".into()), "{\"a\": [1, \"]\"]}"),
            (DbValue::Json("{\"a\": ".into()), "\"{\\\"a\\\": \""),
        ] {
            assert_eq!(json(&value), expected);
        }
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(json(&DbValue::Json(deep.clone())), format!("\"{deep}\""));
    }
}
