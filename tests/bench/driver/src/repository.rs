//! W12: a server of a git repository beside `git` itself, as a program that is started for each request.
//!
//! ```text
//!   target/bench/repository     10,000 commits; commit i adds dNN/fNN.txt, the first also d00/page.txt of 4 KiB;
//!                               the branch `wide` has one commit with f00000.txt … f99999.txt in one directory
//!   target/bench/repository.json   what `mcp-resources serve --config` is told of it
//! ```

use crate::client::Completed;
use crate::figures::Figures;
use crate::files::page_text;
use crate::measure::{self, Setting};
use crate::process::Launch;
use nix::sys::resource::{UsageWho, getrusage};
use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Where the repository is, from the root of this one.
pub(crate) const REPOSITORY: &str = "target/bench/repository";
/// Completes more often than the default rate allows.
const CONFIG: &str = r#"{"providers": [{"git": {"repos": {"project": "repository"}}}],
"guard": {"rate": {"completion": {"per_second": 1000000, "burst": 1000000}}}}
"#;
/// How many commits it has, and files.
const COMMITS: u32 = 10_000;
/// How many files the directory of the branch `wide` has.
const WIDE: u32 = 100_000;
/// The name of one of the last.
const LAST: &str = "f99997.txt";
/// How many commits of the log are read.
const LOGGED: usize = 100;

/// What is asked of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Query {
    /// A file of 4 KiB at HEAD.
    Blob,
    /// The newest commits.
    Log,
    /// Of a working tree in which nothing has changed.
    Status,
    /// Not read: the completion of a path in a directory with 100,000 files.
    Complete,
}

impl Query {
    pub(crate) const ALL: [Self; 4] = [Self::Blob, Self::Log, Self::Status, Self::Complete];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Blob => "W12-blob",
            Self::Log => "W12-log",
            Self::Status => "W12-status",
            Self::Complete => "W12-complete",
        }
    }

    pub(crate) fn uri(self) -> String {
        match self {
            Self::Blob => "git:///project/blob/HEAD/d00/page.txt".into(),
            Self::Log => format!("git:///project/log?n={LOGGED}"),
            Self::Status => "git:///project/status".into(),
            Self::Complete => format!("git:///project/blob/wide/{LAST}"),
        }
    }

    /// Whether a server's text is the answer.
    pub(crate) fn accepts(self, text: &str) -> bool {
        match self {
            Self::Blob => text == page_text(),
            Self::Log => text.matches("\"subject\":\"Commit ").count() == LOGGED,
            Self::Status => text.contains("\"clean\":true"),
            Self::Complete => false,
        }
    }

    /// What is completed, if it is not read.
    pub(crate) fn completes(self) -> Option<Completed> {
        (self == Self::Complete).then_some(Completed {
            template: "git:///{repo}/blob/{ref}/{+path}",
            variable: "path",
            typed: "f99997",
            others: r#"{"repo":"project","ref":"wide"}"#,
        })
    }

    /// Whether these are the values of the completion.
    pub(crate) fn accepts_completed(self, values: &[Cow<'_, str>]) -> bool {
        self == Self::Complete && values == [LAST]
    }

    /// What git is told, and whether what it prints is the answer.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Blob => &["show", "HEAD:d00/page.txt"],
            Self::Log => &["log", "-100", "--format=%H %P %an %ae %aI %s"],
            Self::Status => &["status", "--porcelain=v2", "--branch"],
            Self::Complete => &["ls-tree", "--name-only", "wide"],
        }
    }

    fn accepts_printed(self, text: &str) -> bool {
        match self {
            Self::Blob => text == page_text(),
            Self::Log => text.lines().count() == LOGGED,
            Self::Status => text.lines().all(|line| line.starts_with("# ")) && !text.is_empty(),
            Self::Complete => text.lines().any(|line| line == LAST),
        }
    }
}

/// Makes the repository, and measures a server of it, or git.
pub(crate) fn measure(launch: &Launch, query: Query, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    make()?;
    if launch.command.first().is_some_and(|program| program == "git") {
        return git(launch, query.arguments(), |text| query.accepts_printed(text), setting);
    }
    measure::measure(launch, setting)
}

/// Starts git for each request; `accepts` checks what it prints.
pub(crate) fn git(
    launch: &Launch,
    arguments: &[&str],
    accepts: impl Fn(&str) -> bool,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    let words = &launch.command;
    let mut latencies = Vec::new();
    let mut done = 0;
    let cpu = children_ns()?;
    let start = Instant::now();
    while done < setting.requests && start.elapsed() < setting.time {
        let sent = Instant::now();
        let output = Command::new("git").args(&words[1..]).args(arguments).output()?;
        latencies.push(u64::try_from(sent.elapsed().as_nanos())?);
        if !output.status.success() || !accepts(&String::from_utf8(output.stdout)?) {
            return Err(format!("git {arguments:?} gives another answer").into());
        }
        done += 1;
    }
    let cpu = children_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::of_requests(latencies, done, wall, cpu))
}

/// The processor time of all children that have ended, in nanoseconds.
fn children_ns() -> Result<u64, Box<dyn Error>> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let time = [usage.user_time(), usage.system_time()]
        .iter()
        .try_fold(Duration::ZERO, |sum, time| {
            let whole = Duration::from_secs(u64::try_from(time.tv_sec()).ok()?);
            Some(sum + whole + Duration::from_micros(u64::try_from(time.tv_usec()).ok()?))
        })
        .ok_or("a negative time")?;
    Ok(u64::try_from(time.as_nanos())?)
}

/// Makes it, unless it is there as it is made now.
fn make() -> Result<(), Box<dyn Error>> {
    let path = Path::new(REPOSITORY);
    fs::create_dir_all(path)?;
    fs::write(path.with_extension("json"), CONFIG)?;
    let ready = path.with_extension("ready");
    let made = format!("2: {COMMITS} commits, {WIDE} files in a directory\n");
    if fs::read_to_string(&ready).is_ok_and(|found| found == made) {
        return Ok(());
    }
    if path.exists() {
        fs::remove_dir_all(path)?;
    }
    fs::create_dir_all(path)?;
    run(&["init", "-q", "-b", "main"], "")?;
    run(&["fast-import", "--quiet"], &history()?)?;
    run(&["reset", "-q", "--hard"], "")?;
    Ok(fs::write(ready, made)?)
}

/// All commits, as `git fast-import` takes them.
fn history() -> Result<String, Box<dyn Error>> {
    let mut all = String::new();
    for number in 0..COMMITS {
        let message = format!("Commit {number}");
        let time = 1_700_000_000 + number;
        write!(all, "commit refs/heads/main\ncommitter Ada <ada@example.org> {time} +0000\n")?;
        write!(all, "data {}\n{message}\n", message.len())?;
        let mut file =
            |path: &str, text: &str| write!(all, "M 644 inline {path}\ndata {}\n{text}\n", text.len());
        file(&format!("d{:02}/f{:02}.txt", number / 100, number % 100), &format!("{number}\n"))?;
        if number == 0 {
            file("d00/page.txt", &page_text())?;
        }
    }
    write!(all, "blob\nmark :1\ndata 4\nwide\n")?;
    write!(all, "commit refs/heads/wide\ncommitter Ada <ada@example.org> 1700000000 +0000\ndata 4\nWide\n")?;
    for number in 0..WIDE {
        writeln!(all, "M 644 :1 f{number:05}.txt")?;
    }
    Ok(all)
}

fn run(arguments: &[&str], input: &str) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(REPOSITORY).stdin(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(input.as_bytes())?;
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("git {arguments:?}: {status}").into()) }
}
