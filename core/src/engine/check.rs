//! What can be wrong with the server's own description and switches: told when the engine is built.

use super::{Options, ServerInfo};
use crate::guard::{Amounts, Guard};
use crate::meta;
use crate::resource::RegistrationError;
use crate::version::{COMPLETE, Method};

pub(super) fn info(info: &ServerInfo) -> Result<(), RegistrationError> {
    for (field, value) in [("name", &info.name), ("version", &info.version)] {
        if value.is_empty() {
            return Err(invalid(field, value, "a text that is not empty"));
        }
    }
    match info.website_url.as_deref().filter(|url| !is_web(url)) {
        Some(url) => Err(invalid("websiteUrl", url, "an http or https URL")),
        None => Ok(()),
    }
}

pub(super) fn options(options: &Options) -> Result<(), RegistrationError> {
    if options.limits.page == 0 {
        return Err(invalid("limits.page", "0", "at least 1 item on a page"));
    }
    if options.revisions.is_empty() {
        return Err(invalid("revisions", "", "at least one revision"));
    }
    for extension in &options.extensions {
        let method = &extension.method;
        let is_ours = Method::parse(method).is_some() && method != COMPLETE;
        if method.is_empty() || is_ours {
            return Err(invalid("method", method, "a method that is not served by this library"));
        }
        if let Some((name, settings)) = &extension.capability {
            object(name, settings)?;
        }
    }
    for (id, settings) in &options.extension_capabilities {
        // the keys of `_meta`, with a prefix.
        if !id.contains('/') || meta::check_key(id).is_err() {
            return Err(invalid("extensions", id, "a name with a prefix, such as com.example/feature"));
        }
        object(id, settings)?;
    }
    Ok(())
}

/// The guard that the policy makes, and its bounds.
pub(super) fn guard(options: &Options) -> Result<(Guard, Amounts), RegistrationError> {
    let guard = Guard::new(&options.guard, options.explicit_denials)?;
    Ok((guard, Amounts::new(&options.guard, options.limits.principals)?))
}

fn object(name: &str, settings: &str) -> Result<(), RegistrationError> {
    let value: Option<serde_json::Value> = serde_json::from_str(settings).ok();
    let one_line = !settings.contains(['\n', '\r']);
    match value.filter(|value| value.is_object() && one_line) {
        Some(_) => Ok(()),
        None => Err(invalid(name, settings, "a JSON object on one line")),
    }
}

fn invalid(field: &str, value: &str, expected: &str) -> RegistrationError {
    RegistrationError::InvalidField {
        of: "the server".into(),
        field: field.into(),
        value: value.into(),
        expected: expected.into(),
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}
