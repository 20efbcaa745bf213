//! The commit-graph: a table that git writes of the trees, parents and times of commits, and of the paths that each changed.
//!
//! ```text
//!   OIDF, OIDL   id ──▶ position                       BIDX, BDAT   position ──▶ a filter of the changed paths:
//!   CDAT, EDGE   position ──▶ tree, parents, time                   "surely not this one" or "perhaps"
//! ```
//!
//! Law: the table saves work and decides nothing that the objects would not. It may be old, cut, damaged or made by somebody
//! else: a file whose checksum is wrong is not used, every position and offset is checked against its chunk, and what cannot
//! be read there is read from the objects. Of a chain, the layers up to the first that is wrong are used.

use super::message::CommitHeader;
use super::packs::{IndexBytes, IsCancelled};
use super::parts::{Areas, CHUNK, PartFile, PartStamp, stamp};
use gix::ObjectId;
use gix::hash;
use std::path::Path;

/// The largest file that is read, in bytes. A million commits take about 80 MiB.
const LARGEST: u64 = 256 << 20;
/// Maximum size in bytes of the layers held in memory together. Other layers are read from their files.
const IN_MEMORY: u64 = 16 << 20;
/// The most layers of a chain, and the largest list of them.
const LAYERS: usize = 64;
const CHAIN: u64 = 64 * 1024;
/// The most parents of a commit that are taken from here.
const PARENTS: usize = 1_000;
/// The largest filter, in bytes, and the most bits that it sets for a path.
const FILTER: u64 = 64 * 1024;
const HASHES: u32 = 64;
const ID: u64 = 20;
/// Of a row of CDAT: a tree, two parents, and the generation with the time.
const ROW: u64 = ID + 16;
const NO_PARENT: u32 = 0x7000_0000;
/// In place of a second parent: the rest are in EDGE. There: the last one.
const MORE: u32 = 1 << 31;

/// The layers of a commit-graph, the oldest first.
#[derive(Debug)]
pub(super) struct CommitGraph(Vec<GraphLayer>);

/// One file.
#[derive(Debug)]
struct GraphLayer {
    bytes: IndexBytes,
    /// The number of commits in the layers below.
    below: u32,
    /// The number of commits whose id has at most this first byte.
    fan: Vec<u32>,
    ids: GraphChunk,
    rows: GraphChunk,
    edges: GraphChunk,
    filters: Option<FilterTable>,
}

/// A part of a file.
#[derive(Clone, Copy, Debug, Default)]
struct GraphChunk {
    at: u64,
    size: u64,
}

#[derive(Debug)]
struct FilterTable {
    ends: GraphChunk,
    filters: GraphChunk,
    hashes: u32,
    /// The first version hashed bytes above 127 in two ways, according to the machine.
    is_first_version: bool,
}

/// A path that filters are asked about: the hashes of the path and of each directory on its way.
pub(super) struct GraphPath(Vec<PathHashes>);

struct PathHashes {
    first: u32,
    second: u32,
    is_ascii: bool,
}

/// Identifies the state of the files.
pub(super) type GraphStamp = [Option<PartStamp>; 2];

fn files(objects: &Path) -> [std::path::PathBuf; 2] {
    [objects.join("info/commit-graph"), objects.join("info/commit-graphs/commit-graph-chain")]
}

impl CommitGraph {
    /// The stamp of the graph in this directory of objects.
    pub(super) fn stamp(objects: &Path) -> GraphStamp {
        files(objects).map(|path| std::fs::metadata(path).ok().as_ref().map(stamp))
    }

