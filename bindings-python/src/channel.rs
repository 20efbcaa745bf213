//! One client: what the event loop calls, and what handlers answer to.
//!
//! Law: no lock is held while Python runs, and Python objects are dropped outside of locks.

use crate::bell::{Bell, DELIVER, Ear, Owner, TIME, WORK, delivering};
use crate::calls;
use crate::peer::{self, Client, Runtime};
use crate::queue::Queue;
use crate::server::Server;
use crate::web::Ring;
use mcp_resources_engine::connection::Events;
use mcp_resources_engine::engine::Timekeeper;
use mcp_resources_engine::jsonrpc::Lines;
use mcp_resources_host::provider::Providers;
use mcp_resources_host::transport::http::{Inbox, Reach};
use mcp_resources_host::transport::{self, Flushed, Peer, Pipe, Received, Stdio};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// How much one read takes.
const CHUNK: usize = 64 * 1024;
/// Output beyond this is written without waiting for the other answers of a turn of the loop.
const SOON: usize = 64 * 1024;
/// `Link::polled`: what the loop waits for.
const READ: u8 = 1;
const WRITE: u8 = 2;

/// What all threads share of a channel.
pub(crate) struct Link {
    pub(crate) pipe: Arc<Pipe>,
    pub(crate) peer: Peer,
    pub(crate) runtime: Runtime,
    bell: Arc<Bell>,
    _timekeeper: Timekeeper,
    /// Whether notifications are written as soon as they are there.
    delivers: bool,
    stdio: Option<Stdio>,
    reader: Mutex<Option<Reader>>,
    /// What other threads have for the loop.
    inbox: Arc<Inbox<Ring>>,
    /// The loop works on input and will write at its end.
    pumping: AtomicBool,
    /// Lines wait for room in the output.
    lines_left: AtomicBool,
    flush_is_due: AtomicBool,
    ended: AtomicBool,
    idle_told: AtomicBool,
    polled: AtomicU8,
    alarm: AtomicU64,
}

/// What is read, owned by whoever reads.
struct Reader {
    lines: Lines,
    buffer: Vec<u8>,
}

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Channel {
    link: Arc<Link>,
    ear: Mutex<Option<Ear>>,
}

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
        let host = server.host.clone();
        let engine = host.engine()?;
        let limit = engine.limits().message;
        let (bell, ear) = Bell::new()?;
        let runtime = Runtime::new(host.clone(), driver, threads)?;
        let stdio = if stdio { Some(Stdio::take()?) } else { None };
        let pipe = Arc::new(Pipe::new(&engine, host.clock.clone()));
        let inbox = bell.inbox();
        let shore = |link: &Weak<Link>| Shore { link: link.clone(), reach: inbox.reach() };
        let before = |shore| Providers::before(host.mounts().clone(), Arc::new(shore));
        let link = Arc::new_cyclic(|link| Link {
            _timekeeper: engine.keep_time(bell.waker(TIME)),
            bell,
            peer: Peer::pipe(pipe.clone(), host.clock.clone(), before(shore(link))),
            pipe,
            runtime,
            delivers,
            stdio,
            reader: Mutex::new(Some(Reader { lines: Lines::new(limit), buffer: vec![0; CHUNK] })),
            inbox: inbox.clone(),
            pumping: AtomicBool::new(false),
            lines_left: AtomicBool::new(false),
            flush_is_due: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            idle_told: AtomicBool::new(false),
            polled: AtomicU8::new(READ),
            alarm: AtomicU64::new(u64::MAX),
        });
        link.bell.belongs_to(Owner::Link(Arc::downgrade(&link)));
        link.pipe.wake_with(link.bell.waker(DELIVER));
        // Jobs that were put off because the output was full are taken up, whichever thread has written.
        link.pipe.wake_for_room(link.bell.waker(WORK));
        host.join(&link);
        host.begin(driver.py())?;
        Ok(Self { link, ear: Mutex::new(Some(ear)) })
    }

    /// What the loop watches for threads that have something for it, once.
    fn ear(&self) -> Option<Ear> {
        lock(&self.ear).take()
    }

    /// The descriptor to read from.
    #[getter]
    fn input(&self) -> i32 {
        self.link.stdio.as_ref().map_or(-1, Stdio::input)
    }

    /// The descriptor to write to.
    #[getter]
    fn output(&self) -> i32 {
        self.link.stdio.as_ref().map_or(-1, Stdio::output)
    }

    /// How many requests wait for a handler.
    #[getter]
    fn in_flight(&self) -> usize {
        self.link.pipe.in_flight()
    }

    /// How many of them are suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.link.runtime.suspended()
    }

    /// How many bytes wait to be written.
    #[getter]
    fn unwritten(&self) -> usize {
        self.link.pipe.pending()
    }

    /// There is input: reads it, answers what can be answered, starts handlers, writes.
    fn readable(&self, py: Python<'_>) -> PyResult<()> {
        let link = &self.link;
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
        let Some(mut reader) = lock(&self.link.reader).take() else { return Ok(()) };
        reader.lines.push(chunk);
        self.link.pump(py, reader)
    }

    /// The end of input.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.link.end(py)
    }

    /// No further input is wanted: open listens end with their results.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.link.ended.store(true, Ordering::Release);
        self.link.pipe.shutdown();
        self.link.pipe.deliver();
        self.link.settle(py)
    }

    /// There is room for output.
    fn writable(&self, py: Python<'_>) -> PyResult<()> {
        self.link.settle(py)?;
        self.link.resume(py)
    }

    /// Writes what waits.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.link.flush_is_due.store(false, Ordering::Release);
        self.link.settle(py)
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.link.alarm.store(u64::MAX, Ordering::Release);
        self.link.runtime.host.tick(py)?;
        let outcome = self.link.pipe.tick();
        self.link.work(py, peer::events(py, "", outcome))
    }

    /// Cancels what is in flight.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        let events = self.link.pipe.cancel_all();
        self.link.work(py, events)
    }

    /// Ends the connection.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.link.runtime.host.leave(self.link.pipe.id());
        self.link.bell.close();
        let events = self.link.pipe.close();
        self.link.work(py, events)
    }

    /// What was written to a client in the same process.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut bytes = self.link.pipe.take();
        while self.link.lines_left.load(Ordering::Acquire) && !self.link.pumping.load(Ordering::Acquire) {
            self.link.resume(py)?;
            bytes.append(&mut self.link.pipe.take());
        }
        Ok(PyBytes::new(py, &bytes))
    }

    /// Appends notifications that wait, as far as there is room for so many bytes.
    fn deliver(&self, room: usize) {
        self.link.pipe.deliver_up_to(room);
    }
}

