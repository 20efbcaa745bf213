//! The signal for the thread that takes audit records, in whatever language it runs.
//!
//! Law: recording never waits. A flush, and the end, wait at most one second for a slow thread.

use crate::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

/// Maximum time that a flush, or the end, waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// The signal for the thread that takes audit records. Waking it means that there are records.
#[derive(Debug, Default)]
pub struct RecordSignal {
    state: Mutex<RecordState>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct RecordState {
    has_records: bool,
    closed: bool,
    /// Whether the thread is waiting.
    idle: bool,
    gone: bool,
    /// The number of flushes requested, requested when the thread last started work, and completed.
    requested: u64,
    seen: u64,
    done: u64,
}

impl RecordSignal {
    /// Called by the thread when it has taken all records: waits for more. `false` if it should end.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        state.done = state.seen;
        state.idle = true;
        self.change.notify_all();
        let waits =
            |state: &mut RecordState| !state.has_records && !state.closed && state.requested == state.seen;
        state = self.change.wait_while(state, waits);
        state.seen = state.requested;
        state.gone = state.closed && !state.has_records;
        if state.gone {
            self.change.notify_all();
            return false;
        }
        state.has_records = false;
        state.idle = false;
        true
    }

    /// Waits until the thread has taken all current records. There must be a thread.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        state.requested += 1;
        let requested = state.requested;
        self.change.notify_all();
        let waits = |state: &mut RecordState| state.done < requested && !state.gone;
        drop(self.change.wait_while_for(state, PATIENCE, waits));
    }

    /// Ends the thread when it is idle.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.change.notify_all();
    }

    /// Waits until the thread has ended.
    pub fn wait_for_end(&self) {
        let waits = |state: &mut RecordState| !state.gone;
        drop(self.change.wait_while_for(self.state.lock(), PATIENCE, waits));
    }

    /// Whether there are records that the thread has not taken yet.
    pub(super) fn has_records(&self) -> bool {
        self.state.lock().has_records
    }

    /// Whether the thread is waiting, or has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().idle
    }
}

impl Wake for RecordSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.state.lock().has_records = true;
        self.change.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    /// A flush returns only after the thread has checked for records once more.
    #[test]
    fn a_flush_waits_for_what_was_recorded_before_it() {
        let bell = Arc::new(RecordSignal::default());
        let (worker, (woken, looks)) = (bell.clone(), channel());
        let thread = thread::spawn(move || {
            while worker.wait() {
                woken.send(()).unwrap();
            }
        });
        bell.flush();
        assert!(looks.try_recv().is_ok());
        bell.wake_by_ref();
        bell.close();
        bell.wait_for_end();
        thread.join().unwrap();
        assert!(looks.try_recv().is_ok(), "what was recorded before the end is taken");
        assert!(looks.try_recv().is_err() && bell.is_idle() && !bell.has_records());
    }
}
