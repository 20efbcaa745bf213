//! What providers report to the server's author without a request at hand.
//!
//! Law: the lock is a leaf: no host is called while it is held. A message that comes before any host is known waits for one.

use super::mounts::Mounts;
use crate::transport::{Host, Peer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How many messages wait for a host; more are dropped.
const WAITING: usize = 16;

/// Writes one message to the author's log.
pub type LogFn = Box<dyn Fn(&str) + Send + Sync>;

/// Where messages go: to the function of [`Mounts::log_with`], else to the host that last reported interest, and before any
/// has, to the host of the first request.
#[derive(Default)]
pub(super) struct Log {
    state: Mutex<LogState>,
    /// Whether there is a host, as far as is known without the lock.
    has_host: AtomicBool,
    write: std::sync::OnceLock<LogFn>,
}

#[derive(Default)]
struct LogState {
    host: Option<Weak<dyn Host>>,
    waiting: Vec<String>,
}

impl Mounts {
    /// Sends what providers report outside of requests to `write`, which any thread may call. Without it the log of the
    /// client's host is used whose interest was reported last, or that sent the first request. Only the first function counts.
    pub fn log_with(&self, write: LogFn) {
        let _ = self.log.write.set(write);
    }
}

impl Log {
    /// Has log messages go to the host of `peer` if there is no other.
    pub(super) fn follow_first(&self, peer: &Peer) {
        if !self.has_host.load(Ordering::Relaxed) {
            self.follow(peer);
        }
    }

    /// From now on log messages go to the host of `peer`, including those that were waiting.
    pub(super) fn follow(&self, peer: &Peer) {
        let waiting = {
            let mut state = self.lock();
            state.host = Some(Arc::downgrade(peer.host()));
            self.has_host.store(true, Ordering::Relaxed);
            std::mem::take(&mut state.waiting)
        };
        for message in waiting {
            peer.host().report(&message);
        }
    }

    /// Writes one message.
    pub(super) fn write(&self, message: String) {
        if let Some(write) = self.write.get() {
            return write(&message);
        }
        let host = {
            let mut state = self.lock();
            let host = state.host.as_ref().and_then(Weak::upgrade);
            if host.is_none() {
                self.has_host.store(false, Ordering::Relaxed);
                if state.waiting.len() < WAITING {
                    state.waiting.push(message.clone());
                }
            }
            host
        };
        if let Some(host) = host {
            host.report(&message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
