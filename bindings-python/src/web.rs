//! What all requests of one HTTP endpoint share, and what the event loop does for them.

use crate::bell::{Bell, Owner, TIME, WORK};
use crate::calls;
use crate::error;
use crate::peer::{self, Effects, Peer, Runtime};
use crate::queue::Queue;
use crate::serve::Verification;
use mcp_resources_engine::connection::{
    Answer, AskError, AskId, Cancelled, Encoded, Events, Reply, RequestToken,
};
use mcp_resources_engine::engine::Timekeeper;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_host::transport::http::{HttpServer, Inbox, Item};
use mcp_resources_host::transport::{self, Work};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// See the module.
pub(crate) struct Web {
    pub(crate) runtime: Runtime,
    way: OnceLock<Way>,
    /// What other threads have for the loop.
    pub(crate) inbox: Arc<Inbox<Ring>>,
    bell: Arc<Bell>,
    timekeeper: OnceLock<Timekeeper>,
    alarm: AtomicU64,
}

/// What is to be called on the loop: there is something to deliver on a response.
pub(crate) struct Ring(pub(crate) Arc<Py<PyAny>>);

/// Who reads and writes.
pub(crate) enum Way {
    /// An ASGI server, on the event loop.
    Asgi(Arc<core::Endpoint>),
    /// Threads of the core's own.
    Native(Arc<HttpServer>),
}

/// One request of one client.
pub(crate) struct WebPeer {
    pub(crate) web: Arc<Web>,
    pub(crate) connection: ConnectionId,
    /// `None` if the response is complete: then no event of it waits for an answer.
    pub(crate) exchange: Option<core::Exchange>,
}

/// Status and headers.
pub(crate) type HeadParts = (u16, Vec<(Vec<u8>, Vec<u8>)>);
/// The head, if it is decided now; a part of the body; whether that is the end; whether there is more already.
pub(crate) type TurnParts<'py> = (Option<HeadParts>, Bound<'py, PyBytes>, bool, bool);

impl Web {
    /// `bell` wakes the loop.
    pub(crate) fn new(runtime: Runtime, bell: Arc<Bell>) -> Arc<Self> {
        let rung = bell.clone();
        let web = Arc::new(Self {
            runtime,
            way: OnceLock::new(),
            inbox: Inbox::new(Some(Arc::new(move || rung.say(WORK)))),
            bell,
            timekeeper: OnceLock::new(),
            alarm: AtomicU64::new(u64::MAX),
        });
        web.bell.belongs_to(Owner::Web(Arc::downgrade(&web)));
        web
    }

    /// Settles who reads and writes, once. Native threads keep the engine's time by themselves.
    pub(crate) fn settle(&self, way: Way) {
        if let Way::Asgi(endpoint) = &way {
            let timekeeper = endpoint.engine().keep_time(self.bell.waker(TIME));
            let _ = self.timekeeper.set(timekeeper);
        }
        let _ = self.way.set(way);
    }

    /// Nothing more comes from other threads.
    pub(crate) fn close(&self) {
        self.inbox.close();
        self.bell.close();
    }

    pub(crate) fn native(&self) -> Option<&Arc<HttpServer>> {
        match self.way.get() {
            Some(Way::Native(server)) => Some(server),
            _ => None,
        }
    }

    pub(crate) fn endpoint(&self) -> PyResult<&Arc<core::Endpoint>> {
        match self.way.get() {
            Some(Way::Asgi(endpoint)) => Ok(endpoint),
            Some(Way::Native(server)) => Ok(server.endpoint()),
            None => Err(PyRuntimeError::new_err("the endpoint is not open")),
        }
    }

    /// Ends its listens and streams of notifications.
    pub(crate) fn shutdown(&self) -> PyResult<()> {
        self.endpoint()?.shutdown();
        Ok(())
    }

    /// Does what other threads have left for the loop.
    pub(crate) fn work(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.bell.heard();
        let mut result = Ok(());
        for item in self.inbox.take() {
            result = result.and(self.do_one(py, item));
        }
        self.kick(py)?;
        self.rearm(py)?;
        result
    }

    fn do_one(self: &Arc<Self>, py: Python<'_>, item: Item<Ring>) -> PyResult<()> {
        match item {
            Item::Work(asked, work) => {
                let (connection, exchange) = (asked.connection(), asked.http().cloned());
                let peer: Arc<dyn Peer> = Arc::new(WebPeer { web: self.clone(), connection, exchange });
                calls::do_all(py, &peer, [*work])
            }
            Item::Verify(token, verdict) => {
                let verification = Verification::new(verdict);
                self.runtime.drive(py, "verify", (token, verification))
            }
            Item::Misuse(what) => {
                peer::logged(py, "", Some(&what));
                Ok(())
            }
            Item::Warning(what) => {
                error::log_refused(py, &what);
                Ok(())
            }
            Item::Ended => self.runtime.drive(py, "ended", ()),
            Item::Own(Ring(ring)) => ring.call0(py).map(drop),
        }
    }

