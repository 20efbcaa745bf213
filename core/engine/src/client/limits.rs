//! Every limit of a client, with its default.

use crate::now::Millis;

/// Limits on the data that a client accepts and keeps. Sizes are in bytes, times in milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Longest message of a server. Default 64 MiB.
    pub message: usize,
    /// Deepest nesting of arrays and objects in a message. Default 128.
    pub nesting: usize,
    /// Longest entry of a list, as JSON. Default 64 KiB.
    pub item: usize,
    /// Most entries of one page that are read; the rest is left out. Default 100,000.
    pub page: usize,
    /// Most pages of one list. Default 10,000.
    pub pages: usize,
    /// Most entries in the contents of one read; the rest is left out. Default 1,000.
    pub contents: usize,
    /// Most calls that wait for an answer or for a connection. Default 10,000.
    pub calls: usize,
    /// Most URIs that are watched. Default 10,000.
    pub watches: usize,
    /// Most changed resources under watched ones that are pending a read. Default 1,000.
    pub descendants: usize,
    /// Most concurrent requests on behalf of watches, such as re-reads. Default 64.
    pub watch_requests: usize,
    /// Minimum time between two reads of a watched URI. Default 50 ms.
    pub coalesce: Millis,
    /// Time-out of a request, unless its caller sets another. Default 30,000 ms.
    pub timeout: Millis,
    /// Time without an answer to `server/discover` after which the older handshake is tried too. Default 5,000 ms.
    pub discover: Millis,
    /// Longest pause between two attempts to connect. Default 30,000 ms.
    pub backoff: Millis,
    /// Most rounds of input for one read. Default 10.
    pub rounds: usize,
    /// Most pending questions of the server. Default 64.
    pub questions: usize,
    /// Time-out for the answer to a question. Default 300,000 ms.
    pub question_timeout: Millis,
    /// Most cached results. Default 1,000.
    pub cache_entries: usize,
    /// Most bytes of cached results. Default 64 MiB.
    pub cache_bytes: usize,
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            message: 64 << 20,
            nesting: 128,
            item: 64 << 10,
            page: 100_000,
            pages: 10_000,
            contents: 1_000,
            calls: 10_000,
            watches: 10_000,
            descendants: 1_000,
            watch_requests: 64,
            coalesce: 50,
            timeout: 30_000,
            discover: 5_000,
            backoff: 30_000,
            rounds: 10,
            questions: 64,
            question_timeout: 300_000,
            cache_entries: 1_000,
            cache_bytes: 64 << 20,
        }
    }
}
