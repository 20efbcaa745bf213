//! `serve`: serves providers without code.
//!
//! ```text
//!  words, or a file ──▶ document ──▶ providers ──▶ mounts of one ResourceServer ──▶ stdio, or HTTP (address, auth)
//!                          ▲ SIGHUP: reads the file again, and replaces the kinds that have changed
//! ```
//!
//! Law: stdout contains protocol messages only. A file with a mistake leaves the served resources unchanged. The thread
//! that answers never waits for a source or a file: a reload runs on a thread of its own.

mod address;
mod auth;
mod beside;
mod check;
mod document;
mod pushed;

use crate::Outcome;
use crate::args::{Serve, Triggers};
use crate::error::Failed;
use crate::output;
use document::{DeclaredSources, GuardSection, ServerSection};
use mcp_resources_engine::catalog::MountId;
use mcp_resources_engine::guard::Redactor;
use mcp_resources_engine::limits::Limits;
use mcp_resources_providers::db;
use mcp_resources_providers::options::{OptionDefault, OptionRow, OptionType};
use mcp_resources_providers::registry::{self, ProviderSet};
use mcp_resources_runtime::provider::Provider;
use mcp_resources_runtime::server::{Builder, Diagnostic, ResourceServer};
use mcp_resources_runtime::transport::AuditFile;
use serde_json::{Value, json};
use std::future::{Future, pending};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};

