//! One engine for one server: the catalogue, the hub, the seal and the limits, shared by all connections and threads.

mod access;
mod audit_queue;
mod cache;
mod change;
mod check;
mod interest;
mod links;
mod lists;
mod metrics;
mod observe;
mod options;
mod principal_caches;
mod reconfigure;
mod server_info;
mod spelling;
mod time;
mod visibility;

pub use crate::catalog::Extension;
pub(crate) use access::{AccessAnswers, AccessRound, AccessView};
pub use access::{AccessBatch, AccessQuestion};
pub use cache::CacheCounts;
pub use change::{BusCounts, ChangeSink, SharedChange};
pub use interest::{Interest, Observer, ResourceInterest};
pub use links::LinkError;
pub(crate) use lists::ListedItems;
pub(crate) use metrics::{Lapse, OpenConnection};
pub use options::{EngineOptions, InstructionPart, ServerInfo, Setup};
pub(crate) use principal_caches::PrincipalCache;
pub use time::TimerRegistration;
pub(crate) use visibility::Suggested;

pub(crate) use cache::{Finished, FlightOutcome, ReadFlight, ReadLeader};

use crate::catalog::{
    Applied, Catalog, CatalogRoute, Cursor, CursorPosition, CursorScope, Edit, HandlerId, HashKey,
    ItemSource, ListKind, MountId, SourceKey, ToolSource,
};
use crate::connection::{Connection, ConnectionKind, Listed, resource_tools};
use crate::error::ReadError;
use crate::guard::{Amounts, Guard, Policy, SharedRates};
use crate::hub::{ConnectionId, Counts, Hub, ListKinds};
use crate::jsonrpc::ObjectWriter;
use crate::limits::Limits;
use crate::now::Now;
use crate::principal::Principal;
use crate::resource::RegistrationError;
use crate::seal::Seal;
use crate::version::{COMPLETE, ProtocolMethod, Revision};
use access::AccessTable;
use arc_swap::ArcSwap;
use audit_queue::AuditQueue;
use cache::ReadCache;
use change::SharedChanges;
use interest::Interests;
use lists::KeptLists;
use mcp_resources_template::uri;
use metrics::EngineMetrics;
use principal_caches::PrincipalCaches;
pub(crate) use server_info::ServerDescription;
use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use visibility::Reached;

/// The state of one server. `Send + Sync`; every method may be called from any thread.
pub struct Engine {
    options: EngineOptions,
    description: ArcSwap<ServerDescription>,
    /// The name at the start, which cursors belong to.
    first_name: Box<str>,
    catalog: ArcSwap<Catalog>,
    /// Held while an edit builds the next catalogue.
    edits: Mutex<()>,
    hub: Hub,
    guard: ArcSwap<Guard>,
    /// Whether `guard` has no rules about URIs, so that most requests need not load it.
    is_open: AtomicBool,
    /// Whether `guard` shows different things to two principals.
    guard_differs: AtomicBool,
    state_seal: Option<Seal>,
    cursor_seal: Seal,
    reached: Reached,
    handlers: AtomicU32,
    mounts: AtomicU32,
    lists: KeptLists,
    cache: Option<Arc<ReadCache>>,
    amounts: ArcSwap<Amounts>,
    /// Whether `amounts` has any, so that most requests need not load them.
    has_amounts: AtomicBool,
    /// Held while the policy or the description is replaced; the policy that is in force.
    policy: Mutex<Policy>,
    /// Total size, in bytes, of the contents that are being gathered.
    held: AtomicUsize,
    audit: Option<AuditQueue>,
    metrics: OnceLock<EngineMetrics>,
    principal_caches: PrincipalCaches,
    interests: Interests,
    changes: SharedChanges,
    rates: Arc<SharedRates>,
    access: AccessTable,
    /// Whether another server sends the results, under its own name.
    is_embedded: AtomicBool,
}

