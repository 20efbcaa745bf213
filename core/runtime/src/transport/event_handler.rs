//! The interface between transports and handlers in any language.

use crate::transport::Peer;
use mcp_resources_engine::connection::Events;

/// Passes the engine's events to handlers.
///
/// Any thread may call these methods, and all must return quickly: they may call a handler that does not block, never
/// one that does. A runtime of another language puts the data of each event into a queue and wakes its event loop if the
/// queue was empty, so a batch of requests costs one wake-up.
///
/// Answers come back from any thread through a clone of the [`Peer`]: call [`Peer::detach`] when the event is taken
/// (the answer then needs no lock of the connection),
/// [`Reply::encode`](mcp_resources_engine::connection::Reply::encode) on the thread that has the answer, then
/// [`Peer::finish`]. An immediate answer is given inside [`EventHandler::handle`] with [`Peer::respond`]. Both return events,
/// to be handled like any other: a list may need its next source.
///
/// A legacy request over HTTP continues when its client disconnects. A modern one is cancelled: the runtime gets
/// `Event::Cancelled` and still answers, or calls [`Peer::abandon`]. Tokens are unique within one connection, so a
/// table of tasks needs the connection and the token as its key.
pub trait EventHandler: Send + Sync + 'static {
    /// Handles those of `events` that need no function of another language, such as those of providers. Returns the
    /// others.
    fn take<'m>(&self, _peer: &Peer, events: Events<'m>) -> Events<'m> {
        events
    }

    /// Handles `events` in order.
    fn handle(&self, peer: &Peer, events: Events<'_>);

    /// Output was appended for `peer`, on any thread: make sure that it is written. Over HTTP the writer is already
    /// awake.
    fn appended(&self, _peer: &Peer) {}

    /// A request of `peer` will be answered later, and has a deadline from now on. Over HTTP the writer handles the
    /// deadline.
    fn pends(&self, _peer: &Peer) {}

    /// A provider's worker has ended a pending request, and has reported its output. A runtime whose process ends with its
    /// idle loop counts both.
    fn settled(&self, _peer: &Peer) {}

    /// A request was refused that an option would allow: for the log.
    fn warn(&self, what: &str) {
        self.misuse(what);
    }

    /// Logs a provider's problem with its resources, such as a file that it cannot parse.
    fn report(&self, what: &str) {
        self.misuse(what);
    }

    /// A handler's answer does not fit its event: for the log.
    fn misuse(&self, what: &str);
}
