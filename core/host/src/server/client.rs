//! One client, as the author's functions meet it.

use super::shared::Shared;
use crate::transport::Peer;
use std::pin::Pin;
use std::sync::Arc;
use tokio::runtime::Handle;

/// A function that goes on.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See the module.
pub(super) struct Client {
    pub(super) shared: Arc<Shared>,
    pub(super) peer: Peer,
    runtime: Handle,
}

impl Client {
    pub(super) fn new(shared: Arc<Shared>, peer: Peer, runtime: Handle) -> Arc<Self> {
        Arc::new(Self { shared, peer, runtime })
    }

    /// Lets a function go on.
    pub(super) fn spawn(&self, task: Task) {
        self.runtime.spawn(task);
    }
}
