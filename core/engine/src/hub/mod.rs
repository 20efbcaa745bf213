//! Who watches what, over all connections, and what each of them must still be told.
//!
//! Law: a change only *marks*; bytes are made in [`Hub::deliver`] alone, when the owner of a stream can write. So a
//! slow consumer holds dirty bits, never bytes, and what it holds is bounded by what it asked for (DEC-17). The one
//! lock is a leaf: nothing is asked, worded, woken or called while it is held, and no read or list takes it.

mod coalesce;
#[cfg(test)]
mod model;
mod notice;
mod table;
#[cfg(test)]
mod tests;
mod wakers;

pub use notice::word_end;
pub(crate) use wakers::Wakers;

use crate::json_text;
use crate::jsonrpc::Id;
use crate::limits::Limits;
use crate::now::Millis;
use crate::principal::Principal;
use notice::{Batch, VisibilityCache};
use std::collections::HashSet;
use std::fmt;
use std::ops::BitOr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use table::{Spelling, Table, Wanted};

/// The only table of subscriptions of a server. An unknown [`ConnectionId`] is ignored everywhere: it has nothing
/// here, or has just left.
#[derive(Debug)]
pub struct Hub {
    next: AtomicU64,
    max_filter_uris: usize,
    table: Mutex<Table>,
}

