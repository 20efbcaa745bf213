//! The server: an engine, its handlers by number, and the channels that deliver changes.

use crate::calls::consumer::ConsumerThread;
use crate::calls::function::Function;
use crate::calls::queue::Queue;
use crate::calls::redact::{PROVIDER_CALLS, Redactor};
use crate::calls::server_state::{Consumer, Functions, ServerState};
use crate::calls::waker::delivering;
use crate::serve::audit::Audit;
use crate::serve::auth::TokenVerifier;
use crate::serve::config::{self, Config};
use crate::serve::providers::Provider;
use crate::values::contents::Data;
use crate::values::error;
use crate::values::lock::lock;
use crate::values::options;
use crate::values::resource::{Resource, named, page, template};
use crate::values::template::UriTemplate;
use mcp_resources_bus::from_url;
use mcp_resources_engine::catalog::ItemSource;
use mcp_resources_engine::engine::ServerInfo;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_engine::resource as core;
use mcp_resources_runtime::registry::{ForeignFunction, Registry, RegistryChange};
use mcp_resources_runtime::transport::pump::ServingRegistry;
use mcp_resources_serve::{ForeignConfig, ServedConfig};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

/// A server of resources.
#[pyclass(frozen, weakref, module = "mcp_resources._core")]
pub struct Server {
    pub(crate) state: Arc<ServerState>,
}

/// One change of the registrations.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Edit(RegistryChange<Functions>);

/// A capability to declare: its name, and its settings as JSON text.
#[derive(FromPyObject)]
struct CapabilityParts {
    #[pyo3(item(0))]
    name: String,
    #[pyo3(item(1))]
    settings: String,
}

/// The declarations of a custom method.
#[derive(FromPyObject)]
struct MethodParts {
    #[pyo3(item(0))]
    name_param: Option<String>,
    #[pyo3(item(1))]
    capability: Option<CapabilityParts>,
    #[pyo3(item(2))]
    lists: Option<String>,
    /// In milliseconds; 0 for none.
    #[pyo3(item(3))]
    timeout: Option<Millis>,
}

/// The functions of a template.
#[derive(FromPyObject)]
struct HandlerParts {
    #[pyo3(item(0))]
    reader: Py<Function>,
    /// Completers, by variable.
    #[pyo3(item(1))]
    completers: HashMap<String, Py<Function>>,
    #[pyo3(item(2))]
    lister: Option<Py<Function>>,
    #[pyo3(item(3))]
    access: Option<Py<Function>>,
}

/// The description of a server: in code, or in a file.
#[derive(FromPyObject)]
enum About<'py> {
    File(PyRef<'py, Config>),
    Code(String, String),
}

impl About<'_> {
    fn read(self) -> PyResult<(Option<ForeignConfig>, ServerInfo)> {
        Ok(match self {
            Self::File(config) => (Some(config.take()?), ServerInfo::default()),
            Self::Code(name, version) => (None, ServerInfo { name, version, ..ServerInfo::default() }),
        })
    }
}

