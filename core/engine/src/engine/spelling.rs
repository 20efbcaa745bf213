//! One URI for all encodings of a resource.
//!
//! ```text
//!   at://T12:00 ─┐
//!   at://T12%3A00 ┴─ a template with typed variables ─▶ when = T12:00 ─ expanded ─▶ at://T12%3A00: watched, marked and cached
//! ```
//!
//! Law: only for templates of authors: a provider compares reported URIs with its own.

use super::Engine;
use crate::catalog::CatalogRoute;
use std::borrow::Cow;

/// The characters that a URI may have as they are or encoded, and the sign of an encoded one.
const TWICE: &[u8] = b"%:@!$&'()*+,;=";

impl Engine {
    /// The URI that stands for all encodings of `normal`, which is in normal form.
    pub(crate) fn key_of<'u>(&self, normal: &'u str) -> Cow<'u, str> {
        let catalog = self.catalog();
        if !catalog.has_checks() || !has_encodings(normal) {
            return Cow::Borrowed(normal);
        }
        match catalog.route(normal) {
            CatalogRoute::Template(entry, params) => {
                entry.expanded(&params).map_or(Cow::Borrowed(normal), Cow::Owned)
            }
            _ => Cow::Borrowed(normal),
        }
    }
}

/// Whether a URI may have more than one encoding. Most have not, which takes no template to see.
fn has_encodings(normal: &str) -> bool {
    let rest = normal.split_once(':').map_or("", |(_, rest)| rest);
    rest.bytes().any(|byte| TWICE.contains(&byte))
}
