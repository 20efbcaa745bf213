//! The state shared by all peers of one server, and all of its clones.

use super::answer::{Handled, HandlerError};
use super::ask::HandlerAsks;
use super::changes::ServerChanges;
use super::handlers::Functions;
use super::link::HandlerLink;
use super::pipe::signal;
use crate::provider::WatchFn;
use crate::registry::Registry;
use crate::sync::Mutex;
#[cfg(feature = "http")]
use crate::transport::http::{HttpOptions, HttpServer};
use crate::transport::{EngineClock, Wake};
use mcp_resources_engine::connection::{Answer, Contents, ReadResult, RequestToken};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::hub::{ConnectionId, ListKinds};
use mcp_resources_engine::now::{Millis, Now};
use mcp_resources_engine::resource::RegistrationError;
use std::any::Any;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
#[cfg(feature = "http")]
use std::sync::OnceLock;
use std::sync::{Arc, MutexGuard, Weak};

/// An event for the server's log.
#[derive(Debug)]
#[non_exhaustive]
pub enum Diagnostic<'a> {
    /// A registration, or a provider, may behave unexpectedly.
    Warning(&'a str),
    /// A handler failed with an error of its own. The client only got a general error.
    Failed(&'a (dyn Error + Send + Sync + 'static)),
    /// A handler panicked; the panic hook has already printed the location.
    Panicked,
    /// A handler's result does not fit its request.
    Misuse(&'a str),
    /// A request was refused that an option would allow.
    Refused(&'a str),
}

impl fmt::Display for Diagnostic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Warning(text) => write!(f, "warning: {text}"),
            Self::Failed(error) => {
                write!(f, "a handler failed: {error}")?;
                let mut source = error.source();
                while let Some(error) = source {
                    write!(f, ": {error}")?;
                    source = error.source();
                }
                Ok(())
            }
            Self::Panicked => f.write_str("a handler panicked"),
            Self::Misuse(text) => write!(f, "wrong answer: {text}"),
            Self::Refused(text) => f.write_str(text),
        }
    }
}

