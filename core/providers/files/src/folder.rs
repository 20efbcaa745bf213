//! A directory for other providers, which read and watch it by the rules of `files`.
//!
//! ```text
//!   Folder::walk ──▶ each file that is served, with its facts        Folder::read ──▶ its bytes, as many as may be
//!   Folders::watch ──▶ Changes: this path may have changed, files came or went           by the watcher of `files`
//! ```
//!
//! Law: links are not followed, and nothing stays open between two calls.

use super::contents::modified;
use super::options::{FileOptions, FileSettings, Symlinks};
use super::root_directory::{Dir, DirectoryEntry, EntryFacts, FileKind, Missing, Resolution, RootDirectory};
use super::rules::Chain;
use super::tree::{INDEX, Tree};
use super::watch::{FileWatch, WatchReports};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use mcp_resources_provider_kit::named::NamedPath;
use mcp_resources_provider_kit::uri_path::join;
use mcp_resources_provider_kit::wanted::is_wanted;
use mcp_resources_runtime::provider::InterestChange;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Maximum number of directories that a walk visits, and their maximum depth.
const DIRECTORIES: usize = 65_536;
const DEPTH: usize = 64;
/// A time of modification younger than this may be that of two changes.
const COARSE: Duration = Duration::from_secs(2);

/// Options that select the served files of folders declared together.
#[derive(Clone, Debug)]
pub struct FolderOptions {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    pub gitignore: bool,
    pub hidden: bool,
    pub watch: bool,
    pub watch_dirs: usize,
}

/// A directory that a provider serves.
#[derive(Clone, Debug)]
pub struct Folder {
    tree: Arc<Tree>,
}

/// Properties of a file that are known without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFacts {
    /// In bytes.
    pub size: u64,
    facts: EntryFacts,
    /// Whether a later change must show in the facts.
    is_settled: bool,
}

/// The receiver of a folder's changes, called on a thread of the watcher.
pub trait FolderChanges: Clone + Send + 'static {
    /// Something may have happened at a path of the folder with this name.
    fn touched(&self, folder: &str, path: &[u8]);
    /// Files have come or gone, or anything else.
    fn moved(&self);
    /// For the log.
    fn log(&self, what: &str);
    /// Whether the receiver still exists.
    fn is_alive(&self) -> bool;
}

impl FolderOptions {
    /// The defaults of `files`.
    pub fn new() -> Self {
        let FileSettings { include, exclude, gitignore, hidden, watch, watch_dirs, .. } =
            FileOptions::new().settings;
        Self { include, exclude, gitignore, hidden, watch, watch_dirs }
    }
}

impl Default for FolderOptions {
    fn default() -> Self {
        Self::new()
    }
}

/// A directory that a walk has yet to visit.
struct UnvisitedDirectory {
    path: Vec<u8>,
    /// The rules of the directories down to it.
    chain: Chain,
    depth: usize,
}

