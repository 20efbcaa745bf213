//! Tracks what clients watch and have read of a provider, and runs the thread that finds changes.
//!
//! ```text
//!   request ───── snapshot ──┐                     ┌──▶ TrackedSource::refresh ──▶ Snapshot, from which requests are answered
//!   subscription ─ interest ─┴▶ one thread ────────┤
//!                                                  └──▶ TrackedSource::digest of each watched URI ── differs ──▶ updated
//!   read ───────── saw ───────▶ digests of reads ── the first comparison ──────────▲
//! ```
//!
//! Law:
//! - A thread begins with the first subscriber, or with a request for a snapshot. It ends when there is no subscriber and for
//!   [`TrackedSource::IDLE`] no such request, or with the mount. A long refresh asks [`TrackerWork::is_wanted`] at each step,
//!   and is left off then. There is one thread at a time, and a forked process begins its own.
//! - A change is another digest of what a reader would get. What is hidden, ignored or excluded has the digest of what is
//!   absent, so nothing that happens there is reported; that it is not served any longer is one change, as if it were removed.
//! - The first comparison of a URI is with what was last read there, so a change between a read and its subscription is
//!   reported. Without an earlier read, only a change after the subscription is.
//! - A read that began before a comparison and ended after it may have what was there before the change: then a comparison
//!   follows that has its digest.
//! - Digests of `READS` to twice as many reads are kept. If one was dropped, a URI without a digest counts as changed.
//! - The lock is a leaf: no source is asked, nothing is logged and no client is notified while it is held. Only
//!   [`TrackedSource::digest`] of a snapshot that is there already may be computed.

use crate::wanted::while_wanted;
use mcp_resources_runtime::provider::{Feed, InterestChange};
use mcp_resources_runtime::sync::{Condvar, Mutex};
use mcp_resources_template::uri;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// The number of reads in each of two generations.
const READS: usize = 4_096;
/// Interval at which a request that waits for a snapshot looks whether it is cancelled.
const WAIT: Duration = Duration::from_millis(50);
/// Interval at which an idle thread looks whether it is still needed.
const IDLE_CHECK: Duration = Duration::from_millis(500);
/// The clock of a file system moves with the kernel's ticks.
const TICK: Duration = Duration::from_millis(20);
/// Stands for the lists where a URI is expected: no URI is empty.
pub const LISTS: &str = "";

/// Finds what there is, and says by digests what has changed.
pub trait TrackedSource: Send + Sync + Sized + 'static {
    /// The name of the thread.
    const THREAD: &'static str;
    /// Time after the last request for a snapshot until the thread ends, without a subscriber.
    const IDLE: Duration = Duration::ZERO;
    /// Whether lists that were never read count as changed when they are watched.
    const ANNOUNCES_LISTS: bool = false;

    /// Everything that is known at one moment.
    type Snapshot: Send + Sync + 'static;
    /// A digest of contents.
    type Digest: Copy + PartialEq + fmt::Debug + Send + 'static;
    /// The state of the thread, dropped when it ends.
    type Worker;

    /// The snapshot before the first refresh.
    fn empty(&self) -> Self::Snapshot;

    /// The state of a new thread. Called on it.
    fn begin(&self, tracker: &Arc<Tracker<Self>>, feed: &Feed) -> Self::Worker;

    /// Brings the snapshot up to date and publishes it. Returns how long to wait until the next refresh, if nothing wakes the
    /// thread before; `None` if the refresh stopped early because no client wants it any more.
    fn refresh(&self, worker: &mut Self::Worker, work: &TrackerWork<'_, Self>) -> Option<Duration>;

    /// The digest of what a reader of a canonical URI gets, or of the lists for [`LISTS`]. `None` if it is not known now.
    fn digest(&self, snapshot: &Self::Snapshot, uri: &str) -> Option<Self::Digest>;

    /// When what is at a URI last changed; `None` if that is not known.
    fn changed_at(&self, _snapshot: &Self::Snapshot, _uri: &str) -> Option<SystemTime> {
        None
    }

    /// Whether the contents with the digest `now` are others than those with the digest `before`.
    fn differs(&self, _snapshot: &Self::Snapshot, before: Self::Digest, now: Self::Digest) -> bool {
        before != now
    }

    /// Whether a snapshot has everything. If one that has not answers a request, the lists count as changed.
    fn is_whole(&self, _snapshot: &Self::Snapshot) -> bool {
        true
    }

    /// Called after changes were reported. May take long as long as [`TrackerWork::is_at_rest`].
    fn tidy(&self, _work: &TrackerWork<'_, Self>) {}

    /// The mount has ended, or the thread has failed: what was kept for the next thread is to go.
    fn forget(&self) {}
}

/// Looks at a source while something of it is watched, and reports what has changed.
#[derive(Debug)]
pub struct Tracker<S: TrackedSource> {
    pub source: S,
    state: Mutex<TrackerState<S>>,
    changed: Condvar,
    hasher: RandomState,
}

/// A tracker for each process: after a fork the child makes its own.
pub struct ProcessTracker<S: TrackedSource>(Mutex<Option<(u32, Arc<Tracker<S>>)>>);

/// The questions and actions available to a refresh.
pub struct TrackerWork<'w, S: TrackedSource> {
    pub feed: &'w Feed,
    tracker: &'w Tracker<S>,
    watched: &'w [WatchedName],
}

