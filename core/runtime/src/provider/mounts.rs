//! The providers of one server, and the numbers by which the engine knows their parts.
//!
//! Law: while a provider's function runs, no lock is held, except the one that serializes mounting, unmounting and
//! publishing. A provider's function may call anything here from another thread, and its feed from any.

use super::Provider;
use super::asks::ProviderAsks;
use super::directory::{DIRECTORIES, DirectoryQuestion};
use super::feed::{Feed, FeedEntry};
use super::interest::ReportedInterest;
use super::log::ProviderLog;
use super::mount::{Mount, Route};
use super::request::{Call, Complete, List, Read, ReadRef};
use super::responder::{IntoAnswer, Otherwise, Redact, Responder};
use super::workers::Workers;
use crate::sync::{Mutex, RwLock};
use crate::transport::{EngineClock, Peer};
use mcp_resources_engine::catalog::{Edit, Extension, HandlerId, ItemSource, ListKind, MountId};
use mcp_resources_engine::connection::{
    Answer, CallRequest, Event, ReadRequest, ReadResult, Reply, RequestOutcome,
};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::hub::{ConnectionId, ListKinds};
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_engine::version::READ_DIRECTORY;
use mcp_resources_template::uri;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, OnceLock, Weak};

/// The `retry_after` of a request that found the queue full, in ms.
const BUSY: u64 = 1_000;

/// The providers of one server.
pub struct Mounts {
    clock: Arc<EngineClock>,
    engine: OnceLock<Weak<Engine>>,
    redact: OnceLock<Redact>,
    routes: RwLock<HashMap<HandlerId, MountPart>>,
    /// Held while the catalogue and the routes change together.
    mounted: Mutex<Vec<Arc<MountedProvider>>>,
    /// The handler number of all fallbacks.
    fallback: OnceLock<HandlerId>,
    /// The handler number of [`READ_DIRECTORY`].
    directory: OnceLock<HandlerId>,
    /// See [`Mounts::is_used`].
    is_used: AtomicBool,
    pub(super) interest: ReportedInterest,
    pub(super) log: ProviderLog,
    asks: Arc<ProviderAsks>,
}

/// A part of a mounted provider.
#[derive(Clone, Debug)]
pub struct MountPart {
    route: Route,
    mounted: Arc<MountedProvider>,
    /// The parts to try next if this one answers that there is nothing.
    rest: Arc<[MountPart]>,
}

/// One mounted provider.
pub(super) struct MountedProvider {
    name: Arc<str>,
    pub(super) provider: Arc<dyn Provider>,
    state: Arc<MountState>,
    fallback: Option<Route>,
    /// The lists whose unregistered names it answers for.
    named_fallbacks: Vec<ListKind>,
    has_directories: bool,
    /// `None` if its functions never block.
    workers: Option<Workers>,
    asks: Arc<ProviderAsks>,
    /// Whether the last request found the queue full, so that it is logged only once.
    is_full: AtomicBool,
    /// The last report of interest in the lists; `None` once it is unmounted.
    pub(super) lists: Mutex<Option<bool>>,
}

/// The state shared by a mount and its feeds.
#[derive(Debug)]
pub(super) struct MountState {
    id: MountId,
    alive: AtomicBool,
    handlers: Mutex<HashMap<Route, HandlerId>>,
}

impl MountState {
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
}

