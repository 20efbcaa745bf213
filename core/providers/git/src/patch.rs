//! The difference between two revisions as a patch that `git apply` takes.
//!
//! ```text
//!   diff --git a/path b/path
//!   new file mode 100644                      or: deleted file mode, old mode and new mode
//!   index OLD..NEW                            whole ids
//!   --- a/path, +++ b/path, @@ -1,3 +1,4 @@   or: GIT binary patch
//! ```
//!
//! Law: no converter and no driver of the repository is used, and the patch stops at its size limit.

use super::answers::Fingerprint;
use super::base85;
use super::changes::{Comparison, TreeChange, is_same_type};
use super::repository::{GitEntry, Handle};
use super::revision::GitRevision;
use gix::diff::blob::{Algorithm, Hunk, InternedInput, diff_with_slider_heuristics};
use gix::objs::tree::EntryKind;
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::provider::RequestContext;
use std::fmt::Write;
use std::io::ErrorKind;
use std::sync::Arc;

/// Lines of context around a change.
const AROUND: u32 = 3;
/// The largest file that is compared, in bytes.
const LARGEST: u64 = 16 << 20;
/// The most lines from the first difference to the last, on both sides, that are compared by a histogram, which people read
/// best: its time grows with their square, and nothing can stop it.
const HISTOGRAM: usize = 50_000;
/// The most that are compared at all. Of more, the old ones are all removed and the new ones all added.
const COMPARED: usize = 300_000;
/// A zero byte among the first of a file makes it binary: git's own rule.
const FIRST: usize = 8_000;

/// The patch that turns `from` into `to`.
pub(super) fn diff(
    handle: &Handle<'_>,
    from: &GitRevision,
    to: &GitRevision,
    context: &RequestContext<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let tree = |variable, revision| handle.resolve(variable, revision).and_then(|id| handle.tree_of(id));
    let old = tree("from", from)?;
    let new = tree("to", to)?;
    let limit = handle.own.settings.diff_bytes;
    let too_large = |size| ReadError::SizeExceeded { limit, size };
    let mut patch = String::new();
    let comparison = Comparison { handle, from: &from.to_string(), to: &to.to_string(), context };
    let is_whole = comparison.each(Some(old), Some(new), &mut |change| {
        push(&mut patch, handle, change, limit)?;
        if patch.len() as u64 > limit {
            return Err(too_large(None));
        }
        context.facts(patch.len() as u64).map(|()| true)
    })?;
    if is_whole { Ok((patch, Fingerprint::from_value((old, new)))) } else { Err(too_large(None)) }
}

fn push(out: &mut String, handle: &Handle<'_>, change: &TreeChange<'_>, limit: u64) -> Result<(), ReadError> {
    match (change.old, change.new) {
        // As git does: a file that becomes a link is deleted and created.
        (Some(old), Some(new)) if !is_same_type(old.mode, new.mode) => {
            FilePatch { path: change.path, old: Some(old), new: None }.push(out, handle, limit)?;
            FilePatch { path: change.path, old: None, new: Some(new) }.push(out, handle, limit)
        }
        (old, new) => FilePatch { path: change.path, old, new }.push(out, handle, limit),
    }
}

/// The patch of one file.
struct FilePatch<'f> {
    path: &'f [u8],
    old: Option<GitEntry>,
    new: Option<GitEntry>,
}

