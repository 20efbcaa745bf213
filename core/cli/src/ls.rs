//! `ls`: lists resources and templates.

use crate::Outcome;
use crate::args::Ls;
use crate::output::{self, plain};
use mcp_resources_client::Client;
use mcp_resources_engine::client::{ClientError, Failure, Listed};
use serde_json::Value;
use std::io::{self, BufWriter, IsTerminal, Write};

/// The most entries of one table, because the width of its columns depends on all of them.
const MOST: usize = 100_000;

/// Lists resources and templates, or only templates.
pub(crate) async fn run(args: &Ls, client: &Client) -> Outcome {
    let limit = args.limit.unwrap_or(if args.json { usize::MAX } else { MOST });
    let mut out = BufWriter::new(anstream::stdout());
    let mut left = limit;
    let mut is_cut = false;
    let mut failed = None;
    for templates in [false, true].into_iter().filter(|templates| *templates || !args.templates) {
        if matches!(
            failed,
            Some(ClientError::Failed(Failure::Unreachable { .. } | Failure::Unauthorized { .. }))
        ) {
            // Otherwise a command would be started again.
            break;
        }
        let mut listing = if templates { client.list_templates() } else { client.list() };
        let mut rows = Vec::new();
        while let Some(listed) = listing.next().await {
            let listed = match listed {
                // A server without the capability has no resources.
                Err(ClientError::Failed(Failure::Unsupported { .. })) => break,
                Ok(listed) => listed,
                // Entries from before the error are listed.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            is_cut = left == 0;
            if is_cut {
                break;
            }
            left -= 1;
            match args.json {
                true => writeln!(out, "{}", output::json(&listed.json))?,
                false => rows.push(row(&listed, templates)),
            }
        }
        if !rows.is_empty() {
            let head: &[&str] =
                if templates { &["TEMPLATE", "NAME", "TYPE"] } else { &["URI", "NAME", "TYPE", "SIZE"] };
            let gap = if left + rows.len() < limit { "\n" } else { "" };
            write!(out, "{gap}{}", output::table(head, &rows, output::columns()))?;
        }
    }
    out.flush()?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    if is_cut && args.limit.is_none() {
        output::say("note", &format!("there are more than {MOST} entries; --json lists them all"));
    }
    if left == limit {
        say_nothing_is_listed(args, client).await;
    }
    Ok(0)
}

/// Says why nothing was printed.
async fn say_nothing_is_listed(args: &Ls, client: &Client) {
    // Answers at once: the server is connected.
    match client.about().await.is_ok_and(|about| about.declares("resources")) {
        false => output::say("note", "the server has no resources"),
        true if !args.json && io::stderr().is_terminal() => output::say("note", "the server lists nothing"),
        true => {}
    }
}

fn row(listed: &Listed, is_template: bool) -> Vec<String> {
    let entry: Value = serde_json::from_str(&listed.json).unwrap_or_default();
    let text = |key: &str| plain(entry.get(key).and_then(Value::as_str).unwrap_or_default()).into_owned();
    let name = if entry.get("name").is_some() { text("name") } else { text("title") };
    let mut row = vec![plain(&listed.uri).into_owned(), name, text("mimeType")];
    if !is_template {
        row.push(entry.get("size").and_then(Value::as_u64).map(output::size).unwrap_or_default());
    }
    row
}
