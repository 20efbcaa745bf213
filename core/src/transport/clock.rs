//! The time that hosts hand to the engine.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a host module: time enters the engine here"
)]

use crate::now::{Millis, Now};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// For how many ms the calendar is taken to run with the monotonic clock: a step of it is seen within that.
const STEADY: Millis = 1_000;

/// The machine's clocks, or a time that a test sets.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    /// The calendar's time when `tick` was 0, in ms, and the tick when that was looked at: one clock is read for each
    /// request instead of two.
    epoch: AtomicU64,
    looked: AtomicU64,
    /// Whether `set` holds a time.
    is_set: AtomicBool,
    set: Mutex<Option<Now>>,
}

impl Clock {
    /// The machine's clocks; `tick` counts from now.
    pub fn new() -> Self {
        let clock = Self {
            start: Instant::now(),
            epoch: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
            set: Mutex::new(None),
        };
        clock.look(0);
        clock
    }

    /// The time.
    pub fn now(&self) -> Now {
        if self.is_set.load(Ordering::Acquire)
            && let Some(now) = *self.set.lock().unwrap_or_else(PoisonError::into_inner)
        {
            return now;
        }
        let tick = millis(self.start.elapsed());
        if tick >= self.looked.load(Ordering::Relaxed) + STEADY {
            self.look(tick);
        }
        Now { tick, unix: self.epoch.load(Ordering::Relaxed) + tick }
    }

    /// Reads the calendar.
    fn look(&self, tick: Millis) {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        self.epoch.store(millis(unix).saturating_sub(tick), Ordering::Relaxed);
        self.looked.store(tick, Ordering::Relaxed);
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
    span.as_secs().saturating_mul(1_000).saturating_add(Millis::from(span.subsec_millis()))
}
