//! The declared parameters of a template, and the check of values against them.
//!
//! Law: a check is linear in the length of the value. Its error says what is allowed. A value of a type other than text
//! has one spelling ([`spelling`]); others are refused, so that no URI avoids a rule about another spelling of it.

use super::spelling;
use crate::error::ReadError;
use mcp_resources_template::Value;
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;

/// The declaration of one variable of a template. For a list or a map it applies to each item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parameter {
    /// The variable's name.
    pub name: String,
    /// The type of its value. Default: any text.
    pub kind: ParameterKind,
    /// The allowed values. Default: empty, all values of the type.
    pub values: Vec<String>,
    /// A regular expression that the whole value must match. Default: none.
    pub pattern: Option<String>,
    /// A description for people and models.
    pub description: Option<String>,
    /// Whether URIs that leave the variable undefined are refused. Default `false`.
    pub required: bool,
    /// Whether a whole number must be one that a 64-bit float holds exactly, for languages without others. Default
    /// `false`.
    pub safe: bool,
}

impl Parameter {
    /// Declares the variable `name`, which accepts any text.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Sets the type of its value. Default: any text.
    #[must_use]
    pub fn kind(mut self, kind: ParameterKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the allowed values, which also complete the variable. Default: all values of the type.
    #[must_use]
    pub fn values<T: Into<String>>(mut self, values: impl IntoIterator<Item = T>) -> Self {
        self.values = values.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a regular expression that the whole value must match; it runs in linear time. Default: none.
    #[must_use]
    pub fn pattern(mut self, pattern: impl Into<String>) -> Self {
        self.pattern = Some(pattern.into());
        self
    }

    /// Sets the description for people and models. Default: none.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets whether URIs that leave the variable undefined are refused. Default `false`.
    #[must_use]
    pub fn required(mut self, required: bool) -> Self {
        self.required = required;
        self
    }

    /// Sets whether a whole number must be one that a 64-bit float holds exactly: from −(2⁵³ − 1) to 2⁵³ − 1. Default
    /// `false`.
    #[must_use]
    pub fn safe(mut self, safe: bool) -> Self {
        self.safe = safe;
        self
    }
}

/// The type of a variable's value, which is always written as text in a URI. Each value has one spelling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// Any text.
    #[default]
    String,
    /// A whole number in decimal, of at most 128 bits, without leading zeros and `+`.
    Integer,
    /// A finite number of 64 bits in its shortest form: `1`, `1.5`, `1e+21`, as JSON has it (RFC 8785).
    Number,
    /// `true` or `false`.
    Boolean,
    /// A day: `YYYY-MM-DD`.
    Date,
    /// A time in UTC: `YYYY-MM-DDTHH:MM:SSZ`, with a fraction of at most six digits unless it is zero.
    DateTime,
    /// A UUID in lower case, with hyphens.
    Uuid,
}

impl ParameterKind {
    /// Parses the name of a type: a `format` of JSON Schema where that is more specific than its `type`.
    pub fn parse(word: &str) -> Option<Self> {
        const ALL: [ParameterKind; 7] = [
            ParameterKind::String,
            ParameterKind::Integer,
            ParameterKind::Number,
            ParameterKind::Boolean,
            ParameterKind::Date,
            ParameterKind::DateTime,
            ParameterKind::Uuid,
        ];
        ALL.into_iter().find(|kind| {
            let (name, format) = kind.schema();
            format.unwrap_or(name) == word
        })
    }

    /// `type` and `format` of JSON Schema.
    pub fn schema(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::String => ("string", None),
            Self::Integer => ("integer", None),
            Self::Number => ("number", None),
            Self::Boolean => ("boolean", None),
            Self::Date => ("string", Some("date")),
            Self::DateTime => ("string", Some("date-time")),
            Self::Uuid => ("string", Some("uuid")),
        }
    }

    /// Whether `text` is the spelling of a value of this type.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::String => true,
            Self::Integer => spelling::is_integer(text),
            Self::Number => spelling::is_number(text),
            Self::Boolean => matches!(text, "true" | "false"),
            Self::Date => spelling::is_day(text),
            Self::DateTime => spelling::is_instant(text),
            Self::Uuid => spelling::is_lower_uuid(text),
        }
    }

    /// The spelling of the value that `text` writes in another way, for an error message.
    pub(crate) fn canonical(self, text: &str) -> Option<String> {
        match self {
            Self::String | Self::Boolean | Self::Date => None,
            Self::Integer => spelling::integer(text),
            Self::Number => spelling::number(text),
            Self::DateTime => spelling::instant(text),
            Self::Uuid => spelling::uuid(text),
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Self::String => "a text",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::Boolean => "true or false",
            Self::Date => "a date, YYYY-MM-DD",
            Self::DateTime => "a time in UTC, YYYY-MM-DDTHH:MM:SSZ",
            Self::Uuid => "a UUID",
        }
    }
}

/// A compiled [`Parameter`].
#[derive(Clone, Debug)]
pub struct ParameterCheck {
    parameter: Parameter,
    pattern: Option<Regex>,
}

