//! The endpoints of one declaration, with their cached answers and the requests in flight.
//!
//! Law: there is one request for a resource at a time, whether a read or a poll makes it. Reads that wait for it hold no thread:
//! their responders wait. The locks are leaves, but that the cache's is taken within that of the flights.

use super::cache::{ApiCache, ApiCacheEntry, ApiCacheKey, CachedBody};
use super::document;
use super::fetch::{FetchedAnswer, Fetcher};
use super::options::{ApiOptions, CheckedService};
use mcp_resources_engine::connection::{Contents, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::option::OptionError;
use mcp_resources_engine::resource::{CacheHint, CacheScope};
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::wanted::while_wanted;
use mcp_resources_runtime::provider::Responder;
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_template::{Lookup, UriTemplate};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::time::{Duration, Instant};

/// In `_meta` of contents that are older than they may be, because the server cannot be reached.
const STALE: &str = r#"{"io.github.mcp-resources/stale":true}"#;
/// The pause of a server that sends no `Retry-After`, and the longest pause that one can request.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// The lower limit of the option `poll`.
const SHORTEST_POLL: Duration = Duration::from_millis(100);
/// Maximum number of resources remembered as down.
const DOWN: usize = 1_000;

/// An endpoint with its names.
#[derive(Debug)]
pub(super) struct ServedAnswer {
    pub(super) api: String,
    pub(super) name: String,
    /// `api:///API/NAME`.
    pub(super) uri: String,
    pub(super) checked: CheckedService,
    /// The template of its resources, if they have one of their own.
    pub(super) template: Option<UriTemplate>,
}

/// The endpoints of one declaration at run time.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) endpoints: Vec<ServedAnswer>,
    /// Lines for the log about the documents.
    pub(super) notes: Vec<String>,
    pub(super) poll: Duration,
    bytes: u64,
    fetcher: Fetcher,
    hasher: RandomState,
    cache: Mutex<ApiCache>,
    flights: Arc<Mutex<FetchFlights>>,
}

#[derive(Debug, Default)]
struct FetchFlights {
    /// The requests that are under way.
    open: HashMap<ApiCacheKey, WaitingReads>,
    /// The resources whose server is paused.
    paused: HashMap<ApiCacheKey, Instant>,
}

/// The reads that wait for a request.
#[derive(Debug, Default)]
struct WaitingReads {
    reads: Vec<Responder<ReadResult<'static>>>,
    polls: Vec<SyncSender<FetchOutcome>>,
    /// Whether a poll makes the request.
    is_polled: bool,
}

impl WaitingReads {
    fn is_wanted(&self) -> bool {
        self.is_polled || !self.polls.is_empty() || self.reads.iter().any(|read| !read.is_cancelled())
    }
}

/// The current state of a resource.
#[derive(Clone, Debug)]
pub(super) enum FetchOutcome {
    Fresh(ApiCacheEntry),
    Stale(ApiCacheEntry),
    Absent,
    TooLarge,
    Failed,
}

/// A request in progress. If it is dropped, as by a panic, the waiting reads fail.
struct FetchFlight<'s> {
    service: &'s Service,
    key: &'s ApiCacheKey,
}

impl Service {
    pub(super) fn new(options: &ApiOptions) -> Result<Self, OptionError> {
        for (name, value, least, is_less) in [
            ("timeout", format!("{:?}", options.timeout), "1ms", options.timeout < Duration::from_millis(1)),
            ("bytes", options.bytes.to_string(), "1", options.bytes == 0),
            ("poll", format!("{:?}", options.poll), "100ms", options.poll < SHORTEST_POLL),
        ] {
            if is_less {
                return Err(OptionError::sentence(format!(
                    "api: {name} is {value}, expected {least} or more"
                )));
            }
        }
        let mut endpoints: Vec<ServedAnswer> = Vec::new();
        let mut notes = Vec::new();
        for (api, declaration) in &options.apis {
            for (name, endpoint) in &declaration.endpoints {
                let checked = endpoint.check(&format!("{api}/{name}"))?;
                add(&mut endpoints, api, name, checked)?;
            }
            let document = document::operations(api, declaration, options)?;
            for (name, checked) in document.endpoints {
                add(&mut endpoints, api, &name, checked)?;
            }
            notes.extend(document.notes.into_iter().map(|note| format!("{api}: {note}")));
        }
        if endpoints.is_empty() {
            return Err(OptionError::sentence(
                "api: there is no endpoint; name one: `apis: {NAME: {endpoints: {NAME: {url: \"https://host/items/{id}\"}}}}`",
            ));
        }
        Ok(Self {
            endpoints,
            notes,
            poll: options.poll,
            bytes: options.bytes,
            fetcher: Fetcher::new(options),
            hasher: RandomState::new(),
            cache: Mutex::default(),
            flights: Arc::default(),
        })
    }

