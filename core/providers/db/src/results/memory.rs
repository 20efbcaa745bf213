//! Stores results in memory.
//!
//! Law: every operation costs the logarithm of the number of results, but for a page of a list.

use super::entry::{ResultEntry, ResultKey, Summary};
use super::options::ResultLimits;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// A store in memory.
#[derive(Debug)]
pub(super) struct ResultTable {
    limits: ResultLimits,
    shelves: BTreeMap<Arc<str>, ResultShelf>,
    /// From the one that was used least recently.
    by_use: BTreeMap<u64, ResultKey>,
    by_expiry: BTreeMap<ResultExpiry, ResultKey>,
    bytes: u64,
    /// The number of puts and uses so far.
    clock: u64,
}

/// When a result expires. The order is that of expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResultExpiry {
    at: u64,
    /// Distinguishes equal times.
    serial: u64,
}

/// The results with one id.
#[derive(Debug, Default)]
struct ResultShelf {
    everybody: Option<StoredResult>,
    own: BTreeMap<Arc<str>, StoredResult>,
}

#[derive(Debug)]
struct StoredResult {
    entry: ResultEntry,
    /// The clock at its put.
    serial: u64,
    /// The clock at its last put or use.
    used: u64,
}

impl ResultTable {
    pub(super) fn new(limits: ResultLimits) -> Self {
        let shelves = Default::default();
        let by_use = Default::default();
        let by_expiry = Default::default();
        Self { limits, shelves, by_use, by_expiry, bytes: 0, clock: 0 }
    }

    /// Puts a result, which is not larger than the limit. Returns whether it replaces one, and what made room for it.
    pub(super) fn put(&mut self, key: ResultKey, entry: ResultEntry) -> (bool, Vec<ResultKey>) {
        let is_new = self.take(&key).is_none();
        self.clock += 1;
        let serial = self.clock;
        let size = entry.content.len() as u64;
        let mut gone = Vec::new();
        while self.by_use.len() >= self.limits.entries || self.bytes + size > self.limits.bytes {
            let Some(key) = self.by_use.first_key_value().map(|(_, key)| key.clone()) else { break };
            self.take(&key);
            gone.push(key);
        }
        self.bytes += size;
        self.by_use.insert(serial, key.clone());
        self.by_expiry.insert(ResultExpiry { at: entry.expires, serial }, key.clone());
        let item = StoredResult { entry, serial, used: serial };
        let shelf = self.shelves.entry(key.id).or_default();
        match key.principal {
            None => shelf.everybody = Some(item),
            Some(principal) => drop(shelf.own.insert(principal, item)),
        }
        (!is_new, gone)
    }

    /// The result that `principal` sees under an id at `now`: its own, or else the one for everybody. Counts as a use.
    pub(super) fn get(&mut self, id: &str, principal: Option<&str>, now: u64) -> Option<ResultEntry> {
        let item = self.shelves.get_mut(id)?.seen_mut(principal, now)?;
        self.clock += 1;
        if let Some(key) = self.by_use.remove(&item.used) {
            self.by_use.insert(self.clock, key);
        }
        item.used = self.clock;
        Some(item.entry.clone())
    }

    /// Takes out one result; whether it was there.
    pub(super) fn remove(&mut self, key: &ResultKey, now: u64) -> bool {
        self.take(key).is_some_and(|item| item.entry.expires > now)
    }

    /// Removes expired results.
    pub(super) fn expire(&mut self, now: u64) -> Vec<ResultKey> {
        let mut gone = Vec::new();
        while let Some((_, key)) = self.by_expiry.first_key_value().filter(|(expiry, _)| expiry.at <= now) {
            let key = key.clone();
            self.take(&key);
            gone.push(key);
        }
        gone
    }

    /// Visits the results that `principal` sees at `now`, ordered by id, until `each` stops.
    pub(super) fn walk(
        &self,
        after: Option<&str>,
        principal: &str,
        now: u64,
        each: &mut dyn FnMut(Summary) -> bool,
    ) {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        for (id, shelf) in self.shelves.range::<str, _>((start, Bound::Unbounded)) {
            if let Some(item) = shelf.seen(Some(principal), now)
                && !each(item.entry.summary(id))
            {
                return;
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_use.len()
    }

    fn take(&mut self, key: &ResultKey) -> Option<StoredResult> {
        let shelf = self.shelves.get_mut(&key.id)?;
        let item = match &key.principal {
            None => shelf.everybody.take(),
            Some(principal) => shelf.own.remove(principal),
        }?;
        if shelf.everybody.is_none() && shelf.own.is_empty() {
            self.shelves.remove(&key.id);
        }
        self.by_use.remove(&item.used);
        self.by_expiry.remove(&ResultExpiry { at: item.entry.expires, serial: item.serial });
        self.bytes -= item.entry.content.len() as u64;
        Some(item)
    }
}

impl ResultShelf {
    fn seen(&self, principal: Option<&str>, now: u64) -> Option<&StoredResult> {
        let own = principal.and_then(|principal| self.own.get(principal));
        [own, self.everybody.as_ref()].into_iter().flatten().find(|item| item.entry.expires > now)
    }

    fn seen_mut(&mut self, principal: Option<&str>, now: u64) -> Option<&mut StoredResult> {
        let own = principal.and_then(|principal| self.own.get_mut(principal));
        [own, self.everybody.as_mut()].into_iter().flatten().find(|item| item.entry.expires > now)
    }
}