impl Link {
    /// Serves the lines that have come, as long as the client reads the answers; then writes.
    fn pump(self: &Arc<Self>, py: Python<'_>, mut reader: Reader) -> PyResult<()> {
        self.pumping.store(true, Ordering::Release);
        let result = delivering(py, || {
            let mut result = self.serve(py, &mut reader);
            // A client that reads as fast as it writes leaves lines behind without ever blocking the output.
            while matches!(result, Ok(true)) && self.stdio.is_some() && self.write_out() == Flushed::All {
                result = self.serve(py, &mut reader);
            }
            result
        });
        let result = result.and_then(|result| result);
        self.lines_left.store(matches!(result, Ok(true)), Ordering::Release);
        *lock(&self.reader) = Some(reader);
        self.pumping.store(false, Ordering::Release);
        self.kick(py)?;
        self.settle(py)?;
        result.map(drop)
    }

    /// Serves lines while there is room for answers; whether some may be left.
    fn serve(self: &Arc<Self>, py: Python<'_>, reader: &mut Reader) -> PyResult<bool> {
        let client = Client::Pipe(self.clone());
        while !self.pipe.is_full() {
            let Some(line) = reader.lines.next() else { return Ok(false) };
            let outcome = self.pipe.line(line);
            calls::handle_all(py, &client, peer::events(py, "", outcome))?;
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
        self.runtime.drive(py, "ended", ())?;
        self.settle(py)
    }

    /// Handles events outside of input, then writes.
    fn work(self: &Arc<Self>, py: Python<'_>, events: Events<'_>) -> PyResult<()> {
        calls::handle_all(py, &Client::Pipe(self.clone()), events)?;
        self.kick(py)?;
        self.settle(py)
    }

    fn kick(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        Queue::kick(self.runtime.host.queue.bind(py), &self.runtime.host)
    }

    /// Writes, and tells the loop what to wait for. On the loop's thread.
    fn settle(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.stdio.is_none() {
            if self.pipe.pending() > 0 {
                self.runtime.drive(py, "output", ())?;
            }
        } else if self.write_out() == Flushed::Broken && !self.ended.swap(true, Ordering::AcqRel) {
            self.runtime.drive(py, "ended", ())?;
        }
        self.poll(py)?;
        self.rearm(py)?;
        let idle = self.pipe.in_flight() == 0
            && self.pipe.pending() == 0
            && !self.lines_left.load(Ordering::Acquire);
        let done = self.ended.load(Ordering::Acquire) && idle;
        if done && !self.idle_told.swap(true, Ordering::AcqRel) {
            self.runtime.drive(py, "idle", ())?;
        }
        Ok(())
    }

    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        let read = !self.ended.load(Ordering::Acquire) && !self.pipe.is_full();
        let left = self.pipe.pending() > 0 || self.lines_left.load(Ordering::Acquire);
        let write = self.stdio.is_some() && left;
        let wanted = if read { READ } else { 0 } | if write { WRITE } else { 0 };
        if self.polled.swap(wanted, Ordering::AcqRel) != wanted {
            self.runtime.drive(py, "change", (read, write))?;
        }
        Ok(())
    }

