//! Changes of the catalogue: a list of edits makes the next snapshot, or none of them counts.
//!
//! Law: a snapshot in which something is duplicated, ambiguous or invalid is never made (R-070, DEC-14).

use crate::catalog::Catalog;
use crate::catalog::check::{CheckedTemplate, check_resource, check_template, invalid_uri};
use crate::catalog::items::{HandlerId, ResourceEntry, Source, TemplateEntry};
use crate::catalog::routes::{Templates, position, warning};
use crate::resource::{RegistrationError, Resource, Template};
use crate::suggest;
use mcp_resources_template::uri;
use std::sync::Arc;

/// One change.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Adds a resource.
    AddResource {
        /// The resource.
        resource: Resource,
        /// Where its contents come from.
        source: Source,
    },
    /// Removes the resource with this URI, in any spelling; nothing if there is none.
    RemoveResource {
        /// Its URI.
        uri: String,
    },
    /// Adds a template.
    AddTemplate {
        /// The template.
        template: Template,
        /// The author's functions behind it.
        handler: HandlerId,
    },
    /// Removes the template with exactly this text; nothing if there is none.
    RemoveTemplate {
        /// Its text.
        uri_template: String,
    },
}

/// What a list of edits did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Whether a resource was added or removed.
    pub resources_changed: bool,
    /// Whether a template was added or removed.
    pub templates_changed: bool,
    /// The canonical URIs of the resources that were removed, replaced ones included: they count as updated.
    pub removed: Vec<Arc<str>>,
    /// The functions of what was removed, once for each removal: of a resource or template that the same edits added too.
    pub freed: Vec<HandlerId>,
    /// What the author should know: one sentence each.
    pub warnings: Vec<String>,
}

impl Catalog {
    /// Applies all `edits` in order, or none. O(log N) for each resource. If a template was added or removed, their index
    /// is rebuilt once, when the next URI is looked up. Whether templates shadow each other is looked for while there are
    /// few (128), or when the edits change one in 16 of them.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first edit that is refused.
    pub fn apply(&self, edits: Vec<Edit>) -> Result<(Self, Applied), RegistrationError> {
        let mut draft =
            Draft { catalog: self.clone(), templates: None, edited: 0, applied: Applied::default() };
        edits.into_iter().try_for_each(|edit| draft.apply(edit))?;
        draft.finish(&self.templates)
    }
}

/// The next snapshot in the making.
struct Draft {
    catalog: Catalog,
    /// The next templates, by their text, once one was added or removed.
    templates: Option<Vec<Arc<TemplateEntry>>>,
    /// How many templates were added or removed.
    edited: usize,
    applied: Applied,
}

impl Draft {
    fn apply(&mut self, edit: Edit) -> Result<(), RegistrationError> {
        match edit {
            Edit::AddResource { resource, source } => self.add_resource(resource, source),
            Edit::RemoveResource { uri } => self.remove_resource(&uri),
            Edit::AddTemplate { template, handler } => self.add_template(template, handler),
            Edit::RemoveTemplate { uri_template } => {
                self.remove_template(&uri_template);
                Ok(())
            }
        }
    }

    fn add_resource(&mut self, mut resource: Resource, source: Source) -> Result<(), RegistrationError> {
        let given = resource.uri.clone();
        resource.size = resource.size.or_else(|| source.size());
        let canonical = check_resource(&mut resource, &self.catalog.limits)?;
        if self.catalog.by_uri.contains_key(&canonical) {
            return Err(RegistrationError::DuplicateResource { uri: given });
        }
        ensure_room("resources", self.catalog.in_order.len(), self.catalog.limits.resources)?;
        self.warn_of_web_scheme(&canonical);
        if let Some(template) = suggest::template(&given) {
            self.applied.warnings.push(format!("{given} has no variables; did you mean {template:?}?"));
        }
        self.catalog.parents += usize::from(resource.children);
        self.catalog.scoped += usize::from(!resource.details.scopes.is_empty());
        let entry = Arc::new(ResourceEntry::new(resource, canonical.clone(), source));
        self.catalog.by_uri.insert(canonical.clone(), entry.clone());
        self.catalog.in_order.insert(canonical, entry);
        self.applied.resources_changed = true;
        Ok(())
    }

    fn remove_resource(&mut self, uri: &str) -> Result<(), RegistrationError> {
        let normal =
            uri::normalize(uri, self.catalog.limits.uri).map_err(|error| invalid_uri(uri, &error))?;
        if let Some(entry) = self.catalog.by_uri.remove(&*normal) {
            self.catalog.in_order.remove(&*normal);
            self.catalog.parents -= usize::from(entry.resource.children);
            self.catalog.scoped -= usize::from(!entry.resource.details.scopes.is_empty());
            if let Source::Handler(handler) = entry.source {
                self.applied.freed.push(handler);
            }
            self.applied.removed.push(entry.canonical.clone());
            self.applied.resources_changed = true;
        }
        Ok(())
    }

    fn add_template(&mut self, template: Template, handler: HandlerId) -> Result<(), RegistrationError> {
        let CheckedTemplate { template, parsed, checks } = check_template(template, &self.catalog.limits)?;
        let limit = self.catalog.limits.templates;
        let templates = self.templates();
        ensure_room("templates", templates.len(), limit)?;
        let Err(at) = position(templates, &template.uri_template) else {
            let text = template.uri_template;
            return Err(RegistrationError::TemplateConflict { template: text.clone(), with: text });
        };
        let mut warnings: Vec<_> = parsed.lints().iter().map(warning).collect();
        if parsed.variables().is_empty() {
            warnings.push(format!("{}: a template without variables, register a resource", parsed.as_str()));
        }
        templates.insert(at, Arc::new(TemplateEntry::new(template, parsed, checks, handler)));
        self.applied.warnings.extend(warnings);
        self.edited += 1;
        self.applied.templates_changed = true;
        Ok(())
    }

    fn remove_template(&mut self, text: &str) {
        let templates = self.templates();
        if let Ok(at) = position(templates, text) {
            let removed = templates.remove(at);
            self.applied.freed.push(removed.handler);
            self.edited += 1;
            self.applied.templates_changed = true;
        }
    }

    fn templates(&mut self) -> &mut Vec<Arc<TemplateEntry>> {
        self.templates.get_or_insert_with(|| self.catalog.templates.entries.clone())
    }

    /// a client that can fetch a web address itself will, and without this server.
    fn warn_of_web_scheme(&mut self, canonical: &str) {
        if matches!(uri::scheme(canonical), "http" | "https") {
            self.applied.warnings.push(format!(
                "{canonical}: use http and https only if clients can fetch it themselves, else a scheme of your own"
            ));
        }
    }

    fn finish(mut self, before: &Templates) -> Result<(Catalog, Applied), RegistrationError> {
        if let Some(entries) = self.templates.filter(|_| self.applied.templates_changed) {
            let next = before.next(entries, self.edited)?;
            for warning in next.news(before) {
                if !self.applied.warnings.contains(&warning) {
                    self.applied.warnings.push(warning);
                }
            }
            self.catalog.templates = Arc::new(next);
        }
        Ok((self.catalog, self.applied))
    }
}

fn ensure_room(what: &'static str, held: usize, limit: usize) -> Result<(), RegistrationError> {
    if held < limit { Ok(()) } else { Err(RegistrationError::LimitReached { what, limit }) }
}
