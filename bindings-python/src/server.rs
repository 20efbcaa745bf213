//! The server: an engine, its handlers by number, and the channels that deliver changes.

use crate::audit::{Audit, Recorder};
use crate::contextvars::CallContext;
use crate::convert::Data;
use crate::error;
use crate::function::Function;
use crate::options;
use crate::providers::Provider;
use crate::queue::Queue;
use crate::redact::{GATE, Redactor};
use crate::resource::{Resource, template};
use crate::template::UriTemplate;
use crate::waker::delivering;
use mcp_resources_engine::catalog::{HandlerId, ItemSource};
use mcp_resources_engine::engine::{Engine, ServerInfo};
use mcp_resources_engine::guard::AuditRecord;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_runtime::provider::Mounts;
use mcp_resources_runtime::registry::{ForeignFunction, Registry, RegistryChange};
use mcp_resources_runtime::transport::pump::{RecordThread, ServingRegistry};
use mcp_resources_runtime::transport::{EngineClock, ThreadNeed};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The state shared by all channels.
pub(crate) struct Host {
    pub(crate) clock: Arc<EngineClock>,
    pub(crate) queue: Py<Queue>,
    /// Starts a worker thread.
    pub(crate) spawn: Py<PyAny>,
    /// Looks at contents before they are encoded, in the context of the request.
    pub(crate) redactor: Option<Arc<Redactor>>,
    /// The value of the server's lifespan.
    lifespan: Mutex<Option<Py<PyAny>>>,
    recorder: Option<Recorder>,
    /// Takes what clients watch, once a function wants to know.
    watcher: OnceLock<Recorder>,
    registry: Registry<Functions>,
    pub(crate) serving: ServingRegistry,
}

/// The functions behind one number.
pub(crate) type Functions = mcp_resources_runtime::transport::WorkFunctions<Py<Function>>;

/// A server of resources.
#[pyclass(frozen, weakref, module = "mcp_resources._core")]
pub struct Server {
    pub(crate) host: Arc<Host>,
}

/// One change of the registrations.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Edit(RegistryChange<Functions>);

/// A reader, completers by variable, and a lister.
type HandlerParts = (Py<Function>, HashMap<String, Py<Function>>, Option<Py<Function>>);

#[pymethods]
impl Server {
    /// `spawn` starts a worker thread for `queue`; `audit` is the path of the audit log, or the function that takes its
    /// records.
    #[new]
    #[pyo3(signature = (name, version, fields, queue, spawn, audit = None))]
    fn new(
        py: Python<'_>,
        name: String,
        version: String,
        fields: &Bound<'_, PyDict>,
        queue: Py<Queue>,
        spawn: Py<PyAny>,
        audit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (info, options) = options::read(ServerInfo { name, version, ..ServerInfo::default() }, fields)?;
        let registry = Registry::new(info, options).map_err(|error| error::registration(py, &error, None))?;
        let recorder = match audit.map(Audit::read).transpose()? {
            Some(Audit::File(file)) => {
                registry.audit(Box::new(file));
                None
            }
            Some(Audit::Function(start)) => {
                let thread = RecordThread::default();
                registry.watch_audit_records(thread.bell().clone().into());
                Some(Recorder { start, thread })
            }
            None => None,
        };
        let redact = fields.get_item("redact")?.filter(|redact| !redact.is_none());
        let redactor = redact.map(|redact| Redactor::new(redact.unbind()));
        if let Some(redactor) = redactor.clone() {
            registry
                .mounts()
                .redact_with(Arc::new(move |peer, uri, answer| redactor.provided(peer, uri, answer)));
        }
        let host = Host {
            clock: registry.clock().clone(),
            queue,
            spawn,
            redactor,
            lifespan: Mutex::default(),
            recorder,
            watcher: OnceLock::new(),
            registry,
            serving: ServingRegistry::default(),
        };
        Ok(Self { host: Arc::new(host) })
    }

