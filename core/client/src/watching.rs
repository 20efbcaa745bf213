//! The changes of a watch that are not taken yet: the newest one for each URI.

use mcp_resources_engine::client::{Change, ClientError};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

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

    /// Completes when something has arrived since this was called.
    pub(super) fn arrived(&self) -> Notified<'_> {
        self.arrived.notified()
    }

    /// Takes a queued change; `Err` if nothing will follow.
    pub(super) fn take(&self) -> Result<Option<Result<Change, ClientError>>, ()> {
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
