//! W23: a server of a long history beside `git`. The repositories are generated from one fixed rule.
//!
//! ```text
//!   target/bench/history         50,000 commits of which a quarter are merges, about 2,800 files, 20,000 tags; the file
//!                                t/t0000-basic.sh is changed 20 times
//!   target/bench/history-graph   the same objects, with a commit-graph that has the changed paths
//!   target/bench/history*.json   the configurations for `mcp-resources serve`
//! ```
//!
//! Law: sizes of the trees are those of git's own repository, because the cost of a log is that of its trees.

use crate::docs::{Dice, Searcher};
use crate::figures::{Figures, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
use crate::repository;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the repositories are, from the root of this one.
pub(crate) const PLAIN: &str = "target/bench/history";
pub(crate) const WITH_GRAPH: &str = "target/bench/history-graph";
/// The path whose log is read.
const CHANGED: &str = "t/t0000-basic.sh";
/// How often it changes.
const CHANGES: u32 = 20;
/// Directories with the number of their files, as in a tree of several thousand.
const DIRECTORIES: [(&str, u32); 12] = [
    ("", 500),
    ("t/", 1_000),
    ("t/lib/", 100),
    ("Documentation/", 300),
    ("Documentation/RelNotes/", 400),
    ("builtin/", 130),
    ("compat/", 80),
    ("compat/regex/", 10),
    ("contrib/", 60),
    ("po/", 40),
    ("refs/", 20),
    ("xdiff/", 16),
];
/// The most tags of one answer.
const PAGE: usize = 1_000;

/// The resource that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryQuery {
    /// The log of a path, in a repository without a commit-graph.
    Log,
    /// The log of a path, with a commit-graph and its changed paths.
    Graph,
    /// The newest tags.
    Tags,
}

impl HistoryQuery {
    pub(crate) const ALL: [Self; 3] = [Self::Log, Self::Graph, Self::Tags];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Log => "W23-log",
            Self::Graph => "W23-graph",
            Self::Tags => "W23-tags",
        }
    }

    /// The repository that is served.
    pub(crate) fn folder(self) -> &'static str {
        if self == Self::Graph { WITH_GRAPH } else { PLAIN }
    }

    fn uri(self) -> String {
        match self {
            Self::Log | Self::Graph => format!("git:///project/log?path={CHANGED}"),
            Self::Tags => "git:///project/tags".into(),
        }
    }

    fn accepts(self, text: &str) -> bool {
        match self {
            Self::Log | Self::Graph => text.matches("\"subject\":\"Change ").count() == CHANGES as usize + 1,
            Self::Tags => text.matches("\"subject\":").count() == PAGE,
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Log | Self::Graph => &["log", "--format=%H %P %an %ae %aI %s", "--", CHANGED],
            Self::Tags => &[
                "for-each-ref",
                "--sort=-creatordate",
                "--count=1000",
                "--format=%(refname:lstrip=2) %(objectname) %(*objectname) %(creatordate:iso-strict) %(subject)",
                "refs/tags",
            ],
        }
    }

    fn accepts_printed(self, text: &str) -> bool {
        let lines = text.lines().count();
        if self == Self::Tags { lines == PAGE } else { lines == CHANGES as usize + 1 }
    }
}

/// The size of a generated history.
#[derive(Clone, Copy)]
struct HistorySize {
    commits: u32,
    tags: u32,
}

impl HistorySize {
    fn new(is_quick: bool) -> Self {
        if is_quick { Self { commits: 2_000, tags: 1_500 } } else { Self { commits: 50_000, tags: 20_000 } }
    }
}

/// Makes the repositories, and measures a server of one, or git.
pub(crate) fn measure(
    launch: &Launch,
    query: HistoryQuery,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    make(setting.is_quick)?;
    if launch.command.first().is_some_and(|program| program == "git") {
        return repository::git(launch, query.arguments(), |text| query.accepts_printed(text), setting);
    }
    let mut reader = Searcher::new(Server::start(launch, None)?, setting.modern)?;
    let uri = query.uri();
    let mut read = || -> Result<(Duration, u64), Box<dyn Error>> {
        let cpu = reader.server.cpu_ns()?;
        let sent = Instant::now();
        let text = reader.search(&uri)?;
        let took = sent.elapsed();
        if !query.accepts(&text) {
            return Err(format!("wrong contents of {uri}").into());
        }
        Ok((took, reader.server.cpu_ns()? - cpu))
    };
    // git starts anew for each request, so the first one is the one to compare.
    let (first, first_cpu) = read()?;
    let mut latencies = Vec::new();
    let mut done = 0;
    let mut cpu = 0;
    let start = Instant::now();
    while done == 0 || done < setting.requests && start.elapsed() < setting.time {
        let (took, spent) = read()?;
        latencies.push(u64::try_from(took.as_nanos())?);
        cpu += spent;
        done += 1;
    }
    Ok(Figures::of_requests(latencies, done, start.elapsed(), cpu)
        .with("first_ms", first.as_secs_f64() * 1_000.0)
        .with("cpu_first_us", per(micros(first_cpu), 1)))
}

