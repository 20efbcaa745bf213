//! URI templates (RFC 6570): parsing, expansion, and matching of a URI against one template or many.
//!
//! ```text
//!  "repo://{owner}/{+path}{?at}"                       "repo://ann/src/lib.rs?at=main"
//!        │ UriTemplate::parse: strict                        │ uri::normalize: one form of a URI
//!        ▼                                                   ▼
//!  path │ query │ fragment ──▶ TemplateSet: a trie, ──▶ Lookup::Match: which template, and
//!                              and linear programs      owner "ann", path "src/lib.rs", at "main"
//! ```
//!
//! [`UriTemplate::parse`] is strict. It normalises a template like a URI, cuts it into path, query and fragment, and
//! compiles it: the beginning of its path, where nothing is ambiguous, into edges of a trie ([`TemplateIndex`]), the rest
//! into programs that read the URI from right to left. Both take time linear in the URI, whatever the template.
//!
//! Values are split first, then percent-decoded once. A value that its variable's [`ValuePolicy`] does not allow is a
//! [`Rejection`]; to a client that looks like no match.
//!
//! # Examples
//! ```
//! use mcp_resources_template::{Lookup, TemplateSet, UriTemplate};
//!
//! let templates = ["repo://{owner}/{+path}{?at}", "repo://{owner}"].map(|text| UriTemplate::parse(text).unwrap());
//! let set = TemplateSet::new(templates)?;
//! let Lookup::Match { index, params } = set.match_uri("repo://ann/src/lib.rs?at=main")? else { panic!("no match") };
//! assert_eq!((index, params.text("path"), params.text("at")), (0, Some("src/lib.rs"), Some("main")));
//! // A path traversal is rejected, however it is spelled.
//! assert!(!matches!(set.match_uri("repo://ann/src/%2e%2e/secret")?, Lookup::Match { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![cfg_attr(docsrs, feature(doc_cfg))]

mod capture;
mod class;
mod compile;
mod error;
mod expand;
mod gaps;
mod gate;
mod index;
mod lint;
mod literal;
mod matching;
mod options;
mod order;
mod outline;
mod parse;
mod pattern;
mod policy;
mod program;
mod query;
mod remainder;
mod reversible;
mod sample;
mod search;
mod section;
mod set;
mod slot;
mod subject;
#[cfg(test)]
mod tests;
mod trie;
pub mod uri;
mod value;

pub use error::{ExpandError, InvalidTemplate, TemplateConflict};
pub use expand::expand;
pub use index::{Lookup, TemplateIndex};
pub use lint::{LintKind, TemplateLint};
pub use options::{
    Chars, ExtraQuery, Kind, TemplateOptions, TemplateVariable, UnknownName, ValuePolicy, VariableOptions,
};
pub use policy::Rejection;
pub use set::TemplateSet;
pub use value::{MatchedParams, Value, Values};

// Hidden, for `mcp-resources-engine`: its guard checks whether a principal may see one of a template's URIs.
#[doc(hidden)]
pub use outline::{On, Outline};

use crate::uri::{InvalidUri, MAX_URI, normalize};
use capture::{Captured, RefusedValue};
use compile::Compiled;
use program::Meter;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use subject::MatchSubject;

/// A URI template, parsed and compiled. Immutable and cheap to clone.
#[derive(Clone)]
pub struct UriTemplate(Arc<Compiled>);

impl UriTemplate {
    /// Longest template, in bytes.
    pub const MAX_BYTES: usize = parse::MAX_BYTES;
    /// Most variables of one template, repetitions included.
    pub const MAX_VARIABLES: usize = parse::MAX_VARIABLES;

