//! Results of reads: kept for their `ttlMs`, and shared by concurrent reads of one resource.
//!
//! ```text
//!   get ──cached──▶ answered                                      purge: cached results go; a read under way still
//!    └──▶ begin ──first──▶ Leader ──finish──▶ cached if allowed          answers its waiters, but is not cached
//!          └──another is under way──▶ wait ──▶ answered when that one finishes
//! ```
//!
//! Law: a private result is found by its own principal only. Nothing that was read before a purge is cached. Both locks
//! are leaves: waiting connections are woken after they are released.

use crate::connection::{EncodedContents, InputRequired};
use crate::error::ReadError;
use crate::hub::{ConnectionId, Wakers};
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::resource::{CacheHint, CacheScope};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

/// The read cache. Limited by [`Limits::cache_entries`] and [`Limits::cache_bytes`].
pub(crate) struct ReadCache {
    table: Mutex<ReadCacheTable>,
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
    /// Changed with the table's lock held.
    epoch: AtomicU64,
}

/// Size and use of the read cache, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Cached results.
    pub entries: usize,
    /// Their size in bytes.
    pub bytes: usize,
    /// Reads that were answered from it.
    pub hits: u64,
    /// Reads that called a handler.
    pub misses: u64,
    /// Reads that waited for another read of the same resource.
    pub shared: u64,
}

/// A read under way, shared by all requests for the same resource (single flight).
pub(crate) struct ReadFlight {
    uri: Arc<str>,
    authority: Arc<str>,
    finished: OnceLock<Finished>,
    state: Mutex<FlightState>,
}

#[derive(Default)]
struct FlightState {
    /// The resource was purged meanwhile: the result is not cached.
    is_stale: bool,
    /// Each connection is listed once, even if several of its reads wait.
    waiting: HashMap<ConnectionId, Waker>,
}

/// The outcome of a flight, and its time.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: FlightOutcome,
    pub(crate) now: Now,
}

/// The outcome of a flight.
#[derive(Debug)]
pub(crate) enum FlightOutcome {
    Contents(Arc<EncodedContents>),
    Input(Box<InputRequired<'static>>),
    Failed(ReadError),
}

/// The request that calls the handler. If it is dropped without an answer, the flight fails.
pub(crate) struct ReadLeader {
    cache: Arc<ReadCache>,
    flight: Arc<ReadFlight>,
}

struct ReadCacheTable {
    shelves: HashMap<Arc<str>, CacheShelf>,
    /// The order of eviction. Entries that were removed already may still be listed.
    queue: VecDeque<CacheKey>,
    live: usize,
    bytes: usize,
    serial: u64,
    most_entries: usize,
    most_bytes: usize,
}

/// Results and flights of one URI.
#[derive(Default)]
struct CacheShelf {
    public: Option<CachedRead>,
    private: HashMap<Arc<str>, CachedRead>,
    /// All flights, by address.
    flights: HashMap<usize, Arc<ReadFlight>>,
    /// The flights that other requests may join, by principal.
    open: HashMap<Arc<str>, Arc<ReadFlight>>,
}

struct CachedRead {
    contents: Arc<EncodedContents>,
    until: Millis,
    size: usize,
    serial: u64,
    /// Whether the entry was used since the last eviction round.
    used: bool,
}

struct CacheKey {
    uri: Arc<str>,
    /// `None` for a public result.
    authority: Option<Arc<str>>,
    serial: u64,
}

impl ReadCache {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let table = ReadCacheTable {
            shelves: HashMap::new(),
            queue: VecDeque::new(),
            live: 0,
            bytes: 0,
            serial: 0,
            most_entries: limits.cache_entries,
            most_bytes: limits.cache_bytes,
        };
        let hits = Default::default();
        let misses = Default::default();
        let shared = Default::default();
        let epoch = Default::default();
        Arc::new(Self { table: Mutex::new(table), hits, misses, shared, epoch })
    }

