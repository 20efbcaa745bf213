//! What stands behind the engine's numbers: the author's functions, counted by their uses, and the parts of providers. And the
//! engine itself, which is made when it is first needed.
//!
//! Law: no function is dropped while a lock is held; dropping one may run code of the language's. A table is never changed, a
//! changed one replaces it: a request that is under way keeps the function it found.

use crate::provider::Mounts;
use crate::transport::{AuditLog, AuditSink, Clock};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use mcp_resources_engine::catalog::{Edit, HandlerId, Source};
use mcp_resources_engine::engine::{Engine, Extension, Options, ServerInfo};
use mcp_resources_engine::guard::AuditEntry;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::resource::{RegistrationError, Resource, Template};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;

/// See the module. `H` is what a host calls: a reader with its completers and its lister.
pub struct Registry<H> {
    draft: Mutex<(ServerInfo, Options)>,
    engine: OnceLock<Arc<Engine>>,
    clock: Arc<Clock>,
    mounts: Arc<Mounts>,
    handlers: ArcSwap<Table<H>>,
    /// Held while the table is replaced.
    editing: Mutex<()>,
    sink: Mutex<Option<Box<dyn AuditSink>>>,
    watcher: OnceLock<Waker>,
    audit: Mutex<Option<AuditLog>>,
}

/// Functions, with how often each is used.
type Table<H> = OrdMap<HandlerId, (Arc<H>, usize)>;

/// One change of what is registered.
#[derive(Debug)]
pub enum Change<H> {
    /// Adds a resource whose contents the engine has.
    AddConstant(Resource, Source),
    /// Adds a resource that a function reads. Resources with one function share its number.
    AddResource(Resource, Arc<H>, Arc<Number>),
    /// Removes the resource with this URI, in any spelling; nothing if there is none.
    RemoveResource(String),
    /// Adds a template.
    AddTemplate(Template, Arc<H>),
    /// Removes the template with exactly this text; nothing if there is none.
    RemoveTemplate(String),
}

/// The number of a function, once it has one.
#[derive(Debug, Default)]
pub struct Number(OnceLock<HandlerId>);

/// A method that is not ours, as a host declares it.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// Its name.
    pub method: String,
    /// See [`Extension::name_param`].
    pub name_param: Option<String>,
    /// See [`Extension::capability`].
    pub capability: Option<(String, String)>,
    /// See [`Extension::list_kind`].
    pub list_kind: Option<ListKinds>,
}

impl<H> Registry<H> {
    /// Nothing registered yet.
    ///
    /// # Errors
    /// A field of the server has a value that it cannot have, such as a limit that leaves nothing to serve.
    pub fn new(info: ServerInfo, options: Options) -> Result<Self, RegistrationError> {
        Engine::check(&info, &options)?;
        let clock = Arc::new(Clock::new());
        let (sink, watcher, audit) = (Mutex::default(), OnceLock::new(), Mutex::default());
        Ok(Self {
            draft: Mutex::new((info, options)),
            engine: OnceLock::new(),
            mounts: Mounts::new(clock.clone()),
            clock,
            handlers: ArcSwap::default(),
            editing: Mutex::default(),
            sink,
            watcher,
            audit,
        })
    }

    /// The engine, made when it is first needed.
    ///
    /// # Errors
    /// A field of the server has a value that the protocol does not allow.
    pub fn engine(&self) -> Result<Arc<Engine>, RegistrationError> {
        if let Some(engine) = self.engine.get() {
            return Ok(engine.clone());
        }
        let (info, options) = self.draft().clone();
        let made = Engine::new(info, options)?;
        let serve = || {
            self.mounts.serve(&made);
            made
        };
        let engine = self.engine.get_or_init(serve).clone();
        self.begin_audit(&engine);
        Ok(engine)
    }

    /// Says where records go (S-19). Before the engine is made.
    pub fn audit(&self, sink: Box<dyn AuditSink>) {
        self.draft().1.audit = true;
        *lock(&self.sink) = Some(sink);
    }

    /// Has `watcher` woken when there is something for [`Registry::take_records`], instead of a sink: for a host that calls
    /// functions on one thread alone. Before the engine is made.
    pub fn watch_records(&self, watcher: Waker) {
        self.draft().1.audit = true;
        // The first one stays.
        let _ = self.watcher.set(watcher);
    }

    /// Appends what was recorded since the last call; the watcher hears of what comes after.
    pub fn take_records(&self, entries: &mut Vec<AuditEntry>) {
        if let (Some(engine), Some(watcher)) = (self.made(), self.watcher.get()) {
            engine.watch_records(watcher);
            engine.take_records(entries);
        }
    }

