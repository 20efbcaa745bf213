//! Identities and times of files, as the system reports them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
#[cfg(feature = "files")]
use std::time::{Duration, SystemTime};

/// Identifies a file: the same as long as it is the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FileId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A time of a file, since 1970. Many file systems count whole seconds, or ticks of the kernel.
#[cfg(any(feature = "config", feature = "files", feature = "git"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FileTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: i64,
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

#[cfg(any(feature = "config", feature = "git"))]
impl FileTime {
    /// When the contents were last changed. Programs can set it.
    pub(crate) fn modified(metadata: &Metadata) -> Self {
        Self { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() }
    }

    /// When the contents or the metadata were last changed. Programs cannot set it.
    pub(crate) fn changed(metadata: &Metadata) -> Self {
        Self { seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() }
    }
}

#[cfg(feature = "files")]
impl FileTime {
    /// The time itself; `None` before 1970.
    pub(crate) fn at(self) -> Option<SystemTime> {
        let nanoseconds = u32::try_from(self.nanoseconds).ok()?.min(999_999_999);
        let since = Duration::new(u64::try_from(self.seconds).ok()?, nanoseconds);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}