/// The functions for servers.
impl Mounts {
    /// A server without providers.
    pub fn new(clock: Arc<EngineClock>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            engine: OnceLock::new(),
            redact: OnceLock::new(),
            routes: RwLock::default(),
            mounted: Mutex::default(),
            fallback: OnceLock::new(),
            directory: OnceLock::new(),
            is_used: AtomicBool::new(false),
            interest: ReportedInterest::default(),
            log: ProviderLog::default(),
            asks: Arc::default(),
        })
    }

    /// Sets the engine. Call it once.
    pub fn serve(self: &Arc<Self>, engine: &Arc<Engine>) {
        if self.engine.set(Arc::downgrade(engine)).is_ok() && self.interest.has_watch() {
            self.observe(engine);
        }
    }

    /// Sets a function that changes contents before they are encoded, as for handlers of the server. It may block.
    pub fn redact_with(&self, redact: Redact) {
        let _ = self.redact.set(redact);
    }

    /// Mounts a provider, completely or not at all.
    ///
    /// # Errors
    /// [`RegistrationError`] of the provider, or for a resource that the catalogue refuses.
    pub fn mount(self: &Arc<Self>, provider: Arc<dyn Provider>) -> Result<MountId, RegistrationError> {
        let refused = |mount: &str, reason: String| RegistrationError::Mount { mount: mount.into(), reason };
        let Some(engine) = self.engine() else { return Err(refused("", "the server is gone".into())) };
        let id = engine.new_mount();
        let alive = AtomicBool::new(true);
        let handlers = Mutex::default();
        let state = Arc::new(MountState { id, alive, handlers });
        let feed = Feed::new(self, &state);
        let mounting = catch_unwind(AssertUnwindSafe(|| provider.clone().mount(feed)));
        let mount = mounting.unwrap_or_else(|_| Err(refused("", "it panicked while it was mounted".into())));
        if mount.is_err() {
            state.alive.store(false, Ordering::Release);
        }
        let mut mount = mount?;
        let name = std::mem::take(&mut mount.name);
        let workers =
            (mount.threads > 0).then(|| Workers::new(format!("mcp-{name}"), mount.threads, mount.queue));
        let fallback = mount.fallback;
        let named_fallbacks: Vec<ListKind> = mount.named_fallbacks.iter().map(|(list, _)| *list).collect();
        let is_full = AtomicBool::new(false);
        let name = name.into();
        let lists = Mutex::new(Some(false));
        let has_directories = mount.directories;
        let mounted = Arc::new(MountedProvider {
            name,
            provider,
            state,
            fallback,
            named_fallbacks,
            has_directories,
            workers,
            asks: self.asks.clone(),
            is_full,
            lists,
        });
        let mut all = self.mounted();
        if !self.is_used.swap(true, Ordering::AcqRel) {
            self.observe(&engine);
        }
        let has_same = |other: &&Arc<MountedProvider>| {
            other.named_fallbacks.iter().any(|list| mounted.named_fallbacks.contains(list))
        };
        if let Some(other) = all.iter().find(has_same) {
            let reason = format!("the mount {} answers for all other tools or prompts already", other.name);
            mounted.state.alive.store(false, Ordering::Release);
            return Err(refused(&mounted.name, reason));
        }
        let edits = self.edits(&engine, &mounted, mount);
        if let Err(error) = engine.apply(edits, self.clock.now()) {
            mounted.state.alive.store(false, Ordering::Release);
            self.forget(&mounted);
            let with = self.holder(&engine, &error).map(|with| format!("; the mount {with} has it"));
            let fix = match error {
                RegistrationError::DuplicateTool { .. } => {
                    "; leave it out with the option `tools` of the provider, or give the other one another name"
                }
                _ => "",
            };
            return Err(refused(&mounted.name, format!("{error}{}{fix}", with.unwrap_or_default())));
        }
        all.push(mounted);
        self.chain(&engine, &all);
        self.route_directories(&engine, &all);
        drop(all);
        engine.tell_lists_again();
        Ok(id)
    }

    /// Mounts all providers, or none.
    ///
    /// # Errors
    /// As [`Mounts::mount`], for the first one that fails; also if one of them is already mounted here.
    pub fn mount_all(self: &Arc<Self>, providers: &[Arc<dyn Provider>]) -> Result<(), RegistrationError> {
        let mut done = Vec::new();
        for provider in providers {
            let new = match self.mounted_from(provider) {
                None => self.mount(provider.clone()),
                Some(mounted) => Err(RegistrationError::Mount {
                    mount: mounted.name.to_string(),
                    reason: "it is mounted already; unmount it first, or make another".into(),
                }),
            };
            match new {
                Ok(id) => done.push(id),
                Err(error) => {
                    for id in done.into_iter().rev() {
                        self.unmount(id);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Unmounts `provider`: see [`Mounts::unmount`]. `false` if it is not mounted here.
    pub fn unmount_provider(&self, provider: &Arc<dyn Provider>) -> bool {
        self.mounted_from(provider).is_some_and(|mounted| self.unmount(mounted.state.id))
    }

    fn mounted_from(&self, provider: &Arc<dyn Provider>) -> Option<Arc<MountedProvider>> {
        let all = self.mounted();
        all.iter().find(|mounted| Arc::ptr_eq(&mounted.provider, provider)).cloned()
    }

    /// Unmounts a provider: its resources and templates are removed and count as changed, its workers end after their
    /// current job, and the provider is dropped after that. `false` if it is not mounted.
    pub fn unmount(&self, id: MountId) -> bool {
        let mut all = self.mounted();
        let Some(at) = all.iter().position(|mounted| mounted.state.id == id) else { return false };
        let mounted = all.remove(at);
        mounted.state.alive.store(false, Ordering::Release);
        if let Some(engine) = self.engine() {
            self.chain(&engine, &all);
            let own: Vec<HandlerId> = mounted.state.handlers.lock().values().copied().collect();
            let mut edits = engine.catalog().without(id, &own);
            let named = mounted.named_fallbacks.iter();
            edits.extend(named.map(|list| Edit::SetNamedFallback { list: *list, handler: None }));
            // Removing what exists is never refused.
            let _ = engine.apply(edits, self.clock.now());
            self.route_directories(&engine, &all);
        }
        self.forget(&mounted);
        drop(all);
        self.settle_interest();
        mounted.end_lists();
        true
    }

    /// The number of mounted providers.
    pub fn len(&self) -> usize {
        self.mounted().len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The edits that register a mount with the engine.
    fn edits(&self, engine: &Engine, mounted: &Arc<MountedProvider>, mount: Mount) -> Vec<Edit> {
        let Mount { templates, resources, foreign, sources, methods, extensions, tools, .. } = mount;
        let Mount { directories, named_fallbacks, .. } = mount;
        let mount_id = mounted.state.id;
        let handler = |route| self.handler(engine, mounted, route);
        let templates = templates.into_iter().map(|(route, template)| Edit::AddTemplate {
            template: Box::new(template),
            handler: handler(route),
            mount: Some(mount_id),
        });
        let resources = resources.into_iter().map(|(route, resource)| Edit::AddResource {
            resource,
            source: ItemSource::Handler(handler(route)),
        });
        let foreign = foreign.into_iter().map(|(uri_template, json)| Edit::AddForeignTemplate {
            mount: mount_id,
            uri_template,
            json,
        });
        let sources = sources.into_iter().map(|source| Edit::AddSource {
            list: source.list,
            key: source.key,
            handler: handler(source.route),
            mount: mount_id,
            pages: source.pages,
        });
        let methods = methods.into_iter().map(|(route, method)| Edit::AddMethod {
            mount: Some(mount_id),
            extension: Box::new(Extension { method, handler: handler(route), ..Extension::default() }),
        });
        let extensions =
            extensions.into_iter().map(|(id, settings)| Edit::AddExtension { mount: mount_id, id, settings });
        let tools = tools.into_iter().map(|tool| Edit::AddReadTool { tool: Box::new(tool), mount: mount_id });
        let number = *self.directory.get_or_init(|| engine.new_handler());
        let is_first = directories && !self.routes.read().contains_key(&number);
        let directory = is_first.then(|| Edit::AddMethod {
            mount: None,
            extension: Box::new(Extension {
                method: READ_DIRECTORY.into(),
                handler: number,
                ..Extension::default()
            }),
        });
        let listed = templates.chain(resources).chain(foreign).chain(sources);
        let named = named_fallbacks
            .into_iter()
            .map(|(list, route)| Edit::SetNamedFallback { list, handler: Some(handler(route)) });
        // Tools come last: what they read is then there.
        listed.chain(methods).chain(directory).chain(extensions).chain(named).chain(tools).collect()
    }

    /// Routes [`READ_DIRECTORY`] to the mounts as long as one has directories.
    fn route_directories(&self, engine: &Engine, all: &[Arc<MountedProvider>]) {
        let number = *self.directory.get_or_init(|| engine.new_handler());
        let first = all.iter().find(|mounted| mounted.has_directories).cloned();
        let before = {
            let mut routes = self.routes.write();
            match first {
                Some(mounted) => {
                    let part = MountPart { route: DIRECTORIES, mounted, rest: Arc::default() };
                    routes.insert(number, part);
                    return;
                }
                None => routes.remove(&number),
            }
        };
        if before.is_some() {
            // Removing what exists is never refused.
            let edit = Edit::RemoveMethod { mount: None, method: READ_DIRECTORY.into() };
            let _ = engine.apply(vec![edit], self.clock.now());
        }
    }

    /// Chains all fallbacks, in the order of their mounts, under one handler number.
    fn chain(&self, engine: &Engine, all: &[Arc<MountedProvider>]) {
        let number = *self.fallback.get_or_init(|| engine.new_handler());
        let parts = all.iter().rev().filter_map(|mounted| Some((mounted.fallback?, mounted.clone())));
        let first = parts.fold(None, |next: Option<MountPart>, (route, mounted)| {
            let rest = next.into_iter().collect();
            Some(MountPart { route, mounted, rest })
        });
        let handler = first.is_some().then_some(number);
        let before = {
            let mut routes = self.routes.write();
            match first {
                Some(first) => routes.insert(number, first),
                None => routes.remove(&number),
            }
        };
        if before.is_some() || handler.is_some() {
            // These edits are never refused.
            let edits = vec![Edit::SetFallback { handler: None }, Edit::SetFallback { handler }];
            let _ = engine.apply(edits, self.clock.now());
        }
    }
}

/// The functions for runtimes.
impl Mounts {
    /// The part of a provider that answers `event`; `None` if no provider does.
    pub fn part(&self, event: &Event<'_>) -> Option<MountPart> {
        if !self.is_used() {
            return None;
        }
        self.find(event.handler()?)
    }

    /// Whether any provider was ever mounted.
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Lets the part found for `event` answer it, here or on a worker.
    pub fn answer(&self, part: &MountPart, peer: &Peer, event: Event<'_>) -> RequestOutcome<'static> {
        let (Some(engine), Some(token)) = (self.engine(), event.asks()) else {
            return RequestOutcome::nothing();
        };
        let redact = self.redact.get();
        let answered = match event {
            Event::Read(request) => {
                let read = match (part.now(peer, &request, &engine), redact) {
                    (Some(Err(error)), _) => return peer.respond(token, Answer::Failed(error)),
                    (Some(Ok(result)), None) => return peer.respond(token, Answer::Contents(result)),
                    (Some(Ok(result)), Some(_)) => Some(result),
                    (None, _) => None,
                };
                let Some(reply) = peer.detach(token) else { return RequestOutcome::nothing() };
                let Some(result) = read else {
                    let request = Read::new(part.route, request, &engine);
                    return part.read(request, peer.clone(), reply, redact);
                };
                // The function may block.
                return part.start(peer.clone(), reply, redact, None, |_, reply| reply.send(Ok(result)));
            }
            Event::List(request) => peer.detach(token).map(|reply| {
                let request = List::new(part.route, request, &engine);
                let call = |provider: &dyn Provider, reply| provider.list(request, reply);
                part.start(peer.clone(), reply, redact, None, call)
            }),
            Event::Complete(request) => peer.detach(token).map(|reply| {
                let request = Complete::new(part.route, request, &engine);
                let call = |provider: &dyn Provider, reply| provider.complete(request, reply);
                part.start(peer.clone(), reply, redact, None, call)
            }),
            Event::Call(request) if part.route == DIRECTORIES => {
                return self.directory(peer, &request, &engine);
            }
            Event::Call(request) => peer.detach(token).map(|reply| {
                let request = Call::new(part.route, request, &engine);
                let call = |provider: &dyn Provider, reply| provider.call(request, reply);
                part.start(peer.clone(), reply, redact, None, call)
            }),
            _ => return peer.respond(token, Answer::Failed(ReadError::NotFound)),
        };
        answered.unwrap_or_else(RequestOutcome::nothing)
    }

    /// Lets the provider that serves a URI answer for its children.
    fn directory(
        &self,
        peer: &Peer,
        request: &CallRequest<'_>,
        engine: &Arc<Engine>,
    ) -> RequestOutcome<'static> {
        let token = request.token;
        let question = match DirectoryQuestion::parse(request, engine) {
            Ok(question) => question,
            Err(error) => return peer.respond(token, Answer::Failed(error)),
        };
        let part = question.handler().and_then(|handler| self.find(handler));
        let Some(part) = part.filter(|part| part.mounted.has_directories) else {
            return peer.respond(token, Answer::Failed(question.absent()));
        };
        let Some(reply) = peer.detach(token) else { return RequestOutcome::nothing() };
        let request = question.at(part.route);
        part.start(peer.clone(), reply, None, None, |provider, reply| provider.directory(request, reply))
    }

    /// Passes a client's answer on, if a provider has asked. Returns whether one has.
    pub(crate) fn settle_ask(&self, connection: ConnectionId, event: &Event<'_>) -> bool {
        match event {
            Event::Replied { ask, answer } => self.asks.settle(connection, *ask, answer.as_ref()),
            _ => false,
        }
    }

    /// Reports to providers which URIs and lists are watched now.
    pub(super) fn settle_interest(&self) {
        if let Some(engine) = self.engine() {
            engine.settle_interest();
        }
    }

    /// Calls `visit` with each mount, without holding a lock.
    pub(super) fn each(&self, visit: impl FnMut(&Arc<MountedProvider>)) {
        let all = self.mounted().clone();
        all.iter().for_each(visit);
    }

    pub(super) fn find(&self, handler: HandlerId) -> Option<MountPart> {
        let routes = self.routes.read();
        routes.get(&handler).cloned()
    }
}

impl MountedProvider {
    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn asks(&self) -> &Arc<ProviderAsks> {
        &self.asks
    }
}

impl MountPart {
    /// Whether the same providers would answer.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let mut alike = self.route == other.route && Arc::ptr_eq(&self.mounted, &other.mounted);
        alike &= self.rest.len() == other.rest.len();
        alike && self.rest.iter().zip(&*other.rest).all(|(one, other)| one.is_same(other))
    }

    /// Calls `visit` with each provider that may answer, with its route.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&MountedProvider, Route)) {
        visit(&self.mounted, self.route);
        self.rest.iter().for_each(|part| part.each(visit));
    }

    /// Asks the provider for an answer on this thread.
    fn now(
        &self,
        peer: &Peer,
        request: &ReadRequest<'_>,
        engine: &Engine,
    ) -> Option<Result<ReadResult<'static>, ReadError>> {
        let read = ReadRef { route: self.route, request, engine };
        match catch_unwind(AssertUnwindSafe(|| self.mounted.provider.read_now(read))) {
            Ok(Some(Err(ReadError::NotFound))) if !self.rest.is_empty() => None,
            Ok(answer) => answer,
            Err(_panic) => {
                peer.misuse(&format!("{}: it panicked at {}", self.mounted.name, request.uri));
                Some(Err(ReadError::Failed))
            }
        }
    }

    /// Reads on a worker; if the part answers that there is nothing, the next part is tried.
    fn read(
        &self,
        request: Read,
        peer: Peer,
        reply: Reply,
        redact: Option<&Redact>,
    ) -> RequestOutcome<'static> {
        let otherwise = self.rest.first().cloned().map(|next| -> Otherwise {
            let request = request.at(next.route);
            let redact = redact.cloned();
            Box::new(move |peer, reply| {
                let outcome = next.read(request, peer.clone(), reply, redact.as_ref());
                peer.follow(outcome);
            })
        });
        let call = |provider: &dyn Provider, reply| provider.read(request, reply);
        self.start(peer, reply, redact, otherwise, call)
    }

    /// Calls the provider on a worker.
    fn start<T: IntoAnswer + 'static>(
        &self,
        peer: Peer,
        reply: Reply,
        redact: Option<&Redact>,
        otherwise: Option<Otherwise>,
        call: impl FnOnce(&dyn Provider, Responder<T>) + Send + 'static,
    ) -> RequestOutcome<'static> {
        let mounted = &self.mounted;
        let place = match mounted.workers.as_ref().map(Workers::enter).transpose() {
            Ok(place) => place,
            Err(_full) => {
                if !mounted.is_full.swap(true, Ordering::Relaxed) {
                    let what = format!(
                        "{}: the queue of waiting requests is full; further ones are refused until a worker is free",
                        mounted.name
                    );
                    peer.event_handler().report(&what);
                }
                let busy = Answer::Failed(ReadError::RateLimited { retry_after: BUSY });
                return peer.finish(reply.encode(busy, peer.now()));
            }
        };
        mounted.is_full.store(false, Ordering::Relaxed);
        let reply = Responder::new(peer, reply, redact.cloned(), mounted, otherwise);
        let provider = mounted.provider.clone();
        let job = move || {
            if !reply.is_cancelled() {
                call(&*provider, reply);
            }
        };
        match place {
            Some(place) => place.run(job),
            // The panic drops the responder, which fails its request.
            None => drop(catch_unwind(AssertUnwindSafe(job))),
        }
        RequestOutcome::nothing()
    }
}

