//! A document whose sources and files are open: all that a server of any language is made of.
//!
//! Law: everything that the document names is opened before a server exists, so a mistake leaves nothing behind.

use crate::audience;
use crate::auth::{CertificateFiles, TokenFile};
use crate::bus;
use crate::document::{DeclaredSources, ServeDocument};
use crate::log::{ConfigFileError, ConfigLog};
use crate::pushed;
use crate::running::RunningConfig;
use mcp_resources_engine::engine::{EngineOptions, InstructionPart, ServerInfo, Setup};
use mcp_resources_engine::guard::{Guard, Policy};
use mcp_resources_engine::seal::SealKey;
use mcp_resources_providers::registry::{self, DeclaredUris, ProviderSet};
use mcp_resources_runtime::bus::Bus;
use mcp_resources_runtime::provider::Provider;
use mcp_resources_runtime::registry::ServerParts;
use mcp_resources_runtime::transport::AuditFile;
use mcp_resources_runtime::transport::http::HttpOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options of a server that stand in its configuration file alone: what code says of them would be overruled when the file
/// changes.
pub const FILE_OPTIONS: [&str; 6] = ["name", "version", "title", "description", "instructions", "guard"];

/// An opened configuration, before its server is made.
pub struct OpenedConfig {
    pub(crate) document: ServeDocument,
    pub(crate) folder: PathBuf,
    pub(crate) sources: Vec<OpenedSource>,
    pub(crate) policy: Policy,
    pub(crate) files: RenewedFiles,
    pub(crate) log: ConfigLog,
    audit: Option<AuditFile>,
    http: HttpOptions,
    keys: Vec<SealKey>,
    bus: Option<Arc<dyn Bus>>,
}

/// The files whose changes take effect while the server runs, besides the document.
#[derive(Default)]
pub(crate) struct RenewedFiles {
    pub(crate) tokens: Option<Arc<TokenFile>>,
    pub(crate) certificate: Option<CertificateFiles>,
}

impl RenewedFiles {
    /// Whether there is a file to look at.
    pub(crate) fn are_some(&self) -> bool {
        self.tokens.is_some() || self.certificate.is_some()
    }
}

/// The providers of one kind, before they are mounted.
pub(crate) struct OpenedSource {
    pub(crate) declared: DeclaredSources,
    /// By entry.
    pub(crate) uris: Vec<DeclaredUris>,
    pub(crate) providers: Vec<Arc<dyn Provider>>,
}

impl OpenedConfig {
    /// Reads a file, and opens what it names.
    ///
    /// # Errors
    /// [`ConfigFileError`] for the first mistake.
    pub fn of_file(path: &Path, log: ConfigLog) -> Result<Self, ConfigFileError> {
        let document = ServeDocument::of_file(path).map_err(|reason| ConfigFileError::new(&reason))?;
        Self::open(document, log)
    }

    /// Opens what a document names.
    ///
    /// # Errors
    /// [`ConfigFileError`] for the first mistake.
    pub fn open(document: ServeDocument, log: ConfigLog) -> Result<Self, ConfigFileError> {
        Self::opened(document, log).map_err(|reason| ConfigFileError::new(&reason))
    }

    fn opened(document: ServeDocument, log: ConfigLog) -> Result<Self, String> {
        let folder = document.folder();
        let mut http = HttpOptions::new(document.guard.rules.clone());
        let mut files = RenewedFiles::default();
        if let Some(auth) = &document.auth {
            let auth = auth.open(&folder, &log).map_err(|reason| document.named(reason))?;
            files.tokens = auth.apply(&mut http);
        }
        if let Some(tls) = &document.tls {
            let opened = tls.open(&folder, &log).map_err(|reason| document.named(reason))?;
            http.tls = Some(opened.tls.clone());
            files.certificate = Some(opened);
        }
        let sources: Vec<_> = document
            .providers
            .iter()
            .map(|declared| OpenedSource::open(&document, declared, &folder))
            .collect::<Result<_, _>>()?;
        let all = sources.iter().map(|opened| (&*opened.declared.kind, &*opened.uris));
        let policy = audience::policy(&document, document.guard.policy.clone(), all)?;
        Guard::new(&policy, false).map_err(|error| document.named(error.to_string()))?;
        let audit = document.guard.audit.as_ref().map(|audit| audit.open(&folder));
        let audit = audit.transpose().map_err(|reason| document.named(reason))?;
        let keys = match document.keys.is_empty() {
            true => bus::keys_of_environment()?,
            false => document.keys.clone(),
        };
        let bus = document.bus.as_ref().map(|url| bus::open(url, &keys));
        let bus = bus.transpose().map_err(|reason| document.named(reason))?;
        pushed::warn_of_empty(&document, &log);
        Ok(Self { document, folder, sources, policy, files, log, audit, http, keys, bus })
    }

    /// The document.
    pub fn document(&self) -> &ServeDocument {
        &self.document
    }

    /// The description and the options of its server.
    pub fn setup(&self) -> Setup {
        let mut info = ServerInfo::default();
        self.document.about.describe(&mut info);
        if info.instructions.is_none() {
            let parts = self.sources.iter();
            info.instruction_parts =
                parts.filter_map(|opened| sentence(&opened.declared.kind, &opened.uris)).collect();
        }
        let mut options = EngineOptions::default();
        options.expose_as_tools = self.document.about.tools;
        options.limits.clone_from(&self.document.guard.limits);
        options.guard.clone_from(&self.policy);
        options.keys.clone_from(&self.keys);
        Setup { info, options }
    }

    /// The sink of its audit records. `None` if it has none, or if it was taken before.
    pub fn take_audit(&mut self) -> Option<AuditFile> {
        self.audit.take()
    }

    /// The bus to the other processes of the server. `None` if it has none, or if it was taken before.
    pub fn take_bus(&mut self) -> Option<Arc<dyn Bus>> {
        self.bus.take()
    }

    /// The options of its endpoints: paths, tokens, identity and TLS.
    pub fn http(&self) -> &HttpOptions {
        &self.http
    }

    /// Mounts the sources in the server that was made from [`OpenedConfig::setup`]. `info` is its description.
    ///
    /// # Errors
    /// [`ConfigFileError`] for the first source that is refused.
    pub fn begin(self, parts: ServerParts, info: ServerInfo) -> Result<RunningConfig, ConfigFileError> {
        RunningConfig::begin(self, parts, info).map_err(|reason| ConfigFileError::new(&reason))
    }

    /// The error for a server that cannot be made from [`OpenedConfig::setup`].
    pub fn refused(&self, error: &dyn std::error::Error) -> ConfigFileError {
        ConfigFileError::new(&self.document.named(error.to_string()))
    }
}

impl OpenedSource {
    /// Opens the entries of a kind. Relative paths begin at `folder`.
    pub(crate) fn open(
        document: &ServeDocument,
        declared: &DeclaredSources,
        folder: &Path,
    ) -> Result<Self, String> {
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
pub(crate) fn sentence(kind: &str, uris: &[DeclaredUris]) -> Option<InstructionPart> {
    let known = registry::kinds().find(|known| known.name == kind)?;
    let mut about: Vec<String> =
        uris.iter().flat_map(|uris| &uris.schemes).map(|scheme| format!("{scheme}:{{+rest}}")).collect();
    about.sort_unstable();
    about.dedup();
    Some(InstructionPart { text: known.about.into(), about })
}
