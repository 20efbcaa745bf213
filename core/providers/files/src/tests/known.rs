//! Tests of what is remembered of directories between two requests.

use super::swap::{Until, exchange};
use super::*;
use crate::directory_names::DirectoryNames;
use crate::known_directories::KnownDirectories;

/// The age of a change that these tests take for settled.
const SETTLED: Duration = Duration::from_millis(50);

/// A root whose directories are known from their second read on.
fn tree_of(folder: &Folder, at: &str, way: Resolution) -> Arc<Tree> {
    let mut tree = folder.tree_at(at, way, |options| options);
    Arc::get_mut(&mut tree).unwrap().settle_after(SETTLED);
    tree
}

/// Lets all changes until now settle, and reads the paths so often that their directories are known.
fn know(tree: &Tree, paths: &[&str]) {
    std::thread::sleep(SETTLED * 2);
    for path in paths.iter().chain(paths) {
        read(tree, path).unwrap();
    }
}

// S-01: a rule file that comes or goes in a directory counts at once, however well that directory is known.
#[test]
fn rules_that_come_and_go_in_known_directories() {
    for way in WAYS {
        let folder = Folder::with([("x", "x"), ("d/x", "dx"), ("d/e/x", "ex")]);
        let tree = tree_of(&folder, "", way);
        for (rules, hidden, shown) in [
            (".ignore", &["x", "d/x", "d/e/x"][..], &[][..]),
            (".gitignore", &["x", "d/x", "d/e/x"], &[]),
            ("d/.ignore", &["d/x", "d/e/x"], &["x"]),
            ("d/.gitignore", &["d/x", "d/e/x"], &["x"]),
            ("d/.git/info/exclude", &["d/x", "d/e/x"], &["x"]),
            ("d/e/.gitignore", &["d/e/x"], &["x", "d/x"]),
            ("d/e/.git/info/exclude", &["d/e/x"], &["x", "d/x"]),
        ] {
            for _ in 0..2 {
                know(&tree, &["x", "d/x", "d/e/x"]);
                folder.write(rules, "x\n");
                for path in hidden {
                    assert_eq!(read(&tree, path), NONE, "{rules} {path}");
                }
                for path in shown {
                    assert!(read(&tree, path).is_ok(), "{rules} {path}");
                }
                let at = folder.0.join(rules);
                match rules.split_once(".git/") {
                    Some((at, _)) => fs::remove_dir_all(folder.0.join(at).join(".git")).unwrap(),
                    None => fs::remove_file(at).unwrap(),
                }
                assert_eq!((read(&tree, "x"), read(&tree, "d/e/x")), (ok("x"), ok("ex")), "{rules} is gone");
            }
        }
    }
}

// S-01: another directory in the place of a known one, or of one above it, is another directory.
#[test]
fn known_directories_that_are_exchanged() {
    for way in WAYS {
        let folder = Folder::with([
            ("a/b/x", "shown"),
            ("other/x", "hidden"),
            ("other/.gitignore", "x\n"),
            ("above/b/x", "hidden"),
            ("above/b/.gitignore", "x\n"),
        ]);
        let tree = tree_of(&folder, "", way);
        for (at, other) in [("a/b", "other"), ("a", "above")] {
            know(&tree, &["a/b/x"]);
            exchange(&folder.0, at, other);
            assert_eq!(read(&tree, "a/b/x"), NONE, "{at}");
            exchange(&folder.0, at, other);
            assert_eq!(read(&tree, "a/b/x"), ok("shown"), "{at}");
        }
    }
}

// S-01: a directory above is exchanged all the time, so that the search for rules may be led elsewhere. What is found there is
// not believed of the directory itself.
#[test]
fn nothing_is_learned_of_another_directory() {
    let folder = Folder::with([
        ("a/b/x", "hidden"),
        ("a/b/.gitignore", "x\n"),
        (".a/b/x", "shown"),
        ("a/b/y", "y"),
        (".a/b/y", "y"),
    ]);
    for way in WAYS {
        let tree = tree_of(&folder, "", way);
        std::thread::sleep(SETTLED * 2);
        let over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            let _until = Until(&over);
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    exchange(&folder.0, "a", ".a");
                    exchange(&folder.0, "a", ".a");
                    std::thread::yield_now();
                }
            });
            let until = std::time::Instant::now() + Duration::from_millis(500);
            while std::time::Instant::now() < until {
                let _ = (read(&tree, "a/b/x"), read(&tree, "a/b/y"));
            }
        });
        assert_eq!((read(&tree, "a/b/x"), read(&tree, "a/b/y")), (NONE, ok("y")));
    }
}

