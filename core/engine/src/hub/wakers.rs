//! Wakers collected under a lock, to be called without it.

use smallvec::SmallVec;
use std::task::Waker;

/// Collected wakers. The first few need no allocation.
#[derive(Debug, Default)]
#[must_use = "the wakers that were collected here must be called"]
pub(crate) struct Wakers(SmallVec<[Waker; 4]>);

impl Wakers {
    pub(crate) fn push(&mut self, waker: Waker) {
        self.0.push(waker);
    }

    pub(crate) fn extend(&mut self, wakers: impl IntoIterator<Item = Waker>) {
        self.0.extend(wakers);
    }

    /// Wakes all of them. Call it with no lock held.
    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}
