//! A strict parser for the grammar of RFC 6570, without the semantics of matching.

use super::error::InvalidTemplate;
use crate::uri::hex_pair;

/// Longest template, in bytes.
pub(super) const MAX_BYTES: usize = 8_192;
/// Most variables of one template, repetitions included.
pub(super) const MAX_VARIABLES: usize = 64;

/// One piece of a template, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Literal(Literal),
    Expression(Expression),
}

/// Text outside braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub text: String,
    pub offset: usize,
}

/// The text between braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression {
    pub operator: Operator,
    /// At least one.
    pub variables: Vec<VarSpec>,
    pub offset: usize,
}

/// One variable of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct VarSpec {
    pub name: String,
    pub modifier: Modifier,
    pub offset: usize,
}

/// The operator of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    /// `{x}`
    Simple,
    /// `{+x}`
    Reserved,
    /// `{#x}`
    Fragment,
    /// `{.x}`
    Label,
    /// `{/x}`
    Path,
    /// `{;x}`
    Parameter,
    /// `{?x}`
    Query,
    /// `{&x}`
    QueryMore,
}

impl Operator {
    /// The text before the first defined variable.
    pub(super) fn prefix(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved => "",
            Self::Fragment => "#",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query => "?",
            Self::QueryMore => "&",
        }
    }

    /// The text between variables, and between the items of an exploded one.
    pub(super) fn separator(self) -> &'static str {
        match self {
            Self::Simple | Self::Reserved | Self::Fragment => ",",
            Self::Label => ".",
            Self::Path => "/",
            Self::Parameter => ";",
            Self::Query | Self::QueryMore => "&",
        }
    }

    /// Whether values are preceded by their variable's name.
    pub(super) fn is_named(self) -> bool {
        matches!(self, Self::Parameter | Self::Query | Self::QueryMore)
    }

    /// Whether expansion leaves reserved characters as they are.
    pub(super) fn keeps_reserved(self) -> bool {
        matches!(self, Self::Reserved | Self::Fragment)
    }

    /// Whether the whole expression may be missing from a matching URI.
    pub(super) fn is_optional(self) -> bool {
        !matches!(self, Self::Simple | Self::Reserved)
    }
}

/// The modifier of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Modifier {
    None,
    /// `:n`, 1 to 9,999 characters.
    Prefix(u16),
    /// `*`
    Explode,
}

/// An error in a template, with its position.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxFault {
    pub offset: usize,
    pub reason: String,
}

impl SyntaxFault {
    pub(super) fn new(offset: usize, reason: impl Into<String>) -> Self {
        Self { offset, reason: reason.into() }
    }

    /// Converts the fault to the public error.
    pub(super) fn in_template(self, template: &str) -> InvalidTemplate {
        InvalidTemplate { template: template.to_owned(), offset: self.offset, reason: self.reason }
    }
}

/// Reads a template.
pub(super) fn parse(template: &str) -> Result<Vec<TemplatePart>, SyntaxFault> {
    if template.len() > MAX_BYTES {
        return Err(SyntaxFault::new(MAX_BYTES, format!("it is longer than {MAX_BYTES} bytes")));
    }
    let mut parts = Vec::new();
    let mut variables = 0;
    let mut at = 0;
    while at < template.len() {
        if template.as_bytes()[at] == b'{' {
            let expression = expression(template, at)?;
            variables += expression.variables.len();
            if variables > MAX_VARIABLES {
                return Err(SyntaxFault::new(at, format!("it has more than {MAX_VARIABLES} variables")));
            }
            at += 1 + template[at..].find('}').unwrap_or_default();
            parts.push(TemplatePart::Expression(expression));
        } else {
            let end = template[at..].find('{').map_or(template.len(), |length| at + length);
            check_literal(template, at, end)?;
            parts.push(TemplatePart::Literal(Literal { text: template[at..end].to_owned(), offset: at }));
            at = end;
        }
    }
    Ok(parts)
}

fn check_literal(template: &str, start: usize, end: usize) -> Result<(), SyntaxFault> {
    let bytes = template.as_bytes();
    for at in start..end {
        match bytes[at] {
            b'%' if hex_pair(&bytes[at + 1..]).is_none() => {
                return Err(SyntaxFault::new(at, "a % is not followed by two hexadecimal digits"));
            }
            b'}' => return Err(SyntaxFault::new(at, "a } closes no expression")),
            0..=b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'|' | 0x7f => {
                return Err(SyntaxFault::new(at, "this character may not stand in a template"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Parses the expression whose brace is at `start`.
fn expression(template: &str, start: usize) -> Result<Expression, SyntaxFault> {
    let Some(end) = template[start..].find('}') else {
        return Err(SyntaxFault::new(start, "an expression is not closed"));
    };
    let body = &template[start + 1..start + end];
    let operator = match body.as_bytes().first() {
        None => return Err(SyntaxFault::new(start, "an expression is empty")),
        Some(b'+') => Operator::Reserved,
        Some(b'#') => Operator::Fragment,
        Some(b'.') => Operator::Label,
        Some(b'/') => Operator::Path,
        Some(b';') => Operator::Parameter,
        Some(b'?') => Operator::Query,
        Some(b'&') => Operator::QueryMore,
        Some(_) => Operator::Simple,
    };
    let mut offset = start + 1 + usize::from(operator != Operator::Simple);
    let mut variables = Vec::new();
    for spec in template[offset..start + end].split(',') {
        variables.push(variable(spec, offset)?);
        offset += spec.len() + 1;
    }
    Ok(Expression { operator, variables, offset: start })
}

fn variable(spec: &str, offset: usize) -> Result<VarSpec, SyntaxFault> {
    let (name, modifier) = if let Some(name) = spec.strip_suffix('*') {
        (name, Modifier::Explode)
    } else if let Some((name, length)) = spec.split_once(':') {
        let digits = length.bytes().all(|byte| byte.is_ascii_digit()) && !length.starts_with('0');
        match length.parse() {
            Ok(length) if digits && length <= 9_999 => (name, Modifier::Prefix(length)),
            _ => {
                return Err(SyntaxFault::new(
                    offset,
                    "the length of a prefix is not a number from 1 to 9999",
                ));
            }
        }
    } else {
        (spec, Modifier::None)
    };
    if !is_name(name) {
        return Err(SyntaxFault::new(offset, format!("{name:?} is not a valid name of a variable")));
    }
    Ok(VarSpec { name: name.to_owned(), modifier, offset })
}

/// `varname = varchar *( ["."] varchar )`
fn is_name(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    let mut needs_varchar = true;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' => at += 1,
            b'%' if hex_pair(&bytes[at + 1..]).is_some() => at += 3,
            b'.' if !needs_varchar => {
                at += 1;
                needs_varchar = true;
                continue;
            }
            _ => return false,
        }
        needs_varchar = false;
    }
    !needs_varchar
}
