//! What can be known of an engine from outside: what was asked of it, and how much.

use super::{Engine, Lapse, Metrics};
use crate::guard::{AuditEntry, AuditRecord, Verdict};
use crate::now::Millis;
use crate::version::Method;
use std::task::Waker;

/// What a host asks.
impl Engine {
    /// Takes what was recorded since the last call, oldest first, and appends it (S-19). Nothing unless
    /// [`Options::audit`](super::Options) is set.
    pub fn take_records(&self, entries: &mut Vec<AuditEntry>) {
        if let Some(records) = &self.records {
            records.take(entries);
        }
    }

    /// Has `waker` woken once, when something is recorded next. Call it before [`Engine::take_records`], so that nothing
    /// comes unseen between the two. The waker is called where a request has ended: it must not wait.
    pub fn watch_records(&self, waker: &Waker) {
        if let Some(records) = &self.records {
            records.register(waker);
        }
    }

    /// A sink could not keep so many of what it took: they count as dropped.
    pub fn lose_records(&self, count: u64) {
        if let Some(records) = &self.records {
            records.lose(count);
        }
    }

    /// Counts from now on, if it did not from the start.
    pub fn measure(&self) {
        self.metrics.get_or_init(Metrics::default);
    }

    /// What was counted, in the text format of Prometheus; `None` if nothing is counted. No label has a text of a
    /// client's: the number of series is bounded.
    pub fn metrics_text(&self) -> Option<String> {
        let records = self.records.as_ref().map(super::Records::counts);
        self.metrics.get().map(|metrics| metrics.text(self.subscriptions(), records, self.cache_counts()))
    }
}

/// What connections ask.
impl Engine {
    /// Whether anybody wants to know of requests. Two loads, where nobody does.
    pub(crate) fn observes(&self) -> bool {
        self.records.is_some() || self.metrics.get().is_some()
    }

    pub(crate) fn audits(&self) -> bool {
        self.records.is_some()
    }

    pub(crate) fn record(&self, record: AuditRecord) {
        if let Some(records) = &self.records {
            records.push(record);
        }
    }

    pub(crate) fn count(
        &self,
        method: Option<Method>,
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

    pub(super) fn metrics(&self) -> Option<&Metrics> {
        self.metrics.get()
    }
}
