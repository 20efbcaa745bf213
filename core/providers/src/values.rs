//! Values of JSON, YAML and TOML in one type, with keys in the order of the text.
//!
//! Law: the text is hostile. The size, the depth and the number of values are limited, aliases counted each time they are used.
//! An error has one of a few sentences and a line; it never quotes the text, which may hold a secret.

#[cfg(feature = "config")]
pub(crate) mod json;

use mcp_resources_runtime::transport::{YamlLimits, YamlSchema, YamlValue, read_yaml};
use serde::{Serialize, Serializer};
use serde_json::Number;
use std::cell::Cell;
use std::fmt;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

const DEEP: &str = "it is nested too deeply";
pub(crate) const TOO_MANY: &str = "it has too many values";
const LONG: &str = "its texts are too long";
const NO_TOML: &str = "it is not TOML";

/// A value that JSON can represent. Other numbers are texts.
#[derive(Clone, Debug, PartialEq)]
pub enum FileValue {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A finite number.
    Number {
        /// Its value.
        number: Number,
        /// Its notation in the text, if that differs: `007`, `1.10`.
        written: Option<Box<str>>,
    },
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(ValueMembers),
}

/// The members of an object, in the order of the text. No key occurs twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueMembers(Vec<(String, FileValue)>);

/// The limits of a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueLimits {
    /// Values, those that an alias repeats counted each time.
    pub(crate) values: usize,
    /// Bytes in keys and texts, those that an alias repeats counted each time.
    pub(crate) bytes: usize,
    /// Nested lists and objects.
    pub(crate) depth: usize,
}

/// Why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "_front"),
    expect(unreachable_pub, reason = "front matter is read by tests of other crates too")
)]
pub struct ParseFault {
    /// A sentence that quotes nothing of the text.
    pub what: &'static str,
    /// The line, from 1.
    pub line: Option<u64>,
}

impl ValueMembers {
    /// The value of `key`.
    pub fn get(&self, key: &str) -> Option<&FileValue> {
        self.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The text that is the value of `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            FileValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// All members.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FileValue)> {
        self.0.iter().map(|(key, value)| (&**key, value))
    }
}

impl Serialize for ValueMembers {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

impl Serialize for FileValue {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => to.serialize_unit(),
            Self::Bool(value) => to.serialize_bool(*value),
            Self::Number { number, .. } => number.serialize(to),
            Self::Text(text) => to.serialize_str(text),
            Self::List(values) => to.collect_seq(values),
            Self::Object(members) => members.serialize(to),
        }
    }
}

impl From<ValueMembers> for serde_json::Map<String, serde_json::Value> {
    fn from(members: ValueMembers) -> Self {
        members.0.into_iter().map(|(key, value)| (key, value.into())).collect()
    }
}

impl From<FileValue> for serde_json::Value {
    fn from(value: FileValue) -> Self {
        match value {
            FileValue::Null => Self::Null,
            FileValue::Bool(value) => Self::Bool(value),
            FileValue::Number { number, .. } => Self::Number(number),
            FileValue::Text(text) => Self::String(text),
            FileValue::List(values) => values.into_iter().map(Self::from).collect(),
            FileValue::Object(members) => Self::Object(members.into()),
        }
    }
}

impl From<Number> for FileValue {
    fn from(number: Number) -> Self {
        Self::Number { number, written: None }
    }
}

impl From<YamlValue> for FileValue {
    fn from(value: YamlValue) -> Self {
        match value {
            YamlValue::Null => Self::Null,
            YamlValue::Bool(value) => Self::Bool(value),
            YamlValue::Number { number, written } => Self::Number { number, written },
            YamlValue::Text(text) => Self::Text(text),
            YamlValue::List(items) => Self::List(items.into_iter().map(Self::from).collect()),
            YamlValue::Object(members) => Self::Object(ValueMembers(
                members.into_iter().map(|(key, value)| (key, value.into())).collect(),
            )),
        }
    }
}

impl fmt::Display for ParseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.what),
            None => f.write_str(self.what),
        }
    }
}

/// The value of a YAML text of one document, by the rules of `schema`.
///
/// # Errors
/// It is not YAML, has more than one document, a key twice or one that is no text, or exceeds a limit.
pub(crate) fn yaml(text: &str, limits: ValueLimits, schema: YamlSchema) -> Result<FileValue, ParseFault> {
    let ValueLimits { values, bytes, depth } = limits;
    match read_yaml(text, schema, YamlLimits { values, bytes, depth }) {
        Ok(value) => Ok(value.into()),
        Err(fault) => Err(ParseFault { what: fault.what, line: Some(fault.line).filter(|line| *line > 0) }),
    }
}

/// The value of a TOML text.
///
/// # Errors
/// It is not TOML, or exceeds a limit.
pub(crate) fn toml(text: &str, limits: ValueLimits) -> Result<FileValue, ParseFault> {
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

/// The values and bytes that the limits still allow.
struct Counters {
    values: Cell<usize>,
    bytes: Cell<usize>,
}

impl Counters {
    fn new(limits: ValueLimits) -> Self {
        Self { values: Cell::new(limits.values), bytes: Cell::new(limits.bytes) }
    }

    fn count_value(&self) -> Result<(), &'static str> {
        self.values.set(self.values.get().checked_sub(1).ok_or(TOO_MANY)?);
        Ok(())
    }

    fn count_text(&self, text: &str) -> Result<(), &'static str> {
        self.bytes.set(self.bytes.get().checked_sub(text.len()).ok_or(LONG)?);
        Ok(())
    }
}
