//! `gateway --list`: what each agent has, after a look at every server.

use super::world::WorldConfig;
use crate::Outcome;
use crate::output;
use mcp_resources_provider_upstream::{UpstreamSummary, Upstreams};
use std::io::Write as _;
use std::time::Duration;

/// The time for a look at a server: it may have to be started.
const LOOK: Duration = Duration::from_secs(15);

/// Prints a table for each agent.
pub(super) async fn print(upstreams: &Upstreams, worlds: Vec<WorldConfig>) -> Outcome {
    let mut out = anstream::stdout().lock();
    let count = worlds.len();
    for (number, world) in worlds.into_iter().enumerate() {
        let agent = world.agent.clone();
        let provider = upstreams.provider(world.servers)?;
        let rows: Vec<Vec<String>> = provider.summaries(LOOK).await.into_iter().map(row).collect();
        if let Some(agent) = agent.filter(|_| count > 1 || number > 0) {
            writeln!(out, "{}{}", if number > 0 { "\n" } else { "" }, output::plain(&agent))?;
        }
        let head = ["SERVER", "STATE", "REVISION", "TOOLS", "RESOURCES", "TEMPLATES"];
        out.write_all(output::table(&head, &rows, output::columns()).as_bytes())?;
    }
    Ok(0)
}

fn row(summary: UpstreamSummary) -> Vec<String> {
    let count = |number: Option<usize>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let more = if summary.has_more_resources { "+" } else { "" };
    vec![
        output::plain(&summary.name).into_owned(),
        output::plain(&summary.state).into_owned(),
        summary.revision.map_or_else(|| "-".to_owned(), |revision| revision.to_string()),
        count(summary.tools),
        format!("{}{more}", count(summary.resources)),
        count(summary.templates),
    ]
}
