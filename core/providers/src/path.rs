//! Paths as the end of a URI. Not an expansion of `{+path}`, which would leave a `?` or `#` of the path as it is.

/// Appends `path`, with all percent-encoded but what a path may hold as it is (RFC 3986, section 3.3).
#[cfg(any(feature = "clock", feature = "files", feature = "memory"))]
pub(crate) fn append(uri: &mut String, path: &str) {
    const PLAIN: &[u8] = b"-._~/!$&'()*+,;=:@";
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || PLAIN.contains(&byte) {
            uri.push(char::from(byte));
        } else {
            mcp_resources_template::uri::push_encoded(uri, byte);
        }
    }
}

#[cfg(all(test, feature = "memory"))]
mod tests {
    use super::append;

    #[test]
    fn only_what_a_path_may_hold_stays() {
        for (path, expected) in [
            ("a/b c", "memory:///a/b%20c"),
            ("100%?#", "memory:///100%25%3F%23"),
            ("検索", "memory:///%E6%A4%9C%E7%B4%A2"),
            ("a:b@c", "memory:///a:b@c"),
        ] {
            let mut uri = String::from("memory:///");
            append(&mut uri, path);
            assert_eq!(uri, expected);
        }
    }
}
