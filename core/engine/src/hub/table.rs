//! The tables of the hub: connections, their subscribers, and the topics that these watch.
//!
//! Law: topics and subscribers refer to each other directly, without a search, so that removing a watch costs as little
//! as adding one. A topic exists while it is watched; the topics of the lists always exist.

use super::coalesce::{CoalesceGate, Schedule};
use super::{ConnectionId, Counts, LimitReached, ListKinds, ListenError, Wakers};
use crate::jsonrpc::{Id, OwnedId};
use crate::limits::Limits;
use crate::principal::Principal;
use slab::Slab;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::task::Waker;

/// All state behind the hub's lock. The hash maps are never iterated; iteration order comes from the slabs.
#[derive(Debug)]
pub(super) struct SubscriptionTable {
    pub(super) connections: Slab<HubConnection>,
    pub(super) subscribers: Slab<Subscriber>,
    /// The lists come first, in the order of [`ListKinds::EACH`].
    pub(super) topics: Slab<Topic>,
    pub(super) schedule: Schedule,
    /// Called when the next due time becomes earlier.
    pub(super) timer_wakers: Slab<Waker>,
    by_id: HashMap<ConnectionId, usize>,
    by_uri: HashMap<Arc<str>, usize>,
    max_subscriptions: usize,
    max_watched: usize,
    max_bytes: usize,
    max_total: usize,
    /// The number that [`Limits::watched_total`] limits.
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct HubConnection {
    /// Given by the runtime; called without the lock.
    waker: Waker,
    pub(super) legacy: Option<usize>,
    /// By [`Id::canonical`].
    pub(super) listens: BTreeMap<Box<str>, usize>,
    /// Subscribers with pending notifications, each once, served in turn. The waker is called when the queue becomes
    /// non-empty.
    pub(super) queue: VecDeque<usize>,
    /// Whether the server ended a listen, and none was opened since then.
    pub(super) ended: bool,
    /// Set by [`SubscriptionTable::shutdown`]: later changes are not notified.
    pub(super) closing: bool,
    /// Set by [`SubscriptionTable::revoke`] for a legacy connection, until its stream has ended.
    pub(super) revoked: bool,
    /// Set by [`SubscriptionTable::recheck`].
    regranted: bool,
}

/// The topics that a listen asks for.
#[derive(Debug)]
pub(super) struct WantedMarks<'a> {
    pub(super) lists: ListKinds,
    /// Each canonical URI once.
    pub(super) uris: Vec<(&'a str, Option<Spelling>)>,
}

/// A legacy connection or one listen.
#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) connection: usize,
    pub(super) principal: Arc<Principal>,
    /// The id of a listen; `None` for a legacy connection.
    pub(super) request_id: Option<Arc<OwnedId>>,
    pub(super) state: SubscriberState,
    pub(super) watches: BTreeMap<usize, HubWatch>,
    /// Its share of the bytes that [`Limits::watched_bytes`] limits.
    bytes: usize,
    /// The topics of `watches` that are dirty, oldest first.
    pub(super) dirty: VecDeque<usize>,
    /// Whether it is in its connection's queue.
    queued: bool,
}

/// ```text
/// legacy:  Held ──ready──▶ Open
/// listen:                  Open ──revoke, end, shutdown──▶ Ending ──its end is written──▶ Ended
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SubscriberState {
    /// `notifications/initialized` has not arrived: changes are marked, but not sent.
    Held,
    Open,
    /// To be answered once no topic is dirty.
    Ending,
    /// Answered; its watches are released with the connection.
    Ended,
}

/// One subscriber's interest in one topic.
#[derive(Debug)]
pub(super) struct HubWatch {
    /// The subscriber's index in the topic's `watchers`.
    place: usize,
    pub(super) dirty: bool,
    /// For changes that concern only the subscriber's principal.
    pub(super) gate: CoalesceGate,
    pub(super) spelling: Option<Spelling>,
}

/// A client's own spelling as a JSON string, with quotes; `None` if it equals the canonical URI and needs no escapes.
pub(super) type Spelling = Arc<[u8]>;

