//! Decides whether some expansion of a template is visible.
//!
//! Law: walks the template and all globs in parallel, keeping every position that the globs can have. A URI that ends
//! where an allowing glob ends and no denying one does is visible. Exact, except for the approximation of variables in
//! an [`Outline`], and that for denying globs each `?` starts a query. A search that exceeds its limit answers `false`:
//! what cannot be shown to be visible is hidden.

use super::glob::{Glob, GlobReach, GlobToken};
use mcp_resources_template::{On, Outline};
use std::collections::BTreeSet;

/// The globs of one search.
#[derive(Default)]
pub(super) struct ReachQuestion<'g> {
    /// The globs, each with the place of its first position, in the order of places.
    globs: Vec<(u32, &'g Glob, Side)>,
    next: u32,
    /// The number of allow lists: a URI must match a glob of each.
    lists: usize,
}

/// The number of steps that searches may still take.
#[derive(Debug)]
pub(crate) struct Effort(u64);

impl Default for Effort {
    /// For one search: about 20 ms.
    fn default() -> Self {
        Self(Self::QUESTION)
    }
}

impl Effort {
    const QUESTION: u64 = 1_000_000;

    /// For all values of one completion.
    pub(crate) fn of_completion() -> Self {
        Self(4 * Self::QUESTION)
    }

    /// Takes `steps`; `false` if fewer are left.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        match self.0.checked_sub(steps as u64) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => {
                self.0 = 0;
                false
            }
        }
    }
}

/// The effect of a glob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It allows, as part of this list.
    Allow(usize),
    Deny,
}

/// The active places, sorted. A place is a position in one of the globs.
type Places = Box<[u32]>;

impl<'g> ReachQuestion<'g> {
    /// Adds a list of globs of which a URI must match one.
    pub(super) fn allow(&mut self, globs: impl IntoIterator<Item = &'g Glob>) {
        let list = self.lists;
        self.lists += 1;
        globs.into_iter().for_each(|glob| self.add(glob, Side::Allow(list)));
    }

    /// Adds globs that a URI must not match.
    pub(super) fn deny(&mut self, globs: impl IntoIterator<Item = &'g Glob>) {
        globs.into_iter().for_each(|glob| self.add(glob, Side::Deny));
    }

    /// Whether some URI of the outline is allowed and not denied; `false` if the search exceeds `effort`.
    pub(super) fn ask(self, outline: &Outline, effort: &mut Effort) -> bool {
        let mut begin = Vec::with_capacity(self.globs.len());
        for (first, glob, _) in &self.globs {
            close(glob, *first, 0, &mut begin);
        }
        let begin = settle(begin);
        let mut seen: BTreeSet<(u32, Places)> = BTreeSet::new();
        let mut open = vec![(0, begin)];
        while let Some((node, places)) = open.pop() {
            if !effort.spend(1 + places.len()) {
                return false;
            }
            if !seen.insert((node, places.clone())) || !self.may_be_allowed(&places) {
                continue;
            }
            if outline.is_end(node) && self.is_visible(&places) {
                return true;
            }
            for edge in outline.edges(node) {
                match edge.on {
                    On::Nothing => open.push((edge.to, places.clone())),
                    On::Text(text) => {
                        if let Some(places) = self.walk(&places, outline.text(text), effort) {
                            open.push((edge.to, places));
                        }
                    }
                    On::Any(set) => {
                        for byte in self.telling(&places).into_iter().filter(|byte| set.has(*byte)) {
                            effort.spend(places.len());
                            open.push((edge.to, self.step(&places, byte)));
                        }
                    }
                }
            }
        }
        false
    }

    fn add(&mut self, glob: &'g Glob, side: Side) {
        self.globs.push((self.next, glob, side));
        // Room for two more places: the end, and the state after a match before a query or fragment.
        let length = end(glob) + 2;
        self.next = self.next.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
    }

    /// The glob of a place, and the position in it.
    fn glob_at(&self, place: u32) -> Option<(u32, &'g Glob, Side, usize)> {
        let at = self.globs.partition_point(|(first, ..)| *first <= place).checked_sub(1)?;
        let (first, glob, side) = self.globs[at];
        Some((first, glob, side, (place - first) as usize))
    }

