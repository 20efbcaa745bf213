//! Changes of the catalogue: a list of edits produces the next snapshot. [`Catalog::apply`] applies all of them or
//! none; [`Catalog::apply_each`] judges each edit by itself.
//!
//! Law: no snapshot ever contains anything duplicated, ambiguous or invalid.

use crate::catalog::check::{
    CheckedField, CheckedTemplate, check_access, check_resource, check_template, invalid_uri, is_rfc_3986,
};
use crate::catalog::extensions::{Extension, ExtensionEntry, MethodEntry};
use crate::catalog::foreign::ForeignTemplate;
use crate::catalog::items::{HandlerId, ItemSource, MountId, ResourceEntry, TemplateEntry};
use crate::catalog::named::{PromptEntry, ToolEntry, ToolSource};
use crate::catalog::routes::{Shapes, TemplateRoutes, position, warning};
use crate::catalog::sources::SourceEntry;
use crate::catalog::template_tool::{self, ToolTemplate};
use crate::catalog::{Catalog, CatalogRoute, ListKind};
use crate::resource::{Prompt, ReadTool, RegistrationError, Resource, Template, Tool};
use crate::suggest;
use crate::version::ListKinds;
use mcp_resources_template::uri;
use std::sync::Arc;

/// One change.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Adds a resource.
    AddResource {
        /// The resource.
        resource: Resource,
        /// The source of its contents.
        source: ItemSource,
    },
    /// Removes the resource with this URI, in any spelling. Does nothing if there is none.
    RemoveResource {
        /// Its URI.
        uri: String,
    },
    /// Changes the description of a registered resource. `None` leaves a field unchanged. The read cache keeps its
    /// contents.
    UpdateResource {
        /// Its URI, in any spelling.
        uri: String,
        /// Its size in bytes, before any base64.
        size: Option<u64>,
        /// When it was last changed: an ISO 8601 time with its zone.
        last_modified: Option<String>,
        /// Its description, for people and models.
        description: Option<String>,
    },
    /// Adds a template.
    AddTemplate {
        /// The template. Boxed, as all that is large, because lists of edits are mostly of resources.
        template: Box<Template>,
        /// The handler that serves it.
        handler: HandlerId,
        /// The mount that it belongs to. The template's `.list` callback may also list resources of the mount's other
        /// templates.
        mount: Option<MountId>,
    },
    /// Removes the template with exactly this text. Does nothing if there is none.
    RemoveTemplate {
        /// The text of the template.
        uri_template: String,
    },
    /// Adds a template of another server that the engine cannot route, because it cannot be parsed or conflicts with a
    /// registered one. `resources/templates/list` shows it as given; it serves no reads and no completions. Where a
    /// policy hides URIs, only principals for whom the template is known to lead to a visible URI see it.
    AddForeignTemplate {
        /// The mount that it belongs to.
        mount: MountId,
        /// The text of the template.
        uri_template: String,
        /// The other server's description: a JSON object whose member `uriTemplate` equals `uri_template`.
        json: String,
    },
    /// Removes the template that [`Edit::AddForeignTemplate`] added. Does nothing if there is none.
    RemoveForeignTemplate {
        /// The mount that it belongs to.
        mount: MountId,
        /// The text of the template.
        uri_template: String,
    },
    /// Adds a source of a list without a template. Such sources follow the catalogue's own items and, among resources, the
    /// templates that list; they are sorted by key.
    AddSource {
        /// The list that it adds to.
        list: ListKind,
        /// Its unique key, of at most 1,024 bytes. Cursors contain it, so keep it the same after a restart.
        key: String,
        /// The handler that lists.
        handler: HandlerId,
        /// The mount that it belongs to. The source may list resources of the mount's templates, and those that only
        /// the fallback serves.
        mount: MountId,
        /// Whether the handler takes a cursor and returns a page; otherwise it returns everything at once.
        pages: bool,
    },
    /// Removes the source with this key. Does nothing if the mount has none.
    RemoveSource {
        /// The mount that it belongs to.
        mount: MountId,
        /// Its key.
        key: String,
    },
    /// Adds a tool.
    AddTool {
        /// The tool.
        tool: Box<Tool>,
        /// The origin of its results.
        source: ToolSource,
        /// The mount that it belongs to.
        mount: Option<MountId>,
    },
    /// Adds a tool that reads a registered resource or template.
    AddReadTool {
        /// The tool.
        tool: Box<ReadTool>,
        /// The mount that it belongs to.
        mount: MountId,
    },
    /// Removes the tool of this name. Does nothing if there is none.
    RemoveTool {
        /// Its name.
        name: String,
    },
    /// Adds a prompt.
    AddPrompt {
        /// The prompt.
        prompt: Box<Prompt>,
        /// The handler that answers, and completes arguments.
        handler: HandlerId,
        /// The mount that it belongs to.
        mount: Option<MountId>,
    },
    /// Removes the prompt of this name. Does nothing if there is none.
    RemovePrompt {
        /// Its name.
        name: String,
    },
    /// Adds a custom method. A method has one handler only.
    AddMethod {
        /// The mount that it belongs to.
        mount: Option<MountId>,
        /// The method and its handler.
        extension: Box<Extension>,
    },
    /// Removes a custom method. Does nothing if the mount has none of this name.
    RemoveMethod {
        /// The mount that it belongs to.
        mount: Option<MountId>,
        /// Its name.
        method: String,
    },
    /// Adds a member of `capabilities.extensions`. An extension belongs to one mount only.
    AddExtension {
        /// The mount that it belongs to.
        mount: MountId,
        /// Its identifier, with a prefix.
        id: String,
        /// Its settings: a JSON object.
        settings: String,
    },
    /// Removes an extension. Does nothing if the mount has none with this identifier.
    RemoveExtension {
        /// The mount that it belongs to.
        mount: MountId,
        /// Its identifier.
        id: String,
    },
    /// Sets the handler of URIs that no resource and no template serves, or removes it. It reads such a URI and
    /// completes references to it. Clients can subscribe to every such URI that the policy does not hide. Only sources
    /// of a mount list such URIs.
    SetFallback {
        /// The handler; `None` removes it.
        handler: Option<HandlerId>,
    },
    /// Sets the handler of tools (or prompts, for [`ListKind::Prompts`]) that are not registered; `None` removes it. It
    /// is called as for a custom method, with the params as they came, and answers with the whole result. Does nothing
    /// for the other lists.
    SetNamedFallback {
        /// The list of the names.
        list: ListKind,
        /// The handler.
        handler: Option<HandlerId>,
    },
}

