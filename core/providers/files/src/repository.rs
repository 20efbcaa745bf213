//! The rule files of a repository that are outside its tree.
//!
//! ```text
//!   DIR/.git a directory                        its info/exclude and config
//!   DIR/.git a file "gitdir: X", a submodule    those of X
//!                              a worktree       those of the directory that X/commondir names
//! ```
//!
//! Law: these files are read as rules only, and rules only hide. If a `.git` file cannot be read, its rules count as
//! unreadable.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A repository that contains a root, or is under one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    exclude: PathBuf,
    config: PathBuf,
}

impl Repository {
    /// The repository whose working tree is in `directory`. `read` gives all of a small file.
    pub(super) fn at(directory: &Path, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> Option<Self> {
        let dot = directory.join(".git");
        let found = match std::fs::metadata(&dot) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Some(Self::unknown(dot));
            }
            Err(_) => return None,
        };
        if found.is_dir() {
            return Some(Self::of_git_dir(&dot));
        }
        let Some(text) = read(&dot) else { return Some(Self::unknown(dot)) };
        let git_dir = directory.join(path_of(text.strip_prefix(b"gitdir:")?)?);
        let common = read(&git_dir.join("commondir"));
        let common = common.as_deref().and_then(path_of).map(|common| git_dir.join(common));
        Some(Self::of_git_dir(&common.unwrap_or(git_dir)))
    }

    fn of_git_dir(git_dir: &Path) -> Self {
        Self { exclude: git_dir.join("info/exclude"), config: git_dir.join("config") }
    }

    fn unknown(dot: PathBuf) -> Self {
        Self { config: dot.clone(), exclude: dot }
    }

    /// The file of its rules.
    pub(super) fn exclude(&self) -> &Path {
        &self.exclude
    }

    /// Its configuration.
    pub(super) fn config(&self) -> &Path {
        &self.config
    }

    /// The files with its ignore rules outside the tree.
    pub(super) fn rule_files(&self) -> [PathBuf; 2] {
        [self.exclude.clone(), self.config.clone()]
    }
}

fn path_of(text: &[u8]) -> Option<&Path> {
    let text = text.trim_ascii();
    (!text.is_empty() && !text.contains(&0)).then(|| Path::new(OsStr::from_bytes(text)))
}

/// Whether a configuration has `core.ignorecase`: upper and lower case are the same. Included files are not read.
pub(super) fn folds_case(config: &[u8]) -> bool {
    let mut is_core = false;
    let mut folds = false;
    for line in config.split(|byte| *byte == b'\n') {
        let mut line = line.trim_ascii();
        if let Some(rest) = line.strip_prefix(b"[") {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { continue };
            let (section, rest) = rest.split_at(end);
            is_core = section.trim_ascii().eq_ignore_ascii_case(b"core");
            line = rest.get(1..).unwrap_or_default().trim_ascii();
        }
        if is_core && let Some(value) = value_of(line, b"ignorecase") {
            folds = is_true(value);
        }
    }
    folds
}

/// The value of a key; `None` if the line has another. A key alone is true.
fn value_of<'l>(line: &'l [u8], key: &[u8]) -> Option<&'l [u8]> {
    let line = line.split(|byte| matches!(byte, b'#' | b';')).next().unwrap_or_default();
    let (name, value) = match line.iter().position(|byte| *byte == b'=') {
        Some(at) => (line.get(..at)?, line.get(at + 1..)?.trim_ascii()),
        None => (line, &b"true"[..]),
    };
    name.trim_ascii().eq_ignore_ascii_case(key).then_some(value)
}

fn is_true(value: &[u8]) -> bool {
    let value: Vec<u8> = value.iter().filter(|byte| **byte != b'"').map(u8::to_ascii_lowercase).collect();
    match &*value {
        b"true" | b"yes" | b"on" => true,
        number => std::str::from_utf8(number).is_ok_and(|text| text.parse::<i64>().is_ok_and(|n| n != 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-01: as `git config --type bool core.ignorecase` reads it.
    #[test]
    fn case_as_a_configuration_has_it() {
        for (config, expected) in [
            ("[core]\n\tignorecase = true\n", true),
            ("[CORE]\r\n\tignoreCase = Yes\r\n", true),
            ("[core] ignorecase\n", true),
            ("[core]\nignorecase = \"on\" # as on this disk\n", true),
            ("[core]\nignorecase=1\n[core]\nignorecase = false\n", false),
            ("[core]\nignorecase = 0\n", false),
            ("[core]\nignorecase =\n", false),
            ("[core \"x\"]\nignorecase = true\n", false),
            ("[cores]\nignorecase = true\n", false),
            ("[core]\n# ignorecase = true\n", false),
            ("[core]\n[user]\nignorecase = true\n", false),
            ("", false),
        ] {
            assert_eq!(folds_case(config.as_bytes()), expected, "{config:?}");
        }
    }
}
