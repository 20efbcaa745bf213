//! All kinds of providers of this build, and the sets that a program declares by words and values: in a file, on a command
//! line, in another language.
//!
//! ```
//! use mcp_resources_engine::option::OptionValue;
//! use mcp_resources_providers::registry::{self, ProviderSet};
//! # #[cfg(all(feature = "clock", feature = "files"))] {
//! let mut set = ProviderSet::new();
//! let (kind, options) = registry::parse_shorthand("files:project=.")?;
//! set.add(&kind, options)?;
//! set.add("clock", OptionValue::None)?;
//! assert_eq!(set.providers().len(), 2);
//! # }
//! # Ok::<(), mcp_resources_engine::option::OptionError>(())
//! ```
//!
//! Law: several declarations of one kind are one provider, and the options of each apply to that declaration alone.

use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::suggest::closest;
use mcp_resources_provider_kit::declared::{Declare, Reader};
use mcp_resources_provider_kit::options::OptionKind;
use mcp_resources_runtime::provider::Provider;
use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A provider that was declared, or why it cannot be.
type Made = Result<Box<dyn Declared>, OptionError>;

/// A row of the table of kinds.
struct KindEntry {
    kind: OptionKind,
    declare: fn(OptionValue, &Path) -> Made,
    parse_shorthand: Reader,
    shorthands: &'static [(&'static str, Reader)],
}

/// The kinds that this build has, by name.
const ENTRIES: &[KindEntry] = &[
    #[cfg(feature = "api")]
    entry::<crate::Api>(),
    #[cfg(feature = "clock")]
    entry::<crate::Clock>(),
    #[cfg(feature = "config")]
    entry::<crate::Config>(),
    #[cfg(feature = "db")]
    entry::<crate::Db>(),
    #[cfg(feature = "docs")]
    entry::<crate::Docs>(),
    #[cfg(feature = "config")]
    entry::<crate::Env>(),
    #[cfg(feature = "files")]
    entry::<crate::Files>(),
    #[cfg(feature = "git")]
    entry::<crate::Git>(),
    #[cfg(feature = "memory")]
    entry::<crate::Memory>(),
    #[cfg(feature = "metrics")]
    entry::<crate::Metrics>(),
    #[cfg(feature = "rag")]
    entry::<crate::Rag>(),
    #[cfg(feature = "results")]
    entry::<crate::Results>(),
    #[cfg(feature = "skills")]
    entry::<crate::Skills>(),
    #[cfg(all(feature = "upstream", unix))]
    entry::<crate::Upstream>(),
];

/// Their names.
const NAMES: [&str; ENTRIES.len()] = {
    let mut names = [""; ENTRIES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ENTRIES[at].kind.name;
        at += 1;
    }
    names
};

#[cfg_attr(
    not(any(
        feature = "api",
        feature = "clock",
        feature = "config",
        feature = "db",
        feature = "docs",
        feature = "files",
        feature = "git",
        feature = "memory",
        feature = "metrics",
        feature = "rag",
        feature = "results",
        feature = "skills",
        all(feature = "upstream", unix)
    )),
    expect(dead_code, reason = "a build without a provider has no row")
)]
const fn entry<T: Declare>() -> KindEntry {
    KindEntry {
        kind: T::KIND,
        declare: |options, folder| {
            T::declare(options, folder).map(|own| -> Box<dyn Declared> { Box::new(own) })
        },
        parse_shorthand: T::parse_shorthand,
        shorthands: T::SHORTHANDS,
    }
}

/// A provider that was declared, whatever type it is.
trait Declared: fmt::Debug {
    /// See [`Declare::places`] and [`Declare::schemes`].
    fn uris(&self) -> DeclaredUris;
    /// See [`Declare::merge`]. Both are of one kind.
    fn merge(&mut self, other: Box<dyn Declared>) -> Result<(), OptionError>;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
    fn into_provider(self: Box<Self>) -> Arc<dyn Provider>;
}