impl Engine {
    /// Makes an engine without resources.
    ///
    /// # Errors
    /// [`RegistrationError`] if the info, an extension, a capability, a limit or the policy is invalid.
    pub fn new(info: ServerInfo, options: EngineOptions) -> Result<Arc<Self>, RegistrationError> {
        check::options(&options)?;
        let description = ServerDescription::new(info)?;
        let rates = Arc::default();
        let (guard, amounts) = check::guard(&options, &options.guard, &rates)?;
        let limits = &options.limits;
        let mut catalog = Catalog::keyed(limits, hash_key(&options));
        if options.expose_as_tools {
            let add = |(tool, source)| Edit::AddTool { tool: Box::new(tool), source, mount: None };
            catalog = catalog.apply(resource_tools().map(add).into())?.0;
        }
        Ok(Arc::new(Self {
            catalog: ArcSwap::from_pointee(catalog),
            edits: Mutex::new(()),
            hub: Hub::new(limits),
            is_open: AtomicBool::new(guard.is_open()),
            guard_differs: AtomicBool::new(guard.differs()),
            guard: ArcSwap::from_pointee(guard),
            policy: Mutex::new(options.guard.clone()),
            state_seal: state_seal(&options),
            cursor_seal: state_seal(&options).unwrap_or_else(|| guessable_seal(&description)),
            reached: Reached::default(),
            handlers: AtomicU32::new(0),
            mounts: AtomicU32::new(0),
            lists: KeptLists::new(limits),
            cache: options.cache.then(|| ReadCache::new(limits)),
            has_amounts: AtomicBool::new(!amounts.is_empty()),
            amounts: ArcSwap::from_pointee(amounts),
            held: AtomicUsize::new(0),
            audit: options.audit.then(|| AuditQueue::new(limits.audit_queue)),
            metrics: if options.metrics { EngineMetrics::default().into() } else { OnceLock::new() },
            principal_caches: PrincipalCaches::default(),
            interests: Interests::default(),
            changes: SharedChanges::default(),
            rates,
            access: AccessTable::new(limits),
            is_embedded: AtomicBool::new(false),
            first_name: description.name().into(),
            description: ArcSwap::from_pointee(description),
            options,
        }))
    }

