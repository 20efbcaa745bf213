//! One application: its file, and the last state read from it.
//!
//! ```text
//!   Good ──the file is changed and makes sense──▶ Good, anew
//!    │ ├──it makes none, or is empty: half-written──▶ Good, as before; said once for each text
//!    │ └──it cannot be opened──▶ Down: reads fail ──it is there again──▶ Good
//! ```
//!
//! Law: every request checks the current state of the file. The lock is held while the file is read, so it is only
//! taken where blocking is allowed, and no notification is sent and no message logged while it is held.

use super::parse::{ConfigFormat, MOST, Parsed};
use super::tree::{ConfigNode, TreeSettings};
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use mcp_resources_provider_kit::path;
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_runtime::transport::open_to_read;
use std::fs::Metadata;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A file that was changed less than this before it was read may change again without a trace in its times.
const SETTLED: Duration = Duration::from_secs(3);
/// Maximum number of messages that wait for a log.
const WAITING: usize = 8;

/// Writes a message to the log: the request's, if there is one, or the server's.
pub(super) type Log<'a> = dyn Fn(&str) + 'a;

/// One application at run time.
#[derive(Debug)]
pub(super) struct App {
    /// As in URIs, before percent-encoding: it needs no escape.
    pub(super) name: String,
    /// `config:///NAME`.
    pub(super) uri: String,
    pub(super) file: PathBuf,
    format: ConfigFormat,
    settings: Arc<TreeSettings>,
    hasher: RandomState,
    state: Mutex<AppState>,
}

#[derive(Debug, Default)]
struct AppState {
    /// The file as it was when it was last read, and whether that was long after its last change.
    seen: Option<(ConfigFacts, bool)>,
    good: Option<Good>,
    /// Whether the file could not be opened.
    is_down: bool,
    /// The digest of the last text that made no sense.
    bad: Option<u64>,
    said: Vec<String>,
}

#[derive(Debug)]
struct Good {
    now: Arc<ConfigSnapshot>,
    digest: u64,
}

/// The served state of an application.
#[derive(Debug, Default)]
pub(super) struct ConfigSnapshot {
    pub(super) root: ConfigNode,
    /// When the file was last changed.
    pub(super) modified: Option<String>,
}

/// Identifies the state of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ConfigFacts {
    file: FileId,
    size: u64,
    modified: FileTime,
    changed: FileTime,
}

/// The states before and after a change; `None` is a file that could not be opened.
pub(super) type Change = (Option<Arc<ConfigSnapshot>>, Option<Arc<ConfigSnapshot>>);

impl App {
    /// Reads the file for the first time.
    ///
    /// # Errors
    /// Why it cannot be served, as half a sentence.
    pub(super) fn open(
        name: String,
        uri: String,
        file: PathBuf,
        settings: Arc<TreeSettings>,
    ) -> Result<Self, String> {
        let format = ConfigFormat::from_path(&file)
            .ok_or("has no name that says how it is written; name it .yaml, .yml, .toml, .json or .env")?;
        let app =
            Self { name, uri, file, format, settings, hasher: RandomState::new(), state: Mutex::default() };
        let (bytes, facts) = read(&app.file).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => "does not exist; create it, or name another file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "cannot be opened; let this process read it".to_owned(),
            std::io::ErrorKind::FileTooLarge => format!("is larger than {MOST} bytes"),
            std::io::ErrorKind::IsADirectory | std::io::ErrorKind::Unsupported => {
                "is no file; name one".to_owned()
            }
            _ => "cannot be read".to_owned(),
        })?;
        let parsed = format.parse(&bytes).map_err(|fault| format!("cannot be served: {fault}"))?;
        let digest = app.hasher.hash_one(&bytes);
        let mut state = AppState { seen: Some((facts, facts.is_settled())), ..AppState::default() };
        app.put(&mut state, parsed, digest, facts);
        Ok(Self { state: Mutex::new(state), ..app })
    }

    /// Returns the current state, and the change since the last call. The state is `None` if the file cannot be opened.
    pub(super) fn now(&self) -> (Option<Arc<ConfigSnapshot>>, Option<Change>) {
        let mut state = self.state.lock();
        let before = state.now();
        self.refresh(&mut state);
        let now = state.now();
        let is_same = match (&before, &now) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        let change = (!is_same).then(|| (before, now.clone()));
        (now, change)
    }

    /// Takes the messages to log; each is returned once.
    pub(super) fn said(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().said)
    }

    fn refresh(&self, state: &mut AppState) {
        if let (Some((seen, true)), false) = (state.seen, state.is_down)
            && std::fs::metadata(&self.file)
                .is_ok_and(|metadata| ConfigFacts::from_metadata(&metadata) == seen)
        {
            return;
        }
        let (bytes, facts) = match read(&self.file) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                return self.keep(state, 0, &format!("it is larger than {MOST} bytes"));
            }
            Err(error) => {
                if !std::mem::replace(&mut state.is_down, true) {
                    let why = match error.kind() {
                        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
                        kind => kind.to_string(),
                    };
                    state.say(format!(
                        "{} cannot be read: {why}; reads fail until it can",
                        self.file.display()
                    ));
                }
                return;
            }
        };
        state.seen = Some((facts, facts.is_settled()));
        if std::mem::replace(&mut state.is_down, false) {
            state.say(format!("{} can be read again", self.file.display()));
        }
        let digest = self.hasher.hash_one(&bytes);
        if state.good.as_ref().is_some_and(|good| good.digest == digest) {
            state.bad = None;
            return;
        }
        // Writers empty a file before they fill it.
        let parsed = match bytes.is_empty() {
            true => Err("it is empty".to_owned()),
            false => self.format.parse(&bytes).map_err(|fault| fault.to_string()),
        };
        match parsed {
            Ok(parsed) => {
                if state.bad.take().is_some() {
                    state.say(format!("{} makes sense again", self.file.display()));
                }
                self.put(state, parsed, digest, facts);
            }
            Err(fault) => self.keep(state, digest, &fault),
        }
    }

    /// Serves the contents of a file from now on.
    fn put(&self, state: &mut AppState, parsed: Parsed, digest: u64, facts: ConfigFacts) {
        let Parsed { members, left_out } = parsed;
        if let Some(left_out) = left_out {
            state.say(format!("{}: {left_out}", self.file.display()));
        }
        let is_empty = members.is_empty();
        let (root, hollow) = ConfigNode::root(members, &self.settings);
        if !is_empty && root.is_hollow() && !self.settings.allow.is_empty() {
            state.say(format!(
                "no key of {:?} matches allow, so nothing of it is served; the path of a key has slashes: \"server/port\"",
                self.name
            ));
        }
        if let Some(path) = hollow {
            state.say(format!(
                "allow names {path:?} of {:?}, but nothing in it; add {:?} to serve that too",
                self.name,
                format!("{path}/**")
            ));
        }
        let modified = jiff::Timestamp::from_second(facts.modified.seconds).ok();
        let modified = modified.map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        // If keys and values are the same, there is no change to report.
        match &state.good {
            Some(good) if good.now.root == root && good.now.modified == modified => {
                state.good = Some(Good { now: good.now.clone(), digest });
            }
            _ => state.good = Some(Good { now: Arc::new(ConfigSnapshot { root, modified }), digest }),
        }
    }

    /// Keeps the previous contents, because the new text is invalid.
    fn keep(&self, state: &mut AppState, digest: u64, fault: &str) {
        if state.bad.replace(digest) != Some(digest) {
            state.say(format!("{}: {fault}; what it said before is still served", self.file.display()));
        }
    }
}

