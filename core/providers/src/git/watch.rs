//! The notifications that a change of a repository causes.
//!
//! ```text
//!   a URI ──▶ Target ──▶ Fingerprint: of the ids that its contents depend on; for `status`, of the state of the working tree
//!   read ──▶ ReadFingerprints ◀── compared ── a thread that looks while somebody watches
//! ```
//!
//! Law: contents are compared, so a commit notifies only clients whose contents it changed. The thread polls a few small files,
//! because watches of the system would have to follow directories that git creates and removes.

use super::options::GitSettings;
use super::references::{self, RefName};
use super::repository::{GitContext, GitRepository, Handle, INDEX};
use super::revision::GitRevision;
use super::status::WorktreeState;
use crate::path;
use crate::uri_path;
use crate::watching::{ProviderWatching, WatchedValue};
use gix::ObjectId;
use mcp_resources_engine::error::ReadError;
use mcp_resources_runtime::provider::{Feed, InterestChange};
use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// Interval between checks of the repositories. A check that takes long is followed by a pause twenty times as long.
const EVERY: Duration = Duration::from_millis(250);
const SLOWEST: Duration = Duration::from_secs(10);
const SHARE: u32 = 20;
/// The size of the table of reads. Of two reads with the same slot, the later one stays.
const READS: usize = 4_096;
/// The clock of a file system moves with the kernel's ticks.
const TICK: Duration = Duration::from_millis(20);
/// The most directories of references that are visited.
const FOLDERS: usize = 10_000;

/// A hash of everything that contents depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn from_value(value: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}

/// The subject of a URI.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum GitTarget {
    Status,
    Branches,
    Tags,
    /// `None`: HEAD, which may have no commit yet.
    Log(Option<GitRevision>),
    Commit(GitRevision),
    Diff(GitRevision, GitRevision),
    /// A directory or a file.
    Path(GitRevision, Vec<u8>),
    /// The list of resources.
    Lists,
}

impl GitTarget {
    /// Parses a canonical URI; also returns the name of the repository.
    fn parse(uri: &str) -> Option<(String, Self)> {
        let rest = uri.strip_prefix(INDEX)?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (name, rest) = rest.split_once('/')?;
        let revision = |text: &str| GitRevision::parse(&path::decoded(text)?);
        let (kind, rest) = rest.split_once('/').map_or((rest, None), |(kind, rest)| (kind, Some(rest)));
        let target = match (kind, rest) {
            ("status", None) => Self::Status,
            ("branches", None) => Self::Branches,
            ("tags", None) => Self::Tags,
            ("log", None) => Self::Log(None),
            ("log", Some(of)) => Self::Log(Some(revision(of)?)),
            ("commit", Some(of)) => Self::Commit(revision(of)?),
            ("diff", Some(of)) => {
                let (from, to) = of.split_once('/')?;
                Self::Diff(revision(from)?, revision(to)?)
            }
            ("tree" | "blob", Some(of)) => {
                let (of, at) = of.split_once('/')?;
                Self::Path(revision(of)?, uri_path::path(&path::decoded(at)?)?.0)
            }
            _ => return None,
        };
        Some((path::decoded(name)?, target))
    }

    /// Its fingerprint now. A resource that does not exist has one too.
    fn mark(&self, handle: &Handle<'_>) -> Result<Fingerprint, ReadError> {
        let found = match self {
            Self::Status => WorktreeState::new(handle).map(|state| Fingerprint::from_value(state.digest())),
            Self::Branches => fingerprint_of_branches(handle),
            Self::Tags => references::all(handle).map(|named| fingerprint_of_tags(&named)),
            Self::Log(None) => handle.head().and_then(|head| fingerprint_of_log(handle, head)),
            Self::Log(Some(revision)) => {
                handle.resolve("ref", revision).and_then(|id| fingerprint_of_log(handle, Some(id)))
            }
            Self::Commit(revision) => {
                handle.resolve("id", revision).map(|id| Fingerprint::from_value(Some(id)))
            }
            Self::Diff(from, to) => {
                let tree = |revision| handle.resolve("ref", revision).and_then(|id| handle.tree_of(id));
                tree(from).and_then(|from| Ok(Fingerprint::from_value((from, tree(to)?))))
            }
            Self::Path(revision, path) => {
                let tree = handle.resolve("ref", revision).and_then(|id| handle.tree_of(id));
                tree.and_then(|tree| handle.entry(tree, path)).map(Fingerprint::from_value)
            }
            Self::Lists => fingerprint_of_lists(handle),
        };
        match found {
            // The next check may succeed.
            Err(ReadError::Failed) => Err(ReadError::Failed),
            Err(_) => Ok(Fingerprint::from_value(None::<()>)),
            found => found,
        }
    }
}

