//! A trie over the heads of templates, with literals or captures as edges.
//!
//! A head has no alternatives, so a URI reaches each node at one position at most. Nodes are stored in depth-first
//! order, so that the path to a template is mostly contiguous in memory.

use super::compile::TemplateToken;
use super::gate::ValueGate;

/// An immutable trie. Templates are identified by rank: the lowest rank wins.
#[derive(Debug)]
pub(super) struct Trie {
    nodes: Box<[TrieNode]>,
    /// For each node, the first byte of its edge. The literal children of a node are adjacent, in byte order.
    first_bytes: Box<[u8]>,
    edges: Box<[u8]>,
    entries: Box<[u32]>,
    gates: Box<[ValueGate]>,
}

/// A node of the trie.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TrieNode {
    edge: TrieRange,
    /// The literal children, followed by the capture child if there is one.
    children: TrieRange,
    entries: TrieRange,
    /// The best rank at or below this node.
    pub best: u32,
    gate: u32,
    has_capture: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct TrieRange {
    start: u32,
    len: u32,
}

/// The root.
pub(super) const ROOT: u32 = 0;

const NO_GATE: u32 = u32::MAX;

impl Trie {
    pub(super) fn node(&self, node: u32) -> &TrieNode {
        &self.nodes[node as usize]
    }

    /// The literal child of `node` for the text `rest`, and the length of its edge.
    #[inline]
    pub(super) fn literal_child(&self, node: &TrieNode, rest: &[u8]) -> Option<(u32, usize)> {
        let literals = TrieRange { len: node.children.len - u32::from(node.has_capture), ..node.children };
        let at = match literals.len {
            0 => return None,
            1 => 0,
            _ => memchr::memchr(*rest.first()?, slice(&self.first_bytes, literals))?,
        };
        let child = node.children.start + index(at);
        let edge = slice(&self.edges, self.node(child).edge);
        rest.starts_with(edge).then_some((child, edge.len()))
    }

    /// The child after a capture.
    pub(super) fn capture_child(&self, node: &TrieNode) -> Option<u32> {
        node.has_capture.then(|| node.children.start + node.children.len - 1)
    }

    /// The templates whose head ends at `node`, best first, except those in its gate.
    pub(super) fn entries(&self, node: &TrieNode) -> &[u32] {
        slice(&self.entries, node.entries)
    }

    /// Whether a template's head ends at `node`.
    pub(super) fn has_entries(&self, node: &TrieNode) -> bool {
        node.entries.len > 0 || node.gate != NO_GATE
    }

    pub(super) fn gate(&self, node: &TrieNode) -> Option<&ValueGate> {
        self.gates.get(node.gate as usize)
    }
}

fn slice<T>(all: &[T], range: TrieRange) -> &[T] {
    &all[range.start as usize..(range.start + range.len) as usize]
}

/// Builds a trie. Templates are inserted best first.
#[derive(Debug)]
pub(super) struct TrieBuilder {
    nodes: Vec<TrieBranch>,
}

#[derive(Debug, Default)]
struct TrieBranch {
    edge: Vec<u8>,
    /// In the order of the first byte of their edges.
    literals: Vec<u32>,
    capture: Option<u32>,
    entries: Vec<u32>,
    best: u32,
}

impl TrieBuilder {
    pub(super) fn new() -> Self {
        Self { nodes: vec![TrieBranch { best: u32::MAX, ..TrieBranch::default() }] }
    }

    /// Adds the template of `rank`, which is worse than all ranks added before.
    pub(super) fn insert(&mut self, head: &[TemplateToken], rank: u32) {
        let mut node = ROOT;
        self.touch(node, rank);
        for token in head {
            node = match token {
                TemplateToken::Literal(text) => self.literal(node, text, rank),
                TemplateToken::Capture => self.capture(node, rank),
            };
        }
        self.at(node).entries.push(rank);
    }

