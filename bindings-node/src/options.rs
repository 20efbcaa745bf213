//! What a server is made with.

use crate::error::unusable;
use crate::guard::PolicySource;
use crate::resource::{CacheHint, Icon};
use mcp_resources_engine::engine::{Options, ServerInfo};
use mcp_resources_engine::limits::Limits;
use mcp_resources_engine::seal::SealKey;
use mcp_resources_engine::suggest;
use mcp_resources_engine::version::Revision;
use napi::Env;
use napi::bindgen_prelude::*;
use napi_derive::napi;
use std::collections::HashMap;

/// The most requests of one connection that a number can name exactly.
const MOST_IN_FLIGHT: usize = 1 << 20;

/// The fields of a server; what is left out keeps its default.
#[napi(object, object_to_js = false)]
pub struct ServerFields {
    /// A name for people.
    pub title: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// Where to read more.
    pub website_url: Option<String>,
    /// Pictures of it.
    pub icons: Option<Vec<Icon>>,
    /// How a model is to use it.
    pub instructions: Option<String>,
    /// The bounds by name.
    pub limits: Option<HashMap<String, i64>>,
    /// The revisions to serve.
    pub revisions: Option<Vec<String>>,
    /// Whether clients may subscribe.
    pub subscribe: Option<bool>,
    /// Whether changes of the lists are announced.
    pub list_changed: Option<bool>,
    /// Whether completion is offered.
    pub completions: Option<bool>,
    /// Whether logs reach clients.
    pub logging: Option<bool>,
    /// Whether each result names the server.
    pub server_info_in_results: Option<bool>,
    /// Whether a client is told that it may not see a resource.
    pub explicit_denials: Option<bool>,
    /// Whether the contents of reads are kept.
    pub cache: Option<bool>,
    /// Whether contents are looked at before they are encoded.
    pub transforms: Option<bool>,
    /// The file where each request is recorded, or whether records are kept for a function.
    pub audit: Option<Either<String, bool>>,
    /// Whether requests are counted.
    pub metrics: Option<bool>,
    /// Who may see what.
    pub guard: Option<PolicySource>,
    /// How long lists may be kept.
    pub list_cache: Option<CacheHint>,
    /// How long the server's description may be kept.
    pub discover_cache: Option<CacheHint>,
    /// Secrets that the processes of a deployment share.
    pub keys: Option<Vec<Uint8Array>>,
    /// A secret of this process.
    pub process_key: Uint8Array,
    /// Capabilities of extensions with their settings as JSON text.
    pub extensions: Option<Vec<(String, String)>>,
}

impl ServerFields {
    /// The core's words for it.
    pub(crate) fn read(self, env: &Env, name: String, version: String) -> Result<(ServerInfo, Options)> {
        let icons = self.icons.into_iter().flatten().map(Icon::read).collect::<Result<_>>()?;
        let info = ServerInfo {
            name,
            version,
            title: self.title,
            description: self.description,
            website_url: self.website_url,
            icons,
            instructions: self.instructions,
        };
        let mut options = Options::default();
        limits(&mut options.limits, self.limits.unwrap_or_default())?;
        if let Some(dates) = self.revisions {
            options.revisions = dates.iter().map(|date| revision(date)).collect::<Result<_>>()?;
        }
        options.subscribe = self.subscribe.unwrap_or(options.subscribe);
        options.list_changed = self.list_changed.unwrap_or(options.list_changed);
        options.completions = self.completions;
        options.logging = self.logging.unwrap_or(options.logging);
        options.server_info_in_results =
            self.server_info_in_results.unwrap_or(options.server_info_in_results);
        options.explicit_denials = self.explicit_denials.unwrap_or(options.explicit_denials);
        options.cache = self.cache.unwrap_or(options.cache);
        options.transforms = self.transforms.unwrap_or(options.transforms);
        options.metrics = self.metrics.unwrap_or(options.metrics);
        options.guard = self.guard.map(|policy| policy.read(env)).transpose()?.unwrap_or_default();
        options.list_cache = self.list_cache.map(CacheHint::read).transpose()?.unwrap_or_default();
        options.discover_cache = self.discover_cache.map(CacheHint::read).transpose()?.unwrap_or_default();
        options.keys = self.keys.into_iter().flatten().map(|secret| key(&secret)).collect::<Result<_>>()?;
        options.process_key = Some(key(&self.process_key)?);
        options.extension_capabilities = self.extensions.unwrap_or_default();
        Ok((info, options))
    }
}

/// The revision of a date.
pub(crate) fn revision(date: &str) -> Result<Revision> {
    Revision::parse(date).ok_or_else(|| unusable(format!("{date:?} is no revision of the protocol")))
}

fn key(secret: &[u8]) -> Result<SealKey> {
    SealKey::from_secret(secret)
        .map_err(|_| unusable(format!("a key needs at least {} bytes", SealKey::MIN_SECRET)))
}

fn limits(limits: &mut Limits, given: HashMap<String, i64>) -> Result<()> {
    macro_rules! set {
        ($name:expr, $value:expr, $($field:ident)+) => {
            match &*snake_case($name) {
                $(stringify!($field) => limits.$field = unsigned($name, $value)?,)+
                _ => return Err(unusable(unknown($name, &[$(stringify!($field)),+]))),
            }
        };
    }
    for (name, value) in &given {
        set!(name, *value,
            message nesting id client_info batch batch_bytes uri resources templates in_flight page list_scan list_source list_item list_ttl list_cache list_cache_bytes cache_entries cache_bytes principals
            subscriptions filter_uris watched_uris watched_bytes watched_total contents contents_total output read_timeout completion_timeout arguments completion_values
            coalesce progress_interval log_messages state state_ttl asks grace head headers sessions session_idle streams replay keep_alive sse_after
            connections head_timeout body_timeout write_timeout token_cache token_ttl audit_queue
            sessions_per_client handshake_timeout connections_per_client idle_timeout bodies_total);
    }
    limits.in_flight = limits.in_flight.min(MOST_IN_FLIGHT);
    Ok(())
}

/// What to say of a limit that there is not.
fn unknown(name: &str, known: &[&str]) -> String {
    let known: Vec<String> = known.iter().map(|field| camel_case(field)).collect();
    suggest::unexpected("limit", name, &known.iter().map(|name| &**name).collect::<Vec<_>>())
}

/// The name of a limit as JavaScript spells it.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |camel, word| {
        let (head, tail) = word.split_at_checked(1).unwrap_or_default();
        camel + &head.to_ascii_uppercase() + tail
    })
}

/// A number that cannot be negative.
pub(crate) fn unsigned<T: TryFrom<i64>>(name: &str, value: i64) -> Result<T> {
    T::try_from(value).map_err(|_| unusable(format!("{name} is {value}, expected a whole number from 0")))
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}
