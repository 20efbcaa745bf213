//! Reads the index of a repository.
//!
//! ```text
//!   index ──▶ entries ◀── sharedindex.ID, of a split one          a sparse directory ──▶ an entry for each file in it
//! ```
//!
//! Law: the file is read as a whole and checked by its hash, so one that is being changed in place is an error.

use super::index::{GitIndex, IndexEntry};
use super::objects::entries;
use super::parts::{PartError, PartStamp, stamp};
use super::repository::Handle;
use gix::index::State;
use gix::index::entry::{Mode, Stat};
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path::join;
use std::path::Path;
use std::sync::Arc;

/// The largest index, in bytes, and the most files that it may have.
const LARGEST: u64 = 256 << 20;
const ENTRIES: usize = 5_000_000;
const CHECKSUM: usize = 20;
/// The deepest nesting of directories.
const DEPTH: usize = 512;

impl Handle<'_> {
    /// The current index; an empty one if there is none. Kept as long as the file is the same.
    pub(super) fn index(&self) -> Result<Arc<GitIndex>, ReadError> {
        let path = self.open.layout.git_dir.join("index");
        let now = std::fs::metadata(&path).ok().as_ref().map(stamp);
        let mut kept = self.open.index.lock();
        if let Some((then, index)) = kept.as_ref()
            && Some(*then) == now
        {
            return Ok(index.clone());
        }
        let Some((state, stamp)) = self.index_file(&path)? else { return Ok(Arc::default()) };
        let index = Arc::new(self.whole(state, stamp)?);
        *kept = Some((stamp, index.clone()));
        Ok(index)
    }

    fn index_file(&self, path: &Path) -> Result<Option<(State, PartStamp)>, ReadError> {
        let wrong = |reason: &dyn std::fmt::Display| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            self.fault(&format!("its {name} cannot be read: {reason}; `git status` makes it anew"))
        };
        let (bytes, facts) = match self.open.areas.read(path, LARGEST) {
            Err(PartError::NotFound) => return Ok(None),
            read => read.map_err(|error| wrong(&error))?,
        };
        let damaged = || wrong(&"it is damaged or cut");
        let at = bytes.len().checked_sub(CHECKSUM).ok_or_else(damaged)?;
        let (body, checksum) = bytes.split_at_checked(at).ok_or_else(damaged)?;
        // With `index.skipHash`, git writes zeros.
        if checksum.iter().any(|byte| *byte != 0) {
            let mut hasher = hash::hasher(hash::Kind::Sha1);
            for chunk in body.chunks(1 << 20) {
                self.check()?;
                hasher.update(chunk);
            }
            if hasher.try_finalize().map_err(|_| damaged())?.as_bytes() != checksum {
                return Err(damaged());
            }
        }
        let options = gix::index::decode::Options {
            thread_limit: Some(1),
            alloc_limit_bytes: usize::try_from(LARGEST).ok(),
            ..Default::default()
        };
        let no_time = State::new(hash::Kind::Sha1).timestamp();
        let state = State::from_bytes(&bytes, no_time, hash::Kind::Sha1, options).map_err(|_| damaged())?.0;
        Ok(Some((state, stamp(&facts))))
    }

    fn whole(&self, state: State, stamp: PartStamp) -> Result<GitIndex, ReadError> {
        let all = u32::try_from(state.entries().len()).ok();
        let tree = state
            .tree()
            .filter(|root| root.num_entries.is_some() && root.num_entries == all)
            .map(|root| root.id);
        let mut index = GitIndex { entries: Vec::new(), tree, written: stamp.modified.seconds };
        let own = match state.link() {
            Some(link) => {
                let path =
                    self.open.layout.git_dir.join(format!("sharedindex.{}", link.shared_index_checksum));
                let shared = self.index_file(&path)?.map(|(shared, _)| shared);
                let missing = || {
                    self.fault("its index is split, and the shared part is not there; `git status` says more")
                };
                merged(&state, &shared.ok_or_else(missing)?)
            }
            None => entries_of(&state).collect(),
        };
        for entry in own {
            if entry.mode.is_sparse() {
                let directory = entry.path.strip_suffix(b"/").unwrap_or(&entry.path).to_vec();
                self.expand(&entry, entry.id, &directory, &mut index.entries, 0)?;
            } else {
                index.entries.push(entry);
            }
            if index.entries.len() > ENTRIES {
                return Err(
                    self.fault(&format!("its index has more than {ENTRIES} files, which is the limit"))
                );
            }
        }
        index.entries.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(index)
    }

    /// Appends an entry for each file of a directory that is not checked out.
    fn expand(
        &self,
        sparse: &IndexEntry,
        tree: ObjectId,
        directory: &[u8],
        into: &mut Vec<IndexEntry>,
        depth: usize,
    ) -> Result<(), ReadError> {
        if depth > DEPTH || into.len() > ENTRIES || self.context.is_cancelled() {
            return Err(ReadError::Failed);
        }
        let data = self.tree(tree)?;
        for entry in entries(&data) {
            let path = join(directory, entry.filename);
            let id = entry.oid.to_owned();
            if entry.mode.is_tree() {
                self.expand(sparse, id, &path, into, depth + 1)?;
            } else {
                let mode = Mode::from(entry.mode);
                into.push(IndexEntry { path, id, mode, stat: Stat::default(), flags: sparse.flags });
            }
        }
        Ok(())
    }
}

fn entries_of(state: &State) -> impl Iterator<Item = IndexEntry> + '_ {
    state.entries().iter().map(|entry| IndexEntry {
        path: entry.path(state).to_vec(),
        id: entry.id,
        mode: entry.mode,
        stat: entry.stat,
        flags: entry.flags,
    })
}

/// Merges the entries of a split index: those of the shared part, some of them replaced or deleted, and its own.
fn merged(own: &State, shared: &State) -> Vec<IndexEntry> {
    let mut all: Vec<Option<IndexEntry>> = entries_of(shared).map(Some).collect();
    let mut changes = entries_of(own).peekable();
    if let Some(bitmaps) = own.link().and_then(|link| link.bitmaps.as_ref()) {
        let _ = bitmaps.replace.for_each_set_bit(|at| {
            let change = changes.next_if(|change| change.path.is_empty())?;
            let place = all.get_mut(at)?.as_mut()?;
            *place = IndexEntry { path: std::mem::take(&mut place.path), ..change };
            Some(())
        });
        let _ = bitmaps.delete.for_each_set_bit(|at| {
            *all.get_mut(at)? = None;
            Some(())
        });
    }
    let mut entries: Vec<IndexEntry> = all.into_iter().flatten().collect();
    entries.extend(changes.filter(|change| !change.path.is_empty()));
    entries
}
