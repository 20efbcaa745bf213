//! The server of `serve`, and the changes of its file while it runs.
//!
//! ```text
//!   document ──▶ providers with the URIs of each entry ──▶ policy (guard, and `for` of the entries) ──▶ server, mounts
//! ```
//!
//! Law: a source is never mounted under a policy that does not know it. A document with a mistake changes nothing.

use super::audience;
use super::document::{DeclaredSources, GuardSection, ServeDocument, ServerSection};
use super::{auth, masked, pushed};
use crate::args::Serve;
use crate::error::Failed;
use crate::output;
use mcp_resources_engine::catalog::MountId;
use mcp_resources_engine::engine::{InstructionPart, ServerInfo};
use mcp_resources_engine::guard::{Guard, Policy};
use mcp_resources_providers::registry::{self, DeclaredUris, ProviderSet};
use mcp_resources_runtime::provider::Provider;
use mcp_resources_runtime::server::{Builder, Diagnostic, ResourceServer};
use mcp_resources_runtime::transport::AuditFile;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A server with its mounts.
pub(super) struct ServeState {
    pub(super) server: ResourceServer,
    folder: PathBuf,
    mounted: Vec<MountedSource>,
    about: ServerSection,
    /// The guard as it was written.
    guard: Value,
    policy: Policy,
    auth: Option<auth::AuthSection>,
    tls: Option<auth::TlsSection>,
}

/// The providers of one kind.
struct MountedSource {
    declared: DeclaredSources,
    /// By entry.
    uris: Vec<DeclaredUris>,
    providers: Vec<(Arc<dyn Provider>, MountId)>,
}

/// The providers of one kind, before they are mounted.
struct OpenedSource {
    declared: DeclaredSources,
    /// By entry.
    uris: Vec<DeclaredUris>,
    providers: Vec<Arc<dyn Provider>>,
}

impl ServeState {
    /// Opens the sources of a document, and makes their server.
    pub(super) fn begin(document: ServeDocument, folder: PathBuf, args: &Serve) -> Result<Self, Failed> {
        let made: Vec<_> = document
            .providers
            .iter()
            .map(|declared| OpenedSource::open(&document, declared, &folder))
            .collect::<Result<_, _>>()
            .map_err(|reason: String| Failed::usage(masked(&reason)))?;
        let wrong = |reason: String| Failed::usage(masked(&document.named(reason)));
        let all = made.iter().map(|opened| (&*opened.declared.kind, &*opened.uris));
        let policy = audience::policy(&document, document.guard.policy.clone(), all)
            .map_err(|reason| Failed::usage(masked(&reason)))?;
        let about = document.about.clone();
        let version = about.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
        let mut builder = ResourceServer::builder(&about.name, version)
            .expose_as_tools(!args.no_tools && about.tools)
            .metrics(args.status.is_some());
        if let Some(title) = &about.title {
            builder = builder.title(title);
        }
        if let Some(description) = &about.description {
            builder = builder.description(description);
        }
        builder = match &about.instructions {
            Some(instructions) => builder.instructions(instructions),
            None => made
                .iter()
                .filter_map(|opened| sentence(&opened.declared.kind, &opened.uris))
                .fold(builder, |builder, part| builder.instructions_about(part.text, part.about)),
        };
        let builder = guarded(builder, &document.guard, &policy, &folder).map_err(wrong)?;
        let server = builder.build().map_err(|error| wrong(error.to_string()))?;
        pushed::warn_of_empty(&document);
        let guard = document.guard.source.clone();
        let auth = document.auth.clone();
        let tls = document.tls.clone();
        let mut serving = Self { server, folder, mounted: Vec::new(), about, guard, policy, auth, tls };
        for opened in made {
            serving.mount(opened).map_err(wrong)?;
        }
        Ok(serving)
    }

