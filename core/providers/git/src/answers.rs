//! The parts of an answer: its text as JSON, and a fingerprint of everything that it depends on.

use mcp_resources_engine::error::ReadError;
use serde::Serialize;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The text of a value as JSON.
pub(super) fn json(value: &impl Serialize) -> Result<String, ReadError> {
    serde_json::to_string(value).map_err(|_| ReadError::Failed)
}

/// A hash of everything that contents depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Fingerprint(u64);

impl Fingerprint {
    pub(super) fn from_value(value: impl Hash) -> Self {
        let mut hasher = DefaultHasher::new();
        value.hash(&mut hasher);
        Self(hasher.finish())
    }
}
