//! Reports to each provider which of its resources clients watch.
//!
//! Law: the engine reports one change at a time. The last report for each URI is stored until its opposite, so a
//! provider also gets a report when it is unmounted, or when another provider takes over a URI.

use super::mounts::{MountPart, MountedProvider, Mounts};
use super::request::InterestChange;
use super::watches::ProviderWatches;
use crate::sync::Mutex;
use mcp_resources_engine::engine::{self, Engine};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, OnceLock, Weak};

/// Called with a URI and `true` when the first client watches it, and with `false` when the last one stops.
pub type WatchFn = Box<dyn Fn(&str, bool) + Send + Sync>;

/// The reports so far.
#[derive(Default)]
pub(super) struct ReportedInterest {
    uris: Mutex<HashMap<Arc<str>, MountPart>>,
    watch: OnceLock<WatchFn>,
    pub(super) watches: ProviderWatches,
}

/// The engine's observer. Holds only a weak reference to the providers.
struct InterestObserver(Weak<Mounts>);

impl engine::Observer for InterestObserver {
    fn interest(&self, change: engine::Interest<'_>) {
        let Some(mounts) = self.0.upgrade() else { return };
        match change {
            engine::Interest::Uri { uri, before, now } => {
                if before.is_watched != now.is_watched
                    && let Some(watch) = mounts.interest.watch.get()
                {
                    // The panic hook has already printed the location.
                    let _ = catch_unwind(AssertUnwindSafe(|| watch(uri, now.is_watched)));
                }
                let part = now.handler.and_then(|handler| mounts.find(handler));
                mounts.interest.reroute(uri, part);
            }
            engine::Interest::Lists { on } => {
                mounts.each(|mounted| mounted.report_lists(on));
            }
        }
    }
}

impl Mounts {
    /// Sets the function to call when a URI gains its first watcher (`true`) or loses its last one, in order. Only the
    /// first function is used; set it before [`Mounts::serve`].
    pub fn watch_with(&self, watch: WatchFn) {
        let _ = self.interest.watch.set(watch);
    }

    /// Starts observing once there is a receiver: until then subscriptions cost nothing here.
    pub(super) fn observe(self: &Arc<Self>, engine: &Engine) {
        engine.observe(Arc::new(InterestObserver(Arc::downgrade(self))));
    }
}

impl ReportedInterest {
    /// Whether there is a function of [`Mounts::watch_with`].
    pub(super) fn has_watch(&self) -> bool {
        self.watch.get().is_some()
    }

    /// Records that `part` serves the watched `uri` from now on; `None` if the URI is no longer watched, or no provider
    /// serves it.
    fn reroute(&self, uri: &Arc<str>, part: Option<MountPart>) {
        let before = match &part {
            Some(part) => self.uris.lock().insert(uri.clone(), part.clone()),
            None => self.uris.lock().remove(uri),
        };
        let is_same = |one: &MountPart, other: &MountPart| one.is_same(other);
        if before.as_ref().zip(part.as_ref()).is_some_and(|(one, other)| is_same(one, other)) {
            return;
        }
        for (part, on) in before.iter().map(|part| (part, false)).chain(part.iter().map(|part| (part, true)))
        {
            part.each(&mut |mounted, route| mounted.report(InterestChange::Uri { uri, route, on }));
        }
    }
}

impl MountedProvider {
    /// Reports a change to its provider, ignoring panics.
    pub(super) fn report(&self, change: InterestChange<'_>) {
        // The panic hook has already printed the location.
        let _ = catch_unwind(AssertUnwindSafe(|| self.provider.interest(change)));
    }

    /// Reports whether the lists are watched, if that has changed.
    fn report_lists(&self, on: bool) {
        let mut reported = self.lists();
        if reported.is_some_and(|before| before != on) {
            *reported = Some(on);
            self.report(InterestChange::Lists { on });
        }
    }

    /// Reports the end of watching lists when the mount ends.
    pub(super) fn end_lists(&self) {
        let mut reported = self.lists();
        if reported.take() == Some(true) {
            self.report(InterestChange::Lists { on: false });
        }
    }

    fn lists(&self) -> MutexGuard<'_, Option<bool>> {
        self.lists.lock()
    }
}
