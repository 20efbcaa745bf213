//! Request ids: a string or an integer of any size, echoed byte for byte, compared by value.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use super::json::{Json, JsonKind};

/// The id of a request, as the peer wrote it.
///
/// Two ids are equal if they are the same JSON value: strings are compared by their decoded text, integers by their
/// digits (`-0` is `0`), and a string never equals an integer. A string with a lone surrogate is compared as it is
/// written.
#[derive(Clone, Copy, Debug)]
pub struct Id<'m>(Json<'m>);

impl<'m> Id<'m> {
    /// `None` unless `json` is a string or a number without fraction and exponent.
    pub fn from_json(json: Json<'m>) -> Option<Self> {
        (json.kind() == JsonKind::String || json.integer_text().is_some()).then_some(Self(json))
    }

    /// The id exactly as it was written, with quotes, for the answer.
    pub fn raw(self) -> &'m str {
        self.0.raw()
    }

    /// A hash: the same for equal ids, rarely the same for others unless they were chosen to collide.
    pub(crate) fn digest(self) -> u64 {
        let text = self.canonical();
        let tail = text.as_bytes().rchunks(8).next().unwrap_or_default();
        tail.iter().fold(text.len() as u64, |sum, byte| sum << 8 | u64::from(*byte))
    }

    /// A text that is the same for equal ids and differs for others, for use as a key.
    pub fn canonical(self) -> Cow<'m, str> {
        let raw = self.raw();
        if raw == "-0" {
            return Cow::Borrowed("0");
        }
        match self.0.as_str() {
            // Only a string with escapes has several notations.
            Some(Cow::Owned(text)) => {
                let mut out = Vec::new();
                crate::json_text::escape_into(&text, &mut out);
                String::from_utf8(out).map_or(Cow::Borrowed(raw), Cow::Owned)
            }
            _ => Cow::Borrowed(raw),
        }
    }
}

impl PartialEq for Id<'_> {
    fn eq(&self, other: &Id<'_>) -> bool {
        self.raw() == other.raw() || self.canonical() == other.canonical()
    }
}

impl Eq for Id<'_> {}

impl Hash for Id<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical().hash(state);
    }
}

/// An id that outlives its message.
#[derive(Clone, Debug)]
pub struct OwnedId(Box<str>);

impl OwnedId {
    /// Borrows the id.
    pub fn as_id(&self) -> Id<'_> {
        Id(Json::trusted(&self.0))
    }
}

impl From<Id<'_>> for OwnedId {
    fn from(id: Id<'_>) -> Self {
        Self(id.raw().into())
    }
}

impl From<u64> for OwnedId {
    /// The id of a request by the server (the caller never repeats one).
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl PartialEq for OwnedId {
    fn eq(&self, other: &Self) -> bool {
        self.as_id() == other.as_id()
    }
}

impl Eq for OwnedId {}

impl Hash for OwnedId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_id().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(raw: &str) -> Option<OwnedId> {
        Json::parse(raw.as_bytes(), 1).and_then(Id::from_json).map(OwnedId::from)
    }

    // R-002
    #[test]
    fn strings_and_integers_only() {
        for raw in [r#""""#, r#""1""#, "1", "0", "-1", "9007199254740993", "123456789012345678901234567890"] {
            assert_eq!(id(raw).expect(raw).as_id().raw(), raw);
        }
        for raw in ["null", "true", "1.5", "1.0", "1e3", "1E3", "[]", "{}"] {
            assert!(id(raw).is_none(), "{raw}");
        }
    }

    // R-003
    #[test]
    fn equal_by_json_value() {
        for (a, b, equal) in [
            ("1", r#""1""#, false),
            ("0", "-0", true),
            (r#""a""#, r#""\u0061""#, true),
            (r#""\n""#, r#""\u000a""#, true),
            (r#""\/""#, r#""/""#, true),
            (r#""007""#, r#""7""#, false),
            (r#""\ud800""#, r#""\ud801""#, false),
        ] {
            let a = id(a).unwrap();
            let b = id(b).unwrap();
            assert_eq!(a == b, equal, "{a:?} {b:?}");
            assert_eq!(a.as_id().canonical() == b.as_id().canonical(), equal);
        }
    }
}
