//! Reads of files and directories.
//!
//! Law: no more is held than an answer may have. The size is checked before the file is read, and again while it is read: a
//! file may grow.

use super::root_directory::{Dir, DirectoryEntry, EntryFacts, FileKind, Missing, OpenedFile, RootDirectory};
use super::select::Smallest;
use super::tree::{Tree, join};
use mcp_resources_engine::connection::{Body, Contents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::Resource;
use mcp_resources_provider_kit::file_id::FileTime;
pub(super) use mcp_resources_provider_kit::media::{CHILDREN, DIRECTORY, MORE, by_name, priority};
use mcp_resources_provider_kit::media::{bytes_type, text_type};
use mcp_resources_runtime::provider::{Directory, RequestContext};

/// Size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// The least room of a read in bytes: some systems' own files have no size, and must be read at once.
const LEAST: usize = 4_096;

/// The requested lines of a file, from 1, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineRange {
    first: u64,
    last: u64,
}

impl LineRange {
    /// `10-40`, `10-` to the end, or `10` alone. Not `-40`: it means the first lines to some and the last to others.
    pub(super) fn parse(text: &str) -> Result<Self, ReadError> {
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| text.parse::<u64>().ok()).flatten()
        };
        let lines = match text.split_once('-') {
            None => number(text).map(|only| Self { first: only, last: only }),
            Some((first, "")) => number(first).map(|first| Self { first, last: u64::MAX }),
            Some((first, last)) => number(first).zip(number(last)).map(|(first, last)| Self { first, last }),
        };
        lines
            .filter(|lines| lines.first > 0 && lines.first <= lines.last)
            .ok_or_else(|| wrong("lines from 1, as 10-40, 10- or 10"))
    }
}

pub(super) fn wrong(expected: &str) -> ReadError {
    ReadError::InvalidParameter { parameter: "lines".into(), expected: expected.into() }
}

/// The contents of an open file.
pub(super) fn file(
    opened: OpenedFile,
    path: &[u8],
    lines: Option<LineRange>,
    max: Option<u64>,
    context: &RequestContext<'_>,
) -> Result<ReadResult<'static>, ReadError> {
    let allow = |size: u64| {
        if let Some(limit) = max.filter(|max| size > *max) {
            return Err(ReadError::SizeExceeded { limit, size: Some(size) });
        }
        context.facts(size)
    };
    let size = opened.facts.size;
    let bytes = match lines {
        None => {
            allow(size)?;
            whole(opened, &allow, &|| context.is_cancelled())?
        }
        Some(lines) => some(opened, lines, &allow, &|| context.is_cancelled())?,
    };
    let contents = match String::from_utf8(bytes) {
        Ok(text) => {
            let mime_type = text_type(path, &text);
            Contents::text(text).with_mime_type(mime_type)
        }
        Err(error) => {
            let bytes = error.into_bytes();
            let mime_type = bytes_type(path, &bytes);
            Contents::blob(bytes).with_mime_type(mime_type)
        }
    };
    Ok(contents.into())
}

/// The bytes of contents that are one file.
pub(super) fn bytes<'c>(result: &'c ReadResult<'_>) -> Option<&'c [u8]> {
    match &result.contents.first()?.body {
        Body::Text(text) => Some(text.as_bytes()),
        Body::Blob(bytes) => Some(bytes),
        _ => None,
    }
}

/// Whether an answer may have this size in bytes.
type Allow<'a> = dyn Fn(u64) -> Result<(), ReadError> + 'a;

