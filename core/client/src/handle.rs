//! The client: chooses the servers for a request, and returns their results.

use crate::builder::ClientBuilder;
use crate::config::ConfigError;
use crate::hooks::{Heard, Hooks, ProgressFn};
use crate::link::ServerHandle;
use crate::listing::{Listing, ListingKind};
use crate::transport::LoopReader;
use crate::watch::{Watch, WatchLocation};
use crate::watching::ClientWatching;
use mcp_resources_engine::client::{
    CallOptions, ClientCall, ClientError, ClientOutcome, Failure, ServerAbout,
};
use mcp_resources_engine::connection::{Completion, Contents};
use mcp_resources_engine::now::Millis;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast;

/// A client of one or more servers. Clones are handles of the same client. See the module.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
    scope: ListScope,
}

/// Options for the requests of a handle.
#[derive(Clone, Default)]
pub struct ListScope {
    /// The only server to use; `None` for all.
    pub server: Option<String>,
    /// The time-out of a request in ms; `None` for the client's default.
    pub timeout: Option<Millis>,
    /// A callback for the progress of requests.
    pub progress: Option<ProgressFn>,
}

/// The result of [`Client::read_whole`].
#[doc(hidden)]
#[derive(Debug)]
pub struct ClientRead {
    link: Arc<ServerHandle>,
    /// The contents that are allowed.
    pub contents: Vec<Contents<'static>>,
    /// The `ttlMs` that the server sent; 0 without one.
    pub ttl: Millis,
}

impl ClientRead {
    /// The name of the server that had the resource.
    pub fn server(&self) -> &Arc<str> {
        &self.link.name
    }
}

/// The state shared by all handles.
pub(super) struct Inner {
    links: Vec<Arc<ServerHandle>>,
    hooks: Arc<Hooks>,
    most_pages: usize,
    failures: Mutex<BTreeMap<Arc<str>, ClientError>>,
}

impl Inner {
    pub(super) fn new(links: Vec<Arc<ServerHandle>>, hooks: Arc<Hooks>, most_pages: usize) -> Self {
        Self { links, hooks, most_pages, failures: Mutex::default() }
    }
}

/// The public API.
impl Client {
    /// Builds a client whose servers are added one by one.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Builds a client of the servers in a configuration file that `agent` may use; without an agent, each
    /// server's own `resources` apply.
    ///
    /// # Errors
    /// As [`ClientBuilder::from_config`].
    pub fn from_config(path: impl AsRef<Path>, agent: Option<&str>) -> Result<ClientBuilder, ConfigError> {
        ClientBuilder::from_config(path, agent)
    }

    /// Returns a handle of the same client with other options.
    #[must_use]
    pub fn with(&self, scope: ListScope) -> Self {
        Self { inner: self.inner.clone(), scope }
    }

    /// The names of the servers, in order.
    pub fn servers(&self) -> Vec<Arc<str>> {
        self.inner.links.iter().map(|link| link.name.clone()).collect()
    }

    /// Lists the allowed resources of all servers. Walks all pages.
    pub fn list(&self) -> Listing {
        Listing::new(self, ListingKind::Resources)
    }

    /// Lists the templates of all servers that can expand to an allowed URI. Walks all pages.
    pub fn list_templates(&self) -> Listing {
        Listing::new(self, ListingKind::Templates)
    }

