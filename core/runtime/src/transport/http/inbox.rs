//! A queue from the server's threads to the event loop of another language: owned items, in order, taken in batches.
//!
//! Law: a thread that adds an item never waits for the other language, and the loop is woken once for a batch. No lock
//! is held while it is woken. The queue is limited by the number of connections and of requests in flight on each
//! (`Limits`).

use super::{Verified, Verifier, Verifying};
use crate::sync::Mutex;
use crate::transport::{EventHandler, Peer, Work};
use mcp_resources_engine::connection::Events;
use mcp_resources_engine::http::DeniedToken;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};
use tokio::sync::oneshot;

/// Wakes the event loop, from any thread.
pub type WakeLoop = Arc<dyn Fn() + Send + Sync>;

/// The queue. `X` is the type of a runtime's own items.
pub struct RequestInbox<X> {
    items: Mutex<Vec<InboxItem<X>>>,
    /// Whether the loop has already been woken.
    is_due: AtomicBool,
    wake_loop: Mutex<Option<WakeLoop>>,
}

/// An item for the event loop.
#[derive(Debug)]
pub enum InboxItem<X> {
    /// An event, with the peer that gets its answer.
    Work(Peer, Box<Work<'static>>),
    /// A token to verify.
    Verify(String, TokenReply),
    /// A handler's answer does not fit its event: for the log.
    Misuse(String),
    /// A request was refused that an option would allow: for the log.
    Warning(String),
    /// The server has stopped.
    Ended,
    /// An item of the runtime.
    Own(X),
}

/// Takes the result for a token, once. Dropping it without one means that verification was impossible.
#[derive(Debug)]
pub struct TokenReply(Mutex<Option<oneshot::Sender<Result<Verified, DeniedToken>>>>);

/// An inbox for the HTTP server: as its runtime, and as its verifier of tokens.
pub struct PeerReach<X>(Weak<RequestInbox<X>>);

impl<X> RequestInbox<X> {
    /// An empty queue. `wake_loop` wakes the loop; without it the loop calls [`RequestInbox::is_due`] before it sleeps.
    pub fn new(wake_loop: Option<WakeLoop>) -> Arc<Self> {
        let items = Default::default();
        let is_due = Default::default();
        Arc::new(Self { items, is_due, wake_loop: Mutex::new(wake_loop) })
    }

    /// Adds items, and wakes the loop, even without any item.
    pub fn leave(&self, items: impl IntoIterator<Item = InboxItem<X>>) {
        self.items.lock().extend(items);
        if self.is_due.swap(true, Ordering::AcqRel) {
            return;
        }
        let wake_loop = self.wake_loop.lock().clone();
        if let Some(wake_loop) = wake_loop {
            wake_loop();
        }
    }

    /// Adds an item on the loop's own thread, which checks the queue before it sleeps.
    pub fn leave_quietly(&self, item: InboxItem<X>) {
        self.items.lock().push(item);
    }

    /// Adds the work that `events` of `peer` leave for the loop, without waking it. Returns whether there is any.
    pub fn leave_events(&self, peer: &Peer, events: Events<'_>) -> bool {
        let items = work_items(peer, events);
        let is_any = !items.is_empty();
        self.items.lock().extend(items);
        is_any
    }

    /// Whether the loop must still be woken.
    pub fn is_due(&self) -> bool {
        !self.items.lock().is_empty() && !self.is_due.swap(true, Ordering::AcqRel)
    }

    /// Takes everything.
    pub fn take(&self) -> Vec<InboxItem<X>> {
        self.is_due.store(false, Ordering::Release);
        std::mem::take(&mut *self.items.lock())
    }

    /// Drops the function that wakes the loop, so that it is not woken any more.
    pub fn close(&self) {
        let wake_loop = self.wake_loop.lock().take();
        drop(wake_loop);
    }

    /// A weak handle for the HTTP server: if the loop is gone, the server gives up its requests.
    pub fn reach(self: &Arc<Self>) -> Arc<PeerReach<X>> {
        Arc::new(PeerReach(Arc::downgrade(self)))
    }
}

impl<X: Clone + Send + Sync + 'static> RequestInbox<X> {
    /// A waker that adds `item` each time it is woken, on any thread. Holds only a weak reference.
    pub fn waker(self: &Arc<Self>, item: X) -> Waker {
        Waker::from(Arc::new(Leaves { inbox: Arc::downgrade(self), item }))
    }
}

/// See [`RequestInbox::waker`].
struct Leaves<X> {
    inbox: Weak<RequestInbox<X>>,
    item: X,
}

impl<X: Clone + Send + Sync + 'static> Wake for Leaves<X> {
    fn wake(self: Arc<Self>) {
        if let Some(inbox) = self.inbox.upgrade() {
            inbox.leave([InboxItem::Own(self.item.clone())]);
        }
    }
}

impl TokenReply {
    /// Accepts the token.
    pub fn accept(&self, verified: Verified) {
        self.send(Ok(verified));
    }

