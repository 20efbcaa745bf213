//! What was recorded and not taken yet: a bounded queue.
//!
//! Law: serving a request never waits for the audit sink. When the queue is full the newest is dropped,
//! and counted.

use crate::guard::{AuditEntry, AuditRecord};
use crate::now::Millis;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the module.
pub(super) struct Records {
    state: Mutex<RecordBuffer>,
    max: usize,
}

/// How many records there are.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordCounts {
    /// Not taken yet.
    pub(super) waiting: usize,
    /// Dropped since the start.
    pub(super) dropped: u64,
}

#[derive(Default)]
struct RecordBuffer {
    entries: Vec<AuditEntry>,
    /// How many were dropped since the last were taken, and when the last was.
    dropped: u64,
    dropped_at: Millis,
    /// How many were dropped in all.
    lost: u64,
    waker: Option<Waker>,
}

impl Records {
    pub(super) fn new(max: usize) -> Self {
        Self { state: Mutex::default(), max: max.max(1) }
    }

    pub(super) fn push(&self, record: AuditRecord) {
        let mut state = self.lock();
        if state.entries.len() < self.max {
            state.entries.push(AuditEntry::Request(record));
        } else {
            state.dropped += 1;
            state.lost += 1;
            state.dropped_at = record.time.saturating_add(record.duration);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(super) fn register(&self, waker: &Waker) {
        self.lock().waker = Some(waker.clone());
    }

    /// Appends all there is, and what is missing behind it.
    pub(super) fn take(&self, entries: &mut Vec<AuditEntry>) {
        let mut state = self.lock();
        entries.append(&mut state.entries);
        let dropped = std::mem::take(&mut state.dropped);
        if dropped > 0 {
            entries.push(AuditEntry::Dropped { time: state.dropped_at, dropped });
        }
    }

    pub(super) fn lose(&self, count: u64) {
        self.lock().lost += count;
    }

    pub(super) fn counts(&self) -> RecordCounts {
        let state = self.lock();
        RecordCounts { waiting: state.entries.len(), dropped: state.lost }
    }

    fn lock(&self) -> MutexGuard<'_, RecordBuffer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
