//! The state shared by all requests of one HTTP endpoint, and the event loop's work for them.

use crate::calls::about::{About, RequestFields};
use crate::calls::driver::{Client, Drive, Driver, LoopTask, RequestKey, Shared};
use crate::calls::elsewhere::Elsewhere;
use crate::calls::function::Callee;
use crate::calls::origin::HttpOrigin;
use crate::calls::run;
use crate::calls::server_state::{Served, ServerState};
use crate::values::spelling::{number, whole};
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
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Maximum number of remembered requests whose client has left and whose function has not answered: requests that are
/// never answered would otherwise be kept for ever.
const LATE: usize = 1_024;

/// The state of one endpoint. Lives on the thread of its JavaScript.
pub(crate) struct Web {
    pub(crate) shared: Shared,
    /// The handler for answers from other threads.
    elsewhere: Arc<dyn Behind>,
    pub(crate) side: HttpSide,
    /// The requests that handlers work on, by their numbers.
    waiting: RefCell<HashMap<u64, Waiting>>,
    numbers: RefCell<HashMap<RequestKey, u64>>,
    /// The remembered requests that are no longer wanted, oldest first. Some may have been answered since.
    late: RefCell<VecDeque<u64>>,
    last: Cell<u64>,
    pub(crate) timer: PumpTimer,
}

struct Waiting {
    peer: Rc<Peer>,
    token: RequestToken,
    about: About,
    callee: Arc<Callee>,
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
            waiting: RefCell::default(),
            numbers: RefCell::default(),
            late: RefCell::default(),
            last: Cell::default(),
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

    /// Remembers that the answer to this request is no longer wanted. If there are too many, the oldest is forgotten.
    fn is_late(&self, request: u64) {
        let mut late = self.late.borrow_mut();
        late.push_back(request);
        if late.len() <= LATE {
            return;
        }
        late.retain(|request| self.waiting.borrow().contains_key(request));
        let oldest = if late.len() > LATE { late.pop_front() } else { None };
        drop(late);
        let waiting = oldest.and_then(|oldest| self.waiting.borrow_mut().remove(&oldest));
        let Some(Waiting { peer, token, .. }) = waiting else { return };
        self.numbers.borrow_mut().remove(&RequestKey { connection: peer.connection(), token });
        peer.abandon(token);
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
        self.waiting.borrow().len()
    }
}

impl Driver for Web {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        self.last.set(self.last.get() + 1);
        let own = self.last.get();
        let token = request.token;
        let mut about = About::default();
        about.begin(request);
        let waiting = Waiting { peer: peer.clone(), token, about, callee: callee.clone() };
        self.waiting.borrow_mut().insert(own, waiting);
        self.numbers.borrow_mut().insert(RequestKey { connection: peer.connection(), token }, own);
        number(own)
    }

    fn number(&self, key: RequestKey) -> Option<f64> {
        self.numbers.borrow().get(&key).map(|request| number(*request))
    }

    fn cancelled(&self, key: RequestKey) {
        let request = self.numbers.borrow().get(&key).copied();
        if let Some(request) = request {
            self.is_late(request);
        }
    }

    fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        let request = self.numbers.borrow_mut().remove(&key)?;
        let waiting = self.waiting.borrow_mut().remove(&request)?;
        Some(waiting.callee)
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        let waiting = self.waiting.borrow();
        let Waiting { peer, token, .. } = waiting.get(&whole(request))?;
        Some((peer.clone(), *token))
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        self.waiting.borrow().get(&whole(request))?.about.fields()
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
