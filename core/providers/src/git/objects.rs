//! The objects of a repository: their headers and their bytes, with a cache of commits, tags and trees.
//!
//! ```text
//!   put ──▶ young ──full──▶ old ──full again──▶ gone        an object that is used moves to the young ones again
//! ```
//!
//! Law: an object never changes, so what is cached is right as long as the repository is the same one. Sizes are checked before
//! anything is decompressed. Blobs are not cached: they are large, and are read from a pack that is mapped already.

use super::repository::{Entry, Handle};
use crate::spell;
use gix::objs::Kind;
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use std::collections::HashMap;
use std::sync::Arc;

/// The largest commit, tag and tree that are read, in bytes.
const LARGEST_COMMIT: u64 = 4 << 20;
const LARGEST_TREE: u64 = 64 << 20;
/// The size of each half of the cache, in bytes.
const HALF: usize = 8 << 20;
/// What an entry of the cache costs besides its bytes, about.
const COST: usize = 96;

/// Commits, tags and trees by their ids, decompressed.
#[derive(Default)]
pub(super) struct ObjectCache {
    young: HashMap<ObjectId, (Kind, Arc<[u8]>)>,
    old: HashMap<ObjectId, (Kind, Arc<[u8]>)>,
    /// Of the young ones.
    bytes: usize,
}

impl ObjectCache {
    fn get(&mut self, id: ObjectId) -> Option<(Kind, Arc<[u8]>)> {
        if let Some((kind, data)) = self.young.get(&id) {
            return Some((*kind, data.clone()));
        }
        let (kind, data) = self.old.remove(&id)?;
        self.put(id, kind, &data);
        Some((kind, data))
    }

    fn put(&mut self, id: ObjectId, kind: Kind, data: &Arc<[u8]>) {
        let cost = data.len() + COST;
        if cost > HALF {
            return;
        }
        if self.bytes + cost > HALF {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        if self.young.insert(id, (kind, data.clone())).is_none() {
            self.bytes += cost;
        }
    }
}

impl Handle<'_> {
    /// The parents of a commit, as far as they were fetched: the last commit of a shallow clone has none.
    pub(super) fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>, ReadError> {
        let commit = self.commit(id)?;
        let shallow = self.shallow_commits().map_err(|_| ReadError::Failed)?;
        if shallow.is_some_and(|last| last.contains(&id)) {
            return Ok(Vec::new());
        }
        Ok(gix::objs::CommitRefIter::from_bytes(&commit, hash::Kind::Sha1).parent_ids().collect())
    }

    /// The kind of an object; not found if it is not there.
    pub(super) fn kind(&self, id: ObjectId) -> Result<Kind, ReadError> {
        match self.cached(id) {
            Some((kind, _)) => Ok(kind),
            None => Ok(self.header(id)?.0),
        }
    }

    /// The kind and the size of an object.
    pub(super) fn header(&self, id: ObjectId) -> Result<(Kind, u64), ReadError> {
        if id.is_null() {
            return Err(ReadError::NotFound);
        }
        let header = self.try_find_header(id).map_err(|_| ReadError::Failed)?.ok_or(ReadError::NotFound)?;
        Ok((header.kind(), header.size()))
    }

    /// The bytes of a commit.
    pub(super) fn commit(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Commit, LARGEST_COMMIT)
    }

    /// The bytes of an annotated tag.
    pub(super) fn tag(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Tag, LARGEST_COMMIT)
    }

    /// The entries of a tree, in git's order. See [`entries`].
    pub(super) fn tree(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Tree, LARGEST_TREE)
    }

    /// The bytes of a blob. Its size was judged before.
    pub(super) fn data(&self, id: ObjectId) -> Result<Vec<u8>, ReadError> {
        let object = self.try_find_object(id).map_err(|_| ReadError::Failed)?;
        Ok(object.ok_or(ReadError::NotFound)?.detach().data)
    }

    /// The tree of a commit, or the tree that `id` is.
    pub(super) fn tree_of(&self, id: ObjectId) -> Result<ObjectId, ReadError> {
        match self.kind(id)? {
            Kind::Tree => Ok(id),
            Kind::Commit => {
                let commit = self.commit(id)?;
                let tree = gix::objs::CommitRefIter::from_bytes(&commit, hash::Kind::Sha1).tree_id();
                tree.map_err(|_| ReadError::Failed)
            }
            _ => Err(ReadError::NotFound),
        }
    }

    /// What is at a path beneath a tree; `None` if nothing is. The empty path is the tree itself.
    pub(super) fn entry(&self, tree: ObjectId, path: &[u8]) -> Result<Option<Entry>, ReadError> {
        let mut entry = Entry { mode: gix::objs::tree::EntryKind::Tree.into(), id: tree };
        for name in spell::components(path) {
            if !entry.mode.is_tree() {
                return Ok(None);
            }
            let data = self.tree(entry.id)?;
            let Some(found) = entries(&data).find(|found| found.filename == name) else { return Ok(None) };
            entry = Entry { mode: found.mode, id: found.oid.to_owned() };
        }
        Ok(Some(entry))
    }

    /// The bytes of an object of this kind with at most so many bytes.
    fn kept(&self, id: ObjectId, kind: Kind, limit: u64) -> Result<Arc<[u8]>, ReadError> {
        if let Some((found, data)) = self.cached(id) {
            return if found == kind { Ok(data) } else { Err(ReadError::NotFound) };
        }
        let (found, size) = self.header(id)?;
        if found != kind {
            return Err(ReadError::NotFound);
        }
        if size > limit {
            return Err(ReadError::SizeExceeded { limit, size: Some(size) });
        }
        let data: Arc<[u8]> = self.data(id)?.into();
        self.own.objects().put(id, kind, &data);
        Ok(data)
    }

    fn cached(&self, id: ObjectId) -> Option<(Kind, Arc<[u8]>)> {
        self.own.objects().get(id)
    }
}

/// The entries of a tree's bytes, as far as they can be read.
pub(super) fn entries(data: &[u8]) -> impl Iterator<Item = gix::objs::tree::EntryRef<'_>> {
    gix::objs::TreeRefIter::from_bytes(data, hash::Kind::Sha1).map_while(Result::ok)
}

impl std::fmt::Debug for ObjectCache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCache").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u32) -> ObjectId {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        ObjectId::from_bytes_or_panic(&bytes)
    }

    /// S-02: the cache holds what is used, within its size; what is larger than a half is not held.
    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let mut cache = ObjectCache::default();
        let data: Arc<[u8]> = vec![7; 1 << 20].into();
        for number in 0..100 {
            cache.put(id(number), Kind::Tree, &data);
            assert!(cache.get(id(0)).is_some(), "{number}");
            assert!((cache.young.len() + cache.old.len()) * data.len() <= 2 * HALF);
        }
        assert!(cache.get(id(50)).is_none());
        assert!(cache.get(id(99)).is_some_and(|(kind, found)| kind == Kind::Tree && found == data));
        cache.put(id(100), Kind::Tree, &vec![0; HALF].into());
        assert!(cache.get(id(100)).is_none());
    }
}
