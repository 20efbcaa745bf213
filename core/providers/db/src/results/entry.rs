//! One result: its name, its contents and its lifetime.

use mcp_resources_engine::connection::{Contents, ReadResult};
use mcp_resources_engine::resource::{CacheHint, CacheScope};
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The contents of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A text.
    Text(Arc<str>),
    /// Bytes.
    Blob(Arc<[u8]>),
}

/// A stored result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultEntry {
    /// Its contents.
    pub content: Content,
    /// Its media type, if one was given.
    pub mime_type: Option<Arc<str>>,
    /// The time of storing, in milliseconds since 1970.
    pub created: u64,
    /// When it expires, in milliseconds since 1970.
    pub expires: u64,
}

/// Identifies a result: its id as in URIs before percent-encoding, and the principal that it is for, unless it is for
/// everybody.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ResultKey {
    pub(super) id: Arc<str>,
    pub(super) principal: Audience,
}

/// The principal that a result is for; none if it is for everybody.
pub(super) type Audience = Option<Arc<str>>;

/// The entry of a result in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) id: Arc<str>,
    pub(super) size: u64,
    pub(super) mime_type: Option<Arc<str>>,
    pub(super) created: u64,
    pub(super) expires: u64,
}

/// The reason why a result cannot be stored or returned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResultsError {
    /// An id is empty or longer than 1,024 bytes, or a time is 0.
    Invalid(String),
    /// The contents alone are larger than the whole cache may be.
    TooLarge {
        /// The id.
        id: String,
        /// The size of the contents, in bytes.
        size: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The file cannot be read or written.
    File(String),
}

/// Why [`Results::get_or_compute`](super::Results::get_or_compute) has no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ComputeError {
    /// The result cannot be stored or returned.
    Results(ResultsError),
    /// The computation failed. Every caller that waited for it gets the same error.
    Failed(Arc<dyn Error + Send + Sync>),
}

impl Content {
    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.bytes().len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Blob(bytes) => bytes,
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        Self::Blob(bytes.into())
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Blob(bytes.into())
    }
}

impl ResultEntry {
    /// The answer to a read at `now`: private, and to be kept by the client for the time that remains.
    pub(super) fn answer(self, now: u64) -> ReadResult<'static> {
        let contents = match self.content {
            Content::Text(text) => Contents::shared_text(text),
            Content::Blob(bytes) => Contents::shared_blob(bytes),
        };
        let contents = match &self.mime_type {
            Some(mime_type) => contents.with_mime_type(mime_type.to_string()),
            None => contents,
        };
        let ttl_ms = self.expires.saturating_sub(now);
        ReadResult { contents: vec![contents], cache: Some(CacheHint { ttl_ms, scope: CacheScope::Private }) }
    }

    pub(super) fn summary(&self, id: &Arc<str>) -> Summary {
        Summary {
            id: id.clone(),
            size: self.content.len() as u64,
            mime_type: self.mime_type.clone(),
            created: self.created,
            expires: self.expires,
        }
    }
}

impl fmt::Display for ResultsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(what) | Self::File(what) => f.write_str(what),
            Self::TooLarge { id, size, limit } => write!(
                f,
                "the result {id:?} has {size} bytes, and the cache holds {limit}; set `bytes` to more, or put less"
            ),
        }
    }
}

impl Error for ResultsError {}

impl fmt::Display for ComputeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Results(error) => error.fmt(f),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl Error for ComputeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Results(error) => Some(error),
            Self::Failed(error) => Some(&**error),
        }
    }
}

impl From<ResultsError> for ComputeError {
    fn from(error: ResultsError) -> Self {
        Self::Results(error)
    }
}

/// The time, in milliseconds since 1970. Not a monotonic clock, because the contents of a file outlive the process.
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    millis(since)
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
