//! The options of providers. Each option is one row, from which follow its field, its default, its setter, its place in
//! the table of options by name, and its documentation in every language.
//!
//! Law: an option is in one row. The guides, the interfaces of Node and the dictionaries of Python are made of the table.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, PathStep};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

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
    /// The accepted values.
    pub kind: OptionType,
    /// Its value if it is not set.
    pub default: OptionDefault,
    /// Its effect, in a sentence or two.
    pub about: &'static str,
}

/// The accepted values of an option. `Display` describes them, such as `true or false`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionType {
    /// `true` or `false`.
    Flag,
    /// A whole number.
    Count,
    /// A whole number between two.
    CountBetween(usize, usize),
    /// A number of bytes, or nothing.
    Bytes,
    /// A size: a number of bytes, or a text such as `64 MiB`.
    Size,
    /// A time: a number of milliseconds, or a text such as `1s`.
    Time,
    /// A time between two.
    TimeBetween(Duration, Duration),
    /// A text: the noun for it, such as `JSON pointer`.
    Text(&'static str),
    /// A text, or several: the noun for one.
    Texts(&'static str),
    /// The path of a file, or nothing.
    File,
    /// One of a few words.
    Words(&'static [&'static str]),
    /// The word `all`, or a list of texts: the noun for one.
    AllOr(&'static str),
    /// A path, several, or names with a path each: the noun for a path, and for names.
    Paths(&'static str, &'static str),
    /// A text that no message shows, or the name of an environment variable that has it.
    Secret,
    /// `true` for all tools, `false` for none, or the names of some.
    Tools,
    /// Names with a text each: the noun for such a text.
    NamedTexts(&'static str),
    /// Names with a secret each.
    NamedSecrets,
    /// Names with an object each: what each is, and its options.
    Named(&'static str, &'static [OptionRow]),
}

/// The value of an option that is not set. `Display` formats it in YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionDefault {
    /// There is none: the option must be given.
    Required,
    /// No value.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A whole number.
    Count(usize),
    /// A number of bytes.
    Size(u64),
    /// A time.
    Time(Duration),
    /// A text.
    Text(&'static str),
    /// Several texts.
    Texts(&'static [&'static str]),
    /// No names.
    Names,
}

impl OptionType {
    /// One word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::Count | Self::CountBetween(..) => "count",
            Self::Bytes => "bytes",
            Self::Size => "size",
            Self::Time | Self::TimeBetween(..) => "time",
            Self::Text(_) => "text",
            Self::Texts(_) => "texts",
            Self::File => "file",
            Self::Words(_) => "words",
            Self::AllOr(_) => "all_or",
            Self::Paths(..) => "paths",
            Self::Secret => "secret",
            Self::Tools => "tools",
            Self::NamedTexts(_) => "named_texts",
            Self::NamedSecrets => "named_secrets",
            Self::Named(..) => "named",
        }
    }
}

impl fmt::Display for OptionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("true or false"),
            Self::Count => f.write_str("a whole number"),
            Self::CountBetween(least, most) => write!(f, "a whole number from {least} to {most}"),
            Self::Bytes => f.write_str("a whole number of bytes"),
            Self::Size => f.write_str("a size such as 64 MiB"),
            Self::Time => f.write_str("a time such as 1s"),
            Self::TimeBetween(least, most) => {
                write!(f, "a time from {} to {}", TimeSpan(*least), TimeSpan(*most))
            }
            Self::Text(noun) => write!(f, "a {noun}"),
            Self::Texts(noun) => write!(f, "a {noun} or a list of {noun}s"),
            Self::File => f.write_str("a file"),
            Self::Words(words) => f.write_str(&words.join(" or ")),
            Self::AllOr(noun) => write!(f, "all or a list of {noun}s"),
            Self::Paths(path, names) => {
                write!(f, "a {path}, a list of them, or {names} with a {path} each")
            }
            Self::Secret => f.write_str("a text, or {env: NAME}"),
            Self::Tools => f.write_str("true, false or a list of names"),
            Self::NamedTexts(noun) => write!(f, "names with a {noun} each"),
            Self::NamedSecrets => f.write_str("names with a text or {env: NAME} each"),
            Self::Named(what, _) => write!(f, "names with {what} each"),
        }
    }
}

impl fmt::Display for OptionDefault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Required => f.write_str("must be given"),
            Self::Null => f.write_str("null"),
            Self::Flag(value) => value.fmt(f),
            Self::Count(value) => value.fmt(f),
            Self::Size(bytes) => Size(*bytes).fmt(f),
            Self::Time(time) => TimeSpan(*time).fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Texts(texts) => write!(f, "[{}]", texts.join(", ")),
            Self::Names => f.write_str("{}"),
        }
    }
}

/// A megabyte of 1,024 kilobytes.
#[doc(hidden)]
pub const MIB: u64 = 1 << 20;
/// A day.
#[doc(hidden)]
pub const DAY: Duration = Duration::from_secs(86_400);

