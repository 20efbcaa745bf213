//! The client's result cache: results are kept for their `ttlMs`, or until a notification says that they
//! changed.
//!
//! Law: a client has one principal, so `private` and `public` results are kept alike, and no other client sees them.

use super::{ClientLimits, ClientOutcome};
use crate::connection::{Body, Contents};
use crate::now::Millis;
use std::collections::{BTreeSet, HashMap};

/// The request that a result belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ClientCacheKey {
    /// The contents of a canonical URI.
    Read(String),
    /// A page of the resources, by its cursor.
    List(Option<String>),
    /// A page of the templates, by its cursor.
    Templates(Option<String>),
}

#[derive(Debug)]
struct ClientCacheEntry {
    outcome: ClientOutcome,
    until: Millis,
    size: usize,
}

/// The result cache, with a limit on the number of entries and on their bytes.
#[derive(Debug)]
pub(super) struct ClientCache {
    entries: HashMap<ClientCacheKey, ClientCacheEntry>,
    /// The keys in the order of expiry.
    ends: BTreeSet<(Millis, ClientCacheKey)>,
    bytes: usize,
    most_entries: usize,
    most_bytes: usize,
}

impl ClientCache {
    pub(super) fn new(limits: &ClientLimits) -> Self {
        let most_entries = limits.cache_entries;
        let most_bytes = limits.cache_bytes;
        Self { entries: HashMap::new(), ends: BTreeSet::new(), bytes: 0, most_entries, most_bytes }
    }

    pub(super) fn get(&self, key: &ClientCacheKey, now: Millis) -> Option<ClientOutcome> {
        self.entries.get(key).filter(|entry| now < entry.until).map(|entry| entry.outcome.clone())
    }

    /// Keeps a result for `ttl` ms. Evicts the results that expire first to make room.
    pub(super) fn put(&mut self, key: ClientCacheKey, outcome: &ClientOutcome, ttl: Millis, now: Millis) {
        self.remove(&key);
        let size = size(outcome);
        if ttl == 0 || size > self.most_bytes / 4 {
            return;
        }
        while self.entries.len() >= self.most_entries || self.bytes + size > self.most_bytes {
            let Some((_, first)) = self.ends.first().cloned() else { return };
            self.remove(&first);
        }
        let until = now.saturating_add(ttl);
        self.bytes += size;
        self.ends.insert((until, key.clone()));
        self.entries.insert(key, ClientCacheEntry { outcome: outcome.clone(), until, size });
    }

    pub(super) fn remove(&mut self, key: &ClientCacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.size;
            self.ends.remove(&(entry.until, key.clone()));
        }
    }

    /// Removes all cached pages of lists.
    pub(super) fn forget_lists(&mut self) {
        let lists: Vec<_> =
            self.entries.keys().filter(|key| !matches!(key, ClientCacheKey::Read(_))).cloned().collect();
        lists.iter().for_each(|key| self.remove(key));
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.ends.clear();
        self.bytes = 0;
    }
}

/// The approximate size of a result in bytes.
fn size(outcome: &ClientOutcome) -> usize {
    const ENTRY: usize = 200;
    ENTRY
        + match outcome {
            ClientOutcome::Page(page) => {
                page.items.iter().map(|item| ENTRY + item.uri.len() + item.json.len()).sum::<usize>()
            }
            ClientOutcome::Contents { contents, .. } => {
                contents.iter().map(|entry| ENTRY + contents_size(entry)).sum()
            }
            ClientOutcome::Completion(found) => found.values.iter().map(|value| ENTRY + value.len()).sum(),
            ClientOutcome::Result(text) => text.len(),
        }
}

fn contents_size(contents: &Contents<'_>) -> usize {
    let body = match &contents.body {
        Body::Text(text) => text.len(),
        Body::SharedText(text) => text.len(),
        Body::Blob(bytes) => bytes.len(),
        Body::SharedBlob(bytes) => bytes.len(),
        Body::Base64(text) => text.len(),
    };
    let texts = [&contents.uri, &contents.mime_type, &contents.meta];
    body + texts.into_iter().flatten().map(|text| text.len()).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(text: &str) -> ClientOutcome {
        ClientOutcome::Contents { contents: vec![Contents::text(text.to_owned())], ttl: 0 }
    }

    fn text(outcome: Option<ClientOutcome>) -> Option<String> {
        match outcome? {
            ClientOutcome::Contents { contents, .. } => match &contents.first()?.body {
                Body::Text(text) => Some(text.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    // a result is kept until it expires or is removed; number and bytes are limited.
    #[test]
    fn results_are_kept_for_their_time() {
        let limits = ClientLimits { cache_entries: 2, cache_bytes: 4_000, ..ClientLimits::default() };
        let mut cache = ClientCache::new(&limits);
        let key = |uri: &str| ClientCacheKey::Read(uri.into());
        cache.put(key("a"), &contents("one"), 100, 0);
        assert_eq!(text(cache.get(&key("a"), 99)).as_deref(), Some("one"));
        assert_eq!(text(cache.get(&key("a"), 100)), None);
        cache.put(key("b"), &contents("two"), 0, 0);
        assert!(cache.get(&key("b"), 0).is_none(), "no time, not kept");
        cache.put(key("b"), &contents("two"), 50, 0);
        cache.put(key("c"), &contents("three"), 200, 0);
        assert!(cache.get(&key("b"), 1).is_none(), "what ends first makes room");
        assert!(cache.get(&key("a"), 1).is_some() && cache.get(&key("c"), 1).is_some());
        cache.put(key("d"), &contents(&"x".repeat(2_000)), 200, 0);
        assert!(cache.get(&key("d"), 1).is_none(), "a large one does not push out the others");
        cache.put(ClientCacheKey::List(None), &ClientOutcome::Page(crate::client::Page::default()), 200, 0);
        cache.forget_lists();
        assert!(cache.get(&ClientCacheKey::List(None), 1).is_none());
        cache.clear();
        assert_eq!((cache.bytes, cache.ends.len()), (0, 0));
    }
}
