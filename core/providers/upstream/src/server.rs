//! One server, shared by all agents that have it: its connection, what it has, and who watches what there.
//!
//! ```text
//!   views ──▶ request ──▶ Breaker ──▶ Client (started at the first use, ended when idle)
//!         ──▶ first_page, table ──▶ SharedWork: one request for all who want it, also after their deadline
//!         ──▶ hear ──▶ one subscription for all views; changes go to all of them
//! ```
//!
//! Law: it knows no agent. What it keeps for all of them is `public`; everything else belongs to the view that asked.

mod clients;
mod own_links;
mod watches;

pub(crate) use crate::lock::lock;
pub(crate) use crate::wire::LogFn;

use crate::breaker::Breaker;
use crate::latency::LatencyCounts;
use crate::recent::RecentTable;
use crate::shared_work::SharedWork;
use crate::table::{MOST_ITEMS, MOST_PAGES, NamedTable};
use crate::wire::{self, ForeignPage, ReadInput, ServerLog};
use mcp_resources_client::{
    Client, ClientBuilder, ClientError, ClientLimits, Failure, Hearing, ListScope, ProgressFn, ServerAbout,
    ServerConfig, Target,
};
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::client::AllowList;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::now::Millis;
use mcp_resources_engine::version::METHOD_NOT_FOUND;
use own_links::{OwnCall, OwnLinks};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

/// Most results of reads that are kept for all agents, and most of their bytes.
const MOST_SHARED: usize = 1_000;
const MOST_SHARED_BYTES: usize = 64 << 20;
/// Most resources of one server that are watched.
const MOST_WATCHES: usize = 100_000;
/// The pause before a lost subscription is asked for again.
const AGAIN: Duration = Duration::from_secs(2);
/// For how long a list is taken as current if its server announces changes: a reconnection may have lost one.
const CURRENT: Duration = Duration::from_secs(60);

/// Receives the events of a server.
pub(crate) trait ServerListener: Send + Sync {
    /// A resource that this listener hears of may have changed.
    fn updated(&self, server: &Arc<UpstreamServer>, uri: &str);
    /// The subscription to a resource has become active: changes before that were not reported.
    fn active(&self, server: &Arc<UpstreamServer>, uri: &str);
    /// Lists have changed.
    fn lists_changed(&self, server: &Arc<UpstreamServer>, lists: ListKinds);
    /// The server has described itself, for the first time or again.
    fn introduced(&self);
}

/// Writes a problem for people: the server's name, and a sentence.
pub(crate) type NoteFn = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A server.
pub struct UpstreamServer {
    config: ServerConfig,
    name: Arc<str>,
    runtime: Handle,
    note: NoteFn,
    begun: Instant,
    link: Mutex<Option<ServerLink>>,
    breaker: Mutex<Breaker>,
    about: Mutex<Option<Arc<ServerAbout>>>,
    first: Arc<SharedWork<PageResult>>,
    tables: [TableSlot; 3],
    watches: Mutex<HashMap<String, UpstreamWatch>>,
    listeners: Mutex<Vec<Weak<dyn ServerListener>>>,
    shared: Mutex<SharedReads>,
    /// Counts changes, so that a read that was overtaken by one is not kept.
    changes: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
    /// The requests in flight whose clients want log messages, by number.
    logged: Mutex<HashMap<u64, LogFn>>,
    /// The number of requests in flight on the shared connection.
    in_flight: AtomicU64,
    own_links: Mutex<OwnLinks>,
    numbers: AtomicU64,
    latency: LatencyCounts,
}

/// The connection.
struct ServerLink {
    client: Client,
    used: Instant,
}

/// The reason why a server has no result.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamError {
    /// It was not asked: it has not answered for a while.
    Resting,
    /// So many clients have a connection of their own, and all use it.
    Full {
        /// The limit.
        most: usize,
    },
    /// It was asked.
    Client(ClientError),
}

/// The first page of the resources.
pub(crate) type PageResult = Result<Arc<ForeignPage>, UpstreamError>;
type TableResult = Result<Arc<NamedTable>, UpstreamError>;

/// The entries of one kind that a server has.
struct TableSlot {
    list: ListKind,
    flight: Arc<SharedWork<TableResult>>,
    kept: Mutex<Option<KeptTable>>,
}