    /// Checks the arguments of [`Engine::new`], except the guard's policy: for runtimes that build the engine later.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn check(info: &ServerInfo, options: &EngineOptions) -> Result<(), RegistrationError> {
        check::info(info)?;
        check::options(options)
    }

    /// Makes the protocol state for a new client.
    pub fn connect(self: &Arc<Self>, kind: ConnectionKind) -> Connection {
        Connection::new(self.clone(), self.hub.connect(), kind)
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.options.limits
    }

    /// The handler of the registration with which a refused one conflicts; `None` without a conflict, or for a
    /// constant.
    pub fn holder(&self, error: &RegistrationError) -> Option<HandlerId> {
        let catalog = self.catalog();
        match error {
            RegistrationError::DuplicateResource { uri } => {
                let normal = uri::normalize(uri, self.limits().uri).ok()?;
                match catalog.resource(&normal)?.source {
                    ItemSource::Handler(handler) => Some(handler),
                    ItemSource::Text(_) | ItemSource::Bytes(_) => None,
                }
            }
            RegistrationError::TemplateConflict { with, .. } => Some(catalog.template_by_text(with)?.handler),
            RegistrationError::DuplicateMethod { method } => Some(catalog.method(method)?.extension.handler),
            RegistrationError::DuplicateTool { name } => match &catalog.tool(name)?.source {
                ToolSource::Template(text) => Some(catalog.template_by_text(text)?.handler),
                ToolSource::Resource(uri) => match catalog.resource(uri)?.source {
                    ItemSource::Handler(handler) => Some(handler),
                    ItemSource::Text(_) | ItemSource::Bytes(_) => None,
                },
                source => source.handler(),
            },
            RegistrationError::DuplicatePrompt { name } => Some(catalog.prompt(name)?.handler),
            _ => None,
        }
    }

    /// The options that the engine was built with.
    pub fn options(&self) -> &EngineOptions {
        &self.options
    }

    /// Returns a new number for a handler. Never reused.
    pub fn new_handler(&self) -> HandlerId {
        self.handlers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns a new number for a mount. Never reused.
    pub fn new_mount(&self) -> MountId {
        MountId(self.mounts.fetch_add(1, Ordering::Relaxed))
    }

    /// Applies all edits or none, and announces the changes: `list_changed`, and `updated` for removed resources.
    /// Returns warnings for the log.
    ///
    /// # Errors
    /// [`RegistrationError`]; the catalogue is then unchanged.
    pub fn publish(&self, edits: Vec<Edit>, now: Now) -> Result<Vec<String>, RegistrationError> {
        let applied = self.apply(edits, now)?;
        self.share_edit(&applied);
        Ok(applied.warnings)
    }

    /// Like [`Engine::publish`], in this process alone; returns all changes, for runtimes that keep the functions behind
    /// handlers.
    ///
    /// # Errors
    /// As [`Engine::publish`].
    pub fn apply(&self, mut edits: Vec<Edit>, now: Now) -> Result<Applied, RegistrationError> {
        edits.iter().try_for_each(|edit| check::is_new(edit, &self.options))?;
        let concerned = self.prepare(&mut edits);
        let applied = {
            let _editing = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
            let (catalog, applied) = self.catalog.load().apply(edits)?;
            self.note_access(&catalog);
            self.catalog.store(Arc::new(catalog));
            applied
        };
        self.announce(&concerned, &applied, now);
        Ok(applied)
    }

    /// Applies each edit that is valid, as one change, and reports on every one in order: one bad edit does not refuse
    /// the others. Otherwise like [`Engine::apply`].
    pub fn apply_each(
        &self,
        mut edits: Vec<Edit>,
        now: Now,
    ) -> (Vec<Result<(), RegistrationError>>, Applied) {
        let mut concerned = self.prepare(&mut edits);
        let (applied, reports) = {
            let _editing = self.edits.lock().unwrap_or_else(PoisonError::into_inner);
            let (catalog, applied, reports) = self.catalog.load().apply_each(edits);
            self.note_access(&catalog);
            self.catalog.store(Arc::new(catalog));
            (applied, reports)
        };
        concerned.added.retain(|(at, _)| reports.get(*at).is_some_and(Result::is_ok));
        self.announce(&concerned, &applied, now);
        (reports, applied)
    }

    /// The current catalogue.
    pub fn catalog(&self) -> arc_swap::Guard<Arc<Catalog>> {
        self.catalog.load()
    }

    /// The compiled policy that is in force.
    pub fn guard(&self) -> arc_swap::Guard<Arc<Guard>> {
        self.guard.load()
    }

    /// Size and use of the read cache; `None` if it is switched off. For metrics.
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.cache.as_ref().map(|cache| cache.counts())
    }

    /// The sizes of the subscription table: for metrics and leak tests.
    pub fn subscriptions(&self) -> Counts {
        self.hub.counts()
    }

    /// Redacts the constants of `edits`, and returns the entries of the read cache that they affect.
    fn prepare(&self, edits: &mut [Edit]) -> Concerned {
        if let Some(amounts) = self.amounts()
            && let Some(redactor) = amounts.redactor()
        {
            edits.iter_mut().for_each(|edit| redact_constant(edit, redactor));
        }
        let added = if self.cache.is_some() { self.added(edits) } else { Vec::new() };
        Concerned { narrows: edits.iter().any(needs_scopes), added }
    }

    /// Purges outdated cache entries and announces the changes.
    fn announce(&self, concerned: &Concerned, applied: &Applied, now: Now) {
        let rerouted = applied.templates_changed || applied.fallback_changed;
        if rerouted || applied.sources_changed || !applied.removed.is_empty() {
            self.lists.clear();
        }
        if applied.templates_changed {
            self.reached.clear();
        }
        if rerouted || !applied.removed.is_empty() {
            self.access.clear();
        }
        if let Some(cache) = &self.cache {
            // Another template or resource may serve URIs that a template served before.
            match rerouted || concerned.narrows {
                true => cache.purge_all(),
                false => concerned.added.iter().for_each(|(_, uri)| cache.purge(uri)),
            }
        }
        for uri in &applied.removed {
            self.mark(uri, None, now);
        }
        let lists = applied.changed_lists();
        if lists != ListKinds::NONE {
            self.hub.list_changed(lists, now.tick);
        }
        if lists.contains(ListKinds::RESOURCES) || applied.fallback_changed {
            self.reroute_interest();
        }
    }

    /// The canonical URIs of the resources to be added, each with the index of its edit.
    fn added(&self, edits: &[Edit]) -> Vec<(usize, String)> {
        let added = edits.iter().enumerate().filter_map(|(at, edit)| match edit {
            Edit::AddResource { resource, .. } => {
                let normal = uri::normalize(&resource.uri, self.limits().uri).ok()?;
                Some((at, normal.into_owned()))
            }
            _ => None,
        });
        added.collect()
    }

    /// Drops the cached pages of lists that have changed.
    fn forget_lists(&self, lists: ListKinds) {
        if lists.contains(ListKinds::RESOURCES) {
            self.lists.clear();
            if let Some(cache) = &self.cache {
                cache.purge_all();
            }
        }
    }

    /// Refuses a URI that no client can watch, because its template refuses a value.
    fn check_values(&self, uri: &str, normal: &str) -> Result<(), RegistrationError> {
        let catalog = self.catalog.load();
        if !catalog.has_checks() {
            return Ok(());
        }
        let CatalogRoute::Template(entry, params) = catalog.route(normal) else { return Ok(()) };
        let Err(ReadError::RefusedParameter { parameter, value, reason }) = entry.check_spelling(&params)
        else {
            return Ok(());
        };
        let expected = reason.strip_prefix("expected ").unwrap_or(&reason).to_owned();
        Err(RegistrationError::InvalidField { of: uri.to_owned(), field: parameter, value, expected })
    }

    /// Marks a changed URI, for all principals or for one.
    fn mark(&self, normal: &str, principal: Option<&str>, now: Now) {
        let catalog = self.catalog.load();
        if self.has_access() {
            self.note_time(now);
        }
        let parents: Vec<&str> = catalog.parents_of(normal).collect();
        let key = self.key_of(normal);
        if let Some(cache) = &self.cache {
            parents.iter().chain([&&*key]).for_each(|uri| cache.purge(uri));
        }
        match principal {
            None => self.hub.updated(&key, &parents, now.tick),
            Some(principal) => self.hub.updated_for(principal, &key, &parents, now.tick),
        }
    }
}

