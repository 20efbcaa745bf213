//! The durations of the answers of a server, counted as Prometheus has it.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the counted latencies, in microseconds.
const BOUNDS: [u64; 8] = [1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000, 60_000_000];
/// The durations of answers.
#[derive(Debug, Default)]
pub(crate) struct LatencyCounts {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum: AtomicU64,
}

impl LatencyCounts {
    pub(crate) fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS.iter().position(|bound| micros <= *bound).unwrap_or(BOUNDS.len());
        if let Some(count) = self.counts.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn write(&self, server: &str, out: &mut String) {
        let name = "mcp_resources_upstream_request_duration_seconds";
        let mut all = 0;
        for (at, count) in self.counts.iter().enumerate() {
            all += count.load(Ordering::Relaxed);
            let bound = BOUNDS.get(at).map_or_else(|| "+Inf".to_owned(), |bound| seconds(*bound));
            let _ = writeln!(out, "{name}_bucket{{server=\"{server}\",le=\"{bound}\"}} {all}");
        }
        let sum = seconds(self.sum.load(Ordering::Relaxed));
        let _ = writeln!(out, "{name}_sum{{server=\"{server}\"}} {sum}");
        let _ = writeln!(out, "{name}_count{{server=\"{server}\"}} {all}");
    }
}

/// A number of microseconds as seconds, without rounding.
fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_are_counted_up_to_their_bounds() {
        let counts = LatencyCounts::default();
        for micros in [900, 1_000, 1_001, 70_000_000] {
            counts.add(Duration::from_micros(micros));
        }
        let mut out = String::new();
        counts.write("a", &mut out);
        for line in [
            "_bucket{server=\"a\",le=\"0.001\"} 2\n",
            "_bucket{server=\"a\",le=\"0.005\"} 3\n",
            "_bucket{server=\"a\",le=\"60\"} 3\n",
            "_bucket{server=\"a\",le=\"+Inf\"} 4\n",
            "_sum{server=\"a\"} 70.002901\n",
            "_count{server=\"a\"} 4\n",
        ] {
            assert!(out.contains(line), "{line}: {out}");
        }
    }
}
