//! Watched resources: a watch reports the contents first, then again after each change.
//!
//! Law: the set of watched URIs outlives connections. Each connection subscribes to all of them, and reads each URI
//! once its subscription is active, so no change is missed. A URI has at most one read in flight; changes during it
//! cause one more.

use super::calls::{CallId, CallOwner};
use super::{Effects, Machine, MachinePhase, MachineTimer, RequestPurpose};
use crate::client::access;
use crate::client::cache::ClientCacheKey;
use crate::client::decode::{is_unsupported, refused};
use crate::client::speak::OutgoingRequest;
use crate::client::{
    CallOptions, Change, ClientCall, ClientError, ClientOutcome, Effect, Failure, ServerAbout,
};
use crate::connection::{Body, Contents};
use crate::jsonrpc::{Json, RawParams};
use crate::meta;
use crate::now::{Millis, Now};
use crate::version::ProtocolMethod;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The first pause, in ms, before a failed request is repeated.
const PAUSE: Millis = 250;
/// Maximum number of temporary failures of a first read.
const TRIES: u32 = 3;
/// A listen that lasted this long, in ms, resets the count of failures.
const STOOD: Millis = 1_000;

/// All watches, and the subscriptions and reads that they need.
#[derive(Debug, Default)]
pub(super) struct Watches {
    /// By canonical URI.
    watched: BTreeMap<Arc<str>, Watched>,
    by_host: HashMap<u64, Arc<str>>,
    /// The URIs that may be read now.
    due: BTreeSet<Arc<str>>,
    /// The URIs to subscribe to, and those to unsubscribe from (legacy).
    unsubscribed: BTreeSet<Arc<str>>,
    leaving: Vec<String>,
    /// The active listen, and the one that will replace it (2026-07-28).
    listen: Option<ListenCall>,
    next: Option<ListenCall>,
    /// Whether the set of URIs has changed since the last listen was sent.
    pub(super) must_listen: bool,
    /// Whether the runtime wants changes of the lists reported even if nothing is watched.
    pub(super) watches_lists: bool,
    listen_failures: u32,
    /// Reads and subscriptions in flight.
    requests: usize,
    /// The number of URIs watched only because they lie under another one.
    descendants: usize,
}

/// The state of one watched URI.
#[derive(Debug)]
struct Watched {
    /// The spelling of the first watch.
    spelling: String,
    watchers: Vec<u64>,
    /// The watches that want no contents.
    heard: Vec<HeardWatch>,
    /// The watches that have not reported anything yet.
    fresh: Vec<u64>,
    /// The watched URIs above it, if it is not watched itself.
    parents: Vec<Arc<str>>,
    subscription: Subscription,
    is_dirty: bool,
    reading: Option<CallId>,
    not_before: Millis,
    reported: LastContents,
    failures: u32,
}

/// A watch that gets changes without contents.
#[derive(Debug)]
struct HeardWatch {
    id: u64,
    /// Whether it was told that its subscription is active.
    is_active: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subscription {
    None,
    Asked,
    Active,
    /// The server does not have the resource, or hides it.
    Refused,
}

/// The contents that were reported last.
#[derive(Debug, PartialEq, Eq)]
enum LastContents {
    Nothing,
    Gone,
    Contents([u8; 32]),
}

#[derive(Debug)]
struct ListenCall {
    id: u64,
    uris: BTreeSet<Arc<str>>,
    since: Millis,
}

/// Watches, as the runtime starts and ends them.
impl Machine {
    /// Watches a resource. `id` is chosen by the runtime and must not be in use; [`Effect::Changed`] reports it.
    pub fn watch(&mut self, id: u64, uri: &str, now: Now, out: &mut Effects) {
        self.begin_watch(id, uri, WatchKind::Reading, now, out);
    }

    /// As [`Machine::watch`], without reading the resource: [`Effect::Heard`] reports changes, and an [`Effect::Changed`]
    /// with an error the end.
    pub fn hear(&mut self, id: u64, uri: &str, now: Now, out: &mut Effects) {
        self.begin_watch(id, uri, WatchKind::Hearing, now, out);
    }

