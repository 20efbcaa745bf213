//! Values of JSON, YAML and TOML in one type, with keys in the order of the text.
//!
//! Law: the text is hostile. The size, the depth and the number of values are limited, aliases counted each time they are used.
//! An error has one of a few sentences and a line; it never quotes the text, which may hold a secret.

use mcp_resources_runtime::transport::{YamlLimits, YamlSchema, YamlValue, read_yaml};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};
use serde_json::Number;
use std::cell::Cell;
use std::fmt;

/// The marker by which the crate `toml` represents a time.
const TOML_TIME: &str = "$__toml_private_datetime";

const DEEP: &str = "it is nested too deeply";
pub(crate) const TOO_MANY: &str = "it has too many values";
const LONG: &str = "its texts are too long";
const TWICE: &str = "a key stands twice";

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

/// The value of a JSON text. A number beyond 64 bits or the range of a float is a text in its original notation, as in
/// YAML.
///
/// # Errors
/// It is not JSON, has a key twice, or exceeds a limit.
#[cfg(feature = "config")]
pub(crate) fn json(text: &str, limits: ValueLimits) -> Result<FileValue, ParseFault> {
    let text = numbers::kept(text);
    Counters::new(limits).read("it is not JSON", false, |seed| {
        let mut from = serde_json::Deserializer::from_str(&text);
        let parsed = seed.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
        parsed.map_err(|error| Some(error.line() as u64).filter(|line| *line > 0))
    })
}

/// Numbers of JSON that its readers would round or refuse.
#[cfg(feature = "config")]
mod numbers {
    use std::borrow::Cow;

    /// The shortest whole number beyond 64 bits has more digits.
    const SAFE: usize = 18;