#[pymethods]
impl Server {
    /// `about` is the name and the version, or a configuration file. `spawn` starts a worker thread for `queue`; `audit` is the
    /// path of the audit log, or the function that takes its records.
    #[new]
    #[pyo3(signature = (about, fields, queue, spawn, audit = None))]
    fn new(
        py: Python<'_>,
        about: About<'_>,
        fields: &Bound<'_, PyDict>,
        queue: Py<Queue>,
        spawn: Py<PyAny>,
        audit: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (mut given, info) = about.read()?;
        let (setup, file) = config::setup(given.as_mut(), info);
        let (info, options) = options::read(setup, fields)?;
        let described = given.is_some().then(|| info.clone());
        let registry = Registry::new(info, options).map_err(|error| error::registration(py, &error, None))?;
        if let Some(url) = fields.get_item("bus")?.filter(|url| !url.is_none()) {
            connect_bus(py, &registry, &url)?;
        }
        let audit = audit.map(Audit::read).transpose()?.or(file.map(Audit::File));
        let record_consumer = match audit {
            Some(Audit::File(file)) => {
                registry.audit(Box::new(file));
                None
            }
            Some(Audit::Function(start)) => {
                let thread = ConsumerThread::default();
                registry.watch_audit_records(thread.signal().clone().into());
                Some(Consumer { start, thread })
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
        let state = ServerState {
            clock: registry.clock().clone(),
            queue,
            spawn,
            redactor,
            lifespan: Mutex::default(),
            record_consumer,
            watch_consumer: OnceLock::new(),
            registry,
            serving: ServingRegistry::default(),
            config: OnceLock::new(),
        };
        if let (Some(given), Some(info)) = (given, described) {
            // Before there is a client: nothing is delivered.
            let _ = state.config.set(config::begin(py, given, &state.registry, info)?);
        }
        Ok(Self { state: Arc::new(state) })
    }

    /// Rust holds the functions, which may close over the server, so the collector must visit them. A running
    /// channel references the server, so a server in use is never collected.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.state.traverse(&visit)
    }

    /// Declares a method that is not ours.
    fn extend(
        &self,
        py: Python<'_>,
        method: String,
        function: Py<Function>,
        declared: MethodParts,
    ) -> PyResult<()> {
        let MethodParts { name_param, capability, lists, timeout } = declared;
        let list_kind = lists.map(|word| list_kinds(&word)).transpose()?;
        let capability = capability.map(|CapabilityParts { name, settings }| (name, settings));
        let foreign = ForeignFunction { method, name_param, capability, list_kind, timeout };
        let added = self.state.registry.extend(foreign, Arc::new(function.into()));
        added.map_err(|error| error::registration(py, &error, None))
    }

    /// Applies edits, all or none. Returns warnings for the log.
    fn publish(&self, py: Python<'_>, edits: Vec<PyRef<'_, Edit>>) -> PyResult<Vec<String>> {
        let changes: Vec<_> = edits.iter().map(|edit| edit.0.clone()).collect();
        let registry = &self.state.registry;
        // An edit of templates builds their index anew: other threads go on meanwhile.
        let published = delivering(py, || py.detach(|| registry.publish(changes)))?;
        published.map_err(|error| self.state.refusal(py, &error))
    }

    /// Mounts providers, all or none.
    fn mount(&self, py: Python<'_>, providers: Vec<PyRef<'_, Provider>>) -> PyResult<()> {
        let _ = self.state.engine()?;
        let mounts = self.state.mounts();
        let providers: Vec<_> = providers.iter().map(|provider| provider.provider.clone()).collect();
        let mounted = delivering(py, || py.detach(|| mounts.mount_all(&providers)))?;
        mounted.map_err(|error| error::registration(py, &error, None))
    }

    /// Reports when clients begin or stop watching `uri`, a resource or template, on the thread that `start` starts
    /// when the server begins to serve. Returns the name under which the changes are reported.
    fn watch(&self, uri: &str, start: Py<PyAny>) -> PyResult<String> {
        let consumer =
            self.state.watch_consumer.get_or_init(|| Consumer { start, thread: ConsumerThread::default() });
        self.state.engine()?;
        Ok(self.state.mounts().watch_changes(uri, consumer.thread.signal().clone().into()).to_string())
    }

    /// Ends the mount of a provider. `False` if it is not mounted here.
    fn unmount(&self, py: Python<'_>, provider: &Provider) -> PyResult<bool> {
        let mounts = self.state.mounts();
        let provider = &provider.provider;
        delivering(py, || py.detach(|| mounts.unmount_provider(provider)))
    }

    fn check_link(&self, registered: &str, uri: &str) -> PyResult<()> {
        self.state.engine()?.check_link(registered, uri).map_err(PyValueError::new_err)
    }

    #[pyo3(signature = (uri, principal = None))]
    fn notify_updated(&self, py: Python<'_>, uri: &str, principal: Option<&str>) -> PyResult<()> {
        let engine = self.state.engine()?;
        let now = self.state.clock.now();
        let updated = delivering(py, || match principal {
            None => engine.updated(uri, now),
            Some(principal) => engine.updated_for(principal, uri, now),
        })?;
        updated.map_err(|error| error::registration(py, &error, None))
    }

    fn notify_list_changed(&self, py: Python<'_>, lists: &str) -> PyResult<()> {
        let engine = self.state.engine()?;
        let now = self.state.clock.now();
        let lists = list_kinds(lists)?;
        delivering(py, || engine.list_changed(lists, now))
    }

    /// Ends every listen that is open now with its result.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        delivering(py, || self.state.serving.shutdown())
    }

    /// The tokens of a subject are no longer valid: ends its listens and streams.
    fn revoke(&self, py: Python<'_>, subject: &str) -> PyResult<()> {
        let engine = self.state.engine()?;
        delivering(py, || engine.revoke(subject))
    }

    /// Looks again at what a principal may see.
    fn regrant(&self, py: Python<'_>, principal: &str) -> PyResult<()> {
        let engine = self.state.engine()?;
        delivering(py, || engine.regrant(principal))
    }

    /// The metrics in the text format of Prometheus; `None` if they are off.
    fn metrics_text(&self) -> PyResult<Option<String>> {
        Ok(self.state.engine()?.metrics_text())
    }

    /// Waits, not for long, until all that is recorded was taken.
    fn flush_audit(&self, py: Python<'_>) {
        py.detach(|| {
            self.state.registry.flush_audit();
            self.state.registry.flush_bus();
            self.state.record_consumer.iter().for_each(|consumer| consumer.thread.flush());
        });
    }

    /// Ends the threads when the interpreter ends, after the audit records were taken.
    fn stop(&self, py: Python<'_>) {
        py.detach(|| {
            self.state.queue.get().jobs.stop();
            PROVIDER_CALLS.close();
            self.state.registry.end_audit();
            self.state.registry.end_bus();
            let consumers = self.state.record_consumer.iter().chain(self.state.watch_consumer.get());
            consumers.for_each(|consumer| consumer.thread.end());
        });
    }