/// The current contents of a file.
fn whole(
    opened: OpenedFile,
    allow: &Allow<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, ReadError> {
    let size = opened.facts.size;
    let mut bytes = Vec::with_capacity(room_for(size));
    if size < CHUNK as u64 && !is_cancelled() {
        // Most files come at once, to where they stay.
        let room = bytes.capacity();
        let read = opened.read(&mut bytes).map_err(|_| ReadError::Failed)?;
        if is_over(read, room, size, 0) {
            return Ok(bytes);
        }
        check_growth(bytes.len() as u64, size, allow)?;
    }
    pieces(opened, bytes.len() as u64, is_cancelled, |piece| {
        bytes.extend_from_slice(piece);
        check_growth(bytes.len() as u64, size, allow)?;
        Ok(true)
    })?;
    Ok(bytes)
}

/// Room for a file of this size, and for one byte more, to see its end.
fn room_for(size: u64) -> usize {
    if size == 0 { LEAST } else { usize::try_from(size).unwrap_or(CHUNK).saturating_add(1) }
}

/// Whether a file has ended after it gave `read` bytes where there was room for `room`, and `before` bytes before them: one
/// call less than to see its end, if it has its size.
fn is_over(read: usize, room: usize, size: u64, before: u64) -> bool {
    read == 0 || read < room && before + read as u64 == size
}

/// A file that has grown since it was opened is checked again.
fn check_growth(bytes: u64, size: u64, allow: &Allow<'_>) -> Result<(), ReadError> {
    if bytes > size { allow(bytes) } else { Ok(()) }
}

/// Some lines of a file.
fn some(
    opened: OpenedFile,
    lines: LineRange,
    allow: &Allow<'_>,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Vec<u8>, ReadError> {
    let is_empty = opened.facts.size == 0;
    let mut cut = Cut { lines, at: 1, begun: false, seen: false };
    let mut bytes = Vec::new();
    pieces(opened, 0, is_cancelled, |piece| {
        let more = cut.take(piece, &mut bytes);
        allow(bytes.len() as u64)?;
        Ok(more)
    })?;
    if cut.seen || is_empty && lines.first == 1 {
        return Ok(bytes);
    }
    let there = if cut.begun { cut.at } else { cut.at - 1 };
    Err(wrong(&format!("lines from 1 to {there}")))
}

/// Reads the rest of a file after its first `done` bytes, for as long as `take` wants more.
fn pieces(
    opened: OpenedFile,
    mut done: u64,
    is_cancelled: &dyn Fn() -> bool,
    mut take: impl FnMut(&[u8]) -> Result<bool, ReadError>,
) -> Result<(), ReadError> {
    let size = opened.facts.size;
    let mut piece = Vec::with_capacity(room_for(size).clamp(LEAST, CHUNK));
    while !is_cancelled() {
        piece.clear();
        let read = opened.read(&mut piece).map_err(|_| ReadError::Failed)?;
        if read > 0 && !take(&piece)? || is_over(read, piece.capacity(), size, done) {
            return Ok(());
        }
        done += read as u64;
    }
    Err(ReadError::Failed)
}

/// Selects a range of lines while reading.
struct Cut {
    lines: LineRange,
    /// The line that the next byte is on.
    at: u64,
    /// Whether that line has a byte.
    begun: bool,
    /// Whether one of the lines was there.
    seen: bool,
}

impl Cut {
    /// Whether there may be more.
    fn take(&mut self, mut read: &[u8], bytes: &mut Vec<u8>) -> bool {
        while !read.is_empty() {
            if self.at > self.lines.last {
                return false;
            }
            let end = read.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let (line, rest) = read.split_at(end.unwrap_or(read.len()));
            if self.at >= self.lines.first {
                self.seen = true;
                bytes.extend_from_slice(line);
            }
            self.begun = end.is_none();
            if end.is_some() {
                self.at = self.at.saturating_add(1);
            }
            read = rest;
        }
        self.at <= self.lines.last
    }
}

/// The children of an open directory that are served, the first `most` by name: each with its name, and whether it is a
/// directory.
fn children(
    tree: &Tree,
    root: &RootDirectory,
    path: &[u8],
    dir: &Dir,
    most: usize,
    context: &RequestContext<'_>,
) -> Result<Vec<(Vec<u8>, bool)>, Missing> {
    let chain = tree.chain(root, path).ok_or(Missing::NotFound)?;
    let mut first = Smallest::new(most);
    for DirectoryEntry { name, kind } in dir.entries()? {
        if context.is_cancelled() {
            return Err(Missing::NotFound);
        }
        if !first.wants(&name) {
            continue;
        }
        let own = join(path, &name);
        let Some(kind) = resolve(tree, root, &own, kind, &|uri| context.permits(uri)) else { continue };
        let is_dir = kind == FileKind::Directory;
        if tree.admits_entry(&chain, &own, is_dir) && context.permits(&tree.uri(&own, is_dir)) {
            first.push(name, is_dir);
        }
    }
    // What is not served does not count.
    Ok(first.into_sorted().0)
}

/// The children of an open directory as resources.
pub(super) fn resources(
    tree: &Tree,
    root: &RootDirectory,
    path: &[u8],
    dir: &Dir,
    context: &RequestContext<'_>,
) -> Result<Vec<Resource>, Missing> {
    let children = children(tree, root, path, dir, Directory::MOST_CHILDREN, context)?;
    let resource = |(name, is_dir): (Vec<u8>, bool)| {
        let own = join(path, &name);
        let child = Resource::new(tree.uri(&own, is_dir)).name(String::from_utf8_lossy(&name));
        if is_dir {
            return child.mime_type(DIRECTORY);
        }
        file_item(child, &own, dir.stat(&name).filter(|facts| facts.kind == FileKind::File).as_ref())
    };
    Ok(children.into_iter().map(resource).collect())
}

/// A file in a list, with what its name and its metadata say.
pub(super) fn file_item(mut item: Resource, path: &[u8], facts: Option<&EntryFacts>) -> Resource {
    if let Some(mime_type) = by_name(path) {
        item = item.mime_type(mime_type);
    }
    if let Some(facts) = facts {
        item = item.size(facts.size);
        item.details.annotations.last_modified = modified(facts);
    }
    item.details.annotations.priority = priority(path);
    item
}

/// The children of an open directory: each with its URI, the first ones by name.
pub(super) fn directory(
    tree: &Tree,
    root: &RootDirectory,
    path: &[u8],
    dir: &Dir,
    context: &RequestContext<'_>,
) -> Result<ReadResult<'static>, Missing> {
    let mut children = children(tree, root, path, dir, CHILDREN + 1, context)?;
    let more = children.len() > CHILDREN;
    children.truncate(CHILDREN);
    let mut contents: Vec<Contents<'static>> = Vec::with_capacity(children.len().max(1));
    for (name, is_dir) in children {
        let own = join(path, &name);
        let child = Contents::text("").with_uri(tree.uri(&own, is_dir));
        let mime_type = if is_dir { Some(DIRECTORY) } else { by_name(&own) };
        contents.push(match mime_type {
            Some(mime_type) => child.with_mime_type(mime_type),
            None => child,
        });
    }
    if more && let Some(last) = contents.pop() {
        contents.push(last.with_meta(MORE));
    }
    if contents.is_empty() {
        // A read has something: an empty directory has itself.
        contents.push(Contents::text("").with_mime_type(DIRECTORY));
    }
    Ok(ReadResult { contents, cache: None })
}

