//! The parts that all messages share: keys of `_meta`, results, errors, notifications.
//!
//! Every message ends with a newline, except under [`Envelope::Bare`].

use crate::error::{ErrorPurpose, ReadError};
use crate::jsonrpc::{Envelope, ErrorHead, ErrorId, Id, ObjectWriter, end};
use crate::meta;
use crate::version::{INTERNAL_ERROR, Revision};
use std::sync::Arc;

pub(super) const META: &str = "_meta";
pub(super) const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub(super) const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub(super) const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
pub(super) const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub(super) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
pub(super) const PROGRESS_TOKEN: &str = "progressToken";
pub(super) const COMPLETE: &str = "complete";

/// The parameters for writing one answer.
#[derive(Clone, Debug)]
pub(super) struct ResponseWriter<'a> {
    pub(super) envelope: Envelope,
    pub(super) id: Id<'a>,
    pub(super) revision: Revision,
    /// The member `"io.modelcontextprotocol/serverInfo":{…}`, or nothing.
    pub(super) server_info: Option<Arc<str>>,
}

impl ResponseWriter<'_> {
    /// Writes a result of type `complete`; `body` writes its members.
    pub(super) fn complete(&self, out: &mut Vec<u8>, body: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.result(out, COMPLETE, "", body);
    }

    /// Writes a result with additional members of `_meta`, encoded and without braces.
    pub(super) fn result(
        &self,
        out: &mut Vec<u8>,
        result_type: &str,
        meta: &str,
        body: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        let modern = self.revision.is_modern();
        self.envelope.result(out, self.id, |result| {
            if modern && result_type == COMPLETE {
                result.members(br#""resultType":"complete""#);
            } else if modern {
                result.str("resultType", result_type);
            }
            body(result);
            let server_info = self.server_info.as_deref().filter(|_| modern).unwrap_or_default();
            if !(meta.is_empty() && server_info.is_empty()) {
                result.object(META, |writer| {
                    writer.members(meta.as_bytes());
                    writer.members(server_info.as_bytes());
                });
            }
        });
        self.end(out);
    }

    /// Writes an error; `data` writes its member `data`.
    pub(super) fn error(
        &self,
        out: &mut Vec<u8>,
        code: i32,
        message: &str,
        data: impl FnOnce(&mut ObjectWriter<'_>),
    ) {
        self.envelope.error(out, &ErrorHead { id: ErrorId::Of(self.id), code, message }, data);
        self.end(out);
    }

    /// Writes a [`ReadError`] about `uri`, if there is one.
    pub(super) fn failure(&self, out: &mut Vec<u8>, error: &ReadError, uri: Option<&str>) {
        self.failure_of(ErrorPurpose::Read, out, error, uri);
    }

    /// Like [`ResponseWriter::failure`], for requests other than a read.
    pub(super) fn failure_of(
        &self,
        purpose: ErrorPurpose,
        out: &mut Vec<u8>,
        error: &ReadError,
        uri: Option<&str>,
    ) {
        let message = purpose.message(error);
        self.error(out, self.revision.code(error), &message, |data| write_facts(data, error, uri));
    }

    /// Writes the error for a request of a batch whose responses exceed `max` bytes.
    pub(super) fn too_much(&self, max: usize, out: &mut Vec<u8>) {
        let message =
            format!("The answers of the batch are larger than {max} bytes: send fewer requests in one batch");
        self.error(out, INTERNAL_ERROR, &message, |_| ());
    }

    fn end(&self, out: &mut Vec<u8>) {
        if self.envelope == Envelope::JsonRpc {
            end(out);
        }
    }
}

fn write_facts(data: &mut ObjectWriter<'_>, error: &ReadError, uri: Option<&str>) {
    if let ReadError::Custom { data: own, .. } | ReadError::Foreign { data: own, .. } = error {
        if let Some(members) = own.as_deref().and_then(members_of) {
            data.members(members.as_bytes());
        }
        return;
    }
    if let Some(uri) = uri {
        data.str("uri", uri);
    }
    if let Some(kind) = error.kind() {
        data.str("kind", kind);
    }
    match error {
        ReadError::InvalidParameter { parameter, .. } | ReadError::RefusedParameter { parameter, .. } => {
            data.str("parameter", parameter);
        }
        ReadError::SizeExceeded { limit, size } => {
            data.u64("limit", *limit);
            if let Some(size) = size {
                data.u64("size", *size);
            }
        }
        ReadError::Timeout { after } => data.u64("timeoutMs", *after),
        ReadError::RateLimited { retry_after } => data.u64("retryAfterMs", *retry_after),
        _ => {}
    }
}

/// The text between the braces of a JSON object, on one line; `None` if `text` is not an object.
pub(super) fn members_of(text: &str) -> Option<String> {
    // Kept as it was written: reordering, or another spelling of a number, could change its meaning for the client.
    let text = meta::object_text(text, usize::MAX)?;
    Some(text.get(1..text.len() - 1)?.to_owned())
}

/// Writes a notification on a line of its own.
pub(super) fn notification(out: &mut Vec<u8>, method: &str, params: impl FnOnce(&mut ObjectWriter<'_>)) {
    Envelope::notification(out, method, params);
    end(out);
}
