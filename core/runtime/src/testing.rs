//! A client in the same process, for tests of a server: it communicates with a [`ResourceServer`] like any client, over a
//! pair of sockets, in either era.
//!
//! ```
//! use mcp_resources::testing::Client;
//! use mcp_resources::{Resource, ResourceServer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("greetings", "1.0.0")
//!     .resource(Resource::new("greeting://world"), |_| async { "Hello, world!" })
//!     .build()?;
//! let mut client = Client::modern(&server)?;
//! assert_eq!(client.read_text("greeting://world").await?, "Hello, world!");
//! assert_eq!(client.read("greeting://moon").await.unwrap_err().code, -32602);
//!
//! let listen = client.listen(&["greeting://world"], false).await?;
//! server.notify_updated("greeting://world")?;
//! assert_eq!(client.next(&listen).await.unwrap().params["uri"], "greeting://world");
//! # Ok(()) }
//! ```

pub use mcp_resources_engine::client::MessageKind;

use crate::server::ResourceServer;
use crate::transport::PipeSender;
use mcp_resources_engine::client::{ServerMessage, TestClient};
use mcp_resources_engine::version::Revision;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// The size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// Longest wait for a message.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest read, after which the reader lets a waiting client look at its time.
const LONGEST_READ: Duration = Duration::from_secs(5);

/// A client of one server. Messages that arrive while it waits for another one are kept, in order, until they are
/// requested. It waits at most 60 s for a message, so that a test whose message never comes fails.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    client: TestClient,
    /// The server's output. An empty chunk: nothing came for [`LONGEST_READ`].
    chunks: UnboundedReceiver<Vec<u8>>,
    /// Whether it waits for a message, so that the reader may send an empty chunk.
    is_waiting: Arc<AtomicBool>,
    /// Messages that arrived while waiting for another one.
    waiting: VecDeque<ServerMessage>,
}

/// The sender that a [`Client`] pretends to be: what a verified token and HTTP would say about it.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `modern` or `legacy` is called"]
pub struct TestClientBuilder<'s> {
    server: &'s ResourceServer,
    principal: String,
    scopes: Vec<String>,
    claims: Option<Value>,
    headers: Vec<(String, String)>,
}

impl<'s> TestClientBuilder<'s> {
    fn new(server: &'s ResourceServer) -> Self {
        Self { server, principal: String::new(), scopes: Vec::new(), claims: None, headers: Vec::new() }
    }

    /// Sets its identity. Default: the local process.
    pub fn principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = principal.into();
        self
    }

    /// Adds a scope of its token. Default: none.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scopes.push(scope.into());
        self
    }

    /// Sets the claims of its token: a JSON object. Default: none.
    pub fn claims(mut self, claims: Value) -> Self {
        self.claims = Some(claims);
        self
    }

    /// Adds a header to its requests. Default: none, as over a pipe.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Connects as a client of 2026-07-28: see [`Client::modern`].
    ///
    /// # Errors
    /// As there, and if the claims are no object.
    pub fn modern(self) -> io::Result<Client> {
        Client::new(self.server, Revision::V2026_07_28, self.sender()?)
    }

    /// Connects as a client of a legacy revision: see [`Client::legacy`].
    ///
    /// # Errors
    /// As there, and if the claims are no object.
    pub async fn legacy(self, revision: Revision) -> io::Result<Client> {
        Client::greeted(self.server, revision, self.sender()?).await
    }

    fn sender(&self) -> io::Result<PipeSender> {
        let claims = match &self.claims {
            None => None,
            Some(claims) if claims.is_object() => Some(claims.to_string().into()),
            Some(claims) => {
                let why = format!("claims is {claims}, expected a JSON object");
                return Err(io::Error::new(ErrorKind::InvalidInput, why));
            }
        };
        Ok(PipeSender::new(&self.principal, self.scopes.clone(), claims, &self.headers))
    }
}

