//! Options that are set by name, with a value from another language. Each type has one table, in its own module.
//!
//! Law: the error about a wrong name or value says what would be right. Nothing here depends on a language: the runtime
//! converts its values to [`OptionValue`], and may format the error with its own spelling of names and values.

use crate::suggest;
use std::borrow::Cow;
use std::fmt;

/// The value of an option, converted by a runtime from its language.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum OptionValue {
    /// No value, such as `None` or `null`.
    None,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Several values.
    List(Vec<OptionValue>),
    /// Options by their names in `snake_case`, in any order.
    Members(Vec<(String, OptionValue)>),
    /// A value of a type that no option takes.
    Other,
}

/// A type that an option's value can be converted to.
pub trait FromOption: Sized {
    /// The expected value, for messages, such as `a text`.
    const EXPECTED: &'static str;
    /// The expected value of a list of them, for messages.
    const SEVERAL: &'static str = "a list";

    /// Converts a value.
    ///
    /// # Errors
    /// [`OptionError`] if it has the wrong type, or is not allowed.
    fn from_option(value: OptionValue) -> Result<Self, OptionError>;
}

/// A type with options that are set by name.
pub trait NamedOptions {
    /// The expected value for the whole type, for messages, such as `an icon`.
    const EXPECTED: &'static str;
    /// The names, in the order in which messages list them.
    const NAMES: &'static [&'static str];

    /// Sets one option.
    ///
    /// # Errors
    /// [`OptionError`] if there is no such option, or its value is invalid.
    fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError>;
}

