//! The storage of references: files under `refs`, lines of `packed-refs`, and HEAD.
//!
//! ```text
//!   refs/heads/main ──a file──▶ ID, or ref: refs/heads/other ──▶ …
//!          └────────a line of packed-refs──▶ ID
//! ```
//!
//! Law: a file that is not a reference is skipped in a list, and is an error when it is requested. All reads are
//! limited in size. What a file said counts for as long as its metadata is the same, and no longer.

use super::parts::{Areas, PartError, PartStamp, stamp};
use gix::ObjectId;
use mcp_resources_runtime::sync::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The largest file of one reference, and the largest `packed-refs`, in bytes.
const LOOSE: u64 = 4 * 1024;
const PACKED: u64 = 64 << 20;
/// Maximum length of a chain of symbolic references: git's own limit.
const SYMBOLIC: usize = 5;
/// The most references of a folder that are visited, and the deepest nesting of their folders.
const LARGEST: usize = 100_000;
const DEEPEST: usize = 64;
/// Maximum number of files whose values are kept.
const KEPT: usize = 4_096;

/// The value of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RefPointer {
    Id(ObjectId),
    /// The full name of another one.
    Name(String),
}

/// The references of one repository.
#[derive(Debug)]
pub(super) struct RefStore {
    areas: Areas,
    /// The directory of HEAD, and of the references of one working tree.
    git_dir: PathBuf,
    /// The directory of all other references.
    common_dir: PathBuf,
    packed: Mutex<Option<(PartStamp, Arc<PackedRefs>)>>,
    /// The values of files, by their paths.
    loose: Mutex<HashMap<PathBuf, LooseRef>>,
}

/// A file of one reference when it was read.
#[derive(Debug)]
struct LooseRef {
    stamp: PartStamp,
    pointer: RefPointer,
}

/// The lines of `packed-refs`, by name.
type PackedRefs = Vec<(String, ObjectId)>;

impl RefStore {
    pub(super) fn new(areas: &Areas, git_dir: &Path, common_dir: &Path) -> Self {
        let git_dir = git_dir.to_owned();
        let common_dir = common_dir.to_owned();
        Self { areas: areas.clone(), git_dir, common_dir, packed: Mutex::default(), loose: Mutex::default() }
    }

    /// The value of a reference; `None` if there is none. `name` is full, such as `refs/heads/main` or `HEAD`.
    pub(super) fn find(&self, name: &str) -> Result<Option<RefPointer>, PartError> {
        let path = self.dir(name).join(name);
        match self.loose(&path) {
            Ok(found) => return Ok(Some(found)),
            // A folder of references may have the name of one that is packed.
            Err(PartError::NotFound) => {}
            Err(PartError::NoFile) if path.is_dir() => {}
            Err(error) => return Err(error),
        }
        let packed = self.packed()?;
        let at = packed.binary_search_by(|(other, _)| other.as_str().cmp(name));
        Ok(at.ok().and_then(|at| packed.get(at)).map(|(_, id)| RefPointer::Id(*id)))
    }

    /// The object that a reference leads to; `None` if one on the way is not there.
    pub(super) fn follow(&self, pointer: RefPointer) -> Result<Option<ObjectId>, PartError> {
        let mut pointer = pointer;
        for _ in 0..SYMBOLIC {
            let name = match pointer {
                RefPointer::Id(id) => return Ok(Some(id)),
                RefPointer::Name(name) => name,
            };
            match self.find(&name)? {
                Some(next) => pointer = next,
                None => return Ok(None),
            }
        }
        match pointer {
            RefPointer::Id(id) => Ok(Some(id)),
            RefPointer::Name(_) => Ok(None),
        }
    }

    /// The references under a folder such as `refs/heads/`, each with the object that it leads to. Broken ones are left out.
    pub(super) fn under(&self, folder: &str) -> Result<Vec<(String, ObjectId)>, PartError> {
        let packed = self.packed()?;
        let from = packed.partition_point(|(name, _)| name.as_str() < folder);
        let packed = packed.iter().skip(from).take_while(|(name, _)| name.starts_with(folder)).take(LARGEST);
        let mut all: BTreeMap<String, ObjectId> = packed.cloned().collect();
        let mut todo = vec![(folder.trim_end_matches('/').to_owned(), 0)];
        let mut seen = 0;
        while let Some((dir, depth)) = todo.pop() {
            let path = self.dir(&dir).join(&dir);
            for entry in fs::read_dir(path).into_iter().flatten().filter_map(Result::ok) {
                seen += 1;
                if seen > LARGEST || depth > DEEPEST {
                    break;
                }
                let Some(name) = entry.file_name().to_str().map(|name| format!("{dir}/{name}")) else {
                    continue;
                };
                let is_dir = match entry.file_type() {
                    Ok(kind) if kind.is_symlink() => {
                        self.areas.has_directory(&entry.path()) && entry.path().is_dir()
                    }
                    Ok(kind) => kind.is_dir(),
                    Err(_) => continue,
                };
                if is_dir {
                    todo.push((name, depth + 1));
                } else if let Ok(pointer) = self.loose(&entry.path())
                    && let Ok(Some(id)) = self.follow(pointer)
                {
                    all.insert(name, id);
                }
            }
        }
        Ok(all.into_iter().collect())
    }

