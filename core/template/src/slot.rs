//! The captures of a template: one slot for each occurrence of a variable.

use super::class::ByteClass;
use super::options::{Chars, Kind, TemplateOptions, TemplateVariable, ValuePolicy, VariableOptions};
use super::parse::{Modifier, Operator, SyntaxFault, VarSpec};
use std::sync::Arc;

/// One occurrence of a variable.
#[derive(Clone, Debug)]
pub(super) struct VarPosition {
    /// Its position among the variables of the template.
    pub variable: u16,
    pub operator: Operator,
    pub modifier: Modifier,
    pub kind: Kind,
    pub policy: ValuePolicy,
    /// Whether the variable also occurs in an earlier slot.
    pub repeats: bool,
    /// Whether it is one of the pairs of a query that is matched as a set.
    pub in_pairs: bool,
    pub offset: usize,
}

impl VarPosition {
    /// Whether a value may violate the structure of the template, so that other templates are tried.
    pub(super) fn is_filtered(&self) -> bool {
        self.repeats || self.kind == Kind::Map || matches!(self.modifier, Modifier::Prefix(_))
    }

    /// Whether it is a list whose items are pairs of a query that is matched as a set.
    pub(super) fn is_pair_list(&self) -> bool {
        self.in_pairs && self.modifier == Modifier::Explode
    }

    /// Whether it is a list whose items have its name: `;x=1;x=2`.
    pub(super) fn is_parameter_list(&self) -> bool {
        self.operator == Operator::Parameter && self.modifier == Modifier::Explode
    }

    /// The separator of the items of a list or map.
    pub(super) fn separator(&self) -> &'static str {
        if self.modifier == Modifier::Explode { self.operator.separator() } else { "," }
    }
}

/// The section that is being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotSection {
    /// Semicolons separate parameters if the path has any `{;x}`.
    Path {
        has_parameters: bool,
    },
    Query,
    Fragment,
}

/// Collects the slots of a template, in template order.
pub(super) struct Slots<'o> {
    options: &'o TemplateOptions,
    pub slots: Vec<VarPosition>,
    pub variables: Vec<TemplateVariable>,
}

impl<'o> Slots<'o> {
    pub(super) fn new(options: &'o TemplateOptions) -> Self {
        Self { options, slots: Vec::new(), variables: Vec::new() }
    }

    /// The options of a variable.
    pub(super) fn options(&self, name: &str) -> VariableOptions {
        self.options.variables.get(name).copied().unwrap_or_default()
    }

    /// Adds the slot of one variable and returns its number.
    pub(super) fn add(&mut self, spec: &VarSpec, site: SlotSite) -> Result<u16, SyntaxFault> {
        let options = self.options(&spec.name);
        let exploded = spec.modifier == Modifier::Explode;
        let kind = options.kind.unwrap_or(if exploded { Kind::List } else { Kind::Scalar });
        match (spec.modifier, kind) {
            (Modifier::Explode, Kind::Scalar) => {
                return Err(SyntaxFault::new(spec.offset, "an exploded variable cannot be of kind scalar"));
            }
            (Modifier::Prefix(_), Kind::List | Kind::Map) => {
                return Err(SyntaxFault::new(spec.offset, "a variable with a prefix must be of kind scalar"));
            }
            _ => {}
        }
        let policy = options.policy.unwrap_or(match (site.section, site.operator) {
            (SlotSection::Path { .. }, Operator::Reserved) => ValuePolicy::Path,
            (SlotSection::Path { .. }, _) => ValuePolicy::Segment,
            (SlotSection::Query | SlotSection::Fragment, _) => ValuePolicy::Text,
        });
        let earlier = self.variables.iter().position(|variable| *variable.name == *spec.name);
        if earlier.is_some_and(|earlier| [kind, self.variables[earlier].kind] != [Kind::Scalar; 2]) {
            return Err(SyntaxFault::new(spec.offset, "a list or map may stand only once in a template"));
        }
        let variable = earlier.unwrap_or(self.variables.len());
        if earlier.is_none() {
            self.variables.push(TemplateVariable {
                name: Arc::from(&*spec.name),
                kind,
                policy,
                required: false,
            });
        }
        self.variables[variable].required |= site.is_required;
        self.slots.push(VarPosition {
            variable: number(variable),
            operator: site.operator,
            modifier: spec.modifier,
            kind,
            policy,
            repeats: earlier.is_some(),
            in_pairs: site.in_pairs,
            offset: spec.offset,
        });
        Ok(number(self.slots.len() - 1))
    }

    /// Removes the slots and variables that were added since `mark`.
    pub(super) fn rewind(&mut self, mark: SlotMark) {
        self.slots.truncate(mark.slots);
        self.variables = mark.variables;
    }

    /// A point to [`rewind`](Self::rewind) to.
    pub(super) fn mark(&self) -> SlotMark {
        SlotMark { slots: self.slots.len(), variables: self.variables.clone() }
    }

    /// The characters that the value in a slot may contain; `among` is the number of variables in the expression.
    pub(super) fn class(&self, slot: u16, spec: &VarSpec, section: SlotSection, among: usize) -> ByteClass {
        let VarPosition { operator, kind, modifier, .. } = self.slots[usize::from(slot)];
        let has_parameters = match section {
            _ if operator == Operator::Parameter => return ByteClass::SegmentNoSemicolon,
            SlotSection::Query if operator.keeps_reserved() => return ByteClass::Fragment,
            SlotSection::Query => return ByteClass::QueryValue,
            _ if operator == Operator::QueryMore => return ByteClass::SegmentNoAmpersand,
            SlotSection::Fragment => return ByteClass::Fragment,
            SlotSection::Path { has_parameters } => has_parameters,
        };
        let bounded = match (operator, modifier) {
            (Operator::Reserved, _) if self.options(&spec.name).chars == Chars::Any => return ByteClass::All,
            (Operator::Reserved, _) => return ByteClass::Reserved,
            (Operator::Path, Modifier::Explode) => [ByteClass::Segments, ByteClass::SegmentsNoSemicolon],
            (Operator::Simple, _) if among > 1 && kind == Kind::Scalar => {
                [ByteClass::SegmentNoComma, ByteClass::SegmentNoCommaSemicolon]
            }
            _ => [ByteClass::Segment, ByteClass::SegmentNoSemicolon],
        };
        bounded[usize::from(has_parameters)]
    }
}

/// The position of a slot.
#[derive(Clone, Copy)]
pub(super) struct SlotSite {
    pub section: SlotSection,
    pub operator: Operator,
    pub is_required: bool,
    pub in_pairs: bool,
}

/// A state of [`Slots`].
pub(super) struct SlotMark {
    slots: usize,
    variables: Vec<TemplateVariable>,
}

/// Slots, variables and instructions are few, because the length of a template is limited.
pub(super) fn number(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}
