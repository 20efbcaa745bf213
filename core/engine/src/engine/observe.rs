//! Records and metrics of an engine, for its runtime.

use super::{Engine, EngineMetrics, Lapse};
use crate::guard::{AuditRecord, RequestRecord, Verdict};
use crate::now::Millis;
use crate::version::ProtocolMethod;
use std::task::Waker;

/// Functions for runtimes.
impl Engine {
    /// Takes the records since the last call and appends them, oldest first. Nothing unless
    /// [`Options::audit`](super::EngineOptions) is set.
    pub fn take_audit_records(&self, entries: &mut Vec<AuditRecord>) {
        if let Some(records) = &self.audit {
            records.take(entries);
        }
    }

    /// Wakes `waker` once, at the next record. Call this before [`Engine::take_audit_records`], so that no record in between
    /// goes unnoticed. The waker is called where a request ends, so it must not block.
    pub fn watch_audit_records(&self, waker: &Waker) {
        if let Some(records) = &self.audit {
            records.register(waker);
        }
    }

    /// Counts `count` records as dropped, because a sink took them and could not keep them.
    pub fn lose_audit_records(&self, count: u64) {
        if let Some(records) = &self.audit {
            records.lose(count);
        }
    }

    /// Starts counting, unless metrics are already on.
    pub fn measure(&self) {
        self.metrics.get_or_init(EngineMetrics::default);
    }

    /// Returns the metrics in the text format of Prometheus; `None` if they are off. No label contains text of a
    /// client, so the number of series is limited.
    pub fn metrics_text(&self) -> Option<String> {
        let records = self.audit.as_ref().map(super::AuditQueue::counts);
        let (cache, bus) = (self.cache_counts(), self.changes.counts());
        self.metrics.get().map(|metrics| metrics.text(self.subscriptions(), records, cache, bus))
    }
}

/// Functions for connections.
impl Engine {
    /// Whether requests must be recorded or counted. Costs two loads if not.
    pub(crate) fn observes(&self) -> bool {
        self.audit.is_some() || self.metrics.get().is_some()
    }

    pub(crate) fn audits(&self) -> bool {
        self.audit.is_some()
    }

    pub(crate) fn record(&self, record: RequestRecord) {
        if let Some(records) = &self.audit {
            records.push(record);
        }
    }

    pub(crate) fn count(
        &self,
        method: Option<ProtocolMethod>,
        is_modern: bool,
        verdict: Verdict,
        bytes: u64,
        duration: Millis,
    ) {
        if let Some(metrics) = self.metrics.get() {
            metrics.count(method, is_modern, verdict, bytes, duration);
        }
    }

    pub(crate) fn count_lapse(&self, why: Lapse) {
        if let Some(metrics) = self.metrics.get() {
            metrics.lapsed(why);
        }
    }

    pub(super) fn metrics(&self) -> Option<&EngineMetrics> {
        self.metrics.get()
    }
}
