//! A template as a tool: its variables are the arguments, and a call reads the resource at the expanded URI.
//!
//! Law: a value becomes the one text that the variable's type has for it. Everything else is left to the read, which
//! checks the URI as for every other client.

use super::encode::{write_schema, write_str};
use super::items::TemplateEntry;
use crate::jsonrpc::{Json, JsonKind, ObjectWriter, object};
use crate::resource::{ParameterCheck, ParameterKind, ReadTool, Template, Tool, ToolAnnotations};
use mcp_resources_template::{Kind, UriTemplate, Value, Values};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The input schema of a tool without arguments.
pub(super) const NO_ARGUMENTS: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

/// The values of arguments that a principal may know about, by name. Arguments without known values are absent.
pub type VisibleValues = BTreeMap<String, Vec<String>>;

/// The template that a tool reads, with what the tool says about its variables.
#[derive(Clone, Debug)]
pub(crate) struct ToolTemplate {
    parsed: UriTemplate,
    /// Those of the tool, then those of the template.
    checks: Vec<ParameterCheck>,
}

impl ToolTemplate {
    pub(super) fn new(entry: &TemplateEntry, own: Vec<ParameterCheck>) -> Self {
        let is_new = |check: &&ParameterCheck| {
            own.iter().all(|other| other.parameter().name != check.parameter().name)
        };
        let others: Vec<_> = entry.checks().iter().filter(is_new).cloned().collect();
        Self { parsed: entry.parsed.clone(), checks: own.into_iter().chain(others).collect() }
    }

    /// All values that are few enough to be named.
    pub(crate) fn all(&self) -> VisibleValues {
        self.visible(&mut |_, _| true)
    }

    /// The values for which `sees` is true, among those that are few enough to be named. `sees` gets the variable and
    /// the value.
    pub(crate) fn visible(&self, sees: &mut dyn FnMut(&str, &str) -> bool) -> VisibleValues {
        let known = self.checks.iter().map(ParameterCheck::parameter);
        let known = known.filter(|own| (1..=ReadTool::MOST_VALUES).contains(&own.values.len()));
        known
            .map(|own| {
                let seen = own.values.iter().filter(|value| sees(&own.name, value));
                (own.name.clone(), seen.cloned().collect())
            })
            .collect()
    }

    pub(crate) fn parsed(&self) -> &UriTemplate {
        &self.parsed
    }

    /// The input schema with these values.
    pub(super) fn schema(&self, values: &VisibleValues) -> String {
        schema(&self.parsed, &self.checks, Some(values))
    }
}

/// The tool of a template that names one. A name that is empty stands for that of the template.
pub(super) fn tool(template: &Template, parsed: &UriTemplate, checks: &[ParameterCheck]) -> Option<Tool> {
    let details = &template.details;
    let name = template.tool.as_deref()?;
    let name = if name.is_empty() { details.name.as_deref().unwrap_or_default() } else { name };
    let mut tool = Tool::new(name).input_schema(schema(parsed, checks, None)).annotations(ToolAnnotations {
        read_only: Some(true),
        open_world: Some(false),
        ..ToolAnnotations::default()
    });
    tool.title.clone_from(&details.title);
    tool.description.clone_from(&details.description);
    tool.scopes.clone_from(&details.scopes);
    Some(tool)
}

/// The URI for the arguments of a call. `own` is what the tool says about the variables, with the values that the
/// principal may know about.
///
/// # Errors
/// A sentence for the model, without the name of the tool.
pub(crate) fn expanded(
    entry: &TemplateEntry,
    own: Option<(&ToolTemplate, &VisibleValues)>,
    arguments: Option<Json<'_>>,
) -> Result<String, String> {
    let variables = entry.parsed.variables();
    let checks = own.map_or(entry.checks(), |(template, _)| &template.checks);
    let kind_of = |name: &str| {
        let mut checks = checks.iter().map(ParameterCheck::parameter);
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
    for (name, known) in own.into_iter().flat_map(|(_, values)| values) {
        match (values.get(name), known.as_slice()) {
            (None, [only]) => values.insert(name.clone(), only.clone()),
            (Some(Value::Scalar(given)), known) if !known.iter().any(|own| own == given) => {
                return Err(format!("{name}: {}", one_of(known)));
            }
            _ => {}
        }
    }
    let is_required = |name: &str, required: bool| {
        required || checks.iter().any(|check| check.parameter().required && check.parameter().name == *name)
    };
    let mut required = variables.iter().filter(|variable| is_required(&variable.name, variable.required));
    if let Some(missing) = required.find(|variable| values.get(&variable.name).is_none()) {
        return Err(format!("{}: it is missing", missing.name));
    }
    entry.parsed.expand(&values).map_err(|error| error.to_string())
}

fn one_of(known: &[String]) -> String {
    const SHOWN: usize = 20;
    let rest = if known.len() > SHOWN { ", …" } else { "" };
    format!("expected one of: {}{rest}", known.get(..SHOWN).unwrap_or(known).join(", "))
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

/// The schema of the variables, with the known `values` instead of those of the checks.
fn schema(parsed: &UriTemplate, checks: &[ParameterCheck], values: Option<&VisibleValues>) -> String {
    let check_of = |name: &str| checks.iter().find(|check| check.parameter().name == name);
    let mut out = Vec::new();
    object(&mut out, |schema| {
        schema.str("type", "object");
        schema.object("properties", |properties| {
            for variable in parsed.variables() {
                let check = check_of(&variable.name);
                object(properties.named(&variable.name), |property| {
                    write_property(property, variable.kind, check, values);
                });
            }
        });
        let has_only_one =
            |name: &str| values.and_then(|values| values.get(name)).is_some_and(|known| known.len() == 1);
        let is_required = |name: &str, required: bool| {
            (required || check_of(name).is_some_and(|check| check.parameter().required))
                && !has_only_one(name)
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

fn write_property(
    property: &mut ObjectWriter<'_>,
    kind: Kind,
    check: Option<&ParameterCheck>,
    values: Option<&VisibleValues>,
) {
    let write = |object: &mut ObjectWriter<'_>| match (check, values) {
        (Some(check), None) => write_schema(object, check, &check.parameter().values),
        (Some(check), Some(values)) => {
            let known = values.get(&check.parameter().name);
            write_schema(object, check, known.map_or(&[], Vec::as_slice));
        }
        (None, _) => object.str("type", "string"),
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