#[derive(Debug)]
pub(super) struct Topic {
    pub(super) subject: HubSubject,
    pub(super) watchers: Vec<usize>,
    pub(super) gate: CoalesceGate,
    /// All watchers are already dirty; further changes need no marking.
    pub(super) is_marked: bool,
}

/// The subject of a topic.
#[derive(Clone, Debug)]
pub(super) enum HubSubject {
    /// One list. Has exactly one kind.
    List(ListKinds),
    /// A canonical URI.
    Uri(Arc<str>),
}

impl SubscriptionTable {
    pub(super) fn new(limits: &Limits) -> Self {
        let lists = ListKinds::EACH.into_iter().map(|kind| Topic::new(HubSubject::List(kind)));
        Self {
            connections: Slab::new(),
            subscribers: Slab::new(),
            topics: lists.enumerate().collect(),
            schedule: Schedule::new(limits.coalesce),
            timer_wakers: Slab::new(),
            by_id: HashMap::new(),
            by_uri: HashMap::new(),
            max_subscriptions: limits.subscriptions,
            max_watched: limits.watched_uris,
            max_bytes: limits.watched_bytes,
            max_total: limits.watched_total,
            bytes: 0,
        }
    }

    pub(super) fn legacy(
        &mut self,
        id: ConnectionId,
        principal: Arc<Principal>,
        lists: ListKinds,
        waker: &Waker,
    ) {
        let connection = self.connection_or_new(id, waker);
        if self.connections[connection].legacy.is_some() {
            return;
        }
        let key = self.subscribers.insert(Subscriber::new(connection, principal, None));
        self.connections[connection].legacy = Some(key);
        self.watch_lists(key, lists);
    }

    /// Replaces the waker of a connection; returns whether the connection exists.
    pub(super) fn wake_with(&mut self, id: ConnectionId, waker: &Waker) -> bool {
        let key = self.connection(id);
        if let Some(key) = key {
            self.connections[key].waker.clone_from(waker);
        }
        key.is_some()
    }

    pub(super) fn ready(&mut self, id: ConnectionId, woken: &mut Wakers) {
        let Some(key) = self.legacy_of(id) else { return };
        let subscriber = &mut self.subscribers[key];
        if subscriber.state == SubscriberState::Held {
            subscriber.state = SubscriberState::Open;
            subscriber.enqueue(key, &mut self.connections, woken);
        }
    }

    /// Returns whether `canonical` is newly watched.
    pub(super) fn subscribe(
        &mut self,
        id: ConnectionId,
        canonical: &str,
        spelling: Option<Spelling>,
    ) -> Result<Option<Arc<str>>, LimitReached> {
        let Some(key) = self.legacy_of(id) else { return Ok(None) };
        let known = self.by_uri.get(canonical);
        if known.is_some_and(|topic| self.subscribers[key].watches.contains_key(topic)) {
            return Ok(None);
        }
        let connection = self.subscribers[key].connection;
        let bytes = canonical.len() + length(spelling.as_ref());
        if self.subscriptions(connection) >= self.max_subscriptions || !self.has_room(Some(connection), bytes)
        {
            return Err(LimitReached);
        }
        Ok(self.watch_uri(key, canonical, spelling))
    }

    pub(super) fn unsubscribe(&mut self, id: ConnectionId, canonical: &str) -> Option<Arc<str>> {
        let key = self.legacy_of(id)?;
        let topic = *self.by_uri.get(canonical)?;
        let subscriber = &mut self.subscribers[key];
        let watch = subscriber.watches.remove(&topic)?;
        subscriber.bytes -= canonical.len() + length(watch.spelling.as_ref());
        if watch.dirty {
            // A search, but only among this client's own topics, and only if they are pending.
            subscriber.dirty.retain(|dirty| *dirty != topic);
        }
        self.release(topic, &watch)
    }

