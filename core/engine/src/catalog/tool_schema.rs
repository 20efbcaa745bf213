//! The JSON schemas of tools, as every revision accepts them.
//!
//! Law: a schema keeps its meaning and the order of its members. Only its white space is removed, and a property with
//! the schema `true` or `false` gets the equal object, because revisions before 2026-07-28 accept objects only.

use crate::jsonrpc::{Json, JsonKind, ObjectWriter, object};
use crate::meta;

/// Members of the root that a schema around it takes over, because references start at the root.
const HOISTED: [&str; 3] = ["$schema", "$defs", "definitions"];
/// Lets a gateway check an argument against a header, which this library does not send or check.
const HEADER: &str = "x-mcp-header";

/// The schema of a tool's structured result.
#[derive(Debug)]
pub(super) struct ToolSchema {
    /// As it was registered.
    own: String,
    /// A schema of an object: the same one, or one with the member `result`.
    object: Option<String>,
    is_wrapped: bool,
}

impl ToolSchema {
    /// Checks the schema of a result. The error is the expected value.
    pub(super) fn output(text: &str, nesting: usize) -> Result<Self, &'static str> {
        let own = checked(text, nesting)?;
        let root = Json::parse(own.as_bytes(), nesting).and_then(Json::object).ok_or(OBJECT)?;
        if is_object_type(root.get("type")) {
            return Ok(Self { own, object: None, is_wrapped: false });
        }
        if root.get("$ref").is_some_and(|reference| names_object(reference, &own)) {
            let object = written(|schema| {
                schema.str("type", "object");
                let rest = root.iter().filter(|(name, _)| name != "type");
                rest.for_each(|(name, value)| schema.named(&name).extend_from_slice(value.raw().as_bytes()));
            });
            return Ok(Self { object: Some(object), own, is_wrapped: false });
        }
        let object = written(|schema| {
            schema.str("type", "object");
            schema.object("properties", |properties| {
                properties.object("result", |result| {
                    for (name, value) in root.iter().filter(|(name, _)| !HOISTED.contains(&&**name)) {
                        if name == "$ref" {
                            moved_reference(value, result.named(&name))
                        } else {
                            moved(value, result.named(&name))
                        }
                    }
                });
            });
            schema.array("required", |required| required.str("result"));
            for (name, value) in root.iter().filter(|(name, _)| HOISTED.contains(&&**name)) {
                moved(value, schema.named(&name));
            }
        });
        Ok(Self { object: Some(object), own, is_wrapped: true })
    }

    /// The schema: as registered, or one of an object.
    pub(super) fn text(&self, of_object: bool) -> &str {
        self.object.as_deref().filter(|_| of_object).unwrap_or(&self.own)
    }

    /// Whether the schema of an object has the registered one as that of its member `result`.
    pub(super) fn is_wrapped(&self) -> bool {
        self.is_wrapped
    }
}

const OBJECT: &str = "the text of a JSON object";

/// Checks the schema of arguments. The error is the expected value.
pub(super) fn input(text: &str, nesting: usize) -> Result<String, &'static str> {
    let schema = checked(text, nesting)?;
    let root = Json::parse(schema.as_bytes(), nesting).and_then(Json::object);
    match root.and_then(|root| root.get("type")).filter(|kind| is_object_type(Some(*kind))) {
        Some(_) => Ok(schema),
        None => Err(r#"a JSON schema with "type": "object""#),
    }
}

/// Returns a schema without white space and with objects as the schemas of properties.
fn checked(text: &str, nesting: usize) -> Result<String, &'static str> {
    let schema = meta::object_text(text, nesting).ok_or(OBJECT)?;
    let parsed = Json::parse(schema.as_bytes(), nesting).ok_or(OBJECT)?;
    if header_in(parsed).is_some() {
        return Err("a schema without x-mcp-header, which this library does not check");
    }
    let root = parsed.object().ok_or(OBJECT)?;
    let properties = match root.get("properties") {
        None => None,
        Some(properties) => Some(properties.object().ok_or("properties as a JSON object")?),
    };
    let properties = properties.into_iter().flat_map(|properties| properties.iter().collect::<Vec<_>>());
    let properties: Vec<_> = properties.collect();
    let is_schema = |value: &Json<'_>| matches!(value.kind(), JsonKind::Object | JsonKind::Bool);
    if !properties.iter().all(|(_, value)| is_schema(value)) {
        return Err("a schema for each property");
    }
    if properties.iter().all(|(_, value)| value.kind() == JsonKind::Object) {
        return Ok(schema);
    }
    Ok(written(|out| {
        for (name, value) in root.iter() {
            if name != "properties" {
                out.named(&name).extend_from_slice(value.raw().as_bytes());
                continue;
            }
            object(out.named(&name), |out| {
                for (name, value) in &properties {
                    let text = match value.as_bool() {
                        Some(true) => "{}",
                        Some(false) => r#"{"not":{}}"#,
                        None => value.raw(),
                    };
                    out.named(name).extend_from_slice(text.as_bytes());
                }
            });
        }
    }))
}

/// The place of the first member of a schema, except the name of a property, that is [`HEADER`], such as
/// `properties.day.x-mcp-header`, and its value.
pub(super) fn header(text: &str, nesting: usize) -> Option<(String, String)> {
    let (path, value) = header_in(Json::parse(text.as_bytes(), nesting)?)?;
    Some((path.into_iter().rev().collect::<Vec<_>>().join("."), value))
}

