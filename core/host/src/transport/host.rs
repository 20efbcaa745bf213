//! What stands between a transport and the author's functions, in any language.

use crate::transport::Peer;
use mcp_resources_engine::connection::Events;

/// Hands the engine's events to the author's functions, and has the answers written.
///
/// Any thread may call, and every method must return soon: it may call a function that does not wait, never one that does.
/// A host in another language puts what it needs of each event into a queue and wakes its event loop if the queue was
/// empty, so a batch of requests costs one wake.
///
/// Answers come back from any thread through a clone of the [`Peer`]: [`Peer::detach`] when the event is taken (the answer
/// then needs no lock of the connection), [`Reply::encode`](mcp_resources_engine::connection::Reply::encode) on the thread
/// that has the answer, then [`Peer::finish`]. An answer that is known at once is given inside [`Host::handle`] with
/// [`Peer::respond`]. Both return events, to be handled like any other: a list may need its next source.
///
/// A legacy call over HTTP goes on when its client is gone; a modern one is cancelled: the host hears `Event::Cancelled` and
/// still answers, or calls [`Peer::abandon`]. Tokens are unique in one connection: a table of tasks has the pair of both as
/// its key.
pub trait Host: Send + Sync + 'static {
    /// Does what `events` ask, in their order.
    fn handle(&self, peer: &Peer, events: Events<'_>);

    /// Something was appended for `peer`, on any thread: see to it that it is written. Over HTTP the writer is awake
    /// already.
    fn appended(&self, _peer: &Peer) {}

    /// A request of `peer` is answered later: it has a deadline from now on. Over HTTP the writer looks at it.
    fn pends(&self, _peer: &Peer) {}

    /// A provider's worker is done with a request that pended, and has told of what it appended. A host whose process ends
    /// when its loop has nothing to do counts both.
    fn settled(&self, _peer: &Peer) {}

    /// A request was refused, and an option would let such requests in: for the log.
    fn warn(&self, what: &str) {
        self.misuse(what);
    }

    /// A provider reports a problem with what it serves, such as a file that it cannot parse: for the log.
    fn report(&self, what: &str) {
        self.misuse(what);
    }

    /// The author gave an answer that its event cannot have: for the log.
    fn misuse(&self, what: &str);
}
