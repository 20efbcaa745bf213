//! The phases of a server, observed by all of its connections: serving, draining, over.

use std::pin::pin;
use std::task::Poll;
use tokio::sync::watch;

/// The phase of a server. It only moves forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Accepts connections and requests.
    Serving,
    /// Finishes requests in flight.
    Draining,
    /// All connections are dropped.
    Over,
}

/// The phase of a server, with its observers.
pub(super) struct Phases(watch::Sender<Phase>);

impl Default for Phases {
    fn default() -> Self {
        Self(watch::Sender::new(Phase::Serving))
    }
}

impl Phases {
    pub(super) fn now(&self) -> Phase {
        *self.0.borrow()
    }

    pub(super) fn watch(&self) -> watch::Receiver<Phase> {
        self.0.subscribe()
    }

    /// Starts draining; returns whether that is new.
    pub(super) fn drain(&self) -> bool {
        self.advance(Phase::Draining)
    }

    pub(super) fn end(&self) {
        self.advance(Phase::Over);
    }

    fn advance(&self, to: Phase) -> bool {
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
pub(super) async fn reach(watch: &mut watch::Receiver<Phase>, phase: Phase) {
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
    let (mut first, mut second) = (pin!(first), pin!(second));
    std::future::poll_fn(|context| {
        if let Poll::Ready(found) = first.as_mut().poll(context) {
            return Poll::Ready(Either::First(found));
        }
        second.as_mut().poll(context).map(Either::Second)
    })
    .await
}
