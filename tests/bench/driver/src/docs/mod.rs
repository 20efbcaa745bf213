//! W11: a server of documentation: how fast it indexes 10,000 pages, answers searches, and finds what was edited.

mod corpus;
mod queries;

use crate::client::{self, Answer};
use crate::figures::{Figures, mib, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
pub(crate) use corpus::Dice;
use queries::{Expected, Query};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Where the pages are, from the root of the repository.
pub(crate) const HANDBOOK: &str = "target/bench/docs/handbook";
/// How many pages are edited, one after the other.
const EDITS: u64 = 50;
/// The longest that an edit may take to be found.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the server has for what one edit leaves to do before the next.
const QUIET: Duration = Duration::from_millis(20);

/// Makes the pages, unless they are there.
pub(crate) fn make() -> Result<(), Box<dyn Error>> {
    corpus::make(Path::new(HANDBOOK))
}

/// Makes the pages, starts the server, and measures the first index, searches, and edits.
pub(crate) fn measure(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let folder = Path::new(HANDBOOK);
    make()?;
    let mut searcher = Searcher::new(Server::start(launch, None)?, setting.modern)?;
    let figures = build(&mut searcher)?;
    let figures = search(&mut searcher, setting, figures)?;
    edit(&mut searcher, folder, if setting.requests < 1_000 { 5 } else { EDITS }, figures)
}

/// From the first search to one that has seen all pages.
fn build(searcher: &mut Searcher) -> Result<Figures, Box<dyn Error>> {
    let query = Query::from_words("the");
    let cpu = searcher.server.cpu_ns()?;
    let start = Instant::now();
    let mut first = None;
    loop {
        let text = searcher.search(&query.uri())?;
        let answered = *first.get_or_insert_with(|| start.elapsed());
        if text.contains("\"incomplete\":true") {
            std::thread::sleep(QUIET);
            continue;
        }
        let cpu = searcher.server.cpu_ns()? - cpu;
        let wall = start.elapsed();
        return Ok(Figures::default()
            .with("pages_s", 1.0 / per(wall.as_secs_f64(), corpus::PAGES.into()))
            .with("cpu_us_page", per(micros(cpu), corpus::PAGES.into()))
            .with("first_ms", answered.as_secs_f64() * 1_000.0)
            .with("peak_mib", mib(searcher.server.peak()?)));
    }
}

/// Each query in turn, one at a time.
fn search(searcher: &mut Searcher, setting: &Setting, figures: Figures) -> Result<Figures, Box<dyn Error>> {
    let queries = queries::all();
    let worst = std::env::var_os("WORST").is_some();
    let mut by_query: Vec<Vec<u64>> = vec![Vec::new(); queries.len()];
    let mut latencies = Vec::new();
    for query in &queries {
        query.check(&searcher.search(&query.uri())?)?;
    }
    let cpu = searcher.server.cpu_ns()?;
    let start = Instant::now();
    while (latencies.len() as u64) < setting.requests && start.elapsed() < setting.time {
        for (at, query) in queries.iter().enumerate() {
            let sent = Instant::now();
            let text = searcher.search(&query.uri())?;
            let took = u64::try_from(sent.elapsed().as_nanos())?;
            query.check(&text)?;
            latencies.push(took);
            if let Some(of_query) = by_query.get_mut(at) {
                of_query.push(took);
            }
        }
    }
    let cpu = searcher.server.cpu_ns()? - cpu;
    if worst {
        tell(&queries, by_query);
    }
    let done = latencies.len() as u64;
    Ok(figures.with_latencies(latencies).with("cpu_us", per(micros(cpu), done)))
}

/// Says on standard error what each query took, the slowest first.
fn tell(queries: &[Query], by_query: Vec<Vec<u64>>) {
    let mut medians: Vec<(u64, &Query)> = by_query
        .into_iter()
        .zip(queries)
        .filter_map(|(mut took, query)| {
            took.sort_unstable();
            Some((*took.get(took.len() / 2)?, query))
        })
        .collect();
    medians.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    for (took, query) in medians {
        eprintln!("{:>8.2} ms  {query:?}", micros(took) / 1_000.0);
    }
}

/// From the write of a page to the search that finds what was written.
fn edit(
    searcher: &mut Searcher,
    folder: &Path,
    edits: u64,
    figures: Figures,
) -> Result<Figures, Box<dyn Error>> {
    let mut latencies = Vec::new();
    for number in 0..edits {
        let path = folder.join(corpus::path(u32::try_from(number * 199)? % corpus::PAGES));
        let before = fs::read(&path)?;
        let found = edited(searcher, &path, &before, number);
        fs::write(&path, before)?;
        latencies.push(u64::try_from(found?.as_nanos())?);
        std::thread::sleep(QUIET);
    }
    latencies.sort_unstable();
    let at = |part: usize| latencies.get(latencies.len() * part / 100).copied().unwrap_or_default();
    Ok(figures.with("edit_p50_ms", micros(at(50)) / 1_000.0).with("edit_p99_ms", micros(at(99)) / 1_000.0))
}

fn edited(
    searcher: &mut Searcher,
    path: &Path,
    before: &[u8],
    number: u64,
) -> Result<Duration, Box<dyn Error>> {
    let word = format!("zqx{number}edited");
    let query = Query::from_words(&word).expecting(Expected::Any);
    let after = [before, format!("\nWhat was edited: {word} と検索する。\n").as_bytes()].concat();
    let start = Instant::now();
    fs::write(path, after)?;
    while start.elapsed() < PATIENCE {
        if searcher.search(&query.uri())?.contains("\"uri\"") {
            return Ok(start.elapsed());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err("an edit was not found".into())
}

/// A client that reads one resource after the other.
pub(crate) struct Searcher {
    pub(crate) server: Server,
    modern: bool,
    next: u64,
    incoming: Vec<u8>,
    chunk: Vec<u8>,
}

impl Searcher {
    pub(crate) fn new(server: Server, modern: bool) -> Result<Self, Box<dyn Error>> {
        let incoming = Vec::new();
        let chunk = vec![0; 1 << 18];
        let mut searcher = Self { server, modern, next: 1, incoming, chunk };
        if !modern {
            searcher.server.write(client::INITIALIZE)?;
            searcher.line()?;
            searcher.server.write(client::INITIALIZED)?;
        }
        Ok(searcher)
    }

    /// The text of a resource, such as the answer to a search.
    pub(crate) fn search(&mut self, uri: &str) -> Result<String, Box<dyn Error>> {
        let mut request = Vec::new();
        client::read(&mut request, self.next, uri, self.modern)?;
        self.next += 1;
        self.server.write(&request)?;
        loop {
            let line = self.line()?;
            let answer = Answer::parse(&line)?;
            if !answer.is_notification() {
                return Ok(answer.contents()?.text().ok_or("no text")?.to_owned());
            }
        }
    }

    /// Reads one line.
    fn line(&mut self) -> Result<Vec<u8>, Box<dyn Error>> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.incoming) {
                let rest = self.incoming.split_off(at + 1);
                return Ok(std::mem::replace(&mut self.incoming, rest));
            }
            let read = self.server.read(&mut self.chunk)?;
            self.incoming.extend_from_slice(self.chunk.get(..read).unwrap_or_default());
        }
    }
}
