//! Encodes paths at the end of a URI. Not an expansion of `{+path}`, which would leave a `?` or `#` of the path
//! unencoded.
//!
//! Law: a segment has one text form. Characters that a URI or the guard would not let through are written as `~` and
//! two hexadecimal digits for each byte: controls, backslashes, bytes that are not UTF-8, slashes within a name. A `~`
//! before two such digits is `~7E`.

use mcp_resources_engine::guard;
use mcp_resources_template::uri;
use std::borrow::Cow;

/// Appends `path`, and percent-encodes all characters but those that a path may contain (RFC 3986, section 3.3).
pub fn append(out: &mut String, path: &str) {
    const PLAIN: &[u8] = b"-._~/!$&'()*+,;=:@";
    uri::encode(out, path.as_bytes(), |byte| byte.is_ascii_alphanumeric() || PLAIN.contains(&byte));
}

/// A text without its percent-encoding; `None` if that is not UTF-8.
pub fn decoded(text: &str) -> Option<String> {
    uri::decode(text).map(Cow::into_owned)
}

/// One segment as text, before it is percent-encoded.
pub fn text(segment: &[u8]) -> String {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let mut text = String::with_capacity(segment.len());
    if segment.first().is_some_and(is_word) && segment.iter().all(|byte| is_word(byte) || *byte == b'.') {
        text.extend(segment.iter().copied().map(char::from));
        return text;
    }
    let mut rest = segment;
    for chunk in segment.utf8_chunks() {
        for char in chunk.valid().chars() {
            let length = char.len_utf8();
            let (own, after) = rest.split_at(length);
            let is_escape = char == '~' && uri::hex_pair(after).is_some();
            if is_escape || matches!(char, '\\' | '/') || char.is_control() {
                own.iter().for_each(|byte| escape(&mut text, *byte));
            } else {
                text.push(char);
            }
            rest = after;
        }
        chunk.invalid().iter().for_each(|byte| escape(&mut text, *byte));
        rest = &rest[chunk.invalid().len()..];
    }
    // A name that looks like a drive, like dots or like an encoded separator is hidden however it is percent-encoded.
    let mut whole = String::from("file:///-/");
    append(&mut whole, &text);
    if !matches!(segment, b"." | b"..") && guard::is_harmless(&whole) {
        return text;
    }
    text.clear();
    for byte in segment {
        if is_word(byte) {
            text.push(char::from(*byte));
        } else {
            escape(&mut text, *byte);
        }
    }
    text
}

fn escape(text: &mut String, byte: u8) {
    use std::fmt::Write;
    let _ = write!(text, "~{byte:02X}");
}

#[cfg(test)]
mod spelling {
    use super::text;

    // S-04: any name is one segment.
    #[test]
    fn names_are_segments() {
        for (name, expected) in [
            ("a/b", "a~2Fb"),
            ("a~2Fb", "a~7E2Fb"),
            ("~", "~"),
            (".", "~2E"),
            ("..", "~2E~2E"),
            ("../..", "..~2F.."),
            ("a%2Fb", "a~252Fb"),
        ] {
            assert_eq!(text(name.as_bytes()), expected);
        }
    }
}

#[cfg(test)]
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
