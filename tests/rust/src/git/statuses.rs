//! The status of a working tree, beside `git status`.

use super::commits::{Dice, cases};
use super::*;
use std::collections::BTreeSet;

/// What `git status` says, without writing the index anew: `staged`, `unstaged`, `untracked` or `conflicted`, path and change.
fn by_git(folder: &Folder) -> BTreeSet<(String, String, String)> {
    let output = Command::new("git")
        .args(["status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal"])
        .current_dir(folder.at("project"))
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success());
    let word = |letter: &str| match letter {
        "A" => "added",
        "M" => "modified",
        "D" => "deleted",
        "T" => "type_changed",
        other => panic!("{other}"),
    };
    let mut all = BTreeSet::new();
    for line in String::from_utf8(output.stdout).unwrap().split_terminator('\0') {
        let staged = &line[..1];
        let unstaged = &line[1..2];
        let path = line[3..].to_owned();
        let mut push =
            |group: &str, change: &str| all.insert((group.to_owned(), path.clone(), change.to_owned()));
        match &line[..2] {
            "??" => drop(push("untracked", "")),
            "DD" | "AU" | "UD" | "UA" | "DU" | "AA" | "UU" => drop(push("conflicted", "")),
            _ => {
                if staged != " " {
                    push("staged", word(staged));
                }
                if unstaged != " " {
                    push("unstaged", word(unstaged));
                }
            }
        }
    }
    all
}

async fn ours(client: &mut Client) -> BTreeSet<(String, String, String)> {
    let status = json_at(client, "git:///project/status").await;
    let mut all = BTreeSet::new();
    for group in ["staged", "unstaged", "untracked", "conflicted"] {
        for item in status[group].as_array().unwrap() {
            let path = item["path"].as_str().or(item.as_str()).unwrap();
            all.insert((
                group.to_owned(),
                path.to_owned(),
                item["change"].as_str().unwrap_or_default().to_owned(),
            ));
        }
    }
    assert_eq!(status["clean"], all.is_empty());
    all
}

const PATHS: [&str; 14] = [
    "a.txt",
    "b.log",
    "c.bin",
    ".hidden",
    "dir/a.txt",
    "dir/b.log",
    "dir/sub/c.txt",
    "dir/sub/d.log",
    "other/a.txt",
    "other/x/y/z.txt",
    "build/out.o",
    "build/keep.txt",
    "new/a.txt",
    "new/b.log",
];

/// Does something to the working tree or the index.
fn step(dice: &mut Dice, folder: &Folder) {
    let path = dice.pick(&PATHS);
    let file = folder.at("project").join(path);
    let clear = || {
        if file.is_dir() && !file.is_symlink() {
            fs::remove_dir_all(&file).unwrap();
        } else if file.symlink_metadata().is_ok() {
            fs::remove_file(&file).unwrap();
        }
    };
    let quietly = |words: &[&str]| {
        let _ = Command::new("git").args(words).current_dir(folder.at("project")).output().unwrap();
    };
    let parent_is_dir = || fs::create_dir_all(file.parent().unwrap()).is_ok();
    match dice.roll(17) {
        0..=3 if parent_is_dir() => {
            clear();
            fs::write(&file, dice.pick(&["one\n", "two\n", "one\r\ntwo\r\n", "", "$Id$\n"])).unwrap();
        }
        4 => clear(),
        5 if parent_is_dir() => {
            clear();
            symlink(dice.pick(&["a.txt", "nowhere", "dir"]), &file).unwrap();
        }
        6 if file.is_file() && !file.is_symlink() => {
            let mode = dice.pick(&[0o644, 0o755]);
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        }
        7 | 8 => quietly(&["add", "-A", path]),
        9 => quietly(&["add", "-N", path]),
        10 => quietly(&["rm", "-q", "--cached", "-f", path]),
        11 => {
            let rules = ["*.log\n", "build/\n", "/dir/*\n!/dir/a.txt\n", "*\n!*/\n!*.txt\n", "# nothing\n"];
            let at = dice.pick(&[".gitignore", "dir/.gitignore", ".git/info/exclude"]);
            fs::create_dir_all(folder.at("project/dir")).ok();
            let _ = fs::write(folder.at("project").join(at), dice.pick(&rules));
        }
        12 => {
            let rules = [
                "* text=auto\n",
                "*.txt text eol=crlf\n",
                "*.txt -text\n",
                "*.txt ident\n",
                "*.log binary\n",
            ];
            let at = dice.pick(&[".gitattributes", "dir/.gitattributes", ".git/info/attributes"]);
            fs::create_dir_all(folder.at("project/dir")).ok();
            let _ = fs::write(folder.at("project").join(at), dice.pick(&rules));
        }
        13 => quietly(&[
            "update-index",
            dice.pick(&[
                "--assume-unchanged",
                "--no-assume-unchanged",
                "--skip-worktree",
                "--no-skip-worktree",
            ]),
            path,
        ]),
        14 if parent_is_dir() => {
            clear();
            quietly(&["init", "-q", path]);
        }
        15 if parent_is_dir() => {
            clear();
            quietly(&["--version"]);
            rustix_fifo(&file);
        }
        16 => quietly(&["commit", "-q", "-m", "x"]),
        _ => {}
    }
}

