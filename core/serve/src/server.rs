//! Servers in Rust from a configuration file.

use crate::log::{ConfigFileError, ConfigLog, ConfigMessage};
use crate::opened::OpenedConfig;
use crate::watch::ConfigWatch;
use mcp_resources_runtime::provider::Mounts;
use mcp_resources_runtime::server::{Builder, ResourceServer};
use std::path::Path;
use std::sync::{Arc, OnceLock, Weak};

/// The options of [`FromConfig::from_config_with`].
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ConfigOptions {
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
        Self::from_config_with(path, ConfigOptions::default())
    }

    /// Like [`FromConfig::from_config`], with options.
    ///
    /// # Errors
    /// As [`FromConfig::from_config`].
    fn from_config_with(path: impl AsRef<Path>, options: ConfigOptions) -> Result<Self, ConfigFileError>;
}

impl Default for ConfigOptions {
    fn default() -> Self {
        Self { watch: true }
    }
}

impl FromConfig for ResourceServer {
    fn from_config_with(path: impl AsRef<Path>, options: ConfigOptions) -> Result<Self, ConfigFileError> {
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
) -> Result<(ResourceServer, Option<ConfigWatch>), ConfigFileError> {
    let setup = opened.setup();
    let info = setup.info.clone();
    let tools = setup.options.expose_as_tools;
    let mut builder = Builder::from(setup).http_options(opened.http().clone());
    if let Some(audit) = opened.take_audit() {
        builder = builder.audit(audit);
    }
    let server = with(builder, tools).build().map_err(|error| opened.refused(&error))?;
    let running = opened.begin(server.parts(), info)?;
    let watch = ConfigWatch::start(running, looks).map_err(|error| no_thread(&error))?;
    Ok((server, watch))
}

fn no_thread(error: &std::io::Error) -> ConfigFileError {
    ConfigFileError::new(&format!("the file cannot be watched, because the system gives no thread: {error}"))
}

/// A log whose warnings and errors go to the log of a server, which is known later than the first message.
#[derive(Clone, Default)]
pub struct LateLog(Arc<LateLogState>);

#[derive(Default)]
struct LateLogState {
    mounts: OnceLock<Weak<Mounts>>,
    early: mcp_resources_runtime::sync::Mutex<Vec<String>>,
}

/// Maximum number of messages before the server is known.
const EARLY: usize = 16;

impl LateLog {
    /// The function that gets messages. Notes are left out.
    pub fn as_log(&self) -> ConfigLog {
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
    pub fn writes_to(&self, mounts: &Arc<Mounts>) {
        // Only the first server is used.
        let _ = self.0.mounts.set(Arc::downgrade(mounts));
        let early = std::mem::take(&mut *self.0.early.lock());
        early.into_iter().for_each(|text| mounts.report(text));
    }
}
