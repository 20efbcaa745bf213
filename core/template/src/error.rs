//! Errors of templates, sets of templates and expansions. All are mistakes in the code that uses them.

use std::fmt;

/// A template that cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidTemplate {
    /// The template, as given.
    pub template: String,
    /// The position of the error, in bytes from the beginning.
    pub offset: usize,
    /// The reason, as half a sentence.
    pub reason: String,
}

impl fmt::Display for InvalidTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "invalid URI template {:?} at offset {}: {}", self.template, self.offset, self.reason)
    }
}

impl std::error::Error for InvalidTemplate {}

/// Two templates of one shape: only their order of registration could decide between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateConflict {
    /// The later of the two, as given.
    pub template: String,
    /// Its position among the registered templates.
    pub index: usize,
    /// The earlier of the two, as given.
    pub with: String,
    /// Its position among the registered templates.
    pub with_index: usize,
}

impl fmt::Display for TemplateConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "URI template {:?} matches the same URIs as {:?}", self.template, self.with)
    }
}

impl std::error::Error for TemplateConflict {}

/// An expansion that RFC 6570 does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExpandError {
    /// The template is not in the grammar of RFC 6570.
    Template(InvalidTemplate),
    /// A prefix modifier (`{x:3}`) on a variable whose value is a list or a map (RFC 6570, 2.4.1).
    PrefixOnComposite {
        /// The variable.
        variable: String,
    },
}

impl fmt::Display for ExpandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(error) => error.fmt(f),
            Self::PrefixOnComposite { variable } => {
                write!(f, "variable {variable:?} has a prefix modifier, so its value must be a text")
            }
        }
    }
}

impl std::error::Error for ExpandError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Template(error) => Some(error),
            Self::PrefixOnComposite { .. } => None,
        }
    }
}

impl From<InvalidTemplate> for ExpandError {
    fn from(error: InvalidTemplate) -> Self {
        Self::Template(error)
    }
}
