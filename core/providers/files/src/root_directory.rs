//! Opens files and directories under a root, and nothing outside it, even if others change the tree meanwhile.
//!
//! ```text
//!   Root::at(dir) ──open(path)──▶ Opened { file, facts, real }
//!     openat2: the kernel resolves the whole path under the descriptor            Linux ≥ 5.6
//!     steps:   a descriptor for each component, links read and followed here        elsewhere; where a sandbox refuses openat2
//! ```
//!
//! Law: a path is resolved once, from a descriptor, and all checks apply to the opened file. A link whose target is
//! absolute, or leads above the root, is not followed. Only files and directories are opened: a FIFO, a socket or a
//! device is not found, so no open waits for its other end.

use super::options::Symlinks;
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use mcp_resources_provider_kit::uri_path::PATH;
pub(super) use mcp_resources_provider_kit::uri_path::components;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Maximum number of links on one path.
const LINKS: usize = 40;

const BASE: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Why nothing was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// It is not there, leads outside, or is neither a file nor a directory.
    NotFound,
    /// It exists, and the system does not permit reading it now.
    Failed(Errno),
}

/// The method for resolving a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// By the kernel, where it can.
    Kernel,
    /// A component at a time.
    Steps,
}

impl Resolution {
    /// The method of this system. A sandbox that refuses it is noticed at each opening.
    pub(super) fn best() -> Self {
        if cfg!(target_os = "linux") { Self::Kernel } else { Self::Steps }
    }
}

/// The kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum FileKind {
    File,
    Directory,
    Link,
    /// Anything else, which is never served.
    Other,
}

/// The metadata of an open file or of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct EntryFacts {
    pub(super) kind: FileKind,
    pub(super) id: FileId,
    /// When its contents were last changed.
    pub(super) modified: FileTime,
    /// In bytes.
    pub(super) size: u64,
}

/// A root that is open for one request.
#[derive(Debug)]
pub(super) struct RootDirectory {
    fd: OwnedFd,
    symlinks: Symlinks,
    way: Resolution,
}

/// A file or directory that is open.
#[derive(Debug)]
pub(super) struct OpenedFile {
    fd: OwnedFd,
    pub(super) facts: EntryFacts,
    /// The real path under the root, after links.
    pub(super) real: Vec<u8>,
}

/// A directory that is open.
#[derive(Debug)]
pub(super) struct Dir(OwnedFd);

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DirectoryEntry {
    pub(super) name: Vec<u8>,
    pub(super) kind: FileKind,
}

impl RootDirectory {
    /// The directory at `dir`, through whatever links lead to it: where a root is, is its owner's choice.
    pub(super) fn at(dir: &Path, symlinks: Symlinks, way: Resolution) -> Result<Self, Missing> {
        let flags = BASE.union(OFlags::DIRECTORY);
        let fd = again(|| fs::open(dir, flags, Mode::empty())).map_err(missing)?;
        Ok(Self { fd, symlinks, way })
    }

    /// Opens the entry at `path`: relative, without `.` and `..`; the empty path is the root itself.
    pub(super) fn open(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        if path.len() > PATH || path.contains(&0) || !is_relative(path) {
            return Err(Missing::NotFound);
        }
        let mut opened = self.resolve(path)?;
        if let Some(real) = self.real_spelling(&opened.real)? {
            opened.real = real;
        }
        Ok(opened)
    }

    fn resolve(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        // What is neither a file nor a directory is not opened, not even without waiting: that would wake its other end.
        if self.is_other(path) {
            return Err(Missing::NotFound);
        }
        #[cfg(target_os = "linux")]
        if self.way == Resolution::Kernel
            && let Some(opened) = self.by_kernel(path)
        {
            return opened;
        }
        self.by_steps(path)
    }

