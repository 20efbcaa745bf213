//! What `.list` callbacks without paging gave, kept for a while so that a walk over the pages sees one list.

use crate::catalog::HandlerId;
use crate::connection::Listed;
use crate::limits::Limits;
use crate::now::{Millis, Now};
use crate::principal::Principal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bounded; kept for each callback and principal.
pub(super) struct KeptLists {
    kept: Mutex<HashMap<(HandlerId, Principal), Kept>>,
    ttl: Millis,
    most: usize,
}

struct Kept {
    until: Millis,
    listed: Arc<Listed>,
}

impl KeptLists {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { kept: Mutex::default(), ttl: limits.list_ttl, most: limits.list_cache.max(1) }
    }

    pub(super) fn get(&self, handler: HandlerId, principal: &Principal, now: Now) -> Option<Arc<Listed>> {
        let kept = self.lock();
        let found = kept.get(&(handler, principal.clone()))?;
        (now.tick < found.until).then(|| found.listed.clone())
    }

    pub(super) fn put(&self, handler: HandlerId, principal: &Principal, listed: Arc<Listed>, now: Now) {
        if self.ttl == 0 {
            return;
        }
        let mut kept = self.lock();
        if kept.len() >= self.most {
            kept.retain(|_, kept| now.tick < kept.until);
        }
        if kept.len() >= self.most {
            kept.clear();
        }
        kept.insert((handler, principal.clone()), Kept { until: now.tick.saturating_add(self.ttl), listed });
    }

    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(HandlerId, Principal), Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
