//! The provider: requests of one agent's engine become requests to its servers.
//!
//! Law: nothing here blocks; every request is a task of the client's runtime, and ends when its caller has gone.

use crate::calls::ForeignCall;
use crate::completion::CompletionCall;
use crate::conflicts::UpstreamConflict;
use crate::server::{LogFn, ServerListener, UpstreamServer, lock};
use crate::summary::UpstreamSummary;
use crate::view::{ForeignRead, ReadTerms, UpstreamView, UriTarget};
use crate::wire::{ReadInput, ServerLog};
use mcp_resources_client::{Progress, ProgressFn};
use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::connection::{Cancelled, Completion, ListPage, RawResult, ReadResult};
use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::hub::ListKinds;
use mcp_resources_engine::resource::RegistrationError;
use mcp_resources_runtime::provider::{
    Call, Complete, Feed, InterestChange, IntoAnswer, List, Mount, Provider, Read, Responder, Route,
};
use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

const RESOURCES: Route = Route(0);
const TEMPLATES: Route = Route(1);
const TOOLS: Route = Route(2);
const PROMPTS: Route = Route(3);
const ANY: Route = Route(4);

/// Interval at which a request checks whether a client still waits for it.
const LOOK: Duration = Duration::from_millis(50);
/// Most bytes of one server's instructions, and of all.
const LONGEST_INSTRUCTIONS: usize = 4 << 10;
const MOST_INSTRUCTIONS: usize = 32 << 10;

/// The servers of one agent as a provider: their resources, templates, tools and prompts. Made by
/// [`Upstreams::provider`](crate::Upstreams::provider).
#[derive(Debug)]
pub struct UpstreamProvider {
    view: Arc<UpstreamView>,
    runtime: Handle,
    listener: Arc<ViewListener>,
}

/// Passes on what happens at the servers.
struct ViewListener {
    view: Weak<UpstreamView>,
    runtime: Handle,
    feed: OnceLock<Feed>,
    interests: Mutex<WatchedUris>,
    introduced: OnceLock<IntroducedFn>,
}

type IntroducedFn = Box<dyn Fn() + Send + Sync>;

/// The URIs that clients watch, and their servers.
#[derive(Debug, Default)]
struct WatchedUris {
    /// By canonical URI here: the server and the canonical URI there, once it is known which that is.
    watched: HashMap<Arc<str>, Option<WatchedTarget>>,
    /// The other direction.
    shown: HashMap<WatchedTarget, Vec<Arc<str>>>,
}

/// A server, and a canonical URI there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct WatchedTarget {
    server: usize,
    uri: String,
}

impl UpstreamProvider {
    pub(crate) fn new(view: UpstreamView, runtime: Handle) -> Self {
        let view = Arc::new(view);
        let listener = Arc::new(ViewListener {
            view: Arc::downgrade(&view),
            runtime: runtime.clone(),
            feed: OnceLock::new(),
            interests: Mutex::default(),
            introduced: OnceLock::new(),
        });
        let as_listener: Arc<dyn ServerListener> = listener.clone();
        for own in &view.servers {
            own.server.listen(Arc::downgrade(&as_listener));
        }
        Self { view, runtime, listener }
    }

    /// The servers, in the order of their names.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<UpstreamServer>> {
        self.view.servers.iter().map(|own| &own.server)
    }

    /// Calls `introduced` when a server has described itself, so that [`UpstreamProvider::instructions`] may be others. Only
    /// the first function is used.
    pub fn on_introduced(&self, introduced: impl Fn() + Send + Sync + 'static) {
        let _ = self.listener.introduced.set(Box::new(introduced));
    }

    /// The instructions of the servers that have described themselves, each under its name. Long ones are cut.
    pub fn instructions(&self) -> String {
        let mut all = String::new();
        for own in &self.view.servers {
            let about = own.server.about();
            let Some(text) = about.as_ref().and_then(|about| about.instructions.as_deref()) else { continue };
            let end = (0..=LONGEST_INSTRUCTIONS.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            let text = text.get(..end.unwrap_or_default()).unwrap_or_default();
            if all.len() + text.len() > MOST_INSTRUCTIONS {
                break;
            }
            let gap = if all.is_empty() { "" } else { "\n\n" };
            all.push_str(&format!("{gap}{}: {text}", own.server.name()));
        }
        all
    }

    /// Reports changes to a server. Only the first one is used.
    pub(crate) fn report_to(&self, feed: Feed) {
        let _ = self.listener.feed.set(feed);
    }

    /// Looks at every server, for at most `time`.
    pub async fn summaries(&self, time: Duration) -> Vec<UpstreamSummary> {
        self.view.summaries(time).await
    }

    /// Looks at everything that the servers have, for at most `time`, and returns what cannot be merged.
    pub async fn conflicts(&self, time: Duration) -> Vec<UpstreamConflict> {
        self.view.conflicts(time).await
    }

    /// Answers with the result of `work`. If the caller goes first, the work is dropped.
    fn answer<T, F>(&self, reply: Responder<T>, work: F)
    where
        T: IntoAnswer + Send + 'static,
        F: Future<Output = Result<T, ReadError>> + Send + 'static,
    {
        let Some(cancelled) = reply.cancelled() else { return };
        self.runtime.spawn(async move {
            match while_wanted(&cancelled, work).await {
                Some(answer) => reply.send(answer),
                None => drop(reply),
            }
        });
    }
}

