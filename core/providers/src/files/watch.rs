//! Which files have changed: watched while somebody waits for it, and by what the system says.
//!
//! ```text
//!   Provider::interest ──▶ Inbox ◀── hints ── notify, which watches the directories that matter
//!                            │
//!                            ▼ a thread: from the first interest to the last
//!   Scene, one for each root: its directories ── scan, compare ──▶ list_changed, updated(directory)
//!   Targets: the paths that are watched       ── look, compare ──▶ updated(uri)
//! ```
//!
//! Law: what the system reports is a hint where to look, and never believed: what is there is compared with what was there.
//! So a hint too many costs a look, and lost hints a comparison of everything. A directory is watched before it is
//! looked at. What is not known, or could have changed without a trace, counts as changed.
//!
//! **What is watched.** For a URI: each directory on its way, so that it is heard of when any of them is renamed, and when a
//! path comes that was not there; and the file itself, which may be written under another name. For the lists: every
//! directory that is served. Never recursively: ignored directories, which may be large and busy, cost nothing.
//!
//! **What a change of the lists is.** A file comes, goes, or is a directory from now on. Not its size and date, though lists
//! have them: a log file would have all clients walk all pages again with each line. A client that needs a file subscribes to it.
//!
//! **What a first interest hears.** A client may have read what it watches long ago. If what was last read here is what is
//! there once it is watched, nothing is reported; if it is not, one change is. What was never read here is reported if it was
//! changed after the client asked, or shortly before: the clocks of file systems are coarse. The lists count as changed
//! once when they are watched from the first time on.
//!
//! **What is not served is silent.** A path that is hidden, ignored or excluded is one at which there is nothing, whatever
//! happens there. If it was served and is not any longer, that is one change, as if it were removed.
//!
//! **Without the system's help.** Directories beyond `watch_dirs` or the system's own limits are polled in slices, and between
//! two slices there is two hundred times the time that one takes: few are all looked at within a second, and many cost no
//! more than half a percent of a processor. What has changed lately is looked at each second. The log says so once for each
//! reason, with the numbers. Roots are looked at each second in any case: nothing tells that a directory above
//! one was renamed, and a root that is gone leaves nothing to watch. So are rules outside of the root.

mod inbox;
mod scene;
mod seen;
mod system;
mod target;
#[cfg(test)]
mod tests;
mod watcher;

use super::beneath::EntryFacts;
use super::tree::Tree;
use inbox::{FileChange, WatchInbox};
use mcp_resources_runtime::provider::{Feed, InterestChange};
use mcp_resources_runtime::sync::Mutex;
use seen::{Before, SeenFiles};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use watcher::FileWatcher;

/// Where changes are reported to.
pub(super) trait WatchReports: Clone + Send + 'static {
    fn updated(&self, uri: &str);
    fn list_changed(&self);
    /// A URI is watched from now on: every later change is reported.
    fn watches(&self, _uri: &str) {}
    /// The system has reported something of a path.
    fn touched(&self, _tree: &Tree, _path: &[u8]) {}
    fn log(&self, what: &str);
    /// Whether anybody hears.
    fn is_alive(&self) -> bool;
}

impl WatchReports for Feed {
    fn updated(&self, uri: &str) {
        // It is in canonical form: nothing is wrong with it.
        let _ = Self::updated(self, uri);
    }

    fn list_changed(&self) {
        Self::list_changed(self);
    }

    fn log(&self, what: &str) {
        Self::log(self, what);
    }

    fn is_alive(&self) -> bool {
        Self::is_alive(self)
    }
}

/// What tests change.
#[derive(Clone, Copy, Debug)]
struct WatchSettings {
    /// Whether the system is not asked for watches.
    polls: bool,
    /// How many hints may wait.
    hints: usize,
    /// The time between two slices of what the system does not watch; ten of it pass between two looks at the roots.
    slice: Duration,
}

impl Default for WatchSettings {
    fn default() -> Self {
        Self { polls: false, hints: inbox::HINTS, slice: Duration::from_millis(100) }
    }
}

/// The watcher of a provider's roots: it does nothing without subscribers.
pub(super) struct FileWatch {
    settings: WatchSettings,
    seen: Arc<SeenFiles>,
    /// The process that the thread is in, and what it shares with others.
    inbox: Mutex<(u32, Arc<WatchInbox>)>,
}

impl Default for FileWatch {
    fn default() -> Self {
        Self::new(WatchSettings::default())
    }
}

impl FileWatch {
    fn new(settings: WatchSettings) -> Self {
        let inbox = Mutex::new((std::process::id(), WatchInbox::new(settings.hints)));
        Self { settings, seen: Arc::default(), inbox }
    }

    /// `facts` were those of what was read at `path`, before it was read. `contents` gives all of it, if it is known.
    pub(super) fn saw<'c>(
        &self,
        tree: &Tree,
        path: &[u8],
        facts: &EntryFacts,
        contents: impl FnOnce() -> Option<&'c [u8]>,
    ) {
        if tree.settings().watch {
            self.seen.saw(tree.name(), path, facts, contents);
        }
    }

    /// Clients watch something from now on, or no longer. The thread begins with the first.
    pub(super) fn interest(&self, trees: &[Arc<Tree>], change: InterestChange<'_>, feed: Option<Feed>) {
        self.change(trees, change, feed);
    }

    pub(super) fn change<R: WatchReports>(
        &self,
        trees: &[Arc<Tree>],
        change: InterestChange<'_>,
        reports: Option<R>,
    ) {
        if trees.iter().all(|tree| !tree.settings().watch) {
            return;
        }
        let inbox = self.inbox();
        let begins = match change {
            InterestChange::Lists { on } => inbox.lists(on),
            InterestChange::Uri { uri, on, .. } => {
                let read = trees.iter().find_map(|tree| Some((tree, tree.path_of(uri)?.0)));
                let before = read.map(|(tree, path)| self.seen.before(tree.name(), &path));
                let before = before.unwrap_or_else(Before::unknown);
                inbox.interest(uri, FileChange { on, before })
            }
        };
        let Some(reports) = reports.filter(|_| begins) else { return };
        let watcher = FileWatcher::new(trees, &inbox, &self.seen, self.settings, reports);
        let own = inbox.clone();
        let run = move || {
            // After a mistake of ours the next interest begins anew; the panic hook has said where.
            if catch_unwind(AssertUnwindSafe(|| watcher.run())).is_err() {
                own.failed();
            }
        };
        if std::thread::Builder::new().name("mcp-files".into()).spawn(run).is_err() {
            inbox.failed();
        }
    }

    /// The inbox of this process: a forked one has none of its parent's threads.
    fn inbox(&self) -> Arc<WatchInbox> {
        let mut inbox = self.inbox.lock();
        let process = std::process::id();
        if inbox.0 != process {
            let own = inbox.1.forked();
            // Its lock may be held by a thread of the parent's for ever.
            std::mem::forget(std::mem::replace(&mut *inbox, (process, own)));
        }
        inbox.1.clone()
    }
}

impl fmt::Debug for FileWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("settings", &self.settings).finish_non_exhaustive()
    }
}
