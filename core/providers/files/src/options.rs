//! Options of the files provider.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::option_rows::provider_options;
use std::path::{Path, PathBuf};

provider_options! {
    /// The options of [`Files`](super::Files), for all roots that they name.
    ///
    /// ```
    /// use mcp_resources_provider_files::{Files, FileOptions};
    /// let options = FileOptions::new().root("project", ".").exclude(["drafts/**"]).hidden(false);
    /// let files = Files::new(options)?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct FileOptions: "a directory, a list of them, or an object of options", or roots: Text | List {
        /// Serves each directory as `file:///NAME/`. A directory without a name keeps its own.
        roots: paths("directory", "names");
        in settings: FileSettings {
            /// Globs: only files whose path within the root matches one of them are served. `*` matches within a path segment,
            /// `**` across segments. Default: all.
            include: texts("glob") = [];
            /// Globs: files and directories whose path within the root matches one of them are not served, nor anything in
            /// them. Default: none.
            exclude: texts("glob") = [];
            /// Whether files that `.gitignore`, `.ignore` or `.git/info/exclude` excludes are left out.
            gitignore: flag = true;
            /// Whether files and directories whose name begins with a dot are served.
            hidden: flag = false;
            /// Whether symbolic links are followed: `never`, or `inside` for links to a target within the same root.
            symlinks: words(Symlinks) = Symlinks::Never;
            /// The maximum number of files in `resources/list`; all can be read.
            list_max: count = 1_000;
            /// Whether clients are notified of changes.
            watch: flag = true;
            /// The maximum number of directories that the operating system watches; further ones are checked periodically.
            watch_dirs: count = 8_192;
            /// The largest file that is read, in bytes. Default: the server's limit `contents`.
            max_bytes: bytes = None;
        }
    }
}

/// The treatment of symbolic links under a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// They are not found.
    Never,
    /// Links are followed if their target is under the same root.
    Inside,
}

impl Symlinks {
    pub(crate) const WORDS: &'static [&'static str] = &["never", "inside"];
    const EXPECTED: &'static str = "never or inside";

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Inside => "inside",
        }
    }
}

impl FileOptions {
    /// Serves `dir` as `file:///NAME/`.
    #[must_use]
    pub fn root(mut self, name: impl Into<String>, dir: impl Into<PathBuf>) -> Self {
        self.roots.push(NamedPath::new(name, dir));
        self
    }

    /// Serves `dir` under its own name.
    #[must_use]
    pub fn dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.roots.push(NamedPath::plain(dir));
        self
    }

    /// Takes relative paths of directories as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        named::join(folder, &mut self.roots);
        self
    }
}

impl FromOption for Symlinks {
    const EXPECTED: &'static str = Self::EXPECTED;

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match &value {
            OptionValue::Text(word) => [Self::Never, Self::Inside]
                .into_iter()
                .find(|symlinks| symlinks.as_str() == word)
                .ok_or_else(|| OptionError::not_allowed(&value, Self::EXPECTED)),
            _ => Err(OptionError::wrong_type(&value, Self::EXPECTED)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mcp_resources_engine::option::{FromOption, NamedOptions};

    fn members<const N: usize>(members: [(&str, OptionValue); N]) -> OptionValue {
        OptionValue::Members(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn error(value: OptionValue) -> String {
        FileOptions::from_option(value)
            .and_then(|options| super::super::Files::new(options).map(drop))
            .unwrap_err()
            .to_string()
    }

    // S-01: a wrong name or value says what would be right.
    #[test]
    fn what_is_wrong_is_named_with_the_fix() {
        for (value, message) in [
            (members([("root", ".".into())]), "unexpected option \"root\"; did you mean \"roots\"?"),
            (
                members([("roots", ".".into()), ("hidden", "yes".into())]),
                "hidden is \"yes\", expected true or false",
            ),
            (members([("symlinks", "always".into())]), "symlinks is \"always\", expected never or inside"),
            (members([("roots", members([("a", 5_u64.into())]))]), "roots.a is 5, expected a text"),
            (
                members([("roots", OptionValue::List(vec![OptionValue::List(vec!["a".into()])]))]),
                "expected a name and a directory",
            ),
            (5_u64.into(), "5, expected a directory, a list of them, or an object of options"),
            (OptionValue::List(Vec::new()), "files: there is no root; name a directory"),
            (
                "no/such".into(),
                "files: the root no/such does not exist; create it, or name another directory",
            ),
            ("Cargo.toml".into(), "files: the root Cargo.toml is not a directory"),
            ("/".into(), "files: the root / has no name of its own that is a text; give it one: NAME=DIR"),
            (
                members([("roots", members([("a/b", ".".into())]))]),
                "files: \"a/b\" is no name for the root .; give it one",
            ),
            (members([("roots", members([("..", ".".into())]))]), "files: \"..\" is no name"),
            (
                OptionValue::List(vec!["src".into(), "../files/src".into()]),
                "files: two roots have the name \"src\": ",
            ),
        ] {
            let said = error(value);
            assert!(said.contains(message), "{said}");
        }
    }

    // S-01: each option has a row, and each is set by its name.
    #[test]
    fn the_table_has_each_option() {
        let rows: Vec<&str> = FileOptions::TABLE.iter().map(|row| row.name).collect();
        assert_eq!(rows, <FileOptions as NamedOptions>::NAMES);
        for row in FileOptions::TABLE {
            let value = match row.name {
                "roots" | "include" | "exclude" => OptionValue::List(vec!["a".into()]),
                "symlinks" => "inside".into(),
                "hidden" => true.into(),
                "gitignore" | "watch" => false.into(),
                _ => 7_u64.into(),
            };
            let mut options = FileOptions::new();
            let before = format!("{options:?}");
            options.set(row.name, value).unwrap();
            assert_ne!(format!("{options:?}"), before, "{}", row.name);
        }
    }

    // S-01: a root has the name of its directory, for `.` and `..` too.
    #[test]
    fn a_root_has_its_own_name() {
        let name = |dir: &str| named::directory("files", "root", &NamedPath::plain(dir)).unwrap().0;
        assert_eq!(
            ["src", "src/.", "./src/", "src/watch/..", "."].map(name),
            ["src", "src", "src", "src", "files"]
        );
    }
}
