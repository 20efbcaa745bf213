//! Options of the skills provider.

use mcp_resources_engine::option::FromOption;
use mcp_resources_provider_files::folder::FolderOptions;
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::options::{option_table, paths_or_options, put, texts};
use std::path::{Path, PathBuf};

/// The options of [`Skills`](super::Skills), for all folders that they name.
///
/// ```no_run
/// use mcp_resources_provider_text::skills::{SkillOptions, Skills};
/// let options = SkillOptions::new().path("skills").prefixed("acme/billing", "more").exclude(["drafts"]);
/// let skills = Skills::new(options)?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct SkillOptions {
    pub(super) paths: Vec<NamedPath>,
    pub(super) folder: FolderOptions,
    pub(super) list_max: usize,
    pub(super) watch: bool,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl SkillOptions {
    /// No folder yet, and the defaults.
    pub fn new() -> Self {
        Self { paths: Vec::new(), folder: FolderOptions::new(), list_max: 1_000, watch: true }
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

    /// Serves nothing whose path within its folder matches one of `globs`, nor anything under it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.folder.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Whether files that `.gitignore`, `.ignore` and `.git/info/exclude` name are not served. Default `true`.
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

    /// Sets the maximum number of files in `resources/list`; all can be read. Default 1,000.
    #[must_use]
    pub fn list_max(mut self, files: usize) -> Self {
        self.list_max = files;
        self
    }

    /// Whether clients are notified of changes. Default `true`.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.watch = watch;
        self
    }
}

option_table!(SkillOptions, "a directory, a list of them, or an object of options" {
    "paths": "a directory, a list of them, or prefixes with a directory each", None,
        "Serves each directory that is a skill or contains skills. A prefix such as acme/billing is put before their paths." =>
        |own, value| put(&mut own.paths, named::read(value, "directory"));
    "exclude": "a list of globs", Some("[]"),
        "Files and directories whose path within their directory matches a glob are not served, with everything in them." =>
        |own, value| put(&mut own.folder.exclude, texts(value));
    "gitignore": "true or false", Some("true"),
        "Whether files that .gitignore, .ignore or .git/info/exclude name are left out." =>
        |own, value| put(&mut own.folder.gitignore, bool::from_option(value));
    "hidden": "true or false", Some("false"),
        "Whether names that begin with a dot are served." =>
        |own, value| put(&mut own.folder.hidden, bool::from_option(value));
    "list_max": "a whole number", Some("1000"),
        "The maximum number of files in resources/list; all files can be read." =>
        |own, value| put(&mut own.list_max, usize::from_option(value));
    "watch": "true or false", Some("true"),
        "Whether clients are notified of changes." =>
        |own, value| put(&mut own.watch, bool::from_option(value));
});

paths_or_options!(SkillOptions, paths: "directory");
