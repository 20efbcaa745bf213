//! Tests of lists and directories, and of the rules that decide which files are in them.

use super::*;

// S-01: the lists change when files come and go, not when what is in them does, nor with what is not served.
#[test]
fn files_come_and_go() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("a", "1"), ("d/b", "1")]), settings);
        bench.watch_lists();
        bench.folder.write("a", "22");
        bench.folder.write(".hidden", "");
        bench.folder.write("d/.hidden/x", "");
        bench.folder.write("d/.new", "");
        fs::rename(bench.at("d/.new"), bench.at("d/b")).unwrap();
        fs::create_dir(bench.at("empty")).unwrap();
        bench.expect_nothing();
        bench.folder.write("c", "");
        bench.expect(LIST);
        fs::rename(bench.at("c"), bench.at("d/c")).unwrap();
        bench.expect(LIST);
        bench.expect_quiet();
        fs::remove_file(bench.at("d/c")).unwrap();
        bench.expect(LIST);
        fs::remove_dir_all(bench.at("d")).unwrap();
        bench.expect(LIST);
        bench.expect_quiet();
        // A file that is a directory from now on.
        fs::remove_file(bench.at("a")).unwrap();
        fs::create_dir(bench.at("a")).unwrap();
        bench.expect(LIST);
    }
}

// S-01: `mkdir -p` and a file in it lose nothing, however fast they come.
#[test]
fn a_tree_grows_at_once() {
    for settings in BOTH {
        let bench = Bench::new(Folder::new(), settings);
        bench.watch_lists();
        for round in 0..10 {
            let path = format!("{round}/a/b/c/d");
            bench.folder.write(&path, "");
            bench.expect(LIST);
            bench.take();
            fs::remove_file(bench.at(&path)).unwrap();
            bench.expect(LIST);
        }
    }
}

// S-01: a directory changes with its entries, not with what is in them.
#[test]
fn a_directory_changes() {
    for settings in BOTH {
        let bench = Bench::new(Folder::with([("d/a", "1"), ("d/e/b", "1")]), settings);
        bench.watch("d/");
        bench.watch("");
        bench.folder.write("d/a", "22");
        bench.folder.write("d/e/c", "");
        bench.folder.write("d/.hidden", "");
        bench.expect_nothing();
        bench.folder.write("d/c", "");
        bench.expect_updated("d/");
        fs::create_dir(bench.at("d/f")).unwrap();
        bench.expect_updated("d/");
        fs::remove_dir(bench.at("d/f")).unwrap();
        bench.expect_updated("d/");
        bench.expect_quiet();
        fs::rename(bench.at("d"), bench.at("g")).unwrap();
        bench.expect_updated("d/");
        bench.expect_updated("");
    }
}

// S-01: what `.gitignore` says now decides what is listed, what is read and what is watched.
#[test]
fn rules_are_edited() {
    for settings in BOTH {
        let folder =
            Folder::with([(".gitignore", "out\n"), (".git/info/exclude", ""), ("out/a", "1"), ("d/b", "1")]);
        let bench = Bench::new(folder, settings);
        bench.watch("out/a");
        bench.watch("d/b");
        bench.watch_lists();
        let expect_both = |path: &str| {
            bench.expect_updated(path);
            bench.expect(LIST);
        };
        bench.expect_quiet();
        bench.folder.write("out/a", "22");
        bench.expect_nothing();
        if !settings.polls {
            bench.expect_watched(&["", "d", "d/b", "sentinel"]);
        }
        bench.folder.write(".gitignore", "d\n");
        expect_both("out/a");
        bench.expect_updated("d/b");
        if !settings.polls {
            bench.expect_watched(&["", "out", "out/a", "sentinel"]);
        }
        bench.expect_quiet();
        bench.folder.write("out/a", "333");
        bench.expect_updated("out/a");
        // In a directory, and outside of what is served.
        bench.folder.write("out/.ignore", "a\n");
        expect_both("out/a");
        bench.expect_quiet();
        fs::remove_file(bench.at("out/.ignore")).unwrap();
        expect_both("out/a");
        bench.expect_quiet();
        bench.folder.write(".git/info/exclude", "out/a\n");
        expect_both("out/a");
    }
}
