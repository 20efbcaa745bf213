//! The type of a scalar.
//!
//! Law: a scalar without a type in its schema is a text, kept as it is. No number is rounded: a number that JSON
//! readers would change is a text too.

use super::{YamlSchema, YamlValue};
use serde_json::Number;
use std::borrow::Cow;

/// The kind of value that the tag of a scalar requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has none.
    Plain,
    Text,
    Int,
    Float,
    Bool,
    Null,
    /// It is that of a list or an object.
    Collection,
}

/// The value of a scalar; `None` if its tag says something else.
pub(super) fn value(
    text: Cow<'_, str>,
    is_plain: bool,
    kind: &Kind,
    schema: YamlSchema,
) -> Option<YamlValue> {
    match kind {
        Kind::Plain if is_plain => {
            Some(plain(&text, schema).unwrap_or_else(|| YamlValue::Text(text.into_owned())))
        }
        Kind::Plain | Kind::Text => Some(YamlValue::Text(text.into_owned())),
        Kind::Null => Some(YamlValue::Null),
        Kind::Bool => boolean_1_1(&text.to_ascii_lowercase()).map(YamlValue::Bool),
        Kind::Int => integer(&text, schema).or_else(|| integer(&text, YamlSchema::Core)),
        Kind::Float => float(&text, schema)
            .or_else(|| float(&text, YamlSchema::Core))
            .or_else(|| float(&without_underscores(&text), YamlSchema::Core)),
        Kind::Collection => None,
    }
}

/// The text that a value is as a key.
pub(super) fn key(value: &YamlValue) -> String {
    match value {
        YamlValue::Text(text) => text.clone(),
        YamlValue::Bool(value) => value.to_string(),
        YamlValue::Number { number, written } => {
            written.as_deref().map_or_else(|| number.to_string(), str::to_owned)
        }
        _ => "null".to_owned(),
    }
}

/// The value of a scalar without quotes, if it is no text.
fn plain(text: &str, schema: YamlSchema) -> Option<YamlValue> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Some(YamlValue::Null),
        "true" | "True" | "TRUE" => return Some(YamlValue::Bool(true)),
        "false" | "False" | "FALSE" => return Some(YamlValue::Bool(false)),
        _ => {}
    }
    // Most texts begin with a letter.
    if text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return integer(text, schema).or_else(|| float(text, schema));
    }
    match schema {
        YamlSchema::Yaml11 if is_spelled_alike(text) => {
            boolean_1_1(&text.to_ascii_lowercase()).map(YamlValue::Bool)
        }
        _ => None,
    }
}

/// Whether a word is `yes`, `Yes` or `YES`, not `yEs`.
fn is_spelled_alike(text: &str) -> bool {
    let rest = text.get(1..).unwrap_or_default();
    text.len() <= 3
        && (rest.bytes().all(|byte| byte.is_ascii_lowercase())
            || text.bytes().all(|byte| byte.is_ascii_uppercase()))
}

fn boolean_1_1(lower: &str) -> Option<bool> {
    match lower {
        "yes" | "on" | "true" => Some(true),
        "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn integer(text: &str, schema: YamlSchema) -> Option<YamlValue> {
    let (is_negative, digits) = sign(text);
    let (radix, digits) = match schema {
        YamlSchema::Yaml11 if is_sexagesimal(digits) && !digits.starts_with('0') => {
            return Some(whole(text, is_negative, minutes(digits)));
        }
        YamlSchema::Yaml11 => radix_1_1(digits)?,
        // The core schema has no sign before `0x` and `0o`.
        YamlSchema::Core => match digits.get(..2) {
            Some("0x") if digits == text => (16, Cow::Borrowed(digits.get(2..)?)),
            Some("0o") if digits == text => (8, Cow::Borrowed(digits.get(2..)?)),
            _ => (10, Cow::Borrowed(digits)),
        },
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    Some(whole(text, is_negative, u128::from_str_radix(&digits, radix).ok()))
}

/// The base of a number in YAML 1.1, and its digits without underscores.
fn radix_1_1(digits: &str) -> Option<(u32, Cow<'_, str>)> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'b', ..] => (2, digits.get(2..)?),
        [b'0', b'x', ..] => (16, digits.get(2..)?),
        [b'0', _, ..] => (8, digits),
        [b'0'..=b'9', ..] => (10, digits),
        _ => return None,
    };
    Some((radix, without_underscores(digits)))
}

fn without_underscores(text: &str) -> Cow<'_, str> {
    if text.contains('_') { Cow::Owned(text.replace('_', "")) } else { Cow::Borrowed(text) }
}

