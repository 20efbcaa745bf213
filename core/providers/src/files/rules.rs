//! Which paths beneath a root are served: not those that are hidden, ignored or excluded, nor what is beneath them.
//!
//! ```text
//!   chain of a directory = [the repository above the root] root, a, a/b      each level: its .ignore and .gitignore
//!   admits a/b/c:  name not hidden · no exclude · include
//!                  · nearest rule of .ignore, else of .gitignore, else of .git/info/exclude
//! ```
//!
//! Law: a path is judged with all its parents, one after another: what is beneath something ignored cannot come back. Rules
//! are read anew when their file has changed, watcher or not.

use super::beneath::{Facts, Kind, Missing, Root, components};
use super::options::Settings;
use super::tree::join;
use crate::selection::Selection;
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use mcp_resources_engine::option::OptionError;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

const IGNORE: &[u8] = b".ignore";
const GITIGNORE: &[u8] = b".gitignore";
const EXCLUDE: &str = ".git/info/exclude";
/// The largest file of rules that is read, in bytes; the rest of it counts for nothing.
const LARGEST: u64 = 1024 * 1024;
/// How many files of rules are kept.
const KEPT: usize = 4_096;
/// A file that was changed less than this before it was read may change again without a trace.
const SETTLED: Duration = Duration::from_secs(3);

/// The rules of one root.
#[derive(Debug)]
pub(super) struct Rules {
    gitignore: bool,
    selection: Selection,
    dir: PathBuf,
    outer: OnceLock<Outer>,
    kept: Mutex<HashMap<Vec<u8>, ReadRules>>,
}

/// A file of rules as it was when it was read.
type ReadRules = (Facts, Option<Arc<Gitignore>>);

/// The repository that the root is in, or is: where its rules are, with what is put before a path beneath the root for them.
#[derive(Debug, Default)]
struct Outer {
    /// The directories above the root, from the outermost on.
    directories: Vec<(PathBuf, Vec<u8>)>,
    /// The file of rules that is not in its tree.
    exclude: Option<(PathBuf, Vec<u8>)>,
}

/// What decides about the entries of a directory.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    levels: Vec<Level>,
    exclude: Option<Level>,
}

#[derive(Clone, Debug)]
struct Level {
    /// What is put before a path beneath the root, for a level above it.
    before: Vec<u8>,
    /// How many bytes of a path beneath the root lead to this level, with the slash.
    skip: usize,
    ignore: Option<Arc<Gitignore>>,
    git: Option<Arc<Gitignore>>,
}

impl Rules {
    /// # Errors
    /// A glob cannot be read.
    pub(super) fn new(kind: &'static str, settings: &Settings, dir: &Path) -> Result<Self, OptionError> {
        Ok(Self {
            gitignore: settings.gitignore,
            selection: Selection::new(kind, settings.hidden, &settings.include, &settings.exclude)?,
            dir: dir.to_owned(),
            outer: OnceLock::new(),
            kept: Mutex::default(),
        })
    }