    /// Reads a resource. If the allow-lists of several servers contain the URI, they are tried in the order of their
    /// names until one has the resource. Contents under a URI that is not allowed are left out.
    ///
    /// # Errors
    /// [`ClientError`]. A URI that is not allowed is refused before anything is sent.
    pub async fn read(&self, uri: &str) -> Result<Vec<Contents<'static>>, ClientError> {
        self.read_from(uri).await.map(|read| read.contents)
    }

    /// As [`Client::read`], with the server that had the resource. Hidden, for the command: `browse` shows them.
    ///
    /// # Errors
    /// As [`Client::read`].
    #[doc(hidden)]
    pub async fn read_whole(&self, uri: &str) -> Result<ClientRead, ClientError> {
        self.read_from(uri).await
    }

    /// Completes a variable of a template; `value` is the text typed so far. `context` has the values chosen for other
    /// variables; revisions before 2025-06-18 do not support it.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn complete(
        &self,
        template: &str,
        variable: &str,
        value: &str,
        context: &[(&str, &str)],
    ) -> Result<Completion<'static>, ClientError> {
        let own = |text: &str| text.to_owned();
        let call = ClientCall::Complete {
            template: own(template),
            variable: own(variable),
            value: own(value),
            context: context.iter().map(|(name, value)| (own(name), own(value))).collect(),
        };
        let mut first = None;
        for link in self.allowing(template, |link| link.access.reaches(template))? {
            match self.ask(&link, call.clone()).await {
                Ok(ClientOutcome::Completion(found)) => return Ok(found),
                Ok(_) => {}
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        Err(first.unwrap_or_else(|| ClientError::NotFound { uri: own(template) }))
    }

    /// Watches a resource: reports the contents first, then again after each change. Unchanged contents are not
    /// reported again. If the server cannot be reached at the start, the watch fails; after a first connection it waits
    /// for the server to return. Needs a tokio runtime if several servers may have the resource.
    pub fn watch(&self, uri: &str) -> Watch {
        let watching = Arc::new(ClientWatching::default());
        let mut watch = Watch { watching: watching.clone(), at: Arc::default(), search: None };
        match self.allowing_uri(uri) {
            Err(error) => watching.put(Err(error)),
            Ok(links) => match &links[..] {
                [link] => begin(link, uri, watching, &watch.at),
                _ => watch.search = Some(self.search(uri, watching, watch.at.clone())),
            },
        }
        watch
    }

    /// Reports changes of a resource of one server, without reading it, until the returned [`Hearing`] is dropped. `report` is
    /// called on the task of the server, and must not block.
    ///
    /// # Errors
    /// [`ClientError`] if there are several servers and none is chosen with [`Client::with`].
    pub fn hear(
        &self,
        uri: &str,
        report: impl Fn(Heard) + Send + Sync + 'static,
    ) -> Result<Hearing, ClientError> {
        let link = self.only()?;
        let id = link.hear(uri, Arc::new(report));
        Ok(Hearing { link, id })
    }

    /// Sends a request with any method to one server, and returns its result as JSON text. `params` is the text of a
    /// JSON object. Members of its `_meta` are sent in addition to the client's own.
    ///
    /// # Errors
    /// [`ClientError`]; also if there are several servers and none is chosen with [`Client::with`], and for a method
    /// about resources unless everything is allowed.
    pub async fn request(&self, method: &str, params: &str) -> Result<String, ClientError> {
        let link = self.only()?;
        let call = ClientCall::Custom { method: method.into(), params: params.into() };
        match self.ask(&link, call).await? {
            ClientOutcome::Result(text) => Ok(text),
            _ => Err(Failure::BadAnswer { reason: "another sort of result".into() }.into()),
        }
    }

    /// Returns a server's description of itself.
    ///
    /// # Errors
    /// [`ClientError`] if it cannot be reached, or there are several servers and none is chosen with [`Client::with`].
    pub async fn about(&self) -> Result<Arc<ServerAbout>, ClientError> {
        self.only()?.about().await
    }

    /// The servers that failed during their last list, each with its error.
    pub fn failures(&self) -> Vec<(Arc<str>, ClientError)> {
        let failures = self.inner.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.iter().map(|(name, error)| (name.clone(), error.clone())).collect()
    }

    /// Listens for changes of lists from now on. Connects to the servers, and keeps listening as long as the client
    /// exists.
    pub fn list_changes(&self) -> ListChanges {
        for link in self.links() {
            link.watch_lists();
        }
        ListChanges(self.inner.hooks.lists.subscribe())
    }

    /// Closes the client: cancels calls, ends watches, and shuts down the servers that it has started.
    pub async fn close(&self) {
        let closing: Vec<_> = self
            .inner
            .links
            .iter()
            .map(|link| {
                let link = link.clone();
                tokio::spawn(async move { link.close().await })
            })
            .collect();
        for closing in closing {
            let _ = closing.await;
        }
    }
}

