//! A client in the same process, for an author's own tests: it talks to a [`ResourceServer`] as any client does, over a
//! pair of sockets, in either era.
//!
//! ```
//! use mcp_resources::resource::Resource;
//! use mcp_resources::server::ResourceServer;
//! use mcp_resources::testing::Client;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("greetings", "1.0.0")
//!     .resource(Resource::new("greeting://world"), |_| async { "Hello, world!" })
//!     .build()?;
//! let mut client = Client::modern(&server)?;
//! assert_eq!(client.read_text("greeting://world").await?, "Hello, world!");
//! assert_eq!(client.read("greeting://moon").await.unwrap_err().code, -32602);
//! # Ok(()) }
//! ```
#![expect(clippy::disallowed_methods, reason = "a host: its reader is a thread")]

use crate::server::ResourceServer;
use crate::version::Revision;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A client of one server. Requests are asked one after the other; what comes between is kept.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    messages: UnboundedReceiver<Value>,
    /// Notifications that came while an answer was waited for.
    notifications: VecDeque<Value>,
    modern: bool,
    /// What is declared on each modern request.
    capabilities: Value,
    next: u64,
}

/// An error that the server answered.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its `data`; null if there is none.
    pub data: Value,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

impl Client {
    /// A client of revision 2026-07-28, without a handshake. Needs a tokio runtime.
    ///
    /// # Errors
    /// What the system says, if there are too many descriptors.
    pub fn modern(server: &ResourceServer) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let (server, input) = (server.clone(), theirs.try_clone()?);
        tokio::spawn(async move { server.run_on(input, theirs).await });
        let (sender, messages) = unbounded_channel();
        let reader = BufReader::new(socket.try_clone()?);
        std::thread::spawn(move || {
            let lines = reader.lines().map_while(Result::ok);
            let mut values = lines.map_while(|line| serde_json::from_str(&line).ok());
            values.try_for_each(|value: Value| sender.send(value))
        });
        let (notifications, capabilities) = (VecDeque::new(), json!({}));
        Ok(Self { socket, messages, notifications, modern: true, capabilities, next: 1 })
    }

    /// A client with a session of a legacy revision, after its handshake.
    ///
    /// # Errors
    /// As [`Client::modern`], and if the server refuses the handshake.
    pub async fn legacy(server: &ResourceServer, revision: Revision) -> io::Result<Self> {
        let mut client = Self::modern(server)?;
        client.modern = false;
        let client_info = json!({ "name": "testing", "version": "1" });
        let params =
            json!({ "protocolVersion": revision.as_str(), "capabilities": {}, "clientInfo": client_info });
        client.request("initialize", params).await.map_err(io::Error::other)?;
        client.notify("notifications/initialized", json!({})).map_err(io::Error::other)?;
        Ok(client)
    }

    /// The same client with capabilities to declare on each request of 2026-07-28: a JSON object. Default: none.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// Reads a resource: the whole result.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn read(&mut self, uri: &str) -> Result<Value, ServerError> {
        self.request("resources/read", json!({ "uri": uri })).await
    }

    /// Reads a resource that is one text.
    ///
    /// # Errors
    /// As [`Client::read`]; also if it is not one text.
    pub async fn read_text(&mut self, uri: &str) -> Result<String, ServerError> {
        let result = self.read(uri).await?;
        match (result.pointer("/contents/0/text"), result.pointer("/contents/1")) {
            (Some(Value::String(text)), None) => Ok(text.clone()),
            _ => Err(ServerError { code: 0, message: "not one text".into(), data: result }),
        }
    }

    /// Sends a request and waits for its answer: the `result`.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ServerError> {
        let id = self.send(method, params)?;
        self.answer(id).await
    }

    /// Sends a request; returns its id.
    ///
    /// # Errors
    /// The server has gone.
    pub fn send(&mut self, method: &str, mut params: Value) -> Result<u64, ServerError> {
        let id = self.next;
        self.next += 1;
        if self.modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] =
                json!(Revision::V2026_07_28.as_str());
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        Ok(id)
    }

    /// Waits for the answer to the request `id`. Answers to others that come before it are lost.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn answer(&mut self, id: u64) -> Result<Value, ServerError> {
        loop {
            let mut message = self.messages.recv().await.ok_or_else(gone)?;
            if message.get("method").is_some() {
                self.notifications.push_back(message);
            } else if message["id"] == id {
                return match message.get_mut("error").map(Value::take) {
                    None => Ok(message["result"].take()),
                    Some(mut error) => Err(ServerError {
                        code: error["code"].as_i64().unwrap_or_default(),
                        message: error["message"].as_str().unwrap_or_default().to_owned(),
                        data: error["data"].take(),
                    }),
                };
            }
        }
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server has gone.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<(), ServerError> {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
    }

    /// The next notification, whole; `None` if the server has gone. Answers that come before it are lost.
    pub async fn notification(&mut self) -> Option<Value> {
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Some(notification);
            }
            let message = self.messages.recv().await?;
            if message.get("method").is_some() {
                return Some(message);
            }
        }
    }

    fn write(&mut self, message: &Value) -> Result<(), ServerError> {
        let line = format!("{message}\n");
        self.socket.write_all(line.as_bytes()).map_err(|_| gone())
    }
}

/// The server sees the end of its input, even while the reader holds the socket.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }
}

fn gone() -> ServerError {
    ServerError { code: 0, message: "the server has gone".into(), data: Value::Null }
}
