//! Packs: their indexes, and the entries of their data.
//!
//! ```text
//!   id ──index──▶ offset ──▶ Chunk { kind, base, compressed bytes } ──▶ the object, or a delta to another one
//! ```
//!
//! Law: no data of a file is trusted. Offsets and sizes are checked against the file, chains of deltas are limited, and
//! work stops when the request is cancelled. Multi-pack indexes are not read: each pack has an index of its own.

use super::parts::{Areas, CHUNK, PartError, PartFile};
use gix::objs::Kind;
use gix::zlib::{Decompress, FlushDecompress, Status};
use gix::{ObjectId, oid};
use mcp_resources_runtime::sync::Mutex;
use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The largest object that is decompressed, in bytes.
pub(super) const LARGEST_OBJECT: u64 = 256 << 20;
/// The length of an id, in bytes.
const ID: usize = 20;
const FAN: usize = 256 * 4;
const CHECKSUMS: u64 = 40;
/// Number of bytes of an entry that are read at first.
const START: usize = 512;
/// Number of bytes of ids that are read at a time when a large index is searched in its file.
const BLOCK: usize = 4096 / ID * ID;

/// Why an object is not read.
#[derive(Debug)]
pub(super) enum StoreError {
    Part(PartError),
    Corrupt(&'static str),
    TooLarge(u64),
    /// It is not of the requested kind.
    Other,
}

/// Whether the client does not wait any longer.
pub(super) type IsCancelled<'c> = dyn Fn() -> bool + 'c;

/// A pack with its index.
#[derive(Debug)]
pub(super) struct Pack {
    data: PathBuf,
    pub(super) index: PackIndex,
    /// Kept open, so that a repack does not disturb a request.
    file: Mutex<Option<Arc<PartFile>>>,
    stays_open: bool,
    /// No two packs of this process have the same number.
    pub(super) number: u64,
}

/// The offsets of the objects of a pack, by their ids.
#[derive(Debug)]
pub(super) struct PackIndex {
    bytes: IndexBytes,
    /// The number of objects whose id has at most this first byte.
    fan: Vec<u32>,
    is_first_version: bool,
}

/// The bytes of a table, such as the index of a pack.
#[derive(Debug)]
pub(super) enum IndexBytes {
    InMemory(Vec<u8>),
    InFile(PartFile),
}

/// An entry of a pack before its bytes are decompressed.
pub(super) struct PackEntry {
    pub(super) kind: EntryKind,
    /// Of the object or the delta.
    pub(super) size: u64,
    /// Its compressed bytes.
    pub(super) bytes: Compressed,
}

/// Compressed bytes of a file: the first of them, and the offset of the rest.
#[derive(Clone, Default)]
pub(super) struct Compressed {
    read: Vec<u8>,
    at: u64,
}

pub(super) enum EntryKind {
    Whole(Kind),
    /// A change of the entry at this offset of the same pack.
    Offset(u64),
    /// A change of the object with this id.
    Id(ObjectId),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part(error) => error.fmt(f),
            Self::Corrupt(what) => f.write_str(what),
            Self::Other => f.write_str("it is of another kind"),
            Self::TooLarge(size) => write!(f, "it has {size} bytes, and at most {LARGEST_OBJECT} are read"),
        }
    }
}

impl StoreError {
    /// Whether another copy of the object would be refused too.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::TooLarge(_) | Self::Other | Self::Part(PartError::Cancelled))
    }
}

impl From<PartError> for StoreError {
    fn from(error: PartError) -> Self {
        Self::Part(error)
    }
}

impl Pack {
    /// The pack whose index is at `path`. An index with at most `in_memory` bytes is kept in memory.
    pub(super) fn open(
        areas: &Areas,
        path: &Path,
        in_memory: u64,
        stays_open: bool,
    ) -> Result<Self, StoreError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        Ok(Self {
            data: path.with_extension("pack"),
            index: PackIndex::open(areas, path, in_memory)?,
            file: Mutex::default(),
            stays_open,
            number: NUMBER.fetch_add(1, Ordering::Relaxed),
        })
    }

    /// Its data, opened with the first use.
    pub(super) fn data(&self, areas: &Areas) -> Result<Arc<PartFile>, StoreError> {
        let mut kept = self.file.lock();
        if let Some(file) = kept.as_ref() {
            return Ok(file.clone());
        }
        let file = Arc::new(areas.open(&self.data)?);
        let mut head = [0; 8];
        file.read_at(&mut head, 0)?;
        if !matches!(head, [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3]) {
            return Err(StoreError::Corrupt("a pack does not begin as one"));
        }
        if self.stays_open {
            *kept = Some(file.clone());
        }
        Ok(file)
    }
}

