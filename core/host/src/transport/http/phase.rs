//! Serving, then draining, then over: what every connection of a server looks at.

use std::pin::pin;
use std::task::Poll;
use tokio::sync::watch;

/// Where a server is in its life. It only goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Takes connections and requests.
    Serving,
    /// Finishes what it has.
    Draining,
    /// Everything is dropped.
    Over,
}

/// See the module.
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

    /// Whether that is new.
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

/// Waits until the server is at least at `phase`.
pub(super) async fn reach(watch: &mut watch::Receiver<Phase>, phase: Phase) {
    // The sender lives as long as the server, and the waiting task holds the server.
    let _ = watch.wait_for(|now| *now >= phase).await;
}

/// Which of two came first.
pub(super) enum Either<A, B> {
    First(A),
    Second(B),
}

/// Waits for the first of two; when both are there, `first`.
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
