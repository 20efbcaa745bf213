//! A queue of limited length for records that the runtime has not taken yet.
//!
//! Law: serving a request never waits for the audit sink. A full queue drops the newest record and counts it.

use crate::guard::{AuditRecord, RequestRecord};
use crate::now::Millis;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The queue of records.
pub(super) struct AuditQueue {
    state: Mutex<AuditBuffer>,
    max: usize,
}

/// The numbers of audit records.
#[derive(Clone, Copy, Debug)]
pub(super) struct AuditCounts {
    /// In the queue.
    pub(super) waiting: usize,
    /// Dropped since the start.
    pub(super) dropped: u64,
}

#[derive(Default)]
struct AuditBuffer {
    entries: Vec<AuditRecord>,
    /// The number of records dropped since the last take, and the time of the last one.
    dropped: u64,
    dropped_at: Millis,
    /// The number of records dropped since the start.
    lost: u64,
    waker: Option<Waker>,
}

impl AuditQueue {
    pub(super) fn new(max: usize) -> Self {
        Self { state: Mutex::default(), max: max.max(1) }
    }

    pub(super) fn push(&self, record: RequestRecord) {
        let mut state = self.lock();
        if state.entries.len() < self.max {
            state.entries.push(AuditRecord::Request(record));
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

    /// Appends all queued records, followed by an entry with the number of dropped ones.
    pub(super) fn take(&self, entries: &mut Vec<AuditRecord>) {
        let mut state = self.lock();
        entries.append(&mut state.entries);
        let dropped = std::mem::take(&mut state.dropped);
        if dropped > 0 {
            entries.push(AuditRecord::Dropped { time: state.dropped_at, dropped });
        }
    }

    pub(super) fn lose(&self, count: u64) {
        self.lock().lost += count;
    }

    pub(super) fn counts(&self) -> AuditCounts {
        let state = self.lock();
        AuditCounts { waiting: state.entries.len(), dropped: state.lost }
    }

    fn lock(&self) -> MutexGuard<'_, AuditBuffer> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
