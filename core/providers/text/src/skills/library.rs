//! The skills of all folders, as they are at one moment.
//!
//! ```text
//!   Library::refresh ──▶ walk each folder ──▶ directories with a SKILL.md ──▶ Skill, with the digest of each file ──▶ Snapshot
//!                            └─ files whose stamp is that of the last snapshot are not read again ◀───────────────────┘
//! ```
//!
//! Law: what a request is answered with was looked at during the request. A walk is bounded in depth, directories and files,
//! and what exceeds a limit is not served and logged once.

use super::options::SkillOptions;
use super::skill::{BYTES, Digest, FILES, INDEX, MANIFEST, SCHEME, Skill, SkillFile, SkillHead, digest};
use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_files::folder::Folder;
use mcp_resources_provider_files::open_folder::{AbsentFolder, FolderLevel, OpenFolder, Stamp};
use mcp_resources_provider_kit::named::NamedPath;
use mcp_resources_provider_kit::path;
use mcp_resources_provider_kit::uri_path;
use mcp_resources_runtime::provider::RequestContext;
use mcp_resources_runtime::sync::Mutex;
use mcp_resources_template::uri;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::SystemTime;

/// Maximum depth of a folder's directories, and maximum number of directories and files that are looked at.
const DEPTH: usize = 32;
const DIRECTORIES: usize = 10_000;
const ENTRIES: usize = 100_000;
/// The longest URI, in bytes: as the default of the limit `uri`.
const LONGEST: usize = 8_192;
/// Maximum number of messages remembered as logged, and of misnamed files that are logged.
const REMEMBERED: usize = 4_096;

/// A folder that holds skills.
#[derive(Debug)]
pub(super) struct SkillRoot {
    /// The prefix of its skills' paths; empty without one.
    pub(super) prefix: String,
    /// The path of the folder itself, if it is a skill.
    own: String,
    pub(super) folder: Folder,
}

/// The skills below the roots of one declaration.
#[derive(Debug, Default)]
pub(super) struct SkillLibrary {
    pub(super) roots: Vec<SkillRoot>,
    current: Mutex<Arc<SkillSnapshot>>,
    logged: Mutex<HashSet<String>>,
}

/// All skills at one moment.
#[derive(Debug, Default)]
pub(super) struct SkillSnapshot {
    /// By the URIs of their directories.
    pub(super) skills: BTreeMap<String, Skill>,
    /// The parsed manifests, by folder and path.
    known: HashMap<(usize, Vec<u8>), KnownSkill>,
    /// Why something is not served: a sentence each.
    faults: Vec<String>,
}

/// A file that was read.
#[derive(Clone, Debug)]
struct KnownSkill {
    stamp: Stamp,
    /// Whether another stamp shows every change since.
    is_settled: bool,
    digest: Digest,
    size: u64,
    /// Of a `SKILL.md`.
    head: Option<Result<Arc<SkillHead>, String>>,
}

impl SkillLibrary {
    /// # Errors
    /// There is no folder, one is not a directory, or an option cannot be used for it.
    pub(super) fn new(options: &SkillOptions) -> Result<Self, OptionError> {
        let roots =
            options.paths.iter().map(|path| SkillRoot::new(path, options)).collect::<Result<_, _>>()?;
        Ok(Self { roots, ..Self::default() })
    }

    /// The skills as they are now. `None`: the request was cancelled.
    pub(super) fn refresh(&self, context: RequestContext<'_>) -> Option<Arc<SkillSnapshot>> {
        let before = self.current();
        let now = SkillWalk::over(&self.roots, &before, &|| context.is_cancelled())?;
        let now = Arc::new(now);
        *self.current.lock() = now.clone();
        self.roots.iter().flat_map(|root| root.folder.take_faults()).for_each(|fault| context.log(&fault));
        now.faults.iter().filter(|fault| self.is_new(fault)).for_each(|fault| context.log(fault));
        Some(now)
    }

    /// The last snapshot.
    pub(super) fn current(&self) -> Arc<SkillSnapshot> {
        self.current.lock().clone()
    }

    /// Whether a message was not logged yet.
    fn is_new(&self, fault: &str) -> bool {
        let mut logged = self.logged.lock();
        if logged.len() >= REMEMBERED {
            logged.clear();
        }
        logged.insert(fault.to_owned())
    }
}

impl SkillRoot {
    fn new(named: &NamedPath, options: &SkillOptions) -> Result<Self, OptionError> {
        let prefix = named.name.clone().unwrap_or_default();
        let plain = [NamedPath::plain(&named.path)];
        let mut folders = Folder::all("skills", "directory", &plain, &options.folder())?;
        let Some(folder) = folders.pop() else {
            return Err(OptionError::sentence("skills: there is no directory"));
        };
        let is_segment = |segment: &str| path::text(segment.as_bytes()) == segment && !segment.is_empty();
        if named.name.is_some() && !prefix.split('/').all(is_segment) {
            return Err(OptionError::sentence(format!(
                "skills: {prefix:?} is no prefix for the directory {}; give it one such as acme/billing",
                folder.dir().display()
            )));
        }
        let own = if prefix.is_empty() { folder.name().to_owned() } else { prefix.clone() };
        Ok(Self { prefix, own, folder })
    }

