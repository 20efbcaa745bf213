//! Splits a template into path, query and fragment, as a URI is split.

use super::options::{Chars, TemplateOptions};
use super::parse::{Expression, Fault, Literal, Operator, Part};

/// A template's sections; its literals are in normal form.
pub(super) struct Sections {
    /// Everything before the query, scheme and authority included.
    pub path: Vec<Part>,
    /// The query without its `?`, unless it is an expression with its own.
    pub query: Option<Vec<Part>>,
    /// The fragment without its `#`, unless it is an expression with its own.
    pub fragment: Option<Vec<Part>>,
    /// Whether the template is not split, because a variable may contain `?` and `#`.
    pub is_whole: bool,
}

impl Sections {
    /// Splits `parts`, whose literals are in normal form.
    pub(super) fn new(parts: &[Part], options: &TemplateOptions) -> Result<Self, Fault> {
        let is_whole = has_unbounded(parts, options)?;
        let mut cutter = Cutter { path: Vec::new(), query: None, fragment: None };
        for part in merge(parts) {
            match part {
                part if is_whole => cutter.path.push(part),
                Part::Literal(literal) => cutter.literal(literal)?,
                Part::Expression(expression) => cutter.expression(expression)?,
            }
        }
        let Cutter { path, query, fragment } = cutter;
        Ok(Self { path, query, fragment, is_whole })
    }
}

/// Whether a variable may contain every character; if so, checks that the template permits it.
fn has_unbounded(parts: &[Part], options: &TemplateOptions) -> Result<bool, Fault> {
    let is_unbounded =
        |name: &str| options.variables.get(name).is_some_and(|variable| variable.chars == Chars::Any);
    let mut found = false;
    for expression in expressions(parts) {
        for variable in expression.variables.iter().filter(|variable| is_unbounded(&variable.name)) {
            if expression.operator != Operator::Reserved {
                return Err(Fault::new(variable.offset, "only {+x} may hold every character"));
            }
            found = true;
        }
    }
    let cut =
        expressions(parts).find(|other| other.operator.is_named() || other.operator == Operator::Fragment);
    match cut {
        Some(other) if found => Err(Fault::new(
            other.offset,
            "a variable that may hold every character leaves no room for this expression",
        )),
        _ => Ok(found),
    }
}

fn expressions(parts: &[Part]) -> impl Iterator<Item = &Expression> {
    parts.iter().filter_map(|part| match part {
        Part::Expression(expression) => Some(expression),
        Part::Literal(_) => None,
    })
}

/// Joins adjacent expressions that expand like a single one: `{/a}{/b}` is `{/a,b}`; `{?a}{&b}` is read as `{?a,b}`.
fn merge(parts: &[Part]) -> Vec<Part> {
    let mut merged: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        if let (Some(Part::Expression(last)), Part::Expression(next)) = (merged.last_mut(), part) {
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

struct Cutter {
    path: Vec<Part>,
    query: Option<Vec<Part>>,
    fragment: Option<Vec<Part>>,
}

impl Cutter {
    /// The section that the next part belongs to.
    fn current(&mut self) -> &mut Vec<Part> {
        self.fragment.as_mut().or(self.query.as_mut()).unwrap_or(&mut self.path)
    }

    fn literal(&mut self, Literal { text, offset }: Literal) -> Result<(), Fault> {
        let mut rest = text.as_str();
        loop {
            let opens_query = self.query.is_none() && self.fragment.is_none();
            let end = rest.find(|next| next == '#' || opens_query && next == '?');
            let (here, after) = rest.split_at(end.unwrap_or(rest.len()));
            if !here.is_empty() {
                self.current().push(Part::Literal(Literal { text: here.to_owned(), offset }));
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

    fn expression(&mut self, expression: Expression) -> Result<(), Fault> {
        match expression.operator {
            Operator::Fragment if self.fragment.is_some() => return Err(second_fragment(expression.offset)),
            Operator::Fragment => self.fragment = Some(Vec::new()),
            Operator::Query if self.fragment.is_some() => {
                return Err(Fault::new(expression.offset, "a query cannot follow a fragment"));
            }
            Operator::Query if self.query.is_some() => {
                return Err(Fault::new(expression.offset, "a second query; use {&x} to add to the first"));
            }
            Operator::Query => self.query = Some(Vec::new()),
            _ => {}
        }
        self.current().push(Part::Expression(expression));
        Ok(())
    }
}

fn second_fragment(offset: usize) -> Fault {
    Fault::new(offset, "a second fragment")
}
