//! Whose functions list resources: templates with a `.list` callback, and sources that have no template.
//!
//! Law: a source is named by a text, so that a cursor finds it again after a restart and in another process.

use crate::catalog::items::{HandlerId, MountId, TemplateEntry};
use crate::catalog::routes::Route;
use crate::resource::RegistrationError;
use std::sync::Arc;

/// A source of `resources/list` that has no template.
#[derive(Debug)]
pub struct SourceEntry {
    /// Its name. No two sources of a catalogue have the same, whatever their mounts.
    pub key: Arc<str>,
    /// The function that lists.
    pub handler: HandlerId,
    /// What it belongs to.
    pub mount: MountId,
    /// Whether the function takes a cursor and returns a page. If not, it returns everything.
    pub pages: bool,
}

impl SourceEntry {
    /// The most bytes of a key: cursors carry it.
    pub const MAX_KEY: usize = 1024;

    /// Checks a key.
    ///
    /// # Errors
    /// [`RegistrationError::InvalidField`].
    pub(super) fn check(key: &str) -> Result<(), RegistrationError> {
        if !key.is_empty() && key.len() <= Self::MAX_KEY && !key.contains(char::is_control) {
            return Ok(());
        }
        Err(Self::invalid(key, "1 to 1024 bytes of text without control characters"))
    }

    /// The error about a key.
    pub(super) fn invalid(key: &str, expected: &str) -> RegistrationError {
        RegistrationError::InvalidField {
            of: "a list source".to_owned(),
            field: "key".to_owned(),
            value: key.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// Names a source of `resources/list`, also in a cursor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SourceKey {
    /// A template with a `.list` callback, by its text.
    Template(String),
    /// A source without a template, by its [`SourceEntry::key`].
    Key(String),
}

/// A source of `resources/list`.
#[derive(Clone, Copy, Debug)]
pub enum Lister<'c> {
    /// The `.list` callback of a template.
    Template(&'c Arc<TemplateEntry>),
    /// A source without a template.
    Source(&'c Arc<SourceEntry>),
}

impl<'c> Lister<'c> {
    /// The lister of a template, if the template has a `.list` callback.
    pub(super) fn of(entry: &'c Arc<TemplateEntry>) -> Option<Self> {
        entry.template.list.is_some().then_some(Self::Template(entry))
    }

    /// Its name.
    pub fn key(self) -> SourceKey {
        match self {
            Self::Template(entry) => SourceKey::Template(entry.template.uri_template.clone()),
            Self::Source(entry) => SourceKey::Key(entry.key.to_string()),
        }
    }

    /// The text of its name: of the template, or the key.
    pub fn name(self) -> &'c str {
        match self {
            Self::Template(entry) => &entry.template.uri_template,
            Self::Source(entry) => &entry.key,
        }
    }

    /// The function that lists.
    pub fn handler(self) -> HandlerId {
        match self {
            Self::Template(entry) => entry.handler,
            Self::Source(entry) => entry.handler,
        }
    }

    /// What it belongs to.
    pub fn mount(self) -> Option<MountId> {
        match self {
            Self::Template(entry) => entry.mount,
            Self::Source(entry) => Some(entry.mount),
        }
    }

    /// Whether the function takes a cursor and returns a page.
    pub fn pages(self) -> bool {
        match self {
            Self::Template(entry) => entry.template.list.is_some_and(|list| list.pages),
            Self::Source(entry) => entry.pages,
        }
    }

    /// Whether an item of this source that `route` leads to is listed: the same mount serves it, or without a mount the same
    /// handler. A source of a mount also lists what only the fallback serves.
    pub fn owns(self, route: &Route<'_, '_>) -> bool {
        match (route, self.mount()) {
            (Route::Template(served, _), None) => served.handler == self.handler(),
            (Route::Template(served, _), mount) => served.mount == mount,
            (Route::Fallback(_), mount) => mount.is_some(),
            _ => false,
        }
    }
}
