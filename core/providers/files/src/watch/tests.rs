//! Tests of the reported changes of real files, from the system and by polling. Nothing is timed: a test waits for each
//! expected change, and shows the absence of a change by one that came after it.

mod limits;
mod lists;
mod places;

use super::super::FileOptions;
use super::super::root_directory::Resolution;
use super::super::tests::Folder;
use super::super::tree::Tree;
use super::{FileWatch, WatchReports, WatchSettings};
use mcp_resources_runtime::provider::{InterestChange, Route};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

const LIST: &str = "the list";
const WATCHED: &str = "watched ";
/// Maximum time to wait for an expected change.
const LONG: Duration = Duration::from_secs(30);

const HEARS: WatchSettings =
    WatchSettings { polls: false, hints: super::inbox::HINTS, slice: Duration::from_millis(5) };
const POLLS: WatchSettings = WatchSettings { polls: true, ..HEARS };
const BOTH: [WatchSettings; 2] = [HEARS, POLLS];

/// The reported changes.
#[derive(Clone, Default)]
struct Reported(Arc<(Mutex<Vec<String>>, Condvar, AtomicBool)>);

impl Reported {
    fn push(&self, what: &str) {
        self.0.0.lock().unwrap().push(what.to_owned());
        self.0.1.notify_all();
    }
}

impl WatchReports for Reported {
    fn updated(&self, uri: &str) {
        self.push(uri);
    }

    fn list_changed(&self) {
        self.push(LIST);
    }

    fn watches(&self, uri: &str) {
        self.push(&format!("{WATCHED}{uri}"));
    }

    fn log(&self, what: &str) {
        self.push(what);
    }

    fn is_alive(&self) -> bool {
        !self.0.2.load(Ordering::Relaxed)
    }
}

/// A watcher of one root, `r`, and of others that a test adds.
struct Bench {
    folder: Folder,
    trees: Vec<Arc<Tree>>,
    watch: FileWatch,
    reported: Reported,
}

impl Bench {
    fn new(folder: Folder, settings: WatchSettings) -> Self {
        Self::with(folder, settings, |options| options)
    }

    fn with(
        folder: Folder,
        settings: WatchSettings,
        change: impl FnOnce(FileOptions) -> FileOptions,
    ) -> Self {
        let options = change(FileOptions::new().root("r", &folder.0));
        let trees = Tree::all(&options, Resolution::best()).unwrap();
        folder.write("sentinel", "");
        Self { folder, trees, watch: FileWatch::new(settings), reported: Reported::default() }
    }

    fn at(&self, path: &str) -> std::path::PathBuf {
        self.folder.0.join(path)
    }

    fn tell(&self, uri: &str, on: bool) {
        let uri = &Arc::from(uri);
        let change = InterestChange::Uri { uri, route: Route(0), on };
        self.watch.change(&self.trees, change, Some(self.reported.clone()));
    }

    fn lists(&self, on: bool) {
        self.watch.change(&self.trees, InterestChange::Lists { on }, Some(self.reported.clone()));
    }

    /// Watches a path, and waits until it is watched. That it was written right before may have been reported.
    fn watch(&self, path: &str) {
        self.watch_uri(&uri(path));
    }

    fn watch_uri(&self, uri: &str) {
        self.tell(uri, true);
        self.expect(&format!("{WATCHED}{uri}"));
        self.reported.0.0.lock().unwrap().retain(|what| what != uri);
    }

    fn watch_lists(&self) {
        self.lists(true);
        self.expect(LIST);
    }

    /// Waits until this is reported.
    fn expect(&self, what: &str) {
        self.wait(what, |reported| {
            let before = reported.len();
            reported.retain(|other| other != what);
            reported.len() < before
        });
    }

    fn expect_updated(&self, path: &str) {
        self.expect(&uri(path));
    }

    fn wait<T>(&self, what: &str, mut check: impl FnMut(&mut Vec<String>) -> T) -> T
    where
        T: PartialEq + Default,
    {
        let until = Instant::now() + LONG;
        let mut reported = self.reported.0.0.lock().unwrap();
        loop {
            let found = check(&mut reported);
            if found != T::default() {
                return found;
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what} was expected: {reported:?}");
            reported = self.reported.0.1.wait_timeout(reported, left).unwrap().0;
        }
    }

    /// Nothing has been reported but of a file that changes now.
    fn expect_nothing(&self) {
        let rest = self.settle();
        assert!(rest.iter().all(|what| *what == uri("sentinel")), "{rest:?}");
    }

    /// Waits until all earlier changes are reported, and forgets them.
    fn expect_quiet(&self) {
        self.settle();
    }

