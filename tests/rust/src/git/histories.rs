//! Logs of random histories with merges, beside those of git.

use super::commits::{Dice, cases};
use super::*;
use std::fmt::Write as _;

/// A stream for `git fast-import`: commits with up to three parents, some of them older than their parents.
fn random_history(dice: &mut Dice, commits: usize) -> String {
    let mut stream = String::new();
    let mut time = 1_500_000_000;
    for number in 1..=commits {
        time += dice.roll(3) * 60;
        let skewed = if dice.roll(10) == 0 { time - 7_200 } else { time };
        let branch = if number == commits { "main".into() } else { format!("b{}", dice.roll(4)) };
        let _ = writeln!(stream, "commit refs/heads/{branch}\nmark :{number}");
        let _ = writeln!(stream, "committer A <a@b> {skewed} +0000\ndata 1\nx");
        if number > 1 {
            let mut parents = vec![number - 1 - dice.roll(number.min(5).saturating_sub(1).max(1))];
            while dice.roll(4) == 0 && parents.len() < 3 {
                let other = 1 + dice.roll(number - 1);
                if !parents.contains(&other) {
                    parents.push(other);
                }
            }
            for (at, parent) in parents.iter().enumerate() {
                let _ = writeln!(stream, "{} :{parent}", if at == 0 { "from" } else { "merge" });
            }
        }
        for _ in 0..dice.roll(3) {
            let path = dice.pick(&["a", "b", "dir/a", "dir/sub/b", "dir/sub/c", "other/a", "dir/\u{e9}"]);
            match dice.roll(7) {
                0 => drop(writeln!(stream, "D {path}")),
                // A rename, if the other had this text.
                6 => drop(writeln!(stream, "D b\nM 100644 inline {path}\ndata 1\n2")),
                1 => drop(writeln!(stream, "M 100755 inline {path}\ndata 1\n1")),
                text => drop(writeln!(stream, "M 100644 inline {path}\ndata 1\n{text}")),
            }
        }
        stream.push('\n');
    }
    stream
}

/// Gives a repository one of the forms of a commit-graph, or none.
fn write_graph(folder: &Folder, dice: &mut Dice, form: usize) {
    let git = |arguments: &[&str]| drop(folder.git("project", arguments));
    let ids = folder.git("project", &["log", "--format=%H"]);
    let older = ids.lines().nth(dice.roll(30)).or(ids.lines().next()).unwrap();
    let write = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--reachable"]).collect();
        git(&words);
    };
    let stdin = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--stdin-commits"]).collect();
        super::git(&folder.at("project"), &words, format!("{older}\n").as_bytes());
    };
    let file = folder.at("project/.git/objects/info/commit-graph");
    match form {
        0 => {}
        1 => write("commit-graph write --changed-paths"),
        2 => git(&["repack", "-q", "-a", "-d", "-f", "--depth=20", "--write-midx"]),
        3 => write("commit-graph write --no-changed-paths"),
        4 => write("-c commitGraph.changedPathsVersion=2 commit-graph write --changed-paths"),
        // Too old: the newest commits are not in it.
        5 => stdin("commit-graph write --changed-paths"),
        // Two layers.
        6 => {
            stdin("commit-graph write --split=no-merge --changed-paths");
            write("commit-graph write --split=no-merge --changed-paths");
        }
        // Damaged, or cut.
        _ => {
            write("commit-graph write --changed-paths");
            let mut bytes = fs::read(&file).unwrap();
            let at = dice.roll(bytes.len());
            if form == 7 {
                bytes[at] ^= 1 << dice.roll(8)
            } else {
                bytes.truncate(at)
            }
            fs::remove_file(&file).unwrap();
            fs::write(&file, bytes).unwrap();
        }
    }
}

