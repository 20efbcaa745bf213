//! A client of servers, used from one event loop.

pub(crate) mod calls;
mod given;

use crate::calls::waker::{LoopOwner, Owner, Wakeup, watched};
use crate::values::lock::lock;
use crate::values::options::convert;
use calls::Calls;
use given::{forked, misconfigured};
use mcp_resources_client::queue::{self, ClientQueue, ClientSettings, Owned, QueuedCompletion};
use mcp_resources_client::runtime;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::option::FromOption;
use mcp_resources_runtime::transport::pump::WORK;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, Weak, mpsc};
use std::time::Duration;

/// Maximum time that the end of the process waits for servers to end.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// A client of servers.
#[pyclass(frozen, weakref, module = "mcp_resources._core")]
pub struct Caller {
    calls: Arc<Calls>,
    /// The descriptor that the loop watches.
    #[pyo3(get)]
    wakeup: Py<Wakeup>,
    /// The end of the pipe for a server in this process.
    far: Mutex<Option<OwnedFd>>,
}

/// A stream for iteration: a list, a watch, or the changes of lists.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Stream {
    source: Mutex<Option<Owned<queue::ClientStream>>>,
    calls: Arc<Calls>,
    /// Under which progress is reported.
    number: u64,
}

/// The options of one call.
#[derive(Default, FromPyObject)]
struct CallScope {
    /// The only server to ask.
    #[pyo3(item(0))]
    server: Option<String>,
    /// The longest time for a request, in milliseconds.
    #[pyo3(item(1))]
    timeout: Option<Millis>,
    /// Called with progress.
    #[pyo3(item(2))]
    report: Option<Py<PyAny>>,
}

#[pymethods]
impl Caller {
    /// `callbacks` is called with questions, notes and progress.
    #[new]
    fn new(py: Python<'_>, callbacks: Py<PyAny>, settings: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (waker, wakeup) = watched(py)?;
        let woken = waker.clone();
        let settings = ClientSettings::from_option(convert(settings)?);
        let settings = settings.map_err(|error| misconfigured(py, &error.to_string()))?;
        let opened = ClientQueue::open(settings, runtime()?, move || woken.wake(WORK));
        let (queue, far) = opened.map_err(|error| misconfigured(py, &error.message))?;
        wakeup.get().join(|reader| queue.pipes(reader));
        let calls = Calls::new(queue, waker.clone(), callbacks);
        let served: Weak<Calls> = Arc::downgrade(&calls);
        waker.belongs_to(Owner::new(served, false));
        Ok(Self { calls, wakeup, far: Mutex::new(far) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.calls.traverse(&visit)
    }

    fn __clear__(&self) {
        self.calls.clear();
    }

    /// The descriptor for a server in this process, once. The caller closes it.
    fn far(&self) -> Option<i32> {
        lock(&self.far).take().map(IntoRawFd::into_raw_fd)
    }

    fn servers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.calls.queue(py)?.client().servers().iter().map(|name| name.to_string()).collect())
    }

    /// The servers that were not reached for the last list, each with its exception.
    fn failures(&self, py: Python<'_>) -> PyResult<Vec<(String, PyErr)>> {
        self.calls.failures(py)
    }

    /// Reads into `future`, as a list of contents if `whole`. The number is for `cancel`.
    fn read(&self, future: Bound<'_, PyAny>, uri: String, whole: bool, scope: CallScope) -> PyResult<u64> {
        self.call(future, scope, |queue, number, options| queue.read(number, uri, whole, options))
    }

    fn complete(
        &self,
        future: Bound<'_, PyAny>,
        template: String,
        variable: String,
        value: String,
        context: Vec<(String, String)>,
        scope: CallScope,
    ) -> PyResult<u64> {
        let what = QueuedCompletion { template, variable, value };
        self.call(future, scope, |queue, number, options| queue.complete(number, what, context, options))
    }

    fn request(
        &self,
        future: Bound<'_, PyAny>,
        method: String,
        params: String,
        scope: CallScope,
    ) -> PyResult<u64> {
        self.call(future, scope, |queue, number, options| queue.request(number, method, params, options))
    }

    fn about(&self, future: Bound<'_, PyAny>, scope: CallScope) -> PyResult<u64> {
        self.call(future, scope, ClientQueue::about)
    }

