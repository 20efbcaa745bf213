//! The registered resources and templates, listed and routed from one immutable snapshot.
//!
//! Law: a snapshot never changes. An edit builds the next one on shared structure, so adding or removing a resource
//! costs O(log N) and readers need no lock. Only an edit of templates rebuilds the template index.

mod check;
mod cursor;
mod edit;
mod encode;
mod extensions;
mod foreign;
mod items;
mod list;
mod named;
mod pages;
mod query;
mod routes;
mod sources;
mod template_tool;
mod tool_schema;

pub use check::check_resource;
pub(crate) use check::{check_uri, invalid_uri};
pub use cursor::{Cursor, CursorPosition, CursorScope, ListKind};
pub use edit::{Applied, Edit};
pub use encode::{encode_item, write_icons};
pub(crate) use encode::{write_annotations, write_item};
pub use extensions::{Extension, ExtensionEntry, MethodEntry};
pub use foreign::ForeignTemplate;
pub(crate) use foreign::checked as check_foreign;
pub use items::{Completer, HandlerId, ItemSource, ListedTemplate, MountId, ResourceEntry, TemplateEntry};
pub use list::{CatalogPage, ListedPage};
pub use named::{PromptEntry, ToolEntry, ToolSource, ToolView};
pub use routes::{CatalogRoute, HashKey};
pub use sources::{Lister, SourceEntry, SourceKey};
pub use template_tool::VisibleValues;
pub(crate) use template_tool::{ToolTemplate, expanded};

use crate::limits::Limits;
use crate::version::ToolFields;
use imbl::OrdMap;
use pages::KeptPages;
use routes::{ByUri, TemplateRoutes};
use std::ops::Bound;
use std::sync::Arc;

/// Everything that is registered at one moment. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Catalog {
    limits: Arc<Limits>,
    by_uri: ByUri,
    in_order: OrdMap<Arc<str>, Arc<ResourceEntry>>,
    /// Pages of `in_order`; replaced when that changes.
    pages: Arc<KeptPages>,
    /// The number of resources with children.
    parents: usize,
    /// The number of resources, tools and prompts that need scopes.
    scoped: usize,
    /// The number of resources whose handlers decide who may use them.
    guarded: usize,
    templates: Arc<TemplateRoutes>,
    /// Templates of other servers, by text and mount.
    foreign: OrdMap<Arc<str>, Arc<ForeignTemplate>>,
    /// List sources without a template, by key.
    sources: OrdMap<Arc<str>, Arc<SourceEntry>>,
    /// Tools, by name.
    tools: OrdMap<Arc<str>, Arc<ToolEntry>>,
    /// Prompts, by name.
    prompts: OrdMap<Arc<str>, Arc<PromptEntry>>,
    /// Custom methods, by name.
    methods: OrdMap<Arc<str>, Arc<MethodEntry>>,
    /// Extensions of mounts, by identifier.
    extensions: OrdMap<Arc<str>, Arc<ExtensionEntry>>,
    fallback: Option<HandlerId>,
    /// The handlers of tools and of prompts that are not registered.
    named_fallbacks: [Option<HandlerId>; 2],
}

impl Catalog {
    /// An empty catalogue with the limits `uri`, `nesting`, `resources` and `templates` of `limits`.
    pub fn new(limits: &Limits) -> Self {
        Self::keyed(limits, HashKey::default())
    }

    /// Like [`Catalog::new`], hashing with a secret `key`: for URIs that a third party can choose.
    pub fn keyed(limits: &Limits, key: HashKey) -> Self {
        Self {
            limits: Arc::new(limits.clone()),
            by_uri: ByUri::with_hasher(key),
            in_order: OrdMap::new(),
            pages: Arc::default(),
            parents: 0,
            scoped: 0,
            guarded: 0,
            templates: Arc::default(),
            foreign: OrdMap::new(),
            sources: OrdMap::new(),
            tools: OrdMap::new(),
            prompts: OrdMap::new(),
            methods: OrdMap::new(),
            extensions: OrdMap::new(),
            fallback: None,
            named_fallbacks: [None; 2],
        }
    }

    #[cfg(test)]
    pub(crate) fn hasher(&self) -> &HashKey {
        self.by_uri.hasher()
    }

