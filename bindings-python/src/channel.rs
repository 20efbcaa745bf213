//! One client: what the event loop calls, and what handlers answer to.
//!
//! Law: no lock is held while Python runs, and Python objects are dropped outside of locks.

use crate::calls;
use crate::queue::Queue;
use crate::server::{Host, Server};
use mcp_resources::connection::{Event, Outcome, RequestToken};
use mcp_resources::jsonrpc::Lines;
use mcp_resources::transport::{Flushed, Pipe, Received, Stdio};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

/// How much one read takes.
const CHUNK: usize = 64 * 1024;
/// Output beyond this is written without waiting for the other answers of a turn of the loop.
const SOON: usize = 64 * 1024;
/// `Link::polled`: what the loop waits for.
const READ: u8 = 1;
const WRITE: u8 = 2;

/// What all threads share of a channel.
pub(crate) struct Link {
    pub(crate) host: Arc<Host>,
    pub(crate) pipe: Pipe,
    pub(crate) driver: Py<PyAny>,
    /// Starts a coroutine as a task.
    pub(crate) start: Py<PyAny>,
    pub(crate) eager: bool,
    /// The context that handlers run in a copy of.
    pub(crate) context: Py<PyAny>,
    /// Whether `def` handlers run on the worker threads.
    pub(crate) threads: bool,
    /// Whether notifications are written as soon as they are there.
    delivers: bool,
    stdio: Option<Stdio>,
    reader: Mutex<Option<Reader>>,
    tasks: Mutex<HashMap<RequestToken, Py<PyAny>>>,
    /// Events for the loop that came up on another thread.
    events: Mutex<Vec<Event<'static>>>,
    /// The loop works on input and will write at its end.
    pumping: AtomicBool,
    /// Lines wait for room in the output.
    lines_left: AtomicBool,
    flush_is_due: AtomicBool,
    wake_is_due: AtomicBool,
    ended: AtomicBool,
    idle_told: AtomicBool,
    polled: AtomicU8,
    alarm: AtomicU64,
    thread: ThreadId,
}

/// What is read, owned by whoever reads.
struct Reader {
    lines: Lines,
    buffer: Vec<u8>,
}

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Channel(Arc<Link>);

#[pymethods]
impl Channel {
    #[new]
    #[pyo3(signature = (server, driver, *, stdio, threads = true, delivers = true))]
    fn new(
        server: &Server,
        driver: &Bound<'_, PyAny>,
        stdio: bool,
        threads: bool,
        delivers: bool,
    ) -> PyResult<Self> {
        let py = driver.py();
        let host = server.host.clone();
        let engine = host.engine()?;
        let limit = engine.limits().message;
        let link = Arc::new(Link {
            pipe: Pipe::new(&engine, host.clock.clone()),
            host: host.clone(),
            start: driver.getattr("start")?.unbind(),
            eager: driver.getattr("eager")?.extract()?,
            context: py.import("contextvars")?.call_method0("copy_context")?.unbind(),
            driver: driver.clone().unbind(),
            threads,
            delivers,
            stdio: if stdio { Some(Stdio::take()?) } else { None },
            reader: Mutex::new(Some(Reader { lines: Lines::new(limit), buffer: vec![0; CHUNK] })),
            tasks: Mutex::default(),
            events: Mutex::default(),
            pumping: AtomicBool::new(false),
            lines_left: AtomicBool::new(false),
            flush_is_due: AtomicBool::new(false),
            wake_is_due: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            idle_told: AtomicBool::new(false),
            polled: AtomicU8::new(READ),
            alarm: AtomicU64::new(u64::MAX),
            thread: std::thread::current().id(),
        });
        host.join(&link);
        Ok(Self(link))
    }

    /// The descriptor to read from.
    #[getter]
    fn input(&self) -> i32 {
        self.0.stdio.as_ref().map_or(-1, Stdio::input)
    }

    /// The descriptor to write to.
    #[getter]
    fn output(&self) -> i32 {
        self.0.stdio.as_ref().map_or(-1, Stdio::output)
    }

    /// How many requests wait for a handler.
    #[getter]
    fn in_flight(&self) -> usize {
        self.0.pipe.in_flight()
    }

