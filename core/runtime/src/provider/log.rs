//! Log messages of providers outside of requests.
//!
//! Law: the lock is a leaf: no runtime is called while it is held. Messages are queued until a runtime is known.

use super::mounts::Mounts;
use crate::sync::Mutex;
use crate::transport::EventHandler;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Maximum number of queued messages; more are dropped.
const WAITING: usize = 16;

/// Writes one message to the log.
pub type LogFn = Box<dyn Fn(&str) + Send + Sync>;

/// The destination of messages: the function of [`Mounts::log_with`], else the runtime that last reported interest, or
/// before any has, the first one that serves.
#[derive(Default)]
pub(super) struct ProviderLog {
    state: Mutex<LogState>,
    /// Whether a runtime is known. Read without the lock.
    has_host: AtomicBool,
    write: std::sync::OnceLock<LogFn>,
}

#[derive(Default)]
struct LogState {
    event_handler: Option<Weak<dyn EventHandler>>,
    waiting: Vec<String>,
}

impl Mounts {
    /// Sets the function that logs messages of providers outside of requests; any thread may call it. Without it
    /// messages go to the runtime of the client that was last reported to watch, or that sent the first request. Only the
    /// first function is used.
    pub fn log_with(&self, write: LogFn) {
        let _ = self.log.write.set(write);
    }

    /// Logs a message that belongs to no request, as those of providers.
    #[doc(hidden)]
    pub fn report(&self, message: String) {
        self.log.write(message);
    }
}

impl ProviderLog {
    /// Logs to a runtime if no other one is known.
    pub(super) fn follow_first(&self, event_handler: &Arc<dyn EventHandler>) {
        if !self.has_host.load(Ordering::Relaxed) {
            self.follow(event_handler);
        }
    }

    /// Logs to a runtime from now on, including queued messages.
    pub(super) fn follow(&self, event_handler: &Arc<dyn EventHandler>) {
        let waiting = {
            let mut state = self.state.lock();
            state.event_handler = Some(Arc::downgrade(event_handler));
            self.has_host.store(true, Ordering::Relaxed);
            std::mem::take(&mut state.waiting)
        };
        for message in waiting {
            event_handler.report(&message);
        }
    }

    /// Writes one message.
    pub(super) fn write(&self, message: String) {
        if let Some(write) = self.write.get() {
            return write(&message);
        }
        let event_handler = {
            let mut state = self.state.lock();
            let event_handler = state.event_handler.as_ref().and_then(Weak::upgrade);
            if event_handler.is_none() {
                self.has_host.store(false, Ordering::Relaxed);
                if state.waiting.len() < WAITING {
                    state.waiting.push(message.clone());
                }
            }
            event_handler
        };
        if let Some(event_handler) = event_handler {
            event_handler.report(&message);
        }
    }
}
