//! Tests of reads while another thread replaces the files by links to the outside.

use super::{Folder, WAYS, all, context, shown};
use crate::Symlinks;
use crate::contents;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// The number of reads, unless the variable `MCP_RESOURCES_SWAPS` sets another.
const READS: usize = 20_000;

/// Ends a thread, whatever becomes of the test.
pub(super) struct Until<'a>(pub(super) &'a AtomicBool);

impl Drop for Until<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Exchanges the entries `at` and `other`, atomically where the system can.
pub(super) fn exchange(root: &Path, at: &str, other: &str) {
    let at = root.join(at);
    let other = root.join(other);
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        renameat_with(CWD, &at, CWD, &other, RenameFlags::EXCHANGE).unwrap();
    }
    #[cfg(not(target_os = "linux"))]
    {
        let third = root.join(".third");
        fs::rename(&at, &third).unwrap();
        fs::rename(&other, &at).unwrap();
        fs::rename(&third, &other).unwrap();
    }
}

// S-01, S-11: file, link and parent are swapped all the time, and never a byte comes from outside.
#[test]
fn never_a_byte_from_outside() {
    let reads = std::env::var("MCP_RESOURCES_SWAPS").map_or(READS, |reads| reads.parse().unwrap());
    let folder = Folder::with([
        ("root/file", "inside"),
        ("root/a/b/file", "inside"),
        ("root/a/b/.gitignore", "nothing\n"),
        ("outside/file", "outside"),
        ("outside/b/file", "outside"),
    ]);
    let root = folder.0.join("root");
    symlink("../outside/file", root.join(".file")).unwrap();
    symlink(folder.0.join("outside"), root.join(".a")).unwrap();
    symlink("../../outside/b", root.join("a/.b")).unwrap();
    let over = AtomicBool::new(false);
    let swaps = AtomicUsize::new(0);
    let found = AtomicUsize::new(0);
    thread::scope(|scope| {
        let _until = Until(&over);
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                for (at, other) in
                    [("file", ".file"), ("a", ".a"), ("a", ".a"), ("a/b", "a/.b"), ("a/b", "a/.b")]
                {
                    exchange(&root, at, other);
                    swaps.fetch_add(1, Ordering::Relaxed);
                    thread::yield_now();
                }
            }
        });
        let mut trees = Vec::new();
        for way in WAYS {
            for symlinks in [Symlinks::Never, Symlinks::Inside] {
                trees.push(folder.tree_at("root", way, |options| options.symlinks(symlinks)));
            }
        }
        for read in 0..reads {
            let tree = &trees[read % trees.len()];
            let path: &[u8] = if read / trees.len() % 2 == 0 { b"file" } else { b"a/b/file" };
            let root = tree.open().unwrap();
            let Ok(opened) = tree.find(&root, path, &all) else { continue };
            let text = contents::file(opened, path, None, None, &context()).unwrap();
            assert_eq!(shown(&text), "inside");
            found.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(swaps.into_inner() > 100 && found.into_inner() > 100, "neither stood still");
    fs::metadata(root.join("a")).unwrap();
}
