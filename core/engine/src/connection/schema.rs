//! Validates form answers against the flat schemas of elicitation.

use serde_json::{Map, Value};

/// Checks the content of an accepted form. The error names the field and the expected value.
pub(super) fn check(schema: &Value, content: &Map<String, Value>) -> Result<(), String> {
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    for name in required.filter_map(Value::as_str) {
        if !content.contains_key(name) {
            return Err(format!("{name} is missing"));
        }
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, value) in content {
        if let Some(property) = properties.get(name) {
            check_value(property, value).map_err(|expected| format!("{name} must be {expected}"))?;
        }
    }
    Ok(())
}

fn check_value(property: &Value, value: &Value) -> Result<(), String> {
    match property.get("type").and_then(Value::as_str) {
        Some("string") => check_string(property, value),
        Some("integer") if value.as_f64().is_none_or(|number| number.fract() != 0.0) => {
            Err("an integer".into())
        }
        Some("integer" | "number") => check_number(property, value),
        Some("boolean") if !value.is_boolean() => Err("a boolean".into()),
        Some("array") => check_array(property, value),
        _ => Ok(()),
    }
}

fn check_string(property: &Value, value: &Value) -> Result<(), String> {
    let text = value.as_str().ok_or("a string")?;
    if let Some(allowed) = allowed(property) {
        return if allowed.contains(&text) { Ok(()) } else { Err(format!("one of {}", allowed.join(", "))) };
    }
    let length = text.chars().count() as u64;
    let at_least = property.get("minLength").and_then(Value::as_u64).unwrap_or(0);
    let at_most = property.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if (at_least..=at_most).contains(&length) { Ok(()) } else { Err("of the length asked for".into()) }
}

fn check_number(property: &Value, value: &Value) -> Result<(), String> {
    let number = value.as_f64().ok_or("a number")?;
    let at_least = property.get("minimum").and_then(Value::as_f64).unwrap_or(f64::NEG_INFINITY);
    let at_most = property.get("maximum").and_then(Value::as_f64).unwrap_or(f64::INFINITY);
    if (at_least..=at_most).contains(&number) { Ok(()) } else { Err("within the range asked for".into()) }
}

fn check_array(property: &Value, value: &Value) -> Result<(), String> {
    let items = value.as_array().ok_or("an array")?;
    let count = items.len() as u64;
    let at_least = property.get("minItems").and_then(Value::as_u64).unwrap_or(0);
    let at_most = property.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if !(at_least..=at_most).contains(&count) {
        return Err("of as many items as asked for".into());
    }
    let allowed = property.get("items").and_then(allowed);
    let fits = |item: &Value| {
        item.as_str().is_some_and(|text| allowed.as_ref().is_none_or(|allowed| allowed.contains(&text)))
    };
    if items.iter().all(fits) { Ok(()) } else { Err("a list of the choices offered".into()) }
}

/// The choices of an enum, in each of its notations.
fn allowed(property: &Value) -> Option<Vec<&str>> {
    if let Some(values) = property.get("enum").and_then(Value::as_array) {
        return Some(values.iter().filter_map(Value::as_str).collect());
    }
    let titled = property.get("oneOf").or_else(|| property.get("anyOf"))?.as_array()?;
    Some(titled.iter().filter_map(|choice| choice.get("const")?.as_str()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn verdict(property: &Value, value: &Value) -> Result<(), String> {
        let schema = json!({"type": "object", "properties": {"x": property}, "required": ["x"]});
        check(&schema, json!({"x": value}).as_object().unwrap())
    }

    #[test]
    fn each_primitive_is_checked_r_143() {
        for (property, good, bad) in [
            (json!({"type": "string", "maxLength": 2}), json!("äö"), json!("abc")),
            (json!({"type": "integer", "minimum": 1}), json!(1), json!(1.5)),
            (json!({"type": "number", "maximum": 2}), json!(1.5), json!(3)),
            (json!({"type": "boolean"}), json!(true), json!("true")),
            (json!({"type": "string", "enum": ["a"]}), json!("a"), json!("b")),
            (json!({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}), json!("a"), json!("A")),
            (
                json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
                json!(["a"]),
                json!(["b"]),
            ),
            (
                json!({"type": "array", "maxItems": 1, "items": {"type": "string"}}),
                json!([]),
                json!(["a", "b"]),
            ),
        ] {
            assert_eq!(verdict(&property, &good), Ok(()), "{property}");
            assert!(verdict(&property, &bad).is_err(), "{property}");
        }
    }

    #[test]
    fn a_missing_field_is_named() {
        let schema = json!({"properties": {}, "required": ["x"]});
        assert_eq!(check(&schema, &Map::new()), Err("x is missing".into()));
    }
}
