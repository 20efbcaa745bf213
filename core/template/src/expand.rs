//! Expansion through `uritemplate-next`, one variable at a time, with workarounds for its defects.
//!
//! The crate accepts invalid templates, cuts prefixes by bytes, encodes too few characters in the keys of maps, and
//! takes a list of empty texts for an empty list. So the template is parsed here, and the values are prepared here. The
//! crate compiles regular expressions for each call, so expansion does not belong on a hot path.

use super::capture::prefix;
use super::error::ExpandError;
use super::parse::{Expression, Modifier, Operator, TemplatePart, VarSpec, parse};
use super::value::{Value, Values};
use crate::uri::{UNRESERVED, is_in, push_encoded};

/// Expands any RFC 6570 template, also one that cannot be matched.
///
/// Variables without a value are undefined, and so are empty lists and maps.
///
/// # Errors
/// [`ExpandError`] if `template` is not in the grammar, or if a variable with a prefix has a list or map.
pub fn expand(template: &str, values: &Values<'_>) -> Result<String, ExpandError> {
    parts(&parse(template).map_err(|fault| fault.in_template(template))?, values)
}

/// Expands a parsed template.
pub(super) fn parts(parts: &[TemplatePart], values: &Values<'_>) -> Result<String, ExpandError> {
    let mut out = String::new();
    for part in parts {
        match part {
            TemplatePart::Literal(literal) => {
                out.push_str(&uritemplate::UriTemplate::new(&literal.text).build())
            }
            TemplatePart::Expression(part) => expression(part, values, &mut out)?,
        }
    }
    Ok(out)
}

fn expression(expression: &Expression, values: &Values<'_>, out: &mut String) -> Result<(), ExpandError> {
    let operator = expression.operator;
    let mut is_first = true;
    for spec in &expression.variables {
        let Some(value) = values.get(&spec.name).filter(|value| !is_undefined(value)) else { continue };
        if matches!(spec.modifier, Modifier::Prefix(_)) && value.as_str().is_none() {
            return Err(ExpandError::PrefixOnComposite { variable: spec.name.clone() });
        }
        if !is_first && !operator.is_named() && operator.separator() == "," {
            out.push(',');
        }
        out.push_str(&variable(operator, is_first, spec, value));
        is_first = false;
    }
    Ok(())
}

fn is_undefined(value: &Value<'_>) -> bool {
    match value {
        Value::Scalar(_) => false,
        Value::List(items) => items.is_empty(),
        Value::Map(pairs) => pairs.is_empty(),
    }
}

/// Expands one variable with the prefix or separator of its operator, unless that is a comma.
fn variable(operator: Operator, is_first: bool, spec: &VarSpec, value: &Value<'_>) -> String {
    let operator_text = match operator {
        Operator::Simple => "",
        Operator::Reserved => "+",
        Operator::Fragment if !is_first => "+",
        Operator::Query if !is_first => "&",
        _ => operator.prefix(),
    };
    let is_exploded = spec.modifier == Modifier::Explode;
    if let (Value::List(items), true, false) = (value, operator.is_named(), is_exploded)
        && items.len() > 1
        && items.iter().all(|item| item.is_empty())
    {
        return format!("{operator_text}{}={}", spec.name, ",".repeat(items.len() - 1));
    }
    let explode = if is_exploded { "*" } else { "" };
    let mut template = uritemplate::UriTemplate::new(&format!("{{{operator_text}{}{explode}}}", spec.name));
    match (value, spec.modifier) {
        (Value::Scalar(text), Modifier::Prefix(length)) => template.set(&spec.name, prefix(text, length)),
        (Value::Scalar(text), _) => template.set(&spec.name, &**text),
        (Value::List(items), _) => {
            template.set(&spec.name, items.iter().map(|item| item.to_string()).collect::<Vec<_>>())
        }
        (Value::Map(pairs), _) => {
            let keeps_key = operator.keeps_reserved() || operator.is_named() && is_exploded;
            let key = |key: &str| if keeps_key { key.to_owned() } else { encoded(key) };
            template.set(
                &spec.name,
                pairs.iter().map(|(name, value)| (key(name), value.to_string())).collect::<Vec<_>>(),
            )
        }
    };
    template.build()
}

/// Percent-encodes all except unreserved characters.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_in(byte, UNRESERVED) { out.push(char::from(byte)) } else { push_encoded(&mut out, byte) }
    }
    out
}
