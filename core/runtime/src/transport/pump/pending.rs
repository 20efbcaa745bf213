//! Calls in progress: the reply of each, and the values that an event loop stores for them.

use crate::sync::Mutex;
use crate::transport::Peer;
use mcp_resources_engine::connection::{AskError, AskId, Cancelled, ContentsGatherer, Reply, RequestToken};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

/// The reply shared by a handler's reports and its answer, on any thread. It is taken by the answer.
#[derive(Debug)]
pub struct PendingReply {
    peer: Peer,
    token: RequestToken,
    cancelled: Cancelled,
    reply: Mutex<Option<Reply>>,
}

/// The values that an event loop stores for calls of several connections, until they are answered. `K` is a number
/// within a connection.
pub struct PendingCalls<K, V>(Mutex<HashMap<(ConnectionId, K), V>>);

impl PendingReply {
    /// Takes the reply of a request out of its connection; `None` if the answer is no longer wanted.
    pub fn detach(peer: &Peer, token: RequestToken) -> Option<Arc<Self>> {
        let Some(reply) = peer.detach(token) else {
            peer.abandon(token);
            return None;
        };
        let peer = peer.clone();
        let cancelled = reply.cancelled();
        Some(Arc::new(Self { peer, token, cancelled, reply: Mutex::new(Some(reply)) }))
    }

    /// The request that it answers.
    pub fn token(&self) -> RequestToken {
        self.token
    }

    /// Whether the answer is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.get()
    }

    /// Sends the message that `word` makes with the reply, unless it is answered. Returns whether something was sent.
    pub fn report(&self, word: impl FnOnce(&mut Reply, Now) -> Option<Vec<u8>>) -> bool {
        let now = self.peer.now();
        let message = self.reply.lock().as_mut().and_then(|reply| word(reply, now));
        if let Some(message) = &message {
            self.peer.report(self.token, &self.cancelled, message);
        }
        message.is_some()
    }

    /// Starts gathering an answer in chunks; also returns whether the answer is still wanted. `None` once it is
    /// answered.
    pub fn gather(&self) -> Option<(ContentsGatherer, Cancelled)> {
        self.reply.lock().as_ref().map(|reply| (reply.gather(), self.cancelled.clone()))
    }

    /// Takes the reply, to answer it.
    pub fn take(&self) -> Option<Reply> {
        self.reply.lock().take()
    }
}

impl<K: Eq + Hash, V> PendingCalls<K, V> {
    /// Stores `value` for a call. Returns whether it is the only one.
    pub fn insert(&self, connection: ConnectionId, number: K, value: V) -> bool {
        let mut calls = self.0.lock();
        let is_first = calls.is_empty();
        let before = calls.insert((connection, number), value);
        drop(calls);
        // A value of another language must be dropped without the lock.
        drop(before);
        is_first
    }

    /// Removes the value of a call; `None` if there is none.
    pub fn take(&self, connection: ConnectionId, number: K) -> Option<V> {
        self.0.lock().remove(&(connection, number))
    }

    /// The number of stored calls.
    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl<V> PendingCalls<AskId, V> {
    /// Sends a request to the client of `peer`, and stores `value` until it is answered.
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent or stored then.
    pub fn ask(&self, peer: &Peer, method: &str, params: &str, value: V) -> Result<(), AskError> {
        // Held until `value` is stored: a thread of the server may have the answer before `ask` returns.
        let mut calls = self.0.lock();
        let ask = peer.ask(method, params)?;
        calls.insert((peer.connection(), ask), value);
        Ok(())
    }
}

impl<K, V> Default for PendingCalls<K, V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash, V> fmt::Debug for PendingCalls<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingCalls").field("len", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::connection::ConnectionKind;
    use mcp_resources_engine::engine::{Engine, EngineOptions, ServerInfo};

    #[test]
    fn a_call_is_found_once_and_only_under_its_own_connection() {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        let engine = Engine::new(info, EngineOptions::default()).unwrap();
        let [one, other] = [(); 2].map(|()| engine.connect(ConnectionKind::Stdio).id());
        let calls = PendingCalls::default();
        assert!(calls.insert(one, 7, "first"));
        assert!(!calls.insert(other, 7, "second"));
        assert_eq!((calls.len(), calls.take(other, 8)), (2, None));
        assert_eq!([calls.take(one, 7), calls.take(one, 7)], [Some("first"), None]);
        assert_eq!((calls.take(other, 7), calls.is_empty()), (Some("second"), true));
    }
}