impl PackIndex {
    fn open(areas: &Areas, path: &Path, in_memory: u64) -> Result<Self, StoreError> {
        let file = areas.open(path)?;
        let size = file.len();
        let bytes = IndexBytes::open(file, in_memory)?;
        let mut head = [0; 8];
        bytes.read(&mut head, 0)?;
        let is_first_version = !head.starts_with(b"\xfftOc");
        if !is_first_version && head.get(4..) != Some(&[0, 0, 0, 2]) {
            return Err(StoreError::Corrupt("an index of a pack has a version that is not known"));
        }
        let mut fan = vec![0; FAN];
        bytes.read(&mut fan, if is_first_version { 0 } else { 8 })?;
        let fan: Vec<u32> = fan.chunks_exact(4).map(number).collect();
        let count = u64::from(fan.last().copied().unwrap_or_default());
        let needed = match is_first_version {
            true => FAN as u64 + count * 24 + CHECKSUMS,
            false => 8 + FAN as u64 + count * 28 + CHECKSUMS,
        };
        if size < needed || fan.windows(2).any(|pair| pair.first() > pair.get(1)) {
            return Err(StoreError::Corrupt("an index of a pack is cut or damaged"));
        }
        Ok(Self { bytes, fan, is_first_version })
    }

    /// Its size in memory, in bytes.
    pub(super) fn in_memory(&self) -> u64 {
        self.bytes.in_memory()
    }

    /// The offset of the object in the pack.
    pub(super) fn find(&self, id: &oid) -> Result<Option<u64>, StoreError> {
        let at = self.position(id.as_bytes())?;
        let mut found = [0; ID];
        if at >= self.count() || self.id_at(at, &mut found).is_err() || found != id.as_bytes() {
            return Ok(None);
        }
        self.offset(at).map(Some)
    }

    /// Calls `visit` with each id that begins with these digits, until it returns `false`.
    pub(super) fn each_with_prefix(
        &self,
        prefix: gix::hash::Prefix,
        visit: &mut dyn FnMut(ObjectId) -> bool,
    ) -> Result<(), StoreError> {
        let mut at = self.position(prefix.as_oid().as_bytes())?;
        while at < self.count() {
            let mut found = [0; ID];
            self.id_at(at, &mut found)?;
            let id = ObjectId::from_bytes_or_panic(&found);
            if prefix.cmp_oid(&id).is_ne() || !visit(id) {
                break;
            }
            at += 1;
        }
        Ok(())
    }

    fn count(&self) -> u64 {
        u64::from(self.fan.last().copied().unwrap_or_default())
    }

    /// The position of the first id that is not less than this one.
    fn position(&self, id: &[u8]) -> Result<u64, StoreError> {
        let first = usize::from(id.first().copied().unwrap_or_default());
        let fan = |at: usize| u64::from(self.fan.get(at).copied().unwrap_or_default());
        let mut low = first.checked_sub(1).map_or(0, fan);
        let mut high = fan(first).max(low);
        let (step, skip) = self.step();
        // In memory, a step costs nothing; in a file, one reading of many ids replaces several of one.
        let in_block = match &self.bytes {
            IndexBytes::InFile(_) if !self.is_first_version => (BLOCK / ID) as u64,
            _ => 1,
        };
        let mut found = [0; ID];
        while high - low > in_block {
            let middle = low + (high - low) / 2;
            self.id_at(middle, &mut found)?;
            if &found[..] < id { low = middle + 1 } else { high = middle }
        }
        let mut block = vec![0; usize::try_from((high - low) * step).unwrap_or_default()];
        self.bytes.read(&mut block, self.table() + low * step)?;
        let names = block.chunks_exact(usize::try_from(step).unwrap_or(ID));
        let less = names.take_while(|name| name.get(skip..).is_some_and(|name| name < id)).count();
        Ok(low + less as u64)
    }