/// Functions for connections.
impl Engine {
    /// Registers `cache`, to be cleared by [`Engine::revoke`].
    pub(crate) fn join(&self, cache: Weak<dyn PrincipalCache>) {
        self.principal_caches.join(cache);
    }

    pub(crate) fn cache(&self) -> Option<&Arc<ReadCache>> {
        self.cache.as_ref()
    }

    /// The limits of the policy: rates, sizes, redaction. `None` if it has none.
    pub(crate) fn amounts(&self) -> Option<arc_swap::Guard<Arc<Amounts>>> {
        self.has_amounts.load(Ordering::Acquire).then(|| self.amounts.load())
    }

    /// Whether the policy has no rules about URIs.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether two principals may see different things by the policy.
    pub(crate) fn guard_differs(&self) -> bool {
        self.guard_differs.load(Ordering::Acquire)
    }

    /// Whether the policy has no rules about URIs for `principal`.
    pub(crate) fn is_open_to(&self, principal: &Principal) -> bool {
        self.is_open() && principal.uris().is_none()
    }

    /// Maximum size in bytes of a read of `normal`.
    pub(crate) fn most_bytes(&self, normal: &str) -> usize {
        let own = self
            .amounts()
            .and_then(|amounts| amounts.max_size(normal))
            .map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
        self.limits().contents.min(own)
    }