struct KeptTable {
    table: Arc<NamedTable>,
    /// The connection that it was read from.
    about: Arc<ServerAbout>,
    until: Instant,
}

/// A resource that views hear of.
struct UpstreamWatch {
    count: usize,
    spelling: String,
    hearing: Option<Hearing>,
    /// Whether a subscription was lost, so that the next one reports a change.
    was_lost: bool,
}

/// Results of reads that every agent may have.
struct SharedReads {
    reads: RecentTable<String, SharedRead>,
    bytes: usize,
}

struct SharedRead {
    result: Arc<str>,
    until: Instant,
}

/// Options of a request.
#[derive(Default)]
pub(crate) struct RequestOptions {
    /// Whether it only reads, and may be made again after the connection was lost.
    pub(crate) only_reads: bool,
    /// Whether no time-out ends it.
    pub(crate) has_no_end: bool,
    pub(crate) progress: Option<ProgressFn>,
    /// Gets log messages of the server while this request runs.
    pub(crate) log: Option<LogFn>,
    /// The connection of its client, instead of the shared one.
    pub(crate) own: Option<OwnCall>,
}

/// Takes the log messages of a request until it is dropped.
struct LoggedRequest<'s> {
    server: &'s UpstreamServer,
    number: u64,
}

impl Drop for LoggedRequest<'_> {
    fn drop(&mut self) {
        lock(&self.server.logged).remove(&self.number);
    }
}

/// Counts a request on the shared connection until it is dropped.
struct CountedRequest<'s>(&'s UpstreamServer);

impl<'s> CountedRequest<'s> {
    fn begin(server: &'s UpstreamServer) -> Self {
        server.in_flight.fetch_add(1, Ordering::AcqRel);
        Self(server)
    }
}

impl Drop for CountedRequest<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

impl RequestOptions {
    pub(crate) fn reading() -> Self {
        Self { only_reads: true, ..Self::default() }
    }
}