/// Makes a FIFO.
pub(super) fn rustix_fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// S-02: after random steps, each group has the paths and changes that `git status` says.
#[tokio::test]
async fn statuses_are_those_of_git() {
    let mut dice = Dice::new(5);
    for case in 0..cases(25).min(2_000) {
        let folder = Folder::new();
        folder.repository("project");
        folder.git("project", &["config", "core.autocrlf", dice.pick(&["true", "false", "input"])]);
        folder.git("project", &["config", "user.name", "A"]);
        folder.git("project", &["config", "user.email", "a@b"]);
        for _ in 0..6 {
            step(&mut dice, &folder);
        }
        if case % 5 == 0 {
            folder.git("project", &["update-index", "--split-index"]);
        }
        let mut client = client(options(&folder).hidden(true));
        for turn in 0..6 {
            step(&mut dice, &folder);
            let expected = by_git(&folder);
            let found = ours(&mut client).await;
            assert_eq!(found, expected, "case {case}, turn {turn}, in {}", folder.at("project").display());
        }
    }
}

/// S-02: of a sparse checkout, a file that is there counts, whether the index is sparse or not.
#[tokio::test]
async fn a_file_outside_of_a_sparse_checkout_counts_if_it_is_there() {
    for sparse in ["--sparse-index", "--no-sparse-index"] {
        let folder = Folder::new();
        folder.repository("project");
        for path in ["a/f", "b/f", "b/g", "b/deep/h"] {
            folder.write(format!("project/{path}"), "1\n");
        }
        folder.commit("project", "Add");
        folder.git("project", &["sparse-checkout", "set", "--cone", sparse, "a"]);
        let mut client = client(options(&folder));
        assert_eq!(ours(&mut client).await, BTreeSet::new());
        folder.write("project/b/f", "2\n");
        folder.write("project/b/deep/h", "1\n");
        folder.write("project/b/new", "1\n");
        folder.write("project/a/f", "2\n");
        let expected = by_git(&folder);
        assert_eq!(ours(&mut client).await, expected, "{sparse}");
        assert!(expected.iter().any(|(group, path, _)| group == "unstaged" && path == "b/f"), "{expected:?}");
        folder.git("project", &["config", "sparse.expectFilesOutsideOfPatterns", "true"]);
        assert_eq!(ours(&mut client).await, by_git(&folder), "{sparse}");
        // Without a sparse checkout, git leaves such files alone.
        folder.git("project", &["sparse-checkout", "disable"]);
        folder.git("project", &["update-index", "--skip-worktree", "a/f"]);
        assert_eq!(ours(&mut client).await, by_git(&folder), "{sparse}");
    }
}

/// S-02: submodules, conflicts, and a working tree of its own.
#[tokio::test]
async fn statuses_of_other_shapes() {
    let folder = Folder::new();
    folder.repository("project");
    folder.repository("part");
    folder.git("project", &["submodule", "add", "-q", "../part", "sub"]);
    folder.commit("project", "Add a submodule");
    let mut client = client(options(&folder).hidden(true));
    assert_eq!(ours(&mut client).await, by_git(&folder));
    fs::remove_dir_all(folder.at("project/sub")).unwrap();
    assert_eq!(ours(&mut client).await, by_git(&folder));
    folder.write("project/sub", "a file\n");
    assert_eq!(ours(&mut client).await, by_git(&folder));
    folder.git("project", &["checkout", "-q", "-f", "HEAD"]);

    folder.git("project", &["checkout", "-q", "-b", "side"]);
    folder.write("project/README.md", "side\n");
    folder.commit("project", "Side");
    folder.git("project", &["checkout", "-q", "main"]);
    folder.write("project/README.md", "main\n");
    folder.commit("project", "Main");
    let merge =
        Command::new("git").args(["merge", "-q", "side"]).current_dir(folder.at("project")).output().unwrap();
    assert!(!merge.status.success());
    assert_eq!(ours(&mut client).await, by_git(&folder));
    assert!(by_git(&folder).iter().any(|(group, ..)| group == "conflicted"));
}
