//! The notifications that a change of a repository causes.
//!
//! ```text
//!   a URI ──▶ Target ──▶ Fingerprint: of the ids that its contents depend on; for `status`, of the state of the working tree
//!   read ──▶ Tracker ◀── compared ── GitSource::refresh, while somebody watches
//! ```
//!
//! Law: contents are compared, so a commit notifies only clients whose contents it changed. The thread polls a few small files,
//! because watches of the system would have to follow directories that git creates and removes.

use super::answers::Fingerprint;
use super::commits::fingerprint_of_log;
use super::references::{self, fingerprint_of_branches, fingerprint_of_tags};
use super::repository::{GitEntry, GitRepository, Handle, INDEX};
use super::revision::GitRevision;
use super::status::WorktreeState;
use mcp_resources_engine::error::ReadError;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::tracker::{LISTS, TrackedSource, Tracker, TrackerWork};
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::Feed;
use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Interval between checks of the repositories. A check that takes long is followed by a pause twenty times as long.
const EVERY: Duration = Duration::from_millis(250);
const SLOWEST: Duration = Duration::from_secs(10);
const SHARE: u32 = 20;
/// The most directories of references that are visited.
const FOLDERS: usize = 10_000;

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
                let entry = tree.and_then(|tree| handle.entry(tree, path));
                // What is not served is as if it were not there.
                let admits = |entry: &GitEntry| handle.own.selection.admits(path, entry.mode.is_tree());
                entry.map(|entry| Fingerprint::from_value(entry.filter(admits)))
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

fn fingerprint_of_lists(handle: &Handle<'_>) -> Result<Fingerprint, ReadError> {
    let named = references::all(handle)?;
    let names: Vec<&str> = named.iter().map(|named| &*named.encoded).collect();
    Ok(Fingerprint::from_value((handle.head()?.is_some(), names)))
}

/// The repositories of one declaration, to be tracked.
#[derive(Debug)]
pub(super) struct GitSource(Vec<Arc<GitRepository>>);

/// The fingerprints of everything that is watched.
#[derive(Debug, Default)]
pub(super) struct GitMarks {
    marks: HashMap<Arc<str>, Fingerprint>,
    /// Of the lists of each repository; `None` if it could not be read yet.
    lists: Vec<Option<Fingerprint>>,
    /// When a reference, HEAD or the index of each repository was last changed, if something of it is new to the watch.
    newest: Vec<Option<SystemTime>>,
}

impl GitSource {
    pub(super) fn new(repositories: &[Arc<GitRepository>]) -> Self {
        Self(repositories.to_vec())
    }

    /// The target of a canonical URI, with the number of its repository.
    fn target(&self, uri: &str) -> Option<(usize, GitTarget)> {
        let (name, target) = GitTarget::parse(uri)?;
        let at = self.0.iter().position(|repository| repository.name == name)?;
        Some((at, target))
    }

    /// Looks at what is watched of one repository. What cannot be read now keeps the mark that it had.
    fn look(&self, at: usize, wanted: &[GitWatched], work: &TrackerWork<'_, Self>, now: &mut GitMarks) {
        let Some(repository) = self.0.get(at).filter(|repository| repository.settings.watch) else { return };
        // An unavailable repository would otherwise be logged four times a second.
        let context = work.feed.context().quiet();
        let _ = repository.with(&context, |handle| {
            for GitWatched { uri, target, .. } in wanted.iter().filter(|wanted| wanted.repository == at) {
                match (target, target.mark(handle)) {
                    (_, Err(_)) => {}
                    (GitTarget::Lists, Ok(mark)) => {
                        now.lists.get_mut(at).into_iter().for_each(|place| *place = Some(mark));
                    }
                    (_, Ok(mark)) => drop(now.marks.insert(uri.clone(), mark)),
                }
            }
            if wanted.iter().any(|wanted| wanted.repository == at && wanted.is_new) {
                now.newest.get_mut(at).into_iter().for_each(|place| *place = newest_change(handle));
            }
            Ok(())
        });
    }
}

/// Something that is watched of a repository.
struct GitWatched {
    repository: usize,
    uri: Arc<str>,
    target: GitTarget,
    /// Whether nothing is known with which it could be compared.
    is_new: bool,
}

impl TrackedSource for GitSource {
    const THREAD: &'static str = "mcp-git";

    type Snapshot = GitMarks;
    type Digest = Fingerprint;
    type Worker = ();

    fn empty(&self) -> GitMarks {
        let count = self.0.len();
        GitMarks { marks: HashMap::new(), lists: vec![None; count], newest: vec![None; count] }
    }

    fn begin(&self, _tracker: &Arc<Tracker<Self>>, _feed: &Feed) {}

    fn refresh(&self, _worker: &mut (), work: &TrackerWork<'_, Self>) -> Option<Duration> {
        let began = Instant::now();
        let before = work.current();
        let mut now = GitMarks { marks: HashMap::new(), lists: before.lists.clone(), ..self.empty() };
        let mut wanted = Vec::new();
        for name in work.watched() {
            let is_new = name.is_new && work.last_read(&name.uri).is_none();
            let of = |repository, target| GitWatched { repository, uri: name.uri.clone(), target, is_new };
            if &*name.uri == LISTS {
                wanted.extend((0..self.0.len()).map(|at| of(at, GitTarget::Lists)));
            } else if let Some((at, target)) = self.target(&name.uri) {
                wanted.push(of(at, target));
                now.marks
                    .extend(before.marks.get_key_value(&name.uri).map(|(uri, mark)| (uri.clone(), *mark)));
            }
        }
        (0..self.0.len())
            .filter(|at| wanted.iter().any(|wanted| wanted.repository == *at))
            .for_each(|at| self.look(at, &wanted, work, &mut now));
        work.publish(now);
        Some((began.elapsed() * SHARE).clamp(EVERY, SLOWEST))
    }

    fn digest(&self, now: &GitMarks, uri: &str) -> Option<Fingerprint> {
        match uri {
            LISTS => now.lists.iter().any(Option::is_some).then(|| Fingerprint::from_value(&now.lists)),
            _ => now.marks.get(uri).copied(),
        }
    }

    fn changed_at(&self, now: &GitMarks, uri: &str) -> Option<SystemTime> {
        match uri {
            LISTS => now.newest.iter().flatten().max().copied(),
            _ => now.newest.get(self.target(uri)?.0).copied().flatten(),
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