/// The functions for feeds.
impl Mounts {
    pub(super) fn unix(&self) -> u64 {
        self.clock.now().unix
    }

    /// Announces that `uri` has changed, for all principals or for one, in this process alone: a provider watches in each.
    pub(super) fn updated(&self, uri: &str, principal: Option<&str>) -> Result<(), RegistrationError> {
        let Some(engine) = self.engine() else { return Ok(()) };
        engine.updated_here(uri, principal, self.clock.now())
    }

    /// Logs `what` under the name of a mount.
    pub(super) fn log(&self, state: &MountState, what: &str) {
        let name =
            self.mounted().iter().find(|mounted| mounted.state.id == state.id).map(|own| own.name.clone());
        if let Some(name) = name {
            self.log.write(format!("{name}: {what}"));
        }
    }

    /// Announces that lists have changed, for all principals or for one, in this process alone.
    pub(super) fn list_changed(&self, lists: ListKinds, principal: Option<&str>) {
        if let Some(engine) = self.engine() {
            engine.list_changed_here(lists, principal, self.clock.now());
        }
    }

    pub(super) fn publish(
        &self,
        state: &MountState,
        entries: Vec<FeedEntry>,
    ) -> Vec<Result<(), RegistrationError>> {
        let all = self.mounted();
        let mounted = all.iter().find(|mounted| mounted.state.id == state.id).cloned();
        let (Some(mounted), Some(engine)) = (mounted, self.engine()) else {
            return entries.iter().map(|_| Ok(())).collect();
        };
        let mut edits = Vec::new();
        let mut reports = Vec::new();
        for entry in entries {
            reports.push(match self.edit(&engine, &mounted, entry) {
                Ok(edit) => {
                    edits.push(edit);
                    Ok(())
                }
                Err(error) => Err(error),
            });
        }
        let (applied, _) = engine.apply_each(edits, self.clock.now());
        drop(all);
        engine.settle_interest();
        let sound = reports.iter_mut().filter(|report| report.is_ok());
        sound.zip(applied).for_each(|(report, applied)| *report = applied);
        reports
    }

