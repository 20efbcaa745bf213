//! Options of the skills provider.

use mcp_resources_provider_files::folder::FolderOptions;
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::option_rows::provider_options;
use std::path::{Path, PathBuf};

provider_options! {
    /// The options of [`Skills`](super::Skills), for all folders that they name.
    ///
    /// ```no_run
    /// use mcp_resources_provider_text::skills::{SkillOptions, Skills};
    /// let options = SkillOptions::new().path("skills").prefixed("acme/billing", "more").exclude(["drafts"]);
    /// let skills = Skills::new(options)?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct SkillOptions: "a directory, a list of them, or an object of options", or paths: Text | List {
        /// Serves each directory that is a skill or contains skills. A prefix such as `acme/billing` is put before their paths.
        paths: paths("directory", "prefixes");
        /// Globs: files and directories whose path within the directory matches one of them are not served, nor anything in
        /// them. Default: none.
        exclude: texts("glob") = [];
        /// Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out.
        gitignore: flag = true;
        /// Whether files and directories whose name begins with a dot are served.
        hidden: flag = false;
        /// The maximum number of files in `resources/list`; all can be read.
        list_max: count = 1_000;
        /// Whether clients are notified of changes.
        watch: flag = true;
    }
}

impl SkillOptions {
    /// Serves the skills in `dir`, or `dir` itself if it is a skill.
    #[must_use]
    pub fn path(mut self, dir: impl Into<PathBuf>) -> Self {
        self.paths.push(NamedPath::plain(dir));
        self
    }

    /// Serves the skills in `dir` with `prefix` before their paths. If `dir` is itself a skill, the last segment of the prefix
    /// is its name.
    #[must_use]
    pub fn prefixed(mut self, prefix: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        self.paths.push(NamedPath::new(prefix, dir));
        self
    }

    /// Takes relative paths of folders as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        named::join(folder, &mut self.paths);
        self
    }

    pub(super) fn folder(&self) -> FolderOptions {
        FolderOptions {
            exclude: self.exclude.clone(),
            gitignore: self.gitignore,
            hidden: self.hidden,
            ..FolderOptions::new()
        }
    }
}
