//! One client: lines in, answers out, and what the event loop must do. Lives on the thread of its JavaScript.
//!
//! Law: nothing is borrowed while JavaScript runs: a handler may call anything here.

use crate::about::About;
use crate::calls;
use crate::server::{Host, number};
use mcp_resources::connection::{AskId, Event, Events, Outcome, RequestToken};
use mcp_resources::jsonrpc::{Json, Lines};
use mcp_resources::now::Millis;
use mcp_resources::transport::{Flushed, Pipe, Stdio};
use napi::Env;
use napi::bindgen_prelude::*;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

/// Output beyond this is written without waiting for the other answers of a turn of the loop.
const SOON: usize = 64 * 1024;

/// What the event loop must do, by the numbers of `js/driver.ts`.
#[derive(Clone, Copy)]
enum Need {
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
    /// The client has answered what it was asked with the result in the text; without one, it has not answered.
    Replied = 9,
    /// It has refused, with the error in the text.
    Refused = 10,
}

type Drive = FunctionRef<FnArgs<(u32, f64, Option<String>)>, Unknown<'static>>;

/// See the module.
pub(crate) struct Link {
    pub(crate) env: Env,
    pub(crate) host: Rc<Host>,
    pub(crate) pipe: Pipe,
    /// Its number among the peers that `js/driver.ts` knows.
    pub(crate) peer: u32,
    pub(crate) stdio: RefCell<Option<Stdio>>,
    /// What is known of the requests that wait, by the index of their place.
    pub(crate) abouts: RefCell<Vec<About>>,
    pub(crate) is_handling: Cell<bool>,
    /// Events that came of answers while others were handled.
    pub(crate) following: RefCell<Vec<Event<'static>>>,
    pub(crate) flush_is_due: Cell<bool>,
    /// The loop sees to output that was taken.
    pub(crate) is_blocked: Cell<bool>,
    pub(crate) alarm: Cell<Millis>,
    /// `None` once it is closed: it holds what holds this, and neither would ever be freed.
    drive: RefCell<Option<Rc<Drive>>>,
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
        (peer, drive): (u32, Drive),
        stdio: Option<Stdio>,
        delivers: bool,
    ) -> Result<Rc<Self>> {
        let engine = host.engine()?;
        let link = Rc::new(Self {
            env: host.env,
            pipe: Pipe::new(&engine, host.clock.clone()),
            host: host.clone(),
            peer,
            stdio: RefCell::new(stdio),
            abouts: RefCell::default(),
            is_handling: Cell::default(),
            following: RefCell::default(),
            flush_is_due: Cell::default(),
            is_blocked: Cell::default(),
            alarm: Cell::new(Millis::MAX),
            drive: RefCell::new(Some(Rc::new(drive))),
            delivers,
            lines: RefCell::new(Some(Lines::new(engine.limits().message))),
            lines_are_left: Cell::default(),
            has_ended: Cell::default(),
            idle_is_told: Cell::default(),
            reads: Cell::new(true),
        });
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
        self.drive(Need::Ended, 0.0, None)?;
        self.settle()
    }

    /// No further input is wanted.
    pub(crate) fn stop(self: &Rc<Self>) -> Result<()> {
        self.has_ended.set(true);
        self.settle()
    }

    /// Ends the connection: what is in flight is cancelled.
    pub(crate) fn close(self: &Rc<Self>) -> Result<()> {
        self.host.leave(self.pipe.id());
        let events = self.pipe.close();
        let result = self.work(events);
        self.stdio.replace(None);
        let drive = self.drive.take();
        drop(drive);
        result
    }

    /// Serves the lines that have come, as long as the client reads the answers; then writes.
    fn pump(self: &Rc<Self>, mut lines: Lines) -> Result<()> {
        let mut result = self.serve(&mut lines);
        // A client that reads as fast as it writes leaves lines behind without ever blocking the output.
        while matches!(result, Ok(true)) && self.stdio.borrow().is_some() && self.write_out() == Flushed::All
        {
            result = self.serve(&mut lines);
        }
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
            let wakes = outcome.wakes;
            calls::handle_all(self, self.outcome("", outcome)?)?;
            if wakes && self.delivers {
                self.pipe.deliver();
            }
        }
        Ok(true)
    }

    /// Handles events outside of input, then writes.
    pub(crate) fn work(self: &Rc<Self>, events: Events<'_>) -> Result<()> {
        calls::handle_all(self, events)?;
        self.settle()
    }

    /// An answer or a report was appended. It is written at the end of the turn, or at once if nothing else is expected.
    pub(crate) fn appended(&self) -> Result<()> {
        let is_pumping = self.lines.borrow().is_none();
        if is_pumping {
            return Ok(());
        }
        if self.pipe.in_flight() == 0 || self.pipe.pending() > SOON {
            return self.settle();
        }
        self.flush_after(0.0)
    }

    /// The hub has something for this client.
    pub(crate) fn deliver(&self) -> Result<()> {
        if !self.delivers {
            return Ok(());
        }
        self.pipe.deliver();
        if self.lines.borrow().is_none() { Ok(()) } else { self.flush_after(1.0) }
    }

    fn flush_after(&self, what: f64) -> Result<()> {
        if self.flush_is_due.replace(true) { Ok(()) } else { self.drive(Need::Flush, what, None) }
    }

    /// Writes, and tells the loop what to wait for.
    pub(crate) fn settle(&self) -> Result<()> {
        let is_stdio = self.stdio.borrow().is_some();
        if !is_stdio {
            if self.pipe.pending() > 0 {
                self.drive(Need::Output, 0.0, None)?;
            }
        } else if !self.is_blocked.get() {
            match self.write_out() {
                Flushed::All => {}
                Flushed::Blocked => {
                    self.is_blocked.set(true);
                    self.drive(Need::Output, 0.0, None)?;
                }
                Flushed::Broken if self.has_ended.replace(true) => {}
                Flushed::Broken => self.drive(Need::Ended, 0.0, None)?,
            }
        }
        self.read()?;
        self.rearm()?;
        let is_idle = self.pipe.in_flight() == 0
            && self.pipe.pending() == 0
            && !self.lines_are_left.get()
            && !self.is_blocked.get();
        if self.has_ended.get() && is_idle && !self.idle_is_told.replace(true) {
            self.drive(Need::Idle, 0.0, None)?;
        }
        Ok(())
    }

    /// Lets the loop read, or not.
    fn read(&self) -> Result<()> {
        let reads = !self.has_ended.get() && !self.pipe.is_full();
        if self.reads.replace(reads) == reads {
            return Ok(());
        }
        self.drive(Need::Read, f64::from(u8::from(reads)), None)
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
        let Some(deadline) = [self.pipe.deadline(), self.host.deadline()].into_iter().flatten().min() else {
            return Ok(());
        };
        if deadline >= self.alarm.get() {
            return Ok(());
        }
        self.alarm.set(deadline);
        let delay = deadline.saturating_sub(self.host.clock.now().tick);
        self.drive(Need::Alarm, number(delay), None)
    }

    /// Takes the events out of an outcome and logs what the author did wrong.
    pub(crate) fn outcome<'m>(&self, name: &str, outcome: Outcome<'m>) -> Result<Events<'m>> {
        if let Some(misuse) = &outcome.misuse {
            let text = if name.is_empty() { misuse.clone() } else { format!("{name}: {misuse}") };
            self.drive(Need::LogMisuse, 0.0, Some(text))?;
        }
        Ok(outcome.events)
    }

    pub(crate) fn log_held(&self, name: &str, held: Duration) -> Result<()> {
        self.drive(Need::LogHeld, held.as_secs_f64() * 1000.0, Some(name.to_owned()))
    }

    pub(crate) fn cancelled(&self, token: RequestToken) -> Result<()> {
        self.drive(Need::Cancelled, token_number(token), None)
    }

    pub(crate) fn replied(
        &self,
        ask: AskId,
        answer: Option<std::result::Result<Json<'_>, Json<'_>>>,
    ) -> Result<()> {
        let ask = number(ask.0);
        match answer {
            Some(Err(error)) => self.drive(Need::Refused, ask, Some(error.raw().to_owned())),
            Some(Ok(result)) => self.drive(Need::Replied, ask, Some(result.raw().to_owned())),
            None => self.drive(Need::Replied, ask, None),
        }
    }

    fn drive(&self, need: Need, value: f64, text: Option<String>) -> Result<()> {
        let Some(drive) = self.drive.borrow().clone() else { return Ok(()) };
        drive.borrow_back(&self.env)?.call(FnArgs::from((need as u32, value, text))).map(drop)
    }
}

/// A token as a number that JavaScript holds exactly: places are fewer than 2^20.
pub(crate) fn token_number(token: RequestToken) -> f64 {
    number(token.to_u64().rotate_left(32))
}

/// The token that [`token_number`] gave. An invented number names no request.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made from a whole number")]
pub(crate) fn token_of(number: f64) -> RequestToken {
    RequestToken::from_u64((number as u64).rotate_right(32))
}
