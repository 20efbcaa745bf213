//! Every limit of a client, with its default.

use crate::now::Millis;

/// What a client accepts from a server, and how much it keeps. Sizes are bytes, times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientLimits {
    /// Longest message of a server. Default 64 MiB.
    pub message: usize,
    /// Deepest nesting of arrays and objects in a message. Default 128.
    pub nesting: usize,
    /// Longest entry of a list, as JSON. Default 64 KiB.
    pub item: usize,
    /// Most entries of one page that are looked at; the rest is left out. Default 100,000.
    pub page: usize,
    /// Most pages of one list. Default 10,000.
    pub pages: usize,
    /// Most entries of the contents of one read that are looked at; the rest is left out. Default 1,000.
    pub contents: usize,
    /// Most calls that wait for an answer or for a connection. Default 10,000.
    pub calls: usize,
    /// Most URIs that are watched. Default 10,000.
    pub watches: usize,
    /// Most resources beneath watched ones that wait to be read. Default 1,000.
    pub beneath: usize,
    /// Most requests for the sake of watches, such as re-reads, that wait for an answer at once. Default 64.
    pub watch_requests: usize,
    /// After a watched URI was read, it is read again this much later at the earliest. Default 50 ms.
    pub coalesce: Millis,
    /// How long a request may take, unless its caller says otherwise. Default 30,000 ms.
    pub timeout: Millis,
    /// How long `server/discover` may be unanswered before the older handshake is tried too. Default 5,000 ms.
    pub discover: Millis,
    /// Longest pause between two attempts to connect. Default 30,000 ms.
    pub backoff: Millis,
    /// Most rounds of input that one read may ask for. Default 10.
    pub rounds: usize,
    /// Most questions of the server that wait for an answer. Default 64.
    pub questions: usize,
    /// How long a question may wait for its answer. Default 300,000 ms.
    pub question_timeout: Millis,
    /// Most results that are kept for their `ttlMs`. Default 1,000.
    pub cache_entries: usize,
    /// Bytes that they take. Default 64 MiB.
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
            beneath: 1_000,
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
