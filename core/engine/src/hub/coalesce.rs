//! When a change of a topic is told: at once, then not again before an interval has passed, but then the last one
//! too (leading and trailing edge).
//!
//! Law: whatever the rate of changes, a topic is told at most once per interval, and always after its last change.
//! Telling means marking its watchers dirty; nothing is worded here. A change that comes while everybody who watches is
//! still marked needs no telling of its own: a burst of edits that nobody has heard of yet is heard of once (R-076).

use super::table::{Table, Topic};
use super::{ConnectionId, Wakers};
use crate::now::Millis;
use std::collections::BTreeSet;

/// ```text
///        ┌────────────────── changed after `until`: told ──────────────┐
///        ▼                                                             │
/// Open ──changed: told──▶ Closed(until) ──changed before `until`──▶ Pending(until)
///                              ▲                                       │
///                              └──────────── due: told ────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Never told.
    Open,
    /// Told; not again before this time.
    Closed(Millis),
    /// Changed since; to be told at this time.
    Pending(Millis),
}

/// The topics that are pending, by time.
#[derive(Debug)]
pub(super) struct Schedule {
    interval: Millis,
    due: BTreeSet<(Millis, usize)>,
}

impl Schedule {
    pub(super) fn new(interval: Millis) -> Self {
        Self { interval, due: BTreeSet::new() }
    }

    pub(super) fn deadline(&self) -> Option<Millis> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Nobody watches the topic any longer.
    pub(super) fn forget(&mut self, topic: usize, gate: &mut Gate) {
        if let Gate::Pending(due) = *gate {
            self.due.remove(&(due, topic));
        }
        *gate = Gate::Open;
    }

    /// The topic changed. Returns whether to tell it now.
    fn changed(&mut self, topic: usize, gate: &mut Gate, now: Millis) -> bool {
        match *gate {
            Gate::Closed(until) if now < until => {
                self.due.insert((until, topic));
                *gate = Gate::Pending(until);
                return false;
            }
            Gate::Pending(until) if now < until => return false,
            Gate::Pending(until) => {
                self.due.remove(&(until, topic));
            }
            Gate::Open | Gate::Closed(_) => {}
        }
        *gate = Gate::Closed(now.saturating_add(self.interval));
        true
    }

    /// The first topic that is due by `now`.
    fn next_due(&mut self, now: Millis) -> Option<usize> {
        self.due.first().filter(|(due, _)| *due <= now)?;
        self.due.pop_first().map(|(_, topic)| topic)
    }
}

impl Table {
    /// A topic changed: its watchers are marked, now or when its interval has passed. Then somebody must keep the time.
    pub(super) fn changed(&mut self, topic: usize, now: Millis, woken: &mut Wakers) {
        let Topic { watchers, gate, is_unheard, .. } = &mut self.topics[topic];
        if *is_unheard || watchers.is_empty() {
            return;
        }
        let before = self.schedule.deadline();
        if self.schedule.changed(topic, gate, now) {
            self.mark(topic, woken);
        } else if self.schedule.deadline() != before {
            woken.extend(self.timekeepers.iter().map(|(_, waker)| waker.clone()));
        }
    }

    /// Marks the watchers of what is due.
    pub(super) fn tick(&mut self, now: Millis, woken: &mut Wakers) {
        let until = now.saturating_add(self.schedule.interval);
        while let Some(topic) = self.schedule.next_due(now) {
            self.topics[topic].gate = Gate::Closed(until);
            self.mark(topic, woken);
        }
    }

    /// Marks what is pending for one subscriber, before its time.
    pub(super) fn mark_pending(&mut self, key: usize, woken: &mut Wakers) {
        let subscriber = &mut self.subscribers[key];
        for (topic, watch) in subscriber.watches.iter_mut().filter(|(_, watch)| !watch.dirty) {
            if matches!(self.topics[*topic].gate, Gate::Pending(_)) {
                watch.dirty = true;
                subscriber.dirty.push_back(*topic);
            }
        }
        subscriber.enqueue(key, &mut self.connections, woken);
    }

    /// Marks everything that a legacy connection asked for.
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
        self.topics[topic].is_unheard = true;
        for key in &self.topics[topic].watchers {
            let subscriber = &mut self.subscribers[*key];
            let is_closing = self.connections[subscriber.connection].closing;
            let Some(watch) = subscriber.watches.get_mut(&topic).filter(|_| !is_closing) else { continue };
            if !watch.dirty {
                watch.dirty = true;
                subscriber.dirty.push_back(topic);
                subscriber.enqueue(*key, &mut self.connections, woken);
            }
        }
    }
}