impl ParameterCheck {
    /// Compiles the check.
    ///
    /// # Errors
    /// The reason, if the pattern is not a regular expression or needs more than 1 MiB.
    pub fn new(parameter: Parameter) -> Result<Self, String> {
        let compile = |pattern: &str| RegexBuilder::new(pattern).size_limit(1 << 20).build();
        let compile_whole = |pattern: &String| {
            // Compiled on its own first: `a)|(b` is a regular expression only inside parentheses.
            compile(pattern).and_then(|_| compile(&format!("^(?:{pattern})$")))
        };
        let pattern = parameter.pattern.as_ref().map(compile_whole).transpose();
        let pattern = pattern.map_err(|error| error.to_string())?;
        Ok(Self { parameter, pattern })
    }

    /// The declaration.
    pub fn parameter(&self) -> &Parameter {
        &self.parameter
    }

    /// The pattern with anchors, as it is published: JSON Schema searches, while this matches the whole value.
    pub fn pattern(&self) -> Option<&str> {
        self.pattern.as_ref().map(Regex::as_str)
    }

    /// Checks the value of a variable; `None` if the URI leaves it undefined.
    ///
    /// # Errors
    /// [`ReadError::RefusedParameter`] for the first invalid value, with the allowed values;
    /// [`ReadError::InvalidParameter`] if a required variable is undefined.
    pub fn check(&self, value: Option<&Value<'_>>) -> Result<(), ReadError> {
        if value.is_none() && self.parameter.required {
            let expected = self.expected().into_owned();
            return Err(ReadError::InvalidParameter { parameter: self.parameter.name.clone(), expected });
        }
        self.find(value, |text| !self.accepts(text))
    }

    /// Checks the spelling of the value of a variable alone, not whether it is one of the allowed values.
    ///
    /// # Errors
    /// [`ReadError::RefusedParameter`] for the first value that is none of the type.
    pub fn check_spelling(&self, value: Option<&Value<'_>>) -> Result<(), ReadError> {
        self.find(value, |text| !self.parameter.kind.accepts(text) || self.is_unsafe(text))
    }

    /// Refuses the first text that is wrong.
    fn find(&self, value: Option<&Value<'_>>, is_wrong: impl Fn(&str) -> bool) -> Result<(), ReadError> {
        let is_wrong = |text: &&Cow<'_, str>| is_wrong(text);
        let wrong = match value {
            None => None,
            Some(Value::Scalar(text)) => Some(text).filter(is_wrong),
            Some(Value::List(items)) => items.iter().find(is_wrong),
            Some(Value::Map(pairs)) => pairs.iter().map(|(_, value)| value).find(is_wrong),
        };
        wrong.map_or(Ok(()), |text| {
            Err(ReadError::RefusedParameter {
                parameter: self.parameter.name.clone(),
                value: text.to_string(),
                reason: self.refusal(text),
            })
        })
    }

    /// Whether `text` is a valid value.
    pub fn accepts(&self, text: &str) -> bool {
        let allowed = &self.parameter.values;
        self.parameter.kind.accepts(text)
            && !self.is_unsafe(text)
            && (allowed.is_empty() || allowed.iter().any(|value| value == text))
            && self.pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
    }

    /// Whether `text` is a whole number that a 64-bit float may not hold exactly, where that matters.
    fn is_unsafe(&self, text: &str) -> bool {
        const MOST: u64 = (1 << 53) - 1;
        self.parameter.safe
            && self.parameter.kind == ParameterKind::Integer
            && text.parse::<i128>().is_ok_and(|value| value.unsigned_abs() > u128::from(MOST))
    }

    /// The reason for refusing `text`, with its right spelling if it only has another one.
    fn refusal(&self, text: &str) -> String {
        let expected = self.expected();
        if self.is_unsafe(text) {
            return format!("expected {expected} from -9007199254740991 to 9007199254740991");
        }
        let canonical = self.parameter.kind.canonical(text).filter(|other| self.accepts(other));
        match canonical {
            Some(canonical) => format!("expected {canonical}, the only spelling of this value"),
            None => format!("expected {expected}"),
        }
    }

