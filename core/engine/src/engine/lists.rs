//! Results of `.list` callbacks without pages, cached for [`Limits::list_ttl`], so that a walk over the pages calls
//! each callback once.
//!
//! Law: a result is cached only if its callback was called after the latest change. The number of lists and their bytes
//! are limited.

use crate::catalog::SourceKey;
use crate::connection::{Item, Listed};
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use crate::version::Revision;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Cached lists, by source and principal.
pub(super) struct KeptLists {
    table: Mutex<ListCacheTable>,
    ttl: Millis,
    max: usize,
    most_bytes: usize,
}

#[derive(Default)]
struct ListCacheTable {
    cached: HashMap<CachedListKey, CachedList>,
    bytes: usize,
    /// The number of times that the whole cache was cleared.
    generation: u64,
}

/// A list as one client sees it.
#[derive(PartialEq, Eq, Hash)]
struct CachedListKey {
    source: SourceKey,
    /// The identity of the principal for the policy.
    authority: Box<str>,
}

struct CachedList {
    until: Millis,
    size: usize,
    listed: Arc<Listed>,
}

/// The result of a callback, and the time of its call.
pub(crate) struct ListedItems {
    pub(crate) listed: Arc<Listed>,
    /// [`KeptLists::generation`] before the call.
    pub(crate) generation: u64,
}

impl KeptLists {
    pub(super) fn new(limits: &Limits) -> Self {
        let max = limits.list_cache;
        let most_bytes = limits.list_cache_bytes;
        Self { table: Mutex::default(), ttl: limits.list_ttl, max, most_bytes }
    }

    /// Returns how often the cache was cleared. Call this before a callback.
    pub(super) fn generation(&self) -> u64 {
        self.lock().generation
    }

    pub(super) fn get(&self, source: &SourceKey, principal: &Principal, now: Now) -> Option<Arc<Listed>> {
        if self.ttl == 0 {
            return None;
        }
        let table = self.lock();
        let found = table.cached.get(&CachedListKey::new(source, principal))?;
        (now.tick < found.until).then(|| found.listed.clone())
    }

    pub(super) fn put(&self, source: &SourceKey, principal: &Principal, given: &ListedItems, now: Now) {
        if self.ttl == 0 || self.max == 0 {
            return;
        }
        let size = size(&given.listed);
        let mut table = self.lock();
        if size > self.most_bytes || table.generation != given.generation {
            return;
        }
        let key = CachedListKey::new(source, principal);
        table.remove(&key);
        if !self.has_room(&table, size) {
            table.expire(now);
        }
        if !self.has_room(&table, size) {
            table.drop_all();
        }
        table.bytes += size;
        let until = now.tick.saturating_add(self.ttl);
        table.cached.insert(key, CachedList { until, size, listed: given.listed.clone() });
    }

    /// Clears the cache, and rejects the results of callbacks that are running now.
    pub(super) fn clear(&self) {
        let mut table = self.lock();
        table.drop_all();
        table.generation += 1;
    }

    fn has_room(&self, table: &ListCacheTable, size: usize) -> bool {
        table.cached.len() < self.max && table.bytes + size <= self.most_bytes
    }

    fn lock(&self) -> MutexGuard<'_, ListCacheTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CachedListKey {
    fn new(source: &SourceKey, principal: &Principal) -> Self {
        Self { source: source.clone(), authority: principal.authority().into() }
    }
}

impl ListCacheTable {
    fn remove(&mut self, key: &CachedListKey) {
        if let Some(before) = self.cached.remove(key) {
            self.bytes -= before.size;
        }
    }

    fn expire(&mut self, now: Now) {
        self.cached.retain(|_, list| now.tick < list.until);
        self.bytes = self.cached.values().map(|list| list.size).sum();
    }

    fn drop_all(&mut self) {
        self.cached.clear();
        self.bytes = 0;
    }
}

/// The approximate size of a list in bytes.
fn size(listed: &Listed) -> usize {
    const RECORD: usize = 512;
    let mut encoded = Vec::new();
    let item = |(uri, item): &(Arc<str>, Item)| {
        encoded.clear();
        item.encode(Revision::V2026_07_28.field_set(), &mut encoded);
        RECORD + uri.len() + encoded.len()
    };
    listed.iter().map(item).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;

    fn listed(uris: &[&str]) -> Arc<Listed> {
        Arc::new(uris.iter().map(|uri| (Arc::from(*uri), Resource::new(*uri).into())).collect())
    }

    fn lists(limits: Limits) -> KeptLists {
        KeptLists::new(&limits)
    }

    fn held(lists: &KeptLists) -> (usize, usize) {
        let table = lists.lock();
        (table.cached.len(), table.bytes)
    }

    fn at(tick: Millis) -> Now {
        Now { tick, unix: 0 }
    }

    fn source(number: u32) -> SourceKey {
        SourceKey::Key(number.to_string())
    }

    fn put(lists: &KeptLists, number: u32, who: &Principal) {
        let given = ListedItems { listed: listed(&["a://b"]), generation: lists.generation() };
        lists.put(&source(number), who, &given, at(0));
    }

    #[test]
    fn results_from_before_a_change_are_not_cached() {
        let lists = lists(Limits { list_ttl: 10, ..Limits::default() });
        let who = Principal::local();
        let late = ListedItems { listed: listed(&["a://old"]), generation: lists.generation() };
        lists.clear();
        lists.put(&source(1), &who, &late, at(0));
        assert!(lists.get(&source(1), &who, at(0)).is_none());
        put(&lists, 1, &who);
        assert!(
            lists.get(&source(1), &who, at(9)).is_some() && lists.get(&source(1), &who, at(10)).is_none()
        );
        assert!(lists.get(&source(1), &Principal::new("bob"), at(0)).is_none());
        assert!(
            lists.get(&source(1), &who.with_expiry(Some(7)), at(0)).is_some(),
            "a new token of the same principal"
        );
    }

    /// By default each walk calls the callbacks.
    #[test]
    fn nothing_is_cached_by_default() {
        let lists = lists(Limits::default());
        put(&lists, 1, &Principal::local());
        assert!(lists.get(&source(1), &Principal::local(), at(0)).is_none());
    }

    /// The limits `list_cache` and `list_cache_bytes`.
    #[test]
    fn the_bounds_hold() {
        let one = size(&listed(&["a://b"]));
        for (max, most_bytes) in [(2, usize::MAX), (usize::MAX, 2 * one)] {
            let limits =
                Limits { list_ttl: 10, list_cache: max, list_cache_bytes: most_bytes, ..Limits::default() };
            let lists = lists(limits);
            for number in 0..9 {
                put(&lists, number, &Principal::local());
                let (count, bytes) = held(&lists);
                assert!(count <= 2 && bytes <= 2 * one, "{count} {bytes}");
            }
            assert!(lists.get(&source(8), &Principal::local(), at(0)).is_some());
        }
        let lists = lists(Limits { list_ttl: 10, list_cache_bytes: one - 1, ..Limits::default() });
        put(&lists, 1, &Principal::local());
        assert_eq!(held(&lists), (0, 0));
    }
}
