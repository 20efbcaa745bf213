//! A pipe as a runtime for providers' threads, where any thread may write.
//!
//! Law: nothing here runs code of the loop's language, or waits for it.

use super::Pump;
use crate::transport::http::PeerReach;
use crate::transport::{EventHandler, Peer};
use mcp_resources_engine::connection::Events;
use std::fmt;
use std::sync::{Arc, Weak};

/// A pipe as a runtime. Holds weak references only: answers to a client that is gone are dropped.
pub struct PumpHandler<X> {
    pump: Weak<Pump>,
    reach: Arc<PeerReach<X>>,
}

impl<X> PumpHandler<X> {
    /// Adds events to the inbox of `reach`.
    pub fn new(pump: &Arc<Pump>, reach: Arc<PeerReach<X>>) -> Self {
        Self { pump: Arc::downgrade(pump), reach }
    }
}

impl<X: Send + 'static> EventHandler for PumpHandler<X> {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        self.reach.handle(peer, events);
    }

    fn appended(&self, _peer: &Peer) {
        if let Some(pump) = self.pump.upgrade()
            && !pump.will_write()
        {
            pump.write_elsewhere();
        }
    }

    /// The loop checks deadlines after each of its turns.
    fn pends(&self, _peer: &Peer) {
        if let Some(pump) = self.pump.upgrade()
            && !pump.is_on_loop()
        {
            pump.rearm_elsewhere();
        }
    }

    fn misuse(&self, what: &str) {
        self.reach.misuse(what);
    }
}

impl<X> fmt::Debug for PumpHandler<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PipeHandler").field(&self.pump).finish()
    }
}
