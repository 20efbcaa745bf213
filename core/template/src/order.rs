//! The precedence of templates, and the detection of templates that cannot be distinguished.
//!
//! The order depends on the templates only, not on the order of registration or on the URI.

use super::compile::{QueryPart, is_optional_fragment};
use super::options::{Chars, TemplateOptions};
use super::parse::{Expression, Modifier, Operator, TemplatePart};
use std::cmp::Ordering;

/// The precedence of a template among others.
#[derive(Debug)]
pub(super) struct Order {
    rank: Box<[u8]>,
    /// Equal for templates that differ only in the names of path variables and of optional query variables.
    pub shape: Box<[u8]>,
}

impl Order {
    /// `Less` is more specific, and is tried first.
    pub(super) fn compare(&self, text: &str, other: &Self, other_text: &str) -> Ordering {
        self.rank.cmp(&other.rank).then_with(|| text.cmp(other_text))
    }
}

/// Collects the precedence of a template while it is compiled.
pub(super) struct OrderKey<'o> {
    options: &'o TemplateOptions,
    rank: Vec<u8>,
    shape: Vec<u8>,
}

/// The ranks of a path's pieces, most specific first. A literal byte comes before the end of the path, so that the
/// longer of two literals wins.
mod rank {
    pub(super) const LITERAL: u8 = 0;
    pub(super) const END: u8 = 1;
    pub(super) const PREFIXED: u8 = 2;
    pub(super) const CUT: u8 = 3;
    pub(super) const SIMPLE: u8 = 4;
    pub(super) const EXPLODED: u8 = 5;
    pub(super) const RESERVED: u8 = 6;
    pub(super) const RESERVED_EXPLODED: u8 = 7;
    pub(super) const ALL: u8 = 8;
}

/// Separators for the pieces of a shape. No literal contains these bytes.
mod mark {
    pub(super) const VARIABLE: u8 = 0;
    pub(super) const FIXED_PAIR: u8 = 1;
    pub(super) const REQUIRED_PAIR: u8 = 2;
    pub(super) const OPTIONAL_PAIRS: u8 = 3;
    pub(super) const QUERY_TEXT: u8 = 4;
    pub(super) const FRAGMENT: u8 = 5;
    pub(super) const END: u8 = 6;
}

impl<'o> OrderKey<'o> {
    pub(super) fn new(options: &'o TemplateOptions) -> Self {
        Self { options, rank: Vec::new(), shape: Vec::new() }
    }

    pub(super) fn path(&mut self, parts: &[TemplatePart]) {
        for part in parts {
            match part {
                TemplatePart::Literal(literal) => {
                    self.rank.extend(literal.text.bytes().map(|_| rank::LITERAL))
                }
                TemplatePart::Expression(expression) => {
                    let ranks = expression.variables.iter().map(|variable| {
                        let options = self.options.variables.get(&variable.name);
                        let is_all = options.is_some_and(|options| options.chars == Chars::Any);
                        if is_all { rank::ALL } else { rank(expression.operator, variable.modifier) }
                    });
                    self.rank.extend(ranks);
                }
            }
        }
        self.rank.push(rank::END);
        self.parts(parts);
    }

    pub(super) fn query(&mut self, query: &QueryPart, parts: &[TemplatePart]) {
        let (required, has_optional) = match query {
            QueryPart::None => (0, false),
            QueryPart::Pairs(pairs) => {
                for (name, fixed) in pairs.requirements() {
                    self.shape.push(if fixed.is_some() { mark::FIXED_PAIR } else { mark::REQUIRED_PAIR });
                    self.shape.extend(name.bytes());
                    if let Some(Some(value)) = fixed {
                        self.shape.push(b'=');
                        self.shape.extend(value.bytes());
                    }
                }
                if pairs.has_optional() || pairs.required == 0 {
                    self.shape.push(mark::OPTIONAL_PAIRS);
                }
                (pairs.required, pairs.has_optional())
            }
            QueryPart::Text(_) => {
                self.shape.push(mark::QUERY_TEXT);
                self.parts(parts);
                (1, false)
            }
        };
        self.rank.push(u8::MAX - u8::try_from(required).unwrap_or(u8::MAX));
        self.rank.push(has_optional.into());
    }

    pub(super) fn fragment(&mut self, parts: Option<&[TemplatePart]>) {
        self.rank.push(parts.is_some_and(is_optional_fragment).into());
        if let Some(parts) = parts {
            self.shape.push(mark::FRAGMENT);
            self.parts(parts);
        }
    }

    pub(super) fn finish(self) -> Order {
        Order { rank: self.rank.into(), shape: self.shape.into() }
    }

    fn parts(&mut self, parts: &[TemplatePart]) {
        for part in parts {
            match part {
                TemplatePart::Literal(literal) => self.shape.extend(literal.text.bytes()),
                TemplatePart::Expression(expression) => self.expression(expression),
            }
        }
    }

    fn expression(&mut self, expression: &Expression) {
        let operator = expression.operator;
        for variable in &expression.variables {
            let modifier = match variable.modifier {
                Modifier::None => 0,
                Modifier::Prefix(length) => length,
                Modifier::Explode => u16::MAX,
            };
            self.shape.extend([mark::VARIABLE, operator as u8]);
            self.shape.extend(modifier.to_be_bytes());
            if operator.is_named() {
                self.shape.extend(variable.name.bytes());
            }
            self.shape.push(mark::END);
        }
    }
}

fn rank(operator: Operator, modifier: Modifier) -> u8 {
    match (operator, modifier) {
        (Operator::Reserved, Modifier::Explode) => rank::RESERVED_EXPLODED,
        (Operator::Reserved, _) => rank::RESERVED,
        (_, Modifier::Explode) => rank::EXPLODED,
        (Operator::Simple, Modifier::Prefix(_)) => rank::CUT,
        (Operator::Simple, Modifier::None) => rank::SIMPLE,
        _ => rank::PREFIXED,
    }
}