    /// Rust holds the functions, which may close over the server, so the collector must visit them. A running host
    /// references the server, so a server in use is never collected.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.host.traverse(&visit)
    }

    /// Declares a method that is not ours, before the engine is made.
    fn extend(
        &self,
        py: Python<'_>,
        method: String,
        function: Py<Function>,
        name_param: Option<String>,
        capability: Option<(String, String)>,
        lists: Option<String>,
    ) -> PyResult<()> {
        let list_kind = lists.map(|word| list_kinds(&word)).transpose()?;
        let late = format!("the method {method:?} must be declared before the first resource is registered");
        let foreign = ForeignFunction { method, name_param, capability, list_kind };
        if self.host.registry.extend(foreign, Arc::new(function.into())) {
            return Ok(());
        }
        Err(error::raise(py, "Registration", (late,)))
    }

    /// Applies edits, all or none. Returns warnings for the log.
    fn publish(&self, py: Python<'_>, edits: Vec<PyRef<'_, Edit>>) -> PyResult<Vec<String>> {
        let changes: Vec<_> = edits.iter().map(|edit| &edit.0).collect();
        let registry = &self.host.registry;
        // An edit of templates builds their index anew: other threads go on meanwhile.
        let published = delivering(py, || py.detach(|| registry.publish(&changes)))?;
        published.map_err(|error| self.host.refusal(py, &error))
    }

    /// Mounts providers, all or none.
    fn mount(&self, py: Python<'_>, providers: Vec<PyRef<'_, Provider>>) -> PyResult<()> {
        let _ = self.host.engine()?;
        let mounts = self.host.mounts();
        let providers: Vec<_> = providers.iter().map(|provider| provider.provider.clone()).collect();
        let mounted = delivering(py, || py.detach(|| mounts.mount_all(&providers)))?;
        mounted.map_err(|error| error::registration(py, &error, None))
    }

    /// Reports when clients begin or stop watching `uri`, a resource or template, on the thread that `start` starts
    /// when the server begins to serve. Returns the name under which the changes are reported.
    fn watch(&self, uri: &str, start: Py<PyAny>) -> PyResult<String> {
        let watcher = self.host.watcher.get_or_init(|| Recorder { start, thread: RecordThread::default() });
        self.host.engine()?;
        Ok(self.host.mounts().watch_changes(uri, watcher.thread.bell().clone().into()).to_string())
    }

    /// Ends the mount of a provider. `False` if it is not mounted here.
    fn unmount(&self, py: Python<'_>, provider: &Provider) -> PyResult<bool> {
        let mounts = self.host.mounts();
        let provider = &provider.provider;
        delivering(py, || py.detach(|| mounts.unmount_provider(provider)))
    }

    fn notify_updated(&self, py: Python<'_>, uri: &str) -> PyResult<()> {
        let engine = self.host.engine()?;
        let now = self.host.clock.now();
        let updated = delivering(py, || engine.updated(uri, now))?;
        updated.map_err(|error| error::registration(py, &error, None))
    }

    fn notify_list_changed(&self, py: Python<'_>, lists: &str) -> PyResult<()> {
        let engine = self.host.engine()?;
        let now = self.host.clock.now();
        let lists = list_kinds(lists)?;
        delivering(py, || engine.list_changed(lists, now))
    }

    /// Ends every listen that is open now with its result.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        delivering(py, || self.host.serving.shutdown())
    }

    /// The tokens of a subject are no longer valid: ends its listens and streams.
    fn revoke(&self, py: Python<'_>, subject: &str) -> PyResult<()> {
        let engine = self.host.engine()?;
        delivering(py, || engine.revoke(subject))
    }

    /// The metrics in the text format of Prometheus; `None` if they are off.
    fn metrics_text(&self) -> PyResult<Option<String>> {
        Ok(self.host.engine()?.metrics_text())
    }

    /// Waits, not for long, until all that is recorded was taken.
    fn flush_audit(&self, py: Python<'_>) {
        py.detach(|| {
            self.host.registry.flush_audit();
            self.host.recorder.iter().for_each(|recorder| recorder.thread.flush());
        });
    }

    /// Ends the threads when the interpreter ends, after the audit records were taken.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            self.host.queue.get().jobs.stop();
            GATE.close();
            self.host.registry.end_audit();
            let recorders = self.host.recorder.iter().chain(self.host.watcher.get());
            recorders.for_each(|recorder| recorder.thread.end());
        });
    }

    /// Called after a fork of a process that had threads.
    fn forked(&self) {
        self.host.queue.get().jobs.forked();
        GATE.forked();
        self.host.registry.forked();
    }

    /// Sets the value of the server's lifespan, for handlers.
    fn set_lifespan(&self, value: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *lock(&self.host.lifespan), value);
        drop(before);
    }

    /// Time for requests in flight to finish after the end of input, in milliseconds.
    #[getter]
    fn grace(&self) -> Millis {
        self.host.registry.grace()
    }

    /// The jobs of the worker threads.
    #[getter]
    fn queue(&self, py: Python<'_>) -> Py<Queue> {
        self.host.queue.clone_ref(py)
    }

    /// The number of registered functions.
    #[getter]
    fn handlers(&self) -> usize {
        self.host.registry.len()
    }

    /// Stops the clock at this many milliseconds, for tests.
    fn set_time(&self, tick: Millis, unix: Millis) {
        self.host.clock.set(Some(Now { tick, unix }));
    }
}

