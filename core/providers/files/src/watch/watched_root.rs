//! The watched directories of one root, and the state of their entries.
//!
//! ```text
//!   hold(dir) ── watched by the system from now on ──▶ scan(dir) ──▶ does it differ from the last scan? which directories are new?
//! ```
//!
//! Law: a directory is watched before it is read, so that later changes are noticed. Two sums of hashes are kept of its
//! entries, not their names: a directory costs the same however many files it has.

use super::super::contents::resolve;
use super::super::options::Symlinks;
use super::super::root_directory::{
    EntryFacts, EntryStamp, FileKind, Missing, OpenedFile, RootDirectory, components,
};
use super::super::tree::{Tree, join};
use super::seen::is_settled;
use super::system::{DIRECTORIES, Short, System};
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsStr;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of links followed on the way to one file.
const LINKS: usize = 40;
/// Maximum number of bytes of a file that are compared.
const COMPARED: u64 = 1024 * 1024;
/// The names of files that have rules in them.
const RULES: [&[u8]; 2] = [b".gitignore", b".ignore"];

/// The watched directories of one root.
#[derive(Debug)]
pub(super) struct WatchedRoot {
    pub(super) tree: Arc<Tree>,
    pub(super) budget: usize,
    /// Whether a client watches the lists, so that all directories matter.
    pub(super) is_listed: bool,
    /// Directories that must be scanned.
    pub(super) stale: BTreeSet<Vec<u8>>,
    /// Directories that are known no longer, since this was last emptied.
    pub(super) gone: Vec<Vec<u8>>,
    /// Whether one of those had files.
    pub(super) has_lost_files: bool,
    /// The directory itself. `None` if it does not exist.
    base: Option<RootBase>,
    /// The metadata of the rule files outside the root; `None` before the first look.
    outer_rules: Option<Vec<Option<EntryFacts>>>,
    dirs: BTreeMap<Vec<u8>, KnownDirectory>,
    /// The number of watched files that each directory leads to.
    needed: HashMap<Vec<u8>, usize>,
    hasher: RandomState,
}

/// The directory of a root.
#[derive(Debug, PartialEq, Eq)]
struct RootBase {
    /// After links.
    path: PathBuf,
    id: FileId,
}

/// A directory.
#[derive(Debug)]
struct KnownDirectory {
    /// Whether the system watches it.
    is_armed: bool,
    /// The metadata at the last scan, and whether a change since then must show in it; `None` before the first scan.
    facts: Option<(EntryFacts, bool)>,
    entries: Entries,
    /// The state of its rule files; `None` before the first look.
    rules: Option<u64>,
}

/// The served entries of a directory: sums of hashes, which do not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entries {
    files: u64,
    all: u64,
}

/// The difference between a directory and its last scan. In the first scan, everything counts as new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct DirectoryScan {
    /// Other files.
    pub(super) files: bool,
    /// Other entries of any kind.
    pub(super) entries: bool,
}

/// The target of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathState {
    /// Nothing that is served.
    Absent,
    /// Something that the system does not let us open.
    Unreadable,
    File(EntryFacts),
    Directory(EntryFacts),
}

/// The result of following a path.
#[derive(Debug)]
pub(super) struct FoundPath {
    /// The entries on the path, links and their targets, whether they exist or not. If the path leads to a file, the
    /// last entry is its real path.
    pub(super) entries: Vec<Vec<u8>>,
    /// The directories among them, which are watched now.
    pub(super) dirs: Vec<Vec<u8>>,
    pub(super) state: PathState,
    /// When that last changed.
    pub(super) changed: Option<FileTime>,
    /// Whether a change after this would show in `state`.
    pub(super) is_settled: bool,
}

