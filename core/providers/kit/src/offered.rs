//! The tools of a provider: which are offered, and what they are called.
//!
//! Law: a provider's own tools have fixed names, so that a policy can name them. A tool of the server with the same name
//! is an error of the mount. Where a name is made of other names, as for views, a second one gets a number.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue};
use mcp_resources_engine::resource::{Parameter, ParameterKind};
use mcp_resources_engine::suggest::closest;
use mcp_resources_runtime::provider::Feed;
use std::collections::HashSet;

/// Longest name that is made of other names: models' interfaces accept no longer one.
const LONGEST: usize = 64;

/// The tools that a declaration offers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OfferedTools {
    /// All, if the server offers its resources as tools.
    #[default]
    Exposed,
    /// All, always.
    All,
    /// Those with these names, always.
    Named(Vec<String>),
}

impl OfferedTools {
    /// Whether the tool is offered.
    pub fn offers(&self, tool: &str, feed: &Feed) -> bool {
        match self {
            Self::Exposed => feed.exposes_tools(),
            Self::All => true,
            Self::Named(names) => names.iter().any(|name| name == tool),
        }
    }

    /// Refuses names that no tool has.
    ///
    /// # Errors
    /// The first such name, with the nearest one or all that there are.
    pub fn check(&self, kind: &str, known: &[&str]) -> Result<(), OptionError> {
        let Self::Named(names) = self else { return Ok(()) };
        let Some(wrong) = names.iter().find(|name| !known.contains(&name.as_str())) else { return Ok(()) };
        let fix = match closest(wrong, known.iter().copied()) {
            Some(near) => format!("did you mean {near:?}?"),
            None => format!("there are {}", known.join(", ")),
        };
        Err(OptionError::sentence(format!("{kind}: there is no tool {wrong:?}; {fix}")))
    }
}

impl FromOption for OfferedTools {
    const EXPECTED: &'static str = "true, false or a list of names of tools";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        match value {
            OptionValue::None => Ok(Self::Exposed),
            OptionValue::Bool(true) => Ok(Self::All),
            OptionValue::Bool(false) => Ok(Self::Named(Vec::new())),
            OptionValue::Text(name) => Ok(Self::Named(vec![name])),
            OptionValue::List(_) => Vec::from_option(value).map(Self::Named),
            other => Err(OptionError::wrong_type(&other, Self::EXPECTED)),
        }
    }
}

/// An argument that is one of the things that are served.
pub fn choice(variable: &str, description: &str, values: impl IntoIterator<Item = String>) -> Parameter {
    Parameter::new(variable).description(description).values(values)
}

/// An argument that is a text.
pub fn text(variable: &str, description: &str) -> Parameter {
    Parameter::new(variable).description(description)
}

/// An argument that is a whole number.
pub fn number(variable: &str, description: &str) -> Parameter {
    text(variable, description).kind(ParameterKind::Integer)
}

/// Names of tools that are made of other names.
#[derive(Debug, Default)]
pub struct ToolNames(HashSet<String>);

impl ToolNames {
    /// Names that are taken already.
    pub fn with(taken: &[&str]) -> Self {
        Self(taken.iter().map(|name| (*name).to_owned()).collect())
    }

    /// The parts joined by `_`, each character that a name cannot have as `_`, with a number if the name is taken.
    pub fn name(&mut self, parts: &[&str]) -> String {
        let plain = |char: char| if char.is_ascii_alphanumeric() || char == '-' { char } else { '_' };
        let base: String = parts.join("_").chars().map(plain).take(LONGEST).collect();
        let mut name = base.clone();
        let mut number = 2;
        while !self.0.insert(name.clone()) {
            let end = format!("_{number}");
            let kept = base.get(..LONGEST.saturating_sub(end.len())).unwrap_or(&base);
            name = format!("{kept}{end}");
            number += 1;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // S-20: a name is one that every model's interface accepts, and no two are the same.
    #[test]
    fn names_differ() {
        let mut names = ToolNames::with(&["db_rows"]);
        let mut name = |parts: &[&str]| names.name(parts);
        assert_eq!(name(&["db", "shop", "by_city"]), "db_shop_by_city");
        assert_eq!(name(&["db", "shop_by", "city"]), "db_shop_by_city_2");
        assert_eq!(name(&["db", "shop by", "city"]), "db_shop_by_city_3");
        assert_eq!(name(&["db", "rows"]), "db_rows_2");
        assert_eq!(name(&["db", "größe", "a.b"]), "db_gr__e_a_b");
        let long = "x".repeat(100);
        let (first, second) = (name(&[&long]), name(&[&long]));
        assert_eq!((first.len(), second.len()), (64, 64));
        assert!(second.ends_with("x_2"));
    }

    #[test]
    fn a_wrong_name_is_named() {
        let read = |value: OptionValue| OfferedTools::from_option(value).unwrap();
        let known = ["git_log", "git_diff"];
        let said = |value: OptionValue| read(value).check("git", &known).map_err(|error| error.to_string());
        assert_eq!(said(true.into()), Ok(()));
        assert_eq!(said("git_log".into()), Ok(()));
        assert_eq!(said(OptionValue::List(Vec::new())), Ok(()));
        assert_eq!(
            said("git_lgo".into()),
            Err("git: there is no tool \"git_lgo\"; did you mean \"git_log\"?".into())
        );
        assert_eq!(said("x".into()), Err("git: there is no tool \"x\"; there are git_log, git_diff".into()));
        let error = OfferedTools::from_option(OptionValue::Integer(1)).unwrap_err().to_string();
        assert!(error.contains("expected true, false or a list of names of tools"), "{error}");
    }
}
