//! Wakes an event loop of Python for the engine: through a byte in a pipe that the loop watches.

use mcp_resources_client::queue::LoopPipes;
use mcp_resources_runtime::transport::pump::{self, Woken, collect};
use pyo3::prelude::*;
use std::cell::RefCell;
use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::LocalKey;

/// The handle of an event loop for other threads.
pub(crate) type LoopWaker = pump::LoopWaker<Owner>;

/// The object that an event loop serves: a pipe, an endpoint, or a client of other servers.
pub(crate) trait LoopOwner: Send + Sync {
    /// Does the work that the loop was woken for: on the loop, or at the end of a change (`is_change`).
    fn work(self: Arc<Self>, py: Python<'_>, is_change: bool) -> PyResult<()>;

    /// Reads what the loop waits for besides the waker, before it works; returns whether there was anything.
    fn pump(&self) -> bool {
        false
    }
}

/// The object that an event loop serves, for its waker.
pub(crate) struct Owner {
    served: Weak<dyn LoopOwner>,
    is_bound: bool,
}

/// The descriptor that the loop watches for signals of other threads.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Wakeup {
    reader: PipeReader,
    waker: Arc<LoopWaker>,
    /// The descriptors that the loop watches instead of the pipe, which is one of them.
    pipes: OnceLock<Arc<LoopPipes>>,
}

thread_local! {
    static WOKEN: Woken<Owner> = const { RefCell::new(None) };
}

/// For the loop of this thread.
pub(crate) fn watched(py: Python<'_>) -> PyResult<(Arc<LoopWaker>, Py<Wakeup>)> {
    let (reader, writer) = io::pipe()?;
    // Never waits: there are two bytes in the pipe at most. It fails only when the reader has gone.
    let waker = LoopWaker::new(move || drop((&writer).write_all(&[0])));
    Ok((waker.clone(), Py::new(py, Wakeup { reader, waker, pipes: OnceLock::new() })?))
}

/// Makes a change, and delivers its notifications before it returns.
pub(crate) fn delivering<R>(py: Python<'_>, change: impl FnOnce() -> R) -> PyResult<R> {
    let (result, woken) = collect::<Owner, _>(change);
    for owner in woken.iter().filter_map(|waker| waker.owner()) {
        owner.work(py, true)?;
    }
    Ok(result)
}

impl Owner {
    /// With `is_bound`, only the thread of the loop works for it.
    pub(crate) fn new(served: Weak<dyn LoopOwner>, is_bound: bool) -> Self {
        Self { served, is_bound }
    }

    /// Does what the loop was woken for. `false` if nothing is served any longer.
    fn work(&self, py: Python<'_>, is_change: bool) -> PyResult<bool> {
        self.served.upgrade().map_or(Ok(false), |served| served.work(py, is_change).map(|()| true))
    }

    fn pump(&self) -> bool {
        self.served.upgrade().is_some_and(|served| served.pump())
    }
}

impl Wakeup {
    /// Has the loop watch what `join` adds the pipe to, if it adds it. Before the loop begins.
    pub(crate) fn join(&self, join: impl FnOnce(&PipeReader) -> Option<Arc<LoopPipes>>) {
        // Set once: this is called for a new one.
        join(&self.reader).into_iter().for_each(|pipes| drop(self.pipes.set(pipes)));
    }
}

impl pump::WakerOwner for Owner {
    fn woken() -> &'static LocalKey<Woken<Self>> {
        &WOKEN
    }

    fn is_bound(&self) -> bool {
        self.is_bound
    }
}

#[pymethods]
impl Wakeup {
    /// The descriptor that is readable when `work` is to be called.
    fn fileno(&self) -> i32 {
        self.pipes.get().map_or(self.reader.as_fd(), |pipes| pipes.as_fd()).as_raw_fd()
    }

    /// Handles the loop's wake-up. Returns whether to keep watching.
    fn work(&self, py: Python<'_>) -> PyResult<bool> {
        let has_read = self.pipes.get().is_some() && self.waker.owner().is_some_and(Owner::pump);
        if !has_read || self.waker.is_woken() {
            // Returns at once: the loop has seen that there is something, or the pipe is among others and does not block.
            match (&self.reader).read(&mut [0; 2]) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error.into()),
                _ => {}
            }
        }
        if self.waker.is_closed() {
            return Ok(false);
        }
        self.waker.owner().map_or(Ok(true), |owner| owner.work(py, false))
    }
}
