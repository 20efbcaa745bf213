//! Watches files for changes, through the system's notifications, as long as a client is interested.
//!
//! ```text
//!   Provider::interest ──▶ Inbox ◀── hints ── notify, which watches the directories that matter
//!                            │
//!                            ▼ a thread: from the first interest to the last
//!   WatchedRoot, one for each root: its directories ── scan, compare ──▶ list_changed, updated(directory)
//!   Targets: the paths that are watched       ── look, compare ──▶ updated(uri)
//! ```
//!
//! Law: an event of the system is only a hint; the current state is always compared with the known one. So an
//! unnecessary hint costs one check, and lost hints cost a comparison of everything. A directory is watched before it
//! is read. An entry whose state is not known, or could have changed without a trace, counts as changed.
//!
//! **Watched directories.** For a URI: each directory on its path, so that renaming any of them and creating missing
//! ones is noticed; and the file itself, which may be written under another name. For the lists: every served
//! directory. Never recursively: ignored directories, which may be large and busy, cost nothing.
//!
//! **Changes of the lists.** A file is created, is removed, or becomes a directory. Sizes and dates do not count,
//! although lists have them: each line of a log file would make all clients walk all pages again. A client that needs a
//! file subscribes to it.
//!
//! **The first interest.** A client may have read long ago what it starts to watch. If the state at the last read
//! equals the state when the watch starts, nothing is reported; otherwise one change is. A file that was never read is
//! reported if it changed after the client asked, or shortly before, because clocks of file systems are coarse. The
//! lists count as changed once, when they are watched for the first time.
//!
//! **Paths that are not served cause no events.** A hidden, ignored or excluded path counts as absent, whatever happens
//! to it. If a served path becomes one of these, that is one change, like its removal.
//!
//! **Polling.** Directories beyond `watch_dirs` or the system's own limits are polled in slices, with a pause of two
//! hundred times the duration of a slice: a few directories are all checked within a second, and many take at most half
//! a percent of a processor. Recently changed files are checked each second. The log says so once for each reason, with
//! the numbers. Roots are checked each second in any case, because no event reports that a directory above one was
//! renamed, and a root that is gone leaves nothing to watch. The same applies to rules outside the root.

mod inbox;
mod seen;
mod settings;
mod system;
mod target;
#[cfg(test)]
mod tests;
mod watched_root;
mod watcher;

use super::root_directory::EntryFacts;
use super::tree::Tree;
use inbox::{FileChange, WatchInbox};
use mcp_resources_runtime::provider::{Feed, InterestChange};
use mcp_resources_runtime::sync::Mutex;
use seen::{Before, SeenFiles};
pub(super) use settings::WatchReports;
use settings::WatchSettings;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use watcher::FileWatcher;

/// The watcher of a provider's roots: it does nothing without subscribers.
pub(super) struct FileWatch {
    settings: WatchSettings,
    seen: Arc<SeenFiles>,
    /// The process of the thread, and the inbox shared with it.
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

    /// Records a read: `facts` are the metadata of the file at `path` before the read. `contents` returns all of its
    /// contents, if they are known.
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

    /// Records that clients begin or stop watching. The thread starts with the first interest.
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

    /// The inbox of this process: a forked process has none of its parent's threads.
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
