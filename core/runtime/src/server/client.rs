//! One client, as handlers see it.

use super::shared::ServerState;
use crate::transport::Peer;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A handler that continues as a task.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The client of a connection.
pub(super) struct CallerHandle {
    pub(super) shared: Arc<ServerState>,
    pub(super) peer: Peer,
    runtime: Handle,
}

impl CallerHandle {
    pub(super) fn new(shared: Arc<ServerState>, peer: Peer, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { shared, peer, runtime })
    }

    /// Spawns a task.
    pub(super) fn spawn(&self, task: Task) {
        self.runtime.spawn(task);
    }
}
