//! Splits a template into path, query and fragment, as a URI is split.

use super::options::{Chars, TemplateOptions};
use super::parse::{Expression, Literal, Operator, SyntaxFault, TemplatePart};

/// A template's sections; its literals are in normal form.
pub(super) struct Sections {
    /// Everything before the query, scheme and authority included.
    pub path: Vec<TemplatePart>,
    /// The query without its `?`, unless it is an expression with its own.
    pub query: Option<Vec<TemplatePart>>,
    /// The fragment without its `#`, unless it is an expression with its own.
    pub fragment: Option<Vec<TemplatePart>>,
    /// Whether the template is not split, because a variable may contain `?` and `#`.
    pub is_whole: bool,
}

impl Sections {
    /// Splits `parts`, whose literals are in normal form.
    pub(super) fn new(parts: &[TemplatePart], options: &TemplateOptions) -> Result<Self, SyntaxFault> {
        let is_whole = has_unbounded(parts, options)?;
        let mut cutter = SectionCutter { path: Vec::new(), query: None, fragment: None };
        for part in merge(parts) {
            match part {
                part if is_whole => cutter.path.push(part),
                TemplatePart::Literal(literal) => cutter.literal(literal)?,
                TemplatePart::Expression(expression) => cutter.expression(expression)?,
            }
        }
        let SectionCutter { path, query, fragment } = cutter;
        Ok(Self { path, query, fragment, is_whole })
    }
}

/// Whether a variable may contain every character; if so, checks that the template permits it.
fn has_unbounded(parts: &[TemplatePart], options: &TemplateOptions) -> Result<bool, SyntaxFault> {
    let is_unbounded =
        |name: &str| options.variables.get(name).is_some_and(|variable| variable.chars == Chars::Any);
    let mut found = false;
    for expression in expressions(parts) {
        for variable in expression.variables.iter().filter(|variable| is_unbounded(&variable.name)) {
            if expression.operator != Operator::Reserved {
                return Err(SyntaxFault::new(variable.offset, "only {+x} may hold every character"));
            }
            found = true;
        }
    }
    let cut =
        expressions(parts).find(|other| other.operator.is_named() || other.operator == Operator::Fragment);
    match cut {
        Some(other) if found => Err(SyntaxFault::new(
            other.offset,
            "a variable that may hold every character leaves no room for this expression",
        )),
        _ => Ok(found),
    }
}

fn expressions(parts: &[TemplatePart]) -> impl Iterator<Item = &Expression> {
    parts.iter().filter_map(|part| match part {
        TemplatePart::Expression(expression) => Some(expression),
        TemplatePart::Literal(_) => None,
    })
}

/// Joins adjacent expressions that expand like a single one: `{/a}{/b}` is `{/a,b}`; `{?a}{&b}` is read as `{?a,b}`.
fn merge(parts: &[TemplatePart]) -> Vec<TemplatePart> {
    let mut merged: Vec<TemplatePart> = Vec::with_capacity(parts.len());
    for part in parts {
        if let (Some(TemplatePart::Expression(last)), TemplatePart::Expression(next)) =
            (merged.last_mut(), part)
        {
            let joins = match (last.operator, next.operator) {
                (Operator::Query, Operator::QueryMore) => true,
                (last, next) => {
                    last == next
                        && last.is_optional()
                        && last != Operator::Query
                        && last != Operator::Fragment
                }
            };
            if joins {
                last.variables.extend(next.variables.iter().cloned());
                continue;
            }
        }
        merged.push(part.clone());
    }
    merged
}

struct SectionCutter {
    path: Vec<TemplatePart>,
    query: Option<Vec<TemplatePart>>,
    fragment: Option<Vec<TemplatePart>>,
}

impl SectionCutter {
    /// The section that the next part belongs to.
    fn current(&mut self) -> &mut Vec<TemplatePart> {
        self.fragment.as_mut().or(self.query.as_mut()).unwrap_or(&mut self.path)
    }

    fn literal(&mut self, Literal { text, offset }: Literal) -> Result<(), SyntaxFault> {
        let mut rest = text.as_str();
        loop {
            let opens_query = self.query.is_none() && self.fragment.is_none();
            let end = rest.find(|next| next == '#' || opens_query && next == '?');
            let (here, after) = rest.split_at(end.unwrap_or(rest.len()));
            if !here.is_empty() {
                self.current().push(TemplatePart::Literal(Literal { text: here.to_owned(), offset }));
            }
            match after.as_bytes().first() {
                None => return Ok(()),
                Some(b'#') if self.fragment.is_some() => return Err(second_fragment(offset)),
                Some(b'#') => self.fragment = Some(Vec::new()),
                Some(_) => self.query = Some(Vec::new()),
            }
            rest = &after[1..];
        }
    }

    fn expression(&mut self, expression: Expression) -> Result<(), SyntaxFault> {
        match expression.operator {
            Operator::Fragment if self.fragment.is_some() => return Err(second_fragment(expression.offset)),
            Operator::Fragment => self.fragment = Some(Vec::new()),
            Operator::Query if self.fragment.is_some() => {
                return Err(SyntaxFault::new(expression.offset, "a query cannot follow a fragment"));
            }
            Operator::Query if self.query.is_some() => {
                return Err(SyntaxFault::new(
                    expression.offset,
                    "a second query; use {&x} to add to the first",
                ));
            }
            Operator::Query => self.query = Some(Vec::new()),
            _ => {}
        }
        self.current().push(TemplatePart::Expression(expression));
        Ok(())
    }
}

fn second_fragment(offset: usize) -> SyntaxFault {
    SyntaxFault::new(offset, "a second fragment")
}
