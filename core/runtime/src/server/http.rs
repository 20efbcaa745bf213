//! Serving over HTTP: the options, and the connection between the HTTP server and handlers.

use super::ResourceServer;
use super::calls;
use super::client::CallerHandle;
use super::shared::{Diagnostic, ServerState};
use crate::transport::http::{
    HttpOptions, HttpServer, ProxyIdentity, RouteByPrincipal, ServerSocket, Verifier, listen_on,
};
use crate::transport::{EventHandler, Peer};
use mcp_resources_engine::connection::{Events, RequestOutcome};
use mcp_resources_engine::http::{Answers, Auth, Hosts, Origins, Rules, RulesError, Sse24};
use std::fmt;
use std::io;
use std::net::SocketAddr;
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
#[cfg(unix)]
use tokio::net::UnixListener;
use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::runtime::Handle;

/// Builds an HTTP endpoint: see [`ResourceServer::http`].
#[derive(Clone)]
#[must_use = "a builder does nothing until it is bound or built"]
pub struct HttpBuilder {
    server: ResourceServer,
    options: HttpOptions,
}

/// The options. Limits of HTTP are fields of [`Limits`](mcp_resources_engine::limits::Limits).
impl HttpBuilder {
    pub(super) fn new(server: ResourceServer) -> Self {
        let options = server.shared.http_options();
        Self { server, options }
    }

