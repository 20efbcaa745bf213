//! The policy as an author writes it: the same keys in a YAML or JSON file, a mapping of another language and here.

use super::rate::Rates;
use crate::resource::RegistrationError;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// What a principal may see, and how much of it. Everything is allowed by default.
///
/// # Examples
/// ```
/// use mcp_resources_engine::guard::Policy;
/// let policy = Policy::from_json(r#"{"allow": ["file:///project/**"], "deny": "**/.env"}"#)?;
/// assert_eq!(policy.deny.0, ["**/.env"]);
/// assert_eq!(Policy::from_json(r#"{"alow": []}"#).unwrap_err().field, "alow");
/// # Ok::<(), mcp_resources_engine::guard::PolicyError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Policy {
    /// Globs over canonical URIs: what is not matched by one of them does not exist. Default: everything is allowed. An
    /// empty list allows nothing.
    pub allow: Option<Globs>,
    /// Globs over canonical URIs: what is matched by one of them does not exist, also where it is allowed. Default: none.
    pub deny: Globs,
    /// By glob, the scopes that a token must have, all of them (R-199). Default: none.
    pub scopes: BTreeMap<String, ScopeList>,
    /// By identity, what narrows the policy for one principal; the local process has the empty identity. Default: none.
    pub principals: BTreeMap<String, PrincipalPolicy>,
    /// How fast one principal may ask (R-211). Default: completions as [`Rate::COMPLETION`](super::Rate::COMPLETION) says,
    /// all else without a bound.
    pub rate: Rates,
    /// Most requests of one principal that wait for an answer, over all its connections. Default: no bound.
    pub concurrency: Option<u32>,
    /// By glob, the most bytes that one read may give; where several match, the least counts, and
    /// [`Limits::contents`](crate::limits::Limits::contents) in any case. Default: none.
    pub max_size: BTreeMap<String, u64>,
    /// The detectors whose finds in texts are replaced by `[redacted:NAME]`: see
    /// [`Redactor::names`](super::Redactor::names) (S-19). Default: none.
    pub redact: ScopeList,
}

/// What narrows a [`Policy`] for one principal: it may see what both allow and neither denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PrincipalPolicy {
    /// As [`Policy::allow`].
    pub allow: Option<Globs>,
    /// As [`Policy::deny`].
    pub deny: Globs,
    /// Scopes that it has without a token, as the local process; or beside those of its token. Default: none.
    pub scopes: ScopeList,
}

/// Globs: a list of them, or one. `*` alone stands for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs(pub Vec<String>);

/// Scopes: a list of them, or one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeList(pub Vec<String>);

/// What is wrong with a policy: the author's fault, told when the server is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The member, with the path to it: `principals.alice.allow[2]`.
    pub field: String,
    /// What is wrong with it, as one short sentence.
    pub reason: String,
}

impl Policy {
    /// Reads a policy from the text of a JSON object.
    ///
    /// # Errors
    /// [`PolicyError`] for what is not JSON, an unknown member, or a value of the wrong type. What a glob says is looked
    /// at when the guard is built.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let policy = serde_path_to_error::deserialize(&mut reader).map_err(at_path)?;
        reader.end().map_err(|error| PolicyError::new("", error.to_string()))?;
        Ok(policy)
    }

    /// Reads a policy from a value that another format was read into.
    ///
    /// # Errors
    /// As [`Policy::from_json`].
    pub fn from_value(value: serde_json::Value) -> Result<Self, PolicyError> {
        serde_path_to_error::deserialize(value).map_err(at_path)
    }
}

fn at_path(error: serde_path_to_error::Error<serde_json::Error>) -> PolicyError {
    let path = error.path().to_string();
    let field = if path == "." { String::new() } else { path };
    let reason = error.into_inner().to_string();
    // A policy is mostly an object of the host's language, which the author never saw as a line of JSON.
    let place = reason.rfind(" at line ").filter(|_| !field.is_empty());
    PolicyError::new(field, &reason[..place.unwrap_or(reason.len())])
}

impl PolicyError {
    pub(super) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.field {
            "" => write!(f, "guard: {}", self.reason),
            field => write!(f, "guard: {field}: {}", self.reason),
        }
    }
}

impl std::error::Error for PolicyError {}

impl From<PolicyError> for RegistrationError {
    fn from(PolicyError { field, reason }: PolicyError) -> Self {
        Self::InvalidPolicy { field, reason }
    }
}

impl<T: Into<String>> FromIterator<T> for Globs {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        Self(texts.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<String>> FromIterator<T> for ScopeList {
    fn from_iter<I: IntoIterator<Item = T>>(texts: I) -> Self {
        Self(texts.into_iter().map(Into::into).collect())
    }
}

impl<'de> Deserialize<'de> for Globs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany("a glob or a list of globs")).map(Self)
    }
}

impl<'de> Deserialize<'de> for ScopeList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMany("a scope or a list of scopes")).map(Self)
    }
}

/// A text, or a list of texts. Its member says what is expected.
struct OneOrMany(&'static str);

impl<'de> Visitor<'de> for OneOrMany {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(vec![text.to_owned()])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(texts)
    }
}
