//! An immutable index that finds templates by URI.

use super::UriTemplate;
use super::capture::{Captured, RefusedValue};
use super::compile::{Compiled, QueryPart};
use super::error::TemplateConflict;
use super::gate::ValueGate;
use super::lint::{self, TemplateLint};
use super::policy::Rejection;
use super::program::Meter;
use super::remainder::Remainder;
use super::search::{self, Search};
use super::subject::MatchSubject;
use super::trie::{Trie, TrieBuilder, index};
use super::value::MatchedParams;
use std::collections::HashMap;
use std::sync::Arc;

/// The result of looking up a URI.
///
/// Borrows from the URI, which must be in normal form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<'u> {
    /// A template matched.
    Match {
        /// Its position in the slice that the index was built from.
        index: usize,
        /// The values of its variables.
        params: MatchedParams<'u>,
    },
    /// No template matched.
    None {
        /// Whether the step budget was used up before the search ended, which is worth a log message.
        exhausted: bool,
    },
    /// The winning template refuses a value. Final: no other template is tried. Clients cannot tell this from no match.
    Rejected {
        /// The position of the template in the slice that the index was built from.
        index: usize,
        /// The variable whose value was refused.
        variable: Arc<str>,
        /// The reason.
        why: Rejection,
    },
}

impl Lookup<'_> {
    /// Copies everything that it borrows.
    pub fn into_owned(self) -> Lookup<'static> {
        match self {
            Self::Match { index, params } => Lookup::Match { index, params: params.into_owned() },
            Self::None { exhausted } => Lookup::None { exhausted },
            Self::Rejected { index, variable, why } => Lookup::Rejected { index, variable, why },
        }
    }
}

/// An index over templates. Immutable and cheap to clone: to add a template, build a new one.
///
/// The most specific template wins, whatever the order of registration: an exact URI (a template without variables)
/// comes first; then paths are compared from left to right, where literal text comes before `{/x}` and similar
/// operators, `{x:3}`, `{x}`, a list, and `{+x}`; then more required query names come first.
#[derive(Clone, Debug)]
pub struct TemplateIndex(Arc<Indexed>);

/// The templates of an index, identified by rank: the lowest rank wins.
#[derive(Debug)]
pub(super) struct Indexed {
    templates: Box<[UriTemplate]>,
    /// For each rank, the position in the slice that the index was built from.
    positions: Box<[u32]>,
    /// For each position, the rank.
    ranks: Box<[u32]>,
    /// The positions of templates without variables, in the order of their normal forms.
    exact: Box<[(Box<str>, u32)]>,
    pub trie: Trie,
    /// The longest prefix modifier of any template.
    pub longest_prefix: u16,
}

impl Indexed {
    pub(super) fn template(&self, rank: u32) -> &Compiled {
        &self.own_template(rank).0
    }

    pub(super) fn own_template(&self, rank: u32) -> &UriTemplate {
        &self.templates[rank as usize]
    }

    /// The position of the template without variables that equals `normal`.
    fn exact(&self, normal: &str) -> Option<u32> {
        let at = self.exact.binary_search_by(|(own, _)| (**own).cmp(normal)).ok()?;
        self.exact.get(at).map(|(_, position)| *position)
    }

    /// The rank of the template at `position`.
    pub(super) fn rank(&self, position: usize) -> u32 {
        self.ranks.get(position).copied().unwrap_or(u32::MAX)
    }
}

impl TemplateIndex {
    /// Maximum number of steps of one lookup, about 20 ms. Whether it suffices depends only on the templates and the
    /// URI. A single template never comes near it.
    pub const STEP_BUDGET: u64 = 8_000_000;

