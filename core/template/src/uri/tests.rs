//! A URI is validated before it is used.

use super::*;
use proptest::prelude::*;

const MAX: usize = 65_536;

fn normal(uri: &str) -> String {
    normalize(uri, MAX).unwrap().into_owned()
}

#[test]
fn normal_forms_are_borrowed() {
    for uri in ["x:", "note://7", "x://h/%2F%C3%A9?a=%26#%25", "https://[::1]:8080/a", "urn:isbn:0451450523"]
    {
        assert!(matches!(normalize(uri, MAX), Ok(Cow::Borrowed(same)) if same == uri), "{uri}");
    }
}

#[test]
fn spellings_of_one_uri_have_one_normal_form() {
    for (uri, expected) in [
        ("BOOKS://Host/Path", "books://Host/Path"),
        ("HTTPS://User@Example.COM:443/Path", "https://user@example.com:443/Path"),
        ("ftp://%41.example/", "ftp://a.example/"),
        ("file://Docs/%7ea", "file://Docs/~a"),
        ("x://h/%c3%a9%2f", "x://h/%C3%A9%2F"),
        ("x://h/é", "x://h/%C3%A9"),
        ("x://h/[a]|^?[b]#[c]", "x://h/%5Ba%5D%7C%5E?%5Bb%5D#%5Bc%5D"),
        ("x://h|/", "x://h%7C/"),
        ("http://é/", "http://%C3%A9/"),
        ("x://[::1]/[", "x://[::1]/%5B"),
        ("x://h/%252F", "x://h/%252F"),
        ("x://h/./../a//", "x://h/./../a//"),
    ] {
        assert_eq!(normal(uri), expected);
    }
}

#[test]
fn what_is_no_uri_is_refused_at_its_offset() {
    for (uri, offset) in [
        ("", 0),
        ("/a", 0),
        ("my_app://1", 0),
        ("1x://h", 0),
        ("x", 0),
        ("x://h/100%", 9),
        ("x://h/%zz", 6),
        ("x://h/a b", 7),
        ("x://h/\u{7f}", 6),
        ("x://h/a\\b", 7),
        ("x://h/{a}", 6),
        ("x:a#b#c", 5),
        ("kv://ns:key", 7),
        ("x://a@b@c/", 5),
        ("x://[1", 4),
        ("x://[1]", 4),
        ("x://h[1]", 5),
        ("x://h]", 5),
        ("x://[::1]a", 9),
        ("x://[v1.]", 4),
        ("x://[::1%25e]", 4),
    ] {
        assert_eq!(normalize(uri, MAX).map_err(|error| error.offset), Err(offset), "{uri}");
    }
}

#[test]
fn length_is_bounded() {
    let uri = format!("x:{}", "a".repeat(MAX - 2));
    assert!(normalize(&uri, MAX).is_ok());
    assert_eq!(normalize(&(uri + "a"), MAX).map_err(|error| error.offset), Err(MAX));
}

#[test]
fn strict_refuses_what_rfc_3986_does_not_have() {
    for uri in ["x://h/é", "x://h/|", "x://h/^", "x://h/[", "x:?]"] {
        assert!(normalize(uri, MAX).is_ok() && normalize_strict(uri, MAX).is_err(), "{uri}");
    }
}

#[test]
fn decoding_is_once_and_utf8_only() {
    assert_eq!(decode_strict("a%252Fb").as_deref(), Some("a%2Fb"));
    assert_eq!(decode_strict("%C3%A9").as_deref(), Some("é"));
    for raw in ["%FF", "%C0%AF", "%ED%A0%80", "%", "%4"] {
        assert_eq!(decode_strict(raw), None, "{raw}");
    }
}

/// Texts that are almost URIs: significant pieces in any order.
fn nearly_uri() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "Z",
        "1",
        "-",
        ".",
        "_",
        "~",
        "!",
        "$",
        "&",
        "'",
        "(",
        ")",
        "*",
        "+",
        ",",
        ";",
        "=",
        ":",
        "/",
        "//",
        "?",
        "#",
        "@",
        "[",
        "]",
        "[::1]",
        "[v1.a:]",
        "[1:2:3:4:5:6:7::]",
        "::",
        "%41",
        "%2f",
        "%C3",
        "%",
        "%4",
        "é",
        "|",
        "^",
        "\\",
        " ",
        "{",
        "\u{0}",
        ":80",
        "\"",
    ]);
    let start = prop::sample::select(vec![
        "x:", "x://", "HTTP://", "ftp://h", "", "a+b.c-1:", "1:", "x://h/", "x://u@",
    ]);
    (start, prop::collection::vec(piece, 0..10))
        .prop_map(|(start, pieces)| start.to_owned() + &pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strict_accepts_what_fluent_uri_accepts(uri in nearly_uri()) {
        prop_assert_eq!(normalize_strict(&uri, MAX).is_ok(), fluent_uri::Uri::parse(uri.as_str()).is_ok());
    }

    #[test]
    fn normal_form_is_a_fixed_point_in_strict_syntax(uri in nearly_uri()) {
        if let Ok(once) = normalize(&uri, MAX) {
            prop_assert!(matches!(normalize_strict(&once, 3 * MAX), Ok(Cow::Borrowed(twice)) if twice == &*once));
            prop_assert!(once.len() <= 3 * uri.len() && uri.len() <= 3 * once.len());
        }
    }
}
