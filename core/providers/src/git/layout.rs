//! The directories of a repository, and the check that they are its own.
//!
//! ```text
//!   DIR/.git a directory          an ordinary repository
//!   DIR/{HEAD,objects,refs}       a bare one
//!   DIR/.git a file               a linked worktree, if the directory that it names points back to DIR; refused otherwise
//! ```
//!
//! Law: everything that is read lies beneath the declared directory or, for a linked worktree, beneath the repository that the
//! worktree belongs to. Otherwise a directory from somebody else could show any repository of this machine.

use std::fmt;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The largest `.git` file or list of alternates that is read, in bytes.
const LARGEST: u64 = 64 * 1024;
/// The deepest nesting of alternates.
const ALTERNATES: usize = 5;
/// Parts of a repository that may be links, if their targets lie inside.
const COMMON: [&str; 8] =
    ["objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "packed-refs", "config"];
const OWN: [&str; 2] = ["HEAD", "index"];

/// The directories of a repository, without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Where HEAD and the index are.
    pub(super) git_dir: PathBuf,
    /// Where objects and references are: for a linked worktree those of its repository.
    common_dir: PathBuf,
    /// The working tree; a bare repository has none.
    pub(super) work_dir: Option<PathBuf>,
}

/// Why a directory is not served: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Device, inode, time and size of the parts that decide what is read: if they are the same, so is the repository.
pub(super) type Signature = Vec<Option<(u64, u64, i64, i64, u64)>>;

impl Layout {
    /// Finds and checks the repository in `dir`.
    ///
    /// # Errors
    /// It is not a repository, or one of its parts lies elsewhere.
    pub(super) fn find(dir: &Path) -> Result<Self, Refusal> {
        let root = fs::canonicalize(dir).map_err(|error| refusal(format!("cannot be opened ({error})")))?;
        let dot = root.join(".git");
        let layout = match fs::symlink_metadata(&dot) {
            Err(_) if is_git_dir(&root) => {
                if root.join("commondir").exists() {
                    let reason = "is a part of another repository; name the directory of the working tree";
                    return Err(refusal(reason.into()));
                }
                Self { git_dir: root.clone(), common_dir: root.clone(), work_dir: None }
            }
            Err(_) => {
                let reason = "is not the root of a git repository; name the directory that has .git, or a bare repository";
                return Err(refusal(reason.into()));
            }
            Ok(found) if found.is_file() => Self::of_file(&root, &dot)?,
            Ok(_) => {
                let git_dir = inside(&dot, &[&root])?;
                Self { common_dir: git_dir.clone(), git_dir, work_dir: Some(root.clone()) }
            }
        };
        layout.check(&root)?;
        Ok(layout)
    }

    /// Follows a `.git` file.
    fn of_file(root: &Path, dot: &Path) -> Result<Self, Refusal> {
        let text = text_of(dot).ok_or_else(|| refusal("has a .git file that cannot be read".into()))?;
        let named = text.strip_prefix("gitdir:").map(str::trim).filter(|path| !path.is_empty());
        let named = named.ok_or_else(|| refusal("has a .git file that names no directory".into()))?;
        let outside = || {
            let reason = format!(
                "has a .git file that leads out of it, to {named}; name the repository itself, or a worktree that `git \
                 worktree add` made"
            );
            refusal(reason)
        };
        let git_dir = fs::canonicalize(root.join(named)).map_err(|_| outside())?;
        let work_dir = Some(root.to_owned());
        if git_dir.starts_with(root) && !git_dir.join("commondir").exists() {
            return Ok(Self { common_dir: git_dir.clone(), git_dir, work_dir });
        }
        let worktrees = git_dir.parent().filter(|parent| parent.ends_with("worktrees"));
        let common_dir = worktrees.and_then(Path::parent).ok_or_else(outside)?;
        let points_to = |name: &str, to: &Path| {
            let text = text_of(&git_dir.join(name));
            text.and_then(|text| fs::canonicalize(git_dir.join(text.trim())).ok())
                .is_some_and(|path| path == to)
        };
        let is_genuine =
            is_git_dir(common_dir) && points_to("gitdir", dot) && points_to("commondir", common_dir);
        if !is_genuine {
            return Err(outside());
        }
        Ok(Self { common_dir: common_dir.to_owned(), git_dir, work_dir })
    }

    fn check(&self, root: &Path) -> Result<(), Refusal> {
        if !is_git_dir(&self.common_dir) {
            return Err(refusal("has a .git that is no repository; run `git init` there".into()));
        }
        if self.common_dir.join("reftable").exists() {
            let reason = "keeps its references in a reftable, which is not supported; `git refs migrate --ref-format=files` changes that";
            return Err(refusal(reason.into()));
        }
        let areas = [root, &self.common_dir];
        let common = COMMON.iter().map(|name| self.common_dir.join(name));
        for part in common.chain(OWN.iter().map(|name| self.git_dir.join(name))) {
            if fs::symlink_metadata(&part).is_ok() {
                inside(&part, &areas)?;
            }
        }
        check_alternates(&self.common_dir.join("objects"), &areas, ALTERNATES)
    }

    /// The signature as it is now. `dir` is the declared directory.
    pub(super) fn signature(&self, dir: &Path) -> Signature {
        let stat = |path: &Path, is_file: bool| {
            let found = fs::symlink_metadata(path).ok()?;
            let times = if is_file { (found.mtime(), found.mtime_nsec(), found.size()) } else { (0, 0, 0) };
            Some((found.dev(), found.ino(), times.0, times.1, times.2))
        };
        let objects = self.common_dir.join("objects");
        vec![
            stat(&dir.join(".git"), false),
            stat(&self.git_dir, false),
            stat(&self.common_dir.join("config"), true),
            stat(&objects, false),
            stat(&objects.join("info/alternates"), true),
        ]
    }
}

fn refusal(text: String) -> Refusal {
    Refusal(text)
}

fn is_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

/// A small file, as text.
fn text_of(path: &Path) -> Option<String> {
    // Looked at first: opening a FIFO would wait.
    let is_small = |found: fs::Metadata| found.is_file() && found.len() <= LARGEST;
    fs::metadata(path).is_ok_and(is_small).then_some(())?;
    let mut text = String::new();
    let read = fs::File::open(path).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= LARGEST).then_some(text)
}

/// The target of `path`, which must lie beneath one of `areas`.
fn inside(path: &Path, areas: &[&Path]) -> Result<PathBuf, Refusal> {
    let real = fs::canonicalize(path).ok().filter(|real| areas.iter().any(|area| real.starts_with(area)));
    real.ok_or_else(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        refusal(format!("has a link, {name}, that leads out of it; put what it leads to in its place"))
    })
}

/// Checks the object directories that another one borrows from.
fn check_alternates(objects: &Path, areas: &[&Path], depth: usize) -> Result<(), Refusal> {
    let file = objects.join("info/alternates");
    if fs::symlink_metadata(&file).is_err() {
        return Ok(());
    }
    let wrong = |line: &str| {
        refusal(format!(
            "borrows objects from outside, objects/info/alternates names {line}; `git repack -a -d` makes it stand alone"
        ))
    };
    let text = text_of(&file).ok_or_else(|| wrong("what cannot be read"))?;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let real = fs::canonicalize(objects.join(line)).map_err(|_| wrong(line))?;
        if depth == 0 || !areas.iter().any(|area| real.starts_with(area)) {
            return Err(wrong(line));
        }
        check_alternates(&real, areas, depth - 1)?;
    }
    Ok(())
}
