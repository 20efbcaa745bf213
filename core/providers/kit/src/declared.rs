//! The interface of a provider that is made of options by name, and the reading of these options.
//!
//! Law: knows no provider. The table of all kinds is `registry` in `mcp-resources-providers`, above the providers.

use crate::options::OptionKind;
use mcp_resources_engine::option::{FromOption, PathStep};
use mcp_resources_engine::option::{OptionError, OptionValue};
use mcp_resources_runtime::provider::Provider;
use std::fmt;
use std::path::Path;

/// A provider that is made of options by name.
pub trait Declare: Provider + fmt::Debug + Sized {
    /// Its word, its description and its options.
    const KIND: OptionKind;

    /// Makes one. Relative paths begin at `folder`.
    ///
    /// # Errors
    /// The options are wrong, or what they name is not there.
    fn declare(options: OptionValue, folder: &Path) -> Result<Self, OptionError>;

    /// Adds what another declaration of the kind serves. After an error nothing has changed.
    ///
    /// # Errors
    /// Both serve something under the same name.
    fn merge(&mut self, other: Self) -> Result<(), OptionError>;

    /// The URIs below which everything of this declaration is, each without a slash at its end, such as `git:///api`. Default:
    /// none, which means that another declaration of the kind may serve URIs between them.
    fn places(&self) -> Vec<String> {
        Vec::new()
    }

    /// The schemes of its URIs. Default: the word of the kind.
    fn schemes(&self) -> Vec<String> {
        vec![Self::KIND.name.into()]
    }

    /// The options that the command's word `KIND:REST` stands for. `rest` is empty for the word `KIND:`.
    ///
    /// # Errors
    /// The word says too little. The message has the forms that are allowed.
    fn parse_shorthand(rest: &str) -> Result<OptionValue, OptionError>;

    /// Further words that declare one, each with what reads the rest of it as [`parse_shorthand`](Self::parse_shorthand) does.
    const SHORTHANDS: &'static [(&'static str, Reader)] = &[];
}

/// The URI of a folder as a place: without the slash at its end.
#[doc(hidden)]
pub fn place(uri: &str) -> String {
    uri.strip_suffix('/').unwrap_or(uri).to_owned()
}

/// Parses the rest of a shorthand into options.
pub type Reader = fn(&str) -> Result<OptionValue, OptionError>;

/// One provider of type `T`, with relative paths that begin at the directory of this process.
///
/// # Errors
/// The options are wrong, or what they name is not there.
pub fn one<T: Declare>(options: OptionValue) -> Result<T, OptionError> {
    T::declare(options, Path::new(""))
}

/// Options of a kind, whose name stands before what is wrong.
///
/// # Errors
/// They are not options of `T`.
#[doc(hidden)]
pub fn read<T: FromOption>(kind: &'static str, options: OptionValue) -> Result<T, OptionError> {
    T::from_option(options).map_err(|error| error.under(PathStep::Name(kind.into())))
}

/// Refuses any option.
///
/// # Errors
/// There is one.
#[doc(hidden)]
pub fn nothing(kind: &str, options: &OptionValue) -> Result<(), OptionError> {
    match options {
        OptionValue::None => Ok(()),
        OptionValue::Members(members) if members.is_empty() => Ok(()),
        _ => Err(OptionError::sentence(format!(
            "{kind} has no options; write {{{kind}: {{}}}}, or {kind}: with the command"
        ))),
    }
}
