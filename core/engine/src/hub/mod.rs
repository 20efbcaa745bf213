//! The hub: all watches of all connections, and their pending notifications.
//!
//! Law: a change only *marks* its watchers. Messages are written in [`Hub::deliver`] only, when the owner of a stream
//! can send. So a slow consumer holds dirty bits instead of bytes, and their number is limited by its subscriptions
//!. The only lock is a leaf: no callback, guard check, encoding or waker runs while it is held, and no read or
//! list takes it.

mod coalesce;
#[cfg(test)]
mod model;
mod notice;
mod table;
#[cfg(test)]
mod tests;
mod wakers;

pub use crate::version::ListKinds;
pub use notice::write_end;
pub(crate) use wakers::Wakers;

use crate::json_text;
use crate::jsonrpc::Id;
use crate::limits::Limits;
use crate::now::Millis;
use crate::principal::Principal;
use notice::{NoticeBatch, VisibilityCache};
use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use table::{Spelling, SubscriptionTable, WantedMarks};

/// The only table of subscriptions of a server. All functions ignore an unknown [`ConnectionId`]: that connection has
/// nothing here, or has just left.
#[derive(Debug)]
pub struct Hub {
    next: AtomicU64,
    max_filter_uris: usize,
    table: Mutex<SubscriptionTable>,
    /// Whether a principal was ever regranted.
    regranted: AtomicBool,
}

impl Hub {
    /// An empty hub with the limits `subscriptions`, `filter_uris` and `coalesce` of `limits`.
    pub fn new(limits: &Limits) -> Self {
        Self {
            next: AtomicU64::new(0),
            max_filter_uris: limits.filter_uris,
            table: Mutex::new(SubscriptionTable::new(limits)),
            regranted: AtomicBool::new(false),
        }
    }

    /// Returns the number of a new connection. Takes no lock: a connection that never calls [`Hub::legacy`] or
    /// [`Hub::listen`] has nothing here and need not be disconnected.
    pub fn connect(&self) -> ConnectionId {
        ConnectionId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether a client has ever connected.
    pub(crate) fn has_connected(&self) -> bool {
        self.next.load(Ordering::Relaxed) > 0
    }

    /// Frees everything that the connection holds. Returns the canonical URIs that are no longer
    /// watched.
    pub fn disconnect(&self, id: ConnectionId) -> Vec<Arc<str>> {
        self.lock().disconnect(id)
    }

    /// Whether a connection that called [`Hub::legacy`] or [`Hub::listen`] has not ended.
    pub(crate) fn is_connected(&self, id: ConnectionId) -> bool {
        self.lock().connection(id).is_some()
    }

    /// Registers a connection with a negotiated legacy revision: it may subscribe, and is notified of changes of
    /// `lists` (those whose `listChanged` was declared). Notifications are held back until [`Hub::ready`]
    ///. `waker` is called when there is something to deliver and there was nothing before. A second
    /// call has no effect.
    pub fn legacy(&self, id: ConnectionId, principal: Arc<Principal>, lists: ListKinds, waker: &Waker) {
        self.lock().legacy(id, principal, lists, waker);
    }

    /// Replaces the waker of a connection that called [`Hub::legacy`] or [`Hub::listen`], and calls it once, because
    /// something may be deliverable already.
    pub fn wake_with(&self, id: ConnectionId, waker: &Waker) {
        let is_known = self.lock().wake_with(id, waker);
        if is_known {
            waker.wake_by_ref();
        }
    }

    /// Releases the notifications that were held back until `notifications/initialized`.
    pub fn ready(&self, id: ConnectionId) {
        self.waking(|table, woken| table.ready(id, woken));
    }

    /// Handles `resources/subscribe` on a connection that called [`Hub::legacy`]. Idempotent: notifications use the
    /// first `spelling`. Returns `canonical` if it was not watched before.
    ///
    /// # Errors
    /// [`LimitReached`] if the connection holds [`Limits::subscriptions`], or would watch more than
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

    /// Handles `resources/unsubscribe`: nothing further is delivered for `canonical`, not even pending notifications
    ///. Returns it if it is no longer watched.
    pub fn unsubscribe(&self, id: ConnectionId, canonical: &str) -> Option<Arc<str>> {
        self.lock().unsubscribe(id, canonical)
    }

    /// Handles `subscriptions/listen`. Its notifications repeat its id byte for byte. The caller writes the
    /// acknowledgement before the next [`Hub::deliver`] on this connection. Returns the URIs that were not
    /// watched before. `waker` is that of the connection, as in [`Hub::legacy`]; the first one stays. After
    /// [`Hub::shutdown`] of the connection the next delivery ends the listen.
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
        let wanted = WantedMarks { lists: filter.lists, uris };
        self.waking(|table, woken| table.listen(id, request_id, principal, wanted, waker, woken))
    }

