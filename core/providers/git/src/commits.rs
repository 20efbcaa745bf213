//! Commits as JSON: a single one, and the log of a revision.
//!
//! ```text
//!   heap by time of commit ──newest──▶ commit ──▶ with a path: skipped if a parent has the same there
//!        ▲                               │
//!        └──────────── parents ──────────┘        if one parent has the same at the path, only that parent
//! ```
//!
//! A commit-graph, if there is one, has the parents and the times, and tells of most commits that they left the path as it was.
//! Commits and trees are read where it does not.
//!
//! Law: a walk visits a limited number of commits, and skips those whose URI the client may not see.

use super::answers::{Fingerprint, json};
use super::changes::{ChangedFile, Comparison};
use super::graph::{CommitGraph, GraphPath};
use super::message::{CommitHeader, CommitText, Person};
use super::objects::child;
use super::repository::{GitEntry, Handle};
use super::revision::GitRevision;
use gix::ObjectId;
use gix::objs::Kind;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::RequestContext;
use serde::Serialize;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

/// The most commits that a walk visits.
const VISITS: usize = 500_000;
/// The most files that a commit shows.
const FILES: usize = 1_000;
/// The most entries of trees that a walk keeps.
const KEPT: usize = 100_000;

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
struct CommitLog {
    commits: Vec<LogEntry>,
    /// Whether there are more, or may be.
    more: bool,
}

/// A commit alone.
#[derive(Serialize)]
struct Commit {
    id: String,
    /// `null`: it cannot be read.
    tree: Option<String>,
    parents: Vec<String>,
    author: Person,
    committer: Person,
    subject: String,
    message: String,
    /// The changed files, compared with the first parent.
    files: Vec<ChangedFile>,
    more: bool,
}

/// A request for a log.
pub(super) struct LogRequest<'a> {
    /// `None`: HEAD, which may have no commit yet.
    pub(super) revision: Option<&'a GitRevision>,
    pub(super) path: Option<&'a str>,
    pub(super) max: usize,
}

