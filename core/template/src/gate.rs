//! A filter for nodes with many programs: only those whose literal occurs in the text are run.

use super::program::{Exhausted, Meter};
use super::trie::index;
use aho_corasick::AhoCorasick;
use smallvec::SmallVec;

/// More programs than this at one node get a gate.
const PROGRAMS: usize = 8;

/// The programs of one node, by the longest literal that every match of a program contains.
#[derive(Debug)]
pub(super) struct ValueGate {
    literals: AhoCorasick,
    /// The ranks of the templates, by index of the literal; best first.
    ranks: Box<[u32]>,
}

impl ValueGate {
    /// Moves the `entries` that have a literal into a gate; `None` if too few have one.
    pub(super) fn new<'t>(entries: &mut Vec<u32>, literal: impl Fn(u32) -> &'t [u8]) -> Option<Self> {
        let (gated, open): (Vec<u32>, Vec<u32>) =
            entries.iter().partition(|&&rank| !literal(rank).is_empty());
        if gated.len() <= PROGRAMS {
            return None;
        }
        let literals = AhoCorasick::new(gated.iter().map(|&rank| literal(rank))).ok()?;
        *entries = open;
        Some(Self { literals, ranks: gated.into() })
    }

    /// The templates whose literal occurs in `text`, best first.
    pub(super) fn open(&self, text: &[u8], meter: &mut Meter) -> Result<SmallVec<[u32; 16]>, Exhausted> {
        meter.spend(1 + text.len() / 2)?;
        let mut found: SmallVec<[u32; 16]> = SmallVec::new();
        let mut seen: SmallVec<[u64; 32]> = SmallVec::from_elem(0, self.ranks.len().div_ceil(64));
        for occurrence in self.literals.find_overlapping_iter(text) {
            meter.spend(1)?;
            let number = occurrence.pattern().as_usize();
            let word = &mut seen[number / 64];
            let mask = 1 << (number % 64);
            if *word & mask == 0 {
                *word |= mask;
                found.push(index(number));
            }
        }
        found.sort_unstable();
        found.iter_mut().for_each(|number| *number = self.ranks[*number as usize]);
        Ok(found)
    }
}
