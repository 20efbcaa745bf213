//! Selects the first names of a directory, however many entries it has.
//!
//! Law: memory is limited by the number of requested names.

use std::collections::BinaryHeap;

/// The smallest of the names that are pushed.
#[derive(Debug)]
pub(super) struct Smallest {
    max: usize,
    heap: BinaryHeap<(Vec<u8>, bool)>,
    more: bool,
}

impl Smallest {
    /// Keeps at most `max` names.
    pub(super) fn new(max: usize) -> Self {
        Self { max, heap: BinaryHeap::new(), more: false }
    }

    /// Whether a name would be among them, as far as is known.
    pub(super) fn wants(&mut self, name: &[u8]) -> bool {
        let is_wanted =
            self.heap.len() < self.max || self.heap.peek().is_some_and(|(largest, _)| name < &**largest);
        self.more |= !is_wanted;
        is_wanted
    }

    /// Offers a name with its kind.
    pub(super) fn push(&mut self, name: Vec<u8>, is_dir: bool) {
        self.heap.push((name, is_dir));
        if self.heap.len() > self.max {
            self.heap.pop();
            self.more = true;
        }
    }

    /// In order, and whether there were more.
    pub(super) fn into_sorted(self) -> (Vec<(Vec<u8>, bool)>, bool) {
        (self.heap.into_sorted_vec(), self.more)
    }
}
