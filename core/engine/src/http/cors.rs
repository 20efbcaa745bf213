//! Access for pages of other origins: none by default, unless the rules allow it. Not part of the protocol.

use super::head::{RequestHead, Response};
use std::borrow::Cow;

const REQUEST_HEADERS: &str = "Content-Type, Accept, Authorization, MCP-Protocol-Version, Mcp-Method, Mcp-Name, \
                               Mcp-Session-Id, Last-Event-ID, traceparent, tracestate, baggage";
const RESPONSE_HEADERS: &str = "Mcp-Session-Id, WWW-Authenticate";
/// Time for which browsers may cache the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// Adds the headers that let a page of `origin` read the response. `origin` has been checked: it consists of a scheme,
/// a host and a port.
pub(super) fn expose(headers: &mut Vec<(&'static str, Cow<'static, str>)>, origin: Option<&str>) {
    if let Some(origin) = origin {
        headers.push(("access-control-allow-origin", origin.to_owned().into()));
        headers.push(("access-control-expose-headers", RESPONSE_HEADERS.into()));
        headers.push(("vary", "Origin".into()));
    }
}

/// Whether it is a preflight: the request with which a browser asks whether a page may send another one.
pub(super) fn is_preflight(head: &RequestHead<'_>) -> bool {
    head.verb == "OPTIONS" && head.all("access-control-request-method").next().is_some()
}

/// The answer to a preflight of an allowed origin, whose pages may send the headers `further` too.
pub(super) fn preflight(verbs: &'static str, further: &[String]) -> Response {
    let headers = match further.is_empty() {
        true => Cow::Borrowed(REQUEST_HEADERS),
        false => Cow::Owned(format!("{REQUEST_HEADERS}, {}", further.join(", "))),
    };
    Response::empty(204)
        .with("access-control-allow-methods", verbs)
        .with("access-control-allow-headers", headers)
        .with("access-control-max-age", MAX_AGE)
}
