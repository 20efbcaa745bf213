//! The connections of single clients: when one is made, and when it ends.

use super::own_links::{LinkCalls, OwnCall, OwnLink};
use super::{UpstreamError, UpstreamServer, lock};
use crate::wire::LogFn;
use mcp_resources_engine::connection::ClientCapabilities;
use mcp_resources_runtime::provider::{AskedClient, AskedSession};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Most connections of single clients to one server over HTTP, and most processes of one server with a command.
const MOST_LINKS: usize = 200;
const MOST_PROCESSES: usize = 20;
/// The time without a call after which the connection of a client ends, unless the configuration has one.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// Time between two checks whether the client is still there.
const LOOK: Duration = Duration::from_millis(500);

impl UpstreamServer {
    /// Whether the calls of a client with these capabilities have a connection of their own.
    pub(crate) fn has_own_links(&self, capabilities: ClientCapabilities) -> bool {
        let can_be_asked = capabilities != ClientCapabilities::default();
        !self.is_modern() && (self.is_per_client() || self.is_remote() && can_be_asked)
    }

    /// A call on the connection of a client's session, which is made now if there is none.
    ///
    /// # Errors
    /// [`UpstreamError::Full`] if there are too many connections, and all are in use.
    pub(crate) fn own_call(
        self: &Arc<Self>,
        asked: AskedClient,
        log: Option<LogFn>,
    ) -> Result<OwnCall, UpstreamError> {
        let session = asked.session().clone();
        // A call begins under the lock, so that its connection is not taken for an unused one.
        if let Some(link) = lock(self.own_links()).by_session.get(&session) {
            return Ok(OwnCall::begin(link.clone(), asked, log));
        }
        let link = self.new_link(asked.capabilities())?;
        self.spawn(end_with_session(Arc::downgrade(self), session.clone(), self.own_idle()));
        // Another call of the session may have been faster.
        let mut links = lock(self.own_links());
        Ok(OwnCall::begin(links.by_session.entry(session).or_insert(link).clone(), asked, log))
    }

    /// Ends the connections of all clients.
    pub(crate) async fn close_own_links(&self) {
        let links = std::mem::take(&mut *lock(self.own_links()));
        let links = links.by_session.into_values();
        let ends: Vec<_> = links.map(|link| self.spawn(async move { link.client.close().await })).collect();
        for end in ends {
            let _ = end.await;
        }
    }

    fn own_idle(&self) -> Duration {
        self.idle().unwrap_or(IDLE)
    }

    /// Makes a connection for a client. If there are too many, the one that was unused for the longest time ends.
    fn new_link(self: &Arc<Self>, capabilities: ClientCapabilities) -> Result<Arc<OwnLink>, UpstreamError> {
        let most = if self.is_remote() { MOST_LINKS } else { MOST_PROCESSES };
        let ended = {
            let mut links = lock(self.own_links());
            let is_full = links.by_session.len() >= most;
            if is_full { Some(links.take_unused().ok_or(UpstreamError::Full { most })?) } else { None }
        };
        if let Some(ended) = ended {
            self.spawn(async move { ended.client.close().await });
        }
        let calls = LinkCalls::new();
        let mut builder = self.builder().capabilities(capabilities.to_json());
        for method in capabilities.methods() {
            let calls = calls.clone();
            builder = builder.answer_with(method, move |question| {
                let calls = calls.clone();
                Box::pin(async move { calls.ask(question).await })
            });
        }
        let logging = calls.clone();
        let builder = builder.on_notification(move |_, method, params| {
            if method == "notifications/message" {
                logging.log(params);
            }
        });
        let client = UpstreamServer::connect(builder)?;
        Ok(Arc::new(OwnLink::new(client, calls)))
    }
}

/// Ends the connection of a session when the session has ended, or has made no call for `idle`.
async fn end_with_session(server: Weak<UpstreamServer>, session: AskedSession, idle: Duration) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(server) = server.upgrade() else { return };
        let ended = {
            let mut links = lock(server.own_links());
            let Some(link) = links.by_session.get(&session) else { return };
            let is_over = !session.is_open() || link.is_unused(idle);
            if is_over { links.by_session.remove(&session) } else { None }
        };
        if let Some(link) = ended {
            return link.client.close().await;
        }
    }
}