    /// Whether a path leads to something that is never served. It is looked at, not opened.
    fn is_other(&self, path: &[u8]) -> bool {
        let kind = |flags| {
            let stat = again(|| fs::statat(&self.fd, path, flags)).ok()?;
            Some(EntryFacts::from_stat(&stat).kind)
        };
        match kind(AtFlags::SYMLINK_NOFOLLOW) {
            Some(FileKind::Link) if self.follows() => kind(AtFlags::empty()) == Some(FileKind::Other),
            found => found == Some(FileKind::Other),
        }
    }

    /// The path in the spelling of its directories, if the file system found it under another name, as one that is not
    /// case-sensitive or that normalises does. Rules apply to the real names. `None` if the names are equal.
    fn real_spelling(&self, path: &[u8]) -> Result<Option<Vec<u8>>, Missing> {
        let mut real: Vec<u8> = Vec::with_capacity(path.len());
        let mut is_other = false;
        for name in components(path) {
            let own = if self.folds(&real, name) { Some(self.own_name(&real, name)?) } else { None };
            is_other |= own.as_deref().is_some_and(|own| own != name);
            if !real.is_empty() {
                real.push(b'/');
            }
            real.extend_from_slice(own.as_deref().unwrap_or(name));
        }
        Ok(is_other.then_some(real))
    }

