//! The time: `clock:///now`, and `clock:///{+zone}` for a time zone of the IANA database, such as `clock:///Asia/Tokyo`.
//!
//! ```text
//!   nothing watched ──interest──▶ a thread marks each second ──interest ends, or unmounted──▶ no thread
//! ```
//!
//! Law: the thread begins with the first interest and ends with the last. The lock is a leaf: nothing is told while it is
//! held.

use crate::path;
use jiff::Timestamp;
use jiff::tz;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_host::provider::{
    Complete, Entry, Feed, Interest, List, Mount, Provider, Read, ReadRef, Responder, Route,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

const NOW: &str = "clock:///now";
const ZONE: &str = "clock:///{+zone}";
const ROOT: &str = "clock:///";
const TEXT: &str = "text/plain";

const OF_NOW: Route = Route(0);
const OF_ZONES: Route = Route(1);

/// The word for it where providers are declared.
pub const KIND: crate::options::Kind = crate::options::Kind {
    name: "clock",
    about: "The time, as clock:///now and clock:///ZONE.",
    options: &[],
};

/// The clock. It tells of each second while somebody watches a time, or listens to the lists: they have the
/// second as `lastModified`. It is in one server at a time.
#[derive(Debug, Default)]
pub struct Clock {
    feed: RwLock<Option<Feed>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
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

impl Clock {
    /// A clock that nobody looks at yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn now(&self) -> Timestamp {
        let now = self.feed().map_or(0, |feed| feed.now());
        i64::try_from(now).ok().and_then(|now| Timestamp::from_millisecond(now).ok()).unwrap_or_default()
    }

    fn feed(&self) -> Option<Feed> {
        self.feed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The time in a zone, to the second: RFC 3339 with the zone's name, as `2026-11-22T08:00:00+09:00[Asia/Tokyo]`.
    fn local(&self, zone: &str) -> Result<String, ReadError> {
        let zone = tz::db().get(zone).map_err(|_| ReadError::NotFound)?;
        Ok(self.now().to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z[%Q]").to_string())
    }
}

impl Provider for Clock {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        let mut own = self.feed.write().unwrap_or_else(PoisonError::into_inner);
        if own.as_ref().is_some_and(Feed::is_alive) {
            let reason = "it is mounted already; make a clock for each server".into();
            return Err(RegistrationError::Mount { mount: "clock".into(), reason });
        }
        *own = Some(feed);
        // A thread of an earlier mount ends by itself.
        self.shared.lock().teller = None;
        let zone = Template::new(ZONE)
            .title("The time in a zone")
            .mime_type(TEXT)
            .completes("zone")
            .list(ListSource { pages: true });
        let now = Resource::new(NOW).title("The time, UTC").mime_type(TEXT);
        Ok(Mount::new("clock").resource(OF_NOW, now).template(OF_ZONES, zone).workers(1, 64))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        // What a zone is stands in files.
        (request.route() == OF_NOW)
            .then(|| Ok(Contents::text(self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).into()))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let zone = request.param("zone").unwrap_or_default();
        reply.send(self.local(zone).map(|text| Contents::text(text).into()));
    }

    /// The zones that this machine knows, by name.
    fn list(&self, request: List, reply: Responder<ListPage>) {
        let zones = zones();
        let after = request.cursor().map_or(0, |after| zones.partition_point(|zone| zone.as_str() <= after));
        let page = zones.get(after..).unwrap_or_default();
        let items: Vec<_> = page
            .iter()
            .take(request.limit())
            .map(|zone| {
                let mut uri = String::from(ROOT);
                path::append(&mut uri, zone);
                Resource::new(uri).name(zone.as_str()).mime_type(TEXT)
            })
            .collect();
        let next = page.get(request.limit()..).filter(|rest| !rest.is_empty());
        let last = next.and_then(|_| page.get(request.limit().saturating_sub(1)));
        reply.send(Ok(ListPage { next: last.cloned(), ..ListPage::new(items) }));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value().to_lowercase();
        let fits = zones().into_iter().filter(|zone| zone.to_lowercase().contains(&typed));
        let mut values: Vec<Cow<'static, str>> = fits.map(Cow::Owned).collect();
        // What begins so comes first.
        values.sort_by_key(|zone| !zone.to_lowercase().starts_with(&typed));
        reply.send(Ok(Completion { values, total: None, has_more: None }));
    }

    fn interest(&self, change: Interest<'_>) {
        let mut watched = self.shared.lock();
        match change {
            Interest::Uri { uri, on: true, .. } => drop(watched.uris.insert(uri.clone())),
            Interest::Uri { uri, on: false, .. } => drop(watched.uris.remove(uri)),
            Interest::Lists { on } => watched.lists = on,
        }
        let process = std::process::id();
        if watched.is_empty() {
            self.shared.changed.notify_all();
        } else if watched.teller.is_none_or(|(of, _)| of != process)
            && let Some(feed) = self.feed()
        {
            watched.begun += 1;
            let (shared, own) = (self.shared.clone(), (process, watched.begun));
            let begun =
                std::thread::Builder::new().name("mcp-clock".into()).spawn(move || shared.tell(&feed, own));
            watched.teller = begun.is_ok().then_some(own);
        }
    }
}

impl Shared {
    /// Marks each second as a change, until nothing is watched or another thread does it.
    fn tell(&self, feed: &Feed, own: (u32, u64)) {
        let mut told = feed.now() / 1_000;
        while feed.is_alive() {
            let wait = Duration::from_millis(1_000 - feed.now() % 1_000);
            let watched = self.lock();
            let waited = self.changed.wait_timeout(watched, wait);
            let mut watched = waited.unwrap_or_else(PoisonError::into_inner).0;
            if watched.is_empty() || watched.teller != Some(own) {
                watched.ended(own);
                return;
            }
            let (uris, lists): (Vec<_>, bool) = (watched.uris.iter().cloned().collect(), watched.lists);
            drop(watched);
            let now = feed.now() / 1_000;
            if now == told {
                continue;
            }
            told = now;
            // They are in canonical form: nothing is wrong with them.
            uris.iter().for_each(|uri| drop(feed.updated(uri)));
            if lists {
                feed.publish(vec![update(now)]);
            }
        }
        self.lock().ended(own);
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn ended(&mut self, teller: (u32, u64)) {
        self.teller = self.teller.filter(|other| *other != teller);
    }

    fn is_empty(&self) -> bool {
        self.uris.is_empty() && !self.lists
    }
}

/// What is said of the resource at `now`, in seconds since 1970.
fn update(now: u64) -> Entry {
    let now = i64::try_from(now).ok().and_then(|now| Timestamp::from_second(now).ok()).unwrap_or_default();
    let last_modified = Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    Entry::Update { uri: NOW.into(), size: None, last_modified, description: None }
}

/// The names of all zones, sorted.
fn zones() -> Vec<String> {
    let mut zones: Vec<String> = tz::db().available().map(|zone| zone.to_string()).collect();
    zones.sort();
    zones
}