    /// Whether contents must be complete before they are encoded, for redaction or a transform.
    pub(crate) fn looks_at_contents(&self) -> bool {
        self.options.transforms || self.amounts().is_some_and(|amounts| amounts.redactor().is_some())
    }

    /// Whether a legacy client, or one that listens, is still there.
    pub fn is_connected(&self, id: ConnectionId) -> bool {
        self.hub().is_connected(id)
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.hub
    }

    pub(crate) fn serves(&self, revision: Revision) -> bool {
        self.options.revisions.contains(&revision)
    }

    /// Whether the method exists under `revision` and its capability is declared to `principal`.
    pub(crate) fn offers(&self, method: ProtocolMethod, revision: Revision, principal: &Principal) -> bool {
        method.exists_in(revision)
            && match method {
                ProtocolMethod::Subscribe | ProtocolMethod::Unsubscribe => self.options.subscribe,
                ProtocolMethod::Complete => self.completes(&self.catalog(), principal),
                ProtocolMethod::SetLevel => self.options.logging,
                ProtocolMethod::ListTools | ProtocolMethod::CallTool => self.offers_tools(principal),
                ProtocolMethod::ListPrompts | ProtocolMethod::GetPrompt => self.offers_prompts(principal),
                _ => true,
            }
    }

    /// The custom method of this name.
    pub(crate) fn custom_method(&self, method: &str) -> Option<Extension> {
        let own = self.options.extensions.iter().find(|extension| extension.method == method);
        own.cloned().or_else(|| self.catalog().method(method).map(|entry| entry.extension.clone()))
    }

    /// Whether there is a custom method of this name that `principal` may know about.
    pub(crate) fn offers_method(&self, method: &str, principal: &Principal) -> bool {
        let catalog = self.catalog();
        self.options.extensions.iter().any(|extension| extension.method == method)
            || catalog.method(method).is_some_and(|entry| {
                entry.mount.is_none_or(|mount| self.sees_mount(&catalog, principal, mount))
            })
    }

    /// Whether there is a custom method of this name.
    pub(crate) fn has_custom_method(&self, method: &str) -> bool {
        self.has_method(&self.catalog(), method)
    }

    fn has_method(&self, catalog: &Catalog, method: &str) -> bool {
        self.options.extensions.iter().any(|extension| extension.method == method)
            || catalog.method(method).is_some()
    }

    /// The lists whose changes are announced to `principal`.
    pub(crate) fn announced_lists(&self, principal: &Principal) -> ListKinds {
        let mut lists = ListKinds::NONE;
        if self.options.list_changed {
            lists = ListKinds::RESOURCES;
            if self.offers_tools(principal) {
                lists = lists | ListKinds::TOOLS;
            }
            if self.offers_prompts(principal) {
                lists = lists | ListKinds::PROMPTS;
            }
        }
        let declared = self.options.extensions.iter().filter_map(|extension| extension.list_kind);
        let catalog = self.catalog();
        let added = catalog.methods().filter_map(|entry| entry.extension.list_kind);
        declared.chain(added).fold(lists, |all, kind| all | kind)
    }

