//! The signal between a queue and the thread that takes its items: audit records, or changes of watches.
//!
//! Law: waking the thread never waits. A flush, and the end, wait at most one second for a slow thread.

use crate::sync::{Condvar, Mutex};
use std::sync::Arc;
use std::task::Wake;
use std::time::Duration;

/// Maximum time that a flush, or the end, waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// Wakes the thread that takes the items of a queue, and waits for it. Waking it means that there are items.
#[derive(Debug, Default)]
pub struct ConsumerSignal {
    state: Mutex<ConsumerState>,
    change: Condvar,
}

#[derive(Debug, Default)]
struct ConsumerState {
    has_items: bool,
    closed: bool,
    /// Whether the thread is waiting.
    idle: bool,
    gone: bool,
    /// The number of flushes requested, requested when the thread last started work, and completed.
    requested: u64,
    seen: u64,
    done: u64,
}

impl ConsumerSignal {
    /// Called by the thread when it has taken all items: waits for more. `false` if it should end.
    pub fn wait(&self) -> bool {
        let mut state = self.state.lock();
        state.done = state.seen;
        state.idle = true;
        self.change.notify_all();
        let waits =
            |state: &mut ConsumerState| !state.has_items && !state.closed && state.requested == state.seen;
        state = self.change.wait_while(state, waits);
        state.seen = state.requested;
        state.gone = state.closed && !state.has_items;
        if state.gone {
            self.change.notify_all();
            return false;
        }
        state.has_items = false;
        state.idle = false;
        true
    }

    /// Waits until the thread has taken all current items. There must be a thread.
    pub fn flush(&self) {
        let mut state = self.state.lock();
        state.requested += 1;
        let requested = state.requested;
        self.change.notify_all();
        let waits = |state: &mut ConsumerState| state.done < requested && !state.gone;
        drop(self.change.wait_while_for(state, PATIENCE, waits));
    }

    /// Ends the thread when it is idle.
    pub fn close(&self) {
        self.state.lock().closed = true;
        self.change.notify_all();
    }

    /// Waits until the thread has ended.
    pub fn wait_for_end(&self) {
        let waits = |state: &mut ConsumerState| !state.gone;
        drop(self.change.wait_while_for(self.state.lock(), PATIENCE, waits));
    }

    /// Whether there are items that the thread has not taken yet.
    pub(super) fn has_items(&self) -> bool {
        self.state.lock().has_items
    }

    /// Whether the thread is waiting, or has ended.
    pub(super) fn is_idle(&self) -> bool {
        self.state.lock().idle
    }
}

impl Wake for ConsumerSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.state.lock().has_items = true;
        self.change.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    /// A flush returns only after the thread has looked for items once more.
    #[test]
    fn a_flush_waits_for_the_items_before_it() {
        let signal = Arc::new(ConsumerSignal::default());
        let (worker, (woken, looks)) = (signal.clone(), channel());
        let thread = thread::spawn(move || {
            while worker.wait() {
                woken.send(()).unwrap();
            }
        });
        signal.flush();
        assert!(looks.try_recv().is_ok());
        signal.wake_by_ref();
        signal.close();
        signal.wait_for_end();
        thread.join().unwrap();
        assert!(looks.try_recv().is_ok(), "what was there before the end is taken");
        assert!(looks.try_recv().is_err() && signal.is_idle() && !signal.has_items());
    }
}