    /// Waits until the sink has taken all that is recorded now; a second at most.
    pub fn flush_audit(&self) {
        if let Some(audit) = &*lock(&self.audit) {
            audit.flush();
        }
    }

    /// This process was forked from one that may have had the sink's thread: it records by itself from now on.
    pub fn forked(&self) {
        // A lock that is held belongs to a thread of the parent's for ever.
        if let Ok(mut audit) = self.audit.try_lock() {
            *audit = audit.take().and_then(AuditLog::forked);
        }
    }

    /// Ends the sink's thread, after all that is recorded now.
    pub fn end_audit(&self) {
        let audit = lock(&self.audit).take();
        drop(audit);
    }

    fn begin_audit(&self, engine: &Arc<Engine>) {
        if let Some(watcher) = self.watcher.get() {
            engine.watch_records(watcher);
        }
        if let Some(sink) = lock(&self.sink).take() {
            *lock(&self.audit) = Some(AuditLog::new(engine.clone(), sink));
        }
    }

    /// The providers that are mounted.
    pub fn mounts(&self) -> &Arc<Mounts> {
        &self.mounts
    }

    /// The time of all that serves.
    pub fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    /// The engine, if it was needed already.
    pub fn made(&self) -> Option<&Arc<Engine>> {
        self.engine.get()
    }

    /// How long what is in flight may still finish after the end of input, in milliseconds.
    pub fn grace(&self) -> u64 {
        self.draft().1.limits.grace
    }

    /// How long a read may take, in milliseconds.
    pub fn read_timeout(&self) -> u64 {
        self.draft().1.limits.read_timeout
    }

    /// Declares a method that is not ours. `false` if it is too late: there is an engine already.
    #[must_use]
    pub fn extend(&self, foreign: Foreign, handler: Arc<H>) -> bool {
        if self.engine.get().is_some() {
            return false;
        }
        let mut draft = self.draft();
        let extensions = &mut draft.1.extensions;
        // Numbers of the engine's own grow from 0.
        let number = HandlerId::MAX - HandlerId::try_from(extensions.len()).unwrap_or_default();
        let Foreign { method, name_param, capability, list_kind } = foreign;
        extensions.push(Extension { method, handler: number, name_param, capability, list_kind });
        drop(draft);
        self.insert(number, handler);
        true
    }

    /// Applies changes, all or none. Returns warnings for the author.
    ///
    /// # Errors
    /// What is wrong with the first change that cannot be applied.
    pub fn publish(&self, changes: &[&Change<H>]) -> Result<Vec<String>, RegistrationError> {
        let engine = self.engine()?;
        let (mut edits, mut added) = (Vec::new(), Vec::new());
        for change in changes {
            let (edit, number) = self.prepare(&engine, change);
            added.extend(number);
            edits.push(edit);
        }
        let (unused, warnings) = match engine.apply(edits, self.clock.now()) {
            Ok(applied) => (applied.freed, Ok(applied.warnings)),
            Err(error) => (added, Err(error)),
        };
        unused.into_iter().for_each(|number| self.release(number));
        engine.settle_interest();
        warnings
    }

    /// Shows each registered handler to `visit`, once.
    pub fn visit(&self, mut visit: impl FnMut(&H)) {
        self.handlers.load().values().for_each(|(handler, _)| visit(handler));
    }

    /// What a refused registration collides with: the handler of the resource or template that is registered already.
    pub fn collides_with(&self, error: &RegistrationError) -> Option<Arc<H>> {
        self.get(self.made()?.holder(error)?)
    }

    /// The functions behind a number, unless they were removed in the meantime.
    pub fn get(&self, number: HandlerId) -> Option<Arc<H>> {
        self.handlers.load().get(&number).map(|(handler, _)| handler.clone())
    }