    /// Returns the URIs that are newly watched.
    pub(super) fn listen(
        &mut self,
        id: ConnectionId,
        request_id: Id<'_>,
        principal: Arc<Principal>,
        WantedMarks { lists, uris }: WantedMarks<'_>,
        waker: &Waker,
        woken: &mut Wakers,
    ) -> Result<Vec<Arc<str>>, ListenError> {
        let canonical_id = request_id.canonical();
        let known = self.connection(id);
        if known.is_some_and(|known| self.connections[known].listens.contains_key(&*canonical_id)) {
            return Err(ListenError::IdInUse);
        }
        let bytes =
            uris.iter().map(|(canonical, spelling)| canonical.len() + length(spelling.as_ref())).sum();
        if known.map_or(0, |known| self.subscriptions(known)) >= self.max_subscriptions
            || known.map_or(0, |known| self.watched(known)) + uris.len() > self.max_watched
            || !self.has_room(known, bytes)
        {
            return Err(ListenError::LimitReached);
        }
        let connection = self.connection_or_new(id, waker);
        let owned_id = Arc::new(OwnedId::from(request_id));
        let key = self.subscribers.insert(Subscriber::new(connection, principal, Some(owned_id)));
        self.connections[connection].listens.insert(canonical_id.into(), key);
        self.connections[connection].ended = false;
        self.watch_lists(key, lists);
        let watch = |(canonical, spelling)| self.watch_uri(key, canonical, spelling);
        let new = uris.into_iter().filter_map(watch).collect();
        if self.connections[connection].closing {
            self.end(key, woken);
        }
        Ok(new)
    }

    pub(super) fn cancel(&mut self, id: ConnectionId, request_id: Id<'_>) -> Option<Vec<Arc<str>>> {
        let connection = &mut self.connections[*self.by_id.get(&id)?];
        let key = connection.listens.remove(&*request_id.canonical())?;
        let subscriber = self.subscribers.remove(key);
        if subscriber.queued {
            connection.queue.retain(|queued| *queued != key);
        }
        Some(self.release_all(subscriber.watches))
    }

    pub(super) fn listening(&self, id: ConnectionId, request_id: Id<'_>) -> bool {
        let connection = self.by_id.get(&id).map(|connection| &self.connections[*connection]);
        let key = connection.and_then(|connection| connection.listens.get(&*request_id.canonical()));
        key.is_some_and(|key| self.subscribers[*key].state != SubscriberState::Ended)
    }

    pub(super) fn disconnect(&mut self, id: ConnectionId) -> Vec<Arc<str>> {
        let Some(key) = self.by_id.remove(&id) else { return Vec::new() };
        let connection = self.connections.remove(key);
        let mut left = Vec::new();
        for subscriber in connection.subscribers() {
            let watches = self.subscribers.remove(subscriber).watches;
            left.append(&mut self.release_all(watches));
        }
        left
    }

    /// Ends the open listens of a principal, and the streams of its legacy connections.
    pub(super) fn revoke(&mut self, principal: &str, woken: &mut Wakers) -> Vec<Arc<str>> {
        let theirs = self.subscribers.iter().filter(|(_, subscriber)| subscriber.principal.id() == principal);
        let theirs: Vec<usize> = theirs.map(|(key, _)| key).collect();
        for key in &theirs {
            let subscriber = &self.subscribers[*key];
            if subscriber.request_id.is_none() {
                let connection = &mut self.connections[subscriber.connection];
                connection.revoked = true;
                woken.push(connection.waker.clone());
            }
        }
        self.end_silently(&theirs, woken)
    }

    /// Has the watches of a principal looked at again.
    pub(super) fn recheck(&mut self, principal: &str, woken: &mut Wakers) {
        for (_, subscriber) in self.subscribers.iter().filter(|(_, own)| own.principal.id() == principal) {
            let connection = &mut self.connections[subscriber.connection];
            if !std::mem::replace(&mut connection.regranted, true) {
                woken.push(connection.waker.clone());
            }
        }
    }

    pub(super) fn take_regranted(&mut self, id: ConnectionId) -> Vec<(Arc<Principal>, Arc<str>)> {
        let Some(key) = self.connection(id) else { return Vec::new() };
        if !std::mem::take(&mut self.connections[key].regranted) {
            return Vec::new();
        }
        let subscribers = self.connections[key].subscribers().map(|key| &self.subscribers[key]);
        let watches = subscribers.flat_map(|own| own.watches.keys().map(move |topic| (own, *topic)));
        let uris = watches.filter_map(|(own, topic)| match &self.topics[topic].subject {
            HubSubject::Uri(uri) => Some((own.principal.clone(), uri.clone())),
            HubSubject::List(_) => None,
        });
        uris.collect()
    }