    fn begin_watch(&mut self, id: u64, uri: &str, kind: WatchKind, now: Now, out: &mut Effects) {
        let closed = matches!(self.phase, MachinePhase::Closed);
        let is_full = self.watches.watched.len() >= self.reader.limits.watches;
        let refused = match self.reader.access.check(uri) {
            Ok(_) if closed => ClientError::from(Failure::Cancelled),
            Ok(_) if is_full => Failure::LimitReached { what: "watches" }.into(),
            Ok(canonical) => {
                let new = NewWatch { id, kind, spelling: uri };
                if self.watches.add(new, canonical.into(), now.tick, &mut self.timers) {
                    return out.push(Effect::Heard { watch: id, is_first: true });
                }
                self.connect(out);
                return self.reconcile(now, out);
            }
            Err(error) => error,
        };
        out.push(Effect::Changed { watch: id, change: Err(refused) });
    }

    /// Ends a watch: the last one of a URI ends its subscription.
    pub fn unwatch(&mut self, id: u64, now: Now, out: &mut Effects) {
        let Some(uri) = self.watches.by_host.remove(&id) else { return };
        let Some(watched) = self.watches.watched.get_mut(&uri) else { return };
        watched.watchers.retain(|watcher| *watcher != id);
        watched.fresh.retain(|watcher| *watcher != id);
        watched.heard.retain(|hearing| hearing.id != id);
        if watched.watchers.is_empty() && watched.heard.is_empty() {
            if let Some(slot) = watched.reading {
                self.abandon(slot, now, out);
            }
            self.watches.remove(&uri);
        }
        self.reconcile(now, out);
    }
}

/// Messages of the server.
impl Machine {
    pub(super) fn subscribed(
        &mut self,
        uri: &Arc<str>,
        result: Result<Json<'_>, Json<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        self.watches.requests = self.watches.requests.saturating_sub(1);
        let refused = result.err().map(|error| refused(error, None));
        if let Some(true) = refused.as_ref().map(is_unsupported) {
            return self.watches.fail(uri, &unsupported(), out);
        }
        let Some(watched) = self.watches.watched.get_mut(uri) else {
            if refused.is_none() {
                self.watches.leaving.push(uri.to_string());
            }
            return;
        };
        watched.subscription = Subscription::Active;
        watched.is_dirty = true;
        if refused.is_some() {
            watched.subscription = Subscription::Refused;
            self.again_later(uri, now);
        }
        self.watches.consider(uri, now.tick, &mut self.timers);
    }

    /// Handles a subscription that was not answered.
    pub(super) fn subscribe_failed(&mut self, uri: &Arc<str>, now: Now) {
        self.watches.requests = self.watches.requests.saturating_sub(1);
        if let Some(watched) = self.watches.watched.get_mut(uri) {
            watched.subscription = Subscription::None;
            self.again_later(uri, now);
        }
    }

    /// Handles the acknowledgement of a listen.
    pub(super) fn acknowledged(&mut self, params: &RawParams<'_>, now: Now, out: &mut Effects) {
        let id = params.meta(meta::SUBSCRIPTION_ID).and_then(Json::as_u64);
        let Some(next) = self.watches.next.take_if(|next| Some(next.id) == id) else { return };
        let honoured = params.get("notifications").and_then(Json::object);
        let honoured = honoured.and_then(|honoured| honoured.get("resourceSubscriptions")?.array());
        let honoured: BTreeSet<String> = honoured
            .into_iter()
            .flatten()
            .filter_map(|uri| self.reader.access.check(&uri.as_lossy_str()?).ok())
            .collect();
        // An active listen has no time-out.
        if let Some(flight) = self.flights.get_mut(&next.id) {
            self.timers.remove(&(flight.deadline, MachineTimer::SentRequest(next.id)));
            flight.deadline = Millis::MAX;
        }
        let mut refused = false;
        for uri in &next.uris {
            let Some(watched) = self.watches.watched.get_mut(uri) else { continue };
            let was_active = watched.subscription == Subscription::Active;
            let is_honoured = honoured.contains(&**uri);
            refused |= !is_honoured;
            watched.subscription = if is_honoured { Subscription::Active } else { Subscription::Refused };
            watched.is_dirty |= !(was_active && is_honoured);
            self.watches.consider(uri, now.tick, &mut self.timers);
        }
        if refused {
            self.listen_later(now);
        }
        if let Some(before) = self.watches.listen.replace(ListenCall { since: now.tick, ..next })
            && self.take_flight(before.id).is_some()
        {
            self.take_back(before.id, out);
        }
    }

