//! The guard's globs and decisions.

use mcp_resources_engine::guard::{Glob, Globs, Guard, Policy};
use mcp_resources_engine::principal::Principal;
use mcp_resources_template::uri::normalize;

const MAX: usize = 1 << 16;

/// The first line is a URI, the others are globs: a glob matches what a table of all its prefixes says, a set of them
/// what one of them does, and nothing that is permitted can be decoded to a way out.
pub fn guard(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut lines = text.lines();
    let Ok(normal) = normalize(lines.next().unwrap_or_default(), MAX) else { return };
    let globs: Vec<&str> = lines.take(16).filter(|line| Glob::parse(line).is_ok()).collect();
    for text in globs.iter().filter(|text| is_plain(text)) {
        let found = Glob::parse(text).is_ok_and(|glob| glob.matches(&normal));
        assert_eq!(found, matches(text, normal.as_bytes()), "{text} {normal}");
    }
    let some = globs.iter().copied().collect();
    let none = Globs::default();
    let all = permits(None, &none, &normal);
    let only = permits(Some(&some), &none, &normal);
    let without = permits(None, &some, &normal);
    assert!(!(only && without));
    assert!(!only && !without || all);
    if all && is_resolved(&normal) {
        let allowed = globs.iter().any(|text| decides(text, &normal, |part, own| part == own));
        let narrowed = globs.iter().any(|text| decides(text, &normal, |part, own| part >= own));
        assert_eq!((only, without), (allowed, !narrowed), "{globs:?} {normal}");
        assert!(is_harmless(&normal), "{normal}");
    }
}

/// Whether the glob matches one of the parts of the URI that `asks` is true of: 0 is the path with what is before it, 1 goes
/// on to the end of the query, 2 is everything. `asks` is given a part and the one that the glob itself decides about.
fn decides(glob: &str, normal: &str, asks: impl Fn(usize, usize) -> bool) -> bool {
    let own = match (names(glob, '?'), names(glob, '#')) {
        (_, true) => 2,
        (true, false) => 1,
        (false, false) => 0,
    };
    let parts = [path(normal), normal.split('#').next().unwrap_or_default(), normal];
    let matches = |part: &&str| Glob::parse(glob).is_ok_and(|glob| glob.matches(part));
    parts.iter().enumerate().any(|(number, part)| asks(number, own) && matches(part))
}

/// Whether a glob has the character as itself.
fn names(glob: &str, sign: char) -> bool {
    let mut chars = glob.chars();
    while let Some(char) = chars.next() {
        let (own, is_wild) = if char == '\\' { (chars.next(), false) } else { (Some(char), char == '?') };
        if own == Some(sign) && !is_wild {
            return true;
        }
    }
    false
}

fn permits(allow: Option<&Globs>, deny: &Globs, normal: &str) -> bool {
    let mut policy = Policy::default();
    // Without any rule nothing is looked at.
    policy.allow = allow.cloned().or_else(|| Some(["*"].into_iter().collect()));
    policy.deny = deny.clone();
    Guard::new(&policy, false).is_ok_and(|guard| guard.permits(&Principal::local(), normal))
}

/// Whether the glob's text is in canonical form as it stands, with nothing escaped.
fn is_plain(text: &str) -> bool {
    text != "*"
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/:.-*?".contains(&byte))
}

/// By what each prefix of the glob can match.
fn matches(glob: &str, uri: &[u8]) -> bool {
    let glob = glob.as_bytes();
    let mut at = 0;
    let mut ends = vec![false; uri.len() + 1];
    ends[0] = true;
    while let Some(&byte) = glob.get(at) {
        let (length, next) = match &glob[at..] {
            [b'/', b'*', b'*', b'/', ..] => {
                let slash = step(&ends, uri, |byte| byte == b'/');
                let deep = step(&spread(&slash, uri, |_| true), uri, |byte| byte == b'/');
                // The slash at the end of one belongs to the next.
                let both: Vec<bool> = slash.iter().zip(&deep).map(|(one, other)| *one || *other).collect();
                (3, (0..=uri.len()).map(|end| end < uri.len() && both[end + 1] && uri[end] == b'/').collect())
            }
            [b'*', b'*', ..] => (2, spread(&ends, uri, |_| true)),
            [b'*', ..] => (1, spread(&ends, uri, |byte| byte != b'/')),
            [b'?', ..] => (1, step(&ends, uri, |byte| byte != b'/')),
            _ => (1, step(&ends, uri, |other| other == byte)),
        };
        ends = next;
        at += length;
    }
    ends[uri.len()]
}

fn step(ends: &[bool], uri: &[u8], takes: impl Fn(u8) -> bool) -> Vec<bool> {
    (0..=uri.len()).map(|end| end > 0 && ends[end - 1] && takes(uri[end - 1])).collect()
}

fn spread(ends: &[bool], uri: &[u8], takes: impl Fn(u8) -> bool) -> Vec<bool> {
    let mut open = false;
    (0..=uri.len())
        .map(|end| {
            open = ends[end] || open && takes(uri[end - 1]);
            open
        })
        .collect()
}

fn is_resolved(normal: &str) -> bool {
    !path(normal).split('/').any(|segment| matches!(segment, "." | ".."))
}

fn path(normal: &str) -> &str {
    normal.split(['?', '#']).next().unwrap_or_default()
}

/// However often the path is decoded, it has the same separators, and no dot segment.
fn is_harmless(normal: &str) -> bool {
    let separators = |text: &[u8]| text.iter().filter(|byte| matches!(byte, b'/' | b'\\')).count();
    let mut text = path(normal).as_bytes().to_vec();
    for _ in 0..8 {
        let decoded = decode(&text);
        let is_same = separators(&decoded) == separators(&text) && !decoded.contains(&0);
        if !is_same || decoded.split(|byte| *byte == b'/').any(|segment| matches!(segment, b"." | b"..")) {
            return false;
        }
        text = decoded;
    }
    true
}

fn decode(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let digits = text.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        let is_hex = |digits: &&str| digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let value = digits.filter(is_hex).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(value.filter(|_| byte == b'%').unwrap_or(byte));
        at += if byte == b'%' && value.is_some() { 3 } else { 1 };
    }
    out
}
