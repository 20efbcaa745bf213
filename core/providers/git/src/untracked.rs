//! Finds the files of a working tree that are not in the index.
//!
//! ```text
//!   directory ──▶ its .gitignore ──▶ each entry: in the index? ignored? ──▶ untracked: a file, or a directory as a whole
//! ```
//!
//! Law: rules are read from regular files only, so no read waits for the other end of a FIFO. Symbolic links are not
//! followed. The walk stops when the request is cancelled, and visits a limited number of entries.

use super::index::GitIndex;
use super::parts::{Areas, PartError};
use super::repository::Handle;
use gix::bstr::BStr;
use gix::glob::pattern::Case;
use gix::ignore::Search;
use gix::ignore::search::Ignore;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path::join;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The largest file of rules, in bytes.
const RULES: u64 = 16 << 20;
/// The most entries that are visited, and the deepest nesting of directories.
const VISITS: usize = 2_000_000;
const DEPTH: usize = 512;

/// Called with the path of something untracked, and whether it is a directory.
type Found<'f> = dyn FnMut(&[u8], bool) + 'f;

/// A walk over the untracked files.
pub(super) struct UntrackedWalk<'w> {
    handle: &'w Handle<'w>,
    index: &'w GitIndex,
    root: &'w Path,
    areas: Areas,
    rules: Search,
    case: Case,
    visits: usize,
    found: &'w mut Found<'w>,
}

impl<'w> UntrackedWalk<'w> {
    pub(super) fn new(
        handle: &'w Handle<'w>,
        index: &'w GitIndex,
        root: &'w Path,
        found: &'w mut Found<'w>,
    ) -> Self {
        let case = if handle.open.config.ignore_case { Case::Fold } else { Case::Sensitive };
        let areas = Areas::new(vec![root.to_owned()]);
        Self { handle, index, root, areas, rules: Search::default(), case, visits: 0, found }
    }

    /// Walks the working tree. Returns `false` if it ended early.
    pub(super) fn run(mut self) -> Result<bool, ReadError> {
        let exclude = self.handle.open.layout.common_dir.join("info/exclude");
        match self.handle.open.areas.read(&exclude, RULES) {
            Ok((text, _)) => self.push(&text, exclude, None)?,
            Err(PartError::NotFound) => {}
            Err(error) => {
                self.handle.context.log(&format!("{} is not used: {error}", exclude.display()));
            }
        }
        self.tracked(b"", 0)
    }

    /// A directory that has entries in the index.
    fn tracked(&mut self, directory: &[u8], depth: usize) -> Result<bool, ReadError> {
        let rules = self.rules.patterns.len();
        self.enter(directory)?;
        let mut is_whole = true;
        for (name, kind) in self.entries(directory)? {
            if self.is_over(depth)? {
                is_whole = false;
                break;
            }
            let path = join(directory, &name);
            if kind.is_dir() {
                let is_repository = self.index.entry(&path).is_some_and(|entry| entry.mode.is_submodule());
                if is_repository {
                    continue;
                }
                if self.index.has_under(&path) {
                    if !self.is_ignored(&path, true) && !self.tracked(&path, depth + 1)? {
                        is_whole = false;
                        break;
                    }
                } else if !self.is_ignored(&path, true) && self.has_untracked(&path, depth + 1)? {
                    (self.found)(&path, true);
                }
            } else if is_shown(kind) && !self.index.has(&path) && !self.is_ignored(&path, false) {
                (self.found)(&path, false);
            }
        }
        self.rules.patterns.truncate(rules);
        Ok(is_whole)
    }

