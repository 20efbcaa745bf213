//! The status of a working tree, as JSON.
//!
//! Law: files of the working tree are compared by their times and sizes in the index, and otherwise by a hash of their contents;
//! no contents are sent. No filter and no fsmonitor of the repository is run, and submodules are not entered.

use super::commits::json;
use super::references::may_name;
use super::repository::{Context, Handle};
use super::watch::Fingerprint;
use gix::bstr::BStr;
use gix::index::State;
use gix::index::entry::Mode;
use gix::status::plumbing::index_as_worktree::traits::{FastEq, SubmoduleStatus};
use gix::status::plumbing::index_as_worktree::{Change, EntryStatus};
use gix::status::plumbing::index_as_worktree_with_renames::{Entry, VisitEntry};
use gix::status::tree_index::TrackRenames;
use mcp_resources_engine::error::ReadError;
use serde::Serialize;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most paths of each group.
const SHOWN: usize = 1_000;

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
struct Status {
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
pub(super) fn status(handle: &Handle<'_>, context: &Context<'_>) -> Result<(String, Fingerprint), ReadError> {
    let state = WorktreeState::of(handle, context)?;
    let own = handle.own;
    let may = |path: &[u8]| {
        let (path, kind) = match path.strip_suffix(b"/") {
            Some(path) => (path, "tree"),
            None => (path, "blob"),
        };
        (context.permits)(&own.uri_at(kind, "HEAD", path))
    };
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let files = |group: &PathGroup| -> Vec<ChangedPath> {
        let paths = group.paths.iter().filter(|(path, _)| may(path));
        paths.map(|(path, change)| ChangedPath { path: text(path), change }).collect()
    };
    let paths =
        |group: &PathGroup| -> Vec<String> { files(group).into_iter().map(|file| file.path).collect() };
    let (staged, unstaged) = (files(&state.staged), files(&state.unstaged));
    let (untracked, conflicted) = (paths(&state.untracked), paths(&state.conflicted));
    let json = json(&Status {
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
    Ok((json, Fingerprint::of(state.digest())))
}

impl WorktreeState {
    /// What it is now. Paths that are not served are left out.
    pub(super) fn of(handle: &Handle<'_>, context: &Context<'_>) -> Result<Self, ReadError> {
        let failed = |error: gix::Error| {
            (context.log)(&format!("the status of {:?} cannot be read: {error}", handle.own.name));
            ReadError::Failed
        };
        handle.workdir().ok_or(ReadError::NotFound)?;
        let head = handle.head()?;
        let branch = handle.branch()?.and_then(|full| full.strip_prefix("refs/heads/").map(str::to_owned));
        let mut state = Self { head: head.map(|head| head.to_string()), branch, ..Self::default() };
        let index = handle.index_or_empty().map_err(failed)?;
        let full = if index.is_sparse() { Some(expanded(handle, &index).map_err(failed)?) } else { None };
        let index = full.as_ref().unwrap_or(&index);
        let tree = match head {
            Some(head) => handle.tree_of(head)?,
            None => gix::ObjectId::empty_tree(gix::hash::Kind::Sha1),
        };
        state.compare_index(handle, &tree, index, context).map_err(failed)?;
        state.compare_files(handle, index, context).map_err(failed)?;
        if (context.is_cancelled)() {
            return Err(ReadError::Failed);
        }
        Ok(state)
    }

    /// A hash of the state.
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Compares HEAD with the index: what the next commit would change.
    fn compare_index(
        &mut self,
        handle: &Handle<'_>,
        tree: &gix::oid,
        index: &State,
        context: &Context<'_>,
    ) -> gix::Result<()> {
        use gix::diff::index::ChangeRef;
        if is_all_of(index, tree) {
            return Ok(());
        }
        let nothing = State::new(gix::hash::Kind::Sha1);
        let source = gix::worktree::stack::state::attributes::Source::IdMapping;
        let mut everything = handle.pathspec(false, None::<&str>, false, &nothing, source)?;
        handle.tree_index_status(
            tree,
            index,
            Some(&mut everything),
            TrackRenames::Disabled,
            |change, _, _| {
                let (path, what) = match &change {
                    ChangeRef::Addition { location, .. } => (location, "added"),
                    ChangeRef::Deletion { location, .. } => (location, "deleted"),
                    ChangeRef::Modification {
                        location, previous_entry_mode: old, entry_mode: new, ..
                    } => (location, if is_same_type(*old, *new) { "modified" } else { "type_changed" }),
                    ChangeRef::Rewrite { location, .. } => (location, "renamed"),
                };
                self.staged.push(handle, path, false, what);
                Ok(if (context.is_cancelled)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        Ok(())
    }

    /// Compares the index with the working tree.
    fn compare_files(
        &mut self,
        handle: &Handle<'_>,
        index: &State,
        context: &Context<'_>,
    ) -> gix::Result<()> {
        let is_over = AtomicBool::new(false);
        let mut visitor = Visitor { handle, state: self, context, is_over: &is_over };
        let walk = handle.dirwalk_options()?.emit_untracked(gix::dir::walk::EmissionMode::CollapseDirectory);
        let options = gix::status::index_worktree::Options {
            sorting: None,
            dirwalk_options: Some(walk),
            rewrites: None,
            thread_limit: Some(1),
        };
        handle.index_worktree_status(
            index,
            None::<&BStr>,
            &mut visitor,
            FastEq,
            NoSubmodules,
            &mut gix::progress::Discard,
            &is_over,
            options,
        )?;
        Ok(())
    }
}

/// The index with an entry for each file: a sparse one has a directory in the place of files that are not checked out.
fn expanded(handle: &Handle<'_>, sparse: &State) -> gix::Result<State> {
    let mut full = State::new(gix::hash::Kind::Sha1);
    full.set_timestamp(sparse.timestamp());
    for entry in sparse.entries() {
        let path = entry.path(sparse);
        if !entry.mode.is_sparse() {
            full.dangerously_push_entry(entry.stat, entry.id, entry.flags, entry.mode, path);
            continue;
        }
        let files = handle.index_from_tree(&entry.id)?;
        for file in files.entries() {
            // The path of the directory ends with a slash.
            let path = [&**path, &**file.path(&files)].concat();
            full.dangerously_push_entry(file.stat, file.id, entry.flags, file.mode, BStr::new(&path));
        }
    }
    full.sort_entries();
    Ok(full)
}

/// Whether both are files, both links, or both submodules.
fn is_same_type(old: Mode, new: Mode) -> bool {
    let files = [Mode::FILE, Mode::FILE_EXECUTABLE];
    old == new || (files.contains(&old) && files.contains(&new))
}

/// Whether the index says of itself that it is what the tree is. Git writes that with each commit, and takes it away with each
/// change of an entry.
fn is_all_of(index: &State, tree: &gix::oid) -> bool {
    let all = u32::try_from(index.entries().len()).ok();
    index.tree().is_some_and(|root| root.id == tree && root.num_entries.is_some() && root.num_entries == all)
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

/// Collects the results of the comparison.
struct Visitor<'v> {
    handle: &'v Handle<'v>,
    state: &'v mut WorktreeState,
    context: &'v Context<'v>,
    is_over: &'v AtomicBool,
}

impl<'index> VisitEntry<'index> for Visitor<'_> {
    type ContentChange = ();
    type SubmoduleStatus = ();

    fn visit_entry(&mut self, entry: Entry<'index, (), ()>) {
        if (self.context.is_cancelled)() {
            self.is_over.store(true, Ordering::Relaxed);
        }
        match entry {
            Entry::Modification { rela_path, status, .. } => {
                let change = match status {
                    EntryStatus::Conflict { .. } => {
                        return self.state.conflicted.push(self.handle, rela_path, false, "conflicted");
                    }
                    EntryStatus::Change(Change::Removed) => "deleted",
                    EntryStatus::Change(Change::Type { .. }) => "type_changed",
                    EntryStatus::Change(_) => "modified",
                    EntryStatus::IntentToAdd => "added",
                    EntryStatus::NeedsUpdate(_) => return,
                };
                self.state.unstaged.push(self.handle, rela_path, false, change);
            }
            Entry::DirectoryContents { entry, .. } if entry.status == gix::dir::entry::Status::Untracked => {
                use gix::dir::entry::Kind;
                let is_dir = matches!(entry.disk_kind, Some(Kind::Directory | Kind::Repository));
                self.state.untracked.push(self.handle, &entry.rela_path, is_dir, "untracked");
            }
            Entry::DirectoryContents { .. } | Entry::Rewrite { .. } => {}
        }
    }
}

/// Skips submodules.
#[derive(Clone)]
struct NoSubmodules;

impl SubmoduleStatus for NoSubmodules {
    type Output = ();

    fn status(&mut self, _entry: &gix::index::Entry, _path: &BStr) -> gix::Result<Option<()>> {
        Ok(None)
    }
}
