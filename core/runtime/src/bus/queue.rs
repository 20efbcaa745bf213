//! The changes that wait to be sent.
//!
//! Law: a change never waits for a lock that is held during I/O. The queue is a set: a change that waits already is not added
//! again. When it is full, its updates are replaced by one word, "lost", after which the others announce everything.

use crate::sync::{Condvar, Mutex};
use mcp_resources_engine::engine::SharedChange;
use std::collections::HashSet;
use std::time::Duration;
use tokio::sync::Notify;

/// Maximum number of changes that wait.
pub(super) const CHANGES: usize = 16_384;
/// Maximum size of them in bytes.
pub(super) const BYTES: usize = 4 << 20;

/// The changes of this process that no message has yet.
#[derive(Debug, Default)]
pub(super) struct BusQueue {
    state: Mutex<QueueState>,
    /// Tells the writer that something waits.
    pub(super) filled: Notify,
    /// Tells [`BusQueue::flush`] that all is sent.
    emptied: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: WaitingChanges,
    bytes: usize,
    /// Whether the writer has taken changes that are not sent yet.
    is_sending: bool,
}

/// Changes for the next messages.
#[derive(Debug, Default)]
pub(super) struct WaitingChanges {
    pub(super) changes: HashSet<SharedChange>,
    /// Whether changes were dropped.
    pub(super) has_lost: bool,
}

impl WaitingChanges {
    fn is_empty(&self) -> bool {
        self.changes.is_empty() && !self.has_lost
    }
}

impl BusQueue {
    pub(super) fn push(&self, change: SharedChange) {
        let is_first = {
            let mut state = self.state.lock();
            let is_first = state.waiting.is_empty();
            state.add(change);
            is_first
        };
        if is_first {
            self.filled.notify_one();
        }
    }

    /// Takes all changes; `None` if there are none. They count as sending until [`BusQueue::sent`].
    pub(super) fn take(&self) -> Option<WaitingChanges> {
        let mut state = self.state.lock();
        if state.waiting.is_empty() {
            return None;
        }
        state.bytes = 0;
        state.is_sending = true;
        Some(std::mem::take(&mut state.waiting))
    }

    /// All changes that were taken are sent.
    pub(super) fn sent(&self) {
        self.state.lock().is_sending = false;
        self.emptied.notify_all();
    }

    /// Waits until all is sent, for at most `time`.
    pub(super) fn flush(&self, time: Duration) {
        let waits = |state: &mut QueueState| state.is_sending || !state.waiting.is_empty();
        drop(self.emptied.wait_while_for(self.state.lock(), time, waits));
    }
}

impl QueueState {
    fn add(&mut self, change: SharedChange) {
        let is_update = |change: &SharedChange| {
            matches!(change, SharedChange::Updated { .. } | SharedChange::Lists { .. })
        };
        let WaitingChanges { changes, has_lost } = &mut self.waiting;
        if changes.contains(&change) || *has_lost && is_update(&change) {
            return;
        }
        let size = change.size();
        if changes.len() >= CHANGES || self.bytes + size > BYTES {
            // Everything is announced after "lost", so updates need no room. Revocations keep theirs.
            changes.retain(|waiting| !is_update(waiting));
            self.bytes = changes.iter().map(SharedChange::size).sum();
            *has_lost = true;
            // If there is still no room, the others verify all tokens again: a part of what "lost" means.
            if is_update(&change) || changes.len() >= CHANGES || self.bytes + size > BYTES {
                return;
            }
        }
        self.bytes += size;
        changes.insert(change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(number: usize) -> SharedChange {
        SharedChange::Updated { uri: format!("note://{number}").into(), principal: None }
    }

    fn revoked(name: &str) -> SharedChange {
        SharedChange::Revoked { principal: name.into() }
    }

    #[test]
    fn equal_changes_are_joined() {
        let queue = BusQueue::default();
        assert!(queue.take().is_none());
        for number in [1, 2, 1, 1] {
            queue.push(updated(number));
        }
        let taken = queue.take().unwrap();
        assert_eq!((taken.changes.len(), taken.has_lost), (2, false));
        queue.push(updated(1));
        assert_eq!(queue.take().unwrap().changes.len(), 1, "what was taken may be sent already");
    }

    /// 100,000 changes while the bus is away: one word instead of them, and the revocations.
    #[test]
    fn a_full_queue_keeps_revocations_and_says_that_something_was_lost() {
        let queue = BusQueue::default();
        queue.push(revoked("ada"));
        (0..100_000).for_each(|number| queue.push(updated(number)));
        queue.push(revoked("eve"));
        let WaitingChanges { changes, has_lost } = queue.take().unwrap();
        assert!(has_lost);
        assert_eq!(changes, HashSet::from([revoked("ada"), revoked("eve")]));
        (0..CHANGES + 10).for_each(|number| queue.push(revoked(&number.to_string())));
        let WaitingChanges { changes, has_lost } = queue.take().unwrap();
        assert_eq!((changes.len(), has_lost), (CHANGES, true));
        let long = "x".repeat(BYTES / 2);
        (0..5).for_each(|number| queue.push(revoked(&format!("{number}{long}"))));
        assert!(queue.take().unwrap().changes.len() < 3);
    }

    #[test]
    fn a_flush_waits_until_all_is_sent() {
        let queue = BusQueue::default();
        queue.flush(Duration::from_secs(60));
        queue.push(updated(1));
        drop(queue.take());
        std::thread::scope(|scope| {
            let flush = scope.spawn(|| queue.flush(Duration::from_secs(60)));
            queue.sent();
            flush.join().unwrap();
        });
        queue.push(updated(1));
        queue.flush(Duration::from_millis(1));
    }
}
