//! The trace context of a request: the members `traceparent`, `tracestate` and `baggage` of its `_meta`, parsed
//! as defined by W3C Trace Context and Baggage.
//!
//! Law: a malformed value counts as absent. Valid values consist of printable ASCII characters, so they may be used in
//! logs and headers.

use crate::jsonrpc::Json;
use std::borrow::Cow;

/// Identifies the parent span.
const TRACEPARENT: &str = "traceparent";
/// Data of tracing systems.
const TRACESTATE: &str = "tracestate";
/// Data of the application.
const BAGGAGE: &str = "baggage";

/// Maximum length of `tracestate` and `baggage`, in bytes.
const LONGEST: usize = 8_192;
/// Most members of a `tracestate`.
const STATES: usize = 32;
/// Most members of a `baggage`.
const ITEMS: usize = 180;
/// Length of a `traceparent` of version 00.
const PARENT: usize = 55;

/// The trace context of a request; each member is present only if it is well-formed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceContext<'m> {
    traceparent: Option<Cow<'m, str>>,
    tracestate: Option<Cow<'m, str>>,
    baggage: Option<Cow<'m, str>>,
}

impl<'m> TraceContext<'m> {
    /// Parses it from a request's `_meta`.
    pub fn of_meta(meta: Json<'m>) -> Self {
        let Some(members) = meta.object() else { return Self::default() };
        let text = |name, is_valid: fn(&str) -> bool| {
            members.get(name).and_then(Json::as_str).filter(|text| is_valid(text))
        };
        let traceparent = text(TRACEPARENT, is_traceparent);
        // A `tracestate` without a `traceparent` has no meaning.
        let tracestate = traceparent.as_ref().and_then(|_| text(TRACESTATE, is_tracestate));
        Self { traceparent, tracestate, baggage: text(BAGGAGE, is_baggage) }
    }

    /// Parses it from the text of a `_meta` object, nested at most `nesting` deep.
    pub fn of_text(meta: &'m str, nesting: usize) -> Self {
        Json::parse(meta.as_bytes(), nesting).map(Self::of_meta).unwrap_or_default()
    }

    /// The members that are present, by name, as a carrier for OpenTelemetry propagators.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all =
            [(TRACEPARENT, &self.traceparent), (TRACESTATE, &self.tracestate), (BAGGAGE, &self.baggage)];
        all.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// The member `name`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.members().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// The id of the trace: 32 hexadecimal digits.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }

    /// The id of the span that the request comes from: 16 hexadecimal digits.
    pub fn parent_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(36..52)
    }

    /// Whether the caller that began the trace records it.
    pub fn sampled(&self) -> bool {
        let flags = self.traceparent.as_deref().and_then(|text| text.get(53..55));
        flags.and_then(|flags| u8::from_str_radix(flags, 16).ok()).is_some_and(|flags| flags & 1 == 1)
    }

    /// Copies everything that it borrows.
    pub fn into_owned(self) -> TraceContext<'static> {
        let owned = |text: Option<Cow<'_, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        TraceContext {
            traceparent: owned(self.traceparent),
            tracestate: owned(self.tracestate),
            baggage: owned(self.baggage),
        }
    }
}

/// `version-trace-parent-flags`; later versions may append more after another hyphen.
fn is_traceparent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut hex = |digits| parts.next().filter(|part| part.len() == digits && part.bytes().all(is_hex));
    let (Some(version), Some(trace), Some(parent), Some(_)) = (hex(2), hex(32), hex(16), hex(2)) else {
        return false;
    };
    let is_whole =
        text.len() == PARENT || version != "00" && text.len() <= LONGEST && text.bytes().all(is_chr);
    is_whole && version != "ff" && [trace, parent].iter().all(|id| id.bytes().any(|byte| byte != b'0'))
}

fn is_tracestate(text: &str) -> bool {
    let mut keys = Vec::new();
    let is_member = |member: &str| {
        let Some((key, value)) = member.split_once('=') else { return false };
        let is_new = !keys.contains(&key.to_owned());
        keys.push(key.to_owned());
        let begins = key.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let is_key =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
        let is_value = |byte: u8| is_chr(byte) && byte != b'=';
        is_new
            && begins
            && key.len() <= 256
            && key.bytes().all(is_key)
            && (1..=256).contains(&value.len())
            && value.bytes().all(is_value)
    };
    is_list(text, STATES) && members(text).filter(|member| !member.is_empty()).all(is_member)
}

