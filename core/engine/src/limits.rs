//! Every limit of the engine and its runtimes, in one place, with its default.
//!
//! Law: everything that grows with the input of a peer or the output of a handler has a limit here, and a test of the
//! error at the limit.

use crate::now::Millis;
use crate::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep};
use mcp_resources_template::uri::MAX_URI;

/// Declares each limit once: its description, type and default.
macro_rules! limits {
    ($($(#[$doc:meta])* pub $name:ident: $type:ty = $default:expr,)+) => {
        /// The limits of one engine. Sizes are in bytes and times in milliseconds, unless a field says otherwise.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $($(#[$doc])* pub $name: $type,)+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl NamedOptions for Limits {
            const EXPECTED: &'static str = "limits by their names";
            const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            fn set(&mut self, name: &str, value: OptionValue) -> Result<(), OptionError> {
                match name {
                    $(stringify!($name) => self.$name = bound(stringify!($name), value)?,)+
                    _ => return Err(OptionError::unknown("limit", name, Self::NAMES)),
                }
                Ok(())
            }
        }
    };
}

limits! {
    /// Longest line on stdio and largest HTTP body. Default 4 MiB.
    pub message: usize = 4 << 20,
    /// Deepest nesting of arrays and objects in one member of `params`, or of `_meta` in it. Default 128.
    pub nesting: usize = 128,
    /// Longest request id, and longest progress token, as written. Default 1 KiB.
    pub id: usize = 1 << 10,
    /// Longest `clientInfo`, as JSON text; a session keeps it. Default 32 KiB.
    pub client_info: usize = 32 << 10,
    /// Most elements of a JSON-RPC batch. Default 256.
    pub batch: usize = 256,
    /// Responses of one batch together, and of all incomplete batches of a connection. A request whose response exceeds
    /// the limit gets an error instead. Default 64 MiB.
    pub batch_bytes: usize = 64 << 20,
    /// Longest URI. Default 64 KiB.
    pub uri: usize = MAX_URI,
    /// Resources in the catalogue. Default 1,000,000.
    pub resources: usize = 1_000_000,
    /// Templates in the catalogue, with templates of other servers and list sources without a template. Default 10,000.
    pub templates: usize = 10_000,
    /// Tools in the catalogue, and prompts in the catalogue, each. Default 10,000.
    pub tools: usize = 10_000,
    /// Most pending requests of one connection; cancelled ones count until their handler returns. Default 1,024.
    pub in_flight: usize = 1_024,
    /// Items on a page of a list. Default 100.
    pub page: usize = 100,
    /// Items that one list call may examine when some are skipped. Default 10,000.
    pub list_scan: usize = 10_000,
    /// Items that a `.list` callback without paging may return. Default 100,000.
    pub list_source: usize = 100_000,
    /// Size of one resource or template of another server that a list passes on, as JSON. Default 64 KiB.
    pub list_item: usize = 64 << 10,
    /// Time for which the result of a `.list` callback without paging is cached, so that a client that pages through it
    /// calls it once. Default 0: it is called for each page. The cached result is dropped when a change of the
    /// catalogue or list is reported; an unreported change becomes visible after this time.
    pub list_ttl: Millis = 0,
    /// Cached results of `.list` callbacks, over all principals. Default 256.
    pub list_cache: usize = 256,
    /// Their size. Default 16 MiB.
    pub list_cache_bytes: usize = 16 << 20,
    /// Results in the read cache, over all principals. Default 10,000.
    pub cache_entries: usize = 10_000,
    /// Their encoded size. Default 64 MiB.
    pub cache_bytes: usize = 64 << 20,
    /// Principals whose rates and requests in flight are counted separately; all others share a count. Default 10,000.
    pub principals: usize = 10_000,
    /// Subscriptions of one connection: `resources/subscribe` and open listens together. Default 10,000.
    pub subscriptions: usize = 10_000,
    /// URIs in the filter of one `subscriptions/listen`. Default 10,000.
    pub filter_uris: usize = 10_000,
    /// URIs watched by all subscriptions of one connection together. Default 100,000.
    pub watched_uris: usize = 100_000,
    /// Bytes of the URIs that all subscriptions of one connection watch, with the client's own spellings. Default 16 MiB.
    pub watched_bytes: usize = 16 << 20,
    /// Bytes of the URIs that all connections watch, counting each URI once, with the clients' own spellings. Default
    /// 256 MiB.
    pub watched_total: usize = 256 << 20,
    /// Contents of one reply before encoding. Default 16 MiB.
    pub contents: usize = 16 << 20,
    /// Contents of all replies being gathered from streaming handlers. Default 256 MiB.
    pub contents_total: usize = 256 << 20,
    /// Above this, a runtime stops reading until the output has drained. Default 1 MiB.
    pub output: usize = 1 << 20,
    /// Characters of text that the tools `list_resources` and `read_resource` return; the text then says how to get the
    /// rest. Default 40,000.
    pub tool_text: usize = 40_000,
    /// A call of a tool, and the request for a prompt, fail with `timeout` after this time. Default 0: never.
    pub call_timeout: Millis = 0,
    /// A read, list or custom call fails with `timeout` after this time. Default 30,000 ms.
    pub read_timeout: Millis = 30_000,
    /// Like `read_timeout`, for `completion/complete`. Default 5,000 ms.
    pub completion_timeout: Millis = 5_000,
    /// The JSON text of a completion's `context.arguments`. Default 64 KiB.
    pub arguments: usize = 64 << 10,
    /// Values of one completion (the protocol allows at most 100). Default 100.
    pub completion_values: usize = 100,
    /// Least time between two update notifications of one URI. Default 50 ms.
    pub coalesce: Millis = 50,
    /// Least time between two progress notifications of one request. Default 50 ms; the first and any
    /// that reaches `total` always go out.
    pub progress_interval: Millis = 50,
    /// Log messages of one request. Default 1,000.
    pub log_messages: usize = 1_000,
    /// Longest `requestState` that is opened, and longest sealed cursor of a `.list` callback. Default 64 KiB.
    pub state: usize = 64 << 10,
    /// Time for which a sealed `requestState` is accepted. Default 600,000 ms.
    pub state_ttl: Millis = 600_000,
    /// Pending server-to-client requests of one legacy connection. Default 64.
    pub asks: usize = 64,
    /// Time for requests in flight to finish after the end of input. Default 1,000 ms.
    pub grace: Millis = 1_000,
    /// Names and values of an HTTP request's headers, together with its target. Default 256 KiB, because `Mcp-Name`
    /// repeats a URI.
    pub head: usize = 256 << 10,
    /// Header lines of an HTTP request. Default 128.
    pub headers: usize = 128,
    /// Open legacy HTTP sessions; further ones are refused. Default 10,000.
    pub sessions: usize = 10_000,
    /// Legacy HTTP sessions of one principal. Without authentication: of one client address (64 bits of an IPv6
    /// address), if the runtime knows it. Beyond the limit `initialize` is answered with 429. Behind a proxy all clients
    /// may have the same address. Default 1,000.
    pub sessions_per_client: usize = 1_000,
    /// A session ends after this time without a request, an open stream or a request in flight. Default 1,800,000 ms.
    pub session_idle: Millis = 1_800_000,
    /// Like `session_idle`, for a session whose client has not sent `notifications/initialized`. Default 60,000 ms.
    pub handshake_timeout: Millis = 60_000,
    /// Event streams that one session keeps: open ones of `GET`, and interrupted or finished ones that a client may
    /// resume. Default 16.
    pub streams: usize = 16,
    /// Bytes of each such stream that are kept for resuming it. Default 1 MiB.
    pub replay: usize = 1 << 20,
    /// An idle HTTP event stream gets a comment after this time, to keep it open. Default 15,000 ms.
    pub keep_alive: Millis = 15_000,
    /// Open HTTP connections; further ones wait in the system's queue. Default 20,000.
    pub connections: usize = 20_000,
    /// Open HTTP connections from one client address (64 bits of an IPv6 address); further ones are closed at once.
    /// Behind a proxy all clients may have the same address. Default 5,000.
    pub connections_per_client: usize = 5_000,
    /// An HTTP connection is closed if the head of a request is incomplete this long after its first byte. The same
    /// limit applies to the first byte after the connection was opened, and to the TLS handshake. Default 10,000 ms.
    pub head_timeout: Millis = 10_000,
    /// An HTTP connection is closed after this time without a further request. Default 60,000 ms.
    pub idle_timeout: Millis = 60_000,
    /// A request whose body is incomplete after this time is answered with 408. Default 30,000 ms.
    pub body_timeout: Millis = 30_000,
    /// Bytes of all partially received HTTP bodies; beyond the limit a body is answered with 503. Default 256 MiB.
    pub bodies_total: usize = 256 << 20,
    /// A client that receives nothing for this time is disconnected, where the system can detect it. Default
    /// 30,000 ms.
    pub write_timeout: Millis = 30_000,
    /// Verified tokens that are cached, by their digests. Default 10,000.
    pub token_cache: usize = 10_000,
    /// Time for which a verified token is accepted without verifying it again. Default 300,000 ms.
    pub token_ttl: Millis = 300_000,
    /// Audit records waiting to be written; when full, the newest is dropped and counted.
    /// Default 10,000.
    pub audit_queue: usize = 10_000,
    /// An HTTP request that takes longer is answered with an event stream, if the client accepts one. Default 1,000 ms.
    pub sse_after: Millis = 1_000,
}

impl Limits {
    /// Sets one limit by the name of its field.
    ///
    /// # Errors
    /// [`OptionError`] if there is no such limit, or `value` is not a whole number in its range.
    ///
    /// # Examples
    /// ```
    /// use mcp_resources_engine::limits::Limits;
    /// let mut limits = Limits::default();
    /// limits.set("page", 50)?;
    /// assert_eq!(limits.page, 50);
    /// let error = limits.set("pages", 50).unwrap_err().to_string();
    /// assert_eq!(error, r#"unexpected limit "pages"; did you mean "page"?"#);
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    pub fn set(&mut self, name: &str, value: impl Into<OptionValue>) -> Result<(), OptionError> {
        NamedOptions::set(self, name, value.into())
    }
}

fn bound<T: FromOption>(name: &'static str, value: OptionValue) -> Result<T, OptionError> {
    let refused = OptionError::limit(&value).under(PathStep::Name(name.into()));
    T::from_option(value).map_err(|_| refused)
}
