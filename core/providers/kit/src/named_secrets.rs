//! Names with a value each, which may be secret: headers of requests, and variables of processes.
//!
//! Law: no value is shown, wherever it comes from.

use crate::options;
use mcp_resources_engine::option::{OptionError, OptionValue};
use std::env::VarError;
use std::fmt;

/// A text that no log shows.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HiddenText(pub String);

impl fmt::Debug for HiddenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The source of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// The text itself.
    Literal(HiddenText),
    /// A variable of the environment.
    Env(String),
}

impl SecretSource {
    /// The text now. `what` names it in the message, such as `the header X-Key`.
    ///
    /// # Errors
    /// Its variable is not set, or is no text: half a sentence.
    pub fn text(&self, what: &str) -> Result<String, String> {
        let variable = match self {
            Self::Literal(HiddenText(text)) => return Ok(text.clone()),
            Self::Env(variable) => variable,
        };
        std::env::var(variable).map_err(|error| match error {
            VarError::NotPresent => format!(
                "{what} comes from the variable {}, which is not set; set it, and start again",
                options::variable(variable)
            ),
            VarError::NotUnicode(_) => {
                format!("the variable {} for {what} is no text", options::variable(variable))
            }
        })
    }
}

/// Names with a value each: an object, or pairs of a language whose objects have names of options alone.
///
/// # Errors
/// It is neither.
pub fn pairs(value: OptionValue) -> Result<Vec<(String, OptionValue)>, OptionError> {
    let pair = |item: OptionValue| match item {
        OptionValue::List(pair) => match <[OptionValue; 2]>::try_from(pair) {
            Ok([OptionValue::Text(name), value]) => Some((name, value)),
            _ => None,
        },
        _ => None,
    };
    match value {
        OptionValue::Members(members) => Ok(members),
        OptionValue::List(items) => {
            let pairs: Option<Vec<_>> = items.into_iter().map(pair).collect();
            pairs.ok_or_else(|| OptionError::wrong_type(&OptionValue::Other, "pairs of a name and a value"))
        }
        other => Err(OptionError::wrong_type(&other, "an object of names")),
    }
}

/// Names with a text or `{env: NAME}` each. `what` stands before a name in a message, such as `api: the header`.
///
/// # Errors
/// It is something else.
pub fn read(value: OptionValue, what: &str) -> Result<Vec<(String, SecretSource)>, OptionError> {
    pairs(value)?.into_iter().map(|(name, value)| source(name, value, what)).collect()
}

fn source(name: String, value: OptionValue, what: &str) -> Result<(String, SecretSource), OptionError> {
    let source = match value {
        OptionValue::Text(text) => Some(SecretSource::Literal(HiddenText(text))),
        OptionValue::Members(mut members) if members.len() == 1 => match members.pop() {
            Some((env, OptionValue::Text(variable))) if env == "env" => Some(SecretSource::Env(variable)),
            // The value may be a secret that was written in the wrong place.
            _ => None,
        },
        _ => None,
    };
    match source {
        Some(source) => Ok((name, source)),
        None => Err(OptionError::sentence(format!(
            "{what} {name} has neither a text nor `{{env: NAME}}` as its value"
        ))),
    }
}
