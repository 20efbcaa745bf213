//! Links from the result of a tool to a resource of this server.
//!
//! Law: a link that passes leads to a read whose values are of the declared types, unless its registration is removed
//! before the read.

use super::Engine;
use crate::catalog::CatalogRoute;
use crate::error::ReadError;
use mcp_resources_template::uri;

impl Engine {
    /// Checks a link: the registration `registered`, a URI or the text of a template, must still be there, and the
    /// values of the variables in `uri` must be of their declared types.
    ///
    /// # Errors
    /// One sentence that names the registration, and the variable with its value and the expected one.
    pub fn check_link(&self, registered: &str, uri: &str) -> Result<(), String> {
        let catalog = self.catalog();
        let limit = self.limits().uri;
        let is_there = catalog.template_by_text(registered).is_some()
            || uri::normalize(registered, limit).is_ok_and(|normal| catalog.resource(&normal).is_some());
        if !is_there {
            return Err(format!("{registered} is not registered now, so a link to {uri} would lead nowhere"));
        }
        let normal = uri::normalize(uri, limit).map_err(|error| {
            format!("{registered}: {uri} is no URI: {} at byte {}", error.reason, error.offset)
        })?;
        match catalog.route(&normal) {
            CatalogRoute::Template(entry, params) => {
                entry.check(&params).map_err(|error| format!("{registered}: {}", sentence(&error)))
            }
            CatalogRoute::Rejected { variable, why, .. } => {
                Err(format!("{registered}: the variable {variable} has a value that it refuses: {why}"))
            }
            CatalogRoute::Resource(_) | CatalogRoute::Fallback(_) => Ok(()),
            CatalogRoute::None { .. } => Err(format!(
                "{registered} does not accept {uri}; a link must lead to a resource of this server"
            )),
        }
    }
}

/// The error for a variable, with its value.
fn sentence(error: &ReadError) -> String {
    match error {
        ReadError::RefusedParameter { parameter, value, reason } => {
            format!("the variable {parameter} is {value:?}, {reason}")
        }
        ReadError::InvalidParameter { parameter, expected } => {
            format!("the variable {parameter} is missing, expected {expected}")
        }
        other => other.to_string(),
    }
}
