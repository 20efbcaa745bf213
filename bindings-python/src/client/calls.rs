//! The open calls of a client, for the event loop that waits for them.
//!
//! Law: the native thread touches no object of Python, and no callback of an author runs on it.

use super::given::{failure, forked, object};
use crate::calls::waker::{LoopOwner, LoopWaker};
use crate::values::error::raise;
use crate::values::lock::lock;
use mcp_resources_client::queue::{ClientEvent, ClientQueue, Owned};
use mcp_resources_engine::client::{ClientError, ClientQuestion, Failure, Progress};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The client, and its calls that are open.
pub(crate) struct Calls {
    queue: Owned<ClientQueue>,
    pub(crate) waker: Arc<LoopWaker>,
    /// A weak proxy of the package's client.
    callbacks: Py<PyAny>,
    /// The only server, if there is one.
    only: Option<Arc<str>>,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// The functions called with the progress of calls and lists.
    reports: Mutex<HashMap<u64, Py<PyAny>>>,
    next: AtomicU64,
    pub(crate) is_closed: AtomicBool,
}

/// A call: the future to resolve, and the server, if there is only one.
struct Waiting {
    future: Py<PyAny>,
    server: Option<Arc<str>>,
}

impl Calls {
    pub(crate) fn new(queue: ClientQueue, waker: Arc<LoopWaker>, callbacks: Py<PyAny>) -> Arc<Self> {
        let servers = queue.client().servers();
        let only = if let [only] = &servers[..] { Some(only.clone()) } else { None };
        let waiting = Default::default();
        let reports = Default::default();
        let is_closed = Default::default();
        let queue = Owned::new(queue);
        let next = AtomicU64::new(1);
        Arc::new(Self { queue, waker, callbacks, only, waiting, reports, next, is_closed })
    }

    /// The queue for calls, until the client is closed.
    pub(crate) fn queue(&self, py: Python<'_>) -> PyResult<&ClientQueue> {
        if self.is_closed.load(Ordering::Relaxed) {
            let closed = "Failed to read resource: the client is closed; make another";
            return Err(raise(py, "ReadFailed", (closed, Failure::Cancelled.kind())));
        }
        self.queue.get().ok_or_else(forked)
    }

    /// A number that is not used twice, under which `report` is called with progress.
    pub(crate) fn number(&self, report: Option<Py<PyAny>>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(report) = report {
            lock(&self.reports).insert(number, report);
        }
        number
    }

    /// Waits for what arrives under this number.
    pub(crate) fn wait(&self, number: u64, future: Bound<'_, PyAny>, server: Option<&str>) {
        let server = server.map(Arc::from).or_else(|| self.only.clone());
        lock(&self.waiting).insert(number, Waiting { future: future.unbind(), server });
    }

    /// Cancels a call, or ends the reports of a list.
    pub(crate) fn cancel(&self, number: u64) {
        let Some(queue) = self.queue.get() else { return };
        let _call = (lock(&self.waiting).remove(&number), lock(&self.reports).remove(&number));
        queue.cancel(number);
    }

    /// Ends the calls that are still waited for.
    pub(crate) fn cancel_all(&self, py: Python<'_>) -> PyResult<()> {
        let numbers: Vec<_> = lock(&self.waiting).keys().copied().collect();
        let cancelled = || ClientEvent::Failed(ClientError::from(Failure::Cancelled));
        numbers.into_iter().try_for_each(|number| self.finish(py, number, cancelled()))
    }

    pub(crate) fn answer(&self, number: u64, answer: Result<String, String>) {
        if let Some(queue) = self.queue.get() {
            queue.answer(number, answer);
        }
    }

    /// The servers that were not reached for the last list, each with its exception.
    pub(crate) fn failures(&self, py: Python<'_>) -> PyResult<Vec<(String, PyErr)>> {
        let failures = self.queue(py)?.client().failures().into_iter();
        Ok(failures.map(|(name, error)| (name.to_string(), failure(py, &error, Some(&name)))).collect())
    }

    fn deliver(&self, py: Python<'_>, number: u64, event: ClientEvent) -> PyResult<()> {
        let callbacks = self.callbacks.bind(py);
        match event {
            ClientEvent::Progress(Progress { progress, total, message }) => {
                let report = lock(&self.reports).get(&number).map(|report| report.clone_ref(py));
                if let Some(report) = report {
                    callbacks.call_method1(intern!(py, "_progressed"), (report, progress, total, message))?;
                }
            }
            ClientEvent::Question(ClientQuestion { server, method, params, .. }, _) => {
                callbacks.call_method1(intern!(py, "_asked"), (number, &*server, method, params))?;
            }
            ClientEvent::Withdrawn => drop(callbacks.call_method1(intern!(py, "_withdrawn"), (number,))?),
            ClientEvent::Note(server, note) => {
                drop(callbacks.call_method1(intern!(py, "_noted"), (server, note))?)
            }
            end => self.finish(py, number, end)?,
        }
        Ok(())
    }

    /// Gives a call's outcome to whom waits for it.
    fn finish(&self, py: Python<'_>, number: u64, event: ClientEvent) -> PyResult<()> {
        let _report = lock(&self.reports).remove(&number);
        let Some(Waiting { future, server }) = lock(&self.waiting).remove(&number) else { return Ok(()) };
        let future = future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        match object(py, event, server.as_deref()) {
            Ok(value) => future.call_method1(intern!(py, "set_result"), (value,)).map(drop),
            Err(error) => future.call_method1(intern!(py, "set_exception"), (error,)).map(drop),
        }
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.callbacks)?;
        if let Ok(waiting) = self.waiting.try_lock() {
            waiting.values().try_for_each(|waiting| visit.call(&waiting.future))?;
        }
        let Ok(reports) = self.reports.try_lock() else { return Ok(()) };
        reports.values().try_for_each(|report| visit.call(report))
    }

    /// Cancels all calls.
    pub(crate) fn clear(&self) {
        let calls = (std::mem::take(&mut *lock(&self.waiting)), std::mem::take(&mut *lock(&self.reports)));
        if let Some(queue) = self.queue.get() {
            calls.0.keys().for_each(|number| queue.cancel(*number));
        }
    }
}

impl LoopOwner for Calls {
    /// Handles the queued events, on the loop's thread.
    fn work(self: Arc<Self>, py: Python<'_>, _is_change: bool) -> PyResult<()> {
        self.waker.take();
        let Some(queue) = self.queue.get() else { return Ok(()) };
        for (number, event) in queue.take() {
            // One that fails, such as a future of a loop that is closed, does not stop the others.
            if let Err(error) = self.deliver(py, number, event) {
                error.write_unraisable(py, None);
            }
        }
        Ok(())
    }

    fn pump(&self) -> bool {
        self.queue.get().is_some_and(ClientQueue::pump)
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // The pipe of a process that was forked is its parent's too.
        if self.queue.get().is_some() {
            self.waker.close();
        }
    }
}
