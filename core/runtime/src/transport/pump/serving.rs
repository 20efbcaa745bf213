//! The pipes and endpoints of one server, and the side that reads and writes for an endpoint.

use crate::sync::Mutex;
use crate::transport::Pipe;
use crate::transport::http::HttpServer;
use mcp_resources_engine::engine::TimerRegistration;
use mcp_resources_engine::http::Endpoint;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_engine::now::Millis;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Weak};
use std::task::Waker;

/// The pipes and endpoints of one server, for ending their listens. Holds weak references only.
#[derive(Default)]
pub struct ServingRegistry {
    pipes: Mutex<HashMap<ConnectionId, Weak<Pipe>>>,
    endpoints: Mutex<Vec<Weak<Endpoint>>>,
}

/// The side that reads and writes for an endpoint.
#[derive(Clone, Debug)]
pub enum HttpSide {
    /// A server in the event loop's language, on its thread.
    Loop(Arc<Endpoint>),
    /// Threads of this crate.
    Native(Arc<HttpServer>),
}

impl ServingRegistry {
    /// Registers a pipe.
    pub fn join(&self, pipe: &Arc<Pipe>) {
        self.pipes.lock().insert(pipe.id(), Arc::downgrade(pipe));
    }

    /// Removes a pipe.
    pub fn leave(&self, id: ConnectionId) {
        self.pipes.lock().remove(&id);
    }

    /// Registers an endpoint.
    pub fn serve(&self, endpoint: &Arc<Endpoint>) {
        let mut endpoints = self.endpoints.lock();
        endpoints.retain(|endpoint| endpoint.strong_count() > 0);
        endpoints.push(Arc::downgrade(endpoint));
    }

    /// Ends every open listen with its result.
    pub fn shutdown(&self) {
        let pipes: Vec<_> = self.pipes.lock().values().filter_map(Weak::upgrade).collect();
        pipes.iter().for_each(|pipe| pipe.shutdown());
        let endpoints: Vec<_> = self.endpoints.lock().iter().filter_map(Weak::upgrade).collect();
        endpoints.iter().for_each(|endpoint| endpoint.shutdown());
    }
}

impl HttpSide {
    /// The endpoint's rules and sessions.
    pub fn endpoint(&self) -> &Arc<Endpoint> {
        match self {
            Self::Loop(endpoint) => endpoint,
            Self::Native(server) => server.endpoint(),
        }
    }

    /// The native server, if it is one.
    pub fn native(&self) -> Option<&Arc<HttpServer>> {
        match self {
            Self::Loop(_) => None,
            Self::Native(server) => Some(server),
        }
    }

    /// Whether the event loop must run the timers, and check its queue before it sleeps. Native threads do so
    /// themselves.
    pub fn is_on_loop(&self) -> bool {
        matches!(self, Self::Loop(_))
    }

    /// Wakes `waker` when the next deadline becomes earlier, if the loop must run the timers.
    pub fn register_timer(&self, waker: Waker) -> Option<TimerRegistration> {
        self.is_on_loop().then(|| self.endpoint().engine().register_timer(waker))
    }

    /// The deadlines of the sessions and of the hub, if the loop must run the timers.
    pub fn deadlines(&self) -> [Option<Millis>; 2] {
        match self {
            Self::Loop(endpoint) => [endpoint.deadline(), endpoint.engine().deadline()],
            Self::Native(_) => [None, None],
        }
    }
}

impl fmt::Debug for ServingRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Serving").field("pipes", &self.pipes.lock().len()).finish_non_exhaustive()
    }
}