    /// Stores the trie in its final layout. `gate` takes entries of a node, and leaves those that need no gate.
    pub(super) fn build(mut self, mut gate: impl FnMut(&mut Vec<u32>) -> Option<ValueGate>) -> Trie {
        let mut nodes = vec![TrieNode::default()];
        let mut first_bytes = vec![0];
        let mut edges = Vec::new();
        let mut entries = Vec::new();
        let mut gates = Vec::new();
        let mut open = vec![(ROOT, ROOT)];
        while let Some((from, to)) = open.pop() {
            let mut branch = std::mem::take(self.at(from));
            let own_gate = gate(&mut branch.entries).map(|gate| {
                gates.push(gate);
                index(gates.len() - 1)
            });
            let children: Vec<u32> = branch.literals.iter().copied().chain(branch.capture).collect();
            let first = nodes.len();
            let opened = open.len();
            nodes[to as usize] = TrieNode {
                edge: append(&mut edges, &branch.edge),
                children: TrieRange { start: index(first), len: index(children.len()) },
                entries: append(&mut entries, &branch.entries),
                best: branch.best,
                gate: own_gate.unwrap_or(NO_GATE),
                has_capture: branch.capture.is_some(),
            };
            nodes.resize(first + children.len(), TrieNode::default());
            first_bytes.extend(
                children.iter().map(|&child| self.at(child).edge.first().copied().unwrap_or_default()),
            );
            open.extend((index(first)..).zip(children).map(|(to, from)| (from, to)));
            open[opened..].reverse();
        }
        Trie {
            nodes: nodes.into(),
            first_bytes: first_bytes.into(),
            edges: edges.into(),
            entries: entries.into(),
            gates: gates.into(),
        }
    }

    fn at(&mut self, node: u32) -> &mut TrieBranch {
        &mut self.nodes[node as usize]
    }

    fn touch(&mut self, node: u32, rank: u32) {
        let best = &mut self.at(node).best;
        *best = rank.min(*best);
    }

    fn add(&mut self, edge: &[u8], rank: u32) -> u32 {
        self.nodes.push(TrieBranch { edge: edge.to_vec(), best: rank, ..TrieBranch::default() });
        index(self.nodes.len() - 1)
    }

    fn capture(&mut self, node: u32, rank: u32) -> u32 {
        let child = match self.at(node).capture {
            Some(child) => child,
            None => self.add(b"", rank),
        };
        self.at(node).capture = Some(child);
        self.touch(child, rank);
        child
    }

    /// Walks down from `node` along `text`, creating missing nodes.
    fn literal(&mut self, mut node: u32, mut text: &[u8], rank: u32) -> u32 {
        while let Some(&first) = text.first() {
            let place = self.nodes[node as usize]
                .literals
                .binary_search_by_key(&Some(&first), |&child| self.nodes[child as usize].edge.first());
            let child = match place {
                Ok(place) => {
                    let child = self.at(node).literals[place];
                    let shared =
                        self.at(child).edge.iter().zip(text).take_while(|(one, other)| one == other).count();
                    let child =
                        if shared < self.at(child).edge.len() { self.cut(child, shared) } else { child };
                    self.at(node).literals[place] = child;
                    text = &text[shared..];
                    child
                }
                Err(place) => {
                    let child = self.add(text, rank);
                    self.at(node).literals.insert(place, child);
                    text = b"";
                    child
                }
            };
            self.touch(child, rank);
            node = child;
        }
        node
    }

    /// Splits the edge to `child` after `shared` bytes; returns the new node in the middle.
    fn cut(&mut self, child: u32, shared: usize) -> u32 {
        let rest = self.at(child).edge.split_off(shared);
        let edge = std::mem::replace(&mut self.at(child).edge, rest);
        let best = self.at(child).best;
        let middle = self.add(&edge, best);
        self.at(middle).literals.push(child);
        middle
    }
}

fn append<T: Copy>(all: &mut Vec<T>, some: &[T]) -> TrieRange {
    all.extend_from_slice(some);
    TrieRange { start: index(all.len() - some.len()), len: index(some.len()) }
}

/// Templates and all their text are far below the limit of 2^32.
pub(super) fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