    pub(super) fn listen_answered(
        &mut self,
        id: u64,
        result: Result<Json<'_>, Json<'_>>,
        now: Now,
        out: &mut Effects,
    ) {
        match result.err().map(|error| refused(error, None)) {
            Some(error) if is_unsupported(&error) => self.watches.fail_all(&unsupported(), out),
            Some(error) if self.watches.listen_failures + 1 >= TRIES => self.watches.fail_new(&error, out),
            _ => {}
        }
        self.listen_ended(id, now);
    }

    /// Handles a listen that the server ends.
    pub(super) fn torn_down(&mut self, id: u64, now: Now, _: &mut Effects) {
        let is_ours = self.watches.is_listen(id);
        if is_ours && self.take_flight(id).is_some() {
            self.listen_ended(id, now);
        }
    }

    /// Handles the end of a listen. Another one follows after a pause.
    pub(super) fn listen_ended(&mut self, id: u64, now: Now) {
        let watches = &mut self.watches;
        if watches.next.take_if(|next| next.id == id).is_some() {
            return self.listen_later(now);
        }
        let Some(over) = watches.listen.take_if(|listen| listen.id == id) else { return };
        if now.tick.saturating_sub(over.since) >= STOOD {
            watches.listen_failures = 0;
        }
        for uri in &over.uris {
            if let Some(watched) = watches.watched.get_mut(uri)
                && watched.subscription == Subscription::Active
            {
                watched.subscription = Subscription::None;
            }
        }
        self.listen_later(now);
    }

    fn listen_later(&mut self, now: Now) {
        let pause = pause(self.watches.listen_failures, self.reader.limits.backoff);
        self.watches.listen_failures = self.watches.listen_failures.saturating_add(1);
        self.timers.retain(|(_, timer)| *timer != MachineTimer::Listen);
        self.timers.insert((now.tick.saturating_add(pause), MachineTimer::Listen));
    }

    fn again_later(&mut self, uri: &Arc<str>, now: Now) {
        let Some(watched) = self.watches.watched.get_mut(uri) else { return };
        let pause = pause(watched.failures, self.reader.limits.backoff);
        watched.failures = watched.failures.saturating_add(1);
        self.timers.insert((now.tick.saturating_add(pause), MachineTimer::Watch(uri.clone())));
    }

    /// Handles a changed resource. If it lies under a watched one, it is read for those watchers.
    pub(super) fn updated(&mut self, uri: &str, now: Now) {
        let Some(canonical) = access::key(uri) else { return };
        self.cache.remove(&ClientCacheKey::Read(canonical.clone().into_owned()));
        let watches = &mut self.watches;
        if let Some((uri, watched)) = watches.watched.get_key_value(&*canonical) {
            let uri = uri.clone();
            let was_dirty = watched.is_dirty;
            if let Some(watched) = watches.watched.get_mut(&uri).filter(|_| !was_dirty) {
                watched.is_dirty = true;
            }
            return watches.consider(&uri, now.tick, &mut self.timers);
        }
        let mut parents = watches.parents(&canonical);
        parents.retain(|parent| !watches.hear_of(parent, now.tick, &mut self.timers));
        if parents.is_empty() || !self.reader.access.allows(uri) {
            return;
        }
        if watches.descendants < self.reader.limits.descendants {
            return watches.add_descendant(canonical.into(), uri, parents, now.tick, &mut self.timers);
        }
        for parent in parents {
            if let Some(watched) = watches.watched.get_mut(&parent) {
                watched.is_dirty = true;
            }
            watches.consider(&parent, now.tick, &mut self.timers);
        }
    }