    /// Mounts all providers of a kind, or none.
    fn mount(&mut self, opened: OpenedSource) -> Result<(), String> {
        let mut done: Vec<(Arc<dyn Provider>, MountId)> = Vec::new();
        for provider in opened.providers {
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
        self.mounted.push(MountedSource { declared: opened.declared, uris: opened.uris, providers: done });
        Ok(())
    }

    /// Reads the file again. Providers that have not changed stay mounted, with their subscriptions.
    pub(super) fn reload(&mut self, path: &Path) {
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
        let is_same = |key: &str| document.guard.source.get(key) == self.guard.get(key);
        for (what, is_same) in [
            ("guard.limits", is_same("limits")),
            ("guard.http", is_same("http")),
            ("guard.audit", is_same("audit")),
            ("guard.redact", is_same("redact")),
            ("auth or tls", document.auth == self.auth && document.tls == self.tls),
            ("tools", document.about.tools == self.about.tools),
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
            .map(|declared| OpenedSource::open(document, declared, &self.folder))
            .collect::<Result<_, _>>()?;
        let policy = self.next_policy(document, &new)?;
        let (kept, old): (Vec<_>, Vec<_>) = std::mem::take(&mut self.mounted).into_iter().partition(is_kept);
        self.mounted = kept;
        let changes_sources = !(old.is_empty() && new.is_empty());
        // A removed source goes before its rules do, and a new one comes after them.
        for (_, id) in old.iter().flat_map(|mounted| &mounted.providers) {
            self.server.unmount(*id);
        }
        let before = self.mounted.len();
        let mounting =
            self.server.set_guard(&policy).map_err(|error| error.to_string()).and_then(|changed| {
                new.into_iter().try_for_each(|opened| self.mount(opened)).map(|()| changed)
            });
        match mounting {
            Ok(changes_policy) => {
                self.policy = policy;
                let changes_about = self.describe(document)?;
                Ok(match changes_sources {
                    true => "with its changes",
                    false if changes_policy || changes_about => "no provider has changed, the rest has",
                    false => "no provider has changed",
                })
            }
            Err(reason) => {
                for (_, id) in self.mounted.drain(before..).flat_map(|mounted| mounted.providers) {
                    self.server.unmount(id);
                }
                self.server.set_guard(&self.policy).map_err(|error| error.to_string())?;
                for MountedSource { declared, uris, providers } in old {
                    let providers = providers.into_iter().map(|(provider, _)| provider).collect();
                    self.mount(OpenedSource { declared, uris, providers })?;
                }
                Err(document.named(reason))
            }
        }
    }

    /// The policy of another document, checked. `redact` stays what it is.
    fn next_policy(&self, document: &ServeDocument, new: &[OpenedSource]) -> Result<Policy, String> {
        let mut policy = document.guard.policy.clone();
        policy.redact.clone_from(&self.policy.redact);
        let kept = self.mounted.iter().filter(|mounted| document.providers.contains(&mounted.declared));
        let kept = kept.map(|mounted| (&*mounted.declared.kind, &*mounted.uris));
        let new = new.iter().map(|opened| (&*opened.declared.kind, &*opened.uris));
        let policy = audience::policy(document, policy, kept.chain(new))?;
        Guard::new(&policy, false).map_err(|error| document.named(error.to_string()))?;
        Ok(policy)
    }

    /// Gives the server the name and the other texts of a document. Returns whether they are others.
    fn describe(&mut self, document: &ServeDocument) -> Result<bool, String> {
        let about = ServerSection { tools: self.about.tools, ..document.about.clone() };
        let is_other = about != self.about;
        let parts = self.mounted.iter().filter_map(|mounted| sentence(&mounted.declared.kind, &mounted.uris));
        let info = ServerInfo {
            name: about.name.clone(),
            version: about.version.clone().unwrap_or_else(|| env!("CARGO_PKG_VERSION").into()),
            title: about.title.clone(),
            description: about.description.clone(),
            instructions: about.instructions.clone(),
            instruction_parts: if about.instructions.is_some() { Vec::new() } else { parts.collect() },
            ..ServerInfo::default()
        };
        self.server.set_info(info).map_err(|error| document.named(error.to_string()))?;
        self.about = about;
        Ok(is_other)
    }
}

impl OpenedSource {
    /// Opens the entries of a kind. Relative paths begin at `folder`.
    fn open(document: &ServeDocument, declared: &DeclaredSources, folder: &Path) -> Result<Self, String> {
        let mut set = ProviderSet::at(folder);
        let mut uris = Vec::with_capacity(declared.entries.len());
        for (number, options) in declared.entries.iter().enumerate() {
            let named = |reason: String| document.named_entry(&declared.kind, number, reason);
            let options = pushed::served(&declared.kind, options.clone()).map_err(named)?;
            uris.push(set.declare(&declared.kind, options).map_err(|error| named(error.to_string()))?);
        }
        Ok(Self { declared: declared.clone(), uris, providers: set.providers() })
    }
}

/// The default `instructions` about a kind: its sentence, for those who may see a URI of it.
fn sentence(kind: &str, uris: &[DeclaredUris]) -> Option<InstructionPart> {
    let known = registry::kinds().find(|known| known.name == kind)?;
    let mut about: Vec<String> =
        uris.iter().flat_map(|uris| &uris.schemes).map(|scheme| format!("{scheme}:{{+rest}}")).collect();
    about.sort_unstable();
    about.dedup();
    Some(InstructionPart { text: known.about.into(), about })
}

fn guarded(
    builder: Builder,
    guard: &GuardSection,
    policy: &Policy,
    folder: &Path,
) -> Result<Builder, String> {
    let builder =
        builder.limits(guard.limits.clone()).guard(policy.clone()).diagnostics(
            |diagnostic| match diagnostic {
                Diagnostic::Warning(text) => output::say("warning", text),
                other => output::say("warning", &other.to_string()),
            },
        );
    let Some(audit) = &guard.audit else { return Ok(builder) };
    let file = AuditFile::open(folder.join(&audit.file)).map_err(|error| format!("guard.{error}"))?;
    Ok(builder.audit(match audit.rotation {
        Some(rotation) => file.rotated(rotation),
        None => file,
    }))
}
