//! Custom methods of mounts, and the extensions that they declare in `capabilities.extensions`.
//!
//! Law: a method has one handler and an extension has one value, even if several providers declare it.

use crate::catalog::items::{HandlerId, MountId};
use crate::limits::Limits;
use crate::meta::{self, InvalidMeta};
use crate::resource::RegistrationError;
use crate::version::ProtocolMethod;
use std::sync::Arc;

/// A custom method of a mount.
#[derive(Debug)]
pub struct MethodEntry {
    /// Its name, for example `skills/list`.
    pub method: Arc<str>,
    /// The handler that answers it.
    pub handler: HandlerId,
    /// The mount that it belongs to.
    pub mount: MountId,
}

/// An extension of a mount.
#[derive(Debug)]
pub struct ExtensionEntry {
    /// Its identifier, with a prefix.
    pub id: Arc<str>,
    /// A JSON object on one line.
    pub settings: String,
    /// The mount that it belongs to.
    pub mount: MountId,
}

impl MethodEntry {
    /// Refuses names of methods that the protocol defines.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub(super) fn check(method: &str) -> Result<(), RegistrationError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.');
        if !method.is_empty() && method.bytes().all(is_name) && ProtocolMethod::parse(method).is_none() {
            return Ok(());
        }
        Err(invalid(method, "method", method, "a name that is not a method of the protocol"))
    }
}

impl ExtensionEntry {
    /// Checks an identifier and its settings. Unlike options of the server, a mount may declare one of the protocol's
    /// own extensions.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub(super) fn new(
        mount: MountId,
        id: String,
        settings: &str,
        limits: &Limits,
    ) -> Result<Self, RegistrationError> {
        let is_key = matches!(meta::check_key(&id), Ok(()) | Err(InvalidMeta::Reserved(_)));
        if !id.contains('/') || !is_key {
            return Err(invalid(&id, "extensions", &id, "a name with a prefix, such as com.example/feature"));
        }
        match meta::object_text(settings, limits.nesting) {
            Some(settings) => Ok(Self { id: id.into(), settings, mount }),
            None => Err(invalid(&id, "settings", settings, "a JSON object")),
        }
    }
}

fn invalid(of: &str, field: &str, value: &str, expected: &str) -> RegistrationError {
    RegistrationError::InvalidField {
        of: of.to_owned(),
        field: field.to_owned(),
        value: value.to_owned(),
        expected: expected.to_owned(),
    }
}