impl Folder {
    /// Opens the folders of `paths`. `kind` and `what` are for messages: the provider's kind, and its term for a
    /// folder.
    ///
    /// # Errors
    /// One is not there, has no name that a URI can have, or a glob cannot be read.
    pub fn all(
        kind: &'static str,
        what: &'static str,
        paths: &[NamedPath],
        options: &FolderOptions,
    ) -> Result<Vec<Self>, OptionError> {
        let mut own = FileOptions::new();
        own.roots = paths.to_vec();
        let FolderOptions { include, exclude, gitignore, hidden, watch, watch_dirs } = options.clone();
        own.settings = FileSettings {
            include,
            exclude,
            gitignore,
            hidden,
            watch,
            watch_dirs,
            symlinks: Symlinks::Never,
            ..own.settings
        };
        let trees = Tree::all_of(kind, what, &own, Resolution::best())?;
        Ok(trees.into_iter().map(|tree| Self { tree }).collect())
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// Its name, before percent-encoding.
    pub fn name(&self) -> &str {
        self.tree.name()
    }

    /// The folder's path on disk, for the log only.
    pub fn dir(&self) -> &Path {
        self.tree.dir()
    }

    /// Takes the sentences for the log about rule files that could not be read since the last call.
    pub fn take_faults(&self) -> Vec<String> {
        self.tree.take_faults()
    }

    /// The URI of a path in it, of a provider whose URIs begin with `scheme`, as `docs:///`.
    pub fn uri(&self, scheme: &str, path: &[u8]) -> String {
        let uri = self.tree.uri(path, false);
        format!("{scheme}{}", uri.strip_prefix(INDEX).unwrap_or_default())
    }

    /// Visits each file that is served, until `visit` returns `false` or the request ends. Returns whether all were visited.
    ///
    /// # Errors
    /// The folder is not there now, or cannot be read.
    pub fn walk(&self, visit: &mut dyn FnMut(Vec<u8>, FileFacts) -> bool) -> Result<bool, GoneFolder> {
        let root = self.tree.open().map_err(|_| GoneFolder)?;
        let chain = self.tree.chain(&root, b"").ok_or(GoneFolder)?;
        let mut stack = vec![UnvisitedDirectory { path: Vec::new(), chain, depth: 0 }];
        let mut looked = 0;
        while let Some(next) = stack.pop() {
            looked += 1;
            let Some(dir) = root.open(&next.path).ok().and_then(super::root_directory::OpenedFile::into_dir)
            else {
                if next.path.is_empty() {
                    return Err(GoneFolder);
                }
                continue;
            };
            if looked > DIRECTORIES || !self.scan(&root, &dir, &next, &mut stack, visit) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Visits the files of one directory, and leaves its directories on the stack.
    fn scan(
        &self,
        root: &RootDirectory,
        dir: &Dir,
        own: &UnvisitedDirectory,
        stack: &mut Vec<UnvisitedDirectory>,
        visit: &mut dyn FnMut(Vec<u8>, FileFacts) -> bool,
    ) -> bool {
        let Ok(entries) = dir.entries() else { return true };
        for DirectoryEntry { name, kind } in entries {
            // A directory may grow for as long as it is read.
            if !is_wanted() {
                return false;
            }
            let path = join(&own.path, &name);
            match kind {
                FileKind::Directory if own.depth < DEPTH => {
                    if let Some(chain) = self.tree.below(root, own.chain.clone(), &path) {
                        stack.push(UnvisitedDirectory { path, chain, depth: own.depth + 1 });
                    }
                }
                FileKind::File if self.tree.admits_entry(&own.chain, &path, false) => {
                    let Some(facts) = dir.stat(&name).filter(|facts| facts.kind == FileKind::File) else {
                        continue;
                    };
                    if !visit(path, FileFacts::from_facts(facts)) {
                        return false;
                    }
                }
                _ => {}
            }
        }
        true
    }

    /// The first name in a directory that is served for which `is_it` holds.
    pub fn name_in(&self, path: &[u8], is_it: &dyn Fn(&[u8]) -> bool) -> Option<Vec<u8>> {
        let root = self.tree.open().ok()?;
        let dir = self.tree.find(&root, path, &|_| true).ok()?.into_dir()?;
        // A directory may grow for as long as it is read.
        let mut names = dir.entries().ok()?.map(|entry| entry.name).take_while(|_| is_wanted());
        names.find(|name| is_it(name))
    }

    /// Whether the path is a directory; `None` if nothing is served there.
    pub fn is_dir(&self, path: &[u8]) -> Option<bool> {
        let root = self.tree.open().ok()?;
        Some(self.tree.find(&root, path, &|_| true).ok()?.is_dir())
    }

    /// The first `max` bytes of a file. `check` is called with its size, before and during the read.
    ///
    /// # Errors
    /// [`UnreadFile`].
    pub fn read(
        &self,
        path: &[u8],
        max: u64,
        permits: &dyn Fn(&[u8]) -> bool,
        check: &dyn Fn(u64) -> Result<(), ReadError>,
    ) -> Result<(Vec<u8>, FileFacts), UnreadFile> {
        let root = self.tree.open()?;
        // A file system that does not tell names apart has found the file of another name: that one is asked of too.
        let permits = |uri: &str| self.tree.path_of(uri).is_some_and(|(path, _)| permits(&path));
        let opened = self.tree.find(&root, path, &permits)?;
        if opened.is_dir() {
            return Err(UnreadFile::NotFound);
        }
        let facts = FileFacts::from_facts(opened.facts);
        check(facts.size).map_err(UnreadFile::Refused)?;
        let mut bytes = Vec::new();
        let mut file = opened.into_file().take(max);
        loop {
            // Piece by piece: a file may grow for as long as it is read, and its reader may be gone.
            let read = file.by_ref().take(PIECE).read_to_end(&mut bytes);
            let read = read.map_err(|error| UnreadFile::Failed(error.to_string()))?;
            check(facts.size.min(max).max(bytes.len() as u64)).map_err(UnreadFile::Refused)?;
            if read == 0 {
                return Ok((bytes, facts));
            }
        }
    }
}

/// Number of bytes read between two checks whether they are still wanted.
const PIECE: u64 = 1 << 20;

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreadFile {
    /// No such file is served.
    NotFound,
    /// It, or the folder, cannot be read now, for this reason.
    Failed(String),
    /// Its size was refused.
    Refused(ReadError),
}

impl From<Missing> for UnreadFile {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotFound => Self::NotFound,
            Missing::Failed(error) => Self::Failed(error.to_string()),
        }
    }
}

/// A folder is not there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoneFolder;

impl FileFacts {
    fn from_facts(facts: EntryFacts) -> Self {
        Self { size: facts.size, facts, is_settled: facts.modified.is_older_than(COARSE) }
    }

    /// When it was last changed, as annotations have it.
    pub fn modified(&self) -> Option<String> {
        modified(&self.facts)
    }

    /// When its contents were last written. `None` before 1970.
    pub fn written(&self) -> Option<SystemTime> {
        self.facts.modified.at()
    }

    /// The facts as one text: another text is another file, or other contents. `None` if a later change need not show in it.
    pub fn stamp(&self) -> Option<String> {
        let EntryFacts {
            id: FileId { device, inode },
            modified: FileTime { seconds, nanoseconds },
            size,
            ..
        } = &self.facts;
        self.is_settled.then(|| format!("{device}.{inode}.{seconds}.{nanoseconds}.{size}"))
    }
}

/// A watch over folders, while it is on.
#[derive(Default)]
pub struct FolderWatch(FileWatch);

impl FolderWatch {
    /// Starts or stops reporting the changes of the folders. Changes before everything is watched are reported as one
    /// [`FolderChanges::moved`].
    pub fn set(&self, on: bool, folders: &[Folder], changes: Option<impl FolderChanges>) {
        let trees: Vec<_> = folders.iter().map(|folder| folder.tree.clone()).collect();
        self.0.change(&trees, InterestChange::Lists { on }, changes.map(Adapter));
    }
}

impl fmt::Debug for FolderWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FolderWatch").finish()
    }
}

#[derive(Clone)]
struct Adapter<C>(C);

impl<C: FolderChanges> WatchReports for Adapter<C> {
    fn updated(&self, _uri: &str) {}

    fn list_changed(&self) {
        self.0.moved();
    }

    fn touched(&self, tree: &Tree, path: &[u8]) {
        self.0.touched(tree.name(), path);
    }

    fn log(&self, what: &str) {
        self.0.log(what);
    }

    fn is_alive(&self) -> bool {
        self.0.is_alive()
    }
}
