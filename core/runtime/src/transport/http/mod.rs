//! The native HTTP server: sockets, time-outs and shutdown around the rules of [`mcp_resources_engine::http`].
//!
//! ```text
//!  accept ─▶ hyper reads a head ─▶ rules ─▶ token ─▶ body ─▶ Endpoint::open ─┬─▶ the engine answers: written at once
//!                                                                             └─▶ EventHandler::handle, on hyper's task
//!                                    any thread: Exchange::finish ─▶ wakes the task, which writes the answer
//! ```
//!
//! Law: it passes on [`Turn`](mcp_resources_engine::http::Turn)s and knows nothing about the protocol. A request that
//! the engine can answer never leaves the task that read it.

mod body;
mod check;
mod collect;
#[cfg(feature = "auth-fetch")]
mod fetch;
mod identity;
mod inbox;
#[cfg(feature = "auth")]
mod jwks;
#[cfg(feature = "auth")]
mod jwt;
mod listener;
mod listening;
mod options;
mod parked;
mod phase;
mod places;
mod respond;
mod socket;
mod static_tokens;
mod thread;
mod timer_task;
#[cfg(feature = "tls")]
mod tls;
mod wire;

pub use crate::transport::EventHandler;
pub use body::ResponseBody;
// Hidden, for bindings, whose own threads poll.
#[doc(hidden)]
pub use check::TokenCheck;
pub use identity::ProxyIdentity;
pub use inbox::{InboxItem, PeerReach, RequestInbox, TokenReply, WakeLoop};
#[cfg(feature = "auth")]
pub use jwt::{JwksError, JwtVerifier};
pub use listener::ServerSocket;
pub use listening::listen;
pub(crate) use listening::listen_on;
pub use options::{HttpOptions, RouteByPrincipal, Verified, Verifier, Verifying};
pub use respond::Disconnected;
pub use static_tokens::StaticTokens;
pub use thread::Running;
#[cfg(feature = "tls")]
pub use tls::Tls;

use crate::transport::{EngineClock, Peer};
use mcp_resources_engine::engine::Engine;
use mcp_resources_engine::http::{Endpoint, Exchange, RulesError, SESSION_ID_BYTES, SessionIds};
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Now;
use phase::Phases;
use std::fmt;
use std::sync::Arc;
use timer_task::TimerTask;

/// One HTTP endpoint of a server. Shared by its listeners and by other callers that pass requests to it; every method
/// may be called from any thread.
pub struct HttpServer {
    endpoint: Arc<Endpoint>,
    clock: Arc<EngineClock>,
    event_handler: Arc<dyn EventHandler>,
    verifier: Option<Arc<dyn Verifier>>,
    identity: Option<ProxyIdentity>,
    route: Option<RouteByPrincipal>,
    timer_task: TimerTask,
    phases: Phases,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl HttpServer {
    /// Makes an endpoint of `engine`. `clock` must be the clock of the engine's other transports.
    ///
    /// # Errors
    /// [`RulesError`] if a rule is invalid.
    pub fn new(
        engine: &Arc<Engine>,
        clock: Arc<EngineClock>,
        options: HttpOptions,
        event_handler: Arc<dyn EventHandler>,
    ) -> Result<Arc<Self>, RulesError> {
        let endpoint = Endpoint::new(engine.clone(), options.rules, session_ids())?;
        Ok(Arc::new(Self {
            endpoint,
            clock,
            event_handler,
            verifier: options.verifier,
            identity: options.identity,
            route: options.route,
            timer_task: TimerTask::default(),
            phases: Phases::default(),
            #[cfg(feature = "tls")]
            tls: options.tls,
        }))
    }

    /// The endpoint's rules and sessions.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Updates the timers after a request was sent to a client, which has a deadline.
    pub fn look(&self) {
        self.timer_task.look(self);
    }

    /// Shuts this endpoint down. It accepts no new connections and refuses new requests (503); listens end with their
    /// results, and so do notification streams. Requests in flight get
    /// [`Limits::grace`](mcp_resources_engine::limits::Limits::grace); then every connection is closed and
    /// [`HttpServer::serve`] returns.
    pub fn shutdown(&self) {
        if self.phases.drain() {
            self.endpoint.shutdown();
        }
    }

    fn peer(&self, connection: ConnectionId, exchange: Option<&Exchange>) -> Peer {
        Peer::exchange(connection, exchange.cloned(), self.clock.clone(), self.event_handler.clone())
    }

    fn now(&self) -> Now {
        self.clock.now()
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// A source of session ids that uses the system's randomness.
pub fn session_ids() -> SessionIds {
    Box::new(|| {
        let mut id = [0; SESSION_ID_BYTES];
        getrandom::fill(&mut id).is_ok().then_some(id)
    })
}
