//! Counts calls of functions of the program by threads that are not its own, so that it can end when none is running.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Maximum time to wait for running calls when the program ends.
const LEAVING: Duration = Duration::from_secs(1);
/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(1);

/// Counts running calls, and refuses further ones once it is closed.
#[derive(Debug, Default)]
pub(crate) struct CallTracker {
    running: AtomicUsize,
    is_closed: AtomicBool,
}

/// Counts a call as running until it is dropped.
#[derive(Debug)]
pub(crate) struct TrackedCall<'t>(&'t CallTracker);

impl CallTracker {
    /// Counts a call that begins; `None` once the tracker is closed.
    pub(crate) fn begin(&self) -> Option<TrackedCall<'_>> {
        // Counted before the check: either `close` sees the call, or the call sees that the tracker is closed.
        self.running.fetch_add(1, Ordering::SeqCst);
        let tracked = TrackedCall(self);
        (!self.is_closed.load(Ordering::SeqCst)).then_some(tracked)
    }

    /// Refuses further calls, and waits until all running ones have returned, but at most one second.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + LEAVING;
        while self.running.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// Called in a forked process: calls of the parent are not counted any more.
    pub(crate) fn forked(&self) {
        self.running.store(0, Ordering::SeqCst);
    }
}

impl Drop for TrackedCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_waits_for_a_running_call_and_refuses_another() {
        let calls = Arc::new(CallTracker::default());
        let (own, (entered, enters), (leave, leaves)) = (calls.clone(), channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            let _tracked = own.begin();
            entered.send(()).unwrap();
            leaves.recv().unwrap();
        });
        enters.recv().unwrap();
        let own = calls.clone();
        let closing = std::thread::spawn(move || own.close());
        while !calls.is_closed.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert!(calls.begin().is_none() && !closing.is_finished());
        leave.send(()).unwrap();
        thread.join().unwrap();
        closing.join().unwrap();
        assert_eq!(calls.running.load(Ordering::SeqCst), 0);
    }
}