/// The names that the root is known to lack after a look for `name`.
fn names_in(tree: &Tree, known: &KnownDirectories, name: &str) -> DirectoryNames {
    known.names(&tree.open().unwrap(), name.as_bytes()).at(0)
}

// S-01: what directories lack is known once their last change is old enough, and where the file system is strict.
#[test]
fn what_is_known_of_a_directory() {
    let folder = Folder::with([("d/500", ""), ("d/a.txt", ""), ("d/.gitignore", "")]);
    let tree = folder.tree_at("d", Resolution::best(), |options| options);
    let nothing = DirectoryNames::default();
    // A change could follow within the same tick of the clock.
    assert_eq!(names_in(&tree, &KnownDirectories::with_settled(Duration::from_secs(600)), "a.txt"), nothing);
    std::thread::sleep(SETTLED * 2);
    let known = KnownDirectories::with_settled(SETTLED);
    let is_strict = tree.open().unwrap().open(b"").unwrap().into_dir().unwrap().has_strict_stamps();
    if !is_strict {
        assert_eq!(names_in(&tree, &known, "a.txt"), nothing);
        return;
    }
    let untried = DirectoryNames { lack_git: true, lack_ignore: true, ..nothing };
    for _ in 0..2 {
        assert_eq!(names_in(&tree, &known, "500"), untried, "this name has no case");
    }
    for _ in 0..2 {
        assert_eq!(names_in(&tree, &known, "a.txt"), DirectoryNames { tell_case: true, ..untried });
    }
    fs::remove_file(folder.0.join("d/.gitignore")).unwrap();
    let all = DirectoryNames { lack_gitignore: true, tell_case: true, ..untried };
    // On a slow machine the change may have settled by now.
    assert!([nothing, all].contains(&names_in(&tree, &known, "a.txt")));
    std::thread::sleep(SETTLED * 2);
    assert_eq!(names_in(&tree, &known, "a.txt"), all);
}

// S-01: a search that ends up in another directory than the one that was looked at finds nothing, and keeps nothing.
#[test]
fn a_search_in_another_directory() {
    let folder = Folder::with([("a/x", ""), ("a/.gitignore", "x\n"), ("b/x", "")]);
    let tree = folder.tree(Resolution::best(), |options| options);
    let known = KnownDirectories::with_settled(SETTLED);
    std::thread::sleep(SETTLED * 2);
    let root = tree.open().unwrap();
    let stamp = |path: &[u8]| root.look_at(path).unwrap();
    assert_eq!(known.search(&root, b"b", b"x", &stamp(b"a")), DirectoryNames::default());
    assert!(!known.names(&root, b"a/x").at(1).lack_gitignore);
    let is_strict = root.open(b"b").unwrap().into_dir().unwrap().has_strict_stamps();
    assert_eq!(known.search(&root, b"b", b"x", &stamp(b"b")).lack_gitignore, is_strict);
}

// S-01: one file under both names is what a directory looks like that does not tell them apart.
#[test]
fn case_that_is_in_doubt() {
    let folder = Folder::with([("same", ""), ("other", ""), ("OTHER", "")]);
    let upper = folder.0.join("SAME");
    if fs::hard_link(folder.0.join("same"), &upper).is_err() {
        return;
    }
    std::thread::sleep(SETTLED * 2);
    let tree = folder.tree(Resolution::best(), |options| options);
    let tells = |name| {
        let known = KnownDirectories::with_settled(SETTLED);
        (0..2).map(|_| names_in(&tree, &known, name).tell_case).collect::<Vec<_>>()
    };
    assert_eq!(tells("same"), [false, false]);
    let is_strict = tree.open().unwrap().open(b"").unwrap().into_dir().unwrap().has_strict_stamps();
    assert_eq!(tells("other"), [is_strict, is_strict]);
    assert_eq!(tells("absent"), [false, false]);
}
