//! The engine's time: it has no clock, so a host calls it when something is due.

use super::Engine;
use crate::now::{Millis, Now};
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// A host that keeps the time of an engine, until this is dropped: see [`Engine::keep_time`].
#[must_use = "the waker is called while this is held"]
pub struct Timekeeper {
    engine: Weak<Engine>,
    number: usize,
}

impl Engine {
    /// When [`Engine::tick`] must be called at the latest.
    pub fn deadline(&self) -> Option<Millis> {
        self.hub.deadline()
    }

    /// Lets time pass: updates that were held back are due.
    pub fn tick(&self, now: Now) {
        self.hub.tick(now.tick);
    }

    /// Has `waker` called whenever [`Engine::deadline`] becomes earlier, while what is returned is held. Every loop that
    /// can call [`Engine::tick`] keeps the time: a second call of it does nothing. Look at the deadline after this call, as
    /// nobody is woken for what waits already. The waker is called on any thread and must not wait.
    pub fn keep_time(self: &Arc<Self>, waker: Waker) -> Timekeeper {
        Timekeeper { number: self.hub.keep_time(waker), engine: Arc::downgrade(self) }
    }
}

impl Drop for Timekeeper {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.hub.leave_time(self.number);
        }
    }
}

impl fmt::Debug for Timekeeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timekeeper").field("number", &self.number).finish_non_exhaustive()
    }
}
