//! Options of the files provider.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};
use mcp_resources_provider_kit::named::{self, NamedPath};
use mcp_resources_provider_kit::options::{option_table, paths_or_options, put, texts};
use std::path::{Path, PathBuf};

/// The options of [`Files`](super::Files), for all roots that they name.
///
/// ```
/// use mcp_resources_provider_files::{Files, FileOptions};
/// let options = FileOptions::new().root("project", ".").exclude(["drafts/**"]).hidden(false);
/// let files = Files::new(options)?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct FileOptions {
    pub(super) roots: Vec<NamedPath>,
    pub(super) settings: FileSettings,
}

/// All that is not about the roots themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileSettings {
    pub(super) include: Vec<String>,
    pub(super) exclude: Vec<String>,
    pub(super) gitignore: bool,
    pub(super) hidden: bool,
    pub(super) symlinks: Symlinks,
    pub(super) list_max: usize,
    pub(super) watch: bool,
    pub(super) watch_dirs: usize,
    pub(super) max_bytes: Option<u64>,
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
    const EXPECTED: &'static str = "never or inside";

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Inside => "inside",
        }
    }
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl FileOptions {
    /// No root yet, and the defaults.
    pub fn new() -> Self {
        let settings = FileSettings {
            include: Vec::new(),
            exclude: Vec::new(),
            gitignore: true,
            hidden: false,
            symlinks: Symlinks::Never,
            list_max: 1_000,
            watch: true,
            watch_dirs: 8_192,
            max_bytes: None,
        };
        Self { roots: Vec::new(), settings }
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

    /// Serves the files only whose path within their root matches one of `globs`. Default: all.
    #[must_use]
    pub fn include(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.include = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Serves nothing whose path within its root matches one of `globs`, nor anything under it. Default: none.
    #[must_use]
    pub fn exclude(mut self, globs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.exclude = globs.into_iter().map(Into::into).collect();
        self
    }

    /// Whether what `.gitignore`, `.ignore` and `.git/info/exclude` name is not served. Default `true`.
    #[must_use]
    pub fn gitignore(mut self, gitignore: bool) -> Self {
        self.settings.gitignore = gitignore;
        self
    }

    /// Whether names that begin with a dot are served. Default `false`.
    #[must_use]
    pub fn hidden(mut self, hidden: bool) -> Self {
        self.settings.hidden = hidden;
        self
    }

    /// Sets the treatment of symbolic links. Default [`Symlinks::Never`].
    #[must_use]
    pub fn symlinks(mut self, symlinks: Symlinks) -> Self {
        self.settings.symlinks = symlinks;
        self
    }

    /// Sets the maximum number of listed files of these roots. All can be read. Default 1,000.
    #[must_use]
    pub fn list_max(mut self, files: usize) -> Self {
        self.settings.list_max = files;
        self
    }

    /// Whether clients are notified of changes. Default `true`.
    #[must_use]
    pub fn watch(mut self, watch: bool) -> Self {
        self.settings.watch = watch;
        self
    }

    /// Sets the maximum number of directories that the system watches; further ones are checked periodically. Default
    /// 8,192.
    #[must_use]
    pub fn watch_dirs(mut self, directories: usize) -> Self {
        self.settings.watch_dirs = directories;
        self
    }

    /// Sets the maximum size of a file in bytes. Default: the limit of the server's answers.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.settings.max_bytes = Some(bytes);
        self
    }
}

option_table!(FileOptions, "a directory, a list of them, or an object of options" {
    "roots": "a directory, a list of them, or names with a directory each", None,
        "Serves each directory as file:///NAME/. A directory without a name keeps its own." =>
        |own, value| put(&mut own.roots, named::read(value, "directory"));
    "include": "a list of globs", Some("[]"),
        "Only files whose path within their root matches a glob are served. `*` stays within a segment, `**` crosses segments." =>
        |own, value| put(&mut own.settings.include, texts(value));
    "exclude": "a list of globs", Some("[]"),
        "Files and directories whose path within their root matches a glob are not served, with everything in them." =>
        |own, value| put(&mut own.settings.exclude, texts(value));
    "gitignore": "true or false", Some("true"),
        "Whether files that .gitignore, .ignore or .git/info/exclude name are left out." =>
        |own, value| put(&mut own.settings.gitignore, bool::from_option(value));
    "hidden": "true or false", Some("false"),
        "Whether names that begin with a dot are served." =>
        |own, value| put(&mut own.settings.hidden, bool::from_option(value));
    "symlinks": "never or inside", Some("never"),
        "Whether symbolic links are followed: `inside` follows those whose target is within the same root." =>
        |own, value| put(&mut own.settings.symlinks, Symlinks::from_option(value));
    "list_max": "a whole number", Some("1000"),
        "The maximum number of listed files; all files can be read." =>
        |own, value| put(&mut own.settings.list_max, usize::from_option(value));
    "watch": "true or false", Some("true"),
        "Whether clients are notified of changes." =>
        |own, value| put(&mut own.settings.watch, bool::from_option(value));
    "watch_dirs": "a whole number", Some("8192"),
        "How many directories the system watches; further ones are checked periodically." =>
        |own, value| put(&mut own.settings.watch_dirs, usize::from_option(value));
    "max_bytes": "a whole number of bytes", Some("null"),
        "The largest file that is read. By default, the server's limit of an answer applies." =>
        |own, value| put(&mut own.settings.max_bytes, Option::from_option(value));
});

paths_or_options!(FileOptions, roots: "directory");

impl FromOption for Symlinks {
    const EXPECTED: &'static str = "a text";

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
