//! What reads gave, kept while it may be, and the reads of the same that are under way (R-219, R-220).
//!
//! ```text
//!   look ──kept──▶ answered                                        purge: what is kept goes, and what is under way
//!    └──▶ fly ──first──▶ Lead ──land──▶ kept, if it may be          is given to those who wait, but is not kept
//!          └──another is under way──▶ join ──▶ answered when that one lands
//! ```
//!
//! Law: what is private is found by its own principal alone. Nothing is kept that was read before a purge. Both locks
//! are leaves: the connections that wait are woken after they were released.

use crate::connection::{InputRequired, Kept};
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

/// See the module. Bounded by [`Limits::cache_entries`] and [`Limits::cache_bytes`].
pub(crate) struct ReadCache {
    table: Mutex<Table>,
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
    /// Changed with the table's lock held.
    epoch: AtomicU64,
}

/// What the read cache has, and how it was used: for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Results that are kept.
    pub entries: usize,
    /// Bytes that they take.
    pub bytes: usize,
    /// Reads that were answered from it.
    pub hits: u64,
    /// Reads that made a call of a handler.
    pub misses: u64,
    /// Reads that waited for another one of the same.
    pub shared: u64,
}

/// A read that is under way, for those who wait for the same.
pub(crate) struct Flight {
    uri: Arc<str>,
    whose: Arc<str>,
    landing: OnceLock<Landing>,
    state: Mutex<FlightState>,
}

#[derive(Default)]
struct FlightState {
    /// What it reads was purged: it is not kept.
    is_stale: bool,
    /// Each connection once, however many of its reads wait.
    waiting: HashMap<ConnectionId, Waker>,
}

/// What a flight came to, and when.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) landed: Landed,
    pub(crate) now: Now,
}

/// What a flight came to.
#[derive(Debug)]
pub(crate) enum Landed {
    Contents(Arc<Kept>),
    Input(Box<InputRequired<'static>>),
    Failed(ReadError),
}

/// The one who makes the call. Dropped without an answer, the flight has failed.
pub(crate) struct Lead {
    cache: Arc<ReadCache>,
    flight: Arc<Flight>,
}

struct Table {
    shelves: HashMap<Arc<str>, Shelf>,
    /// The order in which slots are looked at to make room. Some of them are gone.
    queue: VecDeque<Place>,
    live: usize,
    bytes: usize,
    serial: u64,
    most_entries: usize,
    most_bytes: usize,
}

/// All that concerns one URI.
#[derive(Default)]
struct Shelf {
    public: Option<Slot>,
    private: HashMap<Arc<str>, Slot>,
    /// By address, which the flight keeps its own.
    flights: HashMap<usize, Arc<Flight>>,
    /// Those of them that others may wait for, by whose they are.
    open: HashMap<Arc<str>, Arc<Flight>>,
}

struct Slot {
    kept: Arc<Kept>,
    until: Millis,
    size: usize,
    serial: u64,
    /// Since it was last looked at to make room.
    used: bool,
}

struct Place {
    uri: Arc<str>,
    /// `None` is everybody's.
    whose: Option<Arc<str>>,
    serial: u64,
}

impl ReadCache {
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        let table = Table {
            shelves: HashMap::new(),
            queue: VecDeque::new(),
            live: 0,
            bytes: 0,
            serial: 0,
            most_entries: limits.cache_entries,
            most_bytes: limits.cache_bytes,
        };
        let (hits, misses, shared, epoch) = Default::default();
        Arc::new(Self { table: Mutex::new(table), hits, misses, shared, epoch })
    }

    /// What is kept for `whose` at `uri`, with what is left of its time.
    pub(crate) fn look(&self, uri: &str, whose: &str, now: Now) -> Option<(Arc<Kept>, CacheHint)> {
        let found = self.table().look(uri, whose, now.tick)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// How often something was purged: to be asked for before a read is routed.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The right to make the call, for a read by the connection `by` that was routed in this epoch.
    ///
    /// # Errors
    /// The flight to wait for instead, if `is_open` and there is one: the waker is called when it lands.
    pub(crate) fn fly(
        self: &Arc<Self>,
        uri: &str,
        whose: &str,
        is_open: bool,
        by: (ConnectionId, &Waker),
        epoch: u64,
    ) -> Result<Lead, Arc<Flight>> {
        let mut table = self.table();
        // Purged since: what the route leads to may be gone. It is read, but neither shared nor kept.
        let is_stale = self.epoch.load(Ordering::Acquire) != epoch;
        let open = if is_open && !is_stale { table.shelf(uri).open.get(whose) } else { None };
        if let Some(flight) = open {
            // In the same hold of the lock: nobody can end it between finding and joining.
            flight.state().waiting.entry(by.0).or_insert_with(|| by.1.clone());
            self.shared.fetch_add(1, Ordering::Relaxed);
            return Err(flight.clone());
        }
        self.misses.fetch_add(1, Ordering::Relaxed);
        let state = Mutex::new(FlightState { is_stale, waiting: HashMap::new() });
        let landing = OnceLock::new();
        let flight = Arc::new(Flight { uri: uri.into(), whose: whose.into(), landing, state });
        if !is_stale {
            table.shelf(uri).enter(&flight, is_open);
        }
        Ok(Lead { cache: self.clone(), flight })
    }

    /// The leader's own client waits no longer. Whether others do, on other connections than `but`: then the call goes
    /// on. Else nobody can join it any more.
    pub(crate) fn goes_on(&self, flight: &Arc<Flight>, but: Option<ConnectionId>) -> bool {
        let mut table = self.table();
        let goes_on = flight.state().waiting.keys().any(|id| Some(*id) != but);
        if !goes_on {
            table.leave(flight);
        }
        goes_on
    }

    /// A flight has come to its end: wakes those who wait, and keeps what may be kept. Only the first landing counts.
    pub(crate) fn land(&self, flight: &Arc<Flight>, landed: Landed, now: Now) {
        let mut woken = Wakers::default();
        {
            let mut table = self.table();
            table.leave(flight);
            let mut state = flight.state();
            if let Landed::Contents(kept) = &landed
                && !state.is_stale
                && flight.landing.get().is_none()
            {
                table.keep(flight, kept, now.tick);
            }
            // A second landing changes nothing.
            let _ = flight.landing.set(Landing { landed, now });
            woken.extend(state.waiting.drain().map(|(_, waker)| waker));
        }
        woken.wake();
    }

    /// What was read at `uri`, in normal form, is no longer so.
    pub(crate) fn purge(&self, uri: &str) {
        let mut table = self.table();
        self.epoch.fetch_add(1, Ordering::AcqRel);
        if let Some(shelf) = table.shelves.remove(uri) {
            table.forget(&shelf);
        }
    }

    /// Nothing is any longer as it was read.
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
        let (hits, misses, shared) = (read(&self.hits), read(&self.misses), read(&self.shared));
        CacheCounts { entries, bytes, hits, misses, shared }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.table)
    }
}

