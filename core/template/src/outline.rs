//! The URIs of a template as a graph, to find out whether one of them has a given form.
//!
//! Law: every path through the graph is the text of an expansion, with one exception: a variable accepts any run of its
//! characters, ignoring its prefix, type and repetitions. The graph answers questions about templates and is never used
//! for matching.

use super::UriTemplate;
use super::class::ByteClass;
use super::literal::normal_name;
use super::parse::{Expression, Modifier, Operator, TemplatePart, VarSpec};
use crate::uri::{GEN_DELIM, SUB_DELIM, UNRESERVED, is_in, push_encoded};

/// The graph of a template's URIs, starting at node 0. It has one node for each part of the template, whatever values
/// were inserted.
#[derive(Debug)]
pub struct Outline {
    nodes: Vec<Vec<Edge>>,
    /// The texts of all edges.
    text: String,
    end: u32,
}

/// An edge from one node to another.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// The text that it consumes.
    pub on: On,
    /// The node at its end.
    pub to: u32,
}

/// The text that an edge consumes.
#[derive(Clone, Copy, Debug)]
pub enum On {
    /// No character.
    Nothing,
    /// This text, which is not empty: see [`Outline::text`].
    Text(OutlineSpan),
    /// One byte out of a set.
    Any(CharSet),
}

/// A part of an outline's text, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct OutlineSpan {
    start: u32,
    end: u32,
}

/// A set of the bytes of canonical URIs.
#[derive(Clone, Copy, Debug)]
pub struct CharSet(ByteClass);

impl CharSet {
    /// Whether it has `byte`.
    pub fn has(self, byte: u8) -> bool {
        self.0.has(byte)
    }
}

impl UriTemplate {
    /// Makes the outline of the template's URIs, with the values that `value` returns for variables.
    #[doc(hidden)]
    pub fn outline<'v>(&self, value: &dyn Fn(&str) -> Option<&'v str>) -> Outline {
        let mut outline = Outline { nodes: vec![Vec::new()], text: String::new(), end: 0 };
        let mut writer =
            OutlineWriter { outline: &mut outline, value, is_whole: self.0.is_whole, in_query: false };
        self.0.parts.iter().for_each(|part| writer.part(part));
        outline
    }
}

impl Outline {
    /// The edges of a node.
    pub fn edges(&self, node: u32) -> &[Edge] {
        self.nodes.get(node as usize).map_or(&[], |edges| edges)
    }

    /// The text of an edge.
    pub fn text(&self, span: OutlineSpan) -> &str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// The number of bytes and nodes, which is also the cost of making it.
    pub fn size(&self) -> usize {
        self.text.len() + self.nodes.len()
    }

    /// Whether a URI may end here.
    pub fn is_end(&self, node: u32) -> bool {
        node == self.end
    }

    /// The text, if there is exactly one.
    pub fn only(&self) -> Option<String> {
        let mut text = String::new();
        let mut node = 0;
        // A graph with a single path has no loop, so no node is visited twice.
        for _ in &self.nodes {
            match self.edges(node) {
                [] => return Some(text).filter(|_| self.is_end(node)),
                [Edge { on: On::Text(span), to }] => {
                    text.push_str(self.text(*span));
                    node = *to;
                }
                [Edge { on: On::Nothing, to }] => node = *to,
                _ => return None,
            }
        }
        None
    }

    fn add(&mut self) -> u32 {
        self.nodes.push(Vec::new());
        u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX)
    }

    fn link(&mut self, from: u32, on: On, to: u32) {
        if let Some(edges) = self.nodes.get_mut(from as usize) {
            edges.push(Edge { on, to });
        }
    }

    /// Adds an edge with `text` after a node.
    fn push(&mut self, from: u32, text: &str) -> u32 {
        if text.is_empty() {
            return from;
        }
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let start = place(self.text.len());
        self.text.push_str(text);
        let on = On::Text(OutlineSpan { start, end: place(self.text.len()) });
        let next = self.add();
        self.link(from, on, next);
        next
    }

    /// Adds a run of `class`, with at least one character unless `may_be_empty`.
    fn run(&mut self, from: u32, class: ByteClass, may_be_empty: bool) -> u32 {
        let next = self.add();
        self.link(from, On::Any(CharSet(class)), next);
        self.link(next, On::Any(CharSet(class)), next);
        if may_be_empty {
            self.link(from, On::Nothing, next);
        }
        next
    }
}

struct OutlineWriter<'w, 'v> {
    outline: &'w mut Outline,
    value: &'w dyn Fn(&str) -> Option<&'v str>,
    is_whole: bool,
    in_query: bool,
}

