//! The form of a URI that globs are compared with, and the URIs that no glob matches.
//!
//! Law: a URI that might reach another resource than its text suggests is refused, however it is spelled, and hidden.
//! The checks cover the path only: values in queries and fragments are checked by the policies of the template.

use super::glob::{GlobReach, decoded};
use mcp_resources_template::uri;
use std::borrow::Cow;

/// A canonical URI without dot segments, for comparison with globs.
#[derive(Clone, Debug)]
pub(super) struct GuardSubject<'u> {
    text: Cow<'u, str>,
    /// The length of query and fragment in bytes, with the `?` or `#` before them.
    rest: usize,
}

/// A subject, and its form for globs that narrow.
#[derive(Clone, Debug)]
pub(super) struct Subjects<'u> {
    /// The URI as it is.
    pub(super) given: GuardSubject<'u>,
    /// The URI with optional encodings decoded, if it has any.
    pub(super) decoded: Option<GuardSubject<'u>>,
}

impl GuardSubject<'_> {
    /// The whole text.
    pub(super) fn whole(&self) -> &str {
        &self.text
    }

    /// The part of the URI that a glob with this `reach` covers.
    pub(super) fn part(&self, reach: GlobReach) -> &str {
        let (path, rest) = self.text.split_at(self.text.len() - self.rest);
        match reach {
            GlobReach::Path => path,
            GlobReach::Query => &self.text[..path.len() + rest.find('#').unwrap_or(rest.len())],
            GlobReach::Fragment => &self.text,
        }
    }

    /// Whether the URI has no query and no fragment, so that all parts are the same.
    pub(super) fn is_bare(&self) -> bool {
        self.rest == 0
    }
}

/// Returns both forms of the canonical URI `normal`; `None` as for [`subject`].
pub(super) fn subjects(normal: &str) -> Option<Subjects<'_>> {
    let given = subject(normal)?;
    let decoded = decoded_subject(&given);
    Some(Subjects { given, decoded })
}

fn decoded_subject<'u>(given: &GuardSubject<'u>) -> Option<GuardSubject<'u>> {
    if !given.text.contains('%') {
        return None;
    }
    let text = decoded(given.text.as_bytes(), &|byte| Some(*byte), &|byte| byte)?;
    let text = String::from_utf8(text).ok()?;
    // The first `?` or `#` stays: an encoded one in a path is not decoded.
    let rest = text.find(['?', '#']).map_or(0, |at| text.len() - at);
    Some(GuardSubject { text: Cow::Owned(text), rest })
}

/// Returns the canonical URI `normal` without dot segments. `None` if no glob may match it: its path escapes its root,
/// is not UTF-8, or contains an encoded separator, a control character, a drive, or a look-alike of a dot segment.
pub(super) fn subject(normal: &str) -> Option<GuardSubject<'_>> {
    let layout = UriLayout::from_uri(normal);
    let path = &normal[layout.start..layout.end];
    if has_nul(&normal[layout.end..]) {
        return None;
    }
    let rest = normal.len() - layout.end;
    if is_plain(path.as_bytes()) {
        return Some(GuardSubject { text: Cow::Borrowed(normal), rest });
    }
    // Segments that a dot segment removes must be harmless too.
    let named: Vec<&str> = path.split('/').filter(|segment| !is_dot_segment(segment)).collect();
    if !is_harmless(&named.join("/"), layout) {
        return None;
    }
    let text = match without_dots(path)? {
        Cow::Borrowed(_) => Cow::Borrowed(normal),
        Cow::Owned(path) => Cow::Owned([&normal[..layout.start], &path, &normal[layout.end..]].concat()),
    };
    Some(GuardSubject { text, rest })
}

/// The position of the examined part of a URI: authority and path together.
#[derive(Clone, Copy)]
struct UriLayout {
    start: usize,
    end: usize,
    has_authority: bool,
    is_file: bool,
}

impl UriLayout {
    fn from_uri(normal: &str) -> Self {
        let scheme = uri::scheme(normal);
        let after = (scheme.len() + 1).min(normal.len());
        let has_authority = normal[after..].starts_with("//");
        let start = if has_authority { after + 2 } else { after };
        let end = normal[start..].find(['?', '#']).map_or(normal.len(), |at| start + at);
        Self { start, end, has_authority, is_file: scheme == "file" }
    }
}

/// Whether the path needs no further checks: no percent-triplet, no colon, and no segment that is empty or starts with
/// a dot.
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

/// Whether the path, without its literal dot segments, stays harmless however often it is decoded.
fn is_harmless(path: &str, layout: UriLayout) -> bool {
    const ROUNDS: usize = 8;
    let mut text = Cow::Borrowed(path);
    for _ in 0..ROUNDS {
        if !is_harmless_text(&text, layout) {
            return false;
        }
        if !text.contains('%') {
            return true;
        }
        let Some(decoded) = uri::decode(&text) else { return false };
        if decoded == *text {
            return true;
        }
        // A separator that appears only after decoding was hidden.
        if separators(&decoded) != separators(&text) {
            return false;
        }
        text = Cow::Owned(decoded.into_owned());
    }
    false
}

fn separators(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b'/' | b'\\')).count()
}

/// Checks one decoded form of a path.
fn is_harmless_text(text: &str, layout: UriLayout) -> bool {
    if text.chars().any(|char| char.is_control() || char == '\\') {
        return false;
    }
    // Empty segments and drives are suspicious only after the first non-empty segment of the path.
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

/// Whether a segment, or a part of it between look-alikes of separators, is a dot segment after replacing look-alikes
/// and removing blanks and parameters.
fn folds_to_dots(segment: &str) -> bool {
    let mut folded = String::with_capacity(segment.len());
    for char in segment.chars() {
        match char {
            '\u{2024}' | '\u{ff0e}' | '\u{ff61}' | '\u{3002}' | '\u{fe52}' => folded.push('.'),
            '\u{2025}' | '\u{fe30}' => folded.push_str(".."),
            '\u{ff0f}' | '\u{2044}' | '\u{2215}' | '\u{29f8}' | '\u{ff3c}' | '\u{fe68}' | '\u{2216}'
            | '\u{29f5}' => folded.push('/'),
            // White space and zero-width characters are invisible, so they are dropped.
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
    // The first segment is the authority, or empty before the first slash: `..` must not remove it.
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
