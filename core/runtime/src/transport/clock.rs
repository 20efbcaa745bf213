//! The clock that runtimes pass to the engine.

use crate::sync::Mutex;
use mcp_resources_engine::now::{Millis, Now};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, Instant, SystemTime};

/// Time, in ms, for which the calendar is assumed to run in step with the monotonic clock: a jump of the calendar is
/// noticed within this time.
const STEADY: Millis = 1_000;

/// The machine's clocks, or a time set by a test.
#[derive(Debug)]
pub struct EngineClock {
    start: Instant,
    /// The calendar time at which `tick` was 0, in ms, and the tick of the last check: so each request reads one clock
    /// instead of two.
    epoch: AtomicU64,
    looked: AtomicU64,
    /// Whether `set` holds a time.
    is_set: AtomicBool,
    set: Mutex<Setting>,
}

/// The time set by a test, and the tasks that sleep until the next one is set.
#[derive(Debug, Default)]
struct Setting {
    now: Option<Now>,
    sleepers: Vec<Waker>,
}

impl EngineClock {
    /// Uses the machine's clocks; `tick` counts from now.
    pub fn new() -> Self {
        let clock = Self {
            start: Instant::now(),
            epoch: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            is_set: AtomicBool::new(false),
            set: Mutex::default(),
        };
        clock.look(0);
        clock
    }

    /// The current time.
    pub fn now(&self) -> Now {
        if self.is_set.load(Ordering::Acquire)
            && let Some(now) = self.setting().now
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

    /// Stops the clock at `now` until the next call; `None` lets it run. Wakes all sleepers of this clock. For tests.
    pub fn set(&self, now: Option<Now>) {
        let mut setting = self.setting();
        setting.now = now;
        self.is_set.store(now.is_some(), Ordering::Release);
        let sleepers = std::mem::take(&mut setting.sleepers);
        drop(setting);
        for sleeper in sleepers {
            sleeper.wake();
        }
    }

    /// Whether a test has stopped the clock. If so, timers of the machine do not count, and `waker` is woken when the
    /// clock is set. Call this before reading the time, so that no change is missed.
    #[cfg(feature = "http")]
    pub(crate) fn stands(&self, waker: &Waker) -> bool {
        if !self.is_set.load(Ordering::Acquire) {
            return false;
        }
        let mut setting = self.setting();
        if setting.now.is_some() && !setting.sleepers.iter().any(|known| known.will_wake(waker)) {
            setting.sleepers.push(waker.clone());
        }
        setting.now.is_some()
    }

    fn setting(&self) -> MutexGuard<'_, Setting> {
        self.set.lock()
    }
}

impl Default for EngineClock {
    fn default() -> Self {
        Self::new()
    }
}

fn millis(span: Duration) -> Millis {
    span.as_secs().saturating_mul(1_000).saturating_add(Millis::from(span.subsec_millis()))
}

#[cfg(all(test, feature = "http"))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_sleeper_is_woken_whenever_a_test_moves_the_clock() {
        let clock = EngineClock::new();
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(woken.clone());
        let count = || woken.0.load(Ordering::SeqCst);
        assert!(!clock.stands(&waker));
        clock.set(Some(Now { tick: 5, unix: 7 }));
        assert_eq!((count(), clock.now().tick), (0, 5));
        // A sleeper that checks twice is woken once.
        assert!(clock.stands(&waker) && clock.stands(&waker));
        clock.set(Some(Now { tick: 6, unix: 8 }));
        clock.set(Some(Now { tick: 7, unix: 9 }));
        assert_eq!((count(), clock.now().tick), (1, 7));
        // It is also woken when the clock runs again: from then on the machine's timers count.
        assert!(clock.stands(&waker));
        clock.set(None);
        assert_eq!(count(), 2);
        assert!(!clock.stands(&waker));
    }
}
