//! The work of the watcher's thread between two waits.
//!
//! ```text
//!   Inbox ──▶ hints, interests ──▶ which targets are due, which directories are stale ──▶ look, compare ──▶ Reports
//!                  ▲                                                       │ a few directories at a time
//!                  └────────── at the next turn, or when it is time to poll ◀┘
//! ```
//!
//! Law: a turn does a bounded amount of work and reports each URI once. However fast something changes, turns have a pause
//! between them that grows with the time that they take.

use super::inbox::{ChangeBatch, Hint, WatchInbox};
use super::seen::{Before, SeenFiles};
use super::settings::{WatchReports, WatchSettings};
use super::system::{Budget, Needs, Short, System};
use super::target::{Due, Number, RootPath, Targets, WatchTarget, WatchedFile};
use super::watched_root::{FoundPath, PathState, WatchedRoot, is_rules, is_within, parent};
use crate::tree::Tree;
use mcp_resources_provider_kit::file_id::FileId;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of stale directories that one turn scans.
const SCANS: usize = 64;
/// Maximum number of targets that one turn looks at.
const LOOKS: usize = 256;
/// The shortest time between two turns with work.
const PAUSE: Duration = Duration::from_millis(10);
/// The number of slices in which all unwatched paths are polled, unless a slice would be too large. The roots are
/// checked in the same rhythm, because they may be renamed with a directory above them, or be mounted over.
const SLICES: u32 = 10;
/// Maximum number of targets and directories that one slice looks at.
const SLICE: usize = 256;
/// The pause after a slice, as a multiple of the time that the slice took.
const SHARE: u32 = 200;
/// Maximum number of recently changed polled targets that are looked at each second.
const LATELY: usize = 64;

/// The watcher's state, owned by its thread.
pub(super) struct FileWatcher<R> {
    reports: R,
    inbox: Arc<WatchInbox>,
    seen: Arc<SeenFiles>,
    roots: Vec<WatchedRoot>,
    system: System,
    targets: Targets,
    due: BTreeMap<Number, Due>,
    /// URIs to report.
    changed: HashSet<Arc<str>>,
    /// URIs whose watch begins.
    begun: Vec<Arc<str>>,
    /// Whether the lists have changed.
    is_list_new: bool,
    /// Whether the directories are walked for the first time: entries found then are not new.
    is_walking: bool,
    /// Whether everything is compared, because hints were lost.
    is_recovering: bool,
    /// The reasons for polling that were already logged.
    said: Vec<Short>,
    slice: Duration,
    next_roots: Instant,
    next_poll: Instant,
    /// The beginning of the next slice.
    polled: RootPath,
    polled_target: Number,
    /// Polled targets that have changed lately, the last one at the end.
    lately: VecDeque<Number>,
    next_lately: Instant,
}

impl<R: WatchReports> FileWatcher<R> {
    pub(super) fn new(
        trees: &[Arc<Tree>],
        inbox: &Arc<WatchInbox>,
        seen: &Arc<SeenFiles>,
        settings: WatchSettings,
        reports: R,
    ) -> Self {
        let mut budgets: Vec<Budget> = Vec::new();
        let mut declared: Vec<*const ()> = Vec::new();
        let mut roots = Vec::new();
        for tree in trees.iter().filter(|tree| tree.settings().watch) {
            let own = Arc::as_ptr(tree.settings()).cast();
            let known = declared.iter().position(|other| *other == own);
            let budget = known.unwrap_or_else(|| {
                declared.push(own);
                budgets.push(Budget { max: tree.settings().watch_dirs, used: 0 });
                declared.len() - 1
            });
            roots.push(WatchedRoot::new(tree.clone(), budget));
        }
        let now = Instant::now();
        Self {
            reports,
            inbox: inbox.clone(),
            seen: seen.clone(),
            roots,
            system: System::new(inbox.clone(), budgets, settings.polls),
            targets: Targets::default(),
            due: BTreeMap::new(),
            changed: HashSet::new(),
            begun: Vec::new(),
            is_list_new: false,
            is_walking: false,
            is_recovering: false,
            said: Vec::new(),
            slice: settings.slice,
            next_roots: now,
            next_poll: now,
            polled: RootPath::default(),
            polled_target: 0,
            lately: VecDeque::new(),
            next_lately: now,
        }
    }

