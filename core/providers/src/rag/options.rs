//! Which collections are served.

use super::drive::DriveOptions;
use crate::files::folder::FolderOptions;
use crate::named::NamedPath;
use crate::options::{Span, option_table, texts};
use mcp_resources_engine::option::{FromOption, Named, OptionError, OptionValue, Step, set_all};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of [`Rag`](super::Rag), for all collections that they name.
///
/// ```
/// use mcp_resources_providers::rag::{Options, Rag};
/// let rag = Rag::new(Options::new().folder("kb", "."))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) collections: Vec<(String, Origin)>,
    pub(super) folder: FolderOptions,
    pub(super) list_max: usize,
    pub(super) poll: Duration,
    pub(super) hits: usize,
}

/// Where the documents of a collection are.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Folder(PathBuf),
    Drive(DriveOptions),
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl Options {
    /// No collection yet, and the defaults.
    pub fn new() -> Self {
        Self {
            collections: Vec::new(),
            folder: FolderOptions::new(),
            list_max: 1_000,
            poll: Duration::from_secs(30),
            hits: 10,
        }
    }

    /// Serves the Markdown and text files of `dir` as the collection `name`.
    #[must_use]
    pub fn folder(mut self, name: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        self.collections.push((name.into(), Origin::Folder(dir.into())));
        self
    }

    /// Serves documents of Google Drive as the collection `name`.
    #[must_use]
    pub fn drive(mut self, name: impl Into<String>, drive: DriveOptions) -> Self {
        self.collections.push((name.into(), Origin::Drive(drive)));
        self
    }

    /// Takes relative paths as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        for (_, origin) in &mut self.collections {
            match origin {
                Origin::Folder(dir) => *dir = folder.join(&*dir),
                Origin::Drive(drive) => drive.at(folder),
            }
        }
        self
    }

    /// Takes the files of folders only whose path matches one of `globs`. Default: all.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.include = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Takes no file of folders whose path matches one of `globs`, nor what is beneath it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// How many documents are listed at most. All can be read and searched. Default 1,000.
    #[must_use]
    pub fn list_max(mut self, documents: usize) -> Self {
        self.list_max = documents;
        self
    }

    /// How often Drive is asked for changes. Default 30 s.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// How many passages a search gives. Default 10, at most 100.
    #[must_use]
    pub fn hits(mut self, hits: usize) -> Self {
        self.hits = hits;
        self
    }

    /// The folders, as the files of others are named.
    pub(super) fn named(name: &str, dir: &Path) -> NamedPath {
        NamedPath::new(name, dir)
    }
}

option_table!(Options, "an object of options" {
    "collections": "names with a folder or a drive each", None,
        "What is served: each collection as rag:///NAME, with `{folder: DIR}` or `{drive: {…}}`." =>
        |own, value| put(&mut own.collections, read_collections(value));
    "include": "a list of globs", Some("[]"),
        "Only files of folders whose path matches one of them are taken; `*` is within a segment, `**` over segments." =>
        |own, value| put(&mut own.folder.include, texts(value));
    "exclude": "a list of globs", Some("[]"),
        "No file of folders whose path matches one of them is taken, nor what is beneath it." =>
        |own, value| put(&mut own.folder.exclude, texts(value));
    "list_max": "a whole number", Some("1000"),
        "How many documents are listed at most; all can be read and searched." =>
        |own, value| put(&mut own.list_max, usize::from_option(value));
    "poll": "a time", Some("30s"),
        "How often Drive is asked for changes, while it is used." =>
        |own, value| put(&mut own.poll, Span::from_option(value).map(|span| span.0));
    "hits": "a whole number from 1 to 100", Some("10"),
        "How many passages a search gives." =>
        |own, value| put(&mut own.hits, usize::from_option(value));
});

fn put<T>(place: &mut T, read: Result<T, OptionError>) -> Result<(), OptionError> {
    *place = read?;
    Ok(())
}

/// The collections, by their names.
fn read_collections(value: OptionValue) -> Result<Vec<(String, Origin)>, OptionError> {
    let pairs = match value {
        OptionValue::Members(members) => members,
        OptionValue::List(items) => items.into_iter().enumerate().map(pair).collect::<Result<_, _>>()?,
        other => return Err(OptionError::wrong_type(&other, "names with a folder or a drive each")),
    };
    let one = |(name, value): (String, OptionValue)| {
        let origin = read_origin(value).map_err(|error| error.under(Step::Name(name.clone().into())))?;
        Ok((name, origin))
    };
    pairs.into_iter().map(one).collect()
}

/// A name and a collection, as languages give names that are no option.
fn pair((at, item): (usize, OptionValue)) -> Result<(String, OptionValue), OptionError> {
    if let OptionValue::List(pair) = &item
        && let [OptionValue::Text(name), value] = &**pair
    {
        return Ok((name.clone(), value.clone()));
    }
    Err(OptionError::wrong_type(&item, "a name and a collection").under(Step::Item(at)))
}

/// One collection: a folder, or a drive.
#[derive(Default)]
struct OriginOptions {
    folder: Option<PathBuf>,
    drive: Option<DriveOptions>,
}

impl Named for OriginOptions {
    const EXPECTED: &'static str = "{folder: DIR} or {drive: {…}}";
    const NAMES: &'static [&'static str] = &["folder", "drive"];

    fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError> {
        let read = match name {
            "folder" => String::from_option(value).map(|dir| self.folder = Some(dir.into())),
            "drive" => DriveOptions::from_option(value).map(|drive| self.drive = Some(drive)),
            _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
        };
        read.map_err(|error| error.under(Step::Name(name.to_owned().into())))
    }
}

fn read_origin(value: OptionValue) -> Result<Origin, OptionError> {
    if let OptionValue::Text(dir) = value {
        return Ok(Origin::Folder(dir.into()));
    }
    let mut own = OriginOptions::default();
    set_all(&mut own, value)?;
    match (own.folder, own.drive) {
        (Some(dir), None) => Ok(Origin::Folder(dir)),
        (None, Some(drive)) => Ok(Origin::Drive(drive)),
        _ => Err(OptionError::sentence(
            "a collection has either a folder or a drive: {folder: DIR} or {drive: {…}}",
        )),
    }
}

impl FromOption for Options {
    const EXPECTED: &'static str = "an object of options";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let mut options = Self::new();
        match value {
            OptionValue::Members(_) => set_all(&mut options, value)?,
            OptionValue::List(_) => options.collections = read_collections(value)?,
            other => return Err(OptionError::wrong_type(&other, <Self as FromOption>::EXPECTED)),
        }
        Ok(options)
    }
}
