//! What files are, by their names: media types and importance. The same on a disk and in a commit.

/// The media type of a directory.
pub(crate) const DIRECTORY: &str = "inode/directory";
const TEXT: &str = "text/plain";
const BYTES: &str = "application/octet-stream";
/// How many children of a directory are read at most, the first ones by name.
pub(crate) const CHILDREN: usize = 1_000;
/// In `_meta` of the last child, if there are more.
pub(crate) const MORE: &str = r#"{"io.github.mcp-resources/more":true}"#;

/// The media type: by the name, else by the first `bytes`, where they are known.
pub(crate) fn mime_type(path: &[u8], bytes: Option<&[u8]>) -> &'static str {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let name = String::from_utf8_lossy(name);
    let known = match name.rsplit_once('.').map(|(_, extension)| extension) {
        // Of these, the table of names knows another meaning, which few have in mind.
        Some("ts" | "mts" | "cts" | "tsx") => Some("text/x-typescript"),
        Some("lock") => Some(TEXT),
        _ => mime_guess::from_path(&*name).first_raw(),
    };
    known.unwrap_or_else(|| match bytes {
        Some(bytes) => match infer::get(bytes) {
            Some(kind) => kind.mime_type(),
            None if std::str::from_utf8(bytes).is_ok() => TEXT,
            None => BYTES,
        },
        None if name.contains('.') => BYTES,
        None => TEXT,
    })
}

/// How important a file is: what introduces or describes what it stands in comes first.
#[cfg(feature = "files")]
pub(crate) fn priority(path: &[u8]) -> Option<f64> {
    const MANIFESTS: [&str; 12] = [
        "Cargo.toml",
        "package.json",
        "pyproject.toml",
        "go.mod",
        "pom.xml",
        "build.gradle",
        "composer.json",
        "Gemfile",
        "CMakeLists.txt",
        "Makefile",
        "Dockerfile",
        "AGENTS.md",
    ];
    let depth = path.iter().filter(|byte| **byte == b'/').count();
    let name = std::str::from_utf8(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()).ok()?;
    let is_introduction = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("readme"));
    match (is_introduction, MANIFESTS.contains(&name)) {
        (true, _) => Some(if depth == 0 { 0.9 } else { 0.7 }),
        (_, true) => Some(if depth == 0 { 0.8 } else { 0.6 }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S-01: by name, by contents, and neither.
    #[test]
    fn media_types() {
        for (path, bytes, expected) in [
            (&b"a/main.rs"[..], &b"fn"[..], "text/x-rust"),
            (b"x.md", b"", "text/markdown"),
            (b"x.ts", b"", "text/x-typescript"),
            (b"picture", b"\x89PNG\r\n\x1a\n", "image/png"),
            (b"LICENSE", b"text", "text/plain"),
            (b"data", b"\xff\x00", "application/octet-stream"),
        ] {
            assert_eq!(mime_type(path, Some(bytes)), expected);
        }
    }
}
