//! The settings of a watch, and the receiver of what it reports.

use super::inbox::HINTS;
use crate::tree::Tree;
use mcp_resources_runtime::provider::Feed;
use std::time::Duration;

/// The receiver of reported changes.
pub(crate) trait WatchReports: Clone + Send + 'static {
    fn updated(&self, uri: &str);
    fn list_changed(&self);
    /// Called when watching a URI begins: every later change is reported.
    fn watches(&self, _uri: &str) {}
    /// The system has reported something of a path.
    fn touched(&self, _tree: &Tree, _path: &[u8]) {}
    fn log(&self, what: &str);
    /// Whether the receiver still exists.
    fn is_alive(&self) -> bool;
}

impl WatchReports for Feed {
    fn updated(&self, uri: &str) {
        // It is in canonical form: nothing is wrong with it.
        let _ = Self::updated(self, uri);
    }

    fn list_changed(&self) {
        Self::list_changed(self);
    }

    fn log(&self, what: &str) {
        Self::log(self, what);
    }

    fn is_alive(&self) -> bool {
        Self::is_alive(self)
    }
}

/// Settings that tests change.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchSettings {
    /// Whether to poll instead of using the system's watches.
    pub(super) polls: bool,
    /// Maximum number of waiting hints.
    pub(super) hints: usize,
    /// The time between two slices of polling; the roots are checked after every tenth.
    pub(super) slice: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self { polls: false, hints: HINTS, slice: Duration::from_millis(100) }
    }
}