pub(super) type Diagnose = Arc<dyn Fn(&Diagnostic<'_>) + Send + Sync>;
pub(super) type Redact =
    Arc<dyn Fn(&str, Contents<'static>) -> Result<Contents<'static>, HandlerError> + Send + Sync>;

/// The state shared by all peers of one server.
pub(super) struct ServerState {
    pub(super) engine: Arc<Engine>,
    pub(super) clock: Arc<EngineClock>,
    pub(super) registry: Registry<Functions>,
    diagnose: Diagnose,
    redact: Option<Redact>,
    is_audited: bool,
    peers: Mutex<HashMap<ConnectionId, Arc<Wake>>>,
    tasks: Mutex<Tasks>,
    pub(super) asks: HandlerAsks,
    /// Things that end with the server.
    kept: Mutex<Vec<Box<dyn Any + Send>>>,
    #[cfg(feature = "http")]
    endpoints: Mutex<Vec<Weak<HttpServer>>>,
    /// The options with which endpoints begin.
    #[cfg(feature = "http")]
    http: OnceLock<HttpOptions>,
}

pub(super) type Tasks = HashMap<(ConnectionId, RequestToken), Weak<HandlerLink>>;

impl ServerState {
    pub(super) fn new(
        registry: Registry<Functions>,
        diagnose: Diagnose,
        watch: Option<WatchFn>,
        redact: Option<Redact>,
        is_audited: bool,
    ) -> Result<Arc<Self>, RegistrationError> {
        if let Some(watch) = watch {
            registry.mounts().watch_with(watch);
        }
        let log = diagnose.clone();
        registry.mounts().log_with(Box::new(move |what| log(&Diagnostic::Warning(what))));
        if let Some(redact) = &redact {
            let redact = redact.clone();
            let diagnose = diagnose.clone();
            registry.mounts().redact_with(Arc::new(move |_, uri, answer| {
                redacted(&redact, uri, answer).unwrap_or_else(|error| failed(&diagnose, error))
            }));
        }
        Ok(Arc::new(Self {
            engine: registry.engine()?,
            clock: registry.clock().clone(),
            registry,
            diagnose,
            redact,
            is_audited,
            peers: Mutex::default(),
            tasks: Mutex::default(),
            asks: HandlerAsks::default(),
            kept: Mutex::default(),
            #[cfg(feature = "http")]
            endpoints: Mutex::default(),
            #[cfg(feature = "http")]
            http: OnceLock::new(),
        }))
    }

    pub(super) fn diagnose(&self, diagnostic: &Diagnostic<'_>) {
        (self.diagnose)(diagnostic);
    }

    /// Whether contents are changed before they are encoded.
    pub(super) fn redacts(&self) -> bool {
        self.redact.is_some()
    }

    /// The contents of a read of `uri` after the server's redaction.
    pub(super) fn redacted(&self, uri: &str, answer: Answer<'static>) -> Handled {
        match &self.redact {
            Some(redact) => redacted(redact, uri, answer),
            None => Ok(answer),
        }
    }

    /// The answer to a request whose handler failed, after reporting the reason.
    pub(super) fn failed(&self, error: HandlerError) -> Answer<'static> {
        failed(&self.diagnose, error)
    }

    /// Waits a short time until all current records are written.
    pub(super) fn flush_audit(&self) {
        self.registry.flush_audit();
    }

    /// Like [`ServerState::flush_audit`], at the end of a transport, on a thread that may block.
    pub(super) async fn audited(self: &Arc<Self>) {
        if self.is_audited {
            let shared = Arc::clone(self);
            // The closure does not panic.
            let _ = tokio::task::spawn_blocking(move || shared.flush_audit()).await;
        }
    }

    /// The handlers that run as tasks, by request.
    pub(super) fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock()
    }

    /// Applies all changes, or none, and announces them.
    pub(super) fn apply(&self, changes: ServerChanges) -> Result<(), RegistrationError> {
        let changes = changes.prepare(self.redact.is_some())?;
        let warnings = self.registry.publish(changes)?;
        for warning in &warnings {
            self.diagnose(&Diagnostic::Warning(warning));
        }
        Ok(())
    }

    /// Marks a resource as updated.
    pub(super) fn updated(&self, uri: &str) -> Result<(), RegistrationError> {
        self.engine.updated(uri, self.clock.now())
    }

    /// Marks a resource as updated for one principal.
    pub(super) fn updated_for(&self, principal: &str, uri: &str) -> Result<(), RegistrationError> {
        self.engine.updated_for(principal, uri, self.clock.now())
    }

    /// Marks lists as changed.
    pub(super) fn list_changed(&self, lists: ListKinds) {
        self.engine.list_changed(lists, self.clock.now());
    }

    /// Runs the engine's timers, and returns when they are due again.
    pub(super) fn tick(&self, now: Now) -> Option<Millis> {
        let mut deadline = self.engine.deadline();
        if deadline.is_some_and(|deadline| deadline <= now.tick) {
            self.engine.tick(now);
            deadline = self.engine.deadline();
        }
        deadline
    }

    /// Revokes the tokens of a principal.
    pub(super) fn revoke(&self, principal: &str) {
        self.engine.revoke(principal);
    }

    /// Shuts down all transports: each peer ends its listens, then itself.
    pub(super) fn shutdown(&self) {
        for wake in self.peers().values() {
            wake.set(signal::STOP);
        }
        #[cfg(feature = "http")]
        for endpoint in self.endpoints() {
            endpoint.shutdown();
        }
    }

    /// Keeps something until the server is dropped.
    pub(super) fn keep(&self, part: Box<dyn Any + Send>) {
        self.kept.lock().push(part);
    }

    /// Sets the options with which endpoints begin, once.
    #[cfg(feature = "http")]
    pub(super) fn begin_http_with(&self, options: HttpOptions) {
        // Only the first options are used.
        let _ = self.http.set(options);
    }

    /// The options with which endpoints begin.
    #[cfg(feature = "http")]
    pub(super) fn http_options(&self) -> HttpOptions {
        self.http.get().cloned().unwrap_or_default()
    }

    /// Registers an HTTP endpoint that ends with the server.
    #[cfg(feature = "http")]
    pub(super) fn listens(&self, endpoint: &Arc<HttpServer>) {
        let mut endpoints = self.endpoints.lock();
        endpoints.retain(|endpoint| endpoint.strong_count() > 0);
        endpoints.push(Arc::downgrade(endpoint));
    }

    #[cfg(feature = "http")]
    fn endpoints(&self) -> Vec<Arc<HttpServer>> {
        let endpoints = self.endpoints.lock();
        endpoints.iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn joined(&self, id: ConnectionId, wake: Arc<Wake>) {
        self.peers().insert(id, wake);
    }

    pub(super) fn left(&self, id: ConnectionId) {
        self.peers().remove(&id);
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<ConnectionId, Arc<Wake>>> {
        self.peers.lock()
    }
}

fn redacted(redact: &Redact, uri: &str, answer: Answer<'static>) -> Handled {
    let answer = match answer {
        Answer::Gathered(gather) => gather.into_answer(),
        other => other,
    };
    let Answer::Contents(ReadResult { contents, cache }) = answer else { return Ok(answer) };
    let each = contents.into_iter().map(|entry| {
        let own = entry.uri.clone();
        // A function that searches for a text must get every text in the same variant.
        let plain = entry.body.into_plain().ok_or_else(|| HandlerError::new("a blob is not base64"))?;
        redact(own.as_deref().unwrap_or(uri), Contents { body: plain.into(), ..entry })
    });
    Ok(Answer::Contents(ReadResult { contents: each.collect::<Result<_, _>>()?, cache }))
}

fn failed(diagnose: &Diagnose, error: HandlerError) -> Answer<'static> {
    if let Some(cause) = error.cause() {
        diagnose(&Diagnostic::Failed(cause));
    }
    error.into_answer()
}
