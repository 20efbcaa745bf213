//! What the server's log says about the bus: one line when it is lost, and one when it is back.

use super::BusError;
use crate::sync::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a line to the log of a server.
pub(super) type WriteLine = Arc<dyn Fn(String) + Send + Sync>;

/// The two connections to a bus.
#[derive(Clone, Copy, Debug)]
pub(super) enum BusSide {
    /// The one that appends.
    Writer,
    /// The one that follows.
    Reader,
}

/// The state of both connections, as far as the log knows it.
pub(super) struct BusLog {
    /// The address of the bus, without credentials.
    name: String,
    write: WriteLine,
    state: Mutex<LinkState>,
    pub(super) is_connected: AtomicBool,
}

#[derive(Default)]
struct LinkState {
    works: [bool; 2],
    is_reported: bool,
}

impl BusLog {
    pub(super) fn new(name: String, write: WriteLine) -> Self {
        Self { name, write, state: Mutex::default(), is_connected: AtomicBool::new(false) }
    }

    pub(super) fn works(&self, side: BusSide) {
        let mut state = self.state.lock();
        state.works[side as usize] = true;
        if state.works != [true, true] {
            return;
        }
        self.is_connected.store(true, Ordering::Relaxed);
        if std::mem::take(&mut state.is_reported) {
            (self.write)(format!("the bus {} is back", self.name));
        }
    }

    pub(super) fn failed(&self, side: BusSide, reason: &BusError) {
        let mut state = self.state.lock();
        state.works[side as usize] = false;
        self.is_connected.store(false, Ordering::Relaxed);
        if !std::mem::replace(&mut state.is_reported, true) {
            (self.write)(format!(
                "the bus {} cannot be used, because {reason}; until it can, this process serves on, and changes in one \
                 process do not reach the others",
                self.name
            ));
        }
    }
}
