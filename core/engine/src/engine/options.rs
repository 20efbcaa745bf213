//! What an engine is built with.

use crate::catalog::HandlerId;
use crate::guard::Policy;
use crate::hub::ListKinds;
use crate::limits::Limits;
use crate::option::by_name;
use crate::resource::{CacheHint, Icon};
use crate::seal::SealKey;
use crate::version::Revision;

/// How the server presents itself (requirements, section 3).
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
}

/// What an engine is built with. Every switch has a default.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The bounds.
    pub limits: Limits,
    /// The revisions to serve. Default: all five.
    pub revisions: Vec<Revision>,
    /// Whether clients may subscribe to resources. Default `true`.
    pub subscribe: bool,
    /// Whether `list_changed` is announced. Default `true`.
    pub list_changed: bool,
    /// Whether completion is offered; `None`, the default: when a template has a completer.
    pub completions: Option<bool>,
    /// Whether handlers' log messages go to clients (deprecated in 2026-07-28, R-056). Nothing is sent that
    /// a client did not ask for. Default `true`.
    pub logging: bool,
    /// Whether results carry `serverInfo` in `_meta`. Default `true`.
    pub server_info_in_results: bool,
    /// Whether a principal is told that it may not see a resource, rather than that there is none (DEC-20). Default `false`.
    pub explicit_denials: bool,
    /// Who may see what, and how much of it. Default: everybody everything.
    pub guard: Policy,
    /// Whether the contents of reads are kept for their `ttl_ms` and given again, and concurrent reads of the same make one
    /// call. Default `false`.
    pub cache: bool,
    /// Whether the host looks at contents before they are encoded: then chunks are gathered as they are, and
    /// [`Gather::into_answer`](crate::connection::Gather::into_answer) gives them whole. Default `false`.
    pub transforms: bool,
    /// Whether requests are recorded (S-19); the host fetches them with [`Engine::take_records`](super::Engine).
    /// Default `false`.
    pub audit: bool,
    /// Whether requests are counted from the start: [`Engine::metrics_text`](super::Engine). Default `false`.
    pub metrics: bool,
    /// Caching hint of the two lists.
    pub list_cache: CacheHint,
    /// Caching hint of `server/discover`.
    pub discover_cache: CacheHint,
    /// Keys for cursors and request states, shared by all processes of a deployment. The first seals, all open.
    pub keys: Vec<SealKey>,
    /// The key for request states and cursors when `keys` is empty: random, from the host. Cursors then open until the
    /// process ends, and in no other one. Without either a read cannot ask for input, and a client that knows the server's name
    /// can open cursors and make its own. The hash of the catalogue is keyed with it too.
    pub process_key: Option<SealKey>,
    /// Custom methods that the author answers.
    pub extensions: Vec<Extension>,
    /// `capabilities.extensions` (2026-07-28, R-054) and, before, `capabilities.experimental`: id to settings (a JSON object).
    pub extension_capabilities: Vec<(String, String)>,
}

/// What a server is made with, by name: what a host of another language reads before it makes an engine.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// How it presents itself.
    pub info: ServerInfo,
    /// How it behaves.
    pub options: Options,
}

// `guard` and `audit` may name files, and `process_key` is not the author's: hosts set these.
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

impl Default for Options {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            revisions: Revision::ALL.to_vec(),
            subscribe: true,
            list_changed: true,
            completions: None,
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
            extensions: Vec::new(),
            extension_capabilities: Vec::new(),
        }
    }
}

/// A custom method that the author answers by hand: the extension door.
#[derive(Clone, Debug)]
pub struct Extension {
    /// The method; not one of ours, except `completion/complete`: then it gets the references that are not to resources.
    pub method: String,
    /// The author's function.
    pub handler: HandlerId,
    /// The member of `params` that the header `Mcp-Name` mirrors, if any.
    pub name_param: Option<String>,
    /// A capability to declare: its name and settings (a JSON object), such as `("tools", "{}")`.
    pub capability: Option<(String, String)>,
    /// The list of things that this method gives, if clients may listen to its changes.
    pub list_kind: Option<ListKinds>,
}