    /// Handles the result of a read of a watched URI.
    pub(super) fn watch_was_read(
        &mut self,
        uri: &Arc<str>,
        outcome: Result<ClientOutcome, ClientError>,
        now: Now,
        out: &mut Effects,
    ) {
        let coalesce = self.reader.limits.coalesce;
        self.watches.requests = self.watches.requests.saturating_sub(1);
        let Some(watched) = self.watches.watched.get_mut(uri) else { return };
        watched.reading = None;
        watched.not_before = now.tick.saturating_add(coalesce);
        let contents = match outcome {
            Ok(ClientOutcome::Contents { contents, .. }) => Some(contents),
            Err(ClientError::NotFound { .. } | ClientError::AccessDenied { .. }) => None,
            Err(error) => return self.watch_was_not_read(uri, &error, now, out),
            Ok(_) => return,
        };
        watched.failures = 0;
        let reported = contents
            .as_deref()
            .map_or(LastContents::Gone, |contents| LastContents::Contents(digest(contents)));
        let is_new = watched.reported != reported;
        watched.reported = reported;
        let fresh = std::mem::take(&mut watched.fresh);
        let watchers = match is_new {
            true => self.watches.watchers(uri),
            false => fresh,
        };
        let spelling = self.watches.watched.get(uri).map(|watched| watched.spelling.clone());
        for watch in watchers {
            let uri = spelling.clone().unwrap_or_default();
            let change = Change { server: self.reader.server.clone(), uri, contents: contents.clone() };
            out.push(Effect::Changed { watch, change: Ok(change) });
        }
        self.watches.consider(uri, now.tick, &mut self.timers);
        self.watches.forget_descendants(uri);
    }

    fn watch_was_not_read(&mut self, uri: &Arc<str>, error: &ClientError, now: Now, out: &mut Effects) {
        let Some(watched) = self.watches.watched.get_mut(uri) else { return };
        let is_fatal = match error {
            // The server answered before, so it is expected to come back.
            ClientError::Failed(Failure::Unreachable { .. }) => false,
            ClientError::Failed(Failure::Server { .. } | Failure::Timeout { .. }) => {
                watched.failures + 1 >= TRIES
            }
            _ => true,
        };
        if !watched.parents.is_empty() || (watched.reported == LastContents::Nothing && is_fatal) {
            return self.watches.fail(uri, error, out);
        }
        watched.is_dirty = true;
        self.again_later(uri, now);
    }

    /// Handles the end of a pause of a watched URI.
    pub(super) fn watch_is_due(&mut self, uri: &Arc<str>) {
        let Some(watched) = self.watches.watched.get_mut(uri) else { return };
        if matches!(watched.subscription, Subscription::None | Subscription::Refused)
            && watched.parents.is_empty()
        {
            self.watches.unsubscribed.insert(uri.clone());
        }
        if watched.is_dirty && watched.reading.is_none() && watched.is_settled() {
            self.watches.due.insert(uri.clone());
        }
    }
}

/// Sends the requests that bring the server's state in line with the watches.
impl Machine {
    pub(super) fn reconcile(&mut self, now: Now, out: &mut Effects) {
        let MachinePhase::Ready { about, .. } = &self.phase else { return };
        let about = about.clone();
        if !about.has_subscriptions && !self.watches.is_empty() {
            self.watches.fail_all(&unsupported(), out);
        }
        if about.revision.is_modern() {
            self.watches.unsubscribed.clear();
            self.watches.leaving.clear();
            self.listen(&about, now, out);
        } else {
            self.watches.must_listen = false;
            self.subscribe(now, out);
        }
        while self.watches.requests < self.reader.limits.watch_requests {
            let Some(uri) = self.watches.due.pop_first() else { break };
            let Some(watched) = self.watches.watched.get_mut(&uri) else { continue };
            watched.is_dirty = false;
            watched.report(out);
            if watched.watchers.is_empty() && watched.parents.is_empty() {
                watched.not_before = now.tick.saturating_add(self.reader.limits.coalesce);
                continue;
            }
            watched.reading = Some(self.calls.next_slot());
            let call = ClientCall::Read { uri: watched.spelling.clone() };
            let key = Some(ClientCacheKey::Read(uri.to_string()));
            self.watches.requests += 1;
            self.start(CallOwner::Watch(uri), call, key, CallOptions::default(), now, out);
        }
    }