impl<T: Declare> Declared for T {
    fn uris(&self) -> DeclaredUris {
        DeclaredUris { places: self.places(), schemes: self.schemes() }
    }

    fn merge(&mut self, other: Box<dyn Declared>) -> Result<(), OptionError> {
        match other.into_any().downcast::<T>() {
            Ok(other) => Declare::merge(self, *other),
            Err(_) => Ok(()),
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }

    fn into_provider(self: Box<Self>) -> Arc<dyn Provider> {
        Arc::new(*self)
    }
}

/// The kinds that this build has, by name.
pub fn kinds() -> impl Iterator<Item = &'static OptionKind> {
    ENTRIES.iter().map(|entry| &entry.kind)
}

/// The URIs that a declaration serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredUris {
    /// The URIs below which they all are, such as `git:///api`; empty if they cannot be told apart from those of another
    /// declaration of the kind.
    pub places: Vec<String>,
    /// The schemes of the kind, with its indexes.
    pub schemes: Vec<String>,
}

/// The providers declared so far.
#[derive(Debug, Default)]
pub struct ProviderSet {
    /// With the names of their kinds.
    declared: Vec<(&'static str, Box<dyn Declared>)>,
    folder: PathBuf,
}

impl ProviderSet {
    /// Nothing yet. Relative paths begin at the directory of this process.
    pub fn new() -> Self {
        Self::default()
    }

    /// Nothing yet. Relative paths begin at `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { declared: Vec::new(), folder: folder.into() }
    }

    /// Declares one of `kind`, as `files`, with its options as an object, or as the short form that the kind has.
    ///
    /// # Errors
    /// There is no such kind in this build, or its options are wrong. What was declared before stays.
    pub fn add(&mut self, kind: &str, options: OptionValue) -> Result<(), OptionError> {
        self.declare(kind, options).map(drop)
    }

    /// Like [`ProviderSet::add`]; returns the URIs of this declaration.
    ///
    /// # Errors
    /// As [`ProviderSet::add`].
    pub fn declare(&mut self, kind: &str, options: OptionValue) -> Result<DeclaredUris, OptionError> {
        let entry = find(kind).ok_or_else(|| OptionError::unknown("provider", kind, &NAMES))?;
        let new = (entry.declare)(options, &self.folder)?;
        let uris = new.uris();
        match self.declared.iter_mut().find(|(kind, _)| *kind == entry.kind.name) {
            Some((_, before)) => before.merge(new)?,
            None => self.declared.push((entry.kind.name, new)),
        }
        Ok(uris)
    }

    /// Whether nothing was declared.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// One provider for each kind that was declared, in the order of their first declarations.
    pub fn providers(self) -> Vec<Arc<dyn Provider>> {
        self.declared.into_iter().map(|(_, declared)| declared.into_provider()).collect()
    }
}

fn find(kind: &str) -> Option<&'static KindEntry> {
    ENTRIES.iter().find(|entry| entry.kind.name == kind)
}

/// The kind that a word declares, and what reads the rest of it.
fn reader(word: &str) -> Option<(&'static str, Reader)> {
    ENTRIES.iter().find_map(|entry| {
        let own = (entry.kind.name, entry.parse_shorthand);
        let (_, read) = [own].iter().chain(entry.shorthands).find(|(other, _)| *other == word).copied()?;
        Some((entry.kind.name, read))
    })
}

