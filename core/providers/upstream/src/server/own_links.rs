//! Connections of single clients to a server of an older revision: it may ask its client questions while it works on a call.
//!
//! ```text
//!   lists, reads, watches of all clients ──▶ the shared connection, on which nothing is asked
//!   the calls of one client ──▶ its own connection ──▶ questions and log messages go to that client
//! ```
//!
//! Law: a question goes only to the client whose calls its connection carries, with the capabilities of that client, and is
//! withdrawn when none of them runs any more.

use crate::lock::lock;
use crate::wire::{self, LogFn, ServerLog};
use mcp_resources_client::{Client, ServerAbout};
use mcp_resources_engine::client::ClientQuestion;
use mcp_resources_engine::connection::LogLevel;
use mcp_resources_runtime::provider::{AskedClient, AskedSession};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore, oneshot, watch};
use tokio::time::Instant;

/// Most connections of single clients to one server over HTTP, and most processes of one server with a command.
const MOST_LINKS: usize = 200;
const MOST_PROCESSES: usize = 20;

/// The connections of single clients to one server.
#[derive(Debug)]
pub(crate) struct OwnLinks {
    pub(super) by_session: HashMap<AskedSession, Arc<OwnLink>>,
    most: usize,
    places: Arc<Semaphore>,
}

/// The connection of one client.
pub(crate) struct OwnLink {
    pub(super) client: Client,
    calls: Arc<LinkCalls>,
    places: Arc<Semaphore>,
    /// Held until the connection has ended, which takes a process its time.
    place: OnceCell<OwnedSemaphorePermit>,
    used: Mutex<Instant>,
    /// The least severe level that the server was asked for, and the connection in which it was.
    level: Mutex<Option<(LogLevel, Arc<ServerAbout>)>>,
}

/// The calls in flight on a connection, by number.
#[derive(Debug)]
pub(super) struct LinkCalls {
    calls: Mutex<BTreeMap<u64, LinkCall>>,
    count: watch::Sender<usize>,
}

/// A call in flight.
struct LinkCall {
    asked: AskedClient,
    log: Option<LogFn>,
}

/// A call on the connection of its client, until it is dropped.
pub(crate) struct OwnCall {
    link: Arc<OwnLink>,
    number: u64,
}

impl OwnLinks {
    pub(super) fn new(is_remote: bool) -> Self {
        let most = if is_remote { MOST_LINKS } else { MOST_PROCESSES };
        Self { by_session: HashMap::new(), most, places: Arc::new(Semaphore::new(most)) }
    }

    /// One for each connection that has not ended.
    pub(super) fn places(&self) -> Arc<Semaphore> {
        self.places.clone()
    }

    /// Takes the connection that has been unused for the longest time, if there is no room for one more.
    ///
    /// # Errors
    /// The limit, if all are in use.
    pub(super) fn make_room(&mut self) -> Result<Option<Arc<OwnLink>>, usize> {
        if self.by_session.len() < self.most {
            return Ok(None);
        }
        self.take_unused().map(Some).ok_or(self.most)
    }

    fn take_unused(&mut self) -> Option<Arc<OwnLink>> {
        let unused = self.by_session.iter().filter(|(_, link)| link.calls.is_idle());
        let oldest = unused.min_by_key(|(_, link)| *lock(&link.used)).map(|(session, _)| session.clone());
        oldest.and_then(|session| self.by_session.remove(&session))
    }
}

impl OwnLink {
    pub(super) fn new(client: Client, calls: Arc<LinkCalls>, places: Arc<Semaphore>) -> Self {
        let used = Mutex::new(Instant::now());
        Self { client, calls, places, place: OnceCell::new(), used, level: Mutex::default() }
    }

    /// Waits until the server may be started or connected to: until a connection that has made room has ended.
    pub(super) async fn take_place(&self) {
        let free = || self.places.clone().acquire_owned();
        // Fails only if the semaphore is closed, and it never is.
        let _ = self.place.get_or_try_init(free).await;
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Asks the server for log messages of this level, unless it was asked before, or has none.
    pub(crate) async fn wants(&self, level: LogLevel) {
        let Ok(about) = self.client.about().await else { return };
        if about.revision.is_modern() || !about.declares("logging") {
            return;
        }
        let before = lock(&self.level).replace((level, about.clone()));
        if before.is_none_or(|(known, then)| known != level || !Arc::ptr_eq(&then, &about)) {
            let params = format!("{{\"level\":{}}}", wire::quoted(level.as_str()));
            // A server that refuses it sends what it likes.
            let _ = self.client.request("logging/setLevel", &params).await;
        }
    }

    /// Whether it was unused for so long.
    pub(super) fn is_unused(&self, idle: Duration) -> bool {
        self.calls.is_idle() && lock(&self.used).elapsed() >= idle
    }
}

impl OwnCall {
    pub(super) fn begin(link: Arc<OwnLink>, asked: AskedClient, log: Option<LogFn>) -> Self {
        let mut calls = lock(&link.calls.calls);
        let number = calls.last_key_value().map_or(0, |(last, _)| last + 1);
        calls.insert(number, LinkCall { asked, log });
        link.calls.count.send_replace(calls.len());
        drop(calls);
        Self { link, number }
    }

    pub(crate) fn link(&self) -> &OwnLink {
        &self.link
    }
}

impl Drop for OwnCall {
    fn drop(&mut self) {
        let mut calls = lock(&self.link.calls.calls);
        calls.remove(&self.number);
        self.link.calls.count.send_replace(calls.len());
        drop(calls);
        *lock(&self.link.used) = Instant::now();
    }
}

impl LinkCalls {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { calls: Mutex::default(), count: watch::channel(0).0 })
    }

    fn is_idle(&self) -> bool {
        lock(&self.calls).is_empty()
    }

    /// Asks the client, through the newest call that can carry the question.
    pub(super) async fn ask(&self, question: ClientQuestion) -> Result<String, String> {
        let params = wire::without_progress(&question.params);
        let clients: Vec<AskedClient> =
            lock(&self.calls).values().rev().map(|call| call.asked.clone()).collect();
        let mut refused = "the client has no call in progress".to_owned();
        for asked in clients {
            let (sender, answer) = oneshot::channel();
            // Withdraws the question when the call ends.
            let _open = match asked.ask(&question.method, &params, move |answer| drop(sender.send(answer))) {
                Ok(open) => open,
                Err(error) => {
                    refused = error.to_string();
                    continue;
                }
            };
            return match self.while_calls_run(answer).await {
                Some(Ok(Some(Ok(result)))) => Ok(result),
                Some(Ok(Some(Err(error)))) => Err(wire::message_of(&error)),
                Some(Ok(None) | Err(_)) => Err("the client has disconnected".into()),
                None => Err("the call has ended".into()),
            };
        }
        Err(refused)
    }

    /// The result of `work`; `None` if no call is left first.
    async fn while_calls_run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut count = self.count.subscribe();
        tokio::select! {
            done = work => Some(done),
            _ = count.wait_for(|count| *count == 0) => None,
        }
    }

    /// Passes a log message of the server to the client, with its newest call.
    pub(super) fn log(&self, params: &str) {
        let log = lock(&self.calls).values().rev().find_map(|call| call.log.clone());
        if let Some((log, message)) = log.zip(ServerLog::parse(params)) {
            log(&message);
        }
    }
}

impl fmt::Debug for OwnLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnLink").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl fmt::Debug for LinkCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkCall").field("asked", &self.asked).finish_non_exhaustive()
    }
}

impl fmt::Debug for OwnCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnCall").field("number", &self.number).finish_non_exhaustive()
    }
}
