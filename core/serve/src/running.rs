//! The configuration of a running server, and the changes of its document.
//!
//! ```text
//!   document ──▶ providers with the URIs of each entry ──▶ policy (guard, and `for` of the entries) ──▶ server, mounts
//! ```
//!
//! Law: a source is never mounted under a policy that does not know it. A document with a mistake changes nothing.

use crate::audience;
use crate::auth::{AuthSection, CertificateFiles, FileState, TlsSection};
use crate::document::{DeclaredSources, ServeDocument, ServerSection};
use crate::log::{ConfigLog, ConfigMessage};
use crate::opened::{OpenedConfig, OpenedSource, RenewedFiles, sentence};
use crate::pushed;
use crate::secrets::masked;
use mcp_resources_engine::catalog::MountId;
use mcp_resources_engine::engine::ServerInfo;
use mcp_resources_engine::guard::{Guard, Policy};
use mcp_resources_providers::registry::DeclaredUris;
use mcp_resources_runtime::provider::Provider;
use mcp_resources_runtime::registry::ServerParts;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The configuration of a running server, with its mounts.
pub struct RunningConfig {
    server: ServerParts,
    /// The path of the document.
    pub(crate) path: Option<PathBuf>,
    /// The state of the document before it was read.
    pub(crate) seen: Option<FileState>,
    folder: PathBuf,
    mounted: Vec<MountedSource>,
    about: ServerSection,
    /// The description of the server, as it is now.
    info: ServerInfo,
    /// The guard as it was written.
    guard: Value,
    policy: Policy,
    auth: Option<AuthSection>,
    tls: Option<TlsSection>,
    bus: Option<String>,
    pub(crate) files: RenewedFiles,
    pub(crate) log: ConfigLog,
}

/// The providers of one kind.
struct MountedSource {
    declared: DeclaredSources,
    /// By entry.
    uris: Vec<DeclaredUris>,
    providers: Vec<(Arc<dyn Provider>, MountId)>,
}

impl RunningConfig {
    pub(crate) fn begin(opened: OpenedConfig, server: ServerParts, info: ServerInfo) -> Result<Self, String> {
        let OpenedConfig { document, folder, sources, policy, files, log, .. } = opened;
        let mut running = Self {
            server,
            path: document.path().map(Path::to_owned),
            seen: document.seen,
            folder,
            mounted: Vec::new(),
            about: document.about.clone(),
            info,
            guard: document.guard.source.clone(),
            policy,
            auth: document.auth.clone(),
            tls: document.tls.clone(),
            bus: document.bus.clone(),
            files,
            log,
        };
        for opened in sources {
            running.mount(opened).map_err(|reason| document.named(reason))?;
        }
        Ok(running)
    }

    fn say(&self, message: ConfigMessage<'_>) {
        (self.log)(message);
    }

    fn unmount(&self, id: MountId) {
        self.server.mounts.unmount(id);
    }

    fn set_guard(&self, policy: &Policy) -> Result<bool, String> {
        let now = self.server.clock.now();
        self.server.engine.set_policy(policy, now).map_err(|error| error.to_string())
    }

    /// Mounts all providers of a kind, or none.
    fn mount(&mut self, opened: OpenedSource) -> Result<(), String> {
        let mut done: Vec<(Arc<dyn Provider>, MountId)> = Vec::new();
        for provider in opened.providers {
            match self.server.mounts.mount(provider.clone()) {
                Ok(id) => done.push((provider, id)),
                Err(error) => {
                    for (_, id) in done {
                        self.unmount(id);
                    }
                    return Err(error.to_string());
                }
            }
        }
        self.mounted.push(MountedSource { declared: opened.declared, uris: opened.uris, providers: done });
        Ok(())
    }

    /// Reads the file again. Providers that have not changed stay mounted, with their subscriptions.
    pub(crate) fn reload(&mut self, path: &Path) {
        let read = ServeDocument::of_file(path)
            .and_then(|document| self.replace(&document).map(|changed| (document, changed)));
        match read {
            Ok((document, changed)) => {
                pushed::warn_of_empty(&document, &self.log);
                self.warn_of_restart(&document);
                self.say(ConfigMessage::Note(&format!("{}: read again, {changed}", path.display())));
            }
            Err(reason) => {
                let text = format!("{}; what was served before is still served", masked(&reason));
                self.say(ConfigMessage::Error(&text));
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
            ("bus", document.bus == self.bus),
        ] {
            if !is_same {
                let text = format!("a change of {what} takes effect when the server is started again");
                self.say(ConfigMessage::Warning(&text));
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
            self.unmount(*id);
        }
        let before = self.mounted.len();
        let mounting = self
            .set_guard(&policy)
            .and_then(|changed| new.into_iter().try_for_each(|opened| self.mount(opened)).map(|()| changed));
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
                    self.server.mounts.unmount(id);
                }
                self.set_guard(&self.policy)?;
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
        let mut info = self.info.clone();
        info.instruction_parts = if about.instructions.is_some() { Vec::new() } else { parts.collect() };
        about.describe(&mut info);
        let set = self.server.engine.set_info(info.clone());
        set.map_err(|error| document.named(error.to_string()))?;
        self.info = info;
        self.about = about;
        Ok(is_other)
    }

    /// Reads a changed file of tokens, and a changed certificate.
    pub(crate) fn renew(&mut self) {
        match self.files.tokens.as_ref().map_or(Ok(Vec::new()), |file| file.refresh()) {
            // Their subscriptions end, and their tokens are asked for again.
            Ok(names) => names.iter().for_each(|name| self.server.engine.revoke(name)),
            Err(reason) => self.say(ConfigMessage::Error(&masked(&reason))),
        }
        match self.files.certificate.as_mut().map_or(Ok(false), CertificateFiles::refresh) {
            Ok(true) => {
                self.say(ConfigMessage::Note("the certificate was renewed"));
                if let Some(warning) = self.files.certificate.as_ref().and_then(CertificateFiles::warning) {
                    self.say(ConfigMessage::Warning(&warning));
                }
            }
            Ok(false) => {}
            Err(reason) => self.say(ConfigMessage::Error(&masked(&reason))),
        }
    }
}
