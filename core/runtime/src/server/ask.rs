//! Questions of handlers to a legacy client, and its answers.

use super::link::HandlerLink;
use super::shared::ServerState;
use crate::sync::Mutex;
use mcp_resources_engine::connection::{AskError, AskId};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::jsonrpc::Json;
use serde_json::Value;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The reason for which a client gave no result.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AskFailed {
    /// It could not be asked.
    NotAsked(AskError),
    /// It answered with an error.
    Refused {
        /// The JSON-RPC code.
        code: i64,
        /// The client's message.
        message: String,
    },
    /// It did not answer within [`Limits::read_timeout`](mcp_resources_engine::limits::Limits::read_timeout), or
    /// disconnected.
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

type AskResult = Result<Value, AskFailed>;
type Key = (ConnectionId, AskId);

/// The pending requests to clients. [`Limits::asks`](mcp_resources_engine::limits::Limits::asks) limits their number
/// for each connection.
#[derive(Default)]
pub(super) struct HandlerAsks(Mutex<HashMap<Key, oneshot::Sender<AskResult>>>);

impl HandlerAsks {
    /// Passes on the client's answer or time-out.
    pub(super) fn settle(&self, key: Key, answer: Option<Result<Json<'_>, Json<'_>>>) {
        let waiting = self.0.lock().remove(&key);
        if let Some(waiting) = waiting {
            // Fails if the handler was dropped.
            let _ = waiting.send(read(answer));
        }
    }
}

/// Sends a request and waits for the answer.
pub(super) async fn ask(link: &HandlerLink, method: &str, params: &str) -> AskResult {
    let shared = &link.client().shared;
    let peer = &link.client().peer;
    let (sender, answer) = oneshot::channel();
    let asking = {
        // Held until the receiver is registered: the answer may arrive before `ask` returns.
        let mut asks = shared.asks.0.lock();
        let ask = peer.ask(method, params).map_err(AskFailed::NotAsked)?;
        let key = (peer.connection(), ask);
        asks.insert(key, sender);
        peer.pends();
        peer.appended();
        ClientAsking { shared: shared.clone(), key }
    };
    let answered = answer.await.unwrap_or(Err(AskFailed::Unanswered));
    drop(asking);
    answered
}

/// Removes the receiver when dropped.
struct ClientAsking {
    shared: Arc<ServerState>,
    key: Key,
}

impl Drop for ClientAsking {
    fn drop(&mut self) {
        self.shared.asks.0.lock().remove(&self.key);
    }
}

fn read(answer: Option<Result<Json<'_>, Json<'_>>>) -> AskResult {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{ReadRequest, ResourceServer};
    use crate::testing::Client;
    use mcp_resources_engine::resource::Resource;
    use serde_json::json;
    use std::time::Duration;

    // a handler sends a request to a legacy client; a modern one is asked through the answer.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_handler_may_ask_a_legacy_client() {
        use std::io::{BufRead as _, BufReader, Write as _};
        let server = ResourceServer::builder("test", "1")
            .resource(Resource::new("a://greeting"), |request: ReadRequest| async move {
                let asked = request.context.ask("elicitation/create", &json!({"message": "Who?"})).await;
                asked.map_or_else(|error| error.to_string(), |result| result["content"]["name"].to_string())
            })
            .build()
            .unwrap();
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
        ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let serving = tokio::spawn({
            let server = server.clone();
            let input = theirs.try_clone().unwrap();
            async move { server.run_on(input, theirs).await }
        });
        let client = tokio::task::spawn_blocking(move || {
            let mut reader = BufReader::new(ours.try_clone().unwrap());
            let say =
                |message: serde_json::Value| (&ours).write_all(format!("{message}\n").as_bytes()).unwrap();
            let mut hear = || {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                serde_json::from_str::<serde_json::Value>(&line).unwrap()
            };
            let info = json!({"name": "c", "version": "1"});
            let params = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
            say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
            hear();
            say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            let answers = [
                (json!({"result": {"action": "accept", "content": {"name": "Ada"}}}), "\"Ada\""),
                (json!({"error": {"code": -1, "message": "no"}}), "the client refused: no (-1)"),
            ];
            for (id, (mut answer, expected)) in answers.into_iter().enumerate() {
                say(
                    json!({"jsonrpc": "2.0", "id": id, "method": "resources/read", "params": {"uri": "a://greeting"}}),
                );
                let question = hear();
                assert_eq!(
                    (&question["method"], &question["params"]["message"]),
                    (&json!("elicitation/create"), &json!("Who?"))
                );
                answer["jsonrpc"] = json!("2.0");
                answer["id"] = question["id"].clone();
                say(answer);
                assert_eq!(hear()["result"]["contents"][0]["text"], expected);
            }
        });
        client.await.unwrap();
        serving.await.unwrap().unwrap();
        let mut modern = Client::modern(&server).unwrap();
        let refused = modern.read_text("a://greeting").await.unwrap();
        assert_eq!(refused, AskFailed::NotAsked(AskError::UseInputRequired).to_string());
    }
}
