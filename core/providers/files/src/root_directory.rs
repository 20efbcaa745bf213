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

use super::directory_names::PathNames;
use super::options::Symlinks;
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use mcp_resources_provider_kit::uri_path::PATH;
pub(super) use mcp_resources_provider_kit::uri_path::components;
use rustix::buffer::spare_capacity;
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

/// An entry that was changed less than this before it was looked at may change again without a trace.
pub(super) const SETTLED: Duration = Duration::from_secs(3);
/// Maximum number of links on one path.
const LINKS: usize = 40;

/// A root is only a place to look from: like the directories in it, it must permit that, and need not permit reading its list of
/// names. Where the system has such a descriptor, it costs less.
#[cfg(target_os = "linux")]
const ROOT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC).union(OFlags::DIRECTORY);
#[cfg(not(target_os = "linux"))]
const ROOT: OFlags = BASE.union(OFlags::DIRECTORY);

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

/// The state of an entry. Two equal stamps mean the same contents, of a directory the same names, if the first was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryStamp {
    pub(super) facts: EntryFacts,
    /// When the contents or the metadata were last changed. Programs cannot set it.
    pub(super) changed: FileTime,
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
        let fd = again(|| fs::open(dir, ROOT, Mode::empty())).map_err(missing)?;
        Ok(Self { fd, symlinks, way })
    }

    /// Whether the system permits looking for names in it.
    pub(super) fn is_searchable(&self) -> bool {
        again(|| fs::statat(&self.fd, ".", AtFlags::empty())).is_ok()
    }

    /// Opens the entry at `path`: relative, without `.` and `..`; the empty path is the root itself.
    pub(super) fn open(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        self.spelled(self.resolve(path)?, &PathNames::default())
    }

    /// The same, with the real path as it was asked for: a file system that is not case-sensitive may have another.
    pub(super) fn resolve(&self, path: &[u8]) -> Result<OpenedFile, Missing> {
        if path.len() > PATH || path.contains(&0) || !is_relative(path) {
            return Err(Missing::NotFound);
        }
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

    /// The opened file with its real path in the spelling of its directories, if the file system found it under another
    /// name, as one that is not case-sensitive or that normalises does. Rules apply to the real names. `names` are those of
    /// the directories on that path.
    pub(super) fn spelled(&self, opened: OpenedFile, names: &PathNames) -> Result<OpenedFile, Missing> {
        match self.real_spelling(&opened.real, names)? {
            Some(real) => Ok(OpenedFile { real, ..opened }),
            None => Ok(opened),
        }
    }

    /// `None` if the names are equal.
    fn real_spelling(&self, path: &[u8], names: &PathNames) -> Result<Option<Vec<u8>>, Missing> {
        if names.tell_case() {
            return Ok(None);
        }
        let mut real: Vec<u8> = Vec::with_capacity(path.len());
        let mut is_other = false;
        for (depth, name) in components(path).enumerate() {
            let folds = !names.at(depth).tell_case && self.folds(&real, name);
            let own = if folds { Some(self.own_name(&real, name)?) } else { None };
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
        if cfg!(target_vendor = "apple") && !name.is_ascii() {
            return true;
        }
        swapped_case(name)
            .and_then(|swapped| self.stat(directory, &swapped))
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
        self.look(directory, name).ok().map(|stamp| stamp.facts)
    }

    /// Like [`stat`](Self::stat), with the time of the last change, or the reason for failing.
    pub(super) fn look(&self, directory: &[u8], name: &[u8]) -> Result<EntryStamp, Errno> {
        let path = if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() };
        self.look_at(&path)
    }

    /// The stamp of the entry at `path`; the empty path is the root itself.
    pub(super) fn look_at(&self, path: &[u8]) -> Result<EntryStamp, Errno> {
        let stat = match path {
            b"" => again(|| fs::fstat(&self.fd)),
            path => again(|| fs::statat(&self.fd, path, AtFlags::SYMLINK_NOFOLLOW)),
        }?;
        Ok(EntryStamp::from_stat(&stat))
    }

    /// The stamp of the entry at `path`, through whatever links lead to it.
    pub(super) fn look_through(&self, path: &[u8]) -> Result<EntryStamp, Errno> {
        let stat = again(|| fs::statat(&self.fd, path, AtFlags::empty()))?;
        Ok(EntryStamp::from_stat(&stat))
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

/// The name with its ASCII letters in the other case; `None` if it has none.
pub(super) fn swapped_case(name: &[u8]) -> Option<Vec<u8>> {
    let swap = |byte: &u8| if byte.is_ascii_alphabetic() { byte ^ 0x20 } else { *byte };
    name.iter().any(u8::is_ascii_alphabetic).then(|| name.iter().map(swap).collect())
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

impl EntryStamp {
    #[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
    pub(super) fn from_stat(stat: &Stat) -> Self {
        let changed = FileTime { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as i64 };
        Self { facts: EntryFacts::from_stat(stat), changed }
    }

    /// Whether a change after this moment gives another stamp.
    pub(super) fn is_settled(&self) -> bool {
        self.changed.is_older_than(SETTLED)
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
        again(|| fs::fstat(&self.fd)).ok().map(|stat| EntryStamp::from_stat(&stat).changed)
    }

    /// Appends the next bytes of the file to `bytes`, as many as it has capacity for; returns their number, 0 at the end.
    pub(super) fn read(&self, bytes: &mut Vec<u8>) -> Result<usize, Errno> {
        again(|| rustix::io::read(&self.fd, spare_capacity(bytes)))
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
        self.look(name).ok().map(|stamp| stamp.facts)
    }
}

impl Dir {
    /// The stamp of an entry, or the reason for failing.
    pub(super) fn look(&self, name: &[u8]) -> Result<EntryStamp, Errno> {
        again(|| fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW))
            .map(|stat| EntryStamp::from_stat(&stat))
    }

    /// Its own stamp.
    pub(super) fn stamp(&self) -> Option<EntryStamp> {
        again(|| fs::fstat(&self.0)).ok().map(|stat| EntryStamp::from_stat(&stat))
    }

    /// Whether its file system changes the stamp of a directory with each entry that comes, goes or gets another name, and
    /// tells upper and lower case apart for all names of a directory or for none. Those of a network or of a program may
    /// not. Overlays are not in the list, because what lies below them may be changed.
    #[cfg(target_os = "linux")]
    pub(super) fn has_strict_stamps(&self) -> bool {
        /// The numbers of ext2 to ext4, XFS, Btrfs, F2FS and tmpfs, as `linux/magic.h` has them.
        const STRICT: [u32; 5] = [0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the types differ between systems"
        )]
        fs::fstatfs(&self.0).is_ok_and(|system| STRICT.contains(&(system.f_type as u32)))
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn has_strict_stamps(&self) -> bool {
        false
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
