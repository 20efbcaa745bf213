//! The state of files at their last read, so that a new watcher knows whether they have changed since.
//!
//! Law: forgetting is safe. A file that may have been read and is not remembered counts as changed, unless the file
//! itself is older than that. If a file was read so soon after a change that the file system's clock may give the next
//! change the same time, its contents are compared.

use super::super::root_directory::EntryFacts;
use mcp_resources_provider_kit::file_id::FileTime;
use mcp_resources_runtime::sync::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use std::time::{Duration, SystemTime};

/// Maximum number of reads remembered.
const READS: usize = 16_384;

/// The clock of a file system that counts nanoseconds moves with the kernel's ticks.
const TICK: Duration = Duration::from_millis(20);
/// The clock of one that does not may move every two seconds.
const COARSE: Duration = Duration::from_secs(2);

/// A compact state of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenMark {
    facts: u64,
    /// Of its contents, if a later change need not show in the facts.
    digest: Option<u64>,
    is_settled: bool,
}

/// The state of a path that a client knows when it begins to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Before {
    /// The state at the last read.
    read: Option<SeenMark>,
    /// If there was no read: changes from this time on count.
    since: SystemTime,
}

/// A table of the last reads.
#[derive(Debug)]
pub(super) struct SeenFiles {
    hasher: RandomState,
    begun: SystemTime,
    reads: Mutex<Reads>,
}

#[derive(Debug, Default)]
struct Reads {
    marks: HashMap<u64, SeenMark>,
    has_forgotten: bool,
}

impl Default for SeenFiles {
    fn default() -> Self {
        Self { hasher: RandomState::new(), begun: SystemTime::now(), reads: Mutex::default() }
    }
}

impl Before {
    /// Anything may have been read.
    pub(super) fn unknown() -> Self {
        Self { read: None, since: SystemTime::UNIX_EPOCH }
    }

    /// Whether something is known to have been read there.
    pub(super) fn was_read(&self) -> bool {
        self.read.is_some()
    }

    /// Whether a change at this time may be later than the state that the client knows.
    pub(super) fn is_older_than(&self, changed: FileTime) -> bool {
        time_of(changed).is_none_or(|(at, margin)| at + margin >= self.since)
    }
}

impl SeenFiles {
    /// Records a read: `facts` are the metadata of the file at `path` of the root `tree` before the read. `contents`
    /// returns all of its contents, if they are known.
    pub(super) fn saw<'c>(
        &self,
        tree: &str,
        path: &[u8],
        facts: &EntryFacts,
        contents: impl FnOnce() -> Option<&'c [u8]>,
    ) {
        let is_settled = is_settled(facts);
        let digest = if is_settled { None } else { contents().map(|bytes| self.digest(bytes)) };
        let mark = SeenMark { facts: self.hash(facts), digest, is_settled };
        let key = self.hasher.hash_one((tree, path));
        let mut reads = self.reads.lock();
        if reads.marks.len() >= READS && !reads.marks.contains_key(&key) {
            reads.marks.clear();
            reads.has_forgotten = true;
        }
        reads.marks.insert(key, mark);
    }

    /// The state that a client may know if it begins to watch the path now.
    pub(super) fn before(&self, tree: &str, path: &[u8]) -> Before {
        let key = self.hasher.hash_one((tree, path));
        let reads = self.reads.lock();
        let since = if reads.has_forgotten { self.begun } else { SystemTime::now() };
        Before { read: reads.marks.get(&key).copied(), since }
    }

    /// Whether the current state differs from the one that a client knows. `digest` is that of the current contents.
    pub(super) fn is_changed(
        &self,
        before: &Before,
        facts: &EntryFacts,
        changed: Option<FileTime>,
        digest: impl FnOnce() -> Option<u64>,
    ) -> bool {
        match before.read {
            Some(mark) if mark.facts != self.hash(facts) => true,
            Some(mark) if mark.is_settled => false,
            Some(mark) => mark.digest.is_none() || mark.digest != digest(),
            None => changed.is_none_or(|changed| before.is_older_than(changed)),
        }
    }

    /// Of contents.
    pub(super) fn digest(&self, bytes: &[u8]) -> u64 {
        self.hasher.hash_one(bytes)
    }

    fn hash(&self, facts: &EntryFacts) -> u64 {
        self.hasher.hash_one(facts)
    }
}

/// Whether a change after this moment gives another time of modification.
pub(super) fn is_settled(facts: &EntryFacts) -> bool {
    let Some((changed, margin)) = time_of(facts.modified) else { return true };
    // A time that is yet to come says nothing of when it was set, but a change would set another.
    SystemTime::now().duration_since(changed).map_or(true, |age| age > margin)
}

/// A time of a file system, and by how much a later change may have the same one. `None`: before 1970.
fn time_of(time: FileTime) -> Option<(SystemTime, Duration)> {
    let margin = if time.nanoseconds == 0 { COARSE } else { TICK };
    Some((time.at()?, margin))
}
