//! What carries messages to one server and back, once it is open: the pipes of a child, HTTP, or a pair of sockets.

use super::Target;
use mcp_resources_engine::client::{NotCarried, Outgoing};
use tokio::sync::mpsc::Sender;

/// What comes from a server, or from its transport.
#[derive(Debug)]
pub(super) enum Inbound {
    /// A message: a line without its end, a body of HTTP, or the data of an event.
    Message(Vec<u8>),
    /// The request with this id cannot be carried to its answer.
    NotCarried(u64, NotCarried),
    /// A session of HTTP has ended: the server does not know its id any more.
    SessionEnded,
    /// The transport is broken, or the server has ended it; nothing comes after this.
    Lost(String),
}

/// An open transport. Dropped, it ends at once: a child is killed with its group, exchanges are broken off.
#[derive(Debug)]
pub(super) struct Carrier {}

impl Carrier {
    /// Opens the transport. `longest` is the longest message that is accepted, in bytes.
    ///
    /// # Errors
    /// Why it cannot be opened, as a sentence for a person.
    pub(super) async fn open(
        target: &Target,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        let _ = (target, inbound, longest);
        Err("not built yet".into())
    }

    /// Sends a message. Never waits: what cannot be sent is reported as [`Inbound`].
    pub(super) fn send(&mut self, message: Outgoing) {
        let _ = message;
    }

    /// Breaks off the exchange of a request that nobody waits for any more. Nothing on pipes.
    pub(super) fn abort(&mut self, id: u64) {
        let _ = id;
    }

    /// Ends it as the protocol wants: stdin is closed, and a child that does not end within 2 s is asked with SIGTERM, and
    /// killed 2 s later; a session of HTTP is deleted.
    pub(super) async fn close(self) {}
}
