//! The providers of one server, behind the numbers that the engine knows their parts by.
//!
//! Law: no lock is held while a provider's function runs, but the one that has mounting, unmounting and publishing take turns;
//! a provider's function may call anything here from another thread, and its feed from any.

use super::Provider;
use super::feed::{Entry, Feed};
use super::mount::{Mount, Route};
use super::request::{Complete, List, Read, ReadRef};
use super::responder::{Redact, Responder, Sort};
use super::workers::Workers;
use crate::transport::{Clock, Peer};
use mcp_resources_engine::catalog::{Edit, HandlerId, Source};
use mcp_resources_engine::connection::{Answer, Event, Outcome, ReadRequest, RequestToken};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::resource::RegistrationError;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};

/// When a client may ask again whose request found the queue full, in ms.
const BUSY: u64 = 1_000;

/// See the module.
pub struct Mounts {
    clock: Arc<Clock>,
    engine: OnceLock<Weak<Engine>>,
    redact: OnceLock<Redact>,
    routes: RwLock<HashMap<HandlerId, (Route, Arc<Mounted>)>>,
    /// Held while the catalogue and the routes change together.
    mounted: Mutex<Vec<Arc<Mounted>>>,
    /// Whether anything was ever mounted.
    is_used: AtomicBool,
    last: AtomicU32,
}

/// Names one mount of a server, to unmount it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MountKey(u32);

/// A part of a provider that is mounted.
#[derive(Clone, Debug)]
pub struct Part {
    route: Route,
    mounted: Arc<Mounted>,
}

/// One provider that is mounted.
struct Mounted {
    key: MountKey,
    name: Arc<str>,
    provider: Arc<dyn Provider>,
    state: Arc<MountState>,
    /// `None`: its functions never block.
    workers: Option<Workers>,
    /// Whether the last request found the queue full: it is logged once.
    is_full: AtomicBool,
}

/// What a mount and its feeds share.
#[derive(Debug)]
pub(super) struct MountState {
    key: MountKey,
    alive: AtomicBool,
    handlers: Mutex<HashMap<Route, HandlerId>>,
}

impl MountState {
    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }
}

/// For the author.
impl Mounts {
    /// Nothing mounted yet.
    pub fn new(clock: Arc<Clock>) -> Arc<Self> {
        Arc::new(Self {
            clock,
            engine: OnceLock::new(),
            redact: OnceLock::new(),
            routes: RwLock::default(),
            mounted: Mutex::default(),
            is_used: AtomicBool::new(false),
            last: AtomicU32::new(0),
        })
    }

    /// Says whose providers they are, once.
    pub fn serve(&self, engine: &Arc<Engine>) {
        let _ = self.engine.set(Arc::downgrade(engine));
    }

    /// Has `redact` change what is read before it is encoded, as it does for the author's own functions. It may block.
    pub fn redact_with(&self, redact: Redact) {
        let _ = self.redact.set(redact);
    }

    /// Mounts a provider: all that it says, or nothing.
    ///
    /// # Errors
    /// [`RegistrationError`]: the provider's own, or what it would serve is refused.
    pub fn mount(self: &Arc<Self>, provider: Arc<dyn Provider>) -> Result<MountKey, RegistrationError> {
        let key = MountKey(self.last.fetch_add(1, Ordering::Relaxed));
        let (alive, handlers) = (AtomicBool::new(true), Mutex::default());
        let state = Arc::new(MountState { key, alive, handlers });
        let refused = |mount: &str, reason: String| RegistrationError::Mount { mount: mount.into(), reason };
        let Some(engine) = self.engine() else { return Err(refused("", "the server is gone".into())) };
        let mounting = catch_unwind(AssertUnwindSafe(|| provider.clone().mount(Feed::new(self, &state))));
        let mount =
            mounting.unwrap_or_else(|_| Err(refused("", "it panicked while it was mounted".into())))?;
        let Mount { name, templates, resources, threads, queue } = mount;
        let workers = (threads > 0).then(|| Workers::new(format!("mcp-{name}"), threads, queue));
        let is_full = AtomicBool::new(false);
        let mounted = Arc::new(Mounted { key, name: name.into(), provider, state, workers, is_full });
        let mut all = self.mounted();
        self.is_used.store(true, Ordering::Release);
        let edits = templates.into_iter().map(|(route, template)| {
            let handler = self.handler(&engine, &mounted, route);
            Edit::AddTemplate { template, handler }
        });
        let resources = resources.into_iter().map(|(route, resource)| {
            let handler = self.handler(&engine, &mounted, route);
            Edit::AddResource { resource, source: Source::Handler(handler) }
        });
        let edits = edits.chain(resources).collect();
        let applied = engine.apply(edits, self.clock.now(), &mut Vec::new());
        if let Err(error) = applied {
            self.forget(&mounted);
            let with = self.holder(&engine, &error).map(|with| format!("; the mount {with} has it"));
            return Err(refused(&mounted.name, format!("{error}{}", with.unwrap_or_default())));
        }
        all.push(mounted);
        Ok(key)
    }