impl WatchedRoot {
    pub(super) fn new(tree: Arc<Tree>, budget: usize) -> Self {
        Self {
            tree,
            budget,
            is_listed: false,
            stale: BTreeSet::new(),
            gone: Vec::new(),
            has_lost_files: false,
            base: None,
            outer_rules: None,
            dirs: BTreeMap::new(),
            needed: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    /// Checks whether the root is another directory than before, or gone. If so, or if `is_forced`, forgets everything
    /// and returns `true`.
    pub(super) fn find_root(&mut self, is_forced: bool, system: &mut System) -> bool {
        let dir = self.tree.dir();
        let found = std::fs::metadata(dir).ok().filter(std::fs::Metadata::is_dir);
        let found =
            found.and_then(|at| Some(RootBase { path: dir.canonicalize().ok()?, id: FileId::from(&at) }));
        if found == self.base && !is_forced {
            return false;
        }
        self.forget(b"", system);
        self.base = found;
        if self.is_listed {
            self.stale.insert(Vec::new());
        }
        true
    }

    /// Looks at the files of rules outside of the root. If they are others, everything must be scanned again, and `true` is
    /// returned.
    pub(super) fn find_rules(&mut self) -> bool {
        let found = self.tree.outer_rules();
        let before = self.outer_rules.replace(found);
        let is_other = before.is_some() && before != self.outer_rules;
        if is_other {
            self.refresh(b"");
        }
        is_other
    }

    /// The path under the root of a path reported by the system.
    pub(super) fn relative(&self, path: &Path) -> Option<Vec<u8>> {
        let rest = path.strip_prefix(&self.base.as_ref()?.path).ok()?;
        Some(rest.as_os_str().as_bytes().to_vec())
    }

    /// The absolute path on disk.
    pub(super) fn absolute(&self, path: &[u8]) -> Option<PathBuf> {
        let base = &self.base.as_ref()?.path;
        // Joining an empty path would append a slash, and the system would report it so.
        Some(if path.is_empty() { base.clone() } else { base.join(OsStr::from_bytes(path)) })
    }

    /// Whether the entries of a directory matter, so that it is scanned when one is created or removed.
    pub(super) fn is_scanned(&self, dir: &[u8]) -> bool {
        self.is_listed || self.dirs.get(dir).is_some_and(|known| known.facts.is_some())
    }

    /// Those that the system does not watch, from one on.
    pub(super) fn polled(&self, from: &[u8]) -> impl Iterator<Item = &Vec<u8>> {
        self.dirs.range(from.to_vec()..).filter(|(_, known)| !known.is_armed).map(|(dir, _)| dir)
    }

    /// The number of known directories.
    pub(super) fn directories(&self) -> usize {
        self.dirs.len()
    }

    /// Whether the system watches it.
    pub(super) fn is_armed(&self, dir: &[u8]) -> bool {
        self.dirs.get(dir).is_some_and(|known| known.is_armed)
    }

    /// All that is watched by the system is so no longer.
    pub(super) fn reset(&mut self) {
        for known in self.dirs.values_mut() {
            known.is_armed = false;
        }
        self.refresh(b"");
    }

    /// Everything under `dir` that was scanned must be scanned again, and itself.
    pub(super) fn refresh(&mut self, dir: &[u8]) {
        let scanned = self.dirs.range(dir.to_vec()..).take_while(|(at, _)| at.starts_with(dir));
        let scanned = scanned.filter(|(at, known)| known.facts.is_some() && is_within(dir, at));
        let scanned: Vec<_> = scanned.map(|(at, _)| at.clone()).collect();
        self.stale.extend(scanned);
        if self.is_listed {
            self.stale.insert(dir.to_vec());
        }
    }

    /// A directory that was scanned must be scanned again.
    pub(super) fn refresh_one(&mut self, dir: &[u8]) {
        if self.dirs.get(dir).is_some_and(|known| known.facts.is_some()) {
            self.stale.insert(dir.to_vec());
        }
    }

    /// Watches the known directories at `dir` and under it again, because the name may mean another directory now.
    pub(super) fn rearm(&mut self, dir: &[u8], system: &mut System) {
        let below: Vec<_> = self.known_below(dir);
        for at in &below {
            let armed = self.absolute(at).is_some_and(|path| system.rearm(&path));
            if let Some(known) = self.dirs.get_mut(at) {
                known.is_armed = armed;
            }
        }
        if !below.is_empty() {
            self.refresh(dir);
        }
    }

    fn known_below(&self, dir: &[u8]) -> Vec<Vec<u8>> {
        let keys = self.dirs.range(dir.to_vec()..).map(|(at, _)| at).take_while(|at| at.starts_with(dir));
        keys.filter(|at| is_within(dir, at)).cloned().collect()
    }

    /// Forgets `dir` and everything under it.
    fn forget(&mut self, dir: &[u8], system: &mut System) {
        for at in self.known_below(dir) {
            self.has_lost_files |= self.dirs.get(&at).is_some_and(|known| known.entries.files != 0);
            self.drop_one(&at, system);
            self.gone.push(at);
        }
    }

    fn drop_one(&mut self, dir: &[u8], system: &mut System) {
        self.stale.remove(dir);
        let known = self.dirs.remove(dir);
        if known.is_some_and(|known| known.is_armed)
            && let Some(path) = self.absolute(dir)
        {
            system.disarm(&path);
        }
    }

    /// Watches a directory, if it is not watched.
    fn hold(&mut self, dir: &[u8], system: &mut System) {
        if self.is_armed(dir) {
            return;
        }
        if self.dirs.len() >= DIRECTORIES && !self.dirs.contains_key(dir) {
            system.fall_short(Short::Known);
            return;
        }
        let is_armed = self.absolute(dir).is_some_and(|path| system.arm(&path, Some(self.budget)));
        match self.dirs.get_mut(dir) {
            Some(known) => known.is_armed = is_armed,
            None => {
                let known =
                    KnownDirectory { is_armed, facts: None, entries: Entries::default(), rules: None };
                self.dirs.insert(dir.to_vec(), known);
            }
        }
    }

    /// Changes the directories that a watched file needs.
    pub(super) fn need(&mut self, new: &[Vec<u8>], old: &[Vec<u8>], system: &mut System) {
        for dir in new {
            *self.needed.entry(dir.clone()).or_insert(0) += 1;
        }
        for dir in old {
            let Some(count) = self.needed.get_mut(dir) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            self.needed.remove(dir);
            if !self.is_listed {
                self.drop_one(dir, system);
            }
        }
    }

    /// Whether the lists are watched.
    pub(super) fn list(&mut self, on: bool, system: &mut System) {
        if std::mem::replace(&mut self.is_listed, on) == on {
            return;
        }
        if on {
            self.stale.insert(Vec::new());
            return;
        }
        let rest: Vec<_> = self.dirs.keys().filter(|dir| !self.needed.contains_key(*dir)).cloned().collect();
        rest.iter().for_each(|dir| self.drop_one(dir, system));
        self.stale.retain(|dir| self.dirs.contains_key(dir));
    }

    /// Watches a directory, looks at its entries and compares them with the last time. `None` if it is gone, or not served.
    pub(super) fn scan(&mut self, dir: &[u8], system: &mut System) -> Option<DirectoryScan> {
        self.hold(dir, system);
        let looked = self.look(dir);
        let Some((facts, entries, below, rules)) = looked else {
            self.forget(dir, system);
            return None;
        };
        let known = self.dirs.get_mut(dir)?;
        known.facts = Some(facts);
        let before = std::mem::replace(&mut known.entries, entries);
        known.rules = Some(rules);
        for name in &below {
            let path = join(dir, name);
            if self.dirs.get(&path).is_none_or(|known| known.facts.is_none()) {
                self.stale.insert(path);
            }
        }
        Some(DirectoryScan { files: before.files != entries.files, entries: before.all != entries.all })
    }

    /// Its facts, the sums of its entries, the directories in it that matter too, and what its rules are like.
    #[expect(clippy::type_complexity, reason = "of one use, right above")]
    fn look(&self, dir: &[u8]) -> Option<((EntryFacts, bool), Entries, Vec<Vec<u8>>, u64)> {
        let root = self.tree.open().ok()?;
        let opened = root.open(dir).ok().filter(|opened| opened.is_dir() && opened.real == dir)?;
        let facts = (opened.facts, is_settled(&opened.facts));
        let listing = opened.into_dir()?;
        // Before they are read: what is edited in between shows the next time.
        let rules = self.rules_of(|name| listing.stat(name));
        let chain = self.tree.chain(&root, dir)?;
        let mut sums = Entries::default();
        let mut below = Vec::new();
        for entry in listing.entries().ok()? {
            let path = join(dir, &entry.name);
            let kind = resolve(&self.tree, &root, &path, entry.kind, &|_| true);
            let is_dir = kind == Some(FileKind::Directory);
            if kind.is_none() || !self.tree.admits_entry(&chain, &path, is_dir) {
                continue;
            }
            let hash = self.hasher.hash_one((&entry.name, is_dir));
            sums.all = sums.all.wrapping_add(hash);
            if !is_dir {
                sums.files = sums.files.wrapping_add(hash);
            } else if self.is_listed && entry.kind == FileKind::Directory {
                below.push(entry.name);
            }
        }
        Some((facts, sums, below, rules))
    }

    /// A hash of the metadata of a directory's rule files.
    fn rules_of(&self, stat: impl Fn(&[u8]) -> Option<EntryFacts>) -> u64 {
        self.hasher.hash_one(RULES.map(stat))
    }

    /// Whether a directory that the system does not watch must be scanned, and whether its rules are others. A directory that
    /// is gone must. It is looked at by its path: only what differs is opened.
    pub(super) fn poll(&mut self, dir: &[u8]) -> (bool, bool) {
        let stat = |path: PathBuf| rustix::fs::lstat(path).ok().map(|stat| EntryFacts::from_stat(&stat));
        let Some(path) = self.absolute(dir) else { return (true, false) };
        let rules = self.rules_of(|name| stat(path.join(OsStr::from_bytes(name))));
        let is_listed = self.is_listed;
        let Some(known) = self.dirs.get_mut(dir) else { return (false, false) };
        let is_other = known.rules.replace(rules).is_some_and(|before| before != rules);
        let Some((before, is_settled)) = known.facts else { return (is_listed, is_other) };
        (!is_settled || stat(path) != Some(before), is_other)
    }

    /// When the nearest directory above a path last changed; `None` if the rules let nothing be there.
    pub(super) fn parent_changed(&self, path: &[u8]) -> Option<FileTime> {
        let root = self.tree.open().ok()?;
        if !self.tree.admits(&root, path, false) {
            return None;
        }
        let above = std::iter::successors(parent(path), |dir| parent(dir));
        above.filter_map(|dir| self.glance(dir)).map(|stamp| stamp.changed).next()
    }

    /// The metadata of a path, behind links: only for comparing, because the path may lead outside the root.
    pub(super) fn glance(&self, path: &[u8]) -> Option<EntryStamp> {
        let stat = rustix::fs::stat(self.absolute(path)?).ok()?;
        Some(EntryStamp::from_stat(&stat))
    }

    /// Follows a path one component at a time, and watches each directory on the way before reading it. So the creation
    /// of a missing entry is noticed, and the renaming of any part of the path.
    pub(super) fn follow(&mut self, path: &[u8], system: &mut System) -> FoundPath {
        let mut found = FoundPath {
            entries: Vec::new(),
            dirs: Vec::new(),
            state: PathState::Absent,
            changed: None,
            is_settled: true,
        };
        if self.base.is_none() {
            return found;
        }
        self.hold(b"", system);
        found.dirs.push(Vec::new());
        let Ok(root) = self.tree.open() else { return found };
        self.walk(&root, path, &mut found, system);
        self.find(&root, path, &mut found);
        found
    }

    /// Checks the target of a path again, if it is still the same.
    pub(super) fn look_again(&self, path: &[u8], found: &mut FoundPath) {
        if let Ok(root) = self.tree.open() {
            found.entries.pop();
            self.find(&root, path, found);
        }
    }

    /// The first bytes of a file that is served.
    pub(super) fn contents(&self, path: &[u8]) -> Option<Vec<u8>> {
        let root = self.tree.open().ok()?;
        let opened = self.tree.find(&root, path, &|_| true).ok().filter(|opened| !opened.is_dir())?;
        let mut bytes = Vec::new();
        opened.into_file().take(COMPARED).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn find(&self, root: &RootDirectory, path: &[u8], found: &mut FoundPath) {
        found.state = PathState::Absent;
        match self.tree.find(root, path, &|_| true) {
            Ok(opened) => {
                // Of a directory, its entries are compared.
                found.is_settled = opened.is_dir() || is_settled(&opened.facts);
                found.changed = opened.changed();
                found.state = if opened.is_dir() {
                    PathState::Directory(opened.facts)
                } else {
                    PathState::File(opened.facts)
                };
                found.entries.push(opened.real);
            }
            Err(Missing::Failed(_)) => found.state = PathState::Unreadable,
            Err(Missing::NotFound) => {}
        }
    }

    fn walk(&mut self, root: &RootDirectory, path: &[u8], found: &mut FoundPath, system: &mut System) {
        let mut steps: VecDeque<Vec<u8>> = components(path).map(<[u8]>::to_vec).collect();
        let mut here = Vec::new();
        let mut links = 0;
        while let Some(step) = steps.pop_front() {
            if step == b".." {
                here.truncate(here.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
                continue;
            }
            let entry = join(&here, &step);
            found.entries.push(entry.clone());
            let listing = root.open(&here).ok().and_then(OpenedFile::into_dir);
            match listing.and_then(|listing| listing.stat(&step)).map(|facts| facts.kind) {
                Some(FileKind::Directory) if self.tree.admits(root, &entry, true) => {
                    self.hold(&entry, system);
                    found.dirs.push(entry.clone());
                    here = entry;
                }
                Some(FileKind::Link) if self.follows() && links < LINKS => {
                    links += 1;
                    let target = self.absolute(&entry).and_then(|link| std::fs::read_link(link).ok());
                    let Some(target) = target.filter(|target| target.is_relative()) else { return };
                    let target = target.into_os_string();
                    for step in components(target.as_bytes()).collect::<Vec<_>>().into_iter().rev() {
                        if !matches!(step, b"" | b".") {
                            steps.push_front(step.to_vec());
                        }
                    }
                }
                _ => return,
            }
        }
    }

    fn follows(&self) -> bool {
        self.tree.settings().symlinks == Symlinks::Inside
    }
}

/// Whether `path` is `dir`, or under it.
pub(super) fn is_within(dir: &[u8], path: &[u8]) -> bool {
    let rest = path.strip_prefix(dir);
    dir.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether a file of this name has rules in it.
pub(super) fn is_rules(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    RULES.contains(&name)
}

/// The directory that an entry is in.
pub(super) fn parent(path: &[u8]) -> Option<&[u8]> {
    if path.is_empty() {
        return None;
    }
    Some(path.iter().rposition(|byte| *byte == b'/').map_or(b"", |at| &path[..at]))
}