    /// Writes the current value of `capabilities`. Without `notified` the connection cannot send
    /// notifications, so those are not declared.
    pub(crate) fn write_capabilities(
        &self,
        catalog: &Catalog,
        writer: &mut ObjectWriter<'_>,
        revision: Revision,
        notified: bool,
        principal: &Principal,
    ) {
        writer.object("resources", |resources| {
            if self.options.subscribe && notified {
                resources.bool("subscribe", true);
            }
            if self.options.list_changed && notified {
                resources.bool("listChanged", true);
            }
        });
        if self.completes(catalog, principal) && revision.has_completions_capability() {
            writer.object("completions", |_| ());
        }
        if self.options.logging {
            writer.object("logging", |_| ());
        }
        let has_tools = self.options.tools || self.sees_any_tool(catalog, principal);
        let has_prompts = self.options.prompts || self.sees_any_prompt(catalog, principal);
        let offered = [("tools", has_tools), ("prompts", has_prompts)];
        for (name, _) in offered.iter().filter(|(_, is_offered)| *is_offered) {
            writer.object(name, |named| {
                if self.options.list_changed && notified {
                    named.bool("listChanged", true);
                }
            });
        }
        let added = catalog.methods().map(|entry| &entry.extension);
        let mut declared: Vec<&str> = Vec::new();
        for (name, settings) in
            self.options.extensions.iter().chain(added).filter_map(|own| own.capability.as_ref())
        {
            let is_own = matches!(&**name, "resources" | "completions" | "logging")
                || offered.iter().any(|(own, is_offered)| *is_offered && own == name);
            // A capability that several methods declare has the settings of the first.
            if !is_own && !declared.contains(&name.as_str()) {
                declared.push(name);
                writer.named(name).extend_from_slice(settings.as_bytes());
            }
        }
        let own = &self.options.extension_capabilities;
        let name = if revision.is_modern() { "extensions" } else { "experimental" };
        writer.object_unless_empty(name, |writer| {
            for (id, settings) in own {
                writer.named(id).extend_from_slice(settings.as_bytes());
            }
            for entry in catalog.extensions().filter(|entry| self.sees_mount(catalog, principal, entry.mount))
            {
                writer.named(&entry.id).extend_from_slice(entry.settings.as_bytes());
            }
        });
    }

    /// The member of `_meta` that names the server; `None` if switched off.
    pub(crate) fn server_info_member(&self) -> Option<Arc<str>> {
        self.names_itself().then(|| self.description.load().member())
    }

    /// The description of the server that is in force.
    pub(crate) fn description(&self) -> arc_swap::Guard<Arc<ServerDescription>> {
        self.description.load()
    }

    /// From now on results do not name this server: another one sends them. `false` if that was so before.
    pub(crate) fn embed(&self) -> bool {
        !self.is_embedded.swap(true, Ordering::Relaxed)
    }

    /// Whether another server sends the results.
    pub(crate) fn is_embedded(&self) -> bool {
        self.is_embedded.load(Ordering::Relaxed)
    }

    /// Whether results name the server.
    pub(crate) fn names_itself(&self) -> bool {
        self.options.server_info_in_results && !self.is_embedded()
    }

    pub(crate) fn state_seal(&self) -> Option<&Seal> {
        self.state_seal.as_ref()
    }

    /// Seals a cursor. `None` if the cursor of a list source is too long, which ends the list here.
    pub(crate) fn seal_cursor(&self, cursor: &Cursor, principal: &Principal) -> Option<String> {
        let is_own = matches!(&cursor.position, CursorPosition::Source { cursor: Some(_), .. });
        let text = cursor.seal(&self.cursor_seal, self.cursor_scope(principal)).ok()?;
        Some(text).filter(|text| !is_own || text.len() <= self.limits().state)
    }

    pub(crate) fn open_cursor(&self, list: ListKind, text: &str, principal: &Principal) -> Option<Cursor> {
        let cursor = Cursor::open(text, list, &self.cursor_seal, self.cursor_scope(principal))?;
        Some(Cursor { shared: cursor.shared && self.may_share_lists(), ..cursor })
    }

    /// The scope of a cursor is always its principal, so a walk continues if the catalogue starts to differ
    /// between principals.
    fn cursor_scope<'a>(&'a self, principal: &'a Principal) -> CursorScope<'a> {
        CursorScope { server: &self.first_name, principal: principal.id() }
    }

    pub(crate) fn kept_list(
        &self,
        source: &SourceKey,
        principal: &Principal,
        now: Now,
    ) -> Option<Arc<Listed>> {
        self.lists.get(source, principal, now)
    }

