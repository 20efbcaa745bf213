//! The watches of the system, and their maximum number.
//!
//! Law: watches are counted by path, and each is removed with its last user. Paths that the system does not watch are
//! polled; the reason is reported once.

use super::inbox::{EventSink, WatchInbox};
use notify::{Config, ErrorKind, EventKindMask, RecommendedWatcher, RecursiveMode, WatchPathConfig, Watcher};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of known directories of one root. Any more are not looked at.
pub(super) const DIRECTORIES: usize = 65_536;
/// So few watches are ended one by one.
const FEW: usize = 128;

/// One declaration of roots, which share a number of watches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) max: usize,
    pub(super) used: usize,
}

/// Why something is not watched by the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Short {
    /// The option `watch_dirs`.
    Option(usize),
    /// `fs.inotify.max_user_watches`.
    Watches,
    /// `fs.inotify.max_user_instances`, or the number of open files.
    Instances,
    /// More directories than are looked at.
    Known,
}

/// The number of directories and files to watch, and of those that the system does not watch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needs {
    pub(super) directories: usize,
    pub(super) files: usize,
    pub(super) polled: usize,
}

#[derive(Debug)]
struct SystemWatch {
    needs: usize,
    /// For a directory: the declaration whose budget it counts for.
    budget: Option<usize>,
}

/// The system's watches.
#[derive(Debug)]
pub(super) struct System {
    inbox: Arc<WatchInbox>,
    /// Polling is all that is done.
    is_off: bool,
    watcher: Option<RecommendedWatcher>,
    watches: HashMap<PathBuf, SystemWatch>,
    /// Paths that are no longer needed and still watched by the system.
    ended: HashSet<PathBuf>,
    budgets: Vec<Budget>,
    /// The system has refused a watch, and none was given back since.
    is_full: bool,
    short: Vec<Short>,
}

impl System {
    /// No path is watched yet. With `is_off` none ever is.
    pub(super) fn new(inbox: Arc<WatchInbox>, budgets: Vec<Budget>, is_off: bool) -> Self {
        Self {
            inbox,
            is_off,
            watcher: None,
            watches: HashMap::new(),
            ended: HashSet::new(),
            budgets,
            is_full: false,
            short: Vec::new(),
        }
    }

    /// Watches `path` itself and, if it is a directory, its entries: then it counts for a budget. `false` if that
    /// fails.
    pub(super) fn arm(&mut self, path: &Path, budget: Option<usize>) -> bool {
        if let Some(watch) = self.watches.get_mut(path) {
            watch.needs += 1;
            return true;
        }
        if self.ended.remove(path) {
            // Another file may have the path by now.
            self.end(path);
        }
        let counted = budget.and_then(|budget| self.budgets.get(budget).copied());
        if let Some(Budget { max, .. }) = counted.filter(|Budget { max, used }| used >= max) {
            self.fall_short(Short::Option(max));
            return false;
        }
        let is_armed = !self.is_full && self.begin(path);
        if is_armed {
            self.watches.insert(path.to_owned(), SystemWatch { needs: 1, budget });
            self.count(budget, 1);
        }
        is_armed
    }

    /// Watches a path again that the system may have stopped watching, or watches under another name. `false` if that
    /// fails.
    pub(super) fn rearm(&mut self, path: &Path) -> bool {
        if !self.watches.contains_key(path) {
            return false;
        }
        self.end(path);
        let is_armed = self.begin(path);
        if !is_armed {
            self.forget(path);
        }
        is_armed
    }

    /// One that needed it needs it no longer.
    pub(super) fn disarm(&mut self, path: &Path) {
        let Some(watch) = self.watches.get_mut(path) else { return };
        watch.needs -= 1;
        if watch.needs > 0 {
            return;
        }
        self.forget(path);
        if self.watches.len() < FEW {
            self.end(path);
        } else {
            self.ended.insert(path.to_owned());
        }
    }

    /// Removes watches that are no longer needed. Removing a single watch takes time proportional to the number of
    /// watches, so many are removed together with their watcher, once another one watches the rest.
    pub(super) fn tidy(&mut self, is_idle: bool) {
        let is_worth = self.ended.len() >= self.watches.len() || is_idle && self.ended.len() > FEW;
        if self.ended.is_empty() || !is_worth && !is_idle {
            return;
        }
        let ended = std::mem::take(&mut self.ended);
        if !is_worth || !self.renew() {
            ended.iter().for_each(|path| self.end(path));
        }
        self.is_full = false;
    }

