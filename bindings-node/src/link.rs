//! One client: lines in, answers out, and what the event loop must do. Lives on the thread of its JavaScript.
//!
//! Law: nothing is borrowed while JavaScript runs: a handler may call anything here.

use crate::about::{About, RequestFields};
use crate::calls;
use crate::elsewhere::Elsewhere;
use crate::function::Callee;
use crate::peer::{Asked, Client, Drive, Driver, Need, Shared};
use crate::server::{Host, number};
use mcp_resources_engine::connection::{Events, Outcome, RequestToken};
use mcp_resources_engine::jsonrpc::Lines;
use mcp_resources_engine::now::Millis;
use mcp_resources_host::transport::{Flushed, Peer, Pipe, Request, Stdio};
use napi::bindgen_prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

/// Output beyond this is written without waiting for the other answers of a turn of the loop.
const SOON: usize = 64 * 1024;

/// What is known of a request: its number, what a handler may ask of it, and the function that is to answer it.
type Known = (f64, About, Option<Arc<Callee>>);

/// See the module.
pub(crate) struct Link {
    pub(crate) shared: Shared,
    pub(crate) pipe: Arc<Pipe>,
    peer: Rc<Peer>,
    pub(crate) stdio: RefCell<Option<Stdio>>,
    /// What is known of the requests that wait, with their numbers, by the index of their place.
    abouts: RefCell<Vec<Known>>,
    pub(crate) flush_is_due: Cell<bool>,
    /// The loop sees to output that was taken.
    pub(crate) is_blocked: Cell<bool>,
    pub(crate) alarm: Cell<Millis>,
    /// Whether notifications are written as soon as they are there.
    delivers: bool,
    /// `None` while somebody works on it.
    lines: RefCell<Option<Lines>>,
    /// Lines wait for room in the output.
    lines_are_left: Cell<bool>,
    has_ended: Cell<bool>,
    idle_is_told: Cell<bool>,
    reads: Cell<bool>,
}

impl Link {
    pub(crate) fn new(
        host: Rc<Host>,
        driver: u32,
        drive: Drive,
        stdio: Option<Stdio>,
        delivers: bool,
    ) -> Result<Rc<Self>> {
        let engine = host.engine()?;
        let shared = Shared::new(host.clone(), driver, drive, None);
        let pipe = Arc::new(Pipe::new(&engine, host.clock.clone()));
        let mounts = host.registry.mounts();
        let elsewhere = Elsewhere::behind(mounts, &host.woken, &shared.inbox, Some(pipe.id()));
        let peer = Rc::new(Peer::pipe(pipe.clone(), host.clock.clone(), elsewhere));
        let link = Rc::new(Self {
            pipe,
            peer,
            shared,
            stdio: RefCell::new(stdio),
            abouts: RefCell::default(),
            flush_is_due: Cell::default(),
            is_blocked: Cell::default(),
            alarm: Cell::new(Millis::MAX),
            delivers,
            lines: RefCell::new(Some(Lines::new(engine.limits().message))),
            lines_are_left: Cell::default(),
            has_ended: Cell::default(),
            idle_is_told: Cell::default(),
            reads: Cell::new(true),
        });
        link.pipe.wake_with(host.woken.waker(Some(link.pipe.id())));
        host.join(&link);
        Ok(link)
    }

    /// Takes input and serves it.
    pub(crate) fn push(self: &Rc<Self>, chunk: &[u8]) -> Result<()> {
        let Some(mut lines) = self.lines.take() else { return Ok(()) };
        lines.push(chunk);
        self.pump(lines)
    }

    /// Goes on with lines that were left while the output was full.
    pub(crate) fn resume(self: &Rc<Self>) -> Result<()> {
        if self.pipe.is_full() {
            return Ok(());
        }
        let Some(lines) = self.lines.take() else { return Ok(()) };
        self.pump(lines)
    }