    /// Ends the watches of a URI by one principal on one connection.
    pub(super) fn end_watch(
        &mut self,
        id: ConnectionId,
        principal: &str,
        canonical: &str,
        woken: &mut Wakers,
    ) -> Option<Arc<str>> {
        let connection = self.connection(id)?;
        let topic = self.topic(canonical)?;
        let subscribers: Vec<usize> = self.connections[connection].subscribers().collect();
        let mut left = None;
        for key in subscribers {
            let subscriber = &mut self.subscribers[key];
            if subscriber.principal.id() != principal {
                continue;
            }
            let Some(watch) = subscriber.watches.remove(&topic) else { continue };
            subscriber.bytes -= canonical.len() + length(watch.spelling.as_ref());
            subscriber.dirty.retain(|dirty| *dirty != topic);
            if subscriber.watches.is_empty() {
                self.end(key, woken);
            }
            left = self.release(topic, &watch);
        }
        left
    }

    /// Marks URIs as changed for one principal on one connection.
    pub(super) fn mark_some(
        &mut self,
        id: ConnectionId,
        principal: &str,
        uris: &[Arc<str>],
        woken: &mut Wakers,
    ) {
        let Some(connection) = self.connection(id) else { return };
        let subscribers: Vec<usize> = self.connections[connection].subscribers().collect();
        for uri in uris {
            let Some(topic) = self.topic(uri) else { continue };
            for key in &subscribers {
                let subscriber = &mut self.subscribers[*key];
                if subscriber.principal.id() == principal {
                    subscriber.mark(*key, topic, &mut self.connections, woken);
                }
            }
        }
    }

    /// Ends the listens of a connection without further notifications.
    pub(super) fn end_listens(&mut self, id: ConnectionId, woken: &mut Wakers) -> Vec<Arc<str>> {
        let Some(key) = self.connection(id) else { return Vec::new() };
        let subscribers: Vec<usize> = self.connections[key].subscribers().collect();
        self.end_silently(&subscribers, woken)
    }

    /// Sets whether the stream of a legacy connection ends, as after [`SubscriptionTable::revoke`], or continues.
    pub(super) fn set_revoked(&mut self, id: ConnectionId, revoked: bool) {
        if let Some(key) = self.connection(id) {
            self.connections[key].revoked = revoked;
        }
    }

    /// Ends the open listens among `subscribers`. They get no further notifications, so their watches are released at
    /// once. Returns the URIs that are no longer watched.
    fn end_silently(&mut self, subscribers: &[usize], woken: &mut Wakers) -> Vec<Arc<str>> {
        let mut left = Vec::new();
        for key in subscribers {
            let subscriber = &mut self.subscribers[*key];
            if subscriber.request_id.is_none() || subscriber.state == SubscriberState::Ended {
                continue;
            }
            subscriber.dirty.clear();
            subscriber.bytes = 0;
            let watches = std::mem::take(&mut subscriber.watches);
            left.append(&mut self.release_all(watches));
            self.end(*key, woken);
        }
        left
    }

