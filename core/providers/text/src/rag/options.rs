//! Options of the rag provider.

use mcp_resources_engine::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep, set_all};
use mcp_resources_provider_drive::DriveOptions;
use mcp_resources_provider_files::folder::FolderOptions;
use mcp_resources_provider_kit::named::NamedPath;
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::{DAY, OptionType};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of passages of a search.
const MOST_HITS: usize = 100;
/// Maximum time that a request waits for the first documents: many clients give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

provider_options! {
    /// The options of [`Rag`](super::Rag), for all collections that they name.
    ///
    /// ```
    /// use mcp_resources_provider_text::rag::{RagOptions, Rag};
    /// let rag = Rag::new(RagOptions::new().folder("kb", "."))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct RagOptions: "an object of options", or collections: List {
        /// Serves each collection as `rag:///NAME`: `{folder: DIR}`, `{drive: {…}}` or `{drive: FILE}`.
        collections: custom(Vec<(String, Origin)>, read_collections, OptionType::Named("a folder or a drive", &[]));
        /// Globs: only files of folders whose path matches one of them are used. `*` matches within a path segment, `**` across
        /// segments. Default: all.
        include: texts("glob") = [];
        /// Globs: files and directories of folders whose path matches one of them are not used, nor anything in them. Default:
        /// none.
        exclude: texts("glob") = [];
        /// The maximum number of documents in `resources/list`; all can be read and searched.
        list_max: count = 1_000;
        /// The interval at which Google Drive is asked for changes while it is in use.
        poll: time(Duration::from_millis(10), DAY) = Duration::from_secs(30);
        /// The number of passages that a search returns.
        hits: count(1, MOST_HITS) = 10;
        /// The path of a file that keeps the search index between two runs. Default: the index is in memory.
        index: file = None;
        /// The tools that are offered, out of `rag_search`. Default: all, if the server offers its resources as tools.
        tools: tools;
        fields {
            patience: Duration = PATIENCE;
        }
    }
}

/// The source of a collection's documents.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Folder(PathBuf),
    Drive(DriveOptions),
    /// A file with the options of a drive.
    DriveFile(PathBuf),
}

impl RagOptions {
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

    /// Sets how long a request waits for the first documents before it is answered with those read so far: for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    pub(super) fn folders(&self) -> FolderOptions {
        FolderOptions { include: self.include.clone(), exclude: self.exclude.clone(), ..FolderOptions::new() }
    }

    /// The folders, as the files of others are named.
    pub(super) fn named(name: &str, dir: &Path) -> NamedPath {
        NamedPath::new(name, dir)
    }
}

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
