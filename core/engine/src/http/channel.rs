//! One connection over HTTP, and its streams: a legacy session with many of them, or one modern request with one.
//!
//! Law: the lock is a leaf. It is never held while a handler runs or an answer that was detached is encoded, and whoever
//! is to be woken is woken after it was released.

use super::state::State;
use crate::hub::ConnectionId;
use crate::now::Now;
use crate::principal::{ANONYMOUS, Network, Principal};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// See the module.
pub(super) struct Channel {
    id: ConnectionId,
    owner: Owner,
    state: Mutex<State>,
}

/// Who a session belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    /// The identity: nobody else may use the session.
    id: Arc<str>,
    /// The network of a client without a token. It may change: it says only whose sessions are counted together.
    network: Option<Network>,
}

impl Owner {
    fn of(principal: &Principal) -> Self {
        Self { id: principal.id().into(), network: principal.network() }
    }

    /// Whether its sessions can be told from others'.
    pub(super) fn is_known(&self) -> bool {
        self.network.is_some() || *self.id != *ANONYMOUS
    }
}

impl Channel {
    pub(super) fn new(state: State, principal: &Principal) -> Self {
        Self { id: state.connection.id(), owner: Owner::of(principal), state: Mutex::new(state) }
    }

    pub(super) fn owner(&self) -> &Owner {
        &self.owner
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) fn belongs_to(&self, principal: &str) -> bool {
        *self.owner.id == *principal
    }

    /// Works on the state, then wakes whoever must be.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = work(&mut state);
        let wakers = state.take_wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        result
    }

    /// The hub has something for it, or reads of it wait no longer.
    pub(super) fn wake(&self) {
        self.with(State::woken);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a host forgot to close does not stay in the hub.
impl Drop for Channel {
    fn drop(&mut self) {
        let mut state = self.lock();
        if !state.is_over() {
            let _ = state.end(Now::default());
        }
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("id", &self.id).finish_non_exhaustive()
    }
}
