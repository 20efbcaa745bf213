//! The results provider, a cache of results: `results:///` and `results:///{analysisId}`, or another scheme. A program
//! stores what it has computed; clients list, read and watch the results until they expire.
//!
//! ```text
//!   put, get, get_or_compute ──▶ Results ──▶ Store: in memory, or a SQLite file
//!   read, list, complete ──────────┘           └─ while somebody watches, a thread looks what has expired
//! ```
//!
//! Law: a result is for everybody or for one principal. A result that is expired, absent or another principal's is not
//! found; all cases look the same. Changes of a principal's own results are notified to its clients only. The lock of a
//! store is a leaf: no notification is sent while it is held.

mod disk;
mod entry;
mod flight;
mod memory;
mod open_files;
mod options;
mod serve;
mod store;
#[cfg(test)]
mod tests;

pub use entry::{ComputeError, Content, ResultEntry, ResultsError};
pub use options::{PutOptions, ResultOptions};

use entry::{Audience, ResultKey, millis, now};
use flight::{ComputeFlights, Joined};
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_provider_kit::declared::{self, Declare};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::watching::{OwnWatch, ProviderWatching};
use mcp_resources_runtime::sync::Mutex;
use std::collections::BTreeSet;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{GoneResult, ResultStore};

/// The longest id, in bytes.
const ID: usize = 1_024;

/// A cache of results. Its clones are the same cache. It is in one server at a time.
///
/// ```
/// use mcp_resources_provider_db::results::{ResultOptions, PutOptions, Results};
/// let results = Results::new(ResultOptions::new())?;
/// results.put("report", "All is well", PutOptions::new().mime_type("text/plain"))?;
/// assert_eq!(results.len()?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Results {
    cache: Arc<ResultCache>,
    /// Those that further declarations have added.
    others: Vec<Arc<ResultCache>>,
    watching: Arc<ProviderWatching>,
}

/// The results of one scheme.
#[derive(Debug)]
struct ResultCache {
    /// `SCHEME:///`.
    index: String,
    options: ResultOptions,
    store: Mutex<ResultStore>,
    flights: ComputeFlights,
    own: OwnWatch,
}

impl Results {
    /// An empty cache, or the contents of its file.
    ///
    /// # Errors
    /// The scheme is invalid, a limit is 0, or the file cannot be used: it is damaged, belongs to another application,
    /// or cannot be written.
    pub fn new(options: ResultOptions) -> Result<Self, OptionError> {
        options.check()?;
        let store = ResultStore::new(&options)?;
        let cache = ResultCache {
            index: format!("{}:///", options.scheme),
            options,
            store: Mutex::new(store),
            flights: ComputeFlights::default(),
            own: OwnWatch::default(),
        };
        Ok(Self { cache: Arc::new(cache), others: Vec::new(), watching: Arc::default() })
    }

    /// Stores a result, and replaces an earlier one with this id. Clients that watch it are notified and, if it is new,
    /// those that listen to the lists. The least recently used results are removed to make room. With a file, the
    /// result is in it when this returns.
    ///
    /// # Errors
    /// The id is empty or has more than 1,024 bytes, the time is 0, the contents are larger than the cache, or the file cannot be
    /// written.
    pub fn put(
        &self,
        id: &str,
        content: impl Into<Content>,
        options: PutOptions,
    ) -> Result<(), ResultsError> {
        let key = key(id, options.principal.as_deref())?;
        self.cache.put(key, id, content.into(), &options).map(drop)
    }

    /// The result with this id that everybody sees; with a principal, the one that it sees. Counts as a use.
    ///
    /// # Errors
    /// The id is invalid, or the file cannot be read.
    pub fn get(&self, id: &str, principal: Option<&str>) -> Result<Option<ResultEntry>, ResultsError> {
        self.cache.get(&key(id, principal)?)
    }

    /// The result with this id, or the one that `compute` returns, which is then stored. Concurrent calls with the same
    /// id and principal share one computation and its outcome. A failed computation stores nothing. If the computing
    /// call is dropped, another waiting call computes. With a file, this blocks for as long as the file takes.
    ///
    /// # Errors
    /// The computation failed, or its result cannot be stored: see [`Results::put`].
    pub async fn get_or_compute<C, F, T, E>(
        &self,
        id: &str,
        options: PutOptions,
        compute: C,
    ) -> Result<ResultEntry, ComputeError>
    where
        C: FnOnce() -> F,
        F: Future<Output = Result<T, E>>,
        T: Into<Content>,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let cache = &self.cache;
        let key = key(id, options.principal.as_deref())?;
        loop {
            if let Some(entry) = cache.get(&key)? {
                return Ok(entry);
            }
            let lead = match cache.flights.join(key.clone()) {
                Joined::Lead(lead) => lead,
                Joined::Waits(flight) => match flight.finished().await {
                    Some(result) => return result,
                    None => continue,
                },
            };
            // Another computation may have finished since.
            let result = match cache.get(&key)? {
                Some(entry) => Ok(entry),
                None => match compute().await {
                    Ok(content) => {
                        cache.put(key, id, content.into(), &options).map_err(ComputeError::Results)
                    }
                    Err(error) => Err(ComputeError::Failed(Arc::from(error.into()))),
                },
            };
            lead.finish(result.clone());
            return result;
        }
    }

    /// Removes the result of everybody, or of a principal; returns whether it existed.
    ///
    /// # Errors
    /// The id is invalid, or the file cannot be written.
    pub fn remove(&self, id: &str, principal: Option<&str>) -> Result<bool, ResultsError> {
        self.cache.remove(&key(id, principal)?)
    }

    /// The number of results, for everybody and for all principals.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn len(&self) -> Result<usize, ResultsError> {
        self.cache.len()
    }

    /// Whether there are no entries.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn is_empty(&self) -> Result<bool, ResultsError> {
        Ok(self.len()? == 0)
    }

    fn caches(&self) -> impl Iterator<Item = &Arc<ResultCache>> {
        std::iter::once(&self.cache).chain(&self.others)
    }
}

