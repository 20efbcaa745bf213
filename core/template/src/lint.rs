//! Warnings about templates that are valid, but may not do what was intended.

use super::UriTemplate;
use super::compile::Compiled;
use super::index::{Indexed, Lookup, TemplateIndex};
use super::options::ValuePolicy;
use super::parse::{Expression, Modifier, Operator, TemplatePart};
use super::reversible::is_reversible;
use super::sample::samples;
use std::fmt;

/// A warning about a template. It never causes a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateLint {
    /// Its kind.
    pub kind: LintKind,
    /// The template, as given.
    pub template: String,
    /// One sentence that names the remedy.
    pub message: String,
}

/// The kinds of [`TemplateLint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LintKind {
    /// Matching does not undo expansion for some values.
    NotReversible,
    /// A variable that matches one segment has a name that suggests a path.
    OneSegment,
    /// `{x*}` is a list with commas, not a path.
    CommaList,
    /// More specific templates match all of its URIs.
    Shadowed,
}

impl fmt::Display for TemplateLint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "URI template {:?}: {}", self.template, self.message)
    }
}

/// The lints of a template alone.
pub(super) fn of_template(template: &Compiled) -> Vec<TemplateLint> {
    let mut lints = Vec::new();
    let mut add = |kind, message| lints.push(lint(template, kind, message));
    if !is_reversible(&template.parts) {
        let message = "the values of a match may differ from those that the URI was expanded from; put a character \
                       between variables that the left one cannot hold";
        add(LintKind::NotReversible, message.to_owned());
    }
    if let Some(name) = one_segment(template) {
        let message = format!(
            "{{{name}}} holds one segment, without any slash; write {{+{name}}}, or set its policy to path"
        );
        add(LintKind::OneSegment, message);
    }
    let lists = expressions(template).filter(|expression| expression.operator == Operator::Simple);
    let mut lists = lists.flat_map(|expression| &expression.variables);
    if let Some(list) = lists.find(|variable| variable.modifier == Modifier::Explode) {
        let name = &list.name;
        let message =
            format!("{{{name}*}} is a list with commas; for a path write {{+{name}}} or {{/{name}*}}");
        add(LintKind::CommaList, message);
    }
    lints
}

/// The lints of the template at `rank` of an index, including those that depend on other templates.
pub(super) fn of_indexed(indexed: &Indexed, index: &TemplateIndex, rank: u32) -> Vec<TemplateLint> {
    let template = indexed.template(rank);
    let mut lints = of_template(template);
    if let Some(winner) = shadow(indexed, index, rank) {
        let winner = &indexed.template(winner).text;
        let message = format!(
            "{winner:?} is more specific and takes the URIs that it matches; make one of them narrower"
        );
        lints.push(lint(template, LintKind::Shadowed, message));
    }
    lints
}

/// The rank of a template that matches URIs of the one at `rank`, if other templates match all samples of it.
fn shadow(indexed: &Indexed, index: &TemplateIndex, rank: u32) -> Option<u32> {
    let own = indexed.own_template(rank);
    let mut winner = None;
    for uri in samples(&own.0, indexed.longest_prefix) {
        if !is_match(own, &uri) {
            continue;
        }
        match index.lookup(&uri) {
            Lookup::Match { index, .. } | Lookup::Rejected { index, .. } if indexed.rank(index) != rank => {
                winner.get_or_insert(indexed.rank(index));
            }
            _ => return None,
        }
    }
    winner
}

fn is_match(template: &UriTemplate, uri: &str) -> bool {
    matches!(template.match_uri(uri), Ok(Lookup::Match { .. }))
}

/// The name of the last variable, if it matches one segment but has a name that suggests a path.
fn one_segment(template: &Compiled) -> Option<&str> {
    let Some(TemplatePart::Expression(Expression { operator: Operator::Simple, variables, .. })) =
        template.parts.last()
    else {
        return None;
    };
    let name = &variables.last()?.name;
    let is_path = ["path", "file", "dir", "key"].contains(&&*name.to_ascii_lowercase());
    let slot = template.slots.last()?;
    (is_path && slot.policy == ValuePolicy::Segment && slot.modifier == Modifier::None).then_some(name)
}

fn expressions(template: &Compiled) -> impl Iterator<Item = &Expression> {
    template.parts.iter().filter_map(|part| match part {
        TemplatePart::Expression(expression) => Some(expression),
        TemplatePart::Literal(_) => None,
    })
}

fn lint(template: &Compiled, kind: LintKind, message: String) -> TemplateLint {
    TemplateLint { kind, template: template.text.to_string(), message }
}