/// When a read began: after so many comparisons.
#[derive(Clone, Copy, Debug)]
pub struct ReadStart(u64);

/// A watched URI, or [`LISTS`].
pub struct WatchedName {
    pub uri: Arc<str>,
    /// Whether it is compared for the first time.
    pub is_new: bool,
}

struct TrackerState<S: TrackedSource> {
    snapshot: Arc<S::Snapshot>,
    /// The number of the thread, if one runs.
    thread: Option<u64>,
    /// The number of threads that were started.
    started: u64,
    /// Whether the snapshot is as new as it can be.
    is_ready: bool,
    is_woken: bool,
    /// Whether a subscriber is new.
    has_news: bool,
    /// When a request last asked for a snapshot.
    used: Option<Instant>,
    /// The number of requests that wait for a snapshot.
    waiting: usize,
    watched: HashMap<Arc<str>, Known<S::Digest>>,
    /// Whether a request was answered before everything was known.
    is_partly_seen: bool,
    /// The number of comparisons so far.
    comparisons: u64,
    reads: TrackedReads<S::Digest>,
}

/// The result of a comparison.
#[derive(Debug, Default, PartialEq)]
struct FoundChanges {
    updated: Vec<Arc<str>>,
    /// Whether the lists have changed.
    lists: bool,
}

/// The last known digest of a watched URI.
#[derive(Clone, Copy, Debug)]
enum Known<D> {
    /// It was not compared yet.
    New(FirstKnown<D>),
    Compared {
        digest: D,
        /// The digest of a read, if it may be outdated.
        read: Option<D>,
    },
}

/// The basis of the first comparison.
#[derive(Clone, Copy, Debug)]
struct FirstKnown<D> {
    /// Of the last read before.
    read: Option<D>,
    /// Of the first read since.
    first: Option<D>,
    /// Of the snapshot that was up to date when the watch began.
    snapshot: Option<D>,
    /// When the watch began.
    since: SystemTime,
    /// Whether a read may have been forgotten.
    may_be_read: bool,
}

/// Digests of the last reads, by a hash of the URI: a newer generation and an older one.
#[derive(Debug)]
struct TrackedReads<D> {
    newer: HashMap<u64, D>,
    older: HashMap<u64, D>,
    has_forgotten: bool,
}

impl<D: Copy> TrackedReads<D> {
    fn insert(&mut self, key: u64, digest: D) {
        if self.newer.len() >= READS && !self.newer.contains_key(&key) {
            self.has_forgotten |= !self.older.is_empty();
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(key, digest);
    }

    fn get(&self, key: u64) -> Option<D> {
        self.newer.get(&key).or_else(|| self.older.get(&key)).copied()
    }
}

impl<D> Default for TrackedReads<D> {
    fn default() -> Self {
        Self { newer: HashMap::new(), older: HashMap::new(), has_forgotten: false }
    }
}

impl<D> FirstKnown<D> {
    /// Whether there was a change that a subscriber may not know. `later` is of the last read until now, and `changed_at`
    /// when the contents last changed.
    fn is_changed(
        &self,
        differs: impl Fn(&D) -> bool,
        later: Option<D>,
        changed_at: Option<SystemTime>,
    ) -> bool {
        if self.read.is_some() || later.is_some() {
            return [&self.read, &self.first, &later].into_iter().flatten().any(differs);
        }
        // As times of file systems are: somewhat too early.
        let is_later = changed_at.map(|at| at + TICK >= self.since);
        match &self.snapshot {
            Some(before) => differs(before) && is_later.unwrap_or(true),
            None => self.may_be_read || is_later.unwrap_or(false),
        }
    }
}

impl<S: TrackedSource> Tracker<S> {
    fn new(source: S) -> Arc<Self> {
        let state = TrackerState {
            snapshot: Arc::new(source.empty()),
            thread: None,
            started: 0,
            is_ready: false,
            is_woken: false,
            has_news: false,
            used: None,
            waiting: 0,
            watched: HashMap::new(),
            is_partly_seen: false,
            comparisons: 0,
            reads: TrackedReads::default(),
        };
        Arc::new(Self {
            source,
            state: Mutex::new(state),
            changed: Condvar::new(),
            hasher: RandomState::new(),
        })
    }

