//! Commits as JSON: one, and the log of a revision.
//!
//! ```text
//!   heap by time of commit ──newest──▶ commit ──▶ with a path: skipped if a parent has the same there
//!        ▲                               │
//!        └──────────── parents ──────────┘        if one parent has the same at the path, only that parent
//! ```
//!
//! Law: a walk visits a limited number of commits, and skips those whose URI the client may not see.

use super::changes::{ChangedFile, Comparison};
use super::repository::{Context, Entry, Handle};
use super::revision::Revision;
use super::watch::{Fingerprint, fingerprint_of_log};
use crate::spell;
use encoding_rs::{Encoding, UTF_8};
use gix::bstr::{BStr, ByteSlice};
use gix::objs::{CommitRef, Kind};
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

/// The most commits that a walk visits.
const VISITS: usize = 100_000;
/// The most files that a commit shows.
const FILES: usize = 1_000;
/// The longest subject, in characters.
const SUBJECT: usize = 500;

/// An author or committer, with the date.
#[derive(Serialize)]
pub(super) struct Person {
    name: String,
    email: String,
    date: Option<String>,
}

/// A commit in a log.
#[derive(Serialize)]
struct LogEntry {
    id: String,
    parents: Vec<String>,
    author: Person,
    subject: String,
    uri: String,
}

/// The log of a revision.
#[derive(Serialize)]
struct Log {
    commits: Vec<LogEntry>,
    /// Whether there are more, or may be.
    more: bool,
}

/// A commit alone.
#[derive(Serialize)]
struct Commit {
    id: String,
    tree: String,
    parents: Vec<String>,
    author: Person,
    committer: Person,
    subject: String,
    message: String,
    /// What it changed, compared with its first parent.
    files: Vec<ChangedFile>,
    more: bool,
}

/// A request for a log.
pub(super) struct LogRequest<'a> {
    /// `None`: HEAD, which may have no commit yet.
    pub(super) revision: Option<&'a Revision>,
    pub(super) path: Option<&'a str>,
    pub(super) max: usize,
}

/// The log of a revision, the newest commit first.
pub(super) fn log(
    handle: &Handle<'_>,
    request: &LogRequest<'_>,
    context: &Context<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let start = match request.revision {
        Some(revision) => Some(handle.resolve("ref", revision)?),
        None => handle.head()?,
    };
    let path = match request.path {
        Some(path) => Some(path_of(handle, path, request.revision, start, context)?),
        None => None,
    };
    let mark = fingerprint_of_log(handle, start)?;
    let mut log = Log { commits: Vec::new(), more: false };
    // A tag may name a tree or a file, which has no commits.
    if let Some(start) = start.filter(|start| !matches!(handle.kind(*start), Ok(Kind::Tree | Kind::Blob))) {
        let mut walk = CommitWalk::new(handle, start, path.as_deref())?;
        while let Some((id, commit)) = walk.next(context)? {
            let uri = handle.own.uri_of("commit", &id.to_string());
            if !(context.permits)(&uri) {
                continue;
            }
            if log.commits.len() == request.max {
                log.more = true;
                break;
            }
            log.commits.push(LogEntry::new(id, &commit.decode()?, uri));
        }
        log.more |= walk.is_cut;
    }
    if request.path.is_some() && log.commits.is_empty() {
        return Err(ReadError::NotFound);
    }
    Ok((json(&log)?, mark))
}

/// Reads the path that a log is limited to, and checks that it is served.
fn path_of(
    handle: &Handle<'_>,
    path: &str,
    revision: Option<&Revision>,
    start: Option<ObjectId>,
    context: &Context<'_>,
) -> Result<Vec<u8>, ReadError> {
    let (path, is_dir) = spell::path(path).ok_or(ReadError::NotFound)?;
    let own = handle.own;
    let revision = revision.map_or_else(|| "HEAD".to_owned(), ToString::to_string);
    let now = match start {
        Some(start) => handle.entry(handle.tree_of(start)?, &path)?,
        None => None,
    };
    // A path that no longer exists counts as a file, unless it ends with a slash.
    let is_dir = now.map_or(is_dir, |entry| entry.mode.is_tree());
    let uri = own.uri_at(if is_dir { "tree" } else { "blob" }, &revision, &path);
    let may = own.selection.admits(&path, is_dir) && (context.permits)(&uri);
    may.then_some(path).ok_or(ReadError::NotFound)
}

