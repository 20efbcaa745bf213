//! The URIs and lists that clients watch, reported in order to the runtimes that serve them.
//!
//! ```text
//!   a watch is added or removed ──▶ its URI is marked, the runtime gets Event::Interest ─┐
//!   the catalogue changes ──▶ all watched URIs are marked ────────────────────────────┴─▶ Engine::settle_interest:
//!                              one thread at a time takes each mark, and reports what differs from the last report
//! ```
//!
//! Law: no lock is held while the observer is called. The state of a URI is read after its mark was taken, so the last report
//! agrees with the last change. A thread that finds another one reporting leaves its marks to that one.

use super::Engine;
use crate::catalog::{CatalogRoute, HandlerId, ItemSource};
use crate::connection::Event;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Receives changes of the URIs and lists that clients watch: see [`Engine::observe`].
pub trait Observer: Send + Sync {
    /// Reports that a URI or list gained its first watcher or lost its last one, or that another handler serves it.
    /// Calls never overlap. Must return quickly. It may call the engine; changes made by that are reported after it
    /// returns.
    fn interest(&self, change: Interest<'_>);
}

/// A change of interest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest<'a> {
    /// A resource gained or lost its watchers, or another handler serves it.
    Uri {
        /// Its canonical URI.
        uri: &'a Arc<str>,
        /// The state before the change.
        before: ResourceInterest,
        /// The state from now on.
        now: ResourceInterest,
    },
    /// The lists of resources and templates gained or lost their watchers.
    Lists {
        /// Whether they are watched from now on.
        on: bool,
    },
}

/// Whether a resource is watched, and which handler serves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceInterest {
    /// Whether any client watches it.
    pub is_watched: bool,
    /// The handler that serves it while it is watched; `None` for a constant, or if it no longer exists.
    pub handler: Option<HandlerId>,
}

/// The reported interest, and the changes that are still to be reported.
#[derive(Default)]
pub(super) struct Interests {
    observer: OnceLock<Arc<dyn Observer>>,
    state: Mutex<InterestState>,
}

#[derive(Default)]
struct InterestState {
    marked: HashSet<Arc<str>>,
    /// The watched URIs, each with the handler that was reported last.
    reported: HashMap<Arc<str>, Option<HandlerId>>,
    lists: bool,
    /// Whether to report the lists again, even without a change.
    again: bool,
    is_reporting: bool,
}

/// The next change to report.
enum NextComparison {
    Uri(Arc<str>),
    Lists(bool),
}

impl Engine {
    /// Sets the observer of watched URIs and lists. The next [`Engine::settle_interest`] reports what is already
    /// watched. Only the first observer is used. Without one, subscriptions cause no work here.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        if self.interests.observer.set(observer).is_ok() {
            // The observer is set: a subscription that is missing from this list will mark its own URI.
            self.interests.lock().marked.extend(self.hub.watched_uris());
        }
    }

    /// Reports again whether the lists are watched, for a provider that was mounted since.
    pub fn tell_lists_again(&self) {
        self.interests.lock().again = true;
        self.settle_interest();
    }

    /// Reports the changes since the last report to the observer, unless another thread is doing so. Call it without
    /// holding a lock, for [`Event::Interest`] and after [`Engine::apply`].
    pub fn settle_interest(&self) {
        let Some(observer) = self.interests.observer.get() else { return };
        if std::mem::replace(&mut self.interests.lock().is_reporting, true) {
            return;
        }
        let flag = ReportingFlag(&self.interests);
        while let Some(next) = self.next_interest() {
            match next {
                NextComparison::Uri(uri) => self.report_interest(&**observer, &uri),
                NextComparison::Lists(on) => observer.interest(Interest::Lists { on }),
            }
        }
        // `next_interest` has reset the flag under the lock; a thread that marks a change after that reports it itself.
        std::mem::forget(flag);
    }

    /// Marks URIs that gained their first watcher or lost their last one. Returns the event for the runtime, if there is
    /// an observer.
    pub(crate) fn mark_interest<'m>(&self, uris: impl IntoIterator<Item = Arc<str>>) -> Option<Event<'m>> {
        self.interests.observer.get()?;
        self.interests.lock().marked.extend(uris);
        Some(Event::Interest)
    }

    /// Marks every reported URI, because another handler may serve it now.
    pub(super) fn reroute_interest(&self) {
        if self.interests.observer.get().is_some() {
            let mut state = self.interests.lock();
            let InterestState { marked, reported, .. } = &mut *state;
            marked.extend(reported.keys().cloned());
        }
    }

    /// Takes the next change to report. Without one, clears the flag of the reporting thread.
    fn next_interest(&self) -> Option<NextComparison> {
        let mut state = self.interests.lock();
        if let Some(uri) = state.marked.iter().next().cloned() {
            state.marked.remove(&uri);
            return Some(NextComparison::Uri(uri));
        }
        let wanted = self.hub.has_list_watchers();
        if wanted != state.lists || std::mem::take(&mut state.again) {
            state.lists = wanted;
            return Some(NextComparison::Lists(wanted));
        }
        state.is_reporting = false;
        None
    }

    fn report_interest(&self, observer: &dyn Observer, uri: &Arc<str>) {
        let is_watched = self.hub.watched(uri);
        let now =
            ResourceInterest { is_watched, handler: if is_watched { self.server_of(uri) } else { None } };
        let before = {
            let reported = &mut self.interests.lock().reported;
            let before =
                if is_watched { reported.insert(uri.clone(), now.handler) } else { reported.remove(uri) };
            ResourceInterest { is_watched: before.is_some(), handler: before.flatten() }
        };
        if before != now {
            observer.interest(Interest::Uri { uri, before, now });
        }
    }

    fn server_of(&self, normal: &str) -> Option<HandlerId> {
        match self.catalog().route(normal) {
            CatalogRoute::Resource(entry) => match entry.source {
                ItemSource::Handler(handler) => Some(handler),
                ItemSource::Text(_) | ItemSource::Bytes(_) => None,
            },
            CatalogRoute::Template(entry, _) => Some(entry.handler),
            CatalogRoute::Fallback(handler) => Some(handler),
            CatalogRoute::Rejected { .. } | CatalogRoute::None { .. } => None,
        }
    }
}

impl Interests {
    fn lock(&self) -> MutexGuard<'_, InterestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Clears the flag of the reporting thread, also if the observer panics, so that other threads can go on reporting.
struct ReportingFlag<'i>(&'i Interests);

impl Drop for ReportingFlag<'_> {
    fn drop(&mut self) {
        self.0.lock().is_reporting = false;
    }
}

#[cfg(test)]
mod tests;
