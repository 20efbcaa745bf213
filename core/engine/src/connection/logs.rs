//! Log notifications; apparent credentials are replaced.

use super::event::LogLevel;
use super::response;
use serde_json::Value;

const BLOT: &str = "[redacted]";

/// Names of members whose values are credentials.
const SECRET_NAMES: [&str; 9] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "authorization",
    "access_token",
    "api_key",
    "apikey",
    "private_key",
];

/// Schemes of the `Authorization` header: the word after one of them in a text is a credential.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];

/// A log notification. `data` is JSON text; anything else is sent as a string.
pub(super) fn message(level: LogLevel, logger: Option<&str>, data: &str) -> Vec<u8> {
    let mut data = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
    redact(&mut data);
    let mut out = Vec::new();
    response::notification(&mut out, "notifications/message", |params| {
        params.str("level", level.as_str());
        if let Some(logger) = logger {
            params.str("logger", logger);
        }
        params.value("data").extend_from_slice(data.to_string().as_bytes());
    });
    out
}

fn redact(value: &mut Value) {
    match value {
        Value::String(text) => redact_text(text),
        Value::Array(items) => items.iter_mut().for_each(redact),
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                if is_secret_name(name) { *member = Value::from(BLOT) } else { redact(member) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a member or a form field of this name holds a credential.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    SECRET_NAMES.iter().any(|secret| name.contains(secret))
}

fn redact_text(text: &mut String) {
    for scheme in SCHEMES {
        let mut from = 0;
        while let Some(at) = find_ignoring_case(text, scheme, from) {
            let start = at + scheme.len();
            let end = text[start..].find(|c: char| !is_token(c)).map_or(text.len(), |length| start + length);
            from = start;
            // A shorter word, as in "basic idea", is unlikely to be a credential.
            if end - start >= 8 {
                text.replace_range(start..end, BLOT);
                from += BLOT.len();
            }
        }
    }
}

fn find_ignoring_case(text: &str, word: &str, from: usize) -> Option<usize> {
    let text = text.as_bytes();
    let word = word.as_bytes();
    let found = text.get(from..)?.windows(word.len()).position(|window| window.eq_ignore_ascii_case(word))?;
    Some(from + found)
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/=".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(data: &str) -> Value {
        let line: Value = serde_json::from_slice(&message(LogLevel::Info, None, data)).unwrap();
        line["params"]["data"].clone()
    }

    #[test]
    fn credentials_are_blotted_out_r_123() {
        let data = r#"{"header":"Authorization: Bearer abc.DEF-123456","user":{"Password":"x"},"n":1}"#;
        let expected = serde_json::json!({
            "header": "Authorization: Bearer [redacted]", "user": {"Password": "[redacted]"}, "n": 1
        });
        assert_eq!(logged(data), expected);
    }

    #[test]
    fn ordinary_words_stay() {
        assert_eq!(logged(r#""a basic idea, the bearer of news""#), "a basic idea, the bearer of news");
        assert_eq!(logged("not json"), "not json");
    }
}