    /// The cached result for `authority` at `uri`, with its remaining time.
    pub(crate) fn get(
        &self,
        uri: &str,
        authority: &str,
        now: Now,
    ) -> Option<(Arc<EncodedContents>, CacheHint)> {
        let found = self.table().get(uri, authority, now.tick)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// The number of purges. Taken before a read is routed.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Makes the caller the leader of a new flight, for a read by `connection` that was routed in this epoch.
    ///
    /// # Errors
    /// The existing flight to wait for, if `is_open` allows joining one. Its end calls `waker`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        uri: &str,
        authority: &str,
        is_open: bool,
        connection: ConnectionId,
        waker: &Waker,
        epoch: u64,
    ) -> Result<ReadLeader, Arc<ReadFlight>> {
        let mut table = self.table();
        // Purged since: the route may be outdated. The read goes on, but is neither shared nor cached.
        let is_stale = self.epoch.load(Ordering::Acquire) != epoch;
        let open = if is_open && !is_stale { table.shelf(uri).open.get(authority) } else { None };
        if let Some(flight) = open {
            // Under the same lock, so the flight cannot finish between being found and being joined.
            flight.state().waiting.entry(connection).or_insert_with(|| waker.clone());
            self.shared.fetch_add(1, Ordering::Relaxed);
            return Err(flight.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(FlightState { is_stale, waiting: HashMap::new() });
        let flight = Arc::new(ReadFlight {
            uri: uri.into(),
            authority: authority.into(),
            finished: OnceLock::new(),
            state,
        });
        if !is_stale {
            table.shelf(uri).enter(&flight, is_open);
        }
        Ok(ReadLeader { cache: self.clone(), flight })
    }

    /// Whether connections other than `except` wait for this flight, whose leader was cancelled. If so, the handler
    /// call continues; if not, no request can join it from now on.
    pub(crate) fn has_waiters(&self, flight: &Arc<ReadFlight>, except: Option<ConnectionId>) -> bool {
        let mut table = self.table();
        let goes_on = flight.state().waiting.keys().any(|id| Some(*id) != except);
        if !goes_on {
            table.leave(flight);
        }
        goes_on
    }

    /// Ends a flight: caches the result if allowed, and wakes the waiting connections. Only the first call counts.
    pub(crate) fn finish(&self, flight: &Arc<ReadFlight>, outcome: FlightOutcome, now: Now) {
        let mut woken = Wakers::default();
        {
            let mut table = self.table();
            table.leave(flight);
            let mut state = flight.state();
            if let FlightOutcome::Contents(contents) = &outcome
                && !state.is_stale
                && flight.finished.get().is_none()
            {
                table.keep(flight, contents, now.tick);
            }
            // Already finished: the first outcome stays.
            let _ = flight.finished.set(Finished { outcome, now });
            woken.extend(state.waiting.drain().map(|(_, waker)| waker));
        }
        woken.wake();
    }

    /// Forgets the results of `uri`, which is in normal form.
    pub(crate) fn purge(&self, uri: &str) {
        let mut table = self.table();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        if let Some(shelf) = table.shelves.remove(uri) {
            table.forget(&shelf);
        }
    }

    /// Forgets all results.
    pub(crate) fn purge_all(&self) {
        let mut table = self.table();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        for shelf in std::mem::take(&mut table.shelves).values() {
            table.forget(shelf);
        }
        table.queue.clear();
    }

    pub(crate) fn counts(&self) -> CacheCounts {
        let (entries, bytes) = {
            let table = self.table();
            (table.live, table.bytes)
        };
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let hits = read(&self.hits);
        let misses = read(&self.misses);
        let shared = read(&self.shared);
        CacheCounts { entries, bytes, hits, misses, shared }
    }

    fn table(&self) -> MutexGuard<'_, ReadCacheTable> {
        lock(&self.table)
    }
}

impl ReadFlight {
    /// The outcome, if it has one.
    pub(crate) fn finished(&self) -> Option<&Finished> {
        self.finished.get()
    }

    /// Replaces the waker of a waiting connection. Calls the new one at once if the connection no longer waits.
    pub(crate) fn wake_with(&self, connection: ConnectionId, waker: &Waker) {
        let waits = {
            let mut state = self.state();
            let waiting = state.waiting.get_mut(&connection);
            waiting.map(|own| own.clone_from(waker)).is_some()
        };
        if !waits {
            waker.wake_by_ref();
        }
    }

    fn state(&self) -> MutexGuard<'_, FlightState> {
        lock(&self.state)
    }
}

impl ReadLeader {
    pub(crate) fn flight(&self) -> &Arc<ReadFlight> {
        &self.flight
    }

    /// Ends the flight with an answer.
    pub(crate) fn finish(self, outcome: FlightOutcome, now: Now) {
        self.cache.finish(&self.flight, outcome, now);
    }
}

impl Drop for ReadLeader {
    fn drop(&mut self) {
        if self.flight.finished().is_none() {
            self.cache.finish(&self.flight, FlightOutcome::Failed(ReadError::Failed), Now::default());
        }
    }
}

impl ReadCacheTable {
    fn shelf(&mut self, uri: &str) -> &mut CacheShelf {
        self.shelves.entry(uri.into()).or_default()
    }

