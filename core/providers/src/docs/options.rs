//! Options of the docs provider.

use crate::files::folder::FolderOptions;
use crate::named::{self, NamedPath};
use crate::offered::OfferedTools;
use crate::options::{option_table, paths_or_options, put, texts};
use mcp_resources_engine::option::FromOption;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time that a request waits for the first index: many clients give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The options of [`Docs`](super::Docs), for all sites that they name.
///
/// ```
/// use mcp_resources_providers::docs::{Docs, DocsOptions};
/// let docs = Docs::new(DocsOptions::new().site("handbook", ".").exclude(["drafts/**"]))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct DocsOptions {
    pub(super) sites: Vec<NamedPath>,
    pub(super) folder: FolderOptions,
    pub(super) list_max: usize,
    pub(super) max_bytes: Option<u64>,
    pub(super) index: Option<PathBuf>,
    pub(super) patience: Duration,
    pub(super) tools: OfferedTools,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl DocsOptions {
    /// No site yet, and the defaults.
    pub fn new() -> Self {
        Self {
            sites: Vec::new(),
            folder: FolderOptions::new(),
            list_max: 1_000,
            max_bytes: None,
            index: None,
            patience: PATIENCE,
            tools: OfferedTools::default(),
        }
    }
}

impl DocsOptions {
    /// Serves the Markdown files of `dir` as `docs:///NAME/`.
    #[must_use]
    pub fn site(mut self, name: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        self.sites.push(NamedPath::new(name, dir));
        self
    }

    /// Serves those of `dir` under its own name.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.sites.push(NamedPath::plain(dir));
        self
    }

    /// Sets how long a request waits for the first index before it is answered with the pages indexed so far: for
    /// tests.
    #[doc(hidden)]
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Takes relative paths as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        named::join(folder, &mut self.sites);
        self.index = self.index.map(|index| folder.join(index));
        self
    }

    /// Serves the pages only whose path within their site matches one of `globs`. Default: all.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.include = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Serves no page whose path within its site matches one of `globs`, nor anything under it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`.
    #[must_use]
    pub fn gitignore(mut self, gitignore: bool) -> Self {
        self.folder.gitignore = gitignore;
        self
    }

    /// Whether names that begin with a dot are served. Default `false`.
    #[must_use]
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.folder.hidden = hidden;
        self
    }

    /// Sets the maximum number of listed pages of these sites. All can be read and searched. Default 1,000.
    #[must_use]
    pub fn list_max(mut self, pages: usize) -> Self {
        self.list_max = pages;
        self
    }

    /// Whether clients are notified of changes. Default `true`.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.folder.watch = watch;
        self
    }

    /// Sets the maximum number of directories that the system watches; further ones are checked periodically. Default
    /// 8,192.
    #[must_use]
    pub fn watch_dirs(mut self, directories: usize) -> Self {
        self.folder.watch_dirs = directories;
        self
    }

    /// Sets the maximum size of a page in bytes. Default: the limit of the server's answers.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// The file that keeps the index of these sites between two runs. Default: the index is in memory.
    #[must_use]
    pub fn index(mut self, file: impl Into<PathBuf>) -> Self {
        self.index = Some(file.into());
        self
    }

    /// Offers the tools with these names, out of `docs_search`, whether or not the server offers its
    /// resources as tools. Default: all, if the server does.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.tools = OfferedTools::Named(names.into_iter().map(Into::into).collect());
        self
    }
}

option_table!(DocsOptions, "a directory, a list of them, or an object of options" {
    "sites": "a directory, a list of them, or names with a directory each", None,
        "Serves the Markdown files of each directory as docs:///NAME/. A directory without a name keeps its own." =>
        |own, value| put(&mut own.sites, named::read(value, "directory"));
    "include": "a list of globs", Some("[]"),
        "Only pages whose path within their site matches a glob are served. `*` stays within a segment, `**` crosses segments." =>
        |own, value| put(&mut own.folder.include, texts(value));
    "exclude": "a list of globs", Some("[]"),
        "Pages and directories whose path within their site matches a glob are not served, with everything in them." =>
        |own, value| put(&mut own.folder.exclude, texts(value));
    "gitignore": "true or false", Some("true"),
        "Whether files that .gitignore, .ignore or .git/info/exclude name are left out." =>
        |own, value| put(&mut own.folder.gitignore, bool::from_option(value));
    "hidden": "true or false", Some("false"),
        "Whether names that begin with a dot are served." =>
        |own, value| put(&mut own.folder.hidden, bool::from_option(value));
    "list_max": "a whole number", Some("1000"),
        "The maximum number of listed pages; all pages can be read and searched." =>
        |own, value| put(&mut own.list_max, usize::from_option(value));
    "watch": "true or false", Some("true"),
        "Whether clients are notified of changes." =>
        |own, value| put(&mut own.folder.watch, bool::from_option(value));
    "watch_dirs": "a whole number", Some("8192"),
        "How many directories the system watches; further ones are checked periodically." =>
        |own, value| put(&mut own.folder.watch_dirs, usize::from_option(value));
    "max_bytes": "a whole number of bytes", Some("null"),
        "The largest page that is read. By default, the server's limit of an answer applies." =>
        |own, value| put(&mut own.max_bytes, Option::from_option(value));
    "index": "a file or null", Some("null"),
        "The file that keeps the search index between two runs; without it, the index is in memory." =>
        |own, value| put(&mut own.index, Option::<String>::from_option(value).map(|file| file.map(PathBuf::from)));
    "tools": "true, false or a list of names", Some("null"),
        "Which tools are offered, out of docs_search. By default all, if resources are offered as tools." =>
        |own, value| put(&mut own.tools, OfferedTools::from_option(value));
});

paths_or_options!(DocsOptions, sites: "directory");