    /// Handles `notifications/cancelled` for a listen: nothing further is sent for its id, and no response.
    /// Returns the URIs that are no longer watched; `None` if there is no such listen.
    pub fn cancel(&self, id: ConnectionId, request_id: Id<'_>) -> Option<Vec<Arc<str>>> {
        self.lock().cancel(id, request_id)
    }

    /// Whether a listen with this id is open: neither cancelled nor answered.
    pub fn listening(&self, id: ConnectionId, request_id: Id<'_>) -> bool {
        self.lock().listening(id, request_id)
    }

    /// Announces a change of `canonical`. Marks the watchers of it and of `under` (its registered ancestors with
    /// children), and wakes connections that had nothing to deliver. Watchers of a URI are notified at once, then at
    /// most once in each [`Limits::coalesce`].
    pub fn updated(&self, canonical: &str, under: &[&str], now: Millis) {
        self.waking(|table, woken| {
            table.each_concerned(canonical, under, |table, topic| table.changed(topic, now, woken));
        });
    }

    /// Like [`Hub::updated`], for the principal with this identity only. Other principals are not notified, and the
    /// times of their own notifications do not change. Each subscriber of the principal is notified at once, then at
    /// most once in each [`Limits::coalesce`].
    pub fn updated_for(&self, principal: &str, canonical: &str, under: &[&str], now: Millis) {
        self.waking(|table, woken| {
            table.each_concerned(canonical, under, |table, topic| {
                table.changed_for(principal, topic, now, woken);
            });
        });
    }

    /// Announces a change of the lists in `kinds` to all their watchers.
    pub fn list_changed(&self, kinds: ListKinds, now: Millis) {
        self.waking(|table, woken| {
            for (topic, kind) in ListKinds::EACH.into_iter().enumerate() {
                if kinds.contains(kind) {
                    table.changed(topic, now, woken);
                }
            }
        });
    }

    /// Like [`Hub::list_changed`], for the principal with this identity only.
    pub fn list_changed_for(&self, principal: &str, kinds: ListKinds, now: Millis) {
        self.waking(|table, woken| {
            for (topic, _) in
                ListKinds::EACH.into_iter().enumerate().filter(|(_, kind)| kinds.contains(*kind))
            {
                table.changed_for(principal, topic, now, woken);
            }
        });
    }

    /// Marks everything that a legacy connection subscribed to, because notifications may have been lost, for example
    /// when a stream is resumed from before its replay log.
    pub fn mark_all(&self, id: ConnectionId) {
        self.waking(|table, woken| table.mark_all(id, woken));
    }

    /// Announces that everything that is watched may have changed, lists too: changes of other processes may have been lost.
    /// Coalesced like [`Hub::updated`].
    pub fn mark_every(&self, now: Millis) {
        self.waking(|table, woken| table.mark_every(now, woken));
    }

