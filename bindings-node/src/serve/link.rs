//! One client at the other end of a pipe, and its requests by their numbers. Lives on the thread of its JavaScript.
//!
//! Law: no value is borrowed while JavaScript runs, because a handler may call anything here.

use crate::calls::about::{About, RequestFields};
use crate::calls::driver::{Client, Drive, Driver, LoopTask, RequestKey, Shared};
use crate::calls::elsewhere::Elsewhere;
use crate::calls::function::Callee;
use crate::calls::run;
use crate::calls::server_state::{Served, ServerState};
use crate::values::spelling::number;
use mcp_resources_engine::connection::{Events, RequestToken};
use mcp_resources_engine::embedded::EmbeddedServer;
use mcp_resources_runtime::transport::pump::{EventLoop, Pump, PumpStep};
use mcp_resources_runtime::transport::{Peer, PipeSender, Stdio, WorkRequest};
use napi::bindgen_prelude::*;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// A pending request.
#[derive(Default)]
struct Known {
    number: f64,
    /// The data of the request that a handler can ask for.
    about: About,
    /// The function that is to answer it.
    callee: Option<Arc<Callee>>,
}

/// The client of one pipe, with its open requests.
pub(crate) struct Link {
    own: Weak<Self>,
    pub(crate) shared: Shared,
    pub(crate) pump: Arc<Pump>,
    peer: Rc<Peer>,
    /// The data of the pending requests, with their numbers, by the index of their slot.
    abouts: RefCell<Vec<Known>>,
}

/// The server that a client means.
pub(crate) enum ClientOf {
    /// This one: its messages come from this sender.
    Engine(PipeSender),
    /// The server of an SDK that this one is attached to.
    Other(Arc<EmbeddedServer>),
}

impl Link {
    pub(crate) fn new(
        state: Rc<ServerState>,
        driver: u32,
        drive: Drive,
        stdio: Option<Stdio>,
        delivers: bool,
        from: ClientOf,
    ) -> Result<Rc<Self>> {
        let engine = state.engine()?;
        let clock = state.clock.clone();
        let shared = Shared::new(state.clone(), driver, drive, None);
        let waker = state.woken.waker(None);
        let pump = match from {
            ClientOf::Engine(sender) => {
                Pump::with_sender(&engine, clock.clone(), stdio, delivers, waker, sender)
            }
            ClientOf::Other(server) => Pump::before(&server, clock.clone(), stdio, waker),
        };
        let id = pump.pipe().id();
        let elsewhere = Elsewhere::behind(state.registry.mounts(), &state.woken, &shared.inbox, Some(id));
        let peer = Rc::new(Peer::pipe(pump.pipe().clone(), clock, elsewhere));
        let abouts = RefCell::default();
        let link = Rc::new_cyclic(|own| Self { own: own.clone(), shared, pump, peer, abouts });
        link.pump.pipe().wake_with(state.woken.waker(Some(id)));
        let served: Weak<Self> = Rc::downgrade(&link);
        state.join(id, served);
        Ok(link)
    }

    /// Ends the connection and cancels the requests in flight.
    pub(crate) fn close(&self) -> Result<()> {
        let left = self.shared.state.leave(self.pump.pipe().id());
        let result = self.pump.close(self).and(left);
        self.pump.close_stdio();
        self.shared.release();
        result
    }
}

impl Served for Link {
    /// The hub or another thread has something for this client.
    fn deliver(self: Rc<Self>) -> Result<()> {
        let driver: Rc<dyn Driver> = self.clone();
        self.shared.inbox.take().into_iter().try_for_each(|item| run::do_left(&driver, item))?;
        self.pump.deliver(&*self)
    }

    fn rearm(&self) -> Result<()> {
        self.pump.rearm(self)
    }

    fn shutdown(&self) -> Result<()> {
        self.pump.pipe().shutdown();
        Ok(())
    }
}

impl EventLoop for Link {
    type Error = Error;
    const DRAINS: bool = true;
    const DEFERS: bool = true;

    fn drive(&self, step: PumpStep) -> Result<()> {
        let (task, value) = match step {
            PumpStep::Poll { read, .. } => (LoopTask::Read, u64::from(read)),
            PumpStep::Output => (LoopTask::Output, 0),
            PumpStep::Alarm(delay) => (LoopTask::Alarm, delay),
            PumpStep::Flush { settled } => (LoopTask::Flush, u64::from(settled)),
            PumpStep::Lines => (LoopTask::Lines, 0),
            PumpStep::Ended => (LoopTask::Ended, 0),
            PumpStep::Idle => (LoopTask::Idle, 0),
        };
        self.shared.drive(task, number(value), None)
    }

    fn handle(&self, events: Events<'_>) -> Result<()> {
        let Some(driver) = self.own.upgrade() else { return Ok(()) };
        run::handle_all(&Client { peer: self.peer.clone(), driver }, events)
    }

    fn misused(&self, what: String) -> Result<()> {
        self.shared.log_misuse(None, Some(what))
    }

    fn delivering<R>(&self, change: impl FnOnce() -> R) -> Result<R> {
        self.shared.state.delivering(change)
    }
}

impl Driver for Link {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, _peer: &Rc<Peer>, request: &WorkRequest<'_>, callee: &Arc<Callee>) -> f64 {
        let mut abouts = self.abouts.borrow_mut();
        let number = token_number(request.token);
        let place = place(request.token);
        if abouts.len() <= place {
            abouts.resize_with(place + 1, Default::default);
        }
        if let Some(known) = abouts.get_mut(place) {
            known.number = number;
            known.callee = Some(callee.clone());
            known.about.begin(request);
        }
        number
    }

    fn number(&self, key: RequestKey) -> Option<f64> {
        Some(token_number(key.token))
    }

    /// If it is the one in its place.
    fn over(&self, key: RequestKey) -> Option<Arc<Callee>> {
        let mut abouts = self.abouts.borrow_mut();
        let known = abouts.get_mut(place(key.token))?;
        if !is_same(known.number, token_number(key.token)) {
            return None;
        }
        known.about.end();
        known.callee.take()
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        Some((self.peer.clone(), token_of(request)))
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        let abouts = self.abouts.borrow();
        let known = abouts.get(place(token_of(request)))?;
        if is_same(known.number, request) { known.about.fields() } else { None }
    }

    fn appended(&self) -> Result<()> {
        self.pump.appended(self)
    }
}

/// A token as a number that JavaScript holds exactly: places are fewer than 2^20.
fn token_number(token: RequestToken) -> f64 {
    number(token.to_u64().rotate_left(32))
}

/// The token that [`token_number`] gave. An invented number names no request.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made from a whole number")]
fn token_of(number: f64) -> RequestToken {
    RequestToken::from_u64((number as u64).rotate_right(32))
}

/// The place of a request among those that wait.
#[expect(clippy::cast_possible_truncation, reason = "half of the number")]
fn place(token: RequestToken) -> usize {
    token.to_u64() as u32 as usize
}

/// Whether they name the same request; both are whole numbers.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.5
}