    /// With another resolver of names.
    #[cfg(test)]
    pub(super) fn resolving(self, resolver: impl ureq::unversioned::resolver::Resolver) -> Self {
        Self { fetcher: self.fetcher.resolving(resolver), ..self }
    }

    /// Answers a read: from a fresh copy, with what another read is about to have, or after a request.
    pub(super) fn read(&self, endpoint: usize, id: &str, reply: Responder<ReadResult<'static>>) {
        let key = ApiCacheKey { endpoint, id: id.into() };
        let now = Instant::now();
        {
            let mut flights = self.flights.lock();
            if let Some(waiting) = flights.open.get_mut(&key) {
                waiting.reads.push(reply);
                return;
            }
            let kept = self.cache.lock().get(&key);
            let is_paused = flights.paused_until(&key, now).is_some();
            let known = match kept {
                Some(kept) if kept.fresh_until > now => Some(FetchOutcome::Fresh(kept)),
                Some(kept) if is_paused && kept.copy.may_be_stale => Some(FetchOutcome::Stale(kept)),
                _ if is_paused => Some(FetchOutcome::Failed),
                _ => None,
            };
            if let Some(known) = known {
                drop(flights);
                return self.send(reply, &known);
            }
            flights.open.insert(key.clone(), WaitingReads { reads: vec![reply], ..WaitingReads::default() });
        }
        self.fly(&key);
    }

    /// Returns the current state of a resource, whether or not its copy is fresh: from the request in progress, or from
    /// a new one. Also returns a message to log, if something is wrong and no read has logged it.
    pub(super) fn poll(&self, key: &ApiCacheKey) -> (FetchOutcome, Option<String>) {
        let landing = {
            let mut flights = self.flights.lock();
            match flights.open.get_mut(key) {
                Some(open) => {
                    let (sender, landing) = mpsc::sync_channel(1);
                    open.polls.push(sender);
                    Some(landing)
                }
                None => {
                    flights
                        .open
                        .insert(key.clone(), WaitingReads { is_polled: true, ..WaitingReads::default() });
                    None
                }
            }
        };
        match landing {
            Some(landing) => (landing.recv().unwrap_or(FetchOutcome::Failed), None),
            None => self.fly(key),
        }
    }

    /// The end of the pause of a resource's server.
    pub(super) fn paused_until(&self, key: &ApiCacheKey) -> Option<Instant> {
        self.flights.lock().paused_until(key, Instant::now())
    }

    /// Makes the request of a flight that was opened, and gives the outcome to all that wait for it.
    fn fly(&self, key: &ApiCacheKey) -> (FetchOutcome, Option<String>) {
        let flight = FetchFlight { service: self, key };
        let (outcome, mut what) = loop {
            let flights = self.flights.clone();
            let own = key.clone();
            let is_wanted = move || flights.lock().open.get(&own).is_some_and(WaitingReads::is_wanted);
            match while_wanted(is_wanted, || self.request(key)) {
                Some(done) => break done,
                // Another one has come to wait for it.
                None if self.flights.lock().open.get(key).is_some_and(WaitingReads::is_wanted) => {}
                None => break (FetchOutcome::Failed, None),
            }
        };
        let WaitingReads { reads, polls, .. } = flight.land();
        for poll in polls {
            // Each is sent one, so there is room.
            let _ = poll.try_send(outcome.clone());
        }
        for reply in reads {
            if let Some(what) = what.take() {
                reply.log(&what);
            }
            self.send(reply, &outcome);
        }
        (outcome, what)
    }

