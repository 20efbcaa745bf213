//! The native HTTP server over real sockets: both eras, streams, shutdown, clients that misbehave, tokens, TLS.
//!
//! Every test has a server of its own on a free port, on a thread of its own.

mod auth;
mod client;
mod hostile;
mod many;
mod sessions;
mod shutdown;
mod tls;
mod whole;

use client::Client;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::Resource;
use mcp_resources_runtime::server::{Builder, HttpBuilder, ReadRequest, ResourceServer};
use mcp_resources_runtime::transport::http::Running;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// A server that runs, and what its handlers tell a test.
struct Served {
    server: ResourceServer,
    running: Running,
    /// How many `demo://slow` may go on.
    gate: Arc<Semaphore>,
    /// How many `demo://slow` wait now.
    waiting: Arc<AtomicUsize>,
}

impl Served {
    fn new() -> Self {
        Self::with(|_| {}, |http| http)
    }

    fn with(limit: impl FnOnce(&mut Limits), set: impl FnOnce(HttpBuilder) -> HttpBuilder) -> Self {
        let mut limits = Limits::default();
        limit(&mut limits);
        let gate = Arc::new(Semaphore::new(0));
        let waiting = Arc::new(AtomicUsize::new(0));
        let server = resources(&gate, &waiting).limits(limits).build().unwrap();
        let http = set(server.http()).build().unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let running = http.run(vec![listener], 1, || {}).unwrap();
        Self { server, running, gate, waiting }
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
    }

    fn client(&self) -> Client {
        Client::connect(self.address())
    }

    /// Waits until so many handlers of `demo://slow` wait.
    fn wait_for(&self, handlers: usize) {
        eventually(|| self.waiting.load(Ordering::SeqCst) == handlers);
    }
}

/// Waits for what happens on another thread.
fn eventually(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn resources(gate: &Arc<Semaphore>, waiting: &Arc<AtomicUsize>) -> Builder {
    let gate = gate.clone();
    let waiting = waiting.clone();
    ResourceServer::builder("sockets", "1")
        .diagnostics(|_| {})
        .text("demo://constant", "constant")
        .resource("demo://hello", |_| async { "hello" })
        .resource("demo://whoami", |request: ReadRequest| async move {
            request.context.principal().map_or_else(String::new, |principal| principal.id().to_owned())
        })
        .resource("demo://headers", |request: ReadRequest| async move {
            let headers = request.context.headers().map(|headers| headers.iter().collect::<Vec<_>>());
            format!("{headers:?}")
        })
        .resource("demo://touch", |request: ReadRequest| async move {
            request.context.server().notify_updated("demo://hello").unwrap();
            "touched"
        })
        .resource(Resource::new("demo://large"), |_| async { "x".repeat(12 << 20) })
        .template("demo://item/{n}", |request: ReadRequest| async move {
            format!("item {}", request.param("n").unwrap_or_default())
        })
        .resource("demo://slow", move |_| {
            let gate = gate.clone();
            let waiting = Waiting::new(&waiting);
            async move {
                let passed = gate.acquire().await.map(|permit| permit.forget());
                drop(waiting);
                if passed.is_ok() { "slow" } else { "closed" }
            }
        })
}

/// Counts as long as it lives: also when its future is dropped.
struct Waiting(Arc<AtomicUsize>);

impl Waiting {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The memory that this process holds, in bytes; 0 where the system does not say.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or_default() * 4_096
}