impl Hub {
    /// An empty hub, with the bounds `subscriptions`, `filter_uris` and `coalesce` of `limits`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            next: AtomicU64::new(0),
            max_filter_uris: limits.filter_uris,
            table: Mutex::new(Table::new(limits)),
        }
    }

    /// A number for a new connection. Takes no lock: a connection that never calls [`Hub::legacy`] or
    /// [`Hub::listen`] has nothing here and need not be disconnected.
    pub fn connect(&self) -> ConnectionId {
        ConnectionId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Frees everything that the connection holds. Returns the canonical URIs that nobody watches
    /// any longer.
    pub fn disconnect(&self, id: ConnectionId) -> Vec<Arc<str>> {
        self.lock().disconnect(id)
    }

    /// The connection negotiated a legacy revision: it may subscribe, and hears of changes to the lists in `lists`
    /// (those whose `listChanged` was declared, R-042, R-076), all held back until [`Hub::ready`] (R-038, DEC-08).
    /// `waker` is woken whenever there is something to deliver and there was nothing before. A second call changes nothing.
    pub fn legacy(&self, id: ConnectionId, principal: Arc<Principal>, lists: ListKinds, waker: &Waker) {
        self.lock().legacy(id, principal, lists, waker);
    }

    /// Replaces the waker of a connection that called [`Hub::legacy`] or [`Hub::listen`], and wakes it once: there may be
    /// something to deliver already.
    pub fn wake_with(&self, id: ConnectionId, waker: &Waker) {
        let is_known = self.lock().wake_with(id, waker);
        if is_known {
            waker.wake_by_ref();
        }
    }

    /// `notifications/initialized` came: what was held back may go out.
    pub fn ready(&self, id: ConnectionId) {
        self.waking(|table, woken| table.ready(id, woken));
    }

    /// `resources/subscribe` on a connection that called [`Hub::legacy`]. Idempotent: the first `spelling` is the one
    /// that its notifications carry (R-081, DEC-15). Returns `canonical` if nobody watched it before.
    ///
    /// # Errors
    /// [`LimitReached`] when the connection holds [`Limits::subscriptions`] (DEC-18), or would watch more than
    /// [`Limits::watched_bytes`] or [`Limits::watched_total`].
    pub fn subscribe(
        &self,
        id: ConnectionId,
        canonical: &str,
        spelling: &str,
    ) -> Result<Option<Arc<str>>, LimitReached> {
        let spelling = own_spelling(canonical, spelling);
        self.lock().subscribe(id, canonical, spelling)
    }

    /// `resources/unsubscribe`: nothing further is delivered for `canonical`, not even what was pending.
    /// Returns it if nobody watches it any longer.
    pub fn unsubscribe(&self, id: ConnectionId, canonical: &str) -> Option<Arc<str>> {
        self.lock().unsubscribe(id, canonical)
    }

    /// `subscriptions/listen`. Its id is repeated byte for byte in whatever it is told. The caller writes the
    /// acknowledgement before the next [`Hub::deliver`] on this connection. Returns the URIs that nobody
    /// watched before. `waker` is that of the connection, as in [`Hub::legacy`]; the first one stays. After
    /// [`Hub::shutdown`] of the connection the next deliver ends it.
    ///
    /// # Errors
    /// [`ListenError`]; nothing is registered then.
    pub fn listen(
        &self,
        id: ConnectionId,
        request_id: Id<'_>,
        principal: Arc<Principal>,
        filter: Filter<'_>,
        waker: &Waker,
    ) -> Result<Vec<Arc<str>>, ListenError> {
        let mut seen = HashSet::with_capacity(filter.uris.len());
        let distinct = filter.uris.iter().filter(|(canonical, _)| seen.insert(*canonical));
        let uris: Vec<_> =
            distinct.map(|(canonical, spelling)| (*canonical, own_spelling(canonical, spelling))).collect();
        if uris.len() > self.max_filter_uris {
            return Err(ListenError::LimitReached);
        }
        let wanted = Wanted { lists: filter.lists, uris };
        self.waking(|table, woken| table.listen(id, request_id, principal, wanted, waker, woken))
    }

    /// `notifications/cancelled` for a listen: nothing further for that id, and no response. Returns the URIs
    /// that nobody watches any longer, or `None` if there is no such listen.
    pub fn cancel(&self, id: ConnectionId, request_id: Id<'_>) -> Option<Vec<Arc<str>>> {
        self.lock().cancel(id, request_id)
    }

    /// Whether a listen with this id is open: neither cancelled nor answered.
    pub fn listening(&self, id: ConnectionId, request_id: Id<'_>) -> bool {
        self.lock().listening(id, request_id)
    }

    /// `canonical` changed. Those who watch it, or one of `under` (the resources registered as having children that
    /// it lies beneath), are marked; connections that had nothing to deliver before are woken. A watched URI is told at
    /// once, then not again before [`Limits::coalesce`] has passed.
    pub fn updated(&self, canonical: &str, under: &[&str], now: Millis) {
        self.waking(|table, woken| {
            table.each_concerned(canonical, under, |table, topic| table.changed(topic, now, woken));
        });
    }

    /// As [`Hub::updated`], for the principal with this identity alone. Other principals are not notified, and their own
    /// notifications come when they would have come without it. Each subscriber of the principal is notified at once, then not
    /// again before [`Limits::coalesce`] has passed.
    pub fn updated_for(&self, principal: &str, canonical: &str, under: &[&str], now: Millis) {
        self.waking(|table, woken| {
            table.each_concerned(canonical, under, |table, topic| {
                table.changed_for(principal, topic, now, woken);
            });
        });
    }

    /// The lists in `kinds` changed: the same for everybody who hears of them.
    pub fn list_changed(&self, kinds: ListKinds, now: Millis) {
        self.waking(|table, woken| {
            for (topic, kind) in ListKinds::EACH.into_iter().enumerate() {
                if kinds.contains(kind) {
                    table.changed(topic, now, woken);
                }
            }
        });
    }

    /// As [`Hub::list_changed`], for the principal with this identity alone.
    pub fn list_changed_for(&self, principal: &str, kinds: ListKinds, now: Millis) {
        self.waking(|table, woken| {
            for (topic, _) in
                ListKinds::EACH.into_iter().enumerate().filter(|(_, kind)| kinds.contains(*kind))
            {
                table.changed_for(principal, topic, now, woken);
            }
        });
    }

    /// Marks everything that a legacy connection asked for: notifications may have been lost on their way, as when a
    /// stream is resumed from before its replay log.
    pub fn mark_all(&self, id: ConnectionId) {
        self.waking(|table, woken| table.mark_all(id, woken));
    }

    /// Appends what the connection must be told, one JSON line for each message, ended by `\n`, in HTTP too.
    ///
    /// A message is begun while fewer than `delivery.room` bytes were appended, so at most one oversteps. `may_see`
    /// is asked without a lock, once for each principal and canonical URI; what it refuses is dropped silently.
    /// The caller serialises this with the messages of the same connection. A wake-up that comes while this runs calls
    /// for another delivery, whatever this one returns.
    pub fn deliver(
        &self,
        id: ConnectionId,
        delivery: Delivery<'_>,
        out: &mut Vec<u8>,
        may_see: &mut dyn FnMut(&Principal, &str) -> bool,
    ) -> Delivered {
        let start = out.len();
        let mut asked = VisibilityCache::new(may_see);
        loop {
            let room = delivery.room.saturating_sub(out.len() - start);
            let Batch { notices, several, left } = self.lock().take(id, room);
            for notice in &notices {
                if asked.may_see(notice, several) {
                    notice.word(delivery, out);
                }
            }
            if left != Delivered::More || out.len() - start >= delivery.room {
                return left;
            }
        }
    }

    /// When [`Hub::tick`] is due: the earliest change that waits for its coalescing time.
    pub fn deadline(&self) -> Option<Millis> {
        self.lock().schedule.deadline()
    }

    /// Has `waker` woken whenever [`Hub::deadline`] becomes earlier. The number is for [`Hub::leave_time`].
    pub fn keep_time(&self, waker: Waker) -> usize {
        self.lock().timekeepers.insert(waker)
    }

    /// The waker with this number is woken no longer.
    pub fn leave_time(&self, number: usize) {
        let left = self.lock().timekeepers.try_remove(number);
        // Dropped without the lock: it may be the last to hold a host.
        drop(left);
    }

    /// Marks what waited for its coalescing time.
    pub fn tick(&self, now: Millis) {
        self.waking(|table, woken| table.tick(now, woken));
    }

    /// Ends the listens of the principal with this identity: each is answered, and hears of nothing more. For its
    /// legacy connections the next [`Hub::deliver`] appends nothing and returns [`Delivered::Ended`]; their subscriptions
    /// stay, for a stream that the client opens with another token. Returns the URIs that nobody watches any longer. The
    /// local process has no token: nothing happens for an empty identity.
    pub fn revoke(&self, principal: &str) -> Vec<Arc<str>> {
        if principal.is_empty() {
            return Vec::new();
        }
        self.waking(|table, woken| table.revoke(principal, woken))
    }

    /// The client of a legacy connection was let in after [`Hub::revoke`]: its stream is not ended.
    pub fn readmit(&self, id: ConnectionId) {
        self.lock().set_revoked(id, false);
    }

    /// Has the next [`Hub::deliver`] of a legacy connection end its stream, as [`Hub::revoke`] does.
    pub(crate) fn dismiss(&self, id: ConnectionId) {
        self.lock().set_revoked(id, true);
    }

    /// Ends the listens of one connection, which hear of nothing more: its token has expired. Returns the URIs that nobody
    /// watches any longer.
    pub fn end_listens(&self, id: ConnectionId) -> Vec<Arc<str>> {
        self.waking(|table, woken| table.end_listens(id, woken))
    }

    /// Ends the listens of one connection after what they must still be told. It is told of no later change,
    /// and a later listen on it ends at once. Other connections go on.
    pub fn shutdown(&self, id: ConnectionId) {
        self.waking(|table, woken| table.shutdown(id, woken));
    }

    /// Whether anybody hears of changes of the lists of resources and templates.
    pub fn hears_of_lists(&self) -> bool {
        self.lock().has_watchers(0)
    }

    /// Whether anybody watches `canonical`.
    pub fn watched(&self, canonical: &str) -> bool {
        self.lock().topic(canonical).is_some()
    }

    /// The canonical URIs that somebody watches, in no order.
    pub fn watched_uris(&self) -> Vec<Arc<str>> {
        self.lock().watched_uris()
    }

    /// What the hub holds: all zero once everybody has left.
    pub fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Changes the table, then wakes those who must be, without the lock.
    fn waking<R>(&self, change: impl FnOnce(&mut Table, &mut Wakers) -> R) -> R {
        let mut woken = Wakers::default();
        let result = change(&mut self.lock(), &mut woken);
        woken.wake();
        result
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A spelling as a JSON string, unless it is the canonical URI as it stands.
fn own_spelling(canonical: &str, spelling: &str) -> Option<Spelling> {
    let mut text = Vec::with_capacity(spelling.len() + 2);
    json_text::escape_into(spelling, &mut text);
    let is_canonical = spelling == canonical && text.len() == spelling.len() + 2;
    (!is_canonical).then(|| text.into())
}

/// A connection of one hub. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// The number itself, for records.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A set of the lists whose changes can be heard of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListKinds(u8);

impl ListKinds {
    /// No list.
    pub const NONE: Self = Self(0);
    /// Resources and templates: `notifications/resources/list_changed`.
    pub const RESOURCES: Self = Self(1);
    /// `notifications/tools/list_changed`, from behind the extension door.
    pub const TOOLS: Self = Self(2);
    /// `notifications/prompts/list_changed`, likewise.
    pub const PROMPTS: Self = Self(4);

    /// Each of them alone.
    const EACH: [Self; 3] = [Self::RESOURCES, Self::TOOLS, Self::PROMPTS];

    /// The list with this word: `resources`, `tools` or `prompts`.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "resources" => Some(Self::RESOURCES),
            "tools" => Some(Self::TOOLS),
            "prompts" => Some(Self::PROMPTS),
            _ => None,
        }
    }

    /// The lists that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The notification of a set of one.
    fn method(self) -> &'static str {
        match self {
            Self::RESOURCES => "notifications/resources/list_changed",
            Self::TOOLS => "notifications/tools/list_changed",
            _ => "notifications/prompts/list_changed",
        }
    }
}

