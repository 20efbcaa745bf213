//! The state shared by all requests of one HTTP endpoint, and the event loop's work for them.

use crate::calls::about::RequestFields;
use crate::calls::driver::{Client, Drive, Driver, LoopTask, RequestKey, Shared};
use crate::calls::elsewhere::Elsewhere;
use crate::calls::function::Callee;
use crate::calls::origin::HttpOrigin;
use crate::calls::run;
use crate::calls::server_state::{Served, ServerState};
use crate::calls::table::RequestTable;
use crate::values::spelling::number;
use mcp_resources_engine::connection::RequestToken;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use mcp_resources_runtime::transport::http::WakeLoop;
use mcp_resources_runtime::transport::pump::{HttpSide, PumpTimer};
use mcp_resources_runtime::transport::{EventHandler as Behind, Peer, WorkRequest};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// The state of one endpoint. Lives on the thread of its JavaScript.
pub(crate) struct Web {
    pub(crate) shared: Shared,
    /// The handler for answers from other threads.
    elsewhere: Arc<dyn Behind>,
    pub(crate) side: HttpSide,
    requests: RequestTable,
    pub(crate) timer: PumpTimer,
}

/// Status and headers.
#[napi(object, object_from_js = false)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// Lower-case names, and values.
    pub headers: Vec<(String, String)>,
}

/// Output to be written.
#[napi(object, object_from_js = false)]
pub struct Turned {
    /// The head, if it is decided now.
    pub head: Option<ResponseHead>,
    /// A part of the body.
    pub body: Buffer,
    /// Whether that is the end.
    pub end: bool,
    /// Whether there is more already.
    pub more: bool,
}

impl Web {
    /// `make` builds the side that reads and writes from the inbox in which a native server leaves its requests.
    pub(crate) fn new(
        state: Rc<ServerState>,
        driver: u32,
        drive: Drive,
        wake_loop: Option<WakeLoop>,
        make: impl FnOnce(&Shared) -> Result<HttpSide>,
    ) -> Result<Rc<Self>> {
        let shared = Shared::new(state.clone(), driver, drive, wake_loop);
        let web = Rc::new(Self {
            side: make(&shared)?,
            elsewhere: Elsewhere::behind(state.registry.mounts(), &state.woken, &shared.inbox, None),
            shared,
            requests: RequestTable::default(),
            timer: PumpTimer::default(),
        });
        let served: Weak<Self> = Rc::downgrade(&web);
        state.serve(served);
        Ok(web)
    }

    pub(crate) fn now(&self) -> Now {
        self.shared.state.clock.now()
    }

    /// Handles an item that another thread left for the loop.
    pub(crate) fn work(self: &Rc<Self>) -> Result<()> {
        let mut result = Ok(());
        let driver: Rc<dyn Driver> = self.clone();
        for item in self.shared.inbox.take() {
            result = result.and(run::do_left(&driver, item));
        }
        result.and(self.rest())
    }

    /// One request of one client, with the number of its response; without an exchange the response is complete.
    pub(crate) fn client(
        self: &Rc<Self>,
        connection: ConnectionId,
        exchange: Option<core::Exchange>,
        response: Option<f64>,
    ) -> Client {
        let clock = self.shared.state.clock.clone();
        let event_handler = self.elsewhere.clone();
        let mut peer = Peer::exchange(connection, exchange, clock, event_handler);
        if let Some(response) = response {
            peer = peer.with_peer_data(Arc::new(HttpOrigin { driver: self.shared.driver, response }));
        }
        Client { peer: Rc::new(peer), driver: self.clone() }
    }

    /// Performs the actions of a turn, and passes its output to the writer.
    pub(crate) fn turn(&self, turn: Turn<'_>, out: Vec<u8>, own: &Client) -> Result<Turned> {
        let Turn { head, events, end, more, misuse, .. } = turn;
        self.shared.log_misuse(None, misuse)?;
        run::handle_all(own, events)?;
        self.rest()?;
        Ok(Turned { head: head.map(ResponseHead::from_head), body: out.into(), end, more })
    }

    /// Performs the turns of sessions without a writer.
    pub(crate) fn turns(self: &Rc<Self>, turns: Vec<Turn<'static>>) -> Result<()> {
        turns.into_iter().try_for_each(|turn| {
            let own = self.client(turn.connection, None, None);
            self.turn(turn, Vec::new(), &own).map(drop)
        })
    }

    /// Makes the loop check its inbox, and arms its timer for the earliest deadline of the sessions and the hub, unless
    /// it fires earlier anyway.
    pub(crate) fn rest(&self) -> Result<()> {
        if self.side.is_on_loop() && self.shared.inbox.is_due() {
            self.shared.drive(LoopTask::Work, 0.0, None)?;
        }
        let delay = self.timer.arm(&self.side.deadlines(), self.now());
        delay.map_or(Ok(()), |delay| self.shared.drive(LoopTask::Alarm, number(delay), None))
    }
}

impl Served for Web {
    fn rearm(&self) -> Result<()> {
        self.rest()
    }

    fn shutdown(&self) -> Result<()> {
        self.side.endpoint().shutdown();
        self.rest()
    }

    fn waiting(&self) -> usize {
        self.requests.len()
    }
}

impl Driver for Web {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        self.requests.begin(peer, request, callee)
    }

    fn number(&self, key: RequestKey) -> Option<f64> {
        self.requests.number(key)
    }

    fn cancelled(&self, key: RequestKey) {
        self.requests.cancelled(key);
    }

    fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        self.requests.over(key)
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        self.requests.find(request)
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        self.requests.about(request)
    }

    /// The writer was woken already.
    fn appended(&self) -> Result<()> {
        self.rest()
    }
}

impl ResponseHead {
    pub(crate) fn from_head(head: core::ResponseHead) -> Self {
        let headers = head.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value.into_owned()));
        Self { status: head.status, headers: headers.collect() }
    }
}