    fn expected(&self) -> Cow<'static, str> {
        const SHOWN: usize = 10;
        let values = &self.parameter.values;
        if !values.is_empty() {
            let rest = if values.len() > SHOWN { ", …" } else { "" };
            let shown = values[..values.len().min(SHOWN)].join(", ");
            return Cow::Owned(format!("one of: {shown}{rest}"));
        }
        match &self.parameter.pattern {
            Some(pattern) => Cow::Owned(format!("{} matching {pattern}", self.parameter.kind.expected())),
            None => Cow::Borrowed(self.parameter.kind.expected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(parameter: Parameter, text: &str) -> Option<String> {
        match ParameterCheck::new(parameter).unwrap().check(Some(&text.into())) {
            Ok(()) => None,
            Err(ReadError::RefusedParameter { parameter, value, reason }) => {
                assert_eq!((&*parameter, &*value), ("x", text));
                reason.strip_prefix("expected ").map(str::to_owned)
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn kinds_accept_their_own_spelling_alone() {
        use ParameterKind::*;
        for (kind, good, bad) in [
            (
                Integer,
                vec!["0", "-7", "18446744073709551615"],
                vec!["", "+1", "1.0", " 1", "1e3", "٣", "007", "-0"],
            ),
            (
                Number,
                vec!["0", "-1.5", "20000000000", "0.0015"],
                vec!["", ".5", "1.", "inf", "NaN", "1e999", "0x1", "1e", "2e10", "1.5E-3", "1.0"],
            ),
            (Boolean, vec!["true", "false"], vec!["True", "1", ""]),
            (Date, vec!["2025-02-28"], vec!["2025-02-29", "today"]),
            (
                DateTime,
                vec!["2025-02-28T00:00:00Z"],
                vec!["2025-02-28T00:00:00", "2025-02-28T00:00:00+00:00", "2025-02-28T01:00:00+01:00"],
            ),
            (
                Uuid,
                vec!["017f22e2-79b0-7cc3-98c4-dc0c0c07398f"],
                vec!["017f22e2", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"],
            ),
            (String, vec!["", "anything"], vec![]),
        ] {
            for text in good {
                assert!(kind.accepts(text), "{kind:?} {text}");
            }
            for text in bad {
                assert!(!kind.accepts(text), "{kind:?} {text}");
            }
        }
    }

    // S-16: a refusal names the parameter and what is allowed.
    #[test]
    fn a_refusal_says_what_is_allowed() {
        let x = || Parameter::new("x");
        assert_eq!(expected(x().kind(ParameterKind::Integer), "three"), Some("an integer".into()));
        assert_eq!(expected(x().values(["a", "b"]), "c"), Some("one of: a, b".into()));
        assert_eq!(expected(x().values(["a", "b"]), "b"), None);
        assert_eq!(expected(x().pattern("[a-z]+"), "ab1"), Some("a text matching [a-z]+".into()));
        let many = x().values((0..50).map(|n| n.to_string()));
        assert_eq!(expected(many, "x"), Some("one of: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …".into()));
    }

    /// Another spelling of a value is refused, with the right one; one that is not allowed anyway is not suggested.
    #[test]
    fn a_refusal_gives_the_right_spelling() {
        let x = |kind| Parameter::new("x").kind(kind);
        let integer = || x(ParameterKind::Integer);
        assert_eq!(expected(integer(), "007"), Some("7, the only spelling of this value".into()));
        assert_eq!(expected(integer().values(["8"]), "007"), Some("one of: 8".into()));
        assert_eq!(
            expected(x(ParameterKind::Number), "1.0"),
            Some("1, the only spelling of this value".into())
        );
        assert_eq!(expected(x(ParameterKind::Boolean), "1"), Some("true or false".into()));
    }

    /// A language whose numbers are floats gets no other number than the client has sent.
    #[test]
    fn unsafe_integers_are_refused_where_they_would_be_rounded() {
        let x = || Parameter::new("x").kind(ParameterKind::Integer).safe(true);
        for good in ["9007199254740991", "-9007199254740991", "0"] {
            assert_eq!(expected(x(), good), None, "{good}");
        }
        for bad in ["9007199254740992", "9007199254740993", "-9007199254740992", "1234567890123456789"] {
            let range = "an integer from -9007199254740991 to 9007199254740991";
            assert_eq!(expected(x(), bad), Some(range.into()), "{bad}");
            assert_eq!(expected(x().safe(false), bad), None, "{bad}");
        }
    }

    #[test]
    fn a_pattern_matches_the_whole_value() {
        for pattern in ["a|b", "^a|b$", "(a|b)", "^(a|b)$"] {
            assert_eq!(expected(Parameter::new("x").pattern(pattern), "b"), None, "{pattern}");
            assert!(expected(Parameter::new("x").pattern(pattern), "bb").is_some(), "{pattern}");
            assert!(expected(Parameter::new("x").pattern(pattern), "b\n").is_some(), "{pattern}");
        }
        for pattern in ["(a", "a)|(b", r"(?=a)", r"(?x)a # b"] {
            assert!(ParameterCheck::new(Parameter::new("x").pattern(pattern)).is_err(), "{pattern}");
        }
        assert!(ParameterCheck::new(Parameter::new("x").pattern(r"(\w{1000}){1000}")).is_err());
    }

    #[test]
    fn an_undefined_variable_is_refused_only_if_required() {
        let optional = ParameterCheck::new(Parameter::new("x").kind(ParameterKind::Integer)).unwrap();
        assert_eq!(optional.check(None), Ok(()));
        let required = ParameterCheck::new(Parameter::new("x").required(true)).unwrap();
        assert!(required.check(None).is_err());
        assert_eq!(optional.check(Some(&vec!["1", "2"].into())), Ok(()));
        assert!(optional.check(Some(&vec!["1", "b"].into())).is_err());
    }
}
