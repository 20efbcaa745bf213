//! The builder of a server.

use super::answer::{
    AccessDecision, Call, Complete, HandlerError, IntoAnswer, List, PromptOutput, Read, ToolOutput,
};
use super::changes::ServerChanges;
use super::handlers::{Functions, Handler, erase_call};
use super::request::{CallRequest, CompletionRequest, ListRequest, NamedCall, ReadRequest};
use super::shared::{Diagnose, Diagnostic, Redact, ServerState};
use super::{Method, ResourceServer};
#[cfg(feature = "bus")]
use crate::bus::Bus;
use crate::provider::{Provider, WatchFn};
use crate::registry::{ForeignFunction, Registry};
use crate::transport::AuditSink;
#[cfg(feature = "http")]
use crate::transport::http::HttpOptions;
use mcp_resources_engine::connection::Contents;
use mcp_resources_engine::engine::{AccessQuestion, EngineOptions, InstructionPart, ServerInfo, Setup};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::principal::Principal;
use mcp_resources_engine::resource::{
    CacheHint, Icon, Prompt, RegistrationError, Resource, Template, Tool, UiPage,
};
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::version::Revision;
use std::sync::Arc;

/// Builds a server: see [`ResourceServer::builder`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    // Boxed, because each call moves the builder.
    info: Box<ServerInfo>,
    options: Box<EngineOptions>,
    changes: ServerChanges,
    calls: Vec<(ForeignFunction, Handler<CallRequest>)>,
    diagnose: Diagnose,
    watch: Option<WatchFn>,
    redact: Option<Redact>,
    audit: Option<Box<dyn AuditSink>>,
    providers: Vec<Arc<dyn Provider>>,
    #[cfg(feature = "bus")]
    bus: Option<Arc<dyn Bus>>,
    #[cfg(feature = "http")]
    http: Box<HttpOptions>,
}

impl From<Setup> for Builder {
    /// Starts building a server with a description and options that were read elsewhere.
    fn from(Setup { info, options }: Setup) -> Self {
        Self { info: info.into(), options: options.into(), ..Self::new(String::new(), String::new()) }
    }
}