    /// Appends the pending messages of the connection: one JSON line for each, ended by `\n`, over HTTP too.
    ///
    /// A message is begun while fewer than `delivery.room` bytes were appended, so at most one exceeds it. `may_see` is
    /// called without the lock, once for each principal and canonical URI; notifications that it refuses are dropped
    /// silently. The caller serializes this with other messages of the same connection. A wake-up during this call
    /// requires another delivery, whatever this one returns.
    pub fn deliver(
        &self,
        id: ConnectionId,
        delivery: HubDelivery<'_>,
        out: &mut Vec<u8>,
        may_see: &mut dyn FnMut(&Arc<Principal>, &str) -> bool,
    ) -> Delivered {
        let start = out.len();
        let mut asked = VisibilityCache::new(may_see);
        loop {
            let room = delivery.room.saturating_sub(out.len() - start);
            let NoticeBatch { notices, several, left } = self.lock().take(id, room);
            for notice in &notices {
                if asked.may_see(notice, several) {
                    notice.write(delivery, out);
                }
            }
            if left != Delivered::More || out.len() - start >= delivery.room {
                return left;
            }
        }
    }

    /// The time at which [`Hub::tick`] is due: of the earliest change that is held back for coalescing.
    pub fn deadline(&self) -> Option<Millis> {
        self.lock().schedule.deadline()
    }

    /// Calls `waker` whenever [`Hub::deadline`] becomes earlier. Returns a number for [`Hub::unregister_timer`].
    pub fn register_timer(&self, waker: Waker) -> usize {
        self.lock().timer_wakers.insert(waker)
    }

    /// Removes the waker with this number.
    pub fn unregister_timer(&self, number: usize) {
        let left = self.lock().timer_wakers.try_remove(number);
        // Dropped without the lock, because it may hold the last reference to a runtime.
        drop(left);
    }

    /// Marks the watchers of changes whose coalescing time has passed.
    pub fn tick(&self, now: Millis) {
        self.waking(|table, woken| table.tick(now, woken));
    }

    /// Ends the listens of the principal with this identity: each is answered, and gets no further notifications
    ///. For its legacy connections the next [`Hub::deliver`] appends nothing and returns [`Delivered::Ended`];
    /// their subscriptions stay, for a stream that the client opens with another token. Returns the URIs that are no
    /// longer watched. Does nothing for an empty identity, that of the local process, which has no token.
    pub fn revoke(&self, principal: &str) -> Vec<Arc<str>> {
        if principal.is_empty() {
            return Vec::new();
        }
        self.waking(|table, woken| table.revoke(principal, woken))
    }

    /// Has the watches of the principal with this identity looked at again: wakes its connections, whose next delivery
    /// takes them with [`Hub::take_regranted`].
    pub(crate) fn recheck(&self, principal: &str) {
        self.regranted.store(true, Ordering::SeqCst);
        self.waking(|table, woken| table.recheck(principal, woken));
    }

    /// Whether [`Hub::recheck`] was ever called.
    pub(crate) fn has_regranted(&self) -> bool {
        self.regranted.load(Ordering::Relaxed)
    }

    /// Takes the watched URIs of a connection, each with its principal, if they must be looked at again.
    pub(crate) fn take_regranted(&self, id: ConnectionId) -> Vec<(Arc<Principal>, Arc<str>)> {
        self.lock().take_regranted(id)
    }

    /// Ends the watches of `canonical` by one principal on one connection, without a further notification. A listen that
    /// is left without anything to watch ends. Returns the URI if it is no longer watched.
    pub(crate) fn end_watch(&self, id: ConnectionId, principal: &str, canonical: &str) -> Option<Arc<str>> {
        self.waking(|table, woken| table.end_watch(id, principal, canonical, woken))
    }

    /// Marks URIs as changed for one principal on one connection.
    pub(crate) fn mark(&self, id: ConnectionId, principal: &str, uris: &[Arc<str>]) {
        self.waking(|table, woken| table.mark_some(id, principal, uris, woken));
    }

    /// Keeps the stream of a legacy connection open, after its client was authenticated anew following [`Hub::revoke`].
    pub fn readmit(&self, id: ConnectionId) {
        self.lock().set_revoked(id, false);
    }

    /// Lets the next [`Hub::deliver`] of a legacy connection end its stream, as [`Hub::revoke`] does.
    pub(crate) fn dismiss(&self, id: ConnectionId) {
        self.lock().set_revoked(id, true);
    }