impl Flight {
    /// What it came to, once it has.
    pub(crate) fn landing(&self) -> Option<&Landing> {
        self.landing.get()
    }

    /// A connection that waits is woken with another waker; at once if it waits no longer.
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

impl Lead {
    pub(crate) fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// There is an answer.
    pub(crate) fn land(self, landed: Landed, now: Now) {
        self.cache.land(&self.flight, landed, now);
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if self.flight.landing().is_none() {
            self.cache.land(&self.flight, Landed::Failed(ReadError::Failed), Now::default());
        }
    }
}

impl Table {
    fn shelf(&mut self, uri: &str) -> &mut Shelf {
        self.shelves.entry(uri.into()).or_default()
    }

    fn look(&mut self, uri: &str, whose: &str, now: Millis) -> Option<(Arc<Kept>, CacheHint)> {
        let shelf = self.shelves.get_mut(uri)?;
        let slots = [shelf.private.get_mut(whose), shelf.public.as_mut()];
        let slot = slots.into_iter().flatten().find(|slot| now < slot.until)?;
        slot.used = true;
        let hint = CacheHint { ttl_ms: slot.until - now, ..slot.kept.hint() };
        Some((slot.kept.clone(), hint))
    }

    fn keep(&mut self, flight: &Flight, kept: &Arc<Kept>, now: Millis) {
        let hint = kept.hint();
        let size = kept.size() + 2 * (flight.uri.len() + flight.whose.len());
        if hint.ttl_ms == 0 || size > self.most_bytes || self.most_entries == 0 {
            return;
        }
        self.serial += 1;
        let until = now.saturating_add(hint.ttl_ms);
        let slot = Slot { kept: kept.clone(), until, size, serial: self.serial, used: false };
        let whose = (hint.scope == CacheScope::Private).then(|| flight.whose.clone());
        let place = Place { uri: flight.uri.clone(), whose: whose.clone(), serial: self.serial };
        let shelf = self.shelf(&flight.uri);
        let before = match whose {
            Some(whose) => shelf.private.insert(whose, slot),
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

    /// Second chance: what was used since it was last looked at stays for another round.
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

    /// The slot of a place, if it is still the one that was put there.
    fn at(&mut self, place: &Place) -> Option<&mut Slot> {
        let shelf = self.shelves.get_mut(&place.uri)?;
        let slot = match &place.whose {
            Some(whose) => shelf.private.get_mut(whose),
            None => shelf.public.as_mut(),
        };
        slot.filter(|slot| slot.serial == place.serial)
    }

    fn remove(&mut self, place: &Place) {
        let Some(shelf) = self.shelves.get_mut(&place.uri) else { return };
        let slot = match &place.whose {
            Some(whose) => shelf.private.remove(whose),
            None => shelf.public.take(),
        };
        if shelf.is_empty() {
            self.shelves.remove(&place.uri);
        }
        if let Some(slot) = slot {
            self.gone(&slot);
        }
    }

    /// A flight is not to be joined any more.
    fn leave(&mut self, flight: &Arc<Flight>) {
        let Some(shelf) = self.shelves.get_mut(&flight.uri) else { return };
        shelf.leave(flight);
        if shelf.is_empty() {
            self.shelves.remove(&flight.uri);
        }
    }

    fn forget(&mut self, shelf: &Shelf) {
        for slot in shelf.private.values().chain(&shelf.public) {
            self.gone(slot);
        }
        for flight in shelf.flights.values() {
            flight.state().is_stale = true;
        }
    }

    fn gone(&mut self, slot: &Slot) {
        self.live -= 1;
        self.bytes -= slot.size;
    }
}

impl Shelf {
    fn enter(&mut self, flight: &Arc<Flight>, is_open: bool) {
        self.flights.insert(Arc::as_ptr(flight) as usize, flight.clone());
        if is_open {
            self.open.insert(flight.whose.clone(), flight.clone());
        }
    }

    fn leave(&mut self, flight: &Arc<Flight>) {
        self.flights.remove(&(Arc::as_ptr(flight) as usize));
        if self.open.get(&flight.whose).is_some_and(|open| Arc::ptr_eq(open, flight)) {
            self.open.remove(&flight.whose);
        }
    }

    fn is_empty(&self) -> bool {
        self.public.is_none() && self.private.is_empty() && self.flights.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Lead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lead").field("uri", &self.flight.uri).finish_non_exhaustive()
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").field("uri", &self.uri).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