    /// Sets the path of the endpoint. Default `/mcp`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.rules.path = path.into();
        self
    }

    /// Adds a path that answers `GET` and `HEAD` with 200 while the server is alive, whatever their `Host`, `Origin` and
    /// token are. Default none.
    pub fn health(mut self, path: impl Into<String>) -> Self {
        self.options.rules.health = Some(path.into());
        self
    }

    /// Adds a path with metrics in the text format of Prometheus, such as `/metrics`. The checks of `Host`, `Origin`
    /// and the token apply to it. Default none.
    pub fn metrics(mut self, path: impl Into<String>) -> Self {
        self.options.rules.metrics = Some(path.into());
        self
    }

    /// Sets the accepted `Host` headers, as `name` or `name:port`. Default: the names of this machine's
    /// loopback interface. A public server needs its own name here.
    pub fn allowed_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.options.rules.hosts = Hosts::These(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Accepts every `Host` header: for servers behind a proxy that checks it.
    pub fn any_host(mut self) -> Self {
        self.options.rules.hosts = Hosts::Any;
        self
    }

    /// Sets the accepted `Origin` headers, as `scheme://host:port`. Default: local pages. Requests without the
    /// header are always accepted.
    pub fn allowed_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.options.rules.origins = Origins::These(origins.into_iter().map(Into::into).collect());
        self
    }

    /// Sets whether browsers may let pages of the accepted origins send requests. Default `false`.
    pub fn cors(mut self, cors: bool) -> Self {
        self.options.rules.cors = cors;
        self
    }

    /// Sets further headers that such pages may send, such as `X-Team`: see
    /// [`Rules::cors_headers`](mcp_resources_engine::http::Rules::cors_headers). Default none.
    pub fn cors_headers<H: Into<String>>(mut self, names: impl IntoIterator<Item = H>) -> Self {
        self.options.rules.cors_headers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the form in which requests are answered. Default [`Answers::Either`].
    pub fn answers(mut self, answers: Answers) -> Self {
        self.options.rules.answers = answers;
        self
    }

    /// Sets whether legacy clients get sessions. Without sessions every legacy request is independent: there are no
    /// subscriptions, and any process of a deployment can answer. Default `true`.
    pub fn sessions(mut self, sessions: bool) -> Self {
        self.options.rules.sessions = sessions;
        self
    }

    /// Sets the name of this process, which begins its session ids, so that a proxy finds the process of a session: letters,
    /// digits, `-` and `_`, at most 32. Default: none.
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.options.rules.instance = Some(name.into());
        self
    }

    /// Also serves the transport of 2024-11-05, HTTP with server-sent events, which was replaced in 2025-03-26.
    /// Default: not served.
    pub fn sse24(mut self, paths: Sse24) -> Self {
        self.options.rules.sse24 = Some(paths);
        self
    }

    /// Requires a bearer token accepted by `verifier` on every request. Default: no token is
    /// required.
    pub fn auth(mut self, auth: Auth, verifier: impl Verifier) -> Self {
        self.options.rules.auth = Some(auth);
        self.options.verifier = Some(Arc::new(verifier));
        self
    }

    /// Takes the identity of clients from a reverse proxy that does the login. Default: clients without a token are anonymous.
    pub fn identity(mut self, proxy: ProxyIdentity) -> Self {
        self.options.identity = Some(proxy);
        self
    }

    /// Lets other endpoints answer for some principals: see [`HttpOptions::route`]. Each comes from [`HttpBuilder::build`]
    /// of another server.
    pub fn route(mut self, route: RouteByPrincipal) -> Self {
        self.options.route = Some(route);
        self
    }

    /// Serves with TLS. Default: plain HTTP.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: crate::transport::http::Tls) -> Self {
        self.options.tls = Some(tls);
        self
    }

    /// Replaces all rules, for options without a method here.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.options.rules = rules;
        self
    }

    /// Sets the accepted `Host` headers like [`HttpBuilder::any_host`], if they are the default.
    #[doc(hidden)]
    pub fn any_host_by_default(self) -> Self {
        if self.options.rules.hosts == Hosts::Loopback { self.any_host() } else { self }
    }

    /// The options so far.
    #[doc(hidden)]
    pub fn options(&self) -> &HttpOptions {
        &self.options
    }

    /// Makes the endpoint without a listener, for requests passed to [`HttpServer::respond`].
    ///
    /// # Errors
    /// [`RulesError`] if an option is invalid.
    pub fn build(self) -> Result<Arc<HttpServer>, RulesError> {
        let shared = &self.server.shared;
        let handler = Arc::new(HttpHandler { shared: shared.clone(), runtime: OnceLock::new() });
        let server = HttpServer::new(&shared.engine, shared.clock.clone(), self.options, handler)?;
        shared.listens(&server);
        Ok(server)
    }

    /// Listens on every address that `address` resolves to, such as `127.0.0.1` and `::1` for `localhost`, on the same port;
    /// port 0 is any free one. Of several ports, the first one that is free is used.
    ///
    /// # Errors
    /// The system's error for an address; [`io::ErrorKind::InvalidInput`] if an option is invalid.
    pub async fn bind(self, address: impl ToSocketAddrs) -> io::Result<HttpListener> {
        let shared = self.server.shared.clone();
        let server = self.build().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
        let listeners = listen_on(&addresses)?;
        listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        let listeners = listeners.into_iter().map(TcpListener::from_std).collect::<io::Result<Vec<_>>>()?;
        let first = listeners.first().ok_or(io::ErrorKind::InvalidInput)?;
        let address = first.local_addr()?;
        Ok(HttpListener {
            server,
            shared,
            address,
            listeners: listeners.into_iter().map(Into::into).collect(),
        })
    }

    /// Listens on a Unix socket at `path`. A socket without a listening process is replaced; the new one is removed when
    /// the server has stopped.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::AddrInUse`] if another process listens there or the path is no socket;
    /// [`io::ErrorKind::InvalidInput`] if an option is invalid.
    #[cfg(unix)]
    pub fn bind_unix(self, path: impl Into<PathBuf>) -> io::Result<UnixHttpListener> {
        let path = path.into();
        let shared = self.server.shared.clone();
        let server = self.build().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let listener = UnixListener::bind(&path).or_else(|error| match error.kind() {
            io::ErrorKind::AddrInUse if is_abandoned(&path) => {
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path)
            }
            _ => Err(error),
        })?;
        Ok(UnixHttpListener { server, shared, listener, path: Some(path) })
    }

    /// Serves a TCP socket that listens already, such as one that a service manager has passed. Needs a tokio runtime with I/O.
    ///
    /// # Errors
    /// The system's error; [`io::ErrorKind::InvalidInput`] if an option is invalid.
    pub fn bind_tcp_listener(self, listener: std::net::TcpListener) -> io::Result<HttpListener> {
        let shared = self.server.shared.clone();
        let server = self.build().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let listeners = vec![TcpListener::from_std(listener)?.into()];
        Ok(HttpListener { server, shared, address, listeners })
    }

    /// Serves a Unix socket that listens already. Its path stays when the server has stopped.
    ///
    /// # Errors
    /// As [`HttpBuilder::bind_tcp_listener`].
    #[cfg(unix)]
    pub fn bind_unix_listener(
        self,
        listener: std::os::unix::net::UnixListener,
    ) -> io::Result<UnixHttpListener> {
        let shared = self.server.shared.clone();
        let server = self.build().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        listener.set_nonblocking(true)?;
        Ok(UnixHttpListener { server, shared, listener: UnixListener::from_std(listener)?, path: None })
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

/// An endpoint with its listeners.
pub struct HttpListener {
    server: Arc<HttpServer>,
    shared: Arc<ServerState>,
    listeners: Vec<ServerSocket>,
    address: SocketAddr,
}

impl fmt::Debug for HttpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpListener").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HttpListener {
    /// The address of the first listener. All have the same port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The endpoint, for example to shut it down.
    pub fn server(&self) -> &Arc<HttpServer> {
        &self.server
    }

    /// Serves until the server is shut down: see [`HttpServer::shutdown`].
    pub async fn serve(self) {
        self.server.serve_all(self.listeners).await;
        self.shared.audited().await;
    }
}

