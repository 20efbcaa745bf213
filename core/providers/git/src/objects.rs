//! The objects of a repository: their headers and their bytes; commits, tags and trees are cached.
//!
//! Law: sizes are checked before anything is decompressed. Blobs are not cached, because they are large.

use super::message::CommitHeader;
use super::packs::{LARGEST_OBJECT, StoreError};
use super::parts::PartError;
use super::repository::{GitEntry, Handle};
use super::store::Wanted;
use gix::objs::Kind;
use gix::{ObjectId, hash};
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::uri_path;
use std::sync::Arc;

/// The largest commit, tag and tree that are read, in bytes.
const LARGEST_COMMIT: u64 = 4 << 20;
const LARGEST_TREE: u64 = 64 << 20;

impl Handle<'_> {
    /// The fetched parents of a commit: the last commit of a shallow clone has none.
    pub(super) fn parents(&self, id: ObjectId) -> Result<Vec<ObjectId>, ReadError> {
        let commit = self.commit(id)?;
        if self.shallow()?.contains(&id) {
            return Ok(Vec::new());
        }
        Ok(CommitHeader::parse(&commit).parents)
    }

    /// The kind of an object that a client names; not found if it is not there.
    pub(super) fn kind(&self, id: ObjectId) -> Result<Kind, ReadError> {
        if let Some((kind, _)) = self.cached(id) {
            return Ok(kind);
        }
        let found = self.open.store.header(&id, &|| self.context.is_cancelled());
        let found = found.map_err(|error| self.damaged(id, &error))?;
        found.map(|(kind, _)| kind).ok_or(ReadError::NotFound)
    }

    /// The kind and the size of an object that another one or a reference names.
    pub(super) fn header(&self, id: ObjectId) -> Result<(Kind, u64), ReadError> {
        let found = self.open.store.header(&id, &|| self.context.is_cancelled());
        found.map_err(|error| self.damaged(id, &error))?.ok_or_else(|| self.absent(id))
    }

    /// The bytes of a commit.
    pub(super) fn commit(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Commit, LARGEST_COMMIT)
    }

    /// The bytes of a commit; `None` if it is not there.
    pub(super) fn commit_if_there(&self, id: ObjectId) -> Result<Option<Arc<[u8]>>, ReadError> {
        self.kept_if_there(id, Kind::Commit, LARGEST_COMMIT)
    }

    /// The bytes of an annotated tag.
    pub(super) fn tag(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Tag, LARGEST_COMMIT)
    }

    /// The entries of a tree, in git's order. See [`entries`].
    pub(super) fn tree(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        self.kept(id, Kind::Tree, LARGEST_TREE)
    }

    /// The bytes of an object. Its size was judged before.
    pub(super) fn data(&self, id: ObjectId) -> Result<Arc<[u8]>, ReadError> {
        let found = self.open.store.read(&id, Wanted::ANY, &|| self.context.is_cancelled());
        let found = found.map_err(|error| self.damaged(id, &error))?;
        found.map(|(_, data)| data).ok_or_else(|| self.absent(id))
    }

    /// The bytes of a blob that a tree names, at most `limit`.
    pub(super) fn blob(&self, id: ObjectId, limit: u64) -> Result<Arc<[u8]>, ReadError> {
        self.read_if_there(id, Kind::Blob, limit.min(LARGEST_OBJECT))?.ok_or_else(|| self.absent(id))
    }

    /// The tree of a commit, or the tree that `id` is.
    pub(super) fn tree_of(&self, id: ObjectId) -> Result<ObjectId, ReadError> {
        let (kind, commit) = match self.cached(id) {
            Some(found) => found,
            None => match self.header(id)?.0 {
                Kind::Commit => (Kind::Commit, self.commit(id)?),
                kind => (kind, Arc::default()),
            },
        };
        match kind {
            Kind::Tree => Ok(id),
            Kind::Commit => CommitHeader::parse(&commit)
                .tree
                .ok_or_else(|| self.fault(&format!("the commit {id} names no tree; `git fsck` says more"))),
            _ => Err(ReadError::NotFound),
        }
    }

    /// The entry at a path under a tree; `None` if there is none. The empty path is the tree itself.
    pub(super) fn entry(&self, tree: ObjectId, path: &[u8]) -> Result<Option<GitEntry>, ReadError> {
        let mut entry = GitEntry { mode: gix::objs::tree::EntryKind::Tree.into(), id: tree };
        for name in uri_path::components(path) {
            if !entry.mode.is_tree() {
                return Ok(None);
            }
            let data = self.tree(entry.id)?;
            let Some(found) = child(&data, name) else { return Ok(None) };
            entry = found;
        }
        Ok(Some(entry))
    }

    /// The bytes of an object of this kind, at most `limit`.
    fn kept(&self, id: ObjectId, kind: Kind, limit: u64) -> Result<Arc<[u8]>, ReadError> {
        self.kept_if_there(id, kind, limit)?.ok_or_else(|| self.absent(id))
    }

    fn kept_if_there(&self, id: ObjectId, kind: Kind, limit: u64) -> Result<Option<Arc<[u8]>>, ReadError> {
        if let Some((found, data)) = self.cached(id) {
            return if found == kind { Ok(Some(data)) } else { Err(ReadError::NotFound) };
        }
        let data = self.read_if_there(id, kind, limit)?;
        if let Some(data) = &data {
            self.own.objects().put(id, kind, data);
        }
        Ok(data)
    }

    fn read_if_there(&self, id: ObjectId, kind: Kind, limit: u64) -> Result<Option<Arc<[u8]>>, ReadError> {
        let wanted = Wanted { kind: Some(kind), limit };
        match self.open.store.read(&id, wanted, &|| self.context.is_cancelled()) {
            Ok(found) => Ok(found.map(|(_, data)| data)),
            Err(StoreError::Other) => Err(ReadError::NotFound),
            Err(StoreError::TooLarge(size)) => Err(ReadError::SizeExceeded { limit, size: Some(size) }),
            Err(error) => Err(self.damaged(id, &error)),
        }
    }

    pub(super) fn cached(&self, id: ObjectId) -> Option<(Kind, Arc<[u8]>)> {
        self.own.objects().get(id)
    }

    /// An object that is not there, though another one or a reference names it.
    pub(super) fn absent(&self, id: ObjectId) -> ReadError {
        let dir = self.own.dir().display();
        self.fault(&match self.open.config.is_partial {
            true => {
                format!("the object {id} was not fetched; `git fetch --refetch` in {dir} fetches all objects")
            }
            false => format!("the object {id} is not there; `git fsck` in {dir} says more"),
        })
    }

    fn damaged(&self, id: ObjectId, error: &StoreError) -> ReadError {
        match error {
            StoreError::Part(PartError::Cancelled) => ReadError::Failed,
            StoreError::TooLarge(size) => {
                ReadError::SizeExceeded { limit: LARGEST_OBJECT, size: Some(*size) }
            }
            error => self.fault(&format!(
                "the object {id} cannot be read: {error}; `git fsck` in {} says more",
                self.own.dir().display()
            )),
        }
    }
}

