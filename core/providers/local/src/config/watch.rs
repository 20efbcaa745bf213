//! Notifies subscribers of changed files. A request may notice the change first, or the thread that polls.
//!
//! Law: the thread polls. A few calls of `stat` cost less than the system's watches, which see neither a file behind a changed
//! link, as a mounted ConfigMap is, nor one on a network's disk, and which can run out.

use super::app::{App, Change, ConfigSnapshot, Log, differs};
use mcp_resources_provider_kit::watching::{ProviderWatching, WatchedValue};
use mcp_resources_runtime::provider::{Feed, InterestChange};
use std::sync::Arc;
use std::time::Duration;

/// Interval between looks at the files.
const EVERY: Duration = Duration::from_millis(200);

/// The watch of a provider's files, and its subscribers.
#[derive(Debug, Default)]
pub(super) struct ConfigWatch {
    watching: Arc<ProviderWatching>,
}

impl ConfigWatch {
    /// A new mount.
    pub(super) fn begin_anew(&self) {
        self.watching.begin_anew();
    }

    /// Records a change of interest. The thread compares later states with the last read.
    pub(super) fn interest(
        self: &Arc<Self>,
        change: InterestChange<'_>,
        feed: Option<Feed>,
        apps: &[Arc<App>],
    ) {
        self.watching.interest(change, feed, "mcp-config", || {
            let watch = self.clone();
            let apps = apps.to_vec();
            move |feed, watched| {
                for app in apps.iter().filter(|app| is_watched(watched, app)) {
                    watch.see(app, feed, &|what| feed.log(what));
                }
                EVERY
            }
        });
    }

    /// Returns the current state of an application. If it has changed, its subscribers have been notified.
    pub(super) fn see(&self, app: &App, feed: &Feed, log: &Log<'_>) -> Option<Arc<ConfigSnapshot>> {
        let (now, change) = app.now();
        app.said().iter().for_each(|what| log(what));
        if let Some(change) = change {
            self.notify(app, &change, feed);
        }
        now
    }

    /// Notifies the subscribers of changed values, and of the lists if keys were added or removed. A changed value
    /// alone does not change the lists: otherwise clients would list again after each edit, only for a new size.
    fn notify(&self, app: &App, change: &Change, feed: &Feed) {
        let watched = self.watching.watched();
        for uri in watched.uris.iter().filter(|uri| is_of(uri, app) && differs(app, uri, change)) {
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
}

fn is_watched(watched: &WatchedValue, app: &App) -> bool {
    watched.lists || watched.uris.iter().any(|uri| is_of(uri, app))
}

/// Whether a URI is that of an application, or of one of its keys.
fn is_of(uri: &str, app: &App) -> bool {
    uri.strip_prefix(&*app.uri).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
