//! `serve`: serves providers without code.
//!
//! ```text
//!  words, or a file ──▶ mcp-resources-serve ──▶ mounts of one ResourceServer ──▶ stdio, or HTTP (address)
//!                          ▲ SIGHUP: reads the file again, and replaces the kinds that have changed
//! ```
//!
//! Law: stdout contains protocol messages only. A file with a mistake leaves the served resources unchanged. The thread
//! that answers never waits for a source or a file: a reload runs on a thread of its own.

mod address;
mod beside;
mod check;
mod notify;

use crate::Outcome;
use crate::args::{Serve, Triggers};
use crate::error::Failed;
use crate::output;
use mcp_resources_engine::limits::Limits;
use mcp_resources_providers::db;
use mcp_resources_providers::options::{OptionDefault, OptionRow, OptionType};
use mcp_resources_providers::registry::{self, ProviderSet};
use mcp_resources_runtime::server::{Diagnostic, ResourceServer};
use mcp_resources_serve::{ConfigLog, ConfigMessage, OpenedConfig, ServeDocument, ServeWatch, masked};
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Serves until stdin closes, or a signal ends it. Both are an orderly end: status 0.
pub(crate) fn run(args: &Serve) -> Outcome {
    let document = document(args).map_err(Failed::usage)?;
    if args.check {
        return check::run(document, args);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(system)?;
    let ended = runtime.block_on(serve(document, args));
    // A worker that waits for a disk must not keep the program alive.
    runtime.shutdown_background();
    ended
}

/// Prints the triggers that the databases of words or of a file need.
pub(crate) fn triggers(args: &Triggers) -> Outcome {
    let document = match &args.config {
        Some(path) => ServeDocument::of_file(path),
        None => ServeDocument::of_words(&args.provider),
    };
    let usage = |reason: String| Failed::usage(masked(&reason));
    let document = document.map_err(usage)?;
    let folder = document.folder();
    let databases = document.declared().filter(|(kind, _)| *kind == "db").map(|(_, options)| options.clone());
    let sql = db::triggers(databases, &folder).map_err(|error| usage(error.to_string()))?;
    io::stdout().lock().write_all(sql.as_bytes())?;
    Ok(0)
}

/// Prints the tables of options, one line for each kind, and that of the limits.
pub(crate) fn options() -> Outcome {
    let mut out = io::stdout().lock();
    for kind in registry::kinds() {
        let options: Vec<Value> = kind.options.iter().map(described).collect();
        writeln!(out, "{}", json!({ "kind": kind.name, "about": kind.about, "options": options }))?;
    }
    let limits = Limits::table();
    let limits =
        limits.iter().map(|row| json!({ "name": row.name, "default": row.default, "about": row.about }));
    writeln!(out, "{}", json!({ "kind": "limits", "options": limits.collect::<Vec<_>>() }))?;
    Ok(0)
}

fn described(row: &OptionRow) -> Value {
    let default = (row.default != OptionDefault::Required).then(|| row.default.to_string());
    let (words, members): (&[&str], &[OptionRow]) = match row.kind {
        OptionType::Words(words) => (words, &[]),
        OptionType::Named(_, members) => (&[], members),
        _ => (&[], &[]),
    };
    let members: Vec<Value> = members.iter().map(described).collect();
    json!({
        "name": row.name,
        "kind": row.kind.to_string(),
        "type": row.kind.word(),
        "words": words,
        "members": members,
        "default": default,
        "about": row.about,
    })
}

fn document(args: &Serve) -> Result<ServeDocument, String> {
    let read = match &args.config {
        Some(path) => ServeDocument::of_file(path),
        None if args.provider.is_empty() => ServeDocument::of_words(&here()),
        None => ServeDocument::of_words(&args.provider),
    };
    let mut document = read.map_err(|reason| masked(&reason))?;
    if let Some(url) = &args.bus {
        document.set_bus(url.clone());
    }
    Ok(document)
}

/// The default: the files of the current directory and, if it is the root of a git repository, the repository.
fn here() -> Vec<String> {
    let mut words = vec!["files:.".to_owned()];
    let git = "git:.";
    match registry::parse_shorthand(git).and_then(|(kind, options)| ProviderSet::new().add(&kind, options)) {
        Ok(()) => words.push(git.into()),
        // There is a repository that cannot be served: the message says why.
        Err(reason) if Path::new(".git").exists() => output::say("note", &reason.to_string()),
        Err(_) => {}
    }
    words
}

async fn serve(document: ServeDocument, args: &Serve) -> Outcome {
    // Registered before anything is opened, so that an early SIGHUP is not lost.
    let mut hangups = match &args.config {
        Some(_) => Some(signal(SignalKind::hangup()).map_err(system)?),
        None => None,
    };
    let warning = address::without_groups(&document, args);
    let opened = open(document)?;
    let endpoint = address::open(opened.document(), args)?;
    let (server, watch) = begin(opened, args)?;
    if let Some(warning) = warning {
        output::say("warning", warning);
    }
    if endpoint.is_none() && io::stdin().is_terminal() {
        output::say("note", "serving over stdio: a client speaks MCP here; Ctrl-C ends it");
    }
    let failed = |error: io::Error| Failed::new(error.to_string());
    let end: std::pin::Pin<Box<dyn Future<Output = Outcome>>> = match endpoint {
        Some(endpoint) => Box::pin(async move { endpoint.serve(server).await.map(|()| 0).map_err(failed) }),
        None if !args.command.is_empty() => Box::pin(beside::serve(server, &args.command)),
        None => Box::pin(async move { server.run_stdio().await.map(|()| 0).map_err(failed) }),
    };
    let reloads = async {
        match (&mut hangups, &watch) {
            (Some(hangups), Some(watch)) => {
                while hangups.recv().await.is_some() {
                    watch.reload();
                }
                pending().await
            }
            _ => pending::<()>().await,
        }
    };
    tokio::select! {
        ended = end => ended,
        () = reloads => Ok(0),
    }
}

/// Opens what a document names.
fn open(document: ServeDocument) -> Result<OpenedConfig, Failed> {
    let log: ConfigLog = Arc::new(|message| match message {
        ConfigMessage::Note(text) => output::say("note", text),
        ConfigMessage::Warning(text) => output::say("warning", text),
        ConfigMessage::Error(text) => output::say("error", text),
    });
    OpenedConfig::open(document, log).map_err(|error| Failed::usage(error.to_string()))
}

/// Makes the server, and looks at its files from now on.
fn begin(opened: OpenedConfig, args: &Serve) -> Result<(ResourceServer, Option<ServeWatch>), Failed> {
    let notify = notify::Notify::from_document(opened.document(), args);
    let begun = mcp_resources_serve::begin(opened, args.watch_config, |builder, tools| {
        let builder = notify.iter().fold(builder, |builder, notify| notify.offer(builder));
        builder.expose_as_tools(tools && !args.no_tools).metrics(args.status.is_some()).diagnostics(
            |diagnostic| match diagnostic {
                Diagnostic::Warning(text) => output::say("warning", text),
                other => output::say("warning", &other.to_string()),
            },
        )
    });
    let (server, watch) = begun.map_err(|error| Failed::usage(error.to_string()))?;
    notify.iter().for_each(|notify| notify.reaches(&server));
    Ok((server, watch))
}

fn system(error: io::Error) -> Failed {
    Failed::new(format!("the system refuses what is needed: {error}"))
}
