//! HTTP without a socket: what an ASGI server calls. Every rule is the core's; this moves its turns.

use crate::calls;
use crate::peer::{self, Effects, Peer, Runtime};
use crate::queue::Queue;
use crate::rules;
use crate::server::Server;
use mcp_resources::connection::{Answer, Encoded, Event, Events, RequestToken};
use mcp_resources::http as core;
use mcp_resources::http::{Denied, Head, Turn, Verified};
use mcp_resources::hub::ConnectionId;
use mcp_resources::principal::Principal;
use mcp_resources::transport::{Cancelled, Detached};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

/// What all requests of one endpoint share.
pub(crate) struct Web {
    endpoint: Arc<core::Endpoint>,
    runtime: Runtime,
    /// The requests whose reply was detached.
    detached: Mutex<HashMap<(ConnectionId, RequestToken), Cancelled>>,
    /// Events for the loop that came up on another thread.
    events: Mutex<Vec<(Arc<dyn Peer>, Event<'static>)>>,
    wake_is_due: AtomicBool,
    alarm: AtomicU64,
}

/// One request of one client.
struct WebPeer {
    web: Arc<Web>,
    connection: ConnectionId,
    /// `None` if the response is complete: then no event of it waits for an answer.
    exchange: Option<core::Exchange>,
}

/// Status and headers.
type HeadParts = (u16, Vec<(Vec<u8>, Vec<u8>)>);
/// A response that is complete: its head and body.
type ResponseParts<'py> = (HeadParts, Bound<'py, PyBytes>);
/// The head, if it is decided now; a part of the body; whether that is the end; whether there is more already.
type TurnParts<'py> = (Option<HeadParts>, Bound<'py, PyBytes>, bool, bool);

/// An endpoint on the event loop of its driver.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Endpoint(Arc<Web>);

/// A request whose head may come in.
#[pyclass(module = "mcp_resources._core")]
pub struct Admitted(Option<core::Admitted>);

/// A request whose head has passed: what remains is its body.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Identified(core::Identified);

/// A response that is being made.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Exchange(Arc<WebPeer>);

