//! The id of a message that is too large to be read: it is among the members at one of the two ends of its line.
//!
//! Law: nothing is guessed. For valid JSON the id that is found is the message's own; otherwise there is none, or the
//! client has sent something that is no JSON.

use super::id::Id;
use super::json::Json;

/// Both ends of a line longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OversizedLine<'l> {
    head: &'l [u8],
    tail: &'l [u8],
}

impl<'l> OversizedLine<'l> {
    /// The first and the last bytes of a line, without its end.
    pub fn new(head: &'l [u8], tail: &'l [u8]) -> Self {
        Self { head, tail }
    }

    /// The id of the request; `None` for a batch, a notification, what is no JSON, and an id that is neither near the
    /// beginning nor near the end.
    pub fn id(self) -> Option<Id<'l>> {
        let start = self.head.trim_ascii_start().strip_prefix(b"{")?;
        let (id, rest) = leading(start);
        // A number at the end of what was kept may have more digits.
        id.filter(|_| !rest.is_empty()).or_else(|| self.id_at_end())
    }

    /// The closing brace at the end is that of the message, so the members before it are the message's.
    fn id_at_end(self) -> Option<Id<'l>> {
        let members = self.tail.trim_ascii_end().strip_suffix(b"}")?;
        let at = memchr::memmem::rfind(members, b"\"id\"")?;
        let (before, members) = members.split_at(at);
        let is_member = matches!(before.trim_ascii_end().last(), Some(b',' | b'{'));
        match leading(members) {
            (id, rest) if is_member && rest.trim_ascii().is_empty() => id,
            _ => None,
        }
    }
}

/// The id among the members at the beginning of `text` that are texts, numbers or words, and what follows the last of these.
fn leading(text: &[u8]) -> (Option<Id<'_>>, &[u8]) {
    let mut id = None;
    let mut rest = text;
    let mut next = text;
    while let Some((name, after)) = scalar(next.trim_ascii_start()) {
        let Some(value) = after.trim_ascii_start().strip_prefix(b":") else { break };
        let Some((value, after)) = scalar(value.trim_ascii_start()) else { break };
        rest = after.trim_ascii_start();
        if name == b"\"id\"" {
            id = Json::parse(value, 1).and_then(Id::from_json);
        }
        let Some(after) = rest.strip_prefix(b",") else { break };
        next = after;
    }
    (id, rest)
}

/// A text, number or word at the beginning of `text`, and what follows it; `None` if it does not end there.
fn scalar(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let is_text = text.first() == Some(&b'"');
    let length = if is_text {
        let mut is_escaped = false;
        let inner = text.get(1..)?.iter().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        });
        inner? + 2
    } else {
        text.iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !b"+-.".contains(byte))
            .unwrap_or(text.len())
    };
    (length > 0).then(|| text.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-153: the id is that of the message, whatever was kept of it.
    #[test]
    fn the_id_is_that_of_the_message() {
        for (head, tail, id) in [
            (r#"{"id":12,"#, "", Some("12")),
            // There may be more digits.
            (r#"{"id":12"#, "", None),
            (r#"{"jsonrpc":"2.0","id":"a\"b","params":{"x"#, "", Some(r#""a\"b""#)),
            (r#"{"method":"m","params":{"id":5,"x":"#, r#"xx","id":6}}"#, None),
            (r#"{"method":"m","params":{"x"#, r#"x"},"id":7,"jsonrpc":"2.0"}"#, Some("7")),
            (r#"{"params":{"x"#, r#"x"} , "id" : 7 } "#, Some("7")),
            (r#"[{"id":1,"x"#, r#"x"},{"id":2}]"#, None),
            (r#"{"params":"x"#, r#"x\"id\":7}"}"#, None),
            (r#"{"id":null,"x"#, "", None),
            ("xxx", "xxx", None),
        ] {
            let found = OversizedLine::new(head.as_bytes(), tail.as_bytes()).id();
            assert_eq!(found.map(Id::raw), id, "{head} … {tail}");
        }
    }
}
