//! Every limit of the engine and its runtimes, in one place, with its default.
//!
//! Law: everything that grows with the input of a peer or the output of a handler has a limit here, and a test of the
//! error at the limit.

use crate::now::Millis;
use crate::option::{FromOption, NamedOptions, OptionError, OptionValue, PathStep};
use mcp_resources_template::uri::MAX_URI;

/// One limit as data.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct LimitRow {
    /// Its name.
    pub name: &'static str,
    /// Its default, in the unit that the description names.
    pub default: String,
    /// Its description.
    pub about: &'static str,
}

/// Declares each limit once: its description, type and default.
macro_rules! limits {
    ($($(#[doc = $doc:literal])+ pub $name:ident: $type:ty = $default:expr,)+) => {
        /// The limits of one engine. Sizes are in bytes and times in milliseconds, unless a field says otherwise.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Limits {
            $(
                $(#[doc = $doc])+
                #[doc = concat!(" Default: `", stringify!($default), "`.")]
                pub $name: $type,
            )+
        }

        impl Limits {
            /// The limits as data: for the interfaces of other languages.
            #[doc(hidden)]
            pub fn table() -> Vec<LimitRow> {
                let limits = Self::default();
                vec![$(LimitRow {
                    name: stringify!($name),
                    default: limits.$name.to_string(),
                    about: concat!($($doc),+).trim_ascii_start(),
                }),+]
            }
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
    /// The longest line on stdio and the largest HTTP body, in bytes.
    pub message: usize = 4 << 20,
    /// The deepest nesting of arrays and objects in one member of `params` or of its `_meta`.
    pub nesting: usize = 128,
    /// The longest request id or progress token, in bytes as written.
    pub id: usize = 1 << 10,
    /// The longest `clientInfo`, in bytes of JSON text. A session keeps it.
    pub client_info: usize = 32 << 10,
    /// The most elements of a JSON-RPC batch.
    pub batch: usize = 256,
    /// The responses of one batch together, and of all incomplete batches of one connection, in bytes. A request
    /// whose response exceeds the limit gets an error instead.
    pub batch_bytes: usize = 64 << 20,
    /// The longest URI, in bytes.
    pub uri: usize = MAX_URI,
    /// The most registered resources.
    pub resources: usize = 1_000_000,
    /// The most registered templates, with those of other servers and list sources without a template.
    pub templates: usize = 10_000,
    /// The most registered tools, and the most registered prompts.
    pub tools: usize = 10_000,
    /// The most unanswered requests of one connection; cancelled ones count until their handler returns. Python and
    /// Node allow at most 1,048,576.
    pub in_flight: usize = 1_024,
    /// The items on one page of a list.
    pub page: usize = 100,
    /// The most items that one page of a list may examine when some are skipped.
    pub list_scan: usize = 10_000,
    /// The most items that a lister without paging may return.
    pub list_source: usize = 100_000,
    /// The longest entry of a list that another server describes and a provider passes on, in bytes of JSON text.
    pub list_item: usize = 64 << 10,
    /// The time for which the items of a lister without paging are reused for further pages, in milliseconds; with 0
    /// each page calls the lister. A reported change drops the items; an unreported one becomes visible after this
    /// time.
    pub list_ttl: Millis = 0,
    /// The most results of listers that are kept for `list_ttl`, over all principals.
    pub list_cache: usize = 256,
    /// The results of listers that are kept for `list_ttl`, in bytes.
    pub list_cache_bytes: usize = 16 << 20,
    /// The most results in the read cache (option `cache`), over all principals.
    pub cache_entries: usize = 10_000,
    /// The encoded results in the read cache, in bytes.
    pub cache_bytes: usize = 64 << 20,
    /// The most answers of functions about access that are kept, over all principals.
    pub access_answers: usize = 100_000,
    /// The time after which a function about access is asked again, in milliseconds; with 0 each request asks. A person
    /// who loses access may read, and is notified, for this long, unless `regrant` is called.
    pub access_ttl: Millis = 30_000,
    /// The most questions that a function about access gets at once.
    pub access_batch: usize = 1_000,
    /// The most principals whose rates and open requests are counted separately; all others share a count.
    pub principals: usize = 10_000,
    /// The most subscriptions of one connection: `resources/subscribe` and open listens together.
    pub subscriptions: usize = 10_000,
    /// The most URIs of one `subscriptions/listen`.
    pub filter_uris: usize = 10_000,
    /// The most URIs in all subscriptions and listens of one connection.
    pub watched_uris: usize = 100_000,
    /// The URIs that one connection watches, with the client's own spellings, in bytes.
    pub watched_bytes: usize = 16 << 20,
    /// The URIs that all connections watch, each counted once, with the clients' own spellings, in bytes.
    pub watched_total: usize = 256 << 20,
    /// The largest contents of one read, in bytes before encoding.
    pub contents: usize = 16 << 20,
    /// The contents of all reads that are being collected from generators and streams, in bytes.
    pub contents_total: usize = 256 << 20,
    /// The unsent output of one client, in bytes, above which no further request of it is read or started.
    pub output: usize = 1 << 20,
    /// The most characters of text that the tools of `expose_as_tools` return at once; the text then says how to get
    /// the rest.
    pub tool_text: usize = 40_000,
    /// The longest time for a tool or prompt, in milliseconds; 0 for any time.
    pub call_timeout: Millis = 0,
    /// The longest time for a read, a list or a custom method, in milliseconds.
    pub read_timeout: Millis = 30_000,
    /// The longest time for a completion, in milliseconds.
    pub completion_timeout: Millis = 5_000,
    /// The longest `context.arguments` of a completion, in bytes of JSON text.
    pub arguments: usize = 64 << 10,
    /// The most values of one completion; further ones are cut off. The protocol allows 100.
    pub completion_values: usize = 100,
    /// The shortest time between two notifications about one URI, in milliseconds.
    pub coalesce: Millis = 50,
    /// The shortest time between two progress notifications of one request, in milliseconds. The first one, and any
    /// that reaches `total`, are always sent.
    pub progress_interval: Millis = 50,
    /// The most log messages of one request.
    pub log_messages: usize = 1_000,
    /// The longest request state or cursor that a client may send back, in bytes.
    pub state: usize = 64 << 10,
    /// The time for which a request state is valid, in milliseconds.
    pub state_ttl: Millis = 600_000,
    /// The most unanswered `ctx.ask` of one connection; a further one fails.
    pub asks: usize = 64,
    /// The time for open requests to finish after a shutdown begins, in milliseconds.
    pub grace: Millis = 1_000,
    /// The request line and headers of an HTTP request together, in bytes. One header repeats the URI.
    pub head: usize = 256 << 10,
    /// The most header lines of an HTTP request.
    pub headers: usize = 128,
    /// The most open HTTP sessions; further ones are refused.
    pub sessions: usize = 10_000,
    /// The most HTTP sessions of one principal or, without tokens, of one client address (64 bits of an IPv6
    /// address); `initialize` is then answered with 429. Behind a proxy all clients may have the same address.
    pub sessions_per_client: usize = 1_000,
    /// The time for which an unused HTTP session is kept, in milliseconds.
    pub session_idle: Millis = 1_800_000,
    /// The longest time that a new HTTP session waits for `notifications/initialized`, in milliseconds.
    pub handshake_timeout: Millis = 60_000,
    /// The most event streams that one HTTP session keeps for resumption.
    pub streams: usize = 16,
    /// The events of one stream that are kept for resumption, in bytes.
    pub replay: usize = 1 << 20,
    /// The time after which an idle event stream gets a comment, in milliseconds.
    pub keep_alive: Millis = 15_000,
    /// The most open HTTP connections; further ones wait in the system's queue.
    pub connections: usize = 20_000,
    /// The most open HTTP connections from one client address (64 bits of an IPv6 address), where `run` serves;
    /// further ones are closed at once. Behind a proxy all clients may have the same address.
    pub connections_per_client: usize = 5_000,
    /// The longest time for the head of an HTTP request, in milliseconds from the first byte or, for the first
    /// request, from the start of the connection. It applies to the TLS handshake too.
    pub head_timeout: Millis = 10_000,
    /// The longest time that an idle HTTP connection stays open, in milliseconds.
    pub idle_timeout: Millis = 60_000,
    /// The longest time for the body of an HTTP request, in milliseconds; the request is then answered with 408.
    pub body_timeout: Millis = 30_000,
    /// All HTTP request bodies that are still incomplete, in bytes; a further one is answered with 503.
    pub bodies_total: usize = 256 << 20,
    /// The longest time that a client may accept no data before its connection is closed, in milliseconds.
    pub write_timeout: Millis = 30_000,
    /// The most verified tokens in the cache, by their digests.
    pub token_cache: usize = 10_000,
    /// The longest time before a token is verified again, in milliseconds.
    pub token_ttl: Millis = 300_000,
    /// The most audit records that wait to be written; a further one is dropped and counted.
    pub audit_queue: usize = 10_000,
    /// The time after which an HTTP request without an answer gets an event stream, if the client accepts one, in
    /// milliseconds.
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
