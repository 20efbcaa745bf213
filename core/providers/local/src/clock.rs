//! The clock provider: `clock:///now`, and `clock:///{+zone}` for a time zone of the IANA database, such as
//! `clock:///Asia/Tokyo`. Few zones are listed: UTC and that of this machine, or those that are declared. All can be
//! read and completed.
//!
//! While a client watches, a thread marks each second as a change.

use jiff::Timestamp;
use jiff::tz::{self, TimeZone};
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_engine::suggest::closest;
use mcp_resources_provider_kit::answers::{completion, page};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::{OwnWatch, ProviderWatching, WatchedValue};
use mcp_resources_runtime::provider::{
    Complete, Feed, FeedEntry, InterestChange, List, Mount, Provider, Read, ReadRef, Responder,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NOW: &str = "clock:///now";
const ZONE: &str = "clock:///{+zone}";
const ROOT: &str = "clock:///";
const TEXT: &str = "text/plain";

routes! {
    /// The resources and templates of the provider.
    enum ClockRoute {
        Now,
        Zones,
    }
}

provider_options! {
    /// The options of a [`Clock`].
    #[derive(Clone, Debug)]
    pub struct ClockOptions: "a time zone, a list of them, or an object of options", or zones: Text | List or nothing {
        /// The time zones in `resources/list`, such as `Asia/Tokyo`; every zone can be read. Default: UTC and the local zone.
        zones: some_texts("time zone") = None;
    }
}

/// The clock. While clients watch a time or listen to the lists, it reports each second as a change: the entries have
/// the second as `lastModified`. It is in one server at a time.
#[derive(Debug)]
pub struct Clock {
    /// Those that are listed, sorted.
    zones: Vec<String>,
    own: OwnWatch,
    watching: Arc<ProviderWatching>,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock without watchers. It lists UTC and the zone of this machine.
    pub fn new() -> Self {
        let local = TimeZone::system();
        let local = local.iana_name().filter(|name| tz::db().get(name).is_ok());
        Self::listing(["UTC"].into_iter().chain(local).map(str::to_owned).collect())
    }

    /// A clock with these options.
    ///
    /// # Errors
    /// A time zone is not in the database of this machine.
    pub fn with(options: ClockOptions) -> Result<Self, OptionError> {
        let Some(names) = options.zones else { return Ok(Self::new()) };
        for (at, name) in names.iter().enumerate() {
            if tz::db().get(name).is_err() {
                let known = zones();
                let meant = closest(name, known.iter().map(String::as_str));
                let fix = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
                let reason = format!("clock: there is no time zone {name:?}{fix}");
                return Err(OptionError::sentence(reason)
                    .under(PathStep::Item(at))
                    .under(PathStep::Name("zones".into())));
            }
        }
        Ok(Self::listing(names))
    }

    fn listing(mut zones: Vec<String>) -> Self {
        zones.sort();
        zones.dedup();
        Self { zones, own: OwnWatch::default(), watching: Arc::default() }
    }

    fn now(&self) -> Timestamp {
        let now = self.own.feed().map_or(0, |feed| feed.now());
        i64::try_from(now).ok().and_then(|now| Timestamp::from_millisecond(now).ok()).unwrap_or_default()
    }

    /// The time in a zone, to the second: RFC 3339 with the zone's name, as `2026-11-22T08:00:00+09:00[Asia/Tokyo]`.
    fn local(&self, zone: &str) -> Result<String, ReadError> {
        let zone = tz::db().get(zone).map_err(|_| ReadError::NotFound)?;
        Ok(self.now().to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z[%Q]").to_string())
    }
}

impl Declare for Clock {
    const KIND: OptionKind = OptionKind {
        name: "clock",
        about: "The time, as clock:///now and clock:///ZONE.",
        options: ClockOptions::TABLE,
    };

    fn declare(options: OptionValue, _folder: &Path) -> Result<Self, OptionError> {
        Self::with(declared::read("clock", options)?)
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        self.zones.extend(other.zones);
        self.zones.sort();
        self.zones.dedup();
        Ok(())
    }

    /// Nothing, or zones with commas between them.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        if rest.is_empty() {
            return Ok(OptionValue::None);
        }
        Ok(OptionValue::List(rest.split(',').map(OptionValue::from).collect()))
    }
}

impl Provider for Clock {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.own.mount("clock", feed)?;
        self.watching.begin_anew();
        let zone = Template::new(ZONE)
            .title("The time in a zone")
            .mime_type(TEXT)
            .completes("zone")
            .list(ListSource { pages: true });
        let now = Resource::new(NOW).title("The time, UTC").mime_type(TEXT);
        Ok(Mount::new("clock")
            .resource(ClockRoute::Now, now)
            .template(ClockRoute::Zones, zone)
            .workers(1, 64))
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        // What a zone is stands in files.
        (ClockRoute::parse(request.route()) == Some(ClockRoute::Now))
            .then(|| Ok(Contents::text(self.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).into()))
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let zone = request.param("zone").unwrap_or_default();
        reply.send(self.local(zone).map(|text| Contents::text(text).into()));
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let zones = &self.zones;
        let after = request.cursor().map_or(0, |after| zones.partition_point(|zone| zone.as_str() <= after));
        let rest = zones.get(after..).unwrap_or_default().iter();
        let page = page(
            request.limit(),
            rest,
            |zone| (*zone).clone(),
            |zone| {
                let mut uri = String::from(ROOT);
                path::append(&mut uri, zone);
                Resource::new(uri).name(zone.as_str()).mime_type(TEXT)
            },
        );
        reply.send(Ok(page));
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let typed = request.value().to_lowercase();
        let fits = zones().into_iter().filter(|zone| zone.to_lowercase().contains(&typed));
        let mut values: Vec<String> = fits.collect();
        // What begins so comes first.
        values.sort_by_key(|zone| !zone.to_lowercase().starts_with(&typed));
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.watching.interest(change, self.own.feed(), "mcp-clock", || {
            let mut reported = None;
            move |feed, watched| {
                let now = feed.now() / 1_000;
                if reported.replace(now).is_some_and(|before| before != now) {
                    notify(feed, watched, now);
                }
                Duration::from_millis(1_000 - feed.now() % 1_000)
            }
        });
    }
}

/// Marks a second as a change.
fn notify(feed: &Feed, watched: &WatchedValue, now: u64) {
    // They are in canonical form: nothing is wrong with them.
    watched.uris.iter().for_each(|uri| drop(feed.updated(uri)));
    if watched.lists {
        feed.publish(vec![update(now)]);
    }
}

/// The listed resource at `now`, in seconds since 1970.
fn update(now: u64) -> FeedEntry {
    let now = i64::try_from(now).ok().and_then(|now| Timestamp::from_second(now).ok()).unwrap_or_default();
    let last_modified = Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    FeedEntry::Update { uri: NOW.into(), size: None, last_modified, description: None }
}

/// The names of all zones, sorted.
fn zones() -> Vec<String> {
    let mut zones: Vec<String> = tz::db().available().map(|zone| zone.to_string()).collect();
    zones.sort();
    zones
}