    /// How many functions are registered.
    pub fn len(&self) -> usize {
        self.handlers.load().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The engine's edit, and the number of the functions that it adds.
    fn prepare(&self, engine: &Engine, change: &Change<H>) -> (Edit, Option<HandlerId>) {
        match change {
            Change::AddConstant(resource, source) => {
                (Edit::AddResource { resource: resource.clone(), source: source.clone() }, None)
            }
            Change::AddResource(resource, handler, number) => {
                let number = *number.0.get_or_init(|| engine.new_handler());
                self.insert(number, handler.clone());
                let source = Source::Handler(number);
                (Edit::AddResource { resource: resource.clone(), source }, Some(number))
            }
            Change::RemoveResource(given) => (Edit::RemoveResource { uri: given.clone() }, None),
            Change::AddTemplate(template, handler) => {
                let number = engine.new_handler();
                self.insert(number, handler.clone());
                (Edit::AddTemplate { template: template.clone(), handler: number, mount: None }, Some(number))
            }
            Change::RemoveTemplate(text) => (Edit::RemoveTemplate { uri_template: text.clone() }, None),
        }
    }

    /// Registers one more use of a number.
    fn insert(&self, number: HandlerId, handler: Arc<H>) {
        self.edit(|table| {
            let uses = table.get(&number).map_or(0, |(_, uses)| *uses);
            table.insert(number, (handler, uses + 1));
        });
    }

    /// Ends one use of a number; after the last, its functions are dropped.
    fn release(&self, number: HandlerId) {
        self.edit(|table| match table.remove(&number) {
            Some((handler, uses)) if uses > 1 => drop(table.insert(number, (handler, uses - 1))),
            _ => {}
        });
    }

    fn edit(&self, change: impl FnOnce(&mut Table<H>)) {
        let before = {
            let _editing = lock(&self.editing);
            let mut table = Table::clone(&self.handlers.load());
            change(&mut table);
            self.handlers.swap(Arc::new(table))
        };
        drop(before);
    }

    fn draft(&self) -> MutexGuard<'_, (ServerInfo, Options)> {
        lock(&self.draft)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<H> fmt::Debug for Registry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("handlers", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> Registry<&'static str> {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        Registry::new(info, Options::default()).unwrap()
    }

    fn publish(
        registry: &Registry<&'static str>,
        changes: &[Change<&'static str>],
    ) -> Result<Vec<String>, RegistrationError> {
        registry.publish(&changes.iter().collect::<Vec<_>>())
    }

    #[test]
    fn resources_of_one_function_share_its_number_until_the_last_is_removed() {
        let registry = registry();
        let (reader, number) = (Arc::new("reader"), Arc::new(Number::default()));
        let add = |uri: &str| Change::AddResource(Resource::new(uri), reader.clone(), number.clone());
        publish(&registry, &[add("a://1"), add("a://2")]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[Change::RemoveResource("A://1".into())]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[Change::RemoveResource("a://2".into())]).unwrap();
        assert!(registry.is_empty());
        assert_eq!(Arc::strong_count(&reader), 1);
    }

    /// A number counts its uses: a resource that is removed twice, or in the batch that added it, ends one.
    #[test]
    fn a_batch_ends_each_use_once() {
        let registry = registry();
        let (reader, number) = (Arc::new("reader"), Arc::new(Number::default()));
        let add = |uri: &str| Change::AddResource(Resource::new(uri), reader.clone(), number.clone());
        let remove = |uri: &str| Change::RemoveResource(uri.into());
        publish(&registry, &[add("a://1"), add("a://2")]).unwrap();
        publish(&registry, &[remove("a://1"), remove("A://1"), remove("a://1")]).unwrap();
        assert_eq!(registry.len(), 1, "the other resource still has it");
        publish(&registry, &[add("a://3"), remove("a://3")]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[remove("a://2")]).unwrap();
        assert!(registry.is_empty());
    }

    /// A template that gets a completer is registered anew: in one batch, too, the first functions are dropped.
    #[test]
    fn a_template_that_is_replaced_in_its_batch_leaves_no_function_behind() {
        let registry = registry();
        let template = || Change::AddTemplate(Template::new("a://{x}"), Arc::new("reader"));
        let remove = || Change::RemoveTemplate("a://{x}".into());
        publish(&registry, &[template(), remove(), template(), remove(), template()]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[remove(), template(), remove()]).unwrap();
        assert!(registry.is_empty());
    }

    #[test]
    fn what_is_refused_leaves_no_function_behind() {
        let registry = registry();
        let template = |text: &str| Change::AddTemplate(Template::new(text), Arc::new("reader"));
        assert!(publish(&registry, &[template("a://{x}"), template("a://{")]).is_err());
        assert!(registry.is_empty());
        publish(&registry, &[template("a://{x}")]).unwrap();
        publish(&registry, &[Change::RemoveTemplate("a://{x}".into()), template("a://{x}")]).unwrap();
        assert_eq!(registry.len(), 1);
    }

    #[test]
    fn a_method_is_declared_before_the_engine_is_made() {
        let registry = registry();
        let foreign = || Foreign { method: "vendor/thing".into(), ..Foreign::default() };
        assert!(registry.extend(foreign(), Arc::new("method")));
        let handler = registry.engine().unwrap().options().extensions[0].handler;
        assert_eq!(registry.get(handler).as_deref(), Some(&"method"));
        assert!(!registry.extend(foreign(), Arc::new("late")));
    }
}
