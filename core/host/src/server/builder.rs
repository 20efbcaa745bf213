//! How a server is put together.

use super::answer::{Call, Complete, HandlerError, IntoAnswer, List, Read};
use super::changes::Changes;
use super::handlers::{Functions, Handler, erase_call};
use super::request::{CallRequest, CompletionRequest, ListRequest, ReadRequest};
use super::shared::{Diagnose, Diagnostic, Redact, Shared};
use super::{Method, ResourceServer};
use crate::provider::{Provider, WatchFn};
use crate::registry::{Foreign, Registry};
use crate::transport::AuditSink;
use mcp_resources_engine::connection::Contents;
use mcp_resources_engine::engine::{Options, ServerInfo};
use mcp_resources_engine::guard::Policy;
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::resource::{CacheHint, Icon, RegistrationError, Resource, Template};
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::version::Revision;
use std::sync::Arc;

/// A server in the making: see [`ResourceServer::builder`].
#[must_use = "a builder does nothing until `build` is called"]
pub struct Builder {
    info: ServerInfo,
    options: Options,
    changes: Changes,
    calls: Vec<(Foreign, Handler<CallRequest>)>,
    diagnose: Diagnose,
    watch: Option<WatchFn>,
    redact: Option<Redact>,
    audit: Option<Box<dyn AuditSink>>,
    providers: Vec<Arc<dyn Provider>>,
}

/// What it has.
impl Builder {
    pub(super) fn new(name: String, version: String) -> Self {
        Self {
            info: ServerInfo { name, version, ..ServerInfo::default() },
            options: Options::default(),
            changes: Changes::new(),
            calls: Vec::new(),
            diagnose: Arc::new(to_stderr),
            watch: None,
            redact: None,
            audit: None,
            providers: Vec::new(),
        }
    }

    /// Adds a resource that `handler` reads: an async function from [`ReadRequest`] to what [`Read`] says. Clients see
    /// resources in the order of their URIs, whatever the order of registration.
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

