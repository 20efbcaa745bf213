//! Serves a pipe on the event loop of another language: it reads input, writes output, and says which file descriptors and
//! deadlines the loop must wait for. Also wakers, a timer and the table of pending calls for the bindings.
//!
//! ```text
//!   bytes ──▶ Pump::feed ──▶ Pipe ── events ──▶ EventLoop::handle ──▶ user functions, in the loop's language
//!   bytes ◀── Pump::settle ◀── Pipe ◀──────────────────── answers, from any thread
//!                  └──▶ EventLoop::drive(Step): wait for this, call back then
//! ```
//!
//! Law: no lock is held while [`EventLoop`] is called, because user code may call anything here.

mod handler;
mod pending;
mod serving;
#[cfg(test)]
mod tests;
mod timer;
mod waker;

pub use handler::PumpHandler;
pub use pending::{PendingCalls, PendingReply};
pub use serving::{HttpSide, ServingRegistry};
pub use timer::PumpTimer;
pub use waker::{DELIVER, LoopWaker, TIME, WORK, WakerOwner, Woken, collect};

use crate::sync::Mutex;
use crate::transport::{EngineClock, Flushed, Pipe, PipeSender, Received, Stdio};
use mcp_resources_engine::connection::{Events, RequestOutcome};
use mcp_resources_engine::embedded::{EmbeddedFront, EmbeddedServer, FrontLine};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::jsonrpc::{Line, Lines};
use mcp_resources_engine::now::Millis;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Waker;
use std::thread::ThreadId;

/// The size of one read in bytes.
const CHUNK: usize = 64 * 1024;
/// Output beyond this size, in bytes, is written without waiting for other answers of the loop's turn.
const SOON: usize = 64 * 1024;
/// Longest line of a client of another server, in bytes: it may be for that server.
const MOST_LINE: usize = 64 * 1024 * 1024;
/// Most lines that wait for another server, and about the most bytes.
const MOST_LINES: usize = 64;
const MOST_LINE_BYTES: usize = 1024 * 1024;
/// Bits of [`Pump::polled`]: the descriptors that the loop waits for.
const READ: u8 = 1;
const WRITE: u8 = 2;

/// An action for an event loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PumpStep {
    /// Wait for input, and for room for output, or stop waiting.
    Poll {
        /// Whether to call [`Pump::readable`] or [`Pump::feed`] when there is input.
        read: bool,
        /// Whether to call [`Pump::writable`] when there is room.
        write: bool,
    },
    /// Take the output: it is not written here, or was not written completely.
    Output,
    /// Call [`Pump::timer`] in this many milliseconds, replacing the previous alarm.
    Alarm(Millis),
    /// Call [`Pump::flush`] at the end of this turn.
    Flush {
        /// Whether to call it as soon as settled promises have answered.
        settled: bool,
    },
    /// Lines wait for the other server: call [`Pump::take_lines`] until it returns none, now or later.
    Lines,
    /// The client has closed its end, or has disconnected.
    Ended,
    /// After the end: no request is in flight, and everything is written.
    Idle,
}

/// An event loop of another language, during one call of a [`Pump`].
pub trait EventLoop {
    /// The error of a call into the language.
    type Error;

    /// Whether the loop itself writes the output that the client does not accept at once, and then calls
    /// [`Pump::writable`]. Other loops wait for room.
    const DRAINS: bool;
    /// Whether output is delayed until settled promises have answered.
    const DEFERS: bool;

    /// Performs a step.
    ///
    /// # Errors
    /// The language's error.
    fn drive(&self, step: PumpStep) -> Result<(), Self::Error>;

