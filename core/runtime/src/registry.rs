//! The handlers behind the engine's numbers, counted by their uses, the parts of providers, and the engine itself,
//! which is made on first use.
//!
//! Law: no handler is dropped while a lock is held, because that may run code of the runtime's language. A table is
//! immutable and replaced as a whole, so a running request keeps the handler it found.

#[cfg(feature = "bus")]
use crate::bus::{Bus, BusThread};
use crate::provider::Mounts;
use crate::sync::Mutex;
use crate::transport::{AuditLog, AuditSink, EngineClock};
use arc_swap::ArcSwap;
use imbl::OrdMap;
use mcp_resources_engine::catalog::{Edit, HandlerId, ItemSource, ToolSource};
use mcp_resources_engine::engine::{Engine, EngineOptions, Extension, ServerInfo};
use mcp_resources_engine::guard::AuditRecord;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::resource::{Prompt, RegistrationError, Resource, Template, Tool};
use mcp_resources_engine::seal::SealKey;
use std::fmt;
use std::sync::{Arc, MutexGuard, OnceLock};
use std::task::Waker;

/// The registered handlers and the engine. `H` is a runtime's handler: a reader with its completers and its lister.
pub struct Registry<H> {
    draft: Mutex<(ServerInfo, EngineOptions)>,
    engine: OnceLock<Arc<Engine>>,
    clock: Arc<EngineClock>,
    mounts: Arc<Mounts>,
    handlers: ArcSwap<Table<H>>,
    /// Held while the table is replaced.
    editing: Mutex<()>,
    sink: Mutex<Option<Box<dyn AuditSink>>>,
    watcher: OnceLock<Waker>,
    audit: Mutex<Option<AuditLog>>,
    /// The bus, until the engine is made.
    #[cfg(feature = "bus")]
    bus: Mutex<Option<Arc<dyn Bus>>>,
    #[cfg(feature = "bus")]
    bus_thread: Mutex<Option<BusThread>>,
}

/// The parts of a server that its configuration file changes, whatever the language of its handlers.
#[doc(hidden)]
#[derive(Clone)]
pub struct ServerParts {
    /// Its policy, its description, and the tokens of its clients.
    pub engine: Arc<Engine>,
    /// Its providers.
    pub mounts: Arc<Mounts>,
    /// The clock of its transports.
    pub clock: Arc<EngineClock>,
}

/// Handlers with their number of uses.
type Table<H> = OrdMap<HandlerId, (Arc<H>, usize)>;

/// One change of the registered resources, templates, tools and prompts.
#[derive(Debug)]
pub enum RegistryChange<H> {
    /// Adds a resource with constant contents.
    AddConstant(Resource, ItemSource),
    /// Adds a resource with a handler. Resources that share a handler share its number; `None` is a number of its own.
    AddResource(Resource, Arc<H>, Option<Arc<Number>>),
    /// Removes the resource with this URI, in any spelling. Does nothing if there is none.
    RemoveResource(String),
    /// Adds a template.
    AddTemplate(Box<Template>, Arc<H>),
    /// Removes the template with exactly this text. Does nothing if there is none.
    RemoveTemplate(String),
    /// Adds a tool.
    AddTool(Box<Tool>, Arc<H>),
    /// Removes the tool of this name. Does nothing if there is none.
    RemoveTool(String),
    /// Adds a prompt. The completers of the handler are those of its arguments.
    AddPrompt(Box<Prompt>, Arc<H>),
    /// Removes the prompt of this name. Does nothing if there is none.
    RemovePrompt(String),
}

/// The number of a handler, once assigned.
#[derive(Debug, Default)]
pub struct Number(OnceLock<HandlerId>);

/// A custom method, as a runtime declares it.
#[derive(Clone, Debug, Default)]
pub struct ForeignFunction {
    /// Its name.
    pub method: String,
    /// See [`Extension::name_param`].
    pub name_param: Option<String>,
    /// See [`Extension::capability`].
    pub capability: Option<(String, String)>,
    /// See [`Extension::list_kind`].
    pub list_kind: Option<ListKinds>,
    /// See [`Extension::timeout`].
    pub timeout: Option<Millis>,
}

