//! Changes that the clients of a server hear about, and those that its other processes must hear about.
//!
//! ```text
//!   notify_updated, notify_list_changed, revoke, edits ──▶ marks in the hub
//!                                                     └──▶ ChangeSink ──▶ a bus ──▶ Engine::apply_change of each other process
//!   a provider's own report ──▶ marks in the hub alone: its watcher runs in every process
//! ```
//!
//! Law: an applied change never reaches the sink, so no change goes round in a circle. Without a sink a change costs one load.

use super::Engine;
use crate::catalog::{Applied, invalid_uri};
use crate::guard::RateSink;
use crate::hub::ListKinds;
use crate::now::{Millis, Now};
use crate::resource::RegistrationError;
use mcp_resources_template::uri;
use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A change that the clients of every process of a server hear about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SharedChange {
    /// The contents of a resource have changed.
    Updated {
        /// Its canonical URI.
        uri: Box<str>,
        /// The identity of the only principal that is notified; `None` for all.
        principal: Option<Box<str>>,
    },
    /// Lists have changed.
    Lists {
        /// Their kinds.
        kinds: ListKinds,
        /// As in [`SharedChange::Updated`].
        principal: Option<Box<str>>,
    },
    /// The tokens of a principal were revoked: [`Engine::revoke`].
    Revoked {
        /// Its identity.
        principal: Box<str>,
    },
    /// The rights of a principal have changed: [`Engine::regrant`].
    Regranted {
        /// Its identity.
        principal: Box<str>,
    },
}

impl SharedChange {
    /// Its size in bytes, for limits of queues.
    pub fn size(&self) -> usize {
        let texts = match self {
            Self::Updated { uri, principal } => uri.len() + principal.as_ref().map_or(0, |id| id.len()),
            Self::Lists { principal, .. } => principal.as_ref().map_or(0, |id| id.len()),
            Self::Revoked { principal } | Self::Regranted { principal } => principal.len(),
        };
        size_of::<Self>() + texts
    }
}

/// Receives the changes that other processes must hear about: see [`Engine::share_changes`].
pub trait ChangeSink: Send + Sync {
    /// Takes a change, which is applied here already. Called where the change is announced, so it must not block. It must
    /// not call the engine.
    fn changed(&self, change: SharedChange);

    /// Its counts, for metrics.
    fn counts(&self) -> BusCounts;
}

/// The counters of a bus between the processes of a server, for metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusCounts {
    /// Changes that were sent.
    pub sent: u64,
    /// Changes of other processes that were applied.
    pub received: u64,
    /// The number of times that changes may have been lost, so that everything was announced as changed.
    pub lost: u64,
    /// Entries that were ignored: they do not open with the server's keys, or were received before.
    pub ignored: u64,
    /// The age of the last message at its arrival, in milliseconds, by the clocks of both processes.
    pub lag: Millis,
    /// Whether the bus can be reached.
    pub is_connected: bool,
}

/// The sink of an engine.
#[derive(Default)]
pub(super) struct SharedChanges(OnceLock<Arc<dyn ChangeSink>>);

impl SharedChanges {
    pub(super) fn counts(&self) -> Option<BusCounts> {
        self.0.get().map(|sink| sink.counts())
    }

    /// Makes the change only if there is a sink.
    fn tell(&self, change: impl FnOnce() -> SharedChange) {
        if let Some(sink) = self.0.get() {
            sink.changed(change());
        }
    }
}

impl fmt::Debug for SharedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedChanges").field(&self.0.get().is_some()).finish()
    }
}

impl Engine {
    /// Passes changes to `sink` from now on. Only the first sink is used; `false` if there was one.
    pub fn share_changes(&self, sink: Arc<dyn ChangeSink>) -> bool {
        self.changes.0.set(sink).is_ok()
    }

    /// Passes what is used of shared rates to `sink` from now on. Only the first sink is used; `false` if there was one.
    /// For runtimes that set [`EngineOptions::shares_rates`](super::EngineOptions::shares_rates).
    pub fn share_rates(&self, sink: Arc<dyn RateSink>) -> bool {
        self.rates.set(sink)
    }

    /// The name of the server at its start, which its cursors and its messages to other processes belong to.
    pub fn first_name(&self) -> &str {
        &self.first_name
    }

    /// Announces that the resource at `uri` has changed.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidUri`]; [`RegistrationError::InvalidField`] if a template's parameter refuses a value,
    /// such as `07` for an integer: no client can watch such a URI.
    pub fn updated(&self, uri: &str, now: Now) -> Result<(), RegistrationError> {
        let normal = self.mark_updated(uri, None, now)?;
        self.changes.tell(|| SharedChange::Updated { uri: normal.into(), principal: None });
        Ok(())
    }

    /// Like [`Engine::updated`], for the principal with this identity only. No other principal is notified.
    ///
    /// # Errors
    /// As [`Engine::updated`].
    pub fn updated_for(&self, principal: &str, uri: &str, now: Now) -> Result<(), RegistrationError> {
        let normal = self.mark_updated(uri, Some(principal), now)?;
        self.changes.tell(|| SharedChange::Updated { uri: normal.into(), principal: Some(principal.into()) });
        Ok(())
    }