/// The effects of a list of edits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Whether a resource was added, removed or changed.
    pub resources_changed: bool,
    /// Whether a template was added or removed.
    pub templates_changed: bool,
    /// Whether a tool was added or removed.
    pub tools_changed: bool,
    /// Whether a prompt was added or removed.
    pub prompts_changed: bool,
    /// Whether a list source was added or removed.
    pub sources_changed: bool,
    /// Whether the fallback was set, replaced or removed.
    pub fallback_changed: bool,
    /// The canonical URIs of removed and replaced resources. Watchers are notified of them as updated.
    pub removed: Vec<Arc<str>>,
    /// The handlers of removed entries, once for each removal, including resources and templates that the same edits
    /// added.
    pub freed: Vec<HandlerId>,
    /// Warnings for the log, one sentence each.
    pub warnings: Vec<String>,
}

impl Applied {
    /// The lists that are announced as changed.
    pub fn changed_lists(&self) -> ListKinds {
        let resources = self.resources_changed || self.templates_changed || self.sources_changed;
        let lists = [
            (ListKinds::RESOURCES, resources),
            (ListKinds::TOOLS, self.tools_changed),
            (ListKinds::PROMPTS, self.prompts_changed),
        ];
        let changed = lists.into_iter().filter(|(_, is_changed)| *is_changed);
        changed.fold(ListKinds::NONE, |all, (kind, _)| all | kind)
    }
}

