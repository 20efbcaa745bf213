//! Options of templates and their variables. Plain data; the only logic is parsing their names.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

/// Options of one template. The default is right for most templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateOptions {
    /// Options by variable name. Names that the template does not have are ignored.
    pub variables: BTreeMap<String, VariableOptions>,
    /// The treatment of query names that the template does not have. Default: ignored.
    pub extra_query: ExtraQuery,
    /// Maximum number of captures in one segment that only the choice rule separates, which limits the cost of a
    /// lookup. Default 8 ([`TemplateOptions::CAPTURES`]).
    pub captures: usize,
}

impl TemplateOptions {
    /// The default of [`TemplateOptions::captures`].
    pub const CAPTURES: usize = 8;

    /// Sets the options of the variable `name`.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, options: VariableOptions) -> Self {
        self.variables.insert(name.into(), options);
        self
    }
}

impl Default for TemplateOptions {
    fn default() -> Self {
        Self { variables: BTreeMap::new(), extra_query: ExtraQuery::Ignore, captures: Self::CAPTURES }
    }
}

/// Options of one variable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VariableOptions {
    /// The type of the value. Default: [`Kind::List`] with `*`, else [`Kind::Scalar`].
    pub kind: Option<Kind>,
    /// The policy for refusing values. Default: [`ValuePolicy::Path`] for `{+x}`, [`ValuePolicy::Text`] in a query or
    /// fragment, else [`ValuePolicy::Segment`].
    pub policy: Option<ValuePolicy>,
    /// Whether `{x}` and `{+x}` may be empty; other operators always allow it. Default `false`.
    pub empty: bool,
    /// The characters that `{+x}` may contain. Default: all except `?` and `#`.
    pub chars: Chars,
}

/// A variable of a parsed template.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TemplateVariable {
    /// Its name, as the template spells it.
    pub name: Arc<str>,
    /// The type of its value.
    pub kind: Kind,
    /// The policy for refusing values.
    pub policy: ValuePolicy,
    /// Whether every match defines it. Optional variables may be missing from the parameters.
    pub required: bool,
}

/// Declares an enum with one name for each variant, used in options, fixtures and messages.
macro_rules! named_values {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$doc])* $variant),+ }

        impl $name {
            /// Its name in options, fixtures and messages.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownName;
            fn from_str(word: &str) -> Result<Self, UnknownName> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownName { expected: &[$($word),+] }),
                }
            }
        }
    };
}
pub(super) use named_values;

named_values! {
    /// The type of a value. It is declared, never guessed from the input.
    Kind {
        /// One text.
        Scalar = "scalar",
        /// Several texts: split at commas, or at the operator's separator when exploded.
        List = "list",
        /// Pairs: `k,v,k,v`, or `k=v` items when exploded.
        Map = "map",
    }
}

named_values! {
    /// A policy for refusing decoded values. It applies to each item of a list and each value of a map. A filter, not
    /// containment: a handler that opens files must still open them relative to a root directory.
    ValuePolicy {
        /// One path segment: refuses `/`, `\`, NUL, control characters, `.`, `..` and a drive form (`C:`).
        Segment = "segment",
        /// A relative path: refuses `\`, NUL, control characters, a leading `/`, a drive form, and any `.` or `..` segment.
        Path = "path",
        /// Free text: refuses NUL, a leading `/` or `\`, a drive form, and any `..` segment.
        Text = "text",
        /// Refuses only bytes that are not UTF-8.
        Any = "any",
    }
}

named_values! {
    /// The characters that a `{+x}` may contain.
    #[derive(Default)]
    Chars {
        /// The characters of the operator: everything except `?` and `#`.
        #[default]
        Operator = "operator",
        /// Every character of a URI. The template must then have no query and no fragment.
        Any = "any",
    }
}

named_values! {
    /// The treatment of query names that the template does not have.
    #[derive(Default)]
    ExtraQuery {
        /// They are ignored.
        #[default]
        Ignore = "ignore",
        /// The template does not match.
        Reject = "reject",
    }
}

/// A text that is not one of an option's names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The names of the option.
    pub expected: &'static [&'static str],
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected one of: {}", self.expected.join(", "))
    }
}

impl std::error::Error for UnknownName {}
