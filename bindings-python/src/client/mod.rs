//! A client of servers, as one event loop uses it.

pub(crate) mod desk;
mod given;
mod settings;

use crate::bell::{Bell, Ear, Owner};
use crate::error::raise;
use desk::{Calls, Desk, Waiting, Word, failure, lock, misconfigured};
use given::Given;
use mcp_resources_engine::client::{ClientError, Failure};
use mcp_resources_engine::now::Millis;
use mcp_resources_host::client::{self, ListChanges, Listing, Scope, Watch};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use settings::Settings;
use std::future::Future;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;
use tokio::runtime::Handle;

/// How long the end of the process waits for servers to end.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// See the module.
#[pyclass(frozen, weakref, module = "mcp_resources._core")]
pub struct Caller {
    calls: Arc<Calls>,
    /// The only server, if there is one.
    only: Option<Arc<str>>,
    runtime: Handle,
    client: Mutex<Option<Owned<client::Client>>>,
    ear: Mutex<Option<Ear>>,
    /// The end of the pipe for a server in this process.
    far: Mutex<Option<UnixStream>>,
}

/// What is iterated over: a list, a watch, or the changes of lists.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Stream {
    source: Mutex<Option<Owned<Shared>>>,
    /// What is called with progress, and the call that asks for the next.
    progress: Option<(Py<PyAny>, Arc<AtomicU64>)>,
}

type Shared = Arc<tokio::sync::Mutex<Source>>;

enum Source {
    List(Box<Listing>),
    Watch(Watch),
    Lists(ListChanges),
}

/// Which server, how many milliseconds at most, and what is called with progress.
type Asked = (Option<String>, Option<Millis>, Option<Py<PyAny>>);

#[pymethods]
impl Caller {
    /// `host` is told of questions, notes and progress.
    #[new]
    fn new(py: Python<'_>, host: Py<PyAny>, settings: Settings) -> PyResult<Self> {
        let (bell, ear) = Bell::new()?;
        let desk = Desk::new(bell.clone());
        let runtime = client::runtime()?;
        let (builder, far) = settings.builder(&desk).map_err(|error| misconfigured(py, &error))?;
        let client = builder.runtime(runtime.clone()).connect();
        let client = client.map_err(|error| misconfigured(py, &error.message))?;
        let calls = Calls::new(desk, host);
        bell.belongs_to(Owner::Calls(Arc::downgrade(&calls)));
        let servers = client.servers();
        let only = if let [only] = &servers[..] { Some(only.clone()) } else { None };
        let (client, ear) = (Mutex::new(Some(Owned::new(client))), Mutex::new(Some(ear)));
        Ok(Self { calls, only, runtime, client, ear, far: Mutex::new(far) })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.calls.traverse(&visit)
    }

    fn __clear__(&self) {
        self.calls.clear();
    }

    /// What the loop is to watch, once.
    fn ear(&self) -> Option<Ear> {
        lock(&self.ear).take()
    }

    /// The descriptor for a server in this process, once. Whoever takes it closes it.
    fn far(&self) -> Option<i32> {
        lock(&self.far).take().map(IntoRawFd::into_raw_fd)
    }

    fn servers(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        Ok(self.client(py)?.servers().iter().map(|name| name.to_string()).collect())
    }

    /// The servers that were not reached for the last list, each with its exception.
    fn failures(&self, py: Python<'_>) -> PyResult<Vec<(String, PyErr)>> {
        let failures = self.client(py)?.failures().into_iter();
        Ok(failures.map(|(name, error)| (name.to_string(), failure(py, &error, Some(&name)))).collect())
    }

    /// Reads into `future`, as a list of contents if `whole`. The number is for `cancel`.
    fn read(&self, future: Bound<'_, PyAny>, uri: String, whole: bool, asked: Asked) -> PyResult<u64> {
        self.call(
            future,
            asked,
            move |client| async move { Given::contents(client.read(&uri).await?, whole) },
        )
    }

