//! Options of the docs provider.

use mcp_resources_provider_files::folder::FolderOptions;
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::option_rows::provider_options;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum time that a request waits for the first index: many clients give up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(5);

provider_options! {
    /// The options of [`Docs`](super::Docs), for all sites that they name.
    ///
    /// ```
    /// use mcp_resources_provider_text::docs::{Docs, DocsOptions};
    /// let docs = Docs::new(DocsOptions::new().site("handbook", ".").exclude(["drafts/**"]))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct DocsOptions: "a directory, a list of them, or an object of options", or sites: Text | List {
        /// Serves the Markdown files of each directory as `docs:///NAME/`. A directory without a name keeps its own.
        sites: paths("directory", "names");
        /// Globs: only pages whose path within the site matches one of them are served. `*` matches within a path segment, `**`
        /// across segments. Default: all.
        include: texts("glob") = [];
        /// Globs: pages and directories whose path within the site matches one of them are not served, nor anything in them.
        /// Default: none.
        exclude: texts("glob") = [];
        /// Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out.
        gitignore: flag = true;
        /// Whether files and directories whose name begins with a dot are served.
        hidden: flag = false;
        /// The maximum number of pages in `resources/list`; all can be read and searched.
        list_max: count = 1_000;
        /// Whether clients are notified of changes.
        watch: flag = true;
        /// The maximum number of directories that the operating system watches; further ones are checked periodically.
        watch_dirs: count = 8_192;
        /// The largest page that is read, in bytes. Default: the server's limit `contents`.
        max_bytes: bytes = None;
        /// The path of a file that keeps the search index between two runs. Default: the index is in memory.
        index: file = None;
        /// The tools that are offered, out of `docs_search`. Default: all, if the server offers its resources as tools.
        tools: tools;
        fields {
            patience: Duration = PATIENCE;
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

    pub(super) fn folder(&self) -> FolderOptions {
        FolderOptions {
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            gitignore: self.gitignore,
            hidden: self.hidden,
            watch: self.watch,
            watch_dirs: self.watch_dirs,
        }
    }
}