    /// Gives back all that a mount has: its resources and templates are gone and count as changed, its workers end with what
    /// they do, its provider is dropped when they have. `false` if it is not mounted.
    pub fn unmount(&self, key: MountKey) -> bool {
        let mut all = self.mounted();
        let Some(at) = all.iter().position(|mounted| mounted.key == key) else { return false };
        let mounted = all.remove(at);
        mounted.state.alive.store(false, Ordering::Release);
        if let Some(engine) = self.engine() {
            let own: Vec<HandlerId> = lock(&mounted.state.handlers).values().copied().collect();
            let edits = engine.catalog().served_by(&own);
            // Nothing can refuse a removal of what is there.
            let _ = engine.apply(edits, self.clock.now(), &mut Vec::new());
        }
        self.forget(&mounted);
        drop(all);
        true
    }

    /// How many providers are mounted.
    pub fn len(&self) -> usize {
        self.mounted().len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// For hosts.
impl Mounts {
    /// The part of a provider that is to answer `event`; `None` if it is not a provider's.
    pub fn part(&self, event: &Event<'_>) -> Option<Part> {
        if !self.is_used.load(Ordering::Acquire) {
            return None;
        }
        let (route, mounted) = self.find(event.handler()?)?;
        Some(Part { route, mounted })
    }

    /// Has it answer, here or on a worker. `event` is the one that the part was found for.
    pub fn answer(&self, part: &Part, peer: &Peer, event: Event<'_>) -> Outcome<'static> {
        let Part { route, mounted } = part;
        let (Some(engine), Some(token)) = (self.engine(), event.asks()) else { return Outcome::nothing() };
        match event {
            Event::Read(request) => self.read(peer, *route, mounted, request, &engine),
            Event::List(request) => {
                let request = List::new(*route, request, &engine);
                self.start(peer, token, mounted, |provider, reply| provider.list(request, reply))
            }
            Event::Complete(request) => {
                let request = Complete::new(*route, request, &engine);
                self.start(peer, token, mounted, |provider, reply| provider.complete(request, reply))
            }
            _ => peer.respond(token, Answer::Failed(ReadError::NotFound)),
        }
    }

    fn read(
        &self,
        peer: &Peer,
        route: Route,
        mounted: &Arc<Mounted>,
        request: ReadRequest<'_>,
        engine: &Arc<Engine>,
    ) -> Outcome<'static> {
        let token = request.token;
        if self.redact.get().is_none() {
            let read = ReadRef { route, request: &request, engine };
            match catch_unwind(AssertUnwindSafe(|| mounted.provider.read_now(read))) {
                Ok(Some(Ok(result))) => return peer.respond(token, Answer::Contents(result)),
                Ok(Some(Err(error))) => return peer.respond(token, Answer::Failed(error)),
                Ok(None) => {}
                Err(_panic) => {
                    peer.misuse(&format!("{}: it panicked at {}", mounted.name, request.uri));
                    return peer.respond(token, Answer::Failed(ReadError::Failed));
                }
            }
        }
        let request = Read::new(route, request, engine);
        self.start(peer, token, mounted, |provider, reply| provider.read(request, reply))
    }

    /// Has a worker call the provider.
    fn start<T: Sort + 'static>(
        &self,
        peer: &Peer,
        token: RequestToken,
        mounted: &Arc<Mounted>,
        call: impl FnOnce(&dyn Provider, Responder<T>) + Send + 'static,
    ) -> Outcome<'static> {
        let place = match mounted.workers.as_ref().map(Workers::enter).transpose() {
            Ok(place) => place,
            Err(_full) => {
                if !mounted.is_full.swap(true, Ordering::Relaxed) {
                    peer.misuse(&format!("{}: as many requests wait as may; more are refused", mounted.name));
                }
                return peer.respond(token, Answer::Failed(ReadError::RateLimited { retry_after: BUSY }));
            }
        };
        mounted.is_full.store(false, Ordering::Relaxed);
        let Some(reply) = peer.detach(token) else { return Outcome::nothing() };
        peer.pends();
        let reply = Responder::new(peer.clone(), reply, self.redact.get().cloned(), mounted.name.clone());
        let provider = mounted.provider.clone();
        let job = move || {
            if !reply.is_cancelled() {
                call(&*provider, reply);
            }
        };
        match place {
            Some(place) => place.run(job),
            // What it was to answer has failed when the panic drops it.
            None => drop(catch_unwind(AssertUnwindSafe(job))),
        }
        Outcome::nothing()
    }

