//! The one server that a provider is in, and a thread that works while somebody watches.
//!
//! ```text
//!   nothing watched ──interest──▶ a thread calls `look` again and again ──interest ends, or unmounted──▶ no thread
//! ```
//!
//! Law: the thread begins with the first interest and ends with the last; there is one at a time, in the process that
//! is asked. The lock is a leaf: no file is read, no notification sent and nothing logged while it is held.

use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_runtime::provider::{Feed, InterestChange};
use mcp_resources_runtime::sync::{Condvar, Mutex, RwLock};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The one server that a provider is in.
#[derive(Debug, Default)]
pub struct OwnWatch(RwLock<Option<Feed>>);

impl OwnWatch {
    /// Takes the feed of a mount.
    ///
    /// # Errors
    /// The provider `name` is in a server already.
    pub fn mount(&self, name: &str, feed: Feed) -> Result<(), RegistrationError> {
        let mut own = self.0.write();
        if own.as_ref().is_some_and(Feed::is_alive) {
            let reason = "it is mounted already; make another for each server".into();
            return Err(RegistrationError::Mount { mount: name.into(), reason });
        }
        *own = Some(feed);
        Ok(())
    }

    /// The feed of the last mount.
    pub fn feed(&self) -> Option<Feed> {
        self.0.read().clone()
    }
}

/// The watched URIs, and their thread.
#[derive(Debug, Default)]
pub struct ProviderWatching {
    state: Mutex<WatchState>,
    changed: Condvar,
}

/// A thread of a process: after a fork the child starts its own.
#[derive(Clone, Copy, Debug, PartialEq)]
struct WatchThread {
    process: u32,
    number: u64,
}

#[derive(Debug, Default)]
struct WatchState {
    watched: WatchedValue,
    /// The thread, if one runs.
    thread: Option<WatchThread>,
    /// The number of threads started so far.
    begun: u64,
}

/// The watched URIs and lists.
#[derive(Clone, Debug, Default)]
pub struct WatchedValue {
    /// In canonical form.
    pub uris: BTreeSet<Arc<str>>,
    /// Whether the lists are watched.
    pub lists: bool,
}

impl WatchedValue {
    fn is_empty(&self) -> bool {
        self.uris.is_empty() && !self.lists
    }
}

impl ProviderWatching {
    /// Prepares for a new mount: a thread of an earlier one ends by itself.
    pub fn begin_anew(&self) {
        self.state.lock().thread = None;
    }

    /// The URIs and lists that are watched now.
    pub fn watched(&self) -> WatchedValue {
        self.state.lock().watched.clone()
    }

    /// Records a change of interest. The first interest starts a thread, which calls the closure that `looks`
    /// makes. The closure is given what is watched, and returns how long to wait until it is called again.
    pub fn interest<L>(
        self: &Arc<Self>,
        change: InterestChange<'_>,
        feed: Option<Feed>,
        name: &str,
        looks: impl FnOnce() -> L,
    ) where
        L: FnMut(&Feed, &WatchedValue) -> Duration + Send + 'static,
    {
        let mut state = self.state.lock();
        let watched = &mut state.watched;
        match change {
            InterestChange::Uri { uri, on: true, .. } => drop(watched.uris.insert(uri.clone())),
            InterestChange::Uri { uri, on: false, .. } => drop(watched.uris.remove(uri)),
            InterestChange::Lists { on } => watched.lists = on,
        }
        let process = std::process::id();
        if state.watched.is_empty() {
            self.changed.notify_all();
        } else if state.thread.is_some_and(|thread| thread.process == process) {
            // What is new is looked at now, so that little happens before.
            self.changed.notify_all();
        } else if let Some(feed) = feed {
            state.begun += 1;
            let own = WatchThread { process, number: state.begun };
            let watching = self.clone();
            let look = looks();
            let thread = std::thread::Builder::new().name(name.into());
            let begun = thread.spawn(move || watching.work(&feed, own, look));
            state.thread = begun.is_ok().then_some(own);
        }
    }

    fn work(&self, feed: &Feed, own: WatchThread, mut look: impl FnMut(&Feed, &WatchedValue) -> Duration) {
        loop {
            let mut state = self.state.lock();
            if state.watched.is_empty() || state.thread != Some(own) || !feed.is_alive() {
                // Under the same lock: a later interest starts another thread.
                state.thread = state.thread.filter(|other| *other != own);
                return;
            }
            let watched = state.watched.clone();
            drop(state);
            let wait = look(feed, &watched);
            let state = self.state.lock();
            if !state.watched.is_empty() && state.thread == Some(own) {
                drop(self.changed.wait_for(state, wait));
            }
        }
    }
}
