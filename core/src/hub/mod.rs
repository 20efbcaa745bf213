//! Who watches what, over all connections, and what each of them must still be told.
//!
//! Law: a change only *marks*; bytes are made in [`Hub::deliver`] alone, when the owner of a stream can write. So a
//! slow consumer holds dirty bits, never bytes, and what it holds is bounded by what it asked for (DEC-17). The one
//! lock is a leaf: nothing is asked, worded or called while it is held, and no read or list takes it.

use crate::limits::Limits;
use crate::now::Millis;
use crate::principal::Principal;
use std::fmt;
use std::ops::BitOr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The only table of subscriptions of a server. An unknown [`ConnectionId`] is ignored everywhere: it has nothing
/// here, or has just left.
#[derive(Debug)]
pub struct Hub {
    next: AtomicU64,
}

impl Hub {
    /// An empty hub, with the bounds `subscriptions`, `filter_uris` and `coalesce` of `limits`.
    pub fn new(_limits: &Limits) -> Self {
        Self { next: AtomicU64::new(0) }
    }

    /// A number for a new connection. Takes no lock: a connection that never calls [`Hub::legacy`] or
    /// [`Hub::listen`] has nothing here and need not be disconnected.
    pub fn connect(&self) -> ConnectionId {
        ConnectionId(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Frees everything that the connection holds. Returns the canonical URIs that nobody watches
    /// any longer.
    pub fn disconnect(&self, _id: ConnectionId) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// The connection negotiated a legacy revision: it may subscribe, and hears of changes to the lists in `lists`
    /// (those whose `listChanged` was declared, R-042, R-076), all held back until [`Hub::ready`] (R-038, DEC-08).
    pub fn legacy(&self, _id: ConnectionId, _principal: Arc<Principal>, _lists: ListKinds) {}

    /// `notifications/initialized` came: what was held back may go out.
    pub fn ready(&self, _id: ConnectionId, _woken: &mut Vec<ConnectionId>) {}

    /// `resources/subscribe` on a connection that called [`Hub::legacy`]. Idempotent: the first `spelling` is the one
    /// that its notifications carry (R-081, DEC-15). Returns `canonical` if nobody watched it before.
    ///
    /// # Errors
    /// [`LimitReached`] when the connection holds [`Limits::subscriptions`] (DEC-18).
    pub fn subscribe(
        &self,
        _id: ConnectionId,
        _canonical: &str,
        _spelling: &str,
    ) -> Result<Option<Arc<str>>, LimitReached> {
        Ok(None)
    }

    /// `resources/unsubscribe`: nothing further is delivered for `canonical`, not even what was pending.
    /// Returns it if nobody watches it any longer.
    pub fn unsubscribe(&self, _id: ConnectionId, _canonical: &str) -> Option<Arc<str>> {
        None
    }

    /// `subscriptions/listen`. `request_id` is the JSON text of its id, repeated byte for byte. The caller
    /// writes the acknowledgement before the next [`Hub::deliver`] on this connection. Returns the URIs that
    /// nobody watched before. After [`Hub::shutdown`] the next deliver ends it.
    ///
    /// # Errors
    /// [`ListenError`]; nothing is registered then.
    pub fn listen(
        &self,
        _id: ConnectionId,
        _request_id: &str,
        _principal: Arc<Principal>,
        _filter: Filter<'_>,
    ) -> Result<Vec<Arc<str>>, ListenError> {
        Ok(Vec::new())
    }

    /// `notifications/cancelled` for a listen: nothing further for that id, and no response. Returns the URIs
    /// that nobody watches any longer, or `None` if there is no such listen.
    pub fn cancel(&self, _id: ConnectionId, _request_id: &str) -> Option<Vec<Arc<str>>> {
        None
    }

    /// Whether a listen with this id is open: neither cancelled nor answered.
    pub fn listening(&self, _id: ConnectionId, _request_id: &str) -> bool {
        false
    }

    /// `canonical` changed. Those who watch it, or one of `under` (the resources registered as having children that
    /// it lies beneath), are marked; connections that had nothing to deliver before are added to `woken`. A watched
    /// URI is told at once, then not again before [`Limits::coalesce`] has passed.
    pub fn updated(&self, _canonical: &str, _under: &[&str], _now: Millis, _woken: &mut Vec<ConnectionId>) {}

    /// The lists in `kinds` changed: the same for everybody who hears of them.
    pub fn list_changed(&self, _kinds: ListKinds, _now: Millis, _woken: &mut Vec<ConnectionId>) {}

    /// Appends what the connection must be told, one JSON line for each message, ended by `\n`, in HTTP too.
    ///
    /// A message is begun while fewer than `delivery.room` bytes were appended, so at most one oversteps. `may_see`
    /// is asked without a lock, once for each principal and canonical URI; what it refuses is dropped silently.
    /// The caller serialises this with the messages of the same connection.
    pub fn deliver(
        &self,
        _id: ConnectionId,
        _delivery: Delivery<'_>,
        _out: &mut Vec<u8>,
        _may_see: &mut dyn FnMut(&Principal, &str) -> bool,
    ) -> Delivered {
        Delivered::Idle
    }

    /// When [`Hub::tick`] is due: the earliest change that waits for its coalescing time.
    pub fn deadline(&self) -> Option<Millis> {
        None
    }

    /// Marks what waited for its coalescing time.
    pub fn tick(&self, _now: Millis, _woken: &mut Vec<ConnectionId>) {}

    /// Ends the listens of the principal with this identity: each is answered, and hears of nothing more.
    /// Returns the URIs that nobody watches any longer.
    pub fn revoke(&self, _principal: &str, _woken: &mut Vec<ConnectionId>) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// Ends every listen after what it must still be told. Later changes are ignored.
    pub fn shutdown(&self, _woken: &mut Vec<ConnectionId>) {}

    /// Whether anybody watches `canonical`.
    pub fn watched(&self, _canonical: &str) -> bool {
        false
    }

    /// What the hub holds: all zero once everybody has left.
    pub fn counts(&self) -> Counts {
        Counts::default()
    }
}

/// A connection of one hub. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(u64);

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

    /// The lists that are in both sets.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether all of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
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
    /// `serverInfo` as JSON text for final results, unless configured off.
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
    /// Pairs of a watched URI and a legacy connection or a listen, and open listens themselves.
    pub subscriptions: usize,
    /// URIs that somebody watches.
    pub uris: usize,
}

/// A connection has as many subscriptions as it may (DEC-18).
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
    /// The connection holds [`Limits::subscriptions`], or the filter names more than [`Limits::filter_uris`] URIs.
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
