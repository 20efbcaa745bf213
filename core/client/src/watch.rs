//! A watch, as a program holds it.

use crate::link::ServerHandle;
use crate::watching::ClientWatching;
use mcp_resources_engine::client::{Change, ClientError};
use std::sync::{Arc, Mutex, PoisonError};

/// The server of a watch and its number there, once known.
pub(super) type WatchLocation = Arc<Mutex<Option<(Arc<ServerHandle>, u64)>>>;

/// A watched resource: [`Client::watch`](crate::Client::watch). Dropping it ends the watch; the last watch of a URI
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
            let arrived = self.watching.arrived();
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
