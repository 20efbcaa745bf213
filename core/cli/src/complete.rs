//! `complete`: values for a variable of a template.

use crate::Outcome;
use crate::args::CompleteArgs;
use crate::output;
use mcp_resources_client::Client;
use serde_json::json;
use std::io::{self, Write};

/// Completes a variable, and writes one value per line.
pub(crate) async fn run(args: &CompleteArgs, client: &Client) -> Outcome {
    let completion = client.complete(&args.template, &args.variable, &args.prefix, &[]).await?;
    let mut out = io::stdout().lock();
    if args.json {
        let total = completion.total;
        let mut whole = json!({ "values": completion.values });
        if let Some(members) = whole.as_object_mut() {
            members.extend(total.map(|total| ("total".into(), json!(total))));
            members.extend(completion.has_more.map(|more| ("hasMore".into(), json!(more))));
        }
        writeln!(out, "{}", output::json(&whole.to_string()))?;
    } else {
        for value in &completion.values {
            writeln!(out, "{}", output::plain(value))?;
        }
        let more = completion.total.and_then(|total| total.checked_sub(completion.values.len() as u64));
        if let Some(more) = more.filter(|more| *more > 0) {
            output::say("note", &format!("there are {more} more; a longer prefix lists them"));
        }
    }
    out.flush()?;
    Ok(0)
}
