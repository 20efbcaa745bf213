//! `_meta`: the keys of the protocol and of this library, and the rules for all other keys.

use crate::jsonrpc::Json;
use std::fmt;

/// The revision of a modern request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The capabilities of a modern request's client.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The client of a modern request: unverified, for display and logs only.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least severe level of log messages that a modern request asks for.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The server that answers a modern request.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The listen that a modern notification belongs to.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The token that a request's progress notifications repeat.
pub const PROGRESS_TOKEN: &str = "progressToken";

/// The declared parameters of a template: an object from variable to `type`, `format`, `enum`, `pattern`,
/// `description` and `required`, as in JSON Schema.
pub const PARAMETERS: &str = "io.github.mcp-resources/parameters";
/// Annotations that the protocol does not define (X-05).
pub const ANNOTATIONS: &str = "io.github.mcp-resources/annotations";

/// In the result of a list: an array with the names of parts that could not be listed now, such as servers that did not
/// answer. Absent if the list is complete.
pub const MISSING: &str = "io.github.mcp-resources/missing";

/// The reason for refusing a `_meta` object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidMeta {
    /// The text is not one JSON object, or is nested too deep.
    NotAnObject,
    /// A key is not `name` or `prefix/name`, or is repeated.
    Key(String),
    /// A key belongs to the protocol or to this library.
    Reserved(String),
}

impl fmt::Display for InvalidMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("not the text of a JSON object"),
            Self::Key(key) => write!(f, "the key {key:?} is not `name` or `prefix/name`, or stands twice"),
            Self::Reserved(key) => write!(f, "the key {key:?} is reserved"),
        }
    }
}

impl std::error::Error for InvalidMeta {}

/// Checks the text of a `_meta` object, and returns it without white space between tokens, which could break a line of
/// the stdio framing.
///
/// # Errors
/// [`InvalidMeta`], also for an object nested more than `nesting` deep.
pub fn check_object(text: &str, nesting: usize) -> Result<String, InvalidMeta> {
    let members = Json::parse(text.as_bytes(), nesting).and_then(Json::object);
    let members = members.ok_or(InvalidMeta::NotAnObject)?;
    let mut seen: Vec<_> = members.iter().map(|(key, _)| key).collect();
    if seen.len() != members.len() {
        return Err(InvalidMeta::NotAnObject);
    }
    seen.iter().try_for_each(|key| check_key(key))?;
    seen.sort_unstable();
    match seen.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(InvalidMeta::Key(pair[0].to_string())),
        None => Ok(compact(text)),
    }
}

/// Checks one key, by the strictest revision's rules.
///
/// # Errors
/// [`InvalidMeta::Key`] or [`InvalidMeta::Reserved`].
pub fn check_key(key: &str) -> Result<(), InvalidMeta> {
    let (prefix, name) = match key.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    let is_valid = match prefix {
        Some(prefix) => prefix.split('.').all(is_label) && (name.is_empty() || is_name(name)),
        None => is_name(name),
    };
    if !is_valid {
        return Err(InvalidMeta::Key(key.to_owned()));
    }
    let is_reserved = match prefix {
        Some(prefix) => is_reserved_prefix(prefix),
        None => matches!(name, PROGRESS_TOKEN | "traceparent" | "tracestate" | "baggage"),
    };
    if is_reserved || matches!(key, PARAMETERS | ANNOTATIONS | MISSING) {
        return Err(InvalidMeta::Reserved(key.to_owned()));
    }
    Ok(())
}

/// Returns the text of a JSON object without white space between its tokens; `None` if it is not one object, or is
/// nested more than `nesting` deep.
pub fn object_text(text: &str, nesting: usize) -> Option<String> {
    Json::parse(text.as_bytes(), nesting)?.object().map(|_| compact(text))
}

/// Removes the white space between the tokens of valid JSON.
pub(crate) fn compact(json: &str) -> String {
    let mut quoted = false;
    let mut escaped = false;
    let keep = |char: &char| {
        if quoted {
            quoted = escaped || *char != '"';
            escaped = !escaped && *char == '\\';
            return true;
        }
        quoted = *char == '"';
        !matches!(char, ' ' | '\t' | '\r' | '\n')
    };
    json.chars().filter(keep).collect()
}

/// Whether the protocol reserves the prefix: 2025-11-25 if its second label is the protocol's name, 2025-06-18 if that
/// name is followed by another label.
fn is_reserved_prefix(prefix: &str) -> bool {
    let is_protocol = |label: &&str| {
        label.eq_ignore_ascii_case("mcp") || label.eq_ignore_ascii_case("modelcontextprotocol")
    };
    let labels: Vec<_> = prefix.split('.').collect();
    let followed = labels.len() - 1;
    labels.get(1).is_some_and(is_protocol) || labels[..followed].iter().any(is_protocol)
}

/// Begins with a letter, ends with a letter or digit, hyphens between.
fn is_label(label: &str) -> bool {
    label.starts_with(|char: char| char.is_ascii_alphabetic())
        && label.ends_with(|char: char| char.is_ascii_alphanumeric())
        && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Begins and ends with a letter or digit; `-`, `_` and `.` between.
fn is_name(name: &str) -> bool {
    name.starts_with(|char: char| char.is_ascii_alphanumeric())
        && name.ends_with(|char: char| char.is_ascii_alphanumeric())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    // R-021, R-022.
    #[test]
    fn keys() {
        for good in [
            "team",
            "com.example/team",
            "com.example.mcp/x",
            "mcp/x",
            "a-b.c/x_y.z-1",
            "com.example/",
            "io.github.mcp-resources/language",
            "Traceparent",
        ] {
            assert_eq!(check_key(good), Ok(()), "{good}");
        }
        for bad in
            ["", "-a", "a-", "/x", "1a.b/x", "a..b/x", "a-/x", "a/b/c", "a b", "é", "a.b/x y", "a_b.c/x"]
        {
            assert_eq!(check_key(bad), Err(InvalidMeta::Key(bad.into())), "{bad}");
        }
        for reserved in [
            "io.modelcontextprotocol/x",
            "dev.mcp/x",
            "com.mcp.tools/x",
            "mcp.dev/x",
            "api.modelcontextprotocol.org/x",
            "a.b.c.mcp.d/x",
            "IO.ModelContextProtocol/x",
            "traceparent",
            "tracestate",
            "baggage",
            "progressToken",
            PARAMETERS,
            ANNOTATIONS,
            MISSING,
        ] {
            assert_eq!(check_key(reserved), Err(InvalidMeta::Reserved(reserved.into())), "{reserved}");
        }
    }

    #[test]
    fn objects_lose_their_white_space_and_nothing_else() {
        let text = "{ \"a\" : [1, 2.50,\n\t\"b \\\" \\\\\" ],\r\n\"c\":{} }";
        assert_eq!(check_object(text, 8).unwrap(), r#"{"a":[1,2.50,"b \" \\"],"c":{}}"#);
        for bad in ["", "[]", "null", "{", "{}{}", "{\"a\":}", "{'a':1}", "{\"a\":[[[]]]}"] {
            assert_eq!(check_object(bad, 3), Err(InvalidMeta::NotAnObject), "{bad}");
        }
        assert_eq!(check_object(r#"{"a":1,"\u0061":2}"#, 3), Err(InvalidMeta::Key("a".into())));
        assert_eq!(check_object(r#"{"\ud800":1}"#, 3), Err(InvalidMeta::NotAnObject));
        assert_eq!(check_object(r#"{"dev.mcp/a":1}"#, 3), Err(InvalidMeta::Reserved("dev.mcp/a".into())));
    }
}
