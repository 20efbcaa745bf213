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
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a server may take to listen.
const START: Duration = Duration::from_secs(30);

/// A server, and where it listens.
struct Listening {
    server: Server,
    address: SocketAddr,
}

impl Listening {
    /// Starts a server on a free port and waits until it takes connections.
    fn start(launch: &Launch) -> Result<Self, Box<dyn Error>> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
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
        Ok(Self { server, address })
    }
}
