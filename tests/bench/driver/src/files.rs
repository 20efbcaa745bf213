//! W10 and W15: a server of the files of a folder, and the folders, which are made under `target/bench` and are the same
//! each time.
//!
//! ```text
//!   target/bench/files/large        a repository: .git, .gitignore, d000 … d999 with f00.txt … f99.txt each, d500/page.txt
//!   target/bench/files/large.json   what `mcp-resources serve --config` is told of it
//!   target/bench/files/small        the same with d0 … d9, and no configuration
//! ```

use crate::client::ListMethod;
use crate::figures::{Figures, mib, micros, per};
use crate::measure::{self, Setting};
use crate::process::{Launch, Server};
use crate::updates;
use crate::walk::Walker;
use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// Where the folders are, from the root of the repository.
const FOLDERS: &str = "target/bench/files";
/// Files in each directory.
const EACH: u32 = 100;
/// What a repository usually leaves out.
const IGNORED: &str = "target/\nnode_modules/\n__pycache__/\n*.log\n*.tmp\n/dist\n";
/// The configuration of the large folder: all of it is listed, in pages of W4's size.
const CONFIG: &str = r#"{"providers": [{"files": {"roots": {"large": "large"}, "list_max": 200000}}],
"guard": {"limits": {"page": 1000}}}
"#;

/// What is measured of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// W10: its list, the first page and the whole.
    List,
    /// W10: reads of a file of 4 KiB.
    Read,
    /// W10: from the change of a file to the notification of it.
    Change,
    /// W15: from the start of the process to the first list.
    Start,
}

/// A folder that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Folder {
    /// 100,000 files in 1,000 directories.
    Large,
    /// 1,000 files in 10 directories.
    Small,
}

impl Work {
    pub(crate) const ALL: [Self; 4] = [Self::List, Self::Read, Self::Change, Self::Start];

    pub(crate) fn folder(self) -> Folder {
        if self == Self::Start { Folder::Small } else { Folder::Large }
    }
}

impl Folder {
    fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Small => "small",
        }
    }

    fn directories(self) -> u32 {
        match self {
            Self::Large => 1_000,
            Self::Small => 10,
        }
    }

    /// The digits of a directory's number.
    fn digits(self) -> usize {
        self.directories().ilog10() as usize
    }

    /// Where it is.
    pub(crate) fn path(self) -> PathBuf {
        Path::new(FOLDERS).join(self.name())
    }

    /// The number of the file with this URI, of all that are listed; `None` if it is not one of them.
    fn number_of(self, uri: &str) -> Option<usize> {
        let rest = uri.strip_prefix("file:///")?.strip_prefix(self.name())?.strip_prefix("/d")?;
        let (directory, file) = rest.split_once("/f")?;
        let file: usize = file.strip_suffix(".txt")?.parse().ok()?;
        Some(directory.parse::<usize>().ok()? * usize::try_from(EACH).ok()? + file)
    }

    /// Makes it, unless it is there as it is made now.
    pub(crate) fn make(self) -> Result<(), Box<dyn Error>> {
        let path = self.path();
        let ready = path.with_extension("ready");
        let made = format!("1: {} directories of {EACH} files\n", self.directories());
        if fs::read_to_string(&ready).is_ok_and(|found| found == made) {
            return Ok(());
        }
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(path.join(".git/info"))?;
        fs::write(path.join(".gitignore"), IGNORED)?;
        if self == Self::Large {
            fs::write(path.with_extension("json"), CONFIG)?;
        }
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_750_000_000);
        for number in 0..self.directories() {
            let directory = path.join(format!("d{number:0width$}", width = self.digits()));
            fs::create_dir(&directory)?;
            // Nothing is in them: a list does not open them, and 400 MiB of blocks would be of no use.
            for file in 0..EACH {
                File::create(directory.join(format!("f{file:02}.txt")))?.set_modified(time)?;
            }
        }
        let page = path.join(PAGE);
        if page.parent().is_some_and(Path::exists) {
            fs::write(page, page_text())?;
        }
        Ok(fs::write(ready, made)?)
    }
}

/// The file of 4 KiB in the large folder.
const PAGE: &str = "d500/page.txt";
/// The URI of that file.
pub(crate) const PAGE_URI: &str = "file:///large/d500/page.txt";
/// The file in the large folder that changes.
const CHANGING: &str = "d999/f99.txt";
const CHANGING_URI: &str = "file:///large/d999/f99.txt";

/// What the file of 4 KiB holds.
pub(crate) fn page_text() -> String {
    let mut text = "resource contents 1\n".repeat(4_096 / 20 + 1);
    text.truncate(4_096);
    text
}

/// Makes the folder, starts the server and measures it.
pub(crate) fn measure(launch: &Launch, work: Work, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    work.folder().make()?;
    match work {
        Work::List => list(launch, setting),
        Work::Read => measure::measure(launch, setting),
        Work::Change => {
            updates::measure_file(launch, &Folder::Large.path().join(CHANGING), CHANGING_URI, setting)
        }
        Work::Start => start(launch, setting),
    }
}

/// The first walk of a server that has just started.
fn list(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let mut walker = Walker::new(Server::start(launch, None)?, ListMethod::Resources, setting.modern)?;
    let cpu = walker.server.cpu_ns()?;
    let start = Instant::now();
    let first = walker.walk(Folder::Large.directories() * EACH, |uri| Folder::Large.number_of(uri))?;
    let cpu = walker.server.cpu_ns()? - cpu;
    let wall = start.elapsed();
    Ok(Figures::default()
        .with("first_ms", millis(first))
        .with("whole_ms", millis(wall))
        .with("cpu_us_item", per(micros(cpu), walker.resources))
        .with("after_mib", mib(walker.server.resident()?))
        .with("peak_mib", mib(walker.server.peak()?)))
}

/// From the start of the process to the first page of the list.
fn start(launch: &Launch, setting: &Setting) -> Result<Figures, Box<dyn Error>> {
    let start = Instant::now();
    let mut walker = Walker::new(Server::start(launch, None)?, ListMethod::Resources, setting.modern)?;
    let mut listed = 0;
    walker.page(None, |uri| {
        listed += u32::from(Folder::Small.number_of(uri).is_some());
        Ok(())
    })?;
    let started = start.elapsed();
    let cpu = walker.server.cpu_ns()?;
    if listed == 0 {
        return Err("no file is listed".into());
    }
    Ok(Figures::default()
        .with("start_ms", millis(started))
        .with("cpu_ms", micros(cpu) / 1_000.0)
        .with("rest_mib", mib(walker.server.resident()?)))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_numbered_as_they_are_made() {
        let large = Folder::Large;
        assert_eq!(large.number_of("file:///large/d000/f00.txt"), Some(0));
        assert_eq!(large.number_of("file:///large/d999/f99.txt"), Some(99_999));
        assert_eq!(large.number_of(PAGE_URI), None);
        assert_eq!(large.number_of("file:///small/d0/f00.txt"), None);
    }

    #[test]
    fn the_page_is_4_kib() {
        assert_eq!(page_text().len(), 4_096);
    }
}