    /// Working trees share their references, but for HEAD and a few others.
    fn dir(&self, name: &str) -> &Path {
        const OWN: [&str; 3] = ["refs/bisect", "refs/worktree", "refs/rewritten"];
        let is_own = |folder: &str| {
            name.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if !name.starts_with("refs") || OWN.iter().any(|folder| is_own(folder)) {
            &self.git_dir
        } else {
            &self.common_dir
        }
    }

    fn loose(&self, path: &Path) -> Result<RefPointer, PartError> {
        let found = fs::symlink_metadata(path)?;
        // HEAD was a link in old repositories.
        if found.is_symlink()
            && let Ok(target) = fs::read_link(path)
            && let Some(name) = target.to_str().filter(|name| is_full_name(name))
        {
            return Ok(RefPointer::Name(name.to_owned()));
        }
        // A file behind a link is another one than `found`, so its value is never kept.
        let now = stamp(&found);
        if let Some(kept) = self.loose.lock().get(path).filter(|kept| kept.stamp == now) {
            return Ok(kept.pointer.clone());
        }
        let (text, facts) = self.areas.read(path, LOOSE)?;
        // One that is being written, or that a crash left empty, is not there.
        let pointer = pointer(&text).ok_or(PartError::NotFound)?;
        let stamp = stamp(&facts);
        if stamp == now && stamp.changed.is_settled() {
            let mut kept = self.loose.lock();
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(path.to_owned(), LooseRef { stamp, pointer: pointer.clone() });
        }
        Ok(pointer)
    }

    fn packed(&self) -> Result<Arc<PackedRefs>, PartError> {
        let path = self.common_dir.join("packed-refs");
        let now = match fs::metadata(&path) {
            Ok(facts) if facts.is_file() => stamp(&facts),
            Ok(_) => return Err(PartError::NoFile),
            Err(error) => match PartError::from(error) {
                PartError::NotFound => return Ok(Arc::default()),
                error => return Err(error),
            },
        };
        let mut kept = self.packed.lock();
        if let Some((then, packed)) = kept.as_ref().filter(|(then, _)| *then == now) {
            let _ = then;
            return Ok(packed.clone());
        }
        let (text, facts) = match self.areas.read(&path, PACKED) {
            Err(PartError::NotFound) => return Ok(Arc::default()),
            read => read?,
        };
        let packed = Arc::new(packed_refs(&text));
        *kept = Some((stamp(&facts), packed.clone()));
        Ok(packed)
    }
}

fn pointer(text: &[u8]) -> Option<RefPointer> {
    if let Some(name) = text.strip_prefix(b"ref:") {
        let name = std::str::from_utf8(name).ok()?.trim();
        return is_full_name(name).then(|| RefPointer::Name(name.to_owned()));
    }
    let (digits, rest) = text.split_at_checked(40)?;
    let is_over = rest.first().is_none_or(u8::is_ascii_whitespace);
    ObjectId::from_hex(digits).ok().filter(|_| is_over).map(RefPointer::Id)
}

fn packed_refs(text: &[u8]) -> PackedRefs {
    let line = |line: &[u8]| {
        let (digits, name) = line.split_at_checked(40)?;
        let name = std::str::from_utf8(name.strip_prefix(b" ")?).ok()?.trim_end();
        Some((name.to_owned(), ObjectId::from_hex(digits).ok()?))
    };
    let mut all: PackedRefs = text.split(|byte| *byte == b'\n').filter_map(line).collect();
    if !all.is_sorted() {
        all.sort();
    }
    all
}

/// Whether a file may name this reference: one under `refs`, which no part of the name leads out of.
fn is_full_name(name: &str) -> bool {
    name.starts_with("refs/")
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
        && !name.contains(|char: char| char.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::time::Duration;

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    // S-02: the value of a file is kept, and a file that is written, replaced, removed or behind a link is read anew.
    #[test]
    fn a_kept_value_is_that_of_the_same_file() {
        let dir = std::env::temp_dir().join(format!("mcp-git-refs-{}", std::process::id()));
        let dir = dir.as_path();
        fs::create_dir_all(dir.join("refs/heads")).unwrap();
        let real = fs::canonicalize(dir).unwrap();
        let store = RefStore::new(&Areas::new(vec![real.clone()]), &real, &real);
        let main = real.join("refs/heads/main");
        let find = || store.find("refs/heads/main").unwrap();
        let id = |text: &str| Some(RefPointer::Id(ObjectId::from_hex(text.as_bytes()).unwrap()));
        // The clock of the file system moves on, so a value that is read is kept.
        let settle = || std::thread::sleep(Duration::from_millis(50));
        let is_kept = || store.loose.lock().contains_key(&main);
        fs::write(&main, ONE).unwrap();
        assert_eq!((find(), is_kept()), (id(ONE), false));
        settle();
        assert_eq!((find(), is_kept()), (id(ONE), true));
        fs::write(&main, TWO).unwrap();
        assert_eq!(find(), id(TWO));
        settle();
        assert_eq!(find(), id(TWO));
        // As git replaces a reference: the size is the same.
        fs::write(real.join("lock"), ONE).unwrap();
        fs::rename(real.join("lock"), &main).unwrap();
        assert_eq!(find(), id(ONE));
        settle();
        assert_eq!(find(), id(ONE));
        fs::remove_file(&main).unwrap();
        assert_eq!(find(), None);
        fs::write(real.join("other"), TWO).unwrap();
        symlink(real.join("other"), &main).unwrap();
        settle();
        assert_eq!(find(), id(TWO));
        fs::write(real.join("other"), ONE).unwrap();
        assert_eq!(find(), id(ONE));
        fs::remove_file(&main).unwrap();
        symlink("/dev/zero", &main).unwrap();
        assert!(matches!(store.find("refs/heads/main"), Err(PartError::NoFile)));
        fs::remove_dir_all(dir).unwrap();
    }
}
