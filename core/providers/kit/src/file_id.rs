//! Identities and times of files, as the system reports them.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, SystemTime};

/// The clocks of some file systems move every two seconds.
const COARSE: Duration = Duration::from_secs(2);
/// Those that count nanoseconds move with the kernel's ticks.
const TICK: Duration = Duration::from_millis(20);

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

    /// Whether a change from now on gives another time.
    pub fn is_settled(self) -> bool {
        self.is_older_than(if self.nanoseconds == 0 { COARSE } else { TICK })
    }

    /// Whether it is longer ago than `margin`.
    pub fn is_older_than(self, margin: Duration) -> bool {
        let time = self.at().unwrap_or(SystemTime::UNIX_EPOCH);
        SystemTime::now().duration_since(time).is_ok_and(|age| age > margin)
    }
}
