//! The policy as it is configured. The keys are the same in a YAML or JSON file, in another language's mapping, and
//! here.

use super::rate::Rates;
use crate::resource::RegistrationError;
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

/// The access rules and limits for principals. Everything is allowed by default.
///
/// In the globs of `allow`, `deny`, `scopes` and `groups`, `{principal}` stands for the identity of the principal, and
/// `{group}` for each of its groups, percent-encoded: `docs:///home/{principal}/**`. Such a glob matches nothing for the local
/// process and for anonymous clients. A part between slashes has at most one placeholder, and no wildcard beside it.
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
    /// Globs over canonical URIs. URIs that match none of them are treated as missing. Default: everything is allowed.
    /// An empty list allows nothing.
    pub allow: Option<Globs>,
    /// Globs over canonical URIs. URIs that match one of them are treated as missing, even if allowed. Default: none.
    pub deny: Globs,
    /// By glob: the scopes that a token must have, all of them. Default: none.
    pub scopes: BTreeMap<String, ScopeList>,
    /// By glob: the groups of a principal, of which one suffices; a scope of its token counts as a group. URIs that match
    /// are treated as missing for all others. Default: none.
    pub groups: BTreeMap<String, ScopeList>,
    /// By identity: additional restrictions for one principal. The local process has the empty identity. Default: none.
    pub principals: BTreeMap<String, PrincipalPolicy>,
    /// The tools that clients see, by their names. Default: all.
    pub tools: NamePolicy,
    /// The prompts that clients see, by their names. Default: all.
    pub prompts: NamePolicy,
    /// Request rates of each principal. Default: [`Rate::COMPLETION`](super::Rate::COMPLETION) for completions,
    /// no limit for other requests.
    pub rate: Rates,
    /// Most concurrent requests of one principal, over all its connections. Default: no limit.
    pub concurrency: Option<u32>,
    /// By glob: the maximum size of one read, in bytes. The smallest matching limit applies, and
    /// [`Limits::contents`](crate::limits::Limits::contents) in any case. Default: none.
    pub max_size: BTreeMap<String, u64>,
    /// The detectors whose matches in texts are replaced by `[redacted:NAME]`: see
    /// [`Redactor::names`](super::Redactor::names). Default: none.
    pub redact: ScopeList,
}

/// Restrictions of a [`Policy`] for one principal, which sees only what both allow and neither denies.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct PrincipalPolicy {
    /// As [`Policy::allow`].
    pub allow: Option<Globs>,
    /// As [`Policy::deny`].
    pub deny: Globs,
    /// As [`Policy::tools`], in addition to it.
    pub tools: NamePolicy,
    /// As [`Policy::prompts`], in addition to it.
    pub prompts: NamePolicy,
    /// Scopes that the principal has in addition to those of its token, or without one, as the local process. Default:
    /// none.
    pub scopes: ScopeList,
}

/// The names of tools or prompts that clients see. Others are treated as missing. In a glob `*` matches any run of
/// characters, and `?` one character.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct NamePolicy {
    /// Globs over names. Default: everything is allowed. An empty list allows nothing.
    pub allow: Option<Globs>,
    /// Globs over names that are treated as missing, even if allowed. Default: none.
    pub deny: Globs,
}

/// One glob, or a list of globs. `*` alone matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Globs(pub Vec<String>);

/// One scope, or a list of scopes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScopeList(pub Vec<String>);

/// An invalid policy, reported when the server is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The path of the invalid member, such as `principals.alice.allow[2]`.
    pub field: String,
    /// The reason, as one short sentence.
    pub reason: String,
}

impl Policy {
    /// Parses a policy from the text of a JSON object.
    ///
    /// # Errors
    /// [`PolicyError`] if the text is not JSON, has an unknown member, or a value of the wrong type. Globs are checked
    /// when the guard is built.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let mut reader = serde_json::Deserializer::from_str(text);
        let policy = serde_path_to_error::deserialize(&mut reader).map_err(at_path)?;
        reader.end().map_err(|error| PolicyError::new("", error.to_string()))?;
        Ok(policy)
    }

    /// Converts a policy from a parsed value of another format.
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
    // Most policies come from an object of the runtime's language, so a line number in JSON would mean nothing to the
    // user.
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

/// Deserializes a text, or a list of texts. The field is the expectation for error messages.
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