impl OutlineWriter<'_, '_> {
    fn part(&mut self, part: &TemplatePart) {
        let from = self.outline.end;
        self.outline.end = match part {
            TemplatePart::Literal(literal) => {
                self.in_query |= literal.text.contains(['?', '#']);
                self.outline.push(from, &literal.text)
            }
            TemplatePart::Expression(expression) if expression.operator.is_named() => {
                self.named(expression, from)
            }
            TemplatePart::Expression(expression) => self.joined(expression, from),
        };
    }

    /// `{x,y}` and similar expressions, each variable after its prefix.
    fn joined(&mut self, expression: &Expression, from: u32) -> u32 {
        let operator = expression.operator;
        let mut node = from;
        for (at, spec) in expression.variables.iter().enumerate() {
            let before = if at == 0 { operator.prefix() } else { operator.separator() };
            let begun = self.outline.push(node, before);
            let mut after = self.value(operator, spec, begun);
            let is_required = at == 0 && !operator.is_optional() || (self.value)(&spec.name).is_some();
            if !is_required {
                // A node of its own: the end of a value may continue the value, while an omitted value must not.
                let end = self.outline.add();
                self.outline.link(after, On::Nothing, end);
                self.outline.link(node, On::Nothing, end);
                after = end;
            }
            node = after;
        }
        node
    }

    /// `{?x,y}`, `{&x,y}`, `{;x,y}`: the first defined variable has the operator's prefix, the others the separator.
    fn named(&mut self, expression: &Expression, from: u32) -> u32 {
        let operator = expression.operator;
        let (mut none_yet, mut some): (Option<u32>, Option<u32>) = (Some(from), None);
        for spec in &expression.variables {
            let after = self.outline.add();
            let begins = [(none_yet, operator.prefix()), (some, operator.separator())];
            for (node, sign) in begins.into_iter().filter_map(|(node, sign)| Some((node?, sign))) {
                let begun = self.outline.push(node, sign);
                let end = self.pair(operator, spec, begun);
                self.outline.link(end, On::Nothing, after);
            }
            if (self.value)(&spec.name).is_some() {
                none_yet = None;
            } else if let Some(some) = some {
                self.outline.link(some, On::Nothing, after);
            }
            some = Some(after);
        }
        self.in_query |= operator != Operator::Parameter;
        let end = self.outline.add();
        for node in [none_yet, some].into_iter().flatten() {
            self.outline.link(node, On::Nothing, end);
        }
        end
    }

    fn pair(&mut self, operator: Operator, spec: &VarSpec, from: u32) -> u32 {
        if spec.modifier == Modifier::Explode {
            return self.value(operator, spec, from);
        }
        let named = self.outline.push(from, &normal_name(&spec.name));
        let begun = self.outline.push(named, "=");
        let end = self.value(operator, spec, begun);
        if operator == Operator::Parameter && (self.value)(&spec.name).is_none() {
            self.outline.link(named, On::Nothing, end);
        }
        end
    }

    fn value(&mut self, operator: Operator, spec: &VarSpec, from: u32) -> u32 {
        match (self.value)(&spec.name) {
            Some(value) => {
                let text = encoded(value, operator.keeps_reserved());
                // The names in the pairs of an exploded variable come from its values.
                let from = match (operator.is_named(), spec.modifier) {
                    (true, Modifier::Explode) => {
                        self.outline.push(from, &format!("{}=", normal_name(&spec.name)))
                    }
                    _ => from,
                };
                self.outline.push(from, &text)
            }
            None => {
                let may_be_empty = operator.is_optional();
                self.outline.run(from, self.class(operator, spec), may_be_empty)
            }
        }
    }

    fn class(&self, operator: Operator, spec: &VarSpec) -> ByteClass {
        let explodes = spec.modifier == Modifier::Explode;
        match operator {
            Operator::Reserved if self.is_whole => ByteClass::All,
            Operator::Fragment => ByteClass::Fragment,
            Operator::Reserved if self.in_query => ByteClass::Fragment,
            Operator::Reserved => ByteClass::Reserved,
            Operator::Query | Operator::QueryMore if explodes => ByteClass::Fragment,
            Operator::Query | Operator::QueryMore => ByteClass::QueryValue,
            _ if self.in_query => ByteClass::QueryValue,
            Operator::Path if explodes => ByteClass::Segments,
            _ => ByteClass::Segment,
        }
    }
}

/// A value in the encoding of expansion.
fn encoded(value: &str, keeps_reserved: bool) -> String {
    let unchanged = if keeps_reserved { UNRESERVED | SUB_DELIM | GEN_DELIM } else { UNRESERVED };
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii() && is_in(byte, unchanged) && !(keeps_reserved && matches!(byte, b'[' | b']')) {
            out.push(char::from(byte));
        } else {
            push_encoded(&mut out, byte);
        }
    }
    out
}
