//! The differences between two trees, file by file.
//!
//! Law: equal subtrees are skipped, and so are files that are not served. A comparison visits a limited number of entries,
//! because a small repository can contain more files than any machine could count.

use super::objects::entries;
use super::repository::{GitEntry, Handle};
use gix::ObjectId;
use gix::objs::tree::EntryMode;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path::join;
use mcp_resources_runtime::provider::RequestContext;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The most entries that a comparison visits.
const VISITS: usize = 1_000_000;
/// The deepest nesting of directories.
const DEPTH: usize = 512;

/// A file that differs.
pub(super) struct TreeChange<'c> {
    pub(super) path: &'c [u8],
    pub(super) old: Option<GitEntry>,
    pub(super) new: Option<GitEntry>,
}

/// A file that differs, as JSON.
#[derive(Serialize)]
pub(super) struct ChangedFile {
    path: String,
    change: &'static str,
    /// The URI of the file, unless it was deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<String>,
}

/// A comparison of two trees for a client.
pub(super) struct Comparison<'c> {
    pub(super) handle: &'c Handle<'c>,
    /// The revisions as in URIs: the guard is asked about these.
    pub(super) from: &'c str,
    pub(super) to: &'c str,
    pub(super) context: &'c RequestContext<'c>,
}

/// Called with each file that differs; `false` ends the comparison.
type Visit<'v> = dyn FnMut(&TreeChange<'_>) -> Result<bool, ReadError> + 'v;

/// The state of a comparison.
struct TreeWalk<'d> {
    of: &'d Comparison<'d>,
    visits: usize,
    visit: &'d mut Visit<'d>,
}

impl TreeChange<'_> {
    /// As JSON, with its URI at the revision `to`.
    pub(super) fn file(&self, handle: &Handle<'_>, to: &str) -> ChangedFile {
        let change = match (&self.old, &self.new) {
            (None, _) => "added",
            (_, None) => "deleted",
            (Some(old), Some(new)) if is_same_type(old.mode, new.mode) => "modified",
            _ => "type_changed",
        };
        let is_file = self.new.is_some_and(|new| new.mode.is_blob_or_symlink());
        let uri = is_file.then(|| handle.own.uri_at("blob", to, self.path));
        ChangedFile { path: String::from_utf8_lossy(self.path).into_owned(), change, uri }
    }
}

/// Whether both are files, both links, or both submodules.
pub(super) fn is_same_type(old: EntryMode, new: EntryMode) -> bool {
    (old.is_blob() && new.is_blob()) || old.kind() == new.kind()
}

impl Comparison<'_> {
    /// Compares two trees in the order of paths; `None` is an empty tree. Returns `false` if it ended early.
    pub(super) fn each(
        &self,
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        visit: &mut Visit<'_>,
    ) -> Result<bool, ReadError> {
        let mut walk = TreeWalk { of: self, visits: 0, visit };
        walk.enter(b"", old, new, 0)
    }

    /// Whether the client may see the file on both sides.
    fn permits(&self, change: &TreeChange<'_>) -> bool {
        let own = self.handle.own;
        let may = |revision: &str| self.context.permits(&own.uri_at("blob", revision, change.path));
        own.selection.admits_entry(change.path, false)
            && (change.old.is_none() || may(self.from))
            && (change.new.is_none() || may(self.to))
    }
}

/// The entries of a tree by their names.
type Children<'t> = BTreeMap<&'t [u8], GitEntry>;

impl TreeWalk<'_> {
    fn enter(
        &mut self,
        path: &[u8],
        old: Option<ObjectId>,
        new: Option<ObjectId>,
        depth: usize,
    ) -> Result<bool, ReadError> {
        if old == new {
            return Ok(true);
        }
        if depth > DEPTH || self.of.context.is_cancelled() {
            return Err(ReadError::Failed);
        }
        let tree = |id: Option<ObjectId>| id.map(|id| self.of.handle.tree(id)).transpose();
        let old = tree(old)?;
        let new = tree(new)?;
        let old = children(&old);
        let new = children(&new);
        self.visits += old.len() + new.len();
        if self.visits > VISITS {
            return Ok(false);
        }
        let mut before = old.iter().peekable();
        let mut after = new.iter().peekable();
        loop {
            let name = match (before.peek(), after.peek()) {
                (None, None) => return Ok(true),
                (Some((name, _)), None) | (None, Some((name, _))) => **name,
                (Some((one, _)), Some((other, _))) => *(*one).min(*other),
            };
            let old = before.next_if(|(found, _)| **found == name).map(|(_, entry)| *entry);
            let new = after.next_if(|(found, _)| **found == name).map(|(_, entry)| *entry);
            if old != new && !self.compare(&join(path, name), old, new, depth)? {
                return Ok(false);
            }
        }
    }

    fn compare(
        &mut self,
        path: &[u8],
        old: Option<GitEntry>,
        new: Option<GitEntry>,
        depth: usize,
    ) -> Result<bool, ReadError> {
        let file = |entry: Option<GitEntry>| entry.filter(|entry| !entry.mode.is_tree());
        let tree = |entry: Option<GitEntry>| entry.filter(|entry| entry.mode.is_tree()).map(|entry| entry.id);
        let change = TreeChange { path, old: file(old), new: file(new) };
        let is_file = change.old.is_some() || change.new.is_some();
        if is_file && self.of.permits(&change) && !(self.visit)(&change)? {
            return Ok(false);
        }
        let old = tree(old);
        let new = tree(new);
        if old == new || !self.of.handle.own.selection.admits_entry(path, true) {
            return Ok(true);
        }
        self.enter(path, old, new, depth + 1)
    }
}

fn children(tree: &Option<Arc<[u8]>>) -> Children<'_> {
    let data = tree.as_deref().unwrap_or_default();
    let of = |entry: gix::objs::tree::EntryRef<'_>| GitEntry { mode: entry.mode, id: entry.oid.to_owned() };
    entries(data).map(|entry| (&**entry.filename, of(entry))).collect()
}
