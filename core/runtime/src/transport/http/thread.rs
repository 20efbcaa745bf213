//! Runs the server on threads of its own, for runtimes whose event loop belongs to another language.

use super::HttpServer;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Builder;

/// A running server. Dropping it stops the server without waiting.
#[derive(Debug)]
pub struct Running {
    server: Arc<HttpServer>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Serves the listeners of [`listen`](super::listen) on a thread of its own, or on several if `threads` is more than 1.
    /// `ended` is called there when the server has stopped.
    ///
    /// # Errors
    /// The system's error for the sockets or the threads; [`io::ErrorKind::InvalidInput`] without a listener.
    pub fn run(
        self: &Arc<Self>,
        listeners: Vec<TcpListener>,
        threads: usize,
        ended: impl FnOnce() + Send + 'static,
    ) -> io::Result<Running> {
        listeners.iter().try_for_each(|listener| listener.set_nonblocking(true))?;
        let first = listeners.first().ok_or(io::ErrorKind::InvalidInput)?;
        let address = first.local_addr()?;
        let mut builder =
            if threads > 1 { Builder::new_multi_thread() } else { Builder::new_current_thread() };
        let runtime = builder
            .worker_threads(threads.max(1))
            .thread_name("mcp-http")
            .enable_io()
            .enable_time()
            .build()?;
        let server = self.clone();
        let thread = std::thread::Builder::new().name("mcp-http".into()).spawn(move || {
            runtime.block_on(async {
                let listeners = listeners.into_iter().map(tokio::net::TcpListener::from_std);
                if let Ok(listeners) = listeners.map(|listener| listener.map(Into::into)).collect() {
                    server.serve_all(listeners).await;
                }
            });
            drop(runtime);
            ended();
        })?;
        Ok(Running { server: self.clone(), address, thread: Some(thread) })
    }
}

impl Running {
    /// The address of the first listener. All have the same port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shuts the server down: see [`HttpServer::shutdown`].
    pub fn shutdown(&self) {
        self.server.shutdown();
    }

    /// Waits until the server has stopped.
    ///
    /// # Errors
    /// Its thread panicked.
    pub fn wait(mut self) -> io::Result<()> {
        let ended = self.thread.take().map(JoinHandle::join);
        ended.unwrap_or(Ok(())).map_err(|_| io::Error::other("the thread of the server has panicked"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.server.shutdown();
        }
    }
}