/// A whole number; the text if it is not within 64 bits.
fn whole(text: &str, is_negative: bool, magnitude: Option<u128>) -> YamlValue {
    let number = match magnitude {
        Some(magnitude) if is_negative => {
            let negative = 0_i128.checked_sub_unsigned(magnitude);
            negative.and_then(|negative| i64::try_from(negative).ok()).map(Number::from)
        }
        Some(magnitude) => u64::try_from(magnitude).ok().map(Number::from),
        None => None,
    };
    number_as(text, number)
}

/// A number as it is written; the text if JSON has none.
fn number_as(text: &str, number: Option<Number>) -> YamlValue {
    match number {
        Some(number) => {
            let written = (number.to_string() != text).then(|| text.into());
            YamlValue::Number { number, written }
        }
        None => YamlValue::Text(text.to_owned()),
    }
}

/// Whether digits have the form `1:30`, with parts below 60.
fn is_sexagesimal(digits: &str) -> bool {
    let mut parts = digits.split(':');
    let is_first = parts.next().is_some_and(|first| {
        first.starts_with(|digit: char| digit.is_ascii_digit())
            && first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
    });
    let is_part = |part: &str| match part.as_bytes() {
        [one] => one.is_ascii_digit(),
        [b'0'..=b'5', one] => one.is_ascii_digit(),
        _ => false,
    };
    is_first && digits.contains(':') && parts.all(is_part)
}

/// `1:30` as minutes and seconds; `None` if it is too large.
fn minutes(digits: &str) -> Option<u128> {
    digits.split(':').try_fold(0_u128, |sum, part| {
        let part: u128 = without_underscores(part).parse().ok()?;
        sum.checked_mul(60)?.checked_add(part)
    })
}

fn float(text: &str, schema: YamlSchema) -> Option<YamlValue> {
    let (is_negative, digits) = sign(text);
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        // JSON has no such number.
        return Some(YamlValue::Text(text.to_owned()));
    }
    let value = match schema {
        YamlSchema::Yaml11 => float_1_1(text, digits)?,
        YamlSchema::Core => decimal(digits, false).then(|| digits.parse::<f64>().ok())??,
    };
    Some(number_as(text, Number::from_f64(if is_negative { -value } else { value })))
}

fn float_1_1(text: &str, digits: &str) -> Option<f64> {
    let (whole, fraction) = digits.split_once('.')?;
    if is_sexagesimal(whole) {
        let is_fraction = fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
        return is_fraction.then(|| seconds(digits))?;
    }
    // PyYAML takes no sign before a point.
    let is_usual = whole.starts_with(|digit: char| digit.is_ascii_digit())
        || whole.is_empty() && digits == text && fraction.starts_with(|digit: char| digit.is_ascii_digit());
    let plain = without_underscores(digits);
    // No underscore is in an exponent.
    let has_exponent = digits.rsplit_once(['e', 'E']).is_none_or(|(_, exponent)| !exponent.contains('_'));
    let is_float = is_usual && has_exponent && decimal(&plain, true);
    is_float.then(|| plain.parse().ok())?
}

/// `1:30.5` as seconds.
fn seconds(digits: &str) -> Option<f64> {
    let mut base = 1.0;
    let mut sum = 0.0;
    for part in digits.rsplit(':') {
        sum += without_underscores(part).parse::<f64>().ok()? * base;
        base *= 60.0;
    }
    Some(sum)
}

/// Whether digits are a number with a point or an exponent, or neither. In YAML 1.1 an exponent has a sign.
fn decimal(digits: &str, is_1_1: bool) -> bool {
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (digits, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa = all_digits(whole) && all_digits(fraction) && !(whole.is_empty() && fraction.is_empty());
    let is_exponent = exponent.is_none_or(|exponent| {
        let unsigned = exponent.strip_prefix(['+', '-']);
        let digits = unsigned.unwrap_or(exponent);
        !digits.is_empty() && all_digits(digits) && (unsigned.is_some() || !is_1_1)
    });
    is_mantissa && is_exponent
}

/// Whether a number is negative, and the text behind its sign.
fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}
