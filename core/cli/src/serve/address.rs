//! The endpoint of `serve --http`: where it listens, and who may reach it.
//!
//! Law: other machines are served only if clients prove who they are, or if the command says `--public`.

use crate::args::{HttpAddress, Serve};
use crate::error::Failed;
use crate::output;
use crate::status::StatusListener;
use listenfd::ListenFd;
use mcp_resources_runtime::server::ResourceServer;
use mcp_resources_runtime::transport::http::HttpServer;
use mcp_resources_serve::ServeDocument;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// An endpoint before it listens.
pub(super) struct ServeEndpoint {
    address: Resolved,
    status: Option<HttpAddress>,
}

enum Resolved {
    /// The addresses of a name, and the text that names them.
    Tcp(Vec<SocketAddr>, String),
    Unix(PathBuf),
    /// The socket of a service manager.
    Passed(PassedSocket),
}

enum PassedSocket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// The endpoint that the words and the file describe; `None` for stdio.
///
/// # Errors
/// One sentence that names the option or the key.
pub(super) fn open(document: &ServeDocument, args: &Serve) -> Result<Option<ServeEndpoint>, Failed> {
    let Some(address) = &args.http else {
        if !args.check && (document.has_auth() || document.has_tls()) {
            output::say(
                "warning",
                "auth and tls are for HTTP; over stdio the client is the user who started the server",
            );
        }
        return Ok(None);
    };
    let address = resolve(address).map_err(Failed::usage)?;
    if let Some(text) = address.is_for_others() {
        if !document.has_auth() && !args.public {
            return Err(Failed::usage(format!(
                "--http {text} serves other machines, and nobody is asked who they are; write auth into the file of --config, \
                 such as auth: {{tokens: tokens.yaml}}, or add --public if everybody may read what is served"
            )));
        }
        if document.has_auth() && !document.has_tls() {
            output::say(
                "warning",
                "tokens cross the network unencrypted; write tls into the file, or put a proxy with TLS in front",
            );
        }
    }
    Ok(Some(ServeEndpoint { address, status: args.status.clone() }))
}

/// The warning about sources with `for` where no client has an identity, so that no client can see them.
pub(super) fn without_groups(document: &ServeDocument, args: &Serve) -> Option<&'static str> {
    if !document.has_audiences() || document.has_auth() {
        return None;
    }
    Some(match args.http {
        Some(_) => {
            "nobody belongs to a group without auth, so nobody knows the sources with for; write auth into the file"
        }
        None => {
            "the client on stdio knows the sources with for only if the file gives it a scope, as \
             guard: {principals: {\"\": {scopes: [engineering]}}}"
        }
    })
}

fn resolve(address: &HttpAddress) -> Result<Resolved, String> {
    match address {
        HttpAddress::Unix(path) => Ok(Resolved::Unix(path.clone())),
        HttpAddress::Systemd => passed().map(Resolved::Passed),
        HttpAddress::Tcp { host, port } => {
            let text = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
            let found = (host.as_str(), *port).to_socket_addrs();
            let found: Vec<SocketAddr> =
                found.map_err(|error| format!("--http {text}: the host cannot be found: {error}"))?.collect();
            Ok(Resolved::Tcp(found, text))
        }
    }
}

/// The first socket that the service manager has passed.
fn passed() -> Result<PassedSocket, String> {
    let wrong = |error: io::Error| format!("--http systemd: the socket cannot be used: {error}");
    let mut all = ListenFd::from_env();
    // Each question leaves a socket of the other family where it is.
    if let Ok(Some(listener)) = all.take_tcp_listener(0) {
        return Ok(PassedSocket::Tcp(listener));
    }
    match all.take_unix_listener(0).map_err(wrong)? {
        Some(listener) => Ok(PassedSocket::Unix(listener)),
        None => {
            Err("--http systemd: no socket was passed; start it by a .socket unit, or name an address".into())
        }
    }
}

impl Resolved {
    /// The text of the address if other machines reach it.
    fn is_for_others(&self) -> Option<String> {
        match self {
            Self::Tcp(addresses, text) => {
                let is_local = addresses.iter().all(|address| address.ip().is_loopback());
                (!is_local).then(|| text.clone())
            }
            Self::Passed(PassedSocket::Tcp(listener)) => {
                let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
                (!is_local).then(|| "systemd".into())
            }
            Self::Unix(_) | Self::Passed(PassedSocket::Unix(_)) => None,
        }
    }
}

impl ServeEndpoint {
    /// Serves until a signal ends it.
    pub(super) async fn serve(self, server: ResourceServer) -> io::Result<()> {
        let Self { address, status } = self;
        let mut builder = server.http();
        if address.is_for_others().is_some() {
            // Its names are not known here. The default, which accepts the names of this machine alone, would refuse everybody.
            builder = builder.any_host_by_default();
        }
        let scheme = if builder.options().tls.is_some() { "https" } else { "http" };
        let path = builder.options().rules.path.clone();
        if let Some(status) = status {
            let status = StatusListener::bind(&status).await.map_err(io::Error::other)?;
            output::say("note", &format!("health and metrics at http://{}", status.address()?));
            let server = server.clone();
            tokio::spawn(status.serve(Arc::new(move || server.metrics_text().unwrap_or_default())));
        }
        match address {
            Resolved::Tcp(addresses, text) => {
                let listener = builder.bind(&addresses[..]).await.map_err(|error| {
                    let advice = "name another port, or 0 for a free one";
                    io::Error::new(
                        error.kind(),
                        format!("--http {text}: it cannot be used: {error}; {advice}"),
                    )
                })?;
                output::say("note", &format!("serving at {scheme}://{}{path}", listener.address()));
                let endpoint = listener.server().clone();
                until_ended(listener.serve(), endpoint).await
            }
            Resolved::Passed(PassedSocket::Tcp(listener)) => {
                let listener = builder.bind_tcp_listener(listener)?;
                output::say("note", &format!("serving at {scheme}://{}{path}", listener.address()));
                let endpoint = listener.server().clone();
                until_ended(listener.serve(), endpoint).await
            }
            Resolved::Passed(PassedSocket::Unix(listener)) => {
                let listener = builder.bind_unix_listener(listener)?;
                output::say("note", &format!("serving at the socket of systemd, path {path}"));
                let endpoint = listener.server().clone();
                until_ended(listener.serve(), endpoint).await
            }
            Resolved::Unix(socket) => {
                let listener = builder.bind_unix(&socket).map_err(|error| {
                    let text = format!("--http unix:{}: it cannot be used: {error}", socket.display());
                    io::Error::new(error.kind(), text)
                })?;
                output::say("note", &format!("serving at unix:{}, path {path}", socket.display()));
                let endpoint = listener.server().clone();
                until_ended(listener.serve(), endpoint).await
            }
        }
    }
}

/// Serves until a signal ends it.
async fn until_ended(serves: impl Future<Output = ()>, endpoint: Arc<HttpServer>) -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    tokio::pin!(serves);
    tokio::select! {
        () = &mut serves => return Ok(()),
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    endpoint.shutdown();
    serves.await;
    Ok(())
}