    fn find(&self, handler: HandlerId) -> Option<(Route, Arc<Mounted>)> {
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        routes.get(&handler).cloned()
    }
}

/// For feeds.
impl Mounts {
    pub(super) fn unix(&self) -> u64 {
        self.clock.now().unix
    }

    pub(super) fn updated(&self, uri: &str) -> Result<(), RegistrationError> {
        let Some(engine) = self.engine() else { return Ok(()) };
        engine.updated(uri, self.clock.now(), &mut Vec::new())
    }

    pub(super) fn list_changed(&self) {
        if let Some(engine) = self.engine() {
            engine.list_changed(ListKinds::RESOURCES, self.clock.now(), &mut Vec::new());
        }
    }

    pub(super) fn publish(
        &self,
        state: &MountState,
        entries: Vec<Entry>,
    ) -> Vec<Result<(), RegistrationError>> {
        let all = self.mounted();
        let mounted = all.iter().find(|mounted| mounted.key == state.key);
        let (Some(mounted), Some(engine)) = (mounted, self.engine()) else {
            return entries.iter().map(|_| Ok(())).collect();
        };
        let one = |entry| {
            let edit = match entry {
                Entry::Add(route, resource) => {
                    let handler = self.handler(&engine, mounted, route);
                    Edit::AddResource { resource, source: Source::Handler(handler) }
                }
                Entry::Remove(uri) => Edit::RemoveResource { uri },
            };
            engine.apply(vec![edit], self.clock.now(), &mut Vec::new()).map(drop)
        };
        entries.into_iter().map(one).collect()
    }
}

impl Mounts {
    /// The number of a part of a provider, given when it is first needed.
    fn handler(&self, engine: &Engine, mounted: &Arc<Mounted>, route: Route) -> HandlerId {
        *lock(&mounted.state.handlers).entry(route).or_insert_with(|| {
            let handler = engine.new_handler();
            let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
            routes.insert(handler, (route, mounted.clone()));
            handler
        })
    }

    fn forget(&self, mounted: &Mounted) {
        let own = std::mem::take(&mut *lock(&mounted.state.handlers));
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<_> = own.values().filter_map(|handler| routes.remove(handler)).collect();
        drop(routes);
        drop(gone);
    }

    /// The name of the mount that has what `error` says is there already.
    fn holder(&self, engine: &Engine, error: &RegistrationError) -> Option<String> {
        let handler = engine.holder(error)?;
        self.find(handler).map(|(_, mounted)| mounted.name.to_string())
    }

    fn engine(&self) -> Option<Arc<Engine>> {
        self.engine.get().and_then(Weak::upgrade)
    }

    fn mounted(&self) -> MutexGuard<'_, Vec<Arc<Mounted>>> {
        lock(&self.mounted)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Mounted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounted").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for Mounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mounts").field("mounted", &self.len()).finish_non_exhaustive()
    }
}
