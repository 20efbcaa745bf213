//! The status of a working tree, as JSON.
//!
//! Law: files of the working tree are compared by their times and sizes in the index, and otherwise by a hash of their contents;
//! no contents are sent. No filter and no fsmonitor of the repository is run, and submodules are not entered.

use super::answers::{Fingerprint, json};
use super::index::GitIndex;
use super::objects::entries;
use super::references::may_name;
use super::repository::Handle;
use super::untracked::UntrackedWalk;

use super::worktree::WorktreeFiles;
use gix::ObjectId;
use gix::index::entry::{Flags, Mode};
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path::join;
use mcp_resources_runtime::provider::RequestContext;
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The most paths of each group.
const SHOWN: usize = 1_000;
/// The most files of a commit, and the deepest nesting of its directories.
const FILES: usize = 5_000_000;
const DEPTH: usize = 512;

/// The state of a working tree, before the guard is asked.
#[derive(Default, Hash)]
pub(super) struct WorktreeState {
    head: Option<String>,
    branch: Option<String>,
    staged: PathGroup,
    unstaged: PathGroup,
    untracked: PathGroup,
    conflicted: PathGroup,
}

/// Paths with their changes.
#[derive(Default, Hash)]
struct PathGroup {
    paths: BTreeMap<Vec<u8>, &'static str>,
    more: bool,
}

#[derive(Serialize)]
struct TreeStatus {
    /// The branch that HEAD is on; `null` if it is on none.
    branch: Option<String>,
    /// The commit; `null` if there is none yet.
    head: Option<String>,
    clean: bool,
    staged: Vec<ChangedPath>,
    unstaged: Vec<ChangedPath>,
    untracked: Vec<String>,
    conflicted: Vec<String>,
    more: bool,
}

#[derive(Serialize)]
struct ChangedPath {
    path: String,
    change: &'static str,
}

/// The status of the working tree, as JSON.
pub(super) fn status(
    handle: &Handle<'_>,
    context: &RequestContext<'_>,
) -> Result<(String, Fingerprint), ReadError> {
    let state = WorktreeState::new(handle)?;
    let own = handle.own;
    let may = |path: &[u8]| {
        let (path, kind) = match path.strip_suffix(b"/") {
            Some(path) => (path, "tree"),
            None => (path, "blob"),
        };
        context.permits(&own.uri_at(kind, "HEAD", path))
    };
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let files = |group: &PathGroup| -> Vec<ChangedPath> {
        let paths = group.paths.iter().filter(|(path, _)| may(path));
        paths.map(|(path, change)| ChangedPath { path: text(path), change }).collect()
    };
    let paths =
        |group: &PathGroup| -> Vec<String> { files(group).into_iter().map(|file| file.path).collect() };
    let staged = files(&state.staged);
    let unstaged = files(&state.unstaged);
    let untracked = paths(&state.untracked);
    let conflicted = paths(&state.conflicted);
    let json = json(&TreeStatus {
        branch: state.branch.clone().filter(|branch| may_name(handle, branch, context)),
        head: state.head.clone(),
        clean: staged.is_empty() && unstaged.is_empty() && untracked.is_empty() && conflicted.is_empty(),
        staged,
        unstaged,
        untracked,
        conflicted,
        more: [&state.staged, &state.unstaged, &state.untracked, &state.conflicted]
            .iter()
            .any(|group| group.more),
    })?;
    Ok((json, Fingerprint::from_value(state.digest())))
}

impl WorktreeState {
    /// Reads the current status. Paths that are not served are left out.
    pub(super) fn new(handle: &Handle<'_>) -> Result<Self, ReadError> {
        let root = handle.open.layout.work_dir.as_deref().ok_or(ReadError::NotFound)?;
        let head = handle.head()?;
        let branch = handle.branch()?.and_then(|full| full.strip_prefix("refs/heads/").map(str::to_owned));
        let mut state = Self { head: head.map(|head| head.to_string()), branch, ..Self::default() };
        let index = handle.index()?;
        state.compare_index(handle, head, &index)?;
        let mut files = WorktreeFiles::new(handle, root);
        for entry in &index.entries {
            handle.check()?;
            if entry.is_conflict() {
                state.conflicted.push(handle, &entry.path, false, "conflicted");
            } else if let Some(change) = files.change(&index, entry)? {
                state.unstaged.push(handle, &entry.path, false, change);
            }
        }
        let untracked = &mut state.untracked;
        let mut found = |path: &[u8], is_dir: bool| untracked.push(handle, path, is_dir, "untracked");
        let is_whole = UntrackedWalk::new(handle, &index, root, &mut found).run()?;
        state.untracked.more |= !is_whole;
        Ok(state)
    }

