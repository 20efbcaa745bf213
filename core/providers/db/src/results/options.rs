//! Options of the results provider, and of a single result.

use mcp_resources_engine::option::{FromOption, OptionError, OptionValue, set_all};
use mcp_resources_provider_kit::options::{Size, TimeSpan, option_table};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The options of [`Results`](super::Results).
///
/// ```
/// use mcp_resources_provider_db::results::{ResultOptions, Results};
/// let results = Results::new(ResultOptions::new().scheme("wallbounce").entries(100))?;
/// # Ok::<(), mcp_resources_engine::option::OptionError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ResultOptions {
    pub(super) scheme: String,
    pub(super) limits: ResultLimits,
    pub(super) ttl: Duration,
    pub(super) file: Option<PathBuf>,
}

/// The limits of a cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResultLimits {
    pub(super) entries: usize,
    /// Of all contents together.
    pub(super) bytes: u64,
}

#[expect(
    clippy::new_without_default,
    reason = "what has a default is read from an object alone, and this from a text too"
)]
impl ResultOptions {
    /// In memory, at `results:///`: 1,000 results, 64 MiB, an hour for each.
    pub fn new() -> Self {
        Self {
            scheme: "results".into(),
            limits: ResultLimits { entries: 1_000, bytes: 64 << 20 },
            ttl: Duration::from_secs(3_600),
            file: None,
        }
    }
}

impl ResultOptions {
    /// Serves the results as `SCHEME:///ID`. Default: `results`.
    #[must_use]
    pub fn scheme(mut self, scheme: impl Into<String>) -> Self {
        self.scheme = scheme.into();
        self
    }

    /// Sets the maximum number of results; the least recently used one is removed to make room. Default: 1,000.
    #[must_use]
    pub fn entries(mut self, entries: usize) -> Self {
        self.limits.entries = entries;
        self
    }

    /// Sets the maximum size of all contents in bytes. Default: 64 MiB.
    #[must_use]
    pub fn bytes(mut self, bytes: u64) -> Self {
        self.limits.bytes = bytes;
        self
    }

    /// Sets how long a result without a time of its own is kept. Default: an hour.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Keeps the results in this SQLite file, which is made if it is not there. Default: in memory.
    #[must_use]
    pub fn file(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
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
        for (name, is_nothing) in [
            ("entries", self.limits.entries == 0),
            ("bytes", self.limits.bytes == 0),
            ("ttl", self.ttl.is_zero()),
        ] {
            if is_nothing {
                return Err(OptionError::sentence(format!(
                    "results: {name} is 0, so nothing could be kept; give a larger one"
                )));
            }
        }
        Ok(())
    }
}

option_table!(ResultOptions, "a scheme or an object of options" {
    "scheme": "a text", Some("results"),
        "The results are served as SCHEME:///ID." =>
        |own, value| { own.scheme = String::from_option(value)?; Ok(()) };
    "entries": "a whole number", Some("1000"),
        "The maximum number of results; a new one replaces the least recently used." =>
        |own, value| { own.limits.entries = usize::from_option(value)?; Ok(()) };
    "bytes": "a size", Some("64 MiB"),
        "The maximum size of the contents of all results." =>
        |own, value| { own.limits.bytes = Size::from_option(value)?.0; Ok(()) };
    "ttl": "a time", Some("1h"),
        "How long a result is kept if it is put without a time of its own." =>
        |own, value| { own.ttl = TimeSpan::from_option(value)?.0; Ok(()) };
    "file": "a file", Some("null"),
        "Keeps the results in this SQLite file, which is created if it does not exist. Without it, they are in memory." =>
        |own, value| { own.file = Option::<String>::from_option(value)?.map(PathBuf::from); Ok(()) };
});

impl FromOption for ResultOptions {
    const EXPECTED: &'static str = "a scheme or an object of options";

    fn from_option(value: OptionValue) -> Result<Self, OptionError> {
        let mut options = Self::new();
        match value {
            OptionValue::None => {}
            OptionValue::Text(scheme) => options.scheme = scheme,
            OptionValue::Members(_) => set_all(&mut options, value)?,
            other => return Err(OptionError::wrong_type(&other, <Self as FromOption>::EXPECTED)),
        }
        Ok(options)
    }
}

/// The options of one result: see [`Results::put`](super::Results::put).
#[derive(Clone, Debug, Default)]
pub struct PutOptions {
    pub(super) ttl: Option<Duration>,
    pub(super) mime_type: Option<String>,
    pub(super) principal: Option<String>,
}

impl PutOptions {
    /// The default: for everybody, with the cache's time.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how long it is kept. Default: the `ttl` of the cache.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Its media type. Default: `text/plain` for a text, `application/octet-stream` for bytes.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }

    /// Only this principal can see it: the subject of its token. The local process on stdio is the empty text. Default:
    /// everybody can.
    #[must_use]
    pub fn principal(mut self, principal: impl Into<String>) -> Self {
        self.principal = Some(principal.into());
        self
    }
}

option_table!(PutOptions, "an object of options" {
    "ttl": "a time", Some("null"), "How long it is kept." =>
        |own, value| { own.ttl = Option::<TimeSpan>::from_option(value)?.map(|span| span.0); Ok(()) };
    "mime_type": "a text", Some("null"), "Its media type." =>
        |own, value| { own.mime_type = FromOption::from_option(value)?; Ok(()) };
    "principal": "a text", Some("null"), "Only this principal can see it." =>
        |own, value| { own.principal = FromOption::from_option(value)?; Ok(()) };
});
