//! The watches of single resources and templates, for a runtime that calls functions on its own thread or event loop.
//!
//! Law: at most one change is queued for each URI, and two opposite changes cancel out. So the queue is limited by the
//! number of watches now and at the runtime's last take.

use super::mounts::Mounts;
use crate::sync::Mutex;
use mcp_resources_engine::catalog::CatalogRoute;
use mcp_resources_template::uri;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::task::Waker;

/// A URI gained its first watcher, or lost its last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchChange {
    /// The name of the resource or template that serves it: see [`Mounts::watch_changes`].
    pub name: Arc<str>,
    /// In canonical form.
    pub uri: Arc<str>,
    /// Whether it is watched from now on.
    pub is_watched: bool,
}

/// The watches of registered names.
#[derive(Debug, Default)]
pub(super) struct ProviderWatches(Mutex<WatchTable>);

#[derive(Debug, Default)]
struct WatchTable {
    /// The resources and templates whose watches are reported.
    names: HashSet<Arc<str>>,
    /// The name that serves each watched URI that was reported.
    served: HashMap<Arc<str>, Arc<str>>,
    waiting: BTreeMap<Arc<str>, WatchChange>,
}

impl Mounts {
    /// Starts collecting, for [`Mounts::take_watches`], the changes in which URIs of a resource or template are
    /// watched, and calls `waker` when there are any; the waker of the first call is used. `registered` is the text of
    /// the template, or the URI. Returns the name under which changes are reported: the text of the template, or the
    /// canonical URI. Call it before clients watch.
    pub fn watch_changes(self: &Arc<Self>, registered: &str, waker: Waker) -> Arc<str> {
        // The text of a template is not a URI, and stays unchanged.
        let name: Arc<str> =
            uri::normalize(registered, usize::MAX).map_or_else(|_| registered.into(), |uri| uri.into());
        self.interest.watches.0.lock().names.insert(name.clone());
        let mounts = Arc::downgrade(self);
        self.watch_with(Box::new(move |uri, is_watched| {
            if mounts.upgrade().is_some_and(|mounts| mounts.note_watch(uri, is_watched)) {
                waker.wake_by_ref();
            }
        }));
        if let Some(engine) = self.engine() {
            self.observe(&engine);
            engine.settle_interest();
        }
        name
    }

    /// Takes the changes since the last call.
    pub fn take_watches(&self) -> Vec<WatchChange> {
        std::mem::take(&mut self.interest.watches.0.lock().waiting).into_values().collect()
    }

    /// Records a change. Returns whether there was none to take before.
    fn note_watch(&self, uri: &str, is_watched: bool) -> bool {
        let serves = || match self.engine()?.catalog().route(uri) {
            CatalogRoute::Resource(entry) => Some(entry.canonical.clone()),
            CatalogRoute::Template(entry, _) => Some(entry.template.uri_template.as_str().into()),
            CatalogRoute::Fallback(_) | CatalogRoute::Rejected { .. } | CatalogRoute::None { .. } => None,
        };
        // Called without the lock.
        let name = if is_watched { serves() } else { None };
        self.interest.watches.0.lock().note(uri.into(), is_watched, name)
    }
}

impl ProviderWatches {}

impl WatchTable {
    fn note(&mut self, uri: Arc<str>, is_watched: bool, name: Option<Arc<str>>) -> bool {
        let name = match is_watched {
            true => name.filter(|name| self.names.contains(name)),
            false => self.served.remove(&uri),
        };
        let Some(name) = name else { return false };
        if is_watched {
            self.served.insert(uri.clone(), name.clone());
        }
        if self.waiting.remove(&uri).is_some() {
            return false;
        }
        self.waiting.insert(uri.clone(), WatchChange { name, uri, is_watched });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opposite_changes_cancel_out() {
        let mut table = WatchTable::default();
        let name: Arc<str> = "a://{x}".into();
        table.names.insert(name.clone());
        let uri: Arc<str> = "a://1".into();
        assert!(table.note(uri.clone(), true, Some(name.clone())));
        assert!(!table.note(uri.clone(), false, None));
        assert!(table.waiting.is_empty() && table.served.is_empty());
        assert!(!table.note("b://1".into(), true, Some("b://{x}".into())) && table.served.is_empty());
        assert!(table.note(uri.clone(), true, Some(name.clone())));
        table.waiting.clear();
        assert!(table.note(uri.clone(), false, None));
        assert_eq!(table.waiting[&uri], WatchChange { name, uri: uri.clone(), is_watched: false });
        assert!(table.served.is_empty() && !table.note(uri, false, None));
    }
}