    fn write_out(&self) -> Flushed {
        self.stdio.as_ref().map_or(Flushed::All, |stdio| self.pipe.flush(|bytes| stdio.write(bytes)))
    }

    /// Arms the loop's timer for the earliest deadline, unless it rings before that anyway.
    pub(crate) fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        let Some(deadline) = [self.pipe.deadline(), self.runtime.host.deadline()].into_iter().flatten().min()
        else {
            return Ok(());
        };
        if deadline >= self.alarm.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.runtime.on_loop() {
            self.wake_loop();
            return Ok(());
        }
        self.alarm.store(deadline, Ordering::Release);
        let delay = deadline.saturating_sub(self.runtime.host.clock.now().tick);
        #[expect(clippy::cast_precision_loss, reason = "a delay is short")]
        self.runtime.drive(py, "alarm", (delay as f64 / 1000.0,))
    }

    /// Does what another thread, or the engine, has left for the loop.
    pub(crate) fn wake(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if self.bell.heard() & DELIVER != 0 && self.delivers {
            self.pipe.deliver();
        }
        let result = peer::take(py, &self.inbox, &self.runtime, |_| Client::Pipe(self.clone()));
        self.kick(py)?;
        self.settle(py)?;
        self.resume(py)?;
        result
    }

    /// The engine has said `words`, inside a call of this thread.
    pub(crate) fn woken(self: &Arc<Self>, py: Python<'_>, words: u8) -> PyResult<()> {
        if words & DELIVER != 0 {
            return self.deliver(py);
        }
        if words & TIME != 0 { self.rearm(py) } else { Ok(()) }
    }

    /// The hub has something for this client.
    pub(crate) fn deliver(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        if !self.delivers {
            return Ok(());
        }
        self.pipe.deliver();
        if self.runtime.on_loop() {
            return if self.pumping.load(Ordering::Acquire) { Ok(()) } else { self.settle(py) };
        }
        self.appended(py, false)?;
        self.rearm(py)
    }
}

/// How handlers' answers are written.
impl Link {
    /// On the loop it is written at the end of the turn, or at once if nothing else is expected; a worker leaves it to
    /// its queue.
    pub(crate) fn appended(self: &Arc<Self>, py: Python<'_>, by_worker: bool) -> PyResult<()> {
        if self.will_write() {
            return Ok(());
        }
        if by_worker {
            self.runtime.host.queue.get().jobs.leave_unwritten(Client::Pipe(self.clone()));
            return Ok(());
        }
        if !self.runtime.on_loop() {
            if self.write_elsewhere() {
                self.wake_loop();
            }
            return Ok(());
        }
        if self.pipe.in_flight() == 0 || self.pipe.pending() > SOON {
            return self.settle(py);
        }
        if !self.flush_is_due.swap(true, Ordering::AcqRel) {
            self.runtime.drive(py, "soon", ())?;
        }
        Ok(())
    }

    pub(crate) fn write_elsewhere(&self) -> bool {
        self.write_out() != Flushed::All || self.stdio.is_none() || self.ended.load(Ordering::Acquire)
    }

    pub(crate) fn wake_loop(&self) {
        self.bell.say(WORK);
    }

    /// Whether this thread works on input, and writes at its end.
    fn will_write(&self) -> bool {
        self.pumping.load(Ordering::Acquire) && self.runtime.on_loop()
    }
}

/// A link as providers' threads have it: they never enter the interpreter, and keep nothing of it.
struct Shore {
    link: Weak<Link>,
    reach: Arc<Reach<Ring>>,
}

impl transport::Host for Shore {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        self.reach.handle(peer, events);
    }

    fn appended(&self, _peer: &Peer) {
        if let Some(link) = self.link.upgrade()
            && !link.will_write()
            && link.write_elsewhere()
        {
            link.wake_loop();
        }
    }

    /// The loop looks at deadlines after all that it does.
    fn pends(&self, _peer: &Peer) {
        if let Some(link) = self.link.upgrade()
            && !link.runtime.on_loop()
            && link.pipe.deadline().is_some_and(|deadline| deadline < link.alarm.load(Ordering::Acquire))
        {
            link.wake_loop();
        }
    }

    fn misuse(&self, what: &str) {
        self.reach.misuse(what);
    }
}

/// A loop that was forgotten lets go of what it watches.
impl Drop for Link {
    fn drop(&mut self) {
        self.bell.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
