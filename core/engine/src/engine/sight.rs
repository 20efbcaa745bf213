//! What a principal may see of the catalogue: the guard's answers, and the scopes that registrations ask for.
//!
//! Law: lists, capabilities and notifications ask here, so that all of them agree with what a read would say.

use super::Engine;
use crate::catalog::{ForeignTemplate, ListedTemplate, Lister, TemplateEntry};
use crate::guard::{Effort, Guard, View};
use crate::principal::Principal;
use crate::resource::{CacheHint, CacheScope};
use mcp_resources_template::{UriTemplate, uri};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What was found out about templates, for each view: bounded, and dropped when templates change.
#[derive(Default)]
pub(super) struct Reached {
    /// By address of the template, which the value keeps alive.
    known: Mutex<HashMap<(usize, View), (UriTemplate, bool)>>,
}

impl Reached {
    const MOST: usize = 100_000;

    pub(super) fn clear(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn ask(&self, guard: &Guard, view: &View, template: &UriTemplate) -> bool {
        let key = (template.address(), view.clone());
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, reached)) = known().get(&key) {
            return *reached;
        }
        let reached = guard.reaches(view, &template.outline(&|_| None));
        let mut known = known();
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key, (template.clone(), reached));
        reached
    }
}

impl Engine {
    /// Whether not everybody may see everything.
    pub(crate) fn restricts(&self) -> bool {
        !self.guard.is_open() || self.catalog().has_scopes()
    }

    /// Whether `principal` may see `uri`, in any spelling: what a read of it would say.
    pub fn permits(&self, principal: &Principal, uri: &str) -> bool {
        uri::normalize(uri, self.limits().uri).is_ok_and(|normal| self.sees(principal, &normal))
    }

    /// Whether `principal` may use the URI `normal`, which is in normal form.
    pub(crate) fn sees(&self, principal: &Principal, normal: &str) -> bool {
        if !self.guard.permits(principal, normal) {
            return false;
        }
        let catalog = self.catalog();
        !catalog.has_scopes() || self.guard.missing(principal, catalog.route(normal).scopes()).is_empty()
    }

    /// Whether `principal` may know of a template: it has its scopes, and may see one of its URIs (S-12).
    pub(crate) fn sees_template(&self, principal: &Principal, entry: &TemplateEntry) -> bool {
        let scopes = &entry.template.details.scopes;
        (scopes.is_empty() || self.guard.missing(principal, scopes).is_empty())
            && (self.guard.is_open()
                || self.reached.ask(&self.guard, &self.guard.view(principal), &entry.parsed))
    }

    /// Whether `principal` may know of a template in a list.
    pub(crate) fn sees_listed(&self, principal: &Principal, template: ListedTemplate<'_>) -> bool {
        match template {
            ListedTemplate::Own(entry) => self.sees_template(principal, entry),
            ListedTemplate::Foreign(ForeignTemplate { parsed, .. }) => {
                self.sees_foreign(principal, parsed.as_ref())
            }
        }
    }

    /// Whether `principal` may know of a template that is not registered: one that cannot be parsed could lead anywhere, so
    /// only those who may see everything know of it.
    pub(crate) fn sees_foreign(&self, principal: &Principal, parsed: Option<&UriTemplate>) -> bool {
        let reaches = |parsed| self.reached.ask(&self.guard, &self.guard.view(principal), parsed);
        self.guard.is_open() || parsed.is_some_and(reaches)
    }

    /// Whether a list source is asked for `principal`: its template may be known. What any source gives is judged item by
    /// item.
    pub(crate) fn sees_lister(&self, principal: &Principal, lister: Lister<'_>) -> bool {
        match lister {
            Lister::Template(entry) => self.sees_template(principal, entry),
            Lister::Source(_) => true,
        }
    }

    /// Whether anybody may keep lists, as far as the configuration says.
    pub(super) fn may_share_lists(&self) -> bool {
        self.options.list_cache.scope == CacheScope::Public && !self.guard.differs()
    }

    /// Whether anybody may keep the pages of a walk that begins now.
    pub(crate) fn shares_lists(&self) -> bool {
        self.may_share_lists() && !self.catalog().has_scopes()
    }

    /// The hint as it may be given where principals see different things.
    pub(crate) fn shared(&self, hint: CacheHint) -> CacheHint {
        let differs = self.guard.differs() || self.catalog().has_scopes();
        if differs { CacheHint { scope: CacheScope::Private, ..hint } } else { hint }
    }

    /// Whether something completes a variable of a template that `principal` may know of.
    pub(super) fn has_completers(&self, principal: &Principal) -> bool {
        let catalog = self.catalog();
        catalog.has_completers()
            && (!self.restricts()
                || catalog.fallback().is_some()
                || catalog
                    .templates()
                    .iter()
                    .any(|entry| entry.has_completers() && self.sees_template(principal, entry)))
    }
}

/// What a completion of the author's is filtered by.
#[derive(Debug)]
pub(crate) struct Suggested {
    pub(crate) template: UriTemplate,
    pub(crate) principal: Arc<Principal>,
    pub(crate) variable: String,
    /// The values chosen so far.
    pub(crate) arguments: Vec<(String, String)>,
}

impl Suggested {
    /// Whether `value` leads to a URI that the principal may see: the one that it makes, or one of those that are still
    /// open. `effort` is what all values of one completion may cost together: when it is spent, the answer is no.
    pub(crate) fn leads_on(&self, guard: &Guard, view: &View, effort: &mut Effort, value: &str) -> bool {
        let outline = self.template.outline(&|name| {
            if name == self.variable {
                return Some(value);
            }
            let (_, chosen) = self.arguments.iter().find(|(own, _)| own == name)?;
            Some(chosen)
        });
        if !effort.spend(outline.size()) {
            return false;
        }
        match outline.only() {
            Some(uri) => guard.permits(&self.principal, &uri),
            None => guard.reaches_within(view, &outline, effort),
        }
    }
}
