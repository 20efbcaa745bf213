//! What one measurement gives: named numbers.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The figures of one measurement, by name; the name ends in the unit.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Figures(BTreeMap<&'static str, f64>);

impl Figures {
    /// With one more figure, rounded to what the clock can tell.
    pub(crate) fn with(mut self, name: &'static str, value: f64) -> Self {
        self.0.insert(name, (value * 10_000.0).round() / 10_000.0);
        self
    }

    /// A figure that was given before, else 0.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Of `done` requests that took `wall`, and the server `cpu` nanoseconds.
    pub(crate) fn of_requests(latencies: Vec<u64>, done: u64, wall: Duration, cpu: u64) -> Self {
        Self::default()
            .with_latencies(latencies)
            .with("rate", 1.0 / per(wall.as_secs_f64(), done))
            .with("cpu_us", per(micros(cpu), done))
    }

    /// With the median of these nanoseconds, and the one that one in a hundred exceeds; without any, as it was.
    pub(crate) fn with_latencies(self, mut latencies: Vec<u64>) -> Self {
        if latencies.is_empty() {
            return self;
        }
        latencies.sort_unstable();
        let at = |part: usize| latencies.get(latencies.len() * part / 100).copied().unwrap_or_default();
        self.with("p50_us", micros(at(50))).with("p99_us", micros(at(99)))
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
pub(crate) fn micros(ns: u64) -> f64 {
    ns as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[expect(clippy::cast_precision_loss, reason = "figures of a table")]
pub(crate) fn per(value: f64, count: u64) -> f64 {
    value / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_latencies_are_below_the_median() {
        let figures = Figures::default().with_latencies((1..=1_000).map(|n| n * 1_000).collect());
        assert_eq!(figures.0, BTreeMap::from([("p50_us", 501.0), ("p99_us", 991.0)]));
    }

    #[test]
    fn rate_and_processor_time_are_per_request() {
        let figures = Figures::of_requests(Vec::new(), 4, Duration::from_secs(2), 8_000);
        assert_eq!((figures.0["rate"], figures.0["cpu_us"]), (2.0, 2.0));
    }
}