    /// Returns everything reported for earlier changes: when a file has been polled twice, all others have been polled.
    fn settle(&self) -> Vec<String> {
        self.tell(&uri("sentinel"), true);
        let mut rest = Vec::new();
        for round in 1..4 {
            self.folder.write("sentinel", "x".repeat(round));
            self.expect_updated("sentinel");
            rest.append(&mut self.take());
        }
        rest
    }

    fn take(&self) -> Vec<String> {
        let mut taken = std::mem::take(&mut *self.reported.0.0.lock().unwrap());
        taken.retain(|what| !what.starts_with(WATCHED));
        taken
    }

    /// Waits until this holds.
    fn until(&self, what: &str, check: impl Fn() -> bool) {
        let until = Instant::now() + LONG;
        while !check() {
            assert!(Instant::now() < until, "{what}: {:?}", self.take());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The directories and files of the folder that the system watches for this process.
    fn watched(&self) -> BTreeSet<String> {
        let inodes: BTreeSet<u64> = watches().into_iter().map(|(inode, _)| inode).collect();
        let mut found = BTreeSet::new();
        walk(&self.folder.0, &mut |path| {
            let inode = fs::symlink_metadata(path).map(|at| at.ino()).unwrap_or_default();
            if inodes.contains(&inode) {
                let path = path.strip_prefix(&self.folder.0).unwrap();
                found.insert(path.to_str().unwrap().to_owned());
            }
        });
        found
    }

    fn expect_watched(&self, paths: &[&str]) {
        let expected: BTreeSet<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        self.until(&format!("{expected:?} are watched, not {:?}", self.watched()), || {
            self.watched() == expected
        });
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.reported.0.2.store(true, Ordering::Relaxed);
    }
}

fn uri(path: &str) -> String {
    format!("file:///r/{path}")
}

/// The inotify watches of this process: inodes, and the requested events.
fn watches() -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo").unwrap().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for line in text.lines().filter(|line| line.starts_with("inotify ")) {
            let field =
                |name: &str| line.split_whitespace().find_map(|field| field.strip_prefix(name)).unwrap();
            let number = |name: &str| u64::from_str_radix(field(name), 16).unwrap();
            found.push((number("ino:"), number("mask:")));
        }
    }
    found
}

fn walk(dir: &Path, visit: &mut dyn FnMut(&Path)) {
    visit(dir);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir { walk(&entry.path(), visit) } else { visit(&entry.path()) }
    }
}

// S-01: a change of a file is reported, of its bytes and of its date alone, and only of a file that is watched.
#[test]
fn a_file_changes() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("a", "1"), ("b", "1")]), settings);
        bench.watch("a");
        bench.expect_quiet();
        bench.folder.write("b", "2");
        bench.expect_nothing();
        bench.folder.write("a", "22");
        bench.expect_updated("a");
        let file = fs::File::options().write(true).open(bench.at("a")).unwrap();
        file.set_modified(std::time::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
        bench.expect_updated("a");
        fs::remove_file(bench.at("a")).unwrap();
        bench.expect_updated("a");
        bench.folder.write("a", "3");
        bench.expect_updated("a");
        // Not of a file that is watched no longer.
        bench.tell(&uri("a"), false);
        bench.watch("b");
        bench.expect_quiet();
        bench.folder.write("a", "4");
        bench.expect_nothing();
    }
}

// S-01: our own reads are no change.
#[test]
fn reading_is_silent() {
    let bench = Bench::new(Folder::with([("a", "1")]), HEARS);
    bench.watch("a");
    for _ in 0..100 {
        fs::read(bench.at("a")).unwrap();
        fs::read_dir(bench.at("")).unwrap().count();
    }
    bench.expect_nothing();
    // Not even the system's watcher is woken by IN_ACCESS, IN_CLOSE or IN_OPEN.
    let masks =
        watches().into_iter().filter(|(inode, _)| *inode == fs::metadata(bench.at("a")).unwrap().ino());
    assert_eq!(masks.map(|(_, mask)| mask & 0x39).collect::<Vec<_>>(), [0]);
}

// S-01: each URI of a file is reported, such as those of its lines, once for a change.
#[test]
fn uris_of_one_file() {
    let bench = Bench::new(Folder::with([("a", "1")]), HEARS);
    bench.watch("a");
    // The file is watched already, but a change may have been reported while this URI was on its way.
    bench.watch("a?lines=1-2");
    bench.expect_quiet();
    bench.folder.write("a", "2");
    bench.expect_updated("a?lines=1-2");
    bench.expect_updated("a");
}