/// The default of an option with several texts.
#[doc(hidden)]
pub fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A text, or several; `noun` names one of them.
///
/// # Errors
/// It is neither.
#[doc(hidden)]
pub fn texts(value: OptionValue, noun: &str) -> Result<Vec<String>, OptionError> {
    let expected = || format!("a {noun} or a list of {noun}s");
    match value {
        OptionValue::Text(text) => Ok(vec![text]),
        OptionValue::List(_) => Vec::from_option(value),
        other => Err(OptionError::wrong_type(&other, expected())),
    }
}

/// The path of a file, or nothing.
///
/// # Errors
/// It is neither.
#[doc(hidden)]
pub fn file(value: OptionValue) -> Result<Option<PathBuf>, OptionError> {
    match value {
        OptionValue::None => Ok(None),
        OptionValue::Text(path) => Ok(Some(path.into())),
        other => Err(OptionError::wrong_type(&other, "the path of a file")),
    }
}

/// A time.
///
/// # Errors
/// It is neither a time nor a number of milliseconds.
#[doc(hidden)]
pub fn time(value: OptionValue) -> Result<Duration, OptionError> {
    TimeSpan::from_option(value).map(|span| span.0)
}

/// A time, or nothing.
///
/// # Errors
/// See [`time`].
#[doc(hidden)]
pub fn some_time(value: OptionValue) -> Result<Option<Duration>, OptionError> {
    Option::<TimeSpan>::from_option(value).map(|span| span.map(|span| span.0))
}

/// A size in bytes.
///
/// # Errors
/// It is neither a size nor a number of bytes.
#[doc(hidden)]
pub fn size(value: OptionValue) -> Result<u64, OptionError> {
    Size::from_option(value).map(|size| size.0)
}

/// Refuses a number that is not between two.
///
/// # Errors
/// It is not.
#[doc(hidden)]
pub fn check_count(name: &'static str, given: usize, least: usize, most: usize) -> Result<(), OptionError> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let value = OptionValue::Integer(i128::try_from(given).unwrap_or(i128::MAX));
    let expected = OptionType::CountBetween(least, most).to_string();
    Err(OptionError::not_allowed(&value, expected).under(PathStep::Name(name.into())))
}

/// Refuses a time that is not between two.
///
/// # Errors
/// It is not.
#[doc(hidden)]
pub fn check_time(
    name: &'static str,
    given: Duration,
    least: Duration,
    most: Duration,
) -> Result<(), OptionError> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let value = TimeSpan(given).to_string().into();
    let expected = OptionType::TimeBetween(least, most).to_string();
    Err(OptionError::not_allowed(&value, expected).under(PathStep::Name(name.into())))
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
pub struct TimeSpan(pub Duration);

/// A number of bytes: a whole number, or a text such as `64 MiB` or `10 kB`.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub u64);

/// The units of times, in milliseconds. The last of two units with one length is shown.
const TIMES: [(&str, u64); 6] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("min", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
/// The units of sizes, in bytes.
const SIZES: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

impl FromOption for TimeSpan {
    const EXPECTED: &'static str = "a time such as \"1s\", or a whole number of milliseconds";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        const CENTURY: u64 = 100 * 365 * 86_400_000;
        let ms = amount(&value, &TIMES, Self::EXPECTED)?.min(CENTURY);
        Ok(Self(Duration::from_millis(ms)))
    }
}

impl FromOption for Size {
    const EXPECTED: &'static str = "a size such as \"64 MiB\", or a whole number of bytes";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        amount(&value, &SIZES, Self::EXPECTED).map(Self)
    }
}

/// In the largest unit in which it is a whole number.
impl fmt::Display for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        whole(f, ms, &TIMES, "")
    }
}

/// In the largest unit in which it is a whole number.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        whole(f, self.0, &SIZES, " ")
    }
}

fn whole(f: &mut fmt::Formatter<'_>, amount: u64, units: &[(&str, u64)], space: &str) -> fmt::Result {
    let fits =
        units.iter().filter(|(_, factor)| *factor == 1 || amount > 0 && amount.is_multiple_of(*factor));
    let (unit, factor) = fits.max_by_key(|(_, factor)| *factor).unwrap_or(&("", 1));
    write!(f, "{}{space}{unit}", amount / factor)
}

/// A whole number, or a text of a number and a unit. The case of letters and spaces between them do not matter.
fn amount(value: &OptionValue, units: &[(&str, u64)], expected: &'static str) -> Result<u64, OptionError> {
    let read = match value {
        OptionValue::Integer(whole) => u64::try_from(*whole).ok(),
        OptionValue::Text(text) => {
            let text = text.trim();
            let (number, unit) =
                text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
            let mut same = units.iter().filter(|(name, _)| name.eq_ignore_ascii_case(unit.trim()));
            let factor = same.next().map(|(_, factor)| *factor);
            number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor))
        }
        other => return Err(OptionError::wrong_type(other, expected)),
    };
    read.ok_or_else(|| OptionError::not_allowed(value, expected))
}