impl Catalog {
    /// Applies all `edits` in order, or none. O(log N) for each resource. If templates were added or removed, their
    /// index is rebuilt once, at the next lookup. Templates that shadow each other are reported only for up to 128
    /// templates, or when the edits change at least one in 16 of them.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first edit that is refused.
    pub fn apply(&self, edits: Vec<Edit>) -> Result<(Self, Applied), RegistrationError> {
        let mut draft = Draft::new(self, None);
        edits.into_iter().try_for_each(|edit| draft.apply(edit))?;
        let entries = draft.templates.as_deref();
        draft.shapes = entries.map(|entries| self.templates.next_shapes(entries)).transpose()?;
        let paged = std::mem::take(&mut draft.paged);
        let (catalog, applied) = draft.finish(&self.templates);
        paged.iter().try_for_each(|name| catalog.check_page(name))?;
        Ok((catalog, applied))
    }

    /// Applies in order each of the `edits` that is valid, and reports on every one. A refused edit changes nothing.
    /// Two templates conflict if the first exists when the second is added, even if a later edit removes it.
    pub fn apply_each(&self, edits: Vec<Edit>) -> (Self, Applied, Vec<Result<(), RegistrationError>>) {
        let mut draft = Draft::new(self, Some(self.templates.shapes().clone()));
        let reports = edits.into_iter().map(|edit| draft.apply(edit)).collect();
        let (catalog, applied) = draft.finish(&self.templates);
        (catalog, applied, reports)
    }
}

/// The next snapshot while it is built.
struct Draft {
    catalog: Catalog,
    /// The templates of the next snapshot, sorted by text. `None` while none was added or removed.
    templates: Option<Vec<Arc<TemplateEntry>>>,
    /// The shapes of these templates, if each edit is judged by itself.
    shapes: Option<Shapes>,
    /// The number of templates that were added or removed.
    edited: usize,
    /// The names of added tools with a page, which must exist in the end.
    paged: Vec<String>,
    applied: Applied,
}

/// An edit that is refused leaves the draft unchanged.
impl Draft {
    fn new(catalog: &Catalog, shapes: Option<Shapes>) -> Self {
        Self {
            catalog: catalog.clone(),
            templates: None,
            shapes,
            edited: 0,
            paged: Vec::new(),
            applied: Applied::default(),
        }
    }

    fn apply(&mut self, edit: Edit) -> Result<(), RegistrationError> {
        match edit {
            Edit::AddResource { resource, source } => return self.add_resource(resource, source),
            Edit::RemoveResource { uri } => return self.remove_resource(&uri),
            Edit::UpdateResource { uri, size, last_modified, description } => {
                return self.update_resource(&uri, |resource| {
                    resource.size = size.or(resource.size);
                    let details = &mut resource.details;
                    details.description = description.or(details.description.take());
                    let time = &mut details.annotations.last_modified;
                    *time = last_modified.or(time.take());
                });
            }
            Edit::AddTemplate { template, handler, mount } => {
                return self.add_template(*template, handler, mount);
            }
            Edit::AddForeignTemplate { mount, uri_template, json } => {
                return self.add_foreign(mount, uri_template, json);
            }
            Edit::AddSource { list, key, handler, mount, pages } => {
                return self.add_source(SourceEntry { list, key: key.into(), handler, mount, pages });
            }
            Edit::AddTool { tool, source, mount } => return self.add_tool(*tool, source, mount),
            Edit::AddReadTool { tool, mount } => return self.add_read_tool(*tool, mount),
            Edit::AddPrompt { prompt, handler, mount } => return self.add_prompt(*prompt, handler, mount),
            Edit::AddMethod { mount, extension } => return self.add_method(mount, *extension),
            Edit::AddExtension { mount, id, settings } => return self.add_extension(mount, id, &settings),
            Edit::RemoveTool { name } => self.remove_tool(&name),
            Edit::RemovePrompt { name } => self.remove_prompt(&name),
            Edit::RemoveMethod { mount, method } => self.remove_method(mount, &method),
            Edit::RemoveExtension { mount, id } => self.remove_extension(mount, &id),
            Edit::RemoveTemplate { uri_template } => self.remove_template(&uri_template),
            Edit::RemoveForeignTemplate { mount, uri_template } => self.remove_foreign(mount, &uri_template),
            Edit::RemoveSource { mount, key } => self.remove_source(mount, &key),
            Edit::SetFallback { handler } => self.set_fallback(handler),
            Edit::SetNamedFallback { list, handler } => self.set_named_fallback(list, handler),
        }
        Ok(())
    }

