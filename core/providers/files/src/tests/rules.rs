//! Tests of rules outside the served tree, and of rule files that cannot be read.

use super::*;
use std::process::Command;

fn git(at: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"]);
    let output = command.args(arguments).current_dir(at).output().expect("git is needed");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The files that git shows in a working tree, tracked or not, without those whose names begin with a dot.
fn shown_by_git(at: &Path) -> Vec<String> {
    let mut command = Command::new("git");
    command.args(["-c", "core.excludesFile=", "ls-files", "--others", "--exclude-standard", "-z"]);
    let output = command.current_dir(at).output().unwrap();
    let names = output.stdout.split(|byte| *byte == 0).map(|name| String::from_utf8(name.to_vec()).unwrap());
    let mut names: Vec<_> =
        names.filter(|name| !name.is_empty() && name.split('/').all(|part| !part.starts_with('.'))).collect();
    names.sort();
    names
}

fn listed(folder: &Folder, at: &str, options: impl FnOnce(FileOptions) -> FileOptions) -> Vec<String> {
    let tree = folder.tree_at(at, Resolution::best(), options);
    let mut names: Vec<_> =
        walk(&[tree], 100, |_| {}).iter().map(|uri| uri.strip_prefix("r/").unwrap().to_owned()).collect();
    names.sort();
    names
}

// S-01: `info/exclude` is that of the repository: of a linked worktree's, of a submodule's, and of the one that is served.
#[test]
fn excludes_of_worktrees_and_submodules() {
    let folder = Folder::new();
    let at = |path: &str| folder.0.join(path);
    for repository in ["main", "library"] {
        fs::create_dir(at(repository)).unwrap();
        git(&at(repository), &["init", "--quiet"]);
        git(&at(repository), &["commit", "--quiet", "--allow-empty", "--message", "x"]);
    }
    folder.write("main/.git/info/exclude", "local.txt\n");
    git(&at("main"), &["worktree", "add", "--quiet", "../tree"]);
    git(&at("main"), &["submodule", "--quiet", "add", "../library", "sub"]);
    folder.write("main/.git/modules/sub/info/exclude", "own.txt\n");
    for directory in ["main", "tree", "main/sub"] {
        for name in ["local.txt", "own.txt", "shown.txt"] {
            folder.write(format!("{directory}/{name}"), "");
        }
    }
    assert_eq!(listed(&folder, "tree", |options| options), shown_by_git(&at("tree")));
    assert_eq!(listed(&folder, "tree", |options| options), ["own.txt", "shown.txt"]);
    assert_eq!(listed(&folder, "main/sub", |options| options), shown_by_git(&at("main/sub")));
    // The rules of the repository around the submodule hold in it too.
    assert_eq!(listed(&folder, "main", |options| options), ["own.txt", "shown.txt", "sub/shown.txt"]);
    let tree = folder.tree_at("main", Resolution::best(), |options| options);
    assert_eq!(read(&tree, "sub/own.txt"), NONE);
    folder.write("main/.git/modules/sub/info/exclude", "shown.txt\n");
    assert_eq!((read(&tree, "sub/own.txt"), read(&tree, "sub/shown.txt")), (ok(""), NONE));
}

// S-01: `info/exclude` counts as it is now, in the root and above it, also where it is a link that leads out of the root.
#[test]
fn excludes_that_change() {
    let folder = Folder::with([("main/sub/x", ""), ("main/x", ""), ("rules", "x\n")]);
    let repository = folder.0.join("main");
    git(&repository, &["init", "--quiet"]);
    let exclude = repository.join(".git/info/exclude");
    let trees = ["main", "main/sub"].map(|at| folder.tree_at(at, Resolution::best(), |options| options));
    for _ in 0..2 {
        for tree in &trees {
            fs::write(&exclude, "").unwrap();
            assert_eq!(read(tree, "x"), ok(""));
            fs::write(&exclude, "x\n").unwrap();
            assert_eq!(read(tree, "x"), NONE);
            fs::remove_file(&exclude).unwrap();
            assert_eq!(read(tree, "x"), ok(""));
            symlink("../../../rules", &exclude).unwrap();
            assert_eq!(read(tree, "x"), NONE);
            fs::remove_file(&exclude).unwrap();
        }
    }
}

// S-01: a repository that is made around a root, or in it, counts.
#[test]
fn a_repository_that_comes_later() {
    let folder = Folder::with([
        ("outer/inner/a.txt", ""),
        ("outer/inner/sub/b.txt", ""),
        ("outer/inner/sub/c.txt", ""),
    ]);
    let tree = folder.tree_at("outer/inner", Resolution::best(), |options| options);
    assert_eq!(read(&tree, "a.txt"), ok(""));
    git(&folder.0.join("outer/inner/sub"), &["init", "--quiet"]);
    folder.write("outer/inner/sub/.git/info/exclude", "b.txt\n");
    assert_eq!((read(&tree, "sub/b.txt"), read(&tree, "sub/c.txt")), (NONE, ok("")));
    git(&folder.0.join("outer"), &["init", "--quiet"]);
    folder.write("outer/.gitignore", "/inner/a.txt\n");
    let until = std::time::Instant::now() + Duration::from_secs(30);
    while read(&tree, "a.txt") != NONE {
        assert!(std::time::Instant::now() < until);
    }
}

// S-01: upper and lower case are the same where the repository's configuration says so, as for git. A change of it counts soon.
#[test]
fn case_is_that_of_the_repository() {
    let folder = Folder::new();
    git(&folder.0, &["init", "--quiet"]);
    folder.write(".gitignore", "BUILD/\n*.Log\n[A-B]x\n");
    for name in ["build/a", "x.log", "y.LOG", "ax", "cx"] {
        folder.write(name, "");
    }
    let tree = folder.tree(Resolution::best(), |options| options);
    for folds in ["true", "false"] {
        git(&folder.0, &["config", "core.ignorecase", folds]);
        let found = || {
            let mut found: Vec<_> = walk(std::slice::from_ref(&tree), 100, |_| {})
                .iter()
                .map(|uri| uri[2..].to_owned())
                .collect();
            found.sort();
            found
        };
        let shown = shown_by_git(&folder.0);
        let until = std::time::Instant::now() + Duration::from_secs(30);
        while found() != shown {
            assert!(std::time::Instant::now() < until, "{folds}: {:?} {shown:?}", found());
        }
    }
}

// S-01, S-11: rules that are there and cannot be read hide what they could be about, and the log says so, once.
#[test]
fn rules_that_cannot_be_read_hide() {
    type Spoil = fn(&Path);
    let fifo: Spoil = |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    let socket: Spoil = |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap());
    let huge: Spoil = |path| fs::File::create(path).unwrap().set_len(2 * 1024 * 1024).unwrap();
    for (spoil, reason) in
        [(fifo, "it is no file"), (socket, "it is no file"), (huge, "more than 1048576 bytes")]
    {
        for (rules, hidden, shown) in [
            (".gitignore", &["a", "d/b"][..], &[][..]),
            ("d/.gitignore", &["d/b"], &["a"]),
            ("d/.ignore", &["d/b"], &["a"]),
            (".git/info/exclude", &["a", "d/b"], &[]),
            (".git", &["a", "d/b"], &[]),
            ("d/.git", &["d/b"], &["a"]),
        ] {
            if rules.ends_with(".git") && reason.contains("bytes") {
                continue;
            }
            let folder = Folder::with([("a", ""), ("d/b", "")]);
            fs::create_dir_all(folder.0.join(rules).parent().unwrap()).unwrap();
            spoil(&folder.0.join(rules));
            let tree = folder.tree(Resolution::best(), |options| options);
            for path in hidden {
                assert_eq!(read(&tree, path), NONE, "{rules} {path}");
            }
            for path in shown {
                assert_eq!(read(&tree, path), ok(""), "{rules} {path}");
            }
            let said = tree.take_faults();
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains(rules) && said[0].contains(reason), "{said:?}");
            let _ = read(&tree, "d/b");
            assert!(tree.take_faults().is_empty(), "it is said once");
            fs::remove_file(folder.0.join(rules)).unwrap();
            let until = std::time::Instant::now() + Duration::from_secs(30);
            while read(&tree, "d/b") != ok("") {
                assert!(std::time::Instant::now() < until, "{rules} is gone");
            }
        }
    }
}