    /// Does what a turn asks for, and gives the rest to the writer.
    pub(crate) fn turn<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        turn: Turn<'_>,
        out: &[u8],
        own: &Arc<WebPeer>,
    ) -> PyResult<TurnParts<'py>> {
        let Turn { head, events, end, more, misuse, .. } = turn;
        peer::logged(py, "", misuse.as_deref());
        if !events.is_empty() {
            let peer: Arc<dyn Peer> = own.clone();
            calls::handle_all(py, &peer, events)?;
            self.kick(py)?;
        }
        self.rearm(py)?;
        Ok((head.map(head_parts), PyBytes::new(py, out), end, more))
    }

    /// Turns of sessions that nobody writes.
    pub(crate) fn turns(self: &Arc<Self>, py: Python<'_>, turns: Vec<Turn<'static>>) -> PyResult<()> {
        turns.into_iter().try_for_each(|turn| {
            let own = WebPeer { web: self.clone(), connection: turn.connection, exchange: None };
            self.turn(py, turn, &[], &Arc::new(own)).map(drop)
        })
    }

    fn kick(&self, py: Python<'_>) -> PyResult<()> {
        Queue::kick(self.runtime.host.queue.bind(py), &self.runtime.host)
    }

    /// The loop's timer has rung.
    pub(crate) fn rung(&self) {
        self.alarm.store(u64::MAX, Ordering::Release);
    }

    /// Arms the loop's timer for the earliest deadline of the sessions and the hub, unless it rings before that anyway.
    pub(crate) fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        let Some(Way::Asgi(endpoint)) = self.way.get() else { return Ok(()) };
        let deadlines = [endpoint.deadline(), self.runtime.host.deadline()];
        let Some(deadline) = deadlines.into_iter().flatten().min() else { return Ok(()) };
        if deadline >= self.alarm.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.runtime.on_loop() {
            self.inbox.leave([]);
            return Ok(());
        }
        self.alarm.store(deadline, Ordering::Release);
        let delay = deadline.saturating_sub(self.runtime.host.clock.now().tick);
        self.runtime.drive(py, "alarm", (seconds(delay),))
    }
}

impl Peer for WebPeer {
    fn runtime(&self) -> &Runtime {
        &self.web.runtime
    }

    fn connection(&self) -> ConnectionId {
        self.connection
    }

    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Effects {
        match &self.exchange {
            Some(exchange) => exchange.respond(token, answer, self.web.runtime.host.clock.now()).into(),
            None => Effects { events: Events::new(), misuse: None },
        }
    }

    fn detach(&self, token: RequestToken) -> Option<Reply> {
        self.exchange.as_ref()?.detach(token)
    }

    fn finish(&self, encoded: Encoded) -> Effects {
        match &self.exchange {
            Some(exchange) => exchange.finish(encoded, self.web.runtime.host.clock.now()).into(),
            None => Effects { events: Events::new(), misuse: None },
        }
    }

    fn ask(&self, method: &str, params: &str) -> Result<AskId, AskError> {
        let exchange = self.exchange.as_ref().ok_or(AskError::NotSupported)?;
        exchange.ask(method, params, self.web.runtime.host.clock.now())
    }

    fn abandon(&self, token: RequestToken) {
        if let Some(exchange) = &self.exchange {
            exchange.abandon(token, self.web.runtime.host.clock.now());
        }
    }

    fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        if let Some(exchange) = self.exchange.as_ref().filter(|_| !cancelled.get()) {
            exchange.report(token, message);
        }
    }

    fn is_full(&self) -> bool {
        false
    }

    /// The writer was woken already.
    fn appended(self: Arc<Self>, py: Python<'_>, _: bool) -> PyResult<()> {
        self.web.rearm(py)
    }

    fn write_elsewhere(&self) -> bool {
        false
    }

    fn wake_loop(&self) {
        self.web.inbox.leave([]);
    }

    fn hand_over(self: Arc<Self>, events: Events<'static>) {
        if !events.is_empty() {
            let clock = self.web.runtime.host.clock.clone();
            let (exchange, reach) = (self.exchange.clone(), self.web.inbox.reach());
            let peer = transport::Peer::exchange(self.connection, exchange, clock, reach);
            let own = |event| Item::Work(peer.clone(), Box::new(Work::of(event)));
            self.web.inbox.leave(events.into_iter().map(own));
        }
    }
}

/// A loop that was forgotten lets go of what it watches.
impl Drop for Web {
    fn drop(&mut self) {
        self.bell.close();
    }
}

pub(crate) fn head_parts(head: core::ResponseHead) -> HeadParts {
    let headers = head.headers.into_iter();
    (head.status, headers.map(|(name, value)| (name.into(), value.into_owned().into_bytes())).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a delay is short")]
pub(crate) fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}
