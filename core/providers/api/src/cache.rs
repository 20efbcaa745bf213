//! A cache of answers: kept for as long as the server allows, then revalidated, or served while the server is down.
//!
//! Law: at most [`ENTRIES`] and [`BYTES`]; the one that was used least recently makes room.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of answers kept.
const ENTRIES: usize = 1_000;
/// Maximum size of all kept answers together, in bytes.
const BYTES: usize = 32 << 20;

/// Identifies a resource: the number of its endpoint, and its id.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ApiCacheKey {
    pub(super) endpoint: usize,
    pub(super) id: Arc<str>,
}

/// The served form of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum CachedBody {
    Text(Arc<str>),
    Blob(Arc<[u8]>),
}

/// An answer.
#[derive(Debug)]
pub(super) struct ApiAnswer {
    pub(super) body: CachedBody,
    pub(super) mime_type: String,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
    pub(super) may_be_stale: bool,
}

/// A copy with its time.
#[derive(Clone, Debug)]
pub(super) struct ApiCacheEntry {
    pub(super) copy: Arc<ApiAnswer>,
    pub(super) fresh_until: Instant,
}

#[derive(Debug, Default)]
pub(super) struct ApiCache {
    kept: HashMap<ApiCacheKey, (ApiCacheEntry, u64)>,
    by_use: BTreeMap<u64, ApiCacheKey>,
    bytes: usize,
    clock: u64,
}

impl CachedBody {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes().len()
    }
}

impl ApiAnswer {
    fn size(&self) -> usize {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        self.body.len() + self.mime_type.len() + length(&self.etag) + length(&self.last_modified)
    }
}

impl ApiCache {
    pub(super) fn get(&mut self, key: &ApiCacheKey) -> Option<ApiCacheEntry> {
        let (kept, used) = self.kept.get_mut(key)?;
        self.clock += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.clock, key.clone());
        *used = self.clock;
        Some(kept.clone())
    }

    pub(super) fn put(&mut self, key: &ApiCacheKey, kept: ApiCacheEntry) {
        self.remove(key);
        let size = kept.copy.size() + key.id.len();
        if size > BYTES {
            return;
        }
        while self.kept.len() >= ENTRIES || self.bytes + size > BYTES {
            let Some(oldest) = self.by_use.first_key_value().map(|(_, key)| key.clone()) else { break };
            self.remove(&oldest);
        }
        self.clock += 1;
        self.bytes += size;
        self.by_use.insert(self.clock, key.clone());
        self.kept.insert(key.clone(), (kept, self.clock));
    }

    pub(super) fn remove(&mut self, key: &ApiCacheKey) {
        if let Some((kept, used)) = self.kept.remove(key) {
            self.by_use.remove(&used);
            self.bytes -= kept.copy.size() + key.id.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: what was used least recently makes room; the bounds hold.
    #[test]
    fn the_bounds_hold() {
        let copy = |size: usize| {
            let body = CachedBody::Blob(vec![0; size].into());
            let mime_type = Default::default();
            let etag = Default::default();
            let last_modified = Default::default();
            let copy = ApiAnswer { body, mime_type, etag, last_modified, may_be_stale: true };
            ApiCacheEntry { copy: Arc::new(copy), fresh_until: Instant::now() }
        };
        let key = |id: usize| ApiCacheKey { endpoint: 0, id: id.to_string().into() };
        let mut cache = ApiCache::default();
        for id in 0..ENTRIES + 1 {
            cache.put(&key(id), copy(1));
            assert!(cache.get(&key(0)).is_some());
        }
        assert!(cache.get(&key(1)).is_none() && cache.get(&key(2)).is_some());
        assert_eq!((cache.kept.len(), cache.by_use.len()), (ENTRIES, ENTRIES));
        cache.put(&key(2), copy(BYTES - 100));
        assert!(cache.bytes <= BYTES && cache.get(&key(2)).is_some());
        cache.put(&key(3), copy(BYTES + 1));
        assert!(cache.get(&key(3)).is_none());
        cache.remove(&key(2));
        assert!(cache.bytes < 1_000, "{}", cache.bytes);
    }
}
