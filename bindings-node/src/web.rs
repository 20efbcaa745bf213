//! What all requests of one HTTP endpoint share, and what the event loop does for them.

use crate::about::{About, RequestFields};
use crate::calls;
use crate::function::Callee;
use crate::peer::{Drive, Need, Peer, Report, Requests, Shared};
use crate::server::{Host, number};
use mcp_resources_engine::connection::{Answer, AskError, AskId, Events, Gather, RequestToken};
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::Turn;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_host::transport::Request;
use mcp_resources_host::transport::http::{Bell, HttpServer, Inbox, Item, Verdict};
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// How many requests are remembered that nobody waits for, and that their functions have not answered: such as never answer
/// would be kept for ever.
const LATE: usize = 1_024;

/// See the module. Lives on the thread of its JavaScript.
pub(crate) struct Web {
    pub(crate) shared: Shared,
    pub(crate) inbox: Arc<Inbox<Ring>>,
    way: OnceCell<Way>,
    /// The requests that handlers work on, by their numbers.
    waiting: RefCell<HashMap<u64, Waiting>>,
    numbers: RefCell<HashMap<(ConnectionId, RequestToken), u64>>,
    /// Those of them that nobody waits for any longer, oldest first. Some may have been answered since.
    late: RefCell<VecDeque<u64>>,
    /// Tokens that are being verified.
    verdicts: RefCell<HashMap<u64, Verdict>>,
    last: Cell<u64>,
    alarm: Cell<Millis>,
}

/// Who reads and writes.
pub(crate) enum Way {
    /// A server in JavaScript.
    Endpoint(Arc<core::Endpoint>),
    /// Threads of the core's own.
    Native(Arc<HttpServer>),
}

/// There is something to deliver on the response with this number.
pub(crate) struct Ring(pub(crate) f64);

struct Waiting {
    of: (ConnectionId, RequestToken),
    exchange: Option<core::Exchange>,
    about: About,
    callee: Arc<Callee>,
}

/// One request of one client.
pub(crate) struct WebPeer {
    pub(crate) web: Rc<Web>,
    pub(crate) connection: ConnectionId,
    /// `None` if the response is complete: then no event of it waits for an answer.
    pub(crate) exchange: Option<core::Exchange>,
}

/// Status and headers.
#[napi(object, object_from_js = false)]
pub struct ResponseHead {
    /// The status code.
    pub status: u16,
    /// Lower-case names, and values.
    pub headers: Vec<(String, String)>,
}

/// What is to be written.
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
    pub(crate) fn new(host: Rc<Host>, driver: u32, drive: Drive, bell: Option<Bell>) -> Rc<Self> {
        Rc::new(Self {
            shared: Shared::new(host, driver, drive),
            inbox: Inbox::new(bell),
            way: OnceCell::new(),
            waiting: RefCell::default(),
            numbers: RefCell::default(),
            late: RefCell::default(),
            verdicts: RefCell::default(),
            last: Cell::default(),
            alarm: Cell::new(Millis::MAX),
        })
    }

    /// Settles who reads and writes, once.
    pub(crate) fn settle(self: &Rc<Self>, way: Way) {
        let _ = self.way.set(way);
        self.shared.host.serve(self);
    }

    pub(crate) fn native(&self) -> Option<&Arc<HttpServer>> {
        match self.way.get() {
            Some(Way::Native(server)) => Some(server),
            _ => None,
        }
    }

    pub(crate) fn endpoint(&self) -> Result<&Arc<core::Endpoint>> {
        match self.way.get() {
            Some(Way::Endpoint(endpoint)) => Ok(endpoint),
            Some(Way::Native(server)) => Ok(server.endpoint()),
            None => Err(Error::from_reason("the endpoint is not open")),
        }
    }

    pub(crate) fn now(&self) -> Now {
        self.shared.host.clock.now()
    }

    /// A number that names one thing of this endpoint.
    pub(crate) fn next(&self) -> u64 {
        self.last.set(self.last.get() + 1);
        self.last.get()
    }

    /// Ends its listens and streams of notifications.
    pub(crate) fn shutdown(&self) -> Result<()> {
        self.endpoint()?.shutdown();
        self.rest()
    }

    /// Does what was left for the loop.
    pub(crate) fn work(self: &Rc<Self>) -> Result<()> {
        let mut result = Ok(());
        for item in self.inbox.take() {
            result = result.and(self.do_one(item));
        }
        result.and(self.rest())
    }

    fn do_one(self: &Rc<Self>, item: Item<Ring>) -> Result<()> {
        match item {
            Item::Work(asked, work) => {
                let (connection, exchange) = (asked.connection(), asked.http().cloned());
                let own: Rc<dyn Peer> = Rc::new(WebPeer { web: self.clone(), connection, exchange });
                calls::do_all(&own, [*work])
            }
            Item::Verify(token, verdict) => {
                let asked = self.next();
                self.verdicts.borrow_mut().insert(asked, verdict);
                self.shared.drive(Need::Verify, number(asked), Some(token))
            }
            Item::Misuse(what) => self.shared.log_misuse(None, Some(what)),
            Item::Warning(what) => self.shared.log_refused(what),
            Item::Own(Ring(response)) => self.shared.drive(Need::Ring, response, None),
            Item::Ended => self.shared.drive(Need::Ended, 0.0, None),
        }
    }

    /// Where the verdict on a token goes, once.
    pub(crate) fn verdict(&self, asked: f64) -> Option<Verdict> {
        self.verdicts.borrow_mut().remove(&whole(asked))
    }

    /// How many requests are remembered.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Nobody waits for this request any longer. Of too many such, the oldest is let go.
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
        let Some(Waiting { of, exchange, .. }) = waiting else { return };
        self.numbers.borrow_mut().remove(&of);
        if let Some(exchange) = exchange {
            exchange.abandon(of.1, self.now());
        }
    }

    /// Does what a turn asks for, and gives the rest to the writer.
    pub(crate) fn turn(&self, turn: Turn<'_>, out: Vec<u8>, own: &Rc<WebPeer>) -> Result<Turned> {
        let Turn { head, events, end, more, misuse, .. } = turn;
        self.shared.log_misuse(None, misuse)?;
        let peer: Rc<dyn Peer> = own.clone();
        calls::handle_all(&peer, events)?;
        self.rest()?;
        Ok(Turned { head: head.map(ResponseHead::of), body: out.into(), end, more })
    }

    /// Turns of sessions that nobody writes.
    pub(crate) fn turns(self: &Rc<Self>, turns: Vec<Turn<'static>>) -> Result<()> {
        turns.into_iter().try_for_each(|turn| {
            let own = WebPeer { web: self.clone(), connection: turn.connection, exchange: None };
            self.turn(turn, Vec::new(), &Rc::new(own)).map(drop)
        })
    }

    /// The loop's timer has rung.
    pub(crate) fn rung(&self) {
        self.alarm.set(Millis::MAX);
    }

    /// Has the loop look at what was left, and arms its timer for the earliest deadline of the sessions and the hub, unless
    /// it rings before that anyway.
    pub(crate) fn rest(&self) -> Result<()> {
        let Some(Way::Endpoint(endpoint)) = self.way.get() else { return Ok(()) };
        if self.inbox.is_due() {
            self.shared.drive(Need::Work, 0.0, None)?;
        }
        let deadlines = [endpoint.deadline(), self.shared.host.deadline()];
        let Some(deadline) = deadlines.into_iter().flatten().min() else { return Ok(()) };
        if deadline >= self.alarm.get() {
            return Ok(());
        }
        self.alarm.set(deadline);
        self.shared.drive(Need::Alarm, number(deadline.saturating_sub(self.now().tick)), None)
    }
}

