//! The single timer of an event loop.

use mcp_resources_engine::now::{Millis, Now};
use std::sync::atomic::{AtomicU64, Ordering};

/// The time for which the loop's timer is armed. Any thread may read it; only the loop arms it.
#[derive(Debug)]
pub struct PumpTimer(AtomicU64);

impl Default for PumpTimer {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

impl PumpTimer {
    /// The timer has fired, so it is no longer armed.
    pub fn fired(&self) {
        self.0.store(u64::MAX, Ordering::Release);
    }

    /// Whether it fires too late for the earliest of `deadlines`.
    pub fn is_late_for(&self, deadlines: &[Option<Millis>]) -> bool {
        earliest(deadlines).is_some_and(|deadline| deadline < self.0.load(Ordering::Acquire))
    }

    /// Arms it for the earliest of `deadlines`; returns the time until then in ms, or `None` if it already fires early
    /// enough.
    pub fn arm(&self, deadlines: &[Option<Millis>], now: Now) -> Option<Millis> {
        let deadline = earliest(deadlines)?;
        if deadline >= self.0.load(Ordering::Acquire) {
            return None;
        }
        self.0.store(deadline, Ordering::Release);
        Some(deadline.saturating_sub(now.tick))
    }
}

fn earliest(deadlines: &[Option<Millis>]) -> Option<Millis> {
    deadlines.iter().copied().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_armed_for_what_is_due_first_and_anew_only_for_something_earlier() {
        let timer = PumpTimer::default();
        let now = Now { tick: 100, unix: 0 };
        assert_eq!((timer.arm(&[None, None], now), timer.is_late_for(&[None])), (None, false));
        assert!(timer.is_late_for(&[None, Some(500)]));
        assert_eq!(timer.arm(&[Some(900), Some(500)], now), Some(400));
        assert_eq!((timer.arm(&[Some(500)], now), timer.is_late_for(&[Some(500)])), (None, false));
        assert_eq!(timer.arm(&[Some(40)], now), Some(0), "it is over already");
        timer.fired();
        assert_eq!(timer.arm(&[Some(900)], now), Some(800));
    }
}
