//! The audit record of a request: its principal, its subject, its time, and its outcome.
//!
//! Law: records never contain contents, tokens or header values. Every text is limited in length and
//! written as a JSON string, so it cannot contain a line break.

use crate::error::ReadError;
use crate::jsonrpc::object;
use crate::now::Millis;
use crate::principal::Principal;
use crate::version::{INTERNAL_ERROR, INVALID_REQUEST, Revision};
use std::net::IpAddr;
use std::sync::Arc;

/// Longest method in a record, in bytes.
const METHOD: usize = 128;
/// Longest URI in a record, in bytes.
const URI: usize = 2_048;
/// Longest identity in a record, in bytes.
const IDENTITY: usize = 256;
/// Marks a shortened text. No canonical URI contains this character.
const CUT: char = '…';

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditRecord {
    /// A request has ended.
    Request(RequestRecord),
    /// The queue was full because the sink was too slow, and the records after the previous ones were dropped.
    Dropped {
        /// When the last of them was dropped, in milliseconds since 1970 (UTC).
        time: Millis,
        /// The number of dropped records.
        dropped: u64,
    },
}

/// The record of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestRecord {
    /// When the request arrived, in milliseconds since 1970 (UTC).
    pub time: Millis,
    /// The sender. The empty identity is the local process, or any client of a server without authentication.
    pub principal: Arc<Principal>,
    /// The address of the client, if it came over HTTP and the runtime knows it: behind a trusted proxy, the one that the
    /// proxy names.
    pub address: Option<IpAddr>,
    /// The number of the connection in this process. The session id is not recorded, because readers of the log could
    /// use it to take over the session.
    pub connection: u64,
    /// The revision of the request; `None` if it was refused before that was known.
    pub revision: Option<Revision>,
    /// The method, shortened to 128 bytes.
    pub method: Box<str>,
    /// The requested URI, in canonical form if it has one, shortened to 2,048 bytes; for a completion, the reference.
    pub uri: Option<Box<str>>,
    /// The name of the tool or prompt, shortened to 128 bytes.
    pub name: Option<Box<str>>,
    /// The outcome of the request.
    pub outcome: Verdict,
    /// The size of the response in bytes, with its envelope.
    pub bytes: u64,
    /// The time from request to response, in milliseconds.
    pub duration: Millis,
    /// The id of the trace that it belongs to: 32 hexadecimal digits.
    pub trace: Option<Box<str>>,
}

impl AuditRecord {
    /// The time of the entry, in milliseconds since 1970 (UTC).
    pub fn time(&self) -> Millis {
        match self {
            Self::Request(record) => record.time,
            Self::Dropped { time, .. } => *time,
        }
    }

    /// Appends the entry as one line: a JSON object and a line break.
    pub fn write_line(&self, out: &mut Vec<u8>) {
        match self {
            Self::Request(record) => record.write(out),
            Self::Dropped { time, dropped } => object(out, |entry| {
                entry.u64("time", *time);
                entry.str("timestamp", &timestamp(*time));
                entry.u64("dropped", *dropped);
            }),
        }
        out.push(b'\n');
    }
}

impl RequestRecord {
    fn write(&self, out: &mut Vec<u8>) {
        object(out, |entry| {
            entry.u64("time", self.time);
            entry.str("timestamp", &timestamp(self.time));
            entry.str("principal", &bounded(self.principal.id(), IDENTITY));
            if let Some(client) = self.principal.client_id() {
                entry.str("client", &bounded(client, IDENTITY));
            }
            if let Some(address) = self.address {
                entry.str("address", &address.to_string());
            }
            entry.u64("connection", self.connection);
            if let Some(revision) = self.revision {
                entry.str("era", if revision.is_modern() { "modern" } else { "legacy" });
                entry.str("revision", revision.as_str());
            }
            entry.str("method", &self.method);
            if let Some(uri) = &self.uri {
                entry.str("uri", uri);
            }
            if let Some(name) = &self.name {
                entry.str("name", name);
            }
            entry.str("outcome", self.outcome.as_str());
            entry.u64("bytes", self.bytes);
            entry.u64("duration", self.duration);
            if let Some(trace) = &self.trace {
                entry.str("trace", trace);
            }
        });
    }
}