    /// Calls the user functions for `events`, and handles their results.
    ///
    /// # Errors
    /// The language's error.
    fn handle(&self, events: Events<'_>) -> Result<(), Self::Error>;

    /// Logs a mistake of a user function.
    ///
    /// # Errors
    /// The language's error.
    fn misused(&self, what: String) -> Result<(), Self::Error>;

    /// Makes a change, and delivers to the clients that it wakes before returning.
    ///
    /// # Errors
    /// The language's error during delivery.
    fn delivering<R>(&self, change: impl FnOnce() -> R) -> Result<R, Self::Error>;

    /// Called after all events of one call: queued calls can start.
    ///
    /// # Errors
    /// The language's error.
    fn handled(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Serves a pipe on an event loop. Only the loop's thread may call it, unless a method says otherwise.
pub struct Pump {
    pipe: Arc<Pipe>,
    engine: Arc<Engine>,
    clock: Arc<EngineClock>,
    /// The loop's thread.
    thread: ThreadId,
    /// Makes the loop check output and timers.
    waker: Waker,
    /// Whether notifications are written immediately.
    delivers: bool,
    /// Whether there are descriptors to read and write; otherwise the client is in the same process.
    is_stdio: bool,
    stdio: Mutex<Option<Stdio>>,
    /// `None` while it is in use.
    input: Mutex<Option<Input>>,
    timer: PumpTimer,
    /// The other server that gets what is not ours.
    other: Option<Mutex<OtherServer>>,
    /// Whether as many lines wait for the other server as may.
    is_other_full: AtomicBool,
    /// Whether the loop is handling input, and will write at its end.
    is_pumping: AtomicBool,
    /// Whether lines wait for room in the output.
    has_lines_left: AtomicBool,
    is_flush_due: AtomicBool,
    /// Whether the loop is writing output that it took.
    is_blocked: AtomicBool,
    has_ended: AtomicBool,
    is_idle: AtomicBool,
    polled: AtomicU8,
}

/// The server behind a pipe of ours.
struct OtherServer {
    front: EmbeddedFront,
    /// The lines that it has not taken, each with its end.
    lines: Vec<u8>,
    waiting: usize,
}

/// The received lines and the read buffer.
struct Input {
    lines: Lines,
    buffer: Vec<u8>,
}

impl OtherServer {
    /// Finds the server that gets a line of the client, and keeps the line for the other one. Returns also whether there is
    /// room for one more.
    fn client_line(&mut self, line: &[u8]) -> (FrontLine, bool) {
        let to = self.front.client_line(line);
        if to != FrontLine::Ours {
            self.lines.extend_from_slice(line);
            self.lines.push(b'\n');
            self.waiting += 1;
        }
        (to, self.waiting < MOST_LINES && self.lines.len() < MOST_LINE_BYTES)
    }
}

impl Pump {
    /// Makes a pump for this thread's loop. From other threads, `waker` makes the loop call [`Pump::settle`]. With
    /// `delivers`, notifications are written immediately.
    pub fn new(
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        stdio: Option<Stdio>,
        delivers: bool,
        waker: Waker,
    ) -> Arc<Self> {
        Self::with_sender(engine, clock, stdio, delivers, waker, PipeSender::default())
    }

    /// Like [`Pump::new`], for a client that sends as `sender`: for tests of a server.
    pub fn with_sender(
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        stdio: Option<Stdio>,
        delivers: bool,
        waker: Waker,
        sender: PipeSender,
    ) -> Arc<Self> {
        let pipe = Pipe::with_sender(engine, clock.clone(), sender);
        Self::with_pipe(engine, clock, pipe, stdio, delivers, waker, None)
    }

    /// Like [`Pump::new`], in front of the server that the engine is attached to. That server gets the lines that are
    /// not ours by [`Pump::take_lines`], and sends by [`Pump::send`].
    pub fn before(
        server: &Arc<EmbeddedServer>,
        clock: Arc<EngineClock>,
        stdio: Option<Stdio>,
        waker: Waker,
    ) -> Arc<Self> {
        let engine = server.engine();
        let connection = EmbeddedFront::connect(engine);
        let pipe = Pipe::with_connection(engine, clock.clone(), PipeSender::default(), connection);
        Self::with_pipe(engine, clock, pipe, stdio, true, waker, Some(EmbeddedFront::new(server)))
    }

    fn with_pipe(
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        pipe: Pipe,
        stdio: Option<Stdio>,
        delivers: bool,
        waker: Waker,
        front: Option<EmbeddedFront>,
    ) -> Arc<Self> {
        let longest = if front.is_some() { MOST_LINE } else { engine.limits().message };
        let input = Input { lines: Lines::new(longest), buffer: Vec::new() };
        let timer = Default::default();
        let is_pumping = Default::default();
        let has_lines_left = Default::default();
        let is_flush_due = Default::default();
        let is_blocked = Default::default();
        let has_ended = Default::default();
        let is_idle = Default::default();
        let polled = Default::default();
        let pump = Self {
            pipe: Arc::new(pipe),
            engine: engine.clone(),
            clock,
            thread: std::thread::current().id(),
            waker,
            delivers,
            is_stdio: stdio.is_some(),
            stdio: Mutex::new(stdio),
            input: Mutex::new(Some(input)),
            timer,
            other: front.map(|front| Mutex::new(OtherServer { front, lines: Vec::new(), waiting: 0 })),
            is_other_full: AtomicBool::new(false),
            is_pumping,
            has_lines_left,
            is_flush_due,
            is_blocked,
            has_ended,
            is_idle,
            polled,
        };
        pump.polled.store(READ, Ordering::Release);
        Arc::new(pump)
    }

    /// The connection and its output.
    pub fn pipe(&self) -> &Arc<Pipe> {
        &self.pipe
    }

    /// Whether this is the loop's thread. Any thread may call.
    pub fn is_on_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    /// Calls `look` with the descriptors; `None` for a client in the same process.
    pub fn with_stdio<R>(&self, look: impl FnOnce(&Stdio) -> R) -> Option<R> {
        self.stdio.lock().as_ref().map(look)
    }

    /// Closes the descriptors.
    pub fn close_stdio(&self) {
        let stdio = self.stdio.lock().take();
        drop(stdio);
    }

    /// Called when there is input: reads it, answers it or starts handlers, and writes.
    ///
    /// # Errors
    /// As those of [`EventLoop`], here and in all other methods.
    pub fn readable<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        let Some(mut input) = self.take_input() else { return Ok(()) };
        input.buffer.resize(CHUNK, 0);
        let received = self.with_stdio(|stdio| stdio.read(&mut input.buffer));
        if let Some(Received::Bytes(count)) = received {
            input.lines.push(input.buffer.get(..count).unwrap_or_default());
        }
        let result = self.serve(on, input);
        if received == Some(Received::End) { self.end(on) } else { result }
    }

    /// Handles input that was read elsewhere.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn feed<L: EventLoop>(&self, on: &L, chunk: &[u8]) -> Result<(), L::Error> {
        let Some(mut input) = self.take_input() else { return Ok(()) };
        input.lines.push(chunk);
        self.serve(on, input)
    }

    /// Handles the end of input.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn end<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if self.has_ended.swap(true, Ordering::AcqRel) {
            return self.settle(on);
        }
        if let Some(mut input) = self.take_input() {
            input.lines.finish();
            self.serve(on, input)?;
        }
        on.drive(PumpStep::Ended)?;
        self.settle(on)
    }

    /// Stops reading input, and ends open listens with their results.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn stop<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.has_ended.store(true, Ordering::Release);
        self.pipe.shutdown();
        self.pipe.deliver();
        self.settle(on)
    }

    /// Called when there is room for output, or the loop has written the output it took.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn writable<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.is_blocked.store(false, Ordering::Release);
        self.settle(on)?;
        self.resume(on)
    }

    /// Writes unwritten output, after [`PumpStep::Flush`].
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn flush<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.is_flush_due.store(false, Ordering::Release);
        self.settle(on)
    }

    /// Called when the loop's timer fires.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn timer<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.timer.fired();
        on.delivering(|| self.engine.tick(self.clock.now()))?;
        let events = logged(on, self.pipe.tick())?;
        self.work(on, events)
    }

    /// Cancels requests in flight.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn cancel_all<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.work(on, self.pipe.cancel_all())
    }

    /// Closes the connection.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn close<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        self.work(on, self.pipe.close())
    }

    /// Takes all output for a client in the same process, including that of lines that waited for room.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn take<L: EventLoop>(&self, on: &L) -> Result<Vec<u8>, L::Error> {
        let mut bytes = self.pipe.take();
        while self.has_lines_left.load(Ordering::Acquire) && !self.is_pumping.load(Ordering::Acquire) {
            self.resume(on)?;
            bytes.append(&mut self.pipe.take());
        }
        Ok(bytes)
    }

    /// Takes up to `max` bytes of the output, for a loop that writes them itself.
    pub fn take_part(&self, max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.pipe.flush(|some| {
            let count = some.len().min(max - bytes.len());
            bytes.extend_from_slice(some.get(..count).unwrap_or_default());
            Ok(count)
        });
        bytes
    }

    /// Sends lines of the other server to the client, at the end of this turn. Only the last may be without an end.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn send<L: EventLoop>(&self, on: &L, lines: &[u8]) -> Result<(), L::Error> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let begun = self.other.as_ref().and_then(|other| other.lock().front.server_line(line));
            if let Some(message) = begun {
                let events = logged(on, self.pipe.tell(&message))?;
                on.handle(events)?;
            }
            self.pipe.append(line);
        }
        if self.will_write() {
            return Ok(());
        }
        if self.pipe.pending() > SOON { self.settle(on) } else { self.flush_soon(on, false) }
    }

    /// The other server has ended: it answers nothing more.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn left<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if let Some(other) = &self.other {
            other.lock().front.server_left();
        }
        self.is_other_full.store(false, Ordering::Release);
        self.settle(on)
    }

    /// Takes the lines that wait for the other server, each with its end, and goes on to read if there was no room for more.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn take_lines<L: EventLoop>(&self, on: &L) -> Result<Vec<u8>, L::Error> {
        let Some(other) = &self.other else { return Ok(Vec::new()) };
        let lines = {
            let mut other = other.lock();
            other.waiting = 0;
            std::mem::take(&mut other.lines)
        };
        if self.is_other_full.swap(false, Ordering::AcqRel) {
            self.resume(on)?;
        }
        Ok(lines)
    }

    /// Delivers notifications of the hub to this client. Any thread may call.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn deliver<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if !self.delivers {
            return Ok(());
        }
        self.pipe.deliver();
        if !self.is_on_loop() {
            self.write_elsewhere();
            return self.rearm(on);
        }
        if self.is_pumping.load(Ordering::Acquire) {
            return Ok(());
        }
        if L::DEFERS { self.flush_soon(on, true) } else { self.settle(on) }
    }

    /// Handles work that other threads or the engine have left for the loop, except events: delivers if `delivers` is
    /// set, writes, and continues with waiting lines.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn wake<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        on.handled()?;
        self.settle(on)?;
        self.resume(on)
    }

    /// Appends pending notifications before the loop writes; does nothing if the runtime requests them itself.
    pub fn append_notifications(&self) {
        if self.delivers {
            self.pipe.deliver();
        }
    }

    /// Called after an answer or a report was appended, on any thread: it is written at the end of the turn, or at once
    /// if nothing else is expected.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn appended<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if self.will_write() {
            return Ok(());
        }
        if !self.is_on_loop() {
            self.write_elsewhere();
            return Ok(());
        }
        if self.pipe.in_flight() == 0 || self.pipe.pending() > SOON {
            return self.settle(on);
        }
        self.flush_soon(on, false)
    }

    /// Writes as much as the client accepts, on any thread; the loop writes the rest.
    pub fn write_elsewhere(&self) {
        let is_all = self.write_out() == Flushed::All && self.is_stdio;
        if !is_all || self.has_ended.load(Ordering::Acquire) {
            self.wake_loop();
        }
    }

    /// Makes the loop check output and timers. Any thread may call.
    pub fn wake_loop(&self) {
        self.waker.wake_by_ref();
    }

    /// Whether this thread is handling input, and will write at its end.
    pub fn will_write(&self) -> bool {
        self.is_pumping.load(Ordering::Acquire) && self.is_on_loop()
    }

    /// Writes output, and updates the descriptors and deadlines that the loop waits for.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn settle<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if !self.is_stdio {
            if self.pipe.pending() > 0 {
                on.drive(PumpStep::Output)?;
            }
        } else {
            match self.write_out() {
                Flushed::Blocked if L::DRAINS && !self.is_blocked.swap(true, Ordering::AcqRel) => {
                    on.drive(PumpStep::Output)?;
                }
                Flushed::Broken if !self.has_ended.swap(true, Ordering::AcqRel) => {
                    on.drive(PumpStep::Ended)?
                }
                _ => {}
            }
        }
        self.poll(on)?;
        self.rearm(on)?;
        let is_idle = self.has_ended.load(Ordering::Acquire)
            && self.pipe.in_flight() == 0
            && self.pipe.pending() == 0
            && !self.has_lines_left.load(Ordering::Acquire)
            && self.other.as_ref().is_none_or(|other| other.lock().front.waiting() == 0)
            && !self.is_blocked.load(Ordering::Acquire);
        if is_idle && !self.is_idle.swap(true, Ordering::AcqRel) { on.drive(PumpStep::Idle) } else { Ok(()) }
    }

    /// Arms the loop's timer for the earliest deadline, unless it fires before that anyway. Any thread may call.
    ///
    /// # Errors
    /// See [`Pump::readable`].
    pub fn rearm<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if !self.is_on_loop() {
            self.rearm_elsewhere();
            return Ok(());
        }
        let delay = self.timer.arm(&self.deadlines(), self.clock.now());
        delay.map_or(Ok(()), |delay| on.drive(PumpStep::Alarm(delay)))
    }

    /// Makes the loop check its timer, if that fires too late. For other threads.
    fn rearm_elsewhere(&self) {
        if self.timer.is_late_for(&self.deadlines()) {
            self.wake_loop();
        }
    }

    fn deadlines(&self) -> [Option<Millis>; 2] {
        [self.pipe.deadline(), self.engine.deadline()]
    }

    /// Handles received lines as long as the client reads the answers; then writes.
    fn serve<L: EventLoop>(&self, on: &L, mut input: Input) -> Result<(), L::Error> {
        self.is_pumping.store(true, Ordering::Release);
        let result = on.delivering(|| {
            let mut result = self.lines(on, &mut input.lines);
            // A client that reads as fast as it writes leaves lines behind without ever blocking the output.
            while matches!(result, Ok(true)) && self.may_go_on() {
                result = self.lines(on, &mut input.lines);
            }
            result
        });
        let result = result.and_then(|result| result);
        self.has_lines_left.store(matches!(result, Ok(true)), Ordering::Release);
        *self.input.lock() = Some(input);
        self.is_pumping.store(false, Ordering::Release);
        on.handled()?;
        if L::DEFERS && self.pipe.in_flight() > 0 {
            self.flush_soon(on, true)?;
        } else {
            self.settle(on)?;
        }
        if self.other.as_ref().is_some_and(|other| other.lock().waiting > 0) {
            on.drive(PumpStep::Lines)?;
        }
        result.map(drop)
    }

    /// Handles lines while there is room for answers; returns whether some may be left.
    fn lines<L: EventLoop>(&self, on: &L, lines: &mut Lines) -> Result<bool, L::Error> {
        while !self.pipe.is_full() && !self.is_other_full.load(Ordering::Acquire) {
            let Some(line) = lines.next() else { return Ok(false) };
            if let (Some(other), Line::Message(message)) = (&self.other, &line) {
                let (to, has_room) = other.lock().client_line(message);
                if to == FrontLine::Both {
                    on.handle(logged(on, self.pipe.tell(message))?)?;
                }
                if to != FrontLine::Ours {
                    self.is_other_full.store(!has_room, Ordering::Release);
                    continue;
                }
            }
            on.handle(logged(on, self.pipe.line(line))?)?;
        }
        Ok(true)
    }

    /// Whether lines that were left can be handled at once.
    fn may_go_on(&self) -> bool {
        self.is_stdio && !self.is_other_full.load(Ordering::Acquire) && self.write_out() == Flushed::All
    }

    /// Continues with lines that were left while the output was full.
    fn resume<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        if self.pipe.is_full() || self.is_other_full.load(Ordering::Acquire) {
            return Ok(());
        }
        self.take_input().map_or(Ok(()), |input| self.serve(on, input))
    }

    /// Handles events that do not come from input, then writes.
    fn work<L: EventLoop>(&self, on: &L, events: Events<'_>) -> Result<(), L::Error> {
        on.handle(events)?;
        on.handled()?;
        self.settle(on)
    }

    fn flush_soon<L: EventLoop>(&self, on: &L, settled: bool) -> Result<(), L::Error> {
        if self.is_flush_due.swap(true, Ordering::AcqRel) {
            Ok(())
        } else {
            on.drive(PumpStep::Flush { settled })
        }
    }

    fn poll<L: EventLoop>(&self, on: &L) -> Result<(), L::Error> {
        let takes = !self.is_other_full.load(Ordering::Acquire);
        let read = takes && !self.has_ended.load(Ordering::Acquire) && !self.pipe.is_full();
        let is_left = || self.pipe.pending() > 0 || (takes && self.has_lines_left.load(Ordering::Acquire));
        let write = !L::DRAINS && self.is_stdio && is_left();
        let wanted = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        if self.polled.swap(wanted, Ordering::AcqRel) == wanted {
            return Ok(());
        }
        on.drive(PumpStep::Poll { read, write })
    }

    /// Writes as much as the client accepts; nothing while the loop writes the output it took.
    fn write_out(&self) -> Flushed {
        if self.is_blocked.load(Ordering::Acquire) {
            return Flushed::Blocked;
        }
        self.with_stdio(|stdio| self.pipe.flush(|bytes| stdio.write(bytes))).unwrap_or(Flushed::All)
    }

    fn take_input(&self) -> Option<Input> {
        self.input.lock().take()
    }
}

impl fmt::Debug for Pump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pump").field("connection", &self.pipe.id()).finish_non_exhaustive()
    }
}

/// The events of an outcome, after logging mistakes of user functions.
fn logged<'m, L: EventLoop>(on: &L, outcome: RequestOutcome<'m>) -> Result<Events<'m>, L::Error> {
    outcome.misuse.map_or(Ok(()), |misuse| on.misused(misuse))?;
    Ok(outcome.events)
}