    /// The size of an entry of the table of ids, and where the id is in it.
    fn step(&self) -> (u64, usize) {
        if self.is_first_version { (24, 4) } else { (ID as u64, 0) }
    }

    fn table(&self) -> u64 {
        if self.is_first_version { FAN as u64 } else { 8 + FAN as u64 }
    }

    fn id_at(&self, at: u64, found: &mut [u8; ID]) -> Result<(), StoreError> {
        let (step, skip) = self.step();
        self.bytes.read(found, self.table() + at * step + skip as u64)
    }

    fn offset(&self, at: u64) -> Result<u64, StoreError> {
        const LARGE: u32 = 1 << 31;
        let mut small = [0; 4];
        if self.is_first_version {
            self.bytes.read(&mut small, self.table() + at * 24)?;
            return Ok(u32::from_be_bytes(small).into());
        }
        let count = self.count();
        self.bytes.read(&mut small, self.table() + count * 24 + at * 4)?;
        let small = u32::from_be_bytes(small);
        if small & LARGE == 0 {
            return Ok(small.into());
        }
        let mut large = [0; 8];
        self.bytes.read(&mut large, self.table() + count * 28 + u64::from(small & !LARGE) * 8)?;
        Ok(u64::from_be_bytes(large))
    }
}

impl IndexBytes {
    /// A file with at most `in_memory` bytes is kept in memory.
    pub(super) fn open(file: PartFile, in_memory: u64) -> Result<Self, PartError> {
        match file.len() {
            size if size <= in_memory => file.read_all(in_memory).map(Self::InMemory),
            _ => Ok(Self::InFile(file)),
        }
    }

    /// Its size in memory, in bytes.
    pub(super) fn in_memory(&self) -> u64 {
        match self {
            Self::InMemory(bytes) => bytes.len() as u64,
            Self::InFile(_) => 0,
        }
    }

    /// Fills `buffer`.
    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), StoreError> {
        const CUT: StoreError = StoreError::Corrupt("an index of a pack is cut");
        match self {
            Self::InMemory(bytes) => {
                let start = usize::try_from(offset).map_err(|_| CUT)?;
                let end = start.checked_add(buffer.len()).ok_or(CUT)?;
                buffer.copy_from_slice(bytes.get(start..end).ok_or(CUT)?);
            }
            Self::InFile(file) => {
                if file.read_at(buffer, offset)? < buffer.len() {
                    return Err(CUT);
                }
            }
        }
        Ok(())
    }
}

/// Reads the entry at `offset` of a pack up to its compressed bytes.
pub(super) fn entry(file: &PartFile, offset: u64) -> Result<PackEntry, StoreError> {
    const CUT: StoreError = StoreError::Corrupt("an entry of a pack is cut");
    const WRONG: StoreError = StoreError::Corrupt("an entry of a pack is damaged");
    // Most commits and deltas are read whole with this.
    let mut head = vec![0; START];
    let read = file.read_at(&mut head, offset)?;
    head.truncate(read);
    let mut bytes = head.iter().copied();
    let mut used = 0;
    let mut next = || {
        used += 1;
        bytes.next().ok_or(CUT)
    };
    let first = next()?;
    let mut size = u64::from(first & 0x0f);
    let mut shift = 4;
    let mut byte = first;
    while byte & 0x80 != 0 {
        byte = next()?;
        if shift > 57 {
            return Err(WRONG);
        }
        size |= u64::from(byte & 0x7f) << shift;
        shift += 7;
    }
    let kind = match (first >> 4) & 0x07 {
        1 => EntryKind::Whole(Kind::Commit),
        2 => EntryKind::Whole(Kind::Tree),
        3 => EntryKind::Whole(Kind::Blob),
        4 => EntryKind::Whole(Kind::Tag),
        6 => {
            let mut byte = next()?;
            let mut distance = u64::from(byte & 0x7f);
            while byte & 0x80 != 0 {
                byte = next()?;
                let more = distance.checked_add(1).and_then(|distance| distance.checked_mul(128));
                distance = more.ok_or(WRONG)? | u64::from(byte & 0x7f);
            }
            let base = offset.checked_sub(distance).filter(|base| *base < offset && *base >= 12);
            EntryKind::Offset(base.ok_or(WRONG)?)
        }
        7 => {
            let mut id = [0; ID];
            for byte in &mut id {
                *byte = next()?;
            }
            EntryKind::Id(ObjectId::from_bytes_or_panic(&id))
        }
        _ => return Err(WRONG),
    };
    head.drain(..used);
    Ok(PackEntry { kind, size, bytes: Compressed { read: head, at: offset.saturating_add(read as u64) } })
}

