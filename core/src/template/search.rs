//! Finds the best template for one URI: a walk over the trie, without recursion.

use super::compile::Compiled;
use super::index::Indexed;
use super::matching::{Spans, segment_len};
use super::program::{Exhausted, Meter, Span};
use super::subject::Subject;
use super::trie::{ROOT, index};
use smallvec::{SmallVec, smallvec};

/// A search that is under way.
pub(super) struct Search<'i, 'u> {
    indexed: &'i Indexed,
    subject: &'i Subject<'u>,
    meter: &'i mut Meter,
    /// What the capture edges on the way took, by depth.
    way: Spans,
    /// Captures of the template that is being tried.
    spans: Spans,
    best: Option<Best>,
    /// The segment text that was measured last.
    segment: Span,
}

/// The best template so far.
pub(super) struct Best {
    pub rank: u32,
    pub spans: Spans,
}

/// What is left to do. Doing the last one first visits literals before captures before entries.
struct Visit {
    node: u32,
    position: u32,
    /// How many captures are on the way.
    depth: u32,
    /// Where the capture that led here begins.
    captured_from: Option<u32>,
    /// The children were visited already.
    entries: bool,
}

impl<'i, 'u> Search<'i, 'u> {
    /// The template with the lowest rank that matches.
    pub(super) fn run(
        indexed: &'i Indexed,
        subject: &'i Subject<'u>,
        meter: &'i mut Meter,
    ) -> Result<Option<Best>, Exhausted> {
        let (way, spans) = (SmallVec::new(), SmallVec::new());
        let mut search = Self { indexed, subject, meter, way, spans, best: None, segment: Span::UNSET };
        let root = Visit { node: ROOT, position: 0, depth: 0, captured_from: None, entries: false };
        let mut open: SmallVec<[Visit; 16]> = smallvec![root];
        while let Some(visit) = open.pop() {
            if search.indexed.trie.node(visit.node).best >= search.best_rank() {
                continue;
            }
            if visit.entries {
                search.entries(&visit)?;
            } else {
                search.children(visit, &mut open)?;
            }
        }
        Ok(search.best)
    }

    fn best_rank(&self) -> u32 {
        self.best.as_ref().map_or(u32::MAX, |best| best.rank)
    }

    fn children(&mut self, visit: Visit, open: &mut SmallVec<[Visit; 16]>) -> Result<(), Exhausted> {
        let trie = &self.indexed.trie;
        let node = trie.node(visit.node);
        let Visit { position, depth, .. } = visit;
        if let Some(start) = visit.captured_from {
            // Deeper captures of branches that were left may be on the way still.
            self.way.truncate(depth as usize - 1);
            self.way.push(Span { start, end: position });
        }
        let rest = &self.subject.bytes()[position as usize..];
        if !trie.entries(node).is_empty() || trie.gate(node).is_some() {
            open.push(Visit { captured_from: None, entries: true, ..visit });
        }
        if let Some(child) = trie.capture_child(node) {
            let end = self.segment_end(position)?;
            if end > position {
                let captured_from = Some(position);
                open.push(Visit {
                    node: child,
                    position: end,
                    depth: depth + 1,
                    captured_from,
                    entries: false,
                });
            }
        }
        let literal = trie.literal_child(node, rest);
        self.meter.scan(literal.map_or(0, |(_, length)| length))?;
        if let Some((child, length)) = literal {
            let position = position + index(length);
            open.push(Visit { node: child, position, depth, captured_from: None, entries: false });
        }
        Ok(())
    }

    /// The end of the segment text at `position`.
    fn segment_end(&mut self, position: u32) -> Result<u32, Exhausted> {
        if !(self.segment.start..=self.segment.end).contains(&position) {
            let length = segment_len(&self.subject.bytes()[position as usize..]);
            self.meter.scan(length)?;
            self.segment = Span { start: position, end: position + index(length) };
        }
        Ok(self.segment.end)
    }

    fn entries(&mut self, visit: &Visit) -> Result<(), Exhausted> {
        self.way.truncate(visit.depth as usize);
        let trie = &self.indexed.trie;
        let node = trie.node(visit.node);
        self.attempt(trie.entries(node), visit.position)?;
        if let Some(gate) = trie.gate(node) {
            let found = gate.open(&self.subject.bytes()[visit.position as usize..], self.meter)?;
            self.attempt(&found, visit.position)?;
        }
        Ok(())
    }

    /// Tries templates, which are in order, until one matches or a better one is known.
    fn attempt(&mut self, ranks: &[u32], position: u32) -> Result<(), Exhausted> {
        for &rank in ranks {
            if rank >= self.best_rank() {
                break;
            }
            let template: &Compiled = self.indexed.template(rank);
            self.meter.spend(1)?;
            let head = (position as usize, &self.way[..]);
            if template.finish(self.subject, head, &mut self.spans, self.meter)? {
                self.best = Some(Best { rank, spans: std::mem::take(&mut self.spans) });
                break;
            }
        }
        Ok(())
    }
}
