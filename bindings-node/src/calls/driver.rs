//! A client, and the driver that reads and writes for it: a pipe or an endpoint. Also the state that drivers share with
//! JavaScript.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::calls::about::RequestFields;
use crate::calls::elsewhere::{DeliveryReady, ResponseWaker};
use crate::calls::function::Callee;
use crate::calls::server_state::ServerState;
use crate::values::spelling::{number, whole};
use mcp_resources_engine::connection::{AskError, AskId, RequestToken};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_runtime::transport::http::{RequestInbox, TokenReply, WakeLoop};
use mcp_resources_runtime::transport::pump::PendingCalls;
use mcp_resources_runtime::transport::{Peer, Work, WorkRequest};
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// An action for the event loop. JavaScript imports its numbers from here.
#[napi]
pub enum LoopTask {
    /// Read on (1), or read no more for now (0).
    Read,
    /// Take the output and write it: no other output is written before that is done.
    Output,
    /// Call `timer` after this many milliseconds, instead of at the earlier time.
    Alarm,
    /// Call `flush` once this turn has done its work (0), or already once promises that are settled have answered (1).
    Flush,
    /// The client has closed its end, or is gone.
    Ended,
    /// The input has ended, no request is in flight, and all output is written.
    Idle,
    /// The answer to this request is no longer wanted.
    Cancelled,
    /// Log that the function in the text blocked the loop for this many milliseconds.
    LogHeld,
    /// Log a mistake of the user's code.
    LogMisuse,
    /// The client has answered this question with a result, or not at all.
    Replied,
    /// The client has answered this question with an error.
    Refused,
    /// Call `work` once settled promises have answered.
    Work,
    /// There is something to deliver on the response with this number.
    Deliver,
    /// Verify the token in the text; the number names the verification.
    Verify,
    /// Log that a request was refused that an option would let in.
    LogRefused,
    /// Take lines for the server of an SDK until there are none.
    Lines,
}

/// The function that passes a task to `js/driver.ts`.
pub(crate) type Drive = FunctionRef<FnArgs<(LoopTask, f64, Option<String>)>, Unknown<'static>>;

/// One client, as the code that answers it sees it.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) peer: Rc<Peer>,
    pub(crate) driver: Rc<dyn Driver>,
}

/// A request of one of several connections.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestKey {
    pub(crate) connection: ConnectionId,
    pub(crate) token: RequestToken,
}

/// Reads and writes for clients, and keeps their requests by the numbers that JavaScript uses.
pub(crate) trait Driver {
    /// The state shared with JavaScript.
    fn shared(&self) -> &Shared;
    /// Takes up a request, which `callee` is to answer. Its number.
    fn begin(&self, peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64;
    /// The number of a request that was taken up.
    fn number(&self, key: RequestKey) -> Option<f64>;
    /// The answer to a request is no longer wanted. Its function may never give one.
    fn cancelled(&self, _key: RequestKey) {}
    /// A request is answered. The function that was to do it.
    fn over(&self, key: RequestKey) -> Option<Arc<Callee>>;
    /// The target of the answer to a request; `None` if the request has ended.
    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)>;
    /// The data of a request.
    fn about(&self, request: f64) -> Option<RequestFields>;
    /// An answer or a report was given: sees to it that it is written.
    fn appended(&self) -> Result<()>;
}

/// The client whose request has this number; `None` if the request has ended.
pub(crate) fn client(driver: &Rc<dyn Driver>, request: f64) -> Option<(Client, RequestToken)> {
    let (peer, token) = driver.find(request)?;
    Some((Client { peer, driver: driver.clone() }, token))
}

