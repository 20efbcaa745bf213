//! Encodes paths as the end of URIs, and decodes them: every URI and every completion of a path of files, git, docs or
//! skills.
//!
//! ```text
//!   bytes of a path ──text──▶ a text that every URI can hold ──percent-encoding──▶ the URI       a\b ▶ a~5Cb ▶ a~5Cb
//!   bytes of a path ◀─decode─ the value of `path`, as the router has decoded it                   ü# ▶ ü# ▶ %C3%BC%23
//! ```
//!
//! Law: every path has one text and every text one path at most, so that there is nothing to normalise and no second way to
//! a file. A name in another Unicode normalisation is another name, unless the file system itself says that it is not, as
//! that of macOS does: rules, clients and watchers then speak of one name.

use crate::path;
use mcp_resources_template::uri;

pub use path::text;

/// The longest path that is looked for, in bytes.
pub const PATH: usize = 4_096;

/// The percent-encoded path: its segments as in a URI.
pub fn encode(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    for (at, segment) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        path::append(&mut out, &text(segment));
    }
    out
}

/// The path as the decoded value of a variable.
pub fn unencoded(path: &[u8]) -> String {
    path.split(|byte| *byte == b'/').map(text).collect::<Vec<_>>().join("/")
}

/// The path that the decoded `text` of a URI names, without a slash at its end; `None` if it names none.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(text.len());
    for (at, part) in text.split('/').enumerate() {
        if at > 0 {
            path.push(b'/');
        }
        let segment = segment(part)?;
        path.extend_from_slice(&segment);
    }
    Some(path)
}

/// The path that the value of `path` names, and whether it must be a directory's.
pub fn path(text: &str) -> Option<(Vec<u8>, bool)> {
    if text.is_empty() {
        return Some((Vec::new(), true));
    }
    let (text, is_dir) = text.strip_suffix('/').map_or((text, false), |text| (text, true));
    let path = decode(text).filter(|path| path.len() <= PATH)?;
    Some((path, is_dir))
}

/// The path of an entry.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

/// The names of a path, in order. None of the empty path.
pub fn components(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(move |_| !path.is_empty())
}

/// The name that a segment's text represents.
fn segment(part: &str) -> Option<Vec<u8>> {
    let bytes = part.as_bytes();
    let mut name = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let escaped = if byte == b'~' { uri::hex_pair(&bytes[at + 1..]) } else { None };
        name.push(escaped.unwrap_or(byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    let is_name = !matches!(&*name, b"" | b"." | b"..") && !name.contains(&b'/') && !name.contains(&0);
    // An escape that is not needed would be a second way to the file.
    (is_name && text(&name) == part).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-01: what URIs may not hold, and what the guard would hide.
    #[test]
    fn each_name_has_one_spelling() {
        for (name, spelled) in [
            (&b"main.rs"[..], "main.rs"),
            (b".env", ".env"),
            (b"a b", "a%20b"),
            ("ü".as_bytes(), "%C3%BC"),
            ("u\u{308}".as_bytes(), "u%CC%88"),
            (b"100%", "100%25"),
            (b"a%20b", "a%2520b"),
            (b"what?#", "what%3F%23"),
            (b"a\\b", "a~5Cb"),
            (b"a\nb", "a~0Ab"),
            ("a\u{85}b".as_bytes(), "a~C2~85b"),
            (b"\xff\xfe.txt", "~FF~FE.txt"),
            (b"~", "~"),
            (b"~41", "~7E41"),
            (b"~ff", "~7Eff"),
            (b"HEAD~10", "HEAD~7E10"),
            (b"...", "~2E~2E~2E"),
            (b"c:x", "c~3Ax"),
            (b"a%2Fb", "a~252Fb"),
            (b"a%00b", "a~2500b"),
            ("\u{ff0e}\u{ff0e}".as_bytes(), "~EF~BC~8E~EF~BC~8E"),
        ] {
            assert_eq!(encode(name), spelled);
            assert_eq!(decode(&text(name)).as_deref(), Some(name), "{spelled}");
        }
    }

    // S-01, S-11: no text leads out, and none is a second way.
    #[test]
    fn what_is_no_path_is_refused() {
        for text in [
            "", "/", "a/", "/a", "a//b", ".", "..", "a/..", "~2E~2E", "~2E./a", "a~2Fb", "a~00", "~41",
            "~5c", "c:x", "...", "a%2Fb", "a\\b", "~7E",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
