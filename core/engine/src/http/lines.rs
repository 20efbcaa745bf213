//! The header lines of a request. One pass finds the lines that rules read, and copies all of them for handlers.
//!
//! Law: a rule accesses a line by its [`HeaderName`] and never searches. Only the token is searched for, because credentials
//! are not copied.

use super::head::{RequestHead, trim};
use crate::connection::HeaderField;
use crate::headers::{Headers, ValueRange};
use std::sync::Arc;

/// The header lines of a request. Owns its data, so it outlives the head.
#[derive(Debug)]
pub(super) struct HeaderLines {
    all: Arc<Headers>,
    found: [HeaderLine; NAMES],
    /// Whether a value contains a control character.
    has_control: bool,
}

/// A line that a rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderName {
    Accept,
    ContentEncoding,
    ContentLength,
    ContentType,
    Host,
    LastEventId,
    Method,
    Origin,
    /// `Mcp-Name`.
    Resource,
    Session,
    TransferEncoding,
    Version,
}

const NAMES: usize = HeaderName::Version as usize + 1;

/// Whether a line exists, and the position of its value.
#[derive(Clone, Copy, Debug)]
enum HeaderLine {
    Absent,
    Once(ValueRange),
    Repeated,
}

impl HeaderLines {
    /// Reads the lines of `head`, whose names and values have `size` bytes in total.
    pub(super) fn from_head(head: &RequestHead<'_>, size: usize) -> Self {
        let mut all = Headers::with_room(head.headers.len(), size);
        let mut found = [HeaderLine::Absent; NAMES];
        let mut has_control = false;
        for (name, value) in head.headers {
            let value = trim(value);
            if value.iter().fold(false, |found, byte| found | is_control(*byte)) {
                // The headers of the protocol have their own error for control characters.
                has_control |= !name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("mcp-"));
            }
            let Some(place) = all.push(name, value) else { continue };
            if let Some(found) = known(name).and_then(|name| found.get_mut(name as usize)) {
                *found = match found {
                    HeaderLine::Absent => HeaderLine::Once(place),
                    HeaderLine::Once(_) | HeaderLine::Repeated => HeaderLine::Repeated,
                };
            }
        }
        Self { all: Arc::new(all), found, has_control }
    }

    /// A line, with its value trimmed.
    pub(super) fn field(&self, name: HeaderName) -> HeaderField<'_> {
        match self.found.get(name as usize) {
            Some(HeaderLine::Once(place)) => HeaderField::Once(self.all.value(*place)),
            Some(HeaderLine::Repeated) => HeaderField::Repeated,
            Some(HeaderLine::Absent) | None => HeaderField::Absent,
        }
    }

    /// The value of a line that occurs once and is text.
    pub(super) fn text(&self, name: HeaderName) -> Option<&str> {
        match self.field(name) {
            HeaderField::Once(value) => std::str::from_utf8(value).ok(),
            HeaderField::Absent | HeaderField::Repeated => None,
        }
    }

    /// All of them, for handlers.
    pub(super) fn all(&self) -> &Arc<Headers> {
        &self.all
    }

    /// Checks the headers that delimit the body (RFC 9112, sections 6.1 and 6.3; RFC 9110, section 5.5). At most one of
    /// them may occur, once: servers that disagree about the end of a body can be tricked into reading a part of it as
    /// a request.
    pub(super) fn framing(&self) -> Framing {
        let framing = match (self.field(HeaderName::ContentLength), self.field(HeaderName::TransferEncoding))
        {
            (HeaderField::Absent, HeaderField::Absent) => Framing::Sound,
            (HeaderField::Absent, HeaderField::Once(codings)) => Framing::of_codings(codings),
            (HeaderField::Once(digits), HeaderField::Absent)
                if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) =>
            {
                Framing::Sound
            }
            _ => Framing::Malformed,
        };
        if self.has_control { Framing::Malformed } else { framing }
    }

    /// Whether the body is encoded in a way that is not understood, such as `gzip`.
    pub(super) fn is_encoded(&self) -> bool {
        match self.field(HeaderName::ContentEncoding) {
            HeaderField::Absent => false,
            HeaderField::Once(codings) => {
                let is_none = |coding: &[u8]| coding.is_empty() || coding.eq_ignore_ascii_case(b"identity");
                !codings.split(|byte| *byte == b',').all(|coding| is_none(trim(coding)))
            }
            HeaderField::Repeated => true,
        }
    }
}

/// The end of the body according to the headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// It is clear.
    Sound,
    /// Two servers could understand it differently (400).
    Malformed,
    /// It is clear, but another coding than `chunked` is applied (501).
    Unsupported,
}

impl Framing {
    /// The codings of `Transfer-Encoding`. `chunked` must be the last one, and be applied once; it has no parameters.
    fn of_codings(codings: &[u8]) -> Self {
        let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
        if is_chunked(codings) {
            return Self::Sound;
        }
        let mut codings = codings.split(|byte| *byte == b',').map(trim);
        let is_last = codings.next_back().is_some_and(is_chunked);
        let mut others = codings.peekable();
        let are_others =
            others.peek().is_some() && others.all(|coding| !coding.is_empty() && !is_chunked(coding));
        if is_last && are_others { Self::Unsupported } else { Self::Malformed }
    }
}

fn is_control(byte: u8) -> bool {
    (byte < b' ' && byte != b'\t') || byte == 0x7f
}

