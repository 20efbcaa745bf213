//! The sources of the server under development, and their changes.
//!
//! ```text
//!   the watcher of `files` ──something happened──▶ quiet for a while ──▶ walk: other files than before? ──▶ restart
//! ```
//!
//! Law: what `.gitignore` excludes, hidden files, files that servers write, such as databases, and the output of this program
//! are no sources.

use super::report;
use mcp_resources_providers::files::folder::{Folder, FolderChanges, FolderOptions, FolderWatch};
use mcp_resources_providers::kit::named::NamedPath;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

/// Most files that are compared.
const MOST_FILES: usize = 20_000;
/// The time without further changes after which sources are compared: editors and git write several files.
const QUIET: Duration = Duration::from_millis(150);
/// The longest wait for that.
const LONGEST: Duration = Duration::from_secs(5);
/// The interval of comparisons without a report of the system.
const LOOK: Duration = Duration::from_secs(2);
/// Files that servers and tools write beside their sources.
const WRITTEN: [&str; 14] = [
    "**/*.db",
    "**/*.db-*",
    "**/*.sqlite*",
    "**/*.log",
    "**/*.pyc",
    "**/*.tmp",
    "**/*.swp",
    "**/*~",
    "**/__pycache__/**",
    "**/node_modules/**",
    "**/target/**",
    "**/venv/**",
    "**/dist/**",
    "**/build/**",
];

/// Files whose changes restart a server.
pub(super) enum DevSources {
    /// One file.
    File(PathBuf),
    /// The files of a folder.
    /// Watched until it is dropped.
    Folder { folder: Folder, _watch: FolderWatch, reports: SourceReports },
}

/// Sizes and times of the sources, by their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceFacts(BTreeMap<Vec<u8>, (u64, Option<SystemTime>)>);

/// Wakes the task that compares.
#[derive(Clone, Default)]
pub(super) struct SourceReports(Arc<Notify>);

impl FolderChanges for SourceReports {
    fn touched(&self, _folder: &str, _path: &[u8]) {
        self.0.notify_one();
    }

    fn moved(&self) {
        self.0.notify_one();
    }

    fn log(&self, what: &str) {
        report::say(what);
    }

    fn is_alive(&self) -> bool {
        true
    }
}

impl DevSources {
    /// # Errors
    /// The folder cannot be opened: a sentence.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, String> {
        let mut options = FolderOptions::new();
        options.exclude.extend(WRITTEN.map(str::to_owned));
        let folders = Folder::all("dev", "folder", &[NamedPath::new("sources", folder)], &options);
        let folder =
            folders.map_err(|error| error.to_string())?.into_iter().next().ok_or("there is no folder")?;
        let (watch, reports) = (FolderWatch::default(), SourceReports::default());
        watch.set(true, std::slice::from_ref(&folder), Some(reports.clone()));
        Ok(Self::Folder { folder, _watch: watch, reports })
    }

    /// The sources that are there now.
    pub(super) fn facts(&self) -> SourceFacts {
        let mut facts = BTreeMap::new();
        match self {
            Self::File(path) => {
                if let Ok(found) = std::fs::metadata(path) {
                    facts.insert(
                        path.as_os_str().as_encoded_bytes().to_vec(),
                        (found.len(), found.modified().ok()),
                    );
                }
            }
            Self::Folder { folder, .. } => {
                let own = own_outputs();
                let is_own = |path: &[u8]| {
                    let path = folder.dir().join(OsStr::from_bytes(path));
                    std::fs::metadata(path).is_ok_and(|found| own.contains(&(found.dev(), found.ino())))
                };
                // A folder that is gone has no sources.
                let _ = folder.walk(&mut |path, found| {
                    if own.is_empty() || !is_own(&path) {
                        facts.insert(path, (found.size, found.written()));
                    }
                    facts.len() < MOST_FILES
                });
            }
        }
        SourceFacts(facts)
    }

    /// Waits until the sources are other ones than `seen`, and none is being written. Returns one that differs.
    pub(super) async fn changed(&self, seen: &mut SourceFacts) -> String {
        loop {
            match self {
                Self::File(_) => sleep(QUIET).await,
                Self::Folder { reports, .. } => drop(timeout(LOOK, reports.0.notified()).await),
            }
            let mut now = self.facts();
            if now == *seen {
                continue;
            }
            let settled = async {
                loop {
                    sleep(QUIET).await;
                    let later = self.facts();
                    if later == now {
                        return;
                    }
                    now = later;
                }
            };
            let _ = timeout(LONGEST, settled).await;
            let name = seen.differing(&now);
            *seen = now;
            if let Some(name) = name {
                return name;
            }
        }
    }
}

/// The files that this program writes its own lines to, by device and number: they are no sources.
fn own_outputs() -> Vec<(u64, u64)> {
    let outputs = ["/dev/stdout", "/dev/stderr"].map(std::fs::metadata);
    let files = outputs.into_iter().flatten().filter(std::fs::Metadata::is_file);
    files.map(|found| (found.dev(), found.ino())).collect()
}

impl SourceFacts {
    /// A path that is not the same in both.
    fn differing(&self, now: &Self) -> Option<String> {
        let other = now.0.iter().find(|(path, facts)| self.0.get(*path) != Some(facts)).map(|(path, _)| path);
        let gone = || self.0.keys().find(|path| !now.0.contains_key(*path));
        other.or_else(gone).map(|path| String::from_utf8_lossy(path).into_owned())
    }
}
