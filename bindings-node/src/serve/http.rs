//! HTTP without a socket: the functions that `node:http` calls, or any caller that has a `Request`. The core has every
//! rule; this module passes on its turns.

use crate::calls::answers::Answers;
use crate::calls::driver::{Client, Drive};
use crate::calls::server_state::Served;
use crate::serve::auth::VerifiedFields;
use crate::serve::server::Server;
use crate::serve::web::{ResponseHead, Turned, Web};
use crate::values::error::unusable;
use crate::values::options::{PlainValue, set};
use crate::values::rules;
use crate::values::spelling::number;
use mcp_resources_engine::http as core;
use mcp_resources_engine::http::{DeniedToken, RequestHead, Verified};
use mcp_resources_runtime::transport::EngineClock;
use mcp_resources_runtime::transport::http::session_ids;
use mcp_resources_runtime::transport::pump::HttpSide;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// An endpoint on the event loop of its driver.
#[napi]
pub struct Endpoint(Rc<Web>);

/// A request whose head may come in.
#[napi]
pub struct Admitted(RefCell<Option<(core::Admitted, Arc<EngineClock>)>>);

/// A request whose head has passed: what remains is its body.
#[napi]
pub struct Identified(core::Identified);

/// A body that comes in several parts.
#[napi]
pub struct Receiving(RefCell<Option<core::Receiving>>);

/// A response that is being made.
#[napi]
pub struct Exchange {
    web: Rc<Web>,
    client: Client,
}

/// A response that is complete.
#[napi(object, object_from_js = false)]
pub struct Refusal {
    /// Its head.
    pub head: ResponseHead,
    /// Its body.
    pub body: Buffer,
}

#[napi]
impl Endpoint {
    /// `driver` is the number that functions are called with; `drive` is called with the tasks of the event loop.
    #[napi(catch_unwind, constructor)]
    pub fn new(
        server: &Server,
        driver: u32,
        #[napi(ts_arg_type = "(task: LoopTask, value: number, text: string | null) => void")] drive: Drive,
        fields: PlainValue,
    ) -> Result<Self> {
        let state = server.state.clone();
        let mut rules = state.embedded_rules(&fields)?;
        set(&mut rules, fields)?;
        let made = core::Endpoint::new(state.engine()?, rules, session_ids());
        let made = made.map_err(|error| rules::refused(&state.env, &error))?;
        Web::new(state, driver, drive, None, |_| Ok(HttpSide::Loop(made))).map(Self)
    }

    /// The object through which handlers answer.
    #[napi(catch_unwind, getter)]
    pub fn answers(&self) -> Answers {
        Answers(self.0.clone())
    }

    /// Checks the head of a request: the target is the part behind `mount`. `headers` has names and values in turn.
    /// `client` is the sender's address, if known.
    #[napi(catch_unwind)]
    pub fn admit(
        &self,
        verb: String,
        target: String,
        headers: Vec<String>,
        mount: String,
        client: Option<String>,
    ) -> Result<Either<Admitted, Refusal>> {
        let (pairs, _) = headers.as_chunks::<2>();
        let headers: Vec<_> = pairs.iter().map(|[name, value]| (&**name, latin(value))).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
        let client = client.and_then(|address| address.parse().ok());
        let head = RequestHead { verb: &verb, target: &target, headers: &headers, client, mount: &mount };
        let endpoint = self.0.side.endpoint();
        let clock = self.0.shared.state.clock.clone();
        Ok(match endpoint.admit(&head, clock.now()) {
            Ok(admitted) => Either::A(Admitted(RefCell::new(Some((admitted, clock))))),
            Err(response) => {
                if let Some(advice) = endpoint.advice(&response, clock.now()) {
                    self.0.shared.log_refused(advice)?;
                }
                Either::B(Refusal::from_response(response))
            }
        })
    }

    /// Takes a request with its body; its response will have the number `response`. Handlers run, or are started.
    #[napi(catch_unwind, ts_return_type = "[Exchange, Turned]")]
    pub fn open(&self, request: &Identified, body: &[u8], response: f64) -> Result<(Exchange, Turned)> {
        let mut out = Vec::new();
        let opened = self.0.side.endpoint().open(&request.0, body, self.0.now(), &mut out);
        let core::OpenedRequest { turn, exchange } = opened;
        let client = self.0.client(turn.connection, exchange, Some(response));
        let turned = self.0.turn(turn, out, &client)?;
        Ok((Exchange { web: self.0.clone(), client }, turned))
    }

    /// It is time.
    #[napi(catch_unwind)]
    pub fn timer(&self) -> Result<()> {
        self.0.timer.fired();
        let endpoint = self.0.side.endpoint();
        let now = self.0.now();
        self.0.shared.state.delivering(|| endpoint.engine().tick(now))?;
        self.0.turns(endpoint.tick(now))?;
        self.0.work()
    }

    /// Something was left for the loop.
    #[napi(catch_unwind)]
    pub fn work(&self) -> Result<()> {
        self.0.work()
    }