    /// The last snapshot, however old it is.
    pub fn current(&self) -> Arc<S::Snapshot> {
        self.state.lock().snapshot.clone()
    }

    /// Requests are answered from `snapshot` from now on. Only for the thread.
    pub fn publish(&self, snapshot: S::Snapshot) {
        self.state.lock().snapshot = Arc::new(snapshot);
    }

    /// A snapshot that is up to date. Waits for the thread, which begins if there is none, but no longer than `patience`: then
    /// a part may be missing. `None` if the request is cancelled, or no thread can be started.
    pub fn snapshot(
        self: &Arc<Self>,
        feed: Option<Feed>,
        patience: Duration,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Option<Arc<S::Snapshot>> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        state.used = Some(begun);
        state.waiting += 1;
        let mut tries = 0;
        let found = loop {
            if state.is_ready && state.thread.is_some() {
                break Some(state.snapshot.clone());
            }
            if state.thread.is_none() {
                tries += 1;
                let Some(feed) = feed.clone().filter(|_| tries <= 2) else { break None };
                if !self.begin(&mut state, feed) {
                    break None;
                }
            }
            if begun.elapsed() >= patience {
                state.is_partly_seen |= !self.source.is_whole(&state.snapshot);
                break Some(state.snapshot.clone());
            }
            if is_cancelled() {
                break None;
            }
            state = self.changed.wait_for(state, WAIT).0;
        };
        state.waiting -= 1;
        found
    }

    /// The next refresh is at once. `is_outdated`: requests for a snapshot wait for it.
    pub fn wake(&self, is_outdated: bool) {
        let mut state = self.state.lock();
        state.is_woken = true;
        state.is_ready &= !is_outdated;
        self.changed.notify_all();
    }

    /// Keeps the digest of the contents read at a canonical URI, or of the entries listed for [`LISTS`], by a read that began
    /// at `start`.
    pub fn saw(&self, uri: &str, digest: S::Digest, start: ReadStart) {
        let key = self.hasher.hash_one(uri);
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.reads.insert(key, digest);
        match state.watched.get_mut(uri) {
            Some(Known::New(known)) => drop(known.first.get_or_insert(digest)),
            Some(Known::Compared { digest: known, read })
                if start.0 != state.comparisons && self.source.differs(&state.snapshot, *known, digest) =>
            {
                *read = Some(digest);
                state.has_news = true;
                drop(guard);
                self.changed.notify_all();
            }
            _ => {}
        }
    }

    /// Like [`saw`](Self::saw), for the URI of a request, in any spelling.
    pub fn saw_any_spelling(&self, uri: &str, digest: S::Digest, start: ReadStart) {
        if let Ok(uri) = uri::normalize(uri, uri::MAX_URI) {
            self.saw(&uri, digest, start);
        }
    }

    /// A read begins: call this before anything is read.
    pub fn start_read(&self) -> ReadStart {
        ReadStart(self.state.lock().comparisons)
    }

    /// The digest of what was last read at a canonical URI.
    pub fn last_read(&self, uri: &str) -> Option<S::Digest> {
        let key = self.hasher.hash_one(uri);
        self.state.lock().reads.get(key)
    }