/// Chooses the servers for a request.
impl Client {
    pub(super) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), scope: ListScope::default() }
    }

    /// The servers that this handle may use.
    pub(super) fn links(&self) -> Vec<Arc<ServerHandle>> {
        let own =
            |link: &&Arc<ServerHandle>| self.scope.server.as_deref().is_none_or(|name| *link.name == *name);
        self.inner.links.iter().filter(own).cloned().collect()
    }

    /// The servers for which `is_allowed` returns `true`: at least one, or an error.
    fn allowing(
        &self,
        what: &str,
        is_allowed: impl Fn(&ServerHandle) -> bool,
    ) -> Result<Vec<Arc<ServerHandle>>, ClientError> {
        let links = self.links();
        if links.is_empty() {
            return Err(self.no_server());
        }
        let allowed: Vec<_> = links.iter().filter(|link| is_allowed(link)).cloned().collect();
        if allowed.is_empty() {
            return Err(ClientError::AccessDenied { uri: what.into() });
        }
        Ok(allowed)
    }

    /// The servers that may be asked for a URI.
    fn allowing_uri(&self, uri: &str) -> Result<Vec<Arc<ServerHandle>>, ClientError> {
        let links = self.allowing(uri, |link| link.access.allows(uri));
        links.map_err(|denied| match self.links().first().map(|link| link.access.check(uri)) {
            // The text is at fault, not the allow-list.
            Some(Err(invalid @ ClientError::InvalidUri { .. })) => invalid,
            _ => denied,
        })
    }

    /// The server to use if there must be exactly one.
    fn only(&self) -> Result<Arc<ServerHandle>, ClientError> {
        let links = self.links();
        match &links[..] {
            [link] => Ok(link.clone()),
            [] => Err(self.no_server()),
            _ => {
                let names = links.iter().map(|link| link.name.to_string()).collect();
                Err(Failure::SeveralServers { names }.into())
            }
        }
    }

    fn no_server(&self) -> ClientError {
        Failure::NoServer { name: self.scope.server.clone().unwrap_or_default() }.into()
    }

    pub(super) fn options(&self) -> (CallOptions, Option<ProgressFn>) {
        let progress = self.scope.progress.clone();
        (CallOptions { timeout: self.scope.timeout, progress: progress.is_some() }, progress)
    }

    async fn ask(&self, link: &ServerHandle, call: ClientCall) -> Result<ClientOutcome, ClientError> {
        let (options, progress) = self.options();
        link.call(call, options, progress).await
    }

    /// Reads a resource, and returns the server that had it.
    async fn read_from(&self, uri: &str) -> Result<ClientRead, ClientError> {
        let mut worst = None;
        for link in self.allowing_uri(uri)? {
            match self.ask(&link, ClientCall::Read { uri: uri.into() }).await {
                Ok(ClientOutcome::Contents { contents, ttl }) => {
                    return Ok(ClientRead { link, contents, ttl });
                }
                Ok(_) => {}
                Err(ClientError::NotFound { .. }) => {}
                Err(error) => drop(worst.get_or_insert(error)),
            }
        }
        Err(worst.unwrap_or_else(|| ClientError::NotFound { uri: uri.into() }))
    }

    /// Reads a resource on this thread, if one server may have it and takes the call now: see [`ServerHandle::direct`]. Returns
    /// the server and the number of the call there. `done` makes the function that is called with the result, or dropped.
    pub(super) fn read_directly<F>(
        &self,
        uri: &str,
        reader: Option<&LoopReader>,
        done: impl FnOnce() -> F,
    ) -> Option<(Arc<ServerHandle>, u64)>
    where
        F: FnOnce(Result<Vec<Contents<'static>>, ClientError>) + Send + 'static,
    {
        let links = self.allowing_uri(uri).ok()?;
        let [link] = &links[..] else { return None };
        let direct = link.direct()?;
        let (done, asked) = (done(), uri.to_owned());
        let outcome = move |outcome| {
            done(match outcome {
                Ok(ClientOutcome::Contents { contents, .. }) => Ok(contents),
                Ok(_) | Err(ClientError::NotFound { .. }) => Err(ClientError::NotFound { uri: asked }),
                Err(error) => Err(error),
            });
        };
        let (options, progress) = self.options();
        let id =
            direct.call(ClientCall::Read { uri: uri.into() }, options, progress, Box::new(outcome), reader);
        Some((link.clone(), id))
    }

    /// Reads what the servers have sent that this thread is lent the output of; returns whether that was anything.
    pub(super) fn pump(&self) -> bool {
        let mut has_read = false;
        for link in &self.inner.links {
            has_read |= link.pump();
        }
        has_read
    }

    /// Takes what a loop has read that reads by itself.
    pub(super) fn received(&self, loan: u64, bytes: &[u8]) {
        self.inner.links.iter().any(|link| link.received(loan, bytes));
    }

    /// Takes a loan back from a loop that reads by itself, and has stopped.
    pub(super) fn returned(&self, loan: u64) {
        self.inner.links.iter().any(|link| link.returned(loan));
    }

    /// Watches a resource on the server that has it, or on the first allowed one if none has it.
    fn search(
        &self,
        uri: &str,
        watching: Arc<ClientWatching>,
        at: WatchLocation,
    ) -> tokio::task::AbortHandle {
        let client = self.clone();
        let uri = uri.to_owned();
        let search = tokio::spawn(async move {
            let link = match client.read_from(&uri).await {
                Ok(read) => Ok(read.link),
                Err(ClientError::NotFound { .. }) => client
                    .allowing(&uri, |link| link.access.allows(&uri))
                    .map(|mut links| links.swap_remove(0)),
                Err(error) => Err(error),
            };
            match link {
                Ok(link) => begin(&link, &uri, watching, &at),
                Err(error) => watching.put(Err(error)),
            }
        });
        search.abort_handle()
    }

    pub(super) fn most_pages(&self) -> usize {
        self.inner.most_pages
    }

    pub(super) fn note_failure(&self, server: &Arc<str>, error: Option<ClientError>) {
        let mut failures = self.inner.failures.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(error) => drop(failures.insert(server.clone(), error)),
            None => drop(failures.remove(server)),
        }
    }
}

fn begin(link: &Arc<ServerHandle>, uri: &str, watching: Arc<ClientWatching>, at: &WatchLocation) {
    let id = link.watch(uri, watching);
    *at.lock().unwrap_or_else(PoisonError::into_inner) = Some((link.clone(), id));
}

/// A resource that is heard of: [`Client::hear`]. Dropping it ends the subscription.
#[derive(Debug)]
#[must_use = "dropping it ends the subscription"]
pub struct Hearing {
    link: Arc<ServerHandle>,
    id: u64,
}

impl Drop for Hearing {
    fn drop(&mut self) {
        self.link.unwatch(self.id);
    }
}

/// A stream of list changes: [`Client::list_changes`].
#[derive(Debug)]
pub struct ListChanges(broadcast::Receiver<Arc<str>>);

impl ListChanges {
    /// The name of the next server whose list has changed; `None` once the client is closed. A slow caller misses
    /// changes that are followed by later ones.
    pub async fn next(&mut self) -> Option<Arc<str>> {
        loop {
            match self.0.recv().await {
                Ok(server) => return Some(server),
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

impl fmt::Debug for ListScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListScope")
            .field("server", &self.server)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.links.iter().map(|link| &link.name)).finish()
    }
}
