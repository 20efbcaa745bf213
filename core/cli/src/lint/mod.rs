//! `lint`: finds mistakes in a server by using it like a client.
//!
//! ```text
//!  gather: lists, reads, URIs that cannot exist, completions ──▶ Seen (plain data) ──▶ judge ──▶ findings
//! ```

mod absent;
mod gather;
mod judge;
mod servers;

use crate::Outcome;
use crate::args::LintArgs;
use crate::connect;
use crate::error::Failed;
use crate::output::{self, plain};
use clap::builder::styling::AnsiColor;
use gather::SeenResource;
use judge::{Finding, Severity};
use mcp_resources_client::Client;
use serde_json::json;
use std::io::{BufWriter, Write};

/// Exit status: the server could not be checked.
const COULD_NOT_JUDGE: u8 = 2;

/// Checks a server, or what a gateway makes of the servers of a file.
pub(crate) fn lint(args: &LintArgs) -> Outcome {
    let outcome = match servers::whole_file(args) {
        Some(config) => servers::run(args, &config),
        None => connect::with(args.server.clone(), async |client| run(args, client).await),
    };
    status(outcome)
}

/// Checks the server, and writes the findings.
async fn run(args: &LintArgs, client: &Client) -> Outcome {
    let seen = gather::all(client, args.limit).await?;
    let findings = judge::all(&seen);
    write(args, &findings)?;
    output::say("note", &summary(&findings, &seen));
    Ok(u8::from(!findings.is_empty()))
}

fn write(args: &LintArgs, findings: &[Finding]) -> Result<(), Failed> {
    let mut out = BufWriter::new(anstream::stdout());
    for finding in findings {
        match args.json {
            true => writeln!(out, "{}", output::json(&as_json(finding).to_string()))?,
            false => write!(out, "{}", for_people(finding))?,
        }
    }
    out.flush()?;
    Ok(())
}

/// The error for a server that cannot be reached.
fn status(outcome: Outcome) -> Outcome {
    match outcome {
        Err(Failed::Message { text, .. }) => Err(Failed::Message { text, status: COULD_NOT_JUDGE }),
        other => other,
    }
}

fn as_json(finding: &Finding) -> serde_json::Value {
    json!({
        "severity": finding.severity.as_str(),
        "rule": finding.rule,
        "subject": finding.subject,
        "what": finding.what,
        "fix": finding.fix,
    })
}

fn for_people(finding: &Finding) -> String {
    let style = match finding.severity {
        Severity::Error => AnsiColor::Red.on_default().bold(),
        Severity::Warning => AnsiColor::Yellow.on_default().bold(),
    };
    let severity = finding.severity.as_str();
    let subject = plain(&finding.subject);
    format!(
        "{style}{severity}{style:#} {subject}: {}\n  fix: {}\n",
        plain(&finding.what),
        plain(&finding.fix)
    )
}

fn counted(findings: &[Finding]) -> String {
    match findings.len() {
        0 => "no mistakes found".to_owned(),
        1 => "1 mistake found".to_owned(),
        count => format!("{count} mistakes found"),
    }
}

fn summary(findings: &[Finding], seen: &SeenResource) -> String {
    let found = counted(findings);
    let resources = seen.resources.count;
    let templates = seen.templates.count;
    let number_of = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let resources = number_of(resources, "resource");
    let templates = number_of(templates, "template");
    match seen.has_resources {
        true => format!("{found} in {resources} ({} read) and {templates}", seen.reads.len()),
        false => "the server has no resources".to_owned(),
    }
}