impl UpstreamServer {
    pub(crate) fn new(config: ServerConfig, runtime: Handle, note: NoteFn) -> Arc<Self> {
        let name: Arc<str> = config.name.as_str().into();
        let is_remote = matches!(config.target, Target::Url { .. });
        Arc::new(Self {
            name,
            config,
            runtime,
            note,
            begun: Instant::now(),
            link: Mutex::default(),
            breaker: Mutex::new(Breaker::new()),
            about: Mutex::default(),
            first: SharedWork::new(),
            tables: [ListKind::Templates, ListKind::Tools, ListKind::Prompts].map(TableSlot::new),
            watches: Mutex::default(),
            listeners: Mutex::default(),
            shared: Mutex::new(SharedReads { reads: RecentTable::new(MOST_SHARED), bytes: 0 }),
            changes: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            logged: Mutex::default(),
            in_flight: AtomicU64::new(0),
            own_links: Mutex::new(OwnLinks::new(is_remote)),
            numbers: AtomicU64::new(0),
            latency: LatencyCounts::default(),
        })
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its description of itself, once it has answered.
    pub fn about(&self) -> Option<Arc<ServerAbout>> {
        lock(&self.about).clone()
    }

    /// Whether it speaks 2026-07-28, as far as that is known.
    pub(crate) fn is_modern(&self) -> bool {
        lock(&self.about).as_ref().is_some_and(|about| about.revision.is_modern())
    }

    /// The number of resources that are watched there.
    pub fn watched(&self) -> usize {
        lock(&self.watches).len()
    }

    /// The numbers of requests that it has answered, and not answered.
    pub fn requests(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    pub(crate) fn latency(&self) -> &LatencyCounts {
        &self.latency
    }

    /// Whether it is left alone, because it has not answered.
    pub fn is_resting(&self) -> bool {
        lock(&self.breaker).is_open(self.now())
    }

    pub(crate) fn listen(&self, listener: Weak<dyn ServerListener>) {
        let mut listeners = lock(&self.listeners);
        listeners.retain(|known| known.strong_count() > 0);
        listeners.push(listener);
    }

    /// Whether each client has a connection of its own for its calls.
    pub(crate) fn is_per_client(&self) -> bool {
        self.config.per_client
    }

    /// Whether it is reached over HTTP.
    pub(crate) fn is_remote(&self) -> bool {
        matches!(self.config.target, Target::Url { .. })
    }

    pub(crate) fn idle(&self) -> Option<Duration> {
        self.config.idle.map(Duration::from_millis)
    }

    pub(crate) fn own_links(&self) -> &Mutex<OwnLinks> {
        &self.own_links
    }

    /// Ends all connections, and the server if it was started here.
    pub(crate) async fn close(&self) {
        self.close_own_links().await;
        self.close_shared().await;
    }

    async fn close_shared(&self) {
        let link = lock(&self.link).take();
        if let Some(link) = link {
            link.client.close().await;
        }
    }

    /// Runs a task beside the connection.
    pub(crate) fn spawn<F>(&self, task: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(task)
    }

    fn now(&self) -> Millis {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Calls `tell` with each listener, without holding a lock.
    fn each(&self, tell: impl Fn(&dyn ServerListener)) {
        let listeners: Vec<_> = lock(&self.listeners).iter().filter_map(Weak::upgrade).collect();
        listeners.iter().for_each(|listener| tell(&**listener));
    }
}

/// Requests.
impl UpstreamServer {
    /// Sends a request, and returns its result as JSON text.
    pub(crate) async fn request(
        self: &Arc<Self>,
        method: &str,
        params: &str,
        options: RequestOptions,
    ) -> Result<String, UpstreamError> {
        if !lock(&self.breaker).admit(self.now()) {
            return Err(UpstreamError::Resting);
        }
        let RequestOptions { only_reads, has_no_end, progress, log, own } = options;
        let _logged = log.map(|log| self.logging(log));
        let scope = ListScope { server: None, timeout: has_no_end.then_some(Millis::MAX), progress };
        let _in_flight = own.is_none().then(|| CountedRequest::begin(self));
        let client = match &own {
            Some(own) => own.link().client().with(scope),
            None => self.client()?.with(scope),
        };
        let begun = Instant::now();
        let mut outcome = client.request(method, params).await;
        let is_lost = matches!(&outcome, Err(ClientError::Failed(Failure::Unreachable { .. })));
        if is_lost && only_reads && self.about().is_some() {
            outcome = client.request(method, params).await;
        }
        if let Some(link) = &mut *lock(&self.link) {
            link.used = Instant::now();
        }
        self.judge(outcome.as_ref().err());
        self.latency.add(begun.elapsed());
        outcome.map_err(UpstreamError::Client)
    }

    fn logging(&self, log: LogFn) -> LoggedRequest<'_> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        lock(&self.logged).insert(number, log);
        LoggedRequest { server: self, number }
    }

    /// Passes a log message on. It does not say which request it belongs to, so with several that want messages it is dropped:
    /// they may be of different agents. A server of an older revision logs for all of them, so none are wanted there.
    fn logs(&self, params: &str) {
        let log = match lock(&self.logged).values().collect::<Vec<_>>()[..] {
            [only] => only.clone(),
            _ => return,
        };
        if let Some(message) = ServerLog::parse(params) {
            log(&message);
        }
    }

    /// Counts the end of a request.
    fn judge(&self, error: Option<&ClientError>) {
        match error {
            Some(ClientError::Failed(
                Failure::Timeout { .. } | Failure::Unreachable { .. } | Failure::Unauthorized { .. },
            )) => self.missed(),
            Some(ClientError::Failed(Failure::Cancelled)) => {}
            _ => {
                self.answered.fetch_add(1, Ordering::Relaxed);
                lock(&self.breaker).succeeded();
            }
        }
    }

    /// Counts a failure: the server has not answered, or not in time.
    pub(crate) fn missed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
        lock(&self.breaker).failed(self.now());
    }

    /// The client, which is made now if there is none.
    fn client(self: &Arc<Self>) -> Result<Client, UpstreamError> {
        let mut link = lock(&self.link);
        if let Some(link) = &mut *link {
            link.used = Instant::now();
            return Ok(link.client.clone());
        }
        let server = Arc::downgrade(self);
        let builder = self.builder().refusal(self.refusal()).on_notification(move |_, method, params| {
            if let Some(server) = server.upgrade() {
                match method {
                    "notifications/tools/list_changed" => server.lists_changed(ListKinds::TOOLS),
                    "notifications/prompts/list_changed" => server.lists_changed(ListKinds::PROMPTS),
                    "notifications/message" => server.logs(params),
                    _ => {}
                }
            }
        });
        let client = Self::connect(builder)?;
        let server = Arc::downgrade(self);
        let mut changes = client.list_changes();
        self.runtime.spawn(async move {
            while changes.next().await.is_some() {
                let Some(server) = server.upgrade() else { return };
                server.lists_changed(ListKinds::RESOURCES);
            }
        });
        if let Some(idle) = self.config.idle {
            self.runtime.spawn(end_when_idle(Arc::downgrade(self), Duration::from_millis(idle)));
        }
        *link = Some(ServerLink { client: client.clone(), used: Instant::now() });
        Ok(client)
    }

    /// A client of this server, as far as all of its connections are alike.
    pub(crate) fn builder(&self) -> ClientBuilder {
        let mut config = ServerConfig::new(&*self.name, self.config.target.clone(), AllowList::Everything);
        config.timeout = self.config.timeout;
        config.credentials.clone_from(&self.config.credentials);
        let note = self.note.clone();
        let mut limits = ClientLimits::default();
        limits.watches = MOST_WATCHES;
        Client::builder()
            .server_with(config)
            .limits(limits)
            .runtime(self.runtime.clone())
            .info("mcp-resources-gateway", env!("CARGO_PKG_VERSION"))
            .on_note(move |name, what| note(name, what))
    }

    pub(crate) fn connect(builder: ClientBuilder) -> Result<Client, UpstreamError> {
        builder.connect().map_err(|error| {
            UpstreamError::Client(ClientError::Failed(Failure::Unreachable { reason: error.message }))
        })
    }

    /// The answer to a question on the shared connection: it is not known whose call has caused it.
    fn refusal(&self) -> String {
        let fix = match self.is_remote() || self.is_per_client() {
            true => {
                "which only clients of revisions before 2026-07-28 that have declared the capability can answer here"
            }
            false => {
                "but all clients share its process; `per_client: true` in its entry gives a process of its own to each client of a revision before 2026-07-28, which can answer then"
            }
        };
        format!("the server {:?} asks its client for input, {fix}", self.name)
    }

    /// The server's description of itself, in the present connection.
    async fn introduction(self: &Arc<Self>) -> Result<Arc<ServerAbout>, UpstreamError> {
        let about = self.client()?.about().await;
        self.judge(about.as_ref().err());
        let about = about.map_err(UpstreamError::Client)?;
        let before = lock(&self.about).replace(about.clone());
        if before.is_none_or(|before| *before != *about) {
            self.each(|listener| listener.introduced());
        }
        Ok(about)
    }

    fn lists_changed(self: &Arc<Self>, lists: ListKinds) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        for slot in &self.tables {
            if lists.contains(kinds(slot.list)) {
                *lock(&slot.kept) = None;
            }
        }
        if lists.contains(ListKinds::RESOURCES) {
            lock(&self.shared).clear();
        }
        self.each(|listener| listener.lists_changed(self, lists));
    }
}