/// A time in milliseconds since 1970 in the form of RFC 3339 (ISO 8601), in UTC: `2026-11-28T08:05:09.120Z`.
fn timestamp(time: Millis) -> String {
    let (days, millis) = (time / 86_400_000, time % 86_400_000);
    // The civil date of a day, counted from 0000-03-01 in eras of 400 years.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let of_era = shifted % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// Shortens a method, or the name of a tool or prompt, to its maximum length.
pub(crate) fn method(text: &str) -> Box<str> {
    bounded(text, METHOD)
}

/// Shortens a URI to its maximum length.
pub(crate) fn uri(text: &str) -> Box<str> {
    bounded(text, URI)
}

/// Returns the beginning of a text that is too long, with a mark.
fn bounded(text: &str, max: usize) -> Box<str> {
    if text.len() <= max {
        return text.into();
    }
    let beginning = (0..=max - CUT.len_utf8()).rev().find_map(|end| text.get(..end));
    let mut cut = beginning.unwrap_or_default().to_owned();
    cut.push(CUT);
    cut.into()
}

/// Declares the verdicts with their names.
macro_rules! verdicts {
    ($($(#[$doc:meta])* $name:ident $word:literal,)+) => {
        /// The outcome of a request: the values of `data.kind`, and the outcomes that have no `data.kind`.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Verdict {
            $($(#[$doc])* $name,)+
        }

        impl Verdict {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// Its name.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)+
                }
            }
        }
    };
}

verdicts! {
    /// It was answered.
    #[default]
    Ok "ok",
    /// The client was asked for input first.
    InputRequired "input_required",
    /// There is no such resource.
    NotFound "not_found",
    /// The search for a template exceeded its step limit. The client gets the same answer as for `not_found`.
    Exhausted "exhausted",
    /// The principal may not see it; the client gets the same answer as for `not_found`.
    Hidden "hidden",
    /// The principal may not see it, and the client gets an error that says so.
    Denied "denied",
    /// A value of the URI has the wrong type or form.
    InvalidParameter "invalid_parameter",
    /// The URI is malformed.
    InvalidUri "invalid_uri",
    /// The handler failed, or something that it depends on.
    ReadError "read_error",
    /// The contents are larger than allowed.
    SizeExceeded "size_exceeded",
    /// It ran out of time.
    Timeout "timeout",
    /// Too many requests.
    RateLimited "rate_limited",
    /// The user declined to give input.
    InputDeclined "input_declined",
    /// A custom error of the handler.
    Custom "custom",
    /// The client cancelled the request or disconnected.
    Cancelled "cancelled",
    /// The params are wrong.
    InvalidParams "invalid_params",
    /// The request is not allowed here.
    InvalidRequest "invalid_request",
    /// There is no such method.
    MethodNotFound "method_not_found",
    /// A limit was reached, or the server failed.
    InternalError "internal_error",
    /// A header contradicts the body.
    HeaderMismatch "header_mismatch",
    /// The session does not exist or has ended.
    SessionNotFound "session_not_found",
    /// The revision is not supported.
    UnsupportedVersion "unsupported_version",
    /// The client did not declare a required capability.
    MissingCapability "missing_capability",
}

impl Verdict {
    /// Its index in tables, less than the length of [`Verdict::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The verdict for a refusal with one of the standard codes.
    pub(crate) fn of_code(code: i32) -> Self {
        match code {
            INTERNAL_ERROR => Self::InternalError,
            INVALID_REQUEST => Self::InvalidRequest,
            _ => Self::InvalidParams,
        }
    }
}

impl From<&ReadError> for Verdict {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::NotFound => Self::NotFound,
            ReadError::InvalidParameter { .. } | ReadError::RefusedParameter { .. } => Self::InvalidParameter,
            ReadError::AccessDenied => Self::Denied,
            ReadError::InvalidUri => Self::InvalidUri,
            ReadError::Failed => Self::ReadError,
            ReadError::SizeExceeded { .. } => Self::SizeExceeded,
            ReadError::Timeout { .. } => Self::Timeout,
            ReadError::RateLimited { .. } => Self::RateLimited,
            ReadError::InputRequired => Self::InputRequired,
            ReadError::InputDeclined => Self::InputDeclined,
            ReadError::Custom { .. } | ReadError::Foreign { .. } => Self::Custom,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(uri_text: &str, id: &str) -> RequestRecord {
        RequestRecord {
            time: 1_700_000_000_000,
            principal: Principal::new(id),
            address: None,
            connection: 3,
            revision: Some(Revision::V2026_07_28),
            method: method("resources/read"),
            uri: Some(uri(uri_text)),
            name: None,
            outcome: Verdict::Ok,
            bytes: 12,
            duration: 4,
            trace: None,
        }
    }

    fn line(record: RequestRecord) -> String {
        let mut out = Vec::new();
        AuditRecord::Request(record).write_line(&mut out);
        String::from_utf8(out).unwrap()
    }

    // S-19: the members of a line.
    #[test]
    fn a_line() {
        assert_eq!(
            line(record("test://a", "alice")),
            concat!(
                r#"{"time":1700000000000,"timestamp":"2023-11-14T22:13:20.000Z","principal":"alice","connection":3,"#,
                r#""era":"modern","revision":"2026-07-28","method":"resources/read","uri":"test://a","outcome":"ok","bytes":12,"duration":4}"#,
                "\n"
            )
        );
        let mut out = Vec::new();
        AuditRecord::Dropped { time: 7, dropped: 2 }.write_line(&mut out);
        assert_eq!(out, b"{\"time\":7,\"timestamp\":\"1970-01-01T00:00:00.007Z\",\"dropped\":2}\n");
        let claims = r#"{"client_id": "editor", "groups": ["docs", 7, ""]}"#;
        let principal = Principal::new("alice").with_claims(Some(claims.into()));
        assert_eq!(principal.groups(), ["docs"]);
        let record = RequestRecord { principal, address: "192.0.2.1".parse().ok(), ..record("test://a", "") };
        let line = line(record);
        assert!(
            line.contains(r#""principal":"alice","client":"editor","address":"192.0.2.1","connection""#),
            "{line}"
        );
    }

    #[test]
    fn times() {
        for (time, text) in [
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (4_107_542_399_001, "2100-02-28T23:59:59.001Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_767_225_599_000, "2025-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(timestamp(time), text);
        }
    }

    // R-215: text of a client or token never leaves its JSON string.
    #[test]
    fn no_text_leaves_its_string() {
        let hostile = "a\r\n{\"time\":1}\u{2028}\u{0}\"\\";
        let line = line(record(hostile, hostile));
        assert_eq!(line.lines().count(), 1);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&value["uri"], &value["principal"]), (&hostile.into(), &hostile.into()));
        assert!(value.as_object().unwrap().len() == 11);
    }

    #[test]
    fn texts_are_bounded() {
        for text in ["x".repeat(100_000), "é".repeat(50_000)] {
            let value: serde_json::Value = serde_json::from_str(&line(record(&text, &text))).unwrap();
            let [uri, id] = ["uri", "principal"].map(|name| value[name].as_str().unwrap().to_owned());
            assert!(uri.len() <= URI && uri.ends_with(CUT), "{}", uri.len());
            assert!(id.len() <= IDENTITY && id.ends_with(CUT), "{}", id.len());
        }
        assert_eq!(uri(&"x".repeat(URI)).len(), URI);
    }

    // DEC-20: the names are those of `data.kind`, except for denials, which are recorded by the answer that the client
    // got.
    #[test]
    fn the_words_are_those_of_the_errors() {
        let errors = [
            ReadError::NotFound,
            ReadError::InvalidUri,
            ReadError::Failed,
            ReadError::SizeExceeded { limit: 1, size: None },
            ReadError::Timeout { after: 1 },
            ReadError::RateLimited { retry_after: 1 },
            ReadError::InputRequired,
            ReadError::InputDeclined,
        ];
        for error in errors {
            assert_eq!(error.kind(), Some(Verdict::from(&error).as_str()));
        }
        for (index, verdict) in Verdict::ALL.iter().enumerate() {
            assert_eq!(verdict.index(), index);
        }
    }
}
