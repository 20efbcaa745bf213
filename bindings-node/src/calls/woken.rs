//! Wakes the event loop for the engine, through a function that libuv calls and that does not keep the process
//! alive. Inside [`delivering`](crate::calls::server_state::ServerState::delivering) the loop is not woken: output is
//! delivered after the change, before the call returns.
//!
//! Law: a waker waits for nothing and never enters JavaScript.

use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_runtime::transport::pump::{self, LoopWaker, WORK, collect};
use napi::bindgen_prelude::{Function, Result};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;
use std::cell::RefCell;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::LocalKey;

/// The signals that a server's wakers have left for the loop.
pub(crate) struct Woken {
    waker: Arc<LoopWaker<Owner>>,
    /// The pipes that have something to deliver, in order. A connection is here once.
    pipes: Mutex<Vec<ConnectionId>>,
    /// The number of requests on other threads whose answers are to be written here.
    pending: AtomicUsize,
}

/// Has no value, because the server has the waker and delivers by itself.
pub(crate) struct Owner(Infallible);

thread_local! {
    static WOKEN: pump::Woken<Owner> = const { RefCell::new(None) };
}

/// Wakes the pipe with this number; without one, has the loop look at the time and at what else was left.
struct Wakes {
    woken: Arc<Woken>,
    pipe: Option<ConnectionId>,
}

impl pump::WakerOwner for Owner {
    fn woken() -> &'static LocalKey<pump::Woken<Self>> {
        &WOKEN
    }

    fn is_bound(&self) -> bool {
        match self.0 {}
    }
}

impl Woken {
    /// For the loop of this thread, which calls `look`.
    pub(crate) fn new(look: &Function<'_, (), ()>) -> Result<Arc<Self>> {
        let wake = look.build_threadsafe_function().weak::<true>().build()?;
        let waker = LoopWaker::new(move || {
            // It fails only once the runtime is ending, when there is nothing left to deliver.
            let _ = wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        });
        Ok(Arc::new(Self { waker, pipes: Mutex::default(), pending: AtomicUsize::new(0) }))
    }

    pub(crate) fn waker(self: &Arc<Self>, pipe: Option<ConnectionId>) -> Waker {
        Waker::from(Arc::new(Wakes { woken: self.clone(), pipe }))
    }

    /// Makes a change on the thread of the loop, which looks when this has returned.
    pub(crate) fn during<R>(&self, change: impl FnOnce() -> R) -> R {
        let (result, woken) = collect(change);
        // Another server on this thread has its own loop to wake.
        let others = woken.iter().filter(|waker| !Arc::ptr_eq(waker, &self.waker));
        others.for_each(|waker| waker.wake_now());
        result
    }

    /// Takes the pipes that have something to deliver; `None` if the loop was not woken.
    pub(crate) fn take(&self) -> Option<Vec<ConnectionId>> {
        let is_woken = self.waker.is_woken() && self.waker.take() != 0;
        is_woken.then(|| std::mem::take(&mut *self.pipes()))
    }

    /// Makes the loop deliver to a pipe; without one, look at the time and at the other flags.
    pub(crate) fn wake(&self, pipe: Option<ConnectionId>) {
        if let Some(pipe) = pipe {
            let mut pipes = self.pipes();
            if !pipes.contains(&pipe) {
                pipes.push(pipe);
            }
        }
        self.schedule();
    }

    /// Another thread has a request: the process is not to end before it is answered.
    pub(crate) fn pends(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        self.schedule();
    }

    /// It is done with one.
    pub(crate) fn settled(&self) {
        self.pending.fetch_sub(1, Ordering::SeqCst);
        self.schedule();
    }

    /// Whether this is the thread of the loop.
    pub(crate) fn is_loop(&self) -> bool {
        self.waker.is_on_loop()
    }

    /// Whether other threads have requests.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst) > 0
    }

    /// Makes the loop look, unless it will do so anyway.
    pub(crate) fn schedule(&self) {
        self.waker.wake(WORK);
    }

    fn pipes(&self) -> MutexGuard<'_, Vec<ConnectionId>> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.wake(self.pipe);
    }
}
