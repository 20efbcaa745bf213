//! Providers that a program declares by words and values: in a file, on a command line, in another language.
//!
//! ```
//! use mcp_resources_engine::option::OptionValue;
//! use mcp_resources_providers::declared::{self, Set};
//! # #[cfg(all(feature = "clock", feature = "files"))] {
//! let mut set = Set::new();
//! let (kind, options) = declared::word("files:project=.")?;
//! set.add(&kind, options)?;
//! set.add("clock", OptionValue::None)?;
//! assert_eq!(set.providers().len(), 2);
//! # }
//! # Ok::<(), mcp_resources_engine::option::OptionError>(())
//! ```
//!
//! Law: several declarations of one kind are one provider, and what one of them says holds for that one alone.

use crate::options::Kind;
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_engine::suggest::closest;
use mcp_resources_host::provider::Provider;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kinds that this build has, by name.
pub const KINDS: &[Kind] = &[
    #[cfg(feature = "clock")]
    crate::clock::KIND,
    #[cfg(feature = "config")]
    crate::config::KIND,
    #[cfg(feature = "config")]
    crate::env::KIND,
    #[cfg(feature = "files")]
    crate::files::KIND,
    #[cfg(feature = "memory")]
    crate::memory::KIND,
];

/// Their names.
const NAMES: &[&str] = &[
    #[cfg(feature = "clock")]
    "clock",
    #[cfg(feature = "config")]
    "config",
    #[cfg(feature = "config")]
    "env",
    #[cfg(feature = "files")]
    "files",
    #[cfg(feature = "memory")]
    "memory",
];

/// What was declared so far.
#[derive(Debug, Default)]
pub struct Set {
    declared: Vec<Declared>,
    #[cfg_attr(
        not(any(feature = "config", feature = "files")),
        expect(dead_code, reason = "no other kind has paths")
    )]
    folder: PathBuf,
}

/// One kind that was declared.
#[derive(Debug)]
enum Declared {
    #[cfg(feature = "clock")]
    Clock,
    #[cfg(feature = "config")]
    Config(crate::config::Config),
    #[cfg(feature = "config")]
    Env(crate::env::Env),
    #[cfg(feature = "files")]
    Files(crate::files::Files),
    #[cfg(feature = "memory")]
    Memory,
}

impl Set {
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
        match kind {
            #[cfg(feature = "clock")]
            "clock" => self.plain(kind, &options, || Declared::Clock),
            #[cfg(feature = "config")]
            "config" => {
                let options: crate::config::Options = read("config", options)?;
                self.merge(Declared::Config(crate::config::Config::new(options.at(&self.folder))?))
            }
            #[cfg(feature = "config")]
            "env" => self.merge(Declared::Env(crate::env::Env::new(read("env", options)?)?)),
            #[cfg(feature = "files")]
            "files" => {
                let options: crate::files::Options = read("files", options)?;
                self.merge(Declared::Files(crate::files::Files::new(options.at(&self.folder))?))
            }
            #[cfg(feature = "memory")]
            "memory" => self.plain(kind, &options, || Declared::Memory),
            _ => Err(OptionError::unknown("provider", kind, NAMES)),
        }
    }

    /// Whether nothing was declared.
    pub fn is_empty(&self) -> bool {
        self.declared.is_empty()
    }

    /// One provider for each kind that was declared, in the order of their first declarations.
    pub fn providers(self) -> Vec<Arc<dyn Provider>> {
        let provider = |declared: Declared| -> Arc<dyn Provider> {
            match declared {
                #[cfg(feature = "clock")]
                Declared::Clock => Arc::new(crate::clock::Clock::new()),
                #[cfg(feature = "config")]
                Declared::Config(config) => Arc::new(config),
                #[cfg(feature = "config")]
                Declared::Env(env) => Arc::new(env),
                #[cfg(feature = "files")]
                Declared::Files(files) => Arc::new(files),
                #[cfg(feature = "memory")]
                Declared::Memory => Arc::new(crate::memory::Memory::new()),
            }
        };
        self.declared.into_iter().map(provider).collect()
    }

    /// One that has no options.
    #[cfg(any(feature = "clock", feature = "memory"))]
    fn plain(
        &mut self,
        kind: &str,
        options: &OptionValue,
        make: impl FnOnce() -> Declared,
    ) -> Result<(), OptionError> {
        let has_none = match options {
            OptionValue::None => true,
            OptionValue::Members(members) => members.is_empty(),
            _ => false,
        };
        if !has_none {
            return Err(OptionError::sentence(format!("{kind} has no options; leave out {options}")));
        }
        self.merge(make())
    }

    /// Adds it to the one of its kind that was declared before, if there is one.
    fn merge(&mut self, new: Declared) -> Result<(), OptionError> {
        let kind = std::mem::discriminant(&new);
        match self.declared.iter_mut().find(|declared| std::mem::discriminant(*declared) == kind) {
            Some(before) => before.take(new),
            None => {
                self.declared.push(new);
                Ok(())
            }
        }
    }
}

