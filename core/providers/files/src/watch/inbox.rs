//! The input of the watcher's thread: hints of the system, and the URIs and lists that clients watch.
//!
//! Law: a hint says where to look, not what has changed. So any number of hints about one path are one entry, their
//! order does not matter, and when there are too many, all of them are replaced by one for everything.

use super::seen::Before;
use mcp_resources_runtime::sync::{Condvar, Mutex};
use notify::event::{EventKind, ModifyKind, RenameMode};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::time::Instant;

/// Maximum number of paths that wait for a check. As many events as the system's own queue holds.
pub(super) const HINTS: usize = 16_384;

/// The possible changes at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// Bytes were written.
    pub(super) data: bool,
    /// The entry of this name was created, removed or replaced.
    pub(super) name: bool,
    /// The entry of this name may be gone, and the system's watch with it.
    pub(super) gone: bool,
}

/// The first subscription of a URI, or the end of the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileChange {
    pub(super) on: bool,
    /// The state that the first watching client may know.
    pub(super) before: Before,
}

/// Shared by the threads of clients, the system's watcher and ours.
#[derive(Debug)]
pub(super) struct WatchInbox {
    state: Mutex<InboxState>,
    ready: Condvar,
    max: usize,
}

#[derive(Debug, Default)]
struct InboxState {
    /// All URIs that are watched, for a thread that begins.
    wanted: HashSet<Arc<str>>,
    lists: bool,
    /// The changes since the thread last checked.
    changes: HashMap<Arc<str>, FileChange>,
    lists_changed: bool,
    hints: HashMap<PathBuf, Hint>,
    lost: bool,
    is_running: bool,
}

/// The input since the last call.
#[derive(Debug, Default)]
pub(super) struct ChangeBatch {
    pub(super) changes: HashMap<Arc<str>, FileChange>,
    pub(super) lists: bool,
    pub(super) hints: HashMap<PathBuf, Hint>,
    /// Hints were lost: anything may have changed.
    pub(super) lost: bool,
}

impl WatchInbox {
    /// At most `max` paths wait.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), ready: Condvar::new(), max })
    }

    /// The same interests for a forked process, in which no thread of this inbox is running. A lock that was held at
    /// the fork is never released, so its data are left behind.
    pub(super) fn forked(&self) -> Arc<Self> {
        let own = Self::new(self.max);
        if let Some(state) = self.state.try_lock() {
            let mut copy = own.state.lock();
            copy.wanted = state.wanted.clone();
            copy.lists = state.lists;
        }
        own
    }

    /// Starts or stops watching a URI. Returns whether a thread must be started.
    pub(super) fn interest(&self, uri: &Arc<str>, change: FileChange) -> bool {
        let mut state = self.state.lock();
        if change.on {
            state.wanted.insert(uri.clone());
        } else {
            state.wanted.remove(uri);
        }
        state.changes.insert(uri.clone(), change);
        self.changed(state)
    }

    /// Starts or stops watching the lists. Returns whether a thread must be started.
    pub(super) fn lists(&self, on: bool) -> bool {
        let mut state = self.state.lock();
        state.lists = on;
        state.lists_changed = true;
        self.changed(state)
    }

    /// Whether a thread has begun and has not ended.
    #[cfg(test)]
    pub(super) fn is_running(&self) -> bool {
        self.state.lock().is_running
    }

    fn changed(&self, mut state: MutexGuard<'_, InboxState>) -> bool {
        if state.is_running {
            self.ready.notify_one();
            return false;
        }
        state.is_running = !state.wanted.is_empty() || state.lists;
        if !state.is_running {
            state.changes.clear();
            return false;
        }
        // A thread that begins knows of nothing.
        let InboxState { wanted, changes, .. } = &mut *state;
        for uri in wanted.iter() {
            changes.entry(uri.clone()).or_insert(FileChange { on: true, before: Before::unknown() });
        }
        true
    }

    /// The thread could not begin; another interest tries again.
    pub(super) fn failed(&self) {
        self.state.lock().is_running = false;
    }

    /// Whether the thread is to end. From then on another one may be started.
    pub(super) fn ends(&self, is_dead: bool) -> bool {
        let mut state = self.state.lock();
        if is_dead || (state.wanted.is_empty() && !state.lists) {
            state.is_running = false;
            state.changes.clear();
            state.hints = HashMap::new();
            state.lost = false;
        }
        !state.is_running
    }

    /// Waits until there is something, or until `deadline`.
    pub(super) fn take(&self, deadline: Instant) -> ChangeBatch {
        let mut state = self.state.lock();
        loop {
            let is_idle =
                state.changes.is_empty() && state.hints.is_empty() && !state.lost && !state.lists_changed;
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_idle || left.is_zero() {
                state.lists_changed = false;
                return ChangeBatch {
                    changes: std::mem::take(&mut state.changes),
                    lists: state.lists,
                    hints: std::mem::take(&mut state.hints),
                    lost: std::mem::take(&mut state.lost),
                };
            }
            state = self.ready.wait_for(state, left).0;
        }
    }

    /// The system's watcher has failed or overflowed.
    pub(super) fn lose(&self) {
        let mut state = self.state.lock();
        state.hints.clear();
        state.lost = true;
        self.ready.notify_one();
    }

    fn hint(&self, path: PathBuf, hint: Hint) {
        let mut state = self.state.lock();
        if state.lost || !state.is_running {
            return;
        }
        let is_first = state.hints.is_empty();
        let is_full = state.hints.len() >= self.max;
        match state.hints.get_mut(&path) {
            Some(known) => known.add(hint),
            None if is_full => {
                state.hints.clear();
                state.lost = true;
            }
            None => drop(state.hints.insert(path, hint)),
        }
        if is_first {
            self.ready.notify_one();
        }
    }
}

/// The callback of the system's watcher, called on its own thread.
#[derive(Debug)]
pub(super) struct EventSink(pub(super) Arc<WatchInbox>);

impl notify::EventHandler for EventSink {
    fn handle_event(&mut self, event: notify::Result<notify::Event>) {
        let Ok(event) = event else { return self.0.lose() };
        if event.need_rescan() {
            return self.0.lose();
        }
        let Some(hint) = Hint::from_kind(event.kind) else { return };
        for path in event.paths {
            self.0.hint(path, hint);
        }
    }
}

impl Hint {
    /// Converts an event; `None` if it does not affect a reader.
    fn from_kind(kind: EventKind) -> Option<Self> {
        let (data, name, gone) = match kind {
            EventKind::Access(_) => return None,
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => {
                (false, true, false)
            }
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_)) => (false, true, true),
            EventKind::Modify(ModifyKind::Data(_)) => (true, false, false),
            EventKind::Modify(ModifyKind::Metadata(_)) => (false, false, false),
            EventKind::Modify(_) | EventKind::Any | EventKind::Other => (true, true, true),
        };
        Some(Self { data, name, gone })
    }

    fn add(&mut self, other: Self) {
        self.data |= other.data;
        self.name |= other.name;
        self.gone |= other.gone;
    }
}
