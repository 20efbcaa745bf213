//! Routes a canonical URI: exact resources first, then the most specific template.
//!
//! Law: the result depends on the URI and on the registrations, never on their order.

use crate::catalog::items::{HandlerId, ItemSource, ResourceEntry, TemplateEntry};
use crate::resource::RegistrationError;
use imbl::shared_ptr::DefaultSharedPtr;
use imbl::{GenericHashMap, OrdMap};
use mcp_resources_template::{Lookup, MatchedParams, Rejection, TemplateIndex, TemplateLint, UriTemplate};
use std::borrow::Borrow;
use std::collections::HashSet;
use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// Resources by canonical URI. Third parties can choose URIs (file names, rows, other servers), so the hash has a
/// secret key. No output depends on the key.
#[derive(Clone, Debug)]
pub(super) struct ByUri(GenericHashMap<UriKey, (), HashKey, DefaultSharedPtr>);

/// A resource that is found by its canonical URI. The entry contains it, so a slot of the map has one pointer only.
#[derive(Clone, Debug)]
struct UriKey(Arc<ResourceEntry>);

impl ByUri {
    pub(super) fn with_hasher(key: HashKey) -> Self {
        Self(GenericHashMap::with_hasher(key))
    }

    #[cfg(test)]
    pub(super) fn hasher(&self) -> &HashKey {
        self.0.hasher()
    }

    pub(super) fn get(&self, canonical: &str) -> Option<&Arc<ResourceEntry>> {
        self.0.get_key_value(canonical).map(|(key, ())| &key.0)
    }

    /// Adds `entry`, or puts it in the place of the one with the same URI; returns whether there was one.
    pub(super) fn insert(&mut self, entry: Arc<ResourceEntry>) -> bool {
        self.0.insert(UriKey(entry), ()).is_some()
    }

    pub(super) fn remove(&mut self, canonical: &str) -> Option<Arc<ResourceEntry>> {
        self.0.remove_with_key(canonical).map(|(key, ())| key.0)
    }
}

impl Borrow<str> for UriKey {
    fn borrow(&self) -> &str {
        &self.0.canonical
    }
}

impl Hash for UriKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.canonical.hash(state);
    }
}

impl PartialEq for UriKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.canonical == other.0.canonical
    }
}

impl Eq for UriKey {}

/// The key of the catalogue's hash. The default key is public: an attacker who can register URIs could choose colliding
/// ones and make lookups slow.
#[derive(Clone, Debug, Default)]
pub struct HashKey(DefaultHasher);

impl HashKey {
    /// A key derived from `secret`.
    pub fn new(secret: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(secret);
        Self(hasher)
    }
}

impl BuildHasher for HashKey {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        self.0.clone()
    }
}

/// The result of routing a URI.
#[derive(Debug)]
pub enum CatalogRoute<'c, 'u> {
    /// A resource registered at exactly this URI.
    Resource(&'c Arc<ResourceEntry>),
    /// A template, with the values of its variables.
    Template(&'c Arc<TemplateEntry>, MatchedParams<'u>),
    /// No resource and no template matches; the fallback handler serves the URI.
    Fallback(HandlerId),
    /// A template matches, but its policy refuses a value. Peers cannot tell this from [`CatalogRoute::None`].
    Rejected {
        /// The template.
        template: &'c Arc<TemplateEntry>,
        /// The variable.
        variable: Arc<str>,
        /// The reason.
        why: Rejection,
    },
    /// No match.
    None {
        /// Whether the matcher used up its step budget before it had tried everything: worth a log entry.
        exhausted: bool,
    },
}

impl CatalogRoute<'_, '_> {
    /// Whether the URI is served.
    pub fn exists(&self) -> bool {
        matches!(self, Self::Resource(_) | Self::Template(..) | Self::Fallback(_))
    }

    /// The scopes that the matched resource or template requires.
    pub fn scopes(&self) -> &[String] {
        match self {
            Self::Resource(entry) => &entry.resource.details.scopes,
            Self::Template(entry, _) => &entry.template.details.scopes,
            Self::Fallback(_) | Self::Rejected { .. } | Self::None { .. } => &[],
        }
    }

    /// The handler that decides who may use the URI; `None` if its registration leaves that to the guard.
    pub fn access(&self) -> Option<HandlerId> {
        match self {
            Self::Resource(entry) if entry.resource.details.access => match entry.source {
                ItemSource::Handler(handler) => Some(handler),
                ItemSource::Text(_) | ItemSource::Bytes(_) => None,
            },
            Self::Template(entry, _) if entry.template.details.access => Some(entry.handler),
            _ => None,
        }
    }
}

/// The templates of one snapshot, sorted by text.
#[derive(Debug, Default)]
pub(super) struct TemplateRoutes {
    pub(super) entries: Vec<Arc<TemplateEntry>>,
    shapes: Shapes,
    /// Built at the first lookup, so that templates added one by one share one index.
    index: OnceLock<Option<TemplateIndex>>,
    /// The lints of all templates; empty if linting was skipped.
    lints: Vec<TemplateLint>,
    pub(super) has_completers: bool,
    pub(super) has_list_sources: bool,
    pub(super) has_children: bool,
    pub(super) has_scopes: bool,
    pub(super) has_access: bool,
    pub(super) has_checks: bool,
}

impl TemplateRoutes {
    /// Up to this many templates are linted at every edit. Above it, only edits that change at least one in
    /// [`TemplateRoutes::PART`] are: linting all templates for each one added would be quadratic.
    const LINTED: usize = 128;
    const PART: usize = 16;

