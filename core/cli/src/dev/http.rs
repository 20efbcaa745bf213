//! Clients of the server under development over HTTP. The server itself is on pipes.
//!
//! ```text
//!   POST initialize ──▶ a session, with a process of its own      POST, GET, DELETE with its id ──▶ that session
//!   POST of a request that is complete in itself ──▶ a process that all such requests share
//! ```
//!
//! Law: clients are not authenticated, so other machines and pages of other sites are refused.

use super::messages::{RelayedKind, RelayedMessage, RequestKind};
use super::relay::{self, DevState, RelayHandle};
use crate::args::HttpAddress;
use crate::body::collected;
use crate::error::Failed;
use crate::output;
use http_body::{Body, Frame};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};

/// The path of the endpoint.
const PATH: &str = "/mcp";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The largest message of a client, in bytes.
const MOST_MESSAGE: usize = 64 << 20;
/// Most sessions; a further one ends the oldest.
const MOST_SESSIONS: usize = 32;
/// Most processes that are shared by requests without a session. One takes several requests, but no two with one id.
const MOST_SHARED: usize = 16;
/// Most connections.
const MOST_CONNECTIONS: usize = 512;
/// Most messages that wait for a stream.
const MOST_LINES: usize = 64;
/// The pause after a connection that could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// The sessions and processes of one endpoint.
struct DevEndpoint {
    command: Arc<[String]>,
    states: watch::Sender<DevState>,
    sessions: Mutex<VecDeque<(String, RelayHandle)>>,
    shared: Mutex<Vec<RelayHandle>>,
}

/// Listens on this machine.
///
/// # Errors
/// The address is another machine's, or cannot be had.
pub(super) async fn open(address: &HttpAddress) -> Result<TcpListener, Failed> {
    let HttpAddress::Tcp { host, port } = address else {
        return Err(Failed::usage("dev serves at [HOST:]PORT alone; write --http 8000"));
    };
    if !is_own_host(host) {
        return Err(Failed::usage(format!(
            "dev serves this machine alone, because nobody is asked who they are; write --http {port}, or use serve --http \
             {host}:{port}"
        )));
    }
    let opened = TcpListener::bind((host.as_str(), *port)).await;
    let opened = opened.map_err(|error| Failed::new(format!("{host}:{port}: {error}")))?;
    output::say("note", &format!("serving at http://{}{PATH}", opened.local_addr()?));
    Ok(opened)
}