    /// The path in URIs of the skill in the directory `dir`, before it is percent-encoded. `is_skill`: the folder itself is one.
    fn path(&self, dir: &[u8], is_skill: bool) -> Vec<u8> {
        let before = if is_skill { &self.own } else { &self.prefix };
        match (before.is_empty(), dir.is_empty()) {
            (_, true) => before.clone().into_bytes(),
            (true, _) => dir.to_vec(),
            _ => uri_path::join(before.as_bytes(), dir),
        }
    }
}

impl SkillSnapshot {
    /// The skill that a canonical URI is in, the innermost one, and the path within it: empty for its directory.
    pub(super) fn find(&self, uri: &str) -> Option<(&Skill, Vec<u8>)> {
        let mut base = uri;
        loop {
            if let Some(skill) = self.skills.get(base) {
                let rest = uri.get(base.len()..)?;
                if rest.is_empty() {
                    return Some((skill, Vec::new()));
                }
                let rest = rest.strip_prefix('/').filter(|rest| !rest.contains(['?', '#']))?;
                return Some((skill, uri_path::decode(&path::decoded(rest)?)?));
            }
            base = base.get(..base.rfind('/')?).filter(|base| base.len() > SCHEME.len())?;
        }
    }

    /// Whether the `SKILL.md` of a skill is still the one that was read.
    pub(super) fn is_current(&self, skill: &Skill, folder: &OpenFolder<'_>) -> bool {
        let place = skill.path_in_folder(MANIFEST);
        let stamp = folder.stamp(&place).ok();
        let known = self.known.get(&(skill.folder, place));
        known.is_some_and(|known| known.is_settled && Some(known.stamp) == stamp)
    }

    /// Whether the file or directory at a canonical URI may be mentioned. What is in a skill whose `SKILL.md` is hidden may not,
    /// though a glob such as `skill://a/SKILL.md` does not match it.
    pub(super) fn shows(&self, uri: &str, permits: &dyn Fn(&str) -> bool) -> bool {
        let manifest = self.find(uri).map(|(skill, _)| skill.uri());
        permits(uri) && manifest.is_none_or(|manifest| permits(&manifest))
    }

    /// The head, if the file at `path` of `skill` is the `SKILL.md` of a skill: of this one, or of one in it.
    pub(super) fn head(&self, skill: &Skill, path: &[u8]) -> Option<&SkillHead> {
        let uri = skill.uri_of(path);
        let base = uri.strip_suffix("/SKILL.md")?;
        self.skills.get(base).map(|skill| &*skill.head)
    }

    /// A digest of what is at a canonical URI: of a file's bytes, or of the names in a directory.
    pub(super) fn mark(&self, uri: &str) -> Option<Digest> {
        if uri == INDEX {
            let text: Vec<u8> = self.skills.values().flat_map(index_line).collect();
            return Some(digest(&text));
        }
        let (skill, path) = self.find(uri)?;
        if let Ok(at) = skill.files.binary_search_by(|file| file.path.cmp(&path)) {
            return skill.files.get(at).map(|file| file.digest);
        }
        let within: Vec<u8> = if path.is_empty() { Vec::new() } else { [&*path, b"/"].concat() };
        let rest = skill.files.iter().filter_map(|file| file.path.strip_prefix(&*within));
        let mut names: Vec<u8> = Vec::new();
        for rest in rest {
            // With the slash, if it is a directory.
            let end = rest.iter().position(|byte| *byte == b'/').map_or(rest.len(), |at| at + 1);
            names.extend_from_slice(rest.get(..end).unwrap_or_default());
            names.push(0);
        }
        (!names.is_empty()).then(|| digest(&names))
    }

    /// When the file at a canonical URI last changed; `None` for anything else.
    pub(super) fn changed_at(&self, uri: &str) -> Option<SystemTime> {
        let (skill, path) = self.find(uri)?;
        let at = skill.files.binary_search_by(|file| file.path.cmp(&path)).ok()?;
        skill.files.get(at)?.stamp.changed_at()
    }

    /// A digest of all entries: another one means that `skills/list` or `resources/list` gives something else.
    pub(super) fn fingerprint(&self) -> Digest {
        let mut all = Vec::new();
        for skill in self.skills.values() {
            all.extend_from_slice(skill.base.as_bytes());
            for file in &skill.files {
                all.push(0);
                all.extend_from_slice(&file.path);
                all.push(0);
                all.extend_from_slice(&file.digest);
            }
            all.push(b'\n');
        }
        digest(&all)
    }
}

