//! A provider's declaration of its resources.

use mcp_resources_engine::catalog::ListKind;
use mcp_resources_engine::resource::{ReadTool, Resource, Template};

/// A part of a provider, numbered by the provider. Each request has the number of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Route(pub u32);

/// The declaration of a provider: see [`Provider::mount`](super::Provider::mount).
#[derive(Debug)]
#[must_use = "it is what `Provider::mount` returns"]
pub struct Mount {
    pub(super) name: String,
    pub(super) templates: Vec<(Route, Template)>,
    pub(super) resources: Vec<(Route, Resource)>,
    pub(super) foreign: Vec<(String, String)>,
    pub(super) sources: Vec<MountedList>,
    pub(super) methods: Vec<(Route, String)>,
    pub(super) extensions: Vec<(String, String)>,
    pub(super) tools: Vec<ReadTool>,
    pub(super) directories: bool,
    pub(super) fallback: Option<Route>,
    pub(super) named_fallbacks: Vec<(ListKind, Route)>,
    pub(super) threads: usize,
    pub(super) queue: usize,
}

/// A list without a template.
#[derive(Debug)]
pub(super) struct MountedList {
    pub(super) list: ListKind,
    pub(super) route: Route,
    pub(super) key: String,
    pub(super) pages: bool,
}

impl Mount {
    /// An empty declaration. `name` is used in errors and logs, such as `files("docs")`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            templates: Vec::new(),
            resources: Vec::new(),
            foreign: Vec::new(),
            sources: Vec::new(),
            methods: Vec::new(),
            extensions: Vec::new(),
            tools: Vec::new(),
            directories: false,
            fallback: None,
            named_fallbacks: Vec::new(),
            threads: 4,
            queue: 256,
        }
    }

    /// Adds a template. The [`Template`] declares whether it lists and which variables it completes.
    pub fn template(mut self, route: impl Into<Route>, template: Template) -> Self {
        self.templates.push((route.into(), template));
        self
    }

    /// Adds a resource at a fixed URI. More can follow later, with [`Feed::publish`](super::Feed::publish).
    pub fn resource(mut self, route: impl Into<Route>, resource: Resource) -> Self {
        self.resources.push((route.into(), resource));
        self
    }

    /// Adds a template of another server that cannot be parsed, or conflicts: it is listed as `json`, and matches
    /// nothing.
    pub fn foreign_template(mut self, uri_template: impl Into<String>, json: impl Into<String>) -> Self {
        self.foreign.push((uri_template.into(), json.into()));
        self
    }

    /// Adds a list without a template. `key`, such as `files:docs`, identifies it among all lists of the server, and
    /// must stay the same after a restart; `pages` as in [`ListSource`](mcp_resources_engine::resource::ListSource).
    pub fn lists(mut self, route: impl Into<Route>, key: impl Into<String>, pages: bool) -> Self {
        let list = ListKind::Resources;
        self.sources.push(MountedList { list, route: route.into(), key: key.into(), pages });
        self
    }

    /// Adds a list of templates, tools or prompts of other servers, in pages:
    /// [`Item::Foreign`](mcp_resources_engine::connection::Item::Foreign) with the text of the template, or the name, in
    /// place of the URI. `key` as for [`Mount::lists`]; no two lists of a server have the same.
    pub fn lists_of(mut self, list: ListKind, route: impl Into<Route>, key: impl Into<String>) -> Self {
        self.sources.push(MountedList { list, route: route.into(), key: key.into(), pages: true });
        self
    }

    /// Adds a method that the protocol does not define, such as `skills/list`;
    /// [`Provider::call`](super::Provider::call) answers it. Mounting fails if the server already has a method of this
    /// name.
    pub fn method(mut self, route: impl Into<Route>, method: impl Into<String>) -> Self {
        self.methods.push((route.into(), method.into()));
        self
    }

    /// Adds a member of `capabilities.extensions` (before 2026-07-28 of `capabilities.experimental`): an identifier
    /// with a prefix, and its settings, a JSON object. Mounting fails if the server already declares this extension.
    pub fn extension(mut self, id: impl Into<String>, settings: impl Into<String>) -> Self {
        self.extensions.push((id.into(), settings.into()));
        self
    }

    /// Adds a tool that reads one of the resources or templates of this declaration. Mounting fails if the server
    /// already has a tool of this name. See [`Feed::exposes_tools`](super::Feed::exposes_tools).
    pub fn tool(mut self, tool: ReadTool) -> Self {
        self.tools.push(tool);
        self
    }

    /// Declares that [`Provider::directory`](super::Provider::directory) answers for the directories among its
    /// resources.
    pub fn directories(mut self) -> Self {
        self.directories = true;
        self
    }

    /// Serves reads and completions that no resource and no template of the server matches. With several such mounts,
    /// each is tried in turn until one does not answer [`NotFound`](mcp_resources_engine::error::ReadError::NotFound).
    /// Their URIs are not listed.
    pub fn fallback(mut self, route: impl Into<Route>) -> Self {
        self.fallback = Some(route.into());
        self
    }

    /// Answers calls of tools (or prompts, for [`ListKind::Prompts`]) that the server does not have, with
    /// [`Provider::call`](super::Provider::call). The params come as the client sent them, and the result is sent as it
    /// is. For prompts it also completes arguments, with the name as the reference. Only one mount of a server can do this:
    /// mounting a second one fails.
    pub fn named_fallback(mut self, list: ListKind, route: impl Into<Route>) -> Self {
        self.named_fallbacks.push((list, route.into()));
        self
    }

    /// Sets the maximum number of worker threads, and of queued requests. Default 4 and 256. A request fails at once if
    /// the queue is full. With 0 threads the functions of [`Provider`](super::Provider) are called on the thread that
    /// read the request, and must never block.
    pub fn workers(mut self, threads: usize, queue: usize) -> Self {
        self.threads = threads;
        self.queue = queue;
        self
    }
}
