//! The files and directories that clients watch, indexed by every path under which a change may be reported.
//!
//! Law: URIs of the same path, such as those of different lines of a file, are one target. A file with several names is
//! reported by the system under one of them only, so targets are found by the file's identity too.

use super::super::root_directory::{EntryFacts, EntryStamp};
use super::seen::Before;
use super::watched_root::{FoundPath, PathState};
use mcp_resources_provider_kit::file_id::FileId;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A target's number.
pub(super) type Number = u64;

/// One watched path.
#[derive(Debug)]
pub(super) struct WatchTarget {
    /// The number of its root, and the path in it.
    pub(super) root: usize,
    pub(super) path: Vec<u8>,
    /// The URIs of the file, with the state that the first client of each knew when it began to watch.
    pub(super) uris: Vec<(Arc<str>, Before)>,
    /// The result of the last lookup; `None` before the first.
    pub(super) found: Option<FoundPath>,
    /// The file that the system watches for it.
    pub(super) file: Option<WatchedFile>,
    /// Whether the system does not watch all of it, so that it must be looked at from time to time.
    pub(super) is_polled: bool,
    /// The metadata of its path at the last poll: while it stays the same, the path need not be looked up.
    pub(super) polled: Option<Option<EntryStamp>>,
}

/// A file that the system watches by itself.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WatchedFile {
    /// Its whole path.
    pub(super) path: PathBuf,
    pub(super) id: FileId,
}

/// Why a target is to be looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// Its bytes have changed: it counts as changed even if nothing shows.
    pub(super) is_written: bool,
    /// The system may have ceased to watch it.
    pub(super) is_gone: bool,
    /// Hints of it may have been lost: a change that need not show counts.
    pub(super) is_lost: bool,
}

/// A path in a root.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct RootPath {
    /// The number of the root.
    pub(super) root: usize,
    pub(super) path: Vec<u8>,
}

/// All targets.
#[derive(Debug, Default)]
pub(super) struct Targets {
    all: BTreeMap<Number, WatchTarget>,
    next: Number,
    by_uri: HashMap<Arc<str>, Number>,
    by_path: HashMap<RootPath, Number>,
    by_entry: HashMap<RootPath, HashSet<Number>>,
    by_id: HashMap<FileId, HashSet<Number>>,
}

impl RootPath {
    pub(super) fn new(root: usize, path: &[u8]) -> Self {
        Self { root, path: path.to_vec() }
    }
}

impl Targets {
    /// `uri` is watched, by a client that knows `before`. Returns its target, and whether that is to be looked at: it is
    /// new. `None` if `uri` was watched already.
    pub(super) fn add(
        &mut self,
        uri: &Arc<str>,
        root: usize,
        path: &[u8],
        before: Before,
    ) -> Option<(Number, bool)> {
        if self.by_uri.contains_key(uri) {
            return None;
        }
        if let Some(number) = self.by_path.get(&RootPath::new(root, path)).copied() {
            self.by_uri.insert(uri.clone(), number);
            let target = self.all.get_mut(&number)?;
            target.uris.push((uri.clone(), before));
            return Some((number, false));
        }
        let number = self.next;
        self.next += 1;
        self.by_uri.insert(uri.clone(), number);
        self.by_path.insert(RootPath::new(root, path), number);
        let target = WatchTarget {
            root,
            path: path.to_vec(),
            uris: vec![(uri.clone(), before)],
            found: None,
            file: None,
            is_polled: false,
            polled: None,
        };
        self.all.insert(number, target);
        Some((number, true))
    }

    /// `uri` is not watched any longer. Returns its target if no other URI has the same.
    pub(super) fn remove(&mut self, uri: &Arc<str>) -> Option<WatchTarget> {
        let number = self.by_uri.remove(uri)?;
        let target = self.all.get_mut(&number)?;
        target.uris.retain(|(other, _)| other != uri);
        if !target.uris.is_empty() {
            return None;
        }
        self.leave(number);
        let target = self.all.remove(&number)?;
        self.by_path.remove(&RootPath::new(target.root, &target.path));
        Some(target)
    }

    pub(super) fn get(&self, number: Number) -> Option<&WatchTarget> {
        self.all.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: Number) -> Option<&mut WatchTarget> {
        self.all.get_mut(&number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Number, &WatchTarget)> {
        self.all.iter().map(|(number, target)| (*number, target))
    }

    /// At most `max` polled targets, beginning with a number and continuing with the first.
    pub(super) fn polled_from(&self, from: Number, max: usize) -> Vec<Number> {
        let all = self.all.range(from..).chain(self.all.range(..from));
        all.filter(|(_, target)| target.is_polled).map(|(number, _)| *number).take(max).collect()
    }

    /// Those whose way leads through an entry.
    pub(super) fn through(&self, root: usize, entry: &[u8]) -> impl Iterator<Item = Number> + '_ {
        self.by_entry.get(&RootPath::new(root, entry)).into_iter().flatten().copied()
    }

    /// Those that are this file, under whatever name.
    pub(super) fn with_id(&self, id: FileId) -> impl Iterator<Item = Number> + '_ {
        self.by_id.get(&id).into_iter().flatten().copied()
    }

    /// A target was found in another way. Returns the one before.
    pub(super) fn found(&mut self, number: Number, found: FoundPath) -> Option<FoundPath> {
        self.leave(number);
        let target = self.all.get_mut(&number)?;
        let mut entries: Vec<&Vec<u8>> = found.entries.iter().collect();
        entries.sort_unstable();
        entries.dedup();
        for entry in entries {
            self.by_entry.entry(RootPath::new(target.root, entry)).or_default().insert(number);
        }
        if let Some(id) = found.id() {
            self.by_id.entry(id).or_default().insert(number);
        }
        target.found.replace(found)
    }

    /// It is found by its way no longer.
    fn leave(&mut self, number: Number) {
        let Some(target) = self.all.get(&number) else { return };
        let Some(found) = &target.found else { return };
        for entry in &found.entries {
            take_out(&mut self.by_entry, &RootPath::new(target.root, entry), number);
        }
        if let Some(id) = found.id() {
            take_out(&mut self.by_id, &id, number);
        }
    }
}

fn take_out<K: std::hash::Hash + Eq>(index: &mut HashMap<K, HashSet<Number>>, key: &K, number: Number) {
    if let Some(numbers) = index.get_mut(key) {
        numbers.remove(&number);
        if numbers.is_empty() {
            index.remove(key);
        }
    }
}

impl FoundPath {
    /// The identity of the file.
    pub(super) fn id(&self) -> Option<FileId> {
        match self.state {
            PathState::File(facts) => Some(facts.id),
            _ => None,
        }
    }

    /// The real path of the entry, after links.
    pub(super) fn real(&self) -> Option<&[u8]> {
        match self.state {
            PathState::File(_) | PathState::Directory(_) => self.entries.last().map(|real| &**real),
            PathState::Absent | PathState::Unreadable => None,
        }
    }

    /// The metadata of the entry, if there is one.
    pub(super) fn facts(&self) -> Option<&EntryFacts> {
        match &self.state {
            PathState::File(facts) | PathState::Directory(facts) => Some(facts),
            PathState::Absent | PathState::Unreadable => None,
        }
    }

    /// Whether it is a file that is served.
    pub(super) fn is_file(&self) -> bool {
        matches!(self.state, PathState::File(_))
    }
}

impl PathState {
    /// Whether a reader gets the same. Of a directory, its entries say whether it does.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => one.id == other.id,
            _ => self == other,
        }
    }
}