    /// Runs until the last subscription or the mount has ended.
    pub(super) fn run(mut self) {
        loop {
            let batch = self.inbox.take(self.deadline());
            let begun = Instant::now();
            if self.inbox.ends(!self.reports.is_alive()) {
                return;
            }
            let is_busy = self.turn(batch, begun);
            if is_busy {
                // At most a fifth of a processor's time, however much changes.
                std::thread::sleep(PAUSE.max(begun.elapsed() * 4));
            }
        }
    }

    fn deadline(&self) -> Instant {
        if self.has_work() { Instant::now() } else { self.next_roots.min(self.next_poll) }
    }

    fn has_work(&self) -> bool {
        !self.due.is_empty() || self.roots.iter().any(|root| !root.stale.is_empty())
    }

    /// Does one turn. Returns whether hints were the reason for it.
    fn turn(&mut self, batch: ChangeBatch, now: Instant) -> bool {
        self.is_recovering |= batch.lost;
        let is_busy = self.is_recovering || !batch.hints.is_empty();
        if now >= self.next_roots || !batch.changes.is_empty() {
            self.next_roots = now + self.slice * SLICES;
            (0..self.roots.len()).for_each(|at| self.find_root(at, false));
        }
        self.interests(&batch);
        if batch.lost {
            self.lost();
        }
        for (path, hint) in &batch.hints {
            self.handle_hint(path, *hint);
        }
        if now >= self.next_poll {
            self.poll(now);
        }
        self.scan();
        self.look();
        self.report();
        self.system.tidy(batch.changes.is_empty() && !is_busy);
        self.is_recovering &= self.has_work();
        is_busy
    }

    /// Takes up what clients watch now.
    fn interests(&mut self, batch: &ChangeBatch) {
        for (uri, change) in &batch.changes {
            if !change.on {
                let gone = self.targets.remove(uri);
                gone.into_iter().for_each(|target| self.release(&target));
                continue;
            }
            let place =
                self.roots.iter().enumerate().find_map(|(at, root)| Some((at, root.tree.path_of(uri)?)));
            let Some((at, (path, _))) = place else { continue };
            let Some((number, is_new)) = self.targets.add(uri, at, &path, change.before) else { continue };
            if is_new {
                self.due.insert(number, Due::default());
                continue;
            }
            // A change may have been reported before this URI was known here, and after its client was changed that it is.
            let found = self.targets.get(number).and_then(|target| target.found.as_ref());
            let root = self.roots.get(at);
            if let Some((found, root)) = found.zip(root) {
                if is_changed(&self.seen, root, &path, found, &change.before) {
                    self.changed.insert(uri.clone());
                }
                self.begun.push(uri.clone());
            }
        }
        for root in &mut self.roots {
            self.is_walking |= batch.lists && !root.is_listed;
            root.list(batch.lists, &mut self.system);
        }
        self.is_walking &= batch.lists;
    }

    fn release(&mut self, target: &WatchTarget) {
        if let Some(WatchedFile { path, .. }) = &target.file {
            self.system.disarm(path);
        }
        let Some(root) = self.roots.get_mut(target.root) else { return };
        if let Some(found) = &target.found {
            root.need(&[], &found.dirs, &mut self.system);
        }
    }

    /// Handles events dropped by the system: watches everything again, and compares it with the known state.
    fn lost(&mut self) {
        self.system.reset();
        for root in &mut self.roots {
            root.reset();
        }
        for (number, _) in self.targets.iter() {
            let due = self.due.entry(number).or_default();
            due.is_gone = true;
            due.is_lost = true;
        }
        (0..self.roots.len()).for_each(|at| self.find_root(at, false));
    }

