//! Reads rule files: opens regular files only, up to a size limit, and keeps the rules while the files do not change.
//!
//! ```text
//!   look at the name ──▶ nothing, a directory, a link ──▶ no rules
//!                   ├──▶ the file whose rules are kept ──▶ those
//!                   ├──▶ a file ──open, read, parse──▶ its rules
//!                   └──▶ anything else, or one of these steps fails ──▶ rules that ignore everything, and a fault for the log
//! ```
//!
//! Law: the kind of a file is checked before it is opened, so that no thread waits for the other end of a FIFO. The cache is
//! limited in number and in bytes.

use super::directory_names::GIT;
use super::gitignore::IgnoreRules;
use super::repository::{Repository, folds_case};
use super::root_directory::{EntryStamp, FileKind, Missing, RootDirectory};
use mcp_resources_provider_kit::uri_path::join;
use mcp_resources_runtime::sync::Mutex;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};

/// The largest file of rules that is read, in bytes.
const LARGEST: u64 = 1024 * 1024;
/// Maximum number of rule files kept, and their maximum size together in bytes.
const KEPT: usize = 4_096;
const KEPT_BYTES: usize = 4 * 1024 * 1024;
/// Maximum number of repositories under a root that are kept.
const REPOSITORIES: usize = 1_024;
/// Maximum number of faults that wait for the log, and of faults remembered as logged.
const FAULTS: usize = 64;

/// The rule files of one root, with a cache.
#[derive(Debug, Default)]
pub(super) struct RuleFiles {
    kept: Mutex<KeptRules>,
    /// Those under the root, with what their `.git` was like.
    repositories: Mutex<HashMap<Vec<u8>, KnownRepository>>,
    has_faults: AtomicBool,
    faults: Mutex<Faults>,
}

/// The state of a `.git`, and the repository that it stands for.
type KnownRepository = (EntryStamp, Option<Repository>);
/// The path of a file of rules, and whether upper and lower case are the same in them.
type RuleKey = (Vec<u8>, bool);
/// A file of rules as it was when it was read.
type ReadRules = (EntryStamp, Option<Arc<IgnoreRules>>);

/// The parsed rule files, by path.
#[derive(Debug, Default)]
struct KeptRules {
    files: HashMap<RuleKey, ReadRules>,
    bytes: usize,
    /// Whether a configuration says that case does not matter.
    configs: HashMap<PathBuf, (EntryStamp, bool)>,
}

#[derive(Debug, Default)]
struct Faults {
    new: Vec<String>,
    said: HashSet<PathBuf>,
}

/// The reason why existing rules cannot be read.
#[derive(Clone, Copy, Debug)]
enum UnreadableRules {
    NoFile,
    TooLarge,
    System(Errno),
}

impl RuleFiles {
    /// The rules in a file of a directory under the root. `dir` is where the root is.
    pub(super) fn rules_in(
        &self,
        root: &RootDirectory,
        directory: &[u8],
        name: &[u8],
        folds: bool,
        dir: &Path,
    ) -> Option<Arc<IgnoreRules>> {
        let key = || join(directory, name);
        let path = || dir.join(OsStr::from_bytes(&key()));
        let stamp = match root.look(directory, name) {
            Ok(stamp) => stamp,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => return None,
            Err(error) => return Some(self.unreadable(&path(), UnreadableRules::System(error))),
        };
        match stamp.facts.kind {
            FileKind::Directory => return None,
            FileKind::Link if !root.follows() => return None,
            FileKind::Other => return Some(self.unreadable(&path(), UnreadableRules::NoFile)),
            FileKind::Link | FileKind::File => {}
        }
        let key = (key(), folds);
        if let Some(rules) = self.known(&key, &stamp) {
            return rules;
        }
        match root.open(&key.0) {
            Ok(opened) if opened.facts.kind == FileKind::File => {
                // Of a link, the file behind it may change without the link.
                let stamp = opened.changed().map(|changed| EntryStamp { facts: opened.facts, changed });
                let stamp = stamp.filter(|_| opened.real == key.0);
                self.read(&path(), key, stamp, opened.into_file())
            }
            Ok(_) | Err(Missing::NotFound) => None,
            Err(Missing::Failed(error)) => Some(self.unreadable(&path(), UnreadableRules::System(error))),
        }
    }