/// The log of a revision, the newest commit first.
pub(super) fn log(
    handle: &Handle<'_>,
    request: &LogRequest<'_>,
    context: &RequestContext<'_>,
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
    let mut log = CommitLog { commits: Vec::new(), more: false };
    // A tag may name a tree or a file, which has no commits.
    if let Some(start) = start.filter(|start| !matches!(handle.kind(*start), Ok(Kind::Tree | Kind::Blob))) {
        let mut walk = CommitWalk::new(handle, start, path.as_deref())?;
        while let Some((id, commit)) = walk.next()? {
            let uri = handle.own.uri_of("commit", &id.to_string());
            if !context.permits(&uri) {
                continue;
            }
            if log.commits.len() == request.max {
                log.more = true;
                break;
            }
            let Some(data) = walk.data(id, &commit)? else { continue };
            log.commits.push(LogEntry::new(id, &commit.header, &data, uri));
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
    revision: Option<&GitRevision>,
    start: Option<ObjectId>,
    context: &RequestContext<'_>,
) -> Result<Vec<u8>, ReadError> {
    let (path, is_dir) = uri_path::path(path).ok_or(ReadError::NotFound)?;
    let own = handle.own;
    let revision = revision.map_or_else(|| "HEAD".to_owned(), ToString::to_string);
    let now = match start {
        Some(start) => handle.entry(handle.tree_of(start)?, &path)?,
        None => None,
    };
    // A path that no longer exists counts as a file, unless it ends with a slash.
    let is_dir = now.map_or(is_dir, |entry| entry.mode.is_tree());
    let uri = own.uri_at(if is_dir { "tree" } else { "blob" }, &revision, &path);
    let may = own.selection.admits(&path, is_dir) && context.permits(&uri);
    may.then_some(path).ok_or(ReadError::NotFound)
}

/// One commit.
pub(super) fn commit(
    handle: &Handle<'_>,
    revision: &GitRevision,
    context: &RequestContext<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let id = handle.resolve("id", revision)?;
    let data = handle.commit(id)?;
    let header = CommitHeader::parse(&data);
    let parents = handle.parents(id)?;
    let before = parents.first().map(|parent| handle.tree_of(*parent)).transpose()?;
    let mut files = Vec::new();
    let encoded = revision.to_string();
    let comparison = Comparison { handle, from: &encoded, to: &encoded, context };
    let is_whole = comparison.each(before, Some(handle.tree_of(id)?), &mut |change| {
        let has_room = files.len() < FILES;
        if has_room {
            files.push(change.file(handle, &encoded));
        }
        Ok(has_room)
    })?;
    let text = CommitText::parse(&data);
    let json = json(&Commit {
        id: id.to_string(),
        tree: header.tree.map(|tree| tree.to_string()),
        parents: parents.iter().map(ToString::to_string).collect(),
        author: text.author,
        committer: text.committer,
        subject: text.subject,
        message: text.message,
        files,
        more: !is_whole,
    })?;
    Ok((json, Fingerprint::from_value(Some(id))))
}

impl LogEntry {
    fn new(id: ObjectId, header: &CommitHeader, data: &[u8], uri: String) -> Self {
        let (author, subject) = CommitText::brief(data);
        let parents = header.parents.iter().map(ToString::to_string).collect();
        Self { id: id.to_string(), parents, author, subject, uri }
    }
}

/// A fetch may bring older commits of a shallow clone, without another newest commit.
pub(super) fn fingerprint_of_log(
    handle: &Handle<'_>,
    start: Option<ObjectId>,
) -> Result<Fingerprint, ReadError> {
    let mut last: Vec<ObjectId> = handle.shallow()?.iter().copied().collect();
    last.sort();
    Ok(Fingerprint::from_value((start, last)))
}

/// A commit that a walk has reached.
pub(super) struct WalkedCommit {
    /// `None`: not read, because its header is in the commit-graph.
    data: Option<Arc<[u8]>>,
    /// The last commit of a shallow clone has no parents.
    header: CommitHeader,
}

/// Commits from a revision on, the newest first.
pub(super) struct CommitWalk<'h> {
    handle: &'h Handle<'h>,
    graph: Option<Arc<CommitGraph>>,
    path: Option<Vec<&'h [u8]>>,
    /// The same path, as the commit-graph is asked about it.
    hashed: Option<GraphPath>,
    /// Ordered by the time of the commit; for equal times, the order of discovery.
    heap: BinaryHeap<(u64, std::cmp::Reverse<usize>, ObjectId)>,
    known: HashMap<ObjectId, WalkedCommit>,
    seen: HashSet<ObjectId>,
    /// The entries of trees on the way to the path, by the depth and the tree. Those of parents are used again when the
    /// parents are visited.
    found: HashMap<(usize, ObjectId), Option<GitEntry>>,
    /// Whether it ended early.
    is_cut: bool,
}

impl<'h> CommitWalk<'h> {
    pub(super) fn new(
        handle: &'h Handle<'h>,
        start: ObjectId,
        path: Option<&'h [u8]>,
    ) -> Result<Self, ReadError> {
        let graph = handle.graph()?;
        let hashed = path.map(GraphPath::new);
        let path = path.map(|path| uri_path::components(path).collect());
        let heap = Default::default();
        let known = Default::default();
        let seen = Default::default();
        let found = Default::default();
        let mut walk = Self { handle, graph, path, hashed, heap, known, seen, found, is_cut: false };
        walk.push(start)?;
        Ok(walk)
    }

    fn push(&mut self, id: ObjectId) -> Result<(), ReadError> {
        if self.seen.insert(id) {
            self.read(id)?;
            if let Some(commit) = self.known.get(&id) {
                self.heap.push((commit.header.time, std::cmp::Reverse(self.seen.len()), id));
            }
        }
        Ok(())
    }

    /// Reads a commit that was not visited yet.
    fn read(&mut self, id: ObjectId) -> Result<(), ReadError> {
        if self.known.contains_key(&id) {
            return Ok(());
        }
        if let Some(header) = self.graph.as_ref().and_then(|graph| graph.header(&id)) {
            self.known.insert(id, WalkedCommit { data: None, header });
            return Ok(());
        }
        let Some(data) = self.object(id)? else { return Ok(()) };
        let mut header = CommitHeader::parse(&data);
        if self.handle.shallow()?.contains(&id) {
            header.parents.clear();
        }
        self.known.insert(id, WalkedCommit { data: Some(data), header });
        Ok(())
    }

    /// The bytes of a commit; without them, the walk counts as cut.
    fn object(&mut self, id: ObjectId) -> Result<Option<Arc<[u8]>>, ReadError> {
        match self.handle.commit_if_there(id) {
            Ok(Some(data)) => return Ok(Some(data)),
            // What is there is shown. Why the rest is not stands in the log.
            Ok(None) => drop(self.handle.absent(id)),
            // A parent that is no commit.
            Err(ReadError::NotFound) => {}
            Err(error) => return Err(error),
        }
        self.is_cut = true;
        Ok(None)
    }

    /// The bytes of a commit that the walk has reached; `None` if they are not there.
    fn data(&mut self, id: ObjectId, commit: &WalkedCommit) -> Result<Option<Arc<[u8]>>, ReadError> {
        match &commit.data {
            Some(data) => Ok(Some(data.clone())),
            None => self.object(id),
        }
    }

    pub(super) fn next(&mut self) -> Result<Option<(ObjectId, WalkedCommit)>, ReadError> {
        while let Some((_, _, id)) = self.heap.pop() {
            self.handle.check()?;
            if self.seen.len() > VISITS {
                self.is_cut = true;
                return Ok(None);
            }
            let Some(commit) = self.known.remove(&id) else { continue };
            let same = self.same(id, &commit.header)?;
            match same {
                Same::As(parent) => {
                    for other in commit.header.parents.iter().filter(|other| !self.seen.contains(*other)) {
                        if *other != parent {
                            self.known.remove(other);
                        }
                    }
                    self.push(parent)?;
                }
                _ => commit.header.parents.iter().try_for_each(|parent| self.push(*parent))?,
            }
            if matches!(same, Same::No) {
                return Ok(Some((id, commit)));
            }
        }
        Ok(None)
    }

    /// Whether a parent has the same at the path.
    fn same(&mut self, id: ObjectId, commit: &CommitHeader) -> Result<Same, ReadError> {
        let Some(path) = self.path.take() else { return Ok(Same::No) };
        let same = self.same_at(&path, id, commit);
        self.path = Some(path);
        same
    }

    fn same_at(&mut self, path: &[&[u8]], id: ObjectId, commit: &CommitHeader) -> Result<Same, ReadError> {
        if let (Some(graph), Some(hashed), Some(first)) = (&self.graph, &self.hashed, commit.parents.first())
            && graph.is_same(&id, hashed)
        {
            return Ok(Same::As(*first));
        }
        let own = match commit.tree {
            Some(tree) => tree,
            None => self.handle.tree_of(id)?,
        };
        for parent in &commit.parents {
            self.read(*parent)?;
            let Some(tree) = self.known.get(parent).map(|parent| parent.header.tree) else { continue };
            if self.equal(path, Some(own), tree, 0)? {
                return Ok(Same::As(*parent));
            }
        }
        let is_first = commit.parents.is_empty();
        Ok(if is_first && self.equal(path, Some(own), None, 0)? { Same::AsNothing } else { Same::No })
    }

    /// Whether two trees have the same at a path. They are compared by their ids from the root down.
    fn equal(
        &mut self,
        path: &[&[u8]],
        one: Option<ObjectId>,
        other: Option<ObjectId>,
        depth: usize,
    ) -> Result<bool, ReadError> {
        if one == other {
            return Ok(true);
        }
        let Some((name, rest)) = path.split_first() else { return Ok(false) };
        let one = self.child(one, name, depth)?;
        let other = self.child(other, name, depth)?;
        if one == other {
            return Ok(true);
        }
        if rest.is_empty() {
            return Ok(false);
        }
        let tree = |entry: Option<GitEntry>| entry.filter(|entry| entry.mode.is_tree()).map(|entry| entry.id);
        self.equal(rest, tree(one), tree(other), depth + 1)
    }

    fn child(
        &mut self,
        tree: Option<ObjectId>,
        name: &[u8],
        depth: usize,
    ) -> Result<Option<GitEntry>, ReadError> {
        let Some(tree) = tree else { return Ok(None) };
        if let Some(found) = self.found.get(&(depth, tree)) {
            return Ok(*found);
        }
        let found = child(&self.handle.tree(tree)?, name);
        if self.found.len() >= KEPT {
            self.found.clear();
        }
        self.found.insert((depth, tree), found);
        Ok(found)
    }
}

/// The result of comparing a commit with its parents at the path of a log.
enum Same {
    No,
    /// A parent has the same entry: history continues with that parent only.
    As(ObjectId),
    /// A first commit without the path.
    AsNothing,
}
