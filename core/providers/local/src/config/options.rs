//! Options of the config provider.

use crate::masks::Detectors;
use mcp_resources_engine::option::{FromOption, OptionError};
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::options::{option_table, paths_or_options, put, texts};
use std::path::{Path, PathBuf};

/// The options of [`Config`](super::Config), for all files that they name.
///
/// ```no_run
/// use mcp_resources_provider_local::config::{Config, ConfigOptions};
/// let options = ConfigOptions::new().app("demo", "app.yaml").allow(["server", "server/**"]);
/// let config = Config::new(options)?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConfigOptions {
    pub(super) apps: Vec<NamedPath>,
    /// `None`: it was not set.
    pub(super) allow: Option<Vec<String>>,
    pub(super) reveal: Vec<String>,
    pub(super) redact: Detectors,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl ConfigOptions {
    /// No file yet, and nothing allowed.
    pub fn new() -> Self {
        Self { apps: Vec::new(), allow: None, reveal: Vec::new(), redact: Detectors::All }
    }
}

impl ConfigOptions {
    /// Serves `file` as `config:///NAME`.
    #[must_use]
    pub fn app(mut self, name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        self.apps.push(NamedPath::new(name, file));
        self
    }

    /// Serves `file` under its own name without the extension.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.apps.push(NamedPath::plain(file));
        self
    }

    /// Takes relative paths of files as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        named::join(folder, &mut self.apps);
        self
    }

    /// Serves the keys whose path matches one of `globs`, and no others: `server` is that key, `server/**` all in it.
    #[must_use]
    pub fn allow(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allow = Some(globs.into_iter().map(Into::into).collect());
        self
    }

    /// Masks no value whose path matches one of `globs`. Default: none.
    #[must_use]
    pub fn reveal(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.reveal = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Selects the detectors that look for secrets in values: names of
    /// [`Redactor::names`](mcp_resources_engine::guard::Redactor::names). Default: all. A key such as `password` is
    /// masked whatever they are.
    #[must_use]
    pub fn redact(mut self, detectors: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.redact = Detectors::Named(detectors.into_iter().map(Into::into).collect());
        self
    }
}

option_table!(ConfigOptions, "a file, a list of them, or an object of options" {
    "apps": "a file, a list of them, or names with a file each", None,
        "Serves each YAML, TOML, JSON or .env file as config:///NAME. A file without a name keeps its own, without the extension." =>
        |own, value| put(&mut own.apps, named::read(value, "file"));
    "allow": "a list of globs", None,
        "Only keys whose path matches a glob exist: `server` is that key, `server/**` is all keys in it. `*` stays within a segment." =>
        |own, value| { own.allow = Some(texts(value)?); Ok(()) };
    "reveal": "a list of globs", Some("[]"),
        "Values whose path matches a glob are never masked." =>
        |own, value| put(&mut own.reveal, texts(value));
    "redact": "all or a list of detectors", Some("all"),
        "Which detectors of the guard search values for secrets. A name such as password or api_key always masks its value." =>
        |own, value| put(&mut own.redact, Detectors::from_option(value));
});

paths_or_options!(ConfigOptions, apps: "file");

/// The name of an application, if a URI can have it.
pub(super) fn name_of(named: &NamedPath) -> Result<String, OptionError> {
    let file = named.path.display();
    let name = match &named.name {
        Some(name) => name.clone(),
        None => {
            named.path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned).ok_or_else(|| {
                OptionError::sentence(format!(
                    "config: the file {file} has no name that is a text; give it one: NAME=FILE"
                ))
            })?
        }
    };
    if name.is_empty() || mcp_resources_provider_kit::path::text(name.as_bytes()) != name {
        return Err(OptionError::sentence(format!(
            "config: {name:?} is no name for {file}; give it one of letters, digits, `-`, `_` and `.`: NAME=FILE"
        )));
    }
    Ok(name)
}