    fn complete(
        &self,
        future: Bound<'_, PyAny>,
        what: (String, String, String),
        context: Vec<(String, String)>,
        asked: Asked,
    ) -> PyResult<u64> {
        self.call(future, asked, move |client| async move {
            let context: Vec<_> = context.iter().map(|(name, value)| (&**name, &**value)).collect();
            let (template, variable, value) = &what;
            client.complete(template, variable, value, &context).await.map(Given::Completion)
        })
    }

    fn request(
        &self,
        future: Bound<'_, PyAny>,
        method: String,
        params: String,
        asked: Asked,
    ) -> PyResult<u64> {
        self.call(future, asked, async move |client| client.request(&method, &params).await.map(Given::Text))
    }

    fn about(&self, future: Bound<'_, PyAny>, asked: Asked) -> PyResult<u64> {
        self.call(future, asked, |client| async move { client.about().await.map(Given::About) })
    }

    /// All resources, or all templates.
    fn list(&self, py: Python<'_>, templates: bool, asked: Asked) -> PyResult<Stream> {
        let (client, mut scope) = (self.client(py)?, scope(&asked));
        let progress = asked.2.map(|callback| (callback, Arc::new(AtomicU64::new(0))));
        if let Some((_, number)) = &progress {
            let (number, desk) = (number.clone(), self.calls.desk.clone());
            let report = move |told| desk.put(Word::Progressed(number.load(Ordering::Relaxed), told));
            scope.progress = Some(Arc::new(report));
        }
        let client = client.with(scope);
        let list = if templates { client.list_templates() } else { client.list() };
        Ok(Stream { progress, ..Stream::new(Source::List(Box::new(list))) })
    }

    fn watch(&self, py: Python<'_>, uri: &str, asked: Asked) -> PyResult<Stream> {
        let client = self.client(py)?.with(scope(&asked));
        let _inside = self.runtime.enter();
        Ok(Stream::new(Source::Watch(client.watch(uri))))
    }

    fn list_changes(&self, py: Python<'_>) -> PyResult<Stream> {
        Ok(Stream::new(Source::Lists(self.client(py)?.list_changes())))
    }

    /// Gives the next of a stream to `future`; `None` if the stream or the client was closed.
    fn next(&self, future: Bound<'_, PyAny>, stream: &Stream) -> PyResult<Option<u64>> {
        if lock(&self.client).is_none() {
            return Ok(None);
        }
        let source = match &*lock(&stream.source) {
            Some(source) => source.get()?.clone(),
            None => return Ok(None),
        };
        let (callback, current) = match &stream.progress {
            Some((callback, current)) => (Some(callback.clone_ref(future.py())), Some(current.clone())),
            None => (None, None),
        };
        Ok(Some(self.start(future, (self.only.clone(), callback), |number| {
            if let Some(current) = current {
                current.store(number, Ordering::Relaxed);
            }
            async move { source.lock().await.next().await }
        })))
    }

    /// Takes a call back.
    fn cancel(&self, number: u64) {
        self.calls.cancel(number);
    }

    /// Answers a question with the text of a JSON object, or says that there is no answer.
    fn answer(&self, number: u64, answer: Option<String>, reason: &str) {
        self.calls.answer(number, answer.ok_or_else(|| reason.into()));
    }

    /// Ends the client; `future` hears when its servers have ended. Returns `None` if it was closed before.
    fn close(&self, future: Bound<'_, PyAny>) -> PyResult<Option<u64>> {
        let Some(client) = lock(&self.client).take() else { return Ok(None) };
        let client = client.get()?.clone();
        Ok(Some(self.start(future, (self.only.clone(), None), |_| async move {
            client.close().await;
            Ok(Given::Nothing)
        })))
    }

