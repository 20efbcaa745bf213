//! The engine's timer. The engine has no clock, so its runtime calls it at the deadline.

use super::Engine;
use crate::now::{Millis, Now};
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// Registers a runtime that calls [`Engine::tick`], until it is dropped: see [`Engine::register_timer`].
#[must_use = "the waker is called while this is held"]
pub struct TimerRegistration {
    engine: Weak<Engine>,
    number: usize,
}

impl Engine {
    /// The latest time at which [`Engine::tick`] must be called.
    pub fn deadline(&self) -> Option<Millis> {
        self.hub.deadline()
    }

    /// Sends delayed updates that are due.
    pub fn tick(&self, now: Now) {
        if self.has_access() {
            self.note_time(now);
        }
        self.hub.tick(now.tick);
    }

    /// Calls `waker` whenever [`Engine::deadline`] becomes earlier, until the returned value is dropped. Every loop
    /// that can call [`Engine::tick`] may register; additional ticks do nothing. Read the deadline after this call,
    /// because the waker is not called for updates that are already delayed. The waker is called on any thread and must
    /// not block.
    pub fn register_timer(self: &Arc<Self>, waker: Waker) -> TimerRegistration {
        TimerRegistration { number: self.hub.register_timer(waker), engine: Arc::downgrade(self) }
    }
}

impl Drop for TimerRegistration {
    fn drop(&mut self) {
        if let Some(engine) = self.engine.upgrade() {
            engine.hub.unregister_timer(self.number);
        }
    }
}

impl fmt::Debug for TimerRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimerRegistration").field("number", &self.number).finish_non_exhaustive()
    }
}
