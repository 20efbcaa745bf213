//! One peer, as the functions that serve it see it: the other end of a pipe, or an exchange over HTTP.

use super::shared::Shared;
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, Cancelled, Encoded, Outcome, Reply, RequestToken,
};
use mcp_resources_engine::hub::ConnectionId;
use std::pin::Pin;
use std::sync::Arc;

/// A function that goes on.
pub(super) type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See the module. Any thread may call.
pub(super) trait Peer: Send + Sync {
    fn shared(&self) -> &Arc<Shared>;

    /// Whose tokens its requests have.
    fn connection(&self) -> ConnectionId;

    /// Answers an event at once.
    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Outcome<'static>;

    /// Takes a reply out, to be worded elsewhere; `None` if it was taken already.
    fn detach(&self, token: RequestToken) -> Option<Reply>;

    /// Gives an answer that was worded elsewhere.
    fn finish(&self, encoded: Encoded) -> Outcome<'static>;

    /// Sends what a handler reports before its answer, unless nobody waits for it.
    fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]);

    /// Sends a request to a legacy client.
    fn ask(&self, method: &str, params: &str) -> Result<AskId, AskError>;

    /// Frees the place of a request that gets no answer.
    fn abandon(&self, token: RequestToken);

    /// The hub has something for the peer.
    fn deliver(&self) {}

    /// A function goes on as a task: its request has a deadline from now on.
    fn pends(&self) {}

    /// A task has given its answer, or will give none.
    fn settled(&self) {}

    /// Lets a function go on.
    fn spawn(&self, task: Task);
}
