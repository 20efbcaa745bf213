//! Serving over HTTP: what an author sets, and how requests reach the author's functions.

use super::ResourceServer;
use super::calls;
use super::client::Client;
use super::shared::{Diagnostic, Shared};
use crate::transport::http::{HttpOptions, HttpServer, Verifier};
use crate::transport::{Host, Peer};
use mcp_resources_engine::connection::{Events, Outcome};
use mcp_resources_engine::http::{Answers, Auth, Hosts, Origins, Rules, RulesError, Sse24};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::runtime::Handle;

/// An HTTP endpoint in the making: see [`ResourceServer::http`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is bound or built"]
pub struct HttpBuilder {
    server: ResourceServer,
    options: HttpOptions,
}

/// What an author sets. The bounds of HTTP are fields of [`Limits`](mcp_resources_engine::limits::Limits).
impl HttpBuilder {
    pub(super) fn new(server: ResourceServer) -> Self {
        Self { server, options: HttpOptions::default() }
    }

    /// The path of the endpoint. Default `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.rules.path = path.into();
        self
    }

    /// A path that answers 200 while the server lives. Default none.
    pub fn health(mut self, path: impl Into<String>) -> Self {
        self.options.rules.health = Some(path.into());
        self
    }

    /// A path that shows what is counted, in the text format of Prometheus, such as `/metrics`. It asks for `Host`, `Origin`
    /// and the token as the endpoint does. Default none.
    pub fn metrics(mut self, path: impl Into<String>) -> Self {
        self.options.rules.metrics = Some(path.into());
        self
    }

    /// The `Host` headers that are accepted, as `name` or `name:port`. Default: this machine's own names. A
    /// server that others reach needs its public name here.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.options.rules.hosts = Hosts::These(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Accepts every `Host` header: behind a proxy that checks it.
    pub fn any_host(mut self) -> Self {
        self.options.rules.hosts = Hosts::Any;
        self
    }

    /// The `Origin` headers that are accepted, as `scheme://host:port`. Default: pages of this machine. A request
    /// without the header is always accepted.
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.options.rules.origins = Origins::These(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Whether browsers are told that pages of the accepted origins may ask (DEC-30). Default `false`.
    pub fn cors(mut self, cors: bool) -> Self {
        self.options.rules.cors = cors;
        self
    }

    /// In which form requests are answered. Default [`Answers::Either`].
    pub fn answers(mut self, answers: Answers) -> Self {
        self.options.rules.answers = answers;
        self
    }

    /// Whether legacy clients get sessions. Without them every legacy request stands alone: nothing can be subscribed to,
    /// and any process of a deployment can answer (DEC-25). Default `true`.
    pub fn sessions(mut self, sessions: bool) -> Self {
        self.options.rules.sessions = sessions;
        self
    }

    /// Also serves the transport of 2024-11-05, HTTP with server-sent events, which was replaced in 2025-03-26. By
    /// default it is not served.
    pub fn sse24(mut self, paths: Sse24) -> Self {
        self.options.rules.sse24 = Some(paths);
        self
    }

    /// Asks every request for a bearer token that `verifier` accepts (requirements, section 13). Default: none is asked
    /// for.
    pub fn auth(mut self, auth: Auth, verifier: impl Verifier) -> Self {
        self.options.rules.auth = Some(auth);
        self.options.verifier = Some(Arc::new(verifier));
        self
    }

    /// Serves with TLS. Default: plain HTTP.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::transport::http::Tls) -> Self {
        self.options.tls = Some(tls);
        self
    }

    /// All rules at once, for what has no method here.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.options.rules = rules;
        self
    }

    /// The endpoint without a listener of its own, to be handed requests with [`HttpServer::respond`].
    ///
    /// # Errors
    /// [`RulesError`] if what was set cannot be applied.
    pub fn build(self) -> Result<Arc<HttpServer>, RulesError> {
        let shared = &self.server.shared;
        let host = Arc::new(HttpHost { shared: shared.clone(), runtime: OnceLock::new() });
        let server = HttpServer::new(&shared.engine, shared.clock.clone(), self.options, host)?;
        shared.listens(&server);
        Ok(server)
    }

    /// Listens on the first address that can be had; port 0 is any free one.
    ///
    /// # Errors
    /// What the system says of the last address; [`io::ErrorKind::InvalidInput`] if what was set cannot be applied.
    pub async fn bind(self, address: impl ToSocketAddrs) -> io::Result<HttpListener> {
        let shared = self.server.shared.clone();
        let server = self.build().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = TcpListener::bind(address).await?;
        Ok(HttpListener { server, shared, address: listener.local_addr()?, listener })
    }

    /// Serves on `address` until the process gets `SIGTERM` or `SIGINT` (Ctrl-C), or the server is shut down.
    /// Needs a tokio runtime with I/O and time.
    ///
    /// # Errors
    /// As [`HttpBuilder::bind`].
    pub async fn run(self, address: impl ToSocketAddrs) -> io::Result<()> {
        let listener = self.bind(address).await?;
        let ends = Ends::new(listener.server.clone())?;
        listener.serve().await;
        drop(ends);
        Ok(())
    }
}

impl fmt::Debug for HttpBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBuilder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// An endpoint that listens.
pub struct HttpListener {
    server: Arc<HttpServer>,
    shared: Arc<Shared>,
    listener: TcpListener,
    address: SocketAddr,
}

impl fmt::Debug for HttpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpListener {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint, to shut it down from elsewhere.
    pub fn server(&self) -> &Arc<HttpServer> {
        &self.server
    }

    /// Serves until the server is shut down: see [`HttpServer::shutdown`].
    pub async fn serve(self) {
        self.server.serve(self.listener).await;
        self.shared.audited().await;
    }
}

impl ResourceServer {
    /// An HTTP endpoint of this server in the making: Streamable HTTP, both eras.
    pub fn http(&self) -> HttpBuilder {
        HttpBuilder::new(self.clone())
    }

    /// Serves over HTTP at `http://ADDRESS/mcp`, for clients on this machine; [`ResourceServer::http`] has more to set. See
    /// [`HttpBuilder::run`].
    ///
    /// # Errors
    /// What the system says of the address.
    pub async fn run_http(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        self.http().run(address).await
    }
}

/// Ends the server when the process is told to end.
struct Ends(tokio::task::JoinHandle<()>);

impl Ends {
    fn new(server: Arc<HttpServer>) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok(Self(tokio::spawn(async move {
            std::future::poll_fn(|context| match terminate.poll_recv(context) {
                std::task::Poll::Ready(_) => std::task::Poll::Ready(()),
                std::task::Poll::Pending => interrupt.poll_recv(context).map(drop),
            })
            .await;
            server.shutdown();
        })))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The author's functions, as the HTTP server reaches them.
struct HttpHost {
    shared: Arc<Shared>,
    /// The runtime that serves, known with the first request.
    runtime: OnceLock<Handle>,
}

impl Host for HttpHost {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let runtime = self.runtime.get_or_init(Handle::current).clone();
        let client = Client::new(self.shared.clone(), peer.clone(), runtime);
        calls::after(&client, Outcome { events, ..Outcome::nothing() });
    }

    fn warn(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Refused(what));
    }

    fn report(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Warning(what));
    }

    fn misuse(&self, what: &str) {
        self.shared.diagnose(&Diagnostic::Misuse(what));
    }
}
