//! Streamable HTTP, in both eras: one POST for each message, and for a session a stream of notifications.

use super::Inbound;
use super::endpoint::HttpTransport;
use crate::target::ClientCredentials;
use mcp_resources_engine::client::Outgoing;
use mcp_resources_engine::version::{INITIALIZED, ProtocolMethod};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::sync::{Semaphore, watch};
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of requests in progress at a time; others wait in order. Streams that stay open do not count.
const EXCHANGES: usize = 256;

/// An endpoint, with its exchanges.
#[derive(Debug)]
pub(super) struct Http {
    pub(super) endpoint: Arc<HttpTransport>,
    room: Arc<Semaphore>,
    tasks: JoinSet<()>,
    requests: HashMap<u64, AbortHandle>,
    /// Set by the handshake: later messages must not arrive before it.
    begun: Option<watch::Receiver<bool>>,
    /// The notification stream of the session.
    standing: Option<AbortHandle>,
}

impl Http {
    /// Prepares the endpoint. Sends nothing yet.
    ///
    /// # Errors
    /// The reason for which the URL or a header is invalid, or the system's certificates cannot be read.
    pub(super) fn open(
        url: &str,
        headers: &BTreeMap<String, String>,
        credentials: Option<&ClientCredentials>,
        inbound: Sender<Inbound>,
        longest: usize,
    ) -> Result<Self, String> {
        let endpoint =
            Arc::new(HttpTransport::new(url, headers, inbound, longest)?.with_credentials(credentials)?);
        let room = Arc::new(Semaphore::new(EXCHANGES));
        Ok(Self {
            endpoint,
            room,
            tasks: JoinSet::new(),
            requests: HashMap::new(),
            begun: None,
            standing: None,
        })
    }

    pub(super) fn send(&mut self, message: Outgoing) {
        while self.tasks.try_join_next().is_some() {}
        self.requests.retain(|_, request| !request.is_finished());
        if message.method == INITIALIZED {
            return self.begin(message);
        }
        let method = ProtocolMethod::parse(&message.method);
        // Determined now, because another session may have begun later.
        let session = self.endpoint.session_of(&message);
        let endpoint = self.endpoint.clone();
        let begun = self.begun.clone();
        let id = message.id;
        // A listen stays open, so it takes no slot.
        let room = (method != Some(ProtocolMethod::Listen)).then(|| self.room.clone());
        let handle = self.tasks.spawn(async move {
            if let Some(mut begun) = begun {
                // Fails if the handshake has failed; the server's answer then says so.
                let _ = begun.wait_for(|begun| *begun).await;
            }
            let _room = match &room {
                Some(room) => room.acquire().await.ok(),
                None => None,
            };
            endpoint.post(message, &session).await;
        });
        if let Some(id) = id {
            self.requests.insert(id, handle);
        }
    }

    /// Sends a handshake; then opens the notification stream.
    fn begin(&mut self, message: Outgoing) {
        let (tell, begun) = watch::channel(false);
        self.begun = Some(begun);
        let endpoint = self.endpoint.clone();
        let session = endpoint.session_of(&message);
        let standing = self.tasks.spawn(async move {
            let is_accepted = endpoint.post(message, &session).await;
            tell.send_replace(true);
            if is_accepted {
                endpoint.stand(&session).await;
            }
        });
        if let Some(old) = self.standing.replace(standing) {
            old.abort();
        }
    }

    pub(super) fn abort(&mut self, id: u64) {
        if let Some(request) = self.requests.remove(&id) {
            request.abort();
        }
    }

    pub(super) async fn close(mut self) {
        self.tasks.shutdown().await;
        self.endpoint.delete().await;
    }
}