/// What an admission leads to.
#[derive(IntoPyObject)]
pub(crate) enum Admission<'py> {
    Admitted(Bound<'py, Admitted>),
    Refused(ResponseParts<'py>),
}

/// What an identification leads to.
#[derive(IntoPyObject)]
pub(crate) enum Identification<'py> {
    Identified(Bound<'py, Identified>),
    Refused(ResponseParts<'py>),
}

#[pymethods]
impl Endpoint {
    #[new]
    fn new(server: &Server, driver: &Bound<'_, PyAny>, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let host = server.host.clone();
        let random = driver.getattr("random")?.unbind();
        let session_ids = Box::new(move || session_id(&random));
        let endpoint = core::Endpoint::new(host.engine()?, rules::read(options)?, session_ids);
        let endpoint = endpoint.map_err(|error| rules::refused(driver.py(), &error))?;
        let web = Arc::new(Web {
            endpoint,
            runtime: Runtime::new(host.clone(), driver, true)?,
            detached: Mutex::default(),
            events: Mutex::default(),
            wake_is_due: AtomicBool::new(false),
            alarm: AtomicU64::new(u64::MAX),
        });
        host.serve(&web);
        Ok(Self(web))
    }

    /// Raises if an option has a value that is not allowed.
    #[staticmethod]
    fn check(server: &Server, options: &Bound<'_, PyDict>) -> PyResult<()> {
        let no_ids = Box::new(|| [0; core::SESSION_ID_BYTES]);
        let made = core::Endpoint::new(server.host.engine()?, rules::read(options)?, no_ids);
        made.map(drop).map_err(|error| rules::refused(options.py(), &error))
    }

    /// Looks at the head of a request.
    fn admit<'py>(
        &self,
        py: Python<'py>,
        verb: &str,
        target: &str,
        headers: Vec<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)>,
    ) -> PyResult<Admission<'py>> {
        let read = |(name, value): &'_ (Bound<'py, PyBytes>, Bound<'py, PyBytes>)| {
            (String::from_utf8_lossy(name.as_bytes()).into_owned(), value.as_bytes().to_vec())
        };
        let headers: Vec<_> = headers.iter().map(read).collect();
        let headers: Vec<_> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
        match self.0.endpoint.admit(&Head { verb, target, headers: &headers }) {
            Ok(admitted) => Ok(Admission::Admitted(Bound::new(py, Admitted(Some(admitted)))?)),
            Err(response) => Ok(Admission::Refused(response_parts(py, response))),
        }
    }

    /// Takes a request with its body. Handlers run, or are started.
    fn open<'py>(
        &self,
        py: Python<'py>,
        request: &Identified,
        body: &[u8],
    ) -> PyResult<(Exchange, TurnParts<'py>)> {
        let (now, mut out) = (self.0.runtime.host.clock.now(), Vec::new());
        let opened = self.0.endpoint.open(&request.0, body, now, &mut out);
        let core::Opened { turn, exchange } = opened;
        let own = WebPeer { web: self.0.clone(), connection: turn.connection, exchange };
        let own = Arc::new(own);
        let parts = self.0.turn(py, (turn, out), &own)?;
        Ok((Exchange(own), parts))
    }

    /// It is time.
    fn timer(&self, py: Python<'_>) -> PyResult<()> {
        self.0.alarm.store(u64::MAX, Ordering::Release);
        self.0.runtime.host.tick(py)?;
        let turns = self.0.endpoint.tick(self.0.runtime.host.clock.now());
        self.0.turns(py, turns)?;
        self.0.rearm(py)
    }

    /// Another thread has something for the loop.
    fn wake(&self, py: Python<'_>) -> PyResult<()> {
        self.0.wake_is_due.store(false, Ordering::Release);
        let events = std::mem::take(&mut *lock(&self.0.events));
        events.into_iter().try_for_each(|(peer, event)| calls::handle_all(py, &peer, [event]))?;
        self.0.kick(py)?;
        self.0.rearm(py)
    }

    /// Nothing waits to be written here.
    fn flush(&self) {}

    /// Ends every session: what is in flight is cancelled.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let turns = self.0.endpoint.close(self.0.runtime.host.clock.now());
        self.0.turns(py, turns)
    }

    /// How many sessions are open.
    #[getter]
    fn sessions(&self) -> usize {
        self.0.endpoint.sessions_open()
    }

    /// How many handlers are suspended on the event loop.
    #[getter]
    fn suspended(&self) -> usize {
        self.0.runtime.suspended()
    }
}

#[pymethods]
impl Admitted {
    /// The bearer token to verify; `None` where none is asked for.
    #[getter]
    fn token(&self) -> Option<&str> {
        self.0.as_ref().and_then(core::Admitted::token)
    }

    /// Goes on when it is known whose request it is: the identity and the scopes of the token; `None` where none is asked
    /// for. `denied`: the token is not valid (`False`), or that could not be found out (`True`).
    #[pyo3(signature = (verified = None, denied = None))]
    fn identify<'py>(
        &mut self,
        py: Python<'py>,
        verified: Option<(String, Vec<String>)>,
        denied: Option<bool>,
    ) -> PyResult<Identification<'py>> {
        let again = || PyRuntimeError::new_err("the request is identified already");
        let admitted = self.0.take().ok_or_else(again)?;
        let who = match (verified, denied) {
            (_, Some(true)) => Err(Denied::Unavailable),
            (_, Some(false)) => Err(Denied::Invalid),
            (Some((subject, scopes)), None) => Ok(Verified { principal: Principal::new(subject), scopes }),
            (None, None) => Ok(Verified::anyone()),
        };
        Ok(match admitted.identify(who) {
            Ok(identified) => Identification::Identified(Bound::new(py, Identified(identified))?),
            Err(response) => Identification::Refused(response_parts(py, response)),
        })
    }
}

#[pymethods]
impl Identified {
    /// How many bytes of body to read.
    #[getter]
    fn body_limit(&self) -> usize {
        self.0.body_limit()
    }

    /// The response to a longer body.
    fn too_large<'py>(&self, py: Python<'py>) -> ResponseParts<'py> {
        response_parts(py, self.0.too_large())
    }
}

