//! The server: an engine, the handlers behind its numbers, and the channels to tell of changes.

use crate::channel::Link;
use crate::error;
use crate::function::Function;
use crate::options;
use crate::queue::Queue;
use crate::resource::{Resource, template};
use crate::template::UriTemplate;
use crate::web::Web;
use mcp_resources::catalog::{Edit as CoreEdit, HandlerId, Source};
use mcp_resources::engine::{Engine, Extension, Options, ServerInfo};
use mcp_resources::hub::{ConnectionId, ListKinds};
use mcp_resources::now::{Millis, Now};
use mcp_resources::resource::{self as core, Template};
use mcp_resources::transport::Clock;
use mcp_resources::uri;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

/// What all channels share.
pub(crate) struct Host {
    pub(crate) clock: Arc<Clock>,
    pub(crate) queue: Py<Queue>,
    /// Starts a worker thread.
    pub(crate) spawn: Py<PyAny>,
    draft: Mutex<(ServerInfo, Options)>,
    engine: OnceLock<Arc<Engine>>,
    handlers: RwLock<HashMap<HandlerId, (Arc<Handler>, usize)>>,
    links: Mutex<HashMap<ConnectionId, Weak<Link>>>,
    webs: Mutex<Vec<Weak<Web>>>,
}

/// The functions behind one number.
pub(crate) struct Handler {
    pub(crate) function: Py<Function>,
    pub(crate) completers: HashMap<String, Py<Function>>,
    pub(crate) lister: Option<Py<Function>>,
}

/// See the module.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Server {
    pub(crate) host: Arc<Host>,
}

/// One change of what is registered.
#[pyclass(frozen, module = "mcp_resources._core")]
pub struct Edit(Change);

enum Change {
    AddResource(core::Resource, Supplier),
    RemoveResource(String),
    AddTemplate(Template, Arc<Handler>),
    RemoveTemplate(String),
}

/// A reader, completers by variable, and a lister.
type HandlerParts = (Py<Function>, HashMap<String, Py<Function>>, Option<Py<Function>>);

enum Supplier {
    Constant(Source),
    Function(Py<Function>),
}

#[pymethods]
impl Server {
    /// `spawn` starts a worker thread for `queue`.
    #[new]
    fn new(
        name: String,
        version: String,
        fields: &Bound<'_, PyDict>,
        workers: (Py<Queue>, Py<PyAny>),
    ) -> PyResult<Self> {
        let draft = options::read(ServerInfo { name, version, ..ServerInfo::default() }, fields)?;
        let (queue, spawn) = workers;
        let host = Host {
            clock: Arc::new(Clock::new()),
            queue,
            spawn,
            draft: Mutex::new(draft),
            engine: OnceLock::new(),
            handlers: RwLock::default(),
            links: Mutex::default(),
            webs: Mutex::default(),
        };
        Ok(Self { host: Arc::new(host) })
    }

    /// Declares a method that is not ours, before the engine is made.
    fn extend(
        &self,
        py: Python<'_>,
        method: String,
        function: Py<Function>,
        about: (Option<String>, Option<(String, String)>, Option<String>),
    ) -> PyResult<()> {
        let (name_param, capability, lists) = about;
        if self.host.engine.get().is_some() {
            let late =
                format!("the method {method:?} must be declared before the first resource is registered");
            return Err(error::raise(py, "RegistrationError", (late,)));
        }
        let list_kind = lists.map(|word| list_kinds(&word)).transpose()?;
        let mut draft = lock(&self.host.draft);
        let extensions = &mut draft.1.extensions;
        // Numbers of the engine's own grow from 0.
        let handler = HandlerId::MAX - HandlerId::try_from(extensions.len()).unwrap_or_default();
        extensions.push(Extension { method, handler, name_param, capability, list_kind });
        drop(draft);
        self.host.insert(handler, Arc::new(Handler::of(function)));
        Ok(())
    }