    /// The rules in a file anywhere, through whatever links lead to it.
    pub(super) fn outside(&self, path: &Path, folds: bool) -> Option<Arc<IgnoreRules>> {
        self.rules_at(path, folds, looked(path))
    }

    /// The rules in the file at `path`, which was looked at.
    fn rules_at(
        &self,
        path: &Path,
        folds: bool,
        looked: Result<Option<EntryStamp>, UnreadableRules>,
    ) -> Option<Arc<IgnoreRules>> {
        let stamp = match looked {
            Ok(Some(stamp)) => stamp,
            Ok(None) => return None,
            Err(reason) => return Some(self.unreadable(path, reason)),
        };
        let key = (path.as_os_str().as_bytes().to_vec(), folds);
        if let Some(rules) = self.known(&key, &stamp) {
            return rules;
        }
        match open(path) {
            Ok((file, stamp)) => self.read(path, key, Some(stamp), file),
            Err(reason) => Some(self.unreadable(path, reason)),
        }
    }

    /// The rules of a repository that are not in its tree.
    pub(super) fn exclude(&self, repository: &Repository, folds: bool) -> Option<Arc<IgnoreRules>> {
        self.outside(repository.exclude(), folds)
    }

    /// The same for a repository whose rules are at `path` under the root: one look is shorter from there.
    pub(super) fn exclude_in(
        &self,
        root: &RootDirectory,
        path: &[u8],
        repository: &Repository,
        folds: bool,
    ) -> Option<Arc<IgnoreRules>> {
        self.rules_at(repository.exclude(), folds, file_stamp(root.look_through(path)))
    }

    /// Whether a repository takes upper and lower case for the same.
    pub(super) fn folds(&self, repository: &Repository) -> bool {
        let path = repository.config();
        let Ok(Some(stamp)) = looked(path) else { return false };
        if let Some((_, folds)) = self.kept().configs.get(path).filter(|(known, _)| *known == stamp) {
            return *folds;
        }
        let Some((bytes, stamp)) = text(path) else { return false };
        let folds = folds_case(&bytes);
        let mut kept = self.kept();
        if stamp.is_settled() && kept.configs.len() < REPOSITORIES {
            kept.configs.insert(path.to_owned(), (stamp, folds));
        } else {
            kept.configs.remove(path);
        }
        folds
    }

    /// The repository whose working tree is in a directory.
    pub(super) fn repository(&self, directory: &Path) -> Option<Repository> {
        Repository::at(directory, &|path| text(path).map(|(bytes, _)| bytes))
    }

    /// The repository whose working tree is in a directory under the root.
    pub(super) fn nested(
        &self,
        root: &RootDirectory,
        directory: &[u8],
        absolute: impl Fn() -> PathBuf,
    ) -> Option<Repository> {
        let stamp = root.look(directory, GIT).ok()?;
        let mut known = self.repositories.lock();
        if let Some((_, repository)) = known.get(directory).filter(|(known, _)| *known == stamp) {
            return repository.clone();
        }
        let repository = self.repository(&absolute());
        if known.len() >= REPOSITORIES {
            known.clear();
        }
        // What a `.git` directory is like changes with each command of git; only whether it is one matters.
        known.insert(directory.to_vec(), (stamp, repository.clone()));
        repository
    }

    /// The repositories under the root that were met.
    pub(super) fn known_repositories(&self) -> Vec<Repository> {
        let known = self.repositories.lock();
        let mut known: Vec<_> =
            known.iter().filter_map(|(at, (_, found))| Some((at.clone(), found.clone()?))).collect();
        known.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        known.into_iter().map(|(_, repository)| repository).collect()
    }

    /// Sentences for the log, each fault once until its file was read.
    pub(super) fn take_faults(&self) -> Vec<String> {
        if !self.has_faults.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        std::mem::take(&mut self.faults.lock().new)
    }

    /// The kept rules of a file, if it is still the same file and unchanged.
    fn known(&self, key: &RuleKey, stamp: &EntryStamp) -> Option<Option<Arc<IgnoreRules>>> {
        let kept = self.kept();
        kept.files.get(key).filter(|(known, _)| known == stamp).map(|(_, rules)| rules.clone())
    }

