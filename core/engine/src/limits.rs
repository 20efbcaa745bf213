//! Every bound of the engine and its hosts, in one place, with its default.
//!
//! Law: whatever grows with what a peer sends or an author yields has a field here, and the error at the
//! bound has a test.

use crate::now::Millis;
use mcp_resources_template::uri::MAX_URI;

/// The bounds of one engine. Sizes are bytes, times are milliseconds unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Longest line on stdio and largest HTTP body. Default 4 MiB.
    pub message: usize,
    /// Deepest nesting of arrays and objects in one member of `params`, or of `_meta` in it. Default 128.
    pub nesting: usize,
    /// Longest request id, and longest progress token, as written. Default 1 KiB.
    pub id: usize,
    /// Longest `clientInfo`, as JSON text; a session keeps it. Default 32 KiB.
    pub client_info: usize,
    /// Most elements of a JSON-RPC batch. Default 256.
    pub batch: usize,
    /// Answers of one batch together, and of all batches of a connection that are not complete. A request whose answer
    /// has no room gets an error instead. Default 64 MiB.
    pub batch_bytes: usize,
    /// Longest URI. Default 64 KiB.
    pub uri: usize,
    /// Resources in the catalogue. Default 1,000,000.
    pub resources: usize,
    /// Templates in the catalogue, with templates of other servers and list sources without a template. Default 10,000.
    pub templates: usize,
    /// Most requests of one connection that wait for an answer, cancelled ones included until their handler
    /// returns. Default 1,024.
    pub in_flight: usize,
    /// Items on a page of a list. Default 100.
    pub page: usize,
    /// Items that one list call may examine when some are skipped. Default 10,000.
    pub list_scan: usize,
    /// Items that a `.list` callback without paging may return. Default 100,000.
    pub list_source: usize,
    /// Bytes of one resource or template that another server describes and a list passes on, as JSON. Default 64 KiB.
    pub list_item: usize,
    /// How long the answer of a `.list` callback without paging is kept, so that a walk over its pages asks it once.
    /// Default 0: it is asked for each page. What is kept is dropped when the catalogue or the list is told to have changed;
    /// a change that is not told is seen this much later.
    pub list_ttl: Millis,
    /// Kept answers of `.list` callbacks, over all principals. Default 256.
    pub list_cache: usize,
    /// Bytes that they take. Default 16 MiB.
    pub list_cache_bytes: usize,
    /// Results that the read cache keeps, over all principals. Default 10,000.
    pub cache_entries: usize,
    /// Bytes that they take, encoded. Default 64 MiB.
    pub cache_bytes: usize,
    /// Principals whose rates and requests in flight are counted apart; further ones share a count. Default 10,000.
    pub principals: usize,
    /// Subscriptions of one connection: `resources/subscribe` and open listens together (DEC-18). Default 10,000.
    pub subscriptions: usize,
    /// URIs in the filter of one `subscriptions/listen` (DEC-18). Default 10,000.
    pub filter_uris: usize,
    /// URIs that all subscriptions of one connection watch together. Default 100,000.
    pub watched_uris: usize,
    /// Bytes of the URIs that all subscriptions of one connection watch, with the client's own spellings. Default 16 MiB.
    pub watched_bytes: usize,
    /// Bytes of the URIs that all connections watch, a URI that several watch once, with the clients' own spellings.
    /// Default 256 MiB.
    pub watched_total: usize,
    /// Contents of one reply before encoding. Default 16 MiB.
    pub contents: usize,
    /// Contents of all replies being gathered from streaming handlers. Default 256 MiB.
    pub contents_total: usize,
    /// Above this, a host stops reading until the output has drained. Default 1 MiB.
    pub output: usize,
    /// A read, list or foreign call that is unanswered for so long fails with `timeout`. Default 30,000 ms.
    pub read_timeout: Millis,
    /// The same for `completion/complete`. Default 5,000 ms.
    pub completion_timeout: Millis,
    /// The JSON text of a completion's `context.arguments`. Default 64 KiB.
    pub arguments: usize,
    /// Values of one completion (R-108: at most 100). Default 100.
    pub completion_values: usize,
    /// After a URI's update was told, the next one is told this much later at the earliest. Default 50 ms.
    pub coalesce: Millis,
    /// Least time between two progress notifications of one request. Default 50 ms; the first and any
    /// that reaches `total` always go out.
    pub progress_interval: Millis,
    /// Log messages of one request. Default 1,000.
    pub log_messages: usize,
    /// Longest `requestState` that is opened, and longest sealed cursor of a `.list` callback's own. Default 64 KiB.
    pub state: usize,
    /// How long a sealed `requestState` is accepted. Default 600,000 ms.
    pub state_ttl: Millis,
    /// Server-to-client requests of one legacy connection that wait for an answer. Default 64.
    pub asks: usize,
    /// How long what is in flight may still finish after the end of input. Default 1,000 ms.
    pub grace: Millis,
    /// Names and values of an HTTP request's headers together, with its target. Default 256 KiB: `Mcp-Name` repeats a URI.
    pub head: usize,
    /// Header lines of an HTTP request. Default 128.
    pub headers: usize,
    /// Open legacy HTTP sessions; above it no further one begins. Default 10,000.
    pub sessions: usize,
    /// Legacy HTTP sessions of one principal; where no tokens are asked for, of one client address (64 bits of an IPv6
    /// address) if the host knows it. Above it `initialize` is answered with 429. Behind a proxy all clients may have one
    /// address. Default 1,000.
    pub sessions_per_client: usize,
    /// After so long without a request, an open stream or a request in flight a session ends. Default 1,800,000 ms.
    pub session_idle: Millis,
    /// The same for a session whose client has not sent `notifications/initialized`. Default 60,000 ms.
    pub handshake_timeout: Millis,
    /// Streams of events that one session keeps: open ones of `GET`, and such as were broken off or are over, which a
    /// client may resume. Default 16.
    pub streams: usize,
    /// What is kept of each such stream to be sent again. Default 1 MiB.
    pub replay: usize,
    /// An HTTP stream of events on which nothing was sent for so long gets a comment. Default 15,000 ms.
    pub keep_alive: Millis,
    /// Open HTTP connections; further ones wait in the system's queue. Default 20,000.
    pub connections: usize,
    /// Open HTTP connections from one client address (64 bits of an IPv6 address); further ones are closed at once. Behind a
    /// proxy all clients may have one address. Default 5,000.
    pub connections_per_client: usize,
    /// An HTTP connection on which the head of a request is not complete so long after its first byte is closed; also one
    /// that sends nothing at all for so long after it was opened, or does not finish the handshake of TLS.
    /// Default 10,000 ms.
    pub head_timeout: Millis,
    /// An HTTP connection that has had its answer and sends no further request for so long is closed. Default 60,000 ms.
    pub idle_timeout: Millis,
    /// The body of an HTTP request that is not complete after so long is answered with 408. Default 30,000 ms.
    pub body_timeout: Millis,
    /// Bytes of all HTTP bodies that have come in part and wait for their rest; above it a body is answered with 503.
    /// Default 256 MiB.
    pub bodies_total: usize,
    /// A client that takes nothing for so long of what is sent to it is gone (R-214; where the system can say so).
    /// Default 30,000 ms.
    pub write_timeout: Millis,
    /// Verified tokens that are kept, by their digests. Default 10,000.
    pub token_cache: usize,
    /// How long a verified token is believed at most without asking again. Default 300,000 ms.
    pub token_ttl: Millis,
    /// Records of requests that wait for whoever takes them; above it the newest is dropped, and counted (S-19).
    /// Default 10,000.
    pub audit_queue: usize,
    /// An HTTP request that is unanswered for so long gets a stream of events, if the client takes one. Default 1,000 ms.
    pub sse_after: Millis,
}

