//! The storage of objects: in packs, in files of their own, and in the directories from which a repository borrows.
//!
//! ```text
//!   id ──▶ packs ──▶ loose files ──▶ packs again, if there are other ones now ──▶ absent
//!            └─ a delta ──▶ its base ──▶ … ──▶ a whole object, from which the deltas lead back      (kept: bases)
//! ```
//!
//! Law: if an object is damaged in one place, it is looked up in the others. Work stops when the request is cancelled.

use super::delta;
use super::object_cache::ObjectCache;
use super::packs::{
    Compressed, EntryKind, Inflate, IsCancelled, LARGEST_OBJECT, Pack, StoreError, entry, inflate,
};
use super::parts::{Areas, CHUNK, PartError, PartFile, PartStamp, stamp};
use gix::objs::Kind;
use gix::{ObjectId, oid};
use mcp_resources_runtime::sync::Mutex;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};

/// Maximum number of packs, and of those that stay open.
const PACKS: usize = 10_000;
const OPEN: usize = 64;
/// The largest index of a pack that is kept in memory, and the most of all, in bytes.
const INDEX: u64 = 16 << 20;
const INDEXES: u64 = 64 << 20;
/// The longest chain of deltas, and the deepest nesting of objects that are bases by their ids.
const CHAIN: usize = 10_000;
const NESTED: usize = 50;
/// The size of each half of the cache of bases, and of the largest base in it, in bytes.
const BASES: usize = 24 << 20;
const BASE: usize = 4 << 20;
/// The longest header of a loose object: its kind and its size.
const HEADER: usize = 64;
/// The longest beginning of a delta: its two sizes, in bytes.
const SIZES: usize = 20;
/// The largest list of alternates, in bytes, and how deep they may lead.
const ALTERNATES: u64 = 64 * 1024;
const DEEPEST: usize = 5;
const NO_BASE: StoreError = StoreError::Corrupt("the base of a delta is not there");
const NO_END: StoreError = StoreError::Corrupt("a chain of deltas does not end");
/// The most objects that are looked at for one abbreviated id.
const CANDIDATES: usize = 1_000;

/// The objects of one repository.
pub(super) struct ObjectStore {
    areas: Areas,
    /// Directories of objects: the repository's own, and those that it borrows from.
    dirs: Vec<PathBuf>,
    packs: Mutex<Arc<PackList>>,
    /// The pack that contained the last object: the next one is likely to be there too.
    last: AtomicUsize,
    bases: Mutex<ObjectCache<PackPosition>>,
}

#[derive(Default)]
struct PackList {
    packs: Vec<KnownPack>,
    /// Of the directories that were listed.
    listed: Vec<Option<PartStamp>>,
}

struct KnownPack {
    /// Of its index.
    path: PathBuf,
    stamp: PackStamp,
    /// `None`: its index cannot be read.
    pack: Option<Arc<Pack>>,
}

/// The stamps of the two files of a pack.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PackStamp {
    index: PartStamp,
    data: PartStamp,
}

/// The place of an object in a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PackPosition {
    /// The number of the pack.
    pack: u64,
    /// From the beginning of the pack, in bytes.
    offset: u64,
}

/// A delta that leads to an object.
struct Delta {
    file: Arc<PartFile>,
    bytes: Compressed,
    size: u64,
    /// Of the result.
    at: PackPosition,
}

type Object = (Kind, Arc<[u8]>);

/// Reads an object at an offset of a pack.
type FromPack<'f, T> = dyn FnMut(&Arc<Pack>, u64) -> Result<T, StoreError> + 'f;

/// The requested kind and size: an object of another kind, or a larger one, is refused before it is decompressed.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// `None`: any.
    pub(super) kind: Option<Kind>,
    pub(super) limit: u64,
}

impl Wanted {
    pub(super) const ANY: Self = Self { kind: None, limit: LARGEST_OBJECT };

    fn check(&self, kind: Kind, size: u64) -> Result<(), StoreError> {
        if self.kind.is_some_and(|wanted| wanted != kind) {
            return Err(StoreError::Other);
        }
        self.check_size(size)
    }

    fn check_size(&self, size: u64) -> Result<(), StoreError> {
        if size > self.limit { Err(StoreError::TooLarge(size)) } else { Ok(()) }
    }
}

impl ObjectStore {
    /// The objects in `objects`. No file is opened before the first read.
    pub(super) fn new(areas: &Areas, objects: &Path) -> Self {
        let mut dirs = vec![objects.to_owned()];
        borrowed(areas, objects, &mut dirs, DEEPEST);
        let bases = Mutex::new(ObjectCache::new(BASES));
        Self { areas: areas.clone(), dirs, packs: Mutex::default(), last: AtomicUsize::new(0), bases }
    }

