//! Headers of an HTTP request, for handlers.
//!
//! Law: every request pays for the copy, so headers are parsed only when a handler asks for them.

use crate::base64;
use std::borrow::Cow;
use std::fmt;

/// The headers of an HTTP request, except those with credentials (`Authorization`, `Cookie`, `Proxy-Authorization`).
/// All are chosen by the client or a proxy; none is verified.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Headers {
    /// For each line: the lengths of name and value, then both texts.
    lines: Vec<u8>,
}

/// The position of a header's value in [`Headers`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueRange {
    start: u32,
    end: u32,
}

/// The size of the two lengths of a line, in bytes.
const LENGTHS: usize = 8;

impl Headers {
    /// Empty, with capacity for `lines` lines whose names and values have `size` bytes in total.
    pub(crate) fn with_room(lines: usize, size: usize) -> Self {
        Self { lines: Vec::with_capacity(lines.saturating_mul(LENGTHS).saturating_add(size)) }
    }

    /// Adds a line and returns the position of its value. `None` if it contains credentials, or would exceed 4 GiB.
    pub(crate) fn push(&mut self, name: &str, value: &[u8]) -> Option<ValueRange> {
        if is_secret(name) {
            return None;
        }
        let start = (self.lines.len() + LENGTHS).checked_add(name.len())?;
        let end = u32::try_from(start.checked_add(value.len())?).ok()?;
        let start = u32::try_from(start).ok()?;
        let lengths = (name.len() as u64) << 32 | value.len() as u64;
        self.lines.reserve(LENGTHS + name.len() + value.len());
        self.lines.extend_from_slice(&lengths.to_be_bytes());
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.extend_from_slice(value);
        Some(ValueRange { start, end })
    }

    /// The value at a position returned by [`Headers::push`].
    pub(crate) fn value(&self, place: ValueRange) -> &[u8] {
        self.lines.get(place.start as usize..place.end as usize).unwrap_or_default()
    }

    /// Lower-case names with their values, in the order of the request. Bytes that are not UTF-8 are replaced.
    pub fn iter(&self) -> impl Iterator<Item = (String, String)> {
        let mut rest = &*self.lines;
        std::iter::from_fn(move || {
            let (name_length, after) = length(rest)?;
            let (value_length, after) = length(after)?;
            let (name, after) = after.split_at_checked(name_length)?;
            let (value, after) = after.split_at_checked(value_length)?;
            rest = after;
            let text = |bytes| String::from_utf8_lossy(bytes);
            Some((text(name).to_ascii_lowercase(), text(value).trim_matches([' ', '\t']).to_owned()))
        })
    }

    /// The value of a header; its name may be in any case. Several values are joined with commas (RFC 9110, section
    /// 5.3).
    pub fn get(&self, name: &str) -> Option<String> {
        let found = self.iter().filter(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value).reduce(|all, value| format!("{all}, {value}"))
    }
}

/// Headers of a test, by name and value.
impl FromIterator<(String, String)> for Headers {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(lines: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in lines {
            headers.push(&name, value.as_bytes());
        }
        headers
    }
}

/// Encodes a text for a header that repeats a part of the body: unchanged if it can be sent so, else in base64.
pub fn encode_header_value(text: &str) -> Cow<'_, str> {
    let is_visible = text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~'));
    let is_trimmed = text.trim_matches([' ', '\t']) == text;
    if is_visible && is_trimmed && !(text.starts_with("=?base64?") && text.ends_with("?=")) {
        return Cow::Borrowed(text);
    }
    let mut encoded = Vec::new();
    base64::encode_into(text.as_bytes(), &mut encoded);
    Cow::Owned(format!("=?base64?{}?=", String::from_utf8_lossy(&encoded)))
}

/// Whether a header contains credentials, with which a handler could act as the client.
fn is_secret(name: &str) -> bool {
    match name.len() {
        6 => name.eq_ignore_ascii_case("cookie"),
        13 => name.eq_ignore_ascii_case("authorization"),
        19 => name.eq_ignore_ascii_case("proxy-authorization"),
        _ => false,
    }
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*length).try_into().ok()?, rest))
}

/// Shows names only, because values may be secrets.
impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-208.
    #[test]
    fn credentials_are_left_out() {
        let lines: [(&str, &[u8]); 6] = [
            ("X-Tenant", b" a "),
            ("Authorization", b"Bearer secret"),
            ("COOKIE", b"secret"),
            ("proxy-authorization", b"secret"),
            ("x-tenant", b"b"),
            ("X-Bytes", b"\xff"),
        ];
        let mut headers = Headers::default();
        let places = lines.map(|(name, value)| headers.push(name, value));
        let kept = places.map(|place| place.map(|place| headers.value(place)));
        assert_eq!(kept, [Some(&b" a "[..]), None, None, None, Some(b"b"), Some(b"\xff")]);
        assert_eq!(headers.get("X-TENANT").as_deref(), Some("a, b"));
        assert_eq!(headers.get("x-bytes").as_deref(), Some("\u{fffd}"));
        assert_eq!((headers.iter().count(), headers.get("cookie")), (3, None));
        assert_eq!(format!("{headers:?}"), r#"["x-tenant", "x-tenant", "x-bytes"]"#);
    }
}
