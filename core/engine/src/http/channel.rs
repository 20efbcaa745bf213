//! One connection over HTTP, and its streams: a legacy session with many of them, or one modern request with one.
//!
//! Law: the lock is a leaf. It is never held while a handler runs or an answer that was detached is encoded, and
//! wakers are called after it was released. The engine may wake the channel while its lock is held: that sets a flag, and
//! the thread that holds the lock looks at the flag when it releases it.

use super::state::ChannelState;
use crate::hub::ConnectionId;
use crate::now::Now;
use crate::principal::{ANONYMOUS, Network, Principal};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::task::{Wake, Waker};

/// See the module.
pub(super) struct Channel {
    id: ConnectionId,
    owner: Owner,
    state: Mutex<ChannelState>,
    /// The engine has woken it, and no thread has looked since.
    is_rung: AtomicBool,
}

/// What the engine wakes. The engine does not keep the channel alive by it.
struct ChannelWaker(Weak<Channel>);

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
    pub(super) fn new(state: ChannelState, principal: &Principal) -> Self {
        let (id, owner) = (state.connection.id(), Owner::of(principal));
        Self { id, owner, state: Mutex::new(state), is_rung: AtomicBool::new(false) }
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

    /// Works on the state, then calls the wakers that must be called.
    pub(super) fn with<R>(&self, work: impl FnOnce(&mut ChannelState) -> R) -> R {
        let result = work_on(self.lock(), work);
        self.catch_up();
        result
    }

    /// Has the engine wake its writers from now on, and now if there is something.
    pub(super) fn hear(self: &Arc<Self>) {
        let waker = Waker::from(Arc::new(ChannelWaker(Arc::downgrade(self))));
        self.with(|state| state.connection.wake_with(waker));
    }

    /// The hub has something for it, or reads of it wait no longer. Never waits: if the lock is held, the holder catches up
    /// after it.
    fn ring(&self) {
        self.is_rung.store(true, Ordering::Relaxed);
        self.catch_up();
    }

    /// Does what it was rung for. The fence stands between the word and the lock, here and in [`Channel::ring`]: of one who
    /// leaves a word and one who releases the lock, at least one sees what the other did.
    fn catch_up(&self) {
        loop {
            fence(Ordering::SeqCst);
            if !self.is_rung.load(Ordering::Relaxed) {
                return;
            }
            let state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            if self.is_rung.swap(false, Ordering::Relaxed) {
                work_on(state, ChannelState::woken);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ChannelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Works on a state, releases it, and calls the wakers that must be called.
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
            channel.ring();
        }
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