// S-01: a directory or a link in the place of rules has none, as for git.
#[test]
fn what_is_no_file_of_rules() {
    let folder = Folder::with([("a", ""), ("d/b", ""), ("elsewhere", "a\nb\n")]);
    fs::create_dir(folder.0.join(".gitignore")).unwrap();
    symlink("../elsewhere", folder.0.join("d/.gitignore")).unwrap();
    git(&folder.0, &["init", "--quiet"]);
    assert_eq!(listed(&folder, "", |options| options), ["a", "d/b", "elsewhere"]);
    assert_eq!(shown_by_git(&folder.0), ["a", "d/b", "elsewhere"]);
    // Where links are followed, so is this one.
    let links = |options: FileOptions| options.symlinks(Symlinks::Inside);
    assert_eq!(listed(&folder, "", links), ["a", "elsewhere"]);
}

// S-01, S-11: a FIFO is not opened, so that who waits at its other end is not woken.
#[test]
fn a_fifo_is_only_looked_at() {
    use rustix::fs::{Mode, OFlags};
    for way in WAYS {
        let folder = Folder::with([("a.txt", "a")]);
        let fifo = folder.0.join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        symlink("fifo", folder.0.join("link")).unwrap();
        let trees = [Symlinks::Never, Symlinks::Inside]
            .map(|links| folder.tree(way, |options| options.symlinks(links)));
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2_000 {
                    for tree in &trees {
                        assert_eq!((read(tree, "fifo"), read(tree, "link")), (NONE, NONE));
                    }
                }
                done.store(true, Ordering::Relaxed);
            });
            // It can be opened for writing without waiting only while somebody has it open for reading.
            while !done.load(Ordering::Relaxed) {
                let opened = rustix::fs::open(&fifo, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty());
                assert!(opened.is_err(), "somebody reads it");
            }
        });
    }
}