    /// The edit for an entry, if the entry concerns a resource of the mount.
    fn edit(
        &self,
        engine: &Engine,
        mounted: &Arc<MountedProvider>,
        entry: FeedEntry,
    ) -> Result<Edit, RegistrationError> {
        match entry {
            FeedEntry::Add(route, resource) => {
                let handler = self.handler(engine, mounted, route);
                Ok(Edit::AddResource { resource, source: ItemSource::Handler(handler) })
            }
            FeedEntry::Update { uri, size, last_modified, description } => {
                self.ensure_own(engine, mounted, &uri)?;
                Ok(Edit::UpdateResource { uri, size, last_modified, description })
            }
            FeedEntry::Remove(uri) => {
                self.ensure_own(engine, mounted, &uri)?;
                Ok(Edit::RemoveResource { uri })
            }
        }
    }

    /// Refuses to change a resource of another owner.
    fn ensure_own(
        &self,
        engine: &Engine,
        mounted: &MountedProvider,
        uri: &str,
    ) -> Result<(), RegistrationError> {
        let catalog = engine.catalog();
        let normal = uri::normalize(uri, engine.limits().uri);
        let entry = normal.ok().and_then(|normal| catalog.resource(&normal));
        let is_own = entry.is_none_or(|entry| {
            matches!(&entry.source, ItemSource::Handler(own) if mounted.state.handlers.lock().values().any(|known| known == own))
        });
        if is_own {
            return Ok(());
        }
        let reason = format!("the resource {uri} is not of this mount");
        Err(RegistrationError::Mount { mount: mounted.name.to_string(), reason })
    }
}