fn known(name: &str) -> Option<HeaderName> {
    // Most runtimes pass names in lower case.
    let is = |own: &str| name == own || name.eq_ignore_ascii_case(own);
    let found = match name.len() {
        4 if is("host") => HeaderName::Host,
        6 if is("accept") => HeaderName::Accept,
        6 if is("origin") => HeaderName::Origin,
        8 if is("mcp-name") => HeaderName::Resource,
        10 if is("mcp-method") => HeaderName::Method,
        12 if is("content-type") => HeaderName::ContentType,
        13 if is("last-event-id") => HeaderName::LastEventId,
        14 if is("content-length") => HeaderName::ContentLength,
        16 if is("content-encoding") => HeaderName::ContentEncoding,
        14 if is("mcp-session-id") => HeaderName::Session,
        17 if is("transfer-encoding") => HeaderName::TransferEncoding,
        20 if is("mcp-protocol-version") => HeaderName::Version,
        _ => return None,
    };
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_head(headers: &[(&str, &[u8])]) -> HeaderLines {
        HeaderLines::from_head(&RequestHead { headers, ..RequestHead::default() }, 0)
    }

    // R-180, R-188.
    #[test]
    fn fields_are_trimmed_and_counted() {
        let lines = from_head(&[
            ("MCP-Method", b" \ta b\t"),
            ("Host", b" \t"),
            ("mcp-name", b"c"),
            ("Mcp-Name", b"c"),
        ]);
        assert_eq!(lines.field(HeaderName::Method), HeaderField::Once(b"a b"));
        assert_eq!(lines.field(HeaderName::Host), HeaderField::Once(b""));
        assert_eq!(lines.field(HeaderName::Resource), HeaderField::Repeated);
        assert_eq!(
            (lines.field(HeaderName::Session), lines.text(HeaderName::Method)),
            (HeaderField::Absent, Some("a b"))
        );
    }

    #[test]
    fn every_name_has_its_place() {
        let names = [
            ("Accept", HeaderName::Accept),
            ("Content-Encoding", HeaderName::ContentEncoding),
            ("Content-Length", HeaderName::ContentLength),
            ("Content-Type", HeaderName::ContentType),
            ("Host", HeaderName::Host),
            ("Last-Event-Id", HeaderName::LastEventId),
            ("Mcp-Method", HeaderName::Method),
            ("Mcp-Name", HeaderName::Resource),
            ("Mcp-Protocol-Version", HeaderName::Version),
            ("Mcp-Session-Id", HeaderName::Session),
            ("Origin", HeaderName::Origin),
            ("Transfer-Encoding", HeaderName::TransferEncoding),
        ];
        assert_eq!(names.len(), NAMES);
        for (text, name) in names {
            let lower = text.to_ascii_lowercase();
            assert_eq!((known(text), known(&lower)), (Some(name), Some(name)), "{text}");
            let lines = from_head(&[(text, b"1")]);
            assert_eq!(
                (lines.field(name), lines.all().get(text).as_deref()),
                (HeaderField::Once(b"1"), Some("1"))
            );
        }
        assert_eq!(known("authorization"), None);
    }

    /// Headers that two servers could interpret differently.
    #[test]
    fn sound_lines() {
        let is_sound = |headers: &[(&str, &[u8])]| from_head(headers).framing() == Framing::Sound;
        assert!(is_sound(&[]) && is_sound(&[("content-length", b" 12 ")]));
        assert!(is_sound(&[("transfer-encoding", b"chunked")]) && is_sound(&[("x", b"a\tb\xff")]));
        assert!(is_sound(&[("Mcp-Name", b"a\x01")]));
        let twice: [(&str, &[u8]); 2] = [("content-length", b"1"), ("Content-Length", b"1")];
        let both: [(&str, &[u8]); 2] = [("content-length", b"1"), ("transfer-encoding", b"chunked")];
        let codings: [(&str, &[u8]); 2] = [("transfer-encoding", b"x"), ("transfer-encoding", b"chunked")];
        assert!(!is_sound(&twice) && !is_sound(&both) && !is_sound(&codings));
        for value in [&b""[..], b"+1", b"1,1", b"x"] {
            assert!(!is_sound(&[("content-length", value)]), "{value:?}");
        }
        assert!(
            !is_sound(&[("x", b"a\x01")]) && !is_sound(&[("cookie", b"\x7f")]) && !is_sound(&[("x", b"\n")])
        );
    }
    /// RFC 9112, section 6.1.
    #[test]
    fn codings_of_a_transfer() {
        let framing = |value: &str| from_head(&[("transfer-encoding", value.as_bytes())]).framing();
        assert_eq!((framing("chunked"), framing(" CHUNKED\t")), (Framing::Sound, Framing::Sound));
        for value in ["gzip, chunked", "identity,chunked", "gzip;q=1 , Chunked", "a,b,chunked"] {
            assert_eq!(framing(value), Framing::Unsupported, "{value}");
        }
        for value in [
            "",
            "gzip",
            "identity",
            "chunked, chunked",
            "chunked, gzip",
            "chunked,",
            ",chunked",
            "chunked;a=b",
            "xchunked",
            "gzip,,chunked",
            "chunked\u{b}",
            "chunked gzip",
        ] {
            assert_eq!(framing(value), Framing::Malformed, "{value}");
        }
    }

    #[test]
    fn codings_of_a_body() {
        let is_encoded = |values: &[&str]| {
            let headers: Vec<_> = values.iter().map(|value| ("Content-Encoding", value.as_bytes())).collect();
            from_head(&headers).is_encoded()
        };
        assert!(
            !is_encoded(&[])
                && !is_encoded(&[""])
                && !is_encoded(&["Identity"])
                && !is_encoded(&["identity, "])
        );
        for values in
            [&["gzip"][..], &["GZIP"], &["identity, br"], &["x"], &["identity", "gzip"], &["deflate;q=0"]]
        {
            assert!(is_encoded(values), "{values:?}");
        }
    }
}
