//! The options of providers as data: what documentation, the command's help and the bindings' stubs are made of.
//!
//! Law: an option stands in one table, with its type, its default and a sentence; what sets it stands beside them.

/// One kind of provider: what a program declares by a word, as `files`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// The word.
    pub name: &'static str,
    /// What it serves, as one sentence.
    pub about: &'static str,
    /// The options, in the order in which they are documented.
    pub options: &'static [Row],
}

/// One option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, in `snake_case`.
    pub name: &'static str,
    /// What it may be, as `true or false`.
    pub kind: &'static str,
    /// What holds without it, as it is written in YAML; `None` if it must be given.
    pub default: Option<&'static str>,
    /// What it does, as one sentence.
    pub about: &'static str,
}

/// The table of the options of a type: `TABLE`, and [`Named`](mcp_resources_engine::option::Named). Behind the arrow stands
/// what puts the value where it belongs.
#[cfg(any(feature = "config", feature = "files"))]
macro_rules! option_table {
    ($type:ty, $expected:literal { $($name:literal: $kind:literal, $default:expr, $about:literal => $set:expr;)+ }) => {
        impl $type {
            /// The options as data.
            pub const TABLE: &'static [$crate::options::Row] = &[$(
                $crate::options::Row { name: $name, kind: $kind, default: $default, about: $about }
            ),+];
        }

        impl mcp_resources_engine::option::Named for $type {
            const EXPECTED: &'static str = $expected;
            const NAMES: &'static [&'static str] = &[$($name),+];

            fn set(
                &mut self,
                name: &str,
                value: mcp_resources_engine::option::OptionValue,
            ) -> Result<(), mcp_resources_engine::option::OptionError> {
                use mcp_resources_engine::option::{OptionError, OptionValue, Step};
                let set: fn(&mut Self, OptionValue) -> Result<(), OptionError> = match name {
                    $($name => $set,)+
                    _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
                };
                set(self, value).map_err(|error| error.under(Step::Name(name.to_owned().into())))
            }
        }
    };
}
#[cfg(any(feature = "config", feature = "files"))]
pub(crate) use option_table;