    fn add_resource(&mut self, mut resource: Resource, source: ItemSource) -> Result<(), RegistrationError> {
        let meant = suggest::template(&resource.uri);
        // Copied only if the check rewrites it, or a warning names it.
        let given = (meant.is_some() || !is_rfc_3986(&resource.uri)).then(|| resource.uri.clone());
        resource.size = resource.size.or_else(|| source.size());
        let canonical = check_resource(&mut resource, &self.catalog.limits)?;
        check_access(&resource, &source)?;
        let room = ensure_room("resources", self.catalog.in_order.len(), self.catalog.limits.resources);
        if room.is_err() && self.catalog.by_uri.get(&canonical).is_none() {
            return room;
        }
        let entry = Arc::new(ResourceEntry::new(resource, canonical.clone(), source));
        // Most URIs are new: a lookup before each insertion would cost more than to put a replaced entry back.
        if self.catalog.by_uri.insert(entry.clone()) {
            if let Some(held) = self.catalog.in_order.get(&canonical) {
                self.catalog.by_uri.insert(held.clone());
            }
            let uri = given.unwrap_or_else(|| entry.resource.uri.clone());
            return Err(RegistrationError::DuplicateResource { uri });
        }
        self.warn_of_web_scheme(&canonical);
        if let (Some(template), Some(given)) = (meant, given) {
            self.applied.warnings.push(format!("{given} has no variables; did you mean {template:?}?"));
        }
        self.catalog.parents += usize::from(entry.resource.children);
        self.catalog.scoped += usize::from(!entry.resource.details.scopes.is_empty());
        self.catalog.guarded += usize::from(entry.resource.details.access);
        self.catalog.in_order.insert(canonical, entry);
        self.applied.resources_changed = true;
        Ok(())
    }

    fn remove_resource(&mut self, uri: &str) -> Result<(), RegistrationError> {
        let normal =
            uri::normalize(uri, self.catalog.limits.uri).map_err(|error| invalid_uri(uri, &error))?;
        if let Some(entry) = self.catalog.by_uri.remove(&normal) {
            self.catalog.in_order.remove(&*normal);
            self.catalog.parents -= usize::from(entry.resource.children);
            self.catalog.scoped -= usize::from(!entry.resource.details.scopes.is_empty());
            self.catalog.guarded -= usize::from(entry.resource.details.access);
            if let ItemSource::Handler(handler) = entry.source {
                self.applied.freed.push(handler);
            }
            self.applied.removed.push(entry.canonical.clone());
            self.applied.resources_changed = true;
        }
        Ok(())
    }

    fn update_resource(
        &mut self,
        uri: &str,
        change: impl FnOnce(&mut Resource),
    ) -> Result<(), RegistrationError> {
        let catalog = &mut self.catalog;
        let normal = uri::normalize(uri, catalog.limits.uri).map_err(|error| invalid_uri(uri, &error))?;
        let Some(entry) = catalog.by_uri.get(&normal) else {
            let of = uri.to_owned();
            let expected = "the URI of a registered resource".to_owned();
            return Err(RegistrationError::InvalidField {
                value: of.clone(),
                of,
                field: "uri".into(),
                expected,
            });
        };
        let mut resource = entry.resource.clone();
        change(&mut resource);
        if resource == entry.resource {
            return Ok(());
        }
        check_resource(&mut resource, &catalog.limits)?;
        let canonical = entry.canonical.clone();
        let entry = Arc::new(ResourceEntry::new(resource, canonical.clone(), entry.source.clone()));
        catalog.by_uri.insert(entry.clone());
        catalog.in_order.insert(canonical, entry);
        self.applied.resources_changed = true;
        Ok(())
    }