    /// Applies edits, all or none. Returns warnings for the author.
    fn publish(&self, py: Python<'_>, edits: Vec<PyRef<'_, Edit>>) -> PyResult<Vec<String>> {
        let engine = self.host.engine()?;
        let (mut changes, mut added, mut removed) = (Vec::new(), Vec::new(), Vec::new());
        for edit in &edits {
            let (change, handler) = self.host.prepare(py, &engine, &edit.0);
            match &change {
                CoreEdit::RemoveResource { .. } | CoreEdit::RemoveTemplate { .. } => removed.extend(handler),
                _ => added.extend(handler),
            }
            changes.push(change);
        }
        let mut woken = Vec::new();
        match engine.publish(changes, self.host.clock.now(), &mut woken) {
            Ok(warnings) => {
                removed.into_iter().for_each(|handler| self.host.release(handler));
                self.host.tell(py, woken)?;
                Ok(warnings)
            }
            Err(error) => {
                added.into_iter().for_each(|handler| self.host.release(handler));
                Err(error::registration(py, &error))
            }
        }
    }

    fn notify_updated(&self, py: Python<'_>, uri: &str) -> PyResult<()> {
        let mut woken = Vec::new();
        let told = self.host.engine()?.updated(uri, self.host.clock.now(), &mut woken);
        told.map_err(|error| error::registration(py, &error))?;
        self.host.tell(py, woken)
    }

    fn notify_list_changed(&self, py: Python<'_>, lists: &str) -> PyResult<()> {
        let mut woken = Vec::new();
        self.host.engine()?.list_changed(list_kinds(lists)?, self.host.clock.now(), &mut woken);
        self.host.tell(py, woken)
    }

    /// Ends every listen with its result.
    fn shutdown(&self, py: Python<'_>) -> PyResult<()> {
        let mut woken = Vec::new();
        self.host.engine()?.shutdown(&mut woken);
        self.host.tell(py, woken)
    }

    /// How long what is in flight may still finish after the end of input, in milliseconds.
    #[getter]
    fn grace(&self) -> Millis {
        lock(&self.host.draft).1.limits.grace
    }

    /// The jobs of the worker threads.
    #[getter]
    fn queue(&self, py: Python<'_>) -> Py<Queue> {
        self.host.queue.clone_ref(py)
    }

    /// How many functions are registered.
    #[getter]
    fn handlers(&self) -> usize {
        self.host.handlers.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Stops the clock at so many milliseconds, for tests.
    fn set_time(&self, tick: Millis, unix: Millis) {
        self.host.clock.set(Some(Now { tick, unix }));
    }
}

#[pymethods]
impl Edit {
    #[staticmethod]
    fn add_resource(resource: &Resource, source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let supplier = if let Ok(function) = source.cast::<Function>() {
            Supplier::Function(function.clone().unbind())
        } else if let Ok(text) = source.cast::<PyString>() {
            Supplier::Constant(Source::Text(text.to_str()?.into()))
        } else {
            let bytes = source.py().get_type::<PyBytes>().call1((source,))?;
            Supplier::Constant(Source::Bytes(bytes.cast::<PyBytes>()?.as_bytes().into()))
        };
        Ok(Self(Change::AddResource(resource.resource.clone(), supplier)))
    }

    #[staticmethod]
    fn remove_resource(uri: String) -> Self {
        Self(Change::RemoveResource(uri))
    }

    #[staticmethod]
    fn add_template(
        uri_template: &UriTemplate,
        fields: &Bound<'_, PyDict>,
        functions: HandlerParts,
    ) -> PyResult<Self> {
        let (function, completers, lister) = functions;
        let handler = Arc::new(Handler { function, completers, lister });
        Ok(Self(Change::AddTemplate(template(uri_template, fields)?, handler)))
    }

    #[staticmethod]
    fn remove_template(uri_template: String) -> Self {
        Self(Change::RemoveTemplate(uri_template))
    }
}

impl Handler {
    fn of(function: Py<Function>) -> Self {
        Self { function, completers: HashMap::new(), lister: None }
    }
}

impl Host {
    /// The engine, made when it is first needed.
    pub(crate) fn engine(&self) -> PyResult<Arc<Engine>> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        let (info, options) = lock(&self.draft).clone();
        let made = Engine::new(info, options);
        let made = made.map_err(|error| Python::attach(|py| error::registration(py, &error)))?;
        Ok(self.engine.get_or_init(|| made).clone())
    }

    /// The functions behind a number, unless they were removed in the meantime.
    pub(crate) fn handler(&self, id: HandlerId) -> Option<Arc<Handler>> {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(&id).map(|(handler, _)| handler.clone())
    }

    pub(crate) fn join(&self, link: &Arc<Link>) {
        lock(&self.links).insert(link.pipe.id(), Arc::downgrade(link));
    }

