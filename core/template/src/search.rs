//! Finds the best template for one URI by walking the trie, without recursion.

use super::index::Indexed;
use super::matching::{Spans, segment_len};
use super::parse::MAX_VARIABLES;
use super::program::{Exhausted, Meter, ProgramSpan};
use super::subject::MatchSubject;
use super::trie::{ROOT, TrieNode, index};
use smallvec::SmallVec;

/// The state of a search.
pub(super) struct Search<'i, 'u> {
    indexed: &'i Indexed,
    subject: &'i MatchSubject<'u>,
    meter: &'i mut Meter,
    /// Pending visits. At each node, literals are tried before captures, and captures before the node's templates.
    open: SmallVec<[SearchVisit; 8]>,
    /// The texts of the capture edges on the current path, by depth.
    path: [ProgramSpan; MAX_VARIABLES],
    /// The segment text that was measured last.
    segment: ProgramSpan,
    /// The best template so far.
    pub rank: u32,
    /// Its captures.
    pub spans: Spans,
}

/// A node, and how it was reached.
#[derive(Clone, Copy)]
struct SearchVisit {
    node: u32,
    position: u32,
    /// The number of captures on the path.
    depth: u32,
    /// The start of the capture that led here, if any.
    captured_from: Option<u32>,
    /// Whether the children were visited already.
    is_left: bool,
}

/// The rank that stands for no template.
pub(super) const NONE: u32 = u32::MAX;

impl<'i, 'u> Search<'i, 'u> {
    pub(super) fn new(indexed: &'i Indexed, subject: &'i MatchSubject<'u>, meter: &'i mut Meter) -> Self {
        let path = [ProgramSpan::UNSET; MAX_VARIABLES];
        let open = SmallVec::new();
        let spans = SmallVec::new();
        Self { indexed, subject, meter, open, path, segment: ProgramSpan::UNSET, rank: NONE, spans }
    }

    /// Finds the template with the lowest rank that matches.
    pub(super) fn run(&mut self) -> Result<(), Exhausted> {
        let mut next =
            Some(SearchVisit { node: ROOT, position: 0, depth: 0, captured_from: None, is_left: false });
        while let Some(visit) = next {
            let node = self.indexed.trie.node(visit.node);
            next = if node.best >= self.rank {
                None
            } else if visit.is_left {
                self.entries(node, &visit)?;
                None
            } else {
                self.enter(node, visit)?
            };
            next = next.or_else(|| self.open.pop());
        }
        Ok(())
    }

    /// Continues with a child if there is one; pushes the remaining work at the node.
    fn enter(&mut self, node: &TrieNode, visit: SearchVisit) -> Result<Option<SearchVisit>, Exhausted> {
        let trie = &self.indexed.trie;
        let SearchVisit { position, depth, .. } = visit;
        if let Some(start) = visit.captured_from {
            self.path[depth as usize - 1] = ProgramSpan { start, end: position };
        }
        let rest = &self.subject.bytes()[position as usize..];
        let literal = trie.literal_child(node, rest).map(|(node, length)| SearchVisit {
            node,
            position: position + index(length),
            depth,
            captured_from: None,
            is_left: false,
        });
        self.meter.scan(literal.map_or(0, |child| child.position - position) as usize)?;
        let capture = match trie.capture_child(node) {
            Some(child) => self.captured(child, position, depth)?,
            None => None,
        };
        if literal.is_none() && capture.is_none() {
            self.entries(node, &visit)?;
            return Ok(None);
        }
        if trie.has_entries(node) {
            self.open.push(SearchVisit { is_left: true, ..visit });
        }
        if literal.is_some() {
            self.open.extend(capture);
        }
        Ok(literal.or(capture))
    }

    /// The node after a capture that starts at `position`, unless the capture is empty.
    fn captured(&mut self, node: u32, position: u32, depth: u32) -> Result<Option<SearchVisit>, Exhausted> {
        if !(self.segment.start..=self.segment.end).contains(&position) {
            let length = segment_len(&self.subject.bytes()[position as usize..]);
            self.meter.scan(length)?;
            self.segment = ProgramSpan { start: position, end: position + index(length) };
        }
        let end = self.segment.end;
        let captured_from = Some(position);
        Ok((end > position).then_some(SearchVisit {
            node,
            position: end,
            depth: depth + 1,
            captured_from,
            is_left: false,
        }))
    }

    /// Tries the templates whose head ends at a node.
    fn entries(&mut self, node: &TrieNode, visit: &SearchVisit) -> Result<(), Exhausted> {
        let trie = &self.indexed.trie;
        self.attempt(trie.entries(node), visit)?;
        if let Some(gate) = trie.gate(node) {
            let found = gate.open(&self.subject.bytes()[visit.position as usize..], self.meter)?;
            self.attempt(&found, visit)?;
        }
        Ok(())
    }

    /// Tries templates in order, until one matches or a better one is known.
    fn attempt(&mut self, ranks: &[u32], visit: &SearchVisit) -> Result<(), Exhausted> {
        for &rank in ranks.iter().take_while(|&&rank| rank < self.rank) {
            let template = self.indexed.template(rank);
            let low = visit.position as usize;
            let head = &self.path[..visit.depth as usize];
            self.meter.spend(1)?;
            if let Some(spans) = template.finish(self.subject, low, head, self.meter)? {
                self.rank = rank;
                self.spans = spans;
                break;
            }
        }
        Ok(())
    }
}
