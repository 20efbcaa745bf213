//! Listening: connections in, one task each, and the way out.

use super::HttpServer;
use super::phase::{Either, Phase, either, reach};
use super::socket;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

/// After an error of `accept`, such as too many descriptors: others may close theirs meanwhile.
const PAUSE: Duration = Duration::from_millis(50);
/// What the last answers have to be written, when everything else is over.
const LAST_WORDS: Duration = Duration::from_millis(250);

impl HttpServer {
    /// Serves what `listener` accepts, until [`HttpServer::shutdown`] has run its course. Needs a tokio runtime with I/O
    /// and time.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let limits = self.endpoint.engine().limits();
        let most = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(most));
        let mut phase = self.phases.watch();
        self.keeper.start(self);
        let connections = Connections { builder: self.builder(), server: self.clone() };
        loop {
            // Above the limit, connections wait in the kernel's queue.
            let next = async {
                let place = places.clone().acquire_owned().await.ok()?;
                Some((listener.accept().await, place))
            };
            match either(reach(&mut phase, Phase::Draining), next).await {
                Either::First(()) | Either::Second(None) => break,
                Either::Second(Some((Ok((socket, _)), place))) => connections.start(socket, place),
                Either::Second(Some((Err(_), _))) => sleep(PAUSE).await,
            }
        }
        drop(listener);
        let all = u32::try_from(most).unwrap_or(u32::MAX);
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
            .header_read_timeout(Duration::from_millis(limits.head_timeout))
            .max_headers(limits.headers)
            .max_buf_size(limits.head.max(8_192));
        builder
    }
}

struct Connections {
    builder: http1::Builder,
    server: Arc<HttpServer>,
}

impl Connections {
    fn start(&self, socket: TcpStream, place: OwnedSemaphorePermit) {
        let (builder, server) = (self.builder.clone(), self.server.clone());
        let limits = server.endpoint.engine().limits();
        if socket::prepare(&socket, limits).is_err() {
            return;
        }
        tokio::spawn(async move {
            let _place = place;
            #[cfg(feature = "tls")]
            if server.tls.is_some() {
                // On the heap: the state of a handshake must not cost every plain connection its memory.
                return Box::pin(encrypted(builder, server, socket)).await;
            }
            connection(&builder, server, socket).await;
        });
    }
}

#[cfg(feature = "tls")]
async fn encrypted(builder: http1::Builder, server: Arc<HttpServer>, socket: TcpStream) {
    let Some(tls) = server.tls.clone() else { return };
    let patience = Duration::from_millis(server.endpoint.engine().limits().head_timeout);
    if let Ok(Ok(socket)) = timeout(patience, tls.accept(socket)).await {
        connection(&builder, server, socket).await;
    }
}

/// Serves one connection until it ends, the server drains and it is idle, or everything is over.
async fn connection<S>(builder: &http1::Builder, server: Arc<HttpServer>, socket: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut phase = server.phases.watch();
    // On the heap, for as long as it takes: hyper keeps room for it in each connection, idle ones and listeners too.
    let service =
        service_fn(move |request: hyper::Request<Incoming>| Box::pin(server.clone().respond(request)));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(socket), service));
    if let Either::First(_ended) = either(serving.as_mut(), reach(&mut phase, Phase::Draining)).await {
        return;
    }
    serving.as_mut().graceful_shutdown();
    let _ = either(serving, reach(&mut phase, Phase::Over)).await;
}
