//! What was last read, so that a watcher that begins knows whether it has changed since.
//!
//! Law: forgetting is safe. What is not known counts as changed, and so does what was read so soon after it was changed that
//! the file system's clock may give the next change the same time.

use super::super::beneath::Facts;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// How many reads are remembered at most. Two of one place in the table forget each other.
const READS: usize = 4_096;

/// The clock of a file system that counts nanoseconds moves with the kernel's ticks.
const TICK: Duration = Duration::from_millis(20);
/// The clock of one that does not may move every two seconds.
const COARSE: Duration = Duration::from_secs(2);

/// What a file or directory was like, in few bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark(u64);

/// A table of what was read.
#[derive(Debug, Default)]
pub(super) struct Seen {
    hasher: RandomState,
    /// The key and the mark, at the place that the key says. Empty until something is read.
    reads: Mutex<Vec<Option<(u64, Mark)>>>,
}

impl Seen {
    /// `facts` were those of what was read at `path` of the root `tree`.
    pub(super) fn saw(&self, tree: &str, path: &[u8], facts: &Facts) {
        let mark = is_settled(facts).then(|| self.mark(facts));
        let (key, at) = self.place(tree, path);
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if reads.is_empty() {
            reads.resize(READS, None);
        }
        if let Some(slot) = reads.get_mut(at) {
            *slot = mark.map(|mark| (key, mark));
        }
    }

    /// What was last read there.
    pub(super) fn last(&self, tree: &str, path: &[u8]) -> Option<Mark> {
        let (key, at) = self.place(tree, path);
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, mark) = (*reads.get(at)?)?;
        (known == key).then_some(mark)
    }

    pub(super) fn mark(&self, facts: &Facts) -> Mark {
        let Facts { kind, inode, modified, size } = facts;
        Mark(self.hasher.hash_one((*kind as u8, inode, modified, size)))
    }

    fn place(&self, tree: &str, path: &[u8]) -> (u64, usize) {
        let key = self.hasher.hash_one((tree, path));
        (key, usize::try_from(key % READS as u64).unwrap_or_default())
    }
}

/// Whether a change after this moment gives another time of modification.
pub(super) fn is_settled(facts: &Facts) -> bool {
    let (seconds, nanos) = facts.modified;
    let Ok(since) = u64::try_from(seconds) else { return true };
    let changed = SystemTime::UNIX_EPOCH + Duration::new(since, u32::try_from(nanos).unwrap_or_default());
    let margin = if nanos == 0 { COARSE } else { TICK };
    // A time that is yet to come says nothing of when it was set, but a change would set another.
    SystemTime::now().duration_since(changed).map_or(true, |age| age > margin)
}
