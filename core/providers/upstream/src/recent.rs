//! A table of limited size that forgets what was not used for a while.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// A table in two halves: what is used moves into the young half. When that is full, the old half is forgotten, and the young
/// one takes its place. So it holds at most `limit` entries, and at least the last `limit / 2` that were used.
#[derive(Debug)]
pub(crate) struct RecentTable<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Hash + Eq, V> RecentTable<K, V> {
    pub(crate) fn new(limit: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (limit / 2).max(1) }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.old.remove(&key);
        self.young.insert(key, value);
    }

    /// The value of `key`, which counts as used.
    pub(crate) fn get<Q>(&mut self, key: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        if let Some((key, value)) = self.old.remove_entry(key) {
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    pub(crate) fn remove<Q>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&K, &mut V) -> bool) {
        self.young.retain(&mut keeps);
        self.old.retain(keeps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_keeps_what_is_used() {
        let mut table = RecentTable::new(10);
        for number in 0..1_000 {
            table.insert(number, number);
            assert_eq!(table.get(&0), Some(&mut 0), "used after {number}");
            assert!(table.young.len() + table.old.len() <= 10);
        }
        assert_eq!(table.get(&5), None);
        table.remove(&999);
        assert_eq!(table.get(&999), None);
        table.retain(|_, _| false);
        assert_eq!(table.get(&0), None);
    }
}