    fn add_template(
        &mut self,
        template: Template,
        handler: HandlerId,
        mount: Option<MountId>,
    ) -> Result<(), RegistrationError> {
        let CheckedTemplate { template, parsed, checks } = check_template(template, &self.catalog.limits)?;
        self.ensure_room_for_template()?;
        let templates = self.templates.get_or_insert_with(|| self.catalog.templates.entries.clone());
        let Err(at) = position(templates, &template.uri_template) else {
            let text = template.uri_template;
            return Err(RegistrationError::TemplateConflict { template: text.clone(), with: text });
        };
        let mut warnings: Vec<_> = parsed.lints().iter().map(warning).collect();
        if parsed.variables().is_empty() {
            warnings.push(format!("{}: a template without variables, register a resource", parsed.as_str()));
        }
        let tool = template_tool::tool(&template, &parsed, &checks);
        let source = ToolSource::Template(template.uri_template.as_str().into());
        let tool = tool.map(|tool| self.catalog.checked_tool(tool, source, mount)).transpose()?;
        let entry = Arc::new(TemplateEntry::new(template, parsed, checks, handler, mount));
        if let Some(shapes) = &mut self.shapes {
            shapes.insert(&entry)?;
        }
        templates.insert(at, entry);
        if let Some(tool) = tool {
            self.insert_tool(tool);
        }
        self.applied.warnings.extend(warnings);
        self.edited += 1;
        self.applied.templates_changed = true;
        Ok(())
    }

    fn remove_template(&mut self, text: &str) {
        let templates = self.templates.get_or_insert_with(|| self.catalog.templates.entries.clone());
        if let Ok(at) = position(templates, text) {
            let removed = templates.remove(at);
            self.shapes.iter_mut().for_each(|shapes| shapes.remove(&removed));
            self.remove_tool_of(&removed);
            self.applied.freed.push(removed.handler);
            self.edited += 1;
            self.applied.templates_changed = true;
        }
    }

    fn add_foreign(
        &mut self,
        mount: MountId,
        uri_template: String,
        json: String,
    ) -> Result<(), RegistrationError> {
        let foreign = ForeignTemplate::new(mount, uri_template, json, &self.catalog.limits)?;
        self.ensure_room_for_template()?;
        if self.catalog.foreign.contains_key(&foreign.key) {
            let text = foreign.uri_template;
            return Err(RegistrationError::TemplateConflict { template: text.clone(), with: text });
        }
        self.catalog.foreign.insert(foreign.key.clone(), Arc::new(foreign));
        self.applied.templates_changed = true;
        Ok(())
    }

    fn remove_foreign(&mut self, mount: MountId, uri_template: &str) {
        let removed = self.catalog.foreign.remove(&ForeignTemplate::key(mount, uri_template));
        self.applied.templates_changed |= removed.is_some();
    }

    fn add_source(&mut self, source: SourceEntry) -> Result<(), RegistrationError> {
        SourceEntry::check(&source.key)?;
        self.ensure_room_for_template()?;
        if self.catalog.sources.contains_key(&source.key) {
            return Err(SourceEntry::invalid(&source.key, "a key that no other list source has"));
        }
        self.catalog.sources.insert(source.key.clone(), Arc::new(source));
        self.applied.sources_changed = true;
        Ok(())
    }

    fn remove_source(&mut self, mount: MountId, key: &str) {
        if self.catalog.sources.get(key).is_some_and(|source| source.mount == mount)
            && let Some(removed) = self.catalog.sources.remove(key)
        {
            self.applied.freed.push(removed.handler);
            self.applied.sources_changed = true;
        }
    }

    fn add_tool(
        &mut self,
        tool: Tool,
        source: ToolSource,
        mount: Option<MountId>,
    ) -> Result<(), RegistrationError> {
        let entry = self.catalog.checked_tool(tool, source, mount)?;
        self.insert_tool(entry);
        Ok(())
    }

    fn add_read_tool(&mut self, tool: ReadTool, mount: MountId) -> Result<(), RegistrationError> {
        let ReadTool { mut tool, target, parameters } = tool;
        let templates = self.templates.as_ref().unwrap_or(&self.catalog.templates.entries);
        let entry = match position(templates, &target).ok().and_then(|at| templates.get(at)) {
            Some(entry) => {
                let field = CheckedField { of: &tool.name };
                let template = ToolTemplate::new(entry, field.parameters(&parameters, &entry.parsed)?);
                tool.input_schema = template.schema(&template.all());
                let source = ToolSource::Template(target.as_str().into());
                self.catalog.checked_tool(tool, source, Some(mount))?.with_template(template)
            }
            None => {
                let normal = uri::normalize(&target, self.catalog.limits.uri);
                let normal = normal.ok().filter(|normal| self.catalog.by_uri.get(normal).is_some());
                let expected = "the text of a registered template, or the URI of a registered resource";
                let field = CheckedField { of: &tool.name };
                let normal = normal.ok_or_else(|| field.invalid("target", &target, expected))?;
                tool.input_schema = template_tool::NO_ARGUMENTS.to_owned();
                let source = ToolSource::Resource(normal.as_ref().into());
                self.catalog.checked_tool(tool, source, Some(mount))?
            }
        };
        self.insert_tool(entry);
        Ok(())
    }