/// One commit.
pub(super) fn commit(
    handle: &Handle<'_>,
    revision: &Revision,
    context: &Context<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let id = handle.resolve("id", revision)?;
    let data = CommitData::read(handle, id)?;
    let commit = data.decode()?;
    let parent = handle.parents(id)?.first().copied();
    let before = parent.map(|parent| handle.tree_of(parent)).transpose()?;
    let mut files = Vec::new();
    let spelled = revision.to_string();
    let comparison = Comparison { handle, from: &spelled, to: &spelled, context };
    let is_whole = comparison.each(before, Some(handle.tree_of(id)?), &mut |change| {
        let has_room = files.len() < FILES;
        if has_room {
            files.push(change.file(handle, &spelled));
        }
        Ok(has_room)
    })?;
    let json = json(&Commit {
        id: id.to_string(),
        tree: commit.tree().to_string(),
        parents: commit.parents().map(|parent| parent.to_string()).collect(),
        author: Person::new(commit.author, commit.encoding),
        committer: Person::new(commit.committer, commit.encoding),
        subject: subject(commit.message, commit.encoding),
        message: text(commit.message, commit.encoding).into_owned(),
        files,
        more: !is_whole,
    })?;
    Ok((json, Fingerprint::of(Some(id))))
}

/// The bytes of a commit.
pub(super) struct CommitData(Arc<[u8]>);

impl CommitData {
    pub(super) fn read(handle: &Handle<'_>, id: ObjectId) -> Result<Self, ReadError> {
        handle.commit(id).map(Self)
    }

    pub(super) fn decode(&self) -> Result<CommitRef<'_>, ReadError> {
        CommitRef::from_bytes(&self.0, hash::Kind::Sha1).map_err(|_| ReadError::Failed)
    }
}

impl LogEntry {
    fn new(id: ObjectId, commit: &CommitRef<'_>, uri: String) -> Self {
        Self {
            id: id.to_string(),
            parents: commit.parents().map(|parent| parent.to_string()).collect(),
            author: Person::new(commit.author, commit.encoding),
            subject: subject(commit.message, commit.encoding),
            uri,
        }
    }
}

impl Person {
    /// Parses a header such as `Ada <ada@example.org> 1700000000 +0100`. Malformed parts are left out.
    pub(super) fn new(header: &BStr, encoding: Option<&BStr>) -> Self {
        let text = |bytes: &BStr| text(bytes, encoding).into_owned();
        match gix::actor::SignatureRef::from_bytes(header) {
            Ok(signature) => Self {
                name: text(signature.name.trim().as_bstr()),
                email: text(signature.email.trim().as_bstr()),
                date: signature.time().ok().and_then(date),
            },
            Err(_) => Self { name: text(header), email: String::new(), date: None },
        }
    }
}

/// In RFC 3339, in the zone of the author.
fn date(time: gix::date::Time) -> Option<String> {
    time.format(gix::date::time::format::ISO8601_STRICT).ok()
}

/// Text of a commit in the encoding that the commit names, as `git log` shows it. Most name none, and are UTF-8.
fn text<'t>(bytes: &'t BStr, encoding: Option<&BStr>) -> Cow<'t, str> {
    let named = encoding.and_then(|label| Encoding::for_label_no_replacement(label));
    named.unwrap_or(UTF_8).decode_without_bom_handling(bytes).0
}