/// Lists.
impl UpstreamServer {
    /// The first page of the resources. `None` if it is not there at `deadline`: then the lists count as changed when it is.
    pub(crate) async fn first_page(self: &Arc<Self>, deadline: Instant) -> Option<PageResult> {
        if self.is_resting() {
            return None;
        }
        let server = self.clone();
        let late = self.clone();
        let work = move || async move { server.resources(None).await.map(Arc::new) };
        let page = self.first.get(&self.runtime, deadline, work, move |page| {
            let is_there = page.is_ok();
            if is_there {
                late.each(|listener| listener.lists_changed(&late, ListKinds::RESOURCES));
            }
            is_there
        });
        let page = page.await;
        if page.is_none() {
            self.missed();
        }
        page
    }

    /// A page of the resources.
    pub(crate) async fn resources(
        self: &Arc<Self>,
        cursor: Option<&str>,
    ) -> Result<ForeignPage, UpstreamError> {
        if cursor.is_none() && !self.introduction().await?.declares("resources") {
            return Ok(ForeignPage::default());
        }
        self.page(ListKind::Resources, cursor).await
    }

    async fn page(
        self: &Arc<Self>,
        list: ListKind,
        cursor: Option<&str>,
    ) -> Result<ForeignPage, UpstreamError> {
        let (method, member, id) = terms(list);
        let params = cursor
            .map_or_else(|| "{}".to_owned(), |cursor| format!("{{\"cursor\":{}}}", wire::quoted(cursor)));
        match self.request(method, &params, RequestOptions::reading()).await {
            Ok(result) => wire::page(&result, member, id, ClientLimits::default().page).ok_or_else(|| {
                let reason = format!("its {member} are not a list");
                UpstreamError::Client(Failure::BadAnswer { reason }.into())
            }),
            Err(error) if error.is_unsupported() => Ok(ForeignPage::default()),
            Err(error) => Err(error),
        }
    }