    /// Records a change of interest. The first interest starts the thread.
    pub fn interest(self: &Arc<Self>, change: InterestChange<'_>, feed: Option<Feed>) {
        let lists: Arc<str>;
        let (uri, on) = match change {
            InterestChange::Uri { uri, on, .. } => (uri, on),
            InterestChange::Lists { on } => {
                lists = LISTS.into();
                (&lists, on)
            }
        };
        let mut state = self.state.lock();
        if on {
            self.watch(&mut state, uri);
            if let Some(feed) = feed.filter(|_| state.thread.is_none()) {
                self.begin(&mut state, feed);
            }
        } else {
            state.watched.remove(uri);
        }
        self.changed.notify_all();
    }

    fn watch(&self, state: &mut TrackerState<S>, uri: &Arc<str>) {
        let is_current = state.thread.is_some() && state.is_ready;
        let first = FirstKnown {
            read: state.reads.get(self.hasher.hash_one(&**uri)),
            first: None,
            snapshot: is_current.then(|| self.source.digest(&state.snapshot, uri)).flatten(),
            since: SystemTime::now(),
            may_be_read: state.reads.has_forgotten,
        };
        if let Entry::Vacant(place) = state.watched.entry(uri.clone()) {
            place.insert(Known::New(first));
            state.has_news = true;
        }
    }

    fn begin(self: &Arc<Self>, state: &mut TrackerState<S>, feed: Feed) -> bool {
        state.is_ready = false;
        state.started += 1;
        let number = state.started;
        let own = self.clone();
        let run = move || {
            // After a panic, which the hook has logged, the next request or interest starts another thread.
            let mount = feed.clone();
            let work = || while_wanted(move || mount.is_alive(), || own.run(&feed));
            let has_failed = catch_unwind(AssertUnwindSafe(work)).is_err();
            own.stop(number, has_failed || !feed.is_alive());
        };
        let is_started = std::thread::Builder::new().name(S::THREAD.into()).spawn(run).is_ok();
        state.thread = is_started.then_some(number);
        is_started
    }

    fn run(self: &Arc<Self>, feed: &Feed) {
        let mut worker = self.source.begin(self, feed);
        let mut pause = Duration::ZERO;
        while let Some(watched) = self.wait(feed, pause) {
            let work = TrackerWork { feed, tracker: self, watched: &watched };
            // Left off, the snapshot is not up to date: the next refresh follows at once, if anybody wants it by then.
            let Some(rest) = self.source.refresh(&mut worker, &work) else {
                pause = Duration::ZERO;
                continue;
            };
            pause = rest;
            let FoundChanges { updated, lists } = self.compare(&watched);
            for uri in updated {
                // The URI is in canonical form, so it is valid.
                let _ = feed.updated(&uri);
            }
            if lists {
                feed.list_changed();
            }
            self.source.tidy(&work);
        }
    }

    /// Waits until it is time to refresh. Returns what is watched; `None` if the thread is to end.
    fn wait(&self, feed: &Feed, pause: Duration) -> Option<Vec<WatchedName>> {
        let begun = Instant::now();
        let mut state = self.state.lock();
        loop {
            if !state.is_wanted() || !feed.is_alive() {
                // Under the same lock: a later request or interest starts another thread.
                state.thread = None;
                return None;
            }
            let left = pause.saturating_sub(begun.elapsed());
            if state.is_woken || state.has_news || left.is_zero() {
                state.is_woken = false;
                state.has_news = false;
                let name = |(uri, known): (&Arc<str>, &Known<S::Digest>)| WatchedName {
                    uri: uri.clone(),
                    is_new: matches!(known, Known::New(_)),
                };
                return Some(state.watched.iter().map(name).collect());
            }
            state = self.changed.wait_for(state, left.min(IDLE_CHECK)).0;
        }
    }

    /// Finds what differs from what is known.
    fn compare(&self, watched: &[WatchedName]) -> FoundChanges {
        let snapshot = self.current();
        let source = &self.source;
        let now: Vec<_> = watched
            .iter()
            .map(|name| {
                let changed_at = name.is_new.then(|| source.changed_at(&snapshot, &name.uri)).flatten();
                (name, source.digest(&snapshot, &name.uri), changed_at)
            })
            .collect();
        let mut updated = Vec::new();
        let mut state = self.state.lock();
        state.is_ready = true;
        state.comparisons += 1;
        let mut is_listed_otherwise = std::mem::take(&mut state.is_partly_seen);
        for (name, digest, changed_at) in now {
            let later = state.reads.get(self.hasher.hash_one(&*name.uri));
            let (Some(digest), Some(known)) = (digest, state.watched.get_mut(&name.uri)) else { continue };
            let is_lists = &*name.uri == LISTS;
            let differs = |before: &S::Digest| source.differs(&snapshot, *before, digest);
            let is_changed = match known {
                Known::Compared { digest, read } => differs(digest) || read.as_ref().is_some_and(differs),
                Known::New(FirstKnown { read: None, .. }) if is_lists && S::ANNOUNCES_LISTS => true,
                Known::New(first) => first.is_changed(differs, later, changed_at),
            };
            *known = Known::Compared { digest, read: None };
            match is_lists {
                true => is_listed_otherwise |= is_changed,
                false if is_changed => updated.push(name.uri.clone()),
                false => {}
            }
        }
        drop(state);
        self.changed.notify_all();
        FoundChanges { updated, lists: is_listed_otherwise }
    }