impl AppState {
    fn now(&self) -> Option<Arc<ConfigSnapshot>> {
        self.good.as_ref().filter(|_| !self.is_down).map(|good| good.now.clone())
    }

    fn say(&mut self, what: String) {
        if self.said.len() < WAITING {
            self.said.push(what);
        }
    }
}

impl ConfigFacts {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            file: metadata.into(),
            size: metadata.size(),
            modified: FileTime::modified(metadata),
            changed: FileTime::changed(metadata),
        }
    }

    /// Whether a later change would show.
    fn is_settled(&self) -> bool {
        // Not the time of its contents: that can be set to any, and in the future.
        self.changed.is_older_than(SETTLED)
    }
}

/// The current contents of a file.
fn read(file: &Path) -> std::io::Result<(Vec<u8>, ConfigFacts)> {
    let opened = open_to_read(file)?;
    let metadata = opened.metadata()?;
    if metadata.len() > MOST {
        return Err(std::io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    opened.take(MOST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST {
        true => Err(std::io::ErrorKind::FileTooLarge.into()),
        false => Ok((bytes, ConfigFacts::from_metadata(&metadata))),
    }
}

/// Whether a change affects the watched URI.
pub(super) fn differs(app: &App, uri: &str, change: &Change) -> bool {
    let Some(key) = uri.strip_prefix(&*app.uri).map(|rest| rest.strip_prefix('/').unwrap_or(rest)) else {
        return false;
    };
    let Some(key) = path::decoded(key) else { return false };
    let value = |snapshot: &Option<Arc<ConfigSnapshot>>| {
        snapshot.as_ref().map(|snapshot| snapshot.root.find(&key).map(|node| node.value(&app.uri, &|_| true)))
    };
    value(&change.0) != value(&change.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::sync_channel;

    // S-32: a pipe that takes the place of the file just before it is opened makes nothing wait.
    #[test]
    fn a_pipe_in_its_place_makes_nothing_wait() {
        let dir = std::env::temp_dir().join(format!("mcp-config-pipe-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let name = |name: &str| dir.join(name);
        std::fs::write(name("file"), "a: 1\n").unwrap();
        assert!(Command::new("mkfifo").arg(name("pipe")).status().unwrap().success());
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = is_over.clone();
        let links = [name("file"), name("pipe")].map(|from| (from, name("next"), name("app.yaml")));
        let swapping = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                for (from, next, place) in &links {
                    std::fs::hard_link(from, next).unwrap();
                    std::fs::rename(next, place).unwrap();
                }
            }
        });
        let (sender, results) = sync_channel(64);
        let file = name("app.yaml");
        // It reads until the receiver of the results is dropped.
        std::thread::spawn(move || while sender.send(read(&file).is_ok()).is_ok() {});
        // On a busy machine one of the two threads may not run for a while, so the reads go on until both have been met.
        let mut files = 0;
        let mut pipes = 0;
        while files + pipes < 3_000 || files == 0 || pipes == 0 {
            let number = files + pipes;
            let is_file = results.recv_timeout(Duration::from_secs(60));
            let is_file = is_file.unwrap_or_else(|_| panic!("read {number} waits"));
            *(if is_file { &mut files } else { &mut pipes }) += 1;
            assert!(number < 10_000_000, "{files} reads found the file, {pipes} the pipe");
        }
        drop(results);
        is_over.store(true, Ordering::Relaxed);
        swapping.join().unwrap();
        std::fs::remove_dir_all(dir).unwrap();
    }
}
