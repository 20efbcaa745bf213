//! A client that shows every byte: one connection, requests as they are wanted, responses as they come.

use serde_json::{Value, json};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(20);
pub(super) const MODERN: &str = "2026-07-28";
pub(super) const LEGACY: &str = "2025-11-25";

/// One connection. `S` is the socket, or TLS over it.
pub(super) struct Client<S = TcpStream> {
    pub(super) socket: S,
    incoming: Vec<u8>,
    /// The rest of the current chunk of a stream.
    chunk: usize,
    /// No chunk follows: the stream has a length.
    is_last: bool,
}

/// The head of a response.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

/// One event of a stream.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Event {
    pub(super) id: Option<String>,
    pub(super) data: String,
}

impl Head {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    fn is_events(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }
}

impl Event {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self::over(socket)
    }

    /// Says that nothing more will come.
    pub(super) fn half_close(&self) {
        self.socket.shutdown(Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub(super) fn over(socket: S) -> Self {
        Self { socket, incoming: Vec::new(), chunk: 0, is_last: false }
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    /// Sends a request: the verb, headers, and a body if it has one.
    pub(super) fn send(&mut self, verb: &str, headers: &[(&str, &str)], body: &str) {
        let mut request = format!("{verb} /mcp HTTP/1.1\r\nHost: localhost\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        if verb == "POST" {
            request += "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
            request += &format!("Content-Length: {}\r\n", body.len());
        }
        self.raw(format!("{request}\r\n{body}").as_bytes());
    }

    /// Sends a modern request.
    pub(super) fn ask(&mut self, id: u64, method: &str, mut params: Value, more: &[(&str, &str)]) {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params.get("uri").and_then(Value::as_str).map(String::from);
        let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        headers.extend(more);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send("POST", &headers, &body.to_string());
    }

    /// Reads a resource under 2026-07-28.
    pub(super) fn read(&mut self, id: u64, uri: &str) {
        self.ask(id, "resources/read", json!({"uri": uri}), &[]);
    }

    /// Sends a request in a session.
    pub(super) fn call(&mut self, session: &str, id: u64, method: &str, params: Value) {
        let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)];
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send("POST", &headers, &body.to_string());
    }

    /// Begins a session; returns its id.
    pub(super) fn initialize(&mut self) -> String {
        let session = self.introduce();
        let headers = [("Mcp-Session-Id", &*session), ("MCP-Protocol-Version", LEGACY)];
        let body = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.send("POST", &headers, &body.to_string());
        let head = self.head();
        assert_eq!(head.status, 202);
        self.body(&head);
        session
    }

    /// The first half of the handshake: returns the id of the session.
    pub(super) fn introduce(&mut self) -> String {
        let params = json!({"protocolVersion": LEGACY, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let body = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        self.send("POST", &[], &body.to_string());
        let head = self.head();
        assert_eq!(head.status, 200, "{:?}", self.body(&head));
        self.body(&head);
        head.header("mcp-session-id").unwrap().to_owned()
    }

    /// Opens the stream of a session, or goes on with one.
    pub(super) fn listen_to(&mut self, session: &str, last_event_id: Option<&str>) {
        let mut headers = vec![
            ("Accept", "text/event-stream"),
            ("Mcp-Session-Id", session),
            ("MCP-Protocol-Version", LEGACY),
        ];
        headers.extend(last_event_id.map(|id| ("Last-Event-ID", id)));
        self.send("GET", &headers, "");
        let head = self.head();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    }

    pub(super) fn head(&mut self) -> Head {
        let end = self.until(|bytes| find(bytes, b"\r\n\r\n"));
        let text = String::from_utf8(self.incoming.drain(..end + 4).collect()).unwrap();
        let mut lines = text.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header =
            |line: &str| line.split_once(':').map(|(name, value)| (name.into(), value.trim().into()));
        let head = Head { status, headers: lines.filter_map(header).collect() };
        let length = head.header("content-length").filter(|_| head.is_events());
        self.is_last = length.is_some();
        self.chunk = length.map_or(0, |text| text.parse().unwrap());
        head
    }

    /// The whole body of a response that is complete.
    pub(super) fn body(&mut self, head: &Head) -> String {
        let length: usize = head.header("content-length").map_or(0, |text| text.parse().unwrap());
        while self.incoming.len() < length {
            assert!(self.receive(), "the body breaks off");
        }
        String::from_utf8(self.incoming.drain(..length).collect()).unwrap()
    }

    /// A response with its JSON.
    pub(super) fn answer(&mut self) -> (u16, Value) {
        let head = self.head();
        let body = self.body(&head);
        (head.status, serde_json::from_str(&body).unwrap_or(Value::Null))
    }

    /// The text of the one content that a modern or legacy read gives.
    pub(super) fn text(&mut self) -> String {
        let (status, answer) = self.answer();
        assert_eq!(status, 200, "{answer}");
        answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The next event of a stream, comments left out; `None` at its end.
    pub(super) fn event(&mut self) -> Option<Event> {
        let start = Instant::now();
        let mut event = Event::default();
        let mut is_event = false;
        loop {
            let line = self.line()?;
            // Each comment keeps the socket from running out of time.
            assert!(start.elapsed() < PATIENCE, "no event, only comments");
            match line.split_once(": ").unwrap_or((line.trim_end_matches(':'), "")) {
                ("id", id) => event.id = Some(id.into()),
                ("data", data) => {
                    event.data += data;
                    is_event = true;
                }
                ("", "") if line.is_empty() && is_event => return Some(event),
                _ => {}
            }
        }
    }

    /// Reads up to the next comment of a stream, before which there is no event.
    pub(super) fn comment(&mut self) {
        loop {
            let line = self.line().expect("the stream is over");
            if line.starts_with(':') {
                return;
            }
            assert_eq!(line, "", "an event instead of a comment");
        }
    }

    /// The next event that is a message.
    pub(super) fn message(&mut self) -> Event {
        loop {
            let event = self.event().expect("the stream is over");
            if !event.data.is_empty() {
                return event;
            }
        }
    }

    /// One line of a stream; `None` at its end.
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            if self.chunk == 0 && self.is_last {
                return None;
            }
            if self.chunk == 0 {
                let end = self.until(|bytes| find(bytes, b"\r\n"));
                let size = String::from_utf8(self.incoming.drain(..end + 2).collect()).unwrap();
                if size.is_empty() || size == "\r\n" {
                    continue;
                }
                self.chunk = usize::from_str_radix(size.trim(), 16).unwrap();
                if self.chunk == 0 {
                    let end = self.until(|bytes| find(bytes, b"\r\n"));
                    self.incoming.drain(..end + 2);
                    return None;
                }
            }
            self.until(|bytes| (!bytes.is_empty()).then_some(0));
            self.chunk -= 1;
            match self.incoming.remove(0) {
                b'\n' => return Some(String::from_utf8(line).unwrap()),
                byte => line.push(byte),
            }
        }
    }

    /// Whether the server closes the connection before it says anything more.
    pub(super) fn is_closed(&mut self) -> bool {
        self.incoming.is_empty() && !self.receive()
    }

    /// All that comes until the server closes the connection.
    pub(super) fn everything(&mut self) -> Vec<u8> {
        while self.receive() {}
        std::mem::take(&mut self.incoming)
    }

    fn until<T>(&mut self, found: impl Fn(&[u8]) -> Option<T>) -> T {
        loop {
            if let Some(found) = found(&self.incoming) {
                return found;
            }
            assert!(self.receive(), "the server closed the connection");
        }
    }

    /// Reads once; `false` at the end.
    fn receive(&mut self) -> bool {
        let mut chunk = vec![0; 1 << 16];
        match self.socket.read(&mut chunk) {
            Ok(count) => {
                self.incoming.extend_from_slice(&chunk[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("{error}"),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
