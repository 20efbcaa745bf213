//! Counts the threads inside a function of the author's, so that a program can end without one of them in it.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long the end of the program waits for threads to leave.
const LEAVING: Duration = Duration::from_secs(1);
/// How often it looks.
const LOOK: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Debug, Default)]
pub struct Gate {
    inside: AtomicUsize,
    is_closed: AtomicBool,
}

/// A thread is inside until this is dropped.
#[derive(Debug)]
pub struct Inside<'g>(&'g Gate);

impl Gate {
    /// Lets a thread in; `None` once the gate is closed.
    pub fn enter(&self) -> Option<Inside<'_>> {
        // Counted before it looks: `close` sees the thread, or the thread sees that it is closed.
        self.inside.fetch_add(1, Ordering::SeqCst);
        let inside = Inside(self);
        (!self.is_closed.load(Ordering::SeqCst)).then_some(inside)
    }

    /// Lets no thread in any more, and waits until all have left; a second at most.
    pub fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        let until = Instant::now() + LEAVING;
        while self.inside.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            std::thread::sleep(LOOK);
        }
    }

    /// This process was forked: the threads of its parent are not in it.
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
        let gate = Arc::new(Gate::default());
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