    /// Like [`Engine::updated`] or [`Engine::updated_for`], in this process alone: for providers, whose watchers run in
    /// every process.
    ///
    /// # Errors
    /// As [`Engine::updated`].
    pub fn updated_here(
        &self,
        uri: &str,
        principal: Option<&str>,
        now: Now,
    ) -> Result<(), RegistrationError> {
        self.mark_updated(uri, principal, now).map(drop)
    }

    /// Announces a change of a list that the catalogue does not know about: the results of `.list` callbacks, or the
    /// list of a custom method.
    pub fn list_changed(&self, lists: ListKinds, now: Now) {
        self.list_changed_here(lists, None, now);
        self.changes.tell(|| SharedChange::Lists { kinds: lists, principal: None });
    }

    /// Like [`Engine::list_changed`], for the principal with this identity only.
    pub fn list_changed_for(&self, principal: &str, lists: ListKinds, now: Now) {
        self.list_changed_here(lists, Some(principal), now);
        self.changes.tell(|| SharedChange::Lists { kinds: lists, principal: Some(principal.into()) });
    }

    /// Like [`Engine::list_changed`] or [`Engine::list_changed_for`], in this process alone: for providers.
    pub fn list_changed_here(&self, lists: ListKinds, principal: Option<&str>, now: Now) {
        self.forget_lists(lists);
        match principal {
            None => self.hub.list_changed(lists, now.tick),
            Some(principal) => self.hub.list_changed_for(principal, lists, now.tick),
        }
    }

    /// Revokes the tokens of the principal with this identity: every HTTP endpoint removes them from its cache of
    /// verified tokens, the principal's listens end with their results, and the notification streams of its
    /// sessions end.
    ///
    /// The next request with such a token is verified again, also within a session, and refused if the verifier refuses
    /// it. Sessions and their subscriptions stay, for a client that returns with another token of this principal, until
    /// they are idle for too long. Does nothing for the empty identity of the local process.
    pub fn revoke(&self, principal: &str) {
        self.revoke_here(principal);
        if principal.is_empty() {
            return;
        }
        self.changes.tell(|| SharedChange::Revoked { principal: principal.into() });
    }

    /// Looks again at what the principal with this identity may use: its verified tokens and the answers of access
    /// functions are forgotten, and its subscriptions and listens to what it may no longer use end at once. Listens and
    /// streams of a token that came with rights (scopes, claims, or globs) end, so that its client sends the token again
    /// and the verifier is asked.
    ///
    /// Unlike [`Engine::revoke`], it leaves subscriptions alone that are still allowed.
    pub fn regrant(&self, principal: &str) {
        self.regrant_here(principal);
        self.changes.tell(|| SharedChange::Regranted { principal: principal.into() });
    }

    /// Passes the changes of an edit to the sink. [`Engine::publish`] does so itself; [`Engine::apply`] does not, because
    /// the sources of a mount change in every process. Edits before the first client are the start of this process, which
    /// is no change for the others.
    pub fn share_edit(&self, applied: &Applied) {
        if !self.hub.has_connected() {
            return;
        }
        for uri in &applied.removed {
            self.changes.tell(|| SharedChange::Updated { uri: (**uri).into(), principal: None });
        }
        let kinds = applied.changed_lists();
        if kinds != ListKinds::NONE {
            self.changes.tell(|| SharedChange::Lists { kinds, principal: None });
        }
    }

    /// Announces a change of another process to the clients of this one, and discards what caches have of it.
    ///
    /// # Errors
    /// As [`Engine::updated`], for a URI that no client of this process can watch. Nothing is announced then.
    pub fn apply_change(&self, change: &SharedChange, now: Now) -> Result<(), RegistrationError> {
        match change {
            SharedChange::Updated { uri, principal } => {
                return self.updated_here(uri, principal.as_deref(), now);
            }
            SharedChange::Lists { kinds, principal } => {
                self.list_changed_here(*kinds, principal.as_deref(), now)
            }
            SharedChange::Revoked { principal } => self.revoke_here(principal),
            SharedChange::Regranted { principal } => self.regrant_here(principal),
        }
        Ok(())
    }

    /// Announces everything that is watched as changed, and discards all caches, because changes of other processes may
    /// have been lost. Tokens are verified again at their next use. A listen that is open stays open.
    pub fn mark_every(&self, now: Now) {
        self.forget_lists(ListKinds::RESOURCES);
        self.access.clear();
        self.principal_caches.forget_all();
        self.hub.mark_every(now.tick);
    }

    fn mark_updated<'u>(
        &self,
        uri: &'u str,
        principal: Option<&str>,
        now: Now,
    ) -> Result<Cow<'u, str>, RegistrationError> {
        let normal = uri::normalize(uri, self.limits().uri).map_err(|error| invalid_uri(uri, &error))?;
        self.check_values(uri, &normal)?;
        self.mark(&normal, principal, now);
        Ok(normal)
    }

    fn revoke_here(&self, principal: &str) {
        self.access.regrant(principal);
        self.principal_caches.forget(principal);
        if self.mark_interest(self.hub.revoke(principal)).is_some() {
            self.settle_interest();
        }
    }

    fn regrant_here(&self, principal: &str) {
        self.access.regrant(principal);
        self.lists.clear();
        self.principal_caches.forget(principal);
        self.hub.recheck(principal);
    }
}

#[cfg(test)]
mod tests;