#[pymethods]
impl Exchange {
    /// Has `waker` called once when there is something to deliver, on any thread.
    fn register(&self, waker: Py<PyAny>) {
        if let Some(exchange) = &self.0.exchange {
            exchange.register(&Waker::from(Arc::new(Calls(waker))));
        }
    }

    /// What the client has not been sent, up to about `room` bytes.
    fn deliver<'py>(&self, py: Python<'py>, room: usize) -> PyResult<TurnParts<'py>> {
        let Some(exchange) = &self.0.exchange else { return Ok((None, PyBytes::new(py, b""), true, false)) };
        let mut out = Vec::new();
        let turn = exchange.deliver(room, self.0.web.runtime.host.clock.now(), &mut out);
        self.0.web.turn(py, (turn, out), &self.0)
    }

    /// In how many seconds `deliver` must be called at the latest.
    #[getter]
    fn deadline(&self) -> Option<f64> {
        let deadline = self.0.exchange.as_ref()?.deadline()?;
        Some(seconds(deadline.saturating_sub(self.0.web.runtime.host.clock.now().tick)))
    }

    /// The client is gone.
    fn closed(&self, py: Python<'_>) -> PyResult<()> {
        let Some(exchange) = &self.0.exchange else { return Ok(()) };
        let turn = exchange.closed(self.0.web.runtime.host.clock.now());
        self.0.web.turn(py, (turn, Vec::new()), &self.0).map(drop)
    }
}

impl Web {
    /// The hub has something for these connections.
    pub(crate) fn tell(&self, py: Python<'_>, woken: &[ConnectionId]) -> PyResult<()> {
        self.endpoint.wake(woken);
        self.rearm(py)
    }

    /// Does what a turn asks for, and gives the rest to the writer.
    fn turn<'py>(
        self: &Arc<Self>,
        py: Python<'py>,
        (turn, out): (Turn<'_>, Vec<u8>),
        own: &Arc<WebPeer>,
    ) -> PyResult<TurnParts<'py>> {
        let Turn { head, events, end, more, misuse, .. } = turn;
        self.mark(own.connection, &events);
        peer::logged(py, "", misuse.as_deref());
        if !events.is_empty() {
            let peer: Arc<dyn Peer> = own.clone();
            calls::handle_all(py, &peer, events)?;
            self.kick(py)?;
        }
        self.rearm(py)?;
        Ok((head.map(head_parts), PyBytes::new(py, &out), end, more))
    }

    /// Turns of sessions that nobody writes.
    fn turns(self: &Arc<Self>, py: Python<'_>, turns: Vec<Turn<'static>>) -> PyResult<()> {
        turns.into_iter().try_for_each(|turn| {
            let own = WebPeer { web: self.clone(), connection: turn.connection, exchange: None };
            self.turn(py, (turn, Vec::new()), &Arc::new(own)).map(drop)
        })
    }

    /// Those who work on what was cancelled may know.
    fn mark(&self, connection: ConnectionId, events: &[Event<'_>]) {
        for event in events {
            if let Event::Cancelled(token) = event
                && let Some(cancelled) = lock(&self.detached).get(&(connection, *token))
            {
                cancelled.set();
            }
        }
    }

    fn kick(&self, py: Python<'_>) -> PyResult<()> {
        Queue::kick(self.runtime.host.queue.bind(py), &self.runtime.host)
    }

    /// Arms the loop's timer for the earliest deadline of the sessions and the hub, unless it rings before that anyway.
    fn rearm(&self, py: Python<'_>) -> PyResult<()> {
        let deadlines = [self.endpoint.deadline(), self.runtime.host.deadline()];
        let Some(deadline) = deadlines.into_iter().flatten().min() else { return Ok(()) };
        if deadline >= self.alarm.load(Ordering::Acquire) {
            return Ok(());
        }
        if !self.runtime.on_loop() {
            return self.wake_loop(py);
        }
        self.alarm.store(deadline, Ordering::Release);
        let delay = deadline.saturating_sub(self.runtime.host.clock.now().tick);
        self.runtime.driver.call_method1(py, "alarm", (seconds(delay),)).map(drop)
    }

    fn wake_loop(&self, py: Python<'_>) -> PyResult<()> {
        if !self.wake_is_due.swap(true, Ordering::AcqRel) {
            self.runtime.driver.call_method0(py, "wake")?;
        }
        Ok(())
    }
}