impl FilePatch<'_> {
    fn push(&self, out: &mut String, handle: &Handle<'_>, limit: u64) -> Result<(), ReadError> {
        let old = self.side(handle, self.old)?;
        let new = self.side(handle, self.new)?;
        // The patch of a new or deleted file contains all of it.
        if (self.old.is_none() || self.new.is_none())
            && (old.len() + new.len()) as u64 > limit
            && is_text(&old, &new)
        {
            return Err(ReadError::SizeExceeded { limit, size: None });
        }
        self.head(out);
        if self.old.map(|old| old.id) == self.new.map(|new| new.id) {
            return Ok(());
        }
        if is_text(&old, &new) {
            let name = |prefix: &str, entry: Option<GitEntry>| match entry {
                // A tab ends a name that has spaces in it.
                Some(_) => quoted(prefix, self.path) + if self.path.contains(&b' ') { "\t" } else { "" },
                None => "/dev/null".to_owned(),
            };
            if !(old.is_empty() && new.is_empty()) {
                let _ = write!(out, "--- {}\n+++ {}\n", name("a/", self.old), name("b/", self.new));
            }
            hunks(out, &old, &new);
            return Ok(());
        }
        out.push_str("GIT binary patch\n");
        let is_cancelled: &dyn Fn() -> bool = &|| handle.context.is_cancelled();
        let literals = base85::literal(out, &new, limit, is_cancelled)
            .and_then(|()| base85::literal(out, &old, limit, is_cancelled));
        literals.map_err(|error| match error.kind() {
            ErrorKind::FileTooLarge => ReadError::SizeExceeded { limit, size: None },
            _ => ReadError::Failed,
        })
    }

    fn head(&self, out: &mut String) {
        let mode = |entry: GitEntry| entry.mode.kind().as_octal_str();
        let id = |entry: Option<GitEntry>| entry.map_or_else(|| "0".repeat(40), |entry| entry.id.to_string());
        let _ = writeln!(out, "diff --git {} {}", quoted("a/", self.path), quoted("b/", self.path));
        let mut at_end = String::new();
        let _ = match (self.old, self.new) {
            (None, Some(new)) => writeln!(out, "new file mode {}", mode(new)),
            (Some(old), None) => writeln!(out, "deleted file mode {}", mode(old)),
            (Some(old), Some(new)) if old.mode.kind() != new.mode.kind() => {
                write!(out, "old mode {}\nnew mode {}\n", mode(old), mode(new))
            }
            (Some(old), _) => write!(at_end, " {}", mode(old)),
            (None, None) => Ok(()),
        };
        if self.old.map(|old| old.id) != self.new.map(|new| new.id) {
            let _ = writeln!(out, "index {}..{}{at_end}", id(self.old), id(self.new));
        }
    }

    /// The contents of one side.
    fn side(&self, handle: &Handle<'_>, entry: Option<GitEntry>) -> Result<Arc<[u8]>, ReadError> {
        let Some(entry) = entry else { return Ok(Arc::default()) };
        if entry.mode.kind() == EntryKind::Commit {
            return Ok(format!("Subproject commit {}\n", entry.id).into_bytes().into());
        }
        let (_, size) = handle.header(entry.id)?;
        if size > LARGEST {
            return Err(ReadError::SizeExceeded { limit: LARGEST, size: Some(size) });
        }
        handle.data(entry.id)
    }
}

/// Whether both sides can be written as lines. Bytes that are not UTF-8 cannot: the answer is text.
fn is_text(old: &[u8], new: &[u8]) -> bool {
    let one = |bytes: &[u8]| {
        !bytes.get(..FIRST).unwrap_or(bytes).contains(&0) && std::str::from_utf8(bytes).is_ok()
    };
    one(old) && one(new)
}

/// A path in the header of a patch, quoted if git quotes it.
fn quoted(prefix: &str, path: &[u8]) -> String {
    let needs = |byte: &u8| *byte < 0x20 || matches!(byte, b'"' | b'\\' | 0x7f);
    match std::str::from_utf8(path) {
        Ok(text) if !path.iter().any(needs) => format!("{prefix}{text}"),
        _ => {
            let mut out = format!("\"{prefix}");
            for byte in path {
                match byte {
                    b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
                    0x20..=0x7e => out.push(char::from(*byte)),
                    _ => {
                        let _ = write!(out, "\\{byte:03o}");
                    }
                }
            }
            out + "\""
        }
    }
}

/// Appends the hunks of two texts.
fn hunks(out: &mut String, old: &[u8], new: &[u8]) {
    let input = InternedInput::new(old, new);
    let middle = middle(&input);
    let algorithm = match middle.before.len() + middle.after.len() {
        lines if lines > COMPARED => return push_group(out, &input, &[middle]),
        lines if lines > HISTOGRAM => Algorithm::Myers,
        _ => Algorithm::Histogram,
    };
    let diff = diff_with_slider_heuristics(algorithm, &input);
    let mut group: Vec<Hunk> = Vec::new();
    for hunk in diff.hunks() {
        if group.last().is_some_and(|last| hunk.before.start - last.before.end > 2 * AROUND) {
            push_group(out, &input, &group);
            group.clear();
        }
        group.push(hunk);
    }
    push_group(out, &input, &group);
}

