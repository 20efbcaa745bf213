//! The options of an engine.

use crate::catalog::Extension;
use crate::guard::Policy;
use crate::limits::Limits;
use crate::option::by_name;
use crate::resource::{CacheHint, Icon};
use crate::seal::SealKey;
use crate::version::Revision;

/// The server's description of itself.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// `name`; required.
    pub name: String,
    /// `version`; required.
    pub version: String,
    /// `title`, from 2025-06-18.
    pub title: Option<String>,
    /// `description`, from 2025-11-25.
    pub description: Option<String>,
    /// `websiteUrl`, from 2025-11-25.
    pub website_url: Option<String>,
    /// `icons`, from 2025-11-25.
    pub icons: Vec<Icon>,
    /// `instructions` for the model.
    pub instructions: Option<String>,
    /// Further sentences of `instructions`, for principals that may see what they are about.
    pub instruction_parts: Vec<InstructionPart>,
}

/// A part of the `instructions` that only some principals get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstructionPart {
    /// The sentence.
    pub text: String,
    /// URI templates. A principal that may see a URI of one of them gets the sentence.
    pub about: Vec<String>,
}

/// The options of an engine. Every field has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The limits.
    pub limits: Limits,
    /// The revisions to serve. Default: all five.
    pub revisions: Vec<Revision>,
    /// Whether clients may subscribe to resources. Default `true`.
    pub subscribe: bool,
    /// Whether `list_changed` is announced. Default `true`.
    pub list_changed: bool,
    /// Whether completion is offered; `None`, the default: when a template has a completer.
    pub completions: Option<bool>,
    /// Whether the tools `list_resources` and `read_resource` give the resources to hosts that show a model nothing but
    /// tools. Default `false`.
    pub expose_as_tools: bool,
    /// Whether tools are offered before one is registered; with one they are in any case. Default `false`.
    pub tools: bool,
    /// As `tools`, for prompts. Default `false`.
    pub prompts: bool,
    /// Whether handlers may send log messages to clients (deprecated in 2026-07-28). A client gets them only if
    /// it asks for them. Default `true`.
    pub logging: bool,
    /// Whether results carry `serverInfo` in `_meta`. Default `true`.
    pub server_info_in_results: bool,
    /// Whether a principal learns that it may not see a resource; otherwise the error is the same as for a missing one
    ///. Default `false`.
    pub explicit_denials: bool,
    /// Access rules and limits for principals. Default: everything is allowed.
    pub guard: Policy,
    /// Whether results of reads are cached for their `ttl_ms`, and concurrent reads of the same resource share a
    /// handler call. Default `false`.
    pub cache: bool,
    /// Whether the runtime transforms contents before they are encoded: chunks are then gathered unencoded, and
    /// [`Gather::into_answer`](crate::connection::ContentsGatherer::into_answer) returns them whole. Default `false`.
    pub transforms: bool,
    /// Whether requests are recorded; the runtime fetches the audit records with [`Engine::take_audit_records`](super::Engine).
    /// Default `false`.
    pub audit: bool,
    /// Whether requests are counted from the start: [`Engine::metrics_text`](super::Engine). Default `false`.
    pub metrics: bool,
    /// Caching hint of the two lists.
    pub list_cache: CacheHint,
    /// Caching hint of `server/discover`.
    pub discover_cache: CacheHint,
    /// Keys for cursors and request states, shared by all processes of a deployment. The first key seals; all keys
    /// open.
    pub keys: Vec<SealKey>,
    /// The key for request states and cursors if `keys` is empty: random, set by the runtime. Cursors are then valid until
    /// the process ends, and in no other process. Without any key a read cannot ask for input, and a client that knows
    /// the server's name can open and forge cursors. The hash of the catalogue uses this key too.
    pub process_key: Option<SealKey>,
    /// Whether the runtime passes the use of rates to the other processes ([`Engine::share_rates`](super::Engine::share_rates)).
    /// Otherwise a policy with shared rates is refused. Default `false`.
    pub shares_rates: bool,
    /// The custom methods of the server.
    pub extensions: Vec<Extension>,
    /// `capabilities.extensions` (2026-07-28) and, before, `capabilities.experimental`: id to settings (a JSON object).
    pub extension_capabilities: Vec<(String, String)>,
}

/// Description and options of a server, set by name by the runtimes of other languages.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The server's description.
    pub info: ServerInfo,
    /// The server's behaviour.
    pub options: EngineOptions,
}

// Runtimes set `guard` and `audit`, which may name files, and `process_key`, which users must not choose.
by_name!(Setup, "options of a server" {
    "version" => info.version,
    "title" => info.title,
    "description" => info.description,
    "website_url" => info.website_url,
    "icons" => info.icons,
    "instructions" => info.instructions,
    "limits" => options.limits,
    "revisions" => options.revisions,
    "subscribe" => options.subscribe,
    "list_changed" => options.list_changed,
    "completions" => options.completions,
    "expose_as_tools" => options.expose_as_tools,
    "tools" => options.tools,
    "prompts" => options.prompts,
    "logging" => options.logging,
    "server_info_in_results" => options.server_info_in_results,
    "explicit_denials" => options.explicit_denials,
    "cache" => options.cache,
    "redact" => options.transforms,
    "metrics" => options.metrics,
    "list_cache" => options.list_cache,
    "discover_cache" => options.discover_cache,
    "keys" => options.keys,
    "extensions" => options.extension_capabilities,
});

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            revisions: Revision::ALL.to_vec(),
            subscribe: true,
            list_changed: true,
            completions: None,
            expose_as_tools: false,
            tools: false,
            prompts: false,
            logging: true,
            server_info_in_results: true,
            explicit_denials: false,
            guard: Policy::default(),
            cache: false,
            transforms: false,
            audit: false,
            metrics: false,
            list_cache: CacheHint::default(),
            discover_cache: CacheHint::default(),
            keys: Vec::new(),
            process_key: None,
            shares_rates: false,
            extensions: Vec::new(),
            extension_capabilities: Vec::new(),
        }
    }
}