impl WebPeer {
    /// What the host must do after a turn that is not the writer's.
    fn effects(&self, turn: Turn<'static>) -> Effects {
        self.web.mark(self.connection, &turn.events);
        Effects { events: turn.events, misuse: turn.misuse }
    }

    fn settled(&self, token: RequestToken) {
        lock(&self.web.detached).remove(&(self.connection, token));
    }
}

impl Peer for WebPeer {
    fn runtime(&self) -> &Runtime {
        &self.web.runtime
    }

    fn connection(&self) -> ConnectionId {
        self.connection
    }

    fn respond(&self, token: RequestToken, answer: Answer<'_>) -> Effects {
        match &self.exchange {
            Some(exchange) => {
                self.effects(exchange.respond(token, answer, self.web.runtime.host.clock.now()))
            }
            None => Effects { events: Events::new(), misuse: None },
        }
    }

    fn detach(&self, token: RequestToken) -> Option<Detached> {
        let reply = self.exchange.as_ref()?.detach(token)?;
        let cancelled = lock(&self.web.detached).entry((self.connection, token)).or_default().clone();
        Some(Detached { reply, cancelled })
    }

    fn finish(&self, token: RequestToken, encoded: Encoded) -> Effects {
        self.settled(token);
        match &self.exchange {
            Some(exchange) => self.effects(exchange.finish(encoded, self.web.runtime.host.clock.now())),
            None => Effects { events: Events::new(), misuse: None },
        }
    }

    fn abandon(&self, token: RequestToken) {
        self.settled(token);
        if let Some(exchange) = &self.exchange {
            exchange.abandon(token);
        }
    }

    fn report(&self, token: RequestToken, cancelled: &Cancelled, message: &[u8]) {
        if let Some(exchange) = self.exchange.as_ref().filter(|_| !cancelled.get()) {
            exchange.report(token, message);
        }
    }

    fn is_full(&self) -> bool {
        false
    }

    /// The writer was woken already.
    fn appended(self: Arc<Self>, py: Python<'_>, _: bool) -> PyResult<()> {
        self.web.rearm(py)
    }

    fn write_elsewhere(&self) -> bool {
        false
    }

    fn wake_loop(&self, py: Python<'_>) -> PyResult<()> {
        self.web.wake_loop(py)
    }

    fn hand_over(self: Arc<Self>, py: Python<'_>, events: Events<'static>) -> PyResult<()> {
        if events.is_empty() {
            return Ok(());
        }
        let own = events.into_iter().map(|event| (self.clone() as Arc<dyn Peer>, event));
        lock(&self.web.events).extend(own);
        self.web.wake_loop(py)
    }
}

/// A waker that calls a function.
struct Calls(Py<PyAny>);

impl Wake for Calls {
    fn wake(self: Arc<Self>) {
        Python::attach(|py| {
            // The loop is closed: nobody waits.
            let _ = self.0.call0(py);
        });
    }
}

/// What nobody can guess. Without randomness there are no sessions: ids that collide are refused.
fn session_id(random: &Py<PyAny>) -> [u8; core::SESSION_ID_BYTES] {
    let drawn = |py: Python<'_>| random.call1(py, (core::SESSION_ID_BYTES,))?.extract::<Vec<u8>>(py);
    let bytes = Python::attach(drawn).unwrap_or_default();
    bytes.try_into().unwrap_or([0; core::SESSION_ID_BYTES])
}

fn response_parts(py: Python<'_>, response: core::Response) -> ResponseParts<'_> {
    (head_parts(response.head), PyBytes::new(py, &response.body))
}

fn head_parts(head: core::ResponseHead) -> HeadParts {
    let headers = head.headers.into_iter();
    (head.status, headers.map(|(name, value)| (name.into(), value.into_owned().into_bytes())).collect())
}

#[expect(clippy::cast_precision_loss, reason = "a delay is short")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1000.0
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
