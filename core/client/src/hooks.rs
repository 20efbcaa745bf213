//! The callbacks of a client's program, as the tasks of its servers use them.

use mcp_resources_engine::client::{ClientError, ClientQuestion, Progress};
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::broadcast;

/// The future answer to a server's question: the result, a JSON object, or the reason for which there is none.
pub type Answer = Pin<Box<dyn Future<Output = Result<String, String>> + Send>>;
/// A callback for the progress of requests.
pub type ProgressFn = Arc<dyn Fn(Progress) + Send + Sync>;
/// A callback for the reports of [`Client::hear`](crate::Client::hear).
pub type HearFn = Arc<dyn Fn(Heard) + Send + Sync>;
/// A callback for notifications: the server, the method, and the params as a JSON object.
pub(super) type NotifiedFn = Arc<dyn Fn(&str, &str, &str) + Send + Sync>;
/// A callback for the connection of a server: its name, and the reason if it is lost.
pub(super) type ConnectionFn = Arc<dyn Fn(&str, Option<&str>) + Send + Sync>;
pub(super) type Answers = Arc<dyn Fn(ClientQuestion) -> Answer + Send + Sync>;
pub(super) type NoteFn = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// Maximum number of list changes queued for a slow listener; it misses older ones.
pub(super) const LIST_CHANGES: usize = 64;

/// A report about a resource that is heard of, but not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// The subscription is active: changes are reported from now on.
    Active,
    /// The resource may have changed.
    Changed,
    /// The server offers no subscriptions, or cannot be reached at the start. This is the last report.
    Ended(ClientError),
}

/// The callbacks used by the tasks of a client.
pub(super) struct Hooks {
    pub(super) answers: HashMap<String, Answers>,
    pub(super) note: Option<NoteFn>,
    pub(super) left_out: Option<NoteFn>,
    pub(super) notified: Option<NotifiedFn>,
    pub(super) connection: Option<ConnectionFn>,
    pub(super) lists: broadcast::Sender<Arc<str>>,
}

impl Hooks {
    pub(super) fn note(&self, server: &str, note: &str) {
        if let Some(call) = &self.note {
            call(server, note);
        }
    }

    pub(super) fn left_out(&self, server: &str, what: &str) {
        if let Some(call) = self.left_out.as_ref().or(self.note.as_ref()) {
            call(server, what);
        }
    }

    pub(super) fn notified(&self, server: &str, method: &str, params: &str) {
        if let Some(call) = &self.notified {
            call(server, method, params);
        }
    }

    /// Reports a connection that is made, or lost for a reason.
    pub(super) fn connection(&self, server: &str, lost: Option<&str>) {
        if let Some(call) = &self.connection {
            call(server, lost);
        }
    }

    pub(super) fn list_changed(&self, server: &Arc<str>) {
        // An error means that there is no listener.
        let _ = self.lists.send(server.clone());
    }
}
