//! Questions of providers to legacy clients, and their answers.
//!
//! Law: a question is open as long as its [`ProviderQuestion`] lives, and its function is called once at most.

use crate::sync::Mutex;
use crate::transport::Peer;
use mcp_resources_engine::connection::{AskError, AskId, AskLasts, ClientCapabilities};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::jsonrpc::Json;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

/// A client's answer: the JSON text of its `result` or its `error`; `None` if it disconnected.
pub type QuestionAnswer = Option<Result<String, String>>;
type AnswerFn = Box<dyn FnOnce(QuestionAnswer) + Send>;

/// The open questions of all providers of one server, by client.
#[derive(Default)]
pub(super) struct ProviderAsks(Mutex<HashMap<(ConnectionId, AskId), AnswerFn>>);

impl ProviderAsks {
    /// Passes on an answer. Returns whether a provider has asked.
    pub(super) fn settle(
        &self,
        connection: ConnectionId,
        ask: AskId,
        answer: Option<&Result<Json<'_>, Json<'_>>>,
    ) -> bool {
        let Some(answered) = self.0.lock().remove(&(connection, ask)) else { return false };
        let text = |json: &Json<'_>| json.raw().to_owned();
        answered(answer.map(|answer| answer.as_ref().map(text).map_err(text)));
        true
    }
}

/// A legacy client that can be asked while one of its requests runs. See [`Responder::asked`](super::Responder::asked).
#[derive(Clone)]
pub struct AskedClient {
    peer: Peer,
    asks: Arc<ProviderAsks>,
    session: AskedSession,
    capabilities: ClientCapabilities,
}

/// The session of a legacy client, for tables with a value for each of them.
#[derive(Clone)]
pub struct AskedSession {
    engine: Weak<Engine>,
    connection: ConnectionId,
}

/// A question that is open. Dropping it withdraws the question, and notifies the client.
#[must_use = "dropping it withdraws the question"]
pub struct ProviderQuestion {
    client: AskedClient,
    ask: AskId,
}

impl AskedClient {
    pub(super) fn new(
        peer: &Peer,
        asks: &Arc<ProviderAsks>,
        engine: &Arc<Engine>,
        capabilities: ClientCapabilities,
    ) -> Self {
        let session = AskedSession { engine: Arc::downgrade(engine), connection: peer.connection() };
        Self { peer: peer.clone(), asks: asks.clone(), session, capabilities }
    }

    /// Its session.
    pub fn session(&self) -> &AskedSession {
        &self.session
    }

    /// The kinds of questions that it answers.
    pub fn capabilities(&self) -> ClientCapabilities {
        self.capabilities
    }

    /// Sends a request to it, such as `elicitation/create`; `params` is a JSON object. Calls `answered` once on any thread,
    /// unless the question is withdrawn first. No time-out ends it.
    ///
    /// # Errors
    /// [`AskError`]; nothing is sent then.
    pub fn ask(
        &self,
        method: &str,
        params: &str,
        answered: impl FnOnce(QuestionAnswer) + Send + 'static,
    ) -> Result<ProviderQuestion, AskError> {
        // Held until the function is there: the answer may arrive before `ask_for` returns.
        let mut open = self.asks.0.lock();
        let ask = self.peer.ask_for(method, params, AskLasts::UntilWithdrawn)?;
        open.insert((self.session.connection, ask), Box::new(answered));
        drop(open);
        self.peer.appended();
        Ok(ProviderQuestion { client: self.clone(), ask })
    }
}

impl Drop for ProviderQuestion {
    fn drop(&mut self) {
        let key = (self.client.session.connection, self.ask);
        let unanswered = self.client.asks.0.lock().remove(&key);
        if unanswered.is_some() {
            self.client.peer.withdraw_ask(self.ask);
        }
    }
}

impl AskedSession {
    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.engine.upgrade().is_some_and(|engine| engine.is_connected(self.connection))
    }
}

impl PartialEq for AskedSession {
    fn eq(&self, other: &Self) -> bool {
        self.connection == other.connection && Weak::ptr_eq(&self.engine, &other.engine)
    }
}

impl Eq for AskedSession {}

impl Hash for AskedSession {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.connection.hash(state);
    }
}

impl fmt::Debug for AskedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedSession").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl fmt::Debug for AskedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AskedClient")
            .field("session", &self.session)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ProviderQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderQuestion").field("client", &self.client).field("ask", &self.ask).finish()
    }
}
