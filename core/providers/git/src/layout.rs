//! The directories of a repository, and the check that they are its own.
//!
//! ```text
//!   DIR/.git a directory          an ordinary repository
//!   DIR/{HEAD,objects,refs}       a bare one
//!   DIR/.git a file               a linked worktree, if the directory that it names points back to DIR; refused otherwise
//! ```
//!
//! Law: only files under the declared directory are read or, for a linked worktree, under the repository that the
//! worktree belongs to. Otherwise a prepared directory could expose any repository of this machine.

use super::parts::Areas;
use mcp_resources_provider_kit::file_id::{FileId, FileTime};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The largest `.git` file or list of alternates that is read, in bytes.
const LARGEST: u64 = 64 * 1024;
/// The deepest nesting of alternates.
const ALTERNATES: usize = 5;
/// The parts of a repository that are read. Links in their place must lead inside; other links, such as `hooks`, may lead
/// anywhere.
const READ: [&str; 8] =
    ["HEAD", "config", "config.worktree", "index", "objects", "packed-refs", "refs", "shallow"];
/// Those that are files.
const FILES: [&str; 8] = [
    "HEAD",
    "config",
    "config.worktree",
    "index",
    "packed-refs",
    "shallow",
    "info/exclude",
    "info/attributes",
];
/// Leads to the repository that a directory is a part of.
const COMMON_DIR: &str = "commondir";

/// The directories of a repository, without links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitLayout {
    /// The directory of HEAD and the index.
    pub(super) git_dir: PathBuf,
    /// The directory of objects and references: for a linked worktree, that of its repository.
    pub(super) common_dir: PathBuf,
    /// The working tree; a bare repository has none.
    pub(super) work_dir: Option<PathBuf>,
}

/// The reason for not serving a directory, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LayoutRefusal(String);

impl fmt::Display for LayoutRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Identifies a part of a repository: a directory, or a file with these contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartIdentity {
    id: FileId,
    /// Its time and size; `None` for a directory.
    contents: Option<(FileTime, u64)>,
}

/// Identifies the checked state of a repository, to notice when it is another one or has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    /// The parts that identify the repository: if they differ, it is another one.
    pub(super) identity: Vec<Option<PartIdentity>>,
    /// When an entry of its directories was last added, replaced or removed: it must be checked again. Programs cannot set
    /// these times.
    entries: Vec<Option<FileTime>>,
}

impl GitLayout {
    /// Finds and checks the repository in `dir`. The signature is of the time before the check.
    ///
    /// # Errors
    /// It is not a repository, or one of its parts is elsewhere.
    pub(super) fn find(dir: &Path) -> Result<(Self, Signature), LayoutRefusal> {
        let root = fs::canonicalize(dir).map_err(|error| refusal(format!("cannot be opened ({error})")))?;
        let layout = Self::locate(&root)?;
        let signature = layout.signature(dir);
        layout.check(&root)?;
        Ok((layout, signature))
    }

    fn locate(root: &Path) -> Result<Self, LayoutRefusal> {
        let dot = root.join(".git");
        let layout = match fs::symlink_metadata(&dot) {
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return Err(denied(&dot)),
            Err(_) if is_git_dir(root) => {
                if has_common_dir(root) {
                    let reason = "is a part of another repository; name the directory of the working tree";
                    return Err(refusal(reason.into()));
                }
                Self { git_dir: root.to_owned(), common_dir: root.to_owned(), work_dir: None }
            }
            Err(_) => {
                let reason = "is not the root of a git repository; name the directory that has .git, or a bare repository";
                return Err(refusal(reason.into()));
            }
            Ok(found) if found.is_file() => Self::of_file(root, &dot)?,
            Ok(_) => {
                let git_dir = inside(&dot, &[root])?;
                if has_common_dir(&git_dir) {
                    let reason = "has a file .git/commondir, which leads to another repository; name that one, or remove the file";
                    return Err(refusal(reason.into()));
                }
                Self { common_dir: git_dir.clone(), git_dir, work_dir: Some(root.to_owned()) }
            }
        };
        Ok(layout)
    }

