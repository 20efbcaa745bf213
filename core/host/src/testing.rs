//! A client in the same process, for an author's own tests: it talks to a [`ResourceServer`] as any client does, over a
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

pub use mcp_resources_engine::client::Sort;

use crate::server::ResourceServer;
use mcp_resources_engine::client::{self, Ask, Heard, Words};
use mcp_resources_engine::version::Revision;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A client of one server. What comes while something else is waited for is kept, in order, until it is asked for.
#[derive(Debug)]
pub struct Client {
    socket: UnixStream,
    words: Words,
    messages: UnboundedReceiver<Received>,
    /// What came while something else was waited for.
    waiting: VecDeque<Received>,
}

/// A message of the server's: sorted, and whole.
#[derive(Debug)]
struct Received {
    heard: Heard,
    whole: Value,
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

/// What a client was suggested for a variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The values, best first; at most 100 (R-108).
    pub values: Vec<String>,
    /// How many there are in all, if the server says so.
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
    /// The part of the filter that the server granted (R-089).
    pub honoured: Value,
}

/// A notification of the server's.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Notification {
    /// What it is.
    pub sort: Sort,
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

/// How a client begins and ends.
impl Client {
    /// A client of 2026-07-28, without a handshake. Needs a tokio runtime.
    ///
    /// # Errors
    /// What the system says, if there are too many descriptors.
    pub fn modern(server: &ResourceServer) -> io::Result<Self> {
        Self::of(server, Revision::V2026_07_28)
    }

    /// A client with a session of a legacy revision, after its handshake.
    ///
    /// # Errors
    /// As [`Client::modern`], and if the server refuses the handshake.
    pub async fn legacy(server: &ResourceServer, revision: Revision) -> io::Result<Self> {
        let mut client = Self::of(server, revision)?;
        client.ask(Ask::Initialize, json!({})).await.map_err(io::Error::other)?;
        client.write(&Words::initialized()).map_err(io::Error::other)?;
        Ok(client)
    }

    fn of(server: &ResourceServer, revision: Revision) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        let (server, input) = (server.clone(), theirs.try_clone()?);
        tokio::spawn(async move { server.run_on(input, theirs).await });
        let (sender, messages) = unbounded_channel();
        let reader = BufReader::new(socket.try_clone()?);
        std::thread::spawn(move || {
            let lines = reader.lines().map_while(Result::ok);
            let mut received = lines.map_while(|line| {
                Some(Received {
                    heard: Heard::sort(line.as_bytes())?,
                    whole: serde_json::from_str(&line).ok()?,
                })
            });
            received.try_for_each(|received| sender.send(received))
        });
        Ok(Self { socket, words: Words::new(revision, "{}"), messages, waiting: VecDeque::new() })
    }

    /// The same client with capabilities to declare on each request of 2026-07-28: a JSON object. Default: none.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.words = self.words.clone().declaring(&capabilities.to_string());
        self
    }
}

/// What a client can ask.
impl Client {
    /// All resources, from all pages.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn list_resources(&mut self) -> Result<Vec<Value>, ServerError> {
        self.pages(Ask::List).await
    }

    /// All templates, from all pages.
    ///
    /// # Errors
    /// As [`Client::list_resources`].
    pub async fn list_templates(&mut self) -> Result<Vec<Value>, ServerError> {
        self.pages(Ask::ListTemplates).await
    }

    /// Reads a resource: the whole result.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn read(&mut self, uri: &str) -> Result<Value, ServerError> {
        self.ask(Ask::Read, json!({ "uri": uri })).await
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

    /// Values for a variable of a template, where `value` is typed so far. `arguments` are the values that were chosen for
    /// other variables; revisions before 2025-06-18 do not have them.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn complete(
        &mut self,
        template: &str,
        variable: &str,
        value: &str,
        arguments: &[(&str, &str)],
    ) -> Result<Completion, ServerError> {
        let params = client::completion(template, variable, value, arguments);
        let result = self.ask(Ask::Complete, params).await?;
        client::completed(&result)
            .map(|(values, total, has_more)| Completion { values, total, has_more })
            .ok_or_else(|| unexpected("not a completion", result))
    }

    /// Asks to hear of changes of a resource (legacy revisions): see [`Client::notification`].
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn subscribe(&mut self, uri: &str) -> Result<(), ServerError> {
        self.ask(Ask::Subscribe, json!({ "uri": uri })).await.map(drop)
    }

    /// Asks to hear of them no longer (legacy revisions).
    ///
    /// # Errors
    /// As [`Client::subscribe`].
    pub async fn unsubscribe(&mut self, uri: &str) -> Result<(), ServerError> {
        self.ask(Ask::Unsubscribe, json!({ "uri": uri })).await.map(drop)
    }

    /// Listens to changes of these resources, and of the list (2026-07-28): see [`Client::next`].
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn listen(&mut self, uris: &[&str], list_changed: bool) -> Result<Listen, ServerError> {
        let id = self.post(Ask::Listen, client::listening(uris, list_changed))?;
        let first = self.received(|heard| heard.id == Some(id)).await.ok_or_else(gone)?;
        match first.heard.sort {
            Sort::Acknowledged => Ok(Listen { id, honoured: client::honoured(&body(&first.heard)) }),
            _ => outcome(&first.heard).and_then(|result| Err(unexpected("not acknowledged", result))),
        }
    }

    /// The next notification of a listen; `None` if the listen has ended, or the server has gone.
    pub async fn next(&mut self, listen: &Listen) -> Option<Notification> {
        let Received { heard, .. } = self.received(|heard| heard.id == Some(listen.id)).await?;
        let is_over = matches!(heard.sort, Sort::Result | Sort::Error | Sort::Cancelled);
        (!is_over).then(|| Notification { sort: heard.sort, id: heard.id, params: body(&heard) })
    }

    /// Takes a request back, or ends a listen.
    ///
    /// # Errors
    /// The server has gone.
    pub fn cancel(&mut self, id: u64) -> Result<(), ServerError> {
        self.write(&Words::cancel(id))
    }

    async fn pages(&mut self, ask: Ask<'_>) -> Result<Vec<Value>, ServerError> {
        let (mut items, mut params) = (Vec::new(), json!({}));
        loop {
            let page = self.ask(ask, params).await?;
            let (more, next) = client::page(page).ok_or_else(|| unexpected("not a list", Value::Null))?;
            items.extend(more);
            match next {
                None => return Ok(items),
                Some(cursor) => params = json!({ "cursor": cursor }),
            }
        }
    }

    async fn ask(&mut self, ask: Ask<'_>, params: Value) -> Result<Value, ServerError> {
        let id = self.post(ask, params)?;
        self.answer(id).await
    }
}

