//! What stands between the HTTP server and the author's functions, in any language.

use mcp_resources_engine::connection::Events;
use mcp_resources_engine::http::Exchange;
use mcp_resources_engine::hub::ConnectionId;

/// Hands the engine's events to the author's functions, and their answers back.
///
/// Every method is called on a task of the server's runtime and must return soon: it may call a function that does not
/// wait, never one that does. A host in another language puts what it needs of each event into a queue and wakes its
/// event loop if the queue was empty, so a batch of requests costs one wake.
///
/// Answers come back from any thread through a clone of the [`Exchange`]: [`Exchange::detach`] when the event is taken
/// (the answer then needs no lock of the connection), [`Reply::encode`](mcp_resources_engine::connection::Reply::encode) on
/// the thread that has the answer, then [`Exchange::finish`], which wakes the task that writes. An answer that is known at
/// once is given inside [`Host::handle`] with [`Exchange::respond`]. Both return a
/// [`Turn`](mcp_resources_engine::http::Turn) whose events are handled like any other: a list may need its next source.
///
/// A legacy call goes on when its client is gone; a modern one is cancelled: the host hears `Event::Cancelled` and
/// still answers, or calls [`Exchange::abandon`]. Tokens are unique in one connection: a table of tasks has the pair of
/// both as its key.
pub trait Host: Send + Sync + 'static {
    /// Does what `events` ask, in their order. `exchange` takes the answers; `None` where no event asks for one.
    fn handle(&self, connection: ConnectionId, exchange: Option<&Exchange>, events: Events<'_>);

    /// Time has passed for the engine, or it stops: these connections have something to deliver. Those of the HTTP
    /// server that calls this are awake already; the others are the host's to wake.
    fn woken(&self, connections: &[ConnectionId]);

    /// A request was refused, and an option would let such requests in: for the log.
    fn warn(&self, what: &str) {
        self.misuse(what);
    }

    /// The author gave an answer that its event cannot have: for the log.
    fn misuse(&self, what: &str);
}
