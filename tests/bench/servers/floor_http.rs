//! The floor of HTTP: one thread that waits for all connections, finds the id of each request, and answers a constant.
//! What sockets alone cost.
//!
//! It reads nothing else of a request, so every read is answered with the text of `bench://static`.

use rustix::event::epoll;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

const RESULT: &str =
    ",\"result\":{\"contents\":[{\"uri\":\"bench://static\",\"mimeType\":\"text/plain\",\"text\":\"";
const TEXT: &str = include_str!("static.txt");
const TAIL: &str = "\"}]}}";
/// The token of the listening socket; connections have theirs from 1.
const LISTENER: u64 = 0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [flag, port] = arguments.as_slice() else { return Err("usage: bench-floor-http --http PORT".into()) };
    if flag != "--http" {
        return Err("it speaks HTTP only".into());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.parse()?))?;
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), epoll::EventFlags::IN)?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut events = Vec::with_capacity(256);
    let mut chunk = vec![0; 1 << 16];
    loop {
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            let token = event.data.u64();
            if token == LISTENER {
                let (socket, _) = listener.accept()?;
                socket.set_nodelay(true)?;
                socket.set_nonblocking(true)?;
                connections.push(None);
                let data = epoll::EventData::new_u64(u64::try_from(connections.len())?);
                epoll::add(&epoll, &socket, data, epoll::EventFlags::IN)?;
                *connections.last_mut().ok_or("no place")? =
                    Some(Connection { socket, incoming: Vec::new() });
                continue;
            }
            let place = connections.get_mut(usize::try_from(token - 1)?).ok_or("no such connection")?;
            if place.as_mut().is_some_and(|connection| connection.turn(&mut chunk).is_err()) {
                *place = None;
            }
        }
    }
}

struct Connection {
    socket: TcpStream,
    incoming: Vec<u8>,
}

impl Connection {
    /// Reads once and answers what is whole; an error is the end.
    fn turn(&mut self, chunk: &mut [u8]) -> Result<(), Box<dyn Error>> {
        match self.socket.read(chunk) {
            Ok(0) => return Err("the end".into()),
            Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut out = Vec::new();
        while let Some(end) = whole(&self.incoming)? {
            let id = id(&self.incoming[..end]).unwrap_or(b"null");
            let body = RESULT.len() + TEXT.len() + TAIL.len() + id.len() + 22;
            write!(
                out,
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {body}\r\n\r\n"
            )?;
            out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
            out.extend_from_slice(id);
            out.extend_from_slice(RESULT.as_bytes());
            out.extend_from_slice(TEXT.as_bytes());
            out.extend_from_slice(TAIL.as_bytes());
            self.incoming.drain(..end);
        }
        Ok(self.socket.write_all(&out)?)
    }
}

/// Where the first request ends, if it is whole.
fn whole(bytes: &[u8]) -> Result<Option<usize>, Box<dyn Error>> {
    let Some(head) = memchr::memmem::find(bytes, b"\r\n\r\n") else { return Ok(None) };
    let name = b"Content-Length: ";
    let length = match memchr::memmem::find(&bytes[..head], name) {
        Some(at) => {
            let digits = bytes[at + name.len()..head].split(|byte| *byte == b'\r').next();
            std::str::from_utf8(digits.unwrap_or_default())?.parse()?
        }
        None => 0,
    };
    let end = head + 4 + length;
    Ok((bytes.len() >= end).then_some(end))
}

/// The number after `"id":`.
fn id(request: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::find(request, b"\"id\":")? + 5;
    let digits = request[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(&request[start..start + digits])
}
