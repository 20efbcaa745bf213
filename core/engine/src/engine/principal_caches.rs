//! Caches outside the engine that hold data of principals, such as verified tokens.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A cache of data of principals, which must be cleared when a principal is revoked.
pub(crate) trait PrincipalCache: Send + Sync {
    /// Removes the data of the principal with this identity.
    fn forget(&self, principal: &str);

    /// Removes everything.
    fn forget_all(&self);
}

/// The registered caches: one for each HTTP endpoint.
#[derive(Default)]
pub(super) struct PrincipalCaches(Mutex<Vec<Weak<dyn PrincipalCache>>>);

impl PrincipalCaches {
    pub(super) fn join(&self, cache: Weak<dyn PrincipalCache>) {
        let mut principal_caches = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        principal_caches.retain(|cache| cache.strong_count() > 0);
        principal_caches.push(cache);
    }

    pub(super) fn forget(&self, principal: &str) {
        self.each(|cache| cache.forget(principal));
    }

    pub(super) fn forget_all(&self) {
        self.each(|cache| cache.forget_all());
    }

    fn each(&self, visit: impl FnMut(Arc<dyn PrincipalCache>)) {
        let principal_caches = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        principal_caches.iter().filter_map(Weak::upgrade).for_each(visit);
    }
}

impl fmt::Debug for PrincipalCaches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrincipalCaches").finish_non_exhaustive()
    }
}