// S-01: after a read, a first interest reports nothing, unless the file was changed in between.
#[test]
fn what_was_read_before_is_compared() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("a", "1"), ("b", "1"), ("d/e", "")]), settings);
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        let read = |path: &str| {
            fs::File::open(bench.at(path)).unwrap().set_modified(old).unwrap();
            let tree = &bench.trees[0];
            let opened = tree.open().unwrap().open(path.as_bytes()).unwrap();
            bench.watch.saw(tree, path.as_bytes(), &opened.facts, || None);
        };
        ["a", "b", "d"].into_iter().for_each(read);
        bench.folder.write("b", "2");
        for path in ["a", "b", "d/"] {
            bench.tell(&uri(path), true);
        }
        bench.expect_updated("b");
        bench.folder.write("b", "3");
        bench.expect_updated("b");
        assert_eq!(bench.settle().iter().find(|what| **what != uri("b") && **what != uri("sentinel")), None);
        bench.folder.write("a", "2");
        bench.expect_updated("a");
        bench.folder.write("d/f", "");
        bench.expect_updated("d/");
    }
}

// S-01: one report at a time, however fast a file changes, and the last change is reported.
#[test]
fn a_file_that_never_rests() {
    let bench = Bench::new(Folder::with([("log", "")]), HEARS);
    bench.watch("log");
    const LINES: usize = 20_000;
    let mut log = fs::File::options().append(true).open(bench.at("log")).unwrap();
    for _ in 0..LINES {
        log.write_all(b"x\n").unwrap();
    }
    bench.expect_updated("log");
    // What is still to come of them comes before this.
    log.write_all(b"the last\n").unwrap();
    bench.expect_updated("log");
    let rest = bench.take();
    assert!(rest.len() < LINES / 10, "{} reports", rest.len());
    bench.expect_quiet();
    log.write_all(b"one more\n").unwrap();
    bench.expect_updated("log");
}

// S-01: without subscribers nothing is left of the watcher, and it can start again.
#[test]
fn it_begins_and_ends() {
    let bench = Bench::new(Folder::with([("a", "1"), ("d/b", "1"), ("d/e/c", "1")]), HEARS);
    for _ in 0..3 {
        bench.expect_watched(&[]);
        bench.watch("d/b");
        bench.expect_watched(&["", "d", "d/b"]);
        bench.watch_lists();
        bench.expect_watched(&["", "d", "d/b", "d/e"]);
        bench.tell(&uri("d/b"), false);
        bench.expect_watched(&["", "d", "d/e"]);
        bench.watch("a");
        bench.lists(false);
        bench.expect_watched(&["", "a"]);
        bench.folder.write("a", "2");
        bench.expect_updated("a");
        bench.watch("d/b");
        bench.tell(&uri("d/b"), false);
        bench.expect_watched(&["", "a"]);
        bench.tell(&uri("a"), false);
        bench.expect_watched(&[]);
        bench.take();
    }
}

// S-01: with `watch=false` nothing is watched, and no thread begins.
#[test]
fn it_can_be_turned_off() {
    let bench = Bench::with(Folder::with([("a", "1")]), HEARS, |options| options.watch(false));
    bench.tell(&uri("a"), true);
    bench.lists(true);
    assert!(!bench.watch.inbox().is_running());
    assert!(bench.watched().is_empty());
}

// S-01: the thread ends with the mount.
#[test]
fn it_ends_with_its_server() {
    let bench = Bench::new(Folder::with([("a", "1")]), HEARS);
    bench.watch("a");
    bench.reported.0.2.store(true, Ordering::Relaxed);
    bench.expect_watched(&[]);
    assert!(!bench.watch.inbox().is_running());
}

// S-01: a forked process has the interests and none of the threads of its parent.
#[test]
fn a_forked_process_begins_anew() {
    let bench = Bench::new(Folder::with([("a", "1"), ("b", "1")]), HEARS);
    bench.watch("a");
    let parent = bench.watch.inbox();
    bench.watch.inbox.lock().0 = 0;
    assert!(!bench.watch.inbox().is_running());
    bench.watch("b");
    bench.take();
    // Both watch it now: the parent's thread, which a real fork would not have, and the child's.
    bench.folder.write("a", "2");
    bench.wait("two reports", |reported| reported.iter().filter(|what| **what == uri("a")).count() >= 2);
    parent.interest(&Arc::from(uri("a")), super::FileChange { on: false, before: super::Before::unknown() });
}

