//! The state shared by all requests of one HTTP endpoint, and the event loop's work for them.

use crate::calls::client::{Client, DeliveryReady, LoopClient, Runtime};
use crate::calls::contextvars::CallContext;
use crate::calls::run;
use crate::calls::waker::{LoopOwner, LoopWaker, Owner, Wakeup, watched};
use crate::serve::{audit, inbox};
use crate::values::error;
use mcp_resources_engine::engine::TimerRegistration;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_runtime::provider::Providers;
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox};
use mcp_resources_runtime::transport::pump::{HttpSide, PumpTimer, TIME};
use mcp_resources_runtime::transport::{self, Peer};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Weak};

/// One HTTP endpoint.
pub(crate) struct Web {
    pub(crate) runtime: Runtime,
    pub(crate) side: HttpSide,
    /// Items from other threads for the loop.
    pub(crate) inbox: Arc<RequestInbox<DeliveryReady>>,
    /// Providers, then the inbox.
    event_handler: Arc<dyn transport::EventHandler>,
    waker: Arc<LoopWaker>,
    _timer_registration: Option<TimerRegistration>,
    pub(crate) timer: PumpTimer,
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
    /// `make` builds the side that reads and writes from the inbox of a native server's threads and their event
    /// handler.
    pub(crate) fn new(
        py: Python<'_>,
        runtime: Runtime,
        make: impl FnOnce(
            &Arc<RequestInbox<DeliveryReady>>,
            Arc<dyn transport::EventHandler>,
        ) -> PyResult<HttpSide>,
    ) -> PyResult<(Arc<Self>, Py<Wakeup>)> {
        let (waker, wakeup) = watched(py)?;
        let inbox = waker.inbox();
        let event_handler: Arc<dyn transport::EventHandler> =
            Providers::before(runtime.state.mounts().clone(), inbox.reach());
        let side = make(&inbox, event_handler.clone())?;
        let timer_registration = side.register_timer(waker.waker(TIME));
        let timer = PumpTimer::default();
        let web = Arc::new(Self {
            runtime,
            side,
            inbox,
            event_handler,
            waker,
            _timer_registration: timer_registration,
            timer,
        });
        let served: Weak<Self> = Arc::downgrade(&web);
        web.waker.belongs_to(Owner::new(served, true));
        web.runtime.state.serving.serve(web.side.endpoint());
        audit::begin(py, &web.runtime.state)?;
        Ok((web, wakeup))
    }

    /// Nothing more comes from other threads.
    pub(crate) fn close(&self) {
        self.inbox.close();
        self.waker.close();
    }

    /// Performs the actions of a turn, and passes its output to the writer.
    pub(crate) fn turn<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        turn: Turn<'_>,
        out: &[u8],
        own: &Arc<WebPeer>,
    ) -> PyResult<TurnParts<'py>> {
        let Turn { head, events, end, more, misuse, .. } = turn;
        error::log_misuse(py, "", misuse.as_deref());
        if !events.is_empty() {
            run::handle_all(py, &Client(own.clone()), events)?;
            self.runtime.state.kick(py)?;
        }
        self.rearm(py)?;
        Ok((head.map(head_parts), PyBytes::new(py, out), end, more))
    }

    /// The client of a request that arrives here, with the context of this thread.
    pub(crate) fn client(
        self: &Arc<Self>,
        py: Python<'_>,
        connection: ConnectionId,
        exchange: Option<core::Exchange>,
    ) -> PyResult<Arc<WebPeer>> {
        let clock = self.runtime.state.clock.clone();
        let event_handler = self.event_handler.clone();
        let context = Arc::new(CallContext::current(py)?);
        let peer = Peer::exchange(connection, exchange, clock, event_handler).with_peer_data(context);
        Ok(Arc::new(WebPeer { web: self.clone(), peer }))
    }

    /// Performs the turns of sessions without a writer.
    pub(crate) fn turns(self: &Arc<Self>, py: Python<'_>, turns: Vec<Turn<'static>>) -> PyResult<()> {
        turns.into_iter().try_for_each(|turn| {
            let clock = self.runtime.state.clock.clone();
            let event_handler = self.event_handler.clone();
            let peer = Peer::exchange(turn.connection, None, clock, event_handler);
            let own = Arc::new(WebPeer { web: self.clone(), peer });
            self.turn(py, turn, &[], &own).map(drop)
        })
    }

    /// Arms the loop's timer for the earliest deadline of the sessions and the hub, unless it rings before that anyway.
    pub(crate) fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        let deadlines = self.side.deadlines();
        if !self.waker.is_on_loop() {
            if self.timer.is_late_for(&deadlines) {
                self.inbox.leave([]);
            }
            return Ok(());
        }
        let delay = self.timer.arm(&deadlines, self.runtime.state.clock.now());
        delay.map_or(Ok(()), |delay| self.runtime.drive(py, "alarm", (seconds(delay),)))
    }
}

/// Only the loop's thread works for an endpoint.
impl LoopOwner for Web {
    fn work(self: Arc<Self>, py: Python<'_>, _is_change: bool) -> PyResult<()> {
        self.waker.take();
        let client = |peer| Client(Arc::new(WebPeer { web: self.clone(), peer }));
        let result = inbox::take(py, &self.inbox, &self.runtime, client);
        self.runtime.state.kick(py)?;
        self.rearm(py)?;
        result
    }
}

impl LoopClient for WebPeer {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn runtime(&self) -> &Runtime {
        &self.web.runtime
    }

    /// The context of the request, or that of the native server's start.
    fn context(&self, py: Python<'_>) -> PyResult<CallContext> {
        let request = self.peer.peer_data().and_then(|data| data.downcast_ref::<CallContext>());
        request.unwrap_or(&self.web.runtime.context).copy(py)
    }

    /// The writer was woken already.
    fn write(self: Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.web.rearm(py)
    }

    fn leave(&self, ready: DeliveryReady) {
        self.web.inbox.leave([InboxItem::Own(ready)]);
    }
}

/// A loop that was forgotten watches no longer.
impl Drop for Web {
    fn drop(&mut self) {
        self.waker.close();
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
