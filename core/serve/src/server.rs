//! Servers in Rust from a configuration file.

use crate::log::{ConfigFileError, ConfigLog, ConfigMessage};
use crate::opened::OpenedConfig;
use crate::watch::ServeWatch;
use mcp_resources_engine::engine::{ServerInfo, Setup};
use mcp_resources_engine::http::Rules;
use mcp_resources_runtime::provider::Mounts;
use mcp_resources_runtime::registry::Registry;
use mcp_resources_runtime::server::{Builder, ResourceServer};
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_runtime::transport::AuditFile;
use mcp_resources_runtime::transport::http::HttpOptions;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

/// The options of [`FromConfig::from_config_with`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct FromConfigOptions {
    /// Whether changes of the file take effect while the server runs. Default `true`.
    pub watch: bool,
}

/// Makes a server from the configuration file of `mcp-resources serve`.
///
/// ```no_run
/// use mcp_resources::{FromConfig, ReadRequest, ResourceServer, ServerChanges, Template};
///
/// # async fn main_() -> Result<(), Box<dyn std::error::Error>> {
/// let server = ResourceServer::from_config("team.yaml")?;
/// server.apply(ServerChanges::new().template(Template::new("note://{id}"), |_: ReadRequest| async { "a note" }))?;
/// server.http().bind("127.0.0.1:8000").await?.serve().await;
/// # Ok(()) }
/// ```
pub trait FromConfig: Sized {
    /// Makes a server with the sources, the guard, the limits and the audit log of the file, and mounts the sources.
    /// [`ResourceServer::http`] begins with the file's paths, tokens and TLS.
    ///
    /// The file is looked at while the server exists. A changed guard, `for`, entry, name or file of tokens takes effect
    /// without ending sessions. A file with a mistake is reported, and changes nothing.
    ///
    /// # Errors
    /// [`ConfigFileError`]: the sentence that `mcp-resources serve --check` prints.
    fn from_config(path: impl AsRef<Path>) -> Result<Self, ConfigFileError> {
        Self::from_config_with(path, FromConfigOptions::default())
    }

    /// Like [`FromConfig::from_config`], with options.
    ///
    /// # Errors
    /// As [`FromConfig::from_config`].
    fn from_config_with(path: impl AsRef<Path>, options: FromConfigOptions) -> Result<Self, ConfigFileError>;
}

impl Default for FromConfigOptions {
    fn default() -> Self {
        Self { watch: true }
    }
}

impl FromConfig for ResourceServer {
    fn from_config_with(path: impl AsRef<Path>, options: FromConfigOptions) -> Result<Self, ConfigFileError> {
        let log = LateLog::default();
        let opened = OpenedConfig::of_file(path.as_ref(), log.as_log())?;
        let (server, watch) = begin(opened, options.watch, |builder, _| builder)?;
        log.writes_to(&server.parts().mounts);
        if let Some(watch) = watch {
            server.keep(Box::new(watch));
        }
        Ok(server)
    }
}

/// Makes the server of an opened configuration. `with` gets its builder, and whether the file wants the resources as tools.
///
/// # Errors
/// [`ConfigFileError`] if the server or a source of it is refused, or the system gives no thread.
#[doc(hidden)]
pub fn begin(
    mut opened: OpenedConfig,
    looks: bool,
    with: impl FnOnce(Builder, bool) -> Builder,
) -> Result<(ResourceServer, Option<ServeWatch>), ConfigFileError> {
    let setup = opened.setup();
    let info = setup.info.clone();
    let tools = setup.options.expose_as_tools;
    let mut builder = Builder::from(setup).http_options(opened.http().clone());
    if let Some(audit) = opened.take_audit() {
        builder = builder.audit(audit);
    }
    if let Some(bus) = opened.take_bus() {
        builder = builder.bus(bus);
    }
    let server = with(builder, tools).build().map_err(|error| opened.refused(&error))?;
    let running = opened.begin(server.parts(), info)?;
    let watch = ServeWatch::start(running, looks).map_err(|error| no_thread(&error))?;
    Ok((server, watch))
}

fn no_thread(error: &std::io::Error) -> ConfigFileError {
    ConfigFileError::new(&format!("the file cannot be watched, because the system gives no thread: {error}"))
}