    /// How many of them are suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        lock(&self.0.tasks).len()
    }

    /// How many bytes wait to be written.
    #[getter]
    fn unwritten(&self) -> usize {
        self.0.pipe.pending()
    }

    /// There is input: reads it, answers what can be answered, starts handlers, writes.
    fn readable(&self, py: Python<'_>) -> PyResult<()> {
        let link = &self.0;
        let Some(mut reader) = lock(&link.reader).take() else { return Ok(()) };
        let received = link.stdio.as_ref().map_or(Received::Nothing, |stdio| stdio.read(&mut reader.buffer));
        if let Received::Bytes(count) = received {
            reader.lines.push(reader.buffer.get(..count).unwrap_or_default());
        }
        let result = link.pump(py, reader);
        if received == Received::End { link.end(py) } else { result }
    }

    /// Takes input that was read elsewhere.
    fn feed(&self, py: Python<'_>, chunk: &[u8]) -> PyResult<()> {
        let Some(mut reader) = lock(&self.0.reader).take() else { return Ok(()) };
        reader.lines.push(chunk);
        self.0.pump(py, reader)
    }

    /// The end of input.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.0.end(py)
    }

    /// No further input is wanted.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.0.ended.store(true, Ordering::Release);
        self.0.settle(py)
    }

    /// There is room for output.
    fn writable(&self, py: Python<'_>) -> PyResult<()> {
        self.0.settle(py)?;
        self.0.resume(py)
    }

    /// Writes what waits.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.0.flush_is_due.store(false, Ordering::Release);
        self.0.settle(py)
    }

    /// Another thread has something for the loop.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        self.0.wake_is_due.store(false, Ordering::Release);
        let events = std::mem::take(&mut *lock(&self.0.events));
        self.0.work(py, events)?;
        self.0.resume(py)
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.0.alarm.store(u64::MAX, Ordering::Release);
        self.0.host.tick(py)?;
        let outcome = self.0.pipe.tick();
        self.0.work(py, self.0.outcome(py, "", outcome))
    }

    /// Cancels what is in flight.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        let events = self.0.pipe.cancel_all();
        self.0.work(py, events)
    }

    /// Ends the connection.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.host.leave(self.0.pipe.id());
        let events = self.0.pipe.close();
        self.0.work(py, events)
    }

    /// What was written to a client in the same process.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = self.0.pipe.take();
        while self.0.lines_left.load(Ordering::Acquire) && !self.0.pumping.load(Ordering::Acquire) {
            self.0.resume(py)?;
            bytes.append(&mut self.0.pipe.take());
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Appends notifications that wait, as far as there is room for so many bytes.
    fn deliver(&self, room: usize) {
        self.0.pipe.deliver_up_to(room);
    }
}

impl Link {
    /// Serves the lines that have come, as long as the client reads the answers; then writes.
    fn pump(self: &Arc<Self>, py: Python<'_>, mut reader: Reader) -> PyResult<()> {
        self.pumping.store(true, Ordering::Release);
        let mut result = self.serve(py, &mut reader);
        // A client that reads as fast as it writes leaves lines behind without ever blocking the output.
        while matches!(result, Ok(true)) && self.stdio.is_some() && self.write_out() == Flushed::All {
            result = self.serve(py, &mut reader);
        }
        self.lines_left.store(matches!(result, Ok(true)), Ordering::Release);
        *lock(&self.reader) = Some(reader);
        self.pumping.store(false, Ordering::Release);
        self.kick(py)?;
        self.settle(py)?;
        result.map(drop)
    }

    /// Serves lines while there is room for answers; whether some may be left.
    fn serve(self: &Arc<Self>, py: Python<'_>, reader: &mut Reader) -> PyResult<bool> {
        while !self.pipe.is_full() {
            let Some(line) = reader.lines.next() else { return Ok(false) };
            let outcome = self.pipe.line(line);
            let wakes = outcome.wakes;
            calls::handle_all(py, self, self.outcome(py, "", outcome))?;
            if wakes {
                self.deliver(py)?;
            }
        }
        Ok(true)
    }

    /// Goes on with lines that were left while the output was full.
    fn resume(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.pipe.is_full() {
            return Ok(());
        }
        let Some(reader) = lock(&self.reader).take() else { return Ok(()) };
        self.pump(py, reader)
    }

    fn end(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.ended.swap(true, Ordering::AcqRel) {
            return self.settle(py);
        }
        // Not in the condition: the guard would live as long as the block.
        let reader = lock(&self.reader).take();
        if let Some(mut reader) = reader {
            reader.lines.finish();
            self.pump(py, reader)?;
        }
        self.driver.call_method0(py, "ended")?;
        self.settle(py)
    }