    /// Whether lines wait for room, and nobody works on them.
    pub(crate) fn has_lines_left(&self) -> bool {
        self.lines_are_left.get() && self.lines.borrow().is_some()
    }

    /// The end of input.
    pub(crate) fn end(self: &Rc<Self>) -> Result<()> {
        if self.has_ended.replace(true) {
            return self.settle();
        }
        let lines = self.lines.take();
        if let Some(mut lines) = lines {
            lines.finish();
            self.pump(lines)?;
        }
        self.shared.drive(Need::Ended, 0.0, None)?;
        self.settle()
    }

    /// No further input is wanted: open listens end with their results.
    pub(crate) fn stop(self: &Rc<Self>) -> Result<()> {
        self.has_ended.set(true);
        self.pipe.shutdown();
        self.pipe.deliver();
        self.settle()
    }

    /// Ends the connection: what is in flight is cancelled.
    pub(crate) fn close(self: &Rc<Self>) -> Result<()> {
        let left = self.shared.host.leave(self.pipe.id());
        let events = self.pipe.close();
        let result = self.work(events).and(left);
        self.stdio.replace(None);
        self.shared.release();
        result
    }

    /// Serves the lines that have come, as long as the client reads the answers; then writes.
    fn pump(self: &Rc<Self>, mut lines: Lines) -> Result<()> {
        let result = self.shared.host.delivering(|| {
            let mut result = self.serve(&mut lines);
            // A client that reads as fast as it writes leaves lines behind without ever blocking the output.
            while matches!(result, Ok(true))
                && self.stdio.borrow().is_some()
                && self.write_out() == Flushed::All
            {
                result = self.serve(&mut lines);
            }
            result
        });
        let result = result.and_then(|result| result);
        self.lines_are_left.set(matches!(result, Ok(true)));
        self.lines.replace(Some(lines));
        if self.pipe.in_flight() == 0 {
            self.settle()?
        } else {
            self.flush_after(1.0)?
        }
        result.map(drop)
    }

    /// Serves lines while there is room for answers; whether some may be left.
    fn serve(self: &Rc<Self>, lines: &mut Lines) -> Result<bool> {
        while !self.pipe.is_full() {
            let Some(line) = lines.next() else { return Ok(false) };
            let outcome = self.pipe.line(line);
            calls::handle_all(&self.client(), self.outcome(outcome)?)?;
        }
        Ok(true)
    }

    /// Handles events outside of input, then writes.
    pub(crate) fn work(self: &Rc<Self>, events: Events<'_>) -> Result<()> {
        calls::handle_all(&self.client(), events)?;
        self.settle()
    }

    /// The hub or another thread has something for this client.
    pub(crate) fn deliver(self: &Rc<Self>) -> Result<()> {
        let driver: Rc<dyn Driver> = self.clone();
        self.shared.inbox.take().into_iter().try_for_each(|item| calls::do_left(&driver, item))?;
        if !self.delivers {
            return Ok(());
        }
        self.pipe.deliver();
        if self.lines.borrow().is_none() { Ok(()) } else { self.flush_after(1.0) }
    }

    fn flush_after(&self, what: f64) -> Result<()> {
        if self.flush_is_due.replace(true) { Ok(()) } else { self.shared.drive(Need::Flush, what, None) }
    }

    /// Writes, and tells the loop what to wait for.
    pub(crate) fn settle(&self) -> Result<()> {
        let is_stdio = self.stdio.borrow().is_some();
        if !is_stdio {
            if self.pipe.pending() > 0 {
                self.shared.drive(Need::Output, 0.0, None)?;
            }
        } else if !self.is_blocked.get() {
            match self.write_out() {
                Flushed::All => {}
                Flushed::Blocked => {
                    self.is_blocked.set(true);
                    self.shared.drive(Need::Output, 0.0, None)?;
                }
                Flushed::Broken if self.has_ended.replace(true) => {}
                Flushed::Broken => self.shared.drive(Need::Ended, 0.0, None)?,
            }
        }
        self.read()?;
        self.rearm()?;
        let is_idle = self.pipe.in_flight() == 0
            && self.pipe.pending() == 0
            && !self.lines_are_left.get()
            && !self.is_blocked.get();
        if self.has_ended.get() && is_idle && !self.idle_is_told.replace(true) {
            self.shared.drive(Need::Idle, 0.0, None)?;
        }
        Ok(())
    }

