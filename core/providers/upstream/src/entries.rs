//! Members of other servers' lists whose type is wrong: a client that checks a whole page would lose the entries of all servers.

use mcp_resources_engine::jsonrpc::{Json, JsonKind, object};

/// The entry `json` without the optional members whose type is wrong; with its `id` as its `name`, which every entry must have,
/// if it has none. An entry without mistakes stays as it is. `None` for a tool without a schema: it could not be called.
pub(crate) fn tidied(json: Json<'_>, list: &str, id: &str) -> Option<String> {
    let members = json.object()?;
    let has_name = members.get("name").is_some_and(is_text);
    if list == "tools" && !members.get("inputSchema").is_some_and(is_schema) {
        return None;
    }
    if has_name && members.iter().all(|(name, value)| has_right_type(&name, value)) {
        return Some(json.raw().to_owned());
    }
    let mut out = Vec::with_capacity(json.raw().len() + id.len());
    object(&mut out, |writer| {
        if !has_name {
            writer.str("name", id);
        }
        for (name, value) in members.iter().filter(|(name, value)| has_right_type(name, *value)) {
            writer.named(&name).extend_from_slice(value.raw().as_bytes());
        }
    });
    String::from_utf8(out).ok()
}

fn has_right_type(name: &str, value: Json<'_>) -> bool {
    match name {
        "name" | "title" | "description" | "mimeType" => is_text(value),
        "size" => value.kind() == JsonKind::Number,
        "_meta" | "outputSchema" | "execution" => is_object(value),
        "annotations" => {
            value.object().is_some_and(|hints| hints.iter().all(|(name, hint)| is_hint(&name, hint)))
        }
        "icons" => all(value, is_icon),
        "arguments" => {
            all(value, |argument| argument.object().is_some_and(|of| of.get("name").is_some_and(is_text)))
        }
        _ => true,
    }
}

fn is_text(value: Json<'_>) -> bool {
    value.kind() == JsonKind::String
}

fn is_object(value: Json<'_>) -> bool {
    value.kind() == JsonKind::Object
}

/// Whether a tool may have this schema: its arguments are an object.
fn is_schema(value: Json<'_>) -> bool {
    let kind = value.object().and_then(|schema| schema.get("type")?.as_str());
    kind.as_deref() == Some("object")
}

fn all(array: Json<'_>, is_right: impl Fn(Json<'_>) -> bool) -> bool {
    array.array().is_some_and(|mut elements| elements.all(is_right))
}

fn is_icon(icon: Json<'_>) -> bool {
    let Some(members) = icon.object() else { return false };
    members.get("src").is_some_and(is_text)
        && members.iter().all(|(name, value)| match &*name {
            "mimeType" | "theme" => is_text(value),
            "sizes" => all(value, is_text),
            _ => true,
        })
}

fn is_hint(name: &str, hint: Json<'_>) -> bool {
    match name {
        "title" | "lastModified" => is_text(hint),
        "readOnlyHint" | "destructiveHint" | "idempotentHint" | "openWorldHint" => {
            hint.kind() == JsonKind::Bool
        }
        "priority" => hint.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
        "audience" => all(hint, is_text),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_a_wrong_type_are_left_out() {
        let icons = r#"{"uri":"a:b","name":"b","icons":[{"src":"x","sizes":["any"],"theme":"new"}],"odd":null,"size":1.50}"#;
        for (given, expected) in [
            (icons, icons),
            (r#"{"uri":"a:b"}"#, r#"{"name":"a:b","uri":"a:b"}"#),
            (r#"{"uri":"a:b","name":7,"title":null}"#, r#"{"name":"a:b","uri":"a:b"}"#),
            (r#"{"uri":"a:b","name":"b","icons":"red"}"#, r#"{"uri":"a:b","name":"b"}"#),
            (r#"{"uri":"a:b","name":"b","icons":[{"src":7}]}"#, r#"{"uri":"a:b","name":"b"}"#),
            (
                r#"{"uri":"a:b","name":"b","icons":[{"src":"x","sizes":"any"}]}"#,
                r#"{"uri":"a:b","name":"b"}"#,
            ),
            (r#"{"uri":"a:b","name":"b","_meta":null,"annotations":[]}"#, r#"{"uri":"a:b","name":"b"}"#),
            (r#"{"uri":"a:b","name":"b","annotations":{"priority":2}}"#, r#"{"uri":"a:b","name":"b"}"#),
        ] {
            let json = Json::parse(given.as_bytes(), 16).unwrap();
            assert_eq!(tidied(json, "resources", "a:b").as_deref(), Some(expected));
        }
    }

    #[test]
    fn a_tool_without_a_schema_is_none() {
        let tool = |text: &'static str| tidied(Json::parse(text.as_bytes(), 16).unwrap(), "tools", "t");
        assert_eq!(tool(r#"{"name":"t","inputSchema":7}"#), None);
        assert_eq!(tool(r#"{"name":"t"}"#), None);
        assert_eq!(tool(r#"{"name":"t","inputSchema":{"type":"string"}}"#), None);
        assert!(tool(r#"{"name":"t","inputSchema":{"type":"object"}}"#).is_some());
    }
}