    /// Ends the listens of one connection without further notifications, because its token has expired. Returns the
    /// URIs that are no longer watched.
    pub fn end_listens(&self, id: ConnectionId) -> Vec<Arc<str>> {
        self.waking(|table, woken| table.end_listens(id, woken))
    }

    /// Ends the listens of one connection after their pending notifications. It gets no notifications of
    /// later changes, and a later listen on it ends at once. Other connections are not affected.
    pub fn shutdown(&self, id: ConnectionId) {
        self.waking(|table, woken| table.shutdown(id, woken));
    }

    /// Whether any connection is notified of changed lists of resources and templates.
    pub fn has_list_watchers(&self) -> bool {
        self.lock().has_watchers(0)
    }

    /// Whether any connection watches `canonical`.
    pub fn watched(&self, canonical: &str) -> bool {
        self.lock().topic(canonical).is_some()
    }

    /// All watched canonical URIs, in no order.
    pub fn watched_uris(&self) -> Vec<Arc<str>> {
        self.lock().watched_uris()
    }

    /// The sizes of the hub's tables: all zero once every connection has left.
    pub fn counts(&self) -> Counts {
        self.lock().counts()
    }

    /// Changes the table, then calls wakers after releasing the lock.
    fn waking<R>(&self, change: impl FnOnce(&mut SubscriptionTable, &mut Wakers) -> R) -> R {
        let mut woken = Wakers::default();
        let result = change(&mut self.lock(), &mut woken);
        woken.wake();
        result
    }

    fn lock(&self) -> MutexGuard<'_, SubscriptionTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A spelling as a JSON string; `None` if it equals the canonical URI and needs no escapes.
fn own_spelling(canonical: &str, spelling: &str) -> Option<Spelling> {
    let mut text = Vec::with_capacity(spelling.len() + 2);
    json_text::escape_into(spelling, &mut text);
    let is_canonical = spelling == canonical && text.len() == spelling.len() + 2;
    (!is_canonical).then(|| text.into())
}

/// Identifies a connection of one hub. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// The number, for records.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// The granted filter of a `subscriptions/listen`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Filter<'a> {
    /// The lists.
    pub lists: ListKinds,
    /// Canonical URIs, each with the client's spelling. Of two spellings of one URI the first is used.
    pub uris: &'a [(&'a str, &'a str)],
}

/// Parameters of [`Hub::deliver`].
#[derive(Clone, Copy, Debug)]
pub struct HubDelivery<'a> {
    /// The number of bytes that the stream can take now.
    pub room: usize,
    /// `serverInfo` as JSON text on one line, for final results; `None` if switched off.
    pub server_info: Option<&'a str>,
    /// The form in which the server ends a listen on this transport.
    pub ending: ListenEnding,
}

/// The form in which the server ends a listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenEnding {
    /// HTTP: the result, then the stream is closed.
    ResultOnly,
    /// stdio: the result, then `notifications/cancelled`.
    ResultThenCancelled,
}

/// The state of a connection after [`Hub::deliver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Nothing is pending. The waker is called when that changes.
    Idle,
    /// More than `room` is pending: deliver again when the stream can take it. Something was appended unless `room` was
    /// 0.
    More,
    /// Nothing is pending and nothing will follow: all listens are answered, or the connection is shutting down. An
    /// HTTP runtime closes the stream.
    Ended,
}

/// The sizes of a hub's tables, for leak tests and metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that are legacy or listen.
    pub connections: usize,
    /// Subscriptions of legacy connections, and listens, which [`Limits::subscriptions`] limits for each connection.
    pub subscriptions: usize,
    /// Watched URIs.
    pub uris: usize,
    /// Bytes of these URIs and of the clients' own spellings, which [`Limits::watched_total`] limits.
    pub bytes: usize,
}

/// A connection has reached the limit on the number or the bytes of its subscriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitReached;

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription limit reached")
    }
}

impl std::error::Error for LimitReached {}

/// The reason for which a listen was not registered.
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
