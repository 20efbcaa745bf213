//! Values of JSON, YAML and TOML in one type, with keys in the order of the text.
//!
//! Law: the text is hostile. The size, the depth and the number of values are limited, aliases counted each time they are used.
//! An error has one of a few sentences and a line; it never quotes the text, which may hold a secret.

pub mod counters;
pub mod json;
#[cfg(feature = "toml")]
pub mod toml;

use mcp_resources_runtime::transport::{YamlLimits, YamlSchema, YamlValue, read_yaml};
use serde::{Serialize, Serializer};
use serde_json::Number;
use std::fmt;

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
pub struct ValueLimits {
    /// Values, those that an alias repeats counted each time.
    pub values: usize,
    /// Bytes in keys and texts, those that an alias repeats counted each time.
    pub bytes: usize,
    /// Nested lists and objects.
    pub depth: usize,
}

/// Why a text has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
pub fn yaml(text: &str, limits: ValueLimits, schema: YamlSchema) -> Result<FileValue, ParseFault> {
    let ValueLimits { values, bytes, depth } = limits;
    match read_yaml(text, schema, YamlLimits { values, bytes, depth }) {
        Ok(value) => Ok(value.into()),
        Err(fault) => Err(ParseFault { what: fault.what, line: Some(fault.line).filter(|line| *line > 0) }),
    }
}