/// The lists and handlers of a provider of servers.
pub(crate) fn mount(has_tools: bool) -> Mount {
    let mount = Mount::new("upstream")
        .workers(0, 0)
        .lists(RESOURCES, "upstream", true)
        .lists_of(ListKind::Templates, TEMPLATES, "upstream templates")
        .fallback(ANY);
    match has_tools {
        false => mount,
        true => mount
            .lists_of(ListKind::Tools, TOOLS, "upstream tools")
            .lists_of(ListKind::Prompts, PROMPTS, "upstream prompts")
            .named_fallback(ListKind::Tools, TOOLS)
            .named_fallback(ListKind::Prompts, PROMPTS),
    }
}

/// The result of `work`; `None` if the caller has gone.
async fn while_wanted<T>(cancelled: &Cancelled, work: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(work);
    loop {
        tokio::select! {
            done = &mut work => return Some(done),
            () = tokio::time::sleep(LOOK) => {
                if cancelled.get() {
                    return None;
                }
            }
        }
    }
}

impl Provider for UpstreamProvider {
    fn mount(self: Arc<Self>, feed: Feed) -> Result<Mount, RegistrationError> {
        self.report_to(feed);
        Ok(mount(true))
    }

    fn list(&self, request: List, reply: Responder<ListPage>) {
        let view = self.view.clone();
        self.answer(reply, async move {
            let (cursor, limit) = (request.cursor(), request.limit());
            match request.route() {
                TEMPLATES => view.list_known(ListKind::Templates, cursor, limit).await,
                TOOLS => view.list_known(ListKind::Tools, cursor, limit).await,
                PROMPTS => view.list_known(ListKind::Prompts, cursor, limit).await,
                _ => view.list(cursor, limit).await,
            }
        });
    }

    fn read(&self, request: Read, reply: Responder<ReadResult<'static>>) {
        let view = self.view.clone();
        let Some(cancelled) = reply.cancelled() else { return };
        self.runtime.spawn(async move {
            // The state begins with the name of the server that has asked.
            let state = request.state().and_then(|state| std::str::from_utf8(state).ok());
            let (asker, own) = match state.map(|state| state.split_once('\n').ok_or(state)) {
                None => (None, None),
                Some(Ok((asker, own))) => (Some(asker), Some(own.to_owned())),
                Some(Err(asker)) => (Some(asker), None),
            };
            let input = ReadInput { responses: request.inputs().map(str::to_owned), state: own };
            let terms = ReadTerms {
                is_modern: request.revision().is_modern(),
                meta: request.meta(),
                asker,
                input: asker.map(|_| &input),
            };
            match while_wanted(&cancelled, view.read(request.uri(), terms)).await {
                Some(Ok(ForeignRead::Contents(contents))) => reply.send(Ok(contents)),
                Some(Ok(ForeignRead::Input(input))) => reply.require(input),
                Some(Err(error)) => reply.send(Err(error)),
                None => drop(reply),
            }
        });
    }

    fn complete(&self, request: Complete, reply: Responder<Completion<'static>>) {
        let view = self.view.clone();
        self.answer(reply, async move {
            let call = CompletionCall {
                is_prompt: request.route() == PROMPTS,
                reference: request.reference(),
                variable: request.variable(),
                value: request.value(),
                arguments: request.arguments(),
            };
            view.complete(call).await
        });
    }

    fn call(&self, request: Call, reply: Responder<RawResult<'static>>) {
        let view = self.view.clone();
        let Some(cancelled) = reply.cancelled() else { return };
        // Progress is reported on the task of the connection, and the answer here.
        let reply = Arc::new(Mutex::new(Some(reply)));
        let reporter = reply.clone();
        let report: ProgressFn = Arc::new(move |progress: Progress| {
            if let Some(reply) = &mut *lock(&reporter) {
                reply.progress(progress.progress, progress.total, progress.message.as_deref());
            }
        });
        let wants_progress = request.params().contains("progressToken");
        let logger = reply.clone();
        let told: LogFn = Arc::new(move |message: &ServerLog| {
            if let Some(reply) = &mut *lock(&logger) {
                reply.tell(message.level, message.logger.as_deref(), &message.data);
            }
        });
        let (level, asked, capabilities) = match &*lock(&reply) {
            Some(reply) => (reply.log_level(), reply.asked(), reply.capabilities()),
            None => return,
        };
        self.runtime.spawn(async move {
            let call = ForeignCall {
                list: if request.route() == PROMPTS { ListKind::Prompts } else { ListKind::Tools },
                method: request.method(),
                params: request.params(),
                revision: request.revision(),
                progress: wants_progress.then_some(report),
                log: level.map(|level| (level, told)),
                asked,
                capabilities,
            };
            let answer = while_wanted(&cancelled, view.call(call)).await;
            let reply = lock(&reply).take();
            match (reply, answer) {
                (Some(reply), Some(answer)) => reply.send(answer),
                (reply, _) => drop(reply),
            }
        });
    }

