//! The interface of document sources.
//!
//! Law: a source reports and never judges: what changed is found by comparing stamps, so a source that reports too much
//! costs time, and one that has lost its place lists everything again.

use std::fmt;

/// The most documents of a source.
pub const DOCUMENTS: usize = 20_000;
/// The largest document, in bytes.
pub const BYTES: u64 = 4 << 20;
/// Why a larger document is not served.
pub const TOO_LARGE: &str = "it is larger than 4 MiB";

/// Documents that are retrieved from.
pub trait DocumentSource: fmt::Debug + Send + Sync + 'static {
    /// All documents that there are now.
    ///
    /// # Errors
    /// [`SourceError`].
    fn list(&self) -> Result<Vec<ListedDocument>, SourceError>;

    /// The text of one document.
    ///
    /// # Errors
    /// [`SourceError`].
    fn fetch(&self, id: &str) -> Result<FetchedDocument, SourceError>;

    /// The changes since `token` was given; [`SourceChanges::All`] if they are not known, as at the first time.
    ///
    /// # Errors
    /// [`SourceError`].
    fn changes_since(&self, token: Option<&str>) -> Result<SourceChanges, SourceError>;

    /// Takes the sentences for the log about everything left out since the last call. Default: none.
    fn take_faults(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A document that a source has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListedDocument {
    /// Its identifier within the source.
    pub id: String,
    /// Its title, if the source has one.
    pub title: Option<String>,
    /// Another stamp is another text.
    pub stamp: String,
    /// When it was last changed: an ISO 8601 time with its zone.
    pub modified: Option<String>,
    /// Its size in bytes, if that is known.
    pub size: Option<u64>,
}

/// The text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedDocument {
    /// The text.
    pub text: String,
    /// Its media type.
    pub mime_type: &'static str,
}

/// The changes of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceChanges {
    /// All documents; any other document is gone.
    All {
        /// The documents.
        documents: Vec<ListedDocument>,
        /// The token for the next call.
        token: Option<String>,
    },
    /// Some documents.
    Some {
        /// Those that are new or may have changed.
        changed: Vec<ListedDocument>,
        /// The ids of removed documents.
        gone: Vec<String>,
        /// The token for the next call.
        token: Option<String>,
    },
}

/// Why a source does not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceError {
    /// There is no such document.
    NotFound,
    /// It does not answer now. The reason is for the log.
    Failed(String),
    /// The document has no text to serve. It is not requested again until it changes. The reason is for the log.
    Unreadable(String),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("there is no such document"),
            Self::Failed(reason) | Self::Unreadable(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for SourceError {}
