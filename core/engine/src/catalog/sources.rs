//! Sources of lists: templates with a `.list` callback, and sources without a template.
//!
//! Law: a source is identified by a text, so that a cursor finds it again after a restart and in another process.

use crate::catalog::cursor::ListKind;
use crate::catalog::items::{HandlerId, MountId, TemplateEntry};
use crate::catalog::routes::CatalogRoute;
use crate::resource::RegistrationError;
use std::sync::Arc;

/// A source of a list that has no template.
#[derive(Debug)]
pub struct SourceEntry {
    /// Its key, unique in the catalogue, whatever the mount.
    pub key: Arc<str>,
    /// The list that it adds to.
    pub list: ListKind,
    /// The handler that lists.
    pub handler: HandlerId,
    /// The mount that it belongs to.
    pub mount: MountId,
    /// Whether the handler takes a cursor and returns a page; otherwise it returns everything at once.
    pub pages: bool,
}

impl SourceEntry {
    /// Maximum length of a key in bytes: cursors contain it.
    pub const MAX_KEY: usize = 1024;

    /// Checks the length of a key.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub(super) fn check(key: &str) -> Result<(), RegistrationError> {
        if !key.is_empty() && key.len() <= Self::MAX_KEY && !key.contains(char::is_control) {
            return Ok(());
        }
        Err(Self::invalid(key, "1 to 1024 bytes of text without control characters"))
    }

    /// The error for an invalid key.
    pub(super) fn invalid(key: &str, expected: &str) -> RegistrationError {
        RegistrationError::InvalidField {
            of: "a list source".to_owned(),
            field: "key".to_owned(),
            value: key.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Identifies a source of a list, also in a cursor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceKey {
    /// A template with a `.list` callback, by its text.
    Template(String),
    /// A source without a template, by its [`SourceEntry::key`].
    Key(String),
}

/// A source of a list.
#[derive(Clone, Copy, Debug)]
pub enum Lister<'c> {
    /// The `.list` callback of a template.
    Template(&'c Arc<TemplateEntry>),
    /// A source without a template.
    Source(&'c Arc<SourceEntry>),
}

impl<'c> Lister<'c> {
    /// The template's `.list` callback as a source, if it has one.
    pub(super) fn from_template(entry: &'c Arc<TemplateEntry>) -> Option<Self> {
        entry.template.list.is_some().then_some(Self::Template(entry))
    }

    /// The list that it adds to.
    pub fn list(self) -> ListKind {
        match self {
            Self::Template(_) => ListKind::Resources,
            Self::Source(entry) => entry.list,
        }
    }

    /// Its identifier.
    pub fn key(self) -> SourceKey {
        match self {
            Self::Template(entry) => SourceKey::Template(entry.template.uri_template.clone()),
            Self::Source(entry) => SourceKey::Key(entry.key.to_string()),
        }
    }

    /// The text of its identifier: the template's text, or the key.
    pub fn name(self) -> &'c str {
        match self {
            Self::Template(entry) => &entry.template.uri_template,
            Self::Source(entry) => &entry.key,
        }
    }

    /// The handler that lists.
    pub fn handler(self) -> HandlerId {
        match self {
            Self::Template(entry) => entry.handler,
            Self::Source(entry) => entry.handler,
        }
    }

    /// The mount that it belongs to.
    pub fn mount(self) -> Option<MountId> {
        match self {
            Self::Template(entry) => entry.mount,
            Self::Source(entry) => Some(entry.mount),
        }
    }

    /// Whether the handler takes a cursor and returns a page.
    pub fn pages(self) -> bool {
        match self {
            Self::Template(entry) => entry.template.list.is_some_and(|list| list.pages),
            Self::Source(entry) => entry.pages,
        }
    }

    /// Whether this source may list an item that is served by `route`: the mount must be the same or, without a mount,
    /// the handler. A source of a mount may also list URIs that only the fallback serves.
    pub fn owns(self, route: &CatalogRoute<'_, '_>) -> bool {
        match (route, self.mount()) {
            (CatalogRoute::Template(served, _), None) => served.handler == self.handler(),
            (CatalogRoute::Template(served, _), mount) => served.mount == mount,
            (CatalogRoute::Fallback(_), mount) => mount.is_some(),
            _ => false,
        }
    }
}
