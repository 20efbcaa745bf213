//! Options of the git provider.

use crate::named::{self, NamedPath};
use crate::offered::OfferedTools;
use crate::options::{Size, option_table, paths_or_options, put, texts};
use mcp_resources_engine::option::FromOption;
use std::path::{Path, PathBuf};

/// The options of [`Git`](super::Git), for all repositories that they name.
///
/// ```no_run
/// use mcp_resources_providers::git::{Git, GitOptions};
/// let options = GitOptions::new().repo("project", ".").exclude(["drafts/**"]).log_max(200);
/// let git = Git::new(options)?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GitOptions {
    pub(super) repos: Vec<NamedPath>,
    pub(super) settings: GitSettings,
}

/// All that is not about the repositories themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitSettings {
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) hidden: bool,
    pub(super) log_max: usize,
    pub(super) diff_bytes: u64,
    pub(super) refs: Vec<String>,
    pub(super) watch: bool,
    pub(super) tools: OfferedTools,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl GitOptions {
    /// No repository yet, and the defaults.
    pub fn new() -> Self {
        let settings = GitSettings {
            include: Vec::new(),
            exclude: Vec::new(),
            hidden: false,
            log_max: 1_000,
            diff_bytes: 1 << 20,
            refs: vec!["heads".into(), "tags".into()],
            watch: true,
            tools: OfferedTools::default(),
        };
        Self { repos: Vec::new(), settings }
    }
}

impl GitOptions {
    /// Serves the repository at `dir` as `git:///NAME/`. `dir` is the root of a working tree, or a bare repository.
    #[must_use]
    pub fn repo(mut self, name: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        self.repos.push(NamedPath::new(name, dir));
        self
    }

    /// Serves the repository at `dir` under the name of the directory.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.repos.push(NamedPath::plain(dir));
        self
    }

    /// Takes relative paths of directories as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        named::join(folder, &mut self.repos);
        self
    }

    /// Serves only files whose path within the repository matches one of `globs`. Default: all.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.include = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Serves nothing whose path within the repository matches one of `globs`, nor anything under it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Whether files and directories are served whose name begins with a dot. Default `false`.
    #[must_use]
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.settings.hidden = hidden;
        self
    }

    /// The maximum number of commits in a log. Default 1,000.
    #[must_use]
    pub fn log_max(mut self, commits: usize) -> Self {
        self.settings.log_max = commits;
        self
    }

    /// The largest diff, in bytes. Default 1 MiB.
    #[must_use]
    pub fn diff_bytes(mut self, bytes: u64) -> Self {
        self.settings.diff_bytes = bytes;
        self
    }

    /// Sets the references that can be named, as folders of `refs`. Default: `heads`, which are the branches, and
    /// `tags`.
    #[must_use]
    pub fn refs(mut self, folders: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.refs = folders.into_iter().map(Into::into).collect();
        self
    }

    /// Whether clients are notified of changes. Default `true`.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.settings.watch = watch;
        self
    }

    /// Offers the tools with these names, out of `git_log`, `git_diff`, `git_show`, whether or not the server offers its
    /// resources as tools. Default: all, if the server does.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.tools = OfferedTools::Named(names.into_iter().map(Into::into).collect());
        self
    }
}

option_table!(GitOptions, "a directory, a list of them, or an object of options" {
    "repos": "a directory, a list of them, or names with a directory each", None,
        "Serves each working tree or bare repository as git:///NAME/. One without a name gets that of its directory." =>
        |own, value| put(&mut own.repos, named::read(value, "directory"));
    "include": "a list of globs", Some("[]"),
        "Only files whose path within the repository matches a glob are served. `*` stays within a segment, `**` crosses segments." =>
        |own, value| put(&mut own.settings.include, texts(value));
    "exclude": "a list of globs", Some("[]"),
        "Files and directories whose path within the repository matches a glob are not served, with everything in them." =>
        |own, value| put(&mut own.settings.exclude, texts(value));
    "hidden": "true or false", Some("false"),
        "Whether names that begin with a dot are served." =>
        |own, value| put(&mut own.settings.hidden, bool::from_option(value));
    "log_max": "a whole number", Some("1000"),
        "The maximum number of commits in a log." =>
        |own, value| put(&mut own.settings.log_max, usize::from_option(value));
    "diff_bytes": "a size such as 1 MiB", Some("1 MiB"),
        "The largest diff; a larger one is an error." =>
        |own, value| put(&mut own.settings.diff_bytes, Size::from_option(value).map(|size| size.0));
    "refs": "a list of folders of refs", Some("[heads, tags]"),
        "Which references clients can name: heads are the branches; remotes and remotes/origin are allowed too." =>
        |own, value| put(&mut own.settings.refs, texts(value));
    "watch": "true or false", Some("true"),
        "Whether clients are notified of changes." =>
        |own, value| put(&mut own.settings.watch, bool::from_option(value));
    "tools": "true, false or a list of names", Some("null"),
        "Which tools are offered, out of git_log, git_diff and git_show. By default all, if resources are offered as tools." =>
        |own, value| put(&mut own.settings.tools, OfferedTools::from_option(value));
});

paths_or_options!(GitOptions, repos: "directory");

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::option::{NamedOptions, OptionValue};

    // S-02: each option has a row, and each is set by its name.
    #[test]
    fn the_table_has_each_option() {
        let rows: Vec<&str> = GitOptions::TABLE.iter().map(|row| row.name).collect();
        assert_eq!(rows, <GitOptions as NamedOptions>::NAMES);
        for row in GitOptions::TABLE {
            let value = match row.name {
                "repos" | "include" | "exclude" | "refs" => OptionValue::List(vec!["a".into()]),
                "hidden" => true.into(),
                "watch" | "tools" => false.into(),
                _ => 7_u64.into(),
            };
            let mut options = GitOptions::new();
            let before = format!("{options:?}");
            options.set(row.name, value).unwrap();
            assert_ne!(format!("{options:?}"), before, "{}", row.name);
        }
    }
}
