//! The interface of an open database, and why it does not answer.

use super::catalog::{CatalogRow, DbCatalog};
use super::query::DbQuery;
use mcp_resources_engine::connection::Cancelled;
use mcp_resources_engine::error::ReadError;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time for one query.
pub(super) const TIME: Duration = Duration::from_secs(10);
/// Maximum size of one value, and of one answer, of a database, in bytes.
pub(super) const LARGEST: u64 = 64 << 20;

/// The reason why a query failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SessionFault {
    /// There is no such row.
    NotFound,
    /// The client's value for this variable has a wrong form.
    Parameter { name: String, expected: &'static str },
    /// The database refuses a value: one of a client's, or one that a statement computes. The text is for the log.
    Data(String),
    /// It took too long.
    Time,
    /// It is larger than this many bytes.
    Size(u64),
    /// The database cannot be reached, or refuses. The text is for the log and has no password.
    Down(String),
    /// The same, because the server takes neither the user nor the password, or has no database of this name.
    Refused(String),
    /// The same, because the schema has changed; it will be read again.
    Stale(String),
}

impl SessionFault {
    pub(super) fn parameter(name: impl Into<String>, expected: &'static str) -> Self {
        Self::Parameter { name: name.into(), expected }
    }

    /// The error for the client; details go to `log`.
    pub(super) fn answer(self, log: &dyn Fn(&str)) -> ReadError {
        match self {
            Self::NotFound => ReadError::NotFound,
            Self::Parameter { name, expected } => {
                ReadError::InvalidParameter { parameter: name, expected: expected.into() }
            }
            Self::Time => ReadError::Timeout { after: u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX) },
            Self::Size(limit) => ReadError::SizeExceeded { limit, size: None },
            Self::Data(what) | Self::Down(what) | Self::Refused(what) | Self::Stale(what) => {
                log(&what);
                ReadError::Failed
            }
        }
    }
}

impl From<ReadError> for SessionFault {
    /// The only error of `Responder::facts` is about size.
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::SizeExceeded { limit, .. } => Self::Size(limit),
            _ => Self::NotFound,
        }
    }
}

/// The outcome of a check for changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DbChange {
    Nothing,
    /// Something: compare all watched resources.
    Something,
    /// Notifications may have been lost: report all watched resources.
    Lost,
}

/// Receives a row; `false` stops the query.
pub(super) type Visit<'v> = dyn FnMut(CatalogRow) -> Result<bool, SessionFault> + 'v;

/// An open database.
pub(super) trait DbSession: Send {
    /// Sets the request that the next queries are for. They end soon after it is cancelled.
    fn attend(&mut self, request: Option<Cancelled>);

    /// The current catalog.
    fn catalog(&mut self) -> Result<Arc<DbCatalog>, SessionFault>;

    /// Runs a query that was built from the catalog of the same request.
    fn run(&mut self, query: &DbQuery<'_>, visit: &mut Visit<'_>) -> Result<(), SessionFault>;

    /// Whether something may have changed since this was called last.
    fn changed(&mut self) -> Result<DbChange, SessionFault>;
}