    /// The thread has ended. With the mount, what is known ends too.
    fn stop(&self, number: u64, is_over: bool) {
        let mut state = self.state.lock();
        if state.thread.is_some_and(|other| other != number) {
            return;
        }
        state.thread = None;
        state.is_ready = false;
        if is_over {
            state.snapshot = Arc::new(self.source.empty());
        }
        drop(state);
        if is_over {
            self.source.forget();
        }
        self.changed.notify_all();
    }
}

impl<S: TrackedSource> TrackerState<S> {
    /// Whether there is a subscriber, a request that waits, or a request not long ago.
    fn is_wanted(&self) -> bool {
        !self.watched.is_empty() || self.waiting > 0 || self.used.is_some_and(|then| then.elapsed() < S::IDLE)
    }
}

impl<S: TrackedSource> TrackerWork<'_, S> {
    /// The watched URIs.
    pub fn watched(&self) -> &[WatchedName] {
        self.watched
    }

    /// The last snapshot.
    pub fn current(&self) -> Arc<S::Snapshot> {
        self.tracker.current()
    }

    /// Requests are answered from `snapshot` from now on.
    pub fn publish(&self, snapshot: S::Snapshot) {
        self.tracker.publish(snapshot);
    }

    /// The digest of what was last read at a canonical URI.
    pub fn last_read(&self, uri: &str) -> Option<S::Digest> {
        self.tracker.last_read(uri)
    }

    /// Whether anybody wants this refresh: a subscriber, a request that waits, or one not long ago.
    pub fn is_wanted(&self) -> bool {
        self.feed.is_alive() && self.tracker.state.lock().is_wanted()
    }

    /// Whether nothing waits for this refresh to end.
    pub fn is_at_rest(&self) -> bool {
        let state = self.tracker.state.lock();
        !state.is_woken && !state.has_news && self.feed.is_alive()
    }
}

impl<S: TrackedSource> ProcessTracker<S> {
    /// The tracker of this process, made on first use.
    pub fn get(&self, source: impl FnOnce() -> S) -> Arc<Tracker<S>> {
        let mut own = self.0.lock();
        let process = std::process::id();
        match &*own {
            Some((of, tracker)) if *of == process => tracker.clone(),
            _ => {
                let tracker = Tracker::new(source());
                // A thread of the parent may hold locks of its tracker for ever, and its files belong to the parent.
                std::mem::forget(own.replace((process, tracker.clone())));
                tracker
            }
        }
    }

    /// Drops the tracker of this process, if there is one: the next use makes another.
    pub fn clear(&self) {
        *self.0.lock() = None;
    }
}

impl<S: TrackedSource> Default for ProcessTracker<S> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<S: TrackedSource> fmt::Debug for ProcessTracker<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessTracker").finish_non_exhaustive()
    }
}