    /// Ends the listens of a connection after their pending notifications. Other connections are not affected.
    pub(super) fn shutdown(&mut self, id: ConnectionId, woken: &mut Wakers) {
        let Some(key) = self.connection(id) else { return };
        if std::mem::replace(&mut self.connections[key].closing, true) {
            return;
        }
        let subscribers: Vec<usize> = self.connections[key].subscribers().collect();
        for subscriber in subscribers {
            self.mark_pending(subscriber, woken);
            self.end(subscriber, woken);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let connections = self.connections.iter().map(|(key, _)| self.subscriptions(key));
        Counts {
            connections: self.connections.len(),
            subscriptions: connections.sum(),
            uris: self.by_uri.len(),
            bytes: self.bytes,
        }
    }

    pub(super) fn connection(&self, id: ConnectionId) -> Option<usize> {
        self.by_id.get(&id).copied()
    }

    pub(super) fn topic(&self, canonical: &str) -> Option<usize> {
        self.by_uri.get(canonical).copied()
    }

    /// Visits each topic that a change of `canonical` concerns once: its own, and those of `under`.
    #[inline]
    pub(super) fn each_concerned(
        &mut self,
        canonical: &str,
        under: &[&str],
        mut visit: impl FnMut(&mut Self, usize),
    ) {
        if let Some(topic) = self.topic(canonical) {
            visit(self, topic);
        }
        for (at, parent) in under.iter().enumerate() {
            let is_new = *parent != canonical && !under[..at].contains(parent);
            if let Some(topic) = self.topic(parent).filter(|_| is_new) {
                visit(self, topic);
            }
        }
    }

    pub(super) fn watched_uris(&self) -> Vec<Arc<str>> {
        self.by_uri.keys().cloned().collect()
    }

    /// Whether the topic has watchers.
    pub(super) fn has_watchers(&self, topic: usize) -> bool {
        self.topics.get(topic).is_some_and(|topic| !topic.watchers.is_empty())
    }

    pub(super) fn legacy_of(&self, id: ConnectionId) -> Option<usize> {
        self.connections[self.connection(id)?].legacy
    }

    fn connection_or_new(&mut self, id: ConnectionId, waker: &Waker) -> usize {
        *self.by_id.entry(id).or_insert_with(|| self.connections.insert(HubConnection::new(waker.clone())))
    }

    /// The number that [`Limits::subscriptions`] limits.
    fn subscriptions(&self, connection: usize) -> usize {
        let connection = &self.connections[connection];
        let uris = |watches: &BTreeMap<usize, HubWatch>| {
            watches.len() - watches.range(..ListKinds::EACH.len()).count()
        };
        connection.legacy.map_or(0, |key| uris(&self.subscribers[key].watches)) + connection.listens.len()
    }

    /// The number that [`Limits::watched_uris`] limits.
    fn watched(&self, connection: usize) -> usize {
        self.connections[connection].subscribers().map(|key| self.subscribers[key].watches.len()).sum()
    }

    /// Whether a connection may watch `bytes` more bytes of URIs and spellings. A URI that others already watch counts
    /// in full here, although it adds nothing to the total.
    fn has_room(&self, connection: Option<usize>, bytes: usize) -> bool {
        let own = connection.map_or(0, |key| {
            self.connections[key].subscribers().map(|key| self.subscribers[key].bytes).sum::<usize>()
        });
        own.saturating_add(bytes) <= self.max_bytes && self.bytes.saturating_add(bytes) <= self.max_total
    }

    fn watch_lists(&mut self, key: usize, lists: ListKinds) {
        for (topic, kind) in ListKinds::EACH.into_iter().enumerate() {
            if lists.contains(kind) {
                self.watch(key, topic, None);
            }
        }
    }

    /// Returns `canonical` if it is newly watched.
    fn watch_uri(&mut self, key: usize, canonical: &str, spelling: Option<Spelling>) -> Option<Arc<str>> {
        if let Some(&topic) = self.by_uri.get(canonical) {
            self.watch(key, topic, spelling);
            return None;
        }
        let uri: Arc<str> = canonical.into();
        self.bytes += uri.len();
        let topic = self.topics.insert(Topic::new(HubSubject::Uri(Arc::clone(&uri))));
        self.by_uri.insert(Arc::clone(&uri), topic);
        self.watch(key, topic, spelling);
        Some(uri)
    }

    fn watch(&mut self, key: usize, topic: usize, spelling: Option<Spelling>) {
        let Topic { subject, watchers, is_marked, .. } = &mut self.topics[topic];
        *is_marked = false;
        let own = length(spelling.as_ref());
        let watch = HubWatch { place: watchers.len(), dirty: false, gate: CoalesceGate::Open, spelling };
        watchers.push(key);
        self.bytes += own;
        let subscriber = &mut self.subscribers[key];
        subscriber.bytes += own + subject.length();
        subscriber.watches.insert(topic, watch);
    }

    fn release_all(&mut self, watches: BTreeMap<usize, HubWatch>) -> Vec<Arc<str>> {
        watches.into_iter().filter_map(|(topic, watch)| self.release(topic, &watch)).collect()
    }

    /// Removes a watcher from a topic. Returns the URI if that was the last one.
    fn release(&mut self, topic: usize, watch: &HubWatch) -> Option<Arc<str>> {
        let place = watch.place;
        self.bytes -= length(watch.spelling.as_ref());
        let Topic { watchers, gate, .. } = &mut self.topics[topic];
        let key = watchers.swap_remove(place);
        self.schedule.forget((topic, Some(key)), watch.gate);
        let moved = watchers.get(place).map(|moved| &mut self.subscribers[*moved].watches);
        if let Some(watch) = moved.and_then(|watches| watches.get_mut(&topic)) {
            watch.place = place;
        }
        if !watchers.is_empty() {
            return None;
        }
        self.schedule.forget((topic, None), std::mem::replace(gate, CoalesceGate::Open));
        if topic < ListKinds::EACH.len() {
            return None;
        }
        let HubSubject::Uri(uri) = self.topics.remove(topic).subject else { return None };
        self.by_uri.remove(&uri);
        self.bytes -= uri.len();
        Some(uri)
    }

    /// Marks an open listen to be answered; has no effect in other states.
    fn end(&mut self, key: usize, woken: &mut Wakers) {
        let subscriber = &mut self.subscribers[key];
        if subscriber.request_id.is_some() && subscriber.state == SubscriberState::Open {
            subscriber.state = SubscriberState::Ending;
            subscriber.enqueue(key, &mut self.connections, woken);
        }
    }
}

impl HubConnection {
    fn new(waker: Waker) -> Self {
        let listens = BTreeMap::new();
        let queue = VecDeque::new();
        Self {
            waker,
            legacy: None,
            listens,
            queue,
            ended: false,
            closing: false,
            revoked: false,
            regranted: false,
        }
    }

