//! Remembers what directories do not have, for as long as they are unchanged: rule files, and names that differ by case alone.
//!
//! ```text
//!   KnownDirectories::names(root, a/b/file)      one look at the root, at a and at a/b each
//!     ├── the stamp with which it was searched ──▶ what was absent still is
//!     └── another stamp ──▶ open it, search it, compare its stamp again ──▶ kept
//! ```
//!
//! Law: an entry cannot come, go or get another name without a change of its directory's stamp. That holds if the file system
//! keeps stamps strictly, if the stamp was settled before the search, and if the search was made in the directory that the
//! stamp is of, by its descriptor: a path may lead elsewhere for a moment. Nothing is kept otherwise, and every name is looked
//! for at each request. What a directory does have, and what is in its files, is not kept here.

use super::directory_names::{DirectoryNames, GIT, GITIGNORE, IGNORE, PathNames};
use super::root_directory::{
    Dir, EntryStamp, FileKind, OpenedFile, RootDirectory, SETTLED, components, swapped_case,
};
use mcp_resources_runtime::sync::Mutex;
use rustix::io::Errno;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of directories that are kept, and of bytes of their paths.
const DIRECTORIES: usize = 4_096;
const PATH: usize = 512;

/// The directories of one root.
#[derive(Debug)]
pub(super) struct KnownDirectories {
    kept: Mutex<HashMap<Vec<u8>, DirectoryKnowledge>>,
    /// The age of a change that makes a stamp settled.
    settled: Duration,
}

/// A directory after its last search.
#[derive(Clone, Copy, Debug)]
enum DirectoryKnowledge {
    /// The stamp before and after the search, and what it found.
    Searched { stamp: EntryStamp, names: DirectoryNames, case: CaseFound },
    /// Its file system has no strict stamps.
    Unknowable,
}

/// Whether a directory tells upper and lower case apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CaseFound {
    /// No name with letters was tried.
    Untried,
    Told,
    /// It does not, or it has one file under both names.
    Doubtful,
}

impl Default for KnownDirectories {
    fn default() -> Self {
        Self::with_settled(SETTLED)
    }
}

impl KnownDirectories {
    /// `settled` is the age of a change after which the next one has another time.
    pub(super) fn with_settled(settled: Duration) -> Self {
        Self { kept: Mutex::default(), settled }
    }

    /// The names that the directories on the path of an entry lack now. `path` is a real one: no component is a link.
    pub(super) fn names(&self, root: &RootDirectory, path: &[u8]) -> PathNames {
        let mut names = Vec::new();
        let mut at = 0;
        for name in components(path) {
            let directory = path.get(..at).unwrap_or_default();
            let directory = directory.strip_suffix(b"/").unwrap_or(directory);
            names.push(self.names_in(root, directory, name));
            at += name.len() + 1;
        }
        PathNames::new(names)
    }

    /// The same for one directory, where an entry was found under `name`.
    fn names_in(&self, root: &RootDirectory, directory: &[u8], name: &[u8]) -> DirectoryNames {
        if directory.len() > PATH {
            return DirectoryNames::default();
        }
        let known = self.kept.lock().get(directory).copied();
        if matches!(known, Some(DirectoryKnowledge::Unknowable)) {
            return DirectoryNames::default();
        }
        let Ok(now) = root.look_at(directory) else { return DirectoryNames::default() };
        match known {
            Some(DirectoryKnowledge::Searched { stamp, names, case })
                if stamp == now && (case != CaseFound::Untried || swapped_case(name).is_none()) =>
            {
                names
            }
            _ if now.facts.kind != FileKind::Directory || !now.changed.is_older_than(self.settled) => {
                DirectoryNames::default()
            }
            _ => self.search(root, directory, name, &now),
        }
    }

    /// Searches a directory whose settled stamp is `stamp`.
    pub(super) fn search(
        &self,
        root: &RootDirectory,
        directory: &[u8],
        name: &[u8],
        stamp: &EntryStamp,
    ) -> DirectoryNames {
        let Some(dir) = root.resolve(directory).ok().and_then(OpenedFile::into_dir) else {
            return DirectoryNames::default();
        };
        let known = if dir.has_strict_stamps() {
            let case = CaseFound::in_directory(&dir, name);
            let names = DirectoryNames {
                lack_git: dir.lacks(GIT),
                lack_ignore: dir.lacks(IGNORE),
                lack_gitignore: dir.lacks(GITIGNORE),
                tell_case: case == CaseFound::Told,
            };
            // Another directory may have been opened, and this one may have changed since.
            if dir.stamp().as_ref() != Some(stamp) {
                return DirectoryNames::default();
            }
            DirectoryKnowledge::Searched { stamp: *stamp, names, case }
        } else {
            DirectoryKnowledge::Unknowable
        };
        let mut kept = self.kept.lock();
        if kept.len() >= DIRECTORIES {
            kept.clear();
        }
        kept.insert(directory.to_vec(), known);
        known.names()
    }
}

impl DirectoryKnowledge {
    fn names(self) -> DirectoryNames {
        match self {
            Self::Searched { names, .. } => names,
            Self::Unknowable => DirectoryNames::default(),
        }
    }
}

impl CaseFound {
    /// By an entry that is there, and its name in the other case.
    fn in_directory(dir: &Dir, name: &[u8]) -> Self {
        let Some(swapped) = swapped_case(name) else { return Self::Untried };
        match (dir.look(name), dir.look(&swapped)) {
            (Ok(_), Err(Errno::NOENT)) => Self::Told,
            (Ok(own), Ok(other)) if own.facts.id != other.facts.id => Self::Told,
            (Ok(_), _) => Self::Doubtful,
            (Err(_), _) => Self::Untried,
        }
    }
}

impl Dir {
    /// Whether nothing has this name.
    fn lacks(&self, name: &[u8]) -> bool {
        self.look(name) == Err(Errno::NOENT)
    }
}