    /// Follows a `.git` file.
    fn of_file(root: &Path, dot: &Path) -> Result<Self, LayoutRefusal> {
        let text = text_of(dot).ok_or_else(|| refusal("has a .git file that cannot be read".into()))?;
        let named = text.strip_prefix("gitdir:").map(str::trim).filter(|path| !path.is_empty());
        let named = named.ok_or_else(|| refusal("has a .git file that names no directory".into()))?;
        let target = fs::canonicalize(root.join(named)).ok();
        let outside = || {
            let fix = match &target {
                Some(target) if named.contains("/modules/") => {
                    format!("to serve the submodule, name {}", target.display())
                }
                _ => "name the repository itself, or a worktree that `git worktree add` made; if one of them was moved, \
                          run `git worktree repair`"
                    .into(),
            };
            refusal(format!("has a .git file that leads out of it, to {named}; {fix}"))
        };
        let Some(git_dir) = target.clone() else { return Err(outside()) };
        let work_dir = Some(root.to_owned());
        if git_dir.starts_with(root) && !has_common_dir(&git_dir) {
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
            is_git_dir(common_dir) && points_to("gitdir", dot) && points_to(COMMON_DIR, common_dir);
        if !is_genuine {
            return Err(outside());
        }
        Ok(Self { common_dir: common_dir.to_owned(), git_dir, work_dir })
    }

    fn check(&self, root: &Path) -> Result<(), LayoutRefusal> {
        let needed = [
            self.git_dir.join("HEAD"),
            self.common_dir.join("objects/pack"),
            self.common_dir.join("refs/heads"),
        ];
        let is_denied = |path: &&PathBuf| {
            fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
        };
        if let Some(path) = needed.iter().find(is_denied) {
            return Err(denied(path));
        }
        if !is_git_dir(&self.common_dir) {
            return Err(refusal("has a .git that is no repository; run `git init` there".into()));
        }
        if self.common_dir.join("reftable").exists() {
            let reason = "keeps its references in a reftable, which is not supported; `git refs migrate --ref-format=files` changes that";
            return Err(refusal(reason.into()));
        }
        let areas = [root, &self.common_dir];
        for dir in [&self.git_dir, &self.common_dir] {
            FILES.iter().try_for_each(|name| check_file(&dir.join(name), name))?;
        }
        for dir in [&self.git_dir, &self.common_dir] {
            links(dir).filter(|link| is_read(link)).try_for_each(|link| inside(&link, &areas).map(drop))?;
        }
        let objects = self.common_dir.join("objects");
        check_links(&objects, &areas)?;
        check_links(&self.common_dir.join("refs"), &areas)?;
        check_alternates(&objects, &areas, ALTERNATES)
    }

    /// The directories that contain everything that is read.
    pub(super) fn areas(&self) -> Areas {
        let own = self.work_dir.iter().chain([&self.git_dir, &self.common_dir]);
        Areas::new(own.cloned().collect())
    }

    /// The current signature, without a check. `dir` is the declared directory.
    pub(super) fn signature(&self, dir: &Path) -> Signature {
        let stat = |path: &Path| fs::symlink_metadata(path).ok();
        let directory = |found: &Option<Metadata>| {
            found.as_ref().map(|at| PartIdentity { id: at.into(), contents: None })
        };
        let file = |found: &Option<Metadata>| {
            let contents = |at: &Metadata| Some((FileTime::modified(at), at.len()));
            found.as_ref().map(|at| PartIdentity { id: at.into(), contents: contents(at) })
        };
        let changed = |found: &Option<Metadata>| found.as_ref().map(FileTime::changed);
        let objects = self.common_dir.join("objects");
        let refs = self.common_dir.join("refs");
        let own = stat(&self.git_dir);
        let dot = dir.join(".git");
        let dot = if dot == self.git_dir { own.clone() } else { stat(&dot) };
        let identity = [dot, own, stat(&objects)];
        let settings = [stat(&self.common_dir.join("config")), stat(&objects.join("info/alternates"))];
        let below = [objects.join("info"), objects.join("pack"), refs.join("heads"), refs.join("tags"), refs];
        let common = if self.common_dir == self.git_dir { None } else { stat(&self.common_dir) };
        let [_, own, own_objects] = &identity;
        let entries = [own, own_objects, &common].into_iter().map(changed);
        Signature {
            entries: entries.chain(below.iter().map(|path| changed(&stat(path)))).collect(),
            identity: identity.iter().map(directory).chain(settings.iter().map(file)).collect(),
        }
    }
}

pub(super) fn refusal(text: String) -> LayoutRefusal {
    LayoutRefusal(text)
}

/// A part that the permissions of the file system keep from this process.
fn denied(path: &Path) -> LayoutRefusal {
    refusal(format!("cannot be read: permission denied for {}; let this process read it", path.display()))
}

/// Whether git would take objects and references from another directory.
fn has_common_dir(dir: &Path) -> bool {
    dir.join(COMMON_DIR).symlink_metadata().is_ok()
}

fn is_git_dir(dir: &Path) -> bool {
    dir.join("HEAD").symlink_metadata().is_ok() && dir.join("objects").is_dir() && dir.join("refs").is_dir()
}

/// Refuses an existing entry that is not a file, without opening it.
fn check_file(path: &Path, name: &str) -> Result<(), LayoutRefusal> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(refusal(format!(
            "has a {name} that is no regular file; remove it, and put the file back in its place"
        ))),
        _ => Ok(()),
    }
}

/// A small file, as text.
fn text_of(path: &Path) -> Option<String> {
    // Looked at first: opening a FIFO would wait.
    let is_small = |found: Metadata| found.is_file() && found.len() <= LARGEST;
    fs::metadata(path).is_ok_and(is_small).then_some(())?;
    let mut text = String::new();
    let read = fs::File::open(path).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= LARGEST).then_some(text)
}

/// Whether an entry at the top of a repository is read.
fn is_read(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    READ.contains(&name) || name.starts_with("sharedindex.")
}

/// The symbolic links in a directory.
fn links(dir: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink())).map(|entry| entry.path())
}

/// Checks every link under a directory, also behind links.
fn check_links(dir: &Path, areas: &[&Path]) -> Result<(), LayoutRefusal> {
    let mut todo = vec![dir.to_owned()];
    let mut seen = HashSet::new();
    while let Some(dir) = todo.pop() {
        if !seen.insert(dir.clone()) {
            continue;
        }
        // A link may lead to a file, which has no entries.
        for entry in fs::read_dir(&dir).into_iter().flatten().filter_map(Result::ok) {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => todo.push(inside(&entry.path(), areas)?),
                Ok(kind) if kind.is_dir() => todo.push(entry.path()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The target of `path`, which must be under one of `areas`.
fn inside(path: &Path, areas: &[&Path]) -> Result<PathBuf, LayoutRefusal> {
    let real = fs::canonicalize(path).ok().filter(|real| areas.iter().any(|area| real.starts_with(area)));
    real.ok_or_else(|| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        refusal(format!("has a link, {name}, that leads out of it; put what it leads to in its place"))
    })
}

/// Checks the object directories that another one borrows from.
fn check_alternates(objects: &Path, areas: &[&Path], depth: usize) -> Result<(), LayoutRefusal> {
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
