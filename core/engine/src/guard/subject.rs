//! The form of a URI that globs are compared with (S-11), and the URIs that no glob matches.
//!
//! Law: what could reach another resource than it seems to is refused, however it is spelled; a refusal hides. The
//! checks look at the path: queries and fragments are the template's, whose policies judge their values.

use super::glob::Reach;
use mcp_resources_template::uri;
use std::borrow::Cow;

/// What globs are compared with: a canonical URI without dot segments.
#[derive(Clone, Debug)]
pub(super) struct Subject<'u> {
    text: Cow<'u, str>,
    /// The bytes of query and fragment, with the `?` or `#` before them.
    rest: usize,
}

impl Subject<'_> {
    /// The whole text.
    pub(super) fn whole(&self) -> &str {
        &self.text
    }

    /// The part that a glob decides about which names no more than `reach`.
    pub(super) fn part(&self, reach: Reach) -> &str {
        let (path, rest) = self.text.split_at(self.text.len() - self.rest);
        match reach {
            Reach::Path => path,
            Reach::Query => &self.text[..path.len() + rest.find('#').unwrap_or(rest.len())],
            Reach::Fragment => &self.text,
        }
    }

    /// Whether it is a path alone: then all its parts are the same.
    pub(super) fn is_bare(&self) -> bool {
        self.rest == 0
    }
}

/// The canonical URI `normal` without dot segments; `None` if nothing may match it: its path escapes its root, is not
/// UTF-8, or holds an encoded separator, a control, a drive or a look-alike of a dot segment.
pub(super) fn subject(normal: &str) -> Option<Subject<'_>> {
    let layout = Layout::of(normal);
    let path = &normal[layout.start..layout.end];
    if has_nul(&normal[layout.end..]) {
        return None;
    }
    let rest = normal.len() - layout.end;
    if is_plain(path.as_bytes()) {
        return Some(Subject { text: Cow::Borrowed(normal), rest });
    }
    // What a dot segment takes back has to be harmless too.
    let named: Vec<&str> = path.split('/').filter(|segment| !is_dot_segment(segment)).collect();
    if !is_harmless(&named.join("/"), layout) {
        return None;
    }
    let text = match without_dots(path)? {
        Cow::Borrowed(_) => Cow::Borrowed(normal),
        Cow::Owned(path) => Cow::Owned([&normal[..layout.start], &path, &normal[layout.end..]].concat()),
    };
    Some(Subject { text, rest })
}

/// Where the part of a URI is that is looked at: authority and path, as one.
#[derive(Clone, Copy)]
struct Layout {
    start: usize,
    end: usize,
    has_authority: bool,
    is_file: bool,
}

impl Layout {
    fn of(normal: &str) -> Self {
        let scheme = uri::scheme(normal);
        let after = (scheme.len() + 1).min(normal.len());
        let has_authority = normal[after..].starts_with("//");
        let start = if has_authority { after + 2 } else { after };
        let end = normal[start..].find(['?', '#']).map_or(normal.len(), |at| start + at);
        Self { start, end, has_authority, is_file: scheme == "file" }
    }
}

/// Whether nothing in the path has to be looked at twice: no triplet, no segment that begins with a dot or is empty, no
/// colon.
fn is_plain(path: &[u8]) -> bool {
    let mut before = 0;
    path.iter().all(|&byte| {
        let is_plain = match byte {
            b'%' | b':' => false,
            b'.' => !matches!(before, 0 | b'/'),
            b'/' => before != b'/',
            _ => true,
        };
        before = byte;
        is_plain
    })
}

fn has_nul(text: &str) -> bool {
    text.contains("%00")
}

/// Whether the path, without the dot segments that it spells, stays harmless however often it is decoded.
fn is_harmless(path: &str, layout: Layout) -> bool {
    const ROUNDS: usize = 8;
    let mut text = Cow::Borrowed(path);
    for _ in 0..ROUNDS {
        if !is_harmless_text(&text, layout) {
            return false;
        }
        if !text.contains('%') {
            return true;
        }
        let Some(decoded) = decode(&text) else { return false };
        if decoded == *text {
            return true;
        }
        // A separator that shows only now was hidden.
        if separators(&decoded) != separators(&text) {
            return false;
        }
        text = Cow::Owned(decoded);
    }
    false
}

/// Decodes percent-triplets once; what is no triplet stays. `None` if the result is not UTF-8.
fn decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let triplet = if byte == b'%' { uri::hex_pair(&bytes[at + 1..]) } else { None };
        out.push(triplet.unwrap_or(byte));
        at += if triplet.is_some() { 3 } else { 1 };
    }
    String::from_utf8(out).ok()
}

fn separators(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'/' | b'\\')).count()
}

/// Judges a path as far as it is decoded.
fn is_harmless_text(text: &str, layout: Layout) -> bool {
    if text.chars().any(|char| char.is_control() || char == '\\') {
        return false;
    }
    // Of a gap or a drive only that is suspect which comes after something else than the authority.
    let mut is_begun = false;
    let mut segments = text.split('/').enumerate().peekable();
    while let Some((at, segment)) = segments.next() {
        let is_gap = layout.is_file && is_begun && segment.is_empty() && segments.peek().is_some();
        if is_gap || is_begun && is_drive(segment, layout.is_file) || folds_to_dots(segment) {
            return false;
        }
        let is_authority = layout.has_authority && at == 0;
        is_begun |= !is_authority && !segment.is_empty();
    }
    true
}

fn is_drive(segment: &str, is_file: bool) -> bool {
    let bytes = segment.as_bytes();
    let has_drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && matches!(bytes[1], b':' | b'|');
    has_drive && (is_file || bytes.len() == 2)
}

fn is_dot_segment(segment: &str) -> bool {
    matches!(segment, "." | "..")
}

/// Whether a segment, or a part of it between look-alikes of separators, is a dot segment once look-alikes are what
/// they look like, and blanks around it and parameters behind it are gone.
fn folds_to_dots(segment: &str) -> bool {
    let mut folded = String::with_capacity(segment.len());
    for char in segment.chars() {
        match char {
            '\u{2024}' | '\u{ff0e}' | '\u{ff61}' | '\u{3002}' | '\u{fe52}' => folded.push('.'),
            '\u{2025}' | '\u{fe30}' => folded.push_str(".."),
            '\u{ff0f}' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff3c}' | '\u{fe68}' | '\u{2216}'
            | '\u{29f5}' => folded.push('/'),
            // Blank, or without width: what is seen is what is left.
            blank if blank.is_whitespace() => {}
            '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => {}
            other => folded.push(other),
        }
    }
    folded.split('/').any(|part| {
        let part = part.split(';').next().unwrap_or_default();
        !part.is_empty() && part.bytes().all(|byte| byte == b'.')
    })
}

/// Resolves `.` and `..`; `None` if a `..` leaves the root.
fn without_dots(path: &str) -> Option<Cow<'_, str>> {
    if !path.split('/').any(is_dot_segment) {
        return Some(Cow::Borrowed(path));
    }
    // The first segment is the authority, or the root before the first slash: nothing is above it.
    let mut kept: Vec<&str> = Vec::new();
    let mut segments = path.split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "." | ".." if kept.is_empty() => return None,
            ".." if kept.len() == 1 => return None,
            ".." => {
                kept.pop();
                if is_last {
                    kept.push("");
                }
            }
            "." if is_last => kept.push(""),
            "." => {}
            other => kept.push(other),
        }
    }
    Some(Cow::Owned(kept.join("/")))
}