impl Declared {
    /// Takes what another one of its kind has. After an error nothing has changed.
    fn take(&mut self, other: Self) -> Result<(), OptionError> {
        match (self, other) {
            #[cfg(feature = "config")]
            (Self::Config(config), Self::Config(other)) => config.take(other),
            #[cfg(feature = "config")]
            (Self::Env(env), Self::Env(other)) => {
                env.take(&other);
                Ok(())
            }
            #[cfg(feature = "files")]
            (Self::Files(files), Self::Files(other)) => files.take(other),
            // The others have nothing to take. With `files` alone there are none.
            #[cfg(any(feature = "clock", feature = "config", feature = "memory"))]
            _ => Ok(()),
        }
    }
}

/// Options of a kind, whose name stands before what is wrong.
#[cfg(any(feature = "config", feature = "files"))]
fn read<T: mcp_resources_engine::option::FromOption>(
    kind: &'static str,
    options: OptionValue,
) -> Result<T, OptionError> {
    use mcp_resources_engine::option::Step;
    T::from_option(options).map_err(|error| error.under(Step::Name(kind.into())))
}

/// What a word of the command declares: `clock:`, `files:DIR`, `files:NAME=DIR`, or a directory alone, such as `.`: the kind, and
/// its options. What is before the first `=` is a name if it has no `/`: a directory whose own name has a `=` is `files:./a=b`.
/// `config:FILE,GLOB,…` allows what the globs match, `env:NAME,…` the variables with these names.
///
/// # Errors
/// It is neither a kind of this build nor a directory, or its kind needs more.
pub fn word(word: &str) -> Result<(String, OptionValue), OptionError> {
    let (kind, rest) = match word.split_once(':') {
        Some((kind, rest)) if NAMES.contains(&kind) => (kind, rest),
        None if NAMES.contains(&word) => (word, ""),
        _ if Path::new(word).is_dir() || word.contains('/') => ("files", word),
        Some((kind, _)) => return Err(OptionError::unknown("provider", kind, NAMES)),
        None => return Err(no_directory(word)),
    };
    let options = match (kind, rest) {
        ("files", "") => {
            return Err(OptionError::sentence(format!(
                "{word:?} names no directory; write files:DIR or files:NAME=DIR"
            )));
        }
        #[cfg(feature = "config")]
        ("config", "") => {
            return Err(OptionError::sentence(format!(
                "{word:?} names no file; write config:FILE,GLOB or config:NAME=FILE,GLOB"
            )));
        }
        #[cfg(feature = "config")]
        ("config", rest) => crate::config::word(rest),
        #[cfg(feature = "config")]
        ("env", "") => {
            return Err(OptionError::sentence(format!("{word:?} names no variable; write env:NAME,NAME")));
        }
        #[cfg(feature = "config")]
        ("env", rest) => OptionValue::List(rest.split(',').map(|name| name.trim().into()).collect()),
        (_, "") => OptionValue::None,
        ("files", rest) => match rest.split_once('=') {
            Some((name, dir)) if !name.contains('/') && kind.len() < word.len() => {
                let root = OptionValue::Members(vec![(name.into(), dir.into())]);
                OptionValue::Members(vec![("roots".into(), root)])
            }
            _ => rest.into(),
        },
        (_, rest) => rest.into(),
    };
    Ok((kind.into(), options))
}

fn no_directory(word: &str) -> OptionError {
    match closest(word, NAMES.iter().copied()) {
        Some(kind) => OptionError::sentence(format!("there is no directory {word:?}; did you mean {kind}:?")),
        None => OptionError::sentence(format!("there is no directory {word:?}")),
    }
}

#[cfg(all(test, feature = "clock", feature = "files", feature = "memory"))]
mod tests {
    use super::*;

    /// S-01: words and values declare the same; what is wrong leaves the rest as it was.
    #[test]
    fn several_of_a_kind_are_one() {
        let mut set = Set::new();
        let mut add = |text: &str| {
            let (kind, options) = word(text)?;
            set.add(&kind, options)
        };
        for text in ["files:one=src", "clock", "clock:", "src/files", "files:./src/../src/files/../../src"] {
            add(text).unwrap();
        }
        for (text, message) in [
            ("file:src", "unexpected provider \"file\"; did you mean \"files\"?"),
            ("clok", "there is no directory \"clok\"; did you mean clock:?"),
            ("none", "there is no directory \"none\""),
            ("no/such", "files: the root no/such does not exist"),
            ("files", "\"files\" names no directory; write files:DIR or files:NAME=DIR"),
            ("files:", "\"files:\" names no directory"),
            ("files:one=src/files", "files: two roots have the name \"one\": "),
            ("files:two=no/such", "files: the root no/such does not exist"),
            ("clock:x", "clock has no options; leave out \"x\""),
        ] {
            let said = add(text).unwrap_err().to_string();
            assert!(said.contains(message), "{said}");
        }
        assert_eq!(set.providers().len(), 2);
        assert_eq!(KINDS.iter().map(|kind| kind.name).collect::<Vec<_>>(), NAMES);
    }

    /// S-01: the relative paths of a file begin at its folder.
    #[test]
    fn relative_paths_begin_at_the_folder() {
        let mut set = Set::at("src");
        set.add("files", "files".into()).unwrap();
        assert!(set.add("files", "src".into()).unwrap_err().to_string().contains("src/src"));
    }
}
