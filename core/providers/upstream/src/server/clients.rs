//! The connections of single clients: when one is made, and when it ends.

use super::own_links::{LinkCalls, OwnCall, OwnLink};
use super::{UpstreamError, UpstreamServer, lock};
use crate::wire::LogFn;
use mcp_resources_engine::connection::ClientCapabilities;
use mcp_resources_runtime::provider::{AskedClient, AskedSession};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Semaphore;

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
    pub(crate) async fn own_call(
        self: &Arc<Self>,
        asked: AskedClient,
        log: Option<LogFn>,
    ) -> Result<OwnCall, UpstreamError> {
        let call = self.begin_own_call(asked, log)?;
        call.link().take_place().await;
        Ok(call)
    }

    /// Begins a call on the connection of a client's session. Counted, made and begun under one lock: first calls of many
    /// clients at once do not exceed the limit, and no call takes the connection of another for an unused one.
    fn begin_own_call(
        self: &Arc<Self>,
        asked: AskedClient,
        log: Option<LogFn>,
    ) -> Result<OwnCall, UpstreamError> {
        let session = asked.session().clone();
        let mut links = lock(self.own_links());
        if let Some(link) = links.by_session.get(&session) {
            return Ok(OwnCall::begin(link.clone(), asked, log));
        }
        let unused = links.make_room().map_err(|most| UpstreamError::Full { most })?;
        if let Some(unused) = unused {
            self.spawn(async move { unused.client.close().await });
        }
        let link = self.new_link(asked.capabilities(), links.places())?;
        links.by_session.insert(session.clone(), link.clone());
        self.spawn(end_with_session(Arc::downgrade(self), session, self.own_idle()));
        Ok(OwnCall::begin(link, asked, log))
    }

    /// Ends the connections of all clients.
    pub(crate) async fn close_own_links(&self) {
        let links = std::mem::take(&mut lock(self.own_links()).by_session).into_values();
        let ends: Vec<_> = links.map(|link| self.spawn(async move { link.client.close().await })).collect();
        for end in ends {
            let _ = end.await;
        }
    }

    fn own_idle(&self) -> Duration {
        self.idle().unwrap_or(IDLE)
    }

    /// Makes a connection for a client. Its server is started or connected to at the first request.
    fn new_link(
        &self,
        capabilities: ClientCapabilities,
        places: Arc<Semaphore>,
    ) -> Result<Arc<OwnLink>, UpstreamError> {
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
        Ok(Arc::new(OwnLink::new(client, calls, places)))
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