    /// Ends the listens and streams of notifications of this endpoint.
    #[napi(catch_unwind)]
    pub fn shutdown(&self) -> Result<()> {
        self.0.shutdown()
    }

    /// Ends every session and cancels the requests in flight.
    #[napi(catch_unwind)]
    pub fn close(&self) -> Result<()> {
        let turns = self.0.side.endpoint().close(self.0.now());
        self.0.turns(turns)
    }

    /// Stops calling the driver.
    #[napi(catch_unwind)]
    pub fn release(&self) {
        self.0.shared.release();
    }
}

#[napi]
impl Admitted {
    /// The bearer token to verify; `null` if none is required.
    #[napi(catch_unwind, getter)]
    pub fn token(&self) -> Option<String> {
        self.0.borrow().as_ref().and_then(|(admitted, _)| admitted.token()).map(str::to_owned)
    }

    /// Continues with the sender: the verified token, or nothing if none is required. `denied`: the token is invalid
    /// (`false`), or could not be verified (`true`).
    #[napi(catch_unwind)]
    pub fn identify(
        &self,
        verified: Option<VerifiedFields>,
        denied: Option<bool>,
    ) -> Result<Either<Identified, Refusal>> {
        let again = || unusable("the request is identified already".into());
        let (admitted, clock) = self.0.take().ok_or_else(again)?;
        let who = DeniedToken::unless(verified.map(Verified::from), denied);
        Ok(match admitted.identify(who, clock.now()) {
            Ok(identified) => Either::A(Identified(identified)),
            Err(response) => Either::B(Refusal::from_response(response)),
        })
    }
}

#[napi]
impl Identified {
    /// Maximum number of bytes of the body to read.
    #[napi(catch_unwind, getter)]
    pub fn body_limit(&self) -> f64 {
        number(self.0.body_limit() as u64)
    }

    /// The response to a longer body.
    #[napi(catch_unwind)]
    pub fn too_large(&self) -> Refusal {
        Refusal::from_response(self.0.too_large())
    }

    /// Maximum time to wait for the whole body, in milliseconds.
    #[napi(catch_unwind, getter)]
    pub fn body_timeout(&self) -> f64 {
        number(self.0.body_timeout())
    }

    /// The response to a body that takes longer.
    #[napi(catch_unwind)]
    pub fn too_late(&self) -> Refusal {
        Refusal::from_response(self.0.too_late())
    }

    /// The response to a body that a framework has read, and has not passed on.
    #[napi(catch_unwind)]
    pub fn already_read(&self) -> Refusal {
        Refusal::from_response(self.0.already_read())
    }

    /// Counts a body that comes in several parts.
    #[napi(catch_unwind)]
    pub fn receiving(&self) -> Receiving {
        Receiving(RefCell::new(Some(self.0.receiving())))
    }
}

#[napi]
impl Receiving {
    /// Counts further bytes. The response to send instead of reading on, if it is too much.
    #[napi(catch_unwind)]
    pub fn take(&self, bytes: u32) -> Option<Refusal> {
        let refused = self.0.borrow_mut().as_mut()?.take(bytes as usize).err()?;
        Some(Refusal::from_response(refused))
    }

    /// Releases the bytes counted so far: the body is complete, or reading has stopped.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.0.take();
    }
}

#[napi]
impl Exchange {
    /// Calls the driver once, with this number, when there is output to deliver.
    #[napi(catch_unwind)]
    pub fn register(&self, response: f64) {
        if let Some(exchange) = self.client.peer.http() {
            exchange.register(&self.web.shared.response_waker(response));
        }
    }

    /// Takes unsent output for the client, up to about `room` bytes.
    #[napi(catch_unwind)]
    pub fn deliver(&self, room: u32) -> Result<Turned> {
        let Some(exchange) = self.client.peer.http() else {
            return Ok(Turned { head: None, body: Vec::new().into(), end: true, more: false });
        };
        let mut out = Vec::new();
        let turn = exchange.deliver(room as usize, self.web.now(), &mut out);
        self.web.turn(turn, out, &self.client)
    }

    /// In how many milliseconds `deliver` must be called at the latest; `null` is never.
    #[napi(catch_unwind, getter)]
    pub fn deadline(&self) -> Option<f64> {
        let deadline = self.client.peer.http()?.deadline()?;
        Some(number(deadline.saturating_sub(self.web.now().tick)))
    }

    /// The client is gone.
    #[napi(catch_unwind)]
    pub fn closed(&self) -> Result<()> {
        let Some(exchange) = self.client.peer.http() else { return Ok(()) };
        let turn = exchange.closed(self.web.now());
        self.web.turn(turn, Vec::new(), &self.client).map(drop)
    }
}

impl Refusal {
    fn from_response(response: core::Response) -> Self {
        Self { head: ResponseHead::from_head(response.head), body: response.body.into() }
    }
}

/// The bytes of a header's value: JavaScript has each as a character.
fn latin(value: &str) -> Vec<u8> {
    value.chars().map(|letter| u8::try_from(u32::from(letter)).unwrap_or(b'?')).collect()
}
