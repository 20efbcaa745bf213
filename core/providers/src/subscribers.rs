//! The subscribers of a provider with a search index: digests of what they last read, and state that belongs to one
//! process.
//!
//! Law: no I/O, no lock but that of [`PerProcess`], no notification. The caller notifies after releasing its own lock.

use mcp_resources_runtime::provider::Feed;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

/// The number of reads whose digest is kept.
const READS: usize = 4_096;

/// Digests of what subscribers have seen. A change is reported if the digest differs.
#[derive(Debug, Default)]
pub(crate) struct Subscribers {
    /// The last known digest of each watched URI. `None` counts as changed.
    watched: HashMap<Arc<str>, Option<u64>>,
    lists: bool,
    /// Whether a request was answered before everything was indexed.
    is_partly_seen: bool,
    /// The digest of the lists at the last report.
    reported: Option<u64>,
    /// The digest of the last read contents, by the digest of the canonical URI.
    reads: HashMap<u64, u64>,
}

/// The changes to notify.
pub(crate) struct ChangeReport {
    updated: Vec<Arc<str>>,
    is_listed_otherwise: bool,
}

/// A value for each process: after a fork the child makes its own.
#[derive(Debug)]
pub(crate) struct PerProcess<T>(Mutex<Option<(u32, Arc<T>)>>);

/// A digest of bytes, the same in every process.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    hasher.finish()
}

impl Subscribers {
    /// Begins or ends the watch of a URI, or of the lists for `None`.
    pub(crate) fn watch(&mut self, uri: Option<&Arc<str>>, on: bool) {
        match uri {
            None => self.lists = on,
            Some(uri) if on => {
                let before = self.reads.get(&digest(uri.as_bytes())).copied();
                self.watched.insert(uri.clone(), before);
            }
            Some(uri) => drop(self.watched.remove(uri)),
        }
    }

    /// Whether there is any.
    pub(crate) fn is_empty(&self) -> bool {
        self.watched.is_empty() && !self.lists
    }

    /// Keeps the digest of the contents read at a canonical URI, for a later [`watch`](Self::watch) of it.
    pub(crate) fn has_read(&mut self, uri: &str, seen: u64) {
        if self.reads.len() >= READS {
            self.reads.clear();
        }
        self.reads.insert(digest(uri.as_bytes()), seen);
    }

    /// Notes that a request is answered before everything was indexed: the next report announces the lists.
    pub(crate) fn has_seen_a_part(&mut self) {
        self.is_partly_seen = true;
    }

    /// Compares with what there is now: the digest of the lists, and of each watched URI.
    pub(crate) fn compare(&mut self, lists: u64, now: impl Fn(&str) -> u64) -> ChangeReport {
        let mut updated = Vec::new();
        for (uri, known) in &mut self.watched {
            let now = now(uri);
            if *known != Some(now) {
                *known = Some(now);
                updated.push(uri.clone());
            }
        }
        let is_listed_otherwise = self.reported.replace(lists).is_some_and(|before| before != lists)
            | std::mem::take(&mut self.is_partly_seen);
        ChangeReport { updated, is_listed_otherwise }
    }
}

impl ChangeReport {
    /// Notifies the subscribers.
    pub(crate) fn send(self, feed: &Feed) {
        for uri in self.updated {
            // The URI is in canonical form, so it is valid.
            let _ = feed.updated(&uri);
        }
        if self.is_listed_otherwise {
            feed.list_changed();
        }
    }
}

impl<T> PerProcess<T> {
    /// The value of this process, made on first use.
    pub(crate) fn get(&self, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        match &*own {
            Some((of, value)) if *of == process => value.clone(),
            _ => {
                let value = make();
                // A thread of the parent may hold locks of its value for ever, and its files belong to the parent.
                std::mem::forget(own.replace((process, value.clone())));
                value
            }
        }
    }

    /// Drops the value of this process, if there is one: the next use creates another.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<T> Default for PerProcess<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}