impl<S: TrackedSource> fmt::Debug for TrackerState<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrackerState").field("watched", &self.watched).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_runtime::provider::Route;

    const SINCE: SystemTime = SystemTime::UNIX_EPOCH;

    fn first(read: Option<u8>, snapshot: Option<u8>, may_be_read: bool) -> FirstKnown<u8> {
        FirstKnown { read, first: None, snapshot, since: SINCE + Duration::from_secs(9), may_be_read }
    }

    // R-083: what the first comparison reports of contents with the digest 1.
    #[test]
    fn the_first_comparison() {
        let earlier = Some(SINCE);
        let later = Some(SINCE + Duration::from_secs(10));
        for (known, changed_at, is_changed) in [
            // Somebody has read it: what was read decides.
            (first(Some(1), None, false), later, false),
            (first(Some(0), None, false), earlier, true),
            (first(Some(0), Some(1), false), None, true),
            // It was never read: only a change after the subscription is reported.
            (first(None, None, false), None, false),
            (first(None, None, false), earlier, false),
            (first(None, None, false), later, true),
            (first(None, Some(1), false), None, false),
            (first(None, Some(0), false), None, true),
            (first(None, Some(0), false), earlier, false),
            // Somebody may have.
            (first(None, None, true), earlier, true),
        ] {
            assert_eq!(known.is_changed(|before| *before != 1, None, changed_at), is_changed, "{known:?}");
        }
        // A read between the subscription and the comparison counts too, but does not hide an earlier one.
        for (read, later, is_changed) in
            [(None, 0, true), (None, 1, false), (Some(0), 1, true), (Some(1), 0, true)]
        {
            let known = first(read, None, false);
            assert_eq!(
                known.is_changed(|before| *before != 1, Some(later), None),
                is_changed,
                "{read:?} {later}"
            );
        }
    }

    /// A source of one number, which is the digest of everything.
    #[derive(Default)]
    struct OneNumber(Mutex<u8>);

    impl TrackedSource for OneNumber {
        const THREAD: &'static str = "one-number";
        type Snapshot = u8;
        type Digest = u8;
        type Worker = ();

        fn empty(&self) -> u8 {
            0
        }

        fn begin(&self, _tracker: &Arc<Tracker<Self>>, _feed: &Feed) {}

        fn refresh(&self, _worker: &mut (), work: &TrackerWork<'_, Self>) -> Option<Duration> {
            work.publish(*self.0.lock());
            Some(Duration::MAX)
        }

        fn digest(&self, snapshot: &u8, _uri: &str) -> Option<u8> {
            Some(*snapshot)
        }
    }

    // R-083: a read that ends after the comparison of a change that it has not seen is followed by a notification, and one
    // that began later is not. The lists are no exception.
    #[test]
    fn an_outdated_read_is_reported() {
        let tracker = Tracker::new(OneNumber::default());
        let uri: Arc<str> = "x://a".into();
        tracker.interest(InterestChange::Uri { uri: &uri, route: Route(0), on: true }, None);
        tracker.interest(InterestChange::Lists { on: true }, None);
        let names = |is_new| [uri.clone(), LISTS.into()].map(|uri| WatchedName { uri, is_new });
        let everything = FoundChanges { updated: vec![uri.clone()], lists: true };
        let early = tracker.start_read();
        tracker.publish(1);
        assert_eq!(tracker.compare(&names(true)), FoundChanges::default());
        // It has read what was there before.
        tracker.saw(&uri, 0, early);
        tracker.saw(LISTS, 0, early);
        assert!(tracker.state.lock().has_news);
        assert_eq!(tracker.compare(&names(false)), everything);
        assert_eq!(tracker.compare(&names(false)), FoundChanges::default());
        // Of two reads before the first comparison, the first one counts too.
        let other: Arc<str> = "x://b".into();
        tracker.interest(InterestChange::Uri { uri: &other, route: Route(0), on: true }, None);
        for digest in [0, 1] {
            tracker.saw(&other, digest, tracker.start_read());
        }
        let first = [WatchedName { uri: other.clone(), is_new: true }];
        assert_eq!(tracker.compare(&first), FoundChanges { updated: vec![other], lists: false });
        // A read of the same, and one that is newer than the comparison.
        tracker.saw(&uri, 1, early);
        tracker.saw(&uri, 2, tracker.start_read());
        assert_eq!(tracker.compare(&names(false)), FoundChanges::default());
        tracker.publish(2);
        assert_eq!(tracker.compare(&names(false)), everything);
    }

    // The table of reads has a limit, and says when it has forgotten one.
    #[test]
    fn reads_are_limited() {
        let mut reads = TrackedReads::default();
        for key in 0..2 * READS as u64 {
            reads.insert(key, key);
        }
        assert_eq!((reads.get(0), reads.has_forgotten), (Some(0), false));
        reads.insert(u64::MAX, 1);
        assert_eq!(
            (reads.get(0), reads.get(READS as u64), reads.has_forgotten),
            (None, Some(READS as u64), true)
        );
        assert!(reads.newer.len() + reads.older.len() <= 2 * READS);
    }
}