/// S-02: which commits the log of a path has, and in which order, is decided as git does: in loose files and packs, with a
/// commit-graph and its changed paths, and with one that is too old, in layers, damaged or cut.
#[tokio::test]
async fn logs_of_random_histories_are_those_of_git() {
    let mut dice = Dice::new(1);
    for case in 0..cases(27).min(500) {
        let folder = Folder::new();
        fs::create_dir(folder.at("project")).unwrap();
        folder.git("project", &["init", "-q", "-b", "main"]);
        let stream = random_history(&mut dice, 60);
        git(&folder.at("project"), &["fast-import", "--quiet"], stream.as_bytes());
        write_graph(&folder, &mut dice, case % 9);
        let mut client = client(options(&folder));
        // What git makes of a damaged table is no measure.
        let all = folder.git("project", &["-c", "core.commitGraph=false", "log", "--format=%H"]);
        let log = json_at(&mut client, "git:///project/log").await;
        assert_eq!(each(&log, "commits", "id"), all.lines().collect::<Vec<_>>(), "case {case}");
        for path in [
            "a",
            "b",
            "dir",
            "dir/a",
            "dir/sub",
            "dir/sub/b",
            "dir/sub/c",
            "other",
            "none",
            "a/b",
            "dir/\u{e9}",
        ] {
            let expected = ["-c", "core.commitGraph=false", "log", "--format=%H", "--", path];
            let expected = folder.git("project", &expected);
            let expected: Vec<&str> = expected.lines().collect();
            let uri = format!("git:///project/log?path={}", path.replace('\u{e9}', "%C3%A9"));
            match client.read_text(&uri).await {
                Ok(log) => {
                    let log: Value = serde_json::from_str(&log).unwrap();
                    assert_eq!(each(&log, "commits", "id"), expected, "case {case} {path}");
                    let first = json_at(&mut client, &format!("{uri}&n=1")).await;
                    assert_eq!(each(&first, "commits", "id"), expected[..1], "case {case} {path}");
                    assert_eq!(first["more"], expected.len() > 1, "case {case} {path}");
                }
                Err(_) => assert_eq!(expected, [""; 0], "case {case} {path}"),
            }
        }
    }
}

/// S-02: the newest tags and branches come first; the rest follows page by page, and completion finds each.
#[tokio::test]
async fn tags_and_branches_come_in_pages() {
    let folder = Folder::new();
    folder.repository("project");
    let mut stream = String::new();
    for number in 0..2_150 {
        // Three at a time have the same time.
        let time = 1_500_000_000 + number / 3 * 60;
        let _ = writeln!(stream, "commit refs/heads/b/{number}\nmark :{}", number + 1);
        let _ = writeln!(stream, "committer A <a@b> {time} +0000\ndata 1\nx");
        match number % 2 {
            0 => drop(writeln!(stream, "\nreset refs/tags/t{number}\nfrom :{}\n", number + 1)),
            _ => drop(writeln!(
                stream,
                "\ntag t{number}\nfrom :{}\ntagger A <a@b> {} +0000\ndata 1\nx",
                number + 1,
                time + 3_600
            )),
        }
    }
    git(&folder.at("project"), &["fast-import", "--quiet"], stream.as_bytes());
    let mut client = client(options(&folder));
    for (kind, folder_of_refs) in [("tags", "refs/tags"), ("branches", "refs/heads")] {
        let expected = folder.git(
            "project",
            &[
                "for-each-ref",
                "--sort=refname",
                "--sort=-creatordate",
                "--format=%(refname:lstrip=2)",
                folder_of_refs,
            ],
        );
        let expected: Vec<&str> = expected.lines().collect();
        let mut found = Vec::new();
        let mut uri = format!("git:///project/{kind}");
        let mut pages = 0;
        loop {
            let page = json_at(&mut client, &uri).await;
            found.extend(each(&page, kind, "name").into_iter().map(str::to_owned));
            pages += 1;
            assert_eq!(page["more"], page["next"].is_string());
            let Some(next) = page["next"].as_str() else { break };
            uri = next.to_owned();
        }
        assert_eq!((found, pages), (expected.iter().map(|name| (*name).to_owned()).collect(), 3), "{kind}");
        for wrong in ["x", "1", "-b", "99999999999999999999-b"] {
            let error = client.read(&format!("git:///project/{kind}?after={wrong}")).await.unwrap_err();
            assert_eq!((error.code, &error.data["parameter"]), (-32602, &json!("after")), "{wrong}");
        }
        // What the page ended with may be gone.
        assert!(client.read(&format!("git:///project/{kind}?after=1500000000-none")).await.is_ok());
    }
    let found = client.complete("git:///{repo}/log/{ref}", "ref", "t109", &[]).await.unwrap();
    assert!(found.values.contains(&"t1090".to_owned()), "{found:?}");
}