    /// After the end: whoever still waits hears of it, and the loop watches no longer.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.calls.work(py)?;
        for number in self.calls.numbers() {
            self.calls.finish(py, number, Err(Failure::Cancelled.into()))?;
        }
        self.calls.desk.bell.close();
        Ok(())
    }

    /// The process ends: closes the client, and waits for its servers, not for long.
    fn shut(&self, py: Python<'_>) {
        let client = lock(&self.client).take();
        let Some(Ok(client)) = client.as_ref().map(|client| client.get().cloned()) else { return };
        let (sender, ended) = mpsc::channel();
        self.runtime.spawn(async move {
            client.close().await;
            let _ = sender.send(());
        });
        py.detach(move || {
            let _ = ended.recv_timeout(LAST_WAIT);
        });
    }
}

impl Caller {
    fn client(&self, py: Python<'_>) -> PyResult<client::Client> {
        match &*lock(&self.client) {
            Some(client) => client.get().cloned(),
            None => {
                let closed = "Failed to read resource: the client is closed; make another";
                Err(raise(py, "ReadFailedError", (closed, Failure::Cancelled.kind())))
            }
        }
    }

    /// Makes a call of the client.
    fn call<F>(
        &self,
        future: Bound<'_, PyAny>,
        mut asked: Asked,
        call: impl FnOnce(client::Client) -> F,
    ) -> PyResult<u64>
    where
        F: Future<Output = Result<Given, ClientError>> + Send + 'static,
    {
        let client = self.client(future.py())?;
        let mut scope = scope(&asked);
        let server = scope.server.as_deref().map(Arc::from).or_else(|| self.only.clone());
        let (progress, desk) = (asked.2.take(), self.calls.desk.clone());
        let reports = progress.is_some();
        Ok(self.start(future, (server, progress), |number| {
            if reports {
                scope.progress = Some(Arc::new(move |told| desk.put(Word::Progressed(number, told))));
            }
            call(client.with(scope))
        }))
    }

    fn start<F>(
        &self,
        future: Bound<'_, PyAny>,
        (server, progress): (Option<Arc<str>>, Option<Py<PyAny>>),
        begin: impl FnOnce(u64) -> F,
    ) -> u64
    where
        F: Future<Output = Result<Given, ClientError>> + Send + 'static,
    {
        let (desk, future) = (self.calls.desk.clone(), future.unbind());
        self.calls.wait(Waiting { future, progress, server, task: None }, |number| {
            let call = begin(number);
            let task = self.runtime.spawn(async move { desk.put(Word::Done(number, call.await)) });
            task.abort_handle()
        })
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
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.progress.as_ref().map(|(callback, _)| callback))
    }

    /// Ends it: with the last watch of a resource ends its subscription.
    fn close(&self) {
        let source = lock(&self.source).take();
        drop(source);
    }
}

impl Stream {
    fn new(source: Source) -> Self {
        let source = Owned::new(Arc::new(tokio::sync::Mutex::new(source)));
        Self { source: Mutex::new(Some(source)), progress: None }
    }
}

impl Source {
    async fn next(&mut self) -> Result<Given, ClientError> {
        match self {
            Self::List(list) => match list.next().await.transpose()? {
                Some(item) => Ok(Given::Items(std::iter::once(item).chain(list.ready()).collect())),
                None => Ok(Given::Nothing),
            },
            Self::Watch(watch) => watch.next().await.transpose()?.map_or(Ok(Given::Nothing), Given::change),
            Self::Lists(changes) => {
                Ok(changes.next().await.map_or(Given::Nothing, |server| Given::Text(server.to_string())))
            }
        }
    }
}

/// What belongs to the native thread of one process. A process that was forked has no such thread, and its locks may be held
/// for ever: there it is left alone.
struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    fn get(&self) -> PyResult<&T> {
        let own = self.value.as_ref().filter(|_| self.process == std::process::id());
        let forked = "this client belongs to the process that made it: make a new one after os.fork()";
        own.ok_or_else(|| PyRuntimeError::new_err(forked))
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.value.take());
        }
    }
}

fn scope((server, timeout, _): &Asked) -> Scope {
    Scope { server: server.clone(), timeout: *timeout, progress: None }
}