fn index_line(skill: &Skill) -> Vec<u8> {
    let SkillHead { name, description, .. } = &*skill.head;
    [skill.base.as_bytes(), name.as_bytes(), description.as_bytes()].join(&0)
}

/// One walk over all folders.
struct SkillWalk<'w> {
    before: &'w SkillSnapshot,
    now: SkillSnapshot,
    is_cancelled: &'w dyn Fn() -> bool,
}

/// The result of a walk over one folder.
#[derive(Default)]
struct FoundSkill {
    files: Vec<(Vec<u8>, Stamp)>,
    /// The directories with a `SKILL.md`.
    skills: Vec<Vec<u8>>,
    /// The directories with a `skill.md` in other letters, and its path.
    misnamed: Vec<(Vec<u8>, Vec<u8>)>,
    directories: usize,
    has_more: bool,
}

impl<'w> SkillWalk<'w> {
    /// `None`: it was cancelled.
    fn over(
        roots: &[SkillRoot],
        before: &'w SkillSnapshot,
        is_cancelled: &'w dyn Fn() -> bool,
    ) -> Option<SkillSnapshot> {
        let mut walk = Self { before, now: SkillSnapshot::default(), is_cancelled };
        for (at, root) in roots.iter().enumerate() {
            let folder = root.folder.open();
            let found = folder.as_ref().ok().and_then(|folder| walk.find(folder));
            let (Ok(folder), Some(mut found)) = (folder, found) else {
                if is_cancelled() {
                    return None;
                }
                walk.fault(format!("the directory {} cannot be opened", root.folder.dir().display()));
                continue;
            };
            if found.has_more {
                walk.fault(format!(
                    "{} has more than {DIRECTORIES} directories or {ENTRIES} files, or is nested more than {DEPTH} deep; \
                     what is beyond is not served",
                    root.folder.dir().display()
                ));
            }
            found.files.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            found.skills.sort_unstable();
            let is_skill = found.skills.first().is_some_and(Vec::is_empty);
            for (dir, path) in &found.misnamed {
                if found.skills.binary_search(dir).is_err() {
                    let path = String::from_utf8_lossy(path);
                    walk.fault(format!("{path} is not served: a skill's file is named SKILL.md; rename it"));
                }
            }
            for dir in &found.skills {
                if is_cancelled() {
                    return None;
                }
                let path = root.path(dir, is_skill);
                if let Err(fault) = walk.add(at, &folder, &found.files, dir, &path) {
                    walk.fault(format!("{} is not served: {fault}", String::from_utf8_lossy(&path)));
                }
            }
        }
        Some(walk.now)
    }

    /// All files of a folder, with the directories that have a `SKILL.md`.
    fn find(&self, folder: &OpenFolder<'_>) -> Option<FoundSkill> {
        let mut found = FoundSkill::default();
        let mut todo: Vec<(Vec<u8>, FolderLevel, usize)> = vec![(Vec::new(), folder.level(b"")?, 0)];
        let mut is_first = true;
        while let Some((dir, level, depth)) = todo.pop() {
            if (self.is_cancelled)() {
                return None;
            }
            found.directories += 1;
            let room = ENTRIES.saturating_sub(found.files.len());
            let (entries, more) = match folder.entries(&level, &dir, room) {
                Ok(entries) => entries,
                Err(_) if is_first => return None,
                // It is gone meanwhile, or may not be read.
                Err(_) => continue,
            };
            is_first = false;
            found.has_more |= more;
            for entry in entries {
                let path = uri_path::join(&dir, &entry.name);
                if !entry.is_dir {
                    if entry.name == MANIFEST {
                        found.skills.push(dir.clone());
                    } else if entry.name.eq_ignore_ascii_case(MANIFEST) && found.misnamed.len() < REMEMBERED {
                        found.misnamed.push((dir.clone(), path.clone()));
                    }
                    found.files.push((path, entry.stamp));
                } else if depth >= DEPTH || found.directories + todo.len() >= DIRECTORIES {
                    found.has_more = true;
                } else if let Some(level) = folder.below(&level, &path) {
                    todo.push((path, level, depth + 1));
                }
            }
        }
        Some(found)
    }