    fn subscribers(&self) -> impl Iterator<Item = usize> {
        self.legacy.into_iter().chain(self.listens.values().copied())
    }
}

impl Subscriber {
    fn new(connection: usize, principal: Arc<Principal>, request_id: Option<Arc<OwnedId>>) -> Self {
        let state = if request_id.is_some() { SubscriberState::Open } else { SubscriberState::Held };
        let watches = BTreeMap::new();
        let dirty = VecDeque::new();
        Self { connection, principal, request_id, state, watches, bytes: 0, dirty, queued: false }
    }

    /// Whether it has something to send now.
    fn is_due(&self) -> bool {
        match self.state {
            SubscriberState::Held | SubscriberState::Ended => false,
            SubscriberState::Open => !self.dirty.is_empty(),
            SubscriberState::Ending => true,
        }
    }

    /// Puts it, under `key`, into its connection's queue if it has something to send, and wakes the connection if the
    /// queue was empty.
    pub(super) fn enqueue(&mut self, key: usize, connections: &mut Slab<HubConnection>, woken: &mut Wakers) {
        if self.queued || !self.is_due() {
            return;
        }
        self.queued = true;
        let connection = &mut connections[self.connection];
        if connection.queue.is_empty() {
            woken.push(connection.waker.clone());
        }
        connection.queue.push_back(key);
    }

    /// Puts it, taken from the head of the queue, back at the tail if it has more to send.
    pub(super) fn requeue(&mut self, key: usize, queue: &mut VecDeque<usize>) {
        self.queued = self.is_due();
        if self.queued {
            queue.push_back(key);
        }
    }
}

impl HubSubject {
    /// The length of the URI in bytes.
    fn length(&self) -> usize {
        match self {
            Self::List(_) => 0,
            Self::Uri(uri) => uri.len(),
        }
    }
}

/// The length of a client's own spelling in bytes.
fn length(spelling: Option<&Spelling>) -> usize {
    spelling.map_or(0, |spelling| spelling.len())
}

impl Topic {
    fn new(subject: HubSubject) -> Self {
        Self { subject, watchers: Vec::new(), gate: CoalesceGate::Open, is_marked: false }
    }
}
