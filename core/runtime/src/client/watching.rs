//! The changes of a watch that are not taken yet: the newest one for each URI.

use super::link::ServerHandle;
use mcp_resources_engine::client::{Change, ClientError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Changes that are not taken yet. A newer change replaces an older one of the same URI, so a slow reader costs one
/// change for each URI.
#[derive(Debug, Default)]
pub(super) struct ClientWatching {
    state: Mutex<ClientWatchState>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct ClientWatchState {
    changes: VecDeque<Change>,
    error: Option<ClientError>,
    is_over: bool,
}

impl ClientWatching {
    pub(super) fn put(&self, change: Result<Change, ClientError>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Err(error) => {
                state.error = Some(error);
                state.is_over = true;
            }
            Ok(change) => match state.changes.iter_mut().find(|waiting| waiting.uri == change.uri) {
                Some(waiting) => *waiting = change,
                None => state.changes.push_back(change),
            },
        }
        drop(state);
        self.arrived.notify_one();
    }

    /// Ends the watch because the client is closed; queued changes may still be taken.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.arrived.notify_one();
    }

    /// Takes a queued change; `Err` if nothing will follow.
    fn take(&self) -> Result<Option<Result<Change, ClientError>>, ()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(change) = state.changes.pop_front() {
            return Ok(Some(Ok(change)));
        }
        match state.error.take() {
            Some(error) => Ok(Some(Err(error))),
            None if state.is_over => Err(()),
            None => Ok(None),
        }
    }
}

/// The server of a watch and its number there, once known.
pub(super) type WatchLocation = Arc<Mutex<Option<(Arc<ServerHandle>, u64)>>>;

/// A watched resource: [`Client::watch`](super::Client::watch). Dropping it ends the watch; the last watch of a URI
/// ends its subscription.
#[derive(Debug)]
pub struct Watch {
    pub(super) watching: Arc<ClientWatching>,
    pub(super) at: WatchLocation,
    /// The task that finds the right server, if several may have the resource.
    pub(super) search: Option<tokio::task::AbortHandle>,
}

impl Watch {
    /// The next change: first the current contents, then the contents after each change. A slow caller gets the newest
    /// one for each URI. An error ends the watch. `None` once the watch has ended, or the client was closed.
    pub async fn next(&mut self) -> Option<Result<Change, ClientError>> {
        loop {
            let arrived = self.watching.arrived.notified();
            match self.watching.take() {
                Ok(Some(change)) => return Some(change),
                Ok(None) => arrived.await,
                Err(()) => return None,
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(search) = &self.search {
            search.abort();
        }
        let at = self.at.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((link, id)) = at {
            link.unwatch(id);
        }
    }
}