    /// Makes a request; `None` if it was cancelled.
    fn request(&self, key: &ApiCacheKey) -> Option<(FetchOutcome, Option<String>)> {
        let Some(served) = self.endpoints.get(key.endpoint) else {
            return Some((FetchOutcome::Absent, None));
        };
        let kept = self.cache.lock().get(key);
        let fetched = self.fetcher.fetch(&served.checked, &key.id, kept.as_ref().map(|kept| &*kept.copy));
        let now = Instant::now();
        let said = |what: String| Some(format!("{}/{}: {what}", served.api, served.name));
        let mut paused = None;
        let result = match fetched {
            FetchedAnswer::New(copy, freshness) => {
                let kept = ApiCacheEntry { copy: Arc::new(copy), fresh_until: now + freshness.lifetime };
                let mut cache = self.cache.lock();
                if freshness.is_kept {
                    cache.put(key, kept.clone())
                } else {
                    cache.remove(key)
                }
                (FetchOutcome::Fresh(kept), None)
            }
            FetchedAnswer::NotModified(freshness) => match kept {
                Some(kept) => {
                    let kept = ApiCacheEntry { fresh_until: now + freshness.lifetime, ..kept };
                    self.cache.lock().put(key, kept.clone());
                    (FetchOutcome::Fresh(kept), None)
                }
                None => (FetchOutcome::Failed, said("status 304 without a request for it".into())),
            },
            FetchedAnswer::Absent => {
                self.cache.lock().remove(key);
                (FetchOutcome::Absent, None)
            }
            FetchedAnswer::TooLarge => (FetchOutcome::TooLarge, None),
            FetchedAnswer::Down(what, wait) => {
                paused = Some(now + wait.unwrap_or(PAUSE.0).min(PAUSE.1));
                match kept.filter(|kept| kept.copy.may_be_stale) {
                    Some(kept) => (FetchOutcome::Stale(kept), said(what)),
                    None => (FetchOutcome::Failed, said(what)),
                }
            }
            FetchedAnswer::Failed(what) => (FetchOutcome::Failed, said(what)),
            FetchedAnswer::Unwanted => return None,
        };
        self.flights.lock().pause(key, paused, now);
        Some(result)
    }

    /// The resource of an endpoint with a template of its own.
    ///
    /// # Errors
    /// A value has another form than the endpoint expects.
    pub(super) fn target<'v>(
        &self,
        endpoint: usize,
        value: &dyn Fn(&str) -> Option<&'v str>,
    ) -> Result<String, ReadError> {
        let checked = &self.endpoints.get(endpoint).ok_or(ReadError::NotFound)?.checked;
        let refused = |parameter: &str, expected: String| ReadError::InvalidParameter {
            parameter: parameter.into(),
            expected,
        };
        for variable in checked.url.variables() {
            if value(&variable.name).is_some_and(|value| value.len() > super::ID) {
                return Err(refused(&variable.name, format!("a text of at most {} bytes", super::ID)));
            }
        }
        for parameter in &checked.facts.parameters {
            if let Some(expected) = value(&parameter.name).and_then(|value| parameter.refuses(value)) {
                return Err(refused(&parameter.name, expected));
            }
        }
        checked.url.expand_with(value).map_err(|_| ReadError::NotFound)
    }

    /// The resource that a URI names.
    pub(super) fn key_of(&self, uri: &str) -> Option<ApiCacheKey> {
        for (endpoint, served) in self.endpoints.iter().enumerate() {
            let found = served.template.as_ref().map(|template| template.match_uri(uri));
            if let Some(Ok(Lookup::Match { params, .. })) = found {
                let id = self.target(endpoint, &|name| params.text(name)).ok()?;
                return Some(ApiCacheKey { endpoint, id: id.into() });
            }
        }
        let (endpoint, rest) = self.endpoints.iter().enumerate().find_map(|(number, served)| {
            let rest = uri.strip_prefix(&*served.uri)?;
            (rest.is_empty() || rest.starts_with('/')).then_some((number, rest))
        })?;
        let url = &self.endpoints.get(endpoint)?.checked.url;
        let takes_id = url.takes_id();
        let id = path::decoded(rest.strip_prefix('/').unwrap_or_default())?;
        (!url.is_template() && takes_id != id.is_empty() && id.len() <= super::ID)
            .then(|| ApiCacheKey { endpoint, id: id.into() })
    }

    /// A digest that changes with the resource; `None` if its state is not known.
    pub(super) fn digest(&self, outcome: &FetchOutcome) -> Option<u64> {
        match outcome {
            FetchOutcome::Fresh(kept) => Some(self.hasher.hash_one((&kept.copy.body, &kept.copy.mime_type))),
            FetchOutcome::Absent => Some(0),
            FetchOutcome::Stale(_) | FetchOutcome::TooLarge | FetchOutcome::Failed => None,
        }
    }

    fn send(&self, reply: Responder<ReadResult<'static>>, outcome: &FetchOutcome) {
        let answer = match outcome {
            FetchOutcome::Fresh(kept) => {
                reply.facts(kept.copy.body.len() as u64).map(|()| result(kept, false))
            }
            FetchOutcome::Stale(kept) => {
                reply.facts(kept.copy.body.len() as u64).map(|()| result(kept, true))
            }
            FetchOutcome::Absent => Err(ReadError::NotFound),
            FetchOutcome::TooLarge => Err(ReadError::SizeExceeded { limit: self.bytes, size: None }),
            FetchOutcome::Failed => Err(ReadError::Failed),
        };
        reply.send(answer);
    }
}

