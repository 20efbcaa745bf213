//! The pattern of a template's section, as a tree: literals, captures, and choices in order of preference.

use super::class::ByteClass;
use super::literal::normal_name;
use super::options::Kind;
use super::parse::{Expression, Modifier, Operator, SyntaxFault, TemplatePart};
use super::slot::{SlotSection, SlotSite, Slots};

/// A node of the tree. Choices prefer their first alternative, options their presence.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    Literal(Vec<u8>),
    /// As few characters as the choices to its right permit.
    Capture {
        slot: u16,
        class: ByteClass,
        may_be_empty: bool,
    },
    /// Sets the slot to the empty text.
    Empty(u16),
    /// Any number of characters, uncaptured.
    Run(ByteClass),
    Sequence(Vec<Pattern>),
    Optional(Box<Pattern>),
    Choice(Box<[Pattern; 2]>),
    /// Once or more.
    Repeat(Box<Pattern>),
    /// Sets the slot to the text that the inner pattern matches.
    Span(u16, Box<Pattern>),
}

/// Makes the patterns of a section's parts: a flat sequence with adjacent literals joined.
pub(super) fn section(
    parts: &[TemplatePart],
    section: SlotSection,
    slots: &mut Slots<'_>,
) -> Result<Vec<Pattern>, SyntaxFault> {
    let mut flat = Vec::new();
    for part in parts {
        let pattern = match part {
            TemplatePart::Literal(literal) => Pattern::Literal(literal.text.clone().into_bytes()),
            TemplatePart::Expression(part) => expression(part, section, slots)?,
        };
        flatten(pattern, &mut flat);
    }
    Ok(flat)
}

/// Appends `pattern` to a flat list.
pub(super) fn flatten(pattern: Pattern, flat: &mut Vec<Pattern>) {
    match (pattern, flat.last_mut()) {
        (Pattern::Sequence(items), _) => items.into_iter().for_each(|item| flatten(item, flat)),
        (Pattern::Literal(text), Some(Pattern::Literal(last))) => last.extend(text),
        (Pattern::Literal(text), _) if text.is_empty() => {}
        (pattern, _) => flat.push(pattern),
    }
}

fn expression(
    expression: &Expression,
    section: SlotSection,
    slots: &mut Slots<'_>,
) -> Result<Pattern, SyntaxFault> {
    if expression.operator.is_named() {
        named(expression, section, slots)
    } else {
        joined(expression, section, slots)
    }
}

/// `{x,y}` and similar expressions: filled from left to right, so each variable is nested in the previous one.
fn joined(
    expression: &Expression,
    section: SlotSection,
    slots: &mut Slots<'_>,
) -> Result<Pattern, SyntaxFault> {
    let Expression { operator, variables, .. } = expression;
    let mut captures = Vec::with_capacity(variables.len());
    for (at, spec) in variables.iter().enumerate() {
        let is_required = at == 0 && !operator.is_optional();
        let slot =
            slots.add(spec, SlotSite { section, operator: *operator, is_required, in_pairs: false })?;
        let class = slots.class(slot, spec, section, variables.len());
        let may_be_empty = operator.is_optional() || slots.options(&spec.name).empty;
        captures.push(Pattern::Capture { slot, class, may_be_empty });
    }
    let mut nested = None;
    for (at, capture) in captures.into_iter().enumerate().rev() {
        let before = if at == 0 { operator.prefix() } else { operator.separator() };
        let sequence = [Some(literal(before)), Some(capture), nested].into_iter().flatten().collect();
        let sequence = Pattern::Sequence(sequence);
        let is_required = at == 0 && !operator.is_optional();
        nested = Some(if is_required { sequence } else { Pattern::Optional(Box::new(sequence)) });
    }
    Ok(nested.unwrap_or(Pattern::Sequence(Vec::new())))
}

/// `{;x,y}`, and `{&x,y}` matched by position: each variable is optional independently.
fn named(
    expression: &Expression,
    section: SlotSection,
    slots: &mut Slots<'_>,
) -> Result<Pattern, SyntaxFault> {
    let operator = expression.operator;
    let mut options = Vec::with_capacity(expression.variables.len());
    for (at, spec) in expression.variables.iter().enumerate() {
        if spec.modifier == Modifier::Explode && operator != Operator::Parameter {
            return Err(SyntaxFault::new(spec.offset, "an exploded {&x*} needs a query of name=value pairs"));
        }
        let slot = slots.add(spec, SlotSite { section, operator, is_required: false, in_pairs: false })?;
        let class = slots.class(slot, spec, section, 1);
        let before = match (at, operator) {
            // The section does not contain the `?` with which the expression begins.
            (0, Operator::Query) => "",
            (0, _) => operator.prefix(),
            _ => operator.separator(),
        };
        let name = before.to_owned() + &normal_name(&spec.name);
        let is_map = slots.slots[usize::from(slot)].kind == Kind::Map;
        let option = match spec.modifier {
            Modifier::Explode if is_map => parameters(slot),
            Modifier::Explode => {
                let item =
                    Pattern::Choice(Box::new([with_value(&name, Pattern::Run(class)), literal(&name)]));
                Pattern::Span(slot, Box::new(Pattern::Repeat(Box::new(item))))
            }
            _ => {
                let value = with_value(&name, Pattern::Capture { slot, class, may_be_empty: true });
                let empty = || Pattern::Sequence(vec![literal(&name), Pattern::Empty(slot)]);
                let is_parameter = operator == Operator::Parameter;
                if is_parameter { Pattern::Choice(Box::new([value, empty()])) } else { value }
            }
        };
        options.push(Pattern::Optional(Box::new(option)));
    }
    Ok(Pattern::Sequence(options))
}

fn with_value(name: &str, value: Pattern) -> Pattern {
    Pattern::Sequence(vec![literal(&format!("{name}=")), value])
}

/// All parameters of a path segment, as one map.
fn parameters(slot: u16) -> Pattern {
    let pairs = Pattern::Span(slot, Box::new(Pattern::Run(ByteClass::Segment)));
    Pattern::Sequence(vec![literal(";"), pairs])
}

fn literal(text: &str) -> Pattern {
    Pattern::Literal(text.as_bytes().to_vec())
}

/// Whether every text after a capture of `class` begins with a byte outside it. The end of the capture then does not
/// depend on the rest of the text.
pub(super) fn is_delimited(after: &[Pattern], class: ByteClass) -> bool {
    for pattern in after {
        if !begins_outside(pattern, class) {
            return false;
        }
        if !matches!(pattern, Pattern::Optional(_)) {
            break;
        }
    }
    true
}

fn begins_outside(pattern: &Pattern, class: ByteClass) -> bool {
    match pattern {
        Pattern::Literal(text) => text.first().is_some_and(|&byte| !class.has(byte)),
        Pattern::Capture { .. } | Pattern::Empty(_) | Pattern::Run(_) => false,
        Pattern::Sequence(items) => items.first().is_some_and(|first| begins_outside(first, class)),
        Pattern::Choice(items) => items.iter().all(|item| begins_outside(item, class)),
        Pattern::Optional(inner) | Pattern::Repeat(inner) | Pattern::Span(_, inner) => {
            begins_outside(inner, class)
        }
    }
}
