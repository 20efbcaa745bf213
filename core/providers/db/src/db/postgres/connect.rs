//! Opens connections to Postgres: the hosts of a URL, one after the other.
//!
//! Law: each host has its share of the time, so one that is silent does not keep the next from being tried.

use super::stream::{BoundedStream, MessageCounts};
use crate::db::source::PostgresLocation;
use crate::db::ssl_mode::SslMode;
use crate::db::tls::{self, BegunStream, Encryption, TlsFault};
use socket2::{SockRef, TcpKeepalive};
use std::future::{Ready, ready};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio_postgres::config::{Host, LoadBalanceHosts, SslNegotiation};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_postgres::{Client, Config};

/// A socket of either family.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// The task that reads and writes for a client.
pub(super) type Driver = tokio_postgres::Connection<BoundedSocket, BegunSocket<BoundedSocket>>;
type BoundedSocket = BoundedStream<Box<dyn Socket>>;

/// A failure to connect.
#[derive(Debug)]
pub(super) enum Unconnected {
    Socket(io::Error),
    /// In the handshake of TLS.
    Handshake(io::Error),
    /// The settings of TLS must change: half a sentence with the fix.
    Tls(String),
    /// A file of the settings of TLS cannot be used.
    Settings(String),
    Postgres(tokio_postgres::Error),
}

impl Unconnected {
    /// Whether the same server may accept a connection that is encrypted otherwise.
    pub(super) fn may_be_encryption(&self) -> bool {
        match self {
            Self::Handshake(_) | Self::Tls(_) => true,
            Self::Postgres(error) => error.code().is_some_and(|code| code.code() == "28000"),
            Self::Socket(_) | Self::Settings(_) => false,
        }
    }
}

impl From<TlsFault> for Unconnected {
    fn from(fault: TlsFault) -> Self {
        match fault {
            TlsFault::Socket(error) => Self::Socket(error),
            TlsFault::Handshake(error) => Self::Handshake(error),
            TlsFault::Refused(what) => Self::Tls(what),
        }
    }
}

/// The address of a server.
#[derive(Clone, Debug)]
pub(super) struct Address {
    host: Host,
    port: u16,
    /// The name that the server's certificate must have.
    name: Option<String>,
}

impl Address {
    /// The ways to connect, in their order. `sslmode` is for TCP alone.
    pub(super) fn attempts(&self, mode: SslMode) -> &'static [Encryption] {
        match self.host {
            Host::Unix(_) => SslMode::Disable.attempts(),
            Host::Tcp(_) => mode.attempts(),
        }
    }
}

/// The addresses of a URL, in the order in which they are tried.
pub(super) fn addresses(config: &Config) -> Vec<Address> {
    let hosts = config.get_hosts();
    let ports = config.get_ports();
    let literal = config.get_hostaddrs();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
    let host = |at: usize| match literal.get(at) {
        Some(address) => Some(Host::Tcp(address.to_string())),
        None => hosts.get(at).cloned(),
    };
    let name = |at: usize| match hosts.get(at) {
        Some(Host::Tcp(name)) => Some(name.clone()),
        _ => None,
    };
    let count = hosts.len().max(literal.len());
    let mut all: Vec<Address> = (0..count)
        .filter_map(|at| Some(Address { host: host(at)?, port: port(at), name: name(at) }))
        .collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        let order = RandomState::new();
        all.sort_by_cached_key(|address| order.hash_one(format!("{address:?}")));
    }
    all
}

/// A connection to one server.
pub(super) async fn open(
    location: &PostgresLocation,
    address: &Address,
    received: &Arc<MessageCounts>,
    encryption: Encryption,
) -> Result<(Client, Driver), Unconnected> {
    let (socket, begun) = socket(location, address, encryption).await?;
    let mut config = location.config.clone();
    begun.tell(&mut config);
    let stream = BoundedStream::new(socket, received.clone());
    config.connect_raw(stream, begun).await.map_err(Unconnected::Postgres)
}

/// A socket that is connected, and encrypted if it has to be.
pub(super) async fn socket(
    location: &PostgresLocation,
    address: &Address,
    encryption: Encryption,
) -> Result<(Box<dyn Socket>, BegunTls), Unconnected> {
    let plain = BegunTls { is_encrypted: false, end_point: None };
    if encryption == Encryption::Never {
        return Ok((connected(&location.config, address).await.map_err(Unconnected::Socket)?, plain));
    }
    let tls = Arc::new(location.tls.configure().map_err(Unconnected::Settings)?);
    let socket = connected(&location.config, address).await.map_err(Unconnected::Socket)?;
    match tls::begin(socket, &location.tls, tls, address.name.as_deref(), encryption).await? {
        BegunStream::Plain(socket) => Ok((socket, plain)),
        BegunStream::Encrypted(stream) => {
            let begun = BegunTls { is_encrypted: true, end_point: tls::end_point(&stream) };
            Ok((stream, begun))
        }
    }
}

/// For the driver: TLS that has begun already, because the driver must not see the bytes before it.
pub(super) struct BegunTls {
    is_encrypted: bool,
    /// The data that bind the login to the certificate of the connection.
    end_point: Option<Vec<u8>>,
}

impl BegunTls {
    /// Lets the driver take the socket as it is.
    fn tell(&self, config: &mut Config) {
        if self.is_encrypted {
            // Without a question to the server: it was asked.
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
            config.ssl_negotiation(SslNegotiation::Direct);
        } else {
            config.ssl_mode(tokio_postgres::config::SslMode::Disable);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for BegunTls {
    type Stream = BegunSocket<S>;
    type Error = io::Error;
    type Future = Ready<io::Result<BegunSocket<S>>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(BegunSocket { stream, end_point: self.end_point }))
    }
}

/// An encrypted socket, for the driver.
#[derive(Debug)]
pub(super) struct BegunSocket<S> {
    stream: S,
    end_point: Option<Vec<u8>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for BegunSocket<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.end_point.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BegunSocket<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BegunSocket<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

async fn connected(config: &Config, address: &Address) -> io::Result<Box<dyn Socket>> {
    match &address.host {
        Host::Unix(folder) => {
            let path = folder.join(format!(".s.PGSQL.{}", address.port));
            Ok(Box::new(UnixStream::connect(path).await?))
        }
        Host::Tcp(host) => {
            let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
            for found in lookup_host((host.as_str(), address.port)).await? {
                match TcpStream::connect(found).await {
                    Ok(stream) => {
                        tune(&stream, config)?;
                        return Ok(Box::new(stream));
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}

fn tune(stream: &TcpStream, config: &Config) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(config.get_tcp_user_timeout().copied())?;
    if config.get_keepalives() {
        let mut keepalive = TcpKeepalive::new().with_time(config.get_keepalives_idle());
        if let Some(interval) = config.get_keepalives_interval() {
            keepalive = keepalive.with_interval(interval);
        }
        if let Some(retries) = config.get_keepalives_retries() {
            keepalive = keepalive.with_retries(retries);
        }
        socket.set_tcp_keepalive(&keepalive)?;
    }
    Ok(())
}
