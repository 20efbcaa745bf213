//! Load over HTTP: connections that are kept alive, each with one request outstanding; requests at a fixed rate; and
//! listeners that wait.

mod listeners;
mod load;
mod open;
mod peer;
mod wire;

pub(crate) use listeners::measure as measure_listeners;
pub(crate) use load::measure as measure_load;
pub(crate) use open::measure as measure_open;

use crate::process::{Launch, Server};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, getsockname, setsockopt, socket, sockopt::ReuseAddr,
};
use std::error::Error;
use std::net::{SocketAddr, SocketAddrV4, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(30);

/// A server, and where it listens.
struct Listening {
    server: Server,
    address: SocketAddr,
    /// Bound, not listened on, so that the system gives the port to no other process.
    _reserved: OwnedFd,
}

impl Listening {
    /// Starts a server on a free port and waits until it takes connections.
    fn start(launch: &Launch) -> Result<Self, Box<dyn Error>> {
        let (reserved, address) = reserve_port()?;
        let mut server = Server::start(launch, Some(address.port()))?;
        let since = Instant::now();
        while TcpStream::connect(address).is_err() {
            if let Some(obituary) = server.ended()? {
                return Err(obituary.into());
            }
            if since.elapsed() > START {
                return Err("the server does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(Self { server, address, _reserved: reserved })
    }
}

/// A socket that holds a free port, and its address. A server that sets `SO_REUSEADDR` may listen there.
fn reserve_port() -> nix::Result<(OwnedFd, SocketAddr)> {
    let reserved = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&reserved, ReuseAddr, &true)?;
    bind(reserved.as_raw_fd(), &SockaddrIn::new(127, 0, 0, 1, 0))?;
    let address: SockaddrIn = getsockname(reserved.as_raw_fd())?;
    Ok((reserved, SocketAddrV4::from(address).into()))
}