    /// Replaces the watcher by a new one. Meanwhile both report. `false` if the system does not permit it.
    fn renew(&mut self) -> bool {
        if self.watches.is_empty() {
            self.close();
            return true;
        }
        let Some(mut watcher) = watcher(&self.inbox) else { return false };
        let is_refused = |path: &PathBuf| {
            watch(&mut watcher, path).is_err_and(|error| matches!(error.kind, ErrorKind::MaxFilesWatch))
        };
        if self.watches.keys().any(is_refused) {
            close(watcher);
            return false;
        }
        self.close();
        self.watcher = Some(watcher);
        true
    }

    /// Forgets all watches, because events may have been lost.
    pub(super) fn reset(&mut self) {
        self.close();
        self.watches.clear();
        self.ended.clear();
        self.budgets.iter_mut().for_each(|budget| budget.used = 0);
        self.is_full = false;
    }

    /// Why something is polled, each reason once.
    pub(super) fn shortage(&mut self, said: &mut Vec<Short>) -> Vec<Short> {
        let new: Vec<Short> = self.short.drain(..).filter(|short| !said.contains(short)).collect();
        said.extend(&new);
        new
    }

    fn begin(&mut self, path: &Path) -> bool {
        if self.is_off {
            return false;
        }
        if self.watcher.is_none() {
            self.watcher = watcher(&self.inbox);
        }
        let Some(watcher) = &mut self.watcher else {
            self.is_full = true;
            self.fall_short(Short::Instances);
            return false;
        };
        let Err(error) = watch(watcher, path) else { return true };
        if matches!(error.kind, ErrorKind::MaxFilesWatch) {
            self.is_full = true;
            self.fall_short(Short::Watches);
        }
        false
    }

    fn end(&mut self, path: &Path) {
        if let Some(watcher) = &mut self.watcher {
            // The system has ended it already if what was watched is gone.
            let _ = watcher.unwatch(path);
        }
        self.is_full = false;
    }

    fn forget(&mut self, path: &Path) {
        if let Some(watch) = self.watches.remove(path) {
            self.count(watch.budget, -1);
        }
    }

    fn count(&mut self, budget: Option<usize>, by: isize) {
        if let Some(budget) = budget.and_then(|budget| self.budgets.get_mut(budget)) {
            budget.used = budget.used.saturating_add_signed(by);
        }
    }

    /// Something is not watched, for this reason.
    pub(super) fn fall_short(&mut self, short: Short) {
        if !self.short.contains(&short) {
            self.short.push(short);
        }
    }

    fn close(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            close(watcher);
        }
    }
}

fn watcher(inbox: &Arc<WatchInbox>) -> Option<RecommendedWatcher> {
    // Opening and reading a file is no event: otherwise each of our reads would wake us.
    let config = Config::default().with_event_kinds(EventKindMask::CORE);
    RecommendedWatcher::new(EventSink(inbox.clone()), config).ok()
}

fn watch(watcher: &mut RecommendedWatcher, path: &Path) -> notify::Result<()> {
    let config = WatchPathConfig::new(RecursiveMode::NonRecursive).with_dereference_symlinks(false);
    watcher.watch_with(path, config)
}

fn close(watcher: RecommendedWatcher) {
    // It panics if its thread could not begin.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(watcher)));
}

impl Drop for System {
    fn drop(&mut self) {
        self.close();
    }
}

impl Short {
    /// For the log: what, why it matters, and the fix.
    pub(super) fn message(self, needs: &Needs) -> String {
        let Needs { directories, files, polled } = needs;
        let (what, fix) = match self {
            Self::Known => {
                return format!(
                    "a root has more than {DIRECTORIES} directories; changes of the list beyond them are not reported; \
                     exclude directories, or serve them as several roots"
                );
            }
            Self::Option(max) => (
                format!("there is more to watch than watch_dirs={max} allows"),
                format!("set watch_dirs to {directories} or more, or exclude directories"),
            ),
            Self::Watches => (
                "the system watches no more for this user".into(),
                "raise fs.inotify.max_user_watches, for example with `sysctl fs.inotify.max_user_watches=1048576`, or \
                 exclude directories"
                    .into(),
            ),
            Self::Instances => (
                "the system gives this process no watcher".into(),
                "raise fs.inotify.max_user_instances, or the limit of open files (`ulimit -n`)".into(),
            ),
        };
        format!(
            "{what}: {directories} directories and {files} subscribed paths; {polled} of them are looked at in turns, which \
             takes at most half a percent of a processor, so changes are reported later; {fix}"
        )
    }
}