/// An invalid option. `Display` formats the message for Rust; [`OptionError::message`] formats it for other languages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionError {
    fault: OptionFault,
    path: Vec<PathStep>,
    /// The name of an unknown option, or the value in Rust's notation.
    given: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum OptionFault {
    /// Unknown option: the noun for it, and the known names.
    Unknown { what: &'static str, known: &'static [&'static str] },
    /// A value of the wrong type.
    Type { expected: Cow<'static, str> },
    /// A value of the right type that is not allowed.
    Value { expected: Cow<'static, str> },
    /// A value of the right type that is not allowed, explained in a full sentence.
    Sentence(String),
    /// A limit that is not a whole number; `is_whole` if it is a whole number out of range.
    Limit { is_whole: bool },
}

/// One step on the path to a wrong value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// The value of an option.
    Name(Cow<'static, str>),
    /// An item of a list.
    Item(usize),
}

impl OptionError {
    /// The error for an unknown option `given`. `what` is the singular noun for the message, such as `option`.
    pub fn unknown(what: &'static str, given: &str, known: &'static [&'static str]) -> Self {
        Self { fault: OptionFault::Unknown { what, known }, path: Vec::new(), given: given.into() }
    }

    /// The error for a `value` of the wrong type.
    pub fn wrong_type(value: &OptionValue, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::from_fault(OptionFault::Type { expected: expected.into() }, value)
    }

    /// The error for a `value` of the right type that is not allowed.
    pub fn not_allowed(value: &OptionValue, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::from_fault(OptionFault::Value { expected: expected.into() }, value)
    }

    /// The error for a value that is not allowed, with its own sentence.
    pub fn sentence(text: impl Into<String>) -> Self {
        Self { fault: OptionFault::Sentence(text.into()), path: Vec::new(), given: String::new() }
    }

    /// The error for a limit that is not a whole number in its range.
    pub(crate) fn limit(value: &OptionValue) -> Self {
        Self::from_fault(OptionFault::Limit { is_whole: matches!(value, OptionValue::Integer(_)) }, value)
    }

    fn from_fault(fault: OptionFault, value: &OptionValue) -> Self {
        Self { fault, path: Vec::new(), given: value.to_string() }
    }

    /// Adds the member or item that contains the wrong value to the path.
    #[must_use]
    pub fn under(mut self, step: PathStep) -> Self {
        self.path.insert(0, step);
        self
    }

    /// The path to the wrong value, from the outermost option, without the name of an unknown option.
    pub fn path(&self) -> &[PathStep] {
        &self.path
    }

    /// The name of an unknown option, or the value in Rust's notation.
    pub fn given(&self) -> &str {
        &self.given
    }

    /// The name, if the option does not exist.
    pub fn unknown_name(&self) -> Option<&str> {
        matches!(self.fault, OptionFault::Unknown { .. }).then_some(&*self.given)
    }

    /// Whether a value has the wrong type, as opposed to an unknown option or a value that is not allowed.
    pub fn is_type(&self) -> bool {
        matches!(self.fault, OptionFault::Type { .. } | OptionFault::Limit { is_whole: false })
    }

    /// Formats the message. `shown` is the value at [`OptionError::path`] in the notation of the runtime's language;
    /// `spell` converts a name to its spelling.
    pub fn message(&self, shown: &str, spell: impl Fn(&str) -> String) -> String {
        let path = || label(&self.path, &spell);
        let last = || match self.path.last() {
            Some(PathStep::Name(name)) => spell(name),
            _ => String::new(),
        };
        match &self.fault {
            OptionFault::Unknown { what, known } => {
                let known: Vec<String> = known.iter().map(|name| spell(name)).collect();
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                suggest::unexpected(what, &spell(&self.given), &known)
            }
            OptionFault::Type { expected } => {
                let such = if self.is_text_for_list(expected) {
                    format!(", such as [{shown}]")
                } else {
                    String::new()
                };
                let joint =
                    if matches!(self.path.last(), Some(PathStep::Item(_))) { "has the item" } else { "is" };
                format!("{} {joint} {shown}, expected {expected}{such}", path())
            }
            OptionFault::Value { expected } => format!("{} is {}, expected {expected}", path(), self.given),
            OptionFault::Sentence(text) => text.clone(),
            OptionFault::Limit { .. } => {
                format!("the limit {:?} is {shown}; expected a whole number from 0 to {}", last(), u64::MAX)
            }
        }
    }

    /// Whether a single text was given where a list of texts is expected.
    fn is_text_for_list(&self, expected: &str) -> bool {
        self.given.starts_with('"') && expected.starts_with("a list")
    }
}

/// The names of a path, without a final item.
fn label(path: &[PathStep], spell: impl Fn(&str) -> String) -> String {
    let mut label = String::new();
    let last = path.len().saturating_sub(1);
    for (at, step) in path.iter().enumerate() {
        match step {
            PathStep::Name(name) if label.is_empty() => label = spell(name),
            PathStep::Name(name) => label = format!("{label}.{}", spell(name)),
            PathStep::Item(item) if at < last => label = format!("{label}[{item}]"),
            PathStep::Item(_) => {}
        }
    }
    label
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(&self.given, str::to_owned))
    }
}

impl std::error::Error for OptionError {}

/// In Rust's notation. Values with members or items are shown by their type only.
impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing"),
            Self::Bool(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            // With its point or exponent: 1e3 is not a whole number to an option.
            Self::Number(value) => write!(f, "{value:?}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Bytes(_) => f.write_str("bytes"),
            Self::List(_) => f.write_str("a list"),
            Self::Members(_) => f.write_str("an object"),
            Self::Other => f.write_str("an object of another type"),
        }
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for OptionValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for OptionValue {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for OptionValue {
    fn from(value: u64) -> Self {
        Self::Integer(value.into())
    }
}

/// An object with all options of a type.
impl<T: NamedOptions + Default> FromOption for T {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let mut made = Self::default();
        set_all(&mut made, value)?;
        Ok(made)
    }
}

/// Sets each option in `value`, an object.
///
/// # Errors
/// [`OptionError`] if `value` is not an object, a name is unknown, or a value is invalid.
pub fn set_all<T: NamedOptions>(options: &mut T, value: OptionValue) -> Result<(), OptionError> {
    let OptionValue::Members(members) = value else {
        return Err(OptionError::wrong_type(&value, T::EXPECTED));
    };
    members.into_iter().try_for_each(|(name, value)| options.set(&name, value))
}

/// The text of an option.
impl FromOption for String {
    const EXPECTED: &'static str = "a text";
    const SEVERAL: &'static str = "a list of texts";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Text(text) => Ok(text),
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

impl FromOption for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Bool(value) => Ok(value),
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

impl FromOption for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::Number(value) => Ok(value),
            #[expect(clippy::cast_precision_loss, reason = "a whole number where a fraction may stand")]
            OptionValue::Integer(value) => Ok(value as f64),
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

macro_rules! whole_numbers {
    ($($type:ty, $expected:literal;)+) => {
        $(impl FromOption for $type {
            const EXPECTED: &'static str = $expected;

            fn from_option(value: OptionValue) -> Result<Self, OptionError> {
                match value {
                    OptionValue::Integer(given) => {
                        Self::try_from(given).map_err(|_| OptionError::wrong_type(&value, Self::EXPECTED))
                    }
                    _ => Err(OptionError::wrong_type(&value, "a whole number")),
                }
            }
        })+
    };
}
whole_numbers! {
    i32, "a whole number of 32 bits";
    u64, "a whole number from 0";
    usize, "a whole number from 0";
}

impl<T: FromOption> FromOption for Option<T> {
    const EXPECTED: &'static str = T::EXPECTED;

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::None => Ok(None),
            value => T::from_option(value).map(Some),
        }
    }
}

impl<T: FromOption> FromOption for Vec<T> {
    const EXPECTED: &'static str = T::SEVERAL;

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let OptionValue::List(items) = value else {
            return Err(OptionError::wrong_type(&value, Self::EXPECTED));
        };
        let read = |(at, item)| T::from_option(item).map_err(|error| error.under(PathStep::Item(at)));
        items.into_iter().enumerate().map(read).collect()
    }
}

impl<A: FromOption, B: FromOption> FromOption for (A, B) {
    const EXPECTED: &'static str = "a list of two";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let wrong = OptionError::wrong_type(&value, Self::EXPECTED);
        let OptionValue::List(items) = value else { return Err(wrong) };
        let Ok([first, second]) = <[OptionValue; 2]>::try_from(items) else { return Err(wrong) };
        let first = A::from_option(first).map_err(|error| error.under(PathStep::Item(0)))?;
        Ok((first, B::from_option(second).map_err(|error| error.under(PathStep::Item(1)))?))
    }
}

/// Declares the options of a type: `by_name!(Icon, "an icon" { "src" => src, "sizes" => sizes })`. The value is stored
/// in the field after the arrow; `with` names a function that converts it, for types without a conversion of their own.
macro_rules! by_name {
    (@read $value:ident, $read:path) => { $read($value) };
    (@read $value:ident,) => { $crate::option::FromOption::from_option($value) };
    ($type:ty, $expected:literal { $($name:literal => $($field:ident).+ $(with $read:path)?),+ $(,)? }) => {
        impl $crate::option::NamedOptions for $type {
            const EXPECTED: &'static str = $expected;
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn set(
                &mut self,
                name: &str,
                value: $crate::option::OptionValue,
            ) -> Result<(), $crate::option::OptionError> {
                match name {
                    $($name => {
                        let read = $crate::option::by_name!(@read value, $($read)?);
                        self.$($field).+ =
                            read.map_err(|error| error.under($crate::option::PathStep::Name($name.into())))?;
                    })+
                    _ => return Err($crate::option::OptionError::unknown("option", name, Self::NAMES)),
                }
                Ok(())
            }
        }
    };
}
pub(crate) use by_name;

/// Implements [`FromOption`] for types that are one of a few words, with their own `parse`.
macro_rules! parse_by_name {
    ($($type:ty, $expected:literal;)+) => {
        $(impl $crate::option::FromOption for $type {
            const EXPECTED: &'static str = "a text";
            const SEVERAL: &'static str = "a list of texts";

            fn from_option(
                value: $crate::option::OptionValue,
            ) -> Result<Self, $crate::option::OptionError> {
                match &value {
                    $crate::option::OptionValue::Text(word) => Self::parse(word)
                        .ok_or_else(|| $crate::option::OptionError::not_allowed(&value, $expected)),
                    _ => Err($crate::option::OptionError::wrong_type(&value, "a text")),
                }
            }
        })+
    };
}
pub(crate) use parse_by_name;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Setup;
    use crate::http::{Answers, Hosts, Rules};
    use crate::limits::Limits;
    use crate::resource::{Resource, Template};

    fn members<const N: usize>(members: [(&str, OptionValue); N]) -> OptionValue {
        OptionValue::Members(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn texts<const N: usize>(texts: [&str; N]) -> OptionValue {
        OptionValue::List(texts.into_iter().map(OptionValue::from).collect())
    }

    /// The message for a wrong value, and whether its type is wrong.
    fn said<T: NamedOptions>(mut options: T, name: &str, value: OptionValue) -> (String, bool) {
        let error = options.set(name, value).unwrap_err();
        (error.to_string(), error.is_type())
    }

    #[test]
    fn a_wrong_value_is_shown_with_what_would_be_right() {
        let resource = || Resource::new("a://b");
        for (name, value, message, is_type) in [
            ("title", 5_u64.into(), "title is 5, expected a text", true),
            ("children", "yes".into(), "children is \"yes\", expected true or false", true),
            ("priority", "high".into(), "priority is \"high\", expected a number", true),
            ("size", OptionValue::Integer(-1), "size is -1, expected a whole number from 0", true),
            ("size", OptionValue::Number(1.5), "size is 1.5, expected a whole number", true),
            (
                "scopes",
                "read".into(),
                "scopes is \"read\", expected a list of texts, such as [\"read\"]",
                true,
            ),
            (
                "audience",
                OptionValue::List(vec!["user".into(), 7_u64.into()]),
                "audience has the item 7, expected a text",
                true,
            ),
            ("audience", texts(["users"]), "audience is \"users\", expected user or assistant", false),
            ("cache_scope", "all".into(), "cache_scope is \"all\", expected public or private", false),
            (
                "mimeType",
                "text/plain".into(),
                "unexpected option \"mimeType\"; did you mean \"mime_type\"?",
                false,
            ),
        ] {
            assert_eq!(said(resource(), name, value), (message.to_owned(), is_type));
        }
    }

    /// The message contains the path of a nested value, and a runtime can find its own value by the path.
    #[test]
    fn a_value_inside_others_is_named_by_its_path() {
        let icons = OptionValue::List(vec![members([("src", "a".into()), ("theme", "grey".into())])]);
        assert_eq!(
            said(Resource::new("a://b"), "icons", icons.clone()).0,
            "icons[0].theme is \"grey\", expected light or dark"
        );
        let error = Resource::new("a://b").set("icons", icons).unwrap_err();
        assert_eq!(
            error.path(),
            [PathStep::Name("icons".into()), PathStep::Item(0), PathStep::Name("theme".into())]
        );
        let camel = |name: &str| name.to_uppercase();
        let hint = members([("ttl_ms", OptionValue::Integer(-1))]);
        let error = Setup::default().set("list_cache", hint).unwrap_err();
        assert_eq!(
            error.message("MINUS ONE", camel),
            "LIST_CACHE.TTL_MS is MINUS ONE, expected a whole number from 0"
        );
    }

    #[test]
    fn each_limit_is_set_by_its_name() {
        for name in Limits::NAMES {
            let mut limits = Limits::default();
            let before = Limits::default();
            limits.set(name, 7_777_u64).unwrap();
            assert_ne!(limits, before, "{name}");
        }
        let max = u64::MAX;
        for (value, is_type) in [
            (OptionValue::Integer(-1), false),
            (OptionValue::Number(1.5), true),
            ("20".into(), true),
            (true.into(), true),
        ] {
            let message = format!("the limit \"page\" is {value}; expected a whole number from 0 to {max}");
            assert_eq!(said(Limits::default(), "page", value), (message, is_type));
        }
    }

    #[test]
    fn the_options_of_an_endpoint_have_short_forms() {
        let mut rules = Rules::default();
        for (name, value) in [
            ("metrics", true.into()),
            ("hosts", "*".into()),
            ("answers", "events".into()),
            ("sse24", true.into()),
            ("polling", OptionValue::List(vec![30_000_u64.into(), 1_000_u64.into()])),
            ("auth", members([("resource", "https://a".into()), ("required_scopes", texts(["read"]))])),
        ] {
            rules.set(name, value).unwrap();
        }
        assert_eq!(rules.metrics.as_deref(), Some(Rules::METRICS));
        assert_eq!((&rules.hosts, rules.answers), (&Hosts::Any, Answers::Events));
        assert_eq!(rules.sse24.map(|paths| paths.events).as_deref(), Some("/sse"));
        assert_eq!(rules.polling.map(|polling| polling.after), Some(30_000));
        assert_eq!(rules.auth.map(|auth| auth.required_scopes), Some(vec!["read".to_owned()]));
    }

    #[test]
    fn what_a_template_is_described_with() {
        let mut template = Template::new("a://{x}");
        let parameter =
            members([("name", "x".into()), ("type", "date".into()), ("values", texts(["2025-01-01"]))]);
        let fields = [
            ("title", "T".into()),
            ("pages", true.into()),
            ("completes", texts(["x"])),
            ("parameters", OptionValue::List(vec![parameter])),
        ];
        set_all(&mut template, members(fields)).unwrap();
        assert_eq!(template.details.title.as_deref(), Some("T"));
        assert_eq!(template.list.map(|list| list.pages), Some(true));
        assert_eq!((&*template.parameters[0].name, template.parameters[0].values.len()), ("x", 1));
        assert!(!said(template, "size", 1_u64.into()).1, "a name that there is not");
    }
}
