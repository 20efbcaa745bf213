//! Options of the rag provider.

use super::drive::DriveOptions;
use crate::files::folder::FolderOptions;
use crate::named::NamedPath;
use crate::offered::OfferedTools;
use crate::options::{TimeSpan, option_table, put, texts};
use mcp_resources_engine::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep, set_all};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time that a request waits for the first documents: many clients give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The options of [`Rag`](super::Rag), for all collections that they name.
///
/// ```
/// use mcp_resources_providers::rag::{RagOptions, Rag};
/// let rag = Rag::new(RagOptions::new().folder("kb", "."))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RagOptions {
    pub(super) collections: Vec<(String, Origin)>,
    pub(super) folder: FolderOptions,
    pub(super) list_max: usize,
    pub(super) poll: Duration,
    pub(super) patience: Duration,
    pub(super) hits: usize,
    pub(super) index: Option<PathBuf>,
    pub(super) tools: OfferedTools,
}

/// The source of a collection's documents.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Folder(PathBuf),
    Drive(DriveOptions),
    /// A file with the options of a drive.
    DriveFile(PathBuf),
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl RagOptions {
    /// No collection yet, and the defaults.
    pub fn new() -> Self {
        Self {
            collections: Vec::new(),
            folder: FolderOptions::new(),
            list_max: 1_000,
            poll: Duration::from_secs(30),
            patience: PATIENCE,
            hits: 10,
            index: None,
            tools: OfferedTools::default(),
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

    /// Serves documents of Google Drive as the collection `name`, as `file` says: YAML or JSON with the options of a drive. A
    /// relative path in it begins at its folder.
    #[must_use]
    pub fn drive_file(mut self, name: impl Into<String>, file: impl Into<PathBuf>) -> Self {
        self.collections.push((name.into(), Origin::DriveFile(file.into())));
        self
    }

    /// Takes relative paths as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        for (_, origin) in &mut self.collections {
            match origin {
                Origin::Folder(path) | Origin::DriveFile(path) => *path = folder.join(&*path),
                Origin::Drive(drive) => drive.at(folder),
            }
        }
        self.index = self.index.map(|index| folder.join(index));
        self
    }

    /// Takes the files of folders only whose path matches one of `globs`. Default: all.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.include = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Takes no file of folders whose path matches one of `globs`, nor anything under it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the maximum number of listed documents. All can be read and searched. Default 1,000.
    #[must_use]
    pub fn list_max(mut self, documents: usize) -> Self {
        self.list_max = documents;
        self
    }

    /// Sets how often Drive is asked for changes: 10 ms to 1 day. Default 30 s.
    #[must_use]
    pub fn poll(mut self, every: Duration) -> Self {
        self.poll = every;
        self
    }

    /// Sets how long a request waits for the first documents before it is answered with those read so far: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets the number of passages in the result of a search. Default 10, at most 100.
    #[must_use]
    pub fn hits(mut self, hits: usize) -> Self {
        self.hits = hits;
        self
    }

    /// The file that keeps the index of these collections between two runs. Default: the index is in memory.
    #[must_use]
    pub fn index(mut self, file: impl Into<PathBuf>) -> Self {
        self.index = Some(file.into());
        self
    }

    /// Offers the tools with these names, out of `rag_search`, whether or not the server offers its
    /// resources as tools. Default: all, if the server does.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = OfferedTools::Named(names.into_iter().map(Into::into).collect());
        self
    }

    /// The folders, as the files of others are named.
    pub(super) fn named(name: &str, dir: &Path) -> NamedPath {
        NamedPath::new(name, dir)
    }
}

option_table!(RagOptions, "an object of options" {
    "collections": "names with a folder or a drive each", None,
        "Serves each collection as rag:///NAME: `{folder: DIR}`, `{drive: {…}}` or `{drive: FILE}`." =>
        |own, value| put(&mut own.collections, read_collections(value));
    "include": "a list of globs", Some("[]"),
        "Only files of folders whose path matches a glob are taken. `*` stays within a segment, `**` crosses segments." =>
        |own, value| put(&mut own.folder.include, texts(value));
    "exclude": "a list of globs", Some("[]"),
        "Files and directories of folders whose path matches a glob are not taken, with everything in them." =>
        |own, value| put(&mut own.folder.exclude, texts(value));
    "list_max": "a whole number", Some("1000"),
        "The maximum number of listed documents; all documents can be read and searched." =>
        |own, value| put(&mut own.list_max, usize::from_option(value));
    "poll": "a time", Some("30s"),
        "How often Drive is asked for changes, while it is used." =>
        |own, value| put(&mut own.poll, TimeSpan::from_option(value).map(|span| span.0));
    "hits": "a whole number from 1 to 100", Some("10"),
        "How many passages a search gives." =>
        |own, value| put(&mut own.hits, usize::from_option(value));
    "index": "a file or null", Some("null"),
        "The file that keeps the search index between two runs; without it, the index is in memory." =>
        |own, value| put(&mut own.index, Option::<String>::from_option(value).map(|file| file.map(PathBuf::from)));
    "tools": "true, false or a list of names", Some("null"),
        "Which tools are offered, out of rag_search. By default all, if resources are offered as tools." =>
        |own, value| put(&mut own.tools, OfferedTools::from_option(value));
});

