//! One connection over HTTP with its streams: a legacy session with many, or one modern request with one.
//!
//! Law: the lock is a leaf. It is never held while a handler runs or a detached answer is encoded, and wakers are
//! called after it is released. The engine may wake the channel while its lock is held: that sets a flag, which the
//! thread that holds the lock checks after releasing it.

use super::state::ChannelState;
use crate::hub::ConnectionId;
use crate::now::Now;
use crate::principal::{ANONYMOUS, Network, Principal};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Wake, Waker};

/// A connection over HTTP behind a lock.
pub(super) struct Channel {
    id: ConnectionId,
    owner: ChannelOwner,
    state: Mutex<ChannelState>,
    /// Whether the engine has woken the channel, and no thread has handled that yet.
    is_woken: AtomicBool,
}

/// The channel's waker. Weak, so that the engine does not keep the channel alive.
struct ChannelWaker(Weak<Channel>);

/// The owner of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ChannelOwner {
    /// The principal's identity: no other principal may use the session.
    id: Arc<str>,
    /// The network of a client without a token. May change during a session; used only to count sessions by client.
    network: Option<Network>,
}

impl ChannelOwner {
    fn from_principal(principal: &Principal) -> Self {
        Self { id: principal.id().into(), network: principal.network() }
    }

    /// Whether its sessions can be told apart from those of other clients.
    pub(super) fn is_known(&self) -> bool {
        self.network.is_some() || *self.id != *ANONYMOUS
    }
}

impl Channel {
    pub(super) fn new(state: ChannelState, principal: &Principal) -> Self {
        let id = state.connection.id();
        let owner = ChannelOwner::from_principal(principal);
        Self { id, owner, state: Mutex::new(state), is_woken: AtomicBool::new(false) }
    }

    pub(super) fn owner(&self) -> &ChannelOwner {
        &self.owner
    }

    pub(super) fn id(&self) -> ConnectionId {
        self.id
    }

    pub(super) fn belongs_to(&self, principal: &str) -> bool {
        *self.owner.id == *principal
    }

    /// Runs `work` on the state, then calls the wakers that are due.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut ChannelState) -> R) -> R {
        let result = work_on(self.lock(), work);
        self.catch_up();
        result
    }

    /// Registers the channel's waker with the engine, which calls it at once if there is work.
    pub(super) fn register_waker(self: &Arc<Self>) {
        let waker = Waker::from(Arc::new(ChannelWaker(Arc::downgrade(self))));
        self.with(|state| state.connection.wake_with(waker));
    }

    /// Signals work: the hub has notifications, or a shared read has ended. Never blocks: if the lock is held, its
    /// holder handles the work after releasing it.
    fn wake(&self) {
        self.is_woken.store(true, Ordering::Relaxed);
        self.catch_up();
    }

    /// Handles signalled work. The fence, here and in [`Channel::wake`], is between accessing the flag and the lock. So
    /// of two threads, one setting the flag and one releasing the lock, at least one sees the other's change.
    fn catch_up(&self) {
        loop {
            fence(Ordering::SeqCst);
            if !self.is_woken.load(Ordering::Relaxed) {
                return;
            }
            let state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            if self.is_woken.swap(false, Ordering::Relaxed) {
                work_on(state, ChannelState::woken);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs `work`, releases the state, and calls the wakers that are due.
fn work_on<R>(mut state: MutexGuard<'_, ChannelState>, work: impl FnOnce(&mut ChannelState) -> R) -> R {
    let result = work(&mut state);
    let wakers = state.take_wakers();
    drop(state);
    wakers.into_iter().for_each(Waker::wake);
    result
}

impl Wake for ChannelWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if let Some(channel) = self.0.upgrade() {
            channel.wake();
        }
    }
}

/// Removes a connection from the hub if its runtime did not close it.
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
