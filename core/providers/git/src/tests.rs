//! Tests of work that stops when its request is cancelled.

use super::*;
use mcp_resources_provider_kit::named::NamedPath;
use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A repository with much of everything, gone with it.
struct Large(PathBuf);

impl Drop for Large {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn git(dir: &Path, arguments: &[&str], input: &[u8]) {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("these tests make repositories with the git program; install git");
    child.stdin.take().unwrap().write_all(input).unwrap();
    assert!(child.wait().unwrap().success(), "git {arguments:?}");
}

fn large(name: &str) -> Large {
    let dir = std::env::temp_dir().join(format!("mcp-git-large-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    git(&dir, &["init", "-q", "-b", "main"], b"");
    let mut stream = String::new();
    for number in 0..300 {
        let _ = writeln!(
            stream,
            "commit refs/heads/main\ncommitter A <a@b> {} +0000\ndata 1\nx",
            1_500_000_000 + number
        );
        let _ = writeln!(stream, "M 644 inline d{}/f{number}.txt\ndata 4\n{number:04}", number % 20);
        let _ = writeln!(stream, "reset refs/tags/t{number}\nfrom refs/heads/main\n");
    }
    let noise: String =
        (0..1_500_000_u32).map(|n| char::from(b'a' + (n.wrapping_mul(2_654_435_761) >> 28) as u8)).collect();
    let _ = writeln!(stream, "commit refs/heads/main\ncommitter A <a@b> 1600000000 +0000\ndata 1\nx");
    let _ = writeln!(stream, "M 644 inline large.txt\ndata {}\n{noise}", noise.len());
    git(&dir, &["fast-import", "--quiet"], stream.as_bytes());
    git(&dir, &["reset", "-q", "--hard"], b"");
    for number in 0..100 {
        std::fs::write(dir.join(format!("new{number}")), "x").unwrap();
        std::fs::write(dir.join(format!("d{}/f{number}.txt", number % 20)), "xxxx").unwrap();
    }
    Large(dir)
}

/// Requests `target` and cancels at the check number `stop_at`. Returns the answer and the number of checks.
fn asked(repository: &GitRepository, target: &GitTarget, stop_at: usize) -> (Result<(), ReadError>, usize) {
    let questions = Cell::new(0);
    let is_over = || {
        questions.set(questions.get() + 1);
        questions.get() > stop_at
    };
    let context = RequestContext::detached().until(&is_over);
    let answer = repository.with(&context, |handle| match target {
        GitTarget::Status => status::status(handle, &context).map(drop),
        GitTarget::Branches => references::branches(handle, None, &context).map(drop),
        GitTarget::Tags => references::tags(handle, None, &context).map(drop),
        GitTarget::Log(_) => {
            let log = LogRequest { revision: None, path: Some("d1/f1.txt"), max: 10 };
            commits::log(handle, &log, &context).map(drop)
        }
        GitTarget::Commit(id) => commits::commit(handle, id, &context).map(drop),
        GitTarget::Diff(from, to) => patch::diff(handle, from, to, &context).map(drop),
        GitTarget::Path(revision, path) => {
            contents::blob(handle, revision, std::str::from_utf8(path).unwrap(), &context).map(drop)
        }
        GitTarget::Lists => Ok(()),
    });
    (answer, questions.get())
}

// S-02: every kind of answer asks, again and again, whether somebody still waits, and ends at the next question.
#[test]
fn every_answer_stops() {
    let folder = large("stops");
    let settings = Arc::new(GitOptions::new().diff_bytes(16 << 20).settings);
    let head = || GitRevision::parse("HEAD").unwrap();
    for (target, least) in [
        (GitTarget::Status, 400),
        (GitTarget::Branches, 2),
        (GitTarget::Tags, 600),
        (GitTarget::Log(None), 300),
        (GitTarget::Commit(GitRevision::parse("HEAD").unwrap()), 1),
        (GitTarget::Diff(GitRevision::parse("HEAD~300").unwrap(), head()), 300),
        (GitTarget::Path(head(), b"large.txt".to_vec()), 10),
    ] {
        let ask = |stop_at| {
            let named = NamedPath::new("large", &folder.0);
            asked(&GitRepository::new(&named, &settings).unwrap(), &target, stop_at)
        };
        let (answer, all) = ask(usize::MAX);
        assert_eq!(answer, Ok(()), "{target:?}");
        assert!(all >= least, "{target:?} asks {all} times");
        for stop_at in [0, all / 3, all / 2, all - 1] {
            let (answer, asked) = ask(stop_at);
            assert_eq!(answer, Err(ReadError::Failed), "{target:?} at {stop_at} of {all}");
            // Whatever reports the end may ask whether it is one.
            assert!(asked <= stop_at + 5, "{target:?} asks {asked} times, {stop_at} of {all}");
        }
    }
}