    /// Something may have happened at a path.
    fn handle_hint(&mut self, path: &Path, hint: Hint) {
        for at in 0..self.roots.len() {
            let Some(root) = self.roots.get_mut(at) else { return };
            let Some(entry) = root.relative(path) else { continue };
            self.reports.touched(&root.tree, &entry);
            if hint.gone {
                if entry.is_empty() {
                    self.find_root(at, true);
                    continue;
                }
                root.rearm(&entry, &mut self.system);
            }
            for number in self.targets.through(at, &entry) {
                let due = self.due.entry(number).or_default();
                due.is_written |= hint.data;
                due.is_gone |= hint.gone;
            }
            let Some(dir) = parent(&entry) else { continue };
            if is_rules(&entry) {
                self.rules(at, dir);
                continue;
            }
            // What may be read, or opened as a directory, is said by no name.
            let is_other = hint.name || !hint.data;
            if is_other && root.is_scanned(dir) {
                root.stale.insert(dir.to_vec());
                root.refresh_one(&entry);
            }
        }
    }

    /// The rules of a directory may be others.
    fn rules(&mut self, at: usize, dir: &[u8]) {
        if let Some(root) = self.roots.get_mut(at) {
            root.refresh(dir);
        }
        self.touch(at, false, |target| is_within(dir, &target.path));
    }

    /// Has targets of a root looked at.
    fn touch(&mut self, at: usize, is_gone: bool, which: impl Fn(&WatchTarget) -> bool) {
        for (number, target) in self.targets.iter() {
            if target.root == at && which(target) {
                self.due.entry(number).or_default().is_gone |= is_gone;
            }
        }
    }

    /// Looks where a root is now.
    fn find_root(&mut self, at: usize, is_forced: bool) {
        let Some(root) = self.roots.get_mut(at) else { return };
        let is_moved = root.find_root(is_forced, &mut self.system);
        let has_rules = root.find_rules();
        self.is_list_new |= is_moved && root.is_listed;
        if is_moved || has_rules {
            // Another file may have the same number, now that the watch of the first one has ended.
            self.touch(at, is_moved, |_| true);
        }
    }

    /// Scans some of the stale directories.
    fn scan(&mut self) {
        for at in 0..self.roots.len() {
            for _ in 0..SCANS {
                let Some(root) = self.roots.get_mut(at) else { return };
                let Some(dir) = root.stale.pop_first() else { break };
                let scan = root.scan(&dir, &mut self.system).unwrap_or_default();
                if scan.entries {
                    self.tell_directory(at, &dir);
                }
                self.is_list_new |= scan.files && !self.is_walking;
            }
            self.settle(at);
        }
        if self.is_walking && self.roots.iter().all(|root| root.stale.is_empty()) {
            // What has come or gone before all was watched is not known.
            self.is_walking = false;
            self.is_list_new = true;
        }
    }

    /// Marks the targets for a look whose paths lead through directories that are gone.
    fn settle(&mut self, at: usize) {
        let Some(root) = self.roots.get_mut(at) else { return };
        let gone = std::mem::take(&mut root.gone);
        self.is_list_new |= std::mem::take(&mut root.has_lost_files) && root.is_listed && !self.is_walking;
        for dir in gone {
            for number in self.targets.through(at, &dir) {
                self.due.entry(number).or_default();
            }
        }
    }

    /// The entries of a directory are others.
    fn tell_directory(&mut self, at: usize, dir: &[u8]) {
        for number in self.targets.through(at, dir) {
            let Some(target) = self.targets.get(number) else { continue };
            let Some(found) = target.found.as_ref().filter(|found| found.real() == Some(dir)) else {
                continue;
            };
            if matches!(found.state, PathState::Directory(_)) {
                self.changed.extend(target.uris.iter().map(|(uri, _)| uri.clone()));
            }
        }
    }

    /// Looks at some of the targets that are due.
    fn look(&mut self) {
        for _ in 0..LOOKS {
            let Some((number, due)) = self.due.pop_first() else { return };
            self.look_at(number, due);
        }
    }

