//! Redirects: which are followed, and how those that are not are shown.
//!
//! Law: a request goes to another place of the same origin or nowhere, since its headers may be secrets.

use super::wire::SHOWN;
use hyper::header::{HeaderMap, LOCATION};
use hyper::{StatusCode, Uri};
use mcp_resources_engine::safe_text::shortened;
use mcp_resources_template::uri::resolve;

/// Whether a redirect with this status repeats the request as it is. Others turn a POST into a GET.
pub(super) fn keeps_request(status: StatusCode) -> bool {
    matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT)
}

/// The target of an answer that is a redirect to be followed from `from`.
pub(super) fn within_origin(status: StatusCode, headers: &HeaderMap, from: &Uri) -> Option<Uri> {
    let target = target(headers, from).filter(|_| keeps_request(status))?;
    is_same_origin(&target, from).then_some(target)
}

/// The target of a redirect for a message, without the query and the user, which can be secrets.
pub(super) fn shown_target(headers: &HeaderMap, from: &Uri) -> String {
    let shown = target(headers, from).and_then(|target| {
        let port = target.port().map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = target.scheme_str()?;
        let host = target.host()?;
        Some(shortened(&format!("{scheme}://{host}{port}{}", target.path()), SHOWN))
    });
    shown.unwrap_or_else(|| "another URL".into())
}

/// The `Location`, resolved against the URL of the request (RFC 9110, 10.2.2).
fn target(headers: &HeaderMap, from: &Uri) -> Option<Uri> {
    let location = headers.get(LOCATION)?.to_str().ok()?.trim();
    let reference = location.split('#').next().unwrap_or_default();
    resolve(&from.to_string(), reference)?.parse().ok()
}

fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let port =
        |uri: &Uri| uri.port_u16().or(if uri.scheme_str() == Some("https") { Some(443) } else { Some(80) });
    let has_user = one.authority().is_some_and(|authority| authority.as_str().contains('@'));
    let hosts = one.host().zip(other.host());
    !has_user
        && one.scheme() == other.scheme()
        && hosts.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
        && port(one) == port(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn headers(location: &str) -> HeaderMap {
        HeaderMap::from_iter([(LOCATION, HeaderValue::from_str(location).unwrap())])
    }

    /// RFC 9110, 10.2.2: references of every form; only those of the same origin are followed.
    #[test]
    fn redirects_stay_within_the_origin() {
        let from: Uri = "http://a.example:8000/api/mcp?key=1".parse().unwrap();
        for (location, target) in [
            ("/api/mcp/", Some("http://a.example:8000/api/mcp/")),
            ("http://a.example:8000/x?y=2#z", Some("http://a.example:8000/x?y=2")),
            ("HTTP://A.example:8000/x", Some("http://A.example:8000/x")),
            ("//a.example:8000/x", Some("http://a.example:8000/x")),
            ("mcp/", Some("http://a.example:8000/api/mcp/")),
            ("./v2/mcp", Some("http://a.example:8000/api/v2/mcp")),
            ("../mcp", Some("http://a.example:8000/mcp")),
            ("../../../..", Some("http://a.example:8000/")),
            ("?other", Some("http://a.example:8000/api/mcp?other")),
            ("", Some("http://a.example:8000/api/mcp?key=1")),
            ("a/b:c", Some("http://a.example:8000/api/a/b:c")),
            ("https://a.example:8000/x", None),
            ("http://a.example/x", None),
            ("http://a.example:80/x", None),
            ("http://b.example:8000/x", None),
            ("//b.example/x", None),
            ("http://me:pw@a.example:8000/x", None),
            ("http://a.example:8000@b.example/x", None),
            ("ftp://a.example:8000/x", None),
            ("mailto:me@a.example", None),
            ("http://", None),
            ("\\\\b.example\\x y", None),
        ] {
            let found = within_origin(StatusCode::TEMPORARY_REDIRECT, &headers(location), &from);
            assert_eq!(found.map(|uri| uri.to_string()).as_deref(), target, "{location}");
            assert_eq!(within_origin(StatusCode::FOUND, &headers(location), &from), None);
        }
        assert_eq!(within_origin(StatusCode::PERMANENT_REDIRECT, &HeaderMap::new(), &from), None);
        let secure: Uri = "https://a.example/mcp".parse().unwrap();
        assert!(
            within_origin(StatusCode::PERMANENT_REDIRECT, &headers("https://a.example:443/x"), &secure)
                .is_some()
        );
    }

    #[test]
    fn what_is_shown_has_no_secret() {
        let from: Uri = "http://a.example/mcp?key=1".parse().unwrap();
        for (location, shown) in [
            ("https://me:pw@b.example:1/x?token=2", "https://b.example:1/x"),
            ("?token=2", "http://a.example/mcp"),
            ("mailto:me", "another URL"),
        ] {
            assert_eq!(shown_target(&headers(location), &from), shown);
        }
    }
}
