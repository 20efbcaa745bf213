//! Answers from other threads, such as workers of providers, to clients whose output the event loop writes: they wake
//! the loop.
//!
//! Law: nothing here enters JavaScript, or waits for it.

use crate::calls::woken::Woken;
use mcp_resources_engine::connection::Events;
use mcp_resources_engine::hub::ConnectionId;
use mcp_resources_runtime::provider::{Mounts, Providers};
use mcp_resources_runtime::transport::http::{InboxItem, RequestInbox};
use mcp_resources_runtime::transport::{EventHandler, Peer};
use std::sync::{Arc, Weak};
use std::task::Wake;

/// The way of such answers to one client.
pub(crate) struct Elsewhere {
    woken: Arc<Woken>,
    /// It holds nothing: answers of a client that is gone go nowhere.
    inbox: Weak<RequestInbox<DeliveryReady>>,
    /// `None` for the clients of an endpoint.
    pipe: Option<ConnectionId>,
}

/// There is something to deliver on the response with this number.
pub(crate) struct DeliveryReady(pub(crate) f64);

/// A waker of one response, on any thread.
pub(crate) struct ResponseWaker {
    /// The inbox of its driver.
    pub(crate) inbox: Weak<RequestInbox<DeliveryReady>>,
    /// The loop of its server.
    pub(crate) woken: Arc<Woken>,
    /// Its number.
    pub(crate) response: f64,
}

impl Wake for ResponseWaker {
    fn wake(self: Arc<Self>) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.leave_quietly(InboxItem::Own(DeliveryReady(self.response)));
            self.woken.schedule();
        }
    }
}

impl Elsewhere {
    /// Behind the providers of `mounts`, which answer first.
    pub(crate) fn behind(
        mounts: &Arc<Mounts>,
        woken: &Arc<Woken>,
        inbox: &Arc<RequestInbox<DeliveryReady>>,
        pipe: Option<ConnectionId>,
    ) -> Arc<dyn EventHandler> {
        let own = Self { woken: woken.clone(), inbox: Arc::downgrade(inbox), pipe };
        Providers::before(mounts.clone(), Arc::new(own))
    }

    fn leave(&self, item: InboxItem<DeliveryReady>) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.leave_quietly(item);
            self.woken.wake(self.pipe);
        }
    }
}

impl EventHandler for Elsewhere {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        if self.inbox.upgrade().is_some_and(|inbox| inbox.leave_events(peer, events)) {
            self.woken.wake(self.pipe);
        }
    }

    fn appended(&self, _peer: &Peer) {
        self.woken.wake(self.pipe);
    }

    fn pends(&self, _peer: &Peer) {
        self.woken.pends();
    }

    fn settled(&self, _peer: &Peer) {
        self.woken.settled();
    }

    fn warn(&self, what: &str) {
        self.leave(InboxItem::Warning(what.to_owned()));
    }

    fn misuse(&self, what: &str) {
        self.leave(InboxItem::Misuse(what.to_owned()));
    }
}