// S-01: what is subscribed is not reported at once, unless it is something else than was read.
#[test]
fn a_subscription_alone_reports_nothing() {
    for settings in BOTH {
        let bench =
            Bench::new(Folder::with([("old", "1"), ("read", "1"), ("d/e", "1"), (".env", "1")]), settings);
        let old = std::time::SystemTime::now() - Duration::from_secs(60);
        fs::File::open(bench.at("old")).unwrap().set_modified(old).unwrap();
        // The clock of the file system has moved on since all was made.
        std::thread::sleep(Duration::from_millis(50));
        for path in ["old", "read", "d/", "d/e", "absent", ".env"] {
            bench.tell(&uri(path), true);
            bench.expect(&format!("{WATCHED}{}", uri(path)));
        }
        bench.expect_nothing();
        bench.folder.write("read", "2");
        bench.expect_updated("read");
    }
}

// S-01: what is removed or written right after the subscription is reported, whether it was read before or not.
#[test]
fn a_change_right_after_the_subscription() {
    for settings in BOTH {
        let bench = Bench::new(Folder::new(), settings);
        for round in 0..20 {
            let gone = format!("d/gone-{round}");
            let written = format!("d/written-{round}");
            bench.folder.write(&gone, "1");
            bench.folder.write(&written, "1");
            bench.tell(&uri(&gone), true);
            bench.tell(&uri(&written), true);
            fs::remove_file(bench.at(&gone)).unwrap();
            bench.folder.write(&written, "2");
            bench.expect_updated(&gone);
            bench.expect_updated(&written);
        }
    }
}

// S-01: a file that was read right after it was written is compared by its contents.
#[test]
fn what_was_read_at_once_is_compared_by_its_contents() {
    for _ in 0..10 {
        let bench = Bench::new(Folder::with([("same", "1"), ("other", "1")]), HEARS);
        for path in ["same", "other"] {
            let opened = bench.trees[0].open().unwrap().open(path.as_bytes()).unwrap();
            bench.watch.saw(&bench.trees[0], path.as_bytes(), &opened.facts, || Some(b"1"));
        }
        bench.folder.write("other", "2");
        bench.tell(&uri("same"), true);
        bench.tell(&uri("other"), true);
        bench.expect_updated("other");
        bench.expect(&format!("{WATCHED}{}", uri("same")));
        assert!(!bench.take().contains(&uri("same")));
    }
}

// S-01, S-11: what is hidden, ignored or excluded is as silent as what is not there, however it changes; when a file is
// ignored from now on, that is one change.
#[test]
fn what_is_not_served_is_silent() {
    const SILENT: [&str; 6] = [".env", "ignored", "out/a", "excluded", "d/.hidden", "absent"];
    for settings in BOTH {
        let folder = Folder::with([
            (".env", "1"),
            (".gitignore", "ignored\nout/\n"),
            ("ignored", "1"),
            ("out/a", "1"),
            ("excluded", "1"),
            ("d/.hidden", "1"),
            ("d/seen", "1"),
        ]);
        let bench = Bench::with(folder, settings, |options| options.exclude(["excluded"]));
        SILENT.iter().for_each(|path| bench.watch(path));
        bench.watch("d/seen");
        bench.expect_quiet();
        for round in 1..4 {
            for path in SILENT.iter().filter(|path| **path != "absent") {
                bench.folder.write(path, "2".repeat(round));
                fs::remove_file(bench.at(path)).unwrap();
                bench.folder.write(path, "3".repeat(round));
            }
            bench.expect_nothing();
        }
        bench.folder.write("d/seen", "22");
        bench.expect_updated("d/seen");
        bench.folder.write("d/.gitignore", "seen\n");
        bench.expect_updated("d/seen");
        bench.expect_quiet();
        bench.folder.write("d/seen", "333");
        bench.expect_nothing();
    }
}

// S-01: when many subscriptions end, the rest is watched on, and nothing more than the rest.
#[test]
fn many_subscriptions_end() {
    let bench = Bench::new(Folder::new(), HEARS);
    let paths: Vec<String> = (0..600).map(|file| format!("d/{file}")).collect();
    paths.iter().for_each(|path| bench.folder.write(path, "1"));
    paths.iter().for_each(|path| bench.watch(path));
    let (gone, kept) = paths.split_at(450);
    gone.iter().for_each(|path| bench.tell(&uri(path), false));
    bench.until("the rest is watched", || bench.watched().len() == kept.len() + 2);
    bench.expect_quiet();
    bench.folder.write(&gone[7], "22");
    bench.expect_nothing();
    for path in [&kept[0], &kept[149]] {
        bench.folder.write(path, "22");
        bench.expect_updated(path);
    }
    bench.watch(&gone[7]);
    bench.folder.write(&gone[7], "333");
    bench.expect_updated(&gone[7]);
}