    /// Adds the skill in the directory `dir`, whose path in URIs is `path`.
    fn add(
        &mut self,
        at: usize,
        folder: &OpenFolder<'_>,
        files: &[(Vec<u8>, Stamp)],
        dir: &[u8],
        path: &[u8],
    ) -> Result<(), String> {
        let base = base(path)?;
        if self.now.skills.contains_key(&base) {
            return Err("another directory has a skill at this path".into());
        }
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let name = std::str::from_utf8(name).map_err(|_| "the name of its directory is not UTF-8")?;
        let manifest = uri_path::join(dir, MANIFEST);
        let read = |missing: AbsentFolder| format!("its SKILL.md {}", reason(missing));
        let stamp = files.binary_search_by(|file| file.0.cmp(&manifest)).ok().and_then(|at| files.get(at));
        let stamp = stamp.map(|file| file.1).ok_or("its SKILL.md is gone")?;
        let head = match self.read(at, folder, &manifest, &stamp, Some(name)).map_err(read)?.head {
            Some(head) => head?,
            None => return Err("its SKILL.md is gone".into()),
        };
        let files = self.files(at, folder, files, dir)?;
        let skill = Skill { base: base.clone(), folder: at, dir: dir.to_vec(), head, files };
        self.now.skills.insert(base, skill);
        Ok(())
    }

    /// The files in the directory of a skill, each with its digest.
    fn files(
        &mut self,
        at: usize,
        folder: &OpenFolder<'_>,
        files: &[(Vec<u8>, Stamp)],
        dir: &[u8],
    ) -> Result<Vec<SkillFile>, String> {
        let too_large = || format!("its files have more than {BYTES} bytes");
        let within = if dir.is_empty() { Vec::new() } else { [dir, b"/"].concat() };
        let first = files.partition_point(|file| *file.0 < *within);
        let own: Vec<_> = files
            .iter()
            .skip(first)
            .map_while(|(path, stamp)| Some((path, path.strip_prefix(&*within)?, stamp)))
            .collect();
        if own.len() > FILES {
            return Err(format!("it has {} files, more than {FILES}", own.len()));
        }
        if own.iter().map(|(.., stamp)| stamp.size()).fold(0, u64::saturating_add) > BYTES {
            return Err(too_large());
        }
        let mut total: u64 = 0;
        let mut found = Vec::with_capacity(own.len());
        for (path, rest, stamp) in own {
            if (self.is_cancelled)() {
                return Err("the request was cancelled".into());
            }
            match self.read(at, folder, path, stamp, None) {
                Ok(KnownSkill { stamp, digest, size, .. }) => {
                    total = total.saturating_add(size);
                    found.push(SkillFile { path: rest.to_vec(), digest, size, stamp });
                }
                Err(AbsentFolder::TooLarge) => return Err(too_large()),
                Err(AbsentFolder::Failed) => {
                    self.fault(format!("{} cannot be read", String::from_utf8_lossy(path)));
                }
                // It is gone meanwhile.
                Err(AbsentFolder::NotFound) => {}
            }
        }
        if total > BYTES { Err(too_large()) } else { Ok(found) }
    }

    /// The contents of a file: those read before, if its stamp is the same. `name`: it is the `SKILL.md` in a directory
    /// of this name.
    fn read(
        &mut self,
        at: usize,
        folder: &OpenFolder<'_>,
        path: &[u8],
        stamp: &Stamp,
        name: Option<&str>,
    ) -> Result<KnownSkill, AbsentFolder> {
        let key = (at, path.to_vec());
        let known = self.now.known.get(&key).or_else(|| {
            // What was read during this walk is current. What was read before it must not have changed.
            self.before.known.get(&key).filter(|known| known.is_settled && known.stamp == *stamp)
        });
        if let Some(known) = known.filter(|known| name.is_none() || known.head.is_some()).cloned() {
            self.now.known.insert(key, known.clone());
            return Ok(known);
        }
        let (bytes, stamp) = folder.read(path, &|size| size <= BYTES)?;
        let head = name.map(|name| SkillHead::parse(&bytes, name).map(Arc::new));
        let digest = digest(&bytes);
        let size = bytes.len() as u64;
        let is_settled = stamp.is_settled();
        let known = KnownSkill { stamp, is_settled, digest, size, head };
        self.now.known.insert(key, known.clone());
        Ok(known)
    }

    fn fault(&mut self, fault: String) {
        if self.now.faults.len() < REMEMBERED {
            self.now.faults.push(fault);
        }
    }
}

/// The URI of the directory of a skill.
///
/// # Errors
/// Why there is none.
fn base(path: &[u8]) -> Result<String, String> {
    let encoded = uri_path::encode(path);
    let (first, rest) = encoded.split_at(encoded.find('/').unwrap_or(encoded.len()));
    // The first segment is the authority of the URI.
    let base = format!("{SCHEME}{}{rest}", first.replace(':', "%3A").replace('@', "%40"));
    match uri::normalize(&base, LONGEST) {
        Ok(normal) if *normal == *base => Ok(base),
        _ => Err("its path cannot be part of a URI".into()),
    }
}

fn reason(missing: AbsentFolder) -> &'static str {
    match missing {
        AbsentFolder::NotFound => "is gone",
        AbsentFolder::Failed => "cannot be read",
        AbsentFolder::TooLarge => "is too large",
    }
}