/// The resources, templates and methods.
impl Builder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            info: Box::new(ServerInfo { name, version, ..ServerInfo::default() }),
            options: Box::default(),
            changes: ServerChanges::new(),
            calls: Vec::new(),
            diagnose: Arc::new(to_stderr),
            watch: None,
            redact: None,
            audit: None,
            providers: Vec::new(),
            #[cfg(feature = "bus")]
            bus: None,
            #[cfg(feature = "http")]
            http: Box::default(),
        }
    }

    /// Adds a resource read by `handler`: an async function from [`ReadRequest`] to a result listed at [`Read`].
    /// Clients see resources in the order of their URIs, whatever the order of registration.
    pub fn resource<F, Fut>(self, resource: impl Into<Resource>, handler: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        self.change(|changes| changes.resource(resource, handler))
    }

    /// Adds a resource whose content is always `text`. No handler is called.
    pub fn text(self, resource: impl Into<Resource>, text: impl Into<Arc<str>>) -> Self {
        self.change(|changes| changes.text(resource, text))
    }

    /// Adds a resource whose content is always `bytes`. No handler is called.
    pub fn bytes(self, resource: impl Into<Resource>, bytes: impl Into<Arc<[u8]>>) -> Self {
        self.change(|changes| changes.bytes(resource, bytes))
    }

    /// Adds an HTML page that a host shows beside the results of tools (MCP Apps, SEP-1865). A tool names it with
    /// [`Tool::ui`](mcp_resources_engine::resource::Tool::ui).
    ///
    /// ```
    /// use mcp_resources::testing::Client;
    /// use mcp_resources::{NamedCall, ResourceServer, Tool, UiPage};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("shop", "1.0.0")
    ///     .ui(UiPage::new("ui://shop/order", "<!doctype html><title>Order</title>").prefers_border(true))
    ///     .tool_with(Tool::new("order").ui("ui://shop/order"), |_: NamedCall| async { "paid" })
    ///     .build()?;
    /// let mut client = Client::modern(&server)?;
    /// let tools = client.request("tools/list", serde_json::json!({})).await?;
    /// assert_eq!(tools["tools"][0]["_meta"]["ui"]["resourceUri"], "ui://shop/order");
    /// # Ok(()) }
    /// ```
    pub fn ui(self, page: UiPage) -> Self {
        self.change(|changes| changes.ui(page))
    }

    /// Adds a template with resources read by `handler`.
    pub fn template<F, Fut>(self, template: impl Into<Template>, handler: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        self.change(|changes| changes.template(template, handler))
    }

    /// Adds a tool whose input schema is written by hand: an async function from [`NamedCall`] to a result listed at
    /// [`ToolOutput`]. The feature `tools` derives the schema from a type.
    pub fn tool_with<F, Fut>(self, tool: impl Into<Tool>, handler: F) -> Self
    where
        F: Fn(NamedCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<ToolOutput>> + Send + 'static,
    {
        self.change(|changes| changes.tool_with(tool, handler))
    }

    /// Adds a prompt: an async function from [`NamedCall`] to a result listed at [`PromptOutput`].
    pub fn prompt_with<F, Fut>(self, prompt: impl Into<Prompt>, handler: F) -> Self
    where
        F: Fn(NamedCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<PromptOutput>> + Send + 'static,
    {
        self.change(|changes| changes.prompt_with(prompt, handler))
    }

    /// Completes a variable of the last added template, or an argument of the last added prompt: an async function
    /// from [`CompletionRequest`] to a result listed at [`Complete`].
    pub fn complete<F, Fut>(self, variable: impl Into<String>, handler: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Complete>> + Send + 'static,
    {
        self.change(|changes| changes.complete(variable, handler))
    }

    /// Lists all resources of the last added template for `resources/list`. It is called for each page of a walk,
    /// unless [`Limits::list_ttl`](mcp_resources_engine::limits::Limits::list_ttl) caches its result.
    pub fn list<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.change(|changes| changes.list(handler))
    }

    /// Lists the resources of the last added template in pages: the handler continues at [`ListRequest::cursor`] and
    /// returns a [`ListPage`](mcp_resources_engine::connection::ListPage).
    pub fn list_pages<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.change(|changes| changes.list_pages(handler))
    }

    /// Decides who may use the last added resource, or those of the last added template: a function from the principal
    /// and one URI with its variables to an async `bool`. It is asked about each URI before it is listed, completed, read
    /// or watched, and before an update is sent; an answer is used again for
    /// [`Limits::access_ttl`](mcp_resources_engine::limits::Limits::access_ttl), or until
    /// [`ResourceServer::regrant`](super::ResourceServer::regrant). A URI that is refused looks like one that does not
    /// exist. A failure means no, and is logged.
    ///
    /// ```
    /// use mcp_resources::testing::Client;
    /// use mcp_resources::{ReadRequest, ResourceServer};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let server = ResourceServer::builder("notes", "1.0.0")
    ///     .template("note://{owner}/{id}", |_: ReadRequest| async { "text" })
    ///     .access(|principal, note| async move { note.param("owner") == Some(principal.id()) })
    ///     .build()?;
    /// let mut bob = Client::builder(&server).principal("bob").modern()?;
    /// assert!(bob.read("note://bob/1").await.is_ok());
    /// assert!(bob.read("note://alice/1").await.is_err());
    /// # Ok(()) }
    /// ```
    pub fn access<F, Fut>(self, decide: F) -> Self
    where
        F: Fn(Arc<Principal>, AccessQuestion) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        self.change(|changes| changes.access(decide))
    }

    /// Like [`Builder::access`], about many URIs at once: the function returns one `bool` for each question, in their order.
    /// It gets at most [`Limits::access_batch`](mcp_resources_engine::limits::Limits::access_batch) of them.
    pub fn access_all<F, Fut>(self, decide: F) -> Self
    where
        F: Fn(Arc<Principal>, Arc<[AccessQuestion]>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<AccessDecision>> + Send + 'static,
    {
        self.change(|changes| changes.access_all(decide))
    }

    /// Adds a handler for a custom method.
    pub fn method<F, Fut>(mut self, method: Method, handler: F) -> Self
    where
        F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Call>> + Send + 'static,
    {
        let Method { method, name_param, capability, list_kind, timeout } = method;
        let foreign = ForeignFunction { method, name_param, capability, list_kind, timeout };
        self.calls.push((foreign, erase_call(handler)));
        self
    }

    pub(super) fn change(mut self, change: impl FnOnce(ServerChanges) -> ServerChanges) -> Self {
        self.changes = change(self.changes);
        self
    }
}