    /// The graph in this directory of objects; `None` if there is none that can be used.
    pub(super) fn open(areas: &Areas, objects: &Path, is_cancelled: &IsCancelled<'_>) -> Option<Self> {
        let [single, chain] = files(objects);
        if let Ok(file) = areas.open(&single) {
            return GraphLayer::open(file, 0, &mut { IN_MEMORY }, is_cancelled)
                .map(|layer| Self(vec![layer]));
        }
        let (list, _) = areas.read(&chain, CHAIN).ok()?;
        let mut layers: Vec<GraphLayer> = Vec::new();
        let mut room = IN_MEMORY;
        for line in list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).take(LAYERS) {
            let Ok(id) = ObjectId::from_hex(line) else { break };
            let Ok(file) = areas.open(&chain.with_file_name(format!("graph-{id}.graph"))) else { break };
            let below = layers.last().map_or(0, |last| last.below.saturating_add(last.count()));
            match GraphLayer::open(file, below, &mut room, is_cancelled) {
                Some(layer) => layers.push(layer),
                None => break,
            }
        }
        (!layers.is_empty()).then_some(Self(layers))
    }

    /// The header of a commit; `None` if the graph does not have it.
    pub(super) fn header(&self, id: &ObjectId) -> Option<CommitHeader> {
        let (layer, at) = self.find(id)?;
        let row: [u8; ROW as usize] = layer.read(layer.rows, u64::from(at) * ROW)?;
        let number = |at: usize| {
            row.get(at..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_be_bytes(*four))
        };
        let tree = ObjectId::try_from(row.get(..ID as usize)?).ok()?;
        let mut parents = Vec::new();
        match (number(20)?, number(24)?) {
            (NO_PARENT, _) => {}
            (first, NO_PARENT) => parents.push(self.id_at(first)?),
            (first, second) if second & MORE == 0 => {
                parents.push(self.id_at(first)?);
                parents.push(self.id_at(second)?);
            }
            (first, edge) => {
                parents.push(self.id_at(first)?);
                for edge in (edge & !MORE)..u32::MAX {
                    let position = u32::from_be_bytes(layer.read(layer.edges, u64::from(edge) * 4)?);
                    parents.push(self.id_at(position & !MORE)?);
                    if position & MORE != 0 {
                        break;
                    }
                    (parents.len() < PARENTS).then_some(())?;
                }
            }
        }
        // The generation has the upper 30 bits of the eight bytes.
        let time = u64::from(number(28)? & 3) << 32 | u64::from(number(32)?);
        Some(CommitHeader { tree: Some(tree), parents, time })
    }

    /// Whether a commit surely has the same at the path as its first parent.
    pub(super) fn is_same(&self, id: &ObjectId, path: &GraphPath) -> bool {
        let found = self.find(id).and_then(|(layer, at)| layer.may_change(at, path));
        found == Some(false)
    }

    fn find(&self, id: &ObjectId) -> Option<(&GraphLayer, u32)> {
        self.0.iter().rev().find_map(|layer| Some((layer, layer.position(id)?)))
    }

    fn id_at(&self, position: u32) -> Option<ObjectId> {
        let layer = self.0.iter().rev().find(|layer| layer.below <= position)?;
        layer.id_at(position - layer.below)
    }
}

impl GraphLayer {
    fn open(file: PartFile, below: u32, room: &mut u64, is_cancelled: &IsCancelled<'_>) -> Option<Self> {
        let size = file.len();
        (size <= LARGEST && has_checksum(&file, is_cancelled)?).then_some(())?;
        let bytes = IndexBytes::open(file, *room).ok()?;
        *room = room.saturating_sub(bytes.in_memory());
        let mut layer = Self {
            bytes,
            below,
            fan: Vec::new(),
            ids: GraphChunk::default(),
            rows: GraphChunk::default(),
            edges: GraphChunk::default(),
            filters: None,
        };
        let whole = GraphChunk { at: 0, size: size.checked_sub(ID)? };
        let head: [u8; 8] = layer.read(whole, 0)?;
        let (magic, [version, hash, chunks, _]) = (head.first_chunk::<4>()?, head.last_chunk::<4>()?);
        (magic == b"CGPH" && [*version, *hash] == [1, 1]).then_some(())?;
        let mut parts: [GraphChunk; 6] = Default::default();
        for number in 0..u64::from(*chunks) {
            let entry: [u8; 24] = layer.read(whole, 8 + number * 12)?;
            let offset = |at: usize| {
                entry.get(at..).and_then(|rest| rest.first_chunk()).map(|eight| u64::from_be_bytes(*eight))
            };
            let (at, end) = (offset(4)?, offset(16)?);
            let size = end.checked_sub(at).filter(|_| end <= whole.size)?;
            let names = [b"OIDF", b"OIDL", b"CDAT", b"EDGE", b"BIDX", b"BDAT"];
            let place = names.iter().position(|name| entry.starts_with(*name));
            if let Some(part) = place.and_then(|place| parts.get_mut(place)) {
                *part = GraphChunk { at, size };
            }
        }
        let [fan, ids, rows, edges, ends, filters] = parts;
        let fan: [u8; 1024] = layer.read(fan, 0)?;
        layer.fan =
            fan.chunks_exact(4).filter_map(|four| Some(u32::from_be_bytes(four.try_into().ok()?))).collect();
        let count = u64::from(layer.count());
        let is_whole = ids.size >= count * ID && rows.size >= count * ROW && layer.fan.is_sorted();
        (is_whole && below.checked_add(layer.count())? < NO_PARENT).then_some(())?;
        layer.ids = ids;
        layer.rows = rows;
        layer.edges = edges;
        layer.filters = layer.filter_table(ends, filters);
        Some(layer)
    }