    pub(crate) fn leave(&self, id: ConnectionId) {
        lock(&self.links).remove(&id);
    }

    pub(crate) fn serve(&self, web: &Arc<Web>) {
        let mut webs = lock(&self.webs);
        webs.retain(|web| web.strong_count() > 0);
        webs.push(Arc::downgrade(web));
    }

    /// When time must pass for the engine.
    pub(crate) fn deadline(&self) -> Option<Millis> {
        self.engine.get().and_then(|engine| engine.deadline())
    }

    /// Lets time pass for the engine.
    pub(crate) fn tick(&self, py: Python<'_>) -> PyResult<()> {
        let mut woken = Vec::new();
        self.engine()?.tick(self.clock.now(), &mut woken);
        self.tell(py, woken)
    }

    /// Delivers to the connections that have something to hear. What must wait is somebody's timer's.
    fn tell(&self, py: Python<'_>, woken: Vec<ConnectionId>) -> PyResult<()> {
        self.tell_pipes(py, &woken)?;
        let webs: Vec<_> = lock(&self.webs).iter().filter_map(Weak::upgrade).collect();
        webs.iter().try_for_each(|web| web.tell(py, &woken))?;
        if self.deadline().is_some() {
            let links: Vec<_> = lock(&self.links).values().filter_map(Weak::upgrade).collect();
            links.iter().try_for_each(|link| link.rearm(py))?;
        }
        Ok(())
    }

    /// Delivers to those at the end of a pipe.
    pub(crate) fn tell_pipes(&self, py: Python<'_>, woken: &[ConnectionId]) -> PyResult<()> {
        woken.iter().filter_map(|id| self.link(*id)).try_for_each(|link| link.deliver(py))
    }

    fn link(&self, id: ConnectionId) -> Option<Arc<Link>> {
        lock(&self.links).get(&id).and_then(Weak::upgrade)
    }

    /// The core's edit, and the number of the functions it adds or removes.
    fn prepare(&self, py: Python<'_>, engine: &Engine, change: &Change) -> (CoreEdit, Option<HandlerId>) {
        match change {
            Change::AddResource(resource, Supplier::Constant(source)) => {
                (CoreEdit::AddResource { resource: resource.clone(), source: source.clone() }, None)
            }
            Change::AddResource(resource, Supplier::Function(function)) => {
                let id = *function.get().number.get_or_init(|| engine.new_handler());
                self.insert(id, Arc::new(Handler::of(function.clone_ref(py))));
                (CoreEdit::AddResource { resource: resource.clone(), source: Source::Handler(id) }, Some(id))
            }
            Change::RemoveResource(given) => {
                let catalog = engine.catalog();
                let normal = uri::normalize(given, engine.limits().uri).ok();
                let entry = normal.and_then(|normal| catalog.resource(&normal).cloned());
                let id = entry.and_then(|entry| match entry.source {
                    Source::Handler(id) => Some(id),
                    _ => None,
                });
                (CoreEdit::RemoveResource { uri: given.clone() }, id)
            }
            Change::AddTemplate(template, handler) => {
                let id = engine.new_handler();
                self.insert(id, handler.clone());
                (CoreEdit::AddTemplate { template: template.clone(), handler: id }, Some(id))
            }
            Change::RemoveTemplate(text) => {
                let id = engine.catalog().template_by_text(text).map(|entry| entry.handler);
                (CoreEdit::RemoveTemplate { uri_template: text.clone() }, id)
            }
        }
    }

    /// Registers one more use of a number.
    fn insert(&self, id: HandlerId, handler: Arc<Handler>) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.entry(id).or_insert((handler, 0)).1 += 1;
    }

    /// Ends one use of a number; after the last, its functions are dropped.
    fn release(&self, id: HandlerId) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        let last = handlers.get_mut(&id).is_some_and(|(_, uses)| {
            *uses -= 1;
            *uses == 0
        });
        let dropped = last.then(|| handlers.remove(&id));
        drop(handlers);
        drop(dropped);
    }
}

fn list_kinds(word: &str) -> PyResult<ListKinds> {
    match word {
        "resources" => Ok(ListKinds::RESOURCES),
        "tools" => Ok(ListKinds::TOOLS),
        "prompts" => Ok(ListKinds::PROMPTS),
        _ => Err(PyTypeError::new_err(format!("{word:?} is no list: resources, tools or prompts"))),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