    /// The text with such numbers in quotes. Other texts, valid or not, are as they were.
    pub(super) fn kept(text: &str) -> Cow<'_, str> {
        let mut out = String::new();
        let mut rest = text;
        let mut done = 0;
        while let Some(at) = rest.find(|char: char| char == '"' || char == '-' || char.is_ascii_digit()) {
            let start = text.len() - rest.len() + at;
            let token = text.get(start..).unwrap_or_default();
            let length = if token.starts_with('"') { string(token) } else { number(token) };
            let (token, after) = token.split_at_checked(length).unwrap_or((token, ""));
            rest = after;
            if !token.starts_with('"') && is_beyond(token) {
                out.push_str(text.get(done..start).unwrap_or_default());
                out.extend(["\"", token, "\""]);
                done = start + length;
            }
        }
        if out.is_empty() {
            return Cow::Borrowed(text);
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// The length of a string with its quotes.
    fn string(token: &str) -> usize {
        let mut is_escaped = false;
        let end = token.bytes().skip(1).position(|byte| {
            let is_end = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            is_end
        });
        end.map_or(token.len(), |end| end + 2)
    }

    fn number(token: &str) -> usize {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
        token.bytes().take_while(is_part).count().max(1)
    }

    fn is_beyond(token: &str) -> bool {
        let digits = token.strip_prefix('-').unwrap_or(token);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let may_be = digits.len() > SAFE || !is_whole;
        if !may_be || digits.starts_with('0') && is_whole {
            return false;
        }
        if is_whole {
            return token.parse::<u64>().is_err() && token.parse::<i64>().is_err();
        }
        serde_json::from_str::<serde_json::Number>(token).is_err() && is_grammatical(digits)
    }

    /// Whether digits are a number by the grammar of JSON.
    fn is_grammatical(digits: &str) -> bool {
        let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, Some(exponent)),
            None => (digits, None),
        };
        let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        are_digits(whole)
            && (whole == "0" || !whole.starts_with('0'))
            && fraction.is_none_or(are_digits)
            && exponent
                .is_none_or(|exponent| are_digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
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
    Counters::new(limits).read("it is not TOML", true, |seed| {
        let parsed = toml::Deserializer::parse(text).and_then(|from| seed.deserialize(from));
        parsed.map_err(|error| Some(line_of(text, error.span()?.start)))
    })
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

/// The remaining amounts of the limits, and the first limit that was exceeded.
struct Counters {
    values: Cell<usize>,
    bytes: Cell<usize>,
    depth: usize,
    why: Cell<Option<&'static str>>,
}

impl Counters {
    fn new(limits: ValueLimits) -> Self {
        let ValueLimits { values, bytes, depth } = limits;
        Self { values: Cell::new(values), bytes: Cell::new(bytes), depth, why: Cell::new(None) }
    }

    /// Calls `parse`, which returns the line of an error.
    fn read(
        &self,
        what: &'static str,
        is_toml: bool,
        parse: impl FnOnce(Strict<'_>) -> Result<FileValue, Option<u64>>,
    ) -> Result<FileValue, ParseFault> {
        let parsed = parse(Strict { counters: self, depth: self.depth, is_toml });
        parsed.map_err(|line| ParseFault { what: self.why.get().unwrap_or(what), line })
    }
}

/// Reads a value within the limits and without repeated keys: programs disagree about which of the two counts.
#[derive(Clone, Copy)]
struct Strict<'c> {
    counters: &'c Counters,
    depth: usize,
    is_toml: bool,
}

impl Strict<'_> {
    fn refuse<T, E: Error>(self, why: &'static str) -> Result<T, E> {
        self.counters.why.set(Some(why));
        Err(E::custom(why))
    }

    fn count<E: Error>(self, text: &str) -> Result<(), E> {
        let Some(left) = self.counters.bytes.get().checked_sub(text.len()) else { return self.refuse(LONG) };
        self.counters.bytes.set(left);
        Ok(())
    }

    /// For the values inside.
    fn deeper<E: Error>(self) -> Result<Self, E> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, ..self }),
            None => self.refuse(DEEP),
        }
    }

    fn map_from<'de, A: MapAccess<'de>>(self, first: String, mut map: A) -> Result<FileValue, A::Error> {
        let within = self.deeper()?;
        let mut members = Vec::new();
        let mut next = Some(first);
        while let Some(key) = next {
            self.count(&key)?;
            let value = map.next_value_seed(within)?;
            members.push((key, value));
            next = map.next_key()?;
        }
        let mut keys: Vec<&str> = members.iter().map(|(key, _)| &**key).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair.first() == pair.last()) {
            return self.refuse(TWICE);
        }
        Ok(FileValue::Object(ValueMembers(members)))
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = FileValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<FileValue, D::Error> {
        match self.counters.values.get().checked_sub(1) {
            Some(left) => self.counters.values.set(left),
            None => return self.refuse(TOO_MANY),
        }
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = FileValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<FileValue, E> {
        Ok(FileValue::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<FileValue, E> {
        Ok(FileValue::from(Number::from(value)))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<FileValue, E> {
        Ok(FileValue::from(Number::from(value)))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<FileValue, E> {
        // JSON readers would round such a number.
        Ok(Number::from_i128(value).map_or_else(|| FileValue::Text(value.to_string()), FileValue::from))
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<FileValue, E> {
        Ok(Number::from_u128(value).map_or_else(|| FileValue::Text(value.to_string()), FileValue::from))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<FileValue, E> {
        // JSON has neither `inf` nor `nan`, as TOML writes them.
        Ok(Number::from_f64(value)
            .map_or_else(|| FileValue::Text(value.to_string().to_lowercase()), FileValue::from))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<FileValue, E> {
        self.count(value)?;
        Ok(FileValue::Text(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<FileValue, E> {
        self.count(&value)?;
        Ok(FileValue::Text(value))
    }

    fn visit_none<E: Error>(self) -> Result<FileValue, E> {
        Ok(FileValue::Null)
    }

    fn visit_unit<E: Error>(self) -> Result<FileValue, E> {
        Ok(FileValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<FileValue, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<FileValue, A::Error> {
        let within = self.deeper()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(within)? {
            values.push(value);
        }
        Ok(FileValue::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FileValue, A::Error> {
        match map.next_key::<String>()? {
            None => Ok(FileValue::Object(ValueMembers::default())),
            Some(key) if self.is_toml && key == TOML_TIME => map.next_value().map(FileValue::Text),
            Some(key) => self.map_from(key, map),
        }
    }
}