/// The names on the way to [`HEADER`], the last one first.
fn header_in(schema: Json<'_>) -> Option<(Vec<String>, String)> {
    let below = |name: String, value: Json<'_>| {
        let (mut path, found) = header_in(value)?;
        path.push(name);
        Some((path, found))
    };
    match schema.kind() {
        JsonKind::Array => schema.array()?.enumerate().find_map(|(at, item)| below(at.to_string(), item)),
        JsonKind::Object => schema.object()?.iter().find_map(|(name, value)| {
            let of_names = matches!(&*name, "properties" | "$defs" | "definitions" | "patternProperties");
            match value.object().filter(|_| of_names) {
                Some(named) => named.iter().find_map(|(own, value)| {
                    let (mut path, found) = below(own.into_owned(), value)?;
                    path.push(name.to_string());
                    Some((path, found))
                }),
                None if name == HEADER => Some((vec![HEADER.to_owned()], value.raw().to_owned())),
                None => below(name.into_owned(), value),
            }
        }),
        _ => None,
    }
}

fn is_object_type(kind: Option<Json<'_>>) -> bool {
    kind.and_then(Json::as_str).as_deref() == Some("object")
}

/// Whether `reference` names a definition of `schema` that is of an object.
fn names_object(reference: Json<'_>, schema: &str) -> bool {
    let Some(reference) = reference.as_str() else { return false };
    let Some((folder, name)) = reference.strip_prefix("#/").and_then(|path| path.split_once('/')) else {
        return false;
    };
    let root = Json::parse(schema.as_bytes(), usize::MAX).and_then(Json::object);
    let definition = root.and_then(|root| root.get(folder)?.object()?.get(name)?.object());
    definition.is_some_and(|definition| is_object_type(definition.get("type")))
}

/// Copies a part of a schema that moves into the member `result`, with its references to the root.
fn moved(value: Json<'_>, out: &mut Vec<u8>) {
    match value.kind() {
        JsonKind::Object if value.raw().contains("\"$ref\"") => {
            let members = value.object();
            object(out, |writer| {
                for (name, value) in members.iter().flat_map(|members| members.iter()) {
                    if name == "$ref" {
                        moved_reference(value, writer.named(&name))
                    } else {
                        moved(value, writer.named(&name))
                    }
                }
            });
        }
        JsonKind::Array if value.raw().contains("\"$ref\"") => {
            crate::jsonrpc::array(out, |writer| {
                value.array().into_iter().flatten().for_each(|item| moved(item, writer.value()));
            });
        }
        _ => out.extend_from_slice(value.raw().as_bytes()),
    }
}

fn moved_reference(value: Json<'_>, out: &mut Vec<u8>) {
    let text = value.as_str().unwrap_or_default();
    let stays = |rest: &str| {
        HOISTED.iter().any(|name| rest.strip_prefix('/').is_some_and(|rest| rest.starts_with(name)))
    };
    match text.strip_prefix('#').filter(|rest| (rest.is_empty() || rest.starts_with('/')) && !stays(rest)) {
        Some(rest) => crate::json_text::escape_into(&format!("#/properties/result{rest}"), out),
        None => out.extend_from_slice(value.raw().as_bytes()),
    }
}

fn written(body: impl FnOnce(&mut ObjectWriter<'_>)) -> String {
    let mut out = Vec::new();
    object(&mut out, body);
    String::from_utf8(out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn an_input_schema_is_of_an_object() {
        let text =
            r#"{ "type": "object", "properties": { "b": true, "a": { "type": "string" }, "c": false } }"#;
        let expected = r#"{"type":"object","properties":{"b":{},"a":{"type":"string"},"c":{"not":{}}}}"#;
        assert_eq!(input(text, 8).unwrap(), expected);
        for wrong in ["", "[]", "true", "{}", r#"{"type":"array"}"#, r#"{"type":"object","properties":[]}"#] {
            assert!(input(wrong, 8).is_err(), "{wrong}");
        }
        assert!(input(r#"{"type":"object","properties":{"a":1}}"#, 8).is_err());
    }

    #[test]
    fn a_header_of_a_gateway_is_refused_but_not_a_property_of_that_name() {
        let header = r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}"#;
        assert!(input(header, 8).unwrap_err().contains("x-mcp-header"));
        let place = super::header(header, 8).unwrap();
        assert_eq!(place, ("properties.a.x-mcp-header".into(), "\"A\"".into()));
        let deep = r#"{"type":"object","anyOf":[{},{"items":{"x-mcp-header":1}}]}"#;
        assert_eq!(super::header(deep, 8).unwrap().0, "anyOf.1.items.x-mcp-header");
        let property = r#"{"type":"object","properties":{"x-mcp-header":{"type":"string"}}}"#;
        assert!(input(property, 8).is_ok());
    }

    #[test]
    fn an_output_schema_of_another_type_is_that_of_a_member() {
        let own = r##"{"$defs":{"N":{"type":"object"}},"type":"array","items":{"anyOf":[{"$ref":"#/$defs/N"},{"$ref":"#"}]}}"##;
        let schema = ToolSchema::output(own, 9).unwrap();
        assert!(schema.is_wrapped());
        assert_eq!(schema.text(false), own);
        let expected = json!({
            "type": "object",
            "properties": { "result": { "type": "array", "items": {
                "anyOf": [{ "$ref": "#/$defs/N" }, { "$ref": "#/properties/result" }] } } },
            "required": ["result"],
            "$defs": { "N": { "type": "object" } },
        });
        assert_eq!(parsed(schema.text(true)), expected);
    }

    #[test]
    fn an_output_schema_that_refers_to_an_object_stays() {
        let own = r##"{"$ref":"#/$defs/N","$defs":{"N":{"type":"object"}}}"##;
        let schema = ToolSchema::output(own, 9).unwrap();
        assert!(!schema.is_wrapped());
        assert_eq!(parsed(schema.text(true))["type"], "object");
        assert!(parsed(schema.text(false)).get("type").is_none());
    }
}