    /// Adds a template whose resources `handler` reads.
    pub fn template<F, Fut>(self, template: impl Into<Template>, handler: F) -> Self
    where
        F: Fn(ReadRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Read>> + Send + 'static,
    {
        self.change(|changes| changes.template(template, handler))
    }

    /// Completes a variable of the template added just before (R-107): an async function from [`CompletionRequest`] to
    /// what [`Complete`] says.
    pub fn complete<F, Fut>(self, variable: impl Into<String>, handler: F) -> Self
    where
        F: Fn(CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Complete>> + Send + 'static,
    {
        self.change(|changes| changes.complete(variable, handler))
    }

    /// Lists all resources of the template added just before, for `resources/list`. It is called for each page of a walk,
    /// unless [`Limits::list_ttl`](mcp_resources_engine::limits::Limits::list_ttl) keeps what it gives.
    pub fn list<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.change(|changes| changes.list(handler))
    }

    /// Lists the resources of the template added just before in pages of its own: the handler goes on at
    /// [`ListRequest::cursor`] and returns a [`ListPage`](mcp_resources_engine::connection::ListPage).
    pub fn list_pages<F, Fut>(self, handler: F) -> Self
    where
        F: Fn(ListRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<List>> + Send + 'static,
    {
        self.change(|changes| changes.list_pages(handler))
    }

    /// Answers a method that is not one of ours: the extension door.
    pub fn method<F, Fut>(mut self, method: Method, handler: F) -> Self
    where
        F: Fn(CallRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoAnswer<Call>> + Send + 'static,
    {
        let Method { method, name_param, capability, list_kind } = method;
        self.calls.push((Foreign { method, name_param, capability, list_kind }, erase_call(handler)));
        self
    }

    fn change(mut self, change: impl FnOnce(Changes) -> Changes) -> Self {
        self.changes = change(self.changes);
        self
    }
}

/// How it presents itself.
impl Builder {
    /// A label for people (2025-06-18). Default: none.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// What it is (2025-11-25). Default: none.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Where more is written about it (2025-11-25). Default: none.
    pub fn website_url(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Adds a picture (2025-11-25). Default: none.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.push(icon);
        self
    }

    /// What the model should know to use it. Default: none.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.info.instructions = Some(instructions.into());
        self
    }

    /// Adds an entry of `capabilities.extensions` (2026-07-28, R-054): an id with a prefix, and its settings, a JSON
    /// object. Default: none.
    pub fn extension(mut self, id: impl Into<String>, settings: impl Into<String>) -> Self {
        self.options.extension_capabilities.push((id.into(), settings.into()));
        self
    }
}

/// How it behaves.
impl Builder {
    /// The bounds. Default: [`Limits::default`].
    pub fn limits(mut self, limits: Limits) -> Self {
        self.options.limits = limits;
        self
    }

    /// Adds a key for cursors and request states. All processes of one deployment share their keys; the first seals,
    /// all open. Default: none; cursors and request states then open in this process only.
    pub fn key(mut self, key: SealKey) -> Self {
        self.options.keys.push(key);
        self
    }

    /// The revisions to serve. Default: all five.
    pub fn revisions(mut self, revisions: impl IntoIterator<Item = Revision>) -> Self {
        self.options.revisions = revisions.into_iter().collect();
        self
    }

    /// Whether clients may subscribe to resources. Default `true`.
    pub fn subscribe(mut self, subscribe: bool) -> Self {
        self.options.subscribe = subscribe;
        self
    }

    /// Whether changes of the lists are announced. Default `true`.
    pub fn list_changed(mut self, list_changed: bool) -> Self {
        self.options.list_changed = list_changed;
        self
    }

    /// Whether completion is offered. Default: when a template has a completer.
    pub fn completions(mut self, completions: bool) -> Self {
        self.options.completions = Some(completions);
        self
    }

    /// Whether handlers' log messages go to clients (R-056, R-119). Default `false`.
    pub fn logging(mut self, logging: bool) -> Self {
        self.options.logging = logging;
        self
    }

    /// Whether a client is told that it may not see a resource, rather than that there is none (DEC-20).
    /// Default `false`.
    pub fn explicit_denials(mut self, explicit: bool) -> Self {
        self.options.explicit_denials = explicit;
        self
    }

    /// Who may see what, and how much of it; [`load_policy`](crate::transport::load_policy) reads it from a file.
    /// Default: everybody may see everything.
    pub fn guard(mut self, policy: Policy) -> Self {
        self.options.guard = policy;
        self
    }

    /// Whether results carry the server's name in `_meta` (2026-07-28, R-048). Default `true`.
    pub fn server_info_in_results(mut self, carry: bool) -> Self {
        self.options.server_info_in_results = carry;
        self
    }

    /// How long the two lists may be kept, and by whom (R-113). Default: not at all.
    pub fn list_cache(mut self, cache: CacheHint) -> Self {
        self.options.list_cache = cache;
        self
    }

    /// How long the answer to `server/discover` may be kept, and by whom (R-113). Default: not at all.
    pub fn discover_cache(mut self, cache: CacheHint) -> Self {
        self.options.discover_cache = cache;
        self
    }

    /// Whether the contents of reads are kept for their `ttl_ms` and given again without a call, to the principal who was
    /// given them or, if they are public, to all; and whether concurrent reads of one URI by one principal make one call
    /// (R-219, R-220). `notify_updated` and changes of the lists end what is kept. Default `false`.
    pub fn cache(mut self, cache: bool) -> Self {
        self.options.cache = cache;
        self
    }

    /// Takes out of contents what is not to be sent, or changes them: called with the URI and the contents of each read,
    /// one after the other, constants included, before they are encoded. Its error fails the read, and nothing is sent of
    /// the contents (S-19). Called where the handler ran: it must not block. Default: none.
    pub fn redact<F>(mut self, redact: F) -> Self
    where
        F: Fn(&str, Contents<'static>) -> Result<Contents<'static>, HandlerError> + Send + Sync + 'static,
    {
        self.options.transforms = true;
        self.redact = Some(Arc::new(redact));
        self
    }

    /// Who hears of what the author should know: failures of handlers, warnings. Default: one line each on standard
    /// error.
    pub fn diagnostics(mut self, hear: impl Fn(&Diagnostic<'_>) + Send + Sync + 'static) -> Self {
        self.diagnose = Arc::new(hear);
        self
    }

    /// Called when a URI, in canonical form, gets its first watcher (`true`) or loses its last (`false`), over all
    /// connections: in order, one call at a time. It runs where messages are read, so it must not block.
    pub fn on_watch(mut self, hear: impl Fn(&str, bool) + Send + Sync + 'static) -> Self {
        self.watch = Some(Box::new(hear));
        self
    }

    /// Records each request, and gives the records to `sink` on a thread of its own (S-19): to an
    /// [`AuditFile`](crate::transport::AuditFile), or to a function that takes an
    /// [`AuditEntry`](mcp_resources_engine::guard::AuditEntry). Default: nothing is recorded. No request waits for a slow
    /// sink: above [`Limits::audit_queue`](mcp_resources_engine::limits::Limits::audit_queue) records are dropped and counted.
    ///
    /// ```
    /// # use mcp_resources::{AuditFile, ResourceServer, guard::AuditEntry};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let path = std::env::temp_dir().join("mcp-resources-doc-audit.jsonl");
    /// let to_file = ResourceServer::builder("a", "1").audit(AuditFile::open(path)?);
    /// let to_function = ResourceServer::builder("b", "1").audit(|entry: &AuditEntry| println!("{entry:?}"));
    /// # Ok(()) }
    /// ```
    pub fn audit(mut self, sink: impl AuditSink) -> Self {
        self.options.audit = true;
        self.audit = Some(Box::new(sink));
        self
    }

    /// Counts requests, for [`ResourceServer::metrics_text`]. Default `false`; an HTTP endpoint that shows metrics counts
    /// from then on.
    pub fn metrics(mut self, metrics: bool) -> Self {
        self.options.metrics = metrics;
        self
    }

    /// Mounts a provider after all that is registered here: see [`ResourceServer::mount`].
    pub fn mount(mut self, provider: impl Provider) -> Self {
        self.providers.push(Arc::new(provider));
        self
    }

    /// The server.
    ///
    /// # Errors
    /// [`RegistrationError`] for the first thing that is not well-formed, duplicate or ambiguous, and for the first provider
    /// that cannot be mounted.
    pub fn build(mut self) -> Result<ResourceServer, RegistrationError> {
        self.options.process_key = random_key();
        let registry = Registry::new(self.info, self.options)?;
        for (declared, handler) in self.calls {
            // There is no engine yet: it is not too late.
            let _ = registry.extend(declared, Arc::new(Functions::Method(handler)));
        }
        let is_audited = self.audit.is_some();
        if let Some(sink) = self.audit {
            registry.audit(sink);
        }
        let shared = Shared::new(registry, self.diagnose, self.watch, self.redact, is_audited)?;
        shared.apply(self.changes)?;
        for provider in self.providers {
            shared.registry.mounts().mount(provider)?;
        }
        Ok(ResourceServer::from(shared))
    }
}

/// A key that dies with the process. Without randomness there is none, and reads cannot ask for input.
fn random_key() -> Option<SealKey> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).ok()?;
    SealKey::from_secret(&secret).ok()
}

#[expect(
    clippy::disallowed_macros,
    reason = "the default of a host: standard error is free on stdio (R-147)"
)]
fn to_stderr(diagnostic: &Diagnostic<'_>) {
    eprintln!("mcp-resources: {diagnostic}");
}
