//! A JSON value as its source text: validated once, parsed lazily, copied only if a string has escapes.

use std::borrow::Cow;

use crate::json_text::plain_end;

use super::id::Id;
use super::members::JsonMembers;
use super::scan::Scanner;

/// The text of one JSON value that is known to be valid, without white space around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'m>(&'m str);

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// A number, integer or not.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl<'m> Json<'m> {
    /// The value `null`.
    pub const NULL: Json<'static> = Json("null");

    /// Validates a text that is not part of a message. `None` if it is not one JSON value in UTF-8, is nested more than
    /// `nesting` deep, or has 4 GiB or more.
    pub fn parse(bytes: &'m [u8], nesting: usize) -> Option<Self> {
        let mut scanner = Scanner::new(simdutf8::basic::from_utf8(bytes).ok()?)?;
        let span = scanner.value(0).ok()?;
        scanner.end().ok()?;
        (scanner.deepest() <= nesting).then(|| Self(span.slice(scanner.text())))
    }

    /// Wraps `text` without validating it, because the scanner has accepted it.
    pub(super) fn trusted(text: &'m str) -> Self {
        Self(text)
    }

    /// The value's source text.
    pub fn raw(self) -> &'m str {
        self.0
    }

    /// The type of the value.
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b'"') => JsonKind::String,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// The value of `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == JsonKind::Bool).then_some(self.0 == "true")
    }

    /// The decoded text of a string, borrowed if it has no escapes. `None` for another type, and for a string with an
    /// unpaired surrogate escape, which no Unicode text can represent.
    pub fn as_str(self) -> Option<Cow<'m, str>> {
        if self.kind() == JsonKind::String { decode_string(self.0) } else { None }
    }

    /// Like [`Json::as_str`], but an unpaired surrogate escape becomes U+FFFD.
    pub fn as_lossy_str(self) -> Option<Cow<'m, str>> {
        let decoded = self.as_str();
        if decoded.is_some() || self.kind() != JsonKind::String {
            return decoded;
        }
        decode_string(&self.without_lone_surrogates()).map(|text| Cow::Owned(text.into_owned()))
    }

    /// The source text, in which each unpaired surrogate escape is replaced by that of U+FFFD.
    pub fn without_lone_surrogates(self) -> Cow<'m, str> {
        let text = self.0;
        // Most texts have no such escape at all.
        if !text.contains("\\ud") && !text.contains("\\uD") {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\\') {
            let (before, escape) = rest.split_at(at);
            out.push_str(before);
            let (kept, length) = match (surrogate(escape), escape.get(6..).and_then(surrogate)) {
                (None, _) => (escape.get(..2), 2),
                (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (escape.get(..12), 12),
                (Some(_), _) => (Some("\\ufffd"), 6),
            };
            out.push_str(kept.unwrap_or_default());
            rest = escape.get(length..).unwrap_or_default();
        }
        out.push_str(rest);
        Cow::Owned(out)
    }

    /// Whether this is the string `text`, which needs no escapes.
    pub(super) fn is_str(self, text: &str) -> bool {
        let inner = self.0.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        inner == Some(text) || self.as_str().is_some_and(|decoded| decoded == text)
    }

    /// A number written as an integer (no fraction, no exponent) within the range of `u64`.
    pub fn as_u64(self) -> Option<u64> {
        self.integer_text()?.parse().ok()
    }

    /// A number written as an integer (no fraction, no exponent) within the range of `i64`.
    pub fn as_i64(self) -> Option<i64> {
        self.integer_text()?.parse().ok()
    }

    /// A number as the nearest `f64`; `None` if that is infinite.
    pub fn as_f64(self) -> Option<f64> {
        if self.kind() != JsonKind::Number {
            return None;
        }
        self.0.parse().ok().filter(|number: &f64| number.is_finite())
    }

    /// The text of a number without fraction and exponent, of any size.
    pub(super) fn integer_text(self) -> Option<&'m str> {
        let is_integer = self.0.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        is_integer.then_some(self.0)
    }

    /// The members of an object.
    pub fn object(self) -> Option<JsonMembers<'m>> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        let mut members = JsonMembers::new(self.0);
        members.read(&mut Scanner::new(self.0)?, 1, usize::MAX).ok()?;
        Some(members)
    }

    /// The elements of an array, in order.
    pub fn array(self) -> Option<Elements<'m>> {
        if self.kind() != JsonKind::Array {
            return None;
        }
        let mut scanner = Scanner::new(self.0)?;
        let more = scanner.open(b'[', b']', 1).ok()?;
        Some(Elements { scanner, more })
    }
}

impl<'m> From<Id<'m>> for Json<'m> {
    fn from(id: Id<'m>) -> Self {
        Self(id.raw())
    }
}

/// The elements of a JSON array.
#[derive(Clone, Debug)]
pub struct Elements<'m> {
    scanner: Scanner<'m>,
    more: bool,
}

impl<'m> Iterator for Elements<'m> {
    type Item = Json<'m>;

    fn next(&mut self) -> Option<Json<'m>> {
        if !self.more {
            return None;
        }
        let span = self.scanner.value(1).ok()?;
        self.more = self.scanner.more(b']').ok()?;
        Some(Json(span.slice(self.scanner.text())))
    }
}

/// The surrogate whose escape is at the beginning of `text`.
fn surrogate(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..=0xDFFF).contains(unit))
}

/// Decodes a string literal, quotes included.
pub(super) fn decode_string(quoted: &str) -> Option<Cow<'_, str>> {
    // A string contains no control character, so only a backslash ends the run before the closing quote.
    if plain_end(quoted.as_bytes(), 1) + 1 == quoted.len() {
        return quoted.get(1..quoted.len() - 1).map(Cow::Borrowed);
    }
    serde_json::from_str::<String>(quoted).ok().map(Cow::Owned)
}
