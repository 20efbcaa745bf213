//! The counts of the servers, as text for Prometheus.

use crate::server::UpstreamServer;
use std::fmt::Write as _;
use std::sync::Arc;

/// The longest name of a server in a label.
const NAME: usize = 100;

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
    use super::label;

    #[test]
    fn a_name_is_one_label() {
        assert_eq!(label("a\"b\\\n"), "a\\\"b\\\\\\n");
    }
}
