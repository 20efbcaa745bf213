//! Who asks.

use std::sync::Arc;

/// Who asks: the subject of a verified token, or the local process on stdio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    id: Arc<str>,
}

impl Principal {
    /// The peer at the other end of a pipe: it runs as the same user as the server.
    pub fn local() -> Arc<Self> {
        Self::new("")
    }

    /// A principal with a verified identity. `id` is what cursors and request states are bound to.
    pub fn new(id: impl Into<Arc<str>>) -> Arc<Self> {
        Arc::new(Self { id: id.into() })
    }

    /// The identity; empty for the local process.
    pub fn id(&self) -> &str {
        &self.id
    }
}
