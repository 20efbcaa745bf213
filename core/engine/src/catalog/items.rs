//! Entries of the catalogue: what was registered, with what is made from it once.
//!
//! Law: an entry never changes, but for its list items: each is encoded when it is first listed, once for each set of
//! fields that revisions share, so that a page is a concatenation.

use crate::catalog::encode::{encode_item, encode_template};
use crate::catalog::foreign::ForeignTemplate;
use crate::error::ReadError;
use crate::resource::{Parameter, ParameterCheck, ParameterKind, Resource, Template};
use crate::version::FieldSet;
use mcp_resources_template::{Params, UriTemplate, Variable};
use std::sync::{Arc, OnceLock};

/// The author's function behind a resource or template, by number. Never reused.
pub type HandlerId = u32;

/// What templates and list sources of one provider have in common, by number:
/// [`Engine::new_mount`](crate::engine::Engine::new_mount). Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountId(pub u32);

/// Where the contents of a resource come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A function of the author's.
    Handler(HandlerId),
    /// A constant text: the engine answers.
    Text(Arc<str>),
    /// Constant bytes: the engine answers.
    Bytes(Arc<[u8]>),
}

impl Source {
    /// The length of a constant in bytes, before any base64; unknown for a function.
    pub(super) fn size(&self) -> Option<u64> {
        match self {
            Source::Handler(_) => None,
            Source::Text(text) => u64::try_from(text.len()).ok(),
            Source::Bytes(bytes) => u64::try_from(bytes.len()).ok(),
        }
    }
}

/// A registered resource.
#[derive(Debug)]
pub struct ResourceEntry {
    /// What was registered, in the form in which it is listed.
    pub resource: Resource,
    /// Its canonical URI.
    pub canonical: Arc<str>,
    /// Where its contents come from.
    pub source: Source,
    encoded: Encoded,
}

impl ResourceEntry {
    pub(super) fn new(resource: Resource, canonical: Arc<str>, source: Source) -> Self {
        Self { resource, canonical, source, encoded: Encoded::default() }
    }
}

/// A registered template.
#[derive(Debug)]
pub struct TemplateEntry {
    /// What was registered.
    pub template: Template,
    /// The compiled template.
    pub parsed: UriTemplate,
    /// The function that reads, completes and lists its resources.
    pub handler: HandlerId,
    /// What it belongs to.
    pub mount: Option<MountId>,
    checks: Vec<ParameterCheck>,
    encoded: Encoded,
}

impl TemplateEntry {
    pub(super) fn new(
        template: Template,
        parsed: UriTemplate,
        checks: Vec<ParameterCheck>,
        handler: HandlerId,
        mount: Option<MountId>,
    ) -> Self {
        Self { template, parsed, handler, mount, checks, encoded: Encoded::default() }
    }

    /// Checks the values of a match against what the author said of the variables (S-16). Linear in the values.
    ///
    /// # Errors
    /// As [`ParameterCheck::check`], for the first that is wrong.
    pub fn check(&self, params: &Params<'_>) -> Result<(), ReadError> {
        self.checks.iter().try_for_each(|check| check.check(params.get(&check.parameter().name)))
    }

    /// What completes the variable `name`; `None` if the template has no such variable.
    pub fn completer(&self, name: &str) -> Option<Completer<'_>> {
        const BOOLEANS: &[&str] = &["false", "true"];
        let variable = self.parsed.variables().iter().find(|variable| &*variable.name == name)?;
        if self.template.completes.iter().any(|other| *other == *variable.name) {
            return Some(Completer::Handler);
        }
        Some(match self.parameter(name) {
            Some(parameter) if !parameter.values.is_empty() => Completer::Values(&parameter.values),
            Some(parameter) if parameter.kind == ParameterKind::Boolean => Completer::Words(BOOLEANS),
            _ => Completer::Nothing,
        })
    }

    /// Whether anything completes one of its variables.
    pub fn has_completers(&self) -> bool {
        let has =
            |variable: &Variable| !matches!(self.completer(&variable.name), None | Some(Completer::Nothing));
        self.parsed.variables().iter().any(has)
    }

    pub(super) fn checks(&self) -> &[ParameterCheck] {
        &self.checks
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.template.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// What completes a variable of a template (R-107, S-16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completer<'a> {
    /// A function of the author's.
    Handler,
    /// The values that its parameter allows, in the author's order.
    Values(&'a [String]),
    /// The words of its type.
    Words(&'static [&'static str]),
    /// Nothing: no values are suggested.
    Nothing,
}

/// A template of a list: one that is registered, or one of another server that is listed as it came.
#[derive(Clone, Copy, Debug)]
pub enum ListedTemplate<'c> {
    /// A registered template.
    Own(&'c TemplateEntry),
    /// A template that is only listed.
    Foreign(&'c ForeignTemplate),
}

/// What a list is made of.
pub(super) trait Item<'c>: Copy {
    /// What the list is sorted by.
    fn key(self) -> &'c str;
    /// The encoded item.
    fn encoded(self, fields: FieldSet) -> &'c [u8];
}

impl<'c> Item<'c> for &'c ResourceEntry {
    fn key(self) -> &'c str {
        &self.canonical
    }

    fn encoded(self, fields: FieldSet) -> &'c [u8] {
        self.encoded.get(fields, |out| encode_item(&self.resource, fields, out))
    }
}

impl<'c> Item<'c> for ListedTemplate<'c> {
    fn key(self) -> &'c str {
        match self {
            Self::Own(entry) => &entry.template.uri_template,
            Self::Foreign(foreign) => &foreign.key,
        }
    }

    fn encoded(self, fields: FieldSet) -> &'c [u8] {
        match self {
            Self::Own(entry) => entry.encoded.get(fields, |out| encode_template(entry, fields, out)),
            Self::Foreign(foreign) => foreign.json.as_bytes(),
        }
    }
}

/// One item for each [`FieldSet`], made when it is first listed.
#[derive(Debug, Default)]
struct Encoded([OnceLock<Box<[u8]>>; FieldSet::COUNT]);

impl Encoded {
    fn get(&self, fields: FieldSet, encode: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        self.0[fields.index()].get_or_init(|| {
            let mut out = Vec::new();
            encode(&mut out);
            out.into_boxed_slice()
        })
    }
}