    fn insert_tool(&mut self, entry: ToolEntry) {
        self.catalog.scoped += usize::from(!entry.tool.scopes.is_empty());
        if entry.page().is_some() {
            self.paged.push(entry.tool.name.clone());
        }
        self.catalog.tools.insert(entry.tool.name.as_str().into(), Arc::new(entry));
        self.applied.tools_changed = true;
    }

    /// Removes the tool of a template that is removed.
    fn remove_tool_of(&mut self, removed: &TemplateEntry) {
        if removed.template.tool.is_none() {
            return;
        }
        let text = removed.template.uri_template.as_str();
        let is_its = |source: &ToolSource| matches!(source, ToolSource::Template(own) if &**own == text);
        let own = self.catalog.tools().find(|entry| is_its(&entry.source));
        if let Some(name) = own.map(|entry| entry.tool.name.clone()) {
            self.remove_tool(&name);
        }
    }

    fn remove_tool(&mut self, name: &str) {
        if let Some(removed) = self.catalog.tools.remove(name) {
            self.catalog.scoped -= usize::from(!removed.tool.scopes.is_empty());
            self.applied.freed.extend(removed.source.handler());
            self.applied.tools_changed = true;
        }
    }

    fn add_prompt(
        &mut self,
        prompt: Prompt,
        handler: HandlerId,
        mount: Option<MountId>,
    ) -> Result<(), RegistrationError> {
        let catalog = &mut self.catalog;
        let entry = PromptEntry::new(prompt, handler, mount, &catalog.limits)?;
        let name = &*entry.prompt.name;
        if catalog.prompts.contains_key(name) {
            return Err(RegistrationError::DuplicatePrompt { name: name.to_owned() });
        }
        ensure_room("tools", catalog.prompts.len(), catalog.limits.tools)?;
        catalog.scoped += usize::from(!entry.prompt.scopes.is_empty());
        catalog.prompts.insert(name.into(), Arc::new(entry));
        self.applied.prompts_changed = true;
        Ok(())
    }

    fn remove_prompt(&mut self, name: &str) {
        if let Some(removed) = self.catalog.prompts.remove(name) {
            self.catalog.scoped -= usize::from(!removed.prompt.scopes.is_empty());
            self.applied.freed.push(removed.handler);
            self.applied.prompts_changed = true;
        }
    }

    fn add_method(&mut self, mount: Option<MountId>, extension: Extension) -> Result<(), RegistrationError> {
        let entry = MethodEntry::new(extension, mount)?;
        let method = &*entry.extension.method;
        if self.catalog.methods.contains_key(method) {
            return Err(RegistrationError::DuplicateMethod { method: method.to_owned() });
        }
        ensure_room("templates", self.catalog.methods.len(), self.catalog.limits.templates)?;
        self.catalog.methods.insert(method.into(), Arc::new(entry));
        Ok(())
    }

    fn remove_method(&mut self, mount: Option<MountId>, method: &str) {
        if self.catalog.methods.get(method).is_some_and(|entry| entry.mount == mount)
            && let Some(removed) = self.catalog.methods.remove(method)
        {
            self.applied.freed.push(removed.extension.handler);
        }
    }

    fn add_extension(&mut self, mount: MountId, id: String, settings: &str) -> Result<(), RegistrationError> {
        let entry = ExtensionEntry::new(mount, id, settings, &self.catalog.limits)?;
        if self.catalog.extensions.contains_key(&entry.id) {
            return Err(RegistrationError::DuplicateExtension { id: entry.id.to_string() });
        }
        ensure_room("templates", self.catalog.extensions.len(), self.catalog.limits.templates)?;
        self.catalog.extensions.insert(entry.id.clone(), Arc::new(entry));
        Ok(())
    }

