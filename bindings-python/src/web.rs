//! What all requests of one HTTP endpoint share, and what the event loop does for them.

use crate::bell::{Bell, Owner, TIME};
use crate::calls;
use crate::peer::{self, Client, Runtime};
use crate::queue::Queue;
use mcp_resources_engine::engine::Timekeeper;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_host::provider::Providers;
use mcp_resources_host::transport::http::{HttpServer, Inbox};
use mcp_resources_host::transport::{self, Peer};
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
    /// Providers, then the inbox.
    pub(crate) host: Arc<dyn transport::Host>,
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
    pub(crate) peer: Peer,
}

/// Status and headers.
pub(crate) type HeadParts = (u16, Vec<(Vec<u8>, Vec<u8>)>);
/// The head, if it is decided now; a part of the body; whether that is the end; whether there is more already.
pub(crate) type TurnParts<'py> = (Option<HeadParts>, Bound<'py, PyBytes>, bool, bool);

impl Web {
    /// `bell` wakes the loop.
    pub(crate) fn new(runtime: Runtime, bell: Arc<Bell>) -> Arc<Self> {
        let inbox = bell.inbox();
        let web = Arc::new(Self {
            host: Providers::before(runtime.host.mounts().clone(), inbox.reach()),
            runtime,
            way: OnceLock::new(),
            inbox,
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
        let client = |peer| Client::Web(Arc::new(WebPeer { web: self.clone(), peer }));
        let result = peer::take(py, &self.inbox, &self.runtime, client);
        self.kick(py)?;
        self.rearm(py)?;
        result
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
            calls::handle_all(py, &Client::Web(own.clone()), events)?;
            self.kick(py)?;
        }
        self.rearm(py)?;
        Ok((head.map(head_parts), PyBytes::new(py, out), end, more))
    }

    /// Who answers on this loop. Without an exchange the response is complete: no event of it waits for an answer.
    pub(crate) fn client(
        self: &Arc<Self>,
        connection: ConnectionId,
        exchange: Option<core::Exchange>,
    ) -> Arc<WebPeer> {
        let clock = self.runtime.host.clock.clone();
        let peer = Peer::exchange(connection, exchange, clock, self.host.clone());
        Arc::new(WebPeer { web: self.clone(), peer })
    }

    /// Turns of sessions that nobody writes.
    pub(crate) fn turns(self: &Arc<Self>, py: Python<'_>, turns: Vec<Turn<'static>>) -> PyResult<()> {
        turns.into_iter().try_for_each(|turn| {
            let own = self.client(turn.connection, None);
            self.turn(py, turn, &[], &own).map(drop)
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
