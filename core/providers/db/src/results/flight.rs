//! Computations in progress, shared by all callers that wait for the same result.
//!
//! ```text
//!   join ──first──▶ ComputeLeader ──finish──▶ all who joined get the same result
//!     └──later──▶ ComputeFlight::finished      └──dropped: one of those who wait leads next
//! ```
//!
//! Law: both locks are leaves: wakers are called after they were released.

use super::entry::{ComputeError, ResultEntry, ResultKey};
use mcp_resources_runtime::sync::Mutex;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The result of a computation.
pub(super) type Outcome = Result<ResultEntry, ComputeError>;

/// The computations of one cache.
#[derive(Debug, Default)]
pub(super) struct ComputeFlights {
    open: Mutex<HashMap<ResultKey, Arc<ComputeFlight>>>,
}

/// One computation.
#[derive(Debug, Default)]
pub(super) struct ComputeFlight {
    state: Mutex<FlightProgress>,
}

#[derive(Debug, Default)]
struct FlightProgress {
    end: Option<FlightEnd>,
    waiting: Vec<Waker>,
}

#[derive(Clone, Debug)]
enum FlightEnd {
    Finished(Outcome),
    /// The computation was abandoned.
    Abandoned,
}

/// The role of a caller: to compute, or to wait for the computation in progress.
pub(super) enum Joined<'f> {
    Lead(ComputeLeader<'f>),
    Waits(Arc<ComputeFlight>),
}

/// The one that computes.
pub(super) struct ComputeLeader<'f> {
    flights: &'f ComputeFlights,
    key: ResultKey,
    flight: Arc<ComputeFlight>,
}

impl ComputeFlights {
    pub(super) fn join(&self, key: ResultKey) -> Joined<'_> {
        let mut open = self.open.lock();
        if let Some(flight) = open.get(&key) {
            return Joined::Waits(flight.clone());
        }
        let flight = Arc::new(ComputeFlight::default());
        open.insert(key.clone(), flight.clone());
        Joined::Lead(ComputeLeader { flights: self, key, flight })
    }
}

impl ComputeFlight {
    /// Waits for the result; `None` if the computation was abandoned.
    pub(super) async fn finished(&self) -> Option<Outcome> {
        poll_fn(|context| {
            let mut state = self.state.lock();
            match &state.end {
                Some(FlightEnd::Finished(result)) => Poll::Ready(Some(result.clone())),
                Some(FlightEnd::Abandoned) => Poll::Ready(None),
                None => {
                    let waker = context.waker();
                    if !state.waiting.iter().any(|other| other.will_wake(waker)) {
                        state.waiting.push(waker.clone());
                    }
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl ComputeLeader<'_> {
    pub(super) fn finish(self, result: Outcome) {
        self.end(FlightEnd::Finished(result));
    }

    /// Only the first end counts.
    fn end(&self, end: FlightEnd) {
        let is_own = |flight: &Arc<ComputeFlight>| Arc::ptr_eq(flight, &self.flight);
        {
            let mut open = self.flights.open.lock();
            if open.get(&self.key).is_some_and(is_own) {
                open.remove(&self.key);
            }
        }
        let waiting = {
            let mut state = self.flight.state.lock();
            state.end.get_or_insert(end);
            std::mem::take(&mut state.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

impl Drop for ComputeLeader<'_> {
    fn drop(&mut self) {
        self.end(FlightEnd::Abandoned);
    }
}
