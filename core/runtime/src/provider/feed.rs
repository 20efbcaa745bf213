//! Reports of changes by a provider.

use super::mount::Route;
use super::mounts::{MountState, Mounts};
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::resource::{RegistrationError, Resource};
use std::fmt;
use std::sync::{Arc, Weak};

/// Reports changes of one mount to its server, from any thread. Holds weak references only: after the provider is
/// unmounted, or the server is dropped, calls have no effect.
#[derive(Clone)]
pub struct Feed {
    mounts: Weak<Mounts>,
    state: Arc<MountState>,
}

/// A change of a provider's resources.
#[derive(Clone, Debug)]
pub enum FeedEntry {
    /// A new resource.
    Add(Route, Resource),
    /// The description of a resource of this mount has changed. `None` leaves a field as it is.
    Update {
        /// Its URI, in any spelling.
        uri: String,
        /// Its size in bytes.
        size: Option<u64>,
        /// When its contents were last changed: an ISO 8601 time with its zone.
        last_modified: Option<String>,
        /// Its description, for people and models.
        description: Option<String>,
    },
    /// Removes the resource of this mount at this URI, in any spelling. Its watchers are notified of it as updated.
    Remove(String),
}

impl Feed {
    pub(super) fn new(mounts: &Arc<Mounts>, state: &Arc<MountState>) -> Self {
        Self { mounts: Arc::downgrade(mounts), state: state.clone() }
    }

    /// Reports that the contents at `uri`, in any spelling, have changed.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidUri`].
    pub fn updated(&self, uri: &str) -> Result<(), RegistrationError> {
        self.mounts().map_or(Ok(()), |mounts| mounts.updated(uri, None))
    }

    /// Like [`Feed::updated`], for the principal with this identity only: other subscribers of the URI are not
    /// notified.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidUri`].
    pub fn updated_for(&self, principal: &str, uri: &str) -> Result<(), RegistrationError> {
        self.mounts().map_or(Ok(()), |mounts| mounts.updated(uri, Some(principal)))
    }

    /// Reports that its lists have changed other than by [`Feed::publish`].
    pub fn list_changed(&self) {
        if let Some(mounts) = self.mounts() {
            mounts.list_changed(ListKinds::RESOURCES, None);
        }
    }

    /// Reports that the lists named by `lists` have changed, such as that of tools.
    pub fn lists_changed(&self, lists: ListKinds) {
        if let Some(mounts) = self.mounts() {
            mounts.list_changed(lists, None);
        }
    }

    /// Like [`Feed::list_changed`], for the principal with this identity only: only its clients are notified.
    pub fn list_changed_for(&self, principal: &str) {
        if let Some(mounts) = self.mounts() {
            mounts.list_changed(ListKinds::RESOURCES, Some(principal));
        }
    }

    /// Writes a problem of the provider to the server's log, under the name of the mount. Clients do not see it. Has no
    /// effect before [`Provider::mount`](super::Provider::mount) has returned.
    pub fn log(&self, what: &str) {
        if let Some(mounts) = self.mounts() {
            mounts.log(&self.state, what);
        }
    }

    /// Applies `entries` in order and sends one notification. The result of each is at its index: one invalid entry
    /// does not affect the others. Has no effect before [`Provider::mount`](super::Provider::mount) has returned.
    pub fn publish(&self, entries: Vec<FeedEntry>) -> Vec<Result<(), RegistrationError>> {
        match self.mounts() {
            Some(mounts) => mounts.publish(&self.state, entries),
            None => entries.iter().map(|_| Ok(())).collect(),
        }
    }

    /// The current time of the server's clock, in milliseconds since 1970; 0 after the provider is unmounted.
    pub fn now(&self) -> u64 {
        self.mounts().map_or(0, |mounts| mounts.unix())
    }

    /// Whether the server offers its resources as tools, so that a provider should offer tools of its own
    /// ([`Mount::tool`](super::Mount::tool)) unless its options say otherwise.
    pub fn exposes_tools(&self) -> bool {
        let engine = self.mounts().and_then(|mounts| mounts.engine());
        engine.is_some_and(|engine| engine.options().expose_as_tools)
    }

    /// Whether the provider is still mounted.
    pub fn is_alive(&self) -> bool {
        self.mounts().is_some()
    }

    fn mounts(&self) -> Option<Arc<Mounts>> {
        self.mounts.upgrade().filter(|_| self.state.is_alive())
    }
}

impl fmt::Debug for Feed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").field("is_alive", &self.is_alive()).finish_non_exhaustive()
    }
}
