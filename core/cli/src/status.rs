//! `--status`: health and metrics at an address of their own, for probes that have no token.
//!
//! Law: nothing else is served there. A request is one line that matters; the rest of its head is read and forgotten, and its
//! connection ends with the answer.

use crate::args::HttpAddress;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Maximum size of the head of a request in bytes.
const HEAD: usize = 8 * 1024;
/// Maximum number of connections at a time; others wait.
const CONNECTIONS: usize = 16;
/// The time for a request and its answer.
const TIME: Duration = Duration::from_secs(5);
/// The time to wait after a connection could not be accepted, such as without free descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// The metrics now, as text for Prometheus.
pub(crate) type MetricsFn = Arc<dyn Fn() -> String + Send + Sync>;

/// A socket that listens for probes.
pub(crate) struct StatusListener(TcpListener);

impl StatusListener {
    /// # Errors
    /// One sentence that names the option.
    pub(crate) async fn bind(address: &HttpAddress) -> Result<Self, String> {
        let HttpAddress::Tcp { host, port } = address else {
            return Err("--status: it must be a port, or a host with a port, such as 127.0.0.1:9100".into());
        };
        let bound = TcpListener::bind((host.as_str(), *port)).await;
        bound.map(Self).map_err(|error| {
            format!(
                "--status {host}:{port}: it cannot be used: {error}; name another port, or 0 for a free one"
            )
        })
    }

    pub(crate) fn address(&self) -> io::Result<std::net::SocketAddr> {
        self.0.local_addr()
    }

    /// Answers probes. Never ends.
    pub(crate) async fn serve(self, metrics: MetricsFn) {
        let room = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = self.0.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let metrics = metrics.clone();
            tokio::spawn(async move {
                // It fails if the client has left or is too slow.
                let _ = tokio::time::timeout(TIME, answer(stream, &metrics)).await;
                drop(permit);
            });
        }
    }
}

async fn answer(mut stream: TcpStream, metrics: &MetricsFn) -> io::Result<()> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut part).await?;
        if count == 0 || head.len() + count > HEAD {
            return Ok(());
        }
        head.extend_from_slice(part.get(..count).unwrap_or_default());
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    stream.write_all(&response(line, metrics)).await?;
    stream.shutdown().await
}

/// The answer to the first line of a request.
fn response(line: &[u8], metrics: &MetricsFn) -> Vec<u8> {
    let mut words = line.split(|byte| *byte == b' ');
    let (verb, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let (status, kind, body) = match (verb, path) {
        (b"GET" | b"HEAD", b"/health") => ("200 OK", "text/plain", "ok\n".to_owned()),
        (b"GET" | b"HEAD", b"/metrics") => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", metrics()),
        (_, b"/health" | b"/metrics") => ("405 Method Not Allowed", "text/plain", String::new()),
        _ => ("404 Not Found", "text/plain", String::new()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let body = if verb == b"HEAD" { String::new() } else { body };
    (head + &body).into_bytes()
}
