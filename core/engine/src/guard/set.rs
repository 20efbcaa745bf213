//! A set of globs, indexed by their prefixes and, where many share a prefix, by their suffixes.
//!
//! Law: the result depends on the globs only, not on their order. A lookup costs two binary searches, and a comparison
//! with each glob that is left. For common globs (`a://b/**`, `a://b/*.c`, `**/.c`) those are the ones that match.

use super::glob::{Glob, GlobReach, Tail};
use super::subject::{GuardSubject, Subjects};
use std::ops::ControlFlow;

/// A set of globs, each identified by its index in the input.
#[derive(Clone, Debug, Default)]
pub(super) struct GlobSet {
    globs: Box<[Glob]>,
    prefixes: GlobTable,
    /// By prefix.
    buckets: Box<[GlobBucket]>,
    /// The same globs with optional encodings decoded, if any of them has some. For globs that narrow.
    decoded: Option<Box<GlobSet>>,
}

/// The globs of one prefix.
#[derive(Clone, Debug, Default)]
struct GlobBucket {
    /// Globs that are compared one by one.
    each: Vec<u32>,
    /// Globs that end with a literal, indexed by it.
    suffixes: GlobTable,
    by_suffix: Box<[Vec<u32>]>,
}

/// Up to this number, globs of one prefix are compared one by one.
const FEW: usize = 8;

impl GlobSet {
    pub(super) fn new(globs: Vec<Glob>) -> Self {
        let (prefixes, members) = GlobTable::new(globs.iter().map(|glob| glob.prefix.to_vec()));
        let buckets = members.into_iter().map(|members| GlobBucket::new(&globs, members)).collect();
        Self { globs: globs.into(), prefixes, buckets, decoded: None }
    }

    /// A set of globs that narrow: each also matches the other encodings of a URI that it matches.
    pub(super) fn narrowing(globs: Vec<Glob>) -> Self {
        let decoded: Vec<Option<Glob>> = globs.iter().map(Glob::decoded).collect();
        let is_changed = decoded.iter().any(Option::is_some);
        let decoded =
            decoded.into_iter().zip(&globs).map(|(decoded, own)| decoded.unwrap_or_else(|| own.clone()));
        let decoded = is_changed.then(|| Box::new(Self::new(decoded.collect())));
        Self { decoded, ..Self::new(globs) }
    }

    /// Whether a glob depends on the query of a URI.
    pub(super) fn reads_queries(&self) -> bool {
        self.globs.iter().any(|glob| glob.reach != GlobReach::Path)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.globs.is_empty()
    }

    pub(super) fn globs(&self) -> &[Glob] {
        &self.globs
    }

    /// Whether a glob matches the part of a URI that it covers. For allowing globs, so that a query cannot widen them.
    pub(super) fn allows(&self, subject: &GuardSubject<'_>) -> bool {
        if subject.is_bare() {
            return self.each(subject.whole(), &mut |_| ControlFlow::Break(())).is_break();
        }
        [GlobReach::Path, GlobReach::Query, GlobReach::Fragment].into_iter().any(|reach| {
            self.each(subject.part(reach), &mut |number| match self.globs[number].reach == reach {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            })
            .is_break()
        })
    }

    /// Calls `found` with the number of each glob that matches the whole URI or the part it covers, until `found`
    /// breaks. For restricting globs, so that neither a query nor another encoding can evade them. A number may be
    /// passed twice.
    pub(super) fn narrows(
        &self,
        subjects: &Subjects<'_>,
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.matches(&subjects.given, found)?;
        if self.decoded.is_none() && subjects.decoded.is_none() {
            return ControlFlow::Continue(());
        }
        let globs = self.decoded.as_deref().unwrap_or(self);
        globs.matches(subjects.decoded.as_ref().unwrap_or(&subjects.given), found)
    }

    fn matches(
        &self,
        subject: &GuardSubject<'_>,
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.each(subject.whole(), found)?;
        if subject.is_bare() {
            return ControlFlow::Continue(());
        }
        for reach in [GlobReach::Path, GlobReach::Query] {
            self.each(subject.part(reach), &mut |number| match self.globs[number].reach <= reach {
                true => found(number),
                false => ControlFlow::Continue(()),
            })?;
        }
        ControlFlow::Continue(())
    }

