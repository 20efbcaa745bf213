//! Whether the server of a database can be reached, for all of its sessions.
//!
//! ```text
//!   reachable ──an attempt fails──▶ pause, ever longer ──an attempt succeeds──▶ reachable
//! ```
//!
//! Law: all sessions share one pause, so a server that comes back is not met by all of them at once. A fault is logged once
//! until the database answers again.

use super::session::SessionFault;
use mcp_resources_runtime::sync::Mutex;
use std::time::{Duration, Instant};

/// The shortest and the longest pause between attempts to connect.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// The most faults that are remembered as logged.
const MOST_SAID: usize = 8;

/// The pause between attempts to connect, and the faults that were logged.
#[derive(Debug, Default)]
pub(super) struct Reach(Mutex<ReachState>);

#[derive(Debug, Default)]
struct ReachState {
    refused: Option<RefusedAttempt>,
    said: Vec<String>,
}

/// The last failure to connect, and when to try again.
#[derive(Debug)]
struct RefusedAttempt {
    until: Instant,
    pause: Duration,
    fault: SessionFault,
}

impl Reach {
    /// The fault of the last attempt, while it is too early for another one.
    pub(super) fn refusal(&self) -> Option<SessionFault> {
        let state = self.0.lock();
        let refused = state.refused.as_ref().filter(|refused| Instant::now() < refused.until);
        refused.map(|refused| refused.fault.clone())
    }

    /// Remembers an attempt that began at `began` and failed.
    pub(super) fn failed(&self, began: Instant, fault: &SessionFault) {
        let mut state = self.0.lock();
        let pause = match &state.refused {
            // Others have failed at the same time.
            Some(refused) if refused.until > began => refused.pause,
            Some(refused) => (refused.pause * 2).min(PAUSES.1),
            None => PAUSES.0,
        };
        state.refused = Some(RefusedAttempt { until: Instant::now() + pause, pause, fault: fault.clone() });
    }

    pub(super) fn connected(&self) {
        self.0.lock().refused = None;
    }

    /// Whether a fault has not been logged since the database has last answered.
    pub(super) fn is_news(&self, what: &str) -> bool {
        let mut state = self.0.lock();
        let is_news = state.said.len() < MOST_SAID && !state.said.iter().any(|said| said == what);
        if is_news {
            state.said.push(what.to_owned());
        }
        is_news
    }

    /// Whether this is the first answer after a fault that was logged.
    pub(super) fn is_back(&self) -> bool {
        !std::mem::take(&mut self.0.lock().said).is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: a fault is said once until the database answers, and attempts become rarer.
    #[test]
    fn faults_are_said_once() {
        let reach = Reach::default();
        assert!(!reach.is_back());
        assert_eq!(["a", "a", "b", "a"].map(|what| reach.is_news(what)), [true, false, true, false]);
        assert!(reach.is_back() && !reach.is_back() && reach.is_news("a"));
        assert!((0..100).filter(|number| reach.is_news(&number.to_string())).count() < MOST_SAID);
    }

    #[test]
    fn pauses_grow_once_for_attempts_at_the_same_time() {
        let reach = Reach::default();
        let fault = SessionFault::Down("x".into());
        let pause = |reach: &Reach| reach.0.lock().refused.as_ref().map(|refused| refused.pause);
        let began = Instant::now();
        reach.failed(began, &fault);
        reach.failed(began, &fault);
        assert_eq!((pause(&reach), reach.refusal()), (Some(PAUSES.0), Some(fault.clone())));
        for _ in 0..20 {
            reach.failed(began + 2 * PAUSES.1, &fault);
        }
        assert_eq!(pause(&reach), Some(PAUSES.1));
        reach.connected();
        assert_eq!(reach.refusal(), None);
    }
}