    /// Handles events outside of input, then writes.
    fn work<'m>(
        self: &Arc<Self>,
        py: Python<'_>,
        events: impl IntoIterator<Item = Event<'m>>,
    ) -> PyResult<()> {
        calls::handle_all(py, self, events)?;
        self.kick(py)?;
        self.settle(py)
    }

    fn kick(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        Queue::kick(self.host.queue.bind(py), self)
    }

    /// Writes, and tells the loop what to wait for. On the loop's thread.
    fn settle(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.stdio.is_none() {
            if self.pipe.pending() > 0 {
                self.driver.call_method0(py, "output")?;
            }
        } else if self.write_out() == Flushed::Broken && !self.ended.swap(true, Ordering::AcqRel) {
            self.driver.call_method0(py, "ended")?;
        }
        self.poll(py)?;
        self.rearm(py)?;
        let idle = self.pipe.in_flight() == 0
            && self.pipe.pending() == 0
            && !self.lines_left.load(Ordering::Acquire);
        let done = self.ended.load(Ordering::Acquire) && idle;
        if done && !self.idle_told.swap(true, Ordering::AcqRel) {
            self.driver.call_method0(py, "idle")?;
        }
        Ok(())
    }

    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        let read = !self.ended.load(Ordering::Acquire) && !self.pipe.is_full();
        let left = self.pipe.pending() > 0 || self.lines_left.load(Ordering::Acquire);
        let write = self.stdio.is_some() && left;
        let wanted = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        if self.polled.swap(wanted, Ordering::AcqRel) != wanted {
            self.driver.call_method1(py, "change", (read, write))?;
        }
        Ok(())
    }

    fn write_out(&self) -> Flushed {
        self.stdio.as_ref().map_or(Flushed::All, |stdio| self.pipe.flush(|bytes| stdio.write(bytes)))
    }

    /// Writes as much as the client takes. Any thread; needs no interpreter. Returns whether the loop must see to the
    /// rest.
    pub(crate) fn write_elsewhere(&self) -> bool {
        self.write_out() != Flushed::All || self.stdio.is_none() || self.ended.load(Ordering::Acquire)
    }

    /// Arms the loop's timer for the earliest deadline, unless it rings before that anyway.
    pub(crate) fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        let Some(deadline) = [self.pipe.deadline(), self.host.deadline()].into_iter().flatten().min() else {
            return Ok(());
        };
        if deadline >= self.alarm.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.on_loop() {
            return self.wake_loop(py);
        }
        self.alarm.store(deadline, Ordering::Release);
        let delay = deadline.saturating_sub(self.host.clock.now().tick);
        #[expect(clippy::cast_precision_loss, reason = "a delay is short")]
        self.driver.call_method1(py, "alarm", (delay as f64 / 1000.0,)).map(drop)
    }

    /// An answer or a report was appended. On the loop it is written at the end of the turn, or at once if nothing else
    /// is expected; a worker leaves it to its queue.
    pub(crate) fn appended(self: &Arc<Self>, py: Python<'_>, by_worker: bool) -> PyResult<()> {
        if self.pumping.load(Ordering::Acquire) && self.on_loop() {
            return Ok(());
        }
        if by_worker {
            self.host.queue.get().leave_unwritten(self);
            return Ok(());
        }
        if !self.on_loop() {
            return if self.write_elsewhere() { self.wake_loop(py) } else { Ok(()) };
        }
        if self.pipe.in_flight() == 0 || self.pipe.pending() > SOON {
            return self.settle(py);
        }
        if !self.flush_is_due.swap(true, Ordering::AcqRel) {
            self.driver.call_method0(py, "soon")?;
        }
        Ok(())
    }

    /// The hub has something for this client.
    pub(crate) fn deliver(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if !self.delivers {
            return Ok(());
        }
        self.pipe.deliver();
        if self.on_loop() {
            return if self.pumping.load(Ordering::Acquire) { Ok(()) } else { self.settle(py) };
        }
        self.appended(py, false)?;
        self.rearm(py)
    }

    /// Events of a call on any thread: the loop handles them.
    pub(crate) fn hand_over(
        &self,
        py: Python<'_>,
        events: impl IntoIterator<Item = Event<'static>>,
    ) -> PyResult<()> {
        let mut waiting = lock(&self.events);
        let before = waiting.len();
        waiting.extend(events);
        let is_new = waiting.len() > before;
        drop(waiting);
        if is_new { self.wake_loop(py) } else { Ok(()) }
    }

    /// Takes the events out of an outcome and logs what the author did wrong.
    pub(crate) fn outcome<'m>(
        &self,
        py: Python<'_>,
        name: &str,
        outcome: Outcome<'m>,
    ) -> mcp_resources::connection::Events<'m> {
        if let Some(misuse) = &outcome.misuse {
            crate::error::log_misuse(py, name, misuse);
        }
        outcome.events
    }

    pub(crate) fn on_loop(&self) -> bool {
        std::thread::current().id() == self.thread
    }

    pub(crate) fn wake_loop(&self, py: Python<'_>) -> PyResult<()> {
        if !self.wake_is_due.swap(true, Ordering::AcqRel) {
            self.driver.call_method0(py, "wake")?;
        }
        Ok(())
    }

    /// A handler is suspended as a task.
    pub(crate) fn suspend(&self, py: Python<'_>, token: RequestToken, task: Py<PyAny>) -> PyResult<()> {
        let mut tasks = lock(&self.tasks);
        let first = tasks.is_empty();
        let before = tasks.insert(token, task);
        drop(tasks);
        drop(before);
        if first { self.driver.call_method0(py, "suspended").map(drop) } else { Ok(()) }
    }

    /// The task of a request, if it has one, which is over or is to be.
    pub(crate) fn take_task(&self, token: RequestToken) -> Option<Py<PyAny>> {
        lock(&self.tasks).remove(&token)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
