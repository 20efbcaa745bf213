//! Checks the server's description, options and policy when the engine is built.

use super::{EngineOptions, ServerInfo};
use crate::catalog::Edit;
use crate::guard::{Amounts, Guard, Policy, SharedRates};
use crate::limits::Limits;
use crate::meta;
use crate::resource::RegistrationError;
use std::sync::Arc;

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

pub(super) fn options(options: &EngineOptions) -> Result<(), RegistrationError> {
    limits(&options.limits)?;
    if options.revisions.is_empty() {
        return Err(invalid("revisions", "", "at least one revision"));
    }
    for extension in &options.extensions {
        extension.check()?;
    }
    for (id, settings) in &options.extension_capabilities {
        // The keys of `_meta`, with a prefix.
        if !id.contains('/') || meta::check_key(id).is_err() {
            return Err(invalid("extensions", id, "a name with a prefix, such as com.example/feature"));
        }
        object(id, settings)?;
    }
    Ok(())
}

/// Refuses a method or an extension of a mount that the server's options already declare.
///
/// # Errors
/// [`RegistrationError`].
pub(super) fn is_new(edit: &Edit, options: &EngineOptions) -> Result<(), RegistrationError> {
    match edit {
        Edit::AddMethod { extension, .. }
            if options.extensions.iter().any(|own| own.method == extension.method) =>
        {
            Err(RegistrationError::DuplicateMethod { method: extension.method.clone() })
        }
        Edit::AddExtension { id, .. } if options.extension_capabilities.iter().any(|(own, _)| own == id) => {
            Err(RegistrationError::DuplicateExtension { id: id.clone() })
        }
        _ => Ok(()),
    }
}

/// Refuses limits under which no request, or no read, could succeed.
fn limits(limits: &Limits) -> Result<(), RegistrationError> {
    let is_zero = [
        (limits.page == 0, "limits.page", "at least 1 item on a page"),
        (limits.message == 0, "limits.message", "at least 1 byte"),
        (limits.uri == 0, "limits.uri", "at least 1 byte"),
        (limits.in_flight == 0, "limits.in_flight", "at least 1 request"),
        (limits.list_scan == 0, "limits.list_scan", "at least 1 item"),
        (limits.output == 0, "limits.output", "at least 1 byte"),
        (limits.tool_text == 0, "limits.tool_text", "at least 1 character"),
        (limits.read_timeout == 0, "limits.read_timeout", "at least 1 ms"),
        (limits.completion_timeout == 0, "limits.completion_timeout", "at least 1 ms"),
        (limits.keep_alive == 0, "limits.keep_alive", "at least 1 ms"),
        (limits.head == 0, "limits.head", "at least 1 byte"),
        (limits.headers == 0, "limits.headers", "at least 1 line"),
        (limits.connections == 0, "limits.connections", "at least 1 connection"),
        (limits.connections_per_client == 0, "limits.connections_per_client", "at least 1 connection"),
        (limits.head_timeout == 0, "limits.head_timeout", "at least 1 ms"),
        (limits.idle_timeout == 0, "limits.idle_timeout", "at least 1 ms"),
        (limits.body_timeout == 0, "limits.body_timeout", "at least 1 ms"),
        (limits.write_timeout == 0, "limits.write_timeout", "at least 1 ms"),
    ];
    match is_zero.into_iter().find(|(is_zero, ..)| *is_zero) {
        Some((_, field, expected)) => Err(invalid(field, "0", expected)),
        None => Ok(()),
    }
}

/// Compiles a policy into a guard and its limits.
pub(super) fn guard(
    options: &EngineOptions,
    policy: &Policy,
    rates: &Arc<SharedRates>,
) -> Result<(Guard, Amounts), RegistrationError> {
    if policy.rate.shared && !options.shares_rates {
        return Err(RegistrationError::InvalidPolicy {
            field: "rate.shared".into(),
            reason: "it needs a bus on Redis, such as redis://localhost:6379/0, where all processes count; without it each \
                     process counts for itself"
                .into(),
        });
    }
    let guard = Guard::new(policy, options.explicit_denials)?;
    Ok((guard, Amounts::new(policy, options.limits.principals, rates)?))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    /// With such limits a server could start, but would refuse every request.
    #[test]
    fn limits_that_leave_nothing_to_serve_are_refused() {
        let refused = |set: fn(&mut Limits)| {
            let info = ServerInfo { name: "t".into(), version: "1".into(), ..ServerInfo::default() };
            let mut options = EngineOptions::default();
            set(&mut options.limits);
            Engine::new(info, options).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let page = "\"the server\": limits.page is \"0\", expected at least 1 item on a page";
        assert_eq!(refused(|limits| limits.page = 0), page);
        let timeout = "\"the server\": limits.read_timeout is \"0\", expected at least 1 ms";
        assert_eq!(refused(|limits| limits.read_timeout = 0), timeout);
        assert!(refused(|limits| limits.connections = 0).contains("at least 1 connection"));
        assert_eq!(refused(|limits| (limits.page, limits.batch, limits.token_cache) = (1, 0, 0)), "");
    }
}