    /// The generation of cached lists, to be read before a callback is called.
    pub(crate) fn lists_generation(&self) -> u64 {
        self.lists.generation()
    }

    pub(crate) fn keep_list(&self, source: &SourceKey, principal: &Principal, given: &ListedItems, now: Now) {
        self.lists.put(source, principal, given, now);
    }

    /// Reserves `bytes` for contents that are being gathered; `false` if all replies together would exceed the limit.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let max = self.limits().contents_total;
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    pub(crate) fn let_go(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a completer of this server has a suggestion for `principal`, whatever the fallback suggests.
    pub(crate) fn completes_own(&self, principal: &Principal) -> bool {
        let catalog = self.catalog();
        self.options.completions.unwrap_or_else(|| self.has_own_completers(&catalog, principal))
    }

    fn completes(&self, catalog: &Catalog, principal: &Principal) -> bool {
        let has_any = || self.has_method(catalog, COMPLETE) || self.has_completers(catalog, principal);
        self.options.completions.unwrap_or_else(has_any)
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("name", &self.description().name()).finish_non_exhaustive()
    }
}

/// The effect of edits on the read cache.
struct Concerned {
    /// Whether they may hide an entry of contents that are cached for all principals.
    narrows: bool,
    /// The canonical URIs of the added resources, each with the index of its edit.
    added: Vec<(usize, String)>,
}

/// Whether an edit may hide an entry of contents that are cached for all principals.
fn needs_scopes(edit: &Edit) -> bool {
    matches!(edit, Edit::AddResource { resource, .. } if !resource.details.scopes.is_empty())
}

/// Redacts a constant once, at its registration.
fn redact_constant(edit: &mut Edit, redactor: &crate::guard::Redactor) {
    if let Edit::AddResource { source: ItemSource::Text(text), .. } = edit
        && let Cow::Owned(redacted) = redactor.redact(Cow::Borrowed(&**text))
    {
        *text = redacted.into();
    }
}

/// Prefers the random process key: a configured key is equally secret, but the same in many processes.
fn hash_key(options: &EngineOptions) -> HashKey {
    let secret = options.process_key.as_ref().or(options.keys.first());
    secret.map_or_else(HashKey::default, |key| HashKey::new(&key.derive("hash")))
}

fn state_seal(options: &EngineOptions) -> Option<Seal> {
    match options.keys.split_first() {
        Some((first, older)) => Some(Seal::new(first, older)),
        None => options.process_key.as_ref().map(|key| Seal::new(key, &[])),
    }
}

/// The seal of an engine whose runtime provides neither keys nor randomness. Runtimes of this library provide both.
fn guessable_seal(description: &ServerDescription) -> Seal {
    Seal::new(&Cursor::derived_key(description.name()), &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal::SealKey;
    use std::hash::BuildHasher as _;

    /// The hash depends on a secret, so URIs cannot be chosen to collide.
    #[test]
    fn the_hash_of_the_catalogue_has_a_secret_key() {
        let key = |text: &str| SealKey::from_secret(text.as_bytes()).unwrap();
        let with = |process_key, keys| {
            let engine = Engine::new(
                ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() },
                EngineOptions { process_key, keys, ..EngineOptions::default() },
            );
            engine.unwrap().catalog().hasher().hash_one("note://a")
        };
        let one = key("a secret of this process");
        let other = key("a secret of another one");
        let known = HashKey::default().hash_one("note://a");
        let hashes = [
            with(Some(one.clone()), vec![]),
            with(Some(other.clone()), vec![]),
            with(None, vec![one.clone()]),
        ];
        assert!(!hashes.contains(&known));
        assert_ne!(hashes[0], hashes[1]);
        assert_eq!(hashes[0], hashes[2], "the same secret, wherever it comes from");
        assert_eq!(hashes[1], with(Some(other), vec![one]), "that of the process comes first");
    }
}
