//! Identities and times of files, as the system reports them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

/// Identifies a file: the same as long as it is the same file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The file system.
    pub device: u64,
    /// The number in it.
    pub inode: u64,
}

/// A time of a file, since 1970. Many file systems count whole seconds, or ticks of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileTime {
    /// Whole seconds.
    pub seconds: i64,
    /// The rest, below a second.
    pub nanoseconds: i64,
}

impl From<&Metadata> for FileId {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

impl FileTime {
    /// When the contents were last changed. Programs can set it.
    pub fn modified(metadata: &Metadata) -> Self {
        Self { seconds: metadata.mtime(), nanoseconds: metadata.mtime_nsec() }
    }

    /// When the contents or the metadata were last changed. Programs cannot set it.
    pub fn changed(metadata: &Metadata) -> Self {
        Self { seconds: metadata.ctime(), nanoseconds: metadata.ctime_nsec() }
    }
}

impl FileTime {
    /// The time itself; `None` before 1970.
    pub fn at(self) -> Option<SystemTime> {
        let nanoseconds = u32::try_from(self.nanoseconds).ok()?.min(999_999_999);
        let since = Duration::new(u64::try_from(self.seconds).ok()?, nanoseconds);
        SystemTime::UNIX_EPOCH.checked_add(since)
    }
}
