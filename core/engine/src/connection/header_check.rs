//! The headers of an HTTP request that repeat parts of its body, and whether they agree. The
//! dispatch refuses the message if they do not.
//!
//! Law: the body is the source of truth. A header is compared with it, and never decides what is served.

use super::RequestRefusal;
use crate::base64;
use crate::engine::Engine;
use crate::headers::Headers;
use crate::version::Revision;
use std::borrow::Cow;
use std::sync::Arc;

/// Maximum length of a version header that is repeated to the peer, in bytes.
const ECHOED: usize = 64;

/// The headers that describe the message, and the session they name.
#[derive(Clone, Copy, Debug)]
pub struct HeaderCheck<'m> {
    /// `MCP-Protocol-Version`.
    pub version: HeaderField<'m>,
    /// `Mcp-Method`.
    pub method: HeaderField<'m>,
    /// `Mcp-Name`.
    pub name: HeaderField<'m>,
    /// Whether the request belongs to the session of this connection.
    pub session: Standing,
    /// All headers, for the handler.
    pub headers: Option<&'m Arc<Headers>>,
    /// Whether the response has its own HTTP status, so that it can be a challenge.
    pub challenges: bool,
}

/// One header, without the white space around its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderField<'m> {
    /// It is not there.
    Absent,
    /// Its value.
    Once(&'m [u8]),
    /// The header occurs more than once: two parsers could see different values.
    Repeated,
}

/// The session of a legacy message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The session of this connection.
    Known,
    /// No session is named.
    Missing,
    /// The session has ended, or belongs to another principal.
    Unknown,
}

/// The revision in the version header.
pub(super) enum NamedHeader<'m> {
    Nothing,
    Modern(Revision),
    Legacy,
    Unknown(&'m [u8]),
    Repeated,
}

impl<'m> HeaderCheck<'m> {
    pub(super) fn named(&self, engine: &Engine) -> NamedHeader<'m> {
        match self.version {
            HeaderField::Absent => NamedHeader::Nothing,
            HeaderField::Repeated => NamedHeader::Repeated,
            HeaderField::Once(value) => match std::str::from_utf8(value).ok().and_then(Revision::parse) {
                Some(revision) if revision.is_modern() => NamedHeader::Modern(revision),
                Some(revision) if engine.serves(revision) => NamedHeader::Legacy,
                _ => NamedHeader::Unknown(value),
            },
        }
    }

    /// Compares the headers with a modern request. The error contains no header value.
    pub(super) fn check(&self, version: &str, method: &str, name: Option<&str>) -> Result<(), String> {
        self.version.check("MCP-Protocol-Version", version)?;
        self.method.check("Mcp-Method", method)?;
        name.map_or(Ok(()), |name| self.name.check_name(name))
    }
}

impl<'m> HeaderField<'m> {
    fn check(self, header: &str, expected: &str) -> Result<(), String> {
        let value = self.visible(header)?;
        if value == expected { Ok(()) } else { Err(format!("{header} differs from the body")) }
    }

    /// Compares the header `Mcp-Name`, which may be encoded.
    fn check_name(self, expected: &str) -> Result<(), String> {
        let header = "Mcp-Name";
        let value = self.visible(header)?;
        let wrapped = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
        let value = match wrapped {
            None => Cow::Borrowed(value),
            Some(encoded) => {
                let decoded = base64::decode(encoded).and_then(|bytes| String::from_utf8(bytes).ok());
                Cow::Owned(decoded.ok_or_else(|| format!("{header} is not base64 of UTF-8"))?)
            }
        };
        if value == expected { Ok(()) } else { Err(format!("{header} differs from the body")) }
    }

    /// The value, if the header occurs once and has only visible characters, spaces and tabs.
    fn visible(self, header: &str) -> Result<&'m str, String> {
        match self {
            Self::Absent => Err(format!("{header} is missing")),
            Self::Repeated => Err(format!("{header} is there more than once")),
            Self::Once(value) => {
                // A loop without early exit compares several bytes at once.
                let is_visible =
                    value.iter().fold(true, |all, byte| all & matches!(byte, b'\t' | b' '..=b'~'));
                let value = std::str::from_utf8(value).ok().filter(|_| is_visible);
                value.ok_or_else(|| format!("{header} has characters that a header must not have"))
            }
        }
    }
}

impl Standing {
    /// The error for a session that is missing or has ended.
    pub(super) fn refusal(self) -> Option<(&'static str, RequestRefusal)> {
        match self {
            Self::Known => None,
            Self::Missing => Some(("Invalid Request: Mcp-Session-Id is missing", RequestRefusal::Session)),
            Self::Unknown => Some(("Session not found", RequestRefusal::SessionUnknown)),
        }
    }
}

/// The printable part of a header value.
pub(super) fn printable(value: &[u8]) -> String {
    value
        .iter()
        .take(ECHOED)
        .map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(value: &str, expected: &str) -> bool {
        HeaderField::Once(value.as_bytes()).check_name(expected).is_ok()
    }

    // the markers are exact, the base64 canonical, and anything else is literal.
    #[test]
    fn names_may_be_wrapped() {
        assert!(name("note://a", "note://a"));
        assert!(name("=?base64?bm90ZTovL8Op?=", "note://é"));
        assert!(name("=?BASE64?bm90ZTovL8Op?=", "=?BASE64?bm90ZTovL8Op?="));
        assert!(name("=?base64?PT9iYXNlNjQ/YT89?=", "=?base64?a?="));
        assert!(name("=?base64??=", ""));
        for bad in ["=?base64?bm90ZTovL8Op=?=", "=?base64?bm90ZTo?=", "=?base64?/w==?=", "=?base64?a?="] {
            assert!(!name(bad, "note://é"), "{bad}");
            assert!(!name(bad, bad), "{bad}");
        }
    }

    // a value that the client encodes is decoded to the same value by the server.
    #[test]
    fn what_is_mirrored_arrives() {
        for text in ["note://a", "a b", " a", "a\t", "é", "a\nb", "=?base64?a?=", "=?base64?=", ""] {
            let sent = crate::headers::encode_header_value(text);
            assert!(name(sent.trim_matches([' ', '\t']), text), "{text:?}");
        }
        assert_eq!(crate::headers::encode_header_value("a b"), "a b");
    }

    // headers occur once and contain visible characters.
    #[test]
    fn headers_are_there_once_and_visible() {
        for bad in [
            HeaderField::Absent,
            HeaderField::Repeated,
            HeaderField::Once(b"a\x01"),
            HeaderField::Once("é".as_bytes()),
        ] {
            assert!(bad.visible("Mcp-Name").is_err(), "{bad:?}");
        }
        assert_eq!(HeaderField::Once(b"a b\tc").visible("Mcp-Name"), Ok("a b\tc"));
    }

    // header values are shown shortened and without control characters.
    #[test]
    fn values_are_shown_printable_and_short() {
        assert_eq!(printable(b"v1\r\nX: y\xff"), "v1??X:?y?");
        assert_eq!(printable(&[b'a'; 1000]).len(), ECHOED);
    }
}
