//! Entries of the catalogue: a registration with the values derived from it.
//!
//! Law: an entry never changes, except that its list items are encoded lazily: once for each set of fields that
//! revisions share, so that a page is a concatenation of encoded items.

use crate::catalog::encode::{encode_item, encode_template};
use crate::catalog::foreign::ForeignTemplate;
use crate::catalog::query;
use crate::error::ReadError;
use crate::resource::{
    Details, Parameter, ParameterCheck, ParameterKind, Resource, Template, UI, UI_MEDIA_TYPE, member,
};
use crate::version::{FieldSet, ToolFields};
use mcp_resources_template::{Kind, Lookup, MatchedParams, TemplateVariable, UriTemplate, uri};
use std::sync::{Arc, OnceLock};

/// Identifies the handler of a resource or template. Never reused.
pub type HandlerId = u32;

/// Identifies a mount, which groups the templates and list sources of one provider:
/// [`Engine::new_mount`](crate::engine::Engine::new_mount). Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountId(pub u32);

/// The origin of a resource's contents.
#[derive(Clone, Debug)]
pub enum ItemSource {
    /// A handler returns the contents.
    Handler(HandlerId),
    /// Constant text; the engine answers without a handler.
    Text(Arc<str>),
    /// Constant bytes; the engine answers without a handler.
    Bytes(Arc<[u8]>),
}

impl ItemSource {
    /// The length of a constant in bytes, before any base64; unknown for a function.
    pub fn size(&self) -> Option<u64> {
        match self {
            ItemSource::Handler(_) => None,
            ItemSource::Text(text) => u64::try_from(text.len()).ok(),
            ItemSource::Bytes(bytes) => u64::try_from(bytes.len()).ok(),
        }
    }
}

/// A registered resource.
#[derive(Debug)]
pub struct ResourceEntry {
    /// The resource as it is listed.
    pub resource: Resource,
    /// Its canonical URI.
    pub canonical: Arc<str>,
    /// The origin of its contents.
    pub source: ItemSource,
    /// Members of `_meta` that its contents repeat, as the text of a JSON object: those about a page (SEP-1865).
    pub page_meta: Option<Box<str>>,
    encoded: EncodedItem,
}

impl ResourceEntry {
    pub(super) fn new(resource: Resource, canonical: Arc<str>, source: ItemSource) -> Self {
        let page_meta = page_meta(&resource.details);
        Self { resource, canonical, source, page_meta, encoded: EncodedItem::default() }
    }
}

/// A registered template.
#[derive(Debug)]
pub struct TemplateEntry {
    /// The template as it was registered.
    pub template: Template,
    /// The compiled template.
    pub parsed: UriTemplate,
    /// The handler that reads, completes and lists its resources.
    pub handler: HandlerId,
    /// The mount that it belongs to.
    pub mount: Option<MountId>,
    /// See [`ResourceEntry::page_meta`].
    pub page_meta: Option<Box<str>>,
    checks: Vec<ParameterCheck>,
    encoded: EncodedItem,
}

