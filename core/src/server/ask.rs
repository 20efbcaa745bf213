//! Questions of handlers to a legacy client, and its answers.

use super::link::Link;
use super::shared::Shared;
use crate::connection::{AskError, AskId};
use crate::hub::ConnectionId;
use crate::jsonrpc::Json;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Why a client gave no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AskFailed {
    /// It could not be asked.
    NotAsked(AskError),
    /// It answered with an error.
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// What it says.
        message: String,
    },
    /// It did not answer within [`Limits::read_timeout`](crate::limits::Limits::read_timeout), or is gone.
    Unanswered,
}

impl fmt::Display for AskFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAsked(error) => error.fmt(f),
            Self::Refused { code, message } => write!(f, "the client refused: {message} ({code})"),
            Self::Unanswered => f.write_str("the client did not answer"),
        }
    }
}

impl std::error::Error for AskFailed {}

type Answered = Result<Value, AskFailed>;
type Key = (ConnectionId, AskId);

/// Who waits for which answer. Bounded by [`Limits::asks`](crate::limits::Limits::asks) for each connection.
#[derive(Default)]
pub(super) struct Asks(Mutex<HashMap<Key, oneshot::Sender<Answered>>>);

impl Asks {
    /// The client has answered, or has run out of time.
    pub(super) fn settle(&self, key: Key, answer: Option<Result<Json<'_>, Json<'_>>>) {
        let waiting = self.lock().remove(&key);
        if let Some(waiting) = waiting {
            // The handler may be gone.
            let _ = waiting.send(read(answer));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, oneshot::Sender<Answered>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks, and waits for the answer.
pub(super) async fn ask(link: &Link, method: &str, params: &str) -> Answered {
    let (shared, peer) = (link.peer().shared(), link.peer());
    let (sender, answer) = oneshot::channel();
    let asking = {
        // Held until the answer has somebody to go to: it may be here before `ask` returns.
        let mut asks = shared.asks.lock();
        let ask = peer.ask(method, params).map_err(AskFailed::NotAsked)?;
        let key = (peer.connection(), ask);
        asks.insert(key, sender);
        Asking { shared: shared.clone(), key }
    };
    let answered = answer.await.unwrap_or(Err(AskFailed::Unanswered));
    drop(asking);
    answered
}

/// Nobody waits any longer when this is dropped.
struct Asking {
    shared: Arc<Shared>,
    key: Key,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.shared.asks.lock().remove(&self.key);
    }
}

fn read(answer: Option<Result<Json<'_>, Json<'_>>>) -> Answered {
    let value = |json: Json<'_>| serde_json::from_str::<Value>(json.raw()).unwrap_or_default();
    match answer {
        None => Err(AskFailed::Unanswered),
        Some(Ok(result)) => Ok(value(result)),
        Some(Err(error)) => {
            let error = value(error);
            let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
            let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
            Err(AskFailed::Refused { code, message: message.into() })
        }
    }
}