impl<H> Registry<H> {
    /// Makes an empty registry. Unless the options have a process key, it makes one.
    ///
    /// # Errors
    /// [`RegistrationError`] if the description or an option is invalid, such as a limit under which no request could
    /// succeed.
    pub fn new(info: ServerInfo, mut options: EngineOptions) -> Result<Self, RegistrationError> {
        Engine::check(&info, &options)?;
        options.process_key = options.process_key.or_else(random_key);
        let clock = Arc::new(EngineClock::new());
        let sink = Mutex::default();
        let watcher = OnceLock::new();
        let audit = Mutex::default();
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
            #[cfg(feature = "bus")]
            bus: Mutex::default(),
            #[cfg(feature = "bus")]
            bus_thread: Mutex::default(),
        })
    }

    /// The engine, made on first use.
    ///
    /// # Errors
    /// [`RegistrationError`] if a field of the server is invalid.
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
        #[cfg(feature = "bus")]
        self.begin_bus(&engine)?;
        Ok(engine)
    }

    /// The parts that a configuration file changes. Makes the engine.
    ///
    /// # Errors
    /// As [`Registry::engine`].
    #[doc(hidden)]
    pub fn parts(&self) -> Result<ServerParts, RegistrationError> {
        Ok(ServerParts { engine: self.engine()?, mounts: self.mounts.clone(), clock: self.clock.clone() })
    }

    /// Sets the sink of audit records. Call it before the engine is made.
    pub fn audit(&self, sink: Box<dyn AuditSink>) {
        self.draft().1.audit = true;
        *self.sink.lock() = Some(sink);
    }

    /// Wakes `watcher` when [`Registry::take_audit_records`] has records, instead of using a sink: for runtimes that call
    /// functions on one thread only. Call it before the engine is made.
    pub fn watch_audit_records(&self, watcher: Waker) {
        self.draft().1.audit = true;
        // Only the first one is used.
        let _ = self.watcher.set(watcher);
    }

    /// Appends the records since the last call. Later records wake the watcher.
    pub fn take_audit_records(&self, entries: &mut Vec<AuditRecord>) {
        if let (Some(engine), Some(watcher)) = (self.made(), self.watcher.get()) {
            engine.watch_audit_records(watcher);
            engine.take_audit_records(entries);
        }
    }

    /// Waits until the sink has taken all current records, but at most one second.
    pub fn flush_audit(&self) {
        if let Some(audit) = &*self.audit.lock() {
            audit.flush();
        }
    }

    /// Call this in a forked process whose parent may have the sink's thread: it then records on its own.
    pub fn forked(&self) {
        // If the lock is held, its owner is a thread of the parent.
        if let Some(mut audit) = self.audit.try_lock() {
            *audit = audit.take().and_then(AuditLog::forked);
        }
        #[cfg(feature = "bus")]
        if let Some(thread) = self.bus_thread.try_lock() {
            thread.iter().for_each(BusThread::forked);
        }
    }

    /// Connects the server with its other processes. Call it before the engine is made.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`] without keys: all processes share them, and messages are sealed with them.
    #[cfg(feature = "bus")]
    pub fn connect_bus(&self, bus: Arc<dyn Bus>) -> Result<(), RegistrationError> {
        let mut draft = self.draft();
        if draft.1.keys.is_empty() {
            return Err(RegistrationError::InvalidField {
                of: draft.0.name.clone(),
                field: "bus".into(),
                value: bus.name(),
                expected: "keys beside it: messages between the processes of a server are sealed with keys that all of \
                           them have"
                    .into(),
            });
        }
        draft.1.shares_rates = bus.rates().is_some();
        drop(draft);
        *self.bus.lock() = Some(bus);
        Ok(())
    }

    /// Waits until all current changes are on the bus, but at most one second.
    #[cfg(feature = "bus")]
    pub fn flush_bus(&self) {
        if let Some(thread) = &*self.bus_thread.lock() {
            thread.flush();
        }
    }

    /// Ends the thread of the bus after all current changes.
    #[cfg(feature = "bus")]
    pub fn end_bus(&self) {
        let thread = self.bus_thread.lock().take();
        drop(thread);
    }

    #[cfg(feature = "bus")]
    fn begin_bus(&self, engine: &Arc<Engine>) -> Result<(), RegistrationError> {
        let Some(bus) = self.bus.lock().take() else { return Ok(()) };
        let name = bus.name();
        let mounts = Arc::downgrade(&self.mounts);
        let log = move |line| {
            if let Some(mounts) = mounts.upgrade() {
                mounts.report(line);
            }
        };
        let started = BusThread::start(bus, engine, self.clock.clone(), log);
        let refused =
            |error: std::io::Error| RegistrationError::Mount { mount: name, reason: error.to_string() };
        *self.bus_thread.lock() = Some(started.map_err(refused)?);
        Ok(())
    }

    /// Ends the sink's thread after all current records.
    pub fn end_audit(&self) {
        let audit = self.audit.lock().take();
        drop(audit);
    }

    fn begin_audit(&self, engine: &Arc<Engine>) {
        if let Some(watcher) = self.watcher.get() {
            engine.watch_audit_records(watcher);
        }
        if let Some(sink) = self.sink.lock().take() {
            *self.audit.lock() = Some(AuditLog::new(engine.clone(), sink));
        }
    }

    /// The mounted providers.
    pub fn mounts(&self) -> &Arc<Mounts> {
        &self.mounts
    }

    /// The clock of all transports.
    pub fn clock(&self) -> &Arc<EngineClock> {
        &self.clock
    }

    /// The engine, if it was made already.
    pub fn made(&self) -> Option<&Arc<Engine>> {
        self.engine.get()
    }

    /// Time for requests in flight to finish after the end of input, in milliseconds.
    pub fn grace(&self) -> u64 {
        self.draft().1.limits.grace
    }

    /// The time-out of a read, in milliseconds.
    pub fn read_timeout(&self) -> u64 {
        self.draft().1.limits.read_timeout
    }

    /// Adds a custom method, at any time.
    ///
    /// # Errors
    /// [`RegistrationError`] if the method is one that the library serves, or was added before.
    pub fn extend(&self, foreign: ForeignFunction, handler: Arc<H>) -> Result<(), RegistrationError> {
        let ForeignFunction { method, name_param, capability, list_kind, timeout } = foreign;
        let mut extension = Extension { method, handler: 0, name_param, capability, list_kind, timeout };
        extension.check()?;
        let mut draft = self.draft();
        let Some(engine) = self.engine.get() else {
            let extensions = &mut draft.1.extensions;
            if extensions.iter().any(|other| other.method == extension.method) {
                return Err(RegistrationError::DuplicateMethod { method: extension.method });
            }
            // Counted down from the maximum, because the engine's own numbers count up from 0.
            extension.handler = HandlerId::MAX - HandlerId::try_from(extensions.len()).unwrap_or_default();
            let number = extension.handler;
            extensions.push(extension);
            drop(draft);
            self.insert(&[(number, handler)]);
            return Ok(());
        };
        drop(draft);
        let number = engine.new_handler();
        extension.handler = number;
        self.insert(&[(number, handler)]);
        let added = engine
            .apply(vec![Edit::AddMethod { mount: None, extension: Box::new(extension) }], self.clock.now());
        added.map(drop).inspect_err(|_| self.release(&[number]))
    }

    /// Applies all changes or none. Returns warnings for the log.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first change that is refused.
    pub fn publish(
        &self,
        changes: impl IntoIterator<Item = RegistryChange<H>>,
    ) -> Result<Vec<String>, RegistrationError> {
        let engine = self.engine()?;
        let changes = changes.into_iter();
        let mut added = Vec::with_capacity(changes.size_hint().0);
        // Collected, because edits are no larger than the changes of a server in Rust and then take their place.
        let edits = changes.map(|change| {
            let (edit, handler) = prepare(&engine, change);
            added.extend(handler);
            edit
        });
        let edits: Vec<Edit> = edits.collect();
        self.insert(&added);
        let (unused, warnings) = match engine.apply(edits, self.clock.now()) {
            Ok(applied) => {
                engine.share_edit(&applied);
                (applied.freed, Ok(applied.warnings))
            }
            Err(error) => (added.iter().map(|(number, _)| *number).collect(), Err(error)),
        };
        self.release(&unused);
        engine.settle_interest();
        warnings
    }

    /// Calls `visit` once for each registered handler.
    pub fn visit(&self, mut visit: impl FnMut(&H)) {
        self.handlers.load().values().for_each(|(handler, _)| visit(handler));
    }

    /// The handler of the registration with which a refused one conflicts.
    pub fn collides_with(&self, error: &RegistrationError) -> Option<Arc<H>> {
        self.get(self.made()?.holder(error)?)
    }

    /// The handler with this number, unless it was removed in the meantime.
    pub fn get(&self, number: HandlerId) -> Option<Arc<H>> {
        self.handlers.load().get(&number).map(|(handler, _)| handler.clone())
    }

    /// The number of registered handlers.
    pub fn len(&self) -> usize {
        self.handlers.load().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Counts another use of each number. The table is copied once, however many there are.
    fn insert(&self, added: &[(HandlerId, Arc<H>)]) {
        self.edit(|table| {
            for (number, handler) in added {
                // Most numbers are new: a look before each insertion would cost more.
                if let Some((held, uses)) = table.insert(*number, (handler.clone(), 1)) {
                    table.insert(*number, (held, uses + 1));
                }
            }
        });
    }

    /// Ends one use of each number; the last one drops the handler.
    fn release(&self, unused: &[HandlerId]) {
        if unused.is_empty() {
            return;
        }
        self.edit(|table| {
            for number in unused {
                match table.get_mut(number) {
                    Some((_, uses)) if *uses > 1 => *uses -= 1,
                    _ => drop(table.remove(number)),
                }
            }
        });
    }

    fn edit(&self, change: impl FnOnce(&mut Table<H>)) {
        let before = {
            let _editing = self.editing.lock();
            let mut table = Table::clone(&self.handlers.load());
            change(&mut table);
            self.handlers.swap(Arc::new(table))
        };
        drop(before);
    }

    fn draft(&self) -> MutexGuard<'_, (ServerInfo, EngineOptions)> {
        self.draft.lock()
    }
}