/// Parses a shorthand of the command into a kind and its options. A shorthand is `KIND:REST`, a kind alone, or a directory, such
/// as `.` or `docs`; what `REST` may be is documented with each kind.
///
/// # Errors
/// It is neither a kind of this build nor a directory, or its kind needs more.
pub fn parse_shorthand(word: &str) -> Result<(String, OptionValue), OptionError> {
    let (kind, rest) = word.split_once(':').unwrap_or((word, ""));
    if let Some((kind, read)) = reader(kind) {
        let options = read(rest);
        // A directory may have the name of a kind that needs more than its name.
        if options.is_ok() || word.contains(':') || !Path::new(word).is_dir() {
            return Ok((kind.into(), options?));
        }
    }
    if Path::new(word).is_file() {
        return Err(OptionError::sentence(format!(
            "{word:?} is a file, not a directory; write --config {word} if it says what to serve, config:{word},KEY to serve its \
             keys, or name the directory that it is in"
        )));
    }
    if rest.starts_with("//") {
        // Without the rest, which may have a password in it.
        return Err(OptionError::sentence(format!(
            "a URL such as {kind}://… is not a source; write db:NAME=URL,TABLE for a database, or api:FILE for an HTTP API"
        )));
    }
    if Path::new(word).is_dir() || word.contains('/') {
        return Ok(("files".into(), word.into()));
    }
    if word.contains(':') {
        return Err(OptionError::unknown("provider", kind, &NAMES));
    }
    let fix = closest(word, NAMES).map(|kind| format!("; did you mean {kind}:?")).unwrap_or_default();
    Err(OptionError::sentence(format!("there is no directory {word:?}{fix}")))
}

#[cfg(all(test, feature = "clock", feature = "docs", feature = "files", feature = "memory"))]
mod tests {
    use super::*;

    // S-01: words and values declare the same; what is wrong leaves the rest as it was.
    #[test]
    fn several_of_a_kind_are_one() {
        let mut set = ProviderSet::new();
        let mut add = |text: &str| {
            let (kind, options) = parse_shorthand(text)?;
            set.add(&kind, options)
        };
        for text in ["files:one=src", "clock", "clock:Asia/Tokyo", "src/..", "files:./src/../src"] {
            add(text).unwrap();
        }
        for (text, message) in [
            ("file:src", "unexpected provider \"file\"; did you mean \"files\"?"),
            ("clok", "there is no directory \"clok\"; did you mean clock:?"),
            ("none", "there is no directory \"none\""),
            ("no/such", "files: the root no/such does not exist"),
            ("directory/a=b", "files: the root directory/a=b does not exist"),
            ("docs", "\"docs:\" names no directory; write docs:DIR or docs:NAME=DIR"),
            ("files:", "\"files:\" names no directory; write files:DIR or files:NAME=DIR"),
            ("files:two=", "is \"\", expected the path of a directory"),
            ("src/lib.rs", "\"src/lib.rs\" is a file, not a directory; write --config src/lib.rs if"),
            ("Cargo.toml", "config:Cargo.toml,KEY to serve its keys"),
            (
                "postgres://me:hunter2@h/x",
                "a URL such as postgres://… is not a source; write db:NAME=URL,TABLE",
            ),
            ("memory:x", "memory has no options; write {memory: {}}, or memory: with the command"),
            ("files:one=src/..", "files: two roots have the name \"one\": "),
            ("files:two=no/such", "files: the root no/such does not exist"),
            (
                "clock:UTC,Asia/Tokio",
                "clock: there is no time zone \"Asia/Tokio\"; did you mean \"Asia/Tokyo\"?",
            ),
        ] {
            let said = add(text).unwrap_err().to_string();
            assert!(said.contains(message) && !said.contains("hunter2"), "{said}");
        }
        let uris = ProviderSet::new().declare("files", "src".into()).unwrap();
        assert_eq!(uris, DeclaredUris { places: vec!["file:///src".into()], schemes: vec!["file".into()] });
        assert_eq!(set.providers().len(), 2);
        assert!(NAMES.is_sorted());
    }

    // S-01: the relative paths of a file begin at its folder.
    #[test]
    fn relative_paths_begin_at_the_folder() {
        let mut set = ProviderSet::at("src");
        set.add("files", "..".into()).unwrap();
        assert!(set.add("files", "src".into()).unwrap_err().to_string().contains("src/src"));
    }
}