    /// Whether what is at `path` is served, as far as the rules say. The root itself is.
    pub(super) fn admits(&self, root: &Root, path: &[u8], is_dir: bool) -> bool {
        if path.is_empty() {
            return true;
        }
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &path[..at]);
        self.chain(root, above).is_some_and(|chain| self.admits_entry(&chain, path, is_dir))
    }

    /// What decides about the entries of the directory at `path`; `None` if it is not served itself.
    pub(super) fn chain(&self, root: &Root, path: &[u8]) -> Option<Chain> {
        let mut chain = self.top(root);
        let mut at = 0;
        for name in components(path) {
            let end = at + name.len();
            chain = self.below(root, chain, path.get(..end)?)?;
            at = end + 1;
        }
        Some(chain)
    }

    /// The chain of the directory at `path`, from that of the one above it; `None` if it is not served.
    pub(super) fn below(&self, root: &Root, mut chain: Chain, path: &[u8]) -> Option<Chain> {
        if !self.admits_entry(&chain, path, true) {
            return None;
        }
        self.descend(root, &mut chain, path);
        Some(chain)
    }

    fn descend(&self, root: &Root, chain: &mut Chain, path: &[u8]) {
        if !self.gitignore {
            return;
        }
        let skip = if path.is_empty() { 0 } else { path.len() + 1 };
        let (ignore, git) = (self.beneath(root, path, IGNORE), self.beneath(root, path, GITIGNORE));
        if ignore.is_some() || git.is_some() {
            chain.levels.push(Level { before: Vec::new(), skip, ignore, git });
        }
    }

    /// Whether an entry of the directory that `chain` is of is served. `path` is the whole one.
    pub(super) fn admits_entry(&self, chain: &Chain, path: &[u8], is_dir: bool) -> bool {
        self.selection.admits_entry(path, is_dir) && !chain.is_ignored(path, is_dir)
    }

    /// The chain of the root.
    fn top(&self, root: &Root) -> Chain {
        let mut chain = Chain { levels: Vec::new(), exclude: None };
        if !self.gitignore {
            return chain;
        }
        let outer = self.outer.get_or_init(|| Outer::of(&self.dir));
        for (directory, before) in &outer.directories {
            let rules = |name: &[u8]| self.outside(&directory.join(OsStr::from_bytes(name)));
            let (before, ignore, git) = (before.clone(), rules(IGNORE), rules(GITIGNORE));
            chain.levels.push(Level { before, skip: 0, ignore, git });
        }
        chain.exclude = outer.exclude.as_ref().and_then(|(file, before)| {
            let git = Some(self.outside(file)?);
            Some(Level { before: before.clone(), skip: 0, ignore: None, git })
        });
        self.descend(root, &mut chain, b"");
        chain
    }

    /// What the files of rules in the repository around the root are like now.
    pub(super) fn outer_facts(&self) -> Vec<Option<Facts>> {
        if !self.gitignore {
            return Vec::new();
        }
        let outer = self.outer.get_or_init(|| Outer::of(&self.dir));
        let names = [IGNORE, GITIGNORE].map(|name| Path::new(OsStr::from_bytes(name)));
        let above = outer.directories.iter().flat_map(|directory| names.map(|name| directory.0.join(name)));
        let paths = above.chain(outer.exclude.iter().map(|(exclude, _)| exclude.clone()));
        paths.map(|path| rustix::fs::stat(path).ok().map(|stat| Facts::of(&stat))).collect()
    }

    /// The rules in a file beneath the root. It is opened only if it is not the one whose rules are kept.
    fn beneath(&self, root: &Root, directory: &[u8], name: &[u8]) -> Option<Arc<Gitignore>> {
        let path = join(directory, name);
        if let Some(rules) = self.known(&path, &root.stat(directory, name)?) {
            return rules;
        }
        match root.open(&path) {
            Ok(opened) if opened.facts.kind == Kind::File => {
                let facts = opened.facts;
                self.keep(path, facts, opened.into_file())
            }
            Ok(_) | Err(Missing::NotFound | Missing::Failed(_)) => None,
        }
    }

    /// The rules in a file of the repository that the root is in.
    fn outside(&self, path: &Path) -> Option<Arc<Gitignore>> {
        use rustix::fs::{Mode, OFlags};
        let key = path.as_os_str().as_bytes();
        if let Some(rules) = self.known(key, &Facts::of(&rustix::fs::stat(path).ok()?)) {
            return rules;
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let facts = Facts::of(&rustix::fs::fstat(&file).ok()?);
        if facts.kind != Kind::File {
            return None;
        }
        self.keep(key.to_vec(), facts, std::fs::File::from(file))
    }

    /// What was kept of a file of rules, if it is still the same one and was not changed.
    fn known(&self, path: &[u8], facts: &Facts) -> Option<Option<Arc<Gitignore>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(path).filter(|(known, _)| known == facts).map(|(_, rules)| rules.clone())
    }

    /// Reads a file of rules that is open, and keeps them.
    fn keep(&self, path: Vec<u8>, facts: Facts, file: impl Read) -> Option<Arc<Gitignore>> {
        let mut text = Vec::new();
        file.take(LARGEST).read_to_end(&mut text).ok()?;
        let rules = parse(&text);
        let seconds = u64::try_from(facts.modified.0).unwrap_or_default();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        if SystemTime::now().duration_since(changed).is_ok_and(|age| age > SETTLED) {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(path, (facts, rules.clone()));
        }
        rules
    }
}

impl Chain {
    /// By the nearest rule that says something.
    fn is_ignored(&self, path: &[u8], is_dir: bool) -> bool {
        let nearest = |sort: fn(&Level) -> Option<&Gitignore>| {
            let mut levels = self.levels.iter().rev();
            levels.find_map(|level| level.asks(sort(level)?, path, is_dir))
        };
        if let Some(verdict) =
            nearest(|level| level.ignore.as_deref()).or_else(|| nearest(|level| level.git.as_deref()))
        {
            return verdict;
        }
        let exclude = self.exclude.as_ref();
        exclude.and_then(|level| level.asks(level.git.as_ref()?, path, is_dir)).unwrap_or(false)
    }
}

impl Level {
    /// Whether a rule has the path ignored; `None` if none is about it.
    fn asks(&self, rules: &Gitignore, path: &[u8], is_dir: bool) -> Option<bool> {
        let rest = path.get(self.skip..)?;
        let whole;
        let own = if self.before.is_empty() {
            rest
        } else {
            whole = [&*self.before, rest].concat();
            &whole
        };
        match rules.matched(native(own), is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        }
    }
}

impl Outer {
    /// Looked for once: a repository that is made around a root later counts after a restart.
    fn of(dir: &Path) -> Self {
        let Ok(real) = std::fs::canonicalize(dir) else { return Self::default() };
        let Some(repository) = real.ancestors().find(|at| at.join(".git").exists()) else {
            return Self::default();
        };
        let before = |above: &Path| {
            let rest = real.strip_prefix(above).map(|rest| rest.as_os_str().as_bytes()).unwrap_or_default();
            if rest.is_empty() { Vec::new() } else { [rest, b"/"].concat() }
        };
        let above = real.ancestors().skip(1).take_while(|at| at.starts_with(repository));
        let mut directories: Vec<_> = above.map(|at| (at.to_owned(), before(at))).collect();
        directories.reverse();
        Self { directories, exclude: Some((repository.join(EXCLUDE), before(repository))) }
    }
}

/// The rules of a text. A line that is none counts for nothing.
fn parse(text: &[u8]) -> Option<Arc<Gitignore>> {
    let text = String::from_utf8_lossy(text);
    let mut builder = GitignoreBuilder::new("");
    for line in text.trim_start_matches('\u{feff}').lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().ok().filter(|rules| !rules.is_empty()).map(Arc::new)
}

fn native(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
