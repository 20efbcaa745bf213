//! How what the engine wakes reaches the event loop: from any thread, and without JavaScript.
//!
//! A waker sets a flag here and calls a function that may be called from any thread; that function makes the loop look at the
//! flags, and does not keep the process alive. Inside [`Host::delivering`](crate::server::Host::delivering) nothing is rung: what was woken
//! is delivered when the change is made, before the call returns.
//!
//! Law: a waker waits for nothing and never enters JavaScript.

use mcp_resources_engine::hub::ConnectionId;
use napi::Status;
use napi::bindgen_prelude::{Function, Result};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::ThreadId;

/// What may be called on any thread, without keeping the process alive.
type Ring = ThreadsafeFunction<(), (), (), Status, false, true>;

/// What a server's wakers have left for the loop.
pub(crate) struct Woken {
    thread: ThreadId,
    /// Whether a change is being made on the thread of the loop. Written there alone.
    is_change: AtomicBool,
    /// The loop was rung and has not looked since.
    is_rung: AtomicBool,
    /// The pipes that have something to deliver, in order. A connection is here once.
    pipes: Mutex<Vec<ConnectionId>>,
    /// How many requests other threads have, that are to be written here.
    pending: AtomicUsize,
    ring: Ring,
}

/// Wakes the pipe with this number; without one, has the loop look at the time and at what else was left.
struct Says {
    woken: Arc<Woken>,
    pipe: Option<ConnectionId>,
}

impl Woken {
    /// For the loop of this thread, which calls `look`.
    pub(crate) fn new(look: &Function<'_, (), ()>) -> Result<Arc<Self>> {
        let ring = look.build_threadsafe_function().weak::<true>().build()?;
        let (is_change, is_rung, pipes, pending) = Default::default();
        Ok(Arc::new(Self { thread: std::thread::current().id(), is_change, is_rung, pipes, pending, ring }))
    }

    pub(crate) fn waker(self: &Arc<Self>, pipe: Option<ConnectionId>) -> Waker {
        Waker::from(Arc::new(Says { woken: self.clone(), pipe }))
    }

    /// Makes a change on the thread of the loop, which looks when this has returned.
    pub(crate) fn during<R>(&self, change: impl FnOnce() -> R) -> R {
        let around = Around(&self.is_change, self.is_change.load(Ordering::Relaxed));
        self.is_change.store(true, Ordering::Relaxed);
        let result = change();
        drop(around);
        result
    }

    /// Takes the pipes that have something to deliver; `None` if nothing was said.
    pub(crate) fn take(&self) -> Option<Vec<ConnectionId>> {
        let is_rung = self.is_rung.load(Ordering::Relaxed) && self.is_rung.swap(false, Ordering::SeqCst);
        is_rung.then(|| std::mem::take(&mut *self.pipes()))
    }

    /// Makes the loop deliver to a pipe; without one, look at the time and at the other flags.
    pub(crate) fn wake(&self, pipe: Option<ConnectionId>) {
        if let Some(pipe) = pipe {
            let mut pipes = self.pipes();
            if !pipes.contains(&pipe) {
                pipes.push(pipe);
            }
        }
        self.say();
    }

    /// Another thread has a request: the process is not to end before it is answered.
    pub(crate) fn pends(&self) {
        self.pending.fetch_add(1, Ordering::SeqCst);
        self.say();
    }

    /// It is done with one.
    pub(crate) fn settled(&self) {
        self.pending.fetch_sub(1, Ordering::SeqCst);
        self.say();
    }

    /// Whether this is the thread of the loop.
    pub(crate) fn is_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Whether other threads have requests.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.load(Ordering::SeqCst) > 0
    }

    /// Makes the loop look, unless it will do so anyway.
    pub(crate) fn say(&self) {
        let was_rung = self.is_rung.swap(true, Ordering::SeqCst);
        let is_seen = self.is_change.load(Ordering::Relaxed) && self.is_loop();
        if !was_rung && !is_seen {
            // It fails only once the runtime is ending, when there is nothing left to deliver.
            let _ = self.ring.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    fn pipes(&self) -> MutexGuard<'_, Vec<ConnectionId>> {
        self.pipes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Restores what was so around a change, also if it panics.
struct Around<'w>(&'w AtomicBool, bool);

impl Drop for Around<'_> {
    fn drop(&mut self) {
        self.0.store(self.1, Ordering::Relaxed);
    }
}

impl Wake for Says {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.wake(self.pipe);
    }
}
