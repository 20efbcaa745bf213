//! Checks whether matching undoes expansion for all values (except for the exceptions of reserved expansion).
//!
//! In each section, the gap between two captures must contain a character that decides it from the left (the left
//! variable cannot match it) or, from the first such gap on, only from the right (the right variable never expands to
//! it). Optional expressions must be decided from the left, and end the captures of their section.

use super::parse::{Expression, Modifier, Operator, TemplatePart, VarSpec};
use crate::uri::{GEN_DELIM, SUB_DELIM, UNRESERVED, is_in};

/// Checks the parts of a template, whose literals are in normal form.
pub(super) fn is_reversible(parts: &[TemplatePart]) -> bool {
    let is_parameter = |part: &TemplatePart| matches!(part, TemplatePart::Expression(part) if part.operator == Operator::Parameter);
    let mut checker =
        ReversibleChecker { has_parameters: parts.iter().any(is_parameter), ..ReversibleChecker::default() };
    parts.iter().all(|part| match part {
        TemplatePart::Literal(literal) => {
            checker.gap.extend(literal.text.bytes());
            !checker.in_query && !checker.in_fragment && !literal.text.contains(['?', '#'])
        }
        TemplatePart::Expression(expression) => checker.expression(expression),
    })
}

#[derive(Default)]
struct ReversibleChecker<'p> {
    /// The nearest capture to the left.
    left: Option<(Operator, &'p VarSpec)>,
    /// The text since then.
    gap: Vec<u8>,
    /// Whether gaps are decided from the right from now on.
    from_right: bool,
    /// Whether an optional expression, or one with several variables, has ended the captures of the path.
    is_closed: bool,
    /// Whether semicolons separate parameters.
    has_parameters: bool,
    in_query: bool,
    in_fragment: bool,
}

impl<'p> ReversibleChecker<'p> {
    fn expression(&mut self, expression: &'p Expression) -> bool {
        let Expression { operator, variables, .. } = expression;
        match operator {
            Operator::QueryMore => return false,
            Operator::Query => {
                self.in_query = true;
                return !self.in_fragment;
            }
            Operator::Fragment => {
                let is_plain = variables.len() == 1 && variables[0].modifier == Modifier::None;
                return is_plain && !std::mem::replace(&mut self.in_fragment, true);
            }
            _ if self.in_query || self.in_fragment || self.is_closed => return false,
            _ => {}
        }
        for (at, spec) in variables.iter().enumerate() {
            if !self.variable(*operator, at, variables.len(), spec) {
                return false;
            }
        }
        self.is_closed = operator.is_optional() || variables.len() > 1;
        !(*operator == Operator::Label && variables.len() > 1)
    }

    fn variable(&mut self, operator: Operator, at: usize, among: usize, spec: &'p VarSpec) -> bool {
        let is_exploded = spec.modifier == Modifier::Explode;
        let is_lossy = is_exploded && (among > 1 || matches!(operator, Operator::Label | Operator::Reserved));
        if matches!(spec.modifier, Modifier::Prefix(_)) || is_lossy {
            return false;
        }
        let before = if at == 0 { operator.prefix() } else { operator.separator() };
        self.gap.extend(before.bytes());
        let gap = std::mem::take(&mut self.gap);
        if let Some((left, left_spec)) = self.left.replace((operator, spec)) {
            // The comma inside `{x,y}` is outside the class of its variables.
            let in_list = at > 0 && operator == Operator::Simple;
            let from_left = gap.iter().any(|&byte| !self.may_match(left, left_spec, byte));
            let from_right = gap.iter().any(|&byte| !may_expand_to(operator, spec, byte));
            if operator == Operator::Reserved && among > 1 {
                return false;
            }
            if !in_list && (self.from_right || !from_left) {
                self.from_right = true;
                return from_right && among == 1 && !operator.is_optional();
            }
        }
        true
    }
    /// Whether the text that a variable matches may contain `byte`.
    fn may_match(&self, operator: Operator, spec: &VarSpec, byte: u8) -> bool {
        let is_lenient = is_in(byte, SUB_DELIM) || matches!(byte, b':' | b'@');
        let separates = byte == b';' && self.has_parameters && !operator.keeps_reserved();
        may_expand_to(operator, spec, byte) || is_lenient && !separates
    }
}

/// Whether the text that a variable expands to may contain `byte`.
fn may_expand_to(operator: Operator, spec: &VarSpec, byte: u8) -> bool {
    let separates = spec.modifier == Modifier::Explode && operator.separator().as_bytes() == [byte];
    let is_reserved = operator.keeps_reserved()
        && is_in(byte, SUB_DELIM | GEN_DELIM)
        && byte != b'?'
        && (byte != b'#' || operator == Operator::Fragment);
    separates || is_reserved || is_in(byte, UNRESERVED) || byte == b'%'
}