/// A fetch may bring older commits of a shallow clone, without another newest commit.
pub(super) fn fingerprint_of_log(
    handle: &Handle<'_>,
    start: Option<ObjectId>,
) -> Result<Fingerprint, ReadError> {
    let mut last: Vec<ObjectId> = handle.shallow()?.iter().copied().collect();
    last.sort();
    Ok(Fingerprint::from_value((start, last)))
}

pub(super) fn fingerprint_of_branches(handle: &Handle<'_>) -> Result<Fingerprint, ReadError> {
    let branches: Vec<RefName> = references::all(handle)?.into_iter().filter(|named| !named.is_tag).collect();
    Ok(Fingerprint::from_value((handle.branch()?, branches)))
}

pub(super) fn fingerprint_of_tags(named: &[RefName]) -> Fingerprint {
    Fingerprint::from_value(named.iter().filter(|named| named.is_tag).collect::<Vec<_>>())
}

fn fingerprint_of_lists(handle: &Handle<'_>) -> Result<Fingerprint, ReadError> {
    let named = references::all(handle)?;
    let names: Vec<&str> = named.iter().map(|named| &*named.encoded).collect();
    Ok(Fingerprint::from_value((handle.head()?.is_some(), names)))
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct GitWatcher {
    watching: Arc<ProviderWatching>,
    marks: ReadFingerprints,
    /// When the watch of each URI began, until its first check. The list of resources has the empty URI.
    since: Mutex<HashMap<Arc<str>, SystemTime>>,
}

/// The fingerprints of the last reads.
#[derive(Debug, Default)]
struct ReadFingerprints {
    hasher: RandomState,
    /// Keys with their fingerprints; the key decides the slot. Empty until something is read.
    reads: Mutex<Vec<Option<(u64, Fingerprint)>>>,
}

impl ReadFingerprints {
    fn saw(&self, repository: &str, target: &GitTarget, mark: Fingerprint) {
        let (key, at) = self.place(repository, target);
        let mut reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        if reads.is_empty() {
            reads.resize(READS, None);
        }
        if let Some(slot) = reads.get_mut(at) {
            *slot = Some((key, mark));
        }
    }

    fn last(&self, repository: &str, target: &GitTarget) -> Option<Fingerprint> {
        let (key, at) = self.place(repository, target);
        let reads = self.reads.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, mark) = (*reads.get(at)?)?;
        (known == key).then_some(mark)
    }

    fn place(&self, repository: &str, target: &GitTarget) -> (u64, usize) {
        let key = self.hasher.hash_one((repository, target));
        (key, usize::try_from(key % READS as u64).unwrap_or_default())
    }
}

impl GitWatcher {
    /// A new mount.
    pub(super) fn begin_anew(&self) {
        self.watching.begin_anew();
    }

    /// Records that a client has read contents with this fingerprint.
    pub(super) fn saw(&self, repository: &GitRepository, target: &GitTarget, mark: Fingerprint) {
        if repository.settings.watch {
            self.marks.saw(&repository.name, target, mark);
        }
    }

    /// Records a change of interest. The first one starts the thread.
    pub(super) fn interest(
        self: &Arc<Self>,
        change: InterestChange<'_>,
        feed: Option<Feed>,
        repositories: &[Arc<GitRepository>],
    ) {
        let watches = |settings: &GitSettings| settings.watch;
        if !repositories.iter().any(|repository| watches(&repository.settings)) {
            return;
        }
        self.note(change);
        self.watching.interest(change, feed, "mcp-git", || {
            let mut look =
                Poller { watch: self.clone(), repositories: repositories.to_vec(), known: HashMap::new() };
            move |feed, watched| {
                let began = Instant::now();
                look.all(feed, watched);
                (began.elapsed() * SHARE).clamp(EVERY, SLOWEST)
            }
        });
    }

    /// Records when a watch began.
    fn note(&self, change: InterestChange<'_>) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            InterestChange::Uri { uri, on: true, .. } => drop(since.insert(uri.clone(), SystemTime::now())),
            InterestChange::Uri { uri, on: false, .. } => drop(since.remove(uri)),
            InterestChange::Lists { on: true } => drop(since.insert("".into(), SystemTime::now())),
            InterestChange::Lists { on: false } => drop(since.remove("")),
        }
    }

    fn since(&self, uri: &str) -> Option<SystemTime> {
        self.since.lock().unwrap_or_else(PoisonError::into_inner).remove(uri)
    }
}