fn is_baggage(text: &str) -> bool {
    is_list(text, ITEMS) && members(text).all(is_item)
}

/// `key=value`, with properties after semicolons.
fn is_item(member: &str) -> bool {
    let mut parts = member.split(';');
    let is_pair = |part: &str| match part.split_once('=') {
        Some((key, value)) => is_token(trim(key)) && trim(value).bytes().all(is_octet),
        None => false,
    };
    parts.next().is_some_and(is_pair) && parts.all(|part| is_pair(part) || is_token(trim(part)))
}

fn is_list(text: &str, max: usize) -> bool {
    !text.is_empty() && text.len() <= LONGEST && members(text).count() <= max
}

fn members(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(trim)
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)
}

/// Printable ASCII.
fn is_chr(byte: u8) -> bool {
    (b' '..=b'~').contains(&byte)
}

/// A byte allowed in the values of baggage.
fn is_octet(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\",;\\".contains(&byte)
}

/// A token of HTTP.
fn is_token(text: &str) -> bool {
    let is_tchar = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_tchar)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn valid(name: &str, value: &str) -> bool {
        let parent = if name == TRACEPARENT { String::new() } else { format!("\"traceparent\":\"{GOOD}\",") };
        let meta = format!("{{{parent}\"{name}\":{}}}", serde_json::to_string(value).unwrap());
        TraceContext::of_text(&meta, 8).get(name) == Some(value)
    }

    // R-022.
    #[test]
    fn parents() {
        assert!(valid(TRACEPARENT, GOOD));
        for good in [
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what the future will be",
        ] {
            assert!(valid(TRACEPARENT, good), "{good}");
        }
        for bad in [
            "",
            "00",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-1",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-011",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01more",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-\r\nset-cookie: x",
            " 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
        ] {
            assert!(!valid(TRACEPARENT, bad), "{bad}");
        }
    }

    // R-022, R-215: neither member can contain a line break.
    #[test]
    fn states_and_baggage() {
        for good in ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, ,b=2,", "1-t@sys/x=a b"] {
            assert!(valid(TRACESTATE, good), "{good}");
        }
        let many = (0..33).map(|number| format!("k{number}=v")).collect::<Vec<_>>().join(",");
        for bad in ["", "a", "A=1", "a=", "a=1,a=2", "a=b=c", "a=1\nb=2", "é=1", &many] {
            assert!(!valid(TRACESTATE, bad), "{bad}");
        }
        for good in ["userId=alice,isProduction=false", "a=1 ; p=2;q , b = 3", "a=", "k=%E2%82%AC"] {
            assert!(valid(BAGGAGE, good), "{good}");
        }
        for bad in ["", "a", "a=1,", "=1", "a b=1", "a=\"x\"", "a=b c", "a=1;", "a=1\r\nx: y", "a=é"] {
            assert!(!valid(BAGGAGE, bad), "{bad}");
        }
        assert!(!valid(BAGGAGE, &format!("a={}", "x".repeat(LONGEST))));
    }

    #[test]
    fn a_state_without_its_parent_is_none() {
        let meta = r#"{"tracestate":"a=1","baggage":"b=2","traceparent":7}"#;
        let trace = TraceContext::of_text(meta, 8);
        assert_eq!(trace.members().collect::<Vec<_>>(), [(BAGGAGE, "b=2")]);
        assert_eq!((trace.trace_id(), trace.sampled()), (None, false));
        assert_eq!(TraceContext::of_text("[", 8), TraceContext::default());
    }

    #[test]
    fn the_parts_of_a_parent() {
        let meta = format!("{{\"traceparent\":\"{GOOD}\"}}");
        let trace = TraceContext::of_text(&meta, 8);
        assert_eq!(trace.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(trace.parent_id(), Some("00f067aa0ba902b7"));
        assert!(trace.sampled());
    }
}
