//! One client, as the handlers of this event loop see it, and the writing of their answers.

use crate::calls;
use crate::channel::Link;
use crate::contextvars::CallContext;
use crate::error;
use crate::function::Function;
use crate::serve::Verification;
use crate::server::Host;
use crate::web::{DeliveryReady, WebPeer};
use mcp_resources_engine::connection::{AskId, Events, RequestOutcome, RequestToken};
use mcp_resources_runtime::transport::Peer;
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox};
use mcp_resources_runtime::transport::pump::PendingCalls;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyReferenceError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Arc;

/// One client of this event loop. No method blocks, and none waits for the interpreter with a lock held.
#[derive(Clone)]
pub(crate) enum Client {
    /// At the end of a pipe.
    Pipe(Arc<Link>),
    /// One exchange over HTTP.
    Web(Arc<WebPeer>),
}

impl Client {
    /// The peer that gets its answers.
    pub(crate) fn peer(&self) -> &Peer {
        match self {
            Self::Pipe(link) => &link.peer,
            Self::Web(web) => &web.peer,
        }
    }

    /// The state shared with the other clients on its event loop.
    pub(crate) fn runtime(&self) -> &Runtime {
        match self {
            Self::Pipe(link) => &link.runtime,
            Self::Web(web) => &web.web.runtime,
        }
    }

    /// The context for a function that answers one of its requests. Over a pipe that is the context in which the bytes come
    /// in; over HTTP it is that of the request, or of the native server's start.
    pub(crate) fn context(&self, py: Python<'_>) -> PyResult<CallContext> {
        match self {
            Self::Pipe(_) => CallContext::current(py),
            Self::Web(web) => {
                let request = web.peer.peer_data().and_then(|data| data.downcast_ref::<CallContext>());
                request.unwrap_or(&web.web.runtime.context).copy(py)
            }
        }
    }

    /// Whether it is so far behind that no handler should start for it.
    pub(crate) fn is_full(&self) -> bool {
        matches!(self, Self::Pipe(link) if link.pump.pipe().is_full())
    }

    /// An answer or a report was given: sees to it that it is written; a worker leaves it to its queue. Over HTTP the writer
    /// was woken already.
    pub(crate) fn appended(&self, py: Python<'_>, by_worker: bool) -> PyResult<()> {
        match self {
            Self::Pipe(link) if by_worker && !link.pump.will_write() => {
                link.runtime.host.queue.get().jobs.leave_unwritten(self.clone());
                Ok(())
            }
            Self::Pipe(link) => link.pump.appended(&link.attached(py)),
            Self::Web(web) => web.web.rearm(py),
        }
    }

    /// Writes as much as the client takes; the loop sees to the rest. Any thread; needs no interpreter.
    pub(crate) fn write_elsewhere(&self) {
        if let Self::Pipe(link) = self {
            link.pump.write_elsewhere();
        }
    }

    /// Leaves something for the event loop to call. Any thread.
    pub(crate) fn leave(&self, ready: DeliveryReady) {
        let inbox = match self {
            Self::Pipe(link) => &link.inbox,
            Self::Web(web) => &web.web.inbox,
        };
        inbox.leave([InboxItem::Own(ready)]);
    }

    /// Has providers answer those of `events` that are theirs. Returns the others.
    pub(crate) fn taken<'m>(&self, events: Events<'m>) -> Events<'m> {
        self.runtime().host.mounts().take(self.peer(), events)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Pipe(one), Self::Pipe(other)) => Arc::ptr_eq(one, other),
            (Self::Web(one), Self::Web(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// The state shared by the clients of one event loop.
pub(crate) struct Runtime {
    pub(crate) host: Arc<Host>,
    /// A weak proxy: the driver holds what holds this.
    driver: Py<PyAny>,
    /// Starts a coroutine as a task.
    start: Py<PyAny>,
    pub(crate) eager: bool,
    /// The context in which serving began.
    pub(crate) context: CallContext,
    /// Whether `def` handlers run on the worker threads.
    pub(crate) threads: bool,
    /// The tasks of handlers that are suspended on the loop.
    pub(crate) tasks: PendingCalls<RequestToken, Py<PyAny>>,
    /// The futures of handlers that have asked their client.
    pub(crate) asks: PendingCalls<AskId, Py<PyAny>>,
}

impl Runtime {
    /// For the loop of `driver`, whose thread this is.
    pub(crate) fn new(host: Arc<Host>, driver: &Bound<'_, PyAny>, threads: bool) -> PyResult<Self> {
        let py = driver.py();
        let context = CallContext::current(py)?;
        host.serves_in(py, &context);
        Ok(Self {
            host,
            start: driver.getattr("start")?.unbind(),
            eager: driver.getattr("eager")?.extract()?,
            context,
            driver: driver.clone().unbind(),
            threads,
            tasks: PendingCalls::default(),
            asks: PendingCalls::default(),
        })
    }

    /// Starts a coroutine of `function` as a task, in `context`.
    pub(crate) fn start<'py>(
        &self,
        context: &CallContext,
        coroutine: &Bound<'py, PyAny>,
        function: &Function,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = coroutine.py();
        context.call(self.start.bind(py), &PyTuple::new(py, [coroutine])?, Some(function.task.bind(py)))
    }

    /// Calls a method of the driver, unless that is gone, and the loop with it.
    pub(crate) fn drive<'py>(&self, py: Python<'py>, name: &str, args: impl PyCallArgs<'py>) -> PyResult<()> {
        match self.driver.call_method1(py, name, args) {
            Err(error) if error.is_instance_of::<PyReferenceError>(py) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// The events of an outcome, after logging a mistake of the function `name`.
pub(crate) fn events<'m>(py: Python<'_>, name: &str, outcome: RequestOutcome<'m>) -> Events<'m> {
    logged(py, name, outcome.misuse.as_deref());
    outcome.events
}

/// Logs a mistake of the user's code.
pub(crate) fn logged(py: Python<'_>, name: &str, misuse: Option<&str>) {
    if let Some(misuse) = misuse {
        error::log(py, &error::MISUSED, (name, misuse));
    }
}

/// Does what other threads have left for the loop. `client` finds whose work it is.
pub(crate) fn take(
    py: Python<'_>,
    inbox: &RequestInbox<DeliveryReady>,
    runtime: &Runtime,
    client: impl Fn(Peer) -> Client,
) -> PyResult<()> {
    let mut result = Ok(());
    for item in inbox.take() {
        result = result.and(match item {
            InboxItem::Work(asked, work) => calls::do_all(py, &client(asked), [*work]),
            InboxItem::Verify(token, verdict) => runtime.drive(py, "verify", (token, Verification(verdict))),
            InboxItem::Misuse(what) => {
                logged(py, "", Some(&what));
                Ok(())
            }
            InboxItem::Warning(what) => {
                error::log(py, &error::REFUSED, (what,));
                Ok(())
            }
            InboxItem::Ended => runtime.drive(py, "ended", ()),
            InboxItem::Own(DeliveryReady(callback)) => callback.call0(py).map(drop),
        });
    }
    result
}