    fn subscribe(&mut self, now: Now, out: &mut Effects) {
        let timeout = self.reader.limits.timeout;
        for uri in std::mem::take(&mut self.watches.leaving) {
            let message =
                self.speaker.request(&OutgoingRequest::new(ProtocolMethod::Unsubscribe), |params| {
                    params.str("uri", &uri)
                });
            self.send(message, RequestPurpose::Unsubscribe, timeout, now, out);
        }
        while self.watches.requests < self.reader.limits.watch_requests {
            let Some(uri) = self.watches.unsubscribed.pop_first() else { break };
            let Some(watched) = self.watches.watched.get_mut(&uri) else { continue };
            watched.subscription = Subscription::Asked;
            let spelling = watched.spelling.clone();
            let message = self.speaker.request(&OutgoingRequest::new(ProtocolMethod::Subscribe), |params| {
                params.str("uri", &spelling)
            });
            self.watches.requests += 1;
            self.send(message, RequestPurpose::Subscribe(uri), timeout, now, out);
        }
    }

    /// Sends one listen for all watched URIs. The old listen ends only after the new one is active, so that no change
    /// is missed.
    fn listen(&mut self, about: &ServerAbout, now: Now, out: &mut Effects) {
        if !self.watches.must_listen || self.watches.next.is_some() {
            return;
        }
        self.watches.must_listen = false;
        let wanted = self.watches.wanted();
        let is_announced = |name| self.reports_notifications && about.announces(name);
        let lists = [
            ("resourcesListChanged", about.has_list_changes),
            ("toolsListChanged", is_announced("tools")),
            ("promptsListChanged", is_announced("prompts")),
        ];
        let any = lists.iter().any(|(_, is_announced)| *is_announced);
        if wanted.is_empty() && !(self.watches.watches_lists && any) {
            if let Some(listen) = self.watches.listen.take()
                && self.take_flight(listen.id).is_some()
            {
                self.take_back(listen.id, out);
            }
            return;
        }
        let message = self.speaker.request(&OutgoingRequest::new(ProtocolMethod::Listen), |params| {
            params.object("notifications", |filter| {
                filter.array("resourceSubscriptions", |list| wanted.values().for_each(|uri| list.str(uri)));
                for (name, _) in lists.iter().filter(|(_, is_announced)| *is_announced) {
                    filter.bool(name, true);
                }
            });
        });
        let timeout = self.reader.limits.timeout;
        let id = self.send(message, RequestPurpose::Listen, timeout, now, out);
        let uris = wanted.into_keys().collect();
        self.watches.next = Some(ListenCall { id, uris, since: now.tick });
    }
}

/// Whether a watch wants the contents of its resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchKind {
    Reading,
    Hearing,
}

/// A watch that begins.
struct NewWatch<'a> {
    id: u64,
    kind: WatchKind,
    spelling: &'a str,
}

impl Watches {
    pub(super) fn is_empty(&self) -> bool {
        self.watched.is_empty()
    }

    fn is_listen(&self, id: u64) -> bool {
        [&self.listen, &self.next].into_iter().flatten().any(|listen| listen.id == id)
    }

    /// Adds a watch. Returns whether it only hears, and its subscription is active already.
    fn add(
        &mut self,
        new: NewWatch<'_>,
        uri: Arc<str>,
        now: Millis,
        timers: &mut BTreeSet<(Millis, MachineTimer)>,
    ) -> bool {
        let NewWatch { id, kind, spelling } = new;
        self.by_host.insert(id, uri.clone());
        let watched = self.watched.entry(uri.clone()).or_insert_with(|| Watched::new(spelling, Vec::new()));
        match kind {
            WatchKind::Reading => {
                watched.watchers.push(id);
                watched.fresh.push(id);
            }
            WatchKind::Hearing => {
                let is_active = watched.subscription == Subscription::Active;
                watched.heard.push(HeardWatch { id, is_active });
                if is_active {
                    return true;
                }
            }
        }
        watched.is_dirty = true;
        if !watched.parents.is_empty() {
            watched.parents.clear();
            self.descendants -= 1;
        }
        if watched.subscription == Subscription::None {
            self.unsubscribed.insert(uri.clone());
            self.must_listen = true;
        }
        self.consider(&uri, now, timers);
        false
    }

    fn add_descendant(
        &mut self,
        uri: Arc<str>,
        spelling: &str,
        parents: Vec<Arc<str>>,
        now: Millis,
        timers: &mut BTreeSet<(Millis, MachineTimer)>,
    ) {
        self.descendants += 1;
        self.watched.insert(uri.clone(), Watched { is_dirty: true, ..Watched::new(spelling, parents) });
        self.consider(&uri, now, timers);
    }