    /// Lets the loop read, or not.
    fn read(&self) -> Result<()> {
        let reads = !self.has_ended.get() && !self.pipe.is_full();
        if self.reads.replace(reads) == reads {
            return Ok(());
        }
        self.shared.drive(Need::Read, f64::from(u8::from(reads)), None)
    }

    /// Writes as much as the client takes.
    fn write_out(&self) -> Flushed {
        if self.is_blocked.get() {
            return Flushed::Blocked;
        }
        let stdio = self.stdio.borrow();
        stdio.as_ref().map_or(Flushed::All, |stdio| self.pipe.flush(|bytes| stdio.write(bytes)))
    }

    /// Arms the loop's timer for the earliest deadline, unless it rings before that anyway.
    pub(crate) fn rearm(&self) -> Result<()> {
        let Some(deadline) = [self.pipe.deadline(), self.shared.host.deadline()].into_iter().flatten().min()
        else {
            return Ok(());
        };
        if deadline >= self.alarm.get() {
            return Ok(());
        }
        self.alarm.set(deadline);
        let delay = deadline.saturating_sub(self.shared.host.clock.now().tick);
        self.shared.drive(Need::Alarm, number(delay), None)
    }

    /// Takes the events out of an outcome and logs what the author did wrong.
    pub(crate) fn outcome<'m>(&self, outcome: Outcome<'m>) -> Result<Events<'m>> {
        self.shared.log_misuse(None, outcome.misuse)?;
        Ok(outcome.events)
    }

    fn client(self: &Rc<Self>) -> Client {
        Client { peer: self.peer.clone(), driver: self.clone() }
    }
}

impl Driver for Link {
    fn shared(&self) -> &Shared {
        &self.shared
    }

    fn begin(&self, _peer: &Rc<Peer>, request: &Request<'_>, callee: &Arc<Callee>) -> f64 {
        let mut abouts = self.abouts.borrow_mut();
        let (number, place) = (token_number(request.token), place(request.token));
        if abouts.len() <= place {
            abouts.resize_with(place + 1, Default::default);
        }
        if let Some((own, about, own_callee)) = abouts.get_mut(place) {
            *own = number;
            *own_callee = Some(callee.clone());
            about.begin(request);
        }
        number
    }

    fn number(&self, (_, token): Asked) -> Option<f64> {
        Some(token_number(token))
    }

    /// If it is the one in its place.
    fn over(&self, (_, token): Asked) -> Option<Arc<Callee>> {
        let mut abouts = self.abouts.borrow_mut();
        let (own, about, callee) = abouts.get_mut(place(token))?;
        if !is_same(*own, token_number(token)) {
            return None;
        }
        about.end();
        callee.take()
    }

    fn find(&self, request: f64) -> Option<(Rc<Peer>, RequestToken)> {
        Some((self.peer.clone(), token_of(request)))
    }

    fn about(&self, request: f64) -> Option<RequestFields> {
        let abouts = self.abouts.borrow();
        let (own, about, _) = abouts.get(place(token_of(request)))?;
        if is_same(*own, request) { about.fields() } else { None }
    }

    /// It is written at the end of the turn, or at once if nothing else is expected.
    fn appended(&self) -> Result<()> {
        let is_pumping = self.lines.borrow().is_none();
        if is_pumping {
            return Ok(());
        }
        if self.pipe.in_flight() == 0 || self.pipe.pending() > SOON {
            return self.settle();
        }
        self.flush_after(0.0)
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
