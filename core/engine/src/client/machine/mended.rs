//! Messages that break a rule of JSON-RPC, and are clear all the same: an answer that is not used is an
//! answer that its caller waits for in vain.
//!
//! Law: only the text of one message is changed, never its meaning for another request; the changed text is decoded like
//! any other. What stays unclear is ignored, and named by the time-outs of the requests that were waiting then.

use super::{Effects, Machine};
use crate::client::Effect;
use crate::client::decode::shown;
use crate::jsonrpc::{Decoded, Json, JsonKind, decode, object};
use crate::now::Now;
use std::borrow::Cow;

/// Maximum number of times that the lines of one message are parsed together.
const TRIES: u32 = 16;
/// The byte-order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of a message that is written over several lines.
#[derive(Debug, Default)]
pub(super) struct BrokenLines {
    text: Vec<u8>,
    tries: u32,
}

impl BrokenLines {
    pub(super) fn clear(&mut self) {
        // Frees the memory too: a message may be long.
        if !self.text.is_empty() {
            *self = Self::default();
        }
    }

    /// Adds a line that is no message. Returns the lines so far if they may be a whole message.
    fn add(&mut self, line: &[u8], limit: usize) -> Option<Vec<u8>> {
        let is_first = self.text.is_empty();
        if is_first && line.trim_ascii() != b"{" {
            return None;
        }
        if self.text.len().saturating_add(line.len()) >= limit {
            self.clear();
            return None;
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        // Programs that indent JSON do not indent its last line.
        if is_first || line.trim_ascii_end() != b"}" {
            return None;
        }
        self.tries += 1;
        let text = self.text.clone();
        if self.tries >= TRIES {
            self.clear();
        }
        Some(text)
    }
}

impl Machine {
    /// Handles a message that breaks a rule by its meaning, if that is clear.
    pub(super) fn mend(&mut self, bytes: &[u8], now: Now, out: &mut Effects) {
        if !self.is_testing {
            if self.handle_mended(bytes, now, out) {
                return self.broken_lines.clear();
            }
            let lines = self.broken_lines.add(bytes, self.reader.limits.message);
            if lines.is_some_and(|lines| {
                self.handle_whole(&lines, now, out) || self.handle_mended(&lines, now, out)
            }) {
                return self.broken_lines.clear();
            }
        }
        let start = String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes));
        let note = format!("a message that is not JSON-RPC: {}", shown(&start));
        // The first line says more of a message over several lines than the last.
        if self.last_unusable.as_ref().is_none_or(|_| start.trim().len() > 1) {
            self.last_unusable = Some((now.tick, note.clone()));
        }
        out.push(Effect::Noted(format!("ignored: {note}")));
    }

    fn handle_whole(&mut self, text: &[u8], now: Now, out: &mut Effects) -> bool {
        match decode(text, &self.decode_limits()) {
            Decoded::Message(message) => {
                out.push(Effect::Noted("a message is written over several lines".into()));
                self.message(message, now, out);
                true
            }
            _ => false,
        }
    }

    fn handle_mended(&mut self, bytes: &[u8], now: Now, out: &mut Effects) -> bool {
        let Some(mended) = mended(bytes, self.reader.limits.nesting) else { return false };
        match decode(&mended, &self.decode_limits()) {
            Decoded::Message(message) => {
                let start = String::from_utf8_lossy(bytes.get(..80).unwrap_or(bytes));
                out.push(Effect::Noted(format!(
                    "a message breaks a rule of JSON-RPC, and is used all the same: {}",
                    shown(&start)
                )));
                self.message(message, now, out);
                true
            }
            _ => false,
        }
    }
}

