//! The names that are looked for in directories, and what is known of their absence.

pub(super) const IGNORE: &[u8] = b".ignore";
pub(super) const GITIGNORE: &[u8] = b".gitignore";
/// The directory of a repository, or the file that says where it is.
pub(super) const GIT: &[u8] = b".git";

/// The names that a directory is known to lack. By default, nothing is known, and each name must be looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryNames {
    /// Whether there is no `.git`.
    pub(super) lack_git: bool,
    /// Whether there is no `.ignore`.
    pub(super) lack_ignore: bool,
    /// Whether there is no `.gitignore`.
    pub(super) lack_gitignore: bool,
    /// Whether no entry is found under a name with other ASCII letters than its own.
    pub(super) tell_case: bool,
}

/// The same for the directories on a path, from the root down to the one that the entry is in.
#[derive(Debug, Default)]
pub(super) struct PathNames(Vec<DirectoryNames>);

impl PathNames {
    /// From the root down.
    pub(super) fn new(directories: Vec<DirectoryNames>) -> Self {
        Self(directories)
    }

    /// Those of the directory at `depth`; the root's is 0.
    pub(super) fn at(&self, depth: usize) -> DirectoryNames {
        self.0.get(depth).copied().unwrap_or_default()
    }

    /// Whether every directory on the path is known to tell upper and lower case apart.
    pub(super) fn tell_case(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|names| names.tell_case)
    }
}