    fn filter_table(&self, ends: GraphChunk, filters: GraphChunk) -> Option<FilterTable> {
        let head: [u8; 12] = self.read(filters, 0)?;
        let number = |at: usize| {
            head.get(at..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_be_bytes(*four))
        };
        let version = number(0).filter(|version| matches!(version, 1 | 2))?;
        let hashes = number(4).filter(|hashes| (1..=HASHES).contains(hashes))?;
        (ends.size >= u64::from(self.count()) * 4).then_some(())?;
        let filters = GraphChunk { at: filters.at + 12, size: filters.size - 12 };
        Some(FilterTable { ends, filters, hashes, is_first_version: version == 1 })
    }

    fn count(&self) -> u32 {
        self.fan.last().copied().unwrap_or_default()
    }

    fn position(&self, id: &ObjectId) -> Option<u32> {
        let first = usize::from(*id.as_bytes().first()?);
        let fan = |at: usize| self.fan.get(at).copied();
        let mut low = first.checked_sub(1).map_or(Some(0), fan)?;
        let mut high = fan(first)?;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id_at(middle)?.cmp(id) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn id_at(&self, at: u32) -> Option<ObjectId> {
        let id: [u8; ID as usize] = self.read(self.ids, u64::from(at) * ID).filter(|_| at < self.count())?;
        Some(ObjectId::from_bytes_or_panic(&id))
    }

    /// Whether a commit may have changed the path; `None` if it has no filter.
    fn may_change(&self, at: u32, path: &GraphPath) -> Option<bool> {
        let table = self.filters.as_ref()?;
        let end = |at: u32| {
            self.read(table.ends, u64::from(at) * 4).map(|four| u64::from(u32::from_be_bytes(four)))
        };
        let start = at.checked_sub(1).map_or(Some(0), end)?;
        let size = end(at)?.checked_sub(start).filter(|size| (1..=FILTER).contains(size))?;
        let is_known = path.0.iter().all(|name| name.is_ascii || !table.is_first_version);
        let is_inside = start + size <= table.filters.size;
        (is_known && is_inside).then_some(())?;
        for name in &path.0 {
            for number in 0..table.hashes {
                let bit = u64::from(name.first.wrapping_add(number.wrapping_mul(name.second))) % (size * 8);
                let [byte] = self.read(table.filters, start + bit / 8)?;
                if byte >> (bit % 8) & 1 == 0 {
                    return Some(false);
                }
            }
        }
        Some(true)
    }

    /// Some bytes of a chunk; `None` if they are not all in it.
    fn read<const N: usize>(&self, chunk: GraphChunk, offset: u64) -> Option<[u8; N]> {
        let mut found = [0; N];
        offset.checked_add(N as u64).filter(|end| *end <= chunk.size)?;
        self.bytes.read(&mut found, chunk.at.checked_add(offset)?).ok()?;
        Some(found)
    }
}

/// Whether the file ends with its checksum; `None` if it cannot be read.
fn has_checksum(file: &PartFile, is_cancelled: &IsCancelled<'_>) -> Option<bool> {
    let mut hasher = hash::hasher(hash::Kind::Sha1);
    let mut chunk = vec![0; CHUNK];
    let end = file.len().checked_sub(ID)?;
    let mut at = 0;
    while at < end {
        let size = usize::try_from(end - at).unwrap_or(CHUNK).min(CHUNK);
        let part = chunk.get_mut(..size)?;
        (!is_cancelled() && file.read_at(part, at).ok()? == size).then_some(())?;
        hasher.update(part);
        at += size as u64;
    }
    let mut found = [0; ID as usize];
    let is_there = file.read_at(&mut found, end).ok()? == found.len();
    Some(is_there && hasher.try_finalize().ok()?.as_bytes() == found)
}

impl GraphPath {
    /// The path and the directories on its way; `path` is relative to the root.
    pub(super) fn new(path: &[u8]) -> Self {
        let ends = (0..path.len()).filter(|at| path.get(*at) == Some(&b'/')).chain([path.len()]);
        let names = ends.filter_map(|end| path.get(..end)).filter(|name| !name.is_empty());
        Self(names.map(PathHashes::new).collect())
    }
}

impl PathHashes {
    fn new(name: &[u8]) -> Self {
        Self {
            first: murmur3(0x293a_e76f, name),
            second: murmur3(0x7e64_6e2c, name),
            is_ascii: name.is_ascii(),
        }
    }
}

/// MurmurHash3 of 32 bits.
fn murmur3(seed: u32, data: &[u8]) -> u32 {
    let mixed = |block: u32| block.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    let mut hash = seed;
    let mut blocks = data.chunks_exact(4);
    for block in &mut blocks {
        let block = block.iter().rev().fold(0, |block, byte| block << 8 | u32::from(*byte));
        hash = (hash ^ mixed(block)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let rest = blocks.remainder().iter().rev().fold(0, |block, byte| block << 8 | u32::from(*byte));
    hash ^= mixed(rest);
    hash ^= u32::try_from(data.len()).unwrap_or(u32::MAX);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-02: the vectors of git's own test of its filters, t/helper/test-bloom.c.
    #[test]
    fn paths_are_hashed_as_git_does() {
        assert_eq!(murmur3(0, b""), 0);
        assert_eq!(murmur3(0, b"Hello world!"), 0x627b_0c2c);
        assert_eq!(murmur3(0, b"The quick brown fox jumps over the lazy dog"), 0x2e4f_f723);
        let names = GraphPath::new(b"a/b/c").0;
        assert_eq!(names.len(), 3);
        assert_eq!(names.first().map(|name| name.first), Some(murmur3(0x293a_e76f, b"a")));
    }

    /// A commit-graph of a small history with merges, in a directory of its own, and the ids of its commits.
    fn small_graph() -> (std::path::PathBuf, Vec<ObjectId>) {
        use std::fmt::Write as _;
        let dir = std::env::temp_dir().join(format!("mcp-git-graph-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let run = |arguments: &[&str], input: &str| {
            let mut command = std::process::Command::new("git");
            command.args(arguments).current_dir(&dir).env("GIT_CONFIG_GLOBAL", "/dev/null");
            command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
            let mut child =
                command.spawn().expect("these tests make repositories with the git program; install git");
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "git {arguments:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let mut stream = String::new();
        for number in 1..=40 {
            let _ = writeln!(
                stream,
                "commit refs/heads/main\nmark :{number}\ncommitter A <a@b> {number} +0000\ndata 1\nx"
            );
            if number > 4 {
                let _ = writeln!(stream, "from :{}", number - 1);
                for back in 2..number % 5 {
                    let _ = writeln!(stream, "merge :{}", number - back);
                }
            }
            let _ = writeln!(stream, "M 644 inline d{}/f{}\ndata 2\n{number:02}", number % 3, number % 7);
        }
        run(&["init", "-q", "--bare", "-b", "main"], "");
        run(&["fast-import", "--quiet"], &stream);
        run(&["commit-graph", "write", "--reachable", "--changed-paths"], "");
        let ids = run(&["log", "--format=%H"], "");
        let ids = ids.lines().map(|id| ObjectId::from_hex(id.as_bytes()).unwrap()).collect();
        (dir, ids)
    }

    // S-02: a table that somebody has made, with a right checksum and wrong numbers, is no danger: what it says is checked
    // against its size, and the rest is read from the objects.
    #[test]
    fn made_up_tables_end_nothing() {
        let (dir, ids) = small_graph();
        let areas = Areas::new(vec![std::fs::canonicalize(&dir).unwrap()]);
        let objects = std::fs::canonicalize(&dir).unwrap().join("objects");
        let path = GraphPath::new(b"d1/f3");
        let graph = CommitGraph::open(&areas, &objects, &|| false).unwrap();
        let whole: Vec<_> = ids.iter().filter_map(|id| graph.header(id)).collect();
        assert_eq!(whole.len(), ids.len());
        assert_eq!(whole.last().map(|first| (first.time, first.parents.len())), Some((1, 0)));
        assert!(
            ids.iter().any(|id| graph.is_same(id, &path)) && !ids.iter().all(|id| graph.is_same(id, &path))
        );
        assert!(CommitGraph::open(&areas, &objects, &|| true).is_none());
        let file = objects.join("info/commit-graph");
        let bytes = std::fs::read(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let mut state = 7_u64;
        let mut roll = |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % end
        };
        for _ in 0..2_000 {
            let mut made = bytes[..bytes.len() - 20].to_vec();
            // The head and the table of chunks are the first hundred bytes.
            let end = if roll(2) == 0 { 100 } else { made.len() };
            for _ in 0..=roll(3) {
                let at = roll(end);
                made[at] = [0, 1, 0x7f, 0x80, 0xff, made[at] ^ 1][roll(6)];
            }
            let mut hasher = hash::hasher(hash::Kind::Sha1);
            hasher.update(&made);
            made.extend_from_slice(hasher.try_finalize().unwrap().as_bytes());
            std::fs::write(&file, &made).unwrap();
            if let Some(graph) = CommitGraph::open(&areas, &objects, &|| false) {
                for id in &ids {
                    let _ = (graph.header(id), graph.is_same(id, &path));
                }
            }
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
