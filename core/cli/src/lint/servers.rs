//! `lint --config FILE`: what a gateway cannot merge of the servers of a file, for each of its agents.

use super::judge::{Finding, Severity};
use super::{COULD_NOT_JUDGE, write};
use crate::args::LintArgs;
use crate::error::Failed;
use crate::{Outcome, output};
use mcp_resources_client::{ClientConfig, ConfigError, guard_children};
use mcp_resources_provider_upstream::{UpstreamConflict, Upstreams};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::runtime::Handle;

/// The time for a look at all servers of an agent: they may have to be started.
const LOOK: Duration = Duration::from_secs(30);

/// The file of `args`, if it is to be checked as a whole: no server of it is named, and it has several, or agents.
pub(super) fn whole_file(args: &LintArgs) -> Option<ClientConfig> {
    let path = args.server.config.as_ref()?;
    if args.server.server.is_some() || !args.server.command.is_empty() {
        return None;
    }
    // What cannot be read is reported by the selection of one server.
    let config = ClientConfig::load(path).ok()?;
    let is_gateway = config.server_names().nth(1).is_some() || config.agent_names().next().is_some();
    is_gateway.then_some(config)
}

/// Starts the servers, compares what they have, and writes the findings.
pub(super) fn run(args: &LintArgs, config: &ClientConfig) -> Outcome {
    let failed = |error: std::io::Error| Failed::new(error.to_string());
    if let Err(error) = guard_children() {
        output::say("warning", &format!("servers may outlive a command that is killed: {error}"));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let found = runtime.block_on(async {
        let upstreams = Upstreams::new(Handle::current(), |server, note| {
            output::say("note", &format!("{server}: {note}"));
        });
        let found = tokio::select! {
            found = conflicts(args, config, &upstreams) => found.map_err(Failed::from),
            _ = tokio::signal::ctrl_c() => Err(Failed::Signal(2)),
        };
        upstreams.close().await;
        found
    });
    runtime.shutdown_background();
    let findings: Vec<Finding> = found?.iter().map(finding).collect();
    write(args, &findings)?;
    let count = config.server_names().count();
    output::say("note", &format!("{} in {count} servers", super::counted(&findings)));
    let has_hidden = findings.iter().any(|finding| finding.rule == UNREACHABLE);
    Ok(if has_hidden { COULD_NOT_JUDGE } else { u8::from(!findings.is_empty()) })
}

async fn conflicts(
    args: &LintArgs,
    config: &ClientConfig,
    upstreams: &Upstreams,
) -> Result<BTreeSet<UpstreamConflict>, ConfigError> {
    let agents: Vec<Option<String>> = match &args.server.agent {
        Some(agent) => vec![Some(agent.clone())],
        None => {
            let agents: Vec<_> = config.agent_names().map(|name| Some(name.to_owned())).collect();
            if agents.is_empty() { vec![None] } else { agents }
        }
    };
    let mut found = BTreeSet::new();
    for agent in agents {
        let provider = upstreams.provider(config.servers(agent.as_deref())?)?;
        found.extend(provider.conflicts(LOOK).await);
    }
    Ok(found)
}

/// The rule of a server that could not be looked at.
const UNREACHABLE: &str = "unreachable-server";

fn finding(conflict: &UpstreamConflict) -> Finding {
    let both = |servers: &[String]| servers.join(" and ");
    let renamed = |kind: &str, name: &str, servers: &[String]| {
        let names: Vec<String> = servers.iter().map(|server| format!("{server}_{name}")).collect();
        format!("{} have a {kind} of this name; agents see {}", both(servers), names.join(" and "))
    };
    let leave_out = "set \"prefix\" in the entry of one of them, or leave it out there with \"tools\"";
    let (severity, rule, subject, what, fix) = match conflict {
        UpstreamConflict::Unreachable { server, reason } => (
            Severity::Error,
            UNREACHABLE,
            server.clone(),
            format!("it cannot be looked at: {reason}"),
            "start it by hand with the command or the URL of its entry",
        ),
        UpstreamConflict::Tool { name, servers } => {
            (Severity::Warning, "equal-tool-name", name.clone(), renamed("tool", name, servers), leave_out)
        }
        UpstreamConflict::Prompt { name, servers } => (
            Severity::Warning,
            "equal-prompt-name",
            name.clone(),
            renamed("prompt", name, servers),
            leave_out,
        ),
        UpstreamConflict::Uri { uri, servers, shown } => (
            Severity::Warning,
            if uri.starts_with("ui://") { "equal-page" } else { "equal-uri" },
            uri.clone(),
            format!("{} have it; agents see {}", both(servers), shown.join(" and ")),
            "set \"prefix\" in the entry of one of them, or leave it out there with \"resources\"",
        ),
        UpstreamConflict::Template { template, other, servers } => (
            Severity::Warning,
            "overlapping-template",
            template.clone(),
            match &servers[..] {
                [first, second] => {
                    format!("{other} of {second} has URIs of it too; they are looked for at {first} first")
                }
                _ => format!("{other} has URIs of it too"),
            },
            "set \"prefix\" in the entry of one of them",
        ),
        UpstreamConflict::InvalidTemplate { server, template } => (
            Severity::Warning,
            "invalid-template",
            template.clone(),
            format!("this template of {server} cannot be parsed, so its URIs are looked for at every server"),
            "set \"prefix\" in the entry of the server, or mend the template there",
        ),
        other => (Severity::Warning, "conflict", String::new(), format!("{other:?}"), "set \"prefix\""),
    };
    Finding { severity, rule, subject, what, fix: fix.into() }
}
