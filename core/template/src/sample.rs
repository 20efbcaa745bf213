//! Sample URIs of a template, to find out whether other templates match them.

use super::compile::Compiled;
use super::options::Kind;
use super::parse::{Expression, Modifier, Operator, TemplatePart, VarSpec};
use std::borrow::Cow;

/// Makes some URIs of `template` in normal form: with few, some and many optional variables and path segments. Values
/// are longer than `longest_prefix` characters.
pub(super) fn samples(template: &Compiled, longest_prefix: u16) -> Vec<String> {
    let text: String = "q7zk".chars().cycle().take(usize::from(longest_prefix).max(3) + 1).collect();
    let mut samples = Vec::new();
    for segments in [1, 2, 9] {
        for optional in [usize::MAX, 1, 0] {
            let sampler = Sampler { template, text: &text, segments, optional };
            let sample = sampler.uri();
            if !samples.contains(&sample) {
                samples.push(sample);
            }
        }
    }
    samples
}

struct Sampler<'s> {
    template: &'s Compiled,
    /// The value of every variable, so that repeated ones agree.
    text: &'s str,
    /// The number of segments in the value of a `{+x}` and a `{/x*}`.
    segments: usize,
    /// The number of defined variables in an optional expression.
    optional: usize,
}

impl Sampler<'_> {
    fn uri(&self) -> String {
        let mut uri = String::new();
        let mut has_query = false;
        for part in &self.template.parts {
            match part {
                TemplatePart::Literal(literal) => uri.push_str(&literal.text),
                TemplatePart::Expression(expression) => self.expression(expression, &mut has_query, &mut uri),
            }
        }
        uri
    }

    fn expression(&self, expression: &Expression, has_query: &mut bool, uri: &mut String) {
        let Expression { operator, variables, .. } = expression;
        let count = if operator.is_optional() { self.optional } else { usize::MAX };
        for (at, spec) in variables.iter().take(count).enumerate() {
            uri.push_str(match operator {
                Operator::Query if !std::mem::replace(has_query, true) => "?",
                Operator::Query => "&",
                _ if at == 0 => operator.prefix(),
                _ => operator.separator(),
            });
            uri.push_str(&self.value(*operator, spec));
        }
    }

    fn value(&self, operator: Operator, spec: &VarSpec) -> String {
        let kind = self
            .template
            .variables
            .iter()
            .find(|variable| *variable.name == spec.name)
            .map(|found| found.kind);
        let text = self.text;
        let exploded = spec.modifier == Modifier::Explode;
        let is_path = matches!(operator, Operator::Reserved) || exploded && operator == Operator::Path;
        let value: Cow<'_, str> = match (kind, spec.modifier) {
            (Some(Kind::Map), Modifier::Explode) => format!("{text}={text}").into(),
            (Some(Kind::Map), _) => format!("{text},{text}").into(),
            (_, Modifier::Prefix(length)) => text[..text.len().min(length.into())].into(),
            _ if is_path => vec![text; self.segments].join("/").into(),
            _ => text.into(),
        };
        let is_bare = exploded && kind == Some(Kind::Map);
        if operator.is_named() && !is_bare { format!("{}={value}", spec.name) } else { value.into_owned() }
    }
}