/// The kind of an entry, behind a link that may be followed; `None` if it is not served.
pub(super) fn resolve(
    tree: &Tree,
    root: &RootDirectory,
    path: &[u8],
    kind: FileKind,
    permits: &dyn Fn(&str) -> bool,
) -> Option<FileKind> {
    match kind {
        FileKind::File | FileKind::Directory => Some(kind),
        FileKind::Link if tree.settings().symlinks == super::Symlinks::Inside => {
            tree.find(root, path, permits).ok().map(|opened| opened.facts.kind)
        }
        FileKind::Link | FileKind::Other => None,
    }
}

/// When a file was last changed, as annotations have it.
pub(super) fn modified(facts: &EntryFacts) -> Option<String> {
    let FileTime { seconds, nanoseconds } = facts.modified;
    jiff::Timestamp::new(seconds, i32::try_from(nanoseconds).ok()?)
        .ok()
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-01: both ends belong to a range, and anything else is refused.
    #[test]
    fn ranges_of_lines() {
        let lines = |first, last| Some(LineRange { first, last });
        for (text, expected) in [
            ("10-40", lines(10, 40)),
            ("7", lines(7, 7)),
            ("7-", lines(7, u64::MAX)),
            ("1-1", lines(1, 1)),
            ("", None),
            ("-", None),
            ("-40", None),
            ("0-4", None),
            ("4-3", None),
            ("a-b", None),
            ("1-2-3", None),
            ("+1-2", None),
            (" 1-2", None),
            ("1-99999999999999999999", None),
        ] {
            assert_eq!(LineRange::parse(text).ok(), expected, "{text}");
        }
    }

    // S-01: whatever pieces the file comes in.
    #[test]
    fn lines_are_cut_in_any_pieces() {
        let text = b"one\ntwo\r\n\nfour";
        for (range, expected) in [
            ("1", "one\n"),
            ("2-3", "two\r\n\n"),
            ("3-", "\nfour"),
            ("4-9", "four"),
            ("1-", "one\ntwo\r\n\nfour"),
        ] {
            for size in 1..text.len() {
                let lines = LineRange::parse(range).unwrap();
                let mut cut = Cut { lines, at: 1, begun: false, seen: false };
                let mut bytes = Vec::new();
                text.chunks(size).any(|piece| !cut.take(piece, &mut bytes));
                assert_eq!(std::str::from_utf8(&bytes).unwrap(), expected, "{range} {size}");
            }
        }
    }
}
