//! A cache of objects of a repository.
//!
//! ```text
//!   put ──▶ young ──full──▶ old ──full again──▶ gone        an object that is used moves to the young ones again
//! ```
//!
//! Law: an object never changes, so cached objects are valid as long as the repository is the same one.

use gix::objs::Kind;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The size of each half of the cache, in bytes.
pub(super) const HALF: usize = 8 << 20;
/// The approximate memory of a cache entry besides its bytes.
const COST: usize = 96;

/// Objects by their ids, or by their places in packs, decompressed.
pub(super) struct ObjectCache<K> {
    young: HashMap<K, (Kind, Arc<[u8]>)>,
    old: HashMap<K, (Kind, Arc<[u8]>)>,
    /// Of the young ones.
    bytes: usize,
    /// The size of each half, in bytes.
    half: usize,
}

impl<K: Copy + Eq + Hash> ObjectCache<K> {
    pub(super) fn new(half: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), bytes: 0, half }
    }

    pub(super) fn get(&mut self, key: K) -> Option<(Kind, Arc<[u8]>)> {
        if let Some((kind, data)) = self.young.get(&key) {
            return Some((*kind, data.clone()));
        }
        let (kind, data) = self.old.remove(&key)?;
        self.put(key, kind, &data);
        Some((kind, data))
    }

    pub(super) fn put(&mut self, key: K, kind: Kind, data: &Arc<[u8]>) {
        let cost = data.len() + COST;
        if cost > self.half {
            return;
        }
        if self.bytes + cost > self.half {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        if self.young.insert(key, (kind, data.clone())).is_none() {
            self.bytes += cost;
        }
    }
}

impl<K> std::fmt::Debug for ObjectCache<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectCache").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gix::ObjectId;

    fn id(number: u32) -> ObjectId {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&number.to_be_bytes());
        ObjectId::from_bytes_or_panic(&bytes)
    }

    // S-02: the cache holds what is used, within its size; what is larger than a half is not held.
    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_used() {
        let mut cache = ObjectCache::new(HALF);
        let data: Arc<[u8]> = vec![7; 1 << 20].into();
        for number in 0..100 {
            cache.put(id(number), Kind::Tree, &data);
            assert!(cache.get(id(0)).is_some(), "{number}");
            assert!((cache.young.len() + cache.old.len()) * data.len() <= 2 * HALF);
        }
        assert!(cache.get(id(50)).is_none());
        assert!(cache.get(id(99)).is_some_and(|(kind, found)| kind == Kind::Tree && found == data));
        cache.put(id(100), Kind::Tree, &vec![0; HALF].into());
        assert!(cache.get(id(100)).is_none());
    }
}