/// A key for the lifetime of this process. `None` without randomness; reads can then not ask for input.
fn random_key() -> Option<SealKey> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).ok()?;
    SealKey::from_secret(&secret).ok()
}

/// The engine's edit, and the handler that it adds with its number.
fn prepare<H>(engine: &Engine, change: RegistryChange<H>) -> (Edit, Option<(HandlerId, Arc<H>)>) {
    match change {
        RegistryChange::AddConstant(resource, source) => (Edit::AddResource { resource, source }, None),
        RegistryChange::AddResource(resource, handler, number) => {
            let number = match number {
                Some(shared) => *shared.0.get_or_init(|| engine.new_handler()),
                None => engine.new_handler(),
            };
            let source = ItemSource::Handler(number);
            (Edit::AddResource { resource, source }, Some((number, handler)))
        }
        RegistryChange::RemoveResource(uri) => (Edit::RemoveResource { uri }, None),
        RegistryChange::AddTemplate(template, handler) => {
            let number = engine.new_handler();
            (Edit::AddTemplate { template, handler: number, mount: None }, Some((number, handler)))
        }
        RegistryChange::RemoveTemplate(uri_template) => (Edit::RemoveTemplate { uri_template }, None),
        RegistryChange::AddTool(tool, handler) => {
            let number = engine.new_handler();
            let source = ToolSource::Handler(number);
            (Edit::AddTool { tool, source, mount: None }, Some((number, handler)))
        }
        RegistryChange::RemoveTool(name) => (Edit::RemoveTool { name }, None),
        RegistryChange::AddPrompt(prompt, handler) => {
            let number = engine.new_handler();
            (Edit::AddPrompt { prompt, handler: number, mount: None }, Some((number, handler)))
        }
        RegistryChange::RemovePrompt(name) => (Edit::RemovePrompt { name }, None),
    }
}

