//! From a canonical URI to what answers it: exact resources first, then the most specific template (DEC-14).
//!
//! Law: the answer depends on what is registered and on the URI, never on the order of registration.

use crate::catalog::items::{ResourceEntry, TemplateEntry};
use crate::resource::RegistrationError;
use crate::template::{Lint, Lookup, Params, Rejection, TemplateConflict, TemplateIndex, UriTemplate};
use imbl::GenericHashMap;
use imbl::shared_ptr::DefaultSharedPtr;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::sync::Arc;

/// Resources by canonical URI. The hash has no random key: the same calls give the same bytes, and its depth is
/// bounded whatever the keys.
pub(super) type ByUri =
    GenericHashMap<Arc<str>, Arc<ResourceEntry>, BuildHasherDefault<DefaultHasher>, DefaultSharedPtr>;

/// What answers a URI.
#[derive(Debug)]
pub enum Route<'c, 'u> {
    /// A resource that is registered at this very URI.
    Resource(&'c Arc<ResourceEntry>),
    /// A template, with the values of its variables.
    Template(&'c Arc<TemplateEntry>, Params<'u>),
    /// A template whose policy refuses a value; to a peer the same as [`Route::None`].
    Rejected {
        /// The template.
        template: &'c Arc<TemplateEntry>,
        /// The variable.
        variable: Arc<str>,
        /// Why.
        why: Rejection,
    },
    /// Nothing.
    None {
        /// The matcher's step budget was spent before it had tried everything: worth a log line.
        exhausted: bool,
    },
}

impl Route<'_, '_> {
    /// The scopes that what answers the URI needs.
    pub fn scopes(&self) -> &[String] {
        match self {
            Self::Resource(entry) => &entry.resource.details.scopes,
            Self::Template(entry, _) => &entry.template.details.scopes,
            Self::Rejected { .. } | Self::None { .. } => &[],
        }
    }
}

/// The templates of one snapshot, in the order of their text.
#[derive(Debug, Default)]
pub(super) struct Templates {
    pub(super) entries: Vec<Arc<TemplateEntry>>,
    index: Option<TemplateIndex>,
    lints: Vec<Lint>,
    pub(super) has_completers: bool,
    pub(super) has_list_sources: bool,
    pub(super) has_children: bool,
    pub(super) has_scopes: bool,
}

impl Templates {
    /// Builds the index over `entries`, which are sorted by their text.
    ///
    /// # Errors
    /// [`TemplateConflict`].
    pub(super) fn build(entries: Vec<Arc<TemplateEntry>>) -> Result<Self, TemplateConflict> {
        let parsed: Vec<UriTemplate> = entries.iter().map(|entry| entry.parsed.clone()).collect();
        let index = TemplateIndex::build(&parsed)?;
        Ok(Self {
            lints: index.lints(),
            index: Some(index),
            has_completers: entries.iter().any(|entry| entry.has_completers()),
            has_list_sources: entries.iter().any(|entry| entry.template.list.is_some()),
            has_children: entries.iter().any(|entry| entry.template.children),
            has_scopes: entries.iter().any(|entry| !entry.template.details.scopes.is_empty()),
            entries,
        })
    }

    pub(super) fn by_text(&self, text: &str) -> Option<&Arc<TemplateEntry>> {
        position(&self.entries, text).ok().map(|at| &self.entries[at])
    }

    pub(super) fn after(&self, text: Option<&str>) -> &[Arc<TemplateEntry>] {
        let start = match text.map(|text| position(&self.entries, text)) {
            None => 0,
            Some(Ok(at)) => at + 1,
            Some(Err(at)) => at,
        };
        self.entries.get(start..).unwrap_or_default()
    }

    pub(super) fn route<'u>(&self, normal: &'u str) -> Route<'_, 'u> {
        let Some(index) = &self.index else { return Route::None { exhausted: false } };
        match index.lookup(normal) {
            Lookup::Match { index, params } => Route::Template(&self.entries[index], params),
            Lookup::Rejected { index, variable, why } => {
                Route::Rejected { template: &self.entries[index], variable, why }
            }
            Lookup::None { exhausted } => Route::None { exhausted },
        }
    }

    /// Whether `normal` belongs to a template whose resources have children.
    pub(super) fn is_parent(&self, normal: &str) -> bool {
        matches!(self.route(normal), Route::Template(entry, _) if entry.template.children)
    }

    /// What the authors should know of these templates and did not hear when `before` was built.
    pub(super) fn news(&self, before: &Self) -> impl Iterator<Item = String> {
        let known: HashSet<_> = before.lints.iter().map(|lint| (&lint.template, &lint.message)).collect();
        let is_new = move |lint: &&Lint| !known.contains(&(&lint.template, &lint.message));
        self.lints.iter().filter(is_new).map(warning)
    }
}

/// A lint as one line.
pub(super) fn warning(lint: &Lint) -> String {
    format!("{}: {}", lint.template, lint.message)
}

/// Where `text` stands in `entries`, or where it would have to be inserted.
pub(super) fn position(entries: &[Arc<TemplateEntry>], text: &str) -> Result<usize, usize> {
    entries.binary_search_by(|entry| entry.template.uri_template.as_str().cmp(text))
}

/// Names the template that is new first: the index knows positions only.
pub(super) fn conflict(error: TemplateConflict, before: &Templates) -> RegistrationError {
    let TemplateConflict { template, with, .. } = error;
    let (template, with) =
        if before.by_text(&template).is_some() { (with, template) } else { (template, with) };
    RegistrationError::TemplateConflict { template, with }
}
