//! The time that hosts hand to the engine.

use mcp_resources_engine::now::{Millis, Now};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
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
    set: Mutex<Setting>,
}

/// A time that a test has set, and the tasks that sleep until it sets another one.
#[derive(Debug, Default)]
struct Setting {
    now: Option<Now>,
    sleepers: Vec<Waker>,
}

impl Clock {
    /// The machine's clocks; `tick` counts from now.
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

    /// The time.
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

    /// Stops the clock at `now`, until it is set again; `None` lets it run. Wakes what sleeps by this clock. For tests.
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

    /// Whether a test has stopped the clock: then no timer of the machine counts, and `waker` is woken when the clock is set
    /// again. Call it before you look at the time, so that no change is missed.
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
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
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
        let (clock, woken) = (Clock::new(), Arc::new(Woken::default()));
        let (waker, count) = (Waker::from(woken.clone()), || woken.0.load(Ordering::SeqCst));
        assert!(!clock.stands(&waker));
        clock.set(Some(Now { tick: 5, unix: 7 }));
        assert_eq!((count(), clock.now().tick), (0, 5));
        // A sleeper that looks twice is woken once.
        assert!(clock.stands(&waker) && clock.stands(&waker));
        clock.set(Some(Now { tick: 6, unix: 8 }));
        clock.set(Some(Now { tick: 7, unix: 9 }));
        assert_eq!((count(), clock.now().tick), (1, 7));
        // Also when it runs again: from then on the machine's timers count.
        assert!(clock.stands(&waker));
        clock.set(None);
        assert_eq!(count(), 2);
        assert!(!clock.stands(&waker));
    }
}
