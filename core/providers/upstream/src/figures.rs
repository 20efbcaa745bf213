//! What is counted of the servers, as text for Prometheus.

use crate::server::UpstreamServer;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the counted latencies, in microseconds.
const BOUNDS: [u64; 8] = [1_000, 5_000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000, 60_000_000];
/// The longest name of a server in a label.
const NAME: usize = 100;

/// How long answers took.
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

    fn write(&self, server: &str, out: &mut String) {
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

/// The figures of all servers.
pub(crate) fn text(servers: &[Arc<UpstreamServer>]) -> String {
    let mut out = String::new();
    let named: Vec<(String, &Arc<UpstreamServer>)> =
        servers.iter().map(|server| (label(server.name()), server)).collect();
    let mut gauge = |name: &str, kind: &str, help: &str, lines: &dyn Fn(&str, &UpstreamServer) -> String| {
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (label, server) in &named {
            out.push_str(&lines(label, server));
        }
    };
    gauge(
        "mcp_resources_upstream_up",
        "gauge",
        "1 if the server was described and is not left alone.",
        &|label, server| {
            let is_up = server.about().is_some() && !server.is_resting();
            format!("mcp_resources_upstream_up{{server=\"{label}\"}} {}\n", u8::from(is_up))
        },
    );
    gauge(
        "mcp_resources_upstream_breaker_open",
        "gauge",
        "1 while the server is left alone, because it has not answered.",
        &|label, server| {
            format!(
                "mcp_resources_upstream_breaker_open{{server=\"{label}\"}} {}\n",
                u8::from(server.is_resting())
            )
        },
    );
    gauge(
        "mcp_resources_upstream_subscriptions",
        "gauge",
        "Resources that are watched at the server.",
        &|label, server| {
            format!("mcp_resources_upstream_subscriptions{{server=\"{label}\"}} {}\n", server.watched())
        },
    );
    gauge(
        "mcp_resources_upstream_requests_total",
        "counter",
        "Requests that the server has ended.",
        &|label, server| {
            let (answered, failed) = server.requests();
            format!(
                "mcp_resources_upstream_requests_total{{server=\"{label}\",outcome=\"answered\"}} {answered}\n\
             mcp_resources_upstream_requests_total{{server=\"{label}\",outcome=\"failed\"}} {failed}\n"
            )
        },
    );
    let name = "mcp_resources_upstream_request_duration_seconds";
    let _ = writeln!(out, "# HELP {name} Time from a request to its answer.\n# TYPE {name} histogram");
    for (label, server) in &named {
        server.latency().write(label, &mut out);
    }
    out
}

/// The name of a server as the value of a label.
fn label(name: &str) -> String {
    let mut label = String::new();
    for char in name.chars().take(NAME) {
        match char {
            '\\' => label.push_str("\\\\"),
            '"' => label.push_str("\\\""),
            '\n' => label.push_str("\\n"),
            other => label.push(other),
        }
    }
    label
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
        assert_eq!(label("a\"b\\\n"), "a\\\"b\\\\\\n");
    }
}
