//! A [`Folder`] that is open for one request: its directories with the stamps of their files, and the files.
//!
//! ```text
//!   Folder::open ──▶ OpenFolder ──level, entries──▶ Entry { name, is_dir, stamp }
//!                       └─ read(path) ──▶ bytes, Stamp
//! ```
//!
//! Law: no symbolic link is followed. A stamp is compared with the later metadata of the same file.

use super::folder::Folder;
use super::root_directory::{EntryFacts, EntryStamp, FileKind, Missing, OpenedFile, RootDirectory};
use super::rules::Chain;
use super::tree::Tree;
use mcp_resources_provider_kit::file_id::FileTime;
use mcp_resources_provider_kit::uri_path::join;
use std::io::Read;
use std::time::SystemTime;

const CHUNK: usize = 64 * 1024;

/// An open folder.
#[derive(Debug)]
pub struct OpenFolder<'f> {
    tree: &'f Tree,
    root: RootDirectory,
}

/// The rules that apply in one directory.
#[derive(Clone, Debug)]
pub struct FolderLevel(Chain);

/// The state of a file: two equal stamps mean the same contents, if the first was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    facts: EntryFacts,
    /// The time of the last change of its contents or metadata.
    changed: FileTime,
}

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct FolderEntry {
    pub name: Vec<u8>,
    pub is_dir: bool,
    pub stamp: Stamp,
}

/// Why there is nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbsentFolder {
    /// Not there, not served, or neither a file nor a directory.
    NotFound,
    /// The system does not let it be read now.
    Failed,
    /// It has more bytes than are allowed.
    TooLarge,
}

impl Folder {
    /// Opens it for one request.
    pub fn open(&self) -> Result<OpenFolder<'_>, AbsentFolder> {
        let tree = self.tree();
        Ok(OpenFolder { tree, root: tree.open()? })
    }
}

impl OpenFolder<'_> {
    /// The rules in the directory at `path`; `None` if it is not served.
    pub fn level(&self, path: &[u8]) -> Option<FolderLevel> {
        self.tree.chain(&self.root, path).map(FolderLevel)
    }

    /// The rules in a subdirectory of the directory that `level` is of; `None` if it is not served.
    pub fn below(&self, level: &FolderLevel, path: &[u8]) -> Option<FolderLevel> {
        self.tree.below(&self.root, level.0.clone(), path).map(FolderLevel)
    }

    /// The files and directories in the directory at `path` that are served, `max` at most, in no order; and whether there
    /// are more.
    pub fn entries(
        &self,
        level: &FolderLevel,
        path: &[u8],
        max: usize,
    ) -> Result<(Vec<FolderEntry>, bool), AbsentFolder> {
        let dir = self.root.open(path)?.into_dir().ok_or(AbsentFolder::NotFound)?;
        let mut entries = Vec::new();
        for entry in dir.entries()? {
            let is_dir = entry.kind == FileKind::Directory;
            if !is_dir && entry.kind != FileKind::File {
                continue;
            }
            if !self.tree.admits_entry(&level.0, &join(path, &entry.name), is_dir) {
                continue;
            }
            let Ok(EntryStamp { facts, changed }) = dir.look(&entry.name) else { continue };
            if facts.kind != entry.kind {
                continue;
            }
            if entries.len() >= max {
                return Ok((entries, true));
            }
            entries.push(FolderEntry { name: entry.name, is_dir, stamp: Stamp { facts, changed } });
        }
        Ok((entries, false))
    }

    /// The stamp of the file at `path`, if it is served.
    pub fn stamp(&self, path: &[u8]) -> Result<Stamp, AbsentFolder> {
        self.find(path).map(|(_, stamp)| stamp)
    }

    /// All bytes of the file at `path`, if it is served. `allow` is asked about the size before they are read, and again while a
    /// growing file is read.
    pub fn read(&self, path: &[u8], allow: &dyn Fn(u64) -> bool) -> Result<(Vec<u8>, Stamp), AbsentFolder> {
        let (opened, stamp) = self.find(path)?;
        let size = stamp.size();
        if !allow(size) {
            return Err(AbsentFolder::TooLarge);
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
        let mut piece = vec![0; CHUNK];
        let mut file = opened.into_file();
        loop {
            match file.read(&mut piece) {
                Ok(0) => return Ok((bytes, stamp)),
                Ok(read) => bytes.extend_from_slice(piece.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Err(AbsentFolder::Failed),
            }
            if bytes.len() as u64 > size && !allow(bytes.len() as u64) {
                return Err(AbsentFolder::TooLarge);
            }
        }
    }

    fn find(&self, path: &[u8]) -> Result<(OpenedFile, Stamp), AbsentFolder> {
        let opened = self.root.open(path)?;
        let is_other = opened.is_dir() || opened.real != path;
        if is_other || !self.tree.admits(&self.root, path, false) {
            return Err(AbsentFolder::NotFound);
        }
        let stamp = Stamp { facts: opened.facts, changed: opened.changed().ok_or(AbsentFolder::Failed)? };
        Ok((opened, stamp))
    }
}

impl Stamp {
    /// In bytes.
    pub fn size(&self) -> u64 {
        self.facts.size
    }

    /// When its contents last changed, as annotations have it.
    pub fn modified(&self) -> Option<String> {
        super::contents::modified(&self.facts)
    }

    /// Whether a change after this moment gives another stamp.
    pub fn is_settled(&self) -> bool {
        self.changed.is_settled()
    }

    /// When its contents, or what is said of it, last changed. `None` before 1970.
    pub fn changed_at(&self) -> Option<SystemTime> {
        self.changed.at()
    }
}

impl From<Missing> for AbsentFolder {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotFound => Self::NotFound,
            Missing::Failed(_) => Self::Failed,
        }
    }
}