/// The state of the thread: the fingerprints of its last check.
struct Poller {
    watch: Arc<GitWatcher>,
    repositories: Vec<Arc<GitRepository>>,
    known: HashMap<(Arc<str>, usize), Fingerprint>,
}

impl Poller {
    fn all(&mut self, feed: &Feed, watched: &WatchedValue) {
        self.known
            .retain(|(uri, _), _| if uri.is_empty() { watched.lists } else { watched.uris.contains(uri) });
        let uris = watched.uris.iter().filter_map(|uri| {
            let (name, target) = GitTarget::parse(uri)?;
            let at = self.repositories.iter().position(|repository| repository.name == name)?;
            Some((at, uri.clone(), target))
        });
        let mut todo: Vec<(usize, Arc<str>, GitTarget)> = uris.collect();
        if watched.lists {
            todo.extend((0..self.repositories.len()).map(|at| (at, "".into(), GitTarget::Lists)));
        }
        let mut lists = false;
        let mut listed_since = None;
        for at in 0..self.repositories.len() {
            let repository = self.repositories[at].clone();
            let own: Vec<_> = todo.iter().filter(|(of, ..)| *of == at).collect();
            if own.is_empty() || !repository.settings.watch {
                continue;
            }
            // An unavailable repository would otherwise be logged four times a second.
            let log = |_: &str| {};
            let context = GitContext {
                permits: &|_| true,
                is_cancelled: &|| !feed.is_alive(),
                facts: &|_| Ok(()),
                log: &log,
            };
            let _ = repository.with(&context, |handle| {
                for (_, uri, target) in own {
                    let since = match target {
                        GitTarget::Lists => *listed_since.get_or_insert_with(|| self.watch.since("")),
                        _ => self.watch.since(uri),
                    };
                    if self.has_changed(handle, (uri, at, target), since) {
                        match target {
                            GitTarget::Lists => lists = true,
                            // A canonical URI is never refused.
                            _ => drop(feed.updated(uri)),
                        }
                    }
                }
                Ok(())
            });
        }
        if lists {
            feed.list_changed();
        }
    }

    fn has_changed(
        &mut self,
        handle: &Handle<'_>,
        (uri, at, target): (&Arc<str>, usize, &GitTarget),
        since: Option<SystemTime>,
    ) -> bool {
        let Ok(mark) = target.mark(handle) else { return false };
        let before = self.known.insert((uri.clone(), at), mark);
        match before.filter(|_| since.is_none()).or_else(|| self.watch.marks.last(&handle.own.name, target)) {
            Some(before) => before != mark,
            // Nothing to compare with: a change between the subscription and this check counts.
            None => {
                since.is_some_and(|since| newest_change(handle).is_some_and(|newest| newest + TICK >= since))
            }
        }
    }
}

/// When a reference, HEAD or the index was last changed.
fn newest_change(handle: &Handle<'_>) -> Option<SystemTime> {
    let modified = |path: &Path| path.symlink_metadata().ok().and_then(|found| found.modified().ok());
    let own = &handle.open.layout.git_dir;
    let common = &handle.open.layout.common_dir;
    let files = [own.join("HEAD"), own.join("index"), common.join("packed-refs")];
    let mut newest = files.iter().filter_map(|path| modified(path)).max();
    let mut folders = vec![common.join("refs")];
    let mut looked = 0;
    while let Some(folder) = folders.pop().filter(|_| looked < FOLDERS) {
        looked += 1;
        newest = newest.max(modified(&folder));
        let below = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
        folders.extend(
            below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path()),
        );
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: subjects of URIs.
    #[test]
    fn targets() {
        let head = GitRevision::parse("HEAD").unwrap();
        let feature = GitRevision::parse("feature~2Fx").unwrap();
        for (uri, expected) in [
            ("git:///p/status", GitTarget::Status),
            ("git:///p/log?n=3", GitTarget::Log(None)),
            ("git:///p/log/feature~2Fx", GitTarget::Log(Some(feature.clone()))),
            ("git:///p/diff/HEAD/feature~2Fx", GitTarget::Diff(head.clone(), feature)),
            ("git:///p/tree/HEAD/", GitTarget::Path(head.clone(), Vec::new())),
            ("git:///p/blob/HEAD/a%20b/c", GitTarget::Path(head, b"a b/c".to_vec())),
        ] {
            assert_eq!(GitTarget::parse(uri), Some(("p".to_owned(), expected)), "{uri}");
        }
        for uri in [
            "git:///",
            "git:///p",
            "git:///p/other",
            "git:///p/log/@{-1}",
            "git:///p/tree/HEAD",
            "file:///p/log",
        ] {
            assert_eq!(GitTarget::parse(uri), None, "{uri}");
        }
    }
}