    /// Builds an index over `templates`, which are identified by their positions in the slice.
    ///
    /// # Errors
    /// [`TemplateConflict`] for the first pair, in order of registration, that differs in nothing but the names of path
    /// variables or of optional query variables.
    pub fn build(templates: &[UriTemplate]) -> Result<Self, TemplateConflict> {
        check_conflicts(templates)?;
        let mut ranked: Vec<usize> = (0..templates.len()).collect();
        ranked.sort_by(|&one, &other| {
            let one = &templates[one].0;
            let other = &templates[other].0;
            one.order.compare(&one.text, &other.order, &other.text)
        });
        let mut exact = Vec::new();
        let mut builder = TrieBuilder::new();
        for (rank, &position) in ranked.iter().enumerate() {
            let template = &templates[position].0;
            if let Some(uri) = template.exact() {
                exact.push((uri.into(), index(position)));
                if !matches!(template.query, QueryPart::Pairs(_)) {
                    continue;
                }
            }
            builder.insert(&template.head, index(rank));
        }
        let needle = |rank: u32| {
            let template = &*templates[ranked[rank as usize]].0;
            if matches!(template.tail, Remainder::Program(_)) { &template.needle[..] } else { &[] }
        };
        exact.sort_unstable();
        let trie = builder.build(|entries| ValueGate::new(entries, needle));
        let mut ranks = vec![0; ranked.len()];
        ranked.iter().zip(0..).for_each(|(&position, rank)| ranks[position] = rank);
        Ok(Self(Arc::new(Indexed {
            templates: ranked.iter().map(|&position| templates[position].clone()).collect(),
            positions: ranked.iter().copied().map(index).collect(),
            ranks: ranks.into(),
            exact: exact.into(),
            trie,
            longest_prefix: templates
                .iter()
                .map(|template| template.0.longest_prefix())
                .max()
                .unwrap_or_default(),
        })))
    }

    /// The number of templates.
    pub fn len(&self) -> usize {
        self.0.templates.len()
    }

    /// Whether there is no template.
    pub fn is_empty(&self) -> bool {
        self.0.templates.is_empty()
    }

    /// Finds the template for a URI in normal form ([`normalize`](crate::uri::normalize)).
    ///
    /// Takes time linear in `normal`, whatever the templates, and at most [`Self::STEP_BUDGET`] steps.
    pub fn lookup<'u>(&self, normal: &'u str) -> Lookup<'u> {
        self.find(normal, &mut Meter::new(Self::STEP_BUDGET))
    }

    /// Like [`lookup`](Self::lookup), with another budget; also returns the number of steps.
    pub fn lookup_within<'u>(&self, normal: &'u str, budget: u64) -> (Lookup<'u>, u64) {
        let mut meter = Meter::new(budget);
        let found = self.find(normal, &mut meter);
        (found, budget - meter.left())
    }

    fn find<'u>(&self, normal: &'u str, meter: &mut Meter) -> Lookup<'u> {
        let indexed = &*self.0;
        if let Some(position) = indexed.exact(normal) {
            let index = position as usize;
            let template = indexed.template(indexed.rank(index));
            return Lookup::Match { index, params: MatchedParams::new(template.variables.clone()) };
        }
        if u32::try_from(normal.len()).is_err() {
            return Lookup::None { exhausted: true };
        }
        let subject = MatchSubject::new(normal);
        let mut search = Search::new(indexed, &subject, meter);
        if search.run().is_err() {
            return Lookup::None { exhausted: true };
        }
        if search.rank == search::NONE {
            return Lookup::None { exhausted: false };
        }
        let template = indexed.template(search.rank);
        let index = indexed.positions[search.rank as usize] as usize;
        match (Captured { template, uri: normal, spans: &search.spans }).params() {
            Ok(params) => Lookup::Match { index, params },
            Err(RefusedValue { variable, why }) => Lookup::Rejected { index, variable, why },
        }
    }

    /// The lints of all templates, including those shadowed by others.
    pub fn lints(&self) -> Vec<TemplateLint> {
        (0..self.len()).flat_map(|index| self.lints_of(index)).collect()
    }

    /// The lints of the template at `index` of the slice that the index was built from; none if there is no such
    /// template. It counts as shadowed if more specific templates match some dozen URIs that it expands to, which is a
    /// good guess and no proof.
    pub fn lints_of(&self, index: usize) -> Vec<TemplateLint> {
        if index < self.len() { lint::of_indexed(&self.0, self, self.0.rank(index)) } else { Vec::new() }
    }
}

fn check_conflicts(templates: &[UriTemplate]) -> Result<(), TemplateConflict> {
    let mut shapes = HashMap::with_capacity(templates.len());
    for (index, template) in templates.iter().enumerate() {
        if let Some(with_index) = shapes.insert(&template.0.order.shape, index) {
            return Err(TemplateConflict {
                template: template.as_str().to_owned(),
                index,
                with: templates[with_index].as_str().to_owned(),
                with_index,
            });
        }
    }
    Ok(())
}
