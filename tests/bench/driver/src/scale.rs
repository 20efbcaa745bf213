//! W24 to W26: what many pages, directories and subscriptions cost. The folders are generated.
//!
//! ```text
//!   target/bench/scale/pages-N       N Markdown pages in directories of 100
//!   target/bench/scale/idle-…        4,000 directories, or 1,500 files in 15, beyond what the system may watch
//!   target/bench/scale/files-N       N files in directories of 100
//!   target/bench/scale/*.json        the configurations for `mcp-resources serve`
//! ```
//!
//! Law: a cost that grows with the square of a size shows as a cost of one item that grows with the size.

use crate::client;
use crate::client::ListMethod;
use crate::docs::Searcher;
use crate::figures::{Figures, mib, micros, per};
use crate::measure::Setting;
use crate::process::{Launch, Server};
use crate::updates::WatchingClient;
use crate::walk::Walker;
use serde_json::json;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const FOLDERS: &str = "target/bench/scale";
/// Files in each directory.
const EACH: u32 = 100;
/// How many directories the system watches in `W25`.
const WATCHED: u32 = 4;
/// The time in which a watcher may look at everything once.
const SETTLE: Duration = Duration::from_secs(3);
/// The pause between two questions whether an index is complete.
const PAUSE: Duration = Duration::from_millis(20);
/// A server that spends less than this, in nanoseconds, within this time does nothing.
const NOTHING: u64 = 10_000_000;
const QUIET: Duration = Duration::from_secs(2);
/// How much smaller everything is in a quick run.
const QUICK: u32 = 20;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ScaleWork {
    /// W24: the list of so many pages.
    Pages(u32),
    /// W25: the processor time of a server while nothing changes in 4,000 directories that it follows.
    IdleDirectories,
    /// W25: the same with 1,500 files that are subscribed to.
    IdleFiles,
    /// W26: the end of so many subscriptions, one by one.
    Unsubscribe(u32),
}

impl ScaleWork {
    pub(crate) const ALL: [Self; 7] = [
        Self::Pages(10_000),
        Self::Pages(20_000),
        Self::Pages(40_000),
        Self::IdleDirectories,
        Self::IdleFiles,
        Self::Unsubscribe(4_000),
        Self::Unsubscribe(16_000),
    ];

    pub(crate) fn name(self) -> String {
        match self {
            Self::Pages(count) => format!("W24-{count}"),
            Self::IdleDirectories => "W25-directories".into(),
            Self::IdleFiles => "W25-files".into(),
            Self::Unsubscribe(count) => format!("W26-{count}"),
        }
    }

    /// The folder that is served.
    pub(crate) fn path(self) -> PathBuf {
        Path::new(FOLDERS).join(self.folder())
    }

    fn folder(self) -> String {
        match self {
            Self::Pages(count) => format!("pages-{count}"),
            Self::IdleDirectories => "idle-directories".into(),
            Self::IdleFiles => "idle-files".into(),
            Self::Unsubscribe(count) => format!("files-{count}"),
        }
    }

    /// The number of files and of the files in each directory.
    fn size(self, is_quick: bool) -> (u32, u32) {
        let divisor = if is_quick { QUICK } else { 1 };
        match self {
            Self::Pages(count) | Self::Unsubscribe(count) => (count / divisor, EACH),
            Self::IdleDirectories => (4_000 / divisor, 1),
            Self::IdleFiles => (1_500 / divisor, EACH),
        }
    }

    fn config(self) -> serde_json::Value {
        let folder = json!({ "scale": self.folder() });
        let limits = json!({ "limits": { "page": 1_000, "subscriptions": 20_000 } });
        let provider = match self {
            Self::Pages(_) => json!({ "docs": { "sites": folder, "list_max": 100_000 } }),
            Self::IdleDirectories | Self::IdleFiles => {
                json!({ "files": { "roots": folder, "watch_dirs": WATCHED } })
            }
            Self::Unsubscribe(_) => json!({ "files": { "roots": folder } }),
        };
        json!({ "providers": [provider], "guard": limits })
    }

    /// Makes the folder, unless it is there as it is made now.
    fn make(self, is_quick: bool) -> Result<(), Box<dyn Error>> {
        let path = self.path();
        let (count, each) = self.size(is_quick);
        let ready = path.with_extension("ready");
        let made = format!("1: {count} files, {each} in a directory\n");
        if fs::read_to_string(&ready).is_ok_and(|found| found == made) {
            return Ok(());
        }
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        for number in 0..count {
            let file = path.join(self.file(number, each));
            if number % each == 0 {
                fs::create_dir_all(file.parent().unwrap_or(&path))?;
            }
            match self {
                Self::Pages(_) => fs::write(file, page(number))?,
                _ => fs::write(file, format!("{number}\n"))?,
            }
        }
        fs::write(path.with_extension("json"), self.config().to_string())?;
        Ok(fs::write(ready, made)?)
    }

    fn file(self, number: u32, each: u32) -> String {
        let extension = if matches!(self, Self::Pages(_)) { "md" } else { "txt" };
        format!("d{:04}/f{:02}.{extension}", number / each, number % each)
    }

    fn uris(self, is_quick: bool) -> Vec<String> {
        let (count, each) = self.size(is_quick);
        (0..count).map(|number| format!("file:///scale/{}", self.file(number, each))).collect()
    }
}

