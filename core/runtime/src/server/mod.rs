//! A server of resources: its registrations, its handlers, and the loop that serves it.
//!
//! ```no_run
//! use mcp_resources::{Contents, ReadError, ReadRequest, Resource, ResourceServer, Template};
//!
//! async fn forecast(request: ReadRequest) -> Result<String, ReadError> {
//!     let city = request.param("city").unwrap_or_default();
//!     if city != "tokyo" {
//!         return Err(ReadError::NotFound);
//!     }
//!     Ok(format!("{city}: sun"))
//! }
//!
//! # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
//! let server = ResourceServer::builder("weather", "1.0.0")
//!     .resource(Resource::new("config://app"), |_| async { Contents::json(&["dark"]) })
//!     .template(Template::new("weather://{city}/forecast{?days}").title("Forecast"), forecast)
//!     .complete("city", |_| async { vec!["tokyo"] })
//!     .list(|_| async { vec![Resource::new("weather://tokyo/forecast")] })
//!     .build()?;
//! server.run_stdio().await?;
//! # Ok(()) }
//! ```
//!
//! A handler is an async function (or closure) from a request to any type that implements [`IntoAnswer`]. It is polled where
//! its message was read, so one that never waits is answered without leaving the thread; one that waits continues as a
//! task of the tokio runtime, and delays no other request. Work that blocks its thread belongs in [`blocking`].

mod answer;
mod ask;
#[cfg(feature = "axum")]
mod axum;
mod blocking;
mod builder;
mod calls;
mod changes;
mod client;
mod handlers;
#[cfg(feature = "http")]
mod http;
#[cfg(feature = "junction")]
mod junction;
mod link;
mod params;
mod pipe;
mod request;
mod run;
mod shared;
mod span;
#[cfg(test)]
mod tests;
#[cfg(feature = "tools")]
mod tools;

pub use answer::{
    AccessDecision, Call, Complete, Handled, HandlerError, IntoAnswer, List, PromptOutput, Read, ToolError,
    ToolOutput,
};
pub use ask::AskFailed;
#[cfg(feature = "axum")]
pub use axum::HttpService;
pub use blocking::{Blocking, blocking};
pub use builder::Builder;
pub use changes::ServerChanges;
#[cfg(feature = "http")]
pub use http::{HttpBuilder, HttpListener, UnixHttpListener};
#[cfg(feature = "junction")]
pub use junction::{Junction, JunctionEnd, StreamPair};
pub use request::{CallRequest, CompletionRequest, Context, ListRequest, NamedCall, ReadRequest};
pub use shared::Diagnostic;
#[cfg(feature = "tools")]
pub use tools::{Structured, ToolReturn};

use crate::provider::Provider;
use crate::registry::ServerParts;
use crate::transport::{DescriptorWaiter, PipeSender, Stdio};
use mcp_resources_engine::catalog::MountId;
use mcp_resources_engine::engine::{Engine, LinkError, ServerInfo};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::resource::{RegistrationError, Resource};
use pipe::PipeHandler;
use run::{InputReader, TimeThread};
use shared::ServerState;
use std::any::Any;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// A server of resources. Cheap to clone: every clone is the same server and can be used from any thread.
#[derive(Clone)]
pub struct ResourceServer {
    shared: Arc<ServerState>,
}

