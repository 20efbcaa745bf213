//! The part of the catalogue that a principal may see: the guard's decisions, and the scopes that registrations
//! require.
//!
//! Law: lists, capabilities and notifications use these functions, so that all of them agree with the result of a read.

use super::server_info::ServerDescription;
use super::{AccessView, Engine};
use crate::catalog::{
    Catalog, CatalogRoute, ForeignTemplate, ListKind, ListedTemplate, Lister, MountId, PromptEntry,
    TemplateEntry, ToolEntry, ToolSource, ToolTemplate, ToolView, VisibleValues,
};
use crate::guard::{Decision, Effort, Guard, PolicyView};
use crate::principal::Principal;
use crate::resource::{CacheHint, CacheScope};
use mcp_resources_template::{UriTemplate, uri};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Cached results of [`Guard::reaches`] for each template and view. Limited in number; cleared when templates change.
#[derive(Default)]
pub(super) struct Reached {
    /// By the template's address, which stays valid because the value holds the template.
    known: Mutex<HashMap<(usize, PolicyView), (UriTemplate, bool)>>,
}

impl Reached {
    const MOST: usize = 100_000;

    pub(super) fn clear(&self) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn ask(&self, guard: &Guard, view: &PolicyView, template: &UriTemplate) -> bool {
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
    /// Whether some principal may not see everything.
    pub(crate) fn restricts(&self) -> bool {
        self.restricts_in(&self.catalog())
    }

    /// The same for a catalogue that is loaded already.
    fn restricts_in(&self, catalog: &Catalog) -> bool {
        !self.is_open() || self.has_access() || self.has_grants() || catalog.has_scopes()
    }

    /// Whether `principal` may read `uri`, given in any spelling. Where a handler decides, this needs a known answer.
    pub fn permits(&self, principal: &Principal, uri: &str) -> bool {
        uri::normalize(uri, self.limits().uri).is_ok_and(|normal| match self.has_access() {
            true => self.knows_access(principal, &normal),
            false => self.sees(principal, &normal),
        })
    }

    /// Whether the guard lets `principal` use the URI `normal`, which is in normal form. A handler may still refuse it.
    pub(crate) fn sees(&self, principal: &Principal, normal: &str) -> bool {
        let catalog = self.catalog();
        if self.is_open_to(principal) && !catalog.has_scopes() {
            return true;
        }
        let guard = self.guard();
        if self.decide(&guard, principal, normal) != Decision::Allow {
            return false;
        }
        !catalog.has_scopes() || guard.missing(principal, catalog.route(normal).scopes()).is_empty()
    }

    /// The guard's decision about the URI `normal`, which is in normal form. Where a rule that narrows depends on the
    /// query, it must also permit the query in the order of the template, without names that the template ignores.
    pub(crate) fn decide<'g>(&self, guard: &'g Guard, principal: &Principal, normal: &str) -> Decision<'g> {
        let decision = guard.decide(principal, normal);
        let reads_queries = guard.reads_queries() || principal.uris().is_some();
        if decision != Decision::Allow || !reads_queries || !normal.contains('?') {
            return decision;
        }
        match self.catalog().route(normal) {
            CatalogRoute::Template(entry, _) => match entry.ordered_query(normal) {
                Some(ordered) => guard.narrows(principal, &ordered),
                None => decision,
            },
            _ => decision,
        }
    }

    /// Whether `principal` may know about a template: it has the required scopes, and may see one of its URIs.
    pub(crate) fn sees_template(&self, principal: &Principal, entry: &TemplateEntry) -> bool {
        let scopes = &entry.template.details.scopes;
        let guard = self.guard();
        (scopes.is_empty() || guard.missing(principal, scopes).is_empty())
            && (guard.is_open_to(principal)
                || self.reached.ask(&guard, &guard.view(principal), &entry.parsed))
    }

    /// Whether a list may show a template to `principal`.
    pub(crate) fn sees_listed(&self, principal: &Principal, template: ListedTemplate<'_>) -> bool {
        match template {
            ListedTemplate::Own(entry) => self.sees_template(principal, entry),
            ListedTemplate::Foreign(ForeignTemplate { parsed, .. }) => {
                self.sees_foreign(principal, parsed.as_ref())
            }
        }
    }

    /// Whether `principal` may know about a template that is not registered. One that cannot be parsed might expand to
    /// anything, so only principals that may see everything know about it.
    pub(crate) fn sees_foreign(&self, principal: &Principal, parsed: Option<&UriTemplate>) -> bool {
        let guard = self.guard();
        let reaches = |parsed| self.reached.ask(&guard, &guard.view(principal), parsed);
        guard.is_open_to(principal) || parsed.is_some_and(reaches)
    }

    /// Like [`Engine::sees_foreign`], for a template that is not kept: the answer is not remembered.
    pub(crate) fn sees_passing(&self, principal: &Principal, text: &str) -> bool {
        let guard = self.guard();
        let reaches = |parsed: UriTemplate| guard.reaches(&guard.view(principal), &parsed.outline(&|_| None));
        guard.is_open_to(principal) || UriTemplate::parse(text).is_ok_and(reaches)
    }

    /// Whether `principal` may know about a tool.
    pub(crate) fn sees_tool(&self, principal: &Principal, entry: &ToolEntry) -> bool {
        self.sees_tool_in(&self.catalog(), &self.guard(), principal, entry)
    }

    /// The same for a catalogue and a guard that are loaded already: a list asks about many tools.
    pub(crate) fn sees_tool_in(
        &self,
        catalog: &Catalog,
        guard: &Guard,
        principal: &Principal,
        entry: &ToolEntry,
    ) -> bool {
        guard.permits_tool(principal, &entry.tool.name)
            && guard.missing(principal, &entry.tool.scopes).is_empty()
            && self.reaches_tool_in(catalog, principal, entry)
    }

    /// Whether `principal` may know about the template of a tool that has one.
    pub(crate) fn reaches_tool(&self, principal: &Principal, entry: &ToolEntry) -> bool {
        self.reaches_tool_in(&self.catalog(), principal, entry)
    }

    fn reaches_tool_in(&self, catalog: &Catalog, principal: &Principal, entry: &ToolEntry) -> bool {
        match &entry.source {
            ToolSource::Template(text) => {
                let sees = |template| self.sees_template(principal, template);
                catalog.template_by_text(text).is_some_and(|template| sees(template))
                    && self
                        .visible_values(principal, entry)
                        .is_none_or(|values| values.values().all(|known| !known.is_empty()))
            }
            ToolSource::Resource(uri) => self.sees(principal, uri),
            ToolSource::Handler(_) | ToolSource::ListResources | ToolSource::ReadResource => true,
        }
    }

    /// The values of a tool's arguments that `principal` may know about; `None` if it names none.
    pub(crate) fn visible_values(&self, principal: &Principal, entry: &ToolEntry) -> Option<VisibleValues> {
        let template = entry.template.as_ref()?;
        let guard = self.guard();
        if guard.is_open_to(principal) {
            return Some(template.all());
        }
        let view = guard.view(principal);
        let known = template.all();
        let mut effort = Effort::default();
        Some(template.visible(&mut |variable, value| {
            let others: Vec<_> = known.iter().filter(|(name, _)| *name != variable).collect();
            self.leads_on(&view, template, &mut vec![(variable, value)], &others, &mut effort)
        }))
    }

    /// Whether a principal with this view may see a URI of a tool's template with the `chosen` values, and one of the
    /// known values for each of the `others`.
    fn leads_on<'v>(
        &self,
        view: &PolicyView,
        template: &ToolTemplate,
        chosen: &mut Vec<(&'v str, &'v str)>,
        others: &[(&'v String, &'v Vec<String>)],
        effort: &mut Effort,
    ) -> bool {
        let Some(((name, values), rest)) = others.split_first() else {
            let of = |name: &str| chosen.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
            let outline = template.parsed().outline(&of);
            return effort.spend(outline.size()) && self.guard().reaches_within(view, &outline, effort);
        };
        values.iter().any(|value| {
            chosen.push((name, value));
            let is_seen = self.leads_on(view, template, chosen, rest, effort);
            chosen.pop();
            is_seen
        })
    }

    /// The part of a tool of `catalog` that `principal` may know about; `restricts` is [`Engine::restricts`]. A page that was
    /// removed is not shown.
    pub(crate) fn tool_view(
        &self,
        catalog: &Catalog,
        restricts: bool,
        principal: &Principal,
        entry: &ToolEntry,
    ) -> ToolView {
        let is_open = !restricts;
        let page =
            entry.page().is_none_or(|page| catalog.serves(page) && (is_open || self.sees(principal, page)));
        if page && (is_open || entry.template.is_none()) {
            return ToolView::Whole;
        }
        let values = self.visible_values(principal, entry).unwrap_or_default();
        ToolView::Part { page, values }
    }

    /// Whether `principal` may know about a mount: it may see one of its templates, or the mount has none.
    pub(crate) fn sees_mount(&self, catalog: &Catalog, principal: &Principal, mount: MountId) -> bool {
        let own = || catalog.templates().iter().filter(|entry| entry.mount == Some(mount));
        self.is_open_to(principal)
            || own().next().is_none()
            || own().any(|entry| self.sees_template(principal, entry))
    }

    /// Passes on the instructions for `principal`, if there are any: those for everybody, and the parts about what it may
    /// see.
    pub(crate) fn instruct(
        &self,
        description: &ServerDescription,
        principal: &Principal,
        write: impl FnOnce(&str),
    ) {
        let parts = description.instruction_parts();
        if parts.is_empty() {
            if let Some(text) = description.instructions() {
                write(text);
            }
            return;
        }
        let known = parts
            .iter()
            .filter(|(_, about)| about.iter().any(|about| self.sees_foreign(principal, Some(about))));
        let texts: Vec<&str> =
            description.instructions().into_iter().chain(known.map(|(text, _)| text.as_str())).collect();
        if !texts.is_empty() {
            write(&texts.join(" "));
        }
    }

    /// Whether `principal` may know about a prompt.
    pub(crate) fn sees_prompt(&self, principal: &Principal, entry: &PromptEntry) -> bool {
        let guard = self.guard();
        guard.permits_prompt(principal, &entry.prompt.name)
            && guard.missing(principal, &entry.prompt.scopes).is_empty()
    }

    /// Whether `principal` may know about a tool of `catalog`, or of the servers behind a mount: theirs are not known here.
    pub(super) fn sees_any_tool(&self, catalog: &Catalog, principal: &Principal) -> bool {
        catalog.named_fallback(ListKind::Tools).is_some()
            || catalog.has_tools()
                && catalog.tools().any(|entry| self.sees_tool_in(catalog, &self.guard(), principal, entry))
    }

    /// The same for prompts.
    pub(super) fn sees_any_prompt(&self, catalog: &Catalog, principal: &Principal) -> bool {
        catalog.named_fallback(ListKind::Prompts).is_some()
            || catalog.has_prompts() && catalog.prompts().any(|entry| self.sees_prompt(principal, entry))
    }

    /// Whether the methods for tools are offered to `principal`.
    pub(crate) fn offers_tools(&self, principal: &Principal) -> bool {
        self.options.tools || self.sees_any_tool(&self.catalog(), principal)
    }

    /// Whether the methods for prompts are offered to `principal`.
    pub(crate) fn offers_prompts(&self, principal: &Principal) -> bool {
        self.options.prompts || self.sees_any_prompt(&self.catalog(), principal)
    }

    /// Whether a list source is called for `principal`: its template must be visible. Each item is still checked by
    /// itself.
    pub(crate) fn sees_lister(&self, principal: &Principal, lister: Lister<'_>) -> bool {
        match lister {
            Lister::Template(entry) => self.sees_template(principal, entry),
            Lister::Source(_) => true,
        }
    }

    /// Whether the configuration permits lists to be shared between principals.
    pub(super) fn may_share_lists(&self) -> bool {
        self.options.list_cache.scope == CacheScope::Public
            && !self.guard_differs()
            && !self.has_access()
            && !self.has_grants()
    }

    /// Whether the pages of a walk that starts now may be shared between principals.
    pub(crate) fn shares_lists(&self) -> bool {
        self.may_share_lists() && !self.catalog().has_scopes()
    }

    /// The caching hint, made private if principals may see different things.
    pub(crate) fn shared(&self, hint: CacheHint) -> CacheHint {
        self.shared_in(&self.catalog(), hint)
    }

    /// The same for a catalogue that is loaded already.
    pub(crate) fn shared_in(&self, catalog: &Catalog, hint: CacheHint) -> CacheHint {
        let differs = self.guard_differs() || self.has_access() || self.has_grants() || catalog.has_scopes();
        if differs { CacheHint { scope: CacheScope::Private, ..hint } } else { hint }
    }

    /// Whether a variable of a template that `principal` may know about has a completer.
    pub(super) fn has_completers(&self, catalog: &Catalog, principal: &Principal) -> bool {
        catalog.has_completers()
            && (!self.restricts_in(catalog)
                || catalog.fallback().is_some()
                || self.has_own_completers(catalog, principal))
    }

    /// The same without the fallback.
    pub(super) fn has_own_completers(&self, catalog: &Catalog, principal: &Principal) -> bool {
        let is_seen = |entry: &Arc<TemplateEntry>| self.sees_template(principal, entry);
        catalog.templates().iter().any(|entry| entry.has_completers() && is_seen(entry))
            || catalog.prompts().any(|entry| entry.has_completers() && self.sees_prompt(principal, entry))
    }
}

/// The context for filtering completion values of a handler.
#[derive(Debug)]
pub(crate) struct Suggested {
    pub(crate) template: UriTemplate,
    pub(crate) principal: Arc<Principal>,
    pub(crate) variable: String,
    /// The values chosen so far.
    pub(crate) arguments: Vec<(String, String)>,
}

impl Suggested {
    /// Whether `value` leads to a URI that the principal may see: the URI it completes, or one that is still possible
    ///. All values of one completion share `effort`; when it is used up, the result is `false`.
    pub(crate) fn leads_on(
        &self,
        guard: &Guard,
        view: &PolicyView,
        effort: &mut Effort,
        access: &mut AccessView<'_>,
        value: &str,
    ) -> bool {
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
            Some(uri) => guard.permits(&self.principal, &uri) && access.knows(&uri),
            None => guard.reaches_within(view, &outline, effort),
        }
    }
}