/// The state shared by the peers of one driver. Lives on the thread of its JavaScript.
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) state: Rc<ServerState>,
    /// The number of the driver.
    pub(crate) driver: u32,
    /// `None` once it is closed: it holds what holds this, and neither would ever be freed.
    drive: RefCell<Option<Rc<Drive>>>,
    pub(crate) is_handling: Cell<bool>,
    /// The results of answers that were given while other work was done.
    pub(crate) following: RefCell<Vec<(Client, Work<'static>)>>,
    /// Items from other threads for the loop.
    pub(crate) inbox: Arc<RequestInbox<DeliveryReady>>,
    /// Tokens that are being verified.
    verdicts: RefCell<HashMap<u64, TokenReply>>,
    /// The numbers of questions that wait for an answer.
    asks: PendingCalls<AskId, u64>,
    last_id: Cell<u64>,
}

impl Shared {
    pub(crate) fn new(
        state: Rc<ServerState>,
        driver: u32,
        drive: Drive,
        wake_loop: Option<WakeLoop>,
    ) -> Self {
        Self {
            env: state.env,
            state,
            driver,
            drive: RefCell::new(Some(Rc::new(drive))),
            is_handling: Cell::default(),
            following: RefCell::default(),
            inbox: RequestInbox::new(wake_loop),
            verdicts: RefCell::default(),
            asks: PendingCalls::default(),
            last_id: Cell::default(),
        }
    }

    pub(crate) fn drive(&self, task: LoopTask, value: f64, text: Option<String>) -> Result<()> {
        let Some(drive) = self.drive.borrow().clone() else { return Ok(()) };
        drive.borrow_back(&self.env)?.call(FnArgs::from((task, value, text))).map(drop)
    }

    /// A waker that has the driver deliver on the response with this number.
    pub(crate) fn response_waker(&self, response: f64) -> Waker {
        let inbox = Arc::downgrade(&self.inbox);
        Waker::from(Arc::new(ResponseWaker { inbox, woken: self.state.woken.clone(), response }))
    }

    /// Stops calling the driver.
    pub(crate) fn release(&self) {
        let drive = self.drive.take();
        drop(drive);
    }

    /// Logs a mistake of the function that was to answer.
    pub(crate) fn log_misuse(&self, callee: Option<&Callee>, misuse: Option<String>) -> Result<()> {
        let Some(misuse) = misuse else { return Ok(()) };
        let named = callee.map(|callee| format!("{}: {misuse}", callee.name));
        self.drive(LoopTask::LogMisuse, 0.0, Some(named.unwrap_or(misuse)))
    }

    pub(crate) fn log_refused(&self, what: String) -> Result<()> {
        self.drive(LoopTask::LogRefused, 0.0, Some(what))
    }

    pub(crate) fn log_held(&self, name: &str, held: Duration) -> Result<()> {
        self.drive(LoopTask::LogHeld, held.as_secs_f64() * 1000.0, Some(name.to_owned()))
    }

    /// Asks the client of `peer`. The number of the question.
    pub(crate) fn ask(&self, peer: &Peer, method: &str, params: &str) -> std::result::Result<f64, AskError> {
        let id = self.next();
        self.asks.ask(peer, method, params, id).map(|()| number(id))
    }

    /// Has the driver verify a token.
    pub(crate) fn verify(&self, token: String, reply: TokenReply) -> Result<()> {
        let id = self.next();
        self.verdicts.borrow_mut().insert(id, reply);
        self.drive(LoopTask::Verify, number(id), Some(token))
    }

    /// Takes the target of the answer about a token.
    pub(crate) fn token_reply(&self, id: f64) -> Option<TokenReply> {
        self.verdicts.borrow_mut().remove(&whole(id))
    }

    fn next(&self) -> u64 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    /// Called when a client has answered with JSON text of a result or an error, or has not answered.
    pub(crate) fn replied(
        &self,
        connection: ConnectionId,
        ask: AskId,
        answer: Option<std::result::Result<String, String>>,
    ) -> Result<()> {
        let Some(id) = self.asks.take(connection, ask) else { return Ok(()) };
        match answer {
            Some(Err(error)) => self.drive(LoopTask::Refused, number(id), Some(error)),
            Some(Ok(result)) => self.drive(LoopTask::Replied, number(id), Some(result)),
            None => self.drive(LoopTask::Replied, number(id), None),
        }
    }
}
