//! URI templates (RFC 6570): parsing, expansion, and matching of URIs against one template or many.
#![expect(dead_code, reason = "skeleton")]

mod error;
mod options;
mod policy;
mod value;

pub use error::{ExpandError, InvalidTemplate, TemplateConflict};
pub use options::{Chars, ExtraQuery, Kind, Policy, TemplateOptions, UnknownWord, Variable, VariableOptions};
pub use policy::Rejection;
pub use value::{Params, Value, Values};

use crate::uri::InvalidUri;
use std::sync::Arc;

/// A parsed and compiled URI template. Cheap to clone.
#[derive(Clone, Debug)]
pub struct UriTemplate(Arc<()>);

impl UriTemplate {
    /// Parses a template with the default options.
    ///
    /// # Errors
    /// [`InvalidTemplate`].
    pub fn parse(text: &str) -> Result<Self, InvalidTemplate> {
        Self::with_options(text, &TemplateOptions::default())
    }

    /// Parses a template.
    ///
    /// # Errors
    /// [`InvalidTemplate`].
    pub fn with_options(_text: &str, _options: &TemplateOptions) -> Result<Self, InvalidTemplate> {
        unimplemented!("skeleton")
    }

    /// The template, as given.
    pub fn as_str(&self) -> &str {
        unimplemented!("skeleton")
    }

    /// The variables, in template order, each name once.
    pub fn variables(&self) -> &[Variable] {
        unimplemented!("skeleton")
    }

    /// What the author should know about this template.
    pub fn lints(&self) -> Vec<Lint> {
        unimplemented!("skeleton")
    }

    /// Whether matching undoes expansion for all values.
    pub fn is_reversible(&self) -> bool {
        unimplemented!("skeleton")
    }

    /// Expands the template with `values`.
    ///
    /// # Errors
    /// [`ExpandError`].
    pub fn expand(&self, _values: &Values<'_>) -> Result<String, ExpandError> {
        unimplemented!("skeleton")
    }

    /// Matches `uri`, in any spelling, against this template alone; its index is 0.
    ///
    /// # Errors
    /// [`InvalidUri`].
    pub fn match_uri<'u>(&self, _uri: &'u str) -> Result<Lookup<'u>, InvalidUri> {
        unimplemented!("skeleton")
    }
}

/// What a registered template may do that its author did not expect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    /// The template.
    pub template: String,
    /// One sentence that names the remedy.
    pub message: String,
}

/// What became of one URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup<'u> {
    /// A template matched.
    Match {
        /// Its position in the slice that the index was built from.
        index: usize,
        /// The values of its variables.
        params: Params<'u>,
    },
    /// No template matched.
    None {
        /// The step budget was spent before the search ended: worth a log line.
        exhausted: bool,
    },
    /// The winning template refuses a value. Final; to a client the same as no match.
    Rejected {
        /// Its position in the slice that the index was built from.
        index: usize,
        /// The variable whose value was refused.
        variable: Arc<str>,
        /// Why.
        why: Rejection,
    },
}

/// An immutable snapshot over N templates.
#[derive(Clone, Debug)]
pub struct TemplateIndex(());

impl TemplateIndex {
    /// Builds the index. Each template keeps its position in `templates`.
    ///
    /// # Errors
    /// [`TemplateConflict`].
    pub fn build(_templates: &[UriTemplate]) -> Result<Self, TemplateConflict> {
        unimplemented!("skeleton")
    }

    /// Finds the template for a URI in normal form.
    pub fn lookup<'u>(&self, _normal: &'u str) -> Lookup<'u> {
        unimplemented!("skeleton")
    }

    /// Templates that others shadow, and what else the authors should know.
    pub fn lints(&self) -> Vec<Lint> {
        unimplemented!("skeleton")
    }
}

/// Several templates, matched against URIs in any spelling.
#[derive(Clone, Debug)]
pub struct TemplateSet(());

impl TemplateSet {
    /// Builds the set.
    ///
    /// # Errors
    /// [`TemplateConflict`].
    pub fn new(_templates: impl IntoIterator<Item = UriTemplate>) -> Result<Self, TemplateConflict> {
        unimplemented!("skeleton")
    }

    /// Finds the template for `uri`.
    ///
    /// # Errors
    /// [`InvalidUri`].
    pub fn match_uri<'u>(&self, _uri: &'u str) -> Result<Lookup<'u>, InvalidUri> {
        unimplemented!("skeleton")
    }
}