    /// Reads a file of rules that is open, and keeps them if a change would show in its stamp.
    fn read(
        &self,
        path: &Path,
        key: RuleKey,
        stamp: Option<EntryStamp>,
        file: impl Read,
    ) -> Option<Arc<IgnoreRules>> {
        let mut bytes = Vec::new();
        match file.take(LARGEST + 1).read_to_end(&mut bytes) {
            Ok(_) if bytes.len() as u64 > LARGEST => {
                return Some(self.unreadable(path, UnreadableRules::TooLarge));
            }
            Ok(_) => {}
            Err(error) => {
                let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Some(self.unreadable(path, UnreadableRules::System(error)));
            }
        }
        self.readable(path);
        let rules = IgnoreRules::parse(&bytes, key.1);
        let rules = if rules.is_empty() { None } else { Some(Arc::new(rules)) };
        if let Some(stamp) = stamp.filter(EntryStamp::is_settled) {
            let mut kept = self.kept();
            if kept.files.len() >= KEPT || kept.bytes.saturating_add(bytes.len()) > KEPT_BYTES {
                kept.files.clear();
                kept.bytes = 0;
            }
            kept.bytes += bytes.len();
            kept.files.insert(key, (stamp, rules.clone()));
        }
        rules
    }

    fn unreadable(&self, path: &Path, reason: UnreadableRules) -> Arc<IgnoreRules> {
        let mut faults = self.faults.lock();
        if !faults.said.contains(path) && faults.new.len() < FAULTS {
            if faults.said.len() >= FAULTS {
                faults.said.clear();
            }
            faults.said.insert(path.to_owned());
            faults.new.push(reason.message(path));
            self.has_faults.store(true, Ordering::Relaxed);
        }
        Arc::new(IgnoreRules::everything())
    }

    fn readable(&self, path: &Path) {
        self.faults.lock().said.remove(path);
    }

    fn kept(&self) -> MutexGuard<'_, KeptRules> {
        self.kept.lock()
    }
}

impl UnreadableRules {
    /// A message for the log: the problem, its effect, and the fix.
    fn message(self, path: &Path) -> String {
        let (reason, fix) = match self {
            Self::NoFile => ("it is no file".into(), "remove it"),
            Self::TooLarge => (format!("it has more than {LARGEST} bytes"), "shorten it"),
            Self::System(error) => (error.to_string(), "let the server read it"),
        };
        format!(
            "the ignore rules in {} cannot be read: {reason}; nothing that they are about is served until then; {fix}, or \
             set gitignore to false",
            path.display()
        )
    }
}

/// The stamp of a path; `None` if no file can be there.
fn looked(path: &Path) -> Result<Option<EntryStamp>, UnreadableRules> {
    let found = rustix::io::retry_on_intr(|| rustix::fs::stat(path));
    file_stamp(found.map(|stat| EntryStamp::from_stat(&stat)))
}

/// The stamp of what was found behind links; `None` if no file can be there.
fn file_stamp(found: Result<EntryStamp, Errno>) -> Result<Option<EntryStamp>, UnreadableRules> {
    match found {
        Ok(stamp) => match stamp.facts.kind {
            FileKind::File => Ok(Some(stamp)),
            FileKind::Directory => Ok(None),
            FileKind::Link | FileKind::Other => Err(UnreadableRules::NoFile),
        },
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NAMETOOLONG) => Ok(None),
        Err(error) => Err(UnreadableRules::System(error)),
    }
}

/// Opens a file that was looked at. That another has taken its place meanwhile is no reason to wait.
fn open(path: &Path) -> Result<(File, EntryStamp), UnreadableRules> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let open = || rustix::fs::open(path, flags, Mode::empty());
    let file = rustix::io::retry_on_intr(open).map_err(UnreadableRules::System)?;
    let stat = rustix::fs::fstat(&file).map_err(UnreadableRules::System)?;
    let stamp = EntryStamp::from_stat(&stat);
    if stamp.facts.kind == FileKind::File {
        Ok((File::from(file), stamp))
    } else {
        Err(UnreadableRules::NoFile)
    }
}

/// Reads a small file as a whole; also returns its stamp before the read.
fn text(path: &Path) -> Option<(Vec<u8>, EntryStamp)> {
    looked(path).ok()??;
    let (file, stamp) = open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= LARGEST).then_some((bytes, stamp))
}
