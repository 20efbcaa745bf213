//! Commits as JSON: one, and the log of a revision.
//!
//! ```text
//!   heap by time of commit ──newest──▶ commit ──▶ with a path: only if what is there differs from each parent's
//!        ▲                               │
//!        └──────────── parents ──────────┘        those of a merge that has the path from one parent: that parent alone
//! ```
//!
//! Law: a walk looks at a bounded number of commits, and gives none whose URI the client may not see.

use super::changes::{ChangedFile, Comparison};
use super::repository::{Context, Entry, Handle};
use super::revision::Revision;
use super::watch::Mark;
use crate::spell;
use gix::bstr::{BStr, ByteSlice};
use gix::objs::CommitRef;
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use serde::Serialize;
use std::collections::{BinaryHeap, HashMap, HashSet};

/// How many commits a walk looks at.
const VISITS: usize = 100_000;
/// How many files of a commit are named.
const FILES: usize = 1_000;
/// The longest subject, in characters.
const SUBJECT: usize = 500;

/// Who did something, and when.
#[derive(Serialize)]
pub(super) struct Signature {
    name: String,
    email: String,
    date: Option<String>,
}

/// A commit in a log.
#[derive(Serialize)]
struct LogEntry {
    id: String,
    parents: Vec<String>,
    author: Signature,
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
    author: Signature,
    committer: Signature,
    subject: String,
    message: String,
    /// What it changed, compared with its first parent.
    files: Vec<ChangedFile>,
    more: bool,
}

/// What a log is asked for.
pub(super) struct LogRequest<'a> {
    /// `None`: HEAD, which may have no commit yet.
    pub(super) revision: Option<&'a Revision>,
    pub(super) path: Option<&'a str>,
    pub(super) most: usize,
}

/// The log of a revision, the newest commit first.
pub(super) fn log(
    handle: &Handle<'_>,
    request: &LogRequest<'_>,
    context: &Context<'_>,
) -> Result<(String, Mark), ReadError> {
    let start = match request.revision {
        Some(revision) => Some(handle.resolve("ref", revision)?),
        None => handle.head()?,
    };
    let path = match request.path {
        Some(path) => Some(path_of(handle, path, request.revision, start, context)?),
        None => None,
    };
    let mark = Mark::of(start);
    let mut log = Log { commits: Vec::new(), more: false };
    if let Some(start) = start {
        let mut walk = Walk::new(handle, start, path.as_deref())?;
        while let Some((id, commit)) = walk.next(context)? {
            let uri = handle.own.uri_of("commit", &id.to_string());
            if !(context.permits)(&uri) {
                continue;
            }
            if log.commits.len() == request.most {
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

/// The path that a log is about, if it may be served.
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
    // What is not there now was a file, unless the path says otherwise.
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
) -> Result<(String, Mark), ReadError> {
    let id = handle.resolve("id", revision)?;
    let data = Data::read(handle, id)?;
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
        author: Signature::new(commit.author),
        committer: Signature::new(commit.committer),
        subject: subject(commit.message),
        message: commit.message.to_str_lossy().into_owned(),
        files,
        more: !is_whole,
    })?;
    Ok((json, Mark::of(Some(id))))
}

/// The bytes of a commit.
pub(super) struct Data(Vec<u8>);

impl Data {
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
            author: Signature::new(commit.author),
            subject: subject(commit.message),
            uri,
        }
    }
}

impl Signature {
    /// Of a header such as `Ada <ada@example.org> 1700000000 +0100`. What makes no sense of it is left out.
    pub(super) fn new(header: &BStr) -> Self {
        match gix::actor::SignatureRef::from_bytes(header) {
            Ok(signature) => Self {
                name: signature.name.trim().to_str_lossy().into_owned(),
                email: signature.email.trim().to_str_lossy().into_owned(),
                date: signature.time().ok().and_then(date),
            },
            Err(_) => Self { name: header.to_str_lossy().into_owned(), email: String::new(), date: None },
        }
    }
}

/// As RFC 3339 has it, in the zone of who did it.
fn date(time: gix::date::Time) -> Option<String> {
    time.format(gix::date::time::format::ISO8601_STRICT).ok()
}

/// The first paragraph of a message, as one line.
pub(super) fn subject(message: &BStr) -> String {
    let message = gix::objs::commit::MessageRef::from_bytes(message);
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
struct Walk<'h> {
    handle: &'h Handle<'h>,
    path: Option<&'h [u8]>,
    /// By the time of the commit; among equal ones the first that was found.
    heap: BinaryHeap<(i64, std::cmp::Reverse<usize>, ObjectId)>,
    known: HashMap<ObjectId, Data>,
    seen: HashSet<ObjectId>,
    /// What was found at the path: a parent of one commit is visited later.
    found: HashMap<ObjectId, Option<Entry>>,
    shallow: Option<gix::shallow::Commits>,
    /// Whether it ended before all was visited.
    is_cut: bool,
}

impl<'h> Walk<'h> {
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
        let data = match Data::read(self.handle, id) {
            Ok(data) => data,
            // A clone may have been made without it.
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

    fn next(&mut self, context: &Context<'_>) -> Result<Option<(ObjectId, Data)>, ReadError> {
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

    /// Whether the commit has at the path what was there before: then the parent that it has it from, if there is one.
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
