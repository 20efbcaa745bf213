//! Limits the body of a request while it is received, alone and together with all others.

use super::admission::Identified;
use super::head::Response;
use super::refused::Refused;
use crate::now::Millis;
use crate::version::{INTERNAL_ERROR, INVALID_REQUEST};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes of one partially received body. Dropping it releases them.
#[derive(Debug)]
pub struct Receiving {
    limit: usize,
    held: usize,
    total: Arc<Total>,
    origin: Option<String>,
}

/// The bytes of all partially received bodies.
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
    /// Starts counting a body that did not arrive together with its head.
    pub fn receiving(&self) -> Receiving {
        let limit = self.body_limit();
        let total = self.gate.receiving.clone();
        Receiving { limit, held: 0, total, origin: self.call.origin.clone() }
    }

    /// Maximum time that the runtime waits for the whole body, in milliseconds; after that it sends
    /// [`Identified::too_late`].
    pub fn body_timeout(&self) -> Millis {
        self.gate.body_timeout
    }

    /// The response to a body that did not arrive in time (408). The rest is not read: the connection closes.
    pub fn too_late(&self) -> Response {
        let message = format!("The body did not arrive within {} ms", self.gate.body_timeout);
        let response = Response::error(408, INVALID_REQUEST, &message).with("connection", "close");
        response.shared_with(self.call.origin.as_deref())
    }

    /// The response to a body that other code of the program has read before the runtime could (400).
    pub fn already_read(&self) -> Response {
        let message = "The body of the request was read before it reached this server, and was not passed on";
        Response::error(400, INVALID_REQUEST, message).shared_with(self.call.origin.as_deref())
    }
}

impl Receiving {
    /// Counts bytes that were received.
    ///
    /// # Errors
    /// The response to send instead of reading on: 413 above [`Identified::body_limit`], 503 if all bodies together
    /// exceed [`Limits::bodies_total`](crate::limits::Limits::bodies_total).
    pub fn take(&mut self, bytes: usize) -> Result<(), Response> {
        if self.held.saturating_add(bytes) > self.limit {
            return Err(Refused::message(self.limit).shared_with(self.origin.as_deref()));
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