    /// The places after `text`; `None` if no allowing glob is active there, or the effort is used up.
    fn walk(&self, places: &Places, text: &str, effort: &mut Effort) -> Option<Places> {
        let mut places = places.clone();
        for byte in text.bytes() {
            if !effort.spend(1 + places.len()) || !self.may_be_allowed(&places) {
                return None;
            }
            places = self.step(&places, byte);
        }
        Some(places)
    }

    fn step(&self, places: &[u32], byte: u8) -> Places {
        let mut next = Vec::with_capacity(places.len());
        for &place in places {
            let Some((first, glob, side, at)) = self.glob_at(place) else { continue };
            let is_cut = is_cut(glob.reach, byte);
            if at > end(glob) || at == end(glob) && is_cut {
                next.push(if at > end(glob) { place } else { place + 1 });
            }
            let Some(token) = token(glob, at) else { continue };
            if is_cut && side != Side::Deny {
                continue;
            }
            let (stays, moves) = match token {
                GlobToken::Byte(own) => (false, own == byte),
                GlobToken::One => (false, byte != b'/'),
                GlobToken::Run => (byte != b'/', false),
                GlobToken::Deep => (true, false),
                GlobToken::Directories => (false, false),
                GlobToken::Within => (true, byte == b'/'),
            };
            if stays {
                close(glob, first, at, &mut next);
            }
            if moves {
                close(glob, first, at + 1, &mut next);
            }
        }
        settle(next)
    }

    /// One byte for each case that these places distinguish: the bytes they name, those that end a segment or a path,
    /// and one other.
    fn telling(&self, places: &[u32]) -> Vec<u8> {
        let mut bytes: Vec<u8> = vec![b'/', b'?', b'#'];
        for &place in places {
            if let Some((_, glob, _, at)) = self.glob_at(place)
                && let Some(GlobToken::Byte(byte)) = token(glob, at)
                && !bytes.contains(&byte)
            {
                bytes.push(byte);
            }
        }
        // Each byte set of an outline needs a byte here. Nearly all sets contain letters, so a letter is tried first.
        let other = (b'a'..=b'z').chain(b'A'..=b'Z').chain(b'0'..=b'9').find(|byte| !bytes.contains(byte));
        bytes.extend(other);
        bytes
    }

    /// Whether every list has a glob that may still match.
    fn may_be_allowed(&self, places: &[u32]) -> bool {
        (0..self.lists).all(|list| self.any(places, |side, _| side == Side::Allow(list)))
    }

    fn is_visible(&self, places: &[u32]) -> bool {
        let ends = |wanted: Side| self.any(places, |side, is_end| is_end && side == wanted);
        (0..self.lists).all(|list| ends(Side::Allow(list))) && !ends(Side::Deny)
    }

    fn any(&self, places: &[u32], is: impl Fn(Side, bool) -> bool) -> bool {
        places.iter().any(|&place| {
            self.glob_at(place).is_some_and(|(_, glob, side, at)| is(side, token(glob, at).is_none()))
        })
    }
}

/// Appends the place of a position, and of the following ones that are reached without a character.
fn close(glob: &Glob, first: u32, at: usize, places: &mut Vec<u32>) {
    let place = |at: usize| first.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
    let mut at = at;
    loop {
        places.push(place(at));
        match token(glob, at) {
            Some(GlobToken::Run | GlobToken::Deep) => at += 1,
            Some(GlobToken::Directories) => {
                places.push(place(at + 1));
                at += 2;
            }
            _ => return,
        }
    }
}

fn settle(mut places: Vec<u32>) -> Places {
    places.sort_unstable();
    places.dedup();
    places.into()
}

/// The position of a complete match.
fn end(glob: &Glob) -> usize {
    glob.prefix.len() + glob.tokens.len()
}

/// Whether a glob with this reach ignores everything from this byte on.
fn is_cut(reach: GlobReach, byte: u8) -> bool {
    match byte {
        b'?' => reach == GlobReach::Path,
        b'#' => reach != GlobReach::Fragment,
        _ => false,
    }
}

fn token(glob: &Glob, at: usize) -> Option<GlobToken> {
    match glob.prefix.get(at) {
        Some(byte) => Some(GlobToken::Byte(*byte)),
        None => glob.tokens.get(at - glob.prefix.len()).copied(),
    }
}
