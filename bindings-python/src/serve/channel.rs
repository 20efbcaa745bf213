//! One client over a pipe: the methods that the event loop calls, and the target of handlers' answers.

use crate::calls::client::{Client, DeliveryReady, LoopClient, Runtime};
use crate::calls::contextvars::CallContext;
use crate::calls::run;
use crate::calls::waker::{LoopOwner, LoopWaker, Owner, Wakeup, delivering, watched};
use crate::serve::embedded::Embedding;
use crate::serve::server::Server;
use crate::serve::web::seconds;
use crate::serve::{audit, inbox};
use crate::values::error;
use mcp_resources_engine::connection::Events;
use mcp_resources_engine::engine::TimerRegistration;
use mcp_resources_runtime::provider::Providers;
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox};
use mcp_resources_runtime::transport::pump::{DELIVER, EventLoop, Pump, PumpHandler, PumpStep, TIME, WORK};
use mcp_resources_runtime::transport::{Peer, PipeSender, Stdio};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Weak};

/// The state of a channel that all threads share.
pub(crate) struct Link {
    pub(crate) pump: Arc<Pump>,
    pub(crate) peer: Peer,
    pub(crate) runtime: Runtime,
    waker: Arc<LoopWaker>,
    /// Items from other threads for the loop.
    pub(crate) inbox: Arc<RequestInbox<DeliveryReady>>,
    _timer_registration: TimerRegistration,
}

/// A link, and that this thread is in the interpreter.
pub(crate) struct Attached<'l, 'py>(&'l Arc<Link>, Python<'py>);

/// One client of a server over a pipe.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Channel {
    link: Arc<Link>,
    /// The descriptor that the loop watches.
    #[pyo3(get)]
    wakeup: Py<Wakeup>,
}

/// The sender of a client in the same process.
#[derive(FromPyObject)]
struct SenderParts {
    #[pyo3(item(0))]
    principal: String,
    #[pyo3(item(1))]
    scopes: Vec<String>,
    /// A JSON object.
    #[pyo3(item(2))]
    claims: Option<String>,
    #[pyo3(item(3))]
    headers: Vec<(String, String)>,
}

#[pymethods]
impl Channel {
    #[new]
    #[pyo3(signature = (server, driver, *, stdio, threads = true, delivers = true, sender = None, before = None))]
    fn new(
        server: &Server,
        driver: &Bound<'_, PyAny>,
        stdio: bool,
        threads: bool,
        delivers: bool,
        sender: Option<SenderParts>,
        before: Option<&Embedding>,
    ) -> PyResult<Self> {
        let state = server.state.clone();
        let engine = state.engine()?;
        let clock = state.clock.clone();
        let (waker, wakeup) = watched(driver.py())?;
        let runtime = Runtime::new(state.clone(), driver, threads)?;
        let stdio = if stdio { Some(Stdio::take()?) } else { None };
        let sender = sender.map_or_else(PipeSender::default, |sender| {
            let SenderParts { principal, scopes, claims, headers } = sender;
            PipeSender::new(&principal, scopes, claims.map(Into::into), &headers)
        });
        let pump = match before {
            Some(other) => Pump::before(other.core(), clock.clone(), stdio, waker.waker(WORK)),
            None => Pump::with_sender(&engine, clock.clone(), stdio, delivers, waker.waker(WORK), sender),
        };
        let inbox = waker.inbox();
        let elsewhere = PumpHandler::new(&pump, inbox.reach());
        let elsewhere = Providers::before(state.mounts().clone(), Arc::new(elsewhere));
        let link = Arc::new(Link {
            _timer_registration: engine.register_timer(waker.waker(TIME)),
            peer: Peer::pipe(pump.pipe().clone(), clock, elsewhere),
            pump,
            runtime,
            waker,
            inbox,
        });
        let served: Weak<Link> = Arc::downgrade(&link);
        link.waker.belongs_to(Owner::new(served, false));
        link.pump.pipe().wake_with(link.waker.waker(DELIVER));
        // Jobs that were put off because the output was full are taken up, whichever thread has written.
        link.pump.pipe().wake_for_room(link.waker.waker(WORK));
        state.serving.join(link.pump.pipe());
        audit::begin(driver.py(), &state)?;
        Ok(Self { link, wakeup })
    }

    /// The descriptor to read from.
    #[getter]
    fn input(&self) -> i32 {
        self.link.pump.with_stdio(Stdio::input).unwrap_or(-1)
    }

    /// The descriptor to write to.
    #[getter]
    fn output(&self) -> i32 {
        self.link.pump.with_stdio(Stdio::output).unwrap_or(-1)
    }

    /// The number of requests that wait for a handler.
    #[getter]
    fn in_flight(&self) -> usize {
        self.link.pump.pipe().in_flight()
    }