    fn remove(&mut self, uri: &Arc<str>) {
        let Some(watched) = self.watched.remove(uri) else { return };
        for watcher in watched.all() {
            self.by_host.remove(&watcher);
        }
        self.due.remove(uri);
        self.unsubscribed.remove(uri);
        if !watched.parents.is_empty() {
            self.descendants -= 1;
            return;
        }
        if watched.subscription == Subscription::Active {
            self.leaving.push(watched.spelling);
        }
        self.must_listen = true;
    }

    /// Removes a URI that was only read for the watchers of another one, once they have its contents.
    fn forget_descendants(&mut self, uri: &Arc<str>) {
        let is_over =
            |watched: &Watched| !watched.parents.is_empty() && !watched.is_dirty && watched.reading.is_none();
        if self.watched.get(uri).is_some_and(is_over) {
            self.remove(uri);
        }
    }

    /// Schedules a read of a URI: now, or when its pause is over.
    fn consider(&mut self, uri: &Arc<str>, now: Millis, timers: &mut BTreeSet<(Millis, MachineTimer)>) {
        let Some(watched) = self.watched.get(uri) else { return };
        if !watched.is_dirty || watched.reading.is_some() || !watched.is_settled() {
            return;
        }
        if watched.not_before > now {
            timers.insert((watched.not_before, MachineTimer::Watch(uri.clone())));
        } else {
            self.due.insert(uri.clone());
        }
    }

    /// The watches that get the contents of a URI.
    fn watchers(&self, uri: &Arc<str>) -> Vec<u64> {
        let Some(watched) = self.watched.get(uri) else { return Vec::new() };
        let parents = watched.parents.iter().filter_map(|parent| self.watched.get(parent));
        parents.flat_map(|parent| &parent.watchers).chain(&watched.watchers).copied().collect()
    }

    /// The watched URIs that `uri` lies under.
    fn parents(&self, uri: &str) -> Vec<Arc<str>> {
        let ends = uri.match_indices('/').flat_map(|(at, _)| [at, at + 1]);
        let watched = ends.filter_map(|end| self.watched.get_key_value(uri.get(..end)?));
        watched.filter(|(_, watched)| watched.parents.is_empty()).map(|(uri, _)| uri.clone()).collect()
    }

    /// Reports a change under `uri` to the watches without contents. Returns whether there is no other watch of it.
    fn hear_of(
        &mut self,
        uri: &Arc<str>,
        now: Millis,
        timers: &mut BTreeSet<(Millis, MachineTimer)>,
    ) -> bool {
        let Some(watched) = self.watched.get_mut(uri).filter(|watched| !watched.heard.is_empty()) else {
            return false;
        };
        watched.is_dirty = true;
        let is_only_heard = watched.watchers.is_empty();
        self.consider(uri, now, timers);
        is_only_heard
    }

    /// The URIs to listen to, each in the spelling of its first watch.
    fn wanted(&self) -> BTreeMap<Arc<str>, String> {
        let own = self.watched.iter().filter(|(_, watched)| watched.parents.is_empty());
        own.map(|(uri, watched)| (uri.clone(), watched.spelling.clone())).collect()
    }

    /// Ends the watches of a URI with an error.
    fn fail(&mut self, uri: &Arc<str>, error: &ClientError, out: &mut Effects) {
        for watch in self.watched.get(uri).into_iter().flat_map(Watched::all) {
            out.push(Effect::Changed { watch, change: Err(error.clone()) });
        }
        self.remove(uri);
    }

    /// Ends with an error the watches that have not reported anything yet.
    fn fail_new(&mut self, error: &ClientError, out: &mut Effects) {
        let new = self.watched.iter().filter(|(_, watched)| watched.reported == LastContents::Nothing);
        let uris: Vec<_> = new.map(|(uri, _)| uri.clone()).collect();
        uris.iter().for_each(|uri| self.fail(uri, error, out));
    }

    pub(super) fn fail_all(&mut self, error: &ClientError, out: &mut Effects) {
        let uris: Vec<_> = self.watched.keys().cloned().collect();
        uris.iter().for_each(|uri| self.fail(uri, error, out));
    }