    fn look_at(&mut self, number: Number, due: Due) {
        let Some(target) = self.targets.get(number) else { return };
        let at = target.root;
        let path = target.path.clone();
        let Some(root) = self.roots.get_mut(at) else { return };
        let mut found = root.follow(&path, &mut self.system);
        if let PathState::Directory(_) = found.state
            && let Some(real) = found.real().filter(|real| !root.is_scanned(real))
        {
            let real = real.to_vec();
            root.scan(&real, &mut self.system);
            // An entry that came before the scan is in its sums: it shows in the facts from now on alone.
            found = root.follow(&path, &mut self.system);
        }
        let Some(target) = self.targets.get_mut(number) else { return };
        let is_armed = hold_file(target, &mut found, due.is_gone, root, &mut self.system);
        target.is_polled = !is_armed || found.dirs.iter().any(|dir| !root.is_armed(dir));
        let old = target.found.as_ref();
        let is_new = match old {
            None => {
                let uris = target.uris.iter();
                let changed = uris.filter(|(_, before)| is_changed(&self.seen, root, &path, &found, before));
                self.changed.extend(changed.map(|(uri, _)| uri.clone()));
                self.begun.extend(target.uris.iter().map(|(uri, _)| uri.clone()));
                false
            }
            // Of what is not served, a hint that it was written says nothing.
            Some(old) => {
                let may_hide = due.is_written || due.is_lost && !old.is_settled;
                !old.state.is_same(&found.state) || may_hide && found.is_file()
            }
        };
        if is_new {
            self.changed.extend(target.uris.iter().map(|(uri, _)| uri.clone()));
        }
        if is_new && target.is_polled && !self.lately.contains(&number) {
            self.lately.truncate(LATELY - 1);
            self.lately.push_front(number);
        }
        let id = old.and_then(|old| old.id()).filter(|_| is_new);
        let new_dirs = found.dirs.clone();
        let old = self.targets.found(number, found);
        if let Some(root) = self.roots.get_mut(at) {
            root.need(&new_dirs, old.as_ref().map_or(&[], |old| &old.dirs), &mut self.system);
        }
        self.settle(at);
        if let Some(id) = id {
            self.tell_namesakes(id, number, due);
        }
    }

    /// The other names of a file that has changed.
    fn tell_namesakes(&mut self, id: FileId, number: Number, due: Due) {
        for other in self.targets.with_id(id).filter(|other| *other != number) {
            let Some(target) = self.targets.get(other) else { continue };
            if due.is_written {
                self.changed.extend(target.uris.iter().map(|(uri, _)| uri.clone()));
            } else {
                self.due.entry(other).or_default();
            }
        }
    }

    /// Polls a slice of the unwatched paths, and those that have changed recently.
    fn poll(&mut self, now: Instant) {
        let begun = Instant::now();
        let targets = self.targets.iter().filter(|(_, target)| target.is_polled).count();
        let dirs: usize = self.roots.iter().map(|root| root.polled(b"").count()).sum();
        let slice = |all: usize| all.div_ceil(SLICES as usize).min(SLICE);
        self.poll_lately(now);
        for number in self.targets.polled_from(self.polled_target, slice(targets)) {
            self.polled_target = number + 1;
            self.poll_target(number);
        }
        self.poll_dirs(slice(dirs));
        let pause = if targets + dirs == 0 { self.slice * SLICES } else { self.slice };
        self.next_poll = now + pause.max(begun.elapsed().saturating_mul(SHARE));
    }

    /// Polls the targets that have changed recently, because they are likely to change again soon.
    fn poll_lately(&mut self, now: Instant) {
        if now < self.next_lately {
            return;
        }
        self.next_lately = now + self.slice * SLICES;
        for number in self.lately.clone() {
            self.poll_target(number);
        }
    }

