//! The phases of a server, observed by all of its connections: serving, draining, over.

use std::pin::pin;
use std::task::Poll;
use tokio::sync::watch;

/// The phase of a server. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ServerPhase {
    /// Accepts connections and requests.
    Serving,
    /// Finishes requests in flight.
    Draining,
    /// All connections are dropped.
    Over,
}

/// The phase of a server, with its observers.
pub(super) struct Phases(watch::Sender<ServerPhase>);

impl Default for Phases {
    fn default() -> Self {
        Self(watch::Sender::new(ServerPhase::Serving))
    }
}

impl Phases {
    pub(super) fn now(&self) -> ServerPhase {
        *self.0.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<ServerPhase> {
        self.0.subscribe()
    }

    /// Starts draining; returns whether that is new.
    pub(super) fn drain(&self) -> bool {
        self.advance(ServerPhase::Draining)
    }

    pub(super) fn end(&self) {
        self.advance(ServerPhase::Over);
    }

    fn advance(&self, to: ServerPhase) -> bool {
        self.0.send_if_modified(|phase| {
            let is_new = *phase < to;
            if is_new {
                *phase = to;
            }
            is_new
        })
    }
}

/// Waits until the server has reached `phase`.
pub(super) async fn reach(watch: &mut watch::Receiver<ServerPhase>, phase: ServerPhase) {
    // Cannot fail: the sender exists as long as the server, which the waiting task holds.
    let _ = watch.wait_for(|now| *now >= phase).await;
}

/// The first of two results.
pub(super) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits for the first of two futures; if both are ready, `first` wins.
pub(super) async fn either<A, B>(
    first: impl Future<Output = A>,
    second: impl Future<Output = B>,
) -> Either<A, B> {
    let mut first = pin!(first);
    let mut second = pin!(second);
    std::future::poll_fn(|context| {
        if let Poll::Ready(found) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(found));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}
