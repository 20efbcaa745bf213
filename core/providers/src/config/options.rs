//! Which files are served, and what of them.

use crate::masks::{Detectors, texts};
use crate::options::option_table;
use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, Step, set_all};
use std::path::{Path, PathBuf};

/// The options of [`Config`](super::Config), for all files that they name.
///
/// ```no_run
/// use mcp_resources_providers::config::{Config, Options};
/// let options = Options::new().app("demo", "app.yaml").allow(["server", "server/**"]);
/// let config = Config::new(options)?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) apps: Vec<NamedFile>,
    /// `None`: it was not set.
    pub(super) allow: Option<Vec<String>>,
    pub(super) reveal: Vec<String>,
    pub(super) redact: Detectors,
}

/// A file, and the name of its application.
#[derive(Clone, Debug)]
pub(super) struct NamedFile {
    /// `None`: the stem of the file.
    pub(super) name: Option<String>,
    pub(super) file: PathBuf,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl Options {
    /// No file yet, and nothing allowed.
    pub fn new() -> Self {
        Self { apps: Vec::new(), allow: None, reveal: Vec::new(), redact: Detectors::All }
    }
}

impl Options {
    /// Serves `file` as `config:///NAME`.
    #[must_use]
    pub fn app(mut self, name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        self.apps.push(NamedFile { name: Some(name.into()), file: file.into() });
        self
    }

    /// Serves `file` under its own name without the extension.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.apps.push(NamedFile { name: None, file: file.into() });
        self
    }

    /// Takes relative paths of files as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        self.apps.iter_mut().for_each(|app| app.file = folder.join(&app.file));
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

    /// Which detectors look for secrets in values: names of
    /// [`Redactor::names`](mcp_resources_engine::guard::Redactor::names). Default: all. Names such as `password` mask in any case.
    #[must_use]
    pub fn redact(mut self, detectors: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.redact = Detectors::Named(detectors.into_iter().map(Into::into).collect());
        self
    }
}

option_table!(Options, "a file, a list of them, or an object of options" {
    "apps": "a file, a list of them, or names with a file each", None,
        "What is served: each YAML, TOML, JSON or .env file as config:///NAME; one without a name has its own, without the extension." => read_apps;
    "allow": "a list of globs", None,
        "Only keys whose path matches one of them exist: `server` is that key, `server/**` all in it, `*` is within a segment." =>
        |own, value| { own.allow = Some(texts(value)?); Ok(()) };
    "reveal": "a list of globs", Some("[]"),
        "Values whose path matches one of them are never masked." =>
        |own, value| { own.reveal = texts(value)?; Ok(()) };
    "redact": "all or a list of detectors", Some("all"),
        "Which detectors of the guard look for secrets in values; names such as password or api_key mask a value in any case." =>
        |own, value| { own.redact = Detectors::from_option(value)?; Ok(()) };
});

impl FromOption for Options {
    const EXPECTED: &'static str = "a file, a list of them, or an object of options";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let mut options = Self::new();
        match value {
            OptionValue::Members(_) => set_all(&mut options, value)?,
            OptionValue::Text(file) => options = options.file(file),
            OptionValue::List(items) => options.apps = files(items)?,
            other => return Err(OptionError::wrong_type(&other, <Self as FromOption>::EXPECTED)),
        }
        Ok(options)
    }
}

fn read_apps(options: &mut Options, value: OptionValue) -> Result<(), OptionError> {
    const EXPECTED: &str = "a file, a list of them, or names with a file each";
    options.apps = match value {
        OptionValue::Text(file) => vec![NamedFile { name: None, file: file.into() }],
        OptionValue::List(items) => files(items)?,
        OptionValue::Members(members) => {
            let named = |(name, value): (String, OptionValue)| {
                let file = String::from_option(value)
                    .map_err(|error| error.under(Step::Name(name.clone().into())))?;
                Ok(NamedFile { name: Some(name), file: file.into() })
            };
            members.into_iter().map(named).collect::<Result<_, OptionError>>()?
        }
        other => return Err(OptionError::wrong_type(&other, EXPECTED)),
    };
    Ok(())
}

/// Files, each alone or with its name before it.
fn files(items: Vec<OptionValue>) -> Result<Vec<NamedFile>, OptionError> {
    let file = |(at, item): (usize, OptionValue)| {
        let read = match item {
            OptionValue::List(_) => <(String, String)>::from_option(item)
                .map(|(name, file)| NamedFile { name: Some(name), file: file.into() }),
            other => String::from_option(other).map(|file| NamedFile { name: None, file: file.into() }),
        };
        read.map_err(|error| error.under(Step::Item(at)))
    };
    items.into_iter().enumerate().map(file).collect()
}

/// What `config:FILE,GLOB,…` and `config:NAME=FILE,GLOB,…` declare.
pub(crate) fn word(rest: &str) -> OptionValue {
    let mut parts = rest.split(',');
    let file = parts.next().unwrap_or_default();
    let file = match file.split_once('=') {
        Some((name, file)) if !name.contains('/') => OptionValue::List(vec![name.into(), file.into()]),
        _ => file.into(),
    };
    let mut members = vec![("apps".to_owned(), OptionValue::List(vec![file]))];
    let globs: Vec<OptionValue> = parts.map(OptionValue::from).collect();
    if !globs.is_empty() {
        members.push(("allow".into(), OptionValue::List(globs)));
    }
    OptionValue::Members(members)
}

impl NamedFile {
    /// The name of the application, if a URI can have it.
    pub(super) fn resolve(&self) -> Result<String, OptionError> {
        let file = self.file.display();
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                self.file.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned).ok_or_else(|| {
                    OptionError::sentence(format!(
                        "config: the file {file} has no name that is a text; give it one: NAME=FILE"
                    ))
                })?
            }
        };
        if name.is_empty() || crate::path::text(name.as_bytes()) != name {
            return Err(OptionError::sentence(format!(
                "config: {name:?} is no name for {file}; give it one of letters, digits, `-`, `_` and `.`: NAME=FILE"
            )));
        }
        Ok(name)
    }
}
