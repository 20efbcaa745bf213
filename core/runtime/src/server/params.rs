//! Deserializes the values of a template's variables. For a value that does not fit, the client gets an error with the
//! name of the variable (`invalid_parameter`).
//!
//! Law: a number has one spelling, as a parameter of its kind has ([`ParameterKind`]). So a rule about a URI holds for
//! every request for the same value.

use mcp_resources_engine::error::ReadError;
use mcp_resources_engine::resource::ParameterKind;
use mcp_resources_template::{MatchedParams, Value};
use serde::de::value::{MapDeserializer, SeqDeserializer, StrDeserializer};
use serde::de::{DeserializeOwned, Deserializer, EnumAccess, IntoDeserializer, VariantAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Deserializes `params` as a struct (or a map) with one field for each variable. A variable that the URI leaves
/// undefined is a missing field.
///
/// # Errors
/// [`ReadError::InvalidParameter`] for the first value that does not fit.
pub(super) fn read<T: DeserializeOwned>(params: Option<&MatchedParams<'_>>) -> Result<T, ReadError> {
    let fields = params.into_iter().flat_map(|params| params.iter());
    let fields = fields.map(|(name, value)| (name, ParamField { name, value: Shape::from_value(value) }));
    T::deserialize(MapDeserializer::new(fields)).map_err(Mismatch::into_read_error)
}

/// Like [`read`], for the texts of a prompt's arguments.
///
/// # Errors
/// As [`read`].
#[cfg(feature = "tools")]
pub(super) fn read_texts<'p, T: DeserializeOwned>(
    texts: impl Iterator<Item = (&'p str, &'p str)>,
) -> Result<T, ReadError> {
    let fields = texts.map(|(name, text)| (name, ParamField { name, value: Shape::Text(text) }));
    T::deserialize(MapDeserializer::new(fields)).map_err(Mismatch::into_read_error)
}

/// A value, with the variable to name in errors.
#[derive(Clone, Copy)]
struct ParamField<'p> {
    name: &'p str,
    value: Shape<'p>,
}

#[derive(Clone, Copy)]
enum Shape<'p> {
    Text(&'p str),
    List(&'p [Cow<'p, str>]),
    Map(&'p [(Cow<'p, str>, Cow<'p, str>)]),
}

impl<'p> Shape<'p> {
    fn from_value(value: &'p Value<'_>) -> Self {
        match value {
            Value::Scalar(text) => Self::Text(text),
            Value::List(items) => Self::List(items),
            Value::Map(pairs) => Self::Map(pairs),
        }
    }
}

impl<'p> ParamField<'p> {
    fn text(self, expected: &str) -> Result<&'p str, Mismatch> {
        match self.value {
            Shape::Text(text) => Ok(text),
            Shape::List(_) | Shape::Map(_) => Err(self.mismatch(expected)),
        }
    }

    /// Parses a value of the kind, if `text` is its only spelling.
    fn parse<T: std::str::FromStr>(self, kind: ParameterKind, expected: &str) -> Result<T, Mismatch> {
        let text = self.text(expected)?;
        let value = text.parse().map_err(|_| self.mismatch(expected))?;
        match kind.accepts(text) {
            true => Ok(value),
            false => {
                Err(self.mismatch(&format!("{expected} in its only spelling, without leading zeros or `+`")))
            }
        }
    }

    fn mismatch(self, expected: &str) -> Mismatch {
        Mismatch { parameter: Some(self.name.to_owned()), expected: expected.to_owned() }
    }

    /// Adds the name of the variable to an error from inside a value.
    fn named<T>(self, result: Result<T, Mismatch>) -> Result<T, Mismatch> {
        result.map_err(|error| Mismatch { parameter: Some(self.name.to_owned()), ..error })
    }
}

/// `deserialize_…` for numbers: parsed from the text, within the range of the type.
macro_rules! numbers {
    ($kind:ident: $($method:ident $visit:ident $type:ty, $expected:expr;)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            let number = self.parse::<$type>(ParameterKind::$kind, $expected)?;
            self.named(visitor.$visit(number))
        })+
    };
}

