//! Paths that are served under names: `NAME: PATH`, or a path alone, which is named after its last part.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use std::path::Component;
use std::path::{Path, PathBuf};

/// A directory or file, and the name that it is to have.
#[derive(Clone, Debug)]
pub struct NamedPath {
    /// `None`: its own.
    pub name: Option<String>,
    pub path: PathBuf,
}

impl NamedPath {
    /// One with a name of its own choice.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self { name: Some(name.into()), path: path.into() }
    }

    /// One under its own name.
    pub fn plain(path: impl Into<PathBuf>) -> Self {
        Self { name: None, path: path.into() }
    }
}

/// Makes relative paths begin at `folder`.
pub fn join(folder: &Path, paths: &mut [NamedPath]) {
    paths.iter_mut().for_each(|named| named.path = folder.join(&named.path));
}

/// A path, several, or names with a path each. `noun` is what each is, as `directory`.
///
/// # Errors
/// The value has none of these forms.
pub fn read(value: OptionValue, noun: &str) -> Result<Vec<NamedPath>, OptionError> {
    match value {
        OptionValue::Text(path) => Ok(vec![NamedPath::plain(some(path, noun)?)]),
        OptionValue::List(items) => {
            items.into_iter().enumerate().map(|(at, item)| read_item(at, item, noun)).collect()
        }
        OptionValue::Members(members) => {
            members.into_iter().map(|(name, path)| read_named(name, path, noun)).collect()
        }
        other => {
            let expected = format!("a {noun}, a list of them, or names with a {noun} each");
            Err(OptionError::wrong_type(&other, expected))
        }
    }
}

/// A path alone, or with its name before it.
fn read_item(at: usize, item: OptionValue, noun: &str) -> Result<NamedPath, OptionError> {
    let read = match item {
        OptionValue::List(pair) => match <[OptionValue; 2]>::try_from(pair) {
            Ok([OptionValue::Text(name), path]) => return read_named(name, path, noun),
            other => {
                let pair = OptionValue::List(other.map_or_else(|items| items, Into::into));
                Err(OptionError::wrong_type(&pair, format!("a name and a {noun}")))
            }
        },
        other => String::from_option(other).and_then(|path| some(path, noun)).map(NamedPath::plain),
    };
    read.map_err(|error| error.under(PathStep::Item(at)))
}

/// `DIR` or `NAME=DIR`, behind `kind:` on a command line. A directory whose own name has a `=` is `./a=b`. `noun` is what it is.
///
/// # Errors
/// Nothing is named.
pub fn parse_shorthand(kind: &str, noun: &str, rest: &str) -> Result<OptionValue, OptionError> {
    match rest {
        "" => {
            let reason = format!("\"{kind}:\" names no {noun}; write {kind}:DIR or {kind}:NAME=DIR");
            Err(OptionError::sentence(reason))
        }
        _ => Ok(OptionValue::List(vec![parse_path(rest)])),
    }
}

fn read_named(name: String, path: OptionValue, noun: &str) -> Result<NamedPath, OptionError> {
    let path = String::from_option(path).and_then(|path| some(path, noun));
    let path = path.map_err(|error| error.under(PathStep::Name(name.clone().into())))?;
    Ok(NamedPath::new(name, path))
}

/// The path, unless it is empty: a variable of a shell that is not set must not serve the current directory.
fn some(path: String, noun: &str) -> Result<String, OptionError> {
    match path.is_empty() {
        true => Err(OptionError::not_allowed(&path.into(), format!("the path of a {noun}"))),
        false => Ok(path),
    }
}

/// Parses `NAME=PATH` or `PATH` of a shorthand into the form that [`read`] takes. The text before the first
/// `=` is a name if it has no `/`.
pub fn parse_path(text: &str) -> OptionValue {
    match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => OptionValue::List(vec![name.into(), path.into()]),
        _ => text.into(),
    }
}

/// The name and the absolute path of a directory, if it exists and its name can be part of a URI. `kind` is the
/// provider's, and `what` its term for such a directory, such as `root`.
///
/// # Errors
/// It is not there, is no directory, or has no such name.
pub fn directory(kind: &str, what: &str, named: &NamedPath) -> Result<(String, PathBuf), OptionError> {
    let dir = &named.path;
    let refused = |fault: &str, fix: &str| {
        OptionError::sentence(format!("{kind}: the {what} {} {fault}; {fix}", dir.display()))
    };
    let metadata = std::fs::metadata(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound if dir.components().any(|part| part.as_os_str() == "~") => {
            refused("does not exist", "`~` is not expanded here: write the path of the home directory")
        }
        std::io::ErrorKind::NotFound => refused("does not exist", "create it, or name another directory"),
        std::io::ErrorKind::PermissionDenied => {
            refused("cannot be opened", "let this process read it, or name another directory")
        }
        _ => refused("cannot be opened", "name another directory"),
    })?;
    if !metadata.is_dir() {
        return Err(refused("is not a directory", "name the directory that it is in"));
    }
    let path =
        std::path::absolute(dir).map_err(|_| refused("has no absolute path", "give an absolute one"))?;
    let name = match &named.name {
        Some(name) => name.clone(),
        None => own_name(dir)
            .ok_or_else(|| refused("has no name of its own that is a text", "give it one: NAME=DIR"))?,
    };
    if name.is_empty() || name == "." || name == ".." || name.contains(['/', '\0']) {
        return Err(OptionError::sentence(format!(
            "{kind}: {name:?} is no name for the {what} {}; give it one that is not empty, not `.` or `..`, and has no `/`",
            dir.display()
        )));
    }
    Ok((name, path))
}

/// Two paths of a provider have one name. `what` is the word for them, as `roots`.
pub fn same_name(kind: &str, what: &str, name: &str, first: &Path, second: &Path) -> OptionError {
    OptionError::sentence(format!(
        "{kind}: two {what} have the name {name:?}: {} and {}; give one of them another: NAME=PATH, or \
         `{{NAME: PATH}}`",
        first.display(),
        second.display()
    ))
}

/// The name of a directory, whatever it is called here: of `.` too.
fn own_name(dir: &Path) -> Option<String> {
    let name = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    match dir.components().next_back() {
        // `file_name` is not asked: it would take `a/.` for `a`, which is right, and `..` for nothing.
        Some(Component::Normal(_)) => name(dir),
        _ => name(&std::fs::canonicalize(dir).ok()?),
    }
}