    /// A hash of the state.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Compares HEAD with the index: the changes of the next commit.
    fn compare_index(
        &mut self,
        handle: &Handle<'_>,
        head: Option<ObjectId>,
        index: &GitIndex,
    ) -> Result<(), ReadError> {
        let mut committed = Vec::new();
        if let Some(head) = head {
            let tree = handle.tree_of(head)?;
            if index.is_all_of(tree) {
                return Ok(());
            }
            collect(handle, tree, b"", &mut committed, 0)?;
        }
        committed.sort();
        let mut before = committed.iter().peekable();
        let mut after = index.entries.iter().peekable();
        loop {
            handle.check()?;
            let path = match (before.peek(), after.peek()) {
                (None, None) => return Ok(()),
                (Some((path, ..)), None) => path,
                (None, Some(entry)) => &entry.path,
                (Some((path, ..)), Some(entry)) => path.min(&entry.path),
            };
            let old = before.next_if(|(found, ..)| found == path);
            let mut new = None;
            let mut is_conflict = false;
            while let Some(entry) = after.next_if(|entry| entry.path == *path) {
                is_conflict |= entry.is_conflict();
                // What is only intended to be added is not in the index yet.
                new = Some(entry).filter(|entry| !entry.flags.contains(Flags::INTENT_TO_ADD));
            }
            let change = match (old, new) {
                _ if is_conflict => continue,
                (None, None) => continue,
                (None, Some(_)) => "added",
                (Some(_), None) => "deleted",
                (Some((_, mode, id)), Some(entry)) if (*mode, *id) == (entry.mode.bits(), entry.id) => {
                    continue;
                }
                (Some((_, mode, _)), Some(entry)) if is_same_type(*mode, entry.mode) => "modified",
                _ => "type_changed",
            };
            self.staged.push(handle, path, false, change);
        }
    }
}

/// A file of a commit: its path, mode and id.
type Committed = (Vec<u8>, u32, ObjectId);

/// Appends the files under a tree.
fn collect(
    handle: &Handle<'_>,
    tree: ObjectId,
    directory: &[u8],
    into: &mut Vec<Committed>,
    depth: usize,
) -> Result<(), ReadError> {
    handle.check()?;
    if depth > DEPTH || into.len() > FILES {
        return Err(handle.fault("its last commit has too many files to compare them with the index"));
    }
    let data = handle.tree(tree)?;
    for entry in entries(&data) {
        let path = join(directory, entry.filename);
        let id = entry.oid.to_owned();
        match entry.mode.is_tree() {
            true => collect(handle, id, &path, into, depth + 1)?,
            false => into.push((path, Mode::from(entry.mode).bits(), id)),
        }
    }
    Ok(())
}

/// Whether both are files, both links, or both submodules.
fn is_same_type(old: u32, new: Mode) -> bool {
    let files = [Mode::FILE.bits(), Mode::FILE_EXECUTABLE.bits()];
    old == new.bits() || (files.contains(&old) && files.contains(&new.bits()))
}

impl PathGroup {
    fn push(&mut self, handle: &Handle<'_>, path: &[u8], is_dir: bool, change: &'static str) {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        if !handle.own.selection.admits(path, is_dir) {
            return;
        }
        let mut path = path.to_vec();
        if is_dir {
            path.push(b'/');
        }
        self.more |= self.paths.len() >= SHOWN && !self.paths.contains_key(&path);
        if self.paths.len() < SHOWN {
            self.paths.insert(path, change);
        }
    }
}
