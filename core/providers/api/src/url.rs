//! URLs that redirects lead to, and their origins.

use mcp_resources_template::uri;
use ureq::http::Uri;

/// The URL that a redirect from `from` leads to: a reference, resolved as RFC 3986 (5.2) says. `None` if it may not be followed.
///
/// Bytes that no URL has, such as those of raw UTF-8, are percent-encoded, as other clients do.
pub(super) fn redirected(from: &Uri, location: &[u8]) -> Option<Uri> {
    let location = encoded(location.trim_ascii());
    let reference = location.split('#').next().filter(|reference| !reference.is_empty())?;
    let to: Uri = uri::resolve(&from.to_string(), reference)?.parse().ok()?;
    let is_safe = match to.scheme_str()? {
        "https" => true,
        // What was encrypted stays so.
        "http" => from.scheme_str() == Some("http"),
        _ => false,
    };
    let authority = to.authority()?.as_str();
    let is_named = !authority.is_empty() && !authority.starts_with(':') && !authority.contains('@');
    (is_safe && is_named).then_some(to)
}

/// A reference without the bytes that no URL has.
fn encoded(location: &[u8]) -> String {
    let mut text = String::with_capacity(location.len());
    uri::encode(&mut text, location, |byte| byte.is_ascii_graphic());
    text
}

/// Whether two URLs have the same scheme, host and port.
pub(super) fn is_same_origin(one: &Uri, other: &Uri) -> bool {
    let origin = |uri: &Uri| {
        let default = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let host = uri.host().map(str::to_ascii_lowercase);
        (uri.scheme_str().map(str::to_owned), host, uri.port_u16().unwrap_or(default))
    };
    origin(one) == origin(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: a redirect never leaves encryption, and names no user.
    #[test]
    fn redirects_lead_to_http_alone() {
        let from: Uri = "https://host/a/b".parse().unwrap();
        for (location, to) in [
            ("/c", Some("https://host/c")),
            ("//other/c#d", Some("https://other/c")),
            ("https://other/c", Some("https://other/c")),
            ("http://host/c", None),
            ("file:///etc/passwd", None),
            ("https://me@other/", None),
            ("HTTPS://other", Some("https://other/")),
            ("c", Some("https://host/a/c")),
            ("./c", Some("https://host/a/c")),
            ("../c", Some("https://host/c")),
            ("../../../c/.", Some("https://host/c/")),
            ("/x/./y/../../z/..", Some("https://host/")),
            ("?x=1", Some("https://host/a/b?x=1")),
            ("c?x=../y#z", Some("https://host/a/c?x=../y")),
            ("1:2", Some("https://host/a/1:2")),
            ("/\u{e9} x", Some("https://host/%C3%A9%20x")),
            ("//other:80\\@evil/", None),
            ("https:c", None),
            ("https:///c", None),
            ("//", None),
            ("//:80/", None),
            ("#x", None),
            ("", None),
        ] {
            let found = redirected(&from, location.as_bytes()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), to, "{location}");
        }
        let uri = |text: &str| text.parse::<Uri>().unwrap();
        assert!(is_same_origin(&uri("https://Host/a"), &uri("https://host:443/b")));
        assert!(!is_same_origin(&uri("https://host/"), &uri("https://host:444/")));
        assert!(!is_same_origin(&uri("http://host/"), &uri("https://host/")));
    }
}
