//! Options of the config provider.

use crate::masks::Detectors;
use mcp_resources_engine::option::{FromOption, OptionError};
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{OptionDefault, OptionType};
use std::path::{Path, PathBuf};

provider_options! {
    /// The options of [`Config`](super::Config), for all files that they name.
    ///
    /// ```no_run
    /// use mcp_resources_provider_local::config::{Config, ConfigOptions};
    /// let options = ConfigOptions::new().app("demo", "app.yaml").allow(["server", "server/**"]);
    /// let config = Config::new(options)?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ConfigOptions: "a file, a list of them, or an object of options", or apps: Text | List {
        /// Serves each YAML, TOML, JSON or `.env` file as `config:///NAME`. A file without a name keeps its own, without the
        /// extension.
        apps: paths("file", "names");
        /// Globs over the paths of keys: only keys that match one of them are served. `server` is one key, `server/**` all keys
        /// in it; `*` matches within a path segment.
        allow: some_texts("glob");
        /// Globs: the values of keys that match one of them are never masked.
        reveal: texts("glob") = [];
        /// The detectors of secrets that mask values, by name, or `all`. Keys such as `password` or `api_key` are masked in any
        /// case.
        redact: custom(Detectors, Detectors::from_option, OptionType::AllOr("detector"), OptionDefault::Text("all"))
            = Detectors::All;
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

    /// Selects the detectors that look for secrets in values: names of
    /// [`Redactor::names`](mcp_resources_engine::guard::Redactor::names). Default: all. A key such as `password` is
    /// masked whatever they are.
    #[must_use]
    pub fn redact(mut self, detectors: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.redact = Detectors::Named(detectors.into_iter().map(Into::into).collect());
        self
    }
}

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
