//! Stops asking a server that does not answer, and tries it again later.
//!
//! ```text
//!            FAILURES in a row              PAUSE is over: one request is let through
//!   Closed ─────────────────────▶ Open ─────────────────────────────────────────────▶ Probing
//!     ▲                            ▲                        it fails                     │
//!     │                            └─────────────────────────────────────────────────────┤
//!     └──────────────────────────────── any answer ──────────────────────────────────────┘
//! ```
//!
//! Law: no clock; the time is an argument, in milliseconds.

use mcp_resources_engine::now::Millis;

/// The number of failures in a row after which a server is left alone.
const FAILURES: u32 = 5;
/// The time for which a server is left alone, and for which a probe may take.
const PAUSE: Millis = 30_000;

/// Decides whether a server is asked.
#[derive(Debug)]
pub(crate) struct Breaker {
    state: BreakerState,
}

/// The state, with the time in ms at which it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BreakerState {
    Closed { failures: u32 },
    Open { since: Millis },
    Probing { since: Millis },
}

impl Breaker {
    /// A breaker of a server that is believed to answer.
    pub(crate) fn new() -> Self {
        Self { state: BreakerState::Closed { failures: 0 } }
    }

    /// Whether a request may be made now. The caller reports its end.
    pub(crate) fn admit(&mut self, now: Millis) -> bool {
        match self.state {
            BreakerState::Closed { .. } => true,
            BreakerState::Open { since } | BreakerState::Probing { since } => {
                let is_over = now.saturating_sub(since) >= PAUSE;
                if is_over {
                    self.state = BreakerState::Probing { since: now };
                }
                is_over
            }
        }
    }

    /// Whether requests are refused at `now`, without making one.
    pub(crate) fn is_open(&self, now: Millis) -> bool {
        match self.state {
            BreakerState::Closed { .. } => false,
            BreakerState::Open { since } | BreakerState::Probing { since } => {
                now.saturating_sub(since) < PAUSE
            }
        }
    }

    /// The server has answered, if only with an error.
    pub(crate) fn succeeded(&mut self) {
        self.state = BreakerState::Closed { failures: 0 };
    }

    /// The server has not answered.
    pub(crate) fn failed(&mut self, now: Millis) {
        self.state = match self.state {
            BreakerState::Closed { failures } if failures + 1 < FAILURES => {
                BreakerState::Closed { failures: failures + 1 }
            }
            // A failure of a request that began before does not extend the pause.
            BreakerState::Open { since } if now.saturating_sub(since) < PAUSE => BreakerState::Open { since },
            BreakerState::Open { .. } => BreakerState::Open { since: now },
            BreakerState::Closed { .. } | BreakerState::Probing { .. } => BreakerState::Open { since: now },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // One hung upstream: the breaker opens after 5 failures, and lets one probe through after 30 s.
    #[test]
    fn five_failures_open_it_and_one_probe_follows() {
        let mut breaker = Breaker::new();
        for at in 0..5 {
            assert!(breaker.admit(at));
            assert!(!breaker.is_open(at));
            breaker.failed(at);
        }
        assert!(breaker.is_open(4) && !breaker.admit(5) && !breaker.admit(30_003));
        assert!(breaker.admit(30_004), "the probe");
        assert!(!breaker.admit(30_005), "only one");
        breaker.failed(30_006);
        assert!(!breaker.admit(60_005));
        assert!(breaker.admit(60_006));
        breaker.succeeded();
        assert!(breaker.admit(60_007) && breaker.admit(60_008));
    }

    #[test]
    fn an_answer_forgets_failures_and_a_lost_probe_blocks_nobody() {
        let mut breaker = Breaker::new();
        (0..4).for_each(|at| breaker.failed(at));
        breaker.succeeded();
        (0..4).for_each(|at| breaker.failed(at));
        assert!(breaker.admit(9), "four in a row are not five");
        breaker.failed(10);
        breaker.failed(11);
        assert!(!breaker.admit(30_009) && breaker.admit(30_010));
        // The probe was cancelled, and never ends.
        assert!(breaker.admit(60_010));
    }
}
