//! The native HTTP server: its threads read, answer what the engine can, and write; the event loop runs the handlers.
//!
//! Law: a thread of the server never waits for the interpreter. It leaves what it has in the loop's inbox and rings a
//! bell that the loop waits for, once for a batch.

use crate::peer::{Peer, Runtime};
use crate::request::Work;
use crate::rules;
use crate::server::Server;
use crate::web::{Item, Way, Web, WebPeer};
use mcp_resources::connection::Events;
use mcp_resources::http::{Denied, Exchange, Verified};
use mcp_resources::hub::ConnectionId;
use mcp_resources::principal::Principal;
use mcp_resources::transport::http as core;
use mcp_resources::transport::http::{Host, HttpOptions, Running, TokenCheck, Verifier, Verifying};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::oneshot;

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct HttpServer {
    web: Arc<Web>,
    ear: Mutex<PipeReader>,
    running: Mutex<Option<Running>>,
}

/// What wakes the loop from any thread.
pub(crate) struct Bell(PipeWriter);

/// A token that waits for its verifier.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Verification(Mutex<Option<oneshot::Sender<Result<TokenCheck, Denied>>>>);

/// The author's functions, as the server's threads reach them.
struct Functions(Weak<Web>);

#[pymethods]
impl HttpServer {
    /// On the event loop of `driver`. `options` are those of an endpoint.
    #[new]
    fn new(server: &Server, driver: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let host = server.host.clone();
        let web = Web::new(Runtime::new(host.clone(), driver, true)?);
        let mut given = HttpOptions::new(rules::read(options)?);
        if given.rules.auth.is_some() {
            given.verifier = Some(Arc::new(Functions(Arc::downgrade(&web))));
        }
        let functions = Arc::new(Functions(Arc::downgrade(&web)));
        let made = core::HttpServer::new(&host.engine()?, host.clock.clone(), given, functions);
        let made = made.map_err(|error| rules::refused(driver.py(), &error))?;
        let (ear, bell) = io::pipe()?;
        web.settle(Way::Native(made, Bell(bell)));
        host.serve(&web);
        Ok(Self { web, ear: Mutex::new(ear), running: Mutex::default() })
    }

    /// Starts to listen, on threads of its own. Returns the port.
    fn listen(&self, py: Python<'_>, host: &str, port: u16) -> PyResult<u16> {
        let listener = py.detach(|| TcpListener::bind((host, port)))?;
        let web = Arc::downgrade(&self.web);
        let ended = move || {
            if let Some(web) = web.upgrade() {
                leave(&web, [Item::Ended]);
            }
        };
        let Some((server, _)) = self.web.native() else { return Ok(port) };
        let running = server.run(listener, 1, ended)?;
        let port = running.address().port();
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = Some(running);
        Ok(port)
    }

    /// The descriptor that is readable when the loop must call `wake`.
    #[getter]
    fn bell(&self) -> i32 {
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).as_raw_fd()
    }

    /// A thread has something for the loop.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        // One byte for one ring: the pipe is never full, and this never waits.
        self.ear.lock().unwrap_or_else(PoisonError::into_inner).read_exact(&mut [0])?;
        self.web.work(py)
    }

    /// No new request comes in; what is in flight has its grace. The driver hears of the end.
    fn shutdown(&self, py: Python<'_>) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = &*running {
            py.detach(|| running.shutdown());
        }
    }

    /// Lets go of the threads.
    fn close(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// How many handlers are suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.web.runtime.suspended()
    }
}

#[pymethods]
impl Verification {
    /// It stands for `subject`, with these scopes; until `expires` (milliseconds since 1970), if that may be relied on.
    fn accept(&self, subject: String, scopes: Vec<String>, expires: Option<u64>) {
        let verified = Verified { principal: Principal::new(subject), scopes };
        self.answer(Ok(TokenCheck { verified, expires }));
    }

    /// It is not good, or that cannot be found out now.
    fn refuse(&self, unavailable: bool) {
        self.answer(Err(if unavailable { Denied::Unavailable } else { Denied::Invalid }));
    }
}

impl Verification {
    fn answer(&self, found: Result<TokenCheck, Denied>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // The client may be gone.
            let _ = sender.send(found);
        }
    }
}

impl Bell {
    pub(crate) fn ring(&self) {
        // Fails only when nobody listens any longer.
        let _ = (&self.0).write_all(&[0]);
    }
}

impl Host for Functions {
    fn handle(&self, connection: ConnectionId, exchange: Option<&Exchange>, events: Events<'_>) {
        let Some(web) = self.0.upgrade() else { return };
        web.mark(connection, &events);
        let own = WebPeer { web: web.clone(), connection, exchange: exchange.cloned() };
        let peer: Arc<dyn Peer> = Arc::new(own);
        let items: Vec<_> = events
            .into_iter()
            .filter_map(|event| Some(Item::Work(peer.clone(), Box::new(Work::of(event).into_owned()?))))
            .collect();
        if !items.is_empty() {
            leave(&web, items);
        }
    }

    fn woken(&self, connections: &[ConnectionId]) {
        if let Some(web) = self.0.upgrade() {
            leave(&web, [Item::Woken(connections.to_vec())]);
        }
    }

    fn misuse(&self, what: &str) {
        if let Some(web) = self.0.upgrade() {
            leave(&web, [Item::Misuse(what.to_owned())]);
        }
    }
}

impl Verifier for Functions {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(async move {
            let (sender, answer) = oneshot::channel();
            let web = self.0.upgrade().ok_or(Denied::Unavailable)?;
            leave(&web, [Item::Verify(token.to_owned(), Verification(Mutex::new(Some(sender))))]);
            drop(web);
            answer.await.unwrap_or(Err(Denied::Unavailable))
        })
    }
}

/// Leaves something for the loop, and rings.
fn leave(web: &Arc<Web>, items: impl IntoIterator<Item = Item>) {
    if web.leave(items)
        && let Some((_, bell)) = web.native()
    {
        bell.ring();
    }
}