    /// Finds the handler or constant for `normal`, a URI in normal form. A resource registered at exactly this URI
    /// takes precedence over every template, and the fallback comes last. O(length of the URI) without
    /// templates; see [`TemplateIndex`](mcp_resources_template::TemplateIndex) for the cost of those.
    pub fn route<'u>(&self, normal: &'u str) -> CatalogRoute<'_, 'u> {
        if let Some(entry) = self.resource(normal) {
            return CatalogRoute::Resource(entry);
        }
        match (self.templates.route(normal), self.fallback) {
            (CatalogRoute::None { exhausted: false }, Some(handler)) => CatalogRoute::Fallback(handler),
            (route, _) => route,
        }
    }

    /// The resource that is registered at `normal`, a URI in normal form.
    pub fn resource(&self, normal: &str) -> Option<&Arc<ResourceEntry>> {
        self.by_uri.get(normal)
    }

    /// The templates, in the order of their text.
    pub fn templates(&self) -> &[Arc<TemplateEntry>] {
        &self.templates.entries
    }

    /// The template with exactly this text, as completion requests name it.
    pub fn template_by_text(&self, text: &str) -> Option<&Arc<TemplateEntry>> {
        self.templates.by_text(text)
    }

    /// The sources of `list` that follow `source`. They come after the catalogue's own items: for resources templates
    /// with a `.list` callback, sorted by text; then sources without a template, sorted by key. `None` starts at the
    /// first.
    pub fn listers_after(
        &self,
        list: ListKind,
        source: Option<&SourceKey>,
    ) -> impl Iterator<Item = Lister<'_>> {
        let (templates, keys) = match source {
            None => (self.templates.after(None), Bound::Unbounded),
            Some(SourceKey::Template(text)) => (self.templates.after(Some(text)), Bound::Unbounded),
            Some(SourceKey::Key(key)) => (&[][..], Bound::Excluded(key.as_str())),
        };
        let sources = self.sources.range::<_, str>((keys, Bound::Unbounded));
        templates
            .iter()
            .filter_map(Lister::from_template)
            .chain(sources.map(|(_, entry)| Lister::Source(entry)))
            .filter(move |lister| lister.list() == list)
    }

    /// The list source named by `source`.
    pub fn lister(&self, source: &SourceKey) -> Option<Lister<'_>> {
        match source {
            SourceKey::Template(text) => self.template_by_text(text).and_then(Lister::from_template),
            SourceKey::Key(key) => self.sources.get(key.as_str()).map(Lister::Source),
        }
    }

    /// The handler of URIs that no resource and no template serves.
    pub fn fallback(&self) -> Option<HandlerId> {
        self.fallback
    }

    /// The handler of tools (or prompts, for [`ListKind::Prompts`]) that are not registered here.
    pub fn named_fallback(&self, list: ListKind) -> Option<HandlerId> {
        let [tools, prompts] = self.named_fallbacks;
        match list {
            ListKind::Tools => tools,
            ListKind::Prompts => prompts,
            ListKind::Resources | ListKind::Templates => None,
        }
    }

    /// The custom method of this name.
    pub fn method(&self, method: &str) -> Option<&Arc<MethodEntry>> {
        self.methods.get(method)
    }

    /// All custom methods, in the order of their names.
    pub fn methods(&self) -> impl Iterator<Item = &Arc<MethodEntry>> {
        values(&self.methods)
    }

    /// The tool of this name.
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolEntry>> {
        self.tools.get(name)
    }

    /// All tools, in the order of their names.
    pub fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        values(&self.tools)
    }

    /// The prompt of this name.
    pub fn prompt(&self, name: &str) -> Option<&Arc<PromptEntry>> {
        self.prompts.get(name)
    }

    /// All prompts, in the order of their names.
    pub fn prompts(&self) -> impl Iterator<Item = &Arc<PromptEntry>> {
        values(&self.prompts)
    }

    pub(crate) fn has_tools(&self) -> bool {
        !self.tools.is_empty()
    }

    pub(crate) fn has_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    /// The extensions of mounts, in the order of their identifiers.
    pub fn extensions(&self) -> impl Iterator<Item = &ExtensionEntry> {
        values(&self.extensions).map(|entry| &**entry)
    }

    /// The edits that remove everything that belongs to `mount`, and all resources read by one of `handlers`. O(N).
    pub fn without(&self, mount: MountId, handlers: &[HandlerId]) -> Vec<Edit> {
        let is_theirs =
            |source: &ItemSource| matches!(source, ItemSource::Handler(own) if handlers.contains(own));
        let resources = self.in_order.values().filter(|entry| is_theirs(&entry.source));
        let resources = resources.map(|entry| Edit::RemoveResource { uri: entry.canonical.to_string() });
        let templates = self.templates().iter().filter(|entry| entry.mount == Some(mount));
        let templates =
            templates.map(|entry| Edit::RemoveTemplate { uri_template: entry.template.uri_template.clone() });
        let foreign = self.foreign.values().filter(|entry| entry.mount == mount);
        let foreign = foreign
            .map(|entry| Edit::RemoveForeignTemplate { mount, uri_template: entry.uri_template.clone() });
        let sources = self.sources.values().filter(|entry| entry.mount == mount);
        let sources = sources.map(|entry| Edit::RemoveSource { mount, key: entry.key.to_string() });
        let own = Some(mount);
        let tools = self.tools().filter(|entry| entry.mount == own);
        let tools = tools.map(|entry| Edit::RemoveTool { name: entry.tool.name.clone() });
        let prompts = self.prompts().filter(|entry| entry.mount == own);
        let prompts = prompts.map(|entry| Edit::RemovePrompt { name: entry.prompt.name.clone() });
        let methods = self.methods().filter(|entry| entry.mount == own);
        let methods =
            methods.map(|entry| Edit::RemoveMethod { mount: own, method: entry.extension.method.clone() });
        let extensions = self.extensions.values().filter(|entry| entry.mount == mount);
        let extensions = extensions.map(|entry| Edit::RemoveExtension { mount, id: entry.id.to_string() });
        let listed = resources.chain(templates).chain(foreign).chain(sources);
        listed.chain(tools).chain(prompts).chain(methods).chain(extensions).collect()
    }

    /// The number of registered resources.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Whether nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
            && self.templates.entries.is_empty()
            && self.foreign.is_empty()
            && self.sources.is_empty()
            && self.tools.is_empty()
            && self.prompts.is_empty()
            && self.methods.is_empty()
            && self.extensions.is_empty()
            && self.fallback.is_none()
    }

    /// Whether any variable of a template, an argument of a prompt, or a reference to the fallback, has a completer.
    pub fn has_completers(&self) -> bool {
        self.templates.has_completers
            || self.fallback.is_some()
            || self.named_fallback(ListKind::Prompts).is_some()
            || self.prompts().any(|entry| entry.has_completers())
    }

    /// Whether a template declares parameters, whose values are checked.
    pub(crate) fn has_checks(&self) -> bool {
        self.templates.has_checks
    }

    /// Whether any registered resource, template, tool or prompt requires scopes.
    pub fn has_scopes(&self) -> bool {
        self.scoped > 0 || self.templates.has_scopes
    }

    /// Whether a handler decides who may use a resource.
    pub fn has_access(&self) -> bool {
        self.guarded > 0 || self.templates.has_access
    }

    /// Whether there is a list source.
    pub fn has_list_sources(&self) -> bool {
        self.templates.has_list_sources || !self.sources.is_empty()
    }

    /// Appends a page of `resources/list` to `out`: items in the order of canonical URIs after the key `after`,
    /// separated by commas, without brackets. Calls `visible` once for each item examined.
    pub fn list_resources(
        &self,
        after: Option<&str>,
        page: CatalogPage,
        visible: &mut dyn FnMut(&ResourceEntry) -> bool,
        out: &mut Vec<u8>,
    ) -> ListedPage {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.in_order.range::<_, str>((start, Bound::Unbounded));
        list::append(entries.map(|(_, entry)| &**entry), page, visible, out)
    }

    /// Like [`Catalog::list_resources`] where everything is visible. A page is put together once, and kept until a
    /// resource is added, removed or changed.
    pub fn list_all_resources(
        &self,
        after: Option<&str>,
        page: CatalogPage,
        out: &mut Vec<u8>,
    ) -> ListedPage {
        self.pages.append(after, page, out, |out| self.list_resources(after, page, &mut |_| true, out))
    }

    /// Appends a page of `resources/templates/list` to `out`, in the order of template texts; otherwise like
    /// [`Catalog::list_resources`].
    pub fn list_templates(
        &self,
        after: Option<&str>,
        page: CatalogPage,
        visible: &mut dyn FnMut(ListedTemplate<'_>) -> bool,
        out: &mut Vec<u8>,
    ) -> ListedPage {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let foreign = self.foreign.range::<_, str>((start, Bound::Unbounded));
        let foreign = foreign.map(|(_, entry)| ListedTemplate::Foreign(entry));
        let own = self.templates.after(after).iter().map(|entry| ListedTemplate::Own(entry));
        list::append(list::merged(own, foreign), page, visible, out)
    }

    /// Appends a page of `tools/list` to `out`, in the order of names, each with the details that `view` returns for it;
    /// otherwise like [`Catalog::list_resources`].
    pub fn list_tools(
        &self,
        after: Option<&str>,
        page: CatalogPage<ToolFields>,
        visible: &mut dyn FnMut(&ToolEntry) -> bool,
        view: &mut dyn FnMut(&ToolEntry) -> ToolView,
        out: &mut Vec<u8>,
    ) -> ListedPage {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.tools.range::<_, str>((start, Bound::Unbounded));
        let fields = page.fields;
        let write = |entry: &ToolEntry, out: &mut Vec<u8>| entry.append(fields, &view(entry), out);
        list::append_with(entries.map(|(_, entry)| &**entry), page, visible, write, out)
    }

    /// Appends a page of `prompts/list` to `out`, in the order of names; otherwise like [`Catalog::list_resources`].
    pub fn list_prompts(
        &self,
        after: Option<&str>,
        page: CatalogPage,
        visible: &mut dyn FnMut(&PromptEntry) -> bool,
        out: &mut Vec<u8>,
    ) -> ListedPage {
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = self.prompts.range::<_, str>((start, Bound::Unbounded));
        list::append(entries.map(|(_, entry)| &**entry), page, visible, out)
    }

    /// The resources with [`children`](crate::resource::Resource::children) that are ancestors of `normal` by the
    /// segments of its path: outermost first, in canonical form. Their subscribers are notified of changes of `normal`.
    /// Of a deeper path only the outer 256 segments are examined.
    pub fn parents_of<'u>(&self, normal: &'u str) -> impl Iterator<Item = &'u str> {
        const DEEPEST: usize = 256;
        let any = self.parents > 0 || self.templates.has_children;
        let candidates = any.then(|| ancestors(normal).take(2 * DEEPEST));
        candidates.into_iter().flatten().filter(|parent| self.is_parent(parent))
    }

    fn is_parent(&self, normal: &str) -> bool {
        match self.resource(normal) {
            Some(entry) => entry.resource.children,
            None => self.templates.has_children && self.templates.is_parent(normal),
        }
    }
}

/// The ancestors of `normal`: its root, then each directory without and with a trailing slash.
fn ancestors(normal: &str) -> impl Iterator<Item = &str> {
    let path = normal.split(['?', '#']).next().unwrap_or_default();
    let root = path.find("://").map_or_else(|| path.find(':').map_or(0, |colon| colon + 1), |at| at + 3);
    let slashes = path.match_indices('/').map(|(at, _)| at).filter(move |at| *at >= root);
    let directories = slashes.flat_map(move |at| {
        let bare = Some(&path[..at]).filter(|bare| at > root && !bare.ends_with('/'));
        bare.into_iter().chain(Some(&path[..=at]))
    });
    Some(&path[..root]).into_iter().chain(directories).filter(move |parent| parent.len() < normal.len())
}

/// The values of a table. Most are empty, and an iterator over an empty tree is not free.
fn values<V>(table: &OrdMap<Arc<str>, Arc<V>>) -> impl Iterator<Item = &Arc<V>> {
    (!table.is_empty()).then(|| table.values()).into_iter().flatten()
}

#[cfg(test)]
mod tests;