    /// The entries of a kind that the server has: templates, tools or prompts. `None` if it is not known at `deadline`, as with
    /// [`UpstreamServer::first_page`].
    pub(crate) async fn table(self: &Arc<Self>, list: ListKind, deadline: Instant) -> Option<TableResult> {
        let slot = self.tables.iter().find(|slot| slot.list == list)?;
        if self.is_resting() {
            return None;
        }
        let about = match timeout_at(deadline, self.introduction()).await {
            Ok(Ok(about)) => about,
            Ok(Err(error)) => return Some(Err(error)),
            Err(_elapsed) => {
                self.missed();
                return None;
            }
        };
        if let Some(kept) = &*lock(&slot.kept)
            && Arc::ptr_eq(&kept.about, &about)
            && Instant::now() < kept.until
        {
            return Some(Ok(kept.table.clone()));
        }
        let server = self.clone();
        let late = self.clone();
        let work = move || async move { server.whole(list, about).await };
        let table = slot.flight.get(&self.runtime, deadline, work, move |table| {
            if table.is_ok() {
                late.each(|listener| listener.lists_changed(&late, kinds(list)));
            }
            false
        });
        let table = table.await;
        if table.is_none() {
            self.missed();
        }
        table
    }

    /// The same, as it is known without a request.
    pub(crate) fn known_table(&self, list: ListKind) -> Option<Arc<NamedTable>> {
        let slot = self.tables.iter().find(|slot| slot.list == list)?;
        lock(&slot.kept).as_ref().map(|kept| kept.table.clone())
    }

    /// Reads all pages of a kind.
    async fn whole(self: Arc<Self>, list: ListKind, about: Arc<ServerAbout>) -> TableResult {
        let slot = self.tables.iter().find(|slot| slot.list == list);
        let (capability, announces) = match list {
            ListKind::Tools => ("tools", about.announces("tools")),
            ListKind::Prompts => ("prompts", about.announces("prompts")),
            ListKind::Resources | ListKind::Templates => ("resources", about.has_list_changes),
        };
        let changes = self.changes.load(Ordering::Acquire);
        let mut items = Vec::new();
        let mut ttl = 0;
        let mut seen = HashSet::new();
        let mut cursor: Option<String> = None;
        if about.declares(capability) {
            for _ in 0..MOST_PAGES {
                let page = self.page(list, cursor.as_deref()).await?;
                items.extend(page.items);
                ttl = page.ttl;
                match page.next {
                    Some(next) if items.len() < MOST_ITEMS && seen.insert(next.clone()) => {
                        cursor = Some(next);
                    }
                    Some(_) => {
                        (self.note)(&self.name, "its list is too long, or has no end: the rest is left out");
                        break;
                    }
                    None => break,
                }
            }
        }
        let table = Arc::new(NamedTable::new(items, list == ListKind::Templates));
        let lasts = if announces { CURRENT } else { Duration::from_millis(ttl).min(CURRENT) };
        if let Some(slot) = slot {
            let is_current = self.changes.load(Ordering::Acquire) == changes;
            let until = if is_current { Instant::now() + lasts } else { Instant::now() };
            *lock(&slot.kept) = Some(KeptTable { table: table.clone(), about, until });
        }
        Ok(table)
    }
}

