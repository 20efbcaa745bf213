//! What the thread waits for that takes the records of requests, whichever language it belongs to.
//!
//! Law: recording never waits. A flush, and the end, wait at most a second for a slow thread.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Wake;
use std::time::Duration;

/// How long a flush, or the end, waits at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// See the module. Waking it says that there are records.
#[derive(Debug, Default)]
pub struct RecordSignal {
    state: Mutex<RecordState>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct RecordState {
    rung: bool,
    closed: bool,
    /// The thread waits.
    idle: bool,
    gone: bool,
    /// How often a flush was asked for, how often when the thread last went to work, and how many are done.
    asked: u64,
    seen: u64,
    done: u64,
}

impl RecordSignal {
    /// The thread has taken all that there was: waits for more. `false`: it is to end.
    pub fn wait(&self) -> bool {
        let mut state = self.lock();
        (state.done, state.idle) = (state.seen, true);
        self.change.notify_all();
        let waits = |state: &mut RecordState| !state.rung && !state.closed && state.asked == state.seen;
        let mut state = self.change.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        state.seen = state.asked;
        state.gone = state.closed && !state.rung;
        if state.gone {
            self.change.notify_all();
            return false;
        }
        (state.rung, state.idle) = (false, false);
        true
    }

    /// Waits until the thread has taken all that is recorded now. There must be such a thread.
    pub fn flush(&self) {
        let mut state = self.lock();
        state.asked += 1;
        let asked = state.asked;
        self.change.notify_all();
        let waits = |state: &mut RecordState| state.done < asked && !state.gone;
        drop(self.change.wait_timeout_while(state, PATIENCE, waits));
    }

    /// Ends the thread when it has nothing to do.
    pub fn close(&self) {
        self.lock().closed = true;
        self.change.notify_all();
    }

    /// Waits until the thread has ended.
    pub fn wait_for_end(&self) {
        let waits = |state: &mut RecordState| !state.gone;
        drop(self.change.wait_timeout_while(self.lock(), PATIENCE, waits));
    }

    /// Whether there are records that no thread has looked for.
    pub(super) fn is_rung(&self) -> bool {
        self.lock().rung
    }

    /// Whether the thread waits, or has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.lock().idle
    }

    fn lock(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for RecordSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.lock().rung = true;
        self.change.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    /// A flush ends only when the thread has looked for records once more after it was asked for.
    #[test]
    fn a_flush_waits_for_what_was_recorded_before_it() {
        let bell = Arc::new(RecordSignal::default());
        let (worker, (took, looks)) = (bell.clone(), channel());
        let thread = thread::spawn(move || {
            while worker.wait() {
                took.send(()).unwrap();
            }
        });
        bell.flush();
        assert!(looks.try_recv().is_ok());
        bell.wake_by_ref();
        bell.close();
        bell.wait_for_end();
        thread.join().unwrap();
        assert!(looks.try_recv().is_ok(), "what was recorded before the end is taken");
        assert!(looks.try_recv().is_err() && bell.is_idle() && !bell.is_rung());
    }
}
