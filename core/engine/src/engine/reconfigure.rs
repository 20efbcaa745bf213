//! A new policy or description for a server that serves.
//!
//! Law: each decision follows one policy, the old or the new one. Results that were kept under the old policy are dropped before
//! clients hear that the lists have changed, so a client that lists again gets what it may see now.

use super::server_info::ServerDescription;
use super::{Engine, ServerInfo, check};
use crate::guard::Policy;
use crate::hub::ListKinds;
use crate::now::Now;
use crate::resource::RegistrationError;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

impl Engine {
    /// Replaces the policy. Sessions and subscriptions stay. A subscription to what its principal may not see any more is
    /// silent at once, as one to a resource that does not exist. All clients hear that the lists have changed. Rates and
    /// sizes begin anew if they are others. Returns whether anything has changed.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidPolicy`]; the policy in force stays. `redact` cannot change, because constants are
    /// redacted when they are registered.
    pub fn set_policy(&self, policy: &Policy, now: Now) -> Result<bool, RegistrationError> {
        let mut current = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        if *current == *policy {
            return Ok(false);
        }
        if current.redact != policy.redact {
            let (field, reason) =
                ("redact", "it cannot change while the server runs; start the server again");
            return Err(RegistrationError::InvalidPolicy { field: field.into(), reason: reason.into() });
        }
        let (guard, amounts) = check::guard(&self.options, policy, &self.rates)?;
        let has_other_amounts = (&current.rate, current.concurrency, &current.max_size)
            != (&policy.rate, policy.concurrency, &policy.max_size);
        if has_other_amounts {
            let has_amounts = !amounts.is_empty();
            self.amounts.store(Arc::new(amounts));
            self.has_amounts.store(has_amounts, Ordering::Release);
        }
        let is_open = guard.is_open();
        let differs = guard.differs();
        // The flags are strict while the guard is replaced, so no request skips the rules of the new one.
        self.is_open.store(false, Ordering::SeqCst);
        self.guard_differs.store(true, Ordering::SeqCst);
        self.guard.store(Arc::new(guard));
        self.guard_differs.store(differs, Ordering::SeqCst);
        self.is_open.store(is_open, Ordering::SeqCst);
        current.clone_from(policy);
        drop(current);
        self.reached.clear();
        self.lists.clear();
        if let Some(cache) = &self.cache {
            cache.purge_all();
        }
        self.hub.list_changed(ListKinds::ALL, now.tick);
        Ok(true)
    }

    /// Replaces the description: name, version, title, instructions. Clients see it in the next handshake and, in the
    /// modern era, in the next result.
    ///
    /// # Errors
    /// As [`Engine::new`] for the info; the description stays.
    pub fn set_info(&self, info: ServerInfo) -> Result<(), RegistrationError> {
        let description = ServerDescription::new(info)?;
        let _current = self.policy.lock().unwrap_or_else(PoisonError::into_inner);
        self.description.store(Arc::new(description));
        Ok(())
    }
}