/// The entries of a tree's bytes, as far as they can be read.
pub(super) fn entries(data: &[u8]) -> impl Iterator<Item = gix::objs::tree::EntryRef<'_>> {
    gix::objs::TreeRefIter::from_bytes(data, hash::Kind::Sha1).map_while(Result::ok)
}

/// The entry with this name of a tree's bytes.
pub(super) fn child(data: &[u8], name: &[u8]) -> Option<GitEntry> {
    raw_entries(data).find(|entry| entry.name == name)?.parsed()
}

/// An entry of a tree's bytes, whose mode is not parsed yet.
#[derive(Clone, Copy)]
pub(super) struct RawEntry<'d> {
    mode: &'d [u8],
    pub(super) name: &'d [u8],
    id: &'d [u8],
}

/// The entries of a tree's bytes, as far as they can be read: for looking at many names.
pub(super) fn raw_entries(data: &[u8]) -> impl Iterator<Item = RawEntry<'_>> {
    let mut rest = data;
    std::iter::from_fn(move || {
        let (entry, next) = RawEntry::split(rest)?;
        rest = next;
        Some(entry)
    })
}

impl<'d> RawEntry<'d> {
    fn split(data: &'d [u8]) -> Option<(Self, &'d [u8])> {
        // Modes have five or six digits.
        let space = match (data.get(5), data.get(6)) {
            (Some(b' '), _) => 5,
            (_, Some(b' ')) => 6,
            _ => data.iter().position(|byte| *byte == b' ')?,
        };
        let (mode, after) = data.split_at_checked(space)?;
        let after = after.get(1..)?;
        let end = after.iter().position(|byte| *byte == 0)?;
        let (name, after) = after.split_at_checked(end)?;
        let (id, next) = after.get(1..)?.split_at_checked(20)?;
        Some((Self { mode, name, id }, next))
    }

    /// `None` if its mode cannot be read.
    pub(super) fn parsed(self) -> Option<GitEntry> {
        // Old programs wrote other permissions, which git does not tell apart.
        let mode = gix::objs::tree::EntryMode::try_from(self.mode).ok()?.kind().into();
        Some(GitEntry { mode, id: ObjectId::try_from(self.id).ok()? })
    }
}