    /// The kind and the bytes of an object; `None` if it is not there.
    pub(super) fn read(
        &self,
        id: &oid,
        wanted: Wanted,
        cancelled: &IsCancelled<'_>,
    ) -> Result<Option<Object>, StoreError> {
        self.read_nested(id, wanted, cancelled, 0)
    }

    /// The kind and the size of an object; `None` if it is not there.
    pub(super) fn header(
        &self,
        id: &oid,
        cancelled: &IsCancelled<'_>,
    ) -> Result<Option<(Kind, u64)>, StoreError> {
        self.look(id, &mut |pack, offset| self.packed_header(pack, offset, cancelled), &mut |file| {
            loose_header(file).map(|(kind, size, ..)| (kind, size))
        })
    }

    /// The objects whose ids begin with these digits.
    pub(super) fn with_prefix(&self, prefix: gix::hash::Prefix) -> Result<Vec<ObjectId>, StoreError> {
        let mut found = Vec::new();
        for pack in self.list().packs.iter().filter_map(|known| known.pack.as_ref()) {
            pack.index.each_with_prefix(prefix, &mut |id| {
                found.push(id);
                found.len() < CANDIDATES
            })?;
        }
        let digits = prefix.as_oid().to_hex().to_string();
        let (folder, _) = digits.split_at_checked(2).unwrap_or_default();
        for dir in &self.dirs {
            for entry in fs::read_dir(dir.join(folder)).into_iter().flatten().filter_map(Result::ok) {
                let name = entry.file_name();
                let id = name.to_str().filter(|rest| rest.len() == 38);
                let id = id.and_then(|rest| ObjectId::from_hex(format!("{folder}{rest}").as_bytes()).ok());
                found.extend(id.filter(|id| prefix.cmp_oid(id).is_eq()));
                if found.len() > CANDIDATES {
                    break;
                }
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }

    fn read_nested(
        &self,
        id: &oid,
        wanted: Wanted,
        cancelled: &IsCancelled<'_>,
        nested: usize,
    ) -> Result<Option<Object>, StoreError> {
        if nested > NESTED {
            return Err(StoreError::Corrupt("deltas of packs lead in a circle"));
        }
        self.look(id, &mut |pack, offset| self.packed(pack, offset, wanted, cancelled, nested), &mut |file| {
            loose(file, wanted, cancelled)
        })
    }

    /// Asks each place that has the object, until one answers.
    fn look<T>(
        &self,
        id: &oid,
        from_pack: &mut FromPack<'_, T>,
        from_file: &mut dyn FnMut(&PartFile) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        let mut failure = None;
        let mut list = self.list();
        loop {
            let last = self.last.load(Ordering::Relaxed);
            let all = &list.packs;
            let order = std::iter::once(last).chain((0..all.len()).filter(|at| *at != last));
            for (at, KnownPack { pack, .. }) in order.filter_map(|at| all.get(at).map(|pack| (at, pack))) {
                let Some(pack) = pack else {
                    failure = Some(StoreError::Corrupt("the index of a pack cannot be read"));
                    continue;
                };
                let found = match pack.index.find(id) {
                    Ok(None) => continue,
                    Ok(Some(offset)) => from_pack(pack, offset),
                    Err(error) => Err(error),
                };
                match found {
                    Ok(found) => {
                        self.last.store(at, Ordering::Relaxed);
                        return Ok(Some(found));
                    }
                    Err(error) if error.is_final() => return Err(error),
                    Err(error) => failure = Some(error),
                }
            }
            for dir in &self.dirs {
                match self.loose_file(dir, id) {
                    Ok(file) => match from_file(&file) {
                        Ok(found) => return Ok(Some(found)),
                        Err(error) if error.is_final() => return Err(error),
                        Err(error) => failure = Some(error),
                    },
                    Err(PartError::NotFound) => {}
                    Err(error) => failure = Some(error.into()),
                }
            }
            // It may have been packed meanwhile.
            let newer = self.list_again();
            if Arc::ptr_eq(&newer, &list) {
                return failure.map_or(Ok(None), Err);
            }
            list = newer;
            failure = None;
        }
    }

    fn loose_file(&self, dir: &Path, id: &oid) -> Result<PartFile, PartError> {
        let digits = id.to_hex().to_string();
        let (folder, name) = digits.split_at_checked(2).ok_or(PartError::NotFound)?;
        self.areas.open(&dir.join(folder).join(name))
    }

    fn packed(
        &self,
        pack: &Arc<Pack>,
        offset: u64,
        wanted: Wanted,
        cancelled: &IsCancelled<'_>,
        nested: usize,
    ) -> Result<Object, StoreError> {
        let file = pack.data(&self.areas)?;
        let mut deltas = Vec::new();
        let mut at = PackPosition { pack: pack.number, offset };
        // Where the base is, unless it is kept already.
        let mut base_at = None;
        let (kind, mut data) = loop {
            if cancelled() {
                return Err(PartError::Cancelled.into());
            }
            if let Some(base) = self.bases().get(at) {
                break base;
            }
            let found = entry(&file, at.offset)?;
            // A small delta may lead to a large blob.
            let is_asked = wanted.kind == Some(Kind::Blob) && deltas.is_empty();
            if is_asked && !matches!(found.kind, EntryKind::Whole(_)) {
                wanted.check_size(result_size(&file, found.bytes.clone())?)?;
            }
            let base = match found.kind {
                EntryKind::Whole(kind) => {
                    let size = if deltas.is_empty() { found.size } else { 0 };
                    wanted.check(kind, size)?;
                    let data = inflate(&file, found.bytes, found.size, cancelled)?;
                    base_at = Some(at);
                    break (kind, data.into());
                }
                EntryKind::Offset(base) => base,
                EntryKind::Id(id) => match pack.index.find(&id)? {
                    Some(base) => base,
                    None => {
                        deltas.push(Delta { file, bytes: found.bytes, size: found.size, at });
                        let base = Wanted { limit: LARGEST_OBJECT, ..wanted };
                        break self.read_nested(&id, base, cancelled, nested + 1)?.ok_or(NO_BASE)?;
                    }
                },
            };
            deltas.push(Delta { file: file.clone(), bytes: found.bytes, size: found.size, at });
            at.offset = base;
            if deltas.len() > CHAIN {
                return Err(NO_END);
            }
        };
        if let Some(at) = base_at.filter(|_| !deltas.is_empty()) {
            self.keep(at, kind, &data);
        }
        while let Some(next) = deltas.pop() {
            let delta = inflate(&next.file, next.bytes, next.size, cancelled)?;
            let limit = if deltas.is_empty() { wanted.limit } else { LARGEST_OBJECT };
            data = delta::apply(&data, &delta, limit)?.into();
            self.keep(next.at, kind, &data);
        }
        wanted.check(kind, data.len() as u64)?;
        Ok((kind, data))
    }

    fn packed_header(
        &self,
        pack: &Arc<Pack>,
        offset: u64,
        cancelled: &IsCancelled<'_>,
    ) -> Result<(Kind, u64), StoreError> {
        let file = pack.data(&self.areas)?;
        let mut at = offset;
        let mut size = None;
        for _ in 0..CHAIN {
            if cancelled() {
                return Err(PartError::Cancelled.into());
            }
            let found = entry(&file, at)?;
            let base = match found.kind {
                EntryKind::Whole(kind) => return Ok((kind, size.unwrap_or(found.size))),
                EntryKind::Offset(base) => Ok(base),
                EntryKind::Id(id) => pack.index.find(&id)?.ok_or(id),
            };
            if size.is_none() {
                size = Some(result_size(&file, found.bytes)?);
            }
            match base {
                Ok(base) => at = base,
                Err(id) => {
                    let (kind, _) = self.read_nested(&id, Wanted::ANY, cancelled, 1)?.ok_or(NO_BASE)?;
                    return Ok((kind, size.unwrap_or_default()));
                }
            }
        }
        Err(NO_END)
    }

    fn keep(&self, at: PackPosition, kind: Kind, data: &Arc<[u8]>) {
        if data.len() <= BASE {
            self.bases().put(at, kind, data);
        }
    }

    fn bases(&self) -> MutexGuard<'_, ObjectCache<PackPosition>> {
        self.bases.lock()
    }

    /// The packs that are known.
    fn list(&self) -> Arc<PackList> {
        let known = self.packs.lock().clone();
        if known.listed.is_empty() { self.list_again() } else { known }
    }

    /// The current packs: the same list if nothing has changed.
    fn list_again(&self) -> Arc<PackList> {
        let mut known = self.packs.lock();
        let now = |dir: &PathBuf| fs::metadata(dir.join("pack")).ok().as_ref().map(stamp);
        let listed: Vec<Option<PartStamp>> = self.dirs.iter().map(now).collect();
        let is_same = |pack: &KnownPack| PackStamp::read(&pack.path) == Some(pack.stamp);
        if listed != known.listed || !known.packs.iter().all(is_same) {
            *known = Arc::new(PackList { packs: self.packs_now(&known), listed });
        }
        known.clone()
    }

    /// The current packs, the newest first. Known packs are reused.
    fn packs_now(&self, known: &PackList) -> Vec<KnownPack> {
        let known: HashMap<&Path, &KnownPack> = known.packs.iter().map(|pack| (&*pack.path, pack)).collect();
        let mut paths: Vec<(PackStamp, PathBuf)> = Vec::new();
        for dir in &self.dirs {
            let entries = fs::read_dir(dir.join("pack")).into_iter().flatten().filter_map(Result::ok);
            let indexes = entries.map(|entry| entry.path());
            let indexes = indexes.filter(|path| path.extension().is_some_and(|extension| extension == "idx"));
            paths.extend(indexes.filter_map(|path| Some((PackStamp::read(&path)?, path))).take(PACKS));
        }
        paths.sort_by_key(|(stamp, _)| std::cmp::Reverse(stamp.data.modified));
        let stays_open = paths.len() <= OPEN;
        let mut in_memory = 0;
        let open = |(stamp, path): (PackStamp, PathBuf)| {
            let pack = match known.get(&*path) {
                Some(KnownPack { stamp: before, pack: Some(pack), .. }) if *before == stamp => {
                    Some(pack.clone())
                }
                _ => {
                    let room = INDEX.min(INDEXES.saturating_sub(in_memory));
                    Pack::open(&self.areas, &path, room, stays_open).ok().map(Arc::new)
                }
            };
            in_memory += pack.as_ref().map_or(0, |pack| pack.index.in_memory());
            KnownPack { path, stamp, pack }
        };
        paths.into_iter().map(open).collect()
    }
}

impl PackStamp {
    /// The current stamps of the pack with this index; `None` if a file is not there.
    fn read(index: &Path) -> Option<Self> {
        let data = stamp(&fs::metadata(index.with_extension("pack")).ok()?);
        Some(Self { index: stamp(&fs::metadata(index).ok()?), data })
    }
}

/// The size of the object that a delta makes. Only its beginning is decompressed.
fn result_size(file: &PartFile, bytes: Compressed) -> Result<u64, StoreError> {
    let mut start = Vec::new();
    let mut stream = Inflate::new(file, bytes, HEADER as u64);
    while start.len() < SIZES && !stream.is_over {
        let max = SIZES - start.len();
        stream.more(&mut start, max)?;
    }
    Ok(delta::sizes(&start)?.1)
}

/// Appends the directories that `objects` borrows from.
fn borrowed(areas: &Areas, objects: &Path, dirs: &mut Vec<PathBuf>, depth: usize) {
    let Ok((text, _)) = areas.read(&objects.join("info/alternates"), ALTERNATES) else { return };
    for line in text.split(|byte| *byte == b'\n') {
        let Some(line) =
            std::str::from_utf8(line).ok().filter(|line| !line.is_empty() && !line.starts_with('#'))
        else {
            continue;
        };
        let dir = objects.join(line);
        if depth > 0 && areas.has_directory(&dir) && !dirs.contains(&dir) {
            dirs.push(dir.clone());
            borrowed(areas, &dir, dirs, depth - 1);
        }
    }
}

/// The kind, the size and the first bytes of a loose object, and the rest of it.
fn loose_header(file: &PartFile) -> Result<(Kind, u64, Vec<u8>, Inflate<'_>), StoreError> {
    const WRONG: StoreError = StoreError::Corrupt("a loose object does not begin as one");
    let mut stream = Inflate::new(file, Compressed::default(), file.len());
    let mut start = Vec::new();
    while start.len() < HEADER && !stream.is_over {
        let max = HEADER - start.len();
        stream.more(&mut start, max)?;
    }
    let end = start.iter().position(|byte| *byte == 0).ok_or(WRONG)?;
    let header = start.get(..end).and_then(|header| std::str::from_utf8(header).ok()).ok_or(WRONG)?;
    let (kind, size) = header.split_once(' ').ok_or(WRONG)?;
    let kind = Kind::from_bytes(kind.as_bytes()).map_err(|_| WRONG)?;
    let size = size.parse().map_err(|_| WRONG)?;
    start.drain(..=end);
    Ok((kind, size, start, stream))
}

fn loose(file: &PartFile, wanted: Wanted, cancelled: &IsCancelled<'_>) -> Result<Object, StoreError> {
    let (kind, size, mut data, mut rest) = loose_header(file)?;
    wanted.check(kind, size)?;
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    while !rest.is_over && data.len() <= size {
        if cancelled() {
            return Err(PartError::Cancelled.into());
        }
        let max = CHUNK.min(size.saturating_add(1).saturating_sub(data.len()));
        rest.more(&mut data, max)?;
    }
    if !rest.is_over || data.len() != size {
        return Err(StoreError::Corrupt("a loose object has another size than it says"));
    }
    Ok((kind, data.into()))
}

impl std::fmt::Debug for ObjectStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ObjectStore").field("dirs", &self.dirs).finish_non_exhaustive()
    }
}
