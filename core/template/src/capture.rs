//! Converts captured text to values: first the filters that decide whether the template matches at all, then decoding
//! and policies.

use super::compile::{Compiled, QueryPart};
use super::options::{Kind, ValuePolicy};
use super::parse::{Modifier, Operator};
use super::policy::{self, Rejection};
use super::program::ProgramSpan;
use super::slot::VarPosition;
use super::value::{MatchedParams, Value};
use crate::uri::decode_strict;
use std::borrow::Cow;
use std::sync::Arc;

/// A template with its captures in a URI.
pub(super) struct Captured<'c, 'u> {
    pub template: &'c Compiled,
    pub uri: &'u str,
    pub spans: &'c [ProgramSpan],
}

/// The winning template refuses a value.
#[derive(Debug)]
pub(super) struct RefusedValue {
    pub variable: Arc<str>,
    pub why: Rejection,
}

impl<'u> Captured<'_, 'u> {
    /// Whether the values have the structure that the template requires: no prefix is too long, repeated variables have
    /// equal values, and maps have pairs with distinct keys.
    ///
    /// Text that is not UTF-8 passes here and is refused when it is decoded.
    pub(super) fn pass_filters(&self) -> bool {
        self.defined().all(|(_, slot, raw)| {
            let fits = match (slot.kind, slot.modifier) {
                (Kind::Scalar, Modifier::Prefix(length)) => {
                    decode_strict(raw).is_none_or(|text| is_within(&text, length))
                }
                (Kind::Map, _) => self.is_map(slot, raw),
                _ => true,
            };
            fits && (!slot.repeats || self.agrees(slot.variable))
        })
    }

    /// The decoded values, unless one violates its policy. Slots are checked in template order.
    pub(super) fn params(&self) -> Result<MatchedParams<'u>, RefusedValue> {
        let mut params = MatchedParams::new(self.template.variables.clone());
        for (number, slot, raw) in self.defined() {
            let value = self.value(number, slot, raw).map_err(|why| {
                let variable = &self.template.variables[usize::from(slot.variable)];
                RefusedValue { variable: variable.name.clone(), why }
            })?;
            match if slot.repeats { params.at_mut(slot.variable) } else { None } {
                Some(earlier) => keep_longer(earlier, value),
                None => params.push(slot.variable, value),
            }
        }
        Ok(params)
    }

    /// The slots with a capture: number, slot and captured text.
    fn defined(&self) -> impl Iterator<Item = (u16, &VarPosition, &'u str)> {
        let slots = self.template.slots.iter().zip(self.spans).enumerate();
        slots.filter(|(_, (_, span))| span.is_set()).map(|(number, (slot, span))| {
            (number as u16, slot, self.uri.get(span.start as usize..span.end as usize).unwrap_or_default())
        })
    }

    /// Whether every occurrence of a variable equals the longest one, or its beginning up to the prefix length.
    fn agrees(&self, variable: u16) -> bool {
        let own = || self.defined().filter(|(_, slot, _)| slot.variable == variable);
        let Some(texts) = own()
            .map(|(_, slot, raw)| Some((slot.modifier, decode_strict(raw)?)))
            .collect::<Option<Vec<_>>>()
        else {
            return true;
        };
        let whole = texts.iter().find(|(modifier, _)| *modifier == Modifier::None);
        let Some((_, whole)) = whole.or_else(|| texts.iter().max_by_key(|(_, text)| text.len())) else {
            return true;
        };
        texts.iter().all(|(modifier, text)| match modifier {
            Modifier::Prefix(length) => **text == *prefix(whole, *length),
            _ => text == whole,
        })
    }

    fn is_map(&self, slot: &VarPosition, raw: &'u str) -> bool {
        let Some(pairs) = self.pairs(slot, raw) else { return false };
        let Some(mut keys) = pairs.iter().map(|(key, _)| decode_strict(key)).collect::<Option<Vec<_>>>()
        else {
            return true;
        };
        keys.sort_unstable();
        keys.windows(2).all(|neighbours| neighbours[0] != neighbours[1])
    }

    fn value(&self, number: u16, slot: &VarPosition, raw: &'u str) -> Result<Value<'u>, Rejection> {
        match slot.kind {
            Kind::Scalar => policy::decode(slot.policy, raw).map(Value::Scalar),
            Kind::List => self.list(number, slot, raw).map(Value::List),
            Kind::Map => {
                let pairs = self.pairs(slot, raw).unwrap_or_default();
                let decoded = pairs.into_iter().map(|(key, value)| {
                    Ok((decode_strict(key).ok_or(Rejection::Utf8)?, policy::decode(slot.policy, value)?))
                });
                decoded.collect::<Result<_, _>>().map(Value::Map)
            }
        }
    }

    fn list(&self, number: u16, slot: &VarPosition, raw: &'u str) -> Result<Vec<Cow<'u, str>>, Rejection> {
        let checked = |item| policy::decode(slot.policy, item);
        let items: Vec<_> = match &self.template.query {
            QueryPart::Pairs(pairs) if slot.is_pair_list() => {
                pairs.list(number, raw).map(checked).collect::<Result<_, _>>()?
            }
            _ if slot.is_parameter_list() => parameters(slot, raw).map(checked).collect::<Result<_, _>>()?,
            _ => raw.split(slot.separator()).map(checked).collect::<Result<_, _>>()?,
        };
        let [inner @ .., _] = &items[..] else { return Ok(items) };
        let are_segments = slot.operator == Operator::Path && slot.policy == ValuePolicy::Segment;
        if are_segments && inner.iter().any(|item| item.is_empty()) {
            Err(Rejection::EmptySegment)
        } else {
            Ok(items)
        }
    }

    /// The pairs of a map, undecoded; `None` if the text has no such pairs.
    fn pairs(&self, slot: &VarPosition, raw: &'u str) -> Option<Vec<(&'u str, &'u str)>> {
        if slot.modifier != Modifier::Explode {
            let mut items = raw.split(',');
            let mut pairs = Vec::new();
            while let Some(key) = items.next() {
                pairs.push((key, items.next()?));
            }
            return Some(pairs);
        }
        if let (QueryPart::Pairs(pairs), true) = (&self.template.query, slot.in_pairs) {
            return Some(pairs.map(raw).collect());
        }
        let pair = |item: &'u str| item.split_once('=').or(slot.operator.is_named().then_some((item, "")));
        raw.split(slot.separator()).map(pair).collect()
    }
}

/// The items of `;x=1;x=2`, without their name.
fn parameters<'u>(slot: &VarPosition, raw: &'u str) -> impl Iterator<Item = &'u str> + use<'u> {
    let items = raw.split(slot.separator()).skip(1);
    items.map(|item| item.split_once('=').map_or("", |(_, value)| value))
}

/// All occurrences of a variable agree, so the longest one is the whole value.
fn keep_longer<'u>(earlier: &mut Value<'u>, value: Value<'u>) {
    let length = |value: &Value<'_>| value.as_str().map_or(0, str::len);
    if length(&value) > length(earlier) {
        *earlier = value;
    }
}

fn is_within(text: &str, length: u16) -> bool {
    prefix(text, length).len() == text.len()
}

/// The first `length` characters of `text`, or all of it.
pub(super) fn prefix(text: &str, length: u16) -> &str {
    text.char_indices().nth(length.into()).map_or(text, |(end, _)| &text[..end])
}
