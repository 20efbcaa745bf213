//! HTTP/1.1 as a client of the protocol speaks it: words requests, and takes responses out of what has come.

use crate::client::{self, shown};
use std::borrow::Cow;
use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for an answer outside the measured loop.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the head of a request says besides the body.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Terms<'a> {
    /// The first request of a legacy session.
    Start,
    /// In a legacy session, or in the legacy era of a server that keeps none.
    Legacy(Option<&'a str>),
    /// Complete in itself: the method, and the URI if one is read.
    Modern(&'static str, Option<&'a str>),
}

/// One response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    is_stream: bool,
    body: Vec<u8>,
}

impl Response {
    /// The JSON of the one message it has: its body, or the data of its last event.
    pub(crate) fn message(&self) -> Result<Cow<'_, [u8]>, Box<dyn Error>> {
        if self.status != 200 {
            return Err(format!("status {}: {}", self.status, shown(&self.body)).into());
        }
        if !self.is_stream {
            return Ok(Cow::Borrowed(&self.body));
        }
        let lines = self.body.split(|byte| *byte == b'\n');
        let data =
            lines.filter_map(|line| line.strip_prefix(b"data:")).rfind(|data| !data.trim_ascii().is_empty());
        Ok(Cow::Borrowed(data.ok_or("a stream without an event")?.trim_ascii()))
    }
}

/// One connection, and what has come on it.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) socket: TcpStream,
    /// Where it leads, for `Host`.
    pub(crate) host: SocketAddr,
    incoming: Vec<u8>,
}

impl Wire {
    pub(crate) fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { socket, host: address, incoming: Vec::new() })
    }

    /// Sends a request and waits for its response.
    pub(crate) fn ask(&mut self, terms: Terms<'_>, body: &[u8]) -> Result<Response, Box<dyn Error>> {
        let mut request = Vec::new();
        post(&mut request, self.host, terms, body)?;
        self.socket.write_all(&request)?;
        let mut chunk = [0; 4096];
        loop {
            if let Some(response) = self.next()? {
                return Ok(response);
            }
            if !self.receive(&mut chunk)? {
                return Err("the server closed the connection".into());
            }
        }
    }

    /// Opens the legacy era; returns the id of the session, if the server keeps one.
    pub(crate) fn handshake(&mut self) -> Result<Option<String>, Box<dyn Error>> {
        let response = self.ask(Terms::Start, client::INITIALIZE)?;
        response.message()?;
        let terms = Terms::Legacy(response.session.as_deref());
        let accepted = self.ask(terms, client::INITIALIZED)?;
        if accepted.status != 202 {
            return Err(format!("initialized was answered with {}", accepted.status).into());
        }
        Ok(response.session)
    }

    /// Reads what there is; `false` at the end.
    pub(crate) fn receive(&mut self, chunk: &mut [u8]) -> Result<bool, Box<dyn Error>> {
        match self.socket.read(chunk) {
            Ok(0) => Ok(false),
            Ok(count) => {
                self.incoming.extend_from_slice(&chunk[..count]);
                Ok(true)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(error) => Err(error.into()),
        }
    }

    /// What has come and was not taken.
    pub(crate) fn waiting(&mut self) -> &mut Vec<u8> {
        &mut self.incoming
    }

    /// Takes the next whole response.
    pub(crate) fn next(&mut self) -> Result<Option<Response>, Box<dyn Error>> {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut head = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(start) = head.parse(&self.incoming)? else { return Ok(None) };
        let text = |name: &str| {
            let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
            found.and_then(|header| std::str::from_utf8(header.value).ok())
        };
        let is_chunked =
            text("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked"));
        let length: usize = text("content-length").map_or(Ok(0), str::parse)?;
        let is_stream = text("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
        let session = text("mcp-session-id").map(String::from);
        let status = head.code.unwrap_or_default();
        let rest = &self.incoming[start..];
        let (body, used) = if is_chunked {
            let Some(found) = unchunk(rest)? else { return Ok(None) };
            found
        } else if rest.len() < length {
            return Ok(None);
        } else {
            (rest[..length].to_vec(), length)
        };
        self.incoming.drain(..start + used);
        Ok(Some(Response { status, session, is_stream, body }))
    }
}

/// The whole body behind a chunked coding, and how long that was.
fn unchunk(coded: &[u8]) -> Result<Option<(Vec<u8>, usize)>, &'static str> {
    let mut body = Vec::new();
    let mut at = 0;
    loop {
        let size = httparse::parse_chunk_size(&coded[at..]).map_err(|_| "a chunk without a size")?;
        let httparse::Status::Complete((line, size)) = size else { return Ok(None) };
        let start = at + line;
        let size = usize::try_from(size).map_err(|_| "a chunk too large")?;
        let Some(chunk) = coded.get(start..start + size + 2) else { return Ok(None) };
        at = start + size + 2;
        if size == 0 {
            return Ok(Some((body, at)));
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

/// Appends a POST.
pub(crate) fn post(
    out: &mut Vec<u8>,
    host: SocketAddr,
    terms: Terms<'_>,
    body: &[u8],
) -> std::io::Result<()> {
    write!(out, "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n")?;
    out.extend_from_slice(b"Accept: application/json, text/event-stream\r\n");
    say(out, terms)?;
    write!(out, "Content-Length: {}\r\n\r\n", body.len())?;
    out.extend_from_slice(body);
    Ok(())
}

/// Appends the GET that opens the stream of a legacy session.
pub(crate) fn get(out: &mut Vec<u8>, host: SocketAddr, session: &str) -> std::io::Result<()> {
    write!(out, "GET /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n")?;
    say(out, Terms::Legacy(Some(session)))?;
    out.extend_from_slice(b"\r\n");
    Ok(())
}

fn say(out: &mut Vec<u8>, terms: Terms<'_>) -> std::io::Result<()> {
    match terms {
        Terms::Start => Ok(()),
        Terms::Legacy(session) => {
            write!(out, "MCP-Protocol-Version: {}\r\n", client::LEGACY)?;
            session.map_or(Ok(()), |session| write!(out, "Mcp-Session-Id: {session}\r\n"))
        }
        Terms::Modern(method, name) => {
            write!(out, "MCP-Protocol-Version: {}\r\nMcp-Method: {method}\r\n", client::MODERN)?;
            name.map_or(Ok(()), |name| write!(out, "Mcp-Name: {name}\r\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Wire {
        let listener = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut wire = Wire::connect(listener.local_addr().unwrap()).unwrap();
        wire.waiting().extend_from_slice(bytes);
        wire
    }

    #[test]
    fn responses_come_whole_or_not_at_all() {
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert!(of(&bytes[..bytes.len() - 1]).next().unwrap().is_none());
        assert_eq!(*of(bytes).next().unwrap().unwrap().message().unwrap(), *b"{}");
    }

    #[test]
    fn the_last_event_of_a_stream_is_its_answer() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let body = "b\r\ndata: {1}\n\n\r\n9\r\ndata: {2}\r\n2\r\n\n\n\r\n0\r\n\r\n";
        let response = of(format!("{head}{body}").as_bytes()).next().unwrap().unwrap();
        assert_eq!(*response.message().unwrap(), *b"{2}");
    }

    #[test]
    fn another_status_is_no_answer() {
        let mut wire = of(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        assert!(wire.next().unwrap().unwrap().message().is_err());
    }
}
