//! Resources and templates described by another server: valid JSON is passed on unchanged.
//!
//! Law: a description that passes may appear in a list of any revision, including members that the revision does not
//! define.

use crate::catalog::cursor::Cursor;
use crate::catalog::items::MountId;
use crate::jsonrpc::Json;
use crate::limits::Limits;
use crate::meta;
use crate::resource::RegistrationError;
use mcp_resources_template::UriTemplate;
use std::sync::Arc;

/// A template of another server that is listed but never routed, because it cannot be parsed or conflicts with a
/// registered template.
#[derive(Debug)]
pub struct ForeignTemplate {
    /// The text of the template.
    pub uri_template: String,
    /// The mount that it belongs to.
    pub mount: MountId,
    /// The parsed template, if parsing succeeded.
    pub parsed: Option<UriTemplate>,
    /// Its sort key: the text, then the mount.
    pub(super) key: Arc<str>,
    pub(super) json: String,
}

impl ForeignTemplate {
    /// Checks a template of another server.
    ///
    /// # Errors
    /// [`RegistrationError`] if it cannot appear in a list.
    pub(super) fn new(
        mount: MountId,
        uri_template: String,
        json: String,
        limits: &Limits,
    ) -> Result<Self, RegistrationError> {
        // The sort key is a few bytes longer than the text.
        const LONGEST: usize = Cursor::MAX_KEY - 16;
        let invalid = |field: &str, value: &str, expected: &str| RegistrationError::InvalidField {
            of: uri_template.clone(),
            field: field.to_owned(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let longest = limits.uri.min(LONGEST);
        if uri_template.len() > longest {
            return Err(RegistrationError::LimitReached { what: "uri", limit: longest });
        }
        if uri_template.is_empty() || uri_template.contains(char::is_control) {
            return Err(invalid("uriTemplate", &uri_template, "text without control characters"));
        }
        let json = checked(json, "uriTemplate", &uri_template, limits)
            .map_err(|reason| invalid("json", &reason, "a JSON object that describes this template"))?;
        let parsed = UriTemplate::parse(&uri_template).ok();
        Ok(Self { key: Self::key(mount, &uri_template), uri_template, mount, parsed, json })
    }

    /// A sort key that orders by the template's text, and after a registered template with the same text.
    pub(super) fn key(mount: MountId, uri_template: &str) -> Arc<str> {
        format!("{uri_template}\0{:08x}", mount.0).into()
    }
}

/// Checks another server's description of a resource or template, in which the member `name` must equal `id`. Returns
/// it without line breaks, which only stand between tokens, or the reason for refusing it.
pub(crate) fn checked(json: String, name: &str, id: &str, limits: &Limits) -> Result<String, String> {
    check(&json, name, id, limits)?;
    Ok(if json.contains(['\n', '\r']) { meta::compact(&json) } else { json })
}

fn check(json: &str, name: &str, id: &str, limits: &Limits) -> Result<(), String> {
    let max = limits.list_item;
    if json.len() > max {
        return Err(format!("it has {} bytes, more than the limit `list_item` of {max}", json.len()));
    }
    let members = Json::parse(json.as_bytes(), limits.nesting).and_then(Json::object);
    let Some(members) = members else {
        return Err(format!("it is not a JSON object, or nested more than {} deep", limits.nesting));
    };
    let mut ids = members.iter().filter(|(own, _)| own == name).map(|(_, value)| value.as_str());
    match (ids.next(), ids.next()) {
        (Some(Some(own)), None) if own == id => {}
        (Some(_), Some(_)) => return Err(format!("its member {name:?} stands twice")),
        _ => return Err(format!("its member {name:?} is not this text")),
    }
    // Every revision requires it, and clients that validate a list refuse the whole list without it.
    if members.get("name").and_then(Json::as_str).is_none() {
        return Err("its member \"name\" is not a text".to_owned());
    }
    Ok(())
}