impl ResourceServer {
    /// Starts building a server with the name and version that clients see.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> Builder {
        Builder::new(name.into(), version.into())
    }

    /// Adds and removes resources and templates: all of `changes`, or none. Notifies clients that watch the lists
    ///; running reads are not disturbed.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first change that is refused; nothing has changed then.
    pub fn apply(&self, changes: ServerChanges) -> Result<(), RegistrationError> {
        self.shared.apply(changes)
    }

    /// Mounts a provider, completely or not at all, and notifies clients like [`ResourceServer::apply`]. A resource
    /// registered at a URI takes precedence over a provider's template that matches it.
    ///
    /// # Errors
    /// [`RegistrationError`] of the provider, or for a resource that conflicts with an existing one.
    pub fn mount(&self, provider: impl Provider) -> Result<MountId, RegistrationError> {
        self.shared.registry.mounts().mount(Arc::new(provider))
    }

    /// Unmounts a provider: removes its resources and templates, notifies clients, and drops the provider after its
    /// running jobs. `false` if it was unmounted before.
    pub fn unmount(&self, mount: MountId) -> bool {
        self.shared.registry.mounts().unmount(mount)
    }

    /// Notifies the watchers of `uri`, in any spelling, that it has changed. Callable inside or outside a request, from
    /// any thread; never waits for a client.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidUri`]; [`RegistrationError::InvalidField`] if a template's parameter refuses a value.
    pub fn notify_updated(&self, uri: &str) -> Result<(), RegistrationError> {
        self.shared.updated(uri)
    }

    /// Like [`ResourceServer::notify_updated`], for the principal with this identity only: other watchers of `uri` are not
    /// notified.
    ///
    /// # Errors
    /// As [`ResourceServer::notify_updated`].
    pub fn notify_updated_for(&self, principal: &str, uri: &str) -> Result<(), RegistrationError> {
        self.shared.updated_for(principal, uri)
    }

    /// Announces that the results of `.list` functions have changed. Changes by [`ResourceServer::apply`] are announced
    /// automatically.
    pub fn notify_list_changed(&self) {
        self.shared.list_changed(ListKinds::RESOURCES);
    }

    /// Announces changes of the lists of custom methods.
    pub fn notify_lists_changed(&self, lists: ListKinds) {
        self.shared.list_changed(lists);
    }

    /// Makes a link to a resource of this server, for a tool to return as
    /// [`ContentBlock::link`](mcp_resources_engine::connection::ContentBlock::link): with the details of the registration
    /// `registered`, a URI or the text of a template, whose variables get `values`.
    ///
    /// # Errors
    /// [`LinkError`] if the link would lead nowhere: the template has no such variable, a required one has no value, a
    /// value is not of its declared type, or nothing is registered as `registered`.
    pub fn link(&self, registered: &str, values: &[(&str, &str)]) -> Result<Resource, LinkError> {
        self.shared.engine.link(registered, values)
    }

    /// Revokes the tokens of `subject`: its listens end with their results, and the streams of its sessions
    /// end. Tokens of this subject are verified again at their next use, also within a session, where the verifier must
    /// refuse them. `subject` is the identity that the verifier returns; the empty one, of the local process, is
    /// ignored.
    pub fn revoke(&self, subject: &str) {
        self.shared.revoke(subject);
    }

    /// Replaces the access policy while clients are connected: sessions and subscriptions stay, those to what a client may
    /// not see any more are silent, and all clients hear that the lists have changed. Returns whether it was another one.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidPolicy`] for an invalid glob, or for a change of `redact`; the policy then stays.
    pub fn set_guard(&self, policy: &Policy) -> Result<bool, RegistrationError> {
        self.shared.engine.set_policy(policy, self.shared.clock.now())
    }

    /// Replaces name, version and instructions. Clients get them with their next handshake, and in later results.
    ///
    /// # Errors
    /// [`RegistrationError`] if the name or the version is empty, or an icon is none.
    pub fn set_info(&self, info: ServerInfo) -> Result<(), RegistrationError> {
        self.shared.engine.set_info(info)
    }

    /// Looks again at what the principal with this identity may see: its tokens are verified again at their next use,
    /// the functions of [`Builder::access`] are asked again, and its subscriptions and listens to what it may no longer
    /// see end at once. Streams of a token that came with rights of its own end, so that the client sends it again.
    pub fn regrant(&self, principal: &str) {
        self.shared.engine.regrant(principal);
    }

    /// Shuts down all running transports: listens end with their results, and requests in flight get
    /// [`Limits::grace`](mcp_resources_engine::limits::Limits::grace) to finish.
    pub fn shutdown(&self) {
        self.shared.shutdown();
    }

    /// Returns the metrics in the text format of Prometheus, for a page of your own; `None` unless [`Builder::metrics`]
    /// is on, or an HTTP endpoint has metrics.
    pub fn metrics_text(&self) -> Option<String> {
        self.shared.engine.metrics_text()
    }

    /// Waits until the sink of [`Builder::audit`] has taken all current records, but at most one second. Transports do
    /// so when they end.
    pub fn flush_audit(&self) {
        self.shared.flush_audit();
    }

    /// The parts that a configuration file changes.
    #[doc(hidden)]
    pub fn parts(&self) -> ServerParts {
        let shared = &self.shared;
        ServerParts {
            engine: shared.engine.clone(),
            mounts: shared.registry.mounts().clone(),
            clock: shared.clock.clone(),
        }
    }

    /// Keeps something until the last clone of this server is dropped.
    #[doc(hidden)]
    pub fn keep(&self, part: Box<dyn Any + Send>) {
        self.shared.keep(part);
    }

    /// The engine, for runtimes that drive it themselves.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.shared.engine
    }

    /// Serves the client on standard input and output, until the client closes its end or the process gets
    /// `SIGTERM` or `SIGINT` (Ctrl-C). From then on nothing else in this process can read standard input, and anything
    /// it prints goes to standard error. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system's error for the two descriptors.
    pub async fn run_stdio(&self) -> io::Result<()> {
        self.serve(Stdio::take_blocking()?, PipeSender::default(), true).await
    }

    /// Serves the client on a pair of pipes, or a Unix or TCP socket, with the same framing. The client is
    /// trusted like the local process; use HTTP over a network.
    ///
    /// # Errors
    /// As [`ResourceServer::run_stdio`].
    pub async fn run_on(&self, input: impl Into<OwnedFd>, output: impl Into<OwnedFd>) -> io::Result<()> {
        self.serve(Stdio::new(input.into(), output.into())?, PipeSender::default(), false).await
    }

    /// Connects a client in the same process: returns its end of a pair of sockets, and serves the other end until the
    /// client drops its own. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    /// The system's error, if there are too many descriptors.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources::{Resource, ResourceServer};
    /// use tokio::io::{AsyncReadExt, AsyncWriteExt};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("notes", "1.0.0").build()?;
    /// let mut client = server.connect()?;
    /// client.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n").await?;
    /// client.shutdown().await?;
    /// let mut answer = String::new();
    /// client.read_to_string(&mut answer).await?;
    /// assert_eq!(answer, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
    /// # Ok(()) }
    /// ```
    pub fn connect(&self) -> io::Result<tokio::net::UnixStream> {
        let socket = self.connect_blocking(PipeSender::default())?;
        socket.set_nonblocking(true)?;
        tokio::net::UnixStream::from_std(socket)
    }

    /// The same with a socket that blocks, for a client that sends as `sender`. Needs a tokio runtime.
    pub(crate) fn connect_blocking(&self, sender: PipeSender) -> io::Result<UnixStream> {
        let (socket, theirs) = UnixStream::pair()?;
        let input = theirs.try_clone()?;
        let server = self.clone();
        // The reason for which it ends also ends its socket.
        tokio::spawn(async move {
            let stdio = Stdio::new(input.into(), theirs.into())?;
            server.serve(stdio, sender, false).await
        });
        Ok(socket)
    }

    async fn serve(&self, stdio: Stdio, sender: PipeSender, is_process: bool) -> io::Result<()> {
        let waiter = DescriptorWaiter::new()?;
        let terminate = Arc::new(AtomicBool::new(false));
        let _signals = if is_process { Some(Signals::handle(&waiter, &terminate)?) } else { None };
        let wake = waiter.wake().clone();
        let handler = PipeHandler::new(self.shared.clone(), sender, stdio, Handle::current(), wake);
        let _stop = StopOnDrop(handler.clone());
        let client = handler.client();
        let reader = InputReader {
            handler: handler.clone(),
            client: client.clone(),
            waiter: DescriptorWaiter::new()?,
            blocks: is_process,
        };
        let timer = TimeThread { handler, client, waiter, terminate, reader: reader.waiter.wake().clone() };
        let (sender, receiver) = oneshot::channel();
        thread("mcp-reader", move || reader.run())?;
        thread("mcp-timer", move || {
            // Fails if the future was dropped.
            let _ = sender.send(timer.run());
        })?;
        let ended =
            receiver.await.unwrap_or_else(|_| Err(io::Error::other("a thread of the server has panicked")));
        self.shared.audited().await;
        ended
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

impl From<Arc<ServerState>> for ResourceServer {
    fn from(shared: Arc<ServerState>) -> Self {
        Self { shared }
    }
}

impl fmt::Debug for ResourceServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceServer").field("engine", &self.shared.engine).finish_non_exhaustive()
    }
}