impl BitOr for ListKinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What a `subscriptions/listen` is to hear of: the honoured part of what it asked for (R-089, DEC-19).
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// The lists.
    pub lists: ListKinds,
    /// Canonical URIs, each with the client's spelling. Of two spellings of one URI the first counts (DEC-15).
    pub uris: &'a [(&'a str, &'a str)],
}

/// How and how much [`Hub::deliver`] writes.
#[derive(Clone, Copy, Debug)]
pub struct Delivery<'a> {
    /// Bytes that the stream can take now.
    pub room: usize,
    /// `serverInfo` as JSON text on one line, for final results, unless configured off.
    pub server_info: Option<&'a str>,
    /// How the server ends a listen on this transport.
    pub ending: Ending,
}

/// How the server ends a listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// HTTP: the result, then the stream is closed.
    ResultOnly,
    /// stdio: the result, then `notifications/cancelled` (R-097, DEC-16).
    ResultThenCancelled,
}

/// What a connection still has after [`Hub::deliver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Nothing: it is woken when there is something.
    Idle,
    /// More than `room`: deliver again when the stream can take it. Something was appended unless `room` was 0.
    More,
    /// Nothing, and nothing will come: the server ended its listens and each was answered, or is shutting down. An
    /// HTTP host closes the stream.
    Ended,
}

/// The sizes of a hub's tables, for leak tests and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are legacy or listen.
    pub connections: usize,
    /// Subscriptions of legacy connections, and listens: what [`Limits::subscriptions`] bounds for one connection.
    pub subscriptions: usize,
    /// URIs that somebody watches.
    pub uris: usize,
    /// Bytes of these URIs, and of the clients' own spellings: what [`Limits::watched_total`] bounds.
    pub bytes: usize,
}

/// A connection has as many subscriptions as it may, or they take as many bytes as they may (DEC-18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached;

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription limit reached")
    }
}

impl std::error::Error for LimitReached {}

/// Why a listen was not registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenError {
    /// The connection holds [`Limits::subscriptions`], or would watch more than [`Limits::watched_uris`],
    /// [`Limits::watched_bytes`] or [`Limits::watched_total`], or the filter names more than [`Limits::filter_uris`] URIs.
    LimitReached,
    /// A listen with this request id is open on this connection.
    IdInUse,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LimitReached => LimitReached.fmt(f),
            Self::IdInUse => f.write_str("Request id is in use"),
        }
    }
}

impl std::error::Error for ListenError {}
