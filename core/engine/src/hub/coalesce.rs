//! When a change of a topic is notified: at once, then at most once in each interval, with the last change included
//! (leading and trailing edge).
//!
//! Law: whatever the rate of changes, a topic is notified at most once per interval, and always after its last change.
//! Here that marks its watchers dirty; the message is written elsewhere. A change while all watchers are still marked
//! needs no mark of its own: a burst of edits before the first notification is one notification.
//!
//! A change for one principal has a gate in each watch of that principal. So other principals are not notified, and the
//! times of their own notifications do not show that there was such a change.

use super::table::{HubConnection, Subscriber, SubscriptionTable, Topic};
use super::{ConnectionId, Wakers};
use crate::now::Millis;
use slab::Slab;
use std::collections::BTreeSet;

/// ```text
///        ┌──────────────────── changed after `until`: notified ────────────────────┐
///        ▼                                                                         │
/// Open ──changed: notified──▶ Closed(until) ──changed before `until`──▶ Pending(until)
///                                  ▲                                       │
///                                  └──────────── due: notified ────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoalesceGate {
    /// Never notified.
    Open,
    /// Notified; the next notification is not before this time.
    Closed(Millis),
    /// Changed since the last notification; due at this time.
    Pending(Millis),
}

/// The pending topics, by time.
#[derive(Debug)]
pub(super) struct Schedule {
    interval: Millis,
    due: BTreeSet<(Millis, Gated)>,
}

/// The owner of a gate: a topic, or one subscriber's watch of it.
pub(super) type Gated = (usize, Option<usize>);

impl Schedule {
    pub(super) fn new(interval: Millis) -> Self {
        Self { interval, due: BTreeSet::new() }
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Removes a gate without subscribers from the schedule.
    pub(super) fn forget(&mut self, gated: Gated, gate: CoalesceGate) {
        if let CoalesceGate::Pending(due) = gate {
            self.due.remove(&(due, gated));
        }
    }

    /// Records a change behind a gate. Returns whether to notify now.
    fn changed(&mut self, gated: Gated, gate: &mut CoalesceGate, now: Millis) -> bool {
        match *gate {
            CoalesceGate::Closed(until) if now < until => {
                self.due.insert((until, gated));
                *gate = CoalesceGate::Pending(until);
                return false;
            }
            CoalesceGate::Pending(until) if now < until => return false,
            CoalesceGate::Pending(until) => {
                self.due.remove(&(until, gated));
            }
            CoalesceGate::Open | CoalesceGate::Closed(_) => {}
        }
        *gate = CoalesceGate::Closed(now.saturating_add(self.interval));
        true
    }

    /// The first that is due by `now`.
    fn next_due(&mut self, now: Millis) -> Option<Gated> {
        self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.pop_first().map(|(_, gated)| gated)
    }
}

impl SubscriptionTable {
    /// Handles a change of a topic: its watchers are marked now, or when its interval has passed; a timer is then
    /// needed.
    pub(super) fn changed(&mut self, topic: usize, now: Millis, woken: &mut Wakers) {
        let Topic { watchers, gate, is_marked, .. } = &mut self.topics[topic];
        if *is_marked || watchers.is_empty() {
            return;
        }
        let before = self.schedule.deadline();
        if self.schedule.changed((topic, None), gate, now) {
            self.mark(topic, woken);
        } else {
            self.wake_timers(before, woken);
        }
    }

    /// Like [`SubscriptionTable::changed`], for watchers of this principal only.
    pub(super) fn changed_for(&mut self, principal: &str, topic: usize, now: Millis, woken: &mut Wakers) {
        let before = self.schedule.deadline();
        for key in &self.topics[topic].watchers {
            let subscriber = &mut self.subscribers[*key];
            let is_theirs = subscriber.principal.id() == principal;
            let watch = subscriber.watches.get_mut(&topic).filter(|watch| is_theirs && !watch.dirty);
            let Some(watch) = watch else { continue };
            if self.schedule.changed((topic, Some(*key)), &mut watch.gate, now) {
                subscriber.mark(*key, topic, &mut self.connections, woken);
            }
        }
        self.wake_timers(before, woken);
    }

    /// Marks the watchers of all gates that are due.
    pub(super) fn tick(&mut self, now: Millis, woken: &mut Wakers) {
        let until = now.saturating_add(self.schedule.interval);
        while let Some((topic, watcher)) = self.schedule.next_due(now) {
            let Some(key) = watcher else {
                self.topics[topic].gate = CoalesceGate::Closed(until);
                self.mark(topic, woken);
                continue;
            };
            let subscriber = &mut self.subscribers[key];
            if let Some(watch) = subscriber.watches.get_mut(&topic) {
                watch.gate = CoalesceGate::Closed(until);
            }
            subscriber.mark(key, topic, &mut self.connections, woken);
        }
    }

    /// Marks the pending changes of one subscriber before their time.
    pub(super) fn mark_pending(&mut self, key: usize, woken: &mut Wakers) {
        let subscriber = &mut self.subscribers[key];
        for (topic, watch) in subscriber.watches.iter_mut().filter(|(_, watch)| !watch.dirty) {
            let gates = [self.topics[*topic].gate, watch.gate];
            if gates.iter().any(|gate| matches!(gate, CoalesceGate::Pending(_))) {
                watch.dirty = true;
                subscriber.dirty.push_back(*topic);
            }
        }
        subscriber.enqueue(key, &mut self.connections, woken);
    }

    /// Handles a change of every topic.
    pub(super) fn mark_every(&mut self, now: Millis, woken: &mut Wakers) {
        let topics: Vec<usize> = self.topics.iter().map(|(topic, _)| topic).collect();
        topics.into_iter().for_each(|topic| self.changed(topic, now, woken));
    }

    /// Marks everything that a legacy connection subscribed to.
    pub(super) fn mark_all(&mut self, id: ConnectionId, woken: &mut Wakers) {
        let Some(key) = self.legacy_of(id) else { return };
        let subscriber = &mut self.subscribers[key];
        for (topic, watch) in subscriber.watches.iter_mut().filter(|(_, watch)| !watch.dirty) {
            watch.dirty = true;
            subscriber.dirty.push_back(*topic);
        }
        subscriber.enqueue(key, &mut self.connections, woken);
    }

    fn mark(&mut self, topic: usize, woken: &mut Wakers) {
        self.topics[topic].is_marked = true;
        for key in &self.topics[topic].watchers {
            self.subscribers[*key].mark(*key, topic, &mut self.connections, woken);
        }
    }

    /// Wakes the timer_wakers if something is due earlier than `before`.
    fn wake_timers(&self, before: Option<Millis>, woken: &mut Wakers) {
        let is_earlier = |due| before.is_none_or(|before| due < before);
        if self.schedule.deadline().is_some_and(is_earlier) {
            woken.extend(self.timer_wakers.iter().map(|(_, waker)| waker.clone()));
        }
    }
}

impl Subscriber {
    /// Marks one of its watched topics, unless its connection gets no more notifications. `key` is the subscriber's own
    /// key.
    #[inline]
    pub(super) fn mark(
        &mut self,
        key: usize,
        topic: usize,
        connections: &mut Slab<HubConnection>,
        woken: &mut Wakers,
    ) {
        let is_closing = connections[self.connection].closing;
        let watch = self.watches.get_mut(&topic).filter(|watch| !is_closing && !watch.dirty);
        let Some(watch) = watch else { return };
        watch.dirty = true;
        self.dirty.push_back(topic);
        self.enqueue(key, connections, woken);
    }
}