    fn remove_extension(&mut self, mount: MountId, id: &str) {
        if self.catalog.extensions.get(id).is_some_and(|entry| entry.mount == mount) {
            self.catalog.extensions.remove(id);
        }
    }

    fn set_fallback(&mut self, handler: Option<HandlerId>) {
        let before = std::mem::replace(&mut self.catalog.fallback, handler);
        if before != handler {
            self.applied.freed.extend(before);
            self.applied.fallback_changed = true;
        }
    }

    fn set_named_fallback(&mut self, list: ListKind, handler: Option<HandlerId>) {
        let [tools, prompts] = &mut self.catalog.named_fallbacks;
        let (own, changed) = match list {
            ListKind::Tools => (tools, &mut self.applied.tools_changed),
            ListKind::Prompts => (prompts, &mut self.applied.prompts_changed),
            ListKind::Resources | ListKind::Templates => return,
        };
        let before = std::mem::replace(own, handler);
        if before != handler {
            *changed = true;
            self.applied.freed.extend(before);
        }
    }

    /// The limit counts templates, templates of other servers, and list sources together.
    fn ensure_room_for_template(&self) -> Result<(), RegistrationError> {
        let own = self.templates.as_ref().unwrap_or(&self.catalog.templates.entries).len();
        let held = own + self.catalog.foreign.len() + self.catalog.sources.len();
        ensure_room("templates", held, self.catalog.limits.templates)
    }

    /// Clients that can fetch web addresses will fetch such a URI directly and bypass this server.
    fn warn_of_web_scheme(&mut self, canonical: &str) {
        if matches!(uri::scheme(canonical), "http" | "https") {
            self.applied.warnings.push(format!(
                "{canonical}: use http and https only if clients can fetch it themselves, else a scheme of your own"
            ));
        }
    }

    /// Returns the finished snapshot. `shapes` must be the shapes of its templates.
    fn finish(mut self, before: &TemplateRoutes) -> (Catalog, Applied) {
        let templates = self.templates.filter(|_| self.edited > 0);
        if let (Some(entries), Some(shapes)) = (templates, self.shapes) {
            let next = TemplateRoutes::new(entries, shapes, self.edited);
            for warning in next.news(before) {
                if !self.applied.warnings.contains(&warning) {
                    self.applied.warnings.push(warning);
                }
            }
            self.catalog.templates = Arc::new(next);
        }
        if self.applied.resources_changed {
            self.catalog.pages = Arc::default();
        }
        (self.catalog, self.applied)
    }
}

impl Catalog {
    /// Checks that the page of a tool exists.
    fn check_page(&self, tool: &str) -> Result<(), RegistrationError> {
        let page = self.tool(tool).and_then(|entry| entry.page());
        if page.is_none_or(|page| self.serves(page)) {
            return Ok(());
        }
        let page = page.unwrap_or_default();
        let expected = "the URI of a registered page: register the page first, or together with the tool";
        Err(CheckedField { of: tool }.invalid("ui", page, expected))
    }

    /// Whether something is registered that may serve `normal`, a URI in normal form.
    pub(crate) fn serves(&self, normal: &str) -> bool {
        !matches!(self.route(normal), CatalogRoute::None { .. })
    }

    /// The entry of a tool that may be added.
    fn checked_tool(
        &self,
        tool: Tool,
        source: ToolSource,
        mount: Option<MountId>,
    ) -> Result<ToolEntry, RegistrationError> {
        let entry = ToolEntry::new(tool, source, mount, &self.limits)?;
        if self.tools.contains_key(entry.tool.name.as_str()) {
            return Err(RegistrationError::DuplicateTool { name: entry.tool.name });
        }
        ensure_room("tools", self.tools.len(), self.limits.tools)?;
        Ok(entry)
    }
}

fn ensure_room(what: &'static str, held: usize, limit: usize) -> Result<(), RegistrationError> {
    if held < limit { Ok(()) } else { Err(RegistrationError::LimitReached { what, limit }) }
}