    /// Has a target looked at if its path leads to something else than it did.
    fn poll_target(&mut self, number: Number) {
        let Some(target) = self.targets.get_mut(number).filter(|target| target.is_polled) else { return };
        let Some(root) = self.roots.get(target.root) else { return };
        let now = Some(root.glance(&target.path));
        let is_settled = target.found.as_ref().is_some_and(|found| found.is_settled);
        if is_settled && target.polled == now {
            return;
        }
        target.polled = now;
        self.due.entry(number).or_default().is_lost = true;
    }

    fn poll_dirs(&mut self, max: usize) {
        let mut left = max;
        for _ in 0..=self.roots.len() {
            let RootPath { root: at, path: from } = self.polled.clone();
            let Some(root) = self.roots.get_mut(at) else {
                self.polled = RootPath::default();
                continue;
            };
            let slice: Vec<_> = root.polled(&from).take(left).cloned().collect();
            left -= slice.len();
            let mut changed = Vec::new();
            for dir in &slice {
                let (is_stale, has_rules) = root.poll(dir);
                if is_stale {
                    root.stale.insert(dir.clone());
                }
                if has_rules {
                    changed.push(dir.clone());
                }
            }
            changed.iter().for_each(|dir| self.rules(at, dir));
            if left == 0 {
                // Right behind the last one.
                let last = slice.last().map(|dir| [dir.as_slice(), &[0]].concat());
                self.polled = RootPath { root: at, path: last.unwrap_or(from) };
                return;
            }
            self.polled = RootPath { root: at + 1, path: Vec::new() };
        }
    }

    /// Reports each change once.
    fn report(&mut self) {
        for uri in self.changed.drain() {
            self.reports.updated(&uri);
        }
        if std::mem::take(&mut self.is_list_new) {
            self.reports.list_changed();
        }
        for uri in self.begun.drain(..) {
            self.reports.watches(&uri);
        }
        for fault in self.roots.iter().flat_map(|root| root.tree.take_faults()) {
            self.reports.log(&fault);
        }
        // How much is polled is known once all was looked at.
        if !self.has_work() {
            let needs = self.needs();
            for short in self.system.shortage(&mut self.said) {
                self.reports.log(&short.message(&needs));
            }
        }
    }

    /// The number of directories and files to watch.
    fn needs(&self) -> Needs {
        let targets = || self.targets.iter().map(|(_, target)| target);
        let dirs = self.roots.iter().map(|root| root.polled(b"").count()).sum::<usize>();
        Needs {
            directories: self.roots.iter().map(WatchedRoot::directories).sum(),
            files: targets().count(),
            polled: dirs + targets().filter(|target| target.is_polled).count(),
        }
    }
}

/// Whether the found state differs from the one that a new watcher knows.
fn is_changed(seen: &SeenFiles, root: &WatchedRoot, path: &[u8], found: &FoundPath, before: &Before) -> bool {
    let Some(facts) = found.facts() else {
        // It may have been removed before the first look.
        return before.was_read() || root.parent_changed(path).is_some_and(|at| before.is_older_than(at));
    };
    let digest = || root.contents(path).map(|bytes| seen.digest(&bytes));
    seen.is_changed(before, facts, found.changed, digest)
}

/// Has the system watch the file itself: it may be written under a name that is not under the root. Returns whether
/// it does, or need not.
fn hold_file(
    target: &mut WatchTarget,
    found: &mut FoundPath,
    is_gone: bool,
    root: &WatchedRoot,
    system: &mut System,
) -> bool {
    let path = found.real().and_then(|real| root.absolute(real));
    let wanted = path.zip(found.id()).map(|(path, id)| WatchedFile { path, id });
    if target.file == wanted && !is_gone {
        return true;
    }
    if let Some(file) = target.file.take() {
        system.disarm(&file.path);
    }
    let Some(file) = wanted else { return true };
    let is_armed = system.arm(&file.path, None);
    if is_armed {
        target.file = Some(file);
        // What was written before it was watched shows now.
        root.look_again(&target.path, found);
    }
    is_armed
}
