//! One root at run time: the common part of reads, lists, completion and watches.
//!
//! ```text
//!   Tree::open ──▶ Root ──open(path)──▶ Opened ──into_dir──▶ Dir     under the root, by its descriptor
//!   Dir::entries ──▶ Entry { name, kind }      Dir::stat(name) ──▶ Facts: inode, time of modification, size
//!   Tree::admits(root, path, is_dir) ──▶ whether it is served        hidden, ignored, excluded, not included: it is not
//!   Tree::chain, Tree::below, Tree::admits_entry                     the same for many entries of a directory
//!   Tree::uri(path, is_dir) ──▶ its URI                              the one encoder; a directory's ends with `/`
//!   Tree::path_of(uri) ──▶ path                                      of a URI in canonical form, with or without that `/`
//! ```
//!
//! A path is one of bytes, relative to the root, without `.`, `..`, a slash at either end or two in a row; the root's is empty.

use super::directory_names::{DirectoryNames, PathNames};
use super::known_directories::KnownDirectories;
use super::options::{FileOptions, FileSettings};
use super::root_directory::{EntryFacts, Missing, OpenedFile, Resolution, RootDirectory};
use super::rules::{Chain, FolderRules};
use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::uri_path;
pub(super) use mcp_resources_provider_kit::uri_path::{join, path};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(super) const INDEX: &str = "file:///";

/// One root: its name, its directory, and the rules for serving it. Nothing stays open between two requests: the root
/// may be replaced, disappear and come back, and a process may fork.
#[derive(Debug)]
pub(super) struct Tree {
    /// Its decoded name in URIs.
    name: String,
    /// `file:///NAME/`.
    uri: String,
    dir: PathBuf,
    settings: Arc<FileSettings>,
    rules: FolderRules,
    known: KnownDirectories,
    way: Resolution,
}

impl Tree {
    /// One for each root of `options`.
    pub(super) fn all(options: &FileOptions, way: Resolution) -> Result<Vec<Arc<Self>>, OptionError> {
        Self::all_of("files", "root", options, way)
    }

    /// The same for another provider: `kind` is its name in messages, `what` the word for a root.
    pub(super) fn all_of(
        kind: &'static str,
        what: &str,
        options: &FileOptions,
        way: Resolution,
    ) -> Result<Vec<Arc<Self>>, OptionError> {
        let settings = Arc::new(options.settings.clone());
        let tree = |root: &NamedPath| {
            let (name, dir) = named::directory(kind, what, root)?;
            let rules = FolderRules::new(kind, &settings, &dir)?;
            let uri = format!("{INDEX}{}/", uri_path::encode(name.as_bytes()));
            let name = uri_path::text(name.as_bytes());
            let known = KnownDirectories::default();
            Ok(Arc::new(Self { name, uri, dir, settings: settings.clone(), rules, known, way }))
        };
        options.roots.iter().map(tree).collect()
    }

    /// Changes the age of a change after which the next one has another time.
    #[cfg(test)]
    pub(super) fn settle_after(&mut self, settled: std::time::Duration) {
        self.known = KnownDirectories::with_settled(settled);
    }

    /// Its name: the value of `root`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The path of the root on disk: for logs only, never for a client.
    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn settings(&self) -> &Arc<FileSettings> {
        &self.settings
    }

    /// Opens the root, for one request.
    pub(super) fn open(&self) -> Result<RootDirectory, Missing> {
        RootDirectory::at(&self.dir, self.settings.symlinks, self.way)
    }

    /// The URI of the entry at `path`.
    pub(super) fn uri(&self, path: &[u8], is_dir: bool) -> String {
        let mut uri = self.uri.clone();
        if !path.is_empty() {
            uri.push_str(&uri_path::encode(path));
            if is_dir {
                uri.push('/');
            }
        }
        uri
    }

    /// The path that a canonical URI of this root names, and whether it must be a directory's.
    pub(super) fn path_of(&self, uri: &str) -> Option<(Vec<u8>, bool)> {
        let uri = uri.split(['?', '#']).next().unwrap_or_default();
        if self.uri.strip_suffix('/') == Some(uri) {
            return Some((Vec::new(), true));
        }
        let rest = uri.strip_prefix(&*self.uri)?;
        path(&mcp_resources_template::uri::decode(rest)?)
    }

    /// Opens the requested entry, if it is served. `permits` is also asked about its real path.
    pub(super) fn find(
        &self,
        root: &RootDirectory,
        path: &[u8],
        permits: &dyn Fn(&str) -> bool,
    ) -> Result<OpenedFile, Missing> {
        let (opened, names) = match self.open_entry(root, path) {
            Ok(found) => found,
            // An error must not reveal it either.
            Err(Missing::Failed(_))
                if root.is_searchable()
                    && [false, true].iter().any(|is_dir| !self.admits(root, path, *is_dir)) =>
            {
                return Err(Missing::NotFound);
            }
            Err(missing) => return Err(missing),
        };
        let is_dir = opened.is_dir();
        let is_moved = opened.real != path;
        let is_served = self.rules.admits(root, path, is_dir, &names)
            && (!is_moved
                || self.admits(root, &opened.real, is_dir) && permits(&self.uri(&opened.real, is_dir)));
        is_served.then_some(opened).ok_or(Missing::NotFound)
    }

    /// Opens an entry, and returns also what is known of the directories on its path.
    fn open_entry(&self, root: &RootDirectory, path: &[u8]) -> Result<(OpenedFile, PathNames), Missing> {
        let opened = root.resolve(path)?;
        // Only now: a rule that was written before the opened file took another's place must not be missed.
        let is_known = self.rules.has_files() && opened.real == path;
        let names = if is_known { self.known.names(root, path) } else { PathNames::default() };
        Ok((root.spelled(opened, &names)?, names))
    }

    /// Whether the rules let the entry at `path` be served.
    pub(super) fn admits(&self, root: &RootDirectory, path: &[u8], is_dir: bool) -> bool {
        self.rules.admits(root, path, is_dir, &PathNames::default())
    }

    /// The metadata of the rule files outside the root.
    pub(super) fn outer_rules(&self) -> Vec<Option<EntryFacts>> {
        self.rules.outer_facts()
    }

    /// Takes the sentences for the log about rule files that could not be read since the last call.
    pub(super) fn take_faults(&self) -> Vec<String> {
        self.rules.take_faults()
    }

    /// The rules for the entries of the directory at `path`; `None` if the directory is not served itself.
    pub(super) fn chain(&self, root: &RootDirectory, path: &[u8]) -> Option<Chain> {
        self.rules.chain(root, path, &PathNames::default())
    }

    /// The same for a directory in the one that `chain` is of.
    pub(super) fn below(&self, root: &RootDirectory, chain: Chain, path: &[u8]) -> Option<Chain> {
        self.rules.below(root, chain, path, DirectoryNames::default())
    }

    /// Whether the entry at `path`, in the directory that `chain` is of, is served.
    pub(super) fn admits_entry(&self, chain: &Chain, path: &[u8], is_dir: bool) -> bool {
        self.rules.admits_entry(chain, path, is_dir)
    }
}