#[pymethods]
impl Edit {
    #[staticmethod]
    fn add_resource(resource: &Resource, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let resource = resource.resource.clone();
        if let Ok(function) = source.cast::<Function>() {
            let functions = Arc::new(function.clone().unbind().into());
            return Ok(Self(RegistryChange::AddResource(resource, functions, function.get().number.clone())));
        }
        let source = if let Ok(text) = source.cast::<PyString>() {
            ItemSource::Text(text.to_str()?.into())
        } else {
            match Data::read(source)? {
                Some(Data::Bytes(bytes)) => ItemSource::Bytes((&*bytes).into()),
                _ => return Err(PyTypeError::new_err("the source of a constant is no text and no bytes")),
            }
        };
        Ok(Self(RegistryChange::AddConstant(resource, source)))
    }

    #[staticmethod]
    fn remove_resource(uri: String) -> Self {
        Self(RegistryChange::RemoveResource(uri))
    }

    #[staticmethod]
    fn add_template(
        uri_template: &UriTemplate,
        fields: &Bound<'_, PyDict>,
        functions: HandlerParts,
    ) -> PyResult<Self> {
        let (reader, completers, lister) = functions;
        let functions = Arc::new(Functions { reader, completers, lister });
        Ok(Self(RegistryChange::AddTemplate(template(uri_template, fields)?, functions)))
    }

    #[staticmethod]
    fn remove_template(uri_template: String) -> Self {
        Self(RegistryChange::RemoveTemplate(uri_template))
    }
}

impl Host {
    /// The engine, made when it is first needed.
    pub(crate) fn engine(&self) -> PyResult<Arc<Engine>> {
        self.registry.engine().map_err(|error| Python::attach(|py| error::registration(py, &error, None)))
    }

    /// A host begins to serve: what needs a thread of its own gets it.
    pub(crate) fn begin(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.watcher.get().map_or(Ok(()), |watcher| watcher.begin_watching(py, self))?;
        self.recorder.as_ref().map_or(Ok(()), |recorder| recorder.begin(py, self))
    }

    /// A host serves in this context: what providers read is redacted in the first one, unless a request has its own.
    pub(crate) fn serves_in(&self, py: Python<'_>, context: &CallContext) {
        if let Some(redactor) = &self.redactor {
            redactor.serves_in(py, context);
        }
    }

    pub(crate) fn take_audit_records(&self, entries: &mut Vec<AuditRecord>) {
        self.registry.take_audit_records(entries);
    }

    pub(crate) fn mounts(&self) -> &Arc<Mounts> {
        self.registry.mounts()
    }

    /// The value of the server's lifespan.
    pub(crate) fn lifespan(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.lifespan).as_ref().map(|value| value.clone_ref(py))
    }

    /// Converts a refused registration, with the function that it collides with.
    fn refusal(&self, py: Python<'_>, error: &RegistrationError) -> PyErr {
        let first = self.registry.collides_with(error);
        let first = first.map(|functions| functions.reader.get().name.clone());
        error::registration(py, error, first.as_deref())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.registry.visit(|functions| {
            let all = std::iter::once(&functions.reader).chain(functions.completers.values());
            for function in all.chain(functions.lister.as_ref()) {
                if result.is_ok() {
                    result = visit.call(function);
                }
            }
        });
        result?;
        visit.call(&self.spawn)?;
        visit.call(self.redactor.as_ref().map(|redactor| &redactor.function))?;
        let recorders = self.recorder.iter().chain(self.watcher.get());
        recorders.map(|recorder| &recorder.start).try_for_each(|start| visit.call(start))?;
        match self.lifespan.try_lock() {
            Ok(value) => visit.call(&*value),
            Err(_) => Ok(()),
        }
    }

    /// The functions behind a number, unless they were removed in the meantime.
    pub(crate) fn functions(&self, id: HandlerId) -> Option<Arc<Functions>> {
        self.registry.get(id)
    }

    /// Sees to it that waiting jobs are taken. On the loop's thread, after the jobs of one read are pushed.
    pub(crate) fn kick(&self, py: Python<'_>) -> PyResult<()> {
        match self.queue.get().jobs.kick() {
            ThreadNeed::Nothing => Ok(()),
            ThreadNeed::Thread => self.start_thread(py),
        }
    }

    /// Starts a worker thread. If the system cannot, `spawn` reports that to the queue.
    pub(crate) fn start_thread(&self, py: Python<'_>) -> PyResult<()> {
        self.spawn.call1(py, (&self.queue,)).map(drop)
    }
}

/// The threads that serve this host leave, without being waited for.
impl Drop for Host {
    fn drop(&mut self) {
        self.queue.get().jobs.retire();
        self.recorder.iter().chain(self.watcher.get()).for_each(|recorder| recorder.thread.close());
        // The log's thread never needs the interpreter, but a disk may be slow.
        match Python::try_attach(|py| py.detach(|| self.registry.end_audit())) {
            Some(()) => {}
            None => self.registry.end_audit(),
        }
    }
}

fn list_kinds(word: &str) -> PyResult<ListKinds> {
    let refused = || PyTypeError::new_err(format!("{word:?} is no list: resources, tools or prompts"));
    ListKinds::parse(word).ok_or_else(refused)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
