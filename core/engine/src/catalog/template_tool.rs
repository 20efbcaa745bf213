//! A template as a tool: its variables are the arguments, and a call reads the resource at the expanded URI.
//!
//! Law: a value becomes the one text that the variable's type has for it. Everything else is left to the read, which
//! checks the URI as for every other client.

use super::encode::{write_schema, write_str};
use super::items::TemplateEntry;
use crate::jsonrpc::{Json, JsonKind, ObjectWriter, object};
use crate::resource::{ParameterCheck, ParameterKind, Template, Tool, ToolAnnotations};
use mcp_resources_template::{Kind, UriTemplate, Value, Values};
use std::borrow::Cow;

/// The tool of a template that names one. A name that is empty stands for that of the template.
pub(super) fn tool(template: &Template, parsed: &UriTemplate, checks: &[ParameterCheck]) -> Option<Tool> {
    let details = &template.details;
    let name = template.tool.as_deref()?;
    let name = if name.is_empty() { details.name.as_deref().unwrap_or_default() } else { name };
    let mut tool = Tool::new(name).input_schema(schema(parsed, checks)).annotations(ToolAnnotations {
        read_only: Some(true),
        open_world: Some(false),
        ..ToolAnnotations::default()
    });
    tool.title.clone_from(&details.title);
    tool.description.clone_from(&details.description);
    tool.scopes.clone_from(&details.scopes);
    Some(tool)
}

/// The URI for the arguments of a call.
///
/// # Errors
/// A sentence for the model, without the name of the tool.
pub(crate) fn expanded(entry: &TemplateEntry, arguments: Option<Json<'_>>) -> Result<String, String> {
    let variables = entry.parsed.variables();
    let kind_of = |name: &str| {
        let mut checks = entry.checks().iter().map(ParameterCheck::parameter);
        checks.find(|parameter| parameter.name == name).map_or(ParameterKind::String, |own| own.kind)
    };
    let mut values = Values::new();
    for (name, value) in arguments.and_then(Json::object).iter().flat_map(|given| given.iter()) {
        let Some(variable) = variables.iter().find(|variable| *variable.name == *name) else {
            let known: Vec<_> = variables.iter().map(|variable| &*variable.name).collect();
            return Err(format!("{name}: no such argument; expected {}", known.join(", ")));
        };
        if value != Json::NULL {
            let value = text_of(value, variable.kind, kind_of(&name));
            values.insert(
                name.into_owned(),
                value.ok_or_else(|| format!("{}: {}", variable.name, expected(variable.kind)))?,
            );
        }
    }
    let is_required = |name: &str, required: bool| {
        required
            || entry
                .checks()
                .iter()
                .any(|check| check.parameter().required && check.parameter().name == *name)
    };
    let mut required = variables.iter().filter(|variable| is_required(&variable.name, variable.required));
    if let Some(missing) = required.find(|variable| values.get(&variable.name).is_none()) {
        return Err(format!("{}: it is missing", missing.name));
    }
    entry.parsed.expand(&values).map_err(|error| error.to_string())
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Scalar => "expected a single value",
        Kind::List => "expected a list of values",
        Kind::Map => "expected an object of values",
    }
}

/// A value as a variable has it.
fn text_of(value: Json<'_>, kind: Kind, of: ParameterKind) -> Option<Value<'static>> {
    match kind {
        Kind::Scalar => scalar(value, of).map(Value::from),
        Kind::List => Some(Value::List(
            value.array()?.map(|item| scalar(item, of).map(Cow::Owned)).collect::<Option<_>>()?,
        )),
        Kind::Map => {
            let members = value.object()?;
            let pair = |(name, value): (Cow<'_, str>, Json<'_>)| {
                Some((Cow::Owned(name.into_owned()), Cow::Owned(scalar(value, of)?)))
            };
            Some(Value::Map(members.iter().map(pair).collect::<Option<_>>()?))
        }
    }
}

fn scalar(value: Json<'_>, kind: ParameterKind) -> Option<String> {
    let text = match value.kind() {
        JsonKind::String => value.as_str()?.into_owned(),
        JsonKind::Number | JsonKind::Bool => value.raw().to_owned(),
        JsonKind::Null | JsonKind::Array | JsonKind::Object => return None,
    };
    Some(kind.canonical(&text).unwrap_or(text))
}

/// The schema of the variables.
fn schema(parsed: &UriTemplate, checks: &[ParameterCheck]) -> String {
    let check_of = |name: &str| checks.iter().find(|check| check.parameter().name == name);
    let mut out = Vec::new();
    object(&mut out, |schema| {
        schema.str("type", "object");
        schema.object("properties", |properties| {
            for variable in parsed.variables() {
                let check = check_of(&variable.name);
                object(properties.named(&variable.name), |property| {
                    write_property(property, variable.kind, check);
                });
            }
        });
        let is_required = |name: &str, required: bool| {
            required || check_of(name).is_some_and(|check| check.parameter().required)
        };
        let names =
            parsed.variables().iter().filter(|variable| is_required(&variable.name, variable.required));
        let names: Vec<_> = names.map(|variable| &variable.name).collect();
        if !names.is_empty() {
            schema.array("required", |required| names.iter().for_each(|name| required.str(name)));
        }
        schema.bool("additionalProperties", false);
    });
    String::from_utf8(out).unwrap_or_default()
}

fn write_property(property: &mut ObjectWriter<'_>, kind: Kind, check: Option<&ParameterCheck>) {
    let write = |object: &mut ObjectWriter<'_>| match check {
        Some(check) => write_schema(object, check),
        None => object.str("type", "string"),
    };
    match kind {
        Kind::Scalar => write(property),
        Kind::List => {
            property.str("type", "array");
            property.object("items", write);
        }
        Kind::Map => {
            property.str("type", "object");
            property.object("additionalProperties", write);
        }
    }
    let description = check.and_then(|check| check.parameter().description.as_deref());
    write_str(property, "description", description);
}
