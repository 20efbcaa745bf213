//! The HTTP request from which a handler is called.

use mcp_resources_runtime::transport::Peer;

/// The HTTP request that a peer belongs to, by the numbers of its driver and of its response. JavaScript keeps the
/// asynchronous context of each by these.
#[derive(Clone, Copy)]
pub(crate) struct HttpOrigin {
    pub(crate) driver: u32,
    pub(crate) response: f64,
}

impl HttpOrigin {
    /// The one of a peer; `None` over a pipe and with the native server.
    pub(crate) fn from_peer(peer: &Peer) -> Option<Self> {
        peer.peer_data()?.downcast_ref().copied()
    }
}