    /// The number of handlers suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.link.runtime.tasks.len()
    }

    /// The number of bytes that wait to be written.
    #[getter]
    fn unwritten(&self) -> usize {
        self.link.pump.pipe().pending()
    }

    /// Reads input, answers requests, starts handlers, writes output.
    fn readable(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.readable(&self.link.attached(py))
    }

    /// Takes input that was read elsewhere.
    fn feed(&self, py: Python<'_>, chunk: &[u8]) -> PyResult<()> {
        self.link.pump.feed(&self.link.attached(py), chunk)
    }

    /// The end of input.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.end(&self.link.attached(py))
    }

    /// No further input is wanted: open listens end with their results.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.stop(&self.link.attached(py))
    }

    /// There is room for output.
    fn writable(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.writable(&self.link.attached(py))
    }

    /// Takes the lines that wait for the SDK's server.
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let lines = self.link.pump.take_lines(&self.link.attached(py))?;
        Ok(lines.split_inclusive(|byte| *byte == b'\n').map(|line| PyBytes::new(py, line)).collect())
    }

    /// Sends a message of the SDK's server.
    fn send(&self, py: Python<'_>, message: &str) -> PyResult<()> {
        self.link.pump.send(&self.link.attached(py), message.as_bytes())
    }

    /// The SDK's server has ended, and answers nothing more.
    fn left(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.left(&self.link.attached(py))
    }

    /// Whether the client should take what waits before more is sent.
    #[getter]
    fn is_full(&self) -> bool {
        self.link.pump.pipe().is_full()
    }

    /// Writes what waits.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.flush(&self.link.attached(py))
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.timer(&self.link.attached(py))
    }

    /// Cancels the requests in flight.
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        self.link.pump.cancel_all(&self.link.attached(py))
    }

    /// Ends the connection.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.link.runtime.state.serving.leave(self.link.pump.pipe().id());
        self.link.waker.close();
        self.link.pump.close(&self.link.attached(py))
    }

    /// Takes the output for a client in the same process.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.link.pump.take(&self.link.attached(py)).map(|bytes| PyBytes::new(py, &bytes))
    }

    /// Appends waiting notifications, up to about `room` bytes.
    fn deliver(&self, room: usize) {
        self.link.pump.pipe().deliver_up_to(room);
    }
}

impl Link {
    pub(crate) fn attached<'l, 'py>(self: &'l Arc<Self>, py: Python<'py>) -> Attached<'l, 'py> {
        Attached(self, py)
    }
}

impl LoopOwner for Link {
    /// A change only delivers and looks at the time.
    fn work(self: Arc<Self>, py: Python<'_>, is_change: bool) -> PyResult<()> {
        let pump = &self.pump;
        let attached = self.attached(py);
        if is_change {
            return match self.waker.take_collected() {
                reasons if reasons & DELIVER != 0 => pump.deliver(&attached),
                reasons if reasons & TIME != 0 => pump.rearm(&attached),
                _ => Ok(()),
            };
        }
        if self.waker.take() & DELIVER != 0 {
            pump.append_notifications();
        }
        let result = inbox::take(py, &self.inbox, &self.runtime, |_| Client(self.clone()));
        pump.wake(&attached)?;
        result
    }
}

impl LoopClient for Link {
    fn peer(&self) -> &Peer {
        &self.peer
    }

    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// The context in which the bytes come in.
    fn context(&self, py: Python<'_>) -> PyResult<CallContext> {
        CallContext::current(py)
    }

    fn is_full(&self) -> bool {
        self.pump.pipe().is_full()
    }

    fn needs_writer(&self) -> bool {
        !self.pump.will_write()
    }

    fn write(self: Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.pump.appended(&self.attached(py))
    }

    fn write_elsewhere(&self) {
        self.pump.write_elsewhere();
    }

    fn leave(&self, ready: DeliveryReady) {
        self.inbox.leave([InboxItem::Own(ready)]);
    }
}

impl EventLoop for Attached<'_, '_> {
    type Error = PyErr;
    const DRAINS: bool = false;
    const DEFERS: bool = false;

    fn drive(&self, step: PumpStep) -> PyResult<()> {
        let runtime = &self.0.runtime;
        let py = self.1;
        match step {
            PumpStep::Poll { read, write } => runtime.drive(py, "change", (read, write)),
            PumpStep::Output => runtime.drive(py, "output", ()),
            PumpStep::Alarm(delay) => runtime.drive(py, "alarm", (seconds(delay),)),
            PumpStep::Flush { .. } => runtime.drive(py, "soon", ()),
            PumpStep::Lines => runtime.drive(py, "lines", ()),
            PumpStep::Ended => runtime.drive(py, "ended", ()),
            PumpStep::Idle => runtime.drive(py, "idle", ()),
        }
    }

    fn handle(&self, events: Events<'_>) -> PyResult<()> {
        run::handle_all(self.1, &Client(self.0.clone()), events)
    }

    fn misused(&self, what: String) -> PyResult<()> {
        error::log_misuse(self.1, "", Some(&what));
        Ok(())
    }

    fn delivering<R>(&self, change: impl FnOnce() -> R) -> PyResult<R> {
        delivering(self.1, change)
    }

    fn handled(&self) -> PyResult<()> {
        self.0.runtime.state.kick(self.1)
    }
}

/// A loop that was forgotten watches no longer.
impl Drop for Link {
    fn drop(&mut self) {
        self.waker.close();
    }
}
