//! Selects a part of a JSON text by a JSON pointer (RFC 6901). The part keeps its original text, so that no number
//! loses digits.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::HashMap;

/// A pointer, by its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pointer(Vec<String>);

/// The value that a pointer leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Picked<'a> {
    /// A string, decoded.
    Text(String),
    /// Anything else, as it was sent.
    Json(&'a str),
    /// The pointer leads to no value.
    Nothing,
}

impl Pointer {
    /// Parses a pointer; `None` if it is invalid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(Self(Vec::new()));
        }
        let token = |token: &str| {
            let rest = token.replace("~0", "").replace("~1", "");
            (!rest.contains('~')).then(|| token.replace("~1", "/").replace("~0", "~"))
        };
        text.strip_prefix('/')?.split('/').map(token).collect::<Option<_>>().map(Self)
    }

    /// Looks up the part of `text`; `None` if that is no JSON.
    pub(super) fn pick<'a>(&self, text: &'a str) -> Option<Picked<'a>> {
        let mut value: &RawValue = serde_json::from_str(text).ok()?;
        for token in &self.0 {
            let found = match value.get().as_bytes().first() {
                Some(b'{') => {
                    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(value.get()).ok()?;
                    members.get(token.as_str()).copied()
                }
                Some(b'[') if is_index(token) => {
                    let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                    token.parse::<usize>().ok().and_then(|at| items.get(at).copied())
                }
                _ => None,
            };
            match found {
                Some(found) => value = found,
                None => return Some(Picked::Nothing),
            }
        }
        let text = value.get();
        Some(match text.starts_with('"') {
            true => Picked::Text(serde_json::from_str(text).ok()?),
            false => Picked::Json(text),
        })
    }
}

fn is_index(token: &str) -> bool {
    token == "0" || (!token.starts_with('0') && token.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: pointers lead where RFC 6901 says; numbers stay as they were sent.
    #[test]
    fn pointers() {
        let text = r#" {"a": {"b/c": [10, {"~": "x\u0041"}]}, "n": 12345678901234567890123.50, "": null, "é": "é"} "#;
        for (pointer, picked) in [
            ("/a/b~1c/0", Picked::Json("10")),
            ("/a/b~1c/1/~0", Picked::Text("xA".into())),
            ("/n", Picked::Json("12345678901234567890123.50")),
            ("/", Picked::Json("null")),
            ("/é", Picked::Text("é".into())),
            ("/a/b~1c/01", Picked::Nothing),
            ("/a/b~1c/-", Picked::Nothing),
            ("/a/b~1c/2", Picked::Nothing),
            ("/n/x", Picked::Nothing),
            ("/none", Picked::Nothing),
        ] {
            assert_eq!(Pointer::parse(pointer).unwrap().pick(text).unwrap(), picked, "{pointer}");
        }
        assert_eq!(Pointer::parse("").unwrap().pick(" [1] "), Some(Picked::Json("[1]")));
        assert_eq!(Pointer::parse("/a").unwrap().pick("{"), None);
        assert_eq!(Pointer::parse("a"), None);
        assert_eq!(Pointer::parse("/~2"), None);
        let deep = "[".repeat(100_000);
        assert_eq!(Pointer::parse("/0").unwrap().pick(&deep), None);
    }
}