/// An error response of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its `data`; null if there is none.
    pub data: Value,
}

/// Completion values for a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TestCompletion {
    /// The values, best first; at most 100.
    pub values: Vec<String>,
    /// The number of all values, if the server gives it.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
}

/// An open listen. [`Client::cancel`] with its id ends it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Listen {
    /// The id of its request.
    pub id: u64,
    /// The part of the filter that the server granted.
    pub honoured: Value,
}

/// A notification of the server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Notification {
    /// Its kind.
    pub kind: MessageKind,
    /// The listen or request that it belongs to.
    pub id: Option<u64>,
    /// Its params.
    pub params: Value,
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ServerError {}

/// Starting a client.
impl Client {
    /// A client of 2026-07-28, without a handshake. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system's error, if there are too many descriptors.
    pub fn modern(server: &ResourceServer) -> io::Result<Self> {
        TestClientBuilder::new(server).modern()
    }

    /// A client with a session of a legacy revision, after its handshake.
    ///
    /// # Errors
    /// As [`Client::modern`], and if the server refuses the handshake.
    pub async fn legacy(server: &ResourceServer, revision: Revision) -> io::Result<Self> {
        TestClientBuilder::new(server).legacy(revision).await
    }

    /// A client that sends as somebody else than the local process.
    ///
    /// ```
    /// use mcp_resources::testing::Client;
    /// use mcp_resources::{ReadRequest, ResourceServer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("whoami", "1.0.0")
    ///     .resource("user://me", |request: ReadRequest| async move {
    ///         request.context.principal().map_or_else(String::new, |principal| principal.id().to_owned())
    ///     })
    ///     .build()?;
    /// let mut bob = Client::builder(&server).principal("bob").scope("notes:read").modern()?;
    /// assert_eq!(bob.read_text("user://me").await?, "bob");
    /// # Ok(()) }
    /// ```
    pub fn builder(server: &ResourceServer) -> TestClientBuilder<'_> {
        TestClientBuilder::new(server)
    }

    async fn greeted(server: &ResourceServer, revision: Revision, sender: PipeSender) -> io::Result<Self> {
        let mut client = Self::new(server, revision, sender)?;
        client.write().map_err(io::Error::other)?;
        if let Some(handshake) = client.client.handshake() {
            client.answer(handshake).await.map_err(io::Error::other)?;
        }
        Ok(client)
    }

    fn new(server: &ResourceServer, revision: Revision, sender: PipeSender) -> io::Result<Self> {
        let socket = server.connect_blocking(sender)?;
        let (sender, chunks) = unbounded_channel();
        let mut reader = socket.try_clone()?;
        reader.set_read_timeout(Some(LONGEST_READ))?;
        let is_waiting = Arc::<AtomicBool>::default();
        let waits = is_waiting.clone();
        std::thread::spawn(move || {
            let mut chunk = vec![0; CHUNK];
            loop {
                match reader.read(&mut chunk) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Ok(count @ 1..) => {
                        let read = chunk.get(..count).unwrap_or_default();
                        if sender.send(read.to_vec()).is_err() {
                            return;
                        }
                    }
                    Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                        if waits.load(Ordering::Relaxed) && sender.send(Vec::new()).is_err() {
                            return;
                        }
                    }
                    _ => return,
                }
            }
        });
        Ok(Self {
            socket,
            client: TestClient::new(revision, "{}"),
            chunks,
            is_waiting,
            waiting: VecDeque::new(),
        })
    }

    /// Sets the capabilities to declare on each request of 2026-07-28: a JSON object. Default: none.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.client.declare(&capabilities.to_string());
        self
    }
}

/// The requests of the protocol.
impl Client {
    /// Lists all resources, from all pages.
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn list_resources(&mut self) -> Result<Vec<Value>, ServerError> {
        self.pages("list", "resources").await
    }

    /// Lists all templates, from all pages.
    ///
    /// # Errors
    /// As [`Client::list_resources`].
    pub async fn list_templates(&mut self) -> Result<Vec<Value>, ServerError> {
        self.pages("list_templates", "resourceTemplates").await
    }

