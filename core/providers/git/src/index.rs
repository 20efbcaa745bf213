//! The index: the entries of the next commit, with the state of the working tree's files when they were added.

use gix::ObjectId;
use gix::index::entry::{Flags, Mode, Stat};
use mcp_resources_provider_kit::uri_path::join;

/// A file, a link or a submodule in the index.
#[derive(Clone, Debug)]
pub(super) struct IndexEntry {
    pub(super) path: Vec<u8>,
    pub(super) id: ObjectId,
    pub(super) mode: Mode,
    pub(super) stat: Stat,
    pub(super) flags: Flags,
}

/// The index as it was at one time.
#[derive(Debug, Default)]
pub(super) struct GitIndex {
    /// In the order of their paths; those of a conflict have the same path.
    pub(super) entries: Vec<IndexEntry>,
    /// The tree that it is known to be, if nothing was staged since.
    pub(super) tree: Option<ObjectId>,
    /// When it was written, in seconds since 1970: a file that changed later may be changed unseen.
    pub(super) written: i64,
}

impl IndexEntry {
    pub(super) fn is_conflict(&self) -> bool {
        self.flags.stage_raw() != 0
    }
}

impl GitIndex {
    /// Whether the index records that it equals this tree. Git writes that record with each commit, and removes it with
    /// each change of an entry.
    pub(super) fn is_all_of(&self, tree: ObjectId) -> bool {
        self.tree == Some(tree)
    }

    /// Whether a directory has entries.
    pub(super) fn has_under(&self, directory: &[u8]) -> bool {
        let prefix = join(directory, b"");
        let from = self.entries.partition_point(|entry| *entry.path < *prefix);
        self.entries.get(from).is_some_and(|entry| entry.path.starts_with(&prefix))
    }

    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.entry(path).is_some()
    }

    pub(super) fn entry(&self, path: &[u8]) -> Option<&IndexEntry> {
        let at = self.entries.partition_point(|entry| *entry.path < *path);
        self.entries.get(at).filter(|entry| entry.path == path)
    }
}