    /// Called after a fork of a process that had threads.
    fn forked(&self) {
        self.state.queue.get().jobs.forked();
        PROVIDER_CALLS.forked();
        self.state.config.get().into_iter().for_each(ServedConfig::forked);
        self.state.registry.forked();
    }

    /// Sets the value of the server's lifespan, for handlers.
    fn set_lifespan(&self, value: Option<Py<PyAny>>) {
        let before = std::mem::replace(&mut *lock(&self.state.lifespan), value);
        drop(before);
    }

    /// Time for requests in flight to finish after the end of input, in milliseconds.
    #[getter]
    fn grace(&self) -> Millis {
        self.state.registry.grace()
    }

    /// The verifier of tokens of the configuration file; `None` if it has none.
    #[getter]
    fn verifier(&self) -> Option<TokenVerifier> {
        self.http_options().verifier.map(TokenVerifier::from)
    }

    /// The jobs of the worker threads.
    #[getter]
    fn queue(&self, py: Python<'_>) -> Py<Queue> {
        self.state.queue.clone_ref(py)
    }

    /// The number of registered functions.
    #[getter]
    fn handlers(&self) -> usize {
        self.state.registry.len()
    }

    /// Stops the clock at this many milliseconds, for tests.
    fn set_time(&self, tick: Millis, unix: Millis) {
        self.state.clock.set(Some(Now { tick, unix }));
    }
}

/// Connects a server with its other processes.
fn connect_bus(py: Python<'_>, registry: &Registry<Functions>, url: &Bound<'_, PyAny>) -> PyResult<()> {
    let Ok(url) = url.cast::<PyString>() else {
        let text = format!(
            "bus is of type `{}`, expected a URL such as \"redis://localhost:6379/0\"",
            url.get_type().name()?
        );
        return Err(PyTypeError::new_err(text));
    };
    let bus =
        from_url(url.to_str()?).map_err(|error| error::raise(py, "Registration", (error.to_string(),)))?;
    registry.connect_bus(bus).map_err(|error| error::registration(py, &error, None))
}

impl Edit {
    /// Adds a resource whose contents are a constant or come from a function.
    fn of_resource(resource: core::Resource, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(function) = source.cast::<Function>() {
            let functions = Arc::new(function.clone().unbind().into());
            let number = Some(function.get().number.clone());
            return Ok(Self(RegistryChange::AddResource(resource, functions, number)));
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
}

#[pymethods]
impl Edit {
    #[staticmethod]
    #[pyo3(signature = (resource, source, access = None))]
    fn add_resource(
        resource: &Resource,
        source: &Bound<'_, PyAny>,
        access: Option<Py<Function>>,
    ) -> PyResult<Self> {
        let mut resource = resource.resource.clone();
        let (Some(_), Ok(reader)) = (&access, source.cast::<Function>()) else {
            return Self::of_resource(resource, source);
        };
        resource.details.access = true;
        let functions = Functions { access, ..reader.clone().unbind().into() };
        Ok(Self(RegistryChange::AddResource(resource, Arc::new(functions), None)))
    }

    #[staticmethod]
    fn add_page(py: Python<'_>, fields: &Bound<'_, PyDict>, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let made = page(fields)?.into_resource();
        let (resource, _) = made.map_err(|refused| error::registration(py, &refused, None))?;
        Self::of_resource(resource, source)
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
        let HandlerParts { reader, completers, lister, access } = functions;
        let mut template = template(uri_template, fields)?;
        template.details.access = access.is_some();
        let functions = Arc::new(Functions { reader, completers, lister, access });
        Ok(Self(RegistryChange::AddTemplate(Box::new(template), functions)))
    }

    #[staticmethod]
    fn remove_template(uri_template: String) -> Self {
        Self(RegistryChange::RemoveTemplate(uri_template))
    }

    #[staticmethod]
    fn add_tool(fields: &Bound<'_, PyDict>, function: Py<Function>) -> PyResult<Self> {
        Ok(Self(RegistryChange::AddTool(Box::new(named(fields)?), Arc::new(function.into()))))
    }

    #[staticmethod]
    fn remove_tool(name: String) -> Self {
        Self(RegistryChange::RemoveTool(name))
    }

    #[staticmethod]
    fn add_prompt(
        fields: &Bound<'_, PyDict>,
        function: Py<Function>,
        completers: HashMap<String, Py<Function>>,
    ) -> PyResult<Self> {
        let functions = Arc::new(Functions { completers, ..function.into() });
        Ok(Self(RegistryChange::AddPrompt(Box::new(named(fields)?), functions)))
    }

    #[staticmethod]
    fn remove_prompt(name: String) -> Self {
        Self(RegistryChange::RemovePrompt(name))
    }
}

fn list_kinds(word: &str) -> PyResult<ListKinds> {
    let refused = || PyTypeError::new_err(format!("{word:?} is no list: resources, tools or prompts"));
    ListKinds::parse(word).ok_or_else(refused)
}