impl Mounts {
    /// The handler number of a part of a provider, assigned at its first use.
    fn handler(&self, engine: &Engine, mounted: &Arc<MountedProvider>, route: Route) -> HandlerId {
        *mounted.state.handlers.lock().entry(route).or_insert_with(|| {
            let handler = engine.new_handler();
            let mut routes = self.routes.write();
            let part = MountPart { route, mounted: mounted.clone(), rest: Arc::default() };
            routes.insert(handler, part);
            handler
        })
    }

    fn forget(&self, mounted: &MountedProvider) {
        let own = std::mem::take(&mut *mounted.state.handlers.lock());
        let mut routes = self.routes.write();
        let gone: Vec<_> = own.values().filter_map(|handler| routes.remove(handler)).collect();
        drop(routes);
        drop(gone);
    }

    /// The name of the mount with which a registration conflicts according to `error`.
    fn holder(&self, engine: &Engine, error: &RegistrationError) -> Option<String> {
        let handler = engine.holder(error)?;
        self.find(handler).map(|part| part.mounted.name.to_string())
    }

    pub(super) fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    fn mounted(&self) -> MutexGuard<'_, Vec<Arc<MountedProvider>>> {
        self.mounted.lock()
    }
}

impl fmt::Debug for MountedProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Mounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounts").field("mounted", &self.len()).finish_non_exhaustive()
    }
}
