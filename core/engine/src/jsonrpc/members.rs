//! The members of one JSON object, as spans of its text; a few of them inline.

use std::borrow::Cow;

use smallvec::SmallVec;

use super::json::{Json, decode_string};
use super::scan::{JsonSpan, MemberName, Scan, Scanner};

/// Number of members that need no allocation.
const INLINE: usize = 6;

/// Up to this number of members, duplicates are searched pair by pair.
const PAIRWISE: usize = 16;

/// The members of a JSON object in source order.
///
/// Names are compared as decoded text. A name that is not Unicode text (with an unpaired surrogate escape) equals no
/// name, and [`JsonMembers::iter`] skips it.
#[derive(Clone, Debug)]
pub struct JsonMembers<'m> {
    text: &'m str,
    list: SmallVec<[JsonMember; INLINE]>,
    /// Whether a name contains an escape.
    escaped: bool,
}

#[derive(Clone, Copy, Debug)]
struct JsonMember {
    name: JsonSpan,
    value: JsonSpan,
}

impl<'m> JsonMembers<'m> {
    pub(super) fn new(text: &'m str) -> Self {
        Self { text, list: SmallVec::new(), escaped: false }
    }

    /// Adds the members of an object at nesting level `depth`, like [`JsonMembers::push`].
    pub(super) fn read(&mut self, scanner: &mut Scanner<'m>, depth: usize, max: usize) -> Scan<JsonSpan> {
        let start = scanner.mark();
        let mut more = scanner.open(b'{', b'}', depth)?;
        while more {
            let name = scanner.name()?;
            let value = scanner.value(depth)?;
            self.push(name, value, max);
            more = scanner.more(b'}')?;
        }
        Ok(scanner.since(start))
    }

    /// Adds a member. Stores at most one member above `max`, which is enough to detect that there are too many.
    #[inline]
    pub(super) fn push(&mut self, name: MemberName, value: JsonSpan, max: usize) {
        if self.list.len() <= max {
            self.escaped |= name.escaped;
            self.list.push(JsonMember { name: name.span, value });
        }
    }

    /// Whether there are at most `max` members, with different names.
    pub(super) fn are_distinct(&self, max: usize) -> bool {
        self.list.len() <= max && !self.has_duplicates()
    }

    /// The value of the member `name`. If the name is repeated, the last one, as in JavaScript and Python; decoded
    /// messages have no repeated names in `params` and `params._meta`.
    pub fn get(&self, name: &str) -> Option<Json<'m>> {
        let is_named = |member: &&JsonMember| {
            member.name.len() as usize == name.len() && member.name.bytes_of(self.text) == name.as_bytes()
                || (self.escaped && self.name(**member).as_deref() == Some(name))
        };
        self.list.iter().rfind(is_named).map(|member| Json::trusted(member.value.slice(self.text)))
    }

    /// Looks up several members in one pass, each like [`JsonMembers::get`].
    pub fn pick<const N: usize>(&self, names: [&str; N]) -> [Option<Json<'m>>; N] {
        if self.escaped {
            return names.map(|name| self.get(name));
        }
        let mut picked = [None; N];
        for member in &self.list {
            let own = member.name.bytes_of(self.text);
            if let Some(at) = names.iter().position(|name| name.as_bytes() == own) {
                picked[at] = Some(Json::trusted(member.value.slice(self.text)));
            }
        }
        picked
    }

    /// Name and value of each member, in source order.
    pub fn iter(&self) -> impl Iterator<Item = (Cow<'m, str>, Json<'m>)> + '_ {
        self.list
            .iter()
            .filter_map(|member| Some((self.name(*member)?, Json::trusted(member.value.slice(self.text)))))
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// True for `{}`.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether two members have the same name.
    fn has_duplicates(&self) -> bool {
        let list = self.list.as_slice();
        if self.escaped || list.len() > PAIRWISE {
            let mut names: Vec<_> = self.iter().map(|(name, _)| name).collect();
            names.sort_unstable();
            return names.windows(2).any(|pair| pair[0] == pair[1]);
        }
        let same = |one: JsonSpan, other: JsonSpan| {
            one.len() == other.len() && one.bytes_of(self.text) == other.bytes_of(self.text)
        };
        let mut rest = list;
        while let [first, others @ ..] = rest {
            if others.iter().any(|other| same(first.name, other.name)) {
                return true;
            }
            rest = others;
        }
        false
    }

    /// The decoded name of a member of this object.
    fn name(&self, member: JsonMember) -> Option<Cow<'m, str>> {
        decode_string(member.name.with_quotes().slice(self.text))
    }
}