/// The text of a message as it is meant; `None` if that is unclear.
fn mended(bytes: &[u8], nesting: usize) -> Option<Vec<u8>> {
    let bytes = bytes.strip_prefix(MARK).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    let text = match Json::parse(text.as_bytes(), usize::MAX) {
        Some(_) => text,
        None => Cow::Owned(without_nan(&text)),
    };
    // The message and its params are around what the limit is for.
    let message = Json::parse(text.as_bytes(), nesting.saturating_add(2))?.object()?;
    let names = ["id", "method", "params", "result", "error"];
    if names.iter().any(|name| message.iter().filter(|(own, _)| own == name).count() > 1) {
        return None;
    }
    let given = message.pick(names).map(|value| value.filter(|value| value.kind() != JsonKind::Null));
    let [id, method, params, result, error] = given;
    let is_right_version = |version: Json<'_>| version.as_str().as_deref() == Some("2.0");
    let mut mended = Vec::with_capacity(text.len());
    match method {
        // Only the version of an answer may be missing: a log line in JSON must not be taken for a request.
        Some(method) => {
            message.get("jsonrpc").filter(|version| is_right_version(*version))?;
            object(&mut mended, |writer| {
                writer.str("jsonrpc", "2.0");
                writer.raw("method", method);
                if let Some(id) = id {
                    writer.raw("id", id);
                }
                if let Some(params) = params {
                    writer.raw("params", params);
                }
            });
        }
        None => {
            message.get("jsonrpc").is_none_or(is_right_version).then_some(())?;
            // A result of null is a result.
            let result = result.or_else(|| message.get("result").filter(|_| error.is_none()));
            let (name, value) =
                error.map(|error| ("error", error)).or(result.map(|result| ("result", result)))?;
            let id = request_id(id?)?;
            object(&mut mended, |writer| {
                writer.str("jsonrpc", "2.0");
                writer.u64("id", id);
                writer.raw(name, value);
            });
        }
    }
    Some(mended)
}

/// The id of a request of ours in any notation: `7`, `"7"`, `7.0`.
fn request_id(id: Json<'_>) -> Option<u64> {
    let number = id.raw().trim_matches('"');
    let whole = number
        .split_once('.')
        .map_or(number, |(whole, rest)| if rest.bytes().all(|digit| digit == b'0') { whole } else { number });
    whole.parse().ok()
}

/// `text` with `null` in the place of the numbers that JSON does not have, and some encoders write.
fn without_nan(text: &str) -> String {
    const NUMBERS: [&str; 3] = ["NaN", "-Infinity", "Infinity"];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_string = false;
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let number = NUMBERS.iter().find(|number| !in_string && found.starts_with(**number));
        let length = match (number, found.as_bytes().first()) {
            (Some(number), _) => {
                out.push_str("null");
                number.len()
            }
            (None, Some(b'\\')) => {
                let escape = found.char_indices().nth(2).map_or(found.len(), |(end, _)| end);
                out.push_str(found.get(..escape).unwrap_or_default());
                escape
            }
            (None, first) => {
                in_string ^= first == Some(&b'"');
                out.push_str(found.get(..1).unwrap_or_default());
                1
            }
        };
        rest = found.get(length..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(message: &str) -> Option<String> {
        mended(message.as_bytes(), 8).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn what_is_clear_is_mended() {
        for (message, expected) in [
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            ),
            (
                r#"{"id":1,"result":null,"error":{"code":1}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#,
            ),
            (r#"{"jsonrpc":"2.0","id":"7","result":null}"#, r#"{"jsonrpc":"2.0","id":7,"result":null}"#),
            (r#"{"jsonrpc":"2.0","id":7.0,"result":{}}"#, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#),
            (
                r#"{"jsonrpc":"2.0","id":1,"result":{"a":NaN,"b":[-Infinity,Infinity,-1],"NaN":"NaN \"NaN"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{"a":null,"b":[null,null,-1],"NaN":"NaN \"NaN"}}"#,
            ),
            (
                "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}",
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":null,"method":"a/b","params":null}"#,
                r#"{"jsonrpc":"2.0","method":"a/b"}"#,
            ),
        ] {
            assert_eq!(text(message).as_deref(), Some(expected), "{message}");
        }
        let latin = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"caf\xe9\"}";
        assert!(String::from_utf8(mended(latin, 8).unwrap()).unwrap().contains("caf\u{fffd}"));
    }

    #[test]
    fn what_is_unclear_is_left() {
        for message in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"level":"info","msg":"listening"}"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":null,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":[1],"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":[[[[[[[[[[[[]]]]]]]]]]]]}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":NAN}"#,
            "Server started: NaN",
        ] {
            assert_eq!(text(message), None, "{message}");
        }
    }
}