pub use document::ServeDocument;

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
    let mut hangups = match &args.config {
        Some(_) => Some(signal(SignalKind::hangup()).map_err(system)?),
        None => None,
    };
    let folder = args.config.as_deref().map_or(PathBuf::from("."), folder_of);
    let endpoint = address::open(&document, &folder, args)?;
    let serving = ServeState::begin(document, folder, !args.no_tools)?;
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
            Some(path) => reload_on(&mut hangups, serving, path).await,
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
async fn reload_on(hangups: &mut Option<Signal>, mut serving: ServeState, path: &Path) {
    let mut is_asked = false;
    loop {
        if !std::mem::take(&mut is_asked) {
            hung_up(hangups).await;
        }
        let file = path.to_owned();
        let mut reload = tokio::task::spawn_blocking(move || {
            serving.reload(&file);
            serving
        });
        let ended = loop {
            tokio::select! {
                ended = &mut reload => break ended,
                () = hung_up(hangups) => {
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

/// Waits for the next SIGHUP; for ever on systems without it.
async fn hung_up(hangups: &mut Option<Signal>) {
    match hangups {
        Some(hangups) => drop(hangups.recv().await),
        None => pending().await,
    }
}

/// A server with its mounts.
struct ServeState {
    server: ResourceServer,
    folder: PathBuf,
    mounted: Vec<MountedSource>,
    about: ServerSection,
    /// The guard as it was written.
    guard: Value,
    auth: Option<auth::AuthSection>,
    tls: Option<auth::TlsSection>,
}

/// The providers of one kind.
struct MountedSource {
    declared: DeclaredSources,
    providers: Vec<(Arc<dyn Provider>, MountId)>,
}

impl ServeState {
    /// With `tools` the resources are offered as tools too, unless the document says otherwise.
    fn begin(document: ServeDocument, folder: PathBuf, tools: bool) -> Result<Self, Failed> {
        let made: Vec<_> = document
            .providers
            .iter()
            .map(|declared| made(&document, declared, &folder).map(|providers| (declared.clone(), providers)))
            .collect::<Result<_, _>>()
            .map_err(|reason: String| Failed::usage(masked(&reason)))?;
        let wrong = |reason: String| Failed::usage(masked(&document.named(reason)));
        let about = document.about.clone();
        let guard = document.guard.source.clone();
        let version = about.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        let mut builder = ResourceServer::builder(&about.name, version).expose_as_tools(tools && about.tools);
        if let Some(title) = &about.title {
            builder = builder.title(title);
        }
        if let Some(description) = &about.description {
            builder = builder.description(description);
        }
        let kinds = made.iter().map(|(declared, _)| declared.kind.as_str());
        builder = builder.instructions(about.instructions.clone().unwrap_or_else(|| sentences(kinds)));
        let builder = guarded(builder, &document.guard, &folder).map_err(wrong)?;
        let server = builder.build().map_err(|error| wrong(error.to_string()))?;
        pushed::warn_of_empty(&document);
        let auth = document.auth.clone();
        let tls = document.tls.clone();
        let mut serving = Self { server, folder, mounted: Vec::new(), about, guard, auth, tls };
        for (declared, providers) in made {
            serving.mount(declared, providers).map_err(wrong)?;
        }
        Ok(serving)
    }

    /// Mounts all providers of a kind, or none.
    fn mount(&mut self, declared: DeclaredSources, providers: Vec<Arc<dyn Provider>>) -> Result<(), String> {
        let mut done: Vec<(Arc<dyn Provider>, MountId)> = Vec::new();
        for provider in providers {
            match self.server.mount(provider.clone()) {
                Ok(id) => done.push((provider, id)),
                Err(error) => {
                    for (_, id) in done {
                        self.server.unmount(id);
                    }
                    return Err(error.to_string());
                }
            }
        }
        self.mounted.push(MountedSource { declared, providers: done });
        Ok(())
    }

    /// Reads the file again. Providers that have not changed stay mounted, with their subscriptions.
    fn reload(&mut self, path: &Path) {
        let read = ServeDocument::of_file(path)
            .and_then(|document| self.replace(&document).map(|changed| (document, changed)));
        match read {
            Ok((document, changed)) => {
                pushed::warn_of_empty(&document);
                self.warn_of_restart(&document);
                output::say("note", &format!("{}: read again, {changed}", path.display()));
            }
            Err(reason) => {
                output::say("error", &format!("{}; what was served before is still served", masked(&reason)));
            }
        }
    }

    /// Reports the changes of a file that need a restart.
    fn warn_of_restart(&self, document: &ServeDocument) {
        for (what, is_same) in [
            ("guard", document.guard.source == self.guard),
            ("auth or tls", document.auth == self.auth && document.tls == self.tls),
            ("name, version, title, description, instructions or tools", document.about == self.about),
        ] {
            if !is_same {
                let text = format!("a change of {what} takes effect when the server is started again");
                output::say("warning", &text);
            }
        }
    }

    fn replace(&mut self, document: &ServeDocument) -> Result<&'static str, String> {
        let is_kept = |mounted: &MountedSource| document.providers.contains(&mounted.declared);
        let new: Vec<_> = document
            .providers
            .iter()
            .filter(|declared| !self.mounted.iter().any(|mounted| mounted.declared == **declared))
            .map(|declared| {
                made(document, declared, &self.folder).map(|providers| (declared.clone(), providers))
            })
            .collect::<Result<_, _>>()?;
        let (kept, old): (Vec<_>, Vec<_>) = std::mem::take(&mut self.mounted).into_iter().partition(is_kept);
        self.mounted = kept;
        if old.is_empty() && new.is_empty() {
            return Ok("no provider has changed");
        }
        for (_, id) in old.iter().flat_map(|mounted| &mounted.providers) {
            self.server.unmount(*id);
        }
        let before = self.mounted.len();
        let mounting = new.into_iter().try_for_each(|(declared, providers)| self.mount(declared, providers));
        let Err(reason) = mounting else { return Ok("with its changes") };
        for (_, id) in self.mounted.drain(before..).flat_map(|mounted| mounted.providers) {
            self.server.unmount(id);
        }
        for mounted in old {
            let providers = mounted.providers.into_iter().map(|(provider, _)| provider).collect();
            self.mount(mounted.declared, providers)?;
        }
        Err(document.named(reason))
    }
}

/// The default `instructions`: which kinds of resources there are, and their URIs.
fn sentences<'k>(kinds: impl Iterator<Item = &'k str>) -> String {
    let of = |kind: &str| registry::kinds().find(|known| known.name == kind).map(|known| known.about);
    let all: Vec<&str> = kinds.filter_map(of).collect();
    all.join(" ")
}

/// The providers of a kind. Relative paths begin at `folder`.
fn made(
    document: &ServeDocument,
    declared: &DeclaredSources,
    folder: &Path,
) -> Result<Vec<Arc<dyn Provider>>, String> {
    let mut set = ProviderSet::at(folder);
    for (number, options) in declared.entries.iter().enumerate() {
        let named = |reason: String| document.named_entry(&declared.kind, number, reason);
        let options = pushed::served(&declared.kind, options.clone()).map_err(named)?;
        set.add(&declared.kind, options).map_err(|error| named(error.to_string()))?;
    }
    Ok(set.providers())
}

fn guarded(builder: Builder, guard: &GuardSection, folder: &Path) -> Result<Builder, String> {
    let builder =
        builder.limits(guard.limits.clone()).guard(guard.policy.clone()).diagnostics(|diagnostic| {
            match diagnostic {
                Diagnostic::Warning(text) => output::say("warning", text),
                other => output::say("warning", &other.to_string()),
            }
        });
    let Some(path) = &guard.audit else { return Ok(builder) };
    let path = folder.join(path);
    let file = AuditFile::open(&path).map_err(|error| format!("guard.{error}"))?;
    Ok(builder.audit(file))
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