    /// Refuses the token, or reports that it cannot be verified now.
    pub fn refuse(&self, unavailable: bool) {
        self.send(Err(if unavailable { DeniedToken::Unavailable } else { DeniedToken::Invalid }));
    }

    fn send(&self, reply: Result<Verified, DeniedToken>) {
        if let Some(waiting) = self.0.lock().take() {
            // Fails if the client has disconnected.
            let _ = waiting.send(reply);
        }
    }
}

impl<X> PeerReach<X> {
    /// The server has stopped.
    pub fn ended(&self) {
        self.leave([InboxItem::Ended]);
    }

    fn leave(&self, items: impl IntoIterator<Item = InboxItem<X>>) {
        if let Some(inbox) = self.0.upgrade() {
            inbox.leave(items);
        }
    }
}

impl<X: Send + 'static> EventHandler for PeerReach<X> {
    fn handle(&self, peer: &Peer, events: Events<'_>) {
        let items = work_items(peer, events);
        if !items.is_empty() {
            self.leave(items);
        }
    }

    fn warn(&self, what: &str) {
        self.leave([InboxItem::Warning(what.to_owned())]);
    }

    fn misuse(&self, what: &str) {
        self.leave([InboxItem::Misuse(what.to_owned())]);
    }
}

/// The work of `events`, each with the peer that gets its answer.
fn work_items<X>(peer: &Peer, events: Events<'_>) -> Vec<InboxItem<X>> {
    let work = events.into_iter().filter_map(|event| Work::from_event(event).into_owned());
    work.map(|work| InboxItem::Work(peer.clone(), Box::new(work))).collect()
}

impl<X: Send + 'static> Verifier for PeerReach<X> {
    fn verify<'v>(&'v self, token: &'v str) -> Verifying<'v> {
        Box::pin(async move {
            let (reply, found) = oneshot::channel();
            self.leave([InboxItem::Verify(token.to_owned(), TokenReply(Mutex::new(Some(reply))))]);
            found.await.unwrap_or(Err(DeniedToken::Unavailable))
        })
    }
}

impl<X> fmt::Debug for RequestInbox<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").field("waiting", &self.items.lock().len()).finish_non_exhaustive()
    }
}

impl<X> fmt::Debug for PeerReach<X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reach").finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn counted() -> (Arc<AtomicUsize>, Arc<RequestInbox<u8>>) {
        let wakes = Arc::new(AtomicUsize::new(0));
        let counts = wakes.clone();
        let wake_loop: WakeLoop = Arc::new(move || {
            counts.fetch_add(1, Ordering::SeqCst);
        });
        (wakes, RequestInbox::new(Some(wake_loop)))
    }

    #[test]
    fn the_loop_is_woken_once_for_a_batch() {
        let (wakes, inbox) = counted();
        (0..3).for_each(|number| inbox.leave([InboxItem::Own(number)]));
        assert_eq!(wakes.load(Ordering::SeqCst), 1);
        assert_eq!(inbox.take().len(), 3);
        inbox.reach().ended();
        assert_eq!(wakes.load(Ordering::SeqCst), 2);
        inbox.close();
        assert!(matches!(*inbox.take(), [InboxItem::Ended]));
        inbox.leave([InboxItem::Own(4)]);
        assert_eq!((wakes.load(Ordering::SeqCst), inbox.take().len()), (2, 1));
    }

    #[test]
    fn items_added_quietly_are_reported_once() {
        let (wakes, inbox) = counted();
        assert!(!inbox.is_due());
        inbox.leave_quietly(InboxItem::Own(1));
        assert!(inbox.is_due() && !inbox.is_due());
        inbox.leave([InboxItem::Own(2)]);
        assert_eq!((wakes.load(Ordering::SeqCst), inbox.take().len()), (0, 2));
    }

    #[test]
    fn a_token_that_nobody_verifies_could_not_be_found_out() {
        use std::task::{Context, Poll, Waker};
        let (_, inbox) = counted();
        let reach = inbox.reach();
        let mut context = Context::from_waker(Waker::noop());
        let mut ask = |judge: &dyn Fn(TokenReply)| {
            let mut asked = reach.verify("token");
            assert!(asked.as_mut().poll(&mut context).is_pending());
            for item in inbox.take() {
                let InboxItem::Verify(token, reply) = item else { panic!("{item:?}") };
                assert_eq!(token, "token");
                judge(reply);
            }
            match asked.as_mut().poll(&mut context) {
                Poll::Ready(found) => found.map(|found| found.principal.id().to_owned()),
                Poll::Pending => panic!("no reply"),
            }
        };
        assert_eq!(ask(&|reply| reply.accept(Verified::new("ada"))).as_deref(), Ok("ada"));
        assert_eq!(ask(&|reply| reply.refuse(false)), Err(DeniedToken::Invalid));
        assert_eq!(ask(&drop), Err(DeniedToken::Unavailable));
        drop(inbox.clone());
    }
}
