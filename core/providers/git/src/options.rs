//! Options of the git provider.

use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::MIB;
use std::path::{Path, PathBuf};

provider_options! {
    /// The options of [`Git`](super::Git), for all repositories that they name.
    ///
    /// ```no_run
    /// use mcp_resources_provider_git::{Git, GitOptions};
    /// let options = GitOptions::new().repo("project", ".").exclude(["drafts/**"]).log_max(200);
    /// let git = Git::new(options)?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct GitOptions: "a directory, a list of them, or an object of options", or repos: Text | List {
        /// Serves each working tree or bare repository as `git:///NAME/`. One without a name gets that of its directory.
        repos: paths("directory", "names");
        in settings: GitSettings {
            /// Globs: only files whose path within the repository matches one of them are served. `*` matches within a path
            /// segment, `**` across segments. Default: all.
            include: texts("glob") = [];
            /// Globs: files and directories whose path within the repository matches one of them are not served, nor anything
            /// in them. Default: none.
            exclude: texts("glob") = [];
            /// Whether files and directories whose name begins with a dot are served.
            hidden: flag = false;
            /// The maximum number of commits in a log.
            log_max: count = 1_000;
            /// The largest diff; a larger one is an error.
            diff_bytes: size = MIB;
            /// The references that clients can name, as folders of `refs`: `heads` (branches), `tags`, `remotes`, or one such as
            /// `remotes/origin`.
            refs: texts("folder") = ["heads", "tags"];
            /// Whether clients are notified of changes.
            watch: flag = true;
            /// The tools that are offered, out of `git_log`, `git_diff` and `git_show`. Default: all, if the server offers its
            /// resources as tools.
            tools: tools;
        }
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
}

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