/// What it says and hears, message by message: for methods that are not ours, and requests that overlap.
impl Client {
    /// Sends a request and waits for its answer: the `result`. `method` is the name of a method, or one of ours by its short
    /// name, such as `read`.
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
    pub fn send(&mut self, method: &str, params: Value) -> Result<u64, ServerError> {
        self.post(Ask::named(method).unwrap_or(Ask::Method(method)), params)
    }

    /// Waits for the answer to the request `id`, in whatever order the answers come.
    ///
    /// # Errors
    /// The server's error, or that it has gone.
    pub async fn answer(&mut self, id: u64) -> Result<Value, ServerError> {
        let answers =
            |heard: &Heard| matches!(heard.sort, Sort::Result | Sort::Error) && heard.id == Some(id);
        outcome(&self.received(answers).await.ok_or_else(gone)?.heard)
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// The server has gone.
    pub fn notify(&mut self, method: &str, params: Value) -> Result<(), ServerError> {
        self.write(&Words::notification(method, &params.to_string()))
    }

    /// The next notification, whole; `None` if the server has gone.
    pub async fn notification(&mut self) -> Option<Value> {
        let is_notification = |heard: &Heard| !matches!(heard.sort, Sort::Result | Sort::Error);
        self.received(is_notification).await.map(|received| received.whole)
    }

    /// The first message that `wanted` accepts. Others wait.
    async fn received(&mut self, wanted: impl Fn(&Heard) -> bool) -> Option<Received> {
        if let Some(at) = self.waiting.iter().position(|received| wanted(&received.heard)) {
            return self.waiting.remove(at);
        }
        loop {
            let received = self.messages.recv().await?;
            if wanted(&received.heard) {
                return Some(received);
            }
            self.waiting.push_back(received);
        }
    }

    fn post(&mut self, ask: Ask<'_>, params: Value) -> Result<u64, ServerError> {
        let (id, line) = self.words.request(ask, &params.to_string(), "{}");
        self.write(&line)?;
        Ok(id)
    }

    fn write(&mut self, line: &[u8]) -> Result<(), ServerError> {
        self.socket.write_all(line).map_err(|_| gone())
    }
}

/// The server sees the end of its input, even while the reader holds the socket.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Write);
    }
}

fn body(heard: &Heard) -> Value {
    serde_json::from_str(&heard.body).unwrap_or_default()
}

fn outcome(heard: &Heard) -> Result<Value, ServerError> {
    let mut body = body(heard);
    if heard.sort != Sort::Error {
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

    /// R-101, R-107: in either era all pages are walked, and variables completed.
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

    /// R-081, R-085: a legacy client subscribes.
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

    /// R-087, R-089, R-096: a modern client listens, to what there is; each listen hears its own.
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
            let told = client.next(listen).await.unwrap();
            assert_eq!((told.sort, &told.params["uri"]), (Sort::Updated, &json!(uri)));
        }
        server.apply(crate::server::Changes::new().remove_resource("c://2")).unwrap();
        assert_eq!(client.next(&other).await.unwrap().sort, Sort::ListChanged);
        server.shutdown();
        assert_eq!(client.next(&one).await, None);
    }
}
