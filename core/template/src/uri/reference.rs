//! Resolves relative references, such as the `Location` of a redirect.

/// Resolves `reference` against `base`: the algorithm of RFC 3986, section 5.2, in which a reference with a scheme is never
/// relative. Removes dot segments; changes nothing else, and does not check the characters.
///
/// `None` if neither has a scheme, or if the result would have no authority and a path that looks like one.
///
/// # Examples
/// ```
/// use mcp_resources_template::uri::resolve;
/// assert_eq!(resolve("https://host/a/b?c", "../d#e").as_deref(), Some("https://host/d#e"));
/// assert_eq!(resolve("a/b", "c"), None);
/// ```
pub fn resolve(base: &str, reference: &str) -> Option<String> {
    let base = UriReference::split(base);
    let given = UriReference::split(reference);
    let is_whole = given.scheme.is_some() || given.authority.is_some();
    let authority = if is_whole { given.authority } else { base.authority };
    let (path, query) = match given.path {
        path if is_whole || path.starts_with('/') => (without_dots(path), given.query),
        "" => (base.path.to_owned(), given.query.or(base.query)),
        path => (without_dots(&base.merged_with(path)), given.query),
    };
    if authority.is_none() && path.starts_with("//") {
        return None;
    }
    let mut target = given.scheme.or(base.scheme)?.to_owned();
    target.push(':');
    for (sign, part) in [("//", authority), ("", Some(&*path)), ("?", query), ("#", given.fragment)] {
        if let Some(part) = part {
            target.push_str(sign);
            target.push_str(part);
        }
    }
    Some(target)
}

/// The parts of a URI reference (RFC 3986, appendix B).
struct UriReference<'r> {
    scheme: Option<&'r str>,
    authority: Option<&'r str>,
    path: &'r str,
    query: Option<&'r str>,
    fragment: Option<&'r str>,
}

impl<'r> UriReference<'r> {
    fn split(text: &'r str) -> Self {
        let (scheme, rest) = match super::scheme_len(text.as_bytes()) {
            Some(length) => (Some(&text[..length]), &text[length + 1..]),
            None => (None, text),
        };
        let (rest, fragment) = cut(rest, '#');
        let (rest, query) = cut(rest, '?');
        let (authority, path) = match rest.strip_prefix("//") {
            Some(rest) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                (Some(authority), path)
            }
            None => (None, rest),
        };
        Self { scheme, authority, path, query, fragment }
    }

    /// The relative `path` in the folder of this one (RFC 3986, 5.2.3).
    fn merged_with(&self, path: &str) -> String {
        if self.authority.is_some() && self.path.is_empty() {
            return format!("/{path}");
        }
        let folder = self.path.rfind('/').map_or("", |end| &self.path[..=end]);
        format!("{folder}{path}")
    }
}

/// The text before the first `sign`, and the text after it.
fn cut(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// A path without its segments `.` and `..` (RFC 3986, 5.2.4).
fn without_dots(path: &str) -> String {
    let mut kept = String::with_capacity(path.len());
    let mut rest = path;
    while !rest.is_empty() {
        let (start, segment) = match rest.strip_prefix('/') {
            Some(after) => (1, after),
            None => (0, rest),
        };
        let length = segment.find('/').unwrap_or(segment.len());
        let end = start + length;
        match &segment[..length] {
            dots @ ("." | "..") => {
                if dots == ".." && start == 1 {
                    kept.truncate(kept.rfind('/').unwrap_or(0));
                }
                // The slash after it takes the place of the slash before it.
                let skipped = if start == 0 { (end + 1).min(rest.len()) } else { end };
                rest = if start == 1 && end == rest.len() { "/" } else { &rest[skipped..] };
            }
            _ => {
                kept.push_str(&rest[..end]);
                rest = &rest[end..];
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use fluent_uri::{Uri, UriRef};
    use proptest::prelude::*;

    /// The base of the examples of RFC 3986, 5.4.
    const BASE: &str = "http://a/b/c/d;p?q";

    // RFC 3986, 5.4.1 and 5.4.2, with the strict reading of `http:g`.
    #[test]
    fn the_examples_of_the_standard_are_resolved() {
        for (reference, target) in [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            ("g?y#s", "http://a/b/c/g?y#s"),
            (";x", "http://a/b/c/;x"),
            ("g;x", "http://a/b/c/g;x"),
            ("g;x?y#s", "http://a/b/c/g;x?y#s"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("../../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            (".g", "http://a/b/c/.g"),
            ("g..", "http://a/b/c/g.."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/./h", "http://a/b/c/g/h"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/./y", "http://a/b/c/g;x=1/y"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("g#s/./x", "http://a/b/c/g#s/./x"),
            ("g#s/../x", "http://a/b/c/g#s/../x"),
            ("http:g", "http:g"),
        ] {
            assert_eq!(resolve(BASE, reference).as_deref(), Some(target), "{reference}");
        }
    }

    #[test]
    fn other_bases_are_resolved_too() {
        for (base, reference, target) in [
            ("http://a", "g", Some("http://a/g")),
            ("http://a?q", "", Some("http://a?q")),
            ("http://a", "..", Some("http://a/")),
            ("a:b", "../c", Some("a:c")),
            ("a:b/c", "./d", Some("a:b/d")),
            ("a:/b", ".//c", None),
            ("a:/b", "..//c", None),
            ("a:b", "a:/..//c", None),
            ("/b", "c", None),
            ("", "", None),
            ("1:b", "c", None),
            ("/b", "a:c", Some("a:c")),
            ("http://a/b//c/", "..", Some("http://a/b//")),
            ("http://a/b", "c//../d", Some("http://a/c/d")),
            ("http://a/b", "1:2", Some("http://a/1:2")),
        ] {
            assert_eq!(resolve(base, reference).as_deref(), target, "{base} {reference}");
        }
    }

    proptest! {
        /// Another implementation agrees where it follows the standard: not for rootless paths, and not for a base with dot
        /// segments.
        #[test]
        fn references_are_resolved_as_by_another_library(
            base in "a://h(/[bc]{0,3}){0,4}/e?(\\?q)?",
            reference in "((x:)?//g)?(/?[d.]{0,3}){0,5}(\\?y)?(#s)?",
        ) {
            if let (Ok(other), Ok(given)) = (Uri::parse(&*base), UriRef::parse(&*reference)) {
                let expected = given.resolve_against(&other).ok().map(|uri| uri.as_str().to_owned());
                prop_assert_eq!(resolve(&base, &reference), expected);
            }
        }
    }
}
