//! Values of JSON texts.
//!
//! Law: a key stands once in an object, and the limits apply while the text is read, before anything is built of it.

use super::counters::{Counters, DEEP};
use super::{FileValue, ParseFault, ValueLimits, ValueMembers};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;
use std::cell::Cell;
use std::fmt;

const TWICE: &str = "a key stands twice";

/// The value of a JSON text. A number beyond 64 bits or the range of a float is a text in its original notation, as in
/// YAML.
///
/// # Errors
/// It is not JSON, has a key twice, or exceeds a limit.
pub fn read(text: &str, limits: ValueLimits) -> Result<FileValue, ParseFault> {
    let text = numbers::kept(text);
    let counters = Counters::new(limits);
    let why = Cell::new("it is not JSON");
    let reader = JsonReader { counters: &counters, depth: limits.depth, why: &why };
    let mut from = serde_json::Deserializer::from_str(&text);
    let parsed = reader.deserialize(&mut from).and_then(|value| from.end().map(|()| value));
    parsed.map_err(|error| {
        let line = Some(error.line() as u64).filter(|line| *line > 0);
        ParseFault { what: why.get(), line }
    })
}

/// Numbers of JSON that its readers would round or refuse.
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

/// Reads a value within the limits and without repeated keys: programs disagree about which of the two counts.
#[derive(Clone, Copy)]
struct JsonReader<'c> {
    counters: &'c Counters,
    depth: usize,
    /// The first limit that was exceeded.
    why: &'c Cell<&'static str>,
}

impl JsonReader<'_> {
    fn refuse<T, E: Error>(self, why: &'static str) -> Result<T, E> {
        self.why.set(why);
        Err(E::custom(why))
    }

    fn count<E: Error>(self, text: &str) -> Result<(), E> {
        self.counters.count_text(text).or_else(|why| self.refuse(why))
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

impl<'de> DeserializeSeed<'de> for JsonReader<'_> {
    type Value = FileValue;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<FileValue, D::Error> {
        self.counters.count_value().or_else(|why| self.refuse(why))?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for JsonReader<'_> {
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

    fn visit_f64<E: Error>(self, value: f64) -> Result<FileValue, E> {
        Ok(Number::from_f64(value).map_or(FileValue::Null, FileValue::from))
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
            Some(key) => self.map_from(key, map),
        }
    }
}
