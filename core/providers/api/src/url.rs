//! URLs with a place for an id: `https://host/items/{id}`.
//!
//! Law: an id is one segment, or one value, whatever it contains. It never changes the scheme, the host or the path before it.

use mcp_resources_template::uri;
use ureq::http::Uri;

/// A URL with a place for an id.
#[derive(Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    /// The texts around the places.
    parts: Vec<String>,
}

impl UrlTemplate {
    /// Reads a URL.
    ///
    /// # Errors
    /// The reason why it is invalid: a phrase that follows the URL in a message, without repeating it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let parts: Vec<String> = text.split("{id}").map(str::to_owned).collect();
        if parts.iter().any(|part| part.contains(['{', '}'])) {
            return Err("has another placeholder than {id}");
        }
        let Some((scheme, rest)) = text.split_once("://") else { return Err("does not begin with https://") };
        if !matches!(scheme, "http" | "https") {
            return Err("begins neither with https:// nor with http://");
        }
        let (authority, _) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('{') {
            return Err("has {id} in its host; an id can stand in the path or the query alone");
        }
        if authority.contains('@') {
            return Err("has a user or a password; send them as a header from the environment");
        }
        if text.contains('#') {
            return Err("has a fragment, which no server sees; leave it out");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("is no URL; percent-encode what is not ASCII");
        }
        let template = Self { parts };
        let sample: Uri =
            template.expand("x").parse().map_err(|_| "is no URL; percent-encode what is not ASCII")?;
        let is_named = sample.host().is_some_and(|host| !host.is_empty());
        if is_named { Ok(template) } else { Err("has no host") }
    }

    /// Whether it has a place for an id.
    pub fn takes_id(&self) -> bool {
        self.parts.len() > 1
    }

    /// The URL with `id` in each place.
    pub fn expand(&self, id: &str) -> String {
        // Dots alone would be a step in the path.
        let is_dots = id.bytes().all(|byte| byte == b'.');
        let is_plain = |byte: u8| match byte {
            b'.' => !is_dots,
            _ => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'~'),
        };
        let mut encoded = String::with_capacity(id.len());
        uri::encode(&mut encoded, id.as_bytes(), is_plain);
        self.parts.join(&encoded)
    }
}

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

/// A URL may have a key in its query.
impl std::fmt::Debug for UrlTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlTemplate").field("takes_id", &self.takes_id()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: whatever an id contains, it is one encoded segment.
    #[test]
    fn an_id_is_one_segment() {
        let url = UrlTemplate::parse("https://host/items/{id}/x?q={id}").unwrap();
        for (id, encoded) in [
            ("7", "7"),
            ("a.b-c_d~e", "a.b-c_d~e"),
            (".", "%2E"),
            ("..", "%2E%2E"),
            ("../..", "..%2F.."),
            ("//host", "%2F%2Fhost"),
            ("a\r\nHost: evil", "a%0D%0AHost%3A%20evil"),
            ("a?b#c&d=e%2F", "a%3Fb%23c%26d%3De%252F"),
            ("@evil:80", "%40evil%3A80"),
            ("検", "%E6%A4%9C"),
        ] {
            assert_eq!(url.expand(id), format!("https://host/items/{encoded}/x?q={encoded}"));
        }
    }

    // S-20: what is no URL, and where an id could lead elsewhere, is refused at the start.
    #[test]
    fn wrong_urls_are_refused() {
        for (url, fault) in [
            ("", "does not begin with https://"),
            ("host/items", "does not begin with https://"),
            ("ftp://host/", "begins neither"),
            ("{id}://host/", "begins neither"),
            ("https://{id}/", "in its host"),
            ("https://api.{id}.example/x", "in its host"),
            ("https://host:{id}/", "in its host"),
            ("https://user:secret@host/", "has a user or a password"),
            ("https://host/{name}", "another placeholder"),
            ("https://host/{id", "another placeholder"),
            ("https://host/x#y", "has a fragment"),
            ("https:///x", "is no URL"),
            ("https://host/a b", "is no URL"),
            ("https://host/\r\nx", "is no URL"),
        ] {
            let found = UrlTemplate::parse(url).unwrap_err();
            assert!(found.contains(fault), "{url}: {found}");
        }
        assert!(UrlTemplate::parse("http://127.0.0.1:80?q={id}").is_ok());
    }

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