impl Declare for Results {
    const KIND: OptionKind = OptionKind {
        name: "results",
        about: "Results that a program has put, as results:///ID, until they expire.",
        options: ResultOptions::TABLE,
    };

    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError> {
        let options: ResultOptions = declared::read("results", options)?;
        Self::new(options.at(folder))
    }

    fn places(&self) -> Vec<String> {
        self.schemes().into_iter().map(|scheme| format!("{scheme}://")).collect()
    }

    fn schemes(&self) -> Vec<String> {
        self.caches().map(|cache| cache.options.scheme.clone()).collect()
    }

    fn merge(&mut self, other: Self) -> Result<(), OptionError> {
        for cache in other.caches() {
            if self.caches().any(|own| own.options.scheme == cache.options.scheme) {
                return Err(OptionError::sentence(format!(
                    "results: two caches have the scheme {:?}; give one of them another",
                    cache.options.scheme
                )));
            }
        }
        self.others.push(other.cache);
        self.others.extend(other.others);
        Ok(())
    }

    /// `SCHEME`, or nothing.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
        Ok(if rest.is_empty() { OptionValue::None } else { rest.into() })
    }
}

impl ResultCache {
    fn put(
        &self,
        key: ResultKey,
        id: &str,
        content: Content,
        options: &PutOptions,
    ) -> Result<ResultEntry, ResultsError> {
        let ttl = options.ttl.unwrap_or(self.options.ttl);
        if ttl < Duration::from_millis(1) {
            return Err(ResultsError::Invalid(format!(
                "the time of {id:?} is 0, so it could not be kept; give at least a millisecond"
            )));
        }
        let size = content.len() as u64;
        let limit = self.options.bytes;
        if size > limit {
            return Err(ResultsError::TooLarge { id: id.into(), size, limit });
        }
        let now = now();
        let mime_type = options.mime_type.as_deref().map(Into::into);
        let entry =
            ResultEntry { content, mime_type, created: now, expires: now.saturating_add(millis(ttl)) };
        let (is_replaced, gone) = self.store.lock().put(&key, &entry, now)?;
        let mut listed = audiences(&gone);
        if !is_replaced {
            listed.insert(key.principal.clone());
        }
        self.notify(gone.iter().chain([&key]), listed);
        Ok(entry)
    }

    fn get(&self, key: &ResultKey) -> Result<Option<ResultEntry>, ResultsError> {
        let admits = |_| Ok::<(), ResultsError>(());
        self.store.lock().get(&key.id, key.principal.as_deref(), now(), admits)?.transpose()
    }

    fn remove(&self, key: &ResultKey) -> Result<bool, ResultsError> {
        let removed = self.store.lock().remove(key, now())?;
        if removed {
            self.notify([key], audiences([key]));
        }
        Ok(removed)
    }

    fn len(&self) -> Result<usize, ResultsError> {
        let GoneResult { gone, rest } = self.store.lock().len(now())?;
        self.notify(&gone, audiences(&gone));
        Ok(rest)
    }

    /// Notifies the clients that watch one of these results and may see it, and those that listen to the lists of
    /// `listed`.
    fn notify<'k>(&self, keys: impl IntoIterator<Item = &'k ResultKey>, listed: BTreeSet<Audience>) {
        let Some(feed) = self.own.feed() else { return };
        let updated = |uri: &str, audience: &Audience| {
            // They are in canonical form: nothing is wrong with them.
            let _ = match audience {
                None => feed.updated(uri),
                Some(principal) => feed.updated_for(principal, uri),
            };
        };
        keys.into_iter().for_each(|key| updated(&self.uri(&key.id), &key.principal));
        // Everybody comes first.
        let is_public = listed.contains(&None);
        for audience in listed.iter().take(if is_public { 1 } else { usize::MAX }) {
            updated(&self.index, audience);
            match audience {
                None => feed.list_changed(),
                Some(principal) => feed.list_changed_for(principal),
            }
        }
    }

    fn uri(&self, id: &str) -> String {
        let mut uri = self.index.clone();
        path::append(&mut uri, id);
        uri
    }
}

/// For whom these results are.
fn audiences<'k>(keys: impl IntoIterator<Item = &'k ResultKey>) -> BTreeSet<Audience> {
    keys.into_iter().map(|key| key.principal.clone()).collect()
}

/// The key of an id.
fn key(id: &str, principal: Option<&str>) -> Result<ResultKey, ResultsError> {
    if id.is_empty() || id.len() > ID {
        return Err(ResultsError::Invalid(format!("an id has {} bytes; give one of 1 to {ID}", id.len())));
    }
    Ok(ResultKey { id: path::text(id.as_bytes()).into(), principal: principal.map(Into::into) })
}
