//! Who watches, and the thread that looks at the files meanwhile.
//!
//! ```text
//!   nothing watched ──interest──▶ a thread asks for the times of the files ──interest ends, or unmounted──▶ no thread
//! ```
//!
//! Law: the thread begins with the first interest and ends with the last. It polls: a few calls of `stat` cost less than the
//! system's watches, which see neither a file behind a changed link, as a mounted ConfigMap is, nor one on a network's disk,
//! and which can run out. The lock is a leaf: nothing is read, told or logged while it is held.

use super::app::{App, Change, Snapshot};
use super::{Log, differs};
use mcp_resources_host::provider::{Feed, Interest};
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often files are looked at.
const EVERY: Duration = Duration::from_millis(200);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Watch {
    watched: Mutex<Watched>,
    changed: Condvar,
}

/// What somebody waits for.
#[derive(Debug, Default)]
struct Watched {
    uris: BTreeSet<Arc<str>>,
    lists: bool,
    /// The thread for it: its process, and its number.
    teller: Option<(u32, u64)>,
    /// How many threads there were.
    begun: u64,
}

impl Watch {
    /// A thread of an earlier mount ends by itself.
    pub(super) fn begin_anew(&self) {
        self.lock().teller = None;
    }

    /// Takes note of who watches. The first one starts the thread.
    pub(super) fn interest(self: &Arc<Self>, change: Interest<'_>, feed: Option<Feed>, apps: &[Arc<App>]) {
        let mut watched = self.lock();
        match change {
            Interest::Uri { uri, on: true, .. } => drop(watched.uris.insert(uri.clone())),
            Interest::Uri { uri, on: false, .. } => drop(watched.uris.remove(uri)),
            Interest::Lists { on } => watched.lists = on,
        }
        let process = std::process::id();
        if watched.is_empty() {
            self.changed.notify_all();
        } else if watched.teller.is_none_or(|(of, _)| of != process)
            && let Some(feed) = feed
        {
            watched.begun += 1;
            let (own, watch, apps) = ((process, watched.begun), self.clone(), apps.to_vec());
            let begun = std::thread::Builder::new()
                .name("mcp-config".into())
                .spawn(move || watch.look(&apps, &feed, own));
            watched.teller = begun.is_ok().then_some(own);
        }
    }

    /// Looks at the files until nobody watches, or another thread does. What was there before it began is what was read last.
    fn look(&self, apps: &[Arc<App>], feed: &Feed, own: (u32, u64)) {
        loop {
            let mut watched = self.lock();
            if watched.is_empty() || watched.teller != Some(own) || !feed.is_alive() {
                // Under the same lock: who watches from now on starts another.
                watched.teller = watched.teller.filter(|other| *other != own);
                return;
            }
            let is_watched =
                |app: &&Arc<App>| watched.lists || watched.uris.iter().any(|uri| is_of(uri, app));
            let looked_at: Vec<Arc<App>> = apps.iter().filter(is_watched).cloned().collect();
            drop(watched);
            for app in looked_at {
                self.see(&app, feed, &|what| feed.log(what));
            }
            let watched = self.lock();
            if !watched.is_empty() && watched.teller == Some(own) {
                drop(self.changed.wait_timeout(watched, EVERY));
            }
        }
    }

    /// What an application has now, after all who have to know were told.
    pub(super) fn see(&self, app: &App, feed: &Feed, log: &Log<'_>) -> Option<Arc<Snapshot>> {
        let (now, change) = app.now();
        app.said().iter().for_each(|what| log(what));
        if let Some(change) = change {
            self.tell(app, &change, feed);
        }
        now
    }

    /// Tells those who watch what has changed, and of the lists if keys have come or gone. A value alone changes no list: a
    /// client that lists anew with each edit would gain a size.
    fn tell(&self, app: &App, change: &Change, feed: &Feed) {
        let uris: Vec<Arc<str>> = self.lock().uris.iter().filter(|uri| is_of(uri, app)).cloned().collect();
        for uri in uris.iter().filter(|uri| differs(app, uri, change)) {
            // They are in canonical form: nothing is wrong with them.
            let _ = feed.updated(uri);
        }
        let is_listed_alike = match change {
            (Some(before), Some(now)) => before.root.lists_as(&now.root),
            _ => false,
        };
        if !is_listed_alike {
            feed.list_changed();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn is_empty(&self) -> bool {
        self.uris.is_empty() && !self.lists
    }
}

/// Whether a URI is that of an application, or of one of its keys.
fn is_of(uri: &str, app: &App) -> bool {
    uri.strip_prefix(&*app.uri).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
