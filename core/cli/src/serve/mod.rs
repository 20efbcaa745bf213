//! `serve`: serves providers without code.
//!
//! ```text
//!  words, or a file ──▶ document ──▶ providers ──▶ mounts of one ResourceServer ──▶ stdio, or HTTP (address, auth)
//!                          ▲ SIGHUP: reads the file again, and replaces the kinds that have changed
//! ```
//!
//! Law: stdout contains protocol messages only. A file with a mistake leaves the served resources unchanged. The thread
//! that answers never waits for a source or a file: a reload runs on a thread of its own (`state`).

mod address;
mod audience;
mod auth;
mod beside;
mod check;
mod document;
mod pushed;
mod secrets;
mod state;
mod status;

use crate::Outcome;
use crate::args::{Serve, Triggers};
use crate::error::Failed;
use crate::output;
use auth::FileState;
use mcp_resources_engine::guard::Redactor;
use mcp_resources_engine::limits::Limits;
use mcp_resources_providers::db;
use mcp_resources_providers::options::{OptionDefault, OptionRow, OptionType};
use mcp_resources_providers::registry::{self, ProviderSet};
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use document::ServeDocument;
pub(crate) use secrets::without_values;
use state::ServeState;

/// The time between two looks at the file of `--watch-config`.
const LOOK: Duration = Duration::from_millis(250);

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
    let folder = args.config.as_deref().map_or(PathBuf::from("."), folder_of);
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
    read.map_err(|reason| masked(&reason))
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
    let hangups = match &args.config {
        Some(_) => Some(signal(SignalKind::hangup()).map_err(system)?),
        None => None,
    };
    let folder = args.config.as_deref().map_or(PathBuf::from("."), folder_of);
    let endpoint = address::open(&document, &folder, args)?;
    let warning = address::without_groups(&document, args);
    let serving = ServeState::begin(document, folder, args)?;
    if let Some(warning) = warning {
        output::say("warning", warning);
    }
    let server = serving.server.clone();
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
        match &args.config {
            Some(path) => {
                let mut reasons =
                    ReloadReasons { hangups, watched: args.watch_config.then(|| WatchedDocument::new(path)) };
                reload_on(&mut reasons, serving, path).await
            }
            None => pending().await,
        }
    };
    tokio::select! {
        ended = end => ended,
        () = reloads => Ok(0),
    }
}

/// Reads the file again after each SIGHUP, on another thread: a source may let it wait, and the file too. Signals that come
/// meanwhile are followed by one more reload.
async fn reload_on(reasons: &mut ReloadReasons, mut serving: ServeState, path: &Path) {
    let mut is_asked = false;
    loop {
        if !std::mem::take(&mut is_asked) {
            reasons.next().await;
        }
        let file = path.to_owned();
        let mut reload = tokio::task::spawn_blocking(move || {
            serving.reload(&file);
            serving
        });
        let ended = loop {
            tokio::select! {
                ended = &mut reload => break ended,
                () = reasons.next() => {
                    if !std::mem::replace(&mut is_asked, true) {
                        output::say("note", &format!("{}: still being read; it is read again after that", path.display()));
                    }
                }
            }
        };
        match ended {
            Ok(back) => serving = back,
            // A provider has panicked. What is mounted stays so.
            Err(_) => {
                output::say(
                    "error",
                    "the reload failed unexpectedly; start the server again for changes of the file",
                );
                return pending().await;
            }
        }
    }
}

/// What lets the file be read again.
struct ReloadReasons {
    hangups: Option<Signal>,
    watched: Option<WatchedDocument>,
}

/// The file of `--watch-config`.
struct WatchedDocument {
    path: PathBuf,
    /// The state that was read last.
    seen: Option<FileState>,
}

impl ReloadReasons {
    /// Waits for the next SIGHUP, or for a change of the file.
    async fn next(&mut self) {
        let hung_up = async {
            match &mut self.hangups {
                Some(hangups) => drop(hangups.recv().await),
                None => pending().await,
            }
        };
        let changed = async {
            match &mut self.watched {
                Some(file) => file.changed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = hung_up => {}
            () = changed => {}
        }
    }
}

impl WatchedDocument {
    fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), seen: FileState::of(path) }
    }

    /// Waits until the file is another one, and for as long as it is being written or is not there.
    async fn changed(&mut self) {
        let mut last = self.seen;
        loop {
            tokio::time::sleep(LOOK).await;
            let now = FileState::of(&self.path);
            if now.is_some() && now == last && now != self.seen {
                self.seen = now;
                return;
            }
            last = now;
        }
    }
}

/// A message without the secrets that it may quote, such as the password in the URL of a database.
fn masked(message: &str) -> String {
    // The form that a message recommends is not a secret.
    const FORM: &str = "postgres://USER:PASSWORD@HOST";
    let redactor = Redactor::all();
    let parts: Vec<_> = message.split(FORM).map(|part| redactor.redact(part.into())).collect();
    parts.join(FORM)
}

fn folder_of(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).into()
}

fn system(error: io::Error) -> Failed {
    Failed::new(format!("the system refuses what is needed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::masked;

    // S-20: what a message quotes is masked, and what it recommends is not.
    #[test]
    fn messages_have_no_secrets() {
        let form = "write postgres://USER:PASSWORD@HOST:PORT/NAME";
        for (message, expected) in [
            (
                "db is \"postgres://me:hunter2@host/x\", expected an object",
                "db is \"postgres://me:[redacted:url-password]@host/x\", expected an object",
            ),
            ("the root ././a does not exist", "the root ././a does not exist"),
            (form, form),
        ] {
            assert_eq!(masked(message), expected);
        }
    }
}