/// The server's description of itself.
impl Builder {
    /// Sets a label for people (2025-06-18). Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets a description (2025-11-25). Default: none.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Sets the URL of a page about the server (2025-11-25). Default: none.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds an icon (2025-11-25). Default: none.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// Sets instructions for the model. Default: none.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.info.instructions = Some(instructions.into());
        self
    }

    /// Adds a sentence to the instructions, for clients that may see a URI of one of the templates in `about`.
    pub fn instructions_about(
        mut self,
        text: impl Into<String>,
        about: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let about = about.into_iter().map(Into::into).collect();
        self.info.instruction_parts.push(InstructionPart { text: text.into(), about });
        self
    }

    /// Adds an entry of `capabilities.extensions` (2026-07-28): an id with a prefix, and its settings, a JSON
    /// object. Default: none.
    pub fn extension(mut self, id: impl Into<String>, settings: impl Into<String>) -> Self {
        self.options.extension_capabilities.push((id.into(), settings.into()));
        self
    }
}

/// The server's behaviour.
impl Builder {
    /// Sets the limits. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Adds a key for cursors and request states. All processes of a deployment share their keys; the first key seals,
    /// all keys open. Default: none; cursors and request states are then valid in this process only.
    pub fn key(mut self, key: SealKey) -> Self {
        self.options.keys.push(key);
        self
    }