impl Limits {
    const DEFAULT: Self = Self {
        message: 4 << 20,
        nesting: 128,
        id: 1 << 10,
        client_info: 32 << 10,
        batch: 256,
        batch_bytes: 64 << 20,
        uri: MAX_URI,
        resources: 1_000_000,
        templates: 10_000,
        in_flight: 1_024,
        page: 100,
        list_scan: 10_000,
        list_source: 100_000,
        list_item: 64 << 10,
        list_ttl: 0,
        list_cache: 256,
        list_cache_bytes: 16 << 20,
        cache_entries: 10_000,
        cache_bytes: 64 << 20,
        principals: 10_000,
        subscriptions: 10_000,
        filter_uris: 10_000,
        watched_uris: 100_000,
        watched_bytes: 16 << 20,
        watched_total: 256 << 20,
        contents: 16 << 20,
        contents_total: 256 << 20,
        output: 1 << 20,
        read_timeout: 30_000,
        completion_timeout: 5_000,
        arguments: 64 << 10,
        completion_values: 100,
        coalesce: 50,
        progress_interval: 50,
        log_messages: 1_000,
        state: 64 << 10,
        state_ttl: 600_000,
        asks: 64,
        grace: 1_000,
        head: 256 << 10,
        headers: 128,
        sessions: 10_000,
        sessions_per_client: 1_000,
        session_idle: 1_800_000,
        handshake_timeout: 60_000,
        streams: 16,
        replay: 1 << 20,
        keep_alive: 15_000,
        connections: 20_000,
        connections_per_client: 5_000,
        head_timeout: 10_000,
        idle_timeout: 60_000,
        body_timeout: 30_000,
        bodies_total: 256 << 20,
        write_timeout: 30_000,
        token_cache: 10_000,
        token_ttl: 300_000,
        audit_queue: 10_000,
        sse_after: 1_000,
    };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