/// A page with a title of its own, a description, and two sections.
fn page(number: u32) -> String {
    format!(
        "---\ntitle: Page {number}\ndescription: About topic {}\n---\n\n# Page {number}\n\nThe first words of \
         page {number}.\n\n## Setup\n\nSet the value {} before the start.\n\n## Use\n\nRead it with the others.\n",
        number % 977,
        number % 31
    )
}

/// Makes the folder, starts the server and measures it.
pub(crate) fn measure(
    launch: &Launch,
    work: ScaleWork,
    setting: &Setting,
) -> Result<Figures, Box<dyn Error>> {
    work.make(setting.is_quick)?;
    match work {
        ScaleWork::Pages(_) => list(launch, work, setting),
        ScaleWork::IdleDirectories | ScaleWork::IdleFiles => idle(launch, work, setting),
        ScaleWork::Unsubscribe(_) => unsubscribe(launch, work, setting),
    }
}

/// The index of all pages, and then walks of the whole list.
fn list(launch: &Launch, work: ScaleWork, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let count = work.size(setting.is_quick).0;
    let mut searcher = Searcher::new(Server::start(launch, None)?, setting.modern)?;
    let cpu = searcher.server.cpu_ns()?;
    while searcher.search("docs:///scale/search?q=page")?.contains("\"incomplete\":true") {
        std::thread::sleep(PAUSE);
    }
    let indexed = searcher.server.cpu_ns()? - cpu;
    let mut walker = Walker::new(searcher.server, ListMethod::Resources, setting.modern)?;
    let number_of = |uri: &str| {
        let rest = uri.strip_prefix("docs:///scale/d")?.strip_suffix(".md")?;
        let (directory, file) = rest.split_once("/f")?;
        Some(directory.parse::<usize>().ok()? * usize::try_from(EACH).ok()? + file.parse::<usize>().ok()?)
    };
    let cpu = walker.server.cpu_ns()?;
    let start = Instant::now();
    let first = walker.walk(count, number_of)?;
    let whole = start.elapsed();
    let cpu = walker.server.cpu_ns()? - cpu;
    Ok(Figures::default()
        .with("first_ms", first.as_secs_f64() * 1_000.0)
        .with("whole_ms", whole.as_secs_f64() * 1_000.0)
        .with("cpu_us_item", per(micros(cpu), count.into()))
        .with("cpu_us_page", per(micros(indexed), count.into()))
        .with("peak_mib", mib(walker.server.peak()?)))
}

/// A client that watches, and nothing that changes.
fn idle(launch: &Launch, work: ScaleWork, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let uris = if work == ScaleWork::IdleFiles { work.uris(setting.is_quick) } else { Vec::new() };
    let mut request = Vec::new();
    client::listen_to(&mut request, "0", &uris, work == ScaleWork::IdleDirectories)?;
    let mut subscriber = WatchingClient::new(launch)?;
    let start = subscriber.server.cpu_ns()?;
    subscriber.listen(request)?;
    std::thread::sleep(if setting.is_quick { PAUSE } else { SETTLE });
    let before = subscriber.server.cpu_ns()?;
    std::thread::sleep(setting.time);
    let cpu = subscriber.server.cpu_ns()? - before;
    Ok(Figures::default()
        .with("idle_percent", micros(cpu) / setting.time.as_secs_f64() / 10_000.0)
        .with("cpu_ms", micros(before - start) / 1_000.0)
        .with("rest_mib", mib(subscriber.server.resident()?)))
}

/// All subscriptions, and then their ends, each after the answer to the one before.
fn unsubscribe(launch: &Launch, work: ScaleWork, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let uris = work.uris(setting.is_quick);
    let count = u64::try_from(uris.len())?;
    let mut subscriber = WatchingClient::new(launch)?;
    let begun = subscriber.server.cpu_ns()?;
    subscriber.subscribe(uris.iter().cloned(), false)?;
    let cpu = quiet(&subscriber.server)?;
    let start = Instant::now();
    subscriber.unsubscribe(&uris)?;
    let wall = start.elapsed();
    let ended = quiet(&subscriber.server)? - cpu;
    Ok(Figures::default()
        .with("whole_ms", wall.as_secs_f64() * 1_000.0)
        .with("cpu_us_item", per(micros(ended), count))
        .with("cpu_us_begin", per(micros(cpu - begun), count)))
}

/// The processor time of a server once it does nothing any longer: a watcher follows its subscriptions later.
fn quiet(server: &Server) -> Result<u64, Box<dyn Error>> {
    let mut last = server.cpu_ns()?;
    let mut since = Instant::now();
    while since.elapsed() < QUIET {
        std::thread::sleep(PAUSE);
        let now = server.cpu_ns()?;
        if now - last > NOTHING {
            last = now;
            since = Instant::now();
        }
    }
    Ok(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_names_from_their_numbers() {
        let work = ScaleWork::Unsubscribe(4_000);
        assert_eq!(work.uris(true).len(), 200);
        assert_eq!(work.uris(true)[101], "file:///scale/d0001/f01.txt");
        assert_eq!(ScaleWork::IdleDirectories.file(3_999, 1), "d3999/f00.txt");
    }
}