/// Reads.
impl UpstreamServer {
    /// The result of a read as JSON text. A public one is kept for all while it lasts; the time that is left of it is the
    /// second value, in ms.
    pub(crate) async fn read(
        self: &Arc<Self>,
        uri: &str,
        meta: Option<&str>,
        input: Option<&ReadInput>,
    ) -> Result<(Arc<str>, Option<u64>), UpstreamError> {
        if input.is_none()
            && let Some(shared) = lock(&self.shared).reads.get(uri)
            && let Some(left) = shared.until.checked_duration_since(Instant::now())
        {
            return Ok((shared.result.clone(), u64::try_from(left.as_millis()).ok()));
        }
        let changes = self.changes.load(Ordering::Acquire);
        let mut params = format!("{{\"uri\":{}", wire::quoted(uri));
        let responses = input.and_then(|input| input.responses.as_deref());
        responses.iter().for_each(|responses| params += &format!(",\"inputResponses\":{responses}"));
        let state = input.and_then(|input| input.state.as_deref());
        state.iter().for_each(|state| params += &format!(",\"requestState\":{}", wire::quoted(state)));
        meta.iter().for_each(|meta| params += &format!(",\"_meta\":{meta}"));
        params.push('}');
        let result: Arc<str> =
            self.request("resources/read", &params, RequestOptions::reading()).await?.into();
        if input.is_none()
            && let Some(ttl) = public_ttl(&result)
            && self.changes.load(Ordering::Acquire) == changes
        {
            let until = Instant::now() + Duration::from_millis(ttl);
            lock(&self.shared).insert(uri.to_owned(), SharedRead { result: result.clone(), until });
        }
        Ok((result, None))
    }
}

impl TableSlot {
    fn new(list: ListKind) -> Self {
        Self { list, flight: SharedWork::new(), kept: Mutex::default() }
    }
}

impl SharedReads {
    fn insert(&mut self, uri: String, read: SharedRead) {
        let size = uri.len() + read.result.len();
        if self.bytes + size > MOST_SHARED_BYTES {
            self.clear();
        }
        // Counts what was forgotten since as well, so that the limit holds.
        self.bytes += size;
        if size <= MOST_SHARED_BYTES {
            self.reads.insert(uri, read);
        }
    }

    fn clear(&mut self) {
        *self = Self { reads: RecentTable::new(MOST_SHARED), bytes: 0 };
    }
}

impl UpstreamError {
    /// Whether the server does not know the method.
    fn is_unsupported(&self) -> bool {
        let unknown = i64::from(METHOD_NOT_FOUND);
        matches!(self, Self::Client(ClientError::Failed(Failure::Server { code, .. })) if *code == unknown)
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Resting => f.write_str("it does not answer; it is tried again within 30 s"),
            Self::Full { most } => {
                write!(f, "{most} clients use connections of their own already; try again later")
            }
            Self::Client(ClientError::Failed(failure)) => write!(f, "{failure}"),
            Self::Client(error) => write!(f, "{error}"),
        }
    }
}

impl fmt::Debug for UpstreamServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamServer").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions").field("only_reads", &self.only_reads).finish_non_exhaustive()
    }
}

/// Ends the connection of a server without requests for `idle`, and without watches.
async fn end_when_idle(server: Weak<UpstreamServer>, idle: Duration) {
    loop {
        let Some(own) = server.upgrade() else { return };
        let used = lock(&own.link).as_ref().map(|link| link.used);
        let Some(used) = used else { return };
        let rest = idle.saturating_sub(used.elapsed());
        let is_used = own.in_flight.load(Ordering::Acquire) > 0;
        if rest.is_zero() && !is_used && lock(&own.watches).is_empty() {
            return own.close_shared().await;
        }
        drop(own);
        tokio::time::sleep(rest.max(Duration::from_millis(500))).await;
    }
}

/// The time for which all agents may share a result, in ms; `None` if it is not to be shared.
fn public_ttl(result: &str) -> Option<u64> {
    let members = wire::members(result)?;
    let scope = members.get("cacheScope").and_then(|scope| scope.as_str());
    let ttl = members.get("ttlMs").and_then(|ttl| ttl.as_u64());
    ttl.filter(|ttl| *ttl > 0 && scope.as_deref() == Some("public"))
}

/// The method of a list, the member of its entries, and the member that names each.
fn terms(list: ListKind) -> (&'static str, &'static str, &'static str) {
    match list {
        ListKind::Resources => ("resources/list", "resources", "uri"),
        ListKind::Templates => ("resources/templates/list", "resourceTemplates", "uriTemplate"),
        ListKind::Tools => ("tools/list", "tools", "name"),
        ListKind::Prompts => ("prompts/list", "prompts", "name"),
    }
}

/// The announcement of changes of a list.
pub(crate) fn kinds(list: ListKind) -> ListKinds {
    match list {
        ListKind::Resources | ListKind::Templates => ListKinds::RESOURCES,
        ListKind::Tools => ListKinds::TOOLS,
        ListKind::Prompts => ListKinds::PROMPTS,
    }
}
