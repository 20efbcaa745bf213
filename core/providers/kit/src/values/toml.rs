//! Values of TOML texts.

use super::counters::{Counters, DEEP, TOO_MANY};
use super::{FileValue, ParseFault, ValueLimits, ValueMembers};
use serde_json::Number;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

const NO_TOML: &str = "it is not TOML";

/// The value of a TOML text.
///
/// # Errors
/// It is not TOML, or exceeds a limit.
pub fn read(text: &str, limits: ValueLimits) -> Result<FileValue, ParseFault> {
    // The parser builds the whole document before a value is counted; one of these stands before each value.
    if text.bytes().filter(|byte| matches!(byte, b'=' | b',' | b'[')).count() > limits.values {
        return Err(ParseFault { what: TOO_MANY, line: None });
    }
    let parsed = DeTable::parse(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        ParseFault { what: NO_TOML, line }
    })?;
    let reader = TomlReader { text, counters: Counters::new(limits) };
    let root = Spanned::new(parsed.span(), DeValue::Table(parsed.into_inner()));
    reader.value(root, limits.depth)
}

/// Copies what the crate `toml` has parsed, within the limits. The crate has refused repeated keys.
struct TomlReader<'t> {
    text: &'t str,
    counters: Counters,
}

impl TomlReader<'_> {
    fn value(&self, value: Spanned<DeValue<'_>>, depth: usize) -> Result<FileValue, ParseFault> {
        let start = value.span().start;
        let fault = |what| ParseFault { what, line: Some(line_of(self.text, start)) };
        self.counters.count_value().map_err(fault)?;
        let deeper = depth.checked_sub(1).ok_or_else(|| fault(DEEP));
        Ok(match value.into_inner() {
            DeValue::Boolean(value) => FileValue::Bool(value),
            DeValue::Integer(written) => {
                toml_integer(written.as_str(), written.radix()).ok_or_else(|| fault(NO_TOML))?
            }
            DeValue::Float(written) => toml_float(written.as_str()).ok_or_else(|| fault(NO_TOML))?,
            DeValue::String(text) => {
                self.counters.count_text(&text).map_err(fault)?;
                FileValue::Text(text.into_owned())
            }
            DeValue::Datetime(time) => FileValue::Text(time.to_string()),
            DeValue::Array(items) => {
                let depth = deeper?;
                FileValue::List(
                    items.into_iter().map(|item| self.value(item, depth)).collect::<Result<_, _>>()?,
                )
            }
            DeValue::Table(table) => {
                let depth = deeper?;
                let member = |(key, value): (Spanned<DeString<'_>>, Spanned<DeValue<'_>>)| {
                    self.counters.count_text(key.get_ref()).map_err(fault)?;
                    Ok((key.into_inner().into_owned(), self.value(value, depth)?))
                };
                FileValue::Object(ValueMembers(table.into_iter().map(member).collect::<Result<_, _>>()?))
            }
        })
    }
}

/// A number, or its decimal digits as a text where readers of JSON would round it. `None` beyond 128 bits.
fn toml_integer(digits: &str, radix: u32) -> Option<FileValue> {
    if let Ok(value) = i64::from_str_radix(digits, radix) {
        return Some(Number::from(value).into());
    }
    if let Ok(value) = u64::from_str_radix(digits, radix) {
        return Some(Number::from(value).into());
    }
    let signed = i128::from_str_radix(digits, radix).map(|value| value.to_string());
    let text = signed.or_else(|_| u128::from_str_radix(digits, radix).map(|value| value.to_string()));
    text.ok().map(FileValue::Text)
}

/// A number, or a text for `inf` and `nan`, which JSON does not have. `None` if it is too large.
fn toml_float(written: &str) -> Option<FileValue> {
    let value: f64 =
        written.parse().ok().filter(|value: &f64| !value.is_infinite() || written.contains("inf"))?;
    Some(
        Number::from_f64(value)
            .map_or_else(|| FileValue::Text(value.to_string().to_lowercase()), FileValue::from),
    )
}

/// The line, from 1, of an offset in a text whose lines end with LF, CRLF or CR.
fn line_of(text: &str, at: usize) -> u64 {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let after = before.iter().skip(1).chain(text.as_bytes().get(at));
    let ends = before.iter().zip(after.map(Some).chain([None]));
    let is_end =
        |(byte, next): &(&u8, Option<&u8>)| **byte == b'\n' || **byte == b'\r' && *next != Some(&b'\n');
    ends.filter(is_end).count() as u64 + 1
}
