//! Decides which paths under a root are served: not those that are hidden, ignored or excluded, nor anything under
//! them.
//!
//! ```text
//!   chain of a directory = [the repository above the root] root, a, a/b      each level: its .ignore and .gitignore
//!   admits a/b/c:  name not hidden · no exclude · include
//!                  · nearest rule of .ignore, else of .gitignore, else of info/exclude of the repository
//! ```
//!
//! Law: a path is judged with all its parents, one after another: nothing under an ignored directory is served. A rule
//! file is read again when it has changed, with or without a watcher. If it exists and cannot be read, everything that
//! it could hide is hidden, and the log says so.

use super::directory_names::{DirectoryNames, GITIGNORE, IGNORE, PathNames};
use super::gitignore::IgnoreRules;
use super::options::FileSettings;
use super::repository::Repository;
use super::root_directory::{EntryFacts, RootDirectory, components};
use super::rule_files::RuleFiles;
use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_kit::selection::Selection;
use mcp_resources_runtime::sync::Mutex;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After how long the repository around a root is looked for again, and its configuration is looked at.
const FRESH: Duration = Duration::from_millis(500);

/// The rules of one root.
#[derive(Debug)]
pub(super) struct FolderRules {
    gitignore: bool,
    selection: Selection,
    dir: PathBuf,
    outer: Mutex<Option<(Instant, Arc<Outer>)>>,
    files: RuleFiles,
}

/// The repository that contains the root, or is it: the location of its rules, and the prefix of the root's paths for
/// them.
#[derive(Debug, Default)]
struct Outer {
    /// The directories above the root, from the outermost on.
    directories: Vec<(PathBuf, Vec<u8>)>,
    repository: Option<Repository>,
    /// The path of its rules outside its tree, if they are under the root.
    exclude: Option<Vec<u8>>,
    /// Whether its configuration takes upper and lower case for the same.
    folds: bool,
    /// The prefix of a path for the repository's rules that are outside its tree.
    before: Vec<u8>,
}

/// The rules that apply to the entries of a directory.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    levels: Vec<RulesLevel>,
    /// Whether the repository that the directory is in takes upper and lower case for the same.
    folds: bool,
}

#[derive(Clone, Debug)]
struct RulesLevel {
    /// The prefix of a path under the root, for a level above it.
    before: Vec<u8>,
    /// The number of bytes of a path under the root that lead to this level, with the slash.
    skip: usize,
    ignore: Option<Arc<IgnoreRules>>,
    git: Option<Arc<IgnoreRules>>,
}

impl FolderRules {
    /// # Errors
    /// A glob cannot be read.
    pub(super) fn new(kind: &'static str, settings: &FileSettings, dir: &Path) -> Result<Self, OptionError> {
        Ok(Self {
            gitignore: settings.gitignore,
            selection: Selection::new(kind, settings.hidden, &settings.include, &settings.exclude)?,
            dir: dir.to_owned(),
            outer: Mutex::default(),
            files: RuleFiles::default(),
        })
    }

    /// Whether rule files are read.
    pub(super) fn has_files(&self) -> bool {
        self.gitignore
    }

    /// Whether the rules let the entry at `path` be served. The root itself always is. `names` are those of the directories
    /// on the path.
    pub(super) fn admits(&self, root: &RootDirectory, path: &[u8], is_dir: bool, names: &PathNames) -> bool {
        if path.is_empty() {
            return true;
        }
        let above = path.iter().rposition(|byte| *byte == b'/').map_or(&b""[..], |at| &path[..at]);
        self.chain(root, above, names).is_some_and(|chain| self.admits_entry(&chain, path, is_dir))
    }

    /// The rules for the entries of the directory at `path`; `None` if the directory is not served itself. `names` are those
    /// of the directories on the path, and of the directory.
    pub(super) fn chain(&self, root: &RootDirectory, path: &[u8], names: &PathNames) -> Option<Chain> {
        let mut chain = self.top(root, names.at(0));
        let mut at = 0;
        for (depth, name) in components(path).enumerate() {
            let end = at + name.len();
            chain = self.below(root, chain, path.get(..end)?, names.at(depth + 1))?;
            at = end + 1;
        }
        Some(chain)
    }

    /// The chain of the directory at `path`, from that of the one above it; `None` if it is not served. `names` are those of
    /// the directory.
    pub(super) fn below(
        &self,
        root: &RootDirectory,
        mut chain: Chain,
        path: &[u8],
        names: DirectoryNames,
    ) -> Option<Chain> {
        if !self.admits_entry(&chain, path, true) {
            return None;
        }
        if self.gitignore {
            let nested = || self.files.nested(root, path, || self.dir.join(OsStr::from_bytes(path)));
            // What the repository around this one ignores stays ignored.
            if !names.lack_git
                && let Some(nested) = nested()
            {
                chain.folds = self.files.folds(&nested);
                chain.levels.push(RulesLevel {
                    before: Vec::new(),
                    skip: path.len() + 1,
                    ignore: None,
                    git: self.files.exclude(&nested, chain.folds),
                });
            }
            self.descend(root, &mut chain, path, names);
        }
        Some(chain)
    }

