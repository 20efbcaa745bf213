//! Messages about a configuration, for the log of a program.

use crate::secrets::masked;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A message about a configuration, which has no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigMessage<'m> {
    /// Something has happened as it should.
    Note(&'m str),
    /// The server serves, but perhaps not as it was meant.
    Warning(&'m str),
    /// A changed file could not be used; what was in force before stays so.
    Error(&'m str),
}

/// The function that gets messages. It may be called on any thread.
pub type ConfigLog = Arc<dyn Fn(ConfigMessage<'_>) + Send + Sync>;

/// A configuration that cannot be served: one sentence with the file, the key and the remedy, and without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigFileError(String);

impl ConfigFileError {
    /// The error with this sentence, whose secrets are masked.
    pub(crate) fn new(reason: &str) -> Self {
        Self(masked(reason))
    }
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for ConfigFileError {}

/// A log that forgets.
#[cfg(test)]
pub(crate) fn quiet() -> ConfigLog {
    Arc::new(|_| {})
}