    /// Sets the revisions to support. Default: all five.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.options.revisions = revisions.into_iter().collect();
        self
    }

    /// Sets whether clients may subscribe to resources. Default `true`.
    pub fn subscribe(mut self, subscribe: bool) -> Self {
        self.options.subscribe = subscribe;
        self
    }

    /// Sets whether changes of the lists are announced. Default `true`.
    pub fn list_changed(mut self, list_changed: bool) -> Self {
        self.options.list_changed = list_changed;
        self
    }

    /// Sets whether completion is offered. Default: if any template has a completer.
    pub fn completions(mut self, completions: bool) -> Self {
        self.options.completions = Some(completions);
        self
    }

    /// Sets whether the tools `list_resources` and `read_resource` give the resources to hosts that show a model nothing
    /// but tools. Default `false`.
    pub fn expose_as_tools(mut self, expose: bool) -> Self {
        self.options.expose_as_tools = expose;
        self
    }

    /// Sets whether tools are offered before the first one is added, so that clients are notified of later ones. Default
    /// `false`.
    pub fn tools(mut self, tools: bool) -> Self {
        self.options.tools = tools;
        self
    }

    /// As [`Builder::tools`], for prompts. Default `false`.
    pub fn prompts(mut self, prompts: bool) -> Self {
        self.options.prompts = prompts;
        self
    }

    /// Sets whether handlers' log messages are sent to clients. Default `false`.
    pub fn logging(mut self, logging: bool) -> Self {
        self.options.logging = logging;
        self
    }

    /// Sets whether a client gets an error that says that it may not see a resource; otherwise the error is that of a
    /// missing one. Default `false`.
    pub fn explicit_denials(mut self, explicit: bool) -> Self {
        self.options.explicit_denials = explicit;
        self
    }

    /// Sets the access rules and limits for principals; [`load_policy`](crate::transport::load_policy) reads them from
    /// a file. Default: everything is allowed.
    pub fn guard(mut self, policy: Policy) -> Self {
        self.options.guard = policy;
        self
    }

    /// Sets whether results carry the server's name in `_meta` (2026-07-28). Default `true`.
    pub fn server_info_in_results(mut self, carry: bool) -> Self {
        self.options.server_info_in_results = carry;
        self
    }

    /// Sets whether and how long the two lists may be cached. Default: not at all.
    pub fn list_cache(mut self, cache: CacheHint) -> Self {
        self.options.list_cache = cache;
        self
    }

    /// Sets whether and how long the answer to `server/discover` may be cached. Default: not at all.
    pub fn discover_cache(mut self, cache: CacheHint) -> Self {
        self.options.discover_cache = cache;
        self
    }

    /// Sets whether results of reads are cached for their `ttl_ms`, for the principal that requested them or, if they
    /// are public, for all; and whether concurrent reads of one URI by one principal share a handler call.
    /// `notify_updated` and changes of the lists purge the cache. Default `false`.
    pub fn cache(mut self, cache: bool) -> Self {
        self.options.cache = cache;
        self
    }

    /// Sets a function that removes or changes parts of contents before they are encoded. It is called with the URI and
    /// the contents of each entry of each read, including constants. An error fails the read, and none of the contents
    /// are sent. It runs where the handler ran, so it must not block. Default: none.
    pub fn redact<F>(mut self, redact: F) -> Self
    where
        F: Fn(&str, Contents<'static>) -> Result<Contents<'static>, HandlerError> + Send + Sync + 'static,
    {
        self.options.transforms = true;
        self.redact = Some(Arc::new(redact));
        self
    }

    /// Sets the receiver of diagnostics for the server's log: failures of handlers, warnings. Default: one line each on
    /// standard error.
    pub fn diagnostics(mut self, report: impl Fn(&Diagnostic<'_>) + Send + Sync + 'static) -> Self {
        self.diagnose = Arc::new(report);
        self
    }

    /// Sets a function to call when a URI, in canonical form, gains its first watcher (`true`) or loses its last one
    /// (`false`), over all connections: in order, one call at a time. It runs where messages are read, so it must not
    /// block.
    pub fn on_watch(mut self, changed: impl Fn(&str, bool) + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(changed));
        self
    }

    /// Records each request, and passes the records to `sink` on a thread of its own: to an
    /// [`AuditFile`](crate::transport::AuditFile), or to a function that takes an
    /// [`AuditRecord`](mcp_resources_engine::guard::AuditRecord). Default: no records. Requests never wait for a slow
    /// sink: above [`Limits::audit_queue`](mcp_resources_engine::limits::Limits::audit_queue) records are dropped and counted.
    ///
    /// ```
    /// # use mcp_resources::{AuditFile, ResourceServer, guard::AuditRecord};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join("mcp-resources-doc-audit.jsonl");
    /// let to_file = ResourceServer::builder("a", "1").audit(AuditFile::open(path)?);
    /// let to_function = ResourceServer::builder("b", "1").audit(|entry: &AuditRecord| println!("{entry:?}"));
    /// # Ok(()) }
    /// ```
    pub fn audit(mut self, sink: impl AuditSink) -> Self {
        self.options.audit = true;
        self.audit = Some(Box::new(sink));
        self
    }

    /// Counts requests, for [`ResourceServer::metrics_text`]. Default `false`; an HTTP endpoint with metrics starts
    /// counting when it is made.
    pub fn metrics(mut self, metrics: bool) -> Self {
        self.options.metrics = metrics;
        self
    }

    /// Connects this process with the other processes of the server: changes that one announces, and revocations, reach
    /// the clients of all. `bus` comes from a URL (feature `bus-redis` or `bus-nats`), or is a
    /// [`MemoryBus`](crate::bus::MemoryBus). Needs a [`Builder::key`], which all processes share. Default: none.
    ///
    /// ```
    /// use mcp_resources::bus::MemoryBus;
    /// use mcp_resources::{ResourceServer, SealKey};
    /// use std::sync::Arc;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let bus = Arc::new(MemoryBus::default());
    /// let process = || -> Result<ResourceServer, Box<dyn std::error::Error>> {
    ///     let key = SealKey::from_secret(b"0f1e2d3c4b5a69788796a5b4c3d2e1f0")?;
    ///     Ok(ResourceServer::builder("notes", "1.0.0").key(key).bus(bus.clone()).text("note://1", "one").build()?)
    /// };
    /// let (first, second) = (process()?, process()?);
    /// first.notify_updated("note://1")?; // reaches the clients of `second` too
    /// # drop(second);
    /// # Ok(()) }
    /// ```
    #[cfg(feature = "bus")]
    pub fn bus(mut self, bus: Arc<dyn Bus>) -> Self {
        self.bus = Some(bus);
        self
    }

    /// Sets the options with which each [`ResourceServer::http`] begins.
    #[cfg(feature = "http")]
    #[doc(hidden)]
    pub fn http_options(mut self, options: HttpOptions) -> Self {
        self.http = Box::new(options);
        self
    }

    /// Mounts a provider after all other registrations: see [`ResourceServer::mount`].
    pub fn mount(mut self, provider: impl Provider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// Builds the server.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first registration that is invalid, duplicate or ambiguous, and for the first
    /// provider that cannot be mounted.
    pub fn build(self) -> Result<ResourceServer, RegistrationError> {
        let registry = Registry::new(*self.info, *self.options)?;
        for (declared, handler) in self.calls {
            registry.extend(declared, Arc::new(Functions::Method(handler)))?;
        }
        #[cfg(feature = "bus")]
        if let Some(bus) = self.bus {
            registry.connect_bus(bus)?;
        }
        let is_audited = self.audit.is_some();
        if let Some(sink) = self.audit {
            registry.audit(sink);
        }
        let shared = ServerState::new(registry, self.diagnose, self.watch, self.redact, is_audited)?;
        #[cfg(feature = "http")]
        shared.begin_http_with(*self.http);
        shared.apply(self.changes)?;
        for provider in self.providers {
            shared.registry.mounts().mount(provider)?;
        }
        Ok(ResourceServer::from(shared))
    }
}

#[expect(clippy::disallowed_macros, reason = "the default of a server: standard error is free on stdio")]
fn to_stderr(diagnostic: &Diagnostic<'_>) {
    eprintln!("mcp-resources: {diagnostic}");
}
