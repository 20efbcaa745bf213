//! Custom methods of mounts, and the extensions that they declare in `capabilities.extensions`.
//!
//! Law: a method has one handler and an extension has one value, even if several providers declare it.

use crate::catalog::items::{HandlerId, MountId};
use crate::limits::Limits;
use crate::meta::{self, InvalidMeta};
use crate::now::Millis;
use crate::resource::RegistrationError;
use crate::version::{COMPLETE, ListKinds, ProtocolMethod};
use std::sync::Arc;

/// A custom method with its own handler.
#[derive(Clone, Debug, Default)]
pub struct Extension {
    /// The method. Not a method of the protocol, except `completion/complete`, whose handler then gets the references
    /// that do not name resources or prompts of this library.
    pub method: String,
    /// The handler.
    pub handler: HandlerId,
    /// The member of `params` that the header `Mcp-Name` repeats, if any.
    pub name_param: Option<String>,
    /// A capability to declare: its name and settings (a JSON object), such as `("tasks", "{}")`.
    pub capability: Option<(String, String)>,
    /// The list that this method returns, if clients may listen for its changes.
    pub list_kind: Option<ListKinds>,
    /// The time-out in milliseconds, 0 for none. Default: that of a read.
    pub timeout: Option<Millis>,
}

/// A custom method, of a mount or of the server.
#[derive(Debug)]
pub struct MethodEntry {
    /// Its description.
    pub extension: Extension,
    /// The mount that it belongs to.
    pub mount: Option<MountId>,
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
    /// Checks a method that is added to a catalogue.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub(super) fn new(extension: Extension, mount: Option<MountId>) -> Result<Self, RegistrationError> {
        let method = &extension.method;
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'.');
        let is_ours = method.is_empty() || ProtocolMethod::parse(method).is_some();
        if mount.is_some() && (is_ours || !method.bytes().all(is_name)) {
            return Err(invalid(method, "method", method, "a name that is not a method of the protocol"));
        }
        extension.check()?;
        Ok(Self { extension, mount })
    }
}

impl Extension {
    /// Refuses methods that the protocol defines, and a capability that is not a JSON object.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub fn check(&self) -> Result<(), RegistrationError> {
        let method = &self.method;
        let own = ProtocolMethod::parse(method).filter(|_| method != COMPLETE);
        if let Some(part) = own.and_then(ProtocolMethod::registered_with) {
            let expected = format!("a method that is not served by this library: register a {part} instead");
            return Err(invalid(method, "method", method, &expected));
        }
        if method.is_empty() || own.is_some() {
            return Err(invalid(method, "method", method, "a method that is not served by this library"));
        }
        match &self.capability {
            Some((name, settings)) if settings.contains(['\n', '\r']) || !is_object(settings) => {
                Err(invalid(method, name, settings, "a JSON object on one line"))
            }
            _ => Ok(()),
        }
    }
}

fn is_object(settings: &str) -> bool {
    meta::object_text(settings, usize::MAX).is_some()
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
