//! Who asks: the client at the end of a pipe, or one exchange over HTTP; and what a driver of JavaScript shares with them.
//!
//! Law: nothing is borrowed while JavaScript runs: a handler may call anything here.

use crate::about::RequestFields;
use crate::function::Callee;
use crate::server::{Host, number};
use mcp_resources_engine::connection::{Answer, AskError, AskId, Event, Events, Gather, Reply, RequestToken};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use mcp_resources_host::transport::Request;
use napi::Env;
use napi::bindgen_prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// What the event loop must do, by the numbers of `js/driver.ts`.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// Read on (1), or read no more for now (0).
    Read = 0,
    /// Take the output and see to it: nothing is written here before that is done.
    Output = 1,
    /// Call `timer` in so many milliseconds, instead of when it was to be called.
    Alarm = 2,
    /// Call `flush` once this turn has done its work (0), or already once promises that are settled have answered (1).
    Flush = 3,
    /// The client has closed its end, or is gone.
    Ended = 4,
    /// After the end: nothing is in flight, and all is written.
    Idle = 5,
    /// Nobody waits for the answer to this request any longer.
    Cancelled = 6,
    /// Log that the function in the text held the loop for so many milliseconds.
    LogHeld = 7,
    /// Log what the author did wrong.
    LogMisuse = 8,
    /// The client has answered this question with a result, or not at all.
    Replied = 9,
    /// The client has answered this question with an error.
    Refused = 10,
    /// Call `work` once settled promises have answered.
    Work = 11,
    /// There is something to deliver on the response with this number.
    Ring = 12,
    /// Verify the token in the text; the number names the verification.
    Verify = 13,
    /// Log that a request was refused that an option would let in.
    LogRefused = 14,
}

/// What `js/driver.ts` is told with.
pub(crate) type Drive = FunctionRef<FnArgs<(u32, f64, Option<String>)>, Unknown<'static>>;

/// How a peer words what a handler reports.
pub(crate) type Report<'r> = &'r mut dyn FnMut(&mut Reply, Now) -> Option<Vec<u8>>;

/// See the module.
pub(crate) trait Peer {
    /// What it shares with its driver.
    fn shared(&self) -> &Shared;
    /// Whose tokens it speaks of.
    fn connection(&self) -> ConnectionId;
    /// Takes up a request, which `callee` is to answer. The number that JavaScript names it by.
    fn begin(&self, request: &Request<'_>, callee: &Arc<Callee>) -> f64;
    /// The number of a request that was taken up.
    fn number(&self, token: RequestToken) -> Option<f64>;
    /// Nobody waits for the answer to a request any longer. Its function may never give one.
    fn cancelled(&self, _token: RequestToken) {}
    /// Answers a request. The events that come of it.
    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Result<Events<'static>>;
    /// Sends what a handler reports before its answer, unless nobody waits for it.
    fn report(&self, token: RequestToken, report: Report<'_>);
    /// What the chunks of an answer are pushed into; `None` if nobody waits for it.
    fn gather(&self, token: RequestToken) -> Option<Gather>;
    /// Whether somebody waits for the answer.
    fn waits(&self, token: RequestToken) -> bool;
    /// Sends a request to a legacy client.
    fn ask(&self, method: &str, params: &str) -> std::result::Result<AskId, AskError>;
    /// An answer or a report was given: sees to it that it is written.
    fn appended(&self) -> Result<()>;
}

/// The requests of one driver, by the numbers that JavaScript names them by.
pub(crate) trait Requests {
    /// Whose it is; `None` if it is over.
    fn find(self: Rc<Self>, request: f64) -> Option<(Rc<dyn Peer>, RequestToken)>;
    /// What is known of it.
    fn about(&self, request: f64) -> Option<RequestFields>;
}

/// What the peers of one driver share. Lives on the thread of its JavaScript.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) host: Rc<Host>,
    /// The number of the driver.
    pub(crate) driver: u32,
    /// `None` once it is closed: it holds what holds this, and neither would ever be freed.
    drive: RefCell<Option<Rc<Drive>>>,
    pub(crate) is_handling: Cell<bool>,
    /// Events that came of answers while others were handled.
    pub(crate) following: RefCell<Vec<(Rc<dyn Peer>, Event<'static>)>>,
    /// The numbers of questions that wait for an answer.
    asks: RefCell<HashMap<(ConnectionId, AskId), u64>>,
    asked: Cell<u64>,
}

impl Shared {
    pub(crate) fn new(host: Rc<Host>, driver: u32, drive: Drive) -> Self {
        Self {
            env: host.env,
            host,
            driver,
            drive: RefCell::new(Some(Rc::new(drive))),
            is_handling: Cell::default(),
            following: RefCell::default(),
            asks: RefCell::default(),
            asked: Cell::default(),
        }
    }

    pub(crate) fn drive(&self, need: Need, value: f64, text: Option<String>) -> Result<()> {
        let Some(drive) = self.drive.borrow().clone() else { return Ok(()) };
        drive.borrow_back(&self.env)?.call(FnArgs::from((need as u32, value, text))).map(drop)
    }

    /// The driver is told nothing more.
    pub(crate) fn release(&self) {
        let drive = self.drive.take();
        drop(drive);
    }

    /// Logs what the author did wrong, in the function that was to answer.
    pub(crate) fn log_misuse(&self, callee: Option<&Callee>, misuse: Option<String>) -> Result<()> {
        let Some(misuse) = misuse else { return Ok(()) };
        let named = callee.map(|callee| format!("{}: {misuse}", callee.name));
        self.drive(Need::LogMisuse, 0.0, Some(named.unwrap_or(misuse)))
    }

    pub(crate) fn log_refused(&self, what: String) -> Result<()> {
        self.drive(Need::LogRefused, 0.0, Some(what))
    }

    pub(crate) fn log_held(&self, name: &str, held: Duration) -> Result<()> {
        self.drive(Need::LogHeld, held.as_secs_f64() * 1000.0, Some(name.to_owned()))
    }

    /// Asks the client of `peer`. The number of the question.
    pub(crate) fn ask(
        &self,
        peer: &dyn Peer,
        method: &str,
        params: &str,
    ) -> std::result::Result<f64, AskError> {
        let ask = peer.ask(method, params)?;
        let asked = self.asked.get();
        self.asked.set(asked + 1);
        self.asks.borrow_mut().insert((peer.connection(), ask), asked);
        Ok(number(asked))
    }

    /// A client has answered with JSON text of a result or an error, or it has not.
    pub(crate) fn replied(
        &self,
        connection: ConnectionId,
        ask: AskId,
        answer: Option<std::result::Result<String, String>>,
    ) -> Result<()> {
        let asked = self.asks.borrow_mut().remove(&(connection, ask));
        let Some(asked) = asked else { return Ok(()) };
        match answer {
            Some(Err(error)) => self.drive(Need::Refused, number(asked), Some(error)),
            Some(Ok(result)) => self.drive(Need::Replied, number(asked), Some(result)),
            None => self.drive(Need::Replied, number(asked), None),
        }
    }
}
