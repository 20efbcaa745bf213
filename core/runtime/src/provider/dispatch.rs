//! Dispatch of requests to providers, before the event handler of the runtime.

use super::mounts::Mounts;
use crate::transport::{EventHandler, Peer};
use mcp_resources_engine::connection::{Event, Events, RequestOutcome};
use std::fmt;
use std::sync::Arc;

/// Passes requests to providers, on the thread that read the request or on a worker, without a language's event loop.
/// All other events go to another runtime.
pub struct Providers<H> {
    mounts: Arc<Mounts>,
    rest: Arc<H>,
}

impl<H: EventHandler> Providers<H> {
    /// Puts the providers before the runtime `rest`, which gets their log messages unless another one does.
    pub fn before(mounts: Arc<Mounts>, rest: Arc<H>) -> Arc<Self> {
        let own = Arc::new(Self { mounts, rest });
        let event_handler: Arc<dyn EventHandler> = own.clone();
        own.mounts.log.follow_first(&event_handler);
        own
    }
}

impl Mounts {
    /// Passes to providers those of `events` that are theirs, and reports watches to them. Returns the other events.
    pub(super) fn take<'m>(&self, peer: &Peer, events: Events<'m>) -> Events<'m> {
        if !self.is_used() && !events.iter().any(|event| matches!(event, Event::Interest)) {
            return events;
        }
        let mut todo = events;
        let mut rest = Events::new();
        todo.reverse();
        while let Some(event) = todo.pop() {
            if matches!(event, Event::Interest) {
                self.log.follow(peer.event_handler());
                self.settle_interest();
                continue;
            }
            if self.settle_ask(peer.connection(), &event) {
                continue;
            }
            let Some(part) = self.part(&event) else {
                rest.push(event);
                continue;
            };
            self.log.follow_first(peer.event_handler());
            let outcome: RequestOutcome<'static> = self.answer(&part, peer, event);
            if let Some(misuse) = &outcome.misuse {
                peer.misuse(misuse);
            }
            for event in outcome.events.into_iter().rev() {
                todo.push(event);
            }
        }
        rest
    }
}

impl<H: EventHandler> EventHandler for Providers<H> {
    fn take<'m>(&self, peer: &Peer, events: Events<'m>) -> Events<'m> {
        self.rest.take(peer, self.mounts.take(peer, events))
    }

    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let rest = self.mounts.take(peer, events);
        if !rest.is_empty() {
            self.rest.handle(peer, rest);
        }
    }

    fn appended(&self, peer: &Peer) {
        self.rest.appended(peer);
    }

    fn pends(&self, peer: &Peer) {
        self.rest.pends(peer);
    }

    fn settled(&self, peer: &Peer) {
        self.rest.settled(peer);
    }

    fn warn(&self, what: &str) {
        self.rest.warn(what);
    }

    fn report(&self, what: &str) {
        self.rest.report(what);
    }

    fn misuse(&self, what: &str) {
        self.rest.misuse(what);
    }
}

impl<H> fmt::Debug for Providers<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers").field("mounts", &self.mounts).finish_non_exhaustive()
    }
}