    fn get(&mut self, uri: &str, authority: &str, now: Millis) -> Option<(Arc<EncodedContents>, CacheHint)> {
        let shelf = self.shelves.get_mut(uri)?;
        let slots = [shelf.private.get_mut(authority), shelf.public.as_mut()];
        let slot = slots.into_iter().flatten().find(|slot| now < slot.until)?;
        slot.used = true;
        let hint = CacheHint { ttl_ms: slot.until - now, ..slot.contents.hint() };
        Some((slot.contents.clone(), hint))
    }

    fn keep(&mut self, flight: &ReadFlight, contents: &Arc<EncodedContents>, now: Millis) {
        let hint = contents.hint();
        let size = contents.size() + 2 * (flight.uri.len() + flight.authority.len());
        if hint.ttl_ms == 0 || size > self.most_bytes || self.most_entries == 0 {
            return;
        }
        self.serial += 1;
        let until = now.saturating_add(hint.ttl_ms);
        let slot = CachedRead { contents: contents.clone(), until, size, serial: self.serial, used: false };
        let authority = (hint.scope == CacheScope::Private).then(|| flight.authority.clone());
        let place = CacheKey { uri: flight.uri.clone(), authority: authority.clone(), serial: self.serial };
        let shelf = self.shelf(&flight.uri);
        let before = match authority {
            Some(authority) => shelf.private.insert(authority, slot),
            None => shelf.public.replace(slot),
        };
        self.live += 1;
        self.bytes += size;
        self.queue.push_back(place);
        if let Some(before) = before {
            self.gone(&before);
        }
        self.make_room();
    }

    /// Evicts by second chance: an entry used since the last round stays for another one.
    fn make_room(&mut self) {
        while self.live > self.most_entries || self.bytes > self.most_bytes {
            let Some(place) = self.queue.pop_front() else { break };
            let Some(slot) = self.at(&place) else { continue };
            if std::mem::take(&mut slot.used) {
                self.queue.push_back(place);
            } else {
                self.remove(&place);
            }
        }
        if self.queue.len() > 2 * self.live + 64 {
            let mut queue = std::mem::take(&mut self.queue);
            queue.retain(|place| self.at(place).is_some());
            self.queue = queue;
        }
    }

    /// The entry at `place`, unless it was replaced since.
    fn at(&mut self, place: &CacheKey) -> Option<&mut CachedRead> {
        let shelf = self.shelves.get_mut(&place.uri)?;
        let slot = match &place.authority {
            Some(authority) => shelf.private.get_mut(authority),
            None => shelf.public.as_mut(),
        };
        slot.filter(|slot| slot.serial == place.serial)
    }

    fn remove(&mut self, place: &CacheKey) {
        let Some(shelf) = self.shelves.get_mut(&place.uri) else { return };
        let slot = match &place.authority {
            Some(authority) => shelf.private.remove(authority),
            None => shelf.public.take(),
        };
        if shelf.is_empty() {
            self.shelves.remove(&place.uri);
        }
        if let Some(slot) = slot {
            self.gone(&slot);
        }
    }

    /// Prevents further requests from joining a flight.
    fn leave(&mut self, flight: &Arc<ReadFlight>) {
        let Some(shelf) = self.shelves.get_mut(&flight.uri) else { return };
        shelf.leave(flight);
        if shelf.is_empty() {
            self.shelves.remove(&flight.uri);
        }
    }

    fn forget(&mut self, shelf: &CacheShelf) {
        for slot in shelf.private.values().chain(&shelf.public) {
            self.gone(slot);
        }
        for flight in shelf.flights.values() {
            flight.state().is_stale = true;
        }
    }

    fn gone(&mut self, slot: &CachedRead) {
        self.live -= 1;
        self.bytes -= slot.size;
    }
}

impl CacheShelf {
    fn enter(&mut self, flight: &Arc<ReadFlight>, is_open: bool) {
        self.flights.insert(Arc::as_ptr(flight) as usize, flight.clone());
        if is_open {
            self.open.insert(flight.authority.clone(), flight.clone());
        }
    }

    fn leave(&mut self, flight: &Arc<ReadFlight>) {
        self.flights.remove(&(Arc::as_ptr(flight) as usize));
        if self.open.get(&flight.authority).is_some_and(|open| Arc::ptr_eq(open, flight)) {
            self.open.remove(&flight.authority);
        }
    }

    fn is_empty(&self) -> bool {
        self.public.is_none() && self.private.is_empty() && self.flights.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for ReadLeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("uri", &self.flight.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReadFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("uri", &self.uri).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
