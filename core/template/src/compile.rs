//! A template compiled for matching.

use super::class::ByteClass;
use super::gaps;
use super::literal;
use super::options::{TemplateOptions, TemplateVariable};
use super::order::{Order, OrderKey};
use super::parse::{Modifier, Operator, SyntaxFault, TemplatePart, parse};
use super::pattern::{self, Pattern, flatten, is_delimited};
use super::query::Pairs;
use super::remainder::Remainder;
use super::section::Sections;
use super::slot::{SlotSection, Slots, VarPosition};
use std::sync::Arc;

/// A template, compiled for matching, ordering and expansion.
#[derive(Debug)]
pub(super) struct Compiled {
    pub text: Box<str>,
    /// As written, except that literals are in normal form.
    pub parts: Box<[TemplatePart]>,
    pub variables: Arc<[TemplateVariable]>,
    /// In template order; those of the head come first.
    pub slots: Box<[VarPosition]>,
    pub head: Box<[TemplateToken]>,
    /// The rest of the path after the head.
    pub tail: Remainder,
    /// The longest literal that every match of the tail contains; empty if there is none.
    pub needle: Box<[u8]>,
    pub query: QueryPart,
    /// Including its `#`.
    pub fragment: Option<Remainder>,
    /// Whether the tail also matches query and fragment.
    pub is_whole: bool,
    /// Whether a structural match may still fail because of the values.
    pub has_filters: bool,
    pub order: Order,
}

/// One piece of the head. Its end does not depend on the text after it, so a trie can represent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplateToken {
    Literal(Box<[u8]>),
    /// One or more characters of [`ByteClass::Segment`], as many as possible.
    Capture,
}

/// The part of a template that matches the query.
#[derive(Debug)]
pub(super) enum QueryPart {
    /// The URI must not have a query.
    None,
    Pairs(Pairs),
    /// Matched by position.
    Text(Remainder),
}

impl Compiled {
    pub(super) fn new(text: &str, options: &TemplateOptions) -> Result<Self, SyntaxFault> {
        let mut parts = parse(text)?;
        literal::normalize(&mut parts)?;
        let sections = Sections::new(&parts, options)?;
        let mut slots = Slots::new(options);
        let mut key = OrderKey::new(options);
        let path = path(&sections, &mut slots, options)?;
        key.path(&sections.path);
        let query = query(&sections, &mut slots, options)?;
        key.query(&query, sections.query.as_deref().unwrap_or_default());
        let fragment = fragment(&sections, &mut slots, options)?;
        key.fragment(sections.fragment.as_deref());
        let (head, tail) = path.split_at(head_len(&path, sections.is_whole));
        Ok(Self {
            text: text.into(),
            head: head.iter().map(TemplateToken::new).collect(),
            tail: Remainder::new(tail),
            needle: needle(tail).into(),
            query,
            fragment,
            is_whole: sections.is_whole,
            has_filters: slots.slots.iter().any(VarPosition::is_filtered),
            order: key.finish(),
            variables: slots.variables.into(),
            slots: slots.slots.into(),
            parts: parts.into(),
        })
    }

    /// The longest prefix modifier, in characters; 0 without one.
    pub(super) fn longest_prefix(&self) -> u16 {
        let prefix =
            |slot: &VarPosition| if let Modifier::Prefix(length) = slot.modifier { length } else { 0 };
        self.slots.iter().map(prefix).max().unwrap_or_default()
    }

    /// The only URI that the template matches, in normal form, if it has no variables.
    pub(super) fn exact(&self) -> Option<String> {
        let literal = |part: &TemplatePart| match part {
            TemplatePart::Literal(literal) => Some(literal.text.clone()),
            TemplatePart::Expression(_) => None,
        };
        self.parts.iter().map(literal).collect()
    }
}

impl TemplateToken {
    fn new(pattern: &Pattern) -> Self {
        match pattern {
            Pattern::Literal(text) => Self::Literal(text.clone().into()),
            _ => Self::Capture,
        }
    }
}

fn path(
    sections: &Sections,
    slots: &mut Slots<'_>,
    options: &TemplateOptions,
) -> Result<Vec<Pattern>, SyntaxFault> {
    let is_parameter = |part: &TemplatePart| matches!(part, TemplatePart::Expression(part) if part.operator == Operator::Parameter);
    let section = SlotSection::Path { has_parameters: sections.path.iter().any(is_parameter) };
    let patterns = pattern::section(&sections.path, section, slots)?;
    gaps::check(&patterns, slots, options.captures)?;
    Ok(patterns)
}

fn query(
    sections: &Sections,
    slots: &mut Slots<'_>,
    options: &TemplateOptions,
) -> Result<QueryPart, SyntaxFault> {
    let Some(parts) = &sections.query else { return Ok(QueryPart::None) };
    if let Some(pairs) = Pairs::new(parts, options.extra_query, slots)? {
        return Ok(QueryPart::Pairs(pairs));
    }
    let patterns = pattern::section(parts, SlotSection::Query, slots)?;
    gaps::check(&patterns, slots, options.captures)?;
    Ok(QueryPart::Text(Remainder::new(&patterns)))
}

fn fragment(
    sections: &Sections,
    slots: &mut Slots<'_>,
    options: &TemplateOptions,
) -> Result<Option<Remainder>, SyntaxFault> {
    let Some(parts) = &sections.fragment else { return Ok(None) };
    let mut patterns = Vec::new();
    if !is_optional_fragment(parts) {
        flatten(Pattern::Literal(b"#".to_vec()), &mut patterns);
    }
    for pattern in pattern::section(parts, SlotSection::Fragment, slots)? {
        flatten(pattern, &mut patterns);
    }
    gaps::check(&patterns, slots, options.captures)?;
    Ok(Some(Remainder::new(&patterns)))
}

/// Whether a fragment begins with `{#x}`, which includes its own `#`.
pub(super) fn is_optional_fragment(parts: &[TemplatePart]) -> bool {
    matches!(parts.first(), Some(TemplatePart::Expression(first)) if first.operator == Operator::Fragment)
}

/// The number of leading patterns that match without alternatives.
fn head_len(path: &[Pattern], is_whole: bool) -> usize {
    let is_decided = |(at, pattern): (usize, &Pattern)| match pattern {
        Pattern::Literal(_) => true,
        Pattern::Capture { class: ByteClass::Segment, may_be_empty: false, .. } if !is_whole => {
            is_delimited(&path[at + 1..], ByteClass::Segment)
        }
        _ => false,
    };
    path.iter().enumerate().take_while(|&item| is_decided(item)).count()
}

fn needle(tail: &[Pattern]) -> &[u8] {
    let literals = tail.iter().filter_map(|pattern| match pattern {
        Pattern::Literal(text) => Some(&text[..]),
        _ => None,
    });
    literals.max_by_key(|text| text.len()).unwrap_or_default()
}
