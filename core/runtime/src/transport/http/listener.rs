//! Listening: accepting connections, one task for each, and shutting down.

use super::HttpServer;
use super::body::BodyWriter;
use super::parked::{self, ReturnedSocket, StreamPlace};
use super::phase::{Either, ServerPhase, either, reach};
use super::places::{Place, Places};
use super::respond::Disconnected;
use super::socket;
use super::wire::CheckedStream;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp_resources_engine::principal::Principal;
use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
#[cfg(unix)]
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// Pause after an error of `accept`, such as too many descriptors: other connections may close meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// The most connections that can be waited for at once.
const MOST_CONNECTIONS: usize =
    if u32::MAX as usize > Semaphore::MAX_PERMITS { Semaphore::MAX_PERMITS } else { u32::MAX as usize };
/// The most header lines that hyper can hold; it reserves room for as many as it may read.
const MOST_HEADERS: usize = 16_384;
/// The time for writing the last answers at the end of a shutdown.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl HttpServer {
    /// Serves the connections of `listener`, until the shutdown by [`HttpServer::shutdown`] is complete. Needs a tokio
    /// runtime with I/O and time.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener) {
        self.serve_all(vec![listener.into()]).await;
    }

    /// Like [`HttpServer::serve`], for several listeners.
    pub async fn serve_all(self: &Arc<Self>, listeners: Vec<ServerSocket>) {
        let limits = self.endpoint.engine().limits();
        let max = limits.connections.clamp(1, MOST_CONNECTIONS);
        let places = Arc::new(Semaphore::new(max));
        let mut phase = self.phases.watch();
        self.timer_task.start(self);
        let by_client = Places::new(limits.connections_per_client);
        let connections = Connections { builder: self.builder(), server: self.clone(), places: by_client };
        let mut first = 0;
        loop {
            // Above the limit, connections wait in the kernel's queue.
            let next = async {
                let place = places.clone().acquire_owned().await.ok()?;
                Some((accept(&listeners, &mut first).await, place))
            };
            match either(reach(&mut phase, ServerPhase::Draining), next).await {
                Either::First(()) | Either::Second(None) => break,
                Either::Second(Some((Ok(socket), place))) => connections.start(socket, place),
                Either::Second(Some((Err(_), _))) => sleep(PAUSE).await,
            }
        }
        drop(listeners);
        let all = u32::try_from(max).unwrap_or(u32::MAX);
        let empty = || async { drop(places.acquire_many(all).await) };
        let _ = timeout(Duration::from_millis(limits.grace), empty()).await;
        for turn in self.endpoint.close(self.now()) {
            self.after(turn, None);
        }
        let _ = timeout(LAST_WORDS, empty()).await;
        self.phases.end();
        empty().await;
    }

    fn builder(&self) -> http1::Builder {
        let limits = self.endpoint.engine().limits();
        let mut builder = http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(Duration::from_millis(limits.idle_timeout))
            .max_headers(limits.headers.min(MOST_HEADERS))
            .max_buf_size(limits.head.max(8_192));
        builder
    }
}

/// A socket that accepts connections.
#[derive(Debug)]
pub enum ServerSocket {
    /// At an address.
    Tcp(TcpListener),
    /// At a path of this machine.
    #[cfg(unix)]
    Unix(UnixListener),
}