    /// Reads a resource; returns the whole result.
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn read(&mut self, uri: &str) -> Result<Value, ServerError> {
        self.request("read", json!({ "uri": uri })).await
    }

    /// Reads a resource that is one text.
    ///
    /// # Errors
    /// As [`Client::read`]; also if it is not one text.
    pub async fn read_text(&mut self, uri: &str) -> Result<String, ServerError> {
        let result = self.read(uri).await?;
        match (result.pointer("/contents/0/text"), result.pointer("/contents/1")) {
            (Some(Value::String(text)), None) => Ok(text.clone()),
            _ => Err(unexpected("not one text", result)),
        }
    }

    /// Completes a variable of a template; `value` is the text typed so far. `arguments` are the values chosen for
    /// other variables; revisions before 2025-06-18 do not support them.
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn complete(
        &mut self,
        template: &str,
        variable: &str,
        value: &str,
        arguments: &[(&str, &str)],
    ) -> Result<TestCompletion, ServerError> {
        let reference = json!({ "type": "ref/resource", "uri": template });
        let mut params = json!({ "ref": reference, "argument": { "name": variable, "value": value } });
        if !arguments.is_empty() {
            let chosen = arguments.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value)));
            params["context"] = json!({ "arguments": chosen.collect::<Map<_, _>>() });
        }
        let result = self.request("complete", params).await?;
        completion(&result).ok_or_else(|| unexpected("not a completion", result))
    }

    /// Subscribes to a resource (legacy revisions): see [`Client::notification`].
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn subscribe(&mut self, uri: &str) -> Result<(), ServerError> {
        self.request("subscribe", json!({ "uri": uri })).await.map(drop)
    }

    /// Unsubscribes from a resource (legacy revisions).
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    pub async fn unsubscribe(&mut self, uri: &str) -> Result<(), ServerError> {
        self.request("unsubscribe", json!({ "uri": uri })).await.map(drop)
    }

    /// Listens to changes of these resources, and of the list (2026-07-28): see [`Client::next`].
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn listen(&mut self, uris: &[&str], list_changed: bool) -> Result<Listen, ServerError> {
        let wanted = json!({ "resourceSubscriptions": uris, "resourcesListChanged": list_changed });
        let id = self.send("listen", json!({ "notifications": wanted }))?;
        let first = self.next_message(|message| message.id == Some(id)).await.ok_or_else(unanswered)?;
        match first.kind {
            MessageKind::Acknowledged => Ok(Listen { id, honoured: body(&first)["notifications"].take() }),
            _ => outcome(&first).and_then(|result| Err(unexpected("not acknowledged", result))),
        }
    }

    /// The next notification of a listen; `None` if the listen has ended, the server has disconnected, or nothing came for
    /// 60 s.
    pub async fn next(&mut self, listen: &Listen) -> Option<Notification> {
        let message = self.next_message(|message| message.id == Some(listen.id)).await?;
        let is_over =
            matches!(message.kind, MessageKind::Result | MessageKind::Error | MessageKind::Cancelled);
        (!is_over).then(|| Notification { kind: message.kind, id: message.id, params: body(&message) })
    }

    /// Cancels a request, or ends a listen.
    ///
    /// # Errors
    /// The server has disconnected.
    pub fn cancel(&mut self, id: u64) -> Result<(), ServerError> {
        self.client.cancel(id);
        self.write()
    }

    async fn pages(&mut self, list: &str, member: &str) -> Result<Vec<Value>, ServerError> {
        let mut items = Vec::new();
        let mut params = json!({});
        loop {
            let mut page = self.request(list, params).await?;
            let Some(Value::Array(more)) = page.get_mut(member).map(Value::take) else {
                return Err(unexpected("not a list", page));
            };
            items.extend(more);
            match page.get("nextCursor") {
                None => return Ok(items),
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
    }
}

/// Single messages: for custom methods, and requests that overlap.
impl Client {
    /// Sends a request and waits for its answer; returns the `result`. `method` is the name of a method, or the short
    /// name of one of the protocol, such as `read`.
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ServerError> {
        let id = self.send(method, params)?;
        self.answer(id).await
    }

    /// Sends a request; returns its id.
    ///
    /// # Errors
    /// The server has disconnected.
    pub fn send(&mut self, method: &str, params: Value) -> Result<u64, ServerError> {
        let method = TestClient::method(method).unwrap_or(method);
        let sent = self.client.send(method, &params.to_string(), "{}");
        let id = sent.map_err(|error| unexpected(&error.to_string(), params))?;
        self.write()?;
        Ok(id)
    }

    /// Waits for the answer to the request `id`, in whatever order the answers come.
    ///
    /// # Errors
    /// The server's error, or that it has disconnected, or has not answered for 60 s.
    pub async fn answer(&mut self, id: u64) -> Result<Value, ServerError> {
        let answers = |message: &ServerMessage| is_answer(message) && message.id == Some(id);
        let answered = self.next_message(answers).await.ok_or_else(unanswered)?;
        outcome(&answered)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server has disconnected.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<(), ServerError> {
        let sent = self.client.notify(method, &params.to_string());
        sent.map_err(|error| unexpected(&error.to_string(), params))?;
        self.write()
    }

    /// The next notification, complete; `None` if the server has disconnected, or none came for 60 s.
    pub async fn notification(&mut self) -> Option<Value> {
        let message = self.next_message(|message| !is_answer(message)).await?;
        Some(json!({ "jsonrpc": "2.0", "method": message.method, "params": body(&message) }))
    }

    /// The first message that `wanted` accepts. Other messages are kept. `None` after [`PATIENCE`].
    async fn next_message(&mut self, wanted: impl Fn(&ServerMessage) -> bool) -> Option<ServerMessage> {
        let begun = Instant::now();
        loop {
            if let Some(at) = self.waiting.iter().position(&wanted) {
                return self.waiting.remove(at);
            }
            if begun.elapsed() >= PATIENCE {
                return None;
            }
            self.is_waiting.store(true, Ordering::Relaxed);
            let chunk = self.chunks.recv().await;
            self.is_waiting.store(false, Ordering::Relaxed);
            let chunk = chunk?;
            self.client.received(&chunk);
            self.waiting.extend(self.client.take_messages());
            // If it fails, the server has disconnected, and the next chunk says so.
            let _ = self.write();
        }
    }

    fn write(&mut self) -> Result<(), ServerError> {
        self.socket.write_all(&self.client.output()).map_err(|_| gone())
    }
}

/// Shuts the socket down, so that the server reaches the end of its input even while the reader holds the socket.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }
}

fn is_answer(message: &ServerMessage) -> bool {
    matches!(message.kind, MessageKind::Result | MessageKind::Error)
}

fn completion(result: &Value) -> Option<TestCompletion> {
    let found = result.get("completion")?;
    let values = found.get("values")?.as_array()?.iter();
    let values = values.map(|value| value.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    let has_more = found.get("hasMore").and_then(Value::as_bool).unwrap_or_default();
    Some(TestCompletion { values, total: found.get("total").and_then(Value::as_u64), has_more })
}

fn body(message: &ServerMessage) -> Value {
    serde_json::from_str(&message.body).unwrap_or_default()
}

fn outcome(message: &ServerMessage) -> Result<Value, ServerError> {
    let mut body = body(message);
    if message.kind != MessageKind::Error {
        return Ok(body);
    }
    Err(ServerError {
        code: body["code"].as_i64().unwrap_or_default(),
        message: body["message"].as_str().unwrap_or_default().to_owned(),
        data: body["data"].take(),
    })
}

fn unexpected(what: &str, data: Value) -> ServerError {
    ServerError { code: 0, message: what.into(), data }
}

fn gone() -> ServerError {
    unexpected("the server has gone", Value::Null)
}

fn unanswered() -> ServerError {
    unexpected("the server has gone, or does not answer", Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::resource::{Resource, Template};

    async fn server() -> ResourceServer {
        let mut builder = ResourceServer::builder("notes", "1")
            .template(Template::new("note://{id}"), |_| async { "x" })
            .complete("id", |request| async move {
                let first = request.argument("other").map(str::to_owned);
                vec![first.unwrap_or_else(|| "a".into()), "b".into()]
            });
        for number in 0..3 {
            builder = builder.resource(Resource::new(format!("c://{number}")), |_| async { "x" });
        }
        let mut limits = mcp_resources_engine::limits::Limits::default();
        limits.page = 2;
        builder.limits(limits).build().unwrap()
    }

    // R-101, R-107: all pages are walked, and variables are completed, in either era.
    #[tokio::test]
    async fn lists_and_completions() {
        let server = server().await;
        for legacy in [false, true] {
            let mut client = match legacy {
                false => Client::modern(&server).unwrap(),
                true => Client::legacy(&server, Revision::V2025_11_25).await.unwrap(),
            };
            let listed = client.list_resources().await.unwrap();
            let uris: Vec<_> = listed.iter().map(|item| item["uri"].as_str().unwrap()).collect();
            assert_eq!(uris, ["c://0", "c://1", "c://2"]);
            let templates = client.list_templates().await.unwrap();
            assert_eq!(templates[0]["uriTemplate"], "note://{id}");
            let found = client.complete("note://{id}", "id", "", &[]).await.unwrap();
            assert_eq!((found.values, found.has_more), (vec!["a".to_owned(), "b".to_owned()], false));
            let chosen = client.complete("note://{id}", "id", "", &[("other", "c")]).await.unwrap();
            assert_eq!(chosen.values[0], "c");
            assert_eq!(client.complete("none://{x}", "x", "", &[]).await.unwrap_err().code, -32602);
        }
    }

    // R-081, R-085: a legacy client subscribes.
    #[tokio::test]
    async fn subscriptions() {
        let server = server().await;
        let mut client = Client::legacy(&server, Revision::V2025_11_25).await.unwrap();
        assert_eq!(client.subscribe("none://x").await.unwrap_err().code, -32002);
        client.subscribe("c://0").await.unwrap();
        server.notify_updated("c://0").unwrap();
        assert_eq!(client.notification().await.unwrap()["params"]["uri"], "c://0");
        client.unsubscribe("c://0").await.unwrap();
        server.notify_updated("c://0").unwrap();
        client.subscribe("c://1").await.unwrap();
        server.notify_updated("c://1").unwrap();
        assert_eq!(client.notification().await.unwrap()["params"]["uri"], "c://1");
    }

    // R-087, R-089, R-096: a modern client listens to existing resources; each listen gets its own notifications.
    #[tokio::test]
    async fn listens() {
        let server = server().await;
        let mut client = Client::modern(&server).unwrap();
        let one = client.listen(&["c://0", "none://x"], false).await.unwrap();
        assert_eq!(one.honoured["resourceSubscriptions"], json!(["c://0"]));
        let other = client.listen(&["c://1"], true).await.unwrap();
        server.notify_updated("c://0").unwrap();
        server.notify_updated("c://1").unwrap();
        for (listen, uri) in [(&other, "c://1"), (&one, "c://0")] {
            let notice = client.next(listen).await.unwrap();
            assert_eq!((notice.kind, &notice.params["uri"]), (MessageKind::Updated, &json!(uri)));
        }
        server.apply(crate::server::ServerChanges::new().remove_resource("c://2")).unwrap();
        assert_eq!(client.next(&other).await.unwrap().kind, MessageKind::ListChanged);
        server.shutdown();
        assert_eq!(client.next(&one).await, None);
    }
}
