//! Options of the results provider, and of a single result.

use mcp_resources_engine::option::OptionError;
use mcp_resources_provider_kit::option_rows::provider_options;
use mcp_resources_provider_kit::options::MIB;
use std::path::Path;
use std::time::Duration;

provider_options! {
    /// The options of [`Results`](super::Results).
    ///
    /// ```
    /// use mcp_resources_provider_db::results::{ResultOptions, Results};
    /// let results = Results::new(ResultOptions::new().scheme("wallbounce").entries(100))?;
    /// # Ok::<(), mcp_resources_engine::option::OptionError>(())
    /// ```
    #[derive(Clone, Debug)]
    pub struct ResultOptions: "a scheme or an object of options", or scheme: Text or nothing {
        /// The scheme of the URIs `SCHEME:///ID`.
        scheme: text("text") = "results";
        /// The maximum number of results; a new one replaces the least recently used.
        entries: count = 1_000;
        /// The maximum size of the contents of all results.
        bytes: size = 64 * MIB;
        /// The time for which a result is kept if it is put without one of its own.
        ttl: time = Duration::from_secs(3_600);
        /// The path of an SQLite file that keeps the results; it is created if it does not exist. Default: results are in
        /// memory.
        file: file = None;
    }
}

/// The limits of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultLimits {
    pub(super) entries: usize,
    /// Of all contents together.
    pub(super) bytes: u64,
}

impl ResultOptions {
    pub(super) fn limits(&self) -> ResultLimits {
        ResultLimits { entries: self.entries, bytes: self.bytes }
    }

    /// Takes a relative path of the file as beginning at `folder`.
    #[must_use]
    pub fn at(mut self, folder: &Path) -> Self {
        self.file = self.file.map(|file| folder.join(file));
        self
    }

    /// Refuses what no cache can be.
    pub(super) fn check(&self) -> Result<(), OptionError> {
        let is_scheme = self.scheme.starts_with(|first: char| first.is_ascii_lowercase())
            && self.scheme.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '+' | '-' | '.'));
        if !is_scheme {
            return Err(OptionError::sentence(format!(
                "results: {:?} is no scheme; use small letters, digits, `+`, `-` and `.`, with a letter first",
                self.scheme
            )));
        }
        for (name, is_nothing) in
            [("entries", self.entries == 0), ("bytes", self.bytes == 0), ("ttl", self.ttl.is_zero())]
        {
            if is_nothing {
                return Err(OptionError::sentence(format!(
                    "results: {name} is 0, so nothing could be kept; give a larger one"
                )));
            }
        }
        Ok(())
    }
}

provider_options! {
    /// The options of one result: see [`Results::put`](super::Results::put).
    #[derive(Clone, Debug)]
    pub struct PutOptions: "an object of options" {
        /// The time for which the result is kept. Default: the `ttl` of the cache.
        ttl: some_time = None;
        /// The media type. Default: `text/plain` for a text, `application/octet-stream` for bytes.
        mime_type: some_text("text") = None;
        /// The only client that sees the result: the subject of its token, or the empty text for the client on stdio. Default:
        /// all clients.
        principal: some_text("text") = None;
    }
}

impl PutOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}
