//! The options of providers as data: the source of documentation, the command's help and the bindings' stubs.
//!
//! Law: an option is in one table, with its type, its default and a sentence; the code that sets it is beside them.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};

/// One kind of provider, which a program declares by a name such as `files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionKind {
    /// The word.
    pub name: &'static str,
    /// One sentence about the resources that it serves.
    pub about: &'static str,
    /// The options, in the order of the documentation.
    pub options: &'static [OptionRow],
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// Its name, in `snake_case`.
    pub name: &'static str,
    /// The accepted values, such as `true or false`.
    pub kind: &'static str,
    /// The default in YAML notation; `None` if the option is required.
    pub default: Option<&'static str>,
    /// One sentence about its effect.
    pub about: &'static str,
}

/// Implements the options of a type: `TABLE`, and [`NamedOptions`](mcp_resources_engine::option::NamedOptions). The
/// expression behind each arrow sets the value.
#[doc(hidden)]
#[macro_export]
macro_rules! option_table {
    ($type:ty, $expected:literal { $($name:literal: $kind:literal, $default:expr, $about:literal => $set:expr;)+ }) => {
        impl $type {
            /// The options as data.
            pub const TABLE: &'static [$crate::options::OptionRow] = &[$(
                $crate::options::OptionRow { name: $name, kind: $kind, default: $default, about: $about }
            ),+];
        }

        impl mcp_resources_engine::option::NamedOptions for $type {
            const EXPECTED: &'static str = $expected;
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn set(
                &mut self,
                name: &str,
                value: mcp_resources_engine::option::OptionValue,
            ) -> Result<(), mcp_resources_engine::option::OptionError> {
                use mcp_resources_engine::option::{OptionError, OptionValue, PathStep};
                let set: fn(&mut Self, OptionValue) -> Result<(), OptionError> = match name {
                    $($name => $set,)+
                    _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
                };
                set(self, value).map_err(|error| error.under(PathStep::Name(name.to_owned().into())))
            }
        }
    };
}
#[doc(hidden)]
pub use option_table;

/// Reads options of which one, paths with or without names, may be given alone. `$noun` is the term for each path, such
/// as `directory`.
#[doc(hidden)]
#[macro_export]
macro_rules! paths_or_options {
    ($type:ty, $paths:ident: $noun:literal) => {
        impl mcp_resources_engine::option::FromOption for $type {
            const EXPECTED: &'static str = concat!("a ", $noun, ", a list of them, or an object of options");

            fn from_option(
                value: mcp_resources_engine::option::OptionValue,
            ) -> Result<Self, mcp_resources_engine::option::OptionError> {
                use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, set_all};
                let mut options = Self::new();
                match value {
                    OptionValue::Members(_) => set_all(&mut options, value)?,
                    OptionValue::Text(_) | OptionValue::List(_) => {
                        options.$paths = $crate::named::read(value, $noun)?;
                    }
                    other => return Err(OptionError::wrong_type(&other, <Self as FromOption>::EXPECTED)),
                }
                Ok(options)
            }
        }
    };
}
#[doc(hidden)]
pub use paths_or_options;

/// Sets an option to a parsed value.
///
/// # Errors
/// The value is wrong.
#[doc(hidden)]
pub fn put<T>(option: &mut T, read: Result<T, OptionError>) -> Result<(), OptionError> {
    *option = read?;
    Ok(())
}

/// A text, or several.
///
/// # Errors
/// It is neither.
#[doc(hidden)]
pub fn texts(value: OptionValue) -> Result<Vec<String>, OptionError> {
    match value {
        OptionValue::Text(text) => Ok(vec![text]),
        other => Vec::from_option(other),
    }
}

/// The name of an environment variable for a message. Text that cannot be a name may be a secret in the wrong place, and is
/// left out.
#[doc(hidden)]
pub fn variable(name: &str) -> String {
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match is_name {
        true => format!("{name:?}"),
        false => "(not shown: a name has only letters, digits and _; write the name, not the value)".into(),
    }
}

/// A length of time: a number of milliseconds, or a text such as `200ms`, `1s`, `5min`, `1h` or `7d`. Longer ones than a
/// century are a century, so that a time can be added to any clock.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan(pub std::time::Duration);

/// A number of bytes: a whole number, or a text such as `64 MiB` or `10 kB`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

impl FromOption for TimeSpan {
    const EXPECTED: &'static str = "a time such as \"1s\", or a whole number of milliseconds";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        const UNITS: [(&str, u64); 6] =
            [("ms", 1), ("s", 1_000), ("min", 60_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
        const CENTURY: u64 = 100 * 365 * 86_400_000;
        let ms = amount(&value, &UNITS, Self::EXPECTED)?.min(CENTURY);
        Ok(Self(std::time::Duration::from_millis(ms)))
    }
}

impl FromOption for Size {
    const EXPECTED: &'static str = "a size such as \"64 MiB\", or a whole number of bytes";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        const UNITS: [(&str, u64); 7] = [
            ("b", 1),
            ("kib", 1 << 10),
            ("mib", 1 << 20),
            ("gib", 1 << 30),
            ("kb", 1_000),
            ("mb", 1_000_000),
            ("gb", 1_000_000_000),
        ];
        amount(&value, &UNITS, Self::EXPECTED).map(Self)
    }
}

/// A whole number, or a text of a number and a unit. The case of letters and spaces between them do not matter.
fn amount(value: &OptionValue, units: &[(&str, u64)], expected: &'static str) -> Result<u64, OptionError> {
    let read = match value {
        OptionValue::Integer(whole) => u64::try_from(*whole).ok(),
        OptionValue::Text(text) => {
            let text = text.trim().to_ascii_lowercase();
            let (number, unit) =
                text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
            let factor = units.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| *factor);
            number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor))
        }
        other => return Err(OptionError::wrong_type(other, expected)),
    };
    read.ok_or_else(|| OptionError::not_allowed(value, expected))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    // S-20: units are what people write; anything else is refused with its value.
    #[test]
    fn times_and_sizes_have_units() {
        let span = |text: &str| TimeSpan::from_option(text.into()).map(|span| span.0);
        for (text, ms) in
            [("200ms", 200), ("1s", 1_000), ("10 s", 10_000), ("5min", 300_000), ("1h", 3_600_000)]
        {
            assert_eq!(span(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(TimeSpan::from_option(250_u64.into()), Ok(TimeSpan(Duration::from_millis(250))));
        let size = |text: &str| Size::from_option(text.into()).map(|size| size.0);
        for (text, bytes) in [("64 MiB", 64 << 20), ("1KiB", 1 << 10), ("10 kB", 10_000), ("7 B", 7)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in
            ["", "1", "s", "-1s", "1.5s", "1 fortnight", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(span(text).is_err(), "{text}");
        }
        let refused = |value| Size::from_option(value).unwrap_err().to_string();
        assert!(refused("64 megs".into()).contains("\"64 megs\", expected a size such as \"64 MiB\""));
        assert!(refused(true.into()).contains("true, expected a size"));
        assert!(refused(OptionValue::Integer(-1)).contains("-1, expected a size"));
    }
}