/// An opened configuration for a server whose handlers are of another language.
#[doc(hidden)]
pub struct ForeignConfig {
    opened: OpenedConfig,
    log: LateLog,
    looks: bool,
}

/// The configuration of a running server whose handlers are of another language.
#[doc(hidden)]
pub struct ServedConfig {
    path: PathBuf,
    http: HttpOptions,
    watch: Option<ServeWatch>,
}

impl ForeignConfig {
    /// Reads a file, and opens what it names. `looks`: whether its changes take effect while the server runs.
    ///
    /// # Errors
    /// [`ConfigFileError`] for the first mistake.
    pub fn open(path: &Path, looks: bool) -> Result<Self, ConfigFileError> {
        let log = LateLog::default();
        Ok(Self { opened: OpenedConfig::of_file(path, log.as_log())?, log, looks })
    }

    /// See [`OpenedConfig::setup`].
    pub fn setup(&self) -> Setup {
        self.opened.setup()
    }

    /// See [`OpenedConfig::take_audit`].
    pub fn take_audit(&mut self) -> Option<AuditFile> {
        self.opened.take_audit()
    }

    /// Mounts the sources in the server of a registry with the description `info`, and looks at the files from now on.
    ///
    /// # Errors
    /// [`ConfigFileError`] if the server or a source of it is refused, or the system gives no thread.
    pub fn begin<H>(self, registry: &Registry<H>, info: ServerInfo) -> Result<ServedConfig, ConfigFileError> {
        let Self { mut opened, log, looks } = self;
        if let Some(bus) = opened.take_bus() {
            registry.connect_bus(bus).map_err(|error| opened.refused(&error))?;
        }
        let parts = registry.parts().map_err(|error| opened.refused(&error))?;
        let mounts = parts.mounts.clone();
        let path = opened.document().path().map(Path::to_owned).unwrap_or_default();
        let http = opened.http().clone();
        let running = opened.begin(parts, info)?;
        let watch = ServeWatch::start(running, looks).map_err(|error| no_thread(&error))?;
        log.writes_to(&mounts);
        Ok(ServedConfig { path, http, watch })
    }
}

impl ServedConfig {
    /// The options with which endpoints begin.
    pub fn http(&self) -> &HttpOptions {
        &self.http
    }

    /// The rules with which an endpoint inside another HTTP server begins.
    ///
    /// # Errors
    /// [`ConfigFileError`] if clients are known by their addresses, which such an endpoint is not told in a way that it can
    /// trust.
    pub fn embedded_rules(&self) -> Result<Rules, ConfigFileError> {
        match &self.http.identity {
            None => Ok(self.http.rules.clone()),
            Some(_) => Err(ConfigFileError::new(&format!(
                "{}: auth.identity needs a server with sockets of its own, which sees the addresses of the proxy; serve \
                 HTTP without a framework, or give this endpoint an auth of its own",
                self.path.display()
            ))),
        }
    }

    /// Call this in a forked process.
    pub fn forked(&self) {
        self.watch.iter().for_each(ServeWatch::forked);
    }
}

/// A log whose warnings and errors go to the log of a server, which is known later than the first message.
#[derive(Clone, Default)]
struct LateLog(Arc<LateLogState>);

#[derive(Default)]
struct LateLogState {
    mounts: OnceLock<Weak<Mounts>>,
    early: Mutex<Vec<String>>,
}

/// Maximum number of messages before the server is known.
const EARLY: usize = 16;

impl LateLog {
    /// The function that gets messages. Notes are left out.
    fn as_log(&self) -> ConfigLog {
        let state = self.0.clone();
        Arc::new(move |message| {
            let (ConfigMessage::Warning(text) | ConfigMessage::Error(text)) = message else { return };
            match state.mounts.get() {
                Some(mounts) => {
                    if let Some(mounts) = mounts.upgrade() {
                        mounts.report(text.to_owned());
                    }
                }
                None => {
                    let mut early = state.early.lock();
                    if early.len() < EARLY {
                        early.push(text.to_owned());
                    }
                }
            }
        })
    }

    /// Writes all messages so far, and later ones, to the log of this server.
    fn writes_to(&self, mounts: &Arc<Mounts>) {
        // Only the first server is used.
        let _ = self.0.mounts.set(Arc::downgrade(mounts));
        let early = std::mem::take(&mut *self.0.early.lock());
        early.into_iter().for_each(|text| mounts.report(text));
    }
}
