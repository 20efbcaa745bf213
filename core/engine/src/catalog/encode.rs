//! List items as JSON, for each set of fields that revisions share.
//!
//! Law: only [`FieldSet`] decides which fields are written. Absent values are omitted, never written as null.

use crate::catalog::items::TemplateEntry;
use crate::jsonrpc::{ArrayWriter, Json, ObjectWriter, object};
use crate::meta;
use crate::resource::{Annotations, Details, Icon, ParameterCheck, ParameterKind, Resource};
use crate::version::FieldSet;
use mcp_resources_template::{Kind, UriTemplate};

/// Appends a resource as a list item. It must have passed [`check_resource`](super::check_resource).
pub fn encode_item(resource: &Resource, fields: FieldSet, out: &mut Vec<u8>) {
    object(out, |item| write_item(item, resource, fields));
}

/// Writes the members of a resource as a list item.
pub(crate) fn write_item(item: &mut ObjectWriter<'_>, resource: &Resource, fields: FieldSet) {
    item.str("uri", &resource.uri);
    write_details(item, &resource.details, &resource.uri, fields);
    if let Some(size) = resource.size {
        item.u64("size", size);
    }
    write_meta(item, &resource.details, fields, |_| {});
}

/// Appends the member `icons` of list items and `serverInfo`, unless there are none.
pub fn write_icons(object: &mut ObjectWriter<'_>, icons: &[Icon]) {
    if !icons.is_empty() {
        object.array("icons", |array| {
            icons.iter().for_each(|icon| array.object(|object| write_icon(object, icon)))
        });
    }
}

/// Appends a template as a list item.
pub(super) fn encode_template(entry: &TemplateEntry, fields: FieldSet, out: &mut Vec<u8>) {
    let template = &entry.template;
    object(out, |item| {
        item.str("uriTemplate", &template.uri_template);
        write_details(item, &template.details, &template.uri_template, fields);
        write_meta(item, &template.details, fields, |meta| {
            meta.object_unless_empty(meta::PARAMETERS, |parameters| {
                for check in entry.checks() {
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

pub(crate) fn write_annotations(object: &mut ObjectWriter<'_>, annotations: &Annotations, fields: FieldSet) {
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

/// Writes `_meta`: the members given at registration, then those of this library.
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

/// The text between the braces of a checked JSON object.
pub(super) fn members_of(object: Option<&str>) -> &[u8] {
    let object = object.unwrap_or_default();
    object.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or_default().as_bytes()
}

fn write_parameter(parameters: &mut ObjectWriter<'_>, check: &ParameterCheck, parsed: &UriTemplate) {
    let parameter = check.parameter();
    let variable = parsed.variables().iter().find(|variable| *variable.name == *parameter.name);
    let kind = variable.map_or(Kind::Scalar, |variable| variable.kind);
    let values = &parameter.values;
    object(parameters.named(&parameter.name), |object| {
        match kind {
            Kind::Scalar => write_schema(object, check, values),
            Kind::List => {
                object.str("type", "array");
                object.object("items", |items| write_schema(items, check, values));
            }
            Kind::Map => {
                object.str("type", "object");
                object.object("additionalProperties", |object| write_schema(object, check, values));
            }
        }
        write_str(object, "description", parameter.description.as_deref());
        if parameter.required || variable.is_some_and(|variable| variable.required) {
            object.bool("required", true);
        }
    });
}

pub(super) fn write_schema(object: &mut ObjectWriter<'_>, check: &ParameterCheck, values: &[String]) {
    let parameter = check.parameter();
    let (kind, format) = parameter.kind.schema();
    object.str("type", kind);
    write_str(object, "format", format);
    if !values.is_empty() {
        object
            .array("enum", |array| values.iter().for_each(|value| write_value(array, parameter.kind, value)));
    }
    write_str(object, "pattern", check.pattern());
}

/// Writes a value of an `enum` in its own JSON type if its text has one, else as a string.
fn write_value(array: &mut ArrayWriter<'_>, kind: ParameterKind, value: &str) {
    let may_be_json = matches!(kind, ParameterKind::Integer | ParameterKind::Number | ParameterKind::Boolean);
    let is_json = may_be_json && Json::parse(value.as_bytes(), 0).is_some();
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

pub(super) fn write_str(object: &mut ObjectWriter<'_>, name: &'static str, value: Option<&str>) {
    if let Some(value) = value {
        object.str(name, value);
    }
}
