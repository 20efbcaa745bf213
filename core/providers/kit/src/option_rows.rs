//! The rows of options: a declaration of a type whose options are set by name.
//!
//! Law: nothing about an option is written twice. The arms of the macro are in the order of what a row makes.

/// Public, so that the lints see its options as they see others.
#[cfg(test)]
#[doc(hidden)]
pub mod tests;

/// Declares the options of a provider. Each is one row: its documentation, its name, the kind of its value, and its
/// default after `=`; without one it must be given.
///
/// ```text
/// provider_options! {
///     /// The options of [`Notes`](super::Notes).
///     #[derive(Clone, Debug)]
///     pub struct NoteOptions: "a directory, a list of them, or an object of options", or dirs: Text | List {
///         /// The directories of notes.
///         dirs: paths("directory", "names");
///         /// The maximum number of listed notes; all can be read.
///         list_max: count = 1_000;
///         /// The interval of checks for changes.
///         poll: time(Duration::from_millis(10), DAY) = Duration::from_secs(1);
///     }
/// }
/// ```
///
/// The row makes a field, its initial value, a setter, an entry of `TABLE`, and an arm of
/// [`NamedOptions`](mcp_resources_engine::option::NamedOptions). The kinds `paths` and `custom` have no setter: they are
/// set by functions with more arguments. `or NAME: FORM | …` names the option that a value of these forms sets alone; `or
/// nothing` accepts no value at all. Rows in `in FIELD: TYPE { … }` are fields of a struct of their own. `fields { … }`
/// are no options.
#[doc(hidden)]
#[macro_export]
macro_rules! provider_options {
    (
        $(#[$meta:meta])*
        $vis:vis struct $type:ident: $expected:literal
        $(, or $short:ident: $($form:ident)|+)? $(or $nothing:ident)?
        {
            $($(#[doc = $doc:literal])+ $name:ident: $kind:ident $(($($arg:tt)*))? $(= $default:expr)?;)*
            $(in $place:ident: $part:ident {
                $($(#[doc = $pdoc:literal])+ $pname:ident: $pkind:ident $(($($parg:tt)*))? $(= $pdefault:expr)?;)*
            })?
            $(fields { $($field:ident: $of:ty = $initial:expr;)* })?
        }
    ) => {
        $(#[$meta])*
        $vis struct $type {
            $(pub(crate) $name: $crate::option_rows::provider_options!(@field $kind $(($($arg)*))?),)*
            $(pub(crate) $place: $part,)?
            $($(pub(crate) $field: $of,)*)?
        }

        $(
            /// A part of the options.
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub(crate) struct $part {
                $(pub(crate) $pname: $crate::option_rows::provider_options!(@field $pkind $(($($parg)*))?),)*
            }
        )?

        impl $type {
            /// The options as data.
            pub const TABLE: &'static [$crate::options::OptionRow] = &[
                $($crate::option_rows::provider_options!(
                    @row [$($doc)+] $name [$kind $(($($arg)*))?] $($default)?
                ),)*
                $($($crate::option_rows::provider_options!(
                    @row [$($pdoc)+] $pname [$pkind $(($($parg)*))?] $($pdefault)?
                ),)*)?
            ];

            fn defaults() -> Self {
                Self {
                    $($name: $crate::option_rows::provider_options!(@initial [$kind $(($($arg)*))?] $($default)?),)*
                    $($place: $part {
                        $($pname: $crate::option_rows::provider_options!(
                            @initial [$pkind $(($($parg)*))?] $($pdefault)?
                        ),)*
                    },)?
                    $($($field: $initial,)*)?
                }
            }

            $($crate::option_rows::provider_options! {
                @setter [$($doc)+] $name [$name] [$kind $(($($arg)*))?] $($default)?
            })*
            $($($crate::option_rows::provider_options! {
                @setter [$($pdoc)+] $pname [$place.$pname] [$pkind $(($($parg)*))?] $($pdefault)?
            })*)?

            /// Refuses a number outside of its range.
            pub(crate) fn check_ranges(&self) -> Result<(), mcp_resources_engine::option::OptionError> {
                $($crate::option_rows::provider_options!(@range self $name [$name] $kind $(($($arg)*))?);)*
                $($($crate::option_rows::provider_options!(@range self $pname [$place.$pname] $pkind $(($($parg)*))?);)*)?
                Ok(())
            }
        }

        impl mcp_resources_engine::option::NamedOptions for $type {
            const EXPECTED: &'static str = $expected;
            const NAMES: &'static [&'static str] = &[$(stringify!($name),)* $($(stringify!($pname),)*)?];

            fn set(
                &mut self,
                name: &str,
                value: mcp_resources_engine::option::OptionValue,
            ) -> Result<(), mcp_resources_engine::option::OptionError> {
                use mcp_resources_engine::option::{OptionError, PathStep};
                let under = |error: OptionError| error.under(PathStep::Name(name.to_owned().into()));
                match name {
                    $(stringify!($name) => {
                        self.$name = $crate::option_rows::provider_options!(@read value $kind $(($($arg)*))?).map_err(under)?;
                    })*
                    $($(stringify!($pname) => {
                        self.$place.$pname =
                            $crate::option_rows::provider_options!(@read value $pkind $(($($parg)*))?).map_err(under)?;
                    })*)?
                    _ => return Err(OptionError::unknown("option", name, Self::NAMES)),
                }
                self.check_ranges()
            }
        }

        $crate::option_rows::provider_options! { @new $type [$($short: $($form)+)?] [$($nothing)?] }
    };

    // Without a short form, the whole value is an object: the engine reads it.
    (@new $type:ident [] []) => {
        impl Default for $type {
            fn default() -> Self {
                Self::defaults()
            }
        }
    };
    (@new $type:ident [$($short:ident: $($form:ident)+)?] [$($nothing:ident)?]) => {
        impl $type {
            /// The defaults. Options that must be given are not set yet.
            #[expect(
                clippy::new_without_default,
                reason = "what has a default is read from an object alone, and this from other values too"
            )]
            pub fn new() -> Self {
                Self::defaults()
            }
        }

        impl mcp_resources_engine::option::FromOption for $type {
            const EXPECTED: &'static str = <Self as mcp_resources_engine::option::NamedOptions>::EXPECTED;

            fn from_option(
                value: mcp_resources_engine::option::OptionValue,
            ) -> Result<Self, mcp_resources_engine::option::OptionError> {
                use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, set_all};
                let mut options = Self::new();
                match value {
                    OptionValue::Members(_) => set_all(&mut options, value)?,
                    $($(OptionValue::$form(_))|+ => {
                        mcp_resources_engine::option::NamedOptions::set(&mut options, stringify!($short), value)?;
                    })?
                    $(OptionValue::None => { let _: &str = stringify!($nothing); })?
                    other => return Err(OptionError::wrong_type(&other, <Self as FromOption>::EXPECTED)),
                }
                Ok(options)
            }
        }
    };

    (@field flag) => { bool };
    (@field count $(($($range:tt)*))?) => { usize };
    (@field bytes) => { Option<u64> };
    (@field size) => { u64 };
    (@field time $(($($range:tt)*))?) => { std::time::Duration };
    (@field text($noun:literal)) => { String };
    (@field texts($noun:literal)) => { Vec<String> };
    (@field file) => { Option<std::path::PathBuf> };
    (@field some_text($noun:literal)) => { Option<String> };
    (@field some_texts($noun:literal)) => { Option<Vec<String>> };
    (@field some_time) => { Option<std::time::Duration> };
    (@field words($of:ty)) => { $of };
    (@field paths($path:literal, $names:literal)) => { Vec<$crate::named::NamedPath> };
    (@field tools) => { $crate::offered::OfferedTools };
    (@field custom($of:ty, $($rest:tt)*)) => { $of };

    (@initial [text $arg:tt] $default:expr) => { String::from($default) };
    (@initial [texts $arg:tt] $default:expr) => { $crate::options::owned(&$default) };
    (@initial [$($kind:tt)+] $default:expr) => { $default };
    (@initial [$($kind:tt)+]) => { Default::default() };

    (@row [$($doc:literal)+] $name:ident [$($kind:tt)+] $($default:expr)?) => {
        $crate::options::OptionRow {
            name: stringify!($name),
            kind: $crate::option_rows::provider_options!(@type $($kind)+),
            default: $crate::option_rows::provider_options!(@default [$($kind)+] $($default)?),
            about: concat!($($doc),+).trim_ascii_start(),
        }
    };

    (@type flag) => { $crate::options::OptionType::Flag };
    (@type count) => { $crate::options::OptionType::Count };
    (@type count($least:expr, $most:expr)) => { $crate::options::OptionType::CountBetween($least, $most) };
    (@type bytes) => { $crate::options::OptionType::Bytes };
    (@type size) => { $crate::options::OptionType::Size };
    (@type time) => { $crate::options::OptionType::Time };
    (@type some_time) => { $crate::options::OptionType::Time };
    (@type time($least:expr, $most:expr)) => { $crate::options::OptionType::TimeBetween($least, $most) };
    (@type text($noun:literal)) => { $crate::options::OptionType::Text($noun) };
    (@type some_text($noun:literal)) => { $crate::options::OptionType::Text($noun) };
    (@type texts($noun:literal)) => { $crate::options::OptionType::Texts($noun) };
    (@type some_texts($noun:literal)) => { $crate::options::OptionType::Texts($noun) };
    (@type file) => { $crate::options::OptionType::File };
    (@type words($of:ty)) => { $crate::options::OptionType::Words(<$of>::WORDS) };
    (@type paths($path:literal, $names:literal)) => { $crate::options::OptionType::Paths($path, $names) };
    (@type tools) => { $crate::options::OptionType::Tools };
    (@type custom($of:ty, $read:expr, $type:expr $(, $default:expr)?)) => { $type };

    (@default [flag] $default:expr) => { $crate::options::OptionDefault::Flag($default) };
    (@default [count $($arg:tt)?] $default:expr) => { $crate::options::OptionDefault::Count($default) };
    (@default [size] $default:expr) => { $crate::options::OptionDefault::Size($default) };
    (@default [time $($arg:tt)?] $default:expr) => { $crate::options::OptionDefault::Time($default) };
    (@default [text $arg:tt] $default:expr) => { $crate::options::OptionDefault::Text($default) };
    (@default [texts $arg:tt] $default:expr) => { $crate::options::OptionDefault::Texts(&$default) };
    (@default [words $arg:tt] $default:expr) => { $crate::options::OptionDefault::Text($default.as_str()) };
    (@default [custom($of:ty, $read:expr, $type:expr, $default:expr)] $initial:expr) => { $default };
    (@default [$($kind:tt)+] $default:expr) => { $crate::options::OptionDefault::Null };
    (@default [tools]) => { $crate::options::OptionDefault::Null };
    (@default [$($kind:tt)+]) => { $crate::options::OptionDefault::Required };

    (@read $value:ident flag) => { <bool as mcp_resources_engine::option::FromOption>::from_option($value) };
    (@read $value:ident count $(($($range:tt)*))?) => {
        <usize as mcp_resources_engine::option::FromOption>::from_option($value)
    };
    (@read $value:ident bytes) => { <Option<u64> as mcp_resources_engine::option::FromOption>::from_option($value) };
    (@read $value:ident size) => { $crate::options::size($value) };
    (@read $value:ident time $(($($range:tt)*))?) => { $crate::options::time($value) };
    (@read $value:ident text($noun:literal)) => {
        <String as mcp_resources_engine::option::FromOption>::from_option($value)
    };
    (@read $value:ident texts($noun:literal)) => { $crate::options::texts($value, $noun) };
    (@read $value:ident file) => { $crate::options::file($value) };
    (@read $value:ident some_text($noun:literal)) => {
        <Option<String> as mcp_resources_engine::option::FromOption>::from_option($value)
    };
    (@read $value:ident some_texts($noun:literal)) => { $crate::options::texts($value, $noun).map(Some) };
    (@read $value:ident some_time) => { $crate::options::some_time($value) };
    (@read $value:ident words($of:ty)) => { <$of as mcp_resources_engine::option::FromOption>::from_option($value) };
    (@read $value:ident paths($path:literal, $names:literal)) => { $crate::named::read($value, $path) };
    (@read $value:ident tools) => {
        <$crate::offered::OfferedTools as mcp_resources_engine::option::FromOption>::from_option($value)
    };
    (@read $value:ident custom($of:ty, $read:expr, $($rest:tt)*)) => { $read($value) };

    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [paths $arg:tt] $($default:expr)?) => {};
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [custom $arg:tt] $($default:expr)?) => {};
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [tools]) => {
        $(#[doc = $doc])+
        #[doc = " Named tools are offered in any case."]
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item = impl Into<String>>) -> Self {
            let names = $name.into_iter().map(Into::into).collect();
            self.$($field)+ = $crate::offered::OfferedTools::Named(names);
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [flag] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: bool) -> Self {
            self.$($field)+ = $name;
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [count $($arg:tt)?] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: usize) -> Self {
            self.$($field)+ = $name;
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [bytes] $default:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: u64) -> Self {
            self.$($field)+ = Some($name);
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [size] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" A number of bytes. Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: u64) -> Self {
            self.$($field)+ = $name;
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [time $($arg:tt)?] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: std::time::Duration) -> Self {
            self.$($field)+ = $name;
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [text $arg:tt] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: impl Into<String>) -> Self {
            self.$($field)+ = $name.into();
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [texts $arg:tt] $default:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.$($field)+ = $name.into_iter().map(Into::into).collect();
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [file] $default:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: impl Into<std::path::PathBuf>) -> Self {
            self.$($field)+ = Some($name.into());
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [some_text $arg:tt] $($default:expr)?) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: impl Into<String>) -> Self {
            self.$($field)+ = Some($name.into());
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [some_texts $arg:tt] $($default:expr)?) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: impl IntoIterator<Item = impl Into<String>>) -> Self {
            self.$($field)+ = Some($name.into_iter().map(Into::into).collect());
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [some_time] $default:expr) => {
        $(#[doc = $doc])+
        #[must_use]
        pub fn $name(mut self, $name: std::time::Duration) -> Self {
            self.$($field)+ = Some($name);
            self
        }
    };
    (@setter [$($doc:literal)+] $name:ident [$($field:tt)+] [words($of:ty)] $default:expr) => {
        $(#[doc = $doc])+
        #[doc = concat!(" Default: `", stringify!($default), "`.")]
        #[must_use]
        pub fn $name(mut self, $name: $of) -> Self {
            self.$($field)+ = $name;
            self
        }
    };

    (@range $own:ident $name:ident [$($field:tt)+] count($least:expr, $most:expr)) => {
        $crate::options::check_count(stringify!($name), $own.$($field)+, $least, $most)?
    };
    (@range $own:ident $name:ident [$($field:tt)+] time($least:expr, $most:expr)) => {
        $crate::options::check_time(stringify!($name), $own.$($field)+, $least, $most)?
    };
    (@range $own:ident $name:ident [$($field:tt)+] $($kind:tt)+) => {};
}

pub use provider_options;
