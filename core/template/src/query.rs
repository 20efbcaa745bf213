//! Queries matched as a set of pairs: in any order, ignoring unknown names.

use super::literal::normal_name;
use super::options::{ExtraQuery, Kind};
use super::parse::{Literal, Modifier, Operator, SyntaxFault, TemplatePart, VarSpec};
use super::program::{Exhausted, Meter, ProgramSpan};
use super::slot::{SlotSection, SlotSite, Slots};
use super::subject::MatchSubject;
use smallvec::SmallVec;
use std::ops::Range;

/// The pairs of a template's query.
#[derive(Clone, Debug)]
pub(super) struct Pairs {
    /// Sorted by name, without duplicates.
    names: Box<[QueryName]>,
    /// The number of required names.
    pub required: usize,
    /// The slot of the map that gets every pair with an unknown name.
    map: Option<u16>,
    extra: ExtraQuery,
}

#[derive(Clone, Debug)]
struct QueryName {
    name: Box<str>,
    role: Role,
}

#[derive(Clone, Debug)]
enum Role {
    /// The pair is required with this value; `None` is a name without `=`.
    Fixed(Option<Box<str>>),
    Required(u16),
    Optional(u16),
    /// May occur several times.
    List(u16),
}

/// A pair of a URI's query; `value` is `None` without `=`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'u> {
    pub name: &'u str,
    pub value: Option<&'u str>,
    offset: usize,
}

impl Pairs {
    /// Interprets the parts of a query as pairs; `None` if that is not possible.
    pub(super) fn new(
        parts: &[TemplatePart],
        extra: ExtraQuery,
        slots: &mut Slots<'_>,
    ) -> Result<Option<Self>, SyntaxFault> {
        let mark = slots.mark();
        let mut reader = QueryReader { slots, names: Vec::new(), map: None };
        for piece in pieces(parts) {
            if !reader.piece(&piece)? {
                slots.rewind(mark);
                return Ok(None);
            }
        }
        let QueryReader { mut names, map, .. } = reader;
        names.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
        if let Some([_, (twice, offset)]) = names.windows(2).find(|pair| pair[0].0.name == pair[1].0.name) {
            return Err(SyntaxFault::new(*offset, format!("the query name {:?} stands twice", twice.name)));
        }
        let names: Box<[QueryName]> = names.into_iter().map(|(name, _)| name).collect();
        let required = names.iter().filter(|name| name.is_required()).count();
        Ok(Some(Self { names, required, map, extra }))
    }

    /// Whether a pair may be missing.
    pub(super) fn has_optional(&self) -> bool {
        self.map.is_some() || self.required < self.names.len()
    }

    /// The required pairs: the name, and the value if it is fixed.
    pub(super) fn requirements(&self) -> impl Iterator<Item = (&str, Option<Option<&str>>)> {
        self.names.iter().filter(|name| name.is_required()).map(|name| match &name.role {
            Role::Fixed(value) => (&*name.name, Some(value.as_deref())),
            Role::Required(_) | Role::Optional(_) | Role::List(_) => (&*name.name, None),
        })
    }

    /// Matches the query of `subject`; a missing one counts as empty. The slot of a list or map of pairs is set to the
    /// whole query, for [`list`](Self::list) and [`map`](Self::map).
    pub(super) fn matches(
        &self,
        subject: &MatchSubject<'_>,
        slots: &mut [ProgramSpan],
        meter: &mut Meter,
    ) -> Result<bool, Exhausted> {
        let query = subject.query.clone().unwrap_or(0..0);
        let mut seen: SmallVec<[u64; 2]> = SmallVec::from_elem(0, self.names.len().div_ceil(64));
        let mut missing = self.required;
        meter.scan(query.len())?;
        for pair in pairs(&subject.uri[query.clone()], query.start) {
            meter.spend(2)?;
            let Some(at) = self.find(pair.name) else {
                match self.map {
                    Some(map) => slots[usize::from(map)] = whole(&query),
                    None if self.extra == ExtraQuery::Reject => return Ok(false),
                    None => {}
                }
                continue;
            };
            let name = &self.names[at];
            let first = seen[at / 64] & 1 << (at % 64) == 0;
            seen[at / 64] |= 1 << (at % 64);
            match &name.role {
                Role::List(slot) => slots[usize::from(*slot)] = whole(&query),
                _ if !first => return Ok(false),
                Role::Fixed(value) if value.as_deref() != pair.value => return Ok(false),
                Role::Fixed(_) => {}
                Role::Required(slot) | Role::Optional(slot) => slots[usize::from(*slot)] = pair.value_span(),
            }
            missing -= usize::from(first && name.is_required());
        }
        Ok(missing == 0)
    }