/// The collections, by their names.
fn read_collections(value: OptionValue) -> Result<Vec<(String, Origin)>, OptionError> {
    let pairs = match value {
        OptionValue::Members(members) => members,
        OptionValue::List(items) => {
            items.into_iter().enumerate().map(|(at, item)| pair(at, &item)).collect::<Result<_, _>>()?
        }
        other => return Err(OptionError::wrong_type(&other, "names with a folder or a drive each")),
    };
    let one = |(name, value): (String, OptionValue)| {
        let origin = read_origin(value).map_err(|error| error.under(PathStep::Name(name.clone().into())))?;
        Ok((name, origin))
    };
    pairs.into_iter().map(one).collect()
}

/// A name and a collection, as languages give names that are no option.
fn pair(at: usize, item: &OptionValue) -> Result<(String, OptionValue), OptionError> {
    if let OptionValue::List(pair) = item
        && let [OptionValue::Text(name), value] = &**pair
    {
        return Ok((name.clone(), value.clone()));
    }
    Err(OptionError::wrong_type(item, "a name and a collection").under(PathStep::Item(at)))
}

/// One collection: a folder, or a drive.
#[derive(Default)]
struct OriginOptions {
    folder: Option<PathBuf>,
    drive: Option<Origin>,
}

impl NamedOptions for OriginOptions {
    const EXPECTED: &'static str = "{folder: DIR} or {drive: {…}}";
    const NAMES: &'static [&'static str] = &["folder", "drive"];

    fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError> {
        let read = match name {
            "folder" => String::from_option(value).and_then(folder).map(|dir| self.folder = Some(dir)),
            "drive" => read_drive(value).map(|drive| self.drive = Some(drive)),
            _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
        };
        read.map_err(|error| error.under(PathStep::Name(name.to_owned().into())))
    }
}

fn read_origin(value: OptionValue) -> Result<Origin, OptionError> {
    if let OptionValue::Text(dir) = value {
        return folder(dir).map(Origin::Folder);
    }
    let mut own = OriginOptions::default();
    set_all(&mut own, value)?;
    match (own.folder, own.drive) {
        (Some(dir), None) => Ok(Origin::Folder(dir)),
        (None, Some(drive)) => Ok(drive),
        _ => Err(OptionError::sentence(
            "a collection has either a folder or a drive: {folder: DIR} or {drive: {…}}",
        )),
    }
}

/// A folder's path: a variable of a shell that is not set must not serve the current directory.
fn folder(path: String) -> Result<PathBuf, OptionError> {
    match path.is_empty() {
        true => Err(OptionError::not_allowed(&path.into(), "the path of a folder")),
        false => Ok(path.into()),
    }
}

/// The options of a drive, or a file that has them.
fn read_drive(value: OptionValue) -> Result<Origin, OptionError> {
    match value {
        OptionValue::Text(file) => Ok(Origin::DriveFile(file.into())),
        OptionValue::Members(_) => DriveOptions::from_option(value).map(Origin::Drive),
        other => Err(OptionError::wrong_type(&other, "an object of options, or a file that has them")),
    }
}

/// Parses the shorthand `gdrive:CONFIG` or `gdrive:NAME=CONFIG`. Without a name, the collection is named after the
/// file.
///
/// # Errors
/// The file is missing, or its name is not text.
pub(super) fn parse_drive_shorthand(rest: &str) -> Result<OptionValue, OptionError> {
    let forms = "write gdrive:CONFIG or gdrive:NAME=CONFIG, a YAML or JSON file";
    let (name, file) = match rest.split_once('=') {
        Some((name, file)) if !name.contains('/') => (Some(name), file),
        _ => (None, rest),
    };
    if file.is_empty() || name == Some("") {
        return Err(OptionError::sentence(format!("\"gdrive:{rest}\" names no file; {forms}")));
    }
    let stem = || Path::new(file).file_stem().and_then(|stem| stem.to_str());
    let name = name
        .or_else(stem)
        .ok_or_else(|| OptionError::sentence(format!("\"gdrive:{rest}\" has no name; {forms}")))?;
    let drive = OptionValue::Members(vec![("drive".into(), file.into())]);
    let collections = OptionValue::Members(vec![(name.into(), drive)]);
    Ok(OptionValue::Members(vec![("collections".into(), collections)]))
}

impl FromOption for RagOptions {
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
