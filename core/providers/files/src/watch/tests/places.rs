//! Tests of files that move: renamed, replaced, linked, or not there yet.

use super::super::super::Symlinks;
use super::*;
use std::os::unix::fs::symlink;

// S-01: editors write another file and rename it.
#[test]
fn a_file_is_replaced() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("d/a", "1")]), settings);
        bench.watch("d/a");
        for round in 0..3 {
            bench.folder.write("d/new", round.to_string());
            fs::rename(bench.at("d/new"), bench.at("d/a")).unwrap();
            bench.expect_updated("d/a");
            // The file that has the name now is the one that is watched.
            bench.folder.write("d/a", format!("{round}{round}"));
            bench.expect_updated("d/a");
        }
        // Some keep the old one under another name.
        fs::rename(bench.at("d/a"), bench.at("d/a~")).unwrap();
        bench.expect_updated("d/a");
        bench.folder.write("d/a", "new");
        bench.expect_updated("d/a");
    }
}

// S-01: what is not there yet is reported when it comes, with whatever directories.
#[test]
fn what_is_not_there_yet() {
    for settings in BOTH {
        let bench = Bench::new(Folder::new(), settings);
        bench.watch("a/b/c/d");
        for _ in 0..10 {
            fs::create_dir_all(bench.at("a/b/c")).unwrap();
            bench.folder.write("a/b/c/d", "1");
            bench.expect_updated("a/b/c/d");
            bench.folder.write("a/b/c/d", "22");
            bench.expect_updated("a/b/c/d");
            fs::remove_dir_all(bench.at("a")).unwrap();
            bench.expect_updated("a/b/c/d");
        }
    }
}

// S-01: a directory on the way to a file is renamed, and another takes its name.
#[test]
fn a_directory_is_renamed() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("a/b/c", "1"), ("x/b/c", "22")]), settings);
        bench.watch("a/b/c");
        bench.watch("n/b/c");
        fs::rename(bench.at("a"), bench.at("n")).unwrap();
        bench.expect_updated("a/b/c");
        bench.expect_updated("n/b/c");
        bench.folder.write("n/b/c", "333");
        bench.expect_updated("n/b/c");
        fs::rename(bench.at("x"), bench.at("a")).unwrap();
        bench.expect_updated("a/b/c");
        bench.folder.write("a/b/c", "4444");
        bench.expect_updated("a/b/c");
        // Two change places.
        fs::rename(bench.at("a"), bench.at("t")).unwrap();
        fs::rename(bench.at("n"), bench.at("a")).unwrap();
        fs::rename(bench.at("t"), bench.at("n")).unwrap();
        bench.expect_updated("a/b/c");
        bench.expect_updated("n/b/c");
        for (path, text) in [("a/b/c", "55555"), ("n/b/c", "666666")] {
            bench.take();
            bench.folder.write(path, text);
            bench.expect_updated(path);
        }
    }
}

// S-01: the root is removed, renamed away, and comes back.
#[test]
fn the_root_goes_and_comes_back() {
    for settings in BOTH {
        let folder = Folder::with([("root/a", "1")]);
        let root = folder.0.join("root");
        let mut bench = Bench::new(Folder::new(), settings);
        bench.trees = Tree::all(&FileOptions::new().root("r", &root), Resolution::best()).unwrap();
        bench.watch("a");
        bench.watch_lists();
        let expect_both = || {
            bench.expect_updated("a");
            bench.expect(LIST);
        };
        let away = folder.0.join("away");
        fs::rename(&root, &away).unwrap();
        expect_both();
        fs::rename(&away, &root).unwrap();
        expect_both();
        folder.write("root/a", "22");
        bench.expect_updated("a");
        fs::remove_dir_all(&root).unwrap();
        expect_both();
        folder.write("root/a", "333");
        expect_both();
        folder.write("root/b", "");
        bench.expect(LIST);
        // Another directory takes its name at once.
        folder.write("other/a", "4444");
        bench.take();
        fs::rename(&root, folder.0.join("old")).unwrap();
        fs::rename(folder.0.join("other"), &root).unwrap();
        expect_both();
        bench.take();
        folder.write("root/a", "55555");
        bench.expect_updated("a");
    }
}

// S-01: a file is written under another of its names, in the root and outside of it.
#[test]
fn hard_links() {
    let outside = Folder::new();
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("d/a", "1")]), settings);
        bench.watch("d/a");
        fs::create_dir(bench.at("e")).unwrap();
        fs::hard_link(bench.at("d/a"), bench.at("e/b")).unwrap();
        bench.watch("e/b");
        let elsewhere = outside.0.join(format!("c{}", settings.polls));
        fs::hard_link(bench.at("d/a"), &elsewhere).unwrap();
        bench.take();
        for (round, path) in [&bench.at("d/a"), &bench.at("e/b"), &elsewhere].into_iter().enumerate() {
            fs::write(path, "x".repeat(round + 2)).unwrap();
            bench.expect_updated("d/a");
            bench.expect_updated("e/b");
        }
        // One name less leaves the other.
        fs::remove_file(bench.at("e/b")).unwrap();
        bench.expect_updated("e/b");
        bench.take();
        fs::write(&elsewhere, "the end").unwrap();
        bench.expect_updated("d/a");
    }
}

// S-01: a link leads elsewhere, and what it leads to changes, is replaced, goes and comes back.
#[test]
fn links() {
    for settings in BOTH {
        let folder = Folder::with([("one/a", "1"), ("two/a", "22")]);
        symlink("one/a", folder.0.join("file")).unwrap();
        symlink("one", folder.0.join("dir")).unwrap();
        let bench = Bench::with(folder, settings, |options| options.symlinks(Symlinks::Inside));
        let uris = ["file", "dir/a"];
        let expect = || uris.iter().for_each(|path| bench.expect_updated(path));
        uris.iter().for_each(|path| bench.watch(path));
        bench.folder.write("one/a", "333");
        expect();
        bench.folder.write("new", "4444");
        fs::rename(bench.at("new"), bench.at("one/a")).unwrap();
        expect();
        fs::remove_file(bench.at("one/a")).unwrap();
        expect();
        bench.folder.write("one/a", "55555");
        expect();
        for (target, link) in [("two/a", "file"), ("two", "dir")] {
            symlink(target, bench.at("link")).unwrap();
            fs::rename(bench.at("link"), bench.at(link)).unwrap();
        }
        expect();
        bench.folder.write("two/a", "666666");
        expect();
        symlink("none", bench.at("link")).unwrap();
        fs::rename(bench.at("link"), bench.at("file")).unwrap();
        bench.expect_updated("file");
        bench.folder.write("none", "");
        bench.expect_updated("file");
    }
}

// S-01: a root inside another: both hear.
#[test]
fn a_root_inside_another() {
    for settings in BOTH {
        let folder = Folder::with([("in/a", "1")]);
        let inner = folder.0.join("in");
        let bench = Bench::with(folder, settings, |options| options.root("in", inner));
        bench.watch("in/a");
        bench.watch_uri("file:///in/a");
        for text in ["22", "333"] {
            bench.folder.write("in/a", text);
            bench.expect_updated("in/a");
            bench.expect("file:///in/a");
        }
        bench.tell(&uri("in/a"), false);
        bench.folder.write("in/a", "4444");
        bench.expect("file:///in/a");
    }
}