/// Makes both, unless they are there as they are made now.
pub(crate) fn make(is_quick: bool) -> Result<(), Box<dyn Error>> {
    let size = HistorySize::new(is_quick);
    let plain = Path::new(PLAIN);
    let graph = Path::new(WITH_GRAPH);
    let ready = plain.with_extension("ready");
    let made = format!("1: {} commits, {} tags\n", size.commits, size.tags);
    if fs::read_to_string(&ready).is_ok_and(|found| found == made) {
        return Ok(());
    }
    for path in [plain, graph] {
        if path.exists() {
            fs::remove_dir_all(path)?;
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let config = serde_json::json!({ "providers": [{ "git": { "repos": { "project": name } } }] });
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path.with_extension("json"), config.to_string())?;
    }
    git(".", &["init", "-q", "--bare", "-b", "main", PLAIN])?;
    let mut import = started(PLAIN, &["fast-import", "--quiet"])?;
    let mut stream = BufWriter::with_capacity(1 << 20, import.stdin.take().ok_or("no pipe")?);
    write_history(&mut stream, size)?;
    stream.flush()?;
    drop(stream);
    ended(import)?;
    git(PLAIN, &["pack-refs", "--all"])?;
    git(".", &["clone", "-q", "--bare", PLAIN, WITH_GRAPH])?;
    git(WITH_GRAPH, &["commit-graph", "write", "--reachable", "--changed-paths"])?;
    Ok(fs::write(ready, made)?)
}

fn git(directory: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    ended(started(directory, arguments)?)
}

fn started(directory: &str, arguments: &[&str]) -> Result<Child, Box<dyn Error>> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(directory).stdin(Stdio::piped()).stderr(Stdio::null());
    Ok(command.spawn()?)
}

fn ended(mut child: Child) -> Result<(), Box<dyn Error>> {
    let status = child.wait()?;
    if status.success() { Ok(()) } else { Err(format!("git: {status}").into()) }
}

/// The files, in the order in which they are made.
fn files() -> Vec<String> {
    let each = DIRECTORIES.iter().flat_map(|(directory, count)| {
        (0..*count).map(move |number| format!("{directory}{:05x}-file{number:04}.c", number * 7_919 % 99_991))
    });
    each.collect()
}

/// The commits and the tags, as `git fast-import` takes them.
fn write_history(out: &mut impl Write, size: HistorySize) -> Result<(), Box<dyn Error>> {
    let files = files();
    let mut dice = Dice::new(19);
    let every = size.commits / (CHANGES + 1);
    // The marks of the last commits of topics that are to be merged, and the one of the main branch.
    let mut topics: Vec<u32> = Vec::new();
    let mut main = 0;
    for number in 1..=size.commits {
        let is_changed = number == 1 || number % every == 0 && number / every <= CHANGES;
        let is_merge = !is_changed && topics.len() > 3 && dice.below(3) == 0;
        let is_topic = !is_changed && !is_merge && number > 100 && dice.below(2) == 0;
        let message = format!("{} {number}", if is_changed { "Change" } else { "Commit" });
        let branch = if is_topic { "topic" } else { "main" };
        write!(out, "commit refs/heads/{branch}\nmark :{number}\n")?;
        let time = 1_500_000_000 + u64::from(number) * 300;
        writeln!(out, "author Ada {} <ada@example.org> {time} +0200", dice.below(500))?;
        writeln!(out, "committer Bob <bob@example.org> {time} +0000")?;
        write!(out, "data {}\n{message}\n", message.len())?;
        match (is_topic, main) {
            (_, 0) => {}
            // A topic begins at a commit of the main branch, or goes on.
            (true, _) if !topics.is_empty() && dice.below(3) > 0 => {
                let at = dice.below(topics.len());
                writeln!(out, "from :{}", topics.swap_remove(at))?;
            }
            _ => writeln!(out, "from :{main}")?,
        }
        if is_merge {
            let at = dice.below(topics.len());
            writeln!(out, "merge :{}", topics.swap_remove(at))?;
        }
        if number == 1 {
            for file in &files {
                write!(out, "M 644 inline {file}\ndata 40\n{:040}\n", file.len())?;
            }
        }
        if is_changed {
            write!(out, "M 644 inline {CHANGED}\ndata 40\n{number:040}\n")?;
        }
        for _ in 0..usize::from(!is_merge) + dice.below(2) {
            let file = files.get(dice.below(files.len())).map_or("Makefile", String::as_str);
            write!(out, "M 644 inline {file}\ndata 40\n{number:040}\n")?;
        }
        if is_topic { topics.push(number) } else { main = number }
    }
    write_tags(out, size)
}

fn write_tags(out: &mut impl Write, size: HistorySize) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for number in 0..size.tags {
        let commit = 1 + u64::from(number) * u64::from(size.commits - 1) / u64::from(size.tags);
        let time = 1_500_000_000 + commit * 300 + 60;
        text.clear();
        if number % 4 == 0 {
            write!(text, "reset refs/tags/build-{number}\nfrom :{commit}\n\n")?;
        } else {
            write!(text, "tag v{}.{}.{}\nfrom :{commit}\n", number / 100, number / 10 % 10, number % 10)?;
            write!(text, "tagger Ada <ada@example.org> {time} +0000\ndata 7\nRelease\n")?;
        }
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}