    /// The templates `entries`, sorted by text, with their `shapes`, after `edits` changes.
    pub(super) fn new(entries: Vec<Arc<TemplateEntry>>, shapes: Shapes, edits: usize) -> Self {
        let next = Self {
            shapes,
            index: OnceLock::new(),
            lints: Vec::new(),
            has_completers: entries.iter().any(|entry| entry.has_completers()),
            has_list_sources: entries.iter().any(|entry| entry.template.list.is_some()),
            has_children: entries.iter().any(|entry| entry.template.children),
            has_checks: entries.iter().any(|entry| !entry.checks().is_empty()),
            has_access: entries.iter().any(|entry| entry.template.details.access),
            has_scopes: entries.iter().any(|entry| !entry.template.details.scopes.is_empty()),
            entries,
        };
        let is_linted = next.entries.len() <= Self::LINTED || next.entries.len() / Self::PART <= edits;
        // Without linting, leave the index unbuilt.
        let index = if is_linted { next.index() } else { None };
        let lints = index.map(TemplateIndex::lints);
        Self { lints: lints.unwrap_or_default(), ..next }
    }

    /// The shapes of these templates.
    pub(super) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// Derives the shapes of `entries` from those of these templates. Both are sorted by text.
    ///
    /// # Errors
    /// As [`Shapes::insert`].
    pub(super) fn next_shapes(&self, entries: &[Arc<TemplateEntry>]) -> Result<Shapes, RegistrationError> {
        let mut shapes = self.shapes.clone();
        let (gone, new) = changes(&self.entries, entries);
        gone.into_iter().for_each(|entry| shapes.remove(entry));
        new.into_iter().try_for_each(|entry| shapes.insert(entry))?;
        Ok(shapes)
    }

    /// The index, built on first use; `None` without templates.
    fn index(&self) -> Option<&TemplateIndex> {
        let build = || {
            let parsed: Vec<UriTemplate> = self.entries.iter().map(|entry| entry.parsed.clone()).collect();
            // All shapes differ, so no templates conflict.
            TemplateIndex::build(&parsed).ok().filter(|index| !index.is_empty())
        };
        self.index.get_or_init(build).as_ref()
    }

    #[cfg(test)]
    pub(super) fn is_indexed(&self) -> bool {
        self.index.get().is_some()
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

    pub(super) fn route<'u>(&self, normal: &'u str) -> CatalogRoute<'_, 'u> {
        let Some(index) = self.index() else { return CatalogRoute::None { exhausted: false } };
        match index.lookup(normal) {
            Lookup::Match { index, params } => CatalogRoute::Template(&self.entries[index], params),
            Lookup::Rejected { index, variable, why } => {
                CatalogRoute::Rejected { template: &self.entries[index], variable, why }
            }
            Lookup::None { exhausted } => CatalogRoute::None { exhausted },
        }
    }

    /// Whether `normal` belongs to a template whose resources have children.
    pub(super) fn is_parent(&self, normal: &str) -> bool {
        matches!(self.route(normal), CatalogRoute::Template(entry, _) if entry.template.children)
    }

    /// Warnings about these templates that were not reported for `before`.
    pub(super) fn news(&self, before: &Self) -> impl Iterator<Item = String> {
        let known: HashSet<_> = before.lints.iter().map(|lint| (&lint.template, &lint.message)).collect();
        let is_new = move |lint: &&TemplateLint| !known.contains(&(&lint.template, &lint.message));
        self.lints.iter().filter(is_new).map(warning)
    }
}

/// Templates by [`UriTemplate::shape`]. Two templates of one shape conflict. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes(OrdMap<Arc<[u8]>, Arc<TemplateEntry>>);

impl Shapes {
    /// Adds a template.
    ///
    /// # Errors
    /// [`RegistrationError::TemplateConflict`], naming the new template first. The shapes are then unchanged.
    pub(super) fn insert(&mut self, entry: &Arc<TemplateEntry>) -> Result<(), RegistrationError> {
        if let Some(with) = self.0.get(entry.parsed.shape()) {
            let template = entry.template.uri_template.clone();
            let with = with.template.uri_template.clone();
            return Err(RegistrationError::TemplateConflict { template, with });
        }
        self.0.insert(entry.parsed.shape().into(), entry.clone());
        Ok(())
    }

    /// Removes a template.
    pub(super) fn remove(&mut self, entry: &TemplateEntry) {
        self.0.remove(entry.parsed.shape());
    }
}

/// A lint as one line.
pub(super) fn warning(lint: &TemplateLint) -> String {
    format!("{}: {}", lint.template, lint.message)
}

/// The position of `text` in `entries`, or `Err` with the position at which to insert it.
pub(super) fn position(entries: &[Arc<TemplateEntry>], text: &str) -> Result<usize, usize> {
    entries.binary_search_by(|entry| entry.template.uri_template.as_str().cmp(text))
}

/// The removed and the added entries. `before` and `after` are sorted by text.
fn changes<'e>(
    before: &'e [Arc<TemplateEntry>],
    after: &'e [Arc<TemplateEntry>],
) -> (Vec<&'e Arc<TemplateEntry>>, Vec<&'e Arc<TemplateEntry>>) {
    let mut gone = Vec::new();
    let mut new = Vec::new();
    let mut old = before.iter().peekable();
    let mut now = after.iter().peekable();
    while let (Some(one), Some(other)) = (old.peek(), now.peek()) {
        if Arc::ptr_eq(one, other) {
            old.next();
            now.next();
        } else if one.template.uri_template <= other.template.uri_template {
            gone.extend(old.next());
        } else {
            new.extend(now.next());
        }
    }
    gone.extend(old);
    new.extend(now);
    (gone, new)
}
