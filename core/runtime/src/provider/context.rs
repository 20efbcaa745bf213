//! The questions and reports of code that works for a request of any kind.

use super::feed::Feed;
use super::request::ProviderRequester;
use super::responder::{IntoAnswer, Responder};
use mcp_resources_engine::error::ReadError;
use std::fmt;

/// The request that is being answered, without the right to answer it: what its principal may see, whether it is cancelled,
/// how large its answer may be, and the log. Requests make it: see [`Read::context`](super::Read::context). A thread that
/// looks for changes has one too: see [`Feed::context`].
#[derive(Clone, Copy)]
pub struct RequestContext<'r> {
    /// `None`: everything may be seen.
    asker: Option<&'r ProviderRequester>,
    work: Option<&'r dyn ContextWork>,
    is_quiet: bool,
    is_over: Option<&'r dyn Fn() -> bool>,
}

/// Something that may be given up, and that has a log.
trait ContextWork {
    fn is_cancelled(&self) -> bool;
    fn most_bytes(&self) -> u64;
    fn log(&self, what: &str);
}

impl<'r> RequestContext<'r> {
    /// A context that permits everything, is never cancelled and logs nothing: for tests.
    pub fn detached() -> Self {
        Self { asker: None, work: None, is_quiet: true, is_over: None }
    }

    pub(super) fn new<T: IntoAnswer>(asker: &'r ProviderRequester, reply: &'r Responder<T>) -> Self {
        Self { asker: Some(asker), work: Some(reply), is_quiet: false, is_over: None }
    }

    /// The same without a log, for work that is repeated often.
    #[must_use]
    pub fn quiet(self) -> Self {
        Self { is_quiet: true, ..self }
    }

    /// The same, which also counts as cancelled once `is_over` says so.
    #[must_use]
    pub fn until(self, is_over: &'r dyn Fn() -> bool) -> Self {
        Self { is_over: Some(is_over), ..self }
    }

    /// Whether the principal may see `uri`, in any spelling. Check each URI, path or row before including it in contents.
    pub fn permits(&self, uri: &str) -> bool {
        self.asker.is_none_or(|asker| asker.permits(uri))
    }

    /// Whether the answer is no longer needed.
    pub fn is_cancelled(&self) -> bool {
        self.work.is_some_and(ContextWork::is_cancelled) || self.is_over.is_some_and(|is_over| is_over())
    }

    /// Announces the size of contents in bytes. Call it before producing them. Only answers of reads have a limit.
    ///
    /// # Errors
    /// [`ReadError::SizeExceeded`] if the answer would be too large.
    pub fn facts(&self, size: u64) -> Result<(), ReadError> {
        let limit = self.most_bytes();
        if size > limit { Err(ReadError::SizeExceeded { limit, size: Some(size) }) } else { Ok(()) }
    }

    /// The largest size of contents in bytes: what [`facts`](Self::facts) compares with.
    pub fn most_bytes(&self) -> u64 {
        self.work.map_or(u64::MAX, ContextWork::most_bytes)
    }

    /// Writes a problem to the server's log, under the name of the mount. Clients do not see it.
    pub fn log(&self, what: &str) {
        if let Some(work) = self.work.filter(|_| !self.is_quiet) {
            work.log(what);
        }
    }
}

impl<T: IntoAnswer> ContextWork for Responder<T> {
    fn is_cancelled(&self) -> bool {
        Self::is_cancelled(self)
    }

    fn most_bytes(&self) -> u64 {
        if T::IS_CONTENTS { Self::most_bytes(self) } else { u64::MAX }
    }

    fn log(&self, what: &str) {
        Self::log(self, what);
    }
}

impl ContextWork for Feed {
    fn is_cancelled(&self) -> bool {
        !self.is_alive()
    }

    fn most_bytes(&self) -> u64 {
        u64::MAX
    }

    fn log(&self, what: &str) {
        Self::log(self, what);
    }
}

impl Feed {
    /// The context of a thread that looks for changes: everything may be seen, and the work is to be given up when the mount
    /// has ended.
    pub fn context(&self) -> RequestContext<'_> {
        RequestContext { asker: None, work: Some(self), is_quiet: false, is_over: None }
    }
}

impl fmt::Debug for RequestContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestContext").field("is_cancelled", &self.is_cancelled()).finish_non_exhaustive()
    }
}