/// The lines from the first difference to the last.
fn middle(input: &InternedInput<&[u8]>) -> Hunk {
    let before = &input.before;
    let after = &input.after;
    let first = before.iter().zip(after).take_while(|(old, new)| old == new).count();
    let limit = before.len().min(after.len()) - first;
    let pairs = before.iter().rev().zip(after.iter().rev()).take(limit);
    let last = pairs.take_while(|(old, new)| old == new).count();
    let range = |lines: usize| first as u32..(lines - last) as u32;
    Hunk { before: range(before.len()), after: range(after.len()) }
}

/// Appends hunks that are so close that their context overlaps.
fn push_group(out: &mut String, input: &InternedInput<&[u8]>, group: &[Hunk]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let above = AROUND.min(first.before.start);
    let below = AROUND.min(input.before.len() as u32 - last.before.end);
    let old = first.before.start - above..last.before.end + below;
    let new = first.after.start - above..last.after.end + below;
    // An empty range is named by the line before it.
    let from = |range: &std::ops::Range<u32>| if range.is_empty() { range.start } else { range.start + 1 };
    let _ = writeln!(out, "@@ -{},{} +{},{} @@", from(&old), old.len(), from(&new), new.len());
    let mut lines = |sign: char, side: &[gix::diff::blob::Token], range: std::ops::Range<u32>| {
        for token in side.get(range.start as usize..range.end as usize).unwrap_or_default() {
            let line = String::from_utf8_lossy(input.interner[*token]);
            out.push(sign);
            out.push_str(&line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    let mut at = old.start;
    for hunk in group {
        lines(' ', &input.before, at..hunk.before.start);
        lines('-', &input.before, hunk.before.clone());
        lines('+', &input.after, hunk.after.clone());
        at = hunk.before.end;
    }
    lines(' ', &input.before, at..old.end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_texts(old: &str, new: &str) -> String {
        let mut out = String::new();
        hunks(&mut out, old.as_bytes(), new.as_bytes());
        out
    }

    // S-02: context, a missing newline at the end, and empty files.
    #[test]
    fn lines_that_differ() {
        assert_eq!(from_texts("", "a\n"), "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(from_texts("a\n", ""), "@@ -1,1 +0,0 @@\n-a\n");
        assert_eq!(from_texts("a\n", "a\n"), "");
        assert_eq!(
            from_texts("a\nb", "a\nb\n"),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
        let lines = |changed: &[usize]| -> String {
            (1..=20).map(|n| format!("{n}{}\n", if changed.contains(&n) { "!" } else { "" })).collect()
        };
        assert_eq!(from_texts(&lines(&[]), &lines(&[5, 11])).matches("@@ ").count(), 1);
        assert_eq!(from_texts(&lines(&[]), &lines(&[5, 13])).matches("@@ ").count(), 2);
    }

    // S-02: files that would take minutes to compare are replaced from their first difference to the last.
    #[test]
    fn too_many_lines_to_compare() {
        let lines = |odd: &str| -> String {
            (0..COMPARED).map(|n| if n % 2 == 1 { odd } else { "same\n" }).chain(["end\n"]).collect()
        };
        let patch = from_texts(&lines("old\n"), &lines("new\n"));
        let all = COMPARED + 1;
        assert!(patch.starts_with(&format!("@@ -1,{all} +1,{all} @@\n same\n-old\n")));
        assert_eq!(patch.matches("@@ ").count(), 1);
        assert_eq!(
            (patch.matches("\n-").count(), patch.matches("\n+").count()),
            (COMPARED - 1, COMPARED - 1)
        );
        assert!(patch.ends_with("+new\n end\n"));
    }

    // S-02: names with characters that end or quote a line.
    #[test]
    fn names_are_quoted() {
        for (path, expected) in [
            (&b"a b"[..], "a/a b"),
            ("検索".as_bytes(), "a/検索"),
            (b"a\"b\\c", "\"a/a\\\"b\\\\c\""),
            (b"a\nb\xff", "\"a/a\\012b\\377\""),
        ] {
            assert_eq!(quoted("a/", path), expected);
        }
    }
}