/// A connection of a client.
enum AcceptedSocket {
    Tcp(TcpStream, IpAddr),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl From<TcpListener> for ServerSocket {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

impl ServerSocket {
    fn poll_accept(&self, context: &mut Context<'_>) -> Poll<io::Result<AcceptedSocket>> {
        match self {
            Self::Tcp(listener) => listener
                .poll_accept(context)
                .map_ok(|(socket, client)| AcceptedSocket::Tcp(socket, client.ip())),
            #[cfg(unix)]
            Self::Unix(listener) => {
                listener.poll_accept(context).map_ok(|(socket, _)| AcceptedSocket::Unix(socket))
            }
        }
    }
}

/// The next connection of any listener. Each is asked first in turn, so that none has to wait for another.
async fn accept(listeners: &[ServerSocket], first: &mut usize) -> io::Result<AcceptedSocket> {
    poll_fn(|context| {
        let after = listeners.iter().skip(*first);
        let before = listeners.iter().take(*first);
        let mut accepted = after.chain(before).map(|listener| listener.poll_accept(context));
        let next = accepted.find(Poll::is_ready).unwrap_or(Poll::Pending);
        if next.is_ready() {
            *first = (*first + 1) % listeners.len().max(1);
        }
        next
    })
    .await
}

struct Connections {
    builder: http1::Builder,
    server: Arc<HttpServer>,
    places: Arc<Places>,
}

/// The data of one connection, for its lifetime.
struct OwnPlace {
    /// `None` on a Unix socket.
    client: Option<IpAddr>,
    _place: Option<Place>,
    _permit: OwnedSemaphorePermit,
}

impl Connections {
    fn start(&self, socket: AcceptedSocket, permit: OwnedSemaphorePermit) {
        match socket {
            AcceptedSocket::Tcp(socket, client) => self.start_tcp(socket, client, permit),
            #[cfg(unix)]
            AcceptedSocket::Unix(socket) => {
                let own = OwnPlace { client: None, _place: None, _permit: permit };
                let builder = self.builder.clone();
                let server = self.server.clone();
                tokio::spawn(async move { connection(&builder, server, socket, own).await });
            }
        }
    }

    fn start_tcp(&self, socket: TcpStream, client: IpAddr, permit: OwnedSemaphorePermit) {
        let builder = self.builder.clone();
        let server = self.server.clone();
        let Some(place) = self.places.take(client) else {
            if let Some(advice) = server.endpoint.crowded(server.now()) {
                server.event_handler.warn(&advice);
            }
            return;
        };
        let own = OwnPlace { client: Some(client), _place: Some(place), _permit: permit };
        let limits = server.endpoint.engine().limits();
        if socket::prepare(&socket, limits).is_err() {
            return;
        }
        tokio::spawn(async move {
            #[cfg(feature = "tls")]
            if server.tls.is_some() {
                // Boxed, so that plain connections do not need memory for the state of a handshake.
                return Box::pin(encrypted(builder, server, socket, own)).await;
            }
            connection(&builder, server, socket, own).await;
        });
    }
}

#[cfg(feature = "tls")]
async fn encrypted(builder: http1::Builder, server: Arc<HttpServer>, socket: TcpStream, own: OwnPlace) {
    let Some(tls) = server.tls.clone() else { return };
    let mut phase = server.phases.watch();
    let accepted = timeout(head_timeout(&server), tls.accept(socket));
    // A handshake has nothing to finish, so a shutdown does not wait for it.
    if let Either::Second(Ok(Ok(socket))) = either(reach(&mut phase, ServerPhase::Draining), accepted).await {
        connection(&builder, server, socket, own).await;
    }
}

fn head_timeout(server: &HttpServer) -> Duration {
    Duration::from_millis(server.endpoint.engine().limits().head_timeout)
}

/// Serves one connection until it ends, it is idle during a shutdown, or the shutdown ends.
async fn connection<S>(builder: &http1::Builder, server: Arc<HttpServer>, socket: S, own: OwnPlace)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut phase = server.phases.watch();
    let stall = Duration::from_millis(server.endpoint.engine().limits().write_timeout);
    let mut socket = CheckedStream::new(socket, head_timeout(&server), stall);
    // Of a connection that hyper gets again.
    let mut early = None;
    while let Some(parked) = requests(builder, &server, socket, early, own.client).await {
        socket = parked.socket;
        let finish = parked::finish(&mut socket, parked.writer, parked.early);
        match either(finish, reach(&mut phase, ServerPhase::Over)).await {
            Either::First(Some(next)) => early = Some(next),
            Either::First(None) | Either::Second(()) => return,
        }
    }
}

/// A connection with a stream that waits.
struct Parked<S> {
    socket: CheckedStream<S>,
    writer: BodyWriter,
    /// The beginning of the next request.
    early: Vec<u8>,
}

/// Lets hyper serve requests until the connection ends, or a stream waits. `early` is what came after the stream that
/// waited before; `None` on a new connection.
async fn requests<S>(
    builder: &http1::Builder,
    server: &Arc<HttpServer>,
    socket: CheckedStream<S>,
    early: Option<Bytes>,
    client: Option<IpAddr>,
) -> Option<Parked<S>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut phase = server.phases.watch();
    let anyone = Principal::anonymous(client);
    let place = Arc::new(StreamPlace::default());
    let was_served = early.is_some();
    let service = service_fn(|request: hyper::Request<Incoming>| {
        place.begin();
        let kept_in = parked::may_park(&request).then(|| place.clone());
        let answer = server.clone().respond_to(client, anyone.clone(), request);
        // Boxed while it runs: otherwise hyper reserves room for it in each connection, including idle ones and listeners.
        Box::pin(async move {
            let answer = answer.await?;
            Ok::<_, Disconnected>(match kept_in {
                Some(place) => answer.map(|body| body.kept_in(&place)),
                None => answer,
            })
        })
    });
    let io = TokioIo::new(ReturnedSocket::new(socket, early.unwrap_or_default(), place.clone()));
    // Boxed, so that it takes no room in a task whose stream waits.
    let mut serving = Box::new(builder.serve_connection(io, service));
    let served = poll_fn(|context| match Pin::new(&mut *serving).poll(context) {
        Poll::Ready(_ended) => Poll::Ready(None),
        Poll::Pending => place.take().map_or(Poll::Pending, |writer| Poll::Ready(Some(writer))),
    });
    let ended = either(served, reach(&mut phase, ServerPhase::Draining)).await;
    match ended {
        Either::First(None) => None,
        Either::First(Some(writer)) => {
            let http1::Parts { io, read_buf, .. } = serving.into_parts();
            // Copied, because hyper's buffer is large even where it is empty.
            Some(Parked { socket: io.into_inner().into_socket(), writer, early: read_buf.to_vec() })
        }
        // For hyper it is a new connection, whose first request it waits for; in fact it is idle.
        Either::Second(()) if was_served && !place.has_begun() => {
            let _ = serving.into_parts().io.into_inner().into_socket().shutdown().await;
            None
        }
        Either::Second(()) => {
            Pin::new(&mut *serving).graceful_shutdown();
            let _ = either(serving, reach(&mut phase, ServerPhase::Over)).await;
            None
        }
    }
}