impl FetchFlights {
    fn paused_until(&self, key: &ApiCacheKey, now: Instant) -> Option<Instant> {
        self.paused.get(key).copied().filter(|until| *until > now)
    }

    fn pause(&mut self, key: &ApiCacheKey, until: Option<Instant>, now: Instant) {
        match until {
            Some(until) => {
                if self.paused.len() >= DOWN {
                    self.paused.retain(|_, until| *until > now);
                }
                if self.paused.len() < DOWN {
                    self.paused.insert(key.clone(), until);
                }
            }
            None => drop(self.paused.remove(key)),
        }
    }
}

impl FetchFlight<'_> {
    /// Ends the flight and returns the reads that wait for it. Later reads start a flight of their own.
    fn land(self) -> WaitingReads {
        let waiting = self.take();
        std::mem::forget(self);
        waiting
    }

    fn take(&self) -> WaitingReads {
        self.service.flights.lock().open.remove(self.key).unwrap_or_default()
    }
}

impl Drop for FetchFlight<'_> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

fn result(kept: &ApiCacheEntry, is_stale: bool) -> ReadResult<'static> {
    let contents = match &kept.copy.body {
        CachedBody::Text(text) => Contents::shared_text(text.clone()),
        CachedBody::Blob(bytes) => Contents::shared_blob(bytes.clone()),
    };
    let contents = contents.with_mime_type(kept.copy.mime_type.clone());
    let contents = if is_stale { contents.with_meta(STALE) } else { contents };
    let left = kept.fresh_until.saturating_duration_since(Instant::now());
    let ttl_ms = if is_stale { 0 } else { u64::try_from(left.as_millis()).unwrap_or(u64::MAX) };
    ReadResult { contents: vec![contents], cache: Some(CacheHint { ttl_ms, scope: CacheScope::Private }) }
}

/// Adds an endpoint under its name.
fn add(
    endpoints: &mut Vec<ServedAnswer>,
    api: &str,
    name: &str,
    checked: CheckedService,
) -> Result<(), OptionError> {
    for name in [api, name] {
        if name.is_empty() || path::text(name.as_bytes()) != *name || name.contains(char::is_whitespace) {
            return Err(OptionError::sentence(format!(
                "api: {name:?} is no name; give one of letters, digits, `-`, `_` and `.`"
            )));
        }
    }
    if endpoints.iter().any(|other| other.api == *api && other.name == *name) {
        return Err(same_name(api, name));
    }
    let mut uri = String::from("api:///");
    path::append(&mut uri, &format!("{api}/{name}"));
    let template = match checked.url.is_template() {
        true => Some(UriTemplate::parse(&checked.url.resources(&uri)).map_err(|error| {
            OptionError::sentence(format!(
                "api: {api}/{name}: the url has variables that cannot be told apart: {error}"
            ))
        })?),
        false => None,
    };
    endpoints.push(ServedAnswer { api: api.into(), name: name.into(), uri, checked, template });
    Ok(())
}

/// Two endpoints have one name.
pub(super) fn same_name(api: &str, name: &str) -> OptionError {
    OptionError::sentence(format!("api: two endpoints have the name {api}/{name}; give one of them another"))
}
