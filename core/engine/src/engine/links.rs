//! Links from the result of a tool to a resource of this server.
//!
//! Law: a link that passes leads to a read whose values are of the declared types, unless its registration is removed
//! before the read.

use super::Engine;
use crate::catalog::CatalogRoute;
use crate::error::ReadError;
use crate::resource::Resource;
use mcp_resources_template::{Value, Values, uri};
use std::borrow::Cow;
use std::fmt;

/// A link would lead nowhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError(String);

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LinkError {}

impl Engine {
    /// Makes the resource at the end of a link, with the details of its registration: `registered` is a URI, or the text
    /// of a template, whose variables get `values`.
    ///
    /// # Errors
    /// [`LinkError`] if the template has no such variable, a required one has no value, a value is not of its declared
    /// type, or nothing is registered as `registered`.
    pub fn link(&self, registered: &str, values: &[(&str, &str)]) -> Result<Resource, LinkError> {
        let catalog = self.catalog();
        let Some(entry) = catalog.template_by_text(registered) else {
            return self.link_to_resource(registered, values);
        };
        let known = entry.parsed.variables();
        if let Some((name, _)) = values.iter().find(|(name, _)| known.iter().all(|one| *one.name != **name)) {
            let names: Vec<&str> = known.iter().map(|one| &*one.name).collect();
            let names = names.join(", ");
            return Err(LinkError(format!("{registered} has no variable {name}; it has {names}")));
        }
        let given: Values<'_> =
            values.iter().map(|(name, value)| (*name, Value::Scalar(Cow::Borrowed(*value)))).collect();
        let uri = entry.parsed.expand(&given).map_err(|error| LinkError(format!("{registered}: {error}")))?;
        self.check_link(registered, &uri).map_err(LinkError)?;
        let mut link = Resource::new(uri);
        link.details.complete_from(&entry.template.details);
        // In the order of the template.
        let text = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
        let named: Vec<&str> = known.iter().filter_map(|one| text(&one.name)).collect();
        Ok(if named.is_empty() { link } else { link.name(named.join("/")) })
    }

    fn link_to_resource(&self, registered: &str, values: &[(&str, &str)]) -> Result<Resource, LinkError> {
        self.check_link(registered, registered).map_err(LinkError)?;
        if let Some((name, _)) = values.first() {
            return Err(LinkError(format!("{registered} has no variables, so it takes no value for {name}")));
        }
        let catalog = self.catalog();
        let normal = uri::normalize(registered, self.limits().uri).ok();
        let entry = normal.and_then(|normal| catalog.resource(&normal).cloned());
        Ok(entry.map_or_else(|| Resource::new(registered), |entry| entry.resource.clone()))
    }

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