impl<'de> Deserializer<'de> for ParamField<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.value {
            Shape::Text(text) => self.named(visitor.visit_str(text)),
            Shape::List(_) => self.deserialize_seq(visitor),
            Shape::Map(_) => self.deserialize_map(visitor),
        }
    }

    numbers! { Integer:
        deserialize_i8 visit_i8 i8, "an integer from -128 to 127";
        deserialize_i16 visit_i16 i16, "an integer from -32768 to 32767";
        deserialize_i32 visit_i32 i32, "an integer of 32 bits";
        deserialize_i64 visit_i64 i64, "an integer";
        deserialize_i128 visit_i128 i128, "an integer";
        deserialize_u8 visit_u8 u8, "an integer from 0 to 255";
        deserialize_u16 visit_u16 u16, "an integer from 0 to 65535";
        deserialize_u32 visit_u32 u32, "a non-negative integer of 32 bits";
        deserialize_u64 visit_u64 u64, "a non-negative integer";
        deserialize_u128 visit_u128 u128, "a non-negative integer";
    }

    numbers! { Number:
        deserialize_f64 visit_f64 f64, "a number";
    }

    numbers! { Boolean:
        deserialize_bool visit_bool bool, "true or false";
    }

    numbers! { String:
        deserialize_char visit_char char, "one character";
    }

    /// The nearest number of 32 bits. A text that is the shortest for it is its spelling.
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let number = self.parse::<f32>(ParameterKind::Number, "a number")?;
        let shortest = number.to_string().parse::<f64>().ok();
        if shortest.is_none() || shortest != self.text("a number")?.parse().ok() {
            return Err(self.mismatch("a number of 32 bits in its shortest form"));
        }
        self.named(visitor.visit_f32(number))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        let expected = format!("one of {}", variants.join(", "));
        let word = self.text(&expected)?;
        if !variants.contains(&word) {
            return Err(self.mismatch(&expected));
        }
        self.named(visitor.visit_enum(Word(word)))
    }

    /// A single text is a list with one item.
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let item = |text| ParamField { name: self.name, value: Shape::Text(text) };
        match self.value {
            Shape::Text(text) => visitor.visit_seq(SeqDeserializer::new(std::iter::once(item(text)))),
            Shape::List(items) => {
                visitor.visit_seq(SeqDeserializer::new(items.iter().map(|text| item(text))))
            }
            Shape::Map(_) => Err(self.mismatch("a list")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        let Shape::Map(pairs) = self.value else { return Err(self.mismatch("pairs of keys and values")) };
        let pair = |(key, value): &'de (Cow<'de, str>, Cow<'de, str>)| {
            (&**key, ParamField { name: self.name, value: Shape::Text(value) })
        };
        visitor.visit_map(MapDeserializer::new(pairs.iter().map(pair)))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_seq(visitor)
    }

    serde::forward_to_deserialize_any! { str string bytes byte_buf unit unit_struct identifier ignored_any }
}

impl<'p> IntoDeserializer<'p, Mismatch> for ParamField<'p> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The name of a variant without data.
struct Word<'p>(&'p str);

impl<'p> EnumAccess<'p> for Word<'p> {
    type Error = Mismatch;
    type Variant = Self;

    fn variant_seed<S: serde::de::DeserializeSeed<'p>>(self, seed: S) -> Result<(S::Value, Self), Mismatch> {
        let name: StrDeserializer<'p, Mismatch> = self.0.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'p> VariantAccess<'p> for Word<'p> {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        Ok(())
    }

    fn newtype_variant_seed<S: serde::de::DeserializeSeed<'p>>(self, _seed: S) -> Result<S::Value, Mismatch> {
        Err(Mismatch::default())
    }

    fn tuple_variant<V: Visitor<'p>>(self, _len: usize, _visitor: V) -> Result<V::Value, Mismatch> {
        Err(Mismatch::default())
    }

    fn struct_variant<V: Visitor<'p>>(
        self,
        _fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Mismatch> {
        Err(Mismatch::default())
    }
}

/// A value that does not fit. The type's own message is dropped: it may reveal more than a client should know.
#[derive(Debug)]
struct Mismatch {
    parameter: Option<String>,
    expected: String,
}

impl Mismatch {
    fn into_read_error(self) -> ReadError {
        let parameter = self.parameter.unwrap_or_default();
        ReadError::InvalidParameter { parameter, expected: self.expected }
    }
}

impl Default for Mismatch {
    fn default() -> Self {
        Self { parameter: None, expected: "another value".into() }
    }
}

impl serde::de::Error for Mismatch {
    fn custom<T: fmt::Display>(_message: T) -> Self {
        Self::default()
    }

    fn invalid_type(_unexpected: serde::de::Unexpected<'_>, expected: &dyn serde::de::Expected) -> Self {
        Self { parameter: None, expected: expected.to_string() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { parameter: Some(field.to_owned()), expected: "a value".into() }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}", self.parameter.as_deref().unwrap_or("a parameter"), self.expected)
    }
}

impl std::error::Error for Mismatch {}

#[cfg(test)]
mod tests;
