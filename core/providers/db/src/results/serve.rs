//! Serves a cache to clients.

use super::entry::{ResultsError, Summary, now};
use super::{ResultCache, Results, audiences};
use jiff::Timestamp;
use mcp_resources_engine::connection::{Completion, Contents, ListPage, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::{ListSource, RegistrationError, Resource, Template};
use mcp_resources_provider_kit::answers::{COMPLETED, completion};
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::route::routes;
use mcp_resources_provider_kit::watching::WatchedValue;
use mcp_resources_runtime::provider::{
    Complete, Feed, InterestChange, List, Mount, Provider, Read, ReadRef, Responder, Route,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const JSON: &str = "application/json";
const VARIABLE: &str = "analysisId";
/// Interval at which a thread looks for expired results, and for changes of other processes.
const EVERY: Duration = Duration::from_millis(250);
/// A larger result is not read on the thread that received the request, in bytes.
const SMALL: usize = 64 * 1024;
/// Maximum number of results in the index; all can be listed and read.
const SHOWN: usize = 1_000;

routes! {
    /// The parts of the provider: those of each cache.
    enum ResultRoute {
        Index(at: usize),
        Entry(at: usize),
    }
}

impl Provider for Results {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.caches().try_for_each(|cache| cache.own.mount("results", feed.clone()))?;
        self.watching.begin_anew();
        let mut mount = Mount::new("results");
        for (at, cache) in self.caches().enumerate() {
            let index = Resource::new(&*cache.index)
                .name(&*cache.options.scheme)
                .title("The results that are kept, each with its URI")
                .mime_type(JSON)
                .priority(1.0);
            let entries = Template::new(format!("{}{{{VARIABLE}}}", cache.index))
                .title("A result that is kept until it expires")
                .completes(VARIABLE)
                .list(ListSource { pages: true });
            mount = mount.resource(ResultRoute::Index(at), index).template(ResultRoute::Entry(at), entries);
        }
        Ok(mount)
    }

    fn read_now(&self, request: ReadRef<'_>) -> Option<Result<ReadResult<'static>, ReadError>> {
        let (cache, is_index) = self.cache(request.route())?;
        if is_index || cache.options.file.is_some() {
            return None;
        }
        let id = request.param(VARIABLE).unwrap_or_default();
        let now = now();
        let admits = |size| if size > SMALL as u64 { Err(()) } else { Ok(()) };
        match cache.store.lock().get(id, Some(request.principal().id()), now, admits) {
            Ok(Some(Ok(entry))) => Some(Ok(entry.answer(now))),
            Ok(Some(Err(()))) => None,
            Ok(None) => Some(Err(ReadError::NotFound)),
            Err(_) => Some(Err(ReadError::Failed)),
        }
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let answer = match self.cache(request.route()) {
            Some((cache, true)) => cache.read_index(&request, &|what| reply.log(what)),
            Some((cache, false)) => cache.read_entry(&request, &reply),
            None => Err(ReadError::NotFound),
        };
        reply.send(answer);
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let Some((cache, false)) = self.cache(request.route()) else {
            return reply.send(Ok(ListPage::default()));
        };
        let limit = request.limit().max(1);
        let mut items = Vec::new();
        let mut last = None;
        let mut has_more = false;
        let walked = cache.walk(request.cursor(), request.principal().id(), &mut |result, uri| {
            if !request.permits(&uri) {
                return true;
            }
            if items.len() == limit {
                has_more = true;
                return false;
            }
            last = Some(result.id.to_string());
            items.push(item(&result, uri));
            true
        });
        let page = match walked {
            Ok(()) => Ok(ListPage { next: last.filter(|_| has_more), ..ListPage::new(items) }),
            Err(error) => {
                reply.log(&error.to_string());
                Err(ReadError::Failed)
            }
        };
        reply.send(page);
    }

    /// The ids that begin with the typed text, percent-encoded or not.
    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let mut values = Vec::new();
        if let Some((cache, false)) = self.cache(request.route()) {
            let typed = request.value();
            let plain = path::decoded(typed).unwrap_or_default();
            let walked = cache.walk(None, request.principal().id(), &mut |result, uri| {
                let fits = result.id.starts_with(typed) || result.id.starts_with(&plain);
                if fits && request.permits(&uri) {
                    values.push(uri.get(cache.index.len()..).unwrap_or_default().to_owned());
                }
                values.len() < COMPLETED
            });
            if let Err(error) = walked {
                reply.log(&error.to_string());
            }
        }
        reply.send(Ok(completion(values)));
    }

    fn interest(&self, change: InterestChange<'_>) {
        self.watching.interest(change, self.cache.own.feed(), "mcp-results", || {
            let caches: Vec<Arc<ResultCache>> = self.caches().cloned().collect();
            let mut is_down = false;
            move |feed, watched| {
                let looked = caches.iter().try_for_each(|cache| cache.look(watched));
                if let Err(error) = &looked
                    && !is_down
                {
                    feed.log(&error.to_string());
                }
                is_down = looked.is_err();
                EVERY
            }
        });
    }
}

impl Results {
    /// The cache that a route is of, and whether the route is its index.
    fn cache(&self, route: Route) -> Option<(&Arc<ResultCache>, bool)> {
        match ResultRoute::parse(route)? {
            ResultRoute::Index(at) => Some((self.caches().nth(at)?, true)),
            ResultRoute::Entry(at) => Some((self.caches().nth(at)?, false)),
        }
    }
}

impl ResultCache {
    fn read_entry(
        &self,
        request: &Read,
        reply: &Responder<ReadResult<'static>>,
    ) -> Result<ReadResult<'static>, ReadError> {
        let id = request.param(VARIABLE).unwrap_or_default();
        let now = now();
        let found = self.store.lock().get(id, Some(request.principal().id()), now, |size| reply.facts(size));
        match found {
            Ok(Some(entry)) => Ok(entry?.answer(now)),
            Ok(None) => Err(ReadError::NotFound),
            Err(error) => {
                reply.log(&error.to_string());
                Err(ReadError::Failed)
            }
        }
    }

    /// The results that may be seen, as JSON.
    fn read_index(&self, request: &Read, log: &dyn Fn(&str)) -> Result<ReadResult<'static>, ReadError> {
        let mut shown = Vec::new();
        let mut has_more = false;
        let walked = self.walk(None, request.principal().id(), &mut |result, uri| {
            if !request.permits(&uri) {
                return true;
            }
            has_more = shown.len() == SHOWN;
            if !has_more {
                shown.push(described(&result, &uri));
            }
            !has_more
        });
        if let Err(error) = walked {
            log(&error.to_string());
            return Err(ReadError::Failed);
        }
        let index = json!({ "results": shown, "more": has_more });
        Ok(Contents::text(index.to_string()).with_mime_type(JSON).into())
    }

    /// Visits the results that a principal sees, ordered by id, each with its URI.
    fn walk(
        &self,
        after: Option<&str>,
        principal: &str,
        each: &mut dyn FnMut(Summary, String) -> bool,
    ) -> Result<(), ResultsError> {
        self.store.lock().walk(after, principal, now(), &mut |result| {
            let uri = self.uri(&result.id);
            each(result, uri)
        })
    }

    /// Notifies subscribers of expired results, and of changes by other processes.
    fn look(&self, watched: &WatchedValue) -> Result<(), ResultsError> {
        let ids: Vec<String> = watched.uris.iter().filter_map(|uri| self.id_of(uri)).collect();
        let (gone, foreign) = {
            let mut store = self.store.lock();
            (store.expire(now())?, store.foreign(ids.iter().map(String::as_str))?)
        };
        let mut listed = audiences(&gone);
        listed.extend(foreign.listed);
        self.notify(gone.iter().chain(&foreign.changed), listed);
        Ok(())
    }

    /// The id that a URI of this cache names.
    fn id_of(&self, uri: &str) -> Option<String> {
        path::decoded(uri.strip_prefix(&*self.index)?).filter(|id| !id.is_empty())
    }
}

fn item(result: &Summary, uri: String) -> Resource {
    // A name has something to see in it.
    let name = if result.id.trim().is_empty() { uri.clone() } else { result.id.to_string() };
    let mut listed = Resource::new(uri).name(name).size(result.size);
    if let Some(created) = date(result.created) {
        listed = listed.last_modified(created);
    }
    match &result.mime_type {
        Some(mime_type) => listed.mime_type(&**mime_type),
        None => listed,
    }
}

fn described(result: &Summary, uri: &str) -> Value {
    json!({
        "uri": uri,
        "mimeType": result.mime_type.as_deref(),
        "size": result.size,
        "created": date(result.created),
        "expires": date(result.expires),
    })
}

/// A time in milliseconds since 1970 as ISO 8601, if it is before the year 10000.
fn date(time: u64) -> Option<String> {
    let time = i64::try_from(time).ok()?;
    Timestamp::from_millisecond(time).ok().map(|time| time.to_string())
}
