//! Sockets that listen: on every address of a name, with room for many connections that are not accepted yet.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};

/// Maximum number of connections that wait in the system until they are accepted. The system may allow fewer.
const BACKLOG: i32 = 4_096;
/// Maximum number of free ports tried, because a port may be taken on one of the addresses only.
const TRIES: usize = 16;

/// Listens on every address that `address` resolves to, such as `127.0.0.1` and `::1` for `localhost`, on the same port; port 0
/// is any that is free on all of them. Addresses of a kind that this machine does not have are left out. Of several ports, the
/// first one that is free is used. The listeners block.
///
/// # Errors
/// The system's error; [`io::ErrorKind::InvalidInput`] if there is no address.
pub fn listen(address: impl ToSocketAddrs) -> io::Result<Vec<TcpListener>> {
    listen_on(&address.to_socket_addrs()?.collect::<Vec<_>>())
}

/// Like [`listen`], for addresses that were resolved before.
pub(crate) fn listen_on(addresses: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let mut refused = io::Error::new(io::ErrorKind::InvalidInput, "there is no address to listen on");
    let mut tried: Vec<u16> = Vec::new();
    for port in addresses.iter().map(SocketAddr::port) {
        if tried.contains(&port) {
            continue;
        }
        tried.push(port);
        let group: Vec<SocketAddr> = addresses.iter().copied().filter(|other| other.port() == port).collect();
        for _ in 0..if port == 0 { TRIES } else { 1 } {
            match group_of(&group) {
                Ok(listeners) => return Ok(listeners),
                Err(error) => refused = error,
            }
            if refused.kind() != io::ErrorKind::AddrInUse {
                break;
            }
        }
    }
    Err(refused)
}

/// Listens on all of these addresses, which have one port.
fn group_of(group: &[SocketAddr]) -> io::Result<Vec<TcpListener>> {
    let mut listeners = Vec::<TcpListener>::new();
    let mut bound = Vec::new();
    let mut refused: io::Error = io::ErrorKind::AddrNotAvailable.into();
    for address in group {
        let mut address = *address;
        if let Some(first) = listeners.first() {
            address.set_port(first.local_addr()?.port());
        }
        if bound.contains(&address.ip()) {
            continue;
        }
        match listener(address, group.len() > 1) {
            Ok(listener) => listeners.push(listener),
            Err(error) if is_absent(&error) => refused = error,
            Err(error) => return Err(error),
        }
        bound.push(address.ip());
    }
    if listeners.is_empty() { Err(refused) } else { Ok(listeners) }
}

/// Whether this machine has no such address, or no addresses of its kind.
fn is_absent(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = error.raw_os_error();
    error.kind() == io::ErrorKind::AddrNotAvailable || number == Some(Errno::AFNOSUPPORT.raw_os_error())
}

fn listener(address: SocketAddr, is_one_of_several: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    if is_one_of_several && address.is_ipv6() {
        // Its own addresses alone, so that it is not in the way of a listener for the others.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, Ipv6Addr, TcpStream};
    use std::time::Duration;

    /// Whether this machine has the address `::1`.
    fn has_ipv6() -> bool {
        TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
    }

    #[test]
    fn every_address_of_a_name_is_listened_on() {
        let localhost = [(Ipv6Addr::LOCALHOST, 0).into(), (Ipv4Addr::LOCALHOST, 0).into()];
        let listeners = listen_on(&localhost).unwrap();
        let ports: Vec<u16> =
            listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        assert_eq!(ports, vec![ports[0]; if has_ipv6() { 2 } else { 1 }]);
        for listener in &listeners {
            TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        }
        if has_ipv6() {
            // Somebody else has one of them: clients of the name would reach another server.
            let taken = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
            let port = taken.local_addr().unwrap().port();
            let both = [(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()];
            assert_eq!(listen_on(&both).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        }
        let absent = [("192.0.2.1:0").parse().unwrap(), (Ipv4Addr::LOCALHOST, 0).into()];
        assert_eq!(listen_on(&absent).unwrap().len(), 1);
        assert_eq!(listen_on(&absent[..1]).unwrap_err().kind(), io::ErrorKind::AddrNotAvailable);
        assert_eq!(listen_on(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn of_several_ports_the_first_free_one_is_used() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let listeners = listen(&[taken.local_addr().unwrap(), (Ipv4Addr::LOCALHOST, 0).into()][..]).unwrap();
        assert_eq!(listeners.len(), 1);
    }

    /// Connections that come at once wait for their turn, and not for another try of their client a second later.
    #[test]
    fn many_connections_wait_to_be_accepted() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn");
        let most = most.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(128);
        let listeners = listen((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listeners[0].local_addr().unwrap();
        // The kernel does not answer a connection beyond the queue, which nobody empties here.
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_secs(20)).unwrap();
        let waiting: Vec<TcpStream> = (0..400.min(most)).map(connect).collect();
        assert_eq!(waiting.len(), 400.min(most));
    }
}
