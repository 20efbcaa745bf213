//! Entries of the catalogue and the list items they are encoded as: once for each set of fields that revisions share.
//!
//! Law: only [`FieldSet`] decides which field is written; a page is a concatenation of what is made here (DEC-11).

use crate::error::ReadError;
use crate::jsonrpc::{ArrayWriter, ObjectWriter, object};
use crate::meta;
use crate::resource::{
    Annotations, Details, Icon, Parameter, ParameterCheck, ParameterKind, Resource, Template,
};
use crate::template::{Kind, Params, UriTemplate, Variable};
use crate::version::FieldSet;
use std::sync::{Arc, OnceLock};

/// The author's function behind a resource or template, by number. Never reused.
pub type HandlerId = u32;

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
    checks: Vec<ParameterCheck>,
    encoded: Encoded,
}

impl TemplateEntry {
    pub(super) fn new(
        template: Template,
        parsed: UriTemplate,
        checks: Vec<ParameterCheck>,
        handler: HandlerId,
    ) -> Self {
        Self { template, parsed, handler, checks, encoded: Encoded::default() }
    }

    /// Checks the values of a match against what the author said of the variables (S-16). Linear in the values.
    ///
    /// # Errors
    /// [`ReadError::InvalidParameter`] for the first that is wrong.
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

/// What a list is made of.
pub(super) trait Item {
    /// What the list is sorted by.
    fn key(&self) -> &str;
    /// The encoded item.
    fn encoded(&self, fields: FieldSet) -> &[u8];
}

impl Item for ResourceEntry {
    fn key(&self) -> &str {
        &self.canonical
    }

    fn encoded(&self, fields: FieldSet) -> &[u8] {
        self.encoded.get(fields, |out| encode_item(&self.resource, fields, out))
    }
}

impl Item for TemplateEntry {
    fn key(&self) -> &str {
        &self.template.uri_template
    }

    fn encoded(&self, fields: FieldSet) -> &[u8] {
        self.encoded.get(fields, |out| encode_template(self, fields, out))
    }
}

/// Appends a resource as a list item. It must have passed [`check_resource`](super::check_resource).
pub fn encode_item(resource: &Resource, fields: FieldSet, out: &mut Vec<u8>) {
    object(out, |item| {
        item.str("uri", &resource.uri);
        write_details(item, &resource.details, &resource.uri, fields);
        if let Some(size) = resource.size {
            item.u64("size", size);
        }
        write_meta(item, &resource.details, fields, |_| {});
    });
}

/// Appends `icons`, as list items and `serverInfo` carry them; nothing if there are none.
pub fn write_icons(object: &mut ObjectWriter<'_>, icons: &[Icon]) {
    if !icons.is_empty() {
        object.array("icons", |array| {
            icons.iter().for_each(|icon| array.object(|object| write_icon(object, icon)))
        });
    }
}

fn encode_template(entry: &TemplateEntry, fields: FieldSet, out: &mut Vec<u8>) {
    let template = &entry.template;
    object(out, |item| {
        item.str("uriTemplate", &template.uri_template);
        write_details(item, &template.details, &template.uri_template, fields);
        write_meta(item, &template.details, fields, |meta| {
            meta.object_unless_empty(meta::PARAMETERS, |parameters| {
                for check in &entry.checks {
                    write_parameter(parameters, check, &entry.parsed);
                }
            });
        });
    });
}

fn write_details(item: &mut ObjectWriter<'_>, details: &Details, default_name: &str, fields: FieldSet) {
    item.str("name", details.name.as_deref().unwrap_or(default_name));
    if fields != FieldSet::Basic {
        write_str(item, "title", details.title.as_deref());
    }
    write_str(item, "description", details.description.as_deref());
    write_str(item, "mimeType", details.mime_type.as_deref());
    item.object_unless_empty("annotations", |object| write_annotations(object, &details.annotations, fields));
    if fields == FieldSet::Full {
        write_icons(item, &details.icons);
    }
}

fn write_annotations(object: &mut ObjectWriter<'_>, annotations: &Annotations, fields: FieldSet) {
    if !annotations.audience.is_empty() {
        object.array("audience", |array| {
            annotations.audience.iter().for_each(|audience| array.str(audience.as_str()));
        });
    }
    if let Some(priority) = annotations.priority {
        object.f64("priority", priority);
    }
    if fields != FieldSet::Basic {
        write_str(object, "lastModified", annotations.last_modified.as_deref());
    }
}

/// `_meta`: the author's own members, then those of this library.
fn write_meta(
    item: &mut ObjectWriter<'_>,
    details: &Details,
    fields: FieldSet,
    ours: impl FnOnce(&mut ObjectWriter<'_>),
) {
    if fields == FieldSet::Basic {
        return;
    }
    item.object_unless_empty("_meta", |meta| {
        meta.members(members_of(details.meta.as_deref()));
        if let extra @ [_, ..] = members_of(details.annotations.extra.as_deref()) {
            meta.object(meta::ANNOTATIONS, |object| object.members(extra));
        }
        ours(meta);
    });
}

/// What stands between the braces of a checked object.
fn members_of(object: Option<&str>) -> &[u8] {
    let object = object.unwrap_or_default();
    object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().as_bytes()
}

fn write_parameter(parameters: &mut ObjectWriter<'_>, check: &ParameterCheck, parsed: &UriTemplate) {
    let parameter = check.parameter();
    let variable = parsed.variables().iter().find(|variable| *variable.name == *parameter.name);
    let kind = variable.map_or(Kind::Scalar, |variable| variable.kind);
    parameters.object(&parameter.name, |object| {
        match kind {
            Kind::Scalar => write_schema(object, check),
            Kind::List => {
                object.str("type", "array");
                object.object("items", |items| write_schema(items, check));
            }
            Kind::Map => {
                object.str("type", "object");
                object.object("additionalProperties", |values| write_schema(values, check));
            }
        }
        write_str(object, "description", parameter.description.as_deref());
        if parameter.required || variable.is_some_and(|variable| variable.required) {
            object.bool("required", true);
        }
    });
}

fn write_schema(object: &mut ObjectWriter<'_>, check: &ParameterCheck) {
    let parameter = check.parameter();
    let (kind, format) = parameter.kind.schema();
    object.str("type", kind);
    write_str(object, "format", format);
    if !parameter.values.is_empty() {
        object.array("enum", |array| {
            parameter.values.iter().for_each(|value| write_value(array, parameter.kind, value))
        });
    }
    write_str(object, "pattern", check.pattern());
}

/// A value of an `enum` in its own JSON type, where the text of the URI is one.
fn write_value(array: &mut ArrayWriter<'_>, kind: ParameterKind, value: &str) {
    let is_json = match kind {
        ParameterKind::Integer | ParameterKind::Number => {
            !value.trim_start_matches('-').starts_with("0") || value == "0"
        }
        ParameterKind::Boolean => true,
        _ => false,
    };
    if is_json { array.value().extend_from_slice(value.as_bytes()) } else { array.str(value) }
}

fn write_icon(object: &mut ObjectWriter<'_>, icon: &Icon) {
    object.str("src", &icon.src);
    write_str(object, "mimeType", icon.mime_type.as_deref());
    if !icon.sizes.is_empty() {
        object.array("sizes", |array| icon.sizes.iter().for_each(|size| array.str(size)));
    }
    write_str(object, "theme", icon.theme.map(|theme| theme.as_str()));
}

fn write_str(object: &mut ObjectWriter<'_>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        object.str(name, value);
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
