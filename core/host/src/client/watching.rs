//! What a watch gives: changes that wait to be taken, the newest of each URI.

use super::link::ServerHandle;
use mcp_resources_engine::client::{Change, ClientError};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Changes that were not taken yet. A newer one of the same URI takes the place of an older one, so a slow reader costs one
/// change for each URI.
#[derive(Debug, Default)]
pub(super) struct Watching {
    state: Mutex<WatchState>,
    arrived: Notify,
}

#[derive(Debug, Default)]
struct WatchState {
    changes: VecDeque<Change>,
    error: Option<ClientError>,
    is_over: bool,
}

impl Watching {
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

    /// The client is closed: what waits may still be taken.
    pub(super) fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.arrived.notify_one();
    }

    /// What waits; `Err` if nothing will come any more.
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

/// Where something is watched, once that is known: the server, and the number of the watch.
pub(super) type WatchLocation = Arc<Mutex<Option<(Arc<ServerHandle>, u64)>>>;

/// A watched resource: [`Client::watch`](super::Client::watch). Dropped, the watch ends, and with the last one of a URI its
/// subscription.
#[derive(Debug)]
pub struct Watch {
    pub(super) watching: Arc<Watching>,
    pub(super) at: WatchLocation,
    /// What finds the server, if several may have the resource.
    pub(super) search: Option<tokio::task::AbortHandle>,
}

impl Watch {
    /// The next change: at first the contents as they are, then the contents after each change; a slow caller gets the newest
    /// of each URI. An error ends the watch. `None` once it has ended, or the client was closed.
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
