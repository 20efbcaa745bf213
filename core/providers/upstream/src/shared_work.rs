//! One piece of work that several requests wait for, each for as long as it likes.
//!
//! ```text
//!   Idle ──get──▶ Running ──done in time──▶ Idle
//!                    │ somebody has stopped waiting
//!                    └──done──▶ Late: the next one gets the result
//! ```

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The time for which a result that came late is used.
const KEPT: Duration = Duration::from_secs(30);

/// Work that is done once for all who want it at the same time.
#[derive(Debug)]
pub(crate) struct SharedWork<T> {
    state: Mutex<SharedWorkState<T>>,
}

#[derive(Debug)]
enum SharedWorkState<T> {
    Idle,
    Running { done: watch::Receiver<Option<T>>, is_late: bool },
    Late { value: T, at: Instant },
}

impl<T: Clone + Send + Sync + 'static> SharedWork<T> {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(SharedWorkState::Idle) })
    }

    /// The result of `work`, which the first caller starts; `None` if it is not there at `deadline`. The work
    /// goes on then; `on_late` gets its result, and says whether the next call may have it.
    pub(crate) async fn get<F>(
        self: &Arc<Self>,
        runtime: &Handle,
        deadline: Instant,
        work: impl FnOnce() -> F,
        on_late: impl FnOnce(&T) -> bool + Send + 'static,
    ) -> Option<T>
    where
        F: Future<Output = T> + Send + 'static,
    {
        let mut done = match self.join() {
            Ok(value) => return Some(value),
            Err(Some(done)) => done,
            Err(None) => {
                let (sender, done) = watch::channel(None);
                *self.lock() = SharedWorkState::Running { done: done.clone(), is_late: false };
                let flight = self.clone();
                let work = work();
                runtime.spawn(async move {
                    let value = work.await;
                    if flight.is_late() && on_late(&value) {
                        *flight.lock() = SharedWorkState::Late { value: value.clone(), at: Instant::now() };
                    } else {
                        *flight.lock() = SharedWorkState::Idle;
                    }
                    let _ = sender.send(Some(value));
                });
                done
            }
        };
        match timeout_at(deadline, done.wait_for(Option::is_some)).await {
            Ok(Ok(value)) => value.clone(),
            // The task has panicked.
            Ok(Err(_)) => {
                *self.lock() = SharedWorkState::Idle;
                None
            }
            Err(_elapsed) => {
                if let SharedWorkState::Running { is_late, .. } = &mut *self.lock() {
                    *is_late = true;
                }
                None
            }
        }
    }

    /// A result that came late, or the work to wait for.
    fn join(&self) -> Result<T, Option<watch::Receiver<Option<T>>>> {
        let mut state = self.lock();
        match std::mem::replace(&mut *state, SharedWorkState::Idle) {
            SharedWorkState::Late { value, at } if at.elapsed() < KEPT => Ok(value),
            SharedWorkState::Running { done, is_late } => {
                let joined = done.clone();
                *state = SharedWorkState::Running { done, is_late };
                Err(Some(joined))
            }
            SharedWorkState::Late { .. } | SharedWorkState::Idle => Err(None),
        }
    }

    fn is_late(&self) -> bool {
        matches!(&*self.lock(), SharedWorkState::Running { is_late: true, .. })
    }

    fn lock(&self) -> MutexGuard<'_, SharedWorkState<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
