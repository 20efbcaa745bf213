//! Audit records as events of the crate `tracing` (feature `tracing`), named as OpenTelemetry names them.

use super::AuditSink;
use mcp_resources_engine::guard::{AuditRecord, RequestRecord};
use mcp_resources_engine::version::Revision;
use std::io;

/// A sink that emits records as events of level `INFO` with the target `mcp_resources::audit`, and dropped ones as an
/// event of level `WARN`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditEvents;

impl AuditSink for AuditEvents {
    fn take(&mut self, entries: &[AuditRecord]) -> io::Result<()> {
        for entry in entries {
            match entry {
                AuditRecord::Request(record) => emit(record),
                AuditRecord::Dropped { dropped, .. } => {
                    tracing::warn!(target: "mcp_resources::audit", dropped = *dropped, "records were dropped");
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn emit(record: &RequestRecord) {
    tracing::info!(
        target: "mcp_resources::audit",
        {
            mcp.method.name = &*record.method,
            mcp.resource.uri = record.uri.as_deref(),
            mcp.protocol.version = record.revision.map(Revision::as_str),
            enduser.id = record.principal.id(),
            client.id = record.principal.client_id(),
            client.address = record.address.map(tracing::field::display),
            outcome = record.outcome.as_str(),
            bytes = record.bytes,
            duration_ms = record.duration,
            trace_id = record.trace.as_deref(),
        },
        "request"
    );
}
