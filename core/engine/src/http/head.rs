//! Heads of requests and responses, as the runtime passes them. No socket, no HTTP library.

use super::cors;
use super::refused::Refused;
use crate::jsonrpc::{Envelope, ErrorHead, ErrorId};
use std::borrow::Cow;
use std::net::IpAddr;

/// The head of a request, borrowed from the runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestHead<'h> {
    /// The verb, in upper case.
    pub verb: &'h str,
    /// The target: a path with an optional query, or a whole URL.
    pub target: &'h str,
    /// All header lines in order: names in any case, values as bytes. Pass HTTP/2's `:authority` as `host`.
    pub headers: &'h [(&'h str, &'h [u8])],
    /// The client's address, if known: requests of clients without a token are limited by it.
    pub client: Option<IpAddr>,
    /// The path below which the endpoint is mounted, such as `/api`, if `target` is only the rest of the path. Default:
    /// none.
    pub mount: &'h str,
}

/// The head of a response. The runtime writes it unchanged, and adds only headers that its protocol version needs (`Date`,
/// `Connection`, `Transfer-Encoding`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// The headers: lower-case names; values in visible ASCII. Has `content-length` if the body is complete; in
    /// an answer to `HEAD`, it is that of the answer to `GET`.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
}

/// A complete response to a request that was decided by its head alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Its head, `content-length` included.
    pub head: ResponseHead,
    /// Its body.
    pub body: Vec<u8>,
    /// The option that refuses such requests.
    pub(super) refused: Option<Box<Refused>>,
}

/// The type of a body that is one message, or a batch.
pub const JSON: &str = "application/json";
/// The type of a body that is an event stream.
pub const EVENT_STREAM: &str = "text/event-stream";

impl<'h> RequestHead<'h> {
    /// The path, without the query, and without scheme and authority of a whole URL.
    pub(super) fn path(&self) -> &'h str {
        // A target that starts with a slash has no scheme, even if it contains `://`.
        let scheme = if self.target.starts_with('/') { None } else { self.target.split_once("://") };
        let target = match scheme {
            Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
                rest.find(['/', '?']).and_then(|at| rest.get(at..)).unwrap_or("/")
            }
            _ => self.target,
        };
        let end = target.bytes().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(target.len());
        target.get(..end).unwrap_or_default()
    }

    /// The value of a query parameter, not decoded.
    pub(super) fn query(&self, name: &str) -> Option<&'h str> {
        let (_, query) = self.target.split_once('?')?;
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .find(|(own, _)| *own == name)
            .map(|(_, value)| value)
    }

    /// All values of a header, trimmed.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &'h [u8]> {
        self.headers
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| trim(value))
    }
}

/// Removes the white space that may surround a value.
pub(super) fn trim(value: &[u8]) -> &[u8] {
    let mut rest = value;
    while let [b' ' | b'\t', after @ ..] = rest {
        rest = after;
    }
    while let [before @ .., b' ' | b'\t'] = rest {
        rest = before;
    }
    rest
}

impl ResponseHead {
    pub(super) fn new(status: u16) -> Self {
        Self { status, headers: Vec::new() }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The head of a response with a complete body.
    pub(super) fn complete(self, content_type: &'static str, length: usize) -> Self {
        // RFC 9110, section 8.6: a 204 has no body, and must not have `Content-Length`.
        if self.status == 204 {
            return self;
        }
        let typed = if length == 0 { self } else { self.with("content-type", content_type) };
        typed.with("content-length", length.to_string())
    }

    /// The head of an event stream.
    pub(super) fn events() -> Self {
        Self::new(200)
            .with("content-type", EVENT_STREAM)
            .with("cache-control", "no-cache")
            .with("x-accel-buffering", "no")
    }

    /// Adds the headers that let pages of `origin` read the response.
    pub(super) fn shared_with(mut self, origin: Option<&str>) -> Self {
        cors::expose(&mut self.headers, origin);
        self
    }
}

impl Response {
    fn from_parts(head: ResponseHead, body: Vec<u8>) -> Self {
        Self { head, body, refused: None }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self::from_parts(ResponseHead::new(status).complete(JSON, 0), Vec::new())
    }

    pub(super) fn json(status: u16, body: Vec<u8>) -> Self {
        Self::from_parts(ResponseHead::new(status).complete(JSON, body.len()), body)
    }

    pub(super) fn text(status: u16, body: &str) -> Self {
        let head = ResponseHead::new(status).complete("text/plain; charset=utf-8", body.len());
        Self::from_parts(head, body.into())
    }

    /// A response with metrics in the text format of Prometheus, version 0.0.4; not cached.
    pub(super) fn metrics(body: Vec<u8>) -> Self {
        let head = ResponseHead::new(200).complete("text/plain; version=0.0.4; charset=utf-8", body.len());
        Self::from_parts(head.with("cache-control", "no-store"), body)
    }

    /// A refusal with a JSON-RPC error without an id.
    pub(super) fn error(status: u16, code: i32, message: &str) -> Self {
        let mut body = Vec::new();
        Envelope::JsonRpc.error(&mut body, &ErrorHead { id: ErrorId::Absent, code, message }, |_| ());
        Self::json(status, body)
    }

    /// The response to `HEAD` instead of `GET`: its body is not sent.
    pub(super) fn without_body(mut self) -> Self {
        self.body.clear();
        self
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.head = self.head.with(name, value);
        self
    }

    pub(super) fn shared_with(mut self, origin: Option<&str>) -> Self {
        self.head = self.head.shared_with(origin);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_target() {
        let path = |target| RequestHead { verb: "GET", target, ..RequestHead::default() }.path();
        for (target, expected) in [
            ("/mcp", "/mcp"),
            ("/mcp?a=b://c", "/mcp"),
            ("http://host:1/mcp?x", "/mcp"),
            ("http://host", "/"),
            ("http://host?x=/y", ""),
            ("*", "*"),
            ("", ""),
        ] {
            assert_eq!(path(target), expected, "{target}");
        }
    }

    //
    #[test]
    fn values_are_trimmed() {
        for (value, expected) in [("", ""), (" \t", ""), ("a", "a"), (" \ta b\t ", "a b"), ("\ta", "a")] {
            assert_eq!(trim(value.as_bytes()), expected.as_bytes());
        }
        let headers: [(&str, &[u8]); 3] = [("MCP-Method", b" a"), ("x", b""), ("mcp-METHOD", b"c")];
        let head = RequestHead { verb: "POST", target: "/", headers: &headers, ..RequestHead::default() };
        assert_eq!(head.all("mcp-method").collect::<Vec<_>>(), [b"a", b"c"]);
    }
}
