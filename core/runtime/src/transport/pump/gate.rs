//! Counts the threads inside user functions, so that a program can end when none is inside.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long to wait for threads to leave when the program ends.
const LEAVING: Duration = Duration::from_secs(1);
/// Pause between two checks.
const LOOK: Duration = Duration::from_millis(1);

/// Counts the threads inside user functions.
#[derive(Debug, Default)]
pub struct PumpGate {
    inside: AtomicUsize,
    is_closed: AtomicBool,
}

/// Counts a thread as inside until it is dropped.
#[derive(Debug)]
pub struct Inside<'g>(&'g PumpGate);

impl PumpGate {
    /// Counts a thread; `None` once the gate is closed.
    pub fn enter(&self) -> Option<Inside<'_>> {
        // Counted before the check: either `close` sees the thread, or the thread sees that the gate is closed.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        (!self.is_closed.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Closes the gate, and waits until all threads have left, but at most one second.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + LEAVING;
        while self.inside.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// Called in a forked process: threads of the parent are not counted any more.
    pub fn forked(&self) {
        self.inside.store(0, Ordering::SeqCst);
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    #[test]
    fn the_end_waits_for_a_thread_inside_and_lets_no_other_in() {
        let gate = Arc::new(PumpGate::default());
        let (own, (entered, enters), (leave, leaves)) = (gate.clone(), channel(), channel::<()>());
        let thread = std::thread::spawn(move || {
            let _inside = own.enter();
            entered.send(()).unwrap();
            leaves.recv().unwrap();
        });
        enters.recv().unwrap();
        let own = gate.clone();
        let closing = std::thread::spawn(move || own.close());
        while !gate.is_closed.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        assert!(gate.enter().is_none() && !closing.is_finished());
        leave.send(()).unwrap();
        thread.join().unwrap();
        closing.join().unwrap();
        assert_eq!(gate.inside.load(Ordering::SeqCst), 0);
    }
}
