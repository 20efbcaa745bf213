//! Notifies subscribers of pushed samples. A thread compares the number of samples of each series with the number at
//! the last notification, so there is at most one notification in each interval, however many samples come.
//!
//! Law: a count is recorded before the interest is, so a sample that comes while a client subscribes is not missed. The lock
//! is a leaf.

use super::series::{INDEX, SeriesTable, log_refusals};
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::watching::{ProviderWatching, WatchedValue};
use mcp_resources_runtime::provider::{Feed, InterestChange};
use mcp_resources_runtime::sync::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The thread that notifies subscribers of pushed samples.
#[derive(Debug, Default)]
pub(super) struct Notifier {
    watching: Arc<ProviderWatching>,
    seen: Mutex<SeenSeries>,
}

/// The state that subscribers have been notified of.
#[derive(Debug, Default)]
struct SeenSeries {
    /// The number of samples of each watched URI.
    samples: HashMap<Arc<str>, u64>,
    /// The number of listed series.
    series: usize,
}

impl Notifier {
    /// A new mount.
    pub(super) fn begin_anew(&self) {
        self.watching.begin_anew();
        *self.seen.lock() = SeenSeries::default();
    }

    /// Records a change of interest.
    pub(super) fn interest(
        self: &Arc<Self>,
        change: InterestChange<'_>,
        feed: Option<Feed>,
        table: &Arc<SeriesTable>,
        interval: Duration,
    ) {
        match change {
            InterestChange::Uri { uri, on: true, .. } => {
                let pushed = pushed(table, uri);
                self.seen.lock().samples.insert(uri.clone(), pushed);
            }
            InterestChange::Uri { uri, on: false, .. } => drop(self.seen.lock().samples.remove(uri)),
            InterestChange::Lists { on: true } => self.seen.lock().series = table.len(),
            InterestChange::Lists { on: false } => {}
        }
        self.watching.interest(change, feed, "mcp-notify", || {
            let own = self.clone();
            let table = table.clone();
            move |feed, watched| {
                own.notify(feed, watched, &table);
                interval
            }
        });
    }

    fn notify(&self, feed: &Feed, watched: &WatchedValue, table: &SeriesTable) {
        log_refusals(table, &|what| feed.log(what));
        for uri in &watched.uris {
            let now = pushed(table, uri);
            let before = self.seen.lock().samples.get_mut(uri).map(|before| std::mem::replace(before, now));
            if before.is_some_and(|before| before != now) {
                // It is in canonical form: nothing is wrong with it.
                let _ = feed.updated(uri);
            }
        }
        if watched.lists {
            let now = table.len();
            let before = std::mem::replace(&mut self.seen.lock().series, now);
            if before != now {
                feed.list_changed();
            }
        }
    }
}

/// The number of samples ever pushed to the series at a URI; to all series for the URI of the index.
fn pushed(table: &SeriesTable, uri: &str) -> u64 {
    let path = uri.strip_prefix(INDEX).unwrap_or_default();
    let segment = path.split_once('?').map_or(path, |(segment, _)| segment);
    if segment.is_empty() {
        return table.all().iter().map(|series| series.pushed()).sum();
    }
    path::decoded(segment).and_then(|segment| table.find(&segment)).map_or(0, |series| series.pushed())
}