/// Whether it is a socket that refuses connections, because its process has ended.
#[cfg(unix)]
fn is_abandoned(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).err().is_some_and(refused)
}

/// An endpoint with a Unix socket.
#[cfg(unix)]
pub struct UnixHttpListener {
    server: Arc<HttpServer>,
    shared: Arc<ServerState>,
    listener: UnixListener,
    /// The path to remove at the end.
    path: Option<PathBuf>,
}

#[cfg(unix)]
impl fmt::Debug for UnixHttpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnixHttpListener").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(unix)]
impl UnixHttpListener {
    /// The endpoint, for example to shut it down.
    pub fn server(&self) -> &Arc<HttpServer> {
        &self.server
    }

    /// Serves until the server is shut down: see [`HttpServer::shutdown`].
    pub async fn serve(self) {
        self.server.serve_all(vec![ServerSocket::Unix(self.listener)]).await;
        if let Some(path) = self.path {
            // An error is ignored: somebody has removed it already.
            let _ = std::fs::remove_file(path);
        }
        self.shared.audited().await;
    }
}

impl ResourceServer {
    /// Starts building an HTTP endpoint of this server: Streamable HTTP, both eras.
    pub fn http(&self) -> HttpBuilder {
        HttpBuilder::new(self.clone())
    }

    /// Like [`ResourceServer::http`], with these options in the place of the server's own.
    #[doc(hidden)]
    pub fn http_with(&self, options: HttpOptions) -> HttpBuilder {
        HttpBuilder { server: self.clone(), options }
    }

    /// Serves over HTTP at `http://ADDRESS/mcp`, for local clients only; [`ResourceServer::http`] has more options. See
    /// [`HttpBuilder::run`].
    ///
    /// # Errors
    /// The system's error for the address.
    pub async fn run_http(&self, address: impl ToSocketAddrs) -> io::Result<()> {
        self.http().run(address).await
    }
}

/// Shuts the server down when the process is asked to end.
struct Ends(tokio::task::JoinHandle<()>);

impl Ends {
    fn new(server: Arc<HttpServer>) -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
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

/// Connects the HTTP server with handlers.
struct HttpHandler {
    shared: Arc<ServerState>,
    /// The runtime that serves, known from the first request on.
    runtime: OnceLock<Handle>,
}

impl EventHandler for HttpHandler {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let runtime = self.runtime.get_or_init(Handle::current).clone();
        let client = CallerHandle::new(self.shared.clone(), peer.clone(), runtime);
        calls::after(&client, RequestOutcome { events, ..RequestOutcome::nothing() });
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