    fn interest(&self, change: InterestChange<'_>) {
        match change {
            InterestChange::Uri { uri, on: true, .. } => self.listener.begin(uri),
            InterestChange::Uri { uri, on: false, .. } => self.listener.end(uri),
            InterestChange::Lists { .. } => {}
        }
    }
}

impl Drop for UpstreamProvider {
    fn drop(&mut self) {
        let watched: Vec<Arc<str>> = lock(&self.listener.interests).watched.keys().cloned().collect();
        for uri in watched {
            self.listener.end_at(&self.view, &uri);
        }
    }
}

/// Watches.
impl ViewListener {
    fn begin(self: &Arc<Self>, uri: &Arc<str>) {
        lock(&self.interests).watched.insert(uri.clone(), None);
        let listener = self.clone();
        let uri = uri.clone();
        self.runtime.spawn(async move {
            let Some(view) = listener.view.upgrade() else { return };
            let Some(UriTarget { server, uri: spelling }) = view.locate(&uri).await else { return };
            let key = crate::owners::canonical(&spelling).into_owned();
            let target = WatchedTarget { server, uri: key.clone() };
            {
                let mut interests = lock(&listener.interests);
                // The last client may have gone meanwhile.
                match interests.watched.get_mut(&uri) {
                    Some(place @ None) => *place = Some(target.clone()),
                    _ => return,
                }
                interests.shown.entry(target).or_default().push(uri.clone());
            }
            if let Some(own) = view.servers.get(server) {
                own.server.hear(&key, &spelling);
            }
        });
    }

    fn end(&self, uri: &Arc<str>) {
        if let Some(view) = self.view.upgrade() {
            self.end_at(&view, uri);
        }
    }

    fn end_at(&self, view: &UpstreamView, uri: &Arc<str>) {
        let target = {
            let mut interests = lock(&self.interests);
            let Some(Some(target)) = interests.watched.remove(uri) else { return };
            if let Some(shown) = interests.shown.get_mut(&target) {
                shown.retain(|own| own != uri);
                if shown.is_empty() {
                    interests.shown.remove(&target);
                }
            }
            target
        };
        if let Some(own) = view.servers.get(target.server) {
            own.server.unhear(&target.uri);
        }
    }

    /// Tells the clients that watch a URI of a server.
    fn tell(&self, server: usize, uri: &str) {
        let target = WatchedTarget { server, uri: uri.to_owned() };
        let shown = lock(&self.interests).shown.get(&target).cloned().unwrap_or_default();
        if let Some(feed) = self.feed.get() {
            for uri in shown {
                let _ = feed.updated(&uri);
            }
        }
    }
}

impl ServerListener for ViewListener {
    fn updated(&self, server: &Arc<UpstreamServer>, uri: &str) {
        let view = self.view.upgrade();
        if let Some(number) = view.and_then(|view| view.number_of(server)) {
            self.tell(number, uri);
        }
    }

    fn active(&self, server: &Arc<UpstreamServer>, uri: &str) {
        let Some(view) = self.view.upgrade() else { return };
        let Some(number) = view.number_of(server) else { return };
        let target = WatchedTarget { server: number, uri: uri.to_owned() };
        if !lock(&self.interests).shown.contains_key(&target) {
            return;
        }
        // Contents that were never read here cannot be out of date.
        let before = lock(&view.owners).last_read(number, uri);
        let (Some(before), Some(feed)) = (before, self.feed.get().cloned()) else { return };
        let shown = lock(&self.interests).shown.get(&target).cloned().unwrap_or_default();
        let uri = uri.to_owned();
        self.runtime.spawn(async move {
            let now = view.digest_at(&UriTarget { server: number, uri }).await;
            if !matches!(now, Ok(now) if now == before) {
                for uri in shown {
                    let _ = feed.updated(&uri);
                }
            }
        });
    }

    fn lists_changed(&self, server: &Arc<UpstreamServer>, lists: ListKinds) {
        let Some(view) = self.view.upgrade() else { return };
        if let Some(number) = view.number_of(server)
            && lists.contains(ListKinds::RESOURCES)
        {
            view.forget(number);
        }
        if let Some(feed) = self.feed.get() {
            feed.lists_changed(lists);
        }
    }

    fn introduced(&self) {
        if let Some(introduced) = self.introduced.get() {
            introduced();
        }
    }
}

impl std::fmt::Debug for ViewListener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ViewListener").field("interests", &self.interests).finish_non_exhaustive()
    }
}