impl Requests for Web {
    fn find(self: Rc<Self>, request: f64) -> Option<(Rc<dyn Peer>, RequestToken)> {
        let ((connection, token), exchange) = {
            let waiting = self.waiting.borrow();
            let found = waiting.get(&whole(request))?;
            (found.of, found.exchange.clone())
        };
        Some((Rc::new(WebPeer { web: self, connection, exchange }), token))
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        self.waiting.borrow().get(&whole(request))?.about.fields()
    }
}

impl Peer for WebPeer {
    fn shared(&self) -> &Shared {
        &self.web.shared
    }

    fn connection(&self) -> ConnectionId {
        self.connection
    }

    fn begin(&self, request: &Request<'_>, callee: &Arc<Callee>) -> f64 {
        let own = self.web.next();
        let mut about = About::default();
        about.begin(request);
        let of = (self.connection, request.token);
        let waiting = Waiting { of, exchange: self.exchange.clone(), about, callee: callee.clone() };
        self.web.waiting.borrow_mut().insert(own, waiting);
        self.web.numbers.borrow_mut().insert(of, own);
        number(own)
    }

    fn number(&self, token: RequestToken) -> Option<f64> {
        self.web.numbers.borrow().get(&(self.connection, token)).map(|request| number(*request))
    }

    fn cancelled(&self, token: RequestToken) {
        let request = self.web.numbers.borrow().get(&(self.connection, token)).copied();
        if let Some(request) = request {
            self.web.is_late(request);
        }
    }

    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Result<Events<'static>> {
        let request = self.web.numbers.borrow_mut().remove(&(self.connection, token));
        let waiting = request.and_then(|request| self.web.waiting.borrow_mut().remove(&request));
        let Some(exchange) = &self.exchange else { return Ok(Events::new()) };
        let turn = exchange.respond(token, answer, self.web.now());
        let callee = waiting.as_ref().map(|waiting| &*waiting.callee);
        self.web.shared.log_misuse(callee, turn.misuse)?;
        Ok(turn.events)
    }

    fn report(&self, token: RequestToken, report: Report<'_>) {
        let Some(exchange) = &self.exchange else { return };
        let now = self.web.now();
        if let Some(message) = exchange.with_reply(token, |reply| report(reply, now)).flatten() {
            exchange.report(token, &message);
        }
    }

    fn gather(&self, token: RequestToken) -> Option<Gather> {
        self.exchange.as_ref()?.with_reply(token, |reply| reply.gather())
    }

    fn waits(&self, token: RequestToken) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.with_reply(token, |_| ()).is_some())
    }

    fn ask(&self, method: &str, params: &str) -> std::result::Result<AskId, AskError> {
        let exchange = self.exchange.as_ref().ok_or(AskError::NotSupported)?;
        exchange.ask(method, params, self.web.now())
    }

    /// The writer was woken already.
    fn appended(&self) -> Result<()> {
        self.web.rest()
    }
}

impl ResponseHead {
    pub(crate) fn of(head: core::ResponseHead) -> Self {
        let headers = head.headers.into_iter();
        let headers = headers.map(|(name, value)| (name.to_owned(), value.into_owned()));
        Self { status: head.status, headers: headers.collect() }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made from a whole number")]
fn whole(number: f64) -> u64 {
    number as u64
}
