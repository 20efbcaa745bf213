//! One stream of server-sent events for each open page: changes of watched resources and of lists, lost servers.
//!
//! ```text
//!   hello {stream, servers}    server {server, lost}    lists {server}    changed {server, uri, …}    ended {uri, error}
//! ```
//!
//! Law: a page that reads slowly gets the newest contents of each resource; nothing else is kept for it.

use super::{BrowsedServers, api, contents};
use hyper::body::Bytes;
use mcp_resources_client::{Change, ClientError, ListScope};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio::task::AbortHandle;

/// Most streams; a further one ends the oldest.
const MOST_STREAMS: usize = 8;
/// Most resources that one page watches.
const MOST_WATCHES: usize = 32;
/// Most events that wait for a page. One may have as much as an answer to a read.
const MOST_EVENTS: usize = 4;
/// Most reports about connections that wait for a stream.
const MOST_REPORTS: usize = 64;
/// The time after which an idle stream sends a comment, so that a closed page is noticed.
const PING: Duration = Duration::from_secs(15);

/// The open streams, and the state of each server's connection.
pub(super) struct EventStreams {
    table: Mutex<StreamTable>,
    connections: Mutex<BTreeMap<String, ConnectionState>>,
    reports: broadcast::Sender<Bytes>,
}

/// The state of a server's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ConnectionState {
    NotYet,
    Connected,
    Lost(String),
}

#[derive(Default)]
struct StreamTable {
    last: u64,
    open: VecDeque<PageStream>,
}

/// The stream of one page. Dropping it ends its watches, and then the stream.
struct PageStream {
    id: u64,
    sender: mpsc::Sender<Bytes>,
    watches: HashMap<WatchedResource, AbortHandle>,
    follower: AbortHandle,
}

/// A server and a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchedResource {
    pub(super) server: String,
    pub(super) uri: String,
}

impl Drop for PageStream {
    fn drop(&mut self) {
        self.watches.values().for_each(AbortHandle::abort);
        self.follower.abort();
    }
}

impl EventStreams {
    pub(super) fn new<'n>(servers: impl Iterator<Item = &'n str>) -> Self {
        let connections = servers.map(|name| (name.to_owned(), ConnectionState::NotYet)).collect();
        let (reports, _) = broadcast::channel(MOST_REPORTS);
        Self { table: Mutex::default(), connections: Mutex::new(connections), reports }
    }

    /// Reports a connection that is made, or lost for a reason.
    pub(super) fn connection(&self, server: &str, lost: Option<&str>) {
        let state = lost.map_or(ConnectionState::Connected, |reason| ConnectionState::Lost(reason.into()));
        let before = lock(&self.connections).insert(server.into(), state.clone());
        if before.as_ref() != Some(&state) {
            // Fails if no page is open.
            let _ = self.reports.send(event("server", &json!({ "server": server, "lost": lost })));
        }
    }

    /// Opens a stream.
    pub(super) fn open(self: &Arc<Self>, shared: &Arc<BrowsedServers>) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(MOST_EVENTS);
        let reports = self.reports.subscribe();
        let mut table = lock(&self.table);
        table.last += 1;
        let id = table.last;
        // The channel is empty.
        let _ = sender.try_send(event("hello", &json!({ "stream": id, "servers": self.servers(shared) })));
        let streams = self.clone();
        let follow = follow(shared.clone(), sender.clone(), reports);
        let follower = tokio::spawn(async move {
            follow.await;
            lock(&streams.table).open.retain(|stream| stream.id != id);
        });
        let follower = follower.abort_handle();
        table.open.push_back(PageStream { id, sender, watches: HashMap::new(), follower });
        if table.open.len() > MOST_STREAMS {
            table.open.pop_front();
        }
        receiver
    }

    /// Starts a watch on a stream, unless there is one.
    ///
    /// # Errors
    /// A sentence if the stream has ended, or has too many watches.
    pub(super) fn watch(
        &self,
        shared: &Arc<BrowsedServers>,
        stream: u64,
        watched: WatchedResource,
    ) -> Result<(), &'static str> {
        let mut table = lock(&self.table);
        let own =
            table.open.iter_mut().find(|own| own.id == stream).ok_or("the stream of events has ended")?;
        own.watches.retain(|_, task| !task.is_finished());
        if own.watches.contains_key(&watched) {
            return Ok(());
        }
        if own.watches.len() >= MOST_WATCHES {
            return Err("the page watches too many resources; it must end a watch first");
        }
        let task = tokio::spawn(report_changes(shared.clone(), own.sender.clone(), watched.clone()));
        own.watches.insert(watched, task.abort_handle());
        Ok(())
    }

    /// Ends a watch.
    pub(super) fn unwatch(&self, stream: u64, watched: &WatchedResource) {
        let mut table = lock(&self.table);
        let own = table.open.iter_mut().find(|own| own.id == stream);
        if let Some(task) = own.and_then(|own| own.watches.remove(watched)) {
            task.abort();
        }
    }

    /// The servers and their states, for the page.
    fn servers(&self, shared: &BrowsedServers) -> Value {
        let one = |(name, state): (&String, &ConnectionState)| {
            let lost = match state {
                ConnectionState::Lost(reason) => Some(reason),
                _ => None,
            };
            let is_connected = *state == ConnectionState::Connected;
            let is_restricted = shared.restricted.contains(name);
            json!({ "name": name, "isConnected": is_connected, "lost": lost, "isRestricted": is_restricted })
        };
        lock(&self.connections).iter().map(one).collect()
    }
}

/// Sends what concerns every page, until the page is closed.
async fn follow(
    shared: Arc<BrowsedServers>,
    sender: mpsc::Sender<Bytes>,
    mut reports: broadcast::Receiver<Bytes>,
) {
    let mut lists = shared.client.list_changes();
    loop {
        let next = tokio::select! {
            server = lists.next() => match server {
                Some(server) => event("lists", &json!({ "server": *server })),
                None => return,
            },
            report = reports.recv() => match report {
                Ok(report) => report,
                // The page knows an older state until the next report.
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            () = tokio::time::sleep(PING) => Bytes::from_static(b": still here\n\n"),
            () = sender.closed() => return,
        };
        if sender.send(next).await.is_err() {
            return;
        }
    }
}

async fn report_changes(shared: Arc<BrowsedServers>, sender: mpsc::Sender<Bytes>, watched: WatchedResource) {
    let scope = ListScope { server: Some(watched.server.clone()), ..ListScope::default() };
    let mut watch = shared.client.with(scope).watch(&watched.uri);
    while let Some(change) = watch.next().await {
        if sender.send(changed(&watched, change)).await.is_err() {
            return;
        }
    }
}

fn changed(watched: &WatchedResource, change: Result<Change, ClientError>) -> Bytes {
    let WatchedResource { server, uri } = watched;
    match change {
        Ok(change) => {
            let contents = change.contents.map(|all| contents::shown(&change.uri, &all));
            let about = json!({ "server": server, "uri": uri, "changed": change.uri, "contents": contents });
            event("changed", &about)
        }
        Err(error) => {
            event("ended", &json!({ "server": server, "uri": uri, "error": api::error_json(&error) }))
        }
    }
}

/// An event. JSON has no line break.
fn event(name: &str, data: &Value) -> Bytes {
    format!("event: {name}\ndata: {data}\n\n").into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