    /// All resources, or all templates.
    fn list(&self, py: Python<'_>, templates: bool, scope: CallScope) -> PyResult<Stream> {
        self.stream(py, scope, |queue, number, options| queue.list(number, templates, options))
    }

    fn watch(&self, py: Python<'_>, uri: &str, scope: CallScope) -> PyResult<Stream> {
        self.stream(py, scope, |queue, _, options| queue.watch(uri, options))
    }

    fn list_changes(&self, py: Python<'_>) -> PyResult<Stream> {
        self.stream(py, CallScope::default(), |queue, _, _| queue.list_changes())
    }

    /// Gives the next of a stream to `future`; `None` if the stream or the client was closed.
    fn next(&self, future: Bound<'_, PyAny>, stream: &Stream) -> PyResult<Option<u64>> {
        if self.calls.is_closed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let queue = self.calls.queue(future.py())?;
        let Some(source) = &*lock(&stream.source) else { return Ok(None) };
        let source = source.get().ok_or_else(forked)?;
        let number = self.calls.number(None);
        self.calls.wait(number, future, None);
        queue.next(number, source);
        Ok(Some(number))
    }

    /// Takes a call back.
    fn cancel(&self, number: u64) {
        self.calls.cancel(number);
    }

    /// Answers a question with the text of a JSON object, or with the reason why there is no answer.
    fn answer(&self, number: u64, answer: Option<String>, reason: &str) {
        self.calls.answer(number, answer.ok_or_else(|| reason.into()));
    }

    /// Ends the client; `future` is resolved when its servers have ended. Returns `None` if it was closed before.
    fn close(&self, future: Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        if self.calls.is_closed.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let number = self.call(future, CallScope::default(), |queue, number, _| queue.close(number));
        self.calls.is_closed.store(true, Ordering::Relaxed);
        number.map(Some)
    }

    /// After the end: every call that still waits gets an error, and the loop watches no longer.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.calls.clone().work(py, false)?;
        self.calls.cancel_all(py)?;
        self.calls.waker.close();
        Ok(())
    }

    /// The process ends: closes the client, and waits for its servers, not for long.
    fn shut(&self, py: Python<'_>) -> PyResult<()> {
        let Ok(queue) = self.calls.queue(py) else { return Ok(()) };
        self.calls.is_closed.store(true, Ordering::Relaxed);
        let (client, (sender, ended)) = (queue.client().clone(), mpsc::channel());
        runtime()?.spawn(async move {
            client.close().await;
            let _ = sender.send(());
        });
        py.detach(move || {
            let _ = ended.recv_timeout(LAST_WAIT);
        });
        Ok(())
    }
}

impl Caller {
    /// Makes a call of the client.
    fn call(
        &self,
        future: Bound<'_, PyAny>,
        scope: CallScope,
        begin: impl FnOnce(&ClientQueue, u64, queue::QueuedCallOptions),
    ) -> PyResult<u64> {
        let queue = self.calls.queue(future.py())?;
        let CallScope { server, timeout, report } = scope;
        let progress = report.is_some();
        let number = self.calls.number(report);
        self.calls.wait(number, future, server.as_deref());
        begin(queue, number, queue::QueuedCallOptions { server, timeout, progress });
        Ok(number)
    }

    fn stream(
        &self,
        py: Python<'_>,
        scope: CallScope,
        open: impl FnOnce(&ClientQueue, u64, queue::QueuedCallOptions) -> queue::ClientStream,
    ) -> PyResult<Stream> {
        let queue = self.calls.queue(py)?;
        let CallScope { server, timeout, report } = scope;
        let progress = report.is_some();
        let number = self.calls.number(report);
        let source = Owned::new(open(queue, number, queue::QueuedCallOptions { server, timeout, progress }));
        Ok(Stream { source: Mutex::new(Some(source)), calls: self.calls.clone(), number })
    }
}

/// The client was garbage-collected: its open calls are cancelled.
impl Drop for Caller {
    fn drop(&mut self) {
        self.calls.clear();
    }
}

#[pymethods]
impl Stream {
    /// Ends it: with the last watch of a resource ends its subscription.
    fn close(&self) {
        drop(lock(&self.source).take());
        self.calls.cancel(self.number);
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.calls.cancel(self.number);
    }
}