/// The first paragraph of a message, as one line.
pub(super) fn subject(message: &BStr, encoding: Option<&BStr>) -> String {
    let message = text(message, encoding);
    let message = gix::objs::commit::MessageRef::from_bytes(message.as_bytes().as_bstr());
    let line = message.summary().to_str_lossy().trim().to_owned();
    match line.char_indices().nth(SUBJECT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

pub(super) fn json(value: &impl Serialize) -> Result<String, ReadError> {
    serde_json::to_string(value).map_err(|_| ReadError::Failed)
}

/// Commits from a revision on, the newest first.
struct CommitWalk<'h> {
    handle: &'h Handle<'h>,
    path: Option<&'h [u8]>,
    /// Ordered by the time of the commit; for equal times, the order of discovery.
    heap: BinaryHeap<(i64, std::cmp::Reverse<usize>, ObjectId)>,
    known: HashMap<ObjectId, CommitData>,
    seen: HashSet<ObjectId>,
    /// The entries at the path. Those of parents are used again when the parents are visited.
    found: HashMap<ObjectId, Option<Entry>>,
    shallow: Option<gix::shallow::Commits>,
    /// Whether it ended early.
    is_cut: bool,
}

impl<'h> CommitWalk<'h> {
    fn new(handle: &'h Handle<'h>, start: ObjectId, path: Option<&'h [u8]>) -> Result<Self, ReadError> {
        let shallow = handle.shallow_commits().map_err(|_| ReadError::Failed)?;
        let (heap, known, seen, found) = Default::default();
        let mut walk = Self { handle, path, heap, known, seen, found, shallow, is_cut: false };
        walk.push(start)?;
        Ok(walk)
    }

    fn push(&mut self, id: ObjectId) -> Result<(), ReadError> {
        if !self.seen.insert(id) {
            return Ok(());
        }
        let data = match CommitData::read(self.handle, id) {
            Ok(data) => data,
            // A partial clone does not have every commit.
            Err(ReadError::NotFound) => {
                self.is_cut = true;
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let time = data.decode()?.time().map_or(0, |time| time.seconds);
        self.heap.push((time, std::cmp::Reverse(self.seen.len()), id));
        self.known.insert(id, data);
        Ok(())
    }

    fn next(&mut self, context: &Context<'_>) -> Result<Option<(ObjectId, CommitData)>, ReadError> {
        while let Some((_, _, id)) = self.heap.pop() {
            if (context.is_cancelled)() {
                return Err(ReadError::Failed);
            }
            if self.seen.len() > VISITS {
                self.is_cut = true;
                return Ok(None);
            }
            let Some(data) = self.known.remove(&id) else { continue };
            let is_last = self.shallow.as_ref().is_some_and(|shallow| shallow.contains(&id));
            let parents: Vec<ObjectId> =
                if is_last { Vec::new() } else { data.decode()?.parents().collect() };
            let same = self.same(id, &parents)?;
            match same {
                Some(Some(parent)) => self.push(parent)?,
                _ => parents.into_iter().try_for_each(|parent| self.push(parent))?,
            }
            if same.is_none() {
                return Ok(Some((id, data)));
            }
        }
        Ok(None)
    }

    /// Whether a parent has the same entry at the path, and which parent. A first commit without the path counts as the same.
    fn same(&mut self, id: ObjectId, parents: &[ObjectId]) -> Result<Option<Option<ObjectId>>, ReadError> {
        let Some(path) = self.path else { return Ok(None) };
        let own = self.at(id, path)?;
        self.found.remove(&id);
        for parent in parents {
            if self.at(*parent, path)? == own {
                return Ok(Some(Some(*parent)));
            }
        }
        Ok((parents.is_empty() && own.is_none()).then_some(None))
    }

    fn at(&mut self, id: ObjectId, path: &[u8]) -> Result<Option<Entry>, ReadError> {
        if let Some(found) = self.found.get(&id) {
            return Ok(*found);
        }
        let found = self.handle.entry(self.handle.tree_of(id)?, path)?;
        self.found.insert(id, found);
        Ok(found)
    }
}