    /// Calls `found` with the number of each glob that matches exactly this text, until `found` breaks.
    pub(super) fn each(
        &self,
        subject: &str,
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let subject = subject.as_bytes();
        self.prefixes.each(subject, |at| self.buckets[at].each(&self.globs, subject, found))
    }
}

impl GlobBucket {
    fn new(globs: &[Glob], members: Vec<u32>) -> Self {
        let suffix = |number: &u32| match &globs[*number as usize].tail {
            Tail::Program { suffix, .. } if !suffix.is_empty() => Some(suffix),
            _ => None,
        };
        let (ended, each): (Vec<u32>, Vec<u32>) = members.iter().partition(|number| suffix(number).is_some());
        if ended.len() <= FEW {
            return Self { each: members, ..Self::default() };
        }
        let reversed = |number: &u32| -> Vec<u8> {
            suffix(number).map(|suffix| suffix.iter().rev().copied().collect()).unwrap_or_default()
        };
        let (suffixes, by_suffix) = GlobTable::new(ended.iter().map(reversed));
        let own = |places: Vec<u32>| places.iter().map(|place| ended[*place as usize]).collect();
        Self { each, suffixes, by_suffix: by_suffix.into_iter().map(own).collect() }
    }

    fn each(
        &self,
        globs: &[Glob],
        subject: &[u8],
        found: &mut dyn FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut try_each = |numbers: &[u32]| {
            for &number in numbers {
                let glob = &globs[number as usize];
                if glob.tail.matches(&subject[glob.prefix.len()..]) {
                    found(number as usize)?;
                }
            }
            ControlFlow::Continue(())
        };
        try_each(&self.each)?;
        if self.by_suffix.is_empty() {
            return ControlFlow::Continue(());
        }
        let longest = subject.len().min(self.suffixes.longest);
        let reversed: smallvec::SmallVec<[u8; 64]> = subject.iter().rev().take(longest).copied().collect();
        self.suffixes.each(&reversed, |at| try_each(&self.by_suffix[at]))
    }
}

/// Unique texts in order, each with the longest other text that is a prefix of it.
#[derive(Clone, Debug, Default)]
struct GlobTable {
    keys: Box<[Box<[u8]>]>,
    /// The index of that prefix, or `NONE`.
    parents: Box<[u32]>,
    longest: usize,
}

const NONE: u32 = u32::MAX;

impl GlobTable {
    /// Builds the table; for each of its keys also returns the indices in `texts` where it occurs.
    fn new(texts: impl Iterator<Item = Vec<u8>>) -> (Self, Vec<Vec<u32>>) {
        let mut sorted: Vec<(Vec<u8>, u32)> = texts.zip(0..).collect();
        sorted.sort();
        let (mut keys, mut members): (Vec<Box<[u8]>>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
        for (text, place) in sorted {
            match members.last_mut() {
                Some(last) if keys.last().is_some_and(|key| **key == *text) => last.push(place),
                _ => {
                    keys.push(text.into());
                    members.push(vec![place]);
                }
            }
        }
        let mut open: Vec<u32> = Vec::new();
        let mut parents = Vec::with_capacity(keys.len());
        for (key, place) in keys.iter().zip(0..) {
            while open.last().is_some_and(|top| !key.starts_with(&keys[*top as usize])) {
                open.pop();
            }
            parents.push(open.last().copied().unwrap_or(NONE));
            open.push(place);
        }
        let longest = keys.iter().map(|key| key.len()).max().unwrap_or_default();
        (Self { keys: keys.into(), parents: parents.into(), longest }, members)
    }

    /// Calls `found` with the index of each key that is a prefix of `text`, longest first.
    fn each(&self, text: &[u8], mut found: impl FnMut(usize) -> ControlFlow<()>) -> ControlFlow<()> {
        let after = self.keys.partition_point(|key| **key <= *text);
        let mut place = u32::try_from(after).ok().and_then(|after| after.checked_sub(1)).unwrap_or(NONE);
        while let Some(key) = self.keys.get(place as usize) {
            if text.starts_with(key) {
                found(place as usize)?;
            }
            place = self.parents[place as usize];
        }
        ControlFlow::Continue(())
    }
}
