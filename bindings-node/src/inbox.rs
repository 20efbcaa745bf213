//! What other threads, and wakers, have for the event loop: owned, in order, taken in batches.
//!
//! Law: whoever leaves something never waits for JavaScript. The loop is woken once for a batch.

use crate::request::Work;
use mcp_resources::http::{Denied, Exchange};
use mcp_resources::hub::ConnectionId;
use mcp_resources::transport::http::TokenCheck;
use napi::Status;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What calls `work` on the event loop, from any thread. It keeps the process alive.
pub(crate) type Bell = ThreadsafeFunction<(), (), (), Status, false>;

/// Where the verdict on a token goes.
pub(crate) type Verdict = oneshot::Sender<Result<TokenCheck, Denied>>;

/// See the module.
#[derive(Default)]
pub(crate) struct Inbox {
    items: Mutex<Vec<Item>>,
    /// Whether the loop is to look already.
    is_due: AtomicBool,
    bell: Mutex<Option<Bell>>,
}

/// Something for the event loop.
pub(crate) enum Item {
    Work(ConnectionId, Option<Exchange>, Box<Work<'static>>),
    /// The hub has something for these.
    Woken(Vec<ConnectionId>),
    /// A token is to be verified.
    Verify(String, Verdict),
    /// For the author's log.
    Misuse(String),
    /// There is something to deliver on the response with this number.
    Ring(f64),
    /// The server has stopped.
    Ended,
}

impl Inbox {
    pub(crate) fn new(bell: Option<Bell>) -> Self {
        Self { bell: Mutex::new(bell), ..Self::default() }
    }

    /// Leaves something, and wakes the loop.
    pub(crate) fn leave(&self, items: impl IntoIterator<Item = Item>) {
        lock(&self.items).extend(items);
        if self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Some(bell) = &*lock(&self.bell) {
            bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// Leaves something on the thread of the loop, which asks [`Inbox::is_due`] before it rests.
    pub(crate) fn leave_quietly(&self, item: Item) {
        lock(&self.items).push(item);
    }

    /// Whether the loop is to be told to look, as nobody else has.
    pub(crate) fn is_due(&self) -> bool {
        !lock(&self.items).is_empty() && !self.is_due.swap(true, Ordering::AcqRel)
    }

    /// Takes everything.
    pub(crate) fn take(&self) -> Vec<Item> {
        self.is_due.store(false, Ordering::Release);
        std::mem::take(&mut *lock(&self.items))
    }

    /// The process need not live for it any longer.
    pub(crate) fn close(&self) {
        let bell = lock(&self.bell).take();
        drop(bell);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