/// The members of `_meta` about a page, if the media type is that of pages.
fn page_meta(details: &Details) -> Option<Box<str>> {
    let meta = details.meta.as_deref().filter(|_| details.mime_type.as_deref() == Some(UI_MEDIA_TYPE))?;
    member(meta, UI).map(|about| format!(r#"{{"{UI}":{about}}}"#).into())
}

impl TemplateEntry {
    pub(super) fn new(
        template: Template,
        parsed: UriTemplate,
        checks: Vec<ParameterCheck>,
        handler: HandlerId,
        mount: Option<MountId>,
    ) -> Self {
        let page_meta = page_meta(&template.details);
        Self { template, parsed, handler, mount, page_meta, checks, encoded: EncodedItem::default() }
    }

    /// Checks the values of a match against the declared parameters. Linear in the length of the values.
    ///
    /// # Errors
    /// As [`ParameterCheck::check`], for the first value that fails.
    pub fn check(&self, params: &MatchedParams<'_>) -> Result<(), ReadError> {
        self.checks.iter().try_for_each(|check| check.check(params.get(&check.parameter().name)))
    }

    /// Checks that the values of a match are in the canonical form of their types: for URIs from the program, which may
    /// know values that the declaration does not have.
    ///
    /// # Errors
    /// As [`ParameterCheck::check_spelling`], for the first value that fails.
    pub fn check_spelling(&self, params: &MatchedParams<'_>) -> Result<(), ReadError> {
        self.checks.iter().try_for_each(|check| check.check_spelling(params.get(&check.parameter().name)))
    }

    /// The URI of these values as an expansion of the template encodes them, which is the same for all encodings; `None` if no
    /// variable is typed, or the template belongs to a mount.
    pub fn expanded(&self, params: &MatchedParams<'_>) -> Option<String> {
        if self.checks.is_empty() || self.mount.is_some() {
            return None;
        }
        let uri = self.parsed.expand(&params.into()).ok()?;
        // Not every template gives the values back.
        let Lookup::Match { params: again, .. } = self.parsed.match_uri(&uri).ok()? else { return None };
        let normal = uri::normalize(&uri, uri::MAX_URI).ok()?;
        (again == *params).then(|| normal.into_owned())
    }

    /// The URI `normal`, which this template serves, with its query in the order of the template's variables and
    /// without names that it ignores; `None` if it has that form already.
    pub fn ordered_query(&self, normal: &str) -> Option<String> {
        query::ordered(self.parsed.as_str(), self.takes_any_name(), normal)
    }

    /// Whether a map takes the names of a query that no other variable has.
    fn takes_any_name(&self) -> bool {
        self.parsed.variables().iter().any(|variable| variable.kind == Kind::Map)
    }

    /// The completer of the variable `name`; `None` if the template has no such variable.
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

    /// Whether any of its variables has a completer.
    pub fn has_completers(&self) -> bool {
        let has = |variable: &TemplateVariable| {
            !matches!(self.completer(&variable.name), None | Some(Completer::Nothing))
        };
        self.parsed.variables().iter().any(has)
    }

    pub(super) fn checks(&self) -> &[ParameterCheck] {
        &self.checks
    }

    fn parameter(&self, name: &str) -> Option<&Parameter> {
        self.template.parameters.iter().find(|parameter| parameter.name == name)
    }
}

/// The source of completion values for a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completer<'a> {
    /// A handler.
    Handler,
    /// The values that the parameter allows, in their declared order.
    Values(&'a [String]),
    /// The fixed values of the parameter's type.
    Words(&'static [&'static str]),
    /// No values are suggested.
    Nothing,
}

/// A template in `resources/templates/list`: registered here, or passed on from another server.
#[derive(Clone, Copy, Debug)]
pub enum ListedTemplate<'c> {
    /// A registered template.
    Own(&'c TemplateEntry),
    /// A template of another server that is only listed.
    Foreign(&'c ForeignTemplate),
}

/// An item of a list.
pub(super) trait CatalogItem<'c>: Copy {
    /// The sets of fields that it is encoded with.
    type Fields: Copy;
    /// Its sort key.
    fn key(self) -> &'c str;
    /// The item, encoded.
    fn encoded(self, fields: Self::Fields) -> &'c [u8];
}

impl<'c> CatalogItem<'c> for &'c ResourceEntry {
    type Fields = FieldSet;

    fn key(self) -> &'c str {
        &self.canonical
    }

    fn encoded(self, fields: FieldSet) -> &'c [u8] {
        self.encoded.get(fields.index(), |out| encode_item(&self.resource, fields, out))
    }
}

impl<'c> CatalogItem<'c> for ListedTemplate<'c> {
    type Fields = FieldSet;

    fn key(self) -> &'c str {
        match self {
            Self::Own(entry) => &entry.template.uri_template,
            Self::Foreign(foreign) => &foreign.key,
        }
    }

    fn encoded(self, fields: FieldSet) -> &'c [u8] {
        match self {
            Self::Own(entry) => entry.encoded.get(fields.index(), |out| encode_template(entry, fields, out)),
            Self::Foreign(foreign) => foreign.json.as_bytes(),
        }
    }
}

/// The encoded item for each of `N` sets of fields, filled when the item is first listed.
///
/// Boxed, because most items are never listed, or long after they were registered.
#[derive(Debug, Default)]
pub(super) struct EncodedItem<const N: usize = { FieldSet::COUNT }>(OnceLock<Box<[ItemText; N]>>);

/// An item, encoded with one set of fields.
type ItemText = OnceLock<Box<[u8]>>;

/// The encoded item of a tool.
pub(super) type EncodedTool = EncodedItem<{ ToolFields::COUNT }>;

impl<const N: usize> EncodedItem<N> {
    /// The item with the set of fields that has this `index`.
    pub(super) fn get(&self, index: usize, encode: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let encode = || {
            let mut out = Vec::new();
            encode(&mut out);
            out.into_boxed_slice()
        };
        let sets = self.0.get_or_init(|| Box::new([const { OnceLock::new() }; N]));
        sets.get(index).map_or(&[], |item| item.get_or_init(encode))
    }
}