    /// Handles a changed list: resources that did not exist may exist now.
    pub(super) fn lists_changed(&mut self, now: Millis, timers: &mut BTreeSet<(Millis, MachineTimer)>) {
        let is_absent = |watched: &Watched| {
            watched.subscription == Subscription::Refused || watched.reported == LastContents::Gone
        };
        let absent: Vec<_> = self
            .watched
            .iter()
            .filter(|(_, watched)| is_absent(watched))
            .map(|(uri, _)| uri.clone())
            .collect();
        self.must_listen |= !absent.is_empty();
        for uri in absent {
            if let Some(watched) = self.watched.get_mut(&uri) {
                watched.is_dirty = true;
            }
            self.consider(&uri, now, timers);
            // A server may drop the subscriptions of resources that it removes.
            self.unsubscribed.insert(uri);
        }
    }

    /// Marks every URI for a read, because notifications may be lost.
    pub(super) fn all_may_have_changed(
        &mut self,
        now: Millis,
        timers: &mut BTreeSet<(Millis, MachineTimer)>,
    ) {
        let uris: Vec<_> = self.watched.keys().cloned().collect();
        for uri in uris {
            if let Some(watched) = self.watched.get_mut(&uri) {
                watched.is_dirty = true;
            }
            self.consider(&uri, now, timers);
        }
    }

    /// Resets what depends on the connection: no subscription outlives it.
    pub(super) fn disconnected(&mut self) {
        self.watched.retain(|_, watched| watched.parents.is_empty());
        for watched in self.watched.values_mut() {
            watched.subscription = Subscription::None;
            watched.reading = None;
            watched.is_dirty = true;
            watched.not_before = 0;
        }
        self.due.clear();
        self.unsubscribed.clear();
        self.leaving.clear();
        self.listen = None;
        self.next = None;
        self.requests = 0;
        self.descendants = 0;
    }

    /// Marks every URI for a subscription on the new connection.
    pub(super) fn connected(&mut self) {
        self.unsubscribed = self.watched.keys().cloned().collect();
        self.must_listen = true;
        self.listen_failures = 0;
    }
}

impl Watched {
    fn new(spelling: &str, parents: Vec<Arc<str>>) -> Self {
        Self {
            spelling: spelling.into(),
            watchers: Vec::new(),
            heard: Vec::new(),
            fresh: Vec::new(),
            parents,
            subscription: Subscription::None,
            is_dirty: false,
            reading: None,
            not_before: 0,
            reported: LastContents::Nothing,
            failures: 0,
        }
    }

    /// All watches of it, with and without contents.
    fn all(&self) -> impl Iterator<Item = u64> + '_ {
        self.watchers.iter().copied().chain(self.heard.iter().map(|hearing| hearing.id))
    }

    /// Reports a change to those who want no contents, if the subscription is active.
    fn report(&mut self, out: &mut Effects) {
        if self.subscription != Subscription::Active {
            return;
        }
        for hearing in &mut self.heard {
            let is_first = !std::mem::replace(&mut hearing.is_active, true);
            out.push(Effect::Heard { watch: hearing.id, is_first });
        }
    }

    /// Whether a read that starts now misses no later change.
    fn is_settled(&self) -> bool {
        !self.parents.is_empty() || matches!(self.subscription, Subscription::Active | Subscription::Refused)
    }
}

/// Returns the pause before the next attempt, in ms.
fn pause(failures: u32, longest: Millis) -> Millis {
    PAUSE.saturating_mul(1 << failures.min(20)).min(longest)
}

fn unsupported() -> ClientError {
    Failure::Unsupported { what: "subscriptions".into() }.into()
}

/// A digest to compare contents by.
fn digest(contents: &[Contents<'_>]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hasher.update((bytes.len() as u64).to_be_bytes());
        hasher.update(bytes);
    };
    for entry in contents {
        part(entry.uri.as_deref().unwrap_or_default().as_bytes());
        part(entry.mime_type.as_deref().unwrap_or_default().as_bytes());
        match &entry.body {
            Body::Text(text) => part(text.as_bytes()),
            Body::SharedText(text) => part(text.as_bytes()),
            Body::Blob(bytes) => part(bytes),
            Body::SharedBlob(bytes) => part(bytes),
            Body::Base64(text) => part(text.as_bytes()),
        }
    }
    hasher.finalize().into()
}