/// Serves until it is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    command: Arc<[String]>,
    states: watch::Sender<DevState>,
) -> Result<(), Failed> {
    let endpoint =
        Arc::new(DevEndpoint { command, states, sessions: Mutex::default(), shared: Mutex::default() });
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((socket, _)) => {
                let endpoint = endpoint.clone();
                tokio::spawn(async move {
                    endpoint.connection(socket).await;
                    drop(place);
                });
            }
            // Too many open files, for example: another one may be closed soon.
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

impl DevEndpoint {
    async fn connection(self: Arc<Self>, socket: TcpStream) {
        // Without it, small answers come later.
        let _ = socket.set_nodelay(true);
        let service = service_fn(move |request| {
            let endpoint = self.clone();
            async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new());
        // An error is the end of a connection.
        let _ = builder.serve_connection(TokioIo::new(socket), service).await;
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<DevBody> {
        let text =
            |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let is_own =
            |origin: &str| origin.split_once("://").is_some_and(|(_, host)| is_own_host(without_port(host)));
        if !text(HOST).is_some_and(|host| is_own_host(without_port(host))) || !text(ORIGIN).is_none_or(is_own)
        {
            return plain(StatusCode::FORBIDDEN, "dev serves this machine alone");
        }
        if request.uri().path() != PATH {
            return plain(StatusCode::NOT_FOUND, "the endpoint is /mcp");
        }
        let session = text(SESSION).map(str::to_owned);
        match *request.method() {
            Method::POST => self.post(session, request.into_body()).await,
            Method::GET => match session.as_deref().map(|id| self.session(id)) {
                None => plain(StatusCode::METHOD_NOT_ALLOWED, "a stream belongs to a session"),
                Some(None) => plain(StatusCode::NOT_FOUND, "there is no such session"),
                Some(Some(_)) if !text(ACCEPT).is_some_and(|kinds| kinds.contains(EVENTS)) => {
                    plain(StatusCode::NOT_ACCEPTABLE, "a stream is text/event-stream")
                }
                Some(Some(relay)) => {
                    let (sink, lines) = mpsc::channel(MOST_LINES);
                    relay.listen(sink).await;
                    streamed(DevBody::Stream { first: None, lines, until: None })
                }
            },
            Method::DELETE => {
                let mut sessions = lock(&self.sessions);
                let before = sessions.len();
                sessions.retain(|(id, _)| Some(id) != session.as_ref());
                match sessions.len() < before {
                    true => plain(StatusCode::OK, ""),
                    false => plain(StatusCode::NOT_FOUND, "there is no such session"),
                }
            }
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "write POST, GET or DELETE"),
        }
    }

    async fn post(&self, session: Option<String>, body: Incoming) -> Response<DevBody> {
        let Some(line) = collected_line(body).await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "a message has at most 64 MiB");
        };
        let Some(message) = RelayedMessage::read(&line) else {
            return plain(StatusCode::BAD_REQUEST, "the body is no message");
        };
        let RelayedKind::Request(kind) = message.kind else {
            // Without a session it is about nothing.
            if let Some(session) = session {
                let Some(relay) = self.session(&session) else {
                    return plain(StatusCode::NOT_FOUND, "there is no such session");
                };
                relay.send(line, mpsc::channel(1).0).await;
            }
            return plain(StatusCode::ACCEPTED, "");
        };
        let id = message.id.unwrap_or_default();
        let (relay, begun) = match (kind, session) {
            (RequestKind::Initialize, _) => match self.begin() {
                Some((session, relay)) => (relay, Some(session)),
                None => return plain(StatusCode::INTERNAL_SERVER_ERROR, "the system has no random numbers"),
            },
            (_, Some(session)) => match self.session(&session) {
                Some(relay) => (relay, None),
                None => return plain(StatusCode::NOT_FOUND, "there is no such session"),
            },
            (_, None) => match self.shared(&id) {
                Some(relay) => (relay, None),
                None => return plain(StatusCode::SERVICE_UNAVAILABLE, "too many requests have the same id"),
            },
        };
        let (sink, mut lines) = mpsc::channel(MOST_LINES);
        relay.send(line, sink).await;
        let Some(first) = lines.recv().await else {
            return plain(StatusCode::INTERNAL_SERVER_ERROR, "the request has no answer");
        };
        let mut response = match is_answer(&first, &id) {
            true => {
                let mut response = Response::new(DevBody::Whole(Some(first.into())));
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                response
            }
            false => streamed(DevBody::Stream { first: Some(first), lines, until: Some(id) }),
        };
        if let Some(session) = begun.and_then(|session| HeaderValue::from_str(&session).ok()) {
            response.headers_mut().insert(SESSION, session);
        }
        response
    }

    fn session(&self, id: &str) -> Option<RelayHandle> {
        lock(&self.sessions).iter().find(|(own, _)| own == id).map(|(_, relay)| relay.clone())
    }

    /// A new session.
    fn begin(&self) -> Option<(String, RelayHandle)> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).ok()?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let (relay, _) = relay::start(self.command.clone(), self.states.subscribe());
        let mut sessions = lock(&self.sessions);
        sessions.push_back((id.clone(), relay.clone()));
        if sessions.len() > MOST_SESSIONS {
            sessions.pop_front();
        }
        Some((id, relay))
    }

    /// A process for a request without a session, in which its id is free.
    fn shared(&self, id: &str) -> Option<RelayHandle> {
        let mut shared = lock(&self.shared);
        if let Some(free) = shared.iter().find(|relay| relay.reserve(id)) {
            return Some(free.clone());
        }
        if shared.len() >= MOST_SHARED {
            return None;
        }
        let (relay, _) = relay::start(self.command.clone(), self.states.subscribe());
        relay.reserve(id);
        shared.push(relay.clone());
        Some(relay)
    }
}

/// The body of a response.
enum DevBody {
    Whole(Option<Bytes>),
    /// Events, until the answer to the request with this id.
    Stream {
        first: Option<Vec<u8>>,
        lines: mpsc::Receiver<Vec<u8>>,
        until: Option<String>,
    },
    Ended,
}

impl Body for DevBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let own = self.get_mut();
        let line = match own {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Ended => return Poll::Ready(None),
            Self::Stream { first, lines, .. } => match first.take() {
                Some(first) => Some(first),
                None => std::task::ready!(lines.poll_recv(cx)),
            },
        };
        let Some(line) = line else { return Poll::Ready(None) };
        let is_last = matches!(own, Self::Stream { until: Some(id), .. } if is_answer(&line, id));
        if is_last {
            *own = Self::Ended;
        }
        let event = [b"event: message\ndata: ", line.trim_ascii_end(), b"\n\n"].concat();
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}

const EVENTS: &str = "text/event-stream";

fn streamed(body: DevBody) -> Response<DevBody> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(hyper::header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn plain(status: StatusCode, text: &'static str) -> Response<DevBody> {
    let mut response = Response::new(DevBody::Whole(Some(Bytes::from_static(text.as_bytes()))));
    *response.status_mut() = status;
    response
}

/// Whether a line answers the request with this id.
fn is_answer(line: &[u8], id: &str) -> bool {
    RelayedMessage::read(line)
        .is_some_and(|message| message.kind == RelayedKind::Answer && message.id.as_deref() == Some(id))
}

/// A body as one line; `None` if it is too large or cut off.
async fn collected_line(body: Incoming) -> Option<Vec<u8>> {
    let mut line = collected(body, MOST_MESSAGE).await?;
    // A line end between the parts of a message means nothing.
    line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    line.push(b'\n');
    Some(line)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

fn is_own_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_told_apart() {
        for (host, is_own) in [
            ("localhost:80", true),
            ("127.0.0.1", true),
            ("[::1]:8000", true),
            ("evil.example", false),
            ("localhost.evil.example:80", false),
            ("192.168.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_own_host(without_port(host)), is_own, "{host}");
        }
    }
}