/// A custom method for a handler: see [`Builder::method`].
#[derive(Clone, Debug)]
#[must_use = "a method does nothing until it is given to `Builder::method`"]
pub struct Method {
    method: String,
    name_param: Option<String>,
    capability: Option<(String, String)>,
    list_kind: Option<ListKinds>,
    timeout: Option<Millis>,
}

impl Method {
    /// The method with this name.
    pub fn new(method: impl Into<String>) -> Self {
        Self { method: method.into(), name_param: None, capability: None, list_kind: None, timeout: None }
    }

    /// Sets the member of `params` that the HTTP header `Mcp-Name` repeats. Default: none.
    pub fn name_param(mut self, member: impl Into<String>) -> Self {
        self.name_param = Some(member.into());
        self
    }

    /// Declares a capability: its name and settings (a JSON object), such as `("tasks", "{}")`. Default: none.
    pub fn capability(mut self, name: impl Into<String>, settings: impl Into<String>) -> Self {
        self.capability = Some((name.into(), settings.into()));
        self
    }

    /// Sets its time-out in milliseconds, 0 for none. Default: that of a read.
    pub fn timeout(mut self, timeout: Millis) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the list that it returns, if clients may listen for its changes. Default: none.
    pub fn list_kind(mut self, kind: ListKinds) -> Self {
        self.list_kind = Some(kind);
        self
    }
}

/// Stops a server whose future is dropped.
struct StopOnDrop(Arc<PipeHandler>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.wake().set(pipe::signal::STOP);
    }
}

/// While this exists, `SIGTERM` and `SIGINT` end the server gracefully; afterwards they end the process as usual.
struct Signals {
    over: Arc<AtomicBool>,
}

impl Signals {
    fn handle(waiter: &DescriptorWaiter, terminate: &Arc<AtomicBool>) -> io::Result<Self> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let over = Arc::new(AtomicBool::new(false));
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register_conditional_default(signal, over.clone())?;
            signal_hook::flag::register(signal, terminate.clone())?;
            signal_hook::low_level::pipe::register(signal, waiter.wake().descriptor()?)?;
        }
        Ok(Self { over })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, std::sync::atomic::Ordering::SeqCst);
    }
}
