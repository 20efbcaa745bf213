//! The body of a request while it is received: bounded by itself, and with all others that are.

use super::admission::Identified;
use super::head::Response;
use crate::now::Millis;
use crate::version::{INTERNAL_ERROR, INVALID_REQUEST};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of one body that its host keeps until the rest comes. What it counted is free again when it is dropped.
#[derive(Debug)]
pub struct Receiving {
    limit: usize,
    held: usize,
    total: Arc<Total>,
    origin: Option<String>,
}

/// The bytes of all bodies that are being received.
#[derive(Debug)]
pub(super) struct Total {
    max: usize,
    held: AtomicUsize,
}

impl Total {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, held: AtomicUsize::new(0) })
    }
}

impl Identified {
    /// Begins to count a body that did not come with its head.
    pub fn receiving(&self) -> Receiving {
        let (limit, total) = (self.body_limit(), self.gate.receiving.clone());
        Receiving { limit, held: 0, total, origin: self.call.origin.clone() }
    }

    /// How long the host waits for the whole body, in milliseconds; after that comes [`Identified::too_late`].
    pub fn body_timeout(&self) -> Millis {
        self.gate.body_timeout
    }

    /// The response to a body that did not come in time (408). The rest of it is not read: the connection closes.
    pub fn too_late(&self) -> Response {
        let message = format!("The body did not come within {} ms", self.gate.body_timeout);
        let response = Response::error(408, INVALID_REQUEST, &message).with("connection", "close");
        response.shared_with(self.call.origin.as_deref())
    }
}

impl Receiving {
    /// Counts further bytes that were received.
    ///
    /// # Errors
    /// The response to send instead of reading on: 413 above [`Identified::body_limit`], 503 while all bodies together are
    /// larger than [`Limits::bodies_total`](crate::limits::Limits::bodies_total).
    pub fn take(&mut self, bytes: usize) -> Result<(), Response> {
        if self.held.saturating_add(bytes) > self.limit {
            return Err(super::admission::too_large().shared_with(self.origin.as_deref()));
        }
        self.held += bytes;
        let before = self.total.held.fetch_add(bytes, Ordering::AcqRel);
        if before.saturating_add(bytes) > self.total.max {
            let message = "The server receives too much at once: try again later";
            let response = Response::error(503, INTERNAL_ERROR, message).with("retry-after", "1");
            return Err(response.with("connection", "close").shared_with(self.origin.as_deref()));
        }
        Ok(())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        self.total.held.fetch_sub(self.held, Ordering::AcqRel);
    }
}