    /// Parses a template with the default options.
    ///
    /// # Errors
    /// [`InvalidTemplate`] if `text` is not in the grammar of RFC 6570, exceeds a limit, can expand to no URI, or has
    /// variables with nothing fixed between them.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_template::UriTemplate;
    /// let template = UriTemplate::parse("weather://{city}/forecast{?days}")?;
    /// assert_eq!(template.variables().len(), 2);
    /// assert_eq!(UriTemplate::parse("x://{a}{b}").unwrap_err().offset, 8);
    /// # Ok::<(), mcp_resources_template::InvalidTemplate>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        Self::with_options(text, &TemplateOptions::default())
    }

    /// Parses a template.
    ///
    /// # Errors
    /// [`InvalidTemplate`], as for [`parse`](Self::parse); also if an option does not fit its variable.
    pub fn with_options(text: &str, options: &TemplateOptions) -> Result<Self, InvalidTemplate> {
        match Compiled::new(text, options) {
            Ok(compiled) => Ok(Self(Arc::new(compiled))),
            Err(fault) => Err(fault.in_template(text)),
        }
    }

    /// The template, as given.
    pub fn as_str(&self) -> &str {
        &self.0.text
    }

    // Hidden, for `mcp-resources-engine`: its catalogue refuses templates of one shape, and its guard caches by
    // address.

    /// A key that is equal for templates that match the same URIs, whatever the names of their variables.
    #[doc(hidden)]
    pub fn shape(&self) -> &[u8] {
        &self.0.order.shape
    }

    /// A number that this template shares with its clones, but with no other existing template.
    #[doc(hidden)]
    pub fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// The variables, in template order, each name once.
    pub fn variables(&self) -> &[TemplateVariable] {
        &self.0.variables
    }

    /// The lints of this template alone; see [`TemplateIndex::lints_of`] for those that depend on other templates.
    pub fn lints(&self) -> Vec<TemplateLint> {
        lint::of_template(&self.0)
    }

    /// Whether matching undoes expansion: `match(expand(values))` returns the same values, provided that they satisfy
    /// the policies, no `{x}` is empty, expressions are filled from the left, and no value of a `{+x}` or `{#x}`
    /// contains a percent-triplet or a `#`, or of a `{+x}` a `?`.
    pub fn is_reversible(&self) -> bool {
        reversible::is_reversible(&self.0.parts)
    }

    /// Expands the template. Variables without a value are undefined, and extra values are ignored (RFC 6570, 3).
    ///
    /// Takes some hundred microseconds: meant for tests, lists and links, not for every read.
    ///
    /// # Errors
    /// [`ExpandError::PrefixOnComposite`] if a variable with a prefix has a list or map.
    pub fn expand(&self, values: &Values<'_>) -> Result<String, ExpandError> {
        expand::parts(&self.0.parts, values)
    }

    /// Matches `uri`, in any spelling, against this template alone; its index is 0.
    ///
    /// Never backtracks: time is linear in the length of `uri`. Values are percent-decoded once; `{x}` never crosses a
    /// `/`, `{+x}` may. No match is not an error.
    ///
    /// # Errors
    /// [`InvalidUri`] if `uri` is longer than [`MAX_URI`] or not a URI.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_template::{Lookup, UriTemplate};
    /// let template = UriTemplate::parse("note://{id}").unwrap();
    /// let Lookup::Match { params, .. } = template.match_uri("note://7")? else { panic!("no match") };
    /// assert_eq!(params.text("id"), Some("7"));
    /// # Ok::<(), mcp_resources_template::uri::InvalidUri>(())
    /// ```
    pub fn match_uri<'u>(&self, uri: &'u str) -> Result<Lookup<'u>, InvalidUri> {
        Ok(match normalize(uri, MAX_URI)? {
            Cow::Borrowed(normal) => self.lookup(normal),
            Cow::Owned(normal) => self.lookup(&normal).into_owned(),
        })
    }

    fn lookup<'u>(&self, normal: &'u str) -> Lookup<'u> {
        let mut meter = Meter::new(TemplateIndex::STEP_BUDGET);
        let spans = match self.0.matches(&MatchSubject::new(normal), &mut meter) {
            Ok(Some(spans)) => spans,
            Ok(None) => return Lookup::None { exhausted: false },
            Err(_) => return Lookup::None { exhausted: true },
        };
        match (Captured { template: &self.0, uri: normal, spans: &spans }).params() {
            Ok(params) => Lookup::Match { index: 0, params },
            Err(RefusedValue { variable, why }) => Lookup::Rejected { index: 0, variable, why },
        }
    }
}

impl fmt::Debug for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UriTemplate").field(&self.as_str()).finish()
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
