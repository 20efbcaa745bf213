//! Load over HTTP: connections that are kept alive, each with one request outstanding, and listeners that wait.

mod listeners;
mod load;
mod wire;

pub(crate) use listeners::measure as measure_listeners;
pub(crate) use load::measure as measure_load;

use crate::process::Server;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// How long a server may take to listen: it may have to be built first.
const START: Duration = Duration::from_secs(120);

/// A server, and where it listens.
struct Listening {
    server: Server,
    address: SocketAddr,
}

impl Listening {
    /// Starts a server on a free port and waits until it takes connections.
    fn start(command: &str) -> Result<Self, Box<dyn Error>> {
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut server = Server::start(&command.replace("TRANSPORT", &format!("--http {}", address.port())))?;
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
