//! Which URIs and lists clients watch, reported in order to the hosts that serve them.
//!
//! ```text
//!   a subscription comes or goes ──▶ its URI is marked, and the host gets Event::Interest; or what is registered changes
//!   settle_interest: one thread at a time takes marks ──▶ compares what is wanted with what was told ──▶ tells the difference
//! ```
//!
//! Law: no lock is held while the observer is told. What is wanted is looked up after the mark was taken, so the last thing
//! told agrees with the last change. A thread that finds another one telling leaves its marks to that.

use super::Engine;
use crate::catalog::{HandlerId, Route, Source};
use crate::connection::Event;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Is told what clients watch: see [`Engine::observe`].
pub trait Observer: Send + Sync {
    /// A URI or list is watched from now on, or no longer, or another handler serves it. One call at a time. It must return
    /// soon; it may call the engine, and what changes by that is told after it has returned.
    fn interest(&self, change: Interest<'_>);
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest<'a> {
    /// Whether one resource is watched, or which handler serves it.
    Uri {
        /// Its canonical URI.
        uri: &'a Arc<str>,
        /// Before.
        before: ResourceInterest,
        /// From now on.
        now: ResourceInterest,
    },
    /// Whether the lists of resources and templates are watched.
    Lists {
        /// From now on.
        on: bool,
    },
}

/// Whether a resource is watched, and which handler serves it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceInterest {
    /// Whether any client watches it.
    pub is_watched: bool,
    /// What serves it while it is watched; `None` if it is a constant, or gone.
    pub handler: Option<HandlerId>,
}

/// What was told, and what may have to be.
#[derive(Default)]
pub(super) struct Interests {
    observer: OnceLock<Arc<dyn Observer>>,
    state: Mutex<InterestState>,
}

#[derive(Default)]
struct InterestState {
    marked: HashSet<Arc<str>>,
    /// What was told of each URI that somebody waits for.
    told: HashMap<Arc<str>, Option<HandlerId>>,
    lists: bool,
    /// Whether the lists are to be told of again, even if nothing has changed.
    again: bool,
    is_telling: bool,
}

/// The next thing to tell.
enum Next {
    Uri(Arc<str>),
    Lists(bool),
}

impl Engine {
    /// Tells `observer` from now on what is watched; the next [`Engine::settle_interest`] tells it what is watched already.
    /// Only the first observer counts. Without one, subscriptions cost nothing here.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        if self.interests.observer.set(observer).is_ok() {
            // The observer is set: a subscription that is not in this list yet will mark its URI.
            self.interests.lock().marked.extend(self.hub.watched_uris());
        }
    }

    /// Tells the observer once more whether the lists are watched: for a provider that was mounted since.
    pub fn tell_lists_again(&self) {
        self.interests.lock().again = true;
        self.settle_interest();
    }

    /// Tells the observer what has changed since it was told last, unless another thread does. To be called without a lock,
    /// for [`Event::Interest`] and after [`Engine::apply`].
    pub fn settle_interest(&self) {
        let Some(observer) = self.interests.observer.get() else { return };
        if std::mem::replace(&mut self.interests.lock().is_telling, true) {
            return;
        }
        let telling = Telling(&self.interests);
        while let Some(next) = self.next_interest() {
            match next {
                Next::Uri(uri) => self.tell_interest(&**observer, &uri),
                Next::Lists(on) => observer.interest(Interest::Lists { on }),
            }
        }
        // `next_interest` has reset the flag under the lock: a thread that marks after that tells.
        std::mem::forget(telling);
    }

    /// Marks URIs whose first watcher has come or whose last has left. Gives the event for the host, if there is an observer.
    pub(crate) fn mark_interest<'m>(&self, uris: impl IntoIterator<Item = Arc<str>>) -> Option<Event<'m>> {
        self.interests.observer.get()?;
        self.interests.lock().marked.extend(uris);
        Some(Event::Interest)
    }

    /// Marks every URI that was told of: another handler may serve it now.
    pub(super) fn reroute_interest(&self) {
        if self.interests.observer.get().is_some() {
            let mut state = self.interests.lock();
            let InterestState { marked, told, .. } = &mut *state;
            marked.extend(told.keys().cloned());
        }
    }

    /// Takes a mark; if there is none, this thread has done telling.
    fn next_interest(&self) -> Option<Next> {
        let mut state = self.interests.lock();
        if let Some(uri) = state.marked.iter().next().cloned() {
            state.marked.remove(&uri);
            return Some(Next::Uri(uri));
        }
        let wanted = self.hub.hears_of_lists();
        if wanted != state.lists || std::mem::take(&mut state.again) {
            state.lists = wanted;
            return Some(Next::Lists(wanted));
        }
        state.is_telling = false;
        None
    }

    fn tell_interest(&self, observer: &dyn Observer, uri: &Arc<str>) {
        let is_watched = self.hub.watched(uri);
        let now =
            ResourceInterest { is_watched, handler: if is_watched { self.server_of(uri) } else { None } };
        let before = {
            let told = &mut self.interests.lock().told;
            let before = if is_watched { told.insert(uri.clone(), now.handler) } else { told.remove(uri) };
            ResourceInterest { is_watched: before.is_some(), handler: before.flatten() }
        };
        if before != now {
            observer.interest(Interest::Uri { uri, before, now });
        }
    }

    fn server_of(&self, normal: &str) -> Option<HandlerId> {
        match self.catalog().route(normal) {
            Route::Resource(entry) => match entry.source {
                Source::Handler(handler) => Some(handler),
                Source::Text(_) | Source::Bytes(_) => None,
            },
            Route::Template(entry, _) => Some(entry.handler),
            Route::Fallback(handler) => Some(handler),
            Route::Rejected { .. } | Route::None { .. } => None,
        }
    }
}

impl Interests {
    fn lock(&self) -> MutexGuard<'_, InterestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An observer that panics ends the telling of its own thread, not that of all.
struct Telling<'i>(&'i Interests);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.lock().is_telling = false;
    }
}

#[cfg(test)]
mod tests;
