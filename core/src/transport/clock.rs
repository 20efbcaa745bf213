//! The time that hosts hand to the engine.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a host module: time enters the engine here"
)]

use crate::now::{Millis, Now};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The machine's clocks, or a time that a test sets.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// Whether `set` holds a time.
    is_set: AtomicBool,
    set: Mutex<Option<Now>>,
}

impl Clock {
    /// The machine's clocks; `tick` counts from now.
    pub fn new() -> Self {
        Self { start: Instant::now(), is_set: AtomicBool::new(false), set: Mutex::new(None) }
    }

    /// The time.
    pub fn now(&self) -> Now {
        if self.is_set.load(Ordering::Acquire)
            && let Some(now) = *self.set.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return now;
        }
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Now { tick: millis(self.start.elapsed()), unix: millis(unix) }
    }

    /// Stops the clock at `now`, until it is set again; `None` lets it run. For tests.
    pub fn set(&self, now: Option<Now>) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.is_set.store(now.is_some(), Ordering::Release);
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn millis(span: Duration) -> Millis {
    Millis::try_from(span.as_millis()).unwrap_or(Millis::MAX)
}