    /// Whether a directory may find an entry under a name other than its own.
    fn folds(&self, directory: &[u8], name: &[u8]) -> bool {
        let swapped: Vec<u8> =
            name.iter().map(|byte| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte }).collect();
        if cfg!(target_vendor = "apple") && !name.is_ascii() {
            return true;
        }
        swapped != name
            && self
                .stat(directory, &swapped)
                .is_some_and(|other| self.stat(directory, name).is_some_and(|own| own.id == other.id))
    }

    /// The real name of the entry that a directory finds under `name`.
    fn own_name(&self, directory: &[u8], name: &[u8]) -> Result<Vec<u8>, Missing> {
        let id = self.stat(directory, name).ok_or(Missing::NotFound)?.id;
        let dir = self.resolve(directory)?.into_dir().ok_or(Missing::NotFound)?;
        let mut found = None;
        for entry in dir.entries()? {
            if entry.name == name {
                return Ok(entry.name);
            }
            if dir.stat(&entry.name).is_some_and(|facts| facts.id == id) {
                found = Some(entry.name);
            }
        }
        found.ok_or(Missing::NotFound)
    }

    /// The metadata of an entry, resolved through links by the system: only for comparing, because the entry may be
    /// outside the root.
    pub(super) fn stat(&self, directory: &[u8], name: &[u8]) -> Option<EntryFacts> {
        self.look(directory, name).ok().map(|(facts, _)| facts)
    }

    /// Like [`stat`](Self::stat), with the time of the last change, or the reason for failing.
    pub(super) fn look(&self, directory: &[u8], name: &[u8]) -> Result<(EntryFacts, FileTime), Errno> {
        let path = if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() };
        let stat = again(|| fs::statat(&self.fd, &*path, AtFlags::SYMLINK_NOFOLLOW))?;
        Ok(EntryFacts::with_change(&stat))
    }

    /// Whether links are followed.
    pub(super) fn follows(&self) -> bool {
        self.symlinks == Symlinks::Inside
    }

    /// `None` if the kernel cannot, or a sandbox does not let it.
    #[cfg(target_os = "linux")]
    fn by_kernel(&self, path: &[u8]) -> Option<Result<OpenedFile, Missing>> {
        use rustix::fs::ResolveFlags;
        /// Maximum number of times that the kernel is asked again after it found the tree changing during the lookup.
        const TRIES: usize = 8;
        let mut resolve = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        if self.symlinks == Symlinks::Never {
            resolve |= ResolveFlags::NO_SYMLINKS;
        }
        let name = if path.is_empty() { b"." } else { path };
        for _ in 0..TRIES {
            let fd = match again(|| fs::openat2(&self.fd, name, BASE, Mode::empty(), resolve)) {
                Ok(fd) => fd,
                Err(Errno::AGAIN) => continue,
                // Whether the file or the call is refused is not said: the other way finds out.
                Err(Errno::NOSYS | Errno::PERM) => return None,
                Err(error) => return Some(Err(missing(error))),
            };
            let facts = match admit(&fd) {
                Ok(facts) => facts,
                Err(missing) => return Some(Err(missing)),
            };
            let real = match self.symlinks {
                Symlinks::Never => path.to_vec(),
                // The kernel does not say where it is: the other way finds out step by step.
                Symlinks::Inside => self.real(&fd)?,
            };
            return Some(Ok(OpenedFile { fd, facts, real }));
        }
        None
    }

    /// The path of an open file under the root, as the kernel reports it. `None` if the file is no longer there.
    #[cfg(target_os = "linux")]
    fn real(&self, fd: &OwnedFd) -> Option<Vec<u8>> {
        use std::os::fd::AsRawFd;
        let named = |fd: &OwnedFd| {
            let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
            fs::readlink(link, Vec::new()).ok().map(std::ffi::CString::into_bytes)
        };
        if fs::fstat(fd).ok()?.st_nlink == 0 {
            return None;
        }
        let root = named(&self.fd)?;
        let path = named(fd)?;
        if root == path {
            return Some(Vec::new());
        }
        let rest = path.strip_prefix(&*root)?;
        let rest = if root.ends_with(b"/") { rest } else { rest.strip_prefix(b"/")? };
        // It was renamed or removed since, or has a name that ends like that of one that was.
        let at = again(|| fs::statat(&self.fd, rest, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
        let own = fs::fstat(fd).ok()?;
        ((at.st_dev, at.st_ino) == (own.st_dev, own.st_ino)).then(|| rest.to_vec())
    }

    /// A component at a time. Climbing is going back to the descriptor that one came from, never asking for `..`.
    fn by_steps(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        let mut todo: VecDeque<Vec<u8>> = components(path).map(<[u8]>::to_vec).collect();
        let mut above: Vec<(OwnedFd, Vec<u8>)> = Vec::new();
        let mut links = 0;
        while let Some(name) = todo.pop_front() {
            if name == b".." {
                above.pop().ok_or(Missing::NotFound)?;
                continue;
            }
            let here = above.last().map_or(self.fd.as_fd(), |(fd, _)| fd.as_fd());
            let is_last = todo.is_empty();
            let flags = BASE.union(OFlags::NOFOLLOW);
            let flags = if is_last { flags } else { flags.union(OFlags::DIRECTORY) };
            match again(|| fs::openat(here, &*name, flags, Mode::empty())) {
                Ok(fd) => above.push((fd, name)),
                // Systems differ in what they say of a link that is not followed.
                Err(error @ (Errno::LOOP | Errno::MLINK | Errno::NOTDIR)) => {
                    links += 1;
                    if self.symlinks == Symlinks::Never || links > LINKS {
                        return Err(Missing::NotFound);
                    }
                    let target = follow(here, &name).ok_or(missing(error))?;
                    for step in target.into_iter().rev() {
                        todo.push_front(step);
                    }
                }
                Err(error) => return Err(missing(error)),
            }
        }
        let real: Vec<&[u8]> = above.iter().map(|(_, name)| &**name).collect();
        let real = real.join(&b'/');
        let fd = match above.pop() {
            Some((fd, _)) => fd,
            None => again(|| fs::openat(&self.fd, ".", BASE, Mode::empty())).map_err(missing)?,
        };
        Ok(OpenedFile { facts: admit(&fd)?, fd, real })
    }
}

/// The steps of a relative link; `None` if it is absolute, or no link.
fn follow(here: BorrowedFd<'_>, name: &[u8]) -> Option<Vec<Vec<u8>>> {
    let target = fs::readlinkat(here, name, Vec::new()).ok()?.into_bytes();
    if target.starts_with(b"/") || target.is_empty() || target.len() > PATH {
        return None;
    }
    let steps = target.split(|byte| *byte == b'/').filter(|step| !step.is_empty() && *step != b".");
    Some(steps.map(<[u8]>::to_vec).collect())
}

/// Whether a path is one that a URI may name: no component is empty, `.` or `..`.
fn is_relative(path: &[u8]) -> bool {
    path.is_empty() || components(path).all(|name| !matches!(name, b"" | b"." | b".."))
}

/// The metadata of a descriptor, if its kind may be served.
fn admit(fd: &OwnedFd) -> Result<EntryFacts, Missing> {
    let facts = EntryFacts::from_stat(&again(|| fs::fstat(fd)).map_err(missing)?);
    matches!(facts.kind, FileKind::File | FileKind::Directory).then_some(facts).ok_or(Missing::NotFound)
}

/// Converts an error of the system.
fn missing(error: Errno) -> Missing {
    match error {
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::LOOP
        | Errno::MLINK
        | Errno::XDEV
        | Errno::NAMETOOLONG
        | Errno::NXIO
        | Errno::NODEV
        | Errno::OPNOTSUPP
        | Errno::ISDIR
        | Errno::INVAL
        | Errno::ILSEQ => Missing::NotFound,
        other => Missing::Failed(other),
    }
}

/// A call that a signal interrupted is made again.
fn again<T>(call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    rustix::io::retry_on_intr(call)
}

impl EntryFacts {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        Self {
            kind: FileKind::from_file_type(FileType::from_raw_mode(stat.st_mode)),
            id: FileId { device: stat.st_dev as u64, inode: stat.st_ino as u64 },
            modified: FileTime { seconds: stat.st_mtime as i64, nanoseconds: stat.st_mtime_nsec as i64 },
            size: u64::try_from(stat.st_size).unwrap_or_default(),
        }
    }
}