    fn descend(&self, root: &RootDirectory, chain: &mut Chain, path: &[u8], names: DirectoryNames) {
        let skip = if path.is_empty() { 0 } else { path.len() + 1 };
        let rules = |name: &[u8], folds| self.files.rules_in(root, path, name, folds, &self.dir);
        let ignore = if names.lack_ignore { None } else { rules(IGNORE, false) };
        let git = if names.lack_gitignore { None } else { rules(GITIGNORE, chain.folds) };
        if ignore.is_some() || git.is_some() {
            chain.levels.push(RulesLevel { before: Vec::new(), skip, ignore, git });
        }
    }

    /// Whether an entry of the directory that `chain` is of is served. `path` is the whole one.
    pub(super) fn admits_entry(&self, chain: &Chain, path: &[u8], is_dir: bool) -> bool {
        self.selection.admits_entry(path, is_dir) && !chain.is_ignored(path, is_dir)
    }

    /// The chain of the root.
    fn top(&self, root: &RootDirectory, names: DirectoryNames) -> Chain {
        let mut chain = Chain { levels: Vec::new(), folds: false };
        if !self.gitignore {
            return chain;
        }
        let outer = self.outer();
        if let Some(repository) = &outer.repository {
            chain.folds = outer.folds;
            let git = match &outer.exclude {
                Some(path) => self.files.exclude_in(root, path, repository, chain.folds),
                None => self.files.exclude(repository, chain.folds),
            };
            chain.levels.push(RulesLevel { before: outer.before.clone(), skip: 0, ignore: None, git });
        }
        for (directory, before) in &outer.directories {
            let rules =
                |name: &[u8], folds| self.files.outside(&directory.join(OsStr::from_bytes(name)), folds);
            let ignore = rules(IGNORE, false);
            let git = rules(GITIGNORE, chain.folds);
            chain.levels.push(RulesLevel { before: before.clone(), skip: 0, ignore, git });
        }
        self.descend(root, &mut chain, b"", names);
        chain
    }

    /// The repository around the root, as it was found a moment ago at most.
    fn outer(&self) -> Arc<Outer> {
        let mut outer = self.outer.lock();
        match &*outer {
            Some((found, outer)) if found.elapsed() < FRESH => outer.clone(),
            _ => {
                let found = Arc::new(Outer::find(&self.dir, &self.files));
                *outer = Some((Instant::now(), found.clone()));
                found
            }
        }
    }

    /// The metadata of the rule files outside the directories of the root.
    pub(super) fn outer_facts(&self) -> Vec<Option<EntryFacts>> {
        if !self.gitignore {
            return Vec::new();
        }
        let outer = self.outer();
        let names = [IGNORE, GITIGNORE].map(|name| Path::new(OsStr::from_bytes(name)));
        let above = outer.directories.iter().flat_map(|directory| names.map(|name| directory.0.join(name)));
        let repositories = outer.repository.iter().cloned().chain(self.files.known_repositories());
        let paths = above.chain(repositories.flat_map(|repository| repository.rule_files()));
        paths.map(|path| rustix::fs::stat(path).ok().map(|stat| EntryFacts::from_stat(&stat))).collect()
    }

    /// Takes the sentences for the log about rule files that could not be read since the last call.
    pub(super) fn take_faults(&self) -> Vec<String> {
        self.files.take_faults()
    }
}

impl Chain {
    /// By the nearest rule that says something.
    fn is_ignored(&self, path: &[u8], is_dir: bool) -> bool {
        let nearest = |sort: fn(&RulesLevel) -> Option<&IgnoreRules>| {
            let mut levels = self.levels.iter().rev();
            levels.find_map(|level| level.asks(sort(level)?, path, is_dir))
        };
        nearest(|level| level.ignore.as_deref())
            .or_else(|| nearest(|level| level.git.as_deref()))
            .unwrap_or(false)
    }
}

impl RulesLevel {
    /// Whether a rule ignores the path; `None` if no rule matches.
    fn asks(&self, rules: &IgnoreRules, path: &[u8], is_dir: bool) -> Option<bool> {
        let rest = path.get(self.skip..)?;
        if self.before.is_empty() {
            return rules.decide(rest, is_dir);
        }
        rules.decide(&[&*self.before, rest].concat(), is_dir)
    }
}

impl Outer {
    fn find(dir: &Path, files: &RuleFiles) -> Self {
        let Ok(real) = std::fs::canonicalize(dir) else { return Self::default() };
        let found = real.ancestors().find_map(|at| Some((at, files.repository(at)?)));
        let Some((top, repository)) = found else { return Self::default() };
        let before = |above: &Path| {
            let rest = real.strip_prefix(above).map(|rest| rest.as_os_str().as_bytes()).unwrap_or_default();
            if rest.is_empty() { Vec::new() } else { [rest, b"/"].concat() }
        };
        let above = real.ancestors().skip(1).take_while(|at| at.starts_with(top));
        let mut directories: Vec<_> = above.map(|at| (at.to_owned(), before(at))).collect();
        directories.reverse();
        let folds = files.folds(&repository);
        let exclude = repository.exclude().strip_prefix(&real).ok();
        let exclude = exclude.map(|path| path.as_os_str().as_bytes().to_vec());
        Self { directories, before: before(top), repository: Some(repository), exclude, folds }
    }
}