    /// The values of the list in `slot`, undecoded.
    pub(super) fn list<'u>(&self, slot: u16, query: &'u str) -> impl Iterator<Item = &'u str> {
        let name = self.names.iter().find(|name| matches!(name.role, Role::List(list) if list == slot));
        let items = name.map(|name| {
            let own = move |pair: &Pair<'u>| *pair.name == *name.name;
            pairs(query, 0).filter(own).map(|pair| pair.value.unwrap_or_default())
        });
        items.into_iter().flatten()
    }

    /// The pairs with unknown names, undecoded.
    pub(super) fn map<'u>(&self, query: &'u str) -> impl Iterator<Item = (&'u str, &'u str)> {
        let extra = pairs(query, 0).filter(|pair| self.find(pair.name).is_none());
        extra.map(|pair| (pair.name, pair.value.unwrap_or_default()))
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.names.binary_search_by(|other| (*other.name).cmp(name)).ok()
    }
}

impl QueryName {
    fn is_required(&self) -> bool {
        matches!(self.role, Role::Fixed(_) | Role::Required(_))
    }
}

impl Pair<'_> {
    fn value_span(&self) -> ProgramSpan {
        let end = self.offset + self.name.len();
        self.value
            .map_or(ProgramSpan::new(end, end), |value| ProgramSpan::new(end + 1, end + 1 + value.len()))
    }
}

fn whole(query: &Range<usize>) -> ProgramSpan {
    ProgramSpan::new(query.start, query.end)
}

/// The pairs of `query`, which starts at `start` in its URI. Empty pieces are skipped.
fn pairs(query: &str, start: usize) -> impl Iterator<Item = Pair<'_>> {
    let mut offset = start;
    query.split('&').filter_map(move |piece| {
        let at = offset;
        offset += piece.len() + 1;
        let (name, value) = piece.split_once('=').map_or((piece, None), |(name, value)| (name, Some(value)));
        (!piece.is_empty()).then_some(Pair { name, value, offset: at })
    })
}

/// One piece of a template's query.
enum Piece<'t> {
    /// The text between two `&`.
    Text(Vec<Fragment<'t>>),
    /// A variable of `{?x}` or `{&x}`.
    Optional(&'t VarSpec),
}

enum Fragment<'t> {
    Literal(&'t str, usize),
    Expression(Operator, &'t [VarSpec]),
}

fn pieces(parts: &[TemplatePart]) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut open = Vec::new();
    for part in parts {
        match part {
            TemplatePart::Literal(Literal { text, offset }) => {
                for (at, piece) in text.split('&').enumerate() {
                    if at > 0 {
                        pieces.push(Piece::Text(std::mem::take(&mut open)));
                    }
                    if !piece.is_empty() {
                        open.push(Fragment::Literal(piece, *offset));
                    }
                }
            }
            TemplatePart::Expression(expression)
                if matches!(expression.operator, Operator::Query | Operator::QueryMore) =>
            {
                pieces.push(Piece::Text(std::mem::take(&mut open)));
                pieces.extend(expression.variables.iter().map(Piece::Optional));
            }
            TemplatePart::Expression(expression) => {
                open.push(Fragment::Expression(expression.operator, &expression.variables));
            }
        }
    }
    pieces.push(Piece::Text(open));
    pieces
}

struct QueryReader<'s, 'o> {
    slots: &'s mut Slots<'o>,
    names: Vec<(QueryName, usize)>,
    map: Option<u16>,
}

impl QueryReader<'_, '_> {
    /// Interprets one piece; `false` if it is not a pair.
    fn piece(&mut self, piece: &Piece<'_>) -> Result<bool, SyntaxFault> {
        match piece {
            Piece::Optional(spec) => self.optional(spec)?,
            Piece::Text(fragments) => match fragments[..] {
                [] => {}
                [Fragment::Literal(text, offset)] => {
                    let (name, value) =
                        text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
                    self.name(name.into(), Role::Fixed(value.map(Into::into)), offset);
                }
                [Fragment::Literal(text, offset), Fragment::Expression(operator, [spec])] => {
                    let name = text.strip_suffix('=').filter(|name| !name.is_empty() && !name.contains('='));
                    let is_plain = !operator.is_optional() && spec.modifier != Modifier::Explode;
                    let Some(name) = name.filter(|_| is_plain) else { return Ok(false) };
                    let slot = self.slots.add(spec, site(operator, true))?;
                    self.name(name.into(), Role::Required(slot), offset);
                }
                _ => return Ok(false),
            },
        }
        Ok(true)
    }

    fn optional(&mut self, spec: &VarSpec) -> Result<(), SyntaxFault> {
        let slot = self.slots.add(spec, site(Operator::Query, false))?;
        let is_exploded = spec.modifier == Modifier::Explode;
        if is_exploded && self.slots.slots[usize::from(slot)].kind == Kind::Map {
            if self.map.replace(slot).is_some() {
                return Err(SyntaxFault::new(spec.offset, "a second exploded map in one query"));
            }
        } else {
            let role = if is_exploded { Role::List(slot) } else { Role::Optional(slot) };
            self.name(normal_name(&spec.name).into(), role, spec.offset);
        }
        Ok(())
    }

    fn name(&mut self, name: Box<str>, role: Role, offset: usize) {
        self.names.push((QueryName { name, role }, offset));
    }
}

fn site(operator: Operator, is_required: bool) -> SlotSite {
    SlotSite { section: SlotSection::Query, operator, is_required, in_pairs: true }
}