    /// Whether a directory without entries in the index has anything that is not ignored.
    fn has_untracked(&mut self, directory: &[u8], depth: usize) -> Result<bool, ReadError> {
        // Another repository is one thing, whatever is in it.
        let git = self.at(directory).join(".git");
        let is_link_file = fs::symlink_metadata(&git).is_ok_and(|facts| facts.is_file());
        if is_link_file || fs::symlink_metadata(git.join("HEAD")).is_ok() {
            return Ok(true);
        }
        let rules = self.rules.patterns.len();
        self.enter(directory)?;
        let mut has = false;
        for (name, kind) in self.entries(directory)? {
            if self.is_over(depth)? {
                break;
            }
            let path = join(directory, &name);
            has = match kind.is_dir() {
                true => !self.is_ignored(&path, true) && self.has_untracked(&path, depth + 1)?,
                false => is_shown(kind) && !self.is_ignored(&path, false),
            };
            if has {
                break;
            }
        }
        self.rules.patterns.truncate(rules);
        Ok(has)
    }

    /// Adds the rules of a directory.
    fn enter(&mut self, directory: &[u8]) -> Result<(), ReadError> {
        let path = self.at(directory).join(".gitignore");
        // Git does not follow a link here.
        match fs::symlink_metadata(&path) {
            Ok(facts) if facts.is_file() => {}
            // A file that is not checked out has its rules all the same.
            Err(_) => {
                let entry = self.index.entry(&join(directory, b".gitignore"));
                if let Some(entry) = entry.filter(|entry| !entry.mode.is_submodule()) {
                    let (_, size) = self.handle.header(entry.id)?;
                    if size <= RULES {
                        let text = self.handle.data(entry.id)?;
                        self.push(&text, path, Some(self.root.to_owned()))?;
                    }
                }
                return Ok(());
            }
            Ok(_) => return Ok(()),
        }
        match self.areas.read(&path, RULES) {
            Ok((text, _)) => self.push(&text, path, Some(self.root.to_owned())),
            Err(PartError::NotFound) => Ok(()),
            Err(error) => {
                self.handle.context.log(&format!("{} is not used: {error}", path.display()));
                Ok(())
            }
        }
    }

    fn push(&mut self, text: &[u8], source: PathBuf, root: Option<PathBuf>) -> Result<(), ReadError> {
        let added = self.rules.add_patterns_buffer(text, source, root.as_deref(), Ignore::default());
        added.map_err(|_| ReadError::Failed)
    }

    fn is_ignored(&self, path: &[u8], is_dir: bool) -> bool {
        let found = self.rules.pattern_matching_relative_path(BStr::new(path), Some(is_dir), self.case);
        found.is_some_and(|found| !found.pattern.is_negative())
    }

    /// The entries of a directory, in no order.
    fn entries(&self, directory: &[u8]) -> Result<Vec<(Vec<u8>, fs::FileType)>, ReadError> {
        let entries = fs::read_dir(self.at(directory)).into_iter().flatten().filter_map(Result::ok);
        let entries =
            entries.filter_map(|entry| Some((entry.file_name().into_vec(), entry.file_type().ok()?)));
        let mut all = Vec::new();
        let folds = self.case == Case::Fold;
        let is_git = |name: &[u8]| name == b".git" || folds && name.eq_ignore_ascii_case(b".git");
        for (name, kind) in entries.filter(|(name, _)| !is_git(name)) {
            if all.len() % 1_024 == 1_023 && self.handle.context.is_cancelled() {
                return Err(ReadError::Failed);
            }
            all.push((name, kind));
            if all.len() > VISITS {
                break;
            }
        }
        Ok(all)
    }

    fn is_over(&mut self, depth: usize) -> Result<bool, ReadError> {
        if self.handle.context.is_cancelled() {
            return Err(ReadError::Failed);
        }
        self.visits += 1;
        Ok(self.visits > VISITS || depth > DEPTH)
    }

    fn at(&self, path: &[u8]) -> PathBuf {
        if path.is_empty() { self.root.to_owned() } else { self.root.join(OsStr::from_bytes(path)) }
    }
}

/// Git knows files and links; a FIFO, a socket or a device is as good as absent.
fn is_shown(kind: fs::FileType) -> bool {
    kind.is_file() || kind.is_symlink()
}