impl EntryFacts {
    /// With the time of the last change of the contents or metadata. Programs cannot set it.
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn with_change(stat: &Stat) -> (Self, FileTime) {
        let changed = FileTime { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as i64 };
        (Self::from_stat(stat), changed)
    }
}

impl FileKind {
    fn from_file_type(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl OpenedFile {
    pub(super) fn is_dir(&self) -> bool {
        self.facts.kind == FileKind::Directory
    }

    /// When it last changed.
    pub(super) fn changed(&self) -> Option<FileTime> {
        again(|| fs::fstat(&self.fd)).ok().map(|stat| EntryFacts::with_change(&stat).1)
    }

    /// For reading from its beginning.
    pub(super) fn into_file(self) -> impl Read {
        File::from(self.fd)
    }

    /// As a directory; `None` if it is a file.
    pub(super) fn into_dir(self) -> Option<Dir> {
        self.is_dir().then_some(Dir(self.fd))
    }
}

impl Dir {
    /// Its entries, in any order and without `.` and `..`, read lazily. An entry that cannot be read ends the
    /// iteration.
    pub(super) fn entries(&self) -> Result<impl Iterator<Item = DirectoryEntry> + '_, Missing> {
        let entries = again(|| fs::Dir::read_from(&self.0)).map_err(missing)?;
        let entries = entries.map_while(Result::ok).filter_map(|entry| {
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                return None;
            }
            let kind = match entry.file_type() {
                // Some file systems do not say it here.
                FileType::Unknown => self.stat(name)?.kind,
                known => FileKind::from_file_type(known),
            };
            Some(DirectoryEntry { name: name.to_vec(), kind })
        });
        Ok(entries)
    }

    /// The metadata of an entry, of a link itself; `None` if the entry is no longer there.
    pub(super) fn stat(&self, name: &[u8]) -> Option<EntryFacts> {
        let stat = again(|| fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
        Some(EntryFacts::from_stat(&stat))
    }
}

impl Dir {
    /// The same as [`Dir::stat`], with when it last changed.
    pub(super) fn stat_with_change(&self, name: &[u8]) -> Option<(EntryFacts, FileTime)> {
        let stat = again(|| fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)).ok()?;
        Some(EntryFacts::with_change(&stat))
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