/// Handlers are shared, not copied, so they need not be `Clone`.
impl<H> Clone for RegistryChange<H> {
    fn clone(&self) -> Self {
        match self {
            Self::AddConstant(resource, source) => Self::AddConstant(resource.clone(), source.clone()),
            Self::AddResource(resource, handler, number) => {
                Self::AddResource(resource.clone(), handler.clone(), number.clone())
            }
            Self::RemoveResource(uri) => Self::RemoveResource(uri.clone()),
            Self::AddTemplate(template, handler) => Self::AddTemplate(template.clone(), handler.clone()),
            Self::RemoveTemplate(uri_template) => Self::RemoveTemplate(uri_template.clone()),
            Self::AddTool(tool, handler) => Self::AddTool(tool.clone(), handler.clone()),
            Self::RemoveTool(name) => Self::RemoveTool(name.clone()),
            Self::AddPrompt(prompt, handler) => Self::AddPrompt(prompt.clone(), handler.clone()),
            Self::RemovePrompt(name) => Self::RemovePrompt(name.clone()),
        }
    }
}

impl<H> fmt::Debug for Registry<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("handlers", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::seal::Seal;

    fn registry() -> Registry<&'static str> {
        let info = ServerInfo { name: "test".into(), version: "1".into(), ..ServerInfo::default() };
        Registry::new(info, EngineOptions::default()).unwrap()
    }

    fn publish(
        registry: &Registry<&'static str>,
        changes: &[RegistryChange<&'static str>],
    ) -> Result<Vec<String>, RegistrationError> {
        registry.publish(changes.iter().cloned())
    }

    #[test]
    fn resources_of_one_function_share_its_number_until_the_last_is_removed() {
        let registry = registry();
        let reader = Arc::new("reader");
        let number = Arc::new(Number::default());
        let add =
            |uri: &str| RegistryChange::AddResource(Resource::new(uri), reader.clone(), Some(number.clone()));
        publish(&registry, &[add("a://1"), add("a://2")]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[RegistryChange::RemoveResource("A://1".into())]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[RegistryChange::RemoveResource("a://2".into())]).unwrap();
        assert!(registry.is_empty());
        assert_eq!(Arc::strong_count(&reader), 1);
    }

    /// Uses of a number are counted: a resource that is removed twice, or in the batch that added it, ends one use.
    #[test]
    fn a_batch_ends_each_use_once() {
        let registry = registry();
        let reader = Arc::new("reader");
        let number = Arc::new(Number::default());
        let add =
            |uri: &str| RegistryChange::AddResource(Resource::new(uri), reader.clone(), Some(number.clone()));
        let remove = |uri: &str| RegistryChange::RemoveResource(uri.into());
        publish(&registry, &[add("a://1"), add("a://2")]).unwrap();
        publish(&registry, &[remove("a://1"), remove("A://1"), remove("a://1")]).unwrap();
        assert_eq!(registry.len(), 1, "the other resource still has it");
        publish(&registry, &[add("a://3"), remove("a://3")]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[remove("a://2")]).unwrap();
        assert!(registry.is_empty());
    }

    /// A template that gets a completer is registered again; even within one batch its first handler is dropped.
    #[test]
    fn a_template_that_is_replaced_in_its_batch_leaves_no_function_behind() {
        let registry = registry();
        let template = || RegistryChange::AddTemplate(Box::new(Template::new("a://{x}")), Arc::new("reader"));
        let remove = || RegistryChange::RemoveTemplate("a://{x}".into());
        publish(&registry, &[template(), remove(), template(), remove(), template()]).unwrap();
        assert_eq!(registry.len(), 1);
        publish(&registry, &[remove(), template(), remove()]).unwrap();
        assert!(registry.is_empty());
    }

    #[test]
    fn what_is_refused_leaves_no_function_behind() {
        let registry = registry();
        let template =
            |text: &str| RegistryChange::AddTemplate(Box::new(Template::new(text)), Arc::new("reader"));
        assert!(publish(&registry, &[template("a://{x}"), template("a://{")]).is_err());
        assert!(registry.is_empty());
        publish(&registry, &[template("a://{x}")]).unwrap();
        publish(&registry, &[RegistryChange::RemoveTemplate("a://{x}".into()), template("a://{x}")]).unwrap();
        assert_eq!(registry.len(), 1);
    }

    /// Each server has a secret of its own, unless its program gives it one.
    #[test]
    fn each_server_has_a_process_key() {
        let key = |options: EngineOptions| {
            let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
            let engine = Registry::<&str>::new(info, options).unwrap().engine().unwrap();
            engine.options().process_key.clone().unwrap()
        };
        let sealed = |key: &SealKey| Seal::new(key, &[]).seal("test", &[], b"text").unwrap();
        let opens = |key: &SealKey, text: &str| Seal::new(key, &[]).open("test", &[], text).is_some();
        let [one, other] = [key(EngineOptions::default()), key(EngineOptions::default())];
        assert!(opens(&one, &sealed(&one)));
        assert!(!opens(&other, &sealed(&one)));
        let given = SealKey::from_secret(b"0f1e2d3c4b5a69788796a5b4c3d2e1f0").unwrap();
        let mut options = EngineOptions::default();
        options.process_key = Some(given.clone());
        assert!(opens(&key(options), &sealed(&given)));
    }

    /// A method may be added before the engine is made, and after; no two have one name, and none is the protocol's.
    #[test]
    fn methods_are_added_at_any_time() {
        let registry = registry();
        let foreign = |method: &str| ForeignFunction { method: method.into(), ..ForeignFunction::default() };
        let add = |method: &str| registry.extend(foreign(method), Arc::new("method"));
        let refused = |method: &str| add(method).unwrap_err().to_string();
        add("vendor/early").unwrap();
        assert!(refused("vendor/early").contains("declared already"));
        let engine = registry.engine().unwrap();
        assert_eq!(registry.get(engine.options().extensions[0].handler).as_deref(), Some(&"method"));
        add("vendor/late").unwrap();
        let late = engine.catalog().method("vendor/late").unwrap().extension.handler;
        assert_eq!(registry.get(late).as_deref(), Some(&"method"));
        assert!(refused("vendor/early").contains("declared already"));
        assert!(refused("vendor/late").contains("declared already"));
        assert_eq!(registry.len(), 2);
        for (method, part) in [("tools/list", "tool"), ("tools/call", "tool"), ("prompts/get", "prompt")] {
            assert!(refused(method).contains(&format!("register a {part} instead")));
        }
    }
}
