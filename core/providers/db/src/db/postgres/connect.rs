//! Opens connections to Postgres: the hosts of a URL, one after the other.
//!
//! Law: each host has its share of the time, so one that is silent does not keep the next from being tried.

use super::stream::{BoundedStream, MessageCounts};
use socket2::{SockRef, TcpKeepalive};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::time::timeout;
use tokio_postgres::config::{Host, LoadBalanceHosts};
use tokio_postgres::tls::NoTlsStream;
use tokio_postgres::{Client, Config, NoTls};

/// A socket of either family.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

/// The task that reads and writes for a client.
pub(super) type Driver = tokio_postgres::Connection<BoundedStream<Box<dyn Socket>>, NoTlsStream>;

/// Converts a failure to connect.
#[derive(Debug)]
pub(super) enum Unconnected {
    Socket(io::Error),
    Postgres(tokio_postgres::Error),
}

/// The address of a server.
#[derive(Clone, Debug)]
pub(super) struct Address {
    host: Host,
    port: u16,
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
    let count = hosts.len().max(literal.len());
    let mut all: Vec<Address> =
        (0..count).filter_map(|at| Some(Address { host: host(at)?, port: port(at) })).collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        let order = RandomState::new();
        all.sort_by_cached_key(|address| order.hash_one(format!("{address:?}")));
    }
    all
}

/// A connection to one server.
pub(super) async fn open(
    config: &Config,
    address: &Address,
    received: &Arc<MessageCounts>,
    limit: Duration,
) -> Result<(Client, Driver), Unconnected> {
    let opening = async {
        let socket = socket(config, address).await.map_err(Unconnected::Socket)?;
        let stream = BoundedStream::new(socket, received.clone());
        config.connect_raw(stream, NoTls).await.map_err(Unconnected::Postgres)
    };
    match timeout(limit, opening).await {
        Ok(opened) => opened,
        Err(_) => {
            Err(Unconnected::Socket(io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")))
        }
    }
}

/// A socket that is connected.
pub(super) async fn socket(config: &Config, address: &Address) -> io::Result<Box<dyn Socket>> {
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