/// Decompresses exactly `size` bytes.
pub(super) fn inflate(
    file: &PartFile,
    bytes: Compressed,
    size: u64,
    is_cancelled: &IsCancelled<'_>,
) -> Result<Vec<u8>, StoreError> {
    if size > LARGEST_OBJECT {
        return Err(StoreError::TooLarge(size));
    }
    let mut stream = Inflate::new(file, bytes, size);
    let mut out = Vec::new();
    // One more than it should have shows that it has too many.
    let size = usize::try_from(size).unwrap_or(usize::MAX);
    while !stream.is_over && out.len() <= size {
        if is_cancelled() {
            return Err(PartError::Cancelled.into());
        }
        let max = CHUNK.min(size.saturating_add(1).saturating_sub(out.len()));
        stream.more(&mut out, max)?;
    }
    if !stream.is_over || out.len() != size {
        return Err(StoreError::Corrupt("an object has another size than it says"));
    }
    Ok(out)
}

/// A compressed part of a file.
pub(super) struct Inflate<'f> {
    file: &'f PartFile,
    /// The offset of the next compressed bytes.
    at: u64,
    read: Vec<u8>,
    /// The number of decompressed bytes among those that were read.
    used: usize,
    chunk: usize,
    /// `None` only when it is dropped.
    stream: Option<Box<Decompress>>,
    pub(super) is_over: bool,
}

thread_local! {
    /// A stream that has been used: making one takes as long as decompressing a small object.
    static STREAM: Cell<Option<Box<Decompress>>> = const { Cell::new(None) };
}

impl Drop for Inflate<'_> {
    fn drop(&mut self) {
        let _ = STREAM.try_with(|kept| kept.set(self.stream.take()));
    }
}

impl<'f> Inflate<'f> {
    /// `expected` is the approximate decompressed size.
    pub(super) fn new(file: &'f PartFile, bytes: Compressed, expected: u64) -> Self {
        let chunk = usize::try_from(expected.saturating_add(64)).unwrap_or(CHUNK).clamp(64, CHUNK);
        let mut stream = STREAM.try_with(Cell::take).ok().flatten().unwrap_or_default();
        stream.reset();
        let Compressed { read, at } = bytes;
        Self { file, at, read, used: 0, chunk, stream: Some(stream), is_over: false }
    }

    /// Appends at most `max` bytes.
    pub(super) fn more(&mut self, out: &mut Vec<u8>, max: usize) -> Result<(), StoreError> {
        const WRONG: StoreError = StoreError::Corrupt("compressed bytes are damaged or cut");
        if self.used == self.read.len() {
            self.read.resize(self.chunk, 0);
            let read = self.file.read_at(&mut self.read, self.at)?;
            self.read.truncate(read);
            self.used = 0;
            self.at = self.at.saturating_add(read as u64);
            if read == 0 {
                return Err(WRONG);
            }
        }
        let before = out.len();
        out.resize(before + max, 0);
        let stream = self.stream.get_or_insert_default();
        let was_in = stream.total_in();
        let was_out = stream.total_out();
        let input = self.read.get(self.used..).unwrap_or_default();
        let output = out.get_mut(before..).unwrap_or_default();
        let status = stream.decompress(input, output, FlushDecompress::None).map_err(|_| WRONG)?;
        let taken = usize::try_from(stream.total_in() - was_in).unwrap_or_default();
        let given = usize::try_from(stream.total_out() - was_out).unwrap_or_default();
        out.truncate(before + given);
        self.used += taken;
        self.is_over = status == Status::StreamEnd;
        if !self.is_over && taken == 0 && given == 0 {
            return Err(WRONG);
        }
        Ok(())
    }
}

/// A number of four bytes.
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
